/* The CUDA backend: opening, closing, resetting, and the table of its slots. The functions are in
 * the other rooms of cuda; state.h says how they fit together. */
#include "cuda/cuda.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/backend/parts.h"
#include "cuda/family/family.h"
#include "cuda/graph/graph.h"
#include "cuda/objects/objects.h"
#include "cuda/runs/nvtx.h"
#include "cuda/runs/runs.h"
#include "cuda/wait/wait.h"

#define MOST_DEVICES 64 /* peers are bits of one word */

/* ---- open and close */

/* "cuda", "cuda:1"; -1: none is named */
static mr_status parse_ordinal(const char *text, int *out_ordinal) {
    static const char prefix[] = "cuda";
    *out_ordinal = -1;
    if (!text || strcmp(text, prefix) == 0) return MR_OK;
    char *end = NULL;
    long ordinal = -1;
    if (strncmp(text, "cuda:", sizeof prefix) == 0 && text[sizeof prefix])
        ordinal = strtol(text + sizeof prefix, &end, 10);
    if (!end || *end || ordinal < 0 || ordinal > INT_MAX)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "device `%s`: expected cuda, or cuda:I for the GPU of ordinal I", text);
    *out_ordinal = (int)ordinal;
    return MR_OK;
}

/* The values of turns have the size that copies take, so that these have memory while host functions are pending.
 * Without pinned memory there are callbacks only. */
static mr_status open_turns(cuda_machine *cuda) {
    cuda_pinned_block block;
    mr_status status = mr_cuda_pinned_take(cuda, BOUNCED_BYTES, &block);
    if (status) {
        mr_error_destroy(status);
        return MR_OK;
    }
    status = mr_cuda_turns_open(cuda, &block);
    if (status) mr_cuda_pinned_give(cuda, block.block);
    return status;
}

static void close_turns(cuda_machine *cuda) {
    void *block = mr_cuda_turns_close(cuda);
    if (block) mr_cuda_pinned_give(cuda, block);
}

/* Nothing of ours is in any context afterwards; host memory has its values still. */
static void leave_contexts(cuda_machine *cuda) {
    mr_cuda_host_abandon(cuda);
    /* Streams of all devices look at the values of turns, which lie in memory that goes. */
    for (int i = 0; i < cuda->device_count; i++) mr_cuda_device_finish(&cuda->devices[i]);
    mr_cuda_links_leave(cuda);
    mr_cuda_outside_leave(cuda);
    mr_cuda_runs_forget(cuda);
    close_turns(cuda);
    if (cuda->home && cuda->home->context) mr_error_destroy(mr_cuda_use(cuda->home));
    if (cuda->pinned) mr_cuda_pinned_suspend(cuda);
    for (int i = 0; i < cuda->device_count; i++) mr_cuda_device_close(&cuda->devices[i]);
}

static void close_backend(mr_machine *machine) {
    cuda_machine *cuda = mr_cuda_of(machine);
    if (!cuda) return;
    leave_contexts(cuda);
    mr_cuda_runs_close(cuda);
    mr_cuda_nvtx_close(cuda->ranges);
    mr_cuda_pinned_close(cuda);
    for (int i = 0; i < cuda->device_count; i++) free(machine->devices[i]);
    mr_slab_destroy(&cuda->streams);
    mr_slab_destroy(&cuda->events);
    mr_slab_destroy(&cuda->blocks);
    mr_slab_destroy(&cuda->holds);
    free(cuda->devices);
    free(cuda);
    free(machine->devices);
    machine->devices = NULL;
    machine->device_count = 0;
    machine->backend_state = NULL;
}

static mr_status open_device(cuda_machine *cuda, int index) {
    mr_device *device = calloc(1, sizeof *device);
    if (!device) return mr_no_memory("for device %d", index);
    cuda_device *d = &cuda->devices[index];
    cuda->machine->devices[index] = device;
    cuda->device_count = cuda->machine->device_count = index + 1;
    *device = (mr_device){.machine = cuda->machine, .index = index, .impl = d};
    d->machine = cuda;
    d->device = device;
    return mr_cuda_device_open(d);
}

/* Garbage may take a small part of the smallest device. A training step makes some hundred megabytes of it, so without
 * this the collector would run several times in each, which takes a tenth of the host's time. */
static void let_garbage_grow(mr_machine *machine) {
    enum { PART_OF_MEMORY = 32 };
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < machine->device_count; i++) {
        uint64_t total = machine->devices[i]->properties.total_memory;
        if (total < least) least = total;
    }
    if (machine->memory.collect_after < least / PART_OF_MEMORY)
        machine->memory.collect_after = least / PART_OF_MEMORY;
}

static mr_status open_devices(cuda_machine *cuda, int home) {
    mr_machine *machine = cuda->machine;
    int count = 0;
    CUresult result = mr_cu.DeviceGetCount(&count);
    if (result != CUDA_SUCCESS) return mr_cuda_complain(result, "the devices");
    if (count > MOST_DEVICES) count = MOST_DEVICES;
    machine->devices = calloc((size_t)count, sizeof *machine->devices);
    cuda->devices = calloc((size_t)count, sizeof *cuda->devices);
    if (!machine->devices || !cuda->devices) return mr_no_memory("for %d devices", count);
    for (int i = 0; i < count; i++) MR_TRY(open_device(cuda, i));
    let_garbage_grow(machine);
    cuda->home = &cuda->devices[home];
    machine->first_device = machine->devices[home];
    MR_TRY(mr_cuda_use(cuda->home));
    /* The others' range is read with their contexts; until then it is taken to be the same. */
    const mr_device_properties *known = &machine->first_device->properties;
    for (int i = 0; i < count; i++) {
        machine->devices[i]->properties.priority_least = known->priority_least;
        machine->devices[i]->properties.priority_greatest = known->priority_greatest;
    }
    return MR_OK;
}

static mr_status open_backend(mr_machine *machine, const mr_machine_options *options) {
    int ordinal, home = 0;
    MR_TRY(parse_ordinal(options->device, &ordinal));
    MR_TRY(mr_cuda_device_find(ordinal, &home));
    cuda_machine *cuda = calloc(1, sizeof *cuda);
    mr_status status = MR_OK;
    if (cuda) {
        machine->backend_state = cuda;
        cuda->machine = machine;
        cuda->calls_end = &cuda->calls;
        cuda->make_context = mr_cuda_device_make_context;
        cuda->abandon_calls = mr_cuda_host_abandon;
        cuda->opened_ns = mr_cuda_now();
        cuda->ranges = mr_cuda_nvtx_open();
        mr_slab_init(&cuda->streams, sizeof(cuda_stream), 32);
        mr_slab_init(&cuda->events, sizeof(cuda_event), 256);
        mr_slab_init(&cuda->blocks, sizeof(cuda_block), 256);
        mr_slab_init(&cuda->holds, sizeof(cuda_hold), 16);
        status = mr_cuda_pinned_open(cuda);
        if (!status) status = open_devices(cuda, home);
        if (!status) status = open_turns(cuda);
        if (status) close_backend(machine);
    } else {
        status = mr_no_memory("for the CUDA backend");
    }
    mr_cuda_device_found();
    return status;
}

mr_status mr_cuda_probe(void) {
    int ordinal;
    return mr_cuda_device_find(-1, &ordinal);
}

/* ---- reset: R50 */

/* The recovery from R50, if there is one. Present drivers give no new context to a process in which a kernel has failed
 * (seen: 700 and 719, whatever was destroyed or reset before). Then the machine stays lost, and host memory stays
 * usable. */
static mr_status stay_lost(mr_machine *machine, mr_status status) {
    mr_status error = mr_fail(status->code,
                              "reset: the driver gives this process no fresh context (%s); host "
                              "tensors still have their values: save what you need, and start the "
                              "process anew",
                              status->message);
    mr_error_destroy(status);
    if (!machine->lost) mr_error_destroy(mr_machine_lose(machine, mr_error_copy(error)));
    return error;
}

/* The driver would wait, too, and without an end at Ctrl-C. Host functions are dropped first, as they must not run any
 * more, and streams wait for them. A failure of the device is ignored: the reset clears it. */
static mr_status wait_for_the_rest(cuda_machine *cuda) {
    bool had_functions = cuda->calls != NULL;
    mr_cuda_host_abandon(cuda);
    if (cuda->machine->lost) return MR_OK;
    mr_status status = mr_cuda_wait_devices(cuda);
    bool interrupted = status && status->code == MR_CODE_INTERRUPTED;
    mr_error_destroy(status);
    if (!interrupted) return MR_OK;
    return mr_fail(MR_CODE_INTERRUPTED,
                   "reset: interrupted while waiting for the device: nothing was reset%s",
                   had_functions ? ", but the pending host functions were dropped" : "");
}

/* The contexts go, and with them memory, streams and whatever was under way. One that others in this
 * process hold as well only dies by the driver's own reset. */
static mr_status reset(mr_machine *machine) {
    cuda_machine *cuda = mr_cuda_of(machine);
    uint64_t had_context = 0;
    MR_TRY(wait_for_the_rest(cuda));
    for (int i = 0; i < cuda->device_count; i++)
        if (cuda->devices[i].context) had_context |= (uint64_t)1 << i;
    leave_contexts(cuda);
    for (int i = 0; i < cuda->device_count; i++)
        if (had_context >> i & 1) mr_cu.DevicePrimaryCtxReset(cuda->devices[i].handle);
    mr_status status = mr_cuda_use(cuda->home);
    if (!status) status = mr_cuda_pinned_resume(cuda);
    if (!status) status = open_turns(cuda);
    return status ? stay_lost(machine, status) : MR_OK;
}

/* ---- the smaller slots */

/* The device moves by itself; and a host function waits for a call that waits or asks (R46). */
static mr_status host_access(mr_machine *machine) {
    (void)machine;
    return MR_OK;
}

static uint64_t host_time(mr_machine *machine) {
    return mr_cuda_now() - mr_cuda_of(machine)->opened_ns;
}

/* ---- doctor */

static void describe_driver(void (*say)(const char *what, const char *text)) {
    char text[1024];
    mr_status status = mr_cuda_library_open(MR_CUDA_LIBRARY_DRIVER);
    if (!status)
        snprintf(text, sizeof text, "%s, for CUDA %d.%d",
                 mr_cuda_library_path(MR_CUDA_LIBRARY_DRIVER), mr_cuda_driver_version() / 1000,
                 mr_cuda_driver_version() % 1000 / 10);
    say("gpu driver", status ? status->message : text);
    if (!status) {
        int ordinal;
        status = mr_cuda_device_find(-1, &ordinal);
        if (status) {
            say("gpu", status->message);
        } else {
            say("host functions", mr_cuda_turns_by_values(ordinal)
                                      ? "hold their stream by a value in memory"
                                      : "hold their stream by a callback of the driver");
            mr_cuda_device_found();
        }
    }
    mr_error_destroy(status);
}

static void describe_blas(void (*say)(const char *what, const char *text)) {
    char text[1024];
    int major = 0, minor = 0, patch = 0;
    mr_status status = mr_cuda_library_open(MR_CUDA_LIBRARY_BLAS);
    if (!status) {
        mr_cublas.GetProperty(MAJOR_VERSION, &major);
        mr_cublas.GetProperty(MINOR_VERSION, &minor);
        mr_cublas.GetProperty(PATCH_LEVEL, &patch);
        snprintf(text, sizeof text, "%s, version %d.%d.%d",
                 mr_cuda_library_path(MR_CUDA_LIBRARY_BLAS), major, minor, patch);
    }
    say("cublas", status ? status->message : text);
    mr_error_destroy(status);
}

static void describe_nccl(void (*say)(const char *what, const char *text)) {
    char text[1024];
    int version = 0;
    mr_status status = mr_cuda_library_open(MR_CUDA_LIBRARY_NCCL);
    if (!status) {
        mr_nccl.GetVersion(&version);
        snprintf(text, sizeof text, "%s, version %d.%d.%d",
                 mr_cuda_library_path(MR_CUDA_LIBRARY_NCCL), version / 10000, version / 100 % 100,
                 version % 100);
    }
    say("nccl", status ? status->message : text);
    mr_error_destroy(status);
}

static void describe_cupti(void (*say)(const char *what, const char *text)) {
#if MR_CUDA_HAS_CUPTI
    char text[1024];
    uint32_t version = 0;
    mr_status status = mr_cuda_library_open(MR_CUDA_LIBRARY_CUPTI);
    if (!status) {
        mr_cupti.GetVersion(&version);
        snprintf(text, sizeof text, "by CUPTI (%s, version %" PRIu32 ")",
                 mr_cuda_library_path(MR_CUDA_LIBRARY_CUPTI), version);
    } else {
        snprintf(text, sizeof text, "by events, as %s", status->message);
    }
    say("device times", text);
    mr_error_destroy(status);
#else
    say("device times", "by events, as this build was made without CUPTI's headers");
#endif
}

void mr_cuda_describe(void (*say)(const char *what, const char *text)) {
    describe_driver(say);
    describe_blas(say);
    describe_nccl(say);
    describe_cupti(say);
}

const mr_backend mr_cuda_backend = {
    .name = "cuda",
    .open = open_backend,
    .close = close_backend,
    .reset = reset,
    .stream_open = mr_cuda_stream_open,
    .stream_close = mr_cuda_stream_close,
    .stream_query = mr_cuda_stream_query,
    .stream_synchronize = mr_cuda_stream_synchronize,
    .device_synchronize = mr_cuda_device_synchronize,
    .event_open = mr_cuda_event_open,
    .event_close = mr_cuda_event_close,
    .event_query = mr_cuda_event_query,
    .event_synchronize = mr_cuda_event_synchronize,
    .event_elapsed = mr_cuda_event_elapsed,
    .memory_alloc = mr_cuda_memory_alloc,
    .memory_release = mr_cuda_memory_release,
    .memory_reserved = mr_cuda_memory_reserved,
    .memory_trim = mr_cuda_memory_trim,
    .memory_free_wait = mr_cuda_memory_free_wait,
    .submit = mr_cuda_submit,
    .host_access = host_access,
    .host_work = NULL,
    .host_time = host_time,
    .kernels_load = mr_cuda_kernels_load,
    .kernels_variable = mr_cuda_kernels_variable,
    .kernels_registers = mr_cuda_kernels_registers,
    .graph_build = mr_cuda_graph_build,
    .graph_launch = mr_cuda_graph_launch,
    .graph_drop = mr_cuda_graph_drop,
    .runs_start = mr_cuda_runs_start,
    .runs_flush = mr_cuda_runs_flush,
    .runs_stop = mr_cuda_runs_stop,
    .latches_begin = mr_cuda_latches_begin,
    .latches_end = mr_cuda_latches_end,
    .latch_wait = mr_cuda_latch_wait,
    .latch_open_behind = mr_cuda_latch_open_behind,
    .latch_open = mr_cuda_latch_open,
    .latch_is_open = mr_cuda_latch_is_open,
    .communicator_open = mr_cuda_communicator_open,
    .communicator_close = mr_cuda_communicator_close,
    .communicator_id = mr_cuda_communicator_id,
    .communicator_join = mr_cuda_communicator_join,
    .communicator_abort = mr_cuda_communicator_abort,
    .can_access_peer = mr_cuda_can_access_peer,
    .enable_peer_access = mr_cuda_enable_peer_access,
    .forget_peer_access = mr_cuda_forget_peer_access,
    .kernel_may_fail = mr_cuda_kernel_may_fail,
    .outside = &mr_cuda_outside,
    .simulator = NULL,
};
