/* The fake driver's CUPTI: the functions of the list in cuda/driver.h, in the same library (MILLRACE_LIBCUPTI names it,
 * too). The subscriber is told, with a number, of calls that give the device work. Work carried out for them becomes a
 * record with that number, which waits for a flush. Buffers come back on a thread of their own, as CUPTI's may. */
#include "fake.h"

#if MR_CUDA_HAS_CUPTI

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define X(name, symbol, parameters)                                                                \
    CUptiResult CUPTIAPI fake_cupti_##name parameters __asm__(symbol);
MR_CUDA_CUPTI_LIST(X)
#undef X

#define X(name, symbol, parameters) (void *)fake_cupti_##name,
__attribute__((used)) static void *const all_are_there[] = {MR_CUDA_CUPTI_LIST(X)};
#undef X

static struct {
    CUpti_CallbackFunc callback;
    void *context;
    bool subscribed;
    bool wanted[CUPTI_DRIVER_TRACE_CBID_SIZE]; /* calls of the driver */
    bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
    CUpti_TimestampCallbackFunc timestamp;
    CUpti_BuffersCallbackRequestFunc give;
    CUpti_BuffersCallbackCompleteFunc take;
    uint32_t calls;
} cupti;

/* ---- what the driver tells, under its lock */

typedef struct {
    CUpti_ActivityKind kind;
    uint32_t correlation;
    uint64_t begin, end;
} finished;

static finished *done;
static size_t done_count, done_capacity;

static void tell(uint32_t id, uint32_t correlation) {
    uint64_t data = 0;
    CUpti_CallbackData call = {.callbackSite = CUPTI_API_ENTER,
                               .functionName = "",
                               .correlationId = correlation,
                               .correlationData = &data};
    cupti.callback(cupti.context, CUPTI_CB_DOMAIN_DRIVER_API, id, &call);
    call.callbackSite = CUPTI_API_EXIT;
    cupti.callback(cupti.context, CUPTI_CB_DOMAIN_DRIVER_API, id, &call);
}

uint32_t fake_call(uint32_t id) {
    cupti.calls += 1 + (uint32_t)fake_cuda.cupti_skips;
    if (cupti.subscribed && cupti.wanted[id]) {
        tell(id, cupti.calls);
        if (fake_cuda.cupti_idle_calls) tell(id, ++cupti.calls);
    }
    return cupti.calls - (fake_cuda.cupti_idle_calls && cupti.subscribed && cupti.wanted[id]);
}

uint64_t fake_now(void) {
    struct timespec now;
    if (cupti.timestamp) return cupti.timestamp();
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fake_finished(const task *t, uint64_t begin) {
    CUpti_ActivityKind kind = t->kind == TASK_KERNEL ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                              : t->kind == TASK_COPY ? CUPTI_ACTIVITY_KIND_MEMCPY
                                                     : CUPTI_ACTIVITY_KIND_MEMSET;
    if (!cupti.enabled[kind] || (fake_cuda.cupti_lose_at && --fake_cuda.cupti_lose_at == 0)) return;
    if (done_count == done_capacity) {
        done_capacity = 2 * done_capacity + 16;
        done = realloc(done, done_capacity * sizeof *done);
        if (!done) abort();
    }
    done[done_count++] = (finished){kind, t->correlation, begin, fake_now()};
}

/* ---- subscribing: like the real one, starting and ending waits for the devices */

static void wait_for_devices(void) {
    pthread_mutex_lock(&fake_lock);
    fake_wait_as_allowed();
    pthread_mutex_unlock(&fake_lock);
}

CUptiResult fake_cupti_GetVersion(uint32_t *version) {
    *version = (uint32_t)fake_number_of("FAKE_CUPTI_VERSION", CUPTI_API_VERSION);
    return CUPTI_SUCCESS;
}

CUptiResult fake_cupti_Subscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                                 void *context) {
    if (cupti.subscribed || fake_cuda.cupti_refuses || getenv("FAKE_CUPTI_REFUSES"))
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    wait_for_devices();
    cupti.subscribed = true;
    fake_cuda.subscribers++;
    cupti.callback = callback;
    cupti.context = context;
    *subscriber = (CUpti_SubscriberHandle)&cupti;
    return CUPTI_SUCCESS;
}

CUptiResult fake_cupti_Unsubscribe(CUpti_SubscriberHandle subscriber) {
    (void)subscriber;
    if (!cupti.subscribed) return CUPTI_ERROR_INVALID_PARAMETER;
    wait_for_devices();
    cupti.subscribed = false;
    fake_cuda.subscribers--;
    memset(cupti.wanted, 0, sizeof cupti.wanted);
    return CUPTI_SUCCESS;
}

CUptiResult fake_cupti_EnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                      CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    if (!subscriber || !cupti.subscribed) return CUPTI_ERROR_INVALID_PARAMETER;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return CUPTI_SUCCESS;
    if (id >= CUPTI_DRIVER_TRACE_CBID_SIZE) return CUPTI_ERROR_INVALID_PARAMETER;
    cupti.wanted[id] = enable;
    return CUPTI_SUCCESS;
}

CUptiResult fake_cupti_Finalize(void) {
    wait_for_devices();
    memset(cupti.enabled, 0, sizeof cupti.enabled);
    cupti.timestamp = NULL;
    cupti.give = NULL;
    cupti.take = NULL;
    free(done);
    done = NULL;
    done_count = done_capacity = 0;
    return CUPTI_SUCCESS;
}

/* ---- activities */

CUptiResult fake_cupti_ActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc timestamp) {
    cupti.timestamp = timestamp;
    return CUPTI_SUCCESS;
}

CUptiResult fake_cupti_ActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc give,
                                                 CUpti_BuffersCallbackCompleteFunc take) {
    cupti.give = give;
    cupti.take = take;
    return CUPTI_SUCCESS;
}

CUptiResult fake_cupti_ActivityEnable(CUpti_ActivityKind kind) {
    wait_for_devices();
    cupti.enabled[kind] = true;
    return cupti.give ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_INITIALIZED;
}

CUptiResult fake_cupti_ActivityDisable(CUpti_ActivityKind kind) {
    wait_for_devices();
    cupti.enabled[kind] = false;
    return CUPTI_SUCCESS;
}

/* Records of all kinds have the same size here; each is at the place that its type says. */
typedef union {
    CUpti_Activity any;
    CUpti_ActivityKernel9 kernel;
    CUpti_ActivityMemcpy5 copy;
    CUpti_ActivityMemset4 set;
} record;

CUptiResult fake_cupti_ActivityGetNextRecord(uint8_t *buffer, size_t valid,
                                             CUpti_Activity **io_record) {
    uint8_t *next = *io_record ? (uint8_t *)*io_record + sizeof(record) : buffer;
    if (next + sizeof(record) > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *io_record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}

static record record_of(const finished *f) {
    record r;
    memset(&r, 0, sizeof r);
    r.any.kind = f->kind;
#define FILL(member)                                                                               \
    do {                                                                                           \
        r.member.correlationId = f->correlation;                                                   \
        r.member.start = f->begin;                                                                 \
        r.member.end = f->end;                                                                     \
    } while (0)
    switch (f->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: FILL(kernel); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: FILL(copy); break;
    default: FILL(set);
    }
#undef FILL
    return r;
}

/* The driver's lock is not held while the program has a buffer. */
static void *deliver(void *context) {
    (void)context;
    for (;;) {
        uint8_t *buffer = NULL;
        size_t size = 0, most = 0, valid = 0;
        cupti.give(&buffer, &size, &most);
        pthread_mutex_lock(&fake_lock);
        size_t count = 0;
        for (; buffer && count < done_count && valid + sizeof(record) <= size; count++) {
            record r = record_of(&done[count]);
            memcpy(buffer + valid, &r, sizeof r);
            valid += sizeof r;
        }
        done_count -= count;
        if (done_count) memmove(done, done + count, done_count * sizeof *done);
        bool is_last = !done_count || !buffer;
        pthread_mutex_unlock(&fake_lock);
        if (buffer) cupti.take(NULL, 0, buffer, size, valid);
        if (is_last) return NULL;
    }
}

CUptiResult fake_cupti_ActivityFlushAll(uint32_t flag) {
    pthread_t thread;
    (void)flag;
    pthread_mutex_lock(&fake_lock);
    fake_move();
    pthread_mutex_unlock(&fake_lock);
    if (!cupti.give) return CUPTI_ERROR_NOT_INITIALIZED;
    if (pthread_create(&thread, NULL, deliver, NULL) != 0) abort();
    pthread_join(thread, NULL);
    return CUPTI_SUCCESS;
}

#else

uint32_t fake_call(uint32_t id) {
    (void)id;
    return 0;
}
uint64_t fake_now(void) {
    return 0;
}
void fake_finished(const task *t, uint64_t begin) {
    (void)t, (void)begin;
}

#endif
