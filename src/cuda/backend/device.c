/* Devices: their properties, and their primary contexts, which are created at the first use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/backend/parts.h"
#include "cuda/launch/launch.h"
#include "cuda/objects/objects.h"
#include "cuda/wait/wait.h"

/* The kernels in this binary are compiled for it and for newer GPUs. */
#define NEEDED_MAJOR 7
#define NEEDED_MINOR 5

/* R53: since compute capability 7.5 every GPU takes so many grids. */
#define RESIDENT_GRIDS 128

/* ---- properties */

static int attribute(CUdevice device, CUdevice_attribute which) {
    int value = 0;
    if (mr_cu.DeviceGetAttribute(&value, which, device) != CUDA_SUCCESS) return 0;
    return value;
}

static void fill_in(mr_device_properties *properties, CUdevice device) {
    size_t total = 0;
    mr_cu.DeviceTotalMem(&total, device);
    *properties = (mr_device_properties){
        .sm_count = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .compute_major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        .compute_minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        .max_threads_per_block = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .max_threads_per_sm = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        .max_blocks_per_sm = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
        .warp_size = attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        .max_resident_grids = RESIDENT_GRIDS,
        .registers_per_sm = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
        .shared_per_sm =
            attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        .shared_per_block =
            attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        .clock_hz = 1000 * (uint64_t)attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .async_engine_count = attribute(device, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT),
        .total_memory = total,
        .l2_bytes = (uint64_t)attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        /* kHz, bits, and two transfers a clock */
        .memory_bandwidth = 2e3 * attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 8 *
                            attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
    };
    if (mr_cu.DeviceGetName(properties->name, sizeof properties->name, device) != CUDA_SUCCESS)
        snprintf(properties->name, sizeof properties->name, "NVIDIA GPU");
    properties->name[sizeof properties->name - 1] = '\0';
}

mr_status mr_cuda_device_open(cuda_device *device) {
    int ordinal = device->device->index;
    device->fenced_end = &device->fenced;
    CUresult result = mr_cu.DeviceGet(&device->handle, ordinal);
    if (result != CUDA_SUCCESS) return mr_cuda_complain(result, "device %d", ordinal);
    fill_in(&device->device->properties, device->handle);
    device->values = mr_cuda_turns_by_values(device->handle);
    return MR_OK;
}

/* ---- contexts */

static mr_status check_usable(CUdevice handle, int ordinal) {
    mr_device_properties properties;
    fill_in(&properties, handle);
    int major = properties.compute_major, minor = properties.compute_minor;
    if (major < NEEDED_MAJOR || (major == NEEDED_MAJOR && minor < NEEDED_MINOR))
        return mr_fail(
            MR_CODE_NOT_SUPPORTED,
            "device %d (%s) is of compute capability %d.%d and this build needs %d.%d or "
            "later",
            ordinal, properties.name, major, minor, NEEDED_MAJOR, NEEDED_MINOR);
    if (!attribute(handle, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "device %d (%s) has no stream-ordered memory (memory pools), on which "
                       "everything here is built",
                       ordinal, properties.name);
    return MR_OK;
}

static mr_status retain(CUdevice handle, int ordinal, CUcontext *out_context) {
    MR_TRY(check_usable(handle, ordinal));
    CUresult result = mr_cu.DevicePrimaryCtxRetain(out_context, handle);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return mr_fail(
            MR_CODE_OUT_OF_MEMORY,
            "device %d has no memory left for a context: other processes hold it all, as "
            "`nvidia-smi` shows",
            ordinal);
    if (result != CUDA_SUCCESS)
        return mr_cuda_complain(result, "device %d cannot be used", ordinal);
    return MR_OK;
}

/* Everything that lives in a context and is ours. */
static mr_status set_up(cuda_device *device) {
    mr_device_properties *properties = &device->device->properties;
    mr_cuda_make_current(device->context);
    MR_CUDA_TRY(device,
                mr_cu.CtxGetStreamPriorityRange(&properties->priority_least,
                                                &properties->priority_greatest),
                "device %d", device->device->index);
    MR_TRY(mr_cuda_pool_open(device));
    return mr_cuda_kernels_open(device);
}

mr_status mr_cuda_device_make_context(cuda_device *device) {
    CUcontext context;
    MR_TRY(mr_cuda_may_wait(device, "the first use of a device"));
    MR_TRY(retain(device->handle, device->device->index, &context));
    device->context = context;
    mr_status status = set_up(device);
    if (status) mr_cuda_device_close(device);
    return status;
}

/* One by one, since the context stays if others in this process hold it as well. */
static void destroy_handles(cuda_device *device) {
    for (cuda_stream *s = device->first, *next; s; s = next) {
        next = s->next;
        mr_cuda_stream_forget(s);
    }
    if (device->barrier) mr_cu.EventDestroy(device->barrier);
    device->barrier = NULL;
    while (device->events.count) mr_cu.EventDestroy(mr_vec_pop(&device->events));
    mr_vec_free(&device->events);
}

void mr_cuda_device_finish(cuda_device *device) {
    if (!device->context) return;
    mr_cuda_make_current(device->context);
    mr_cu.CtxSynchronize();
}

void mr_cuda_device_close(cuda_device *device) {
    if (!device->context) return;
    mr_cuda_device_finish(device);
    mr_cuda_hold_drop(device);
    if (device->close_graphs) device->close_graphs(device);
    mr_cuda_kernels_close(device);
    mr_cuda_pool_close(device);
    destroy_handles(device);
    mr_cuda_make_current(NULL);
    mr_cu.DevicePrimaryCtxRelease(device->handle);
    mr_cuda_trail_clear(device);
    device->context = NULL;
    device->launches = device->peers = 0;
    device->prints = false;
    device->generation++;
}

/* ---- finding one to start with */

/* Its context is retained while `is_kept`, from the probe to the opening of a machine by the same thread. */
static _Thread_local CUdevice kept;
static _Thread_local bool is_kept;

static mr_status try_to_keep(int ordinal) {
    CUcontext context;
    CUdevice handle;
    CUresult result = mr_cu.DeviceGet(&handle, ordinal);
    if (result != CUDA_SUCCESS) return mr_cuda_complain(result, "device %d", ordinal);
    MR_TRY(retain(handle, ordinal, &context));
    mr_cuda_device_found();
    kept = handle;
    is_kept = true;
    return MR_OK;
}

mr_status mr_cuda_device_find(int ordinal, int *out_ordinal) {
    int count = 0;
    MR_TRY(mr_cuda_driver_start());
    mr_cu.DeviceGetCount(&count);
    if (ordinal >= count && count == 1)
        return mr_fail(MR_CODE_INVALID_DEVICE, "there is no device %d: the only one is device 0",
                       ordinal);
    if (ordinal >= count)
        return mr_fail(MR_CODE_INVALID_DEVICE, "there is no device %d: there are devices 0 to %d",
                       ordinal, count - 1);
    *out_ordinal = ordinal < 0 ? 0 : ordinal;
    mr_status status = try_to_keep(*out_ordinal);
    for (int i = 1; status && ordinal < 0 && i < count; i++) {
        mr_status other = try_to_keep(i);
        if (other) {
            mr_error_destroy(other); /* the error of the first device is the useful one */
            continue;
        }
        mr_error_destroy(status);
        *out_ordinal = i;
        return MR_OK;
    }
    return status;
}

void mr_cuda_device_found(void) {
    if (is_kept) mr_cu.DevicePrimaryCtxRelease(kept);
    is_kept = false;
}
