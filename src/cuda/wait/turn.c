/* The place of a host function in its stream, in one of two forms.
 *
 * By values: the stream writes a number to pinned memory when it gets there, after a fence. It then waits for another
 * value there, which we write when the function has run (the driver's stream memory operations). No thread waits. Each
 * stream with turns pending has a slot. Its numbers only ever grow, so a wait that was let through stays let through,
 * and a slot can go to another stream at once. The documents warn of an order that the driver does not know of. It does
 * harm only if a host function waits for work that comes after its stream's wait. That cannot happen: a host function
 * may not use the device, and we wait for nothing in front of its run.
 *
 * By a callback, on a device without these operations: it comes on a thread of the driver, says
 * so, and returns once the function has run. One lock of the process guards the data that those
 * threads share. A callback's struct is freed when it has returned and its turn has ended. The
 * driver may leave the callbacks of a broken context out or make them late: theirs stay in
 * `ended` for them. */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/wait/wait.h"

/* Never too few: each pending host function is a submission, too. */
enum { SLOTS = 2 * MOST_BEHIND };

/* In pinned memory. */
typedef struct {
    _Atomic uint64_t reached; /* the stream's */
    _Atomic uint64_t passed;  /* ours */
} values;
_Static_assert(SLOTS * sizeof(values) <= BOUNCED_BYTES, "one block holds all");

struct cuda_slot {
    cuda_slot *next; /* free ones */
    values *host;
    CUdeviceptr device;
    uint64_t number; /* of the last turn */
};

struct cuda_slots {
    cuda_pinned_block block;
    cuda_slot *free;
    cuda_slot slots[SLOTS];
};

struct cuda_callback {
    cuda_callback *next; /* in `ended` */
    bool come, passed, returned;
};

/* ---- by values */

bool mr_cuda_turns_by_values(CUdevice device) {
    const char *wanted = getenv("MILLRACE_HOST_FUNCTIONS");
    int can = 0;
    if (wanted && strcmp(wanted, "callback") == 0) return false;
    return mr_cu.DeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
                                    device) == CUDA_SUCCESS &&
           can;
}

mr_status mr_cuda_turns_open(cuda_machine *cuda, const cuda_pinned_block *block) {
    cuda_slots *slots = calloc(1, sizeof *slots);
    if (!slots) return mr_no_memory("for host functions");
    slots->block = *block;
    memset(slots->block.host, 0, SLOTS * sizeof(values));
    for (int i = SLOTS; i-- > 0;) {
        slots->slots[i] = (cuda_slot){.next = slots->free,
                                      .host = (values *)slots->block.host + i,
                                      .device = slots->block.device + (size_t)i * sizeof(values)};
        slots->free = &slots->slots[i];
    }
    cuda->slots = slots;
    return MR_OK;
}

void *mr_cuda_turns_close(cuda_machine *cuda) {
    if (!cuda->slots) return NULL;
    void *block = cuda->slots->block.block;
    free(cuda->slots);
    cuda->slots = NULL;
    return block;
}

static CUresult enqueue_values(cuda_stream *stream, cuda_turn *turn) {
    cuda_slots *slots = stream->device->machine->slots;
    cuda_slot *slot = stream->slot ? stream->slot : slots->free;
    uint64_t number = slot->number + 1;
    /* In one call: both are enqueued or neither is. */
    CUstreamBatchMemOpParams operations[] = {
        {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64,
                        .address = slot->device + offsetof(values, reached),
                        .value64 = number,
                        .flags = CU_STREAM_WRITE_VALUE_DEFAULT}},
        {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64,
                       .address = slot->device + offsetof(values, passed),
                       .value64 = number,
                       .flags = CU_STREAM_WAIT_VALUE_GEQ}},
    };
    CUresult result = mr_cu.StreamBatchMemOp(stream->handle, 2, operations, 0);
    if (result != CUDA_SUCCESS) return result;
    if (!stream->slot) {
        slots->free = slot->next;
        stream->slot = slot;
    }
    stream->turns++;
    slot->number = number;
    *turn = (cuda_turn){.slot = slot, .number = number};
    return CUDA_SUCCESS;
}

/* The last one of a stream may end first, when a function loses the machine. */
static void end_values(cuda_stream *stream, const cuda_turn *turn) {
    cuda_slots *slots = stream->device->machine->slots;
    values *host = turn->slot->host;
    if (atomic_load_explicit(&host->passed, memory_order_relaxed) < turn->number)
        atomic_store_explicit(&host->passed, turn->number, memory_order_release);
    if (--stream->turns) return;
    stream->slot->next = slots->free;
    slots->free = stream->slot;
    stream->slot = NULL;
}

/* ---- by a callback */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static cuda_callback *ended;

/* On a thread of the driver. */
static void CUDA_CB turn_has_come(void *context) {
    cuda_callback *callback = context;
    pthread_mutex_lock(&lock);
    callback->come = true;
    while (!callback->passed) pthread_cond_wait(&passed, &lock);
    callback->returned = true;
    pthread_mutex_unlock(&lock);
}

/* In the child of a fork: no thread of the driver is there, and one of the parent's may have held the lock. */
static void renew_lock(void) {
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&passed, NULL);
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, renew_lock);
}

/* Frees unused callbacks. */
static void sweep(void) {
    pthread_mutex_lock(&lock);
    for (cuda_callback **link = &ended; *link;) {
        cuda_callback *callback = *link;
        if (!callback->returned) {
            link = &callback->next;
            continue;
        }
        *link = callback->next;
        free(callback);
    }
    pthread_mutex_unlock(&lock);
}

static mr_status enqueue_callback(cuda_stream *stream, cuda_turn *turn) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    sweep();
    cuda_callback *callback = calloc(1, sizeof *callback);
    if (!callback) return mr_no_memory("for a host function");
    CUresult result = mr_cu.LaunchHostFunc(stream->handle, turn_has_come, callback);
    if (result != CUDA_SUCCESS) {
        free(callback);
        return mr_cuda_fail(stream->device, result, "host_func in %s", stream->text);
    }
    stream->device->machine->callbacks++;
    *turn = (cuda_turn){.callback = callback};
    return MR_OK;
}

static void end_callback(cuda_stream *stream, cuda_callback *callback) {
    stream->device->machine->callbacks--;
    pthread_mutex_lock(&lock);
    callback->passed = true;
    callback->next = ended;
    ended = callback;
    pthread_cond_broadcast(&passed);
    pthread_mutex_unlock(&lock);
    sweep();
}

/* ---- either */

static bool by_values(const cuda_stream *stream) {
    const cuda_slots *slots = stream->device->machine->slots;
    return stream->device->values && slots && (stream->slot || slots->free);
}

bool mr_cuda_turn_is_free(const cuda_stream *stream) {
    return by_values(stream) || stream->device->machine->callbacks < MOST_CALLBACKS;
}

mr_status mr_cuda_turn_enqueue(cuda_stream *stream, cuda_turn *out_turn) {
    if (by_values(stream)) {
        CUresult result = enqueue_values(stream, out_turn);
        if (result == CUDA_SUCCESS) return MR_OK;
        if (result != CUDA_ERROR_NOT_SUPPORTED)
            return mr_cuda_fail(stream->device, result, "host_func in %s", stream->text);
        stream->device->values = false; /* whatever it said */
    }
    return enqueue_callback(stream, out_turn);
}

bool mr_cuda_turn_has_come(const cuda_turn *turn) {
    if (turn->slot)
        return atomic_load_explicit(&turn->slot->host->reached, memory_order_acquire) >=
               turn->number;
    pthread_mutex_lock(&lock);
    bool come = turn->callback->come;
    pthread_mutex_unlock(&lock);
    return come;
}

void mr_cuda_turn_end(cuda_stream *stream, const cuda_turn *turn) {
    if (turn->slot) end_values(stream, turn);
    else end_callback(stream, turn->callback);
}
