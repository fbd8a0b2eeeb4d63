/* The log: the last commands. Only the code that explains a report reads it. */
#ifndef MR_HAZARD_LOG_H
#define MR_HAZARD_LOG_H

#include "hazard/clock.h"
#include "order/order.h"

/* A stream whose work so far comes before the reuse of memory that is freed. */
typedef struct {
    uint32_t stream; /* id */
    mr_place by;     /* USERS (R33) or OWNER (R9) */
} log_guard;

/* Where a node is in a capture. */
typedef struct {
    const mr_stream *stream; /* the captured one; NULL: it is gone, or not known */
    mr_site where;
} node_place;

typedef struct {
    uint64_t seq;
    uint64_t bound; /* the record that a wait, sync or query was bound to */
    const char *op;
    mr_name *op_name, *stream_name,
        *event_name; /* a reference each, or NULL; `op` as in an entry */
    mr_site where;
    /* for a node: its place in the graph that was launched, and in the graph that this one launches in its capture */
    node_place outer, inner;
    const mr_stream *captured_on; /* likewise: the stream on which `where` captured it */
    uint8_t launch;               /* with it: MR_LAUNCH_* */
    /* for a node of a graph: where the graph was launched; otherwise no file */
    mr_site launched;
    uint32_t stream, event; /* ids; 0: the host, none */
    uint32_t bound_stream;
    mr_command_id kind;
    int device;
    mr_order_facts lane; /* of its stream; 0: none */
    bool legacy, per_thread;
    bool synchronous;         /* a copy of cudaMemcpy's kind */
    mr_order_copy_rules copy; /* likewise: what is guaranteed */
    uint64_t walls;           /* likewise: mr_order_walls */
    /* the seq of the first member of its meeting; 0: it is in none */
    uint64_t meeting;
    uint64_t sources; /* for a member: the members whose data it gets (R61) */
    uint32_t member;
    uint32_t world; /* of ranks */
    uint16_t host;  /* the host that made the call: hosts.c */
    /* an access in a host function: `seq`, its place in the order and its launch are the function's */
    bool inside;
    log_guard *guards; /* of a free; owned */
    size_t guard_count;
} log_line;

typedef struct {
    log_line *lines; /* ring, by order of arrival; kept when the checker is switched off */
    uint64_t made;   /* lines that there is memory for; more are made as they are needed */
    uint64_t count;  /* number of all lines so far */
    bool has_nodes;  /* some line is of a launched graph */
} log_part;

static inline bool mr_hazard_line_is(const log_line *line, uint32_t traits) {
    return mr_kind_is(line->kind, traits);
}
static inline mr_command_after mr_hazard_line_after(const log_line *line) {
    return mr_command_kinds[line->kind].after;
}
/* The facts of a line that the rows of order ask for. */
mr_order_facts mr_hazard_line_facts(const log_line *line);
/* Whether the host waits there for the work that an event's record captured. */
static inline bool mr_hazard_line_is_event_wait(const log_line *line) {
    return mr_hazard_line_after(line) == MR_AFTER_RECORD;
}

bool mr_hazard_log_open(checker *c); /* empty; false: out of memory */
void mr_hazard_log_command(checker *c, const mr_command *command);
void mr_hazard_log_take_back(checker *c); /* the newest: it was refused */
void mr_hazard_log_stream_gone(checker *c, const mr_stream *stream);
void mr_hazard_log_free(checker *c);
uint64_t mr_hazard_log_kept(const checker *c); /* lines */
const log_line *mr_hazard_log_back(const checker *c,
                                   /* line `back` before the newest; NULL: no more */
                                   uint64_t back);
const log_line *mr_hazard_log_find(const checker *c, uint64_t seq);
/* The rank that made the call, from 1; 0: no rank. `otherwise` is returned if the log no longer has the line. */
uint16_t mr_hazard_log_rank(const checker *c, uint64_t seq, uint16_t otherwise);
/* By the index of mr_hazard_log_back: whether CUDA orders that line before the command (why.c). The caller frees it;
 * NULL: no memory. */
bool *mr_hazard_log_before(const checker *c, uint64_t seq);

#endif
