/* Latches (backend.h): values in pinned memory, by the driver's stream memory operations.
 *
 * A latch is one word, 0 while it is closed. Every write is a 1, so no order of the writes closes one again.
 *
 * The driver does not know of the orders that latches make, and streams may share a hardware queue (R55). So a stream
 * may wait for work that cannot begin, and a call of ours may block in the driver behind such a stream. Hence the
 * guard: a thread which opens all latches once none has been opened for too long. It touches nothing but the words and
 * the guard's own fields, which are atomic. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/objects/objects.h"
#include "cuda/wait/wait.h"

#define GUARD_PAUSE_NS 1000000

struct cuda_latches {
    cuda_pinned_block block;
    _Atomic uint64_t *words; /* in the block */
    uint32_t count;
    uint64_t patience;
    pthread_t guard;
    _Atomic bool ended, gave_up;
};

/* ---- the guard */

static uint32_t count_open(const cuda_latches *latches) {
    uint32_t open = 0;
    for (uint32_t i = 0; i < latches->count; i++)
        open += atomic_load_explicit(&latches->words[i], memory_order_relaxed) != 0;
    return open;
}

static void open_all(cuda_latches *latches) {
    for (uint32_t i = 0; i < latches->count; i++)
        atomic_store_explicit(&latches->words[i], 1, memory_order_release);
}

static void *guard(void *context) {
    cuda_latches *latches = context;
    uint32_t open = 0;
    uint64_t since = mr_cuda_now();
    while (!latches->ended && open < latches->count) {
        nanosleep(&(struct timespec){.tv_nsec = GUARD_PAUSE_NS}, NULL);
        uint32_t now_open = count_open(latches);
        if (now_open != open) since = mr_cuda_now();
        open = now_open;
        if (mr_cuda_now() - since < latches->patience || latches->ended) continue;
        latches->gave_up = true;
        open_all(latches);
    }
    return NULL;
}

/* ---- the slots */

static mr_status check_devices(const cuda_machine *cuda) {
    for (int i = 0; i < cuda->device_count; i++)
        if (!cuda->devices[i].values)
            return mr_fail(
                MR_CODE_NOT_SUPPORTED,
                "device %d cannot wait for a value in memory (stream memory operations), so it "
                "cannot be given an order",
                cuda->devices[i].device->index);
    return MR_OK;
}

mr_status mr_cuda_latches_begin(mr_machine *machine, uint32_t count, uint64_t patience_ns) {
    cuda_machine *cuda = mr_cuda_of(machine);
    MR_TRY(mr_cuda_use(cuda->home));
    MR_TRY(check_devices(cuda));
    cuda_latches *latches = calloc(1, sizeof *latches);
    if (!latches) return mr_no_memory("for latches");
    latches->count = count;
    latches->patience = patience_ns;
    uint64_t bytes = count * sizeof *latches->words;
    mr_status status = mr_cuda_pinned_take(cuda, bytes ? bytes : 1, &latches->block);
    if (status) {
        free(latches);
        return status;
    }
    latches->words = latches->block.host;
    memset(latches->block.host, 0, bytes);
    if (pthread_create(&latches->guard, NULL, guard, latches)) {
        mr_cuda_pinned_give(cuda, latches->block.block);
        free(latches);
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "no thread for latches");
    }
    cuda->latches = latches;
    return MR_OK;
}

void mr_cuda_latches_end(mr_machine *machine, bool *out_gave_up) {
    cuda_machine *cuda = mr_cuda_of(machine);
    cuda_latches *latches = cuda->latches;
    latches->ended = true;
    pthread_join(latches->guard, NULL);
    *out_gave_up = latches->gave_up;
    mr_cuda_pinned_give(cuda, latches->block.block);
    free(latches);
    cuda->latches = NULL;
}

static mr_status enqueue(mr_stream *stream, uint32_t latch, bool waits) {
    cuda_stream *s = stream->impl;
    cuda_machine *cuda = s->device->machine;
    CUdeviceptr address = cuda->latches->block.device + (uint64_t)latch * sizeof(uint64_t);
    CUstreamBatchMemOpParams operation;
    memset(&operation, 0, sizeof operation);
    if (waits) {
        operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
        operation.waitValue.address = address;
        operation.waitValue.value64 = 1;
        operation.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    } else {
        operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
        operation.writeValue.address = address;
        operation.writeValue.value64 = 1;
        operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    }
    MR_TRY(mr_cuda_unblock(cuda));
    MR_TRY(mr_cuda_use(s->device));
    MR_CUDA_TRY(s->device, mr_cu.StreamBatchMemOp(s->handle, 1, &operation, 0), "latch in %s",
                s->text);
    return MR_OK;
}

mr_status mr_cuda_latch_wait(mr_stream *stream, uint32_t latch) {
    return enqueue(stream, latch, true);
}

mr_status mr_cuda_latch_open_behind(mr_stream *stream, uint32_t latch) {
    return enqueue(stream, latch, false);
}

void mr_cuda_latch_open(mr_machine *machine, uint32_t latch) {
    const cuda_latches *latches = mr_cuda_of(machine)->latches;
    atomic_store_explicit(&latches->words[latch], 1, memory_order_release);
}

/* The reclaim stream stands for the device: all that is asked is whether it still lives. */
mr_status mr_cuda_latch_is_open(mr_device *device, uint32_t latch, bool *out_open) {
    cuda_device *d = device->impl;
    const cuda_latches *latches = d->machine->latches;
    MR_TRY(mr_cuda_use(d));
    CUresult result = mr_cu.StreamQuery(d->reclaim);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
        return mr_cuda_fail(d, result, "latch");
    mr_cuda_host_run_ready(d->machine);
    *out_open = atomic_load_explicit(&latches->words[latch], memory_order_acquire) != 0;
    return MR_OK;
}
