/* The times of commands by CUPTI's activity records, which the device writes itself.
 *
 * Each call of the driver has a number. CUPTI tells it as the call begins (a callback, on the thread that calls), and
 * writes it into the record of the device's work for the call. So a record finds its command. That costs a launch less
 * than CUPTI's own external ids, which need a record of each call as well.
 *
 * CUPTI is one for the process, and takes one subscriber: of several machines, one uses it at a
 * time. Records may arrive on a thread of CUPTI's. A lock guards the data that both threads use;
 * commands and observers are only touched by the thread of the machine. */
#include "cuda/runs/source.h"
#include "cuda/wait/wait.h"

#if MR_CUDA_HAS_CUPTI

#include <pthread.h>
#include <stdlib.h>

/* A record, as far as we need it. */
typedef struct {
    uint32_t correlation;
    uint64_t begin, end;
} activity;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    cuda_runs *owner; /* NULL: CUPTI is not in use */
    bool rests;       /* arriving records are dropped */
    CUpti_SubscriberHandle subscriber;
    MR_VEC(activity) arrived;
} shared;

/* The purpose of this thread's calls; NULL: nothing of ours. */
static _Thread_local cuda_runs *calling;

/* ---- records */

#define BUFFER_BYTES ((size_t)1 << 20)

static void CUPTIAPI give_buffer(uint8_t **out_buffer, size_t *out_size, size_t *out_most) {
    *out_buffer = aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, BUFFER_BYTES);
    *out_size = *out_buffer ? BUFFER_BYTES : 0;
    *out_most = 0; /* as many as it takes */
}

/* The records of later versions begin in the same way. */
static bool read_record(const CUpti_Activity *record, activity *out) {
#define READ(type)                                                                                 \
    do {                                                                                           \
        const type *r = (const type *)record;                                                      \
        *out = (activity){r->correlationId, r->start, r->end};                                     \
    } while (0)
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: READ(CUpti_ActivityKernel9); return true;
    case CUPTI_ACTIVITY_KIND_MEMCPY: READ(CUpti_ActivityMemcpy5); return true;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: READ(CUpti_ActivityMemcpyPtoP4); return true;
    case CUPTI_ACTIVITY_KIND_MEMSET: READ(CUpti_ActivityMemset4); return true;
    default: return false;
    }
#undef READ
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid) {
    CUpti_Activity *record = NULL;
    activity a;
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    while (mr_cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        /* A time of 0 means that CUPTI could not find it. */
        if (shared.owner && !shared.rests && read_record(record, &a) && a.begin && a.end &&
            !mr_vec_push(&shared.arrived, a))
            break;
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static uint64_t CUPTIAPI timestamp(void) {
    return mr_cuda_now();
}

/* ---- calls of the driver */

static void CUPTIAPI call_begins(void *context, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *data) {
    const CUpti_CallbackData *call = data;
    cuda_runs *runs = calling;
    (void)context, (void)domain, (void)id;
    if (!runs || call->callbackSite != CUPTI_API_ENTER) return;
    cuda_run_call added = {call->correlationId, runs->first + runs->list.count - 1};
    /* cuBLAS calls the runtime, which calls the driver, perhaps with the same number. */
    if (runs->calls.count &&
        runs->calls.items[runs->calls.count - 1].correlation == added.correlation)
        return;
    if (mr_vec_push(&runs->calls, added)) runs->list.items[runs->list.count - 1].calls++;
}

#define DRIVER(name)                                                                               \
    { CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##name }
#define RUNTIME(name)                                                                              \
    { CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_##name }
static const struct {
    CUpti_CallbackDomain domain;
    CUpti_CallbackId id;
} traced_calls[] = {
    DRIVER(cuLaunchKernel),
    DRIVER(cuLaunchKernel_ptsz),
    DRIVER(cuLaunchKernelEx),
    DRIVER(cuLaunchKernelEx_ptsz),
    DRIVER(cuMemcpyHtoD_v2),
    DRIVER(cuMemcpyHtoDAsync_v2),
    DRIVER(cuMemcpyDtoHAsync_v2),
    DRIVER(cuMemcpyDtoDAsync_v2),
    DRIVER(cuMemcpyPeerAsync),
    DRIVER(cuMemsetD8Async),
    RUNTIME(cudaLaunchKernel_v7000),
    RUNTIME(cudaLaunchKernel_ptsz_v7000),
    RUNTIME(cudaLaunchKernelExC_v11060),
    RUNTIME(cudaLaunchKernelExC_ptsz_v11060),
    RUNTIME(cudaMemsetAsync_v3020),
    RUNTIME(cudaMemcpyAsync_v3020),
};

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                           CUPTI_ACTIVITY_KIND_MEMSET};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- starting and stopping */

static CUptiResult enable_all(void) {
    CUptiResult result = mr_cupti.ActivityRegisterTimestampCallback(timestamp);
    if (!result) result = mr_cupti.ActivityRegisterCallbacks(give_buffer, take_buffer);
    for (size_t i = 0; i < COUNT(traced_calls) && !result; i++)
        result = mr_cupti.EnableCallback(1, shared.subscriber, traced_calls[i].domain,
                                         traced_calls[i].id);
    for (size_t i = 0; i < COUNT(kinds) && !result; i++) result = mr_cupti.ActivityEnable(kinds[i]);
    return result;
}

/* Without the last call each launch stays slower by a tenth (seen with CUDA 13.0). It is safe, as no other thread of
 * ours is in CUPTI, and a tool that has brought CUPTI along would have refused our subscription. */
static void leave_cupti(void) {
    for (size_t i = 0; i < COUNT(kinds); i++) mr_cupti.ActivityDisable(kinds[i]);
    mr_cupti.Unsubscribe(shared.subscriber);
    mr_cupti.Finalize();
}

static bool claim(cuda_runs *runs) {
    pthread_mutex_lock(&lock);
    bool is_free = !shared.owner;
    if (is_free) shared.owner = runs;
    pthread_mutex_unlock(&lock);
    return is_free;
}

static void unclaim(void) {
    pthread_mutex_lock(&lock);
    shared.owner = NULL;
    shared.rests = false;
    mr_vec_free(&shared.arrived);
    pthread_mutex_unlock(&lock);
}

static mr_status start(cuda_runs *runs) {
    MR_TRY(mr_cuda_library_open(MR_CUDA_LIBRARY_CUPTI));
    MR_TRY(mr_cuda_waits_for_all(runs->cuda, "the start of a trace"));
    if (!claim(runs))
        return mr_fail(MR_CODE_NOT_SUPPORTED, "another machine of this process uses CUPTI");
    CUptiResult result = mr_cupti.Subscribe(&shared.subscriber, call_begins, NULL);
    if (!result) {
        result = enable_all();
        if (result) leave_cupti();
    }
    if (!result) return MR_OK;
    unclaim();
    return mr_fail(MR_CODE_NOT_SUPPORTED, "CUPTI refuses (CUptiResult %d)", (int)result);
}

static void stop(cuda_runs *runs) {
    (void)runs;
    calling = NULL;
    leave_cupti();
    unclaim();
}

static void rest(cuda_runs *runs, bool rests) {
    (void)runs;
    calling = NULL; /* a host function may end it within a call */
    pthread_mutex_lock(&lock);
    shared.rests = rests;
    shared.arrived.count = 0;
    pthread_mutex_unlock(&lock);
}

static void enter(cuda_runs *runs, cuda_run *run, cuda_stream *stream) {
    (void)run, (void)stream;
    calling = runs;
}

static void leave(cuda_runs *runs, cuda_run *run, cuda_stream *stream) {
    (void)runs, (void)run, (void)stream;
    calling = NULL;
}

/* ---- collecting */

/* The numbers wrap around: they are compared by their distance. */
static cuda_run_call *find_call(cuda_runs *runs, uint32_t correlation) {
    size_t low = 0, high = runs->calls.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((int32_t)(runs->calls.items[middle].correlation - correlation) < 0) low = middle + 1;
        else high = middle;
    }
    bool found = low < runs->calls.count && runs->calls.items[low].correlation == correlation;
    return found ? &runs->calls.items[low] : NULL;
}

static void note(cuda_runs *runs, const activity *a) {
    const cuda_run_call *call = find_call(runs, a->correlation);
    cuda_run *run = call ? mr_cuda_run_at(runs, call->run) : NULL;
    if (!run || run->told) return;
    if (!run->seen || a->begin < run->begin) run->begin = a->begin;
    if (!run->seen || a->end > run->end) run->end = a->end;
    run->seen++;
}

/* Calls of commands that are no longer in the list. */
static void drop_calls(cuda_runs *runs) {
    size_t kept = 0;
    for (size_t i = 0; i < runs->calls.count; i++) {
        const cuda_run *run = mr_cuda_run_at(runs, runs->calls.items[i].run);
        if (run && !run->told) runs->calls.items[kept++] = runs->calls.items[i];
    }
    runs->calls.count = kept;
}

static void collect(cuda_runs *runs, bool flush) {
    if (flush) mr_cupti.ActivityFlushAll(0);
    pthread_mutex_lock(&lock);
    MR_VEC(activity)
    arrived = {shared.arrived.items, shared.arrived.count, shared.arrived.capacity};
    shared.arrived.items = NULL;
    shared.arrived.count = shared.arrived.capacity = 0;
    pthread_mutex_unlock(&lock);
    drop_calls(runs);
    for (size_t i = 0; i < arrived.count; i++) note(runs, &arrived.items[i]);
    mr_vec_free(&arrived);
}

static void drop(cuda_runs *runs, cuda_run *run) {
    (void)runs, (void)run;
}

const cuda_run_source mr_cuda_runs_by_cupti = {
    .how = "by CUPTI's records of what the device did",
    .start = start,
    .stop = stop,
    .rest = rest,
    .enter = enter,
    .leave = leave,
    .collect = collect,
    .drop = drop,
};

#endif
