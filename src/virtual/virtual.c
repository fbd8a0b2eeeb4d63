/* The virtual GPU as a backend: opening, closing, resetting, and the table of its slots. The
 * functions are in the other files of this folder; state.h says how they fit together. */
#include "virtual/virtual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op.h"
#include "virtual/chooser.h"

#define MOST_DEVICES 64 /* peers are bits of one word */

/* The address of the first host memory that scripts see; see also device.c. */
#define HOST_ADDRESS ((uint64_t)0x100000000000)

/* ---- devices */

static mr_status open_device(vgpu *gpu, int index) {
    mr_device *device = calloc(1, sizeof *device);
    if (!device) return mr_no_memory("for device %d", index);
    vdevice *virtual = &gpu->devices[index];
    gpu->machine->devices[index] = device;
    device->machine = gpu->machine;
    device->index = index;
    device->impl = virtual;
    virtual->gpu = gpu;
    virtual->device = device;
    mr_virtual_device_setup(virtual);
    MR_TRY(mr_pool_open(&virtual->pool, virtual));
    return mr_virtual_pool_setup(virtual);
}

/* "virtual", "virtual:4" */
static mr_status parse_device_count(const char *text, int *out_count) {
    static const char prefix[] = "virtual";
    *out_count = 1;
    if (!text || strcmp(text, prefix) == 0) return MR_OK;
    char *end = NULL;
    long count = 0;
    if (strncmp(text, "virtual:", sizeof prefix) == 0)
        count = strtol(text + sizeof prefix, &end, 10);
    if (!end || *end || count < 1 || count > MOST_DEVICES)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "device `%s`: expected virtual, or virtual:N with 1 to %d devices", text,
                       MOST_DEVICES);
    *out_count = (int)count;
    return MR_OK;
}

/* ---- open and close */

static void init_slabs(vgpu *gpu) {
    mr_region *region = &gpu->region;
    mr_slab_init_in(&gpu->queues, region, sizeof(queue), 32);
    mr_slab_init_in(&gpu->works, region, sizeof(work), 256);
    mr_slab_init_in(&gpu->edges, region, sizeof(edge), 256);
    mr_slab_init_in(&gpu->marks, region, sizeof(mark), 256);
    mr_slab_init_in(&gpu->bodies, region, sizeof(body), 32);
    mr_slab_init_in(&gpu->chunks, region, sizeof(chunk), 64);
    mr_slab_init_in(&gpu->caches, region, sizeof(cache_bins), 32);
    mr_slab_init_in(&gpu->meet_slab, region, sizeof(meet), 16);
}

static void close_backend(mr_machine *machine) {
    vgpu *gpu = machine->backend_state;
    if (!gpu) return;
    mr_virtual_checkpoints_void(gpu);
    if (gpu->chooser) {
        mr_virtual_drop_pending(gpu);
        gpu->chooser->destroy(gpu->chooser);
    }
    for (int i = 0; i < gpu->device_count; i++) {
        vdevice *device = &gpu->devices[i];
        while (device->first) mr_virtual_queue_destroy(device->first);
        mr_pool_close(&device->pool);
        if (machine->devices) free(machine->devices[i]);
    }
    mr_undo_free(&gpu->undo);
    mr_spares_drop(&gpu->spares, SIZE_MAX);
    mr_vec_free(&gpu->let_go);
    mr_region_free(&gpu->region);
    free(gpu);
    free(machine->devices);
    machine->devices = NULL;
    machine->device_count = 0;
    machine->backend_state = NULL;
}

static mr_status open_parts(vgpu *gpu, const mr_machine_options *options) {
    mr_machine *machine = gpu->machine;
    int count;
    MR_TRY(parse_device_count(options->device, &count));
    MR_TRY(mr_device_model_load(options->model ? options->model : "h200", &gpu->model));
    MR_TRY(mr_virtual_chooser_create(gpu, options->chooser ? options->chooser : "timed",
                                     &gpu->chooser));
    machine->devices = calloc((size_t)count, sizeof *machine->devices);
    gpu->devices = mr_region_alloc(&gpu->region, (size_t)count * sizeof *gpu->devices);
    if (!machine->devices || !gpu->devices) return mr_no_memory("for %d devices", count);
    for (int i = 0; i < count; i++) {
        gpu->device_count = machine->device_count = i + 1;
        MR_TRY(open_device(gpu, i));
    }
    return MR_OK;
}

static mr_status open_backend(mr_machine *machine, const mr_machine_options *options) {
    vgpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return mr_no_memory("for a virtual GPU");
    machine->backend_state = gpu;
    gpu->machine = machine;
    gpu->next_host_address = HOST_ADDRESS;
    mr_settings_init(&gpu->set);
    mr_backing_open(&gpu->backing, options->memory_limit);
    init_slabs(gpu);
    mr_status status = open_parts(gpu, options);
    if (status) close_backend(machine);
    return status;
}

static mr_status reset(mr_machine *machine) {
    vgpu *gpu = vgpu_of(machine);
    mr_virtual_checkpoints_void(gpu);
    mr_virtual_drop_pending(gpu);
    gpu->out_of_memory = false;
    if (gpu->host_ns < gpu->device_ns) gpu->host_ns = gpu->device_ns;
    for (int i = 0; i < gpu->device_count; i++) {
        mr_pool_reset(&gpu->devices[i]);
        gpu->devices[i].peers = 0;
    }
    return MR_OK;
}

/* ---- peers: R59 */

static bool can_access_peer(mr_device *device, mr_device *peer) {
    (void)peer;
    return vgpu_of(device->machine)->model.peer_access != 0;
}

static mr_status enable_peer_access(mr_device *device, mr_device *peer) {
    vdevice *virtual = device->impl;
    uint64_t bit = (uint64_t)1 << peer->index;
    if (!can_access_peer(device, peer))
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "enable_peer_access: %s cannot reach the memory of another device: copies "
                       "between them go through the host",
                       virtual->gpu->model.name);
    if (virtual->peers & bit)
        return mr_fail(MR_CODE_PEER_ACCESS_ENABLED,
                       "enable_peer_access: device %d already has access to device %d",
                       device->index, peer->index);
    virtual->peers |= bit;
    return MR_OK;
}

static void forget_peer_access(mr_device *device, mr_device *peer) {
    vdevice *virtual = device->impl;
    virtual->peers &= ~((uint64_t)1 << peer->index);
}

const mr_backend mr_virtual_backend = {
    .name = "virtual",
    .open = open_backend,
    .close = close_backend,
    .reset = reset,
    .stream_open = mr_virtual_stream_open,
    .stream_close = mr_virtual_stream_close,
    .stream_query = mr_virtual_stream_query,
    .stream_synchronize = mr_virtual_stream_synchronize,
    .device_synchronize = mr_virtual_device_synchronize,
    .event_open = mr_virtual_event_open,
    .event_close = mr_virtual_event_close,
    .event_query = mr_virtual_event_query,
    .event_synchronize = mr_virtual_event_synchronize,
    .event_elapsed = mr_virtual_event_elapsed,
    .memory_alloc = mr_virtual_memory_alloc,
    .memory_release = mr_virtual_memory_release,
    .memory_reserved = mr_virtual_memory_reserved,
    .memory_trim = mr_virtual_memory_trim,
    .memory_free_wait = mr_virtual_memory_free_wait,
    .submit = mr_virtual_submit,
    .host_access = mr_virtual_host_access,
    .host_polls = mr_virtual_host_polls,
    .host_writes = mr_virtual_host_writes,
    .host_work = mr_virtual_host_work,
    .host_time = mr_virtual_host_time,
    .can_access_peer = can_access_peer,
    .enable_peer_access = enable_peer_access,
    .forget_peer_access = forget_peer_access,
    .simulator = &mr_virtual_simulator,
};
