/* Waiting: the driver's own synchronise cannot be interrupted, and it blocks the thread that must run host
 * functions. So a wait polls: without a pause at first, because most waits are short, then with pauses
 * that grow with the time already spent. A pause adds at most two per cent to the wait, and a long wait
 * uses almost no processor time.
 *
 * Easiest to break: a host function that runs during a wait may have reset or lost the machine. */
#include <time.h>

#include "cuda/wait/wait.h"

#define SPIN_NS        400000
#define PAUSE_SHARE    64 /* a pause is this part of the time spent so far, within bounds */
#define SHORT_PAUSE    20000
#define LONG_PAUSE     500000
#define POLL_QUESTIONS 32 /* while spinning, between two looks at machine->hooks.interrupted */

typedef struct {
    cuda_device *device;
    cuda_stream *stream;   /* NULL: the reclaim stream */
    CUevent event;         /* NULL: the stream is waited for */
    const cuda_call *call; /* the oldest: its stream is only asked whether the device still lives */
    uint64_t number;       /* the call's, which may be gone */
    bool yielding;         /* pauses from the start */
} goal;

static CUresult ask(const goal *g) {
    if (g->event) return mr_cu.EventQuery(g->event);
    const cuda_call *oldest = g->device->machine->calls;
    if (g->call && (oldest != g->call || mr_cuda_host_number(oldest) != g->number))
        return CUDA_SUCCESS;
    /* The stream may have been closed while we wait. The reclaim stream comes after it then. */
    bool open = g->stream && !g->stream->closed;
    CUresult result = mr_cu.StreamQuery(open ? g->stream->handle : g->device->reclaim);
    return g->call && result == CUDA_SUCCESS ? CUDA_ERROR_NOT_READY : result;
}

/* The driver writes out what kernels have printed at a synchronise, and not at a query. Nothing is waited for here, as
 * the goal has been reached. */
static mr_status write_prints(const goal *g, const char *what) {
    bool open = g->stream && !g->stream->closed;
    MR_CUDA_TRY(g->device,
                g->event ? mr_cu.EventSynchronize(g->event)
                         : mr_cu.StreamSynchronize(open ? g->stream->handle : g->device->reclaim),
                "%s", what);
    return MR_OK;
}

static void pause_for(uint64_t spent) {
    uint64_t ns = spent / PAUSE_SHARE;
    if (ns < SHORT_PAUSE) ns = SHORT_PAUSE;
    if (ns > LONG_PAUSE) ns = LONG_PAUSE;
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static mr_status wait_for(const goal *g, const char *what) {
    mr_machine *machine = g->device->machine->machine;
    uint64_t begin = 0;
    for (unsigned asked = 0;; asked++) {
        MR_TRY(mr_cuda_use(g->device)); /* again and again: a finalizer may have used another one */
        CUresult result = ask(g);
        if (result == CUDA_SUCCESS) {
            uint64_t opened = g->device->machine->opened_ns;
            if (begin) mr_machine_host_stood(machine, begin - opened, mr_cuda_now() - opened);
            return g->device->prints && !g->call ? write_prints(g, what) : MR_OK;
        }
        if (result != CUDA_ERROR_NOT_READY) return mr_cuda_fail(g->device, result, "%s", what);
        mr_cuda_host_run_ready(g->device->machine);
        if (machine->lost) return mr_machine_refuse(machine);
        uint64_t now = mr_cuda_now();
        if (!begin) begin = now;
        bool spinning = now - begin < SPIN_NS && !g->yielding;
        if ((!spinning || asked % POLL_QUESTIONS == 0) && machine->hooks.interrupted &&
            machine->hooks.interrupted(machine->hooks.context))
            return mr_fail(MR_CODE_INTERRUPTED, "interrupted while waiting for the device");
        if (spinning) continue;
        cuda_machine *cuda = g->device->machine;
        if (cuda->watch_links) MR_TRY(cuda->watch_links(cuda, now - begin));
        pause_for(now - begin);
    }
}

/* Interest in times that is over, but could not be given up yet, since that waits for the devices. */
static void settle(cuda_machine *cuda) {
    if (__builtin_expect(cuda->give_up_runs != NULL, 0)) cuda->give_up_runs(cuda);
}

mr_status mr_cuda_wait_stream(cuda_stream *stream) {
    cuda_device *device = stream->device;
    goal g = {.device = device, .stream = stream};
    stream->refs++; /* a host function may drop it, but nothing can be submitted meanwhile */
    mr_status status = wait_for(&g, "synchronize");
    if (!status) mr_cuda_stream_idle(stream);
    mr_cuda_stream_release(stream);
    MR_TRY(status);
    mr_cuda_hold_poll(device);
    settle(device->machine);
    return mr_cuda_use(device);
}

mr_status mr_cuda_wait_event(cuda_event *event, bool yielding, bool is_ours) {
    goal g = {.device = event->device, .event = event->handle, .yielding = yielding};
    MR_TRY(wait_for(&g, "synchronize"));
    if (is_ours) mr_cuda_stream_done(event->stream, event->seq);
    mr_cuda_hold_poll(event->device);
    return MR_OK;
}

/* The legacy stream stands for all blocking ones, the reclaim stream for those that were closed.
 * The driver waits last, for work that only it knows of. */
mr_status mr_cuda_wait_device(cuda_device *device) {
    if (!device->context) return MR_OK; /* nothing has ever been asked of it */
    for (cuda_stream *s = device->first; s;) {
        bool busy = s->gathers || s->last_seq > s->done_seq;
        s->refs++;
        mr_status status = busy ? mr_cuda_wait_stream(s) : MR_OK;
        bool closed = s->closed; /* by a finalizer that a host function set off */
        cuda_stream *next = closed ? device->first : s->next;
        mr_cuda_stream_release(s);
        MR_TRY(status);
        s = next;
    }
    goal g = {.device = device};
    MR_TRY(wait_for(&g, "synchronize"));
    MR_CUDA_TRY(device, mr_cu.CtxSynchronize(), "synchronize of device %d", device->device->index);
    device->prints = false;
    settle(device->machine);
    return MR_OK;
}

mr_status mr_cuda_wait_devices(cuda_machine *cuda) {
    for (int i = 0; i < cuda->device_count; i++) MR_TRY(mr_cuda_wait_device(&cuda->devices[i]));
    return MR_OK;
}

mr_status mr_cuda_wait_call(cuda_machine *cuda) {
    cuda_stream *stream = mr_cuda_host_stream(cuda->calls);
    goal g = {.device = stream->device,
              .stream = stream,
              .call = cuda->calls,
              .number = mr_cuda_host_number(cuda->calls)};
    return wait_for(&g, "host_func");
}

mr_status mr_cuda_device_synchronize(mr_device *device) {
    return mr_cuda_wait_device(device->impl);
}

/* ---- before the driver waits */

/* Inside a host function the host cannot wait, because the function's own stream is stopped until it
 * returns. */
mr_status mr_cuda_may_wait(cuda_device *device, const char *what) {
    cuda_machine *cuda = device->machine;
    if (cuda->machine->host_function.running)
        return mr_fail(MR_CODE_NOT_PERMITTED,
                       "not permitted inside a host function: %s may wait for the device, which "
                       "waits for this function; do it before",
                       what);
    while (cuda->calls) MR_TRY(mr_cuda_wait_call(cuda));
    return device->context ? mr_cuda_use(device) : MR_OK;
}

mr_status mr_cuda_waits(cuda_device *device, const char *what) {
    MR_TRY(mr_cuda_may_wait(device, what));
    MR_TRY(mr_cuda_wait_device(device));
    return device->context ? mr_cuda_use(device) : MR_OK;
}

mr_status mr_cuda_waits_for_all(cuda_machine *cuda, const char *what) {
    MR_TRY(mr_cuda_may_wait(cuda->home, what));
    MR_TRY(mr_cuda_wait_devices(cuda));
    return mr_cuda_use(cuda->home);
}

static bool is_done(CUstream stream) {
    return mr_cu.StreamQuery(stream) == CUDA_SUCCESS;
}

static bool device_is_idle(cuda_device *device) {
    mr_status status = mr_cuda_use(device);
    bool idle = !status && is_done(device->reclaim);
    mr_error_destroy(status);
    for (const cuda_stream *s = device->first; s && idle; s = s->next)
        idle = (!s->gathers && s->last_seq <= s->done_seq) || is_done(s->handle);
    return idle;
}

bool mr_cuda_is_idle(cuda_machine *cuda) {
    if (cuda->calls || cuda->machine->host_function.running) return false;
    for (int i = 0; i < cuda->device_count; i++)
        if (cuda->devices[i].context && !device_is_idle(&cuda->devices[i])) return false;
    return true;
}
