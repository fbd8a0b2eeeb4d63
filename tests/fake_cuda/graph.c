/* The fake driver's graphs: what a capturing stream is given is kept as a list, in the order of the calls, which agrees
 * with each order that events make. A launch adds all of it to one stream. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

struct CUgraph_st {
    int device;
    task *first, **end;
};

struct CUgraphExec_st {
    int device;
    task *first;
    CUgraphExec next; /* of the device */
};

static size_t staged_bytes(const task *t) {
    if (t->kind != TASK_KERNEL) return t->bytes;
    return t->launch.function->kernel ? t->launch.function->kernel->param_bytes + (size_t)1 : 1;
}

/* All but its place in a list. */
static void copy_task(const task *from, task *to) {
    task place = *to;
    *to = *from;
    to->next = place.next;
    to->number = place.number;
    to->switches = place.switches;
    if (!from->staged) return;
    to->staged = malloc(staged_bytes(from));
    if (!to->staged) abort();
    memcpy(to->staged, from->staged, staged_bytes(from));
}

static void free_tasks(task *first) {
    for (task *t = first, *next; t; t = next) {
        next = t->next;
        free(t->staged);
        free(t);
    }
}

static task *new_task(task_kind kind) {
    task *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->kind = kind;
    return t;
}

task *fake_capture(CUgraph graph, task_kind kind) {
    task *t = new_task(kind);
    *graph->end = t;
    graph->end = &t->next;
    fake_cuda.captured++;
    return t;
}

CUresult fake_StreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
    ENTER_OR_FAIL();
    CUstream stream = fake_stream_of(handle);
    (void)mode;
    if (stream->legacy) return fake_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (stream->capture) return fake_leave(CUDA_ERROR_ILLEGAL_STATE);
    CUgraph graph = calloc(1, sizeof *graph);
    if (!graph) return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    graph->device = stream->device;
    graph->end = &graph->first;
    stream->capture = graph;
    stream->origin = true;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_StreamEndCapture(CUstream handle, CUgraph *graph) {
    ENTER();
    CUstream stream = fake_stream_of(handle);
    *graph = NULL;
    if (!stream->capture || !stream->origin) return fake_leave(CUDA_ERROR_ILLEGAL_STATE);
    *graph = stream->capture;
    for (CUstream s = fake_devices[stream->device].streams; s; s = s->next) {
        if (s->capture != *graph) continue;
        s->capture = NULL;
        s->origin = false;
    }
    if (!fake_cuda.fail_call_at || --fake_cuda.fail_call_at) return fake_leave(CUDA_SUCCESS);
    free_tasks((*graph)->first); /* the capture is over all the same */
    free(*graph);
    *graph = NULL;
    return fake_leave(fake_cuda.fail_call_with);
}

CUresult fake_GraphInstantiate(CUgraphExec *executable, CUgraph graph, unsigned long long flags) {
    ENTER_OR_FAIL();
    WAIT_AS_ALLOWED();
    (void)flags;
    if (fake_cuda.refuse_graphs) return fake_leave(CUDA_ERROR_NOT_SUPPORTED);
    CUgraphExec made = calloc(1, sizeof *made);
    if (!made) return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    task **end = &made->first;
    made->device = graph->device;
    for (const task *t = graph->first; t; t = t->next) {
        *end = new_task(t->kind);
        copy_task(t, *end);
        end = &(*end)->next;
    }
    made->next = fake_devices[made->device].executables;
    fake_devices[made->device].executables = made;
    fake_cuda.graphs++;
    *executable = made;
    return fake_leave(CUDA_SUCCESS);
}

/* Alike are graphs whose tasks are of the same kinds in the same order: where the real one compares nodes and edges. */
static bool are_alike(const task *a, const task *b) {
    for (; a && b; a = a->next, b = b->next)
        if (a->kind != b->kind) return false;
    return !a && !b;
}

CUresult fake_GraphExecUpdate(CUgraphExec executable, CUgraph graph,
                              CUgraphExecUpdateResultInfo *info) {
    ENTER_OR_FAIL();
    WAIT_AS_ALLOWED();
    *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
    if (fake_cuda.refuse_updates || !are_alike(executable->first, graph->first)) {
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        return fake_leave(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    }
    task *to = executable->first;
    for (const task *from = graph->first; from; from = from->next, to = to->next) {
        free(to->staged);
        copy_task(from, to);
    }
    fake_cuda.graph_updates++;
    return fake_leave(CUDA_SUCCESS);
}

static void free_executable(CUgraphExec executable) {
    CUgraphExec *link = &fake_devices[executable->device].executables;
    while (*link && *link != executable) link = &(*link)->next;
    if (!*link) abort(); /* it went with its context */
    *link = executable->next;
    free_tasks(executable->first);
    free(executable);
    fake_cuda.graphs--;
}

void fake_free_executables(int device) {
    while (fake_devices[device].executables) free_executable(fake_devices[device].executables);
}

CUresult fake_GraphLaunch(CUgraphExec executable, CUstream handle) {
    ENTER_OR_FAIL();
    WAIT_AS_ALLOWED();
    CUstream stream = fake_stream_of(handle);
    if (stream->device != executable->device) return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    for (const task *t = executable->first; t; t = t->next) {
        task *added = fake_add(stream, t->kind);
        copy_task(t, added);
        if (t->event) fake_bind_event(added, t->event);
    }
    fake_cuda.graph_launches++;
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_GraphExecDestroy(CUgraphExec executable) {
    pthread_mutex_lock(&fake_lock); /* also when the device is lost */
    free_executable(executable);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_GraphDestroy(CUgraph graph) {
    pthread_mutex_lock(&fake_lock);
    free_tasks(graph->first);
    free(graph);
    return fake_leave(CUDA_SUCCESS);
}
