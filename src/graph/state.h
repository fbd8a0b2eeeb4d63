/* The inside of captures, graphs and executables, private to this folder. Files from below: node.c (graphs), rules.c
 * (what may not be captured), capture_*.c, capture.c, lower.c (lanes), parameters.c (of single nodes), native.c,
 * launch.c; text.c and save_*.c only look at graphs.
 *
 * Capture is part of the model, not of the backend. A capturing stream gives its commands to the capture
 * (`model/capture.h`) before any observer or backend sees them. So the rules and errors are the same on every backend,
 * and a script can capture anything that can be submitted. A node is the command itself. Before the first capture, a
 * call costs one comparison more.
 *
 * A launch is commands. `lower.c` spreads the nodes over lanes, and finds the records and waits between them. A node
 * goes to a lane only after a node that it comes after anyway, so the lanes have exactly the order of the edges. The
 * first lane is the launch's stream, the others are hidden streams. So the checker, traces, stepping and the explorer
 * know nothing of graphs and see each node. Such a command has the captured line as its line, and the launch's line in
 * addition. Only the first one takes time on the host's virtual clock.
 *
 * On a GPU a launch is one graph of the driver, where that is possible (`cuda/graph`). The same steps are given to
 * streams that the driver captures, so all parts of an operation become nodes. Observers are told of the same commands.
 * Where it is not possible, or the driver refuses, the steps are submitted. Operations borrow memory outside of graphs
 * (parts of reductions, keys of sorts, cuBLAS's workspace). In a graph this memory belongs to the graph
 * (`cuda/graph/memory.c`). It is allocated during the capture, and freed after the last launch. The commands of one
 * lane share it, because they run one after the other.
 *
 * Functions that become graphs by themselves (`graph/auto.h`) use the same place. While a call of such a function is
 * *held*, its streams have other rules (`auto_hold.c`). These keep each submission and compare it with that of the call
 * before (`sequence.c`). If all are the same, the executable is launched. At the first difference, or where the host
 * needs the device, everything held is submitted in its order and an observer notes the rest (`auto_record.c`). So a
 * script cannot tell a held call from an ordinary one. The checker judges what the script wrote. If a launch replaces a
 * call, an observer with `as_written` is told of the held commands, records and waits, not of the launch
 * (`auto_tell.c`).
 *
 * Memory is there from the capture on. Storage that is allocated in a capture is ordinary memory, allocated on a
 * hidden stream of the graph and kept until the graph and all tensors are gone. So addresses are fixed (R44), and the
 * launch of an allocation is not a command. The graph holds a handle on each storage that its nodes use: the collector
 * cannot free it.
 *
 * Random numbers. An operation that draws is captured with its number in the graph. A launch adds what the machine
 * has drawn so far. So a captured program draws what the same program draws without a graph. In a graph of the driver
 * the kernels read the seed and that number from memory, which each launch writes. */
#ifndef MR_GRAPH_STATE_H
#define MR_GRAPH_STATE_H

#include <pthread.h>

#include "base/vec.h"
#include "graph/graph.h"
#include "model/capture.h"
#include "ops/op.h"

typedef MR_VEC(uint32_t) index_list;

/* ---- node.c */

typedef struct {
    mr_command *command;   /* one reference; each operand's storage has a handle more */
    uint32_t first, count; /* of its edges: the nodes that it comes after */
    bool off;              /* it was disabled in the graph from which it comes */
} graph_node;

typedef struct {
    mr_storage *storage; /* one reference and one handle */
    bool freed;          /* by a node of the graph */
} graph_memory;

struct mr_graph {
    uint32_t refs;
    mr_graph_pool *pool;   /* one reference; NULL: its memory is its own */
    uint64_t shared_bytes; /* bytes of its memory that an earlier graph of the pool had allocated */
    uint32_t epoch;
    uint64_t id;
    mr_machine *machine;
    mr_device *device; /* of the origin */
    mr_site begun;
    bool keeps_memory;
    uint32_t draws;
    bool has_calls;       /* of collectives */
    uint32_t executables; /* that exist */
    uint64_t memory_bytes;
    MR_VEC(graph_node) nodes;
    index_list edges;
    MR_VEC(graph_memory) memory;
    /* the stream in whose order its memory is allocated and freed; NULL: it has none */
    mr_stream *memory_stream;
    mr_event *memory_ready; /* recorded there after all allocations */
    MR_VEC(mr_stream *)
    used_by; /* streams of the last launches of destroyed executables; references */
};

mr_status mr_graph_new(const mr_caller *caller, mr_device *device, mr_graph **out_graph);
/* Takes over the reference, also on failure. `after` is copied. */
mr_status mr_graph_append(mr_graph *graph, mr_command *command, const index_list *after);
/* The node's place is at this line, on this captured stream. */
void mr_node_put(mr_command *node, mr_stream *stream, mr_site where);
/* Notes the last stream of an executable that is destroyed. */
void mr_graph_note_use(mr_graph *graph, mr_stream *stream);
graph_memory *mr_graph_find_memory(const mr_graph *graph, const mr_storage *storage);

/* Finds a node that uses the storage and is not ordered before any of `after`; NULL: there is none. */
mr_status mr_graph_find_unordered(const mr_graph *graph, const index_list *after,
                                  const mr_storage *storage, const mr_command **out_command);
bool mr_index_add(index_list *list, uint32_t i); /* keeps it ascending and without repeats */

/* ---- pool.c: these do nothing if `graph` has no pool */

/* Before the first effect of a capture: of the right device, not captured with already. */
mr_status mr_graph_pool_check(const mr_capture_options *options, const mr_stream *stream);
mr_status mr_graph_pool_begin(mr_graph_pool *pool, mr_graph *graph);
void mr_graph_pool_end(mr_graph *graph); /* of the capture */
/* Memory of an earlier graph that no tensor of the script uses; NULL: there is none. It is borrowed. */
mr_storage *mr_graph_pool_find(const mr_graph *graph, uint64_t bytes);
/* The graph captures with `storage`, which is new or was found. Reserves first, so that it cannot fail afterwards. */
mr_status mr_graph_pool_reserve(mr_graph *graph);
void mr_graph_pool_add(mr_graph *graph, mr_storage *storage);
/* The graph has a handle more, or drops one. */
void mr_graph_pool_hold(const mr_graph *graph, mr_storage *storage);
void mr_graph_pool_unhold(const mr_graph *graph, mr_storage *storage);
mr_status mr_graph_pool_check_launch(const mr_graph *graph);
/* NULL, or why the node's operand does not have the values that it was captured for. */
mr_status mr_graph_pool_check_operand(const mr_graph *graph, const mr_command *node,
                                      const mr_tensor *operand);
void mr_graph_pool_launched(const mr_graph *graph, mr_storage *storage);
bool mr_graph_pool_is_own(const mr_graph *graph, const mr_tensor *operand);
/* For a graph's end: takes it from the list of graphs, then from each piece of memory. False: other graphs still use
 * that memory. */
void mr_graph_pool_forget(mr_graph *graph);
bool mr_graph_pool_leave(mr_graph *graph, mr_storage *storage);

/* ---- captures */

typedef struct mr_capture mr_capture;

/* A stream that captures: stream->capture. */
typedef struct {
    mr_capture *capture;
    mr_stream *stream;   /* one reference */
    index_list frontier; /* the nodes that its next node comes after */
} captured_stream;

struct mr_capture {
    mr_capture *next;
    mr_graph *graph; /* so far */
    mr_capture_mode mode;
    pthread_t thread;
    MR_VEC(captured_stream *) streams; /* the first is the origin */
    bool invalidated;
    char reason[64]; /* the call that invalidated it */
    mr_site reason_where;
};

/* event->captured: the nodes that its record comes after. */
typedef struct {
    uint64_t capture; /* the capture's id; it may have ended */
    index_list nodes; /* held back: the one entry of the sequence */
} captured_record;

typedef struct {
    mr_captures base;     /* first */
    mr_capture *first;    /* the running captures */
    mr_site ended;        /* the line of the last finish */
    uint32_t ended_on;    /* id of the stream that it ended */
    struct mr_auto *call; /* of a function of auto.h, the outermost one; NULL: none is under way */
    /* Set while submissions of the call are held back. Call this before anything that would let the script see it. */
    mr_status (*stop_holding)(struct mr_auto *call, const mr_caller *caller, const char *name);
} captures;

static inline captures *captures_of(const mr_machine *machine) {
    return (captures *)machine->captures.all;
}
static inline mr_capture *capture_of(const mr_stream *stream) {
    return ((captured_stream *)stream->capture)->capture;
}
static inline bool is_holding(const mr_machine *machine) {
    return machine->captures.all && captures_of(machine)->stop_holding;
}
static inline mr_status stop_holding(const mr_caller *caller, const char *name) {
    if (!is_holding(caller->machine)) return MR_OK;
    captures *all = captures_of(caller->machine);
    return all->stop_holding(all->call, caller, name);
}
/* NULL: it is over. */
static inline mr_capture *capture_by_id(const mr_machine *machine, uint64_t id) {
    mr_capture *c = captures_of(machine)->first;
    while (c && c->graph->id != id) c = c->next;
    return c;
}

/* ---- rules.c: each invalidates the capture, if it is still running, and returns an error */

/* Makes the error: `name` is the call, `what` the problem, `cure` the advice. */
mr_status mr_capture_refuse(mr_capture *capture, const mr_caller *caller, mr_code code,
                            const char *name, const char *what, const char *cure);
/* The same without invalidating. `begun`: the line that began the capture, if there is one. */
mr_status mr_capture_error(mr_code code, const char *name, const char *what, mr_site begun,
                           const char *cure);
mr_status mr_capture_usable(const mr_capture *capture, const char *name); /* 901 */
mr_status mr_capture_check_host(const mr_caller *caller, mr_capture_ask ask, const char *name,
                                mr_stream *stream, mr_event *event, mr_device *device);
/* A submission to a stream that does not capture, while others do. */
mr_status mr_capture_check_live(const mr_command *command);

/* ---- capture_stream.c */

mr_status mr_capture_no_memory(const char *what);
/* The stream captures from now on, after these nodes. */
mr_status mr_capture_join(mr_capture *capture, mr_stream *stream, const index_list *frontier);
/* Takes over the reference, also on failure. */
mr_status mr_capture_add_node(captured_stream *s, mr_command *command);
/* Takes it out of the list; all its streams can be used as before. */
void mr_capture_end(mr_capture *capture);

/* ---- capture_event.c: rules of model/capture.h */

mr_status mr_capture_record(const mr_caller *caller, mr_event *event, mr_stream *stream);
mr_status mr_capture_wait(const mr_caller *caller, mr_stream *stream, mr_event *event,
                          bool *out_taken);
void mr_capture_forget_event(mr_event *event);

/* ---- capture_memory.c: rules of model/capture.h */

mr_status mr_capture_reuse(const mr_caller *caller, uint64_t bytes, mr_stream *stream,
                           mr_storage **out_storage);
mr_status mr_capture_alloc_stream(const mr_caller *caller, mr_stream *stream,
                                  mr_stream **out_stream);
/* Makes the memory, new or reused, the graph's. */
mr_status mr_capture_adopt(const mr_caller *caller, mr_stream *stream, mr_storage *storage);
mr_status mr_capture_free(const mr_caller *caller, mr_storage *storage, mr_stream *stream,
                          bool at_once, bool *out_taken);

/* ---- capture_child.c */

/* Adds the nodes of its graph behind what the stream has captured: a graph launched in a capture. */
mr_status mr_capture_child(const mr_caller *caller, mr_stream *stream, const mr_executable *x);

/* ---- capture.c */

const mr_capture_rules *mr_capture_rules_usual(void); /* those of this file */
mr_status mr_captures_prepare(mr_machine *machine); /* machine->captures.all is there afterwards */
/* Like mr_capture_begin, but also on the legacy stream, which may be the origin of held commands. */
mr_status mr_capture_begin_held(const mr_caller *caller, mr_stream *stream);

/* ---- node.c */

/* A call of a collective; NULL: it is something else. */
static inline const mr_captured_call *captured_call_of(const mr_command *node) {
    return node->meeting ? node->meeting->captured : NULL;
}

/* ---- lower.c: the commands of a launch */

typedef enum { STEP_NODE, STEP_RECORD, STEP_WAIT } step_kind;

typedef struct {
    step_kind kind;
    uint32_t lane; /* 0: the stream of the launch */
    uint32_t at;   /* of the node, or of the event */
} step;

typedef struct {
    MR_VEC(step) steps;
    MR_VEC(mr_device *) lanes; /* on which device each is */
    uint32_t events;
} lowered;

mr_status mr_graph_lower(const mr_graph *graph, lowered *out);
void mr_lowered_free(lowered *l);

/* ---- launch.c */

struct mr_executable {
    uint32_t refs;
    uint64_t launches;
    uint64_t changes;      /* updates, and nodes that were set or switched */
    mr_graph *graph;       /* one reference */
    mr_command **commands; /* by node: the graph's, or what was set since */
    bool *enabled;         /* by node */
    bool has_events;       /* of outside (R45) */
    lowered lowered;
    mr_stream **lanes; /* from 1 on; NULL: not made yet */
    mr_event **events;
    mr_event *done;         /* recorded after each launch */
    mr_stream *launched_on; /* by the last launch; one reference; NULL: none */
    bool memory_in_use;     /* launched, and not freed since */
    void *built;            /* the backend's graph; NULL: there is none */
    bool stale;             /* it is from before an update */
    bool unbuilt;           /* the backend could not build it */
    char rebuilt[160];      /* why the last update made a new graph of the backend; else "" */
    char expanded[240];     /* why the last launch was submitted command by command; else "" */
};

/* The backend's graph is out of date: the next launch updates it. */
static inline void executable_changed(mr_executable *x) {
    x->changes++;
    x->stale = x->built != NULL;
    x->unbuilt = false;
}

/* ---- native.c */

/* Whether the launch that is about to be made is one call of the backend; builds its graph if need be. */
bool mr_executable_is_native(mr_executable *x, mr_stream *stream);
void mr_executable_drop_built(mr_executable *x);
/* False for memory nodes, since the memory always exists. */
bool mr_executable_carries_out(const mr_executable *x, uint32_t i);

/* ---- parameters.c: executable->commands */

mr_status mr_executable_fill_commands(mr_executable *x);
void mr_executable_free_commands(mr_executable *x); /* also where there are none */

#endif
