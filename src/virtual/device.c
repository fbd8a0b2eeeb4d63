/* A device as the model and the settings describe it: properties, engines, memory. */
#include <stdio.h>

#include "virtual/state.h"

/* The addresses shown to scripts: far apart, so that the memories of two devices are not neighbours. */
#define DEVICE_ADDRESS      ((uint64_t)0x7f0000000000)
#define DEVICE_ADDRESS_STEP ((uint64_t)1 << 44)

/* Bytes of address for each byte of memory (mr_pool_address). A kernel that assumes a larger element type stays within
 * the gap after the allocation: the widest type has 8 times the bytes of the narrowest. The smallest gap is 3.5 KiB. */
#define SPREAD 8

void mr_virtual_device_setup(vdevice *device) {
    const device_model *model = &device->gpu->model;
    mr_device_properties *properties = &device->device->properties;
    *properties = (mr_device_properties){
        .sm_count = (int)model->sm_count,
        .compute_major = (int)model->compute_major,
        .compute_minor = (int)model->compute_minor,
        .max_threads_per_block = (int)model->max_threads_per_block,
        .max_threads_per_sm = (int)model->max_threads_per_sm,
        .max_blocks_per_sm = (int)model->max_blocks_per_sm,
        .warp_size = (int)model->warp_size,
        .max_resident_grids = (int)model->max_resident_grids,
        .registers_per_sm = (int)model->registers_per_sm,
        .shared_per_sm = (int)model->shared_per_sm_bytes,
        .shared_per_block = (int)model->shared_per_block_bytes,
        .clock_hz = (uint64_t)model->sm_clock_hz,
        .async_engine_count = (int)model->async_engine_count,
        .priority_least = 0,
        .priority_greatest = (int)model->priority_greatest,
        .total_memory = (uint64_t)model->total_memory_bytes,
        .l2_bytes = (uint64_t)model->l2_bytes,
        .memory_bandwidth = model->memory_gbs * 1e9,
    };
    snprintf(properties->name, sizeof properties->name, "%.50s (virtual)", model->name);
    device->capacity = (uint64_t)model->sm_count * (uint64_t)model->max_threads_per_sm;
    mr_virtual_engines_reset(device);
}

mr_status mr_virtual_pool_setup(vdevice *device) {
    const vgpu *gpu = device->gpu;
    uint64_t wanted = gpu->set.memory_bytes ? (uint64_t)gpu->set.memory_bytes
                                            : (uint64_t)gpu->model.total_memory_bytes;
    uint64_t limit = wanted < gpu->backing.limit ? wanted : gpu->backing.limit;
    if (limit < BLOCK_GRANULE) limit = BLOCK_GRANULE;
    device->device->properties.memory_limit = limit;
    device->device->properties.memory_limit_source =
        limit < wanted ? gpu->backing.source : "what the device has";
    uint64_t address = DEVICE_ADDRESS + (uint64_t)device->device->index * DEVICE_ADDRESS_STEP;
    return mr_pool_set_limit(&device->pool, address, gpu->set.packed_memory ? 1 : SPREAD, limit);
}
