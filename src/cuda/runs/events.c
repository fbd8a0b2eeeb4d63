/* The times of commands by events: a timed event in front of each command and one after it. It needs nothing but the
 * driver, and says less than CUPTI. The first event is done when the stream gets there, so `begin` is up to a few
 * microseconds early. Each event is work of its own for the host and the stream.
 *
 * The driver tells only differences between events. So each device has a base, an event whose time on the host's clock
 * is known. A difference is a float of milliseconds, which is exact to a microsecond up to some seconds; so the base
 * moves along with the reported runs. */
#include <stdlib.h>

#include "cuda/runs/source.h"

#define FAR_NS     1000000000u /* from the base: time for a new one */
#define ATTEMPTS   5           /* at finding the base's time; the shortest counts */
#define LONGEST_NS 1000000u    /* of one attempt */
#define PAUSE_NS   20000000u   /* after attempts that failed; commands in between are not told of */

static mr_status start(cuda_runs *runs) {
    runs->bases = calloc((size_t)runs->cuda->device_count, sizeof *runs->bases);
    return runs->bases ? MR_OK : mr_no_memory("for the times of commands");
}

static void set_base(cuda_base *base, CUevent event, uint64_t time) {
    if (base->event) mr_cu.EventDestroy(base->event);
    *base = (cuda_base){.event = event, .time = time};
}

static void forget(cuda_runs *runs) {
    for (int i = 0; i < runs->cuda->device_count; i++)
        if (runs->cuda->devices[i].context) set_base(&runs->bases[i], NULL, 0);
}

static void stop(cuda_runs *runs) {
    forget(runs);
    free(runs->bases);
}

/* ---- the base */

/* An event that was recorded between two looks at the host's clock; NULL: none, or not soon. */
static CUevent timed_event(CUstream stream, uint64_t *out_began, uint64_t *out_took) {
    CUevent event;
    if (mr_cu.EventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return NULL;
    *out_began = mr_cuda_now();
    CUresult result = mr_cu.EventRecord(event, stream);
    do {
        if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
            result = mr_cu.EventQuery(event);
        *out_took = mr_cuda_now() - *out_began;
    } while (result == CUDA_ERROR_NOT_READY && *out_took < LONGEST_NS);
    if (result == CUDA_SUCCESS) return event;
    mr_cu.EventDestroy(event);
    return NULL;
}

/* On a stream of its own, which has nothing to wait for, but may share a hardware queue with a busy one (R55). */
static void find_base(cuda_base *base) {
    CUstream stream;
    uint64_t began, took, least = UINT64_MAX;
    base->tried = mr_cuda_now();
    if (mr_cu.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS) return;
    for (int i = 0; i < ATTEMPTS; i++) {
        CUevent event = timed_event(stream, &began, &took);
        if (!event) break;
        if (took < least) {
            least = took;
            set_base(base, event, began + took / 2);
        } else {
            mr_cu.EventDestroy(event);
        }
    }
    mr_cu.StreamDestroy(stream);
}

/* A new stream may wait for others inside the driver (stream.c). */
static bool has_base(const cuda_runs *runs, cuda_base *base) {
    if (!base->event && !runs->cuda->calls && mr_cuda_now() - base->tried > PAUSE_NS)
        find_base(base);
    return base->event != NULL;
}

/* ---- around a command */

static CUevent record(cuda_stream *stream) {
    CUevent event;
    if (mr_cu.EventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return NULL;
    if (mr_cu.EventRecord(event, stream->handle) == CUDA_SUCCESS) return event;
    mr_cu.EventDestroy(event);
    return NULL;
}

static void enter(cuda_runs *runs, cuda_run *run, cuda_stream *stream) {
    cuda_base *base = &runs->bases[run->device->device->index];
    if (has_base(runs, base)) run->before = record(stream);
}

static void leave(cuda_runs *runs, cuda_run *run, cuda_stream *stream) {
    (void)runs;
    if (!run->before) return;
    run->after = record(stream);
    run->calls = run->after != NULL;
}

/* ---- afterwards */

static bool time_of(const cuda_base *base, CUevent event, uint64_t *out_time) {
    float milliseconds;
    if (mr_cu.EventElapsedTime(&milliseconds, base->event, event) != CUDA_SUCCESS) return false;
    *out_time = base->time + (uint64_t)(int64_t)((double)milliseconds * 1e6);
    return true;
}

static void look(cuda_runs *runs, cuda_run *run) {
    cuda_base *base = &runs->bases[run->device->device->index];
    if (mr_cu.EventQuery(run->after) != CUDA_SUCCESS) return;
    if (!time_of(base, run->before, &run->begin) || !time_of(base, run->after, &run->end)) return;
    run->seen = run->calls;
    if (run->end < base->time + FAR_NS) return;
    set_base(base, run->after, run->end);
    run->after = NULL;
}

static void collect(cuda_runs *runs, bool flush) {
    (void)flush;
    for (size_t i = 0; i < runs->list.count; i++) {
        cuda_run *run = &runs->list.items[i];
        if (run->told || !run->after) continue;
        mr_status status = mr_cuda_use(run->device);
        if (!status) look(runs, run);
        mr_error_destroy(status);
    }
}

static void drop(cuda_runs *runs, cuda_run *run) {
    (void)runs;
    if (run->before) mr_cu.EventDestroy(run->before);
    if (run->after) mr_cu.EventDestroy(run->after);
    run->before = run->after = NULL;
}

const cuda_run_source mr_cuda_runs_by_events = {
    .how = "by events around each operation, whose own time is in it",
    .start = start,
    .stop = stop,
    .enter = enter,
    .leave = leave,
    .collect = collect,
    .drop = drop,
    .forget = forget,
};
