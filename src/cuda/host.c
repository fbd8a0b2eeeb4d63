/* Host functions (R46): Lua may be entered by its own thread only, so the driver's callback, which comes
 * on a thread of the driver, only says that the turn has come, and holds its stream up until the Lua
 * thread, at the next point where it waits or asks, has run the function.
 *
 * What is shared with those threads is a call's three flags, under one lock for the process. A call is
 * freed when its callback has returned and its function has been run or abandoned. The driver may leave
 * the callbacks of a broken context out or make them late: their calls stay in `finished` for them. */
#include <pthread.h>
#include <stdlib.h>

#include "cuda/state.h"

/* Launches behind a pending host function; the launch queue holds some 1,000 (P6 of semantics.md). */
#define MOST_BEHIND 256

struct cuda_call {
    cuda_call *next; /* in cuda->calls, later in finished */
    cuda_machine *cuda;
    mr_action *action;   /* NULL once it is finished */
    cuda_stream *stream; /* one reference owned until it is finished */
    uint64_t mark;       /* cuda->submissions at its own */
    bool posted;         /* its turn has come */
    bool released;       /* its stream may go on; `cuda` may be gone */
    bool returned;       /* the driver will not touch it again */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static cuda_call *finished;

/* On a thread of the driver. */
static void CUDA_CB turn_has_come(void *context) {
    cuda_call *call = context;
    pthread_mutex_lock(&lock);
    if (!call->released) {
        call->posted = true;
        atomic_fetch_add_explicit(&call->cuda->posted, 1, memory_order_relaxed);
    }
    while (!call->released) pthread_cond_wait(&released, &lock);
    call->returned = true;
    pthread_mutex_unlock(&lock);
}

/* Frees what nobody needs any more. */
static void sweep(void) {
    pthread_mutex_lock(&lock);
    for (cuda_call **link = &finished; *link;) {
        cuda_call *call = *link;
        if (!call->returned) {
            link = &call->next;
            continue;
        }
        *link = call->next;
        free(call);
    }
    pthread_mutex_unlock(&lock);
}

static void unlink_call(cuda_machine *cuda, cuda_call **link) {
    cuda_call *call = *link;
    *link = call->next;
    if (!call->next) cuda->calls_end = link;
}

/* Takes it out of the machine and lets its stream go on. The action is the caller's. */
static void finish(cuda_machine *cuda, cuda_call *call) {
    pthread_mutex_lock(&lock);
    if (call->posted) atomic_fetch_sub_explicit(&cuda->posted, 1, memory_order_relaxed);
    call->released = true;
    call->action = NULL;
    call->next = finished;
    finished = call;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

mr_status mr_cuda_host_submit(mr_action *action) {
    cuda_stream *stream = action->stream->impl;
    cuda_machine *cuda = stream->device->machine;
    sweep();
    cuda_call *call = calloc(1, sizeof *call);
    if (!call) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a host function");
    *call =
        (cuda_call){.cuda = cuda, .action = action, .stream = stream, .mark = cuda->submissions};
    CUresult result = mr_cu.LaunchHostFunc(stream->handle, turn_has_come, call);
    if (result != CUDA_SUCCESS) {
        free(call);
        return mr_cuda_fail(stream->device, result, "host_func in %s", stream->text);
    }
    stream->refs++;
    *cuda->calls_end = call;
    cuda->calls_end = &call->next;
    return MR_OK;
}

static cuda_call **first_posted(cuda_machine *cuda) {
    cuda_call **link = &cuda->calls;
    pthread_mutex_lock(&lock);
    while (*link && !(*link)->posted) link = &(*link)->next;
    pthread_mutex_unlock(&lock);
    return link;
}

void mr_cuda_host_run(cuda_machine *cuda) {
    mr_machine *machine = cuda->machine;
    if (machine->in_host_function) return;
    for (cuda_call **link; *(link = first_posted(cuda));) {
        cuda_call *call = *link;
        mr_action *action = call->action;
        cuda_stream *stream = call->stream;
        unlink_call(cuda, link);
        mr_machine_run_host_function(machine, action);
        finish(cuda, call);
        mr_action_destroy(action);
        mr_cuda_stream_release(stream);
    }
}

/* One at a time from the front: destroying an action may close its stream, and come back here. */
void mr_cuda_host_abandon(cuda_machine *cuda) {
    while (cuda->calls) {
        cuda_call *call = cuda->calls;
        mr_action *action = call->action;
        cuda_stream *stream = call->stream;
        unlink_call(cuda, &cuda->calls);
        finish(cuda, call);
        mr_action_destroy(action);
        mr_cuda_stream_release(stream);
    }
    sweep();
}

bool mr_cuda_host_done(const cuda_call *call) {
    return !call->action;
}

cuda_stream *mr_cuda_host_stream(const cuda_call *call) {
    return call->stream;
}

mr_status mr_cuda_host_limit(cuda_machine *cuda) {
    cuda->submissions++;
    while (cuda->calls && cuda->submissions - cuda->calls->mark > MOST_BEHIND)
        MR_TRY(mr_cuda_wait_call(cuda->calls));
    return MR_OK;
}

mr_status mr_cuda_host_settle(cuda_machine *cuda) {
    while (cuda->calls) MR_TRY(mr_cuda_wait_call(cuda->calls));
    return MR_OK;
}
