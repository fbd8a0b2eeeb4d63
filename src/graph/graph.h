/* Graphs: capturing the commands of streams instead of carrying them out (R35-R41), and launching them (R42-R45).
 *
 * A capture is under way on one stream, its origin, and on those that joined it by waiting for one of its events. It
 * makes a graph: a list of nodes in the order of their capture, each with the nodes that it comes after. A graph does
 * not change. An executable launches one; two executables of one graph may run at once.
 *
 * A launch becomes commands. The nodes lose their streams and are spread over lanes, the first of which is the launch's
 * stream. Records and waits between the lanes give exactly the order of the graph's edges. So backends, the checker,
 * traces and the explorer need to know nothing of graphs.
 *
 * Errors of R35-R41 have CUDA's numbers (400, 401, 900-910) and name the line that began the capture. */
#ifndef MR_GRAPH_GRAPH_H
#define MR_GRAPH_GRAPH_H

#include "base/buffer.h"
#include "model/command.h"

typedef struct mr_graph mr_graph;           /* counted */
typedef struct mr_executable mr_executable; /* counted */

/* ---- pools */

typedef struct mr_graph_pool mr_graph_pool; /* counted */

/* For the caller's current device. Graphs that are captured with it share memory: a capture reuses memory of earlier
 * graphs of the pool that no tensor of the script refers to. */
mr_status mr_graph_pool_new(const mr_caller *caller, mr_graph_pool **out_pool);
void mr_graph_pool_release(mr_graph_pool *pool); /* accepts NULL */

typedef struct {
    uint64_t bytes; /* of the memory of its graphs */
    uint64_t saved; /* bytes that the pool saves */
    uint32_t graphs, allocations;
} mr_graph_pool_facts;
mr_graph_pool_facts mr_graph_pool_facts_of(const mr_graph_pool *pool);
mr_device *mr_graph_pool_device(const mr_graph_pool *pool);

/* ---- capture */

typedef enum { MR_CAPTURE_GLOBAL, MR_CAPTURE_THREAD, MR_CAPTURE_RELAXED } mr_capture_mode; /* R40 */

typedef struct {
    mr_capture_mode mode;
    /* the pool with which the graph shares memory (R44); borrowed; NULL: none */
    mr_graph_pool *pool;
    /* a second launch with memory that was not freed is an error, as in CUDA without
     * cudaGraphInstantiateFlagAutoFreeOnLaunch (R44) */
    bool keeps_memory;
} mr_capture_options;

/* R35. Not on the legacy stream (900), nor on a stream that captures (401). */
mr_status mr_capture_begin(const mr_caller *caller, mr_stream *stream,
                           const mr_capture_options *options);
/* Ends the capture that began on `stream`. 401: none did, and nothing happens; 908: another thread began it. After 901
 * (an illegal call in between) and 904 (a stream was not joined) there is no graph. The streams can be used as before
 * in each case. `caller->name`: the function that the script called; NULL: "finish". The caller owns one reference. */
mr_status mr_capture_finish(const mr_caller *caller, mr_stream *stream, mr_graph **out_graph);
/* Ends it, if there is one, and forgets what was captured. */
void mr_capture_abandon(mr_stream *stream);
/* Ends all captures at the end of the program. illegal-state: there were some; the text names the one that began
 * first. */
mr_status mr_capture_end_all(mr_machine *machine);

typedef struct {
    bool capturing, invalidated;
    uint64_t id; /* of the capture; counts from 1 in each machine */
    mr_capture_mode mode;
    mr_site begun;
    const mr_stream *origin;
    uint32_t nodes;     /* so far */
    const char *reason; /* invalidated: the call that did it */
    mr_site reason_where;
} mr_capture_facts;
mr_capture_facts mr_capture_facts_of(const mr_stream *stream);

/* R45: a RECORD or a WAIT on a capturing stream that each launch carries out, with the record in force then. */
mr_status mr_capture_external(const mr_caller *caller, mr_command_id kind, mr_event *event,
                              mr_stream *stream);

/* ---- graphs */

void mr_graph_retain(mr_graph *graph);
void mr_graph_release(mr_graph *graph); /* accepts NULL; safe in a finalizer */

typedef struct {
    const mr_command *command; /* as it was captured; of a kind that is submitted */
    const uint32_t *after;     /* direct predecessors, ascending */
    uint32_t after_count;
} mr_graph_node;

uint32_t mr_graph_count(const mr_graph *graph);
mr_graph_node mr_graph_node_at(const mr_graph *graph, uint32_t i);
uint32_t mr_graph_edge_count(const mr_graph *graph);
uint64_t mr_graph_number(const mr_graph *graph); /* of its capture */
mr_site mr_graph_begun(const mr_graph *graph);   /* the line that began the capture */
uint64_t mr_graph_bytes(const mr_graph *graph);  /* of memory that was allocated in the capture */
mr_device *mr_graph_device(const mr_graph *graph);

/* "kernel", "copy", "host function", "alloc", "free", "record", "wait" */
const char *mr_graph_kind_text(const mr_command *command);

/* Whether nodes and edges are alike, so that one may replace the other (R43). False: text says what differs first, with
 * both lines. */
bool mr_graph_same(const mr_graph *a, const mr_graph *b, char *text, size_t size);

/* ---- executables */

/* R42. A graph with memory of its own has one executable at a time (R44, not-supported). */
mr_status mr_graph_instantiate(const mr_caller *caller, mr_graph *graph,
                               mr_executable **out_executable);
void mr_executable_retain(mr_executable *executable);
void mr_executable_release(mr_executable *executable); /* accepts NULL; waits for nothing */
/* Whether it contains calls of collectives: then each launch may need other ranks. */
bool mr_graph_has_calls(const mr_graph *graph);
mr_graph *mr_executable_graph(const mr_executable *executable);
const bool *mr_executable_enabled(const mr_executable *executable); /* by node */
/* How often it was updated, or a node was set or switched. */
uint64_t mr_executable_changes(const mr_executable *executable);
/* Whether a launch has allocated its memory, so that the next one needs a free before it (R44). */
bool mr_executable_holds_memory(const mr_executable *executable);
/* With the parameters that later launches use. */
mr_graph_node mr_executable_node_at(const mr_executable *executable, uint32_t i);
/* number of lanes that may run at once */
uint32_t mr_executable_lanes(const mr_executable *executable);
/* On a backend with graphs of its own: why the last launch was submitted command by command; NULL: it was not. */
const char *mr_executable_expanded(const mr_executable *executable);
/* On such a backend: its reason why it could not update its graph and made a new one; NULL: it could. */
const char *mr_executable_rebuilt(const mr_executable *executable);

/* Launches it on a stream of the graph's device, after the earlier work of that stream and the earlier launches of this
 * executable (R42). On a capturing stream the graph becomes a part of what is captured. A command that an observer
 * refuses ends the launch there. */
mr_status mr_executable_launch(const mr_caller *caller, mr_executable *executable,
                               mr_stream *stream);
/* Later launches carry out `graph` instead; 910 if it is not mr_graph_same, and then nothing changes. Nodes that were
 * disabled stay so. */
mr_status mr_executable_update(const mr_caller *caller, mr_executable *executable, mr_graph *graph);
/* Whether later launches carry out node i. Its order holds either way. Not for memory (invalid-argument). */
mr_status mr_executable_enable(mr_executable *executable, uint32_t i, bool on);
/* In later launches node i (which exists) uses the operands and parameters of the only node of `from`, a graph captured
 * for this call. An update undoes this. invalid-argument, and nothing changes: `from` has another number of nodes, or
 * its node is another operation (R43). */
mr_status mr_executable_set(const mr_caller *caller, mr_executable *executable, uint32_t i,
                            const mr_graph *from);

/* As text for a terminal, and in the formats of files. */
void mr_graph_write_text(const mr_executable *executable, mr_buffer *out);
void mr_graph_write_dot(const mr_executable *executable, mr_buffer *out);
void mr_graph_write_json(const mr_executable *executable, mr_buffer *out);
void mr_graph_write_svg(const mr_executable *executable, mr_buffer *out);

#endif
