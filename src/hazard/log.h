/* The log: the last commands. Only the code that explains a report reads it. */
#ifndef MR_HAZARD_LOG_H
#define MR_HAZARD_LOG_H

#include "hazard/clock.h"
#include "order/order.h"

typedef struct {
    uint64_t seq;
    uint64_t bound; /* the record that a wait, sync or query was bound to */
    const char *op;
    mr_name *op_name, *stream_name,
        *event_name; /* a reference each, or NULL; `op` as in an entry */
    mr_site where;
    /* with it, while that launch submits: of the node; NULL: not known */
    const mr_stream *captured_on;
    uint8_t launch;         /* with it: MR_LAUNCH_* */
    mr_site launched;       /* of a node of a graph: where that was launched; else no file */
    uint32_t stream, event; /* ids; 0: the host, none */
    uint32_t bound_stream;
    mr_command_id kind;
    int device;
    mr_order_facts lane; /* of its stream; 0: none */
    bool legacy, per_thread;
    bool synchronous;         /* a copy of cudaMemcpy's kind */
    mr_order_copy_rules copy; /* likewise: what is guaranteed */
    uint64_t walls;           /* likewise: mr_order_walls */
    /* the seq of the first member of the meeting that it takes part in; 0: none */
    uint64_t meeting;
    uint64_t sources; /* with it: the members whose data it gets (R61) */
    uint32_t member;
    uint32_t world; /* of ranks */
    uint16_t host;  /* whose call it is: hosts.c */
    bool inside;    /* an access in a host function: `seq` and place in the order are that one's */
} log_line;

typedef struct {
    log_line *lines; /* ring, by order of arrival; kept when the checker is switched off */
    uint64_t count;  /* of all that have arrived */
} log_part;

static inline bool mr_hazard_line_is(const log_line *line, uint32_t traits) {
    return mr_kind_is(line->kind, traits);
}
static inline mr_command_after mr_hazard_line_after(const log_line *line) {
    return mr_command_kinds[line->kind].after;
}
/* The facts of a line that the rows of order ask for. */
mr_order_facts mr_hazard_line_facts(const log_line *line);
/* After it the host comes after what the event's record captured. */
static inline bool mr_hazard_line_is_event_wait(const log_line *line) {
    return mr_hazard_line_after(line) == MR_AFTER_RECORD;
}

bool mr_hazard_log_open(checker *c); /* empty; false: out of memory */
void mr_hazard_log_command(checker *c, const mr_command *command);
void mr_hazard_log_take_back(checker *c); /* the newest: it was refused */
void mr_hazard_log_free(checker *c);
uint64_t mr_hazard_log_kept(const checker *c); /* lines */
const log_line *mr_hazard_log_back(const checker *c,
                                   uint64_t back); /* 0: the newest; NULL: no more */
const log_line *mr_hazard_log_find(const checker *c, uint64_t seq);
/* The rank whose call it was, from 1; 0: no rank's. `otherwise`: where the log has it no longer. */
uint16_t mr_hazard_log_rank(const checker *c, uint64_t seq, uint16_t otherwise);
/* By mr_hazard_log_back's number: what CUDA orders before that command (why.c). The caller frees it; NULL: no
 * memory. */
bool *mr_hazard_log_before(const checker *c, uint64_t seq);

#endif
