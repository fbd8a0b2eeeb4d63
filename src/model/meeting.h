/* A meeting: one collective operation, or one exchange of messages, of a communicator (R61-R67). Each member takes
 * part by one command in a stream of its own, an OP whose `meeting` is this. All these commands are submitted one
 * after the other. No member's command is over before all have begun.
 *
 * A meeting says which operation is applied to the bytes of which members. It does not change once its commands are
 * submitted. */
#ifndef MR_MODEL_MEETING_H
#define MR_MODEL_MEETING_H

#include "model/tensor.h"

#define MR_MEETING_MOST 64 /* members: bits of a mask */

/* id, name in scripts, members that give data, members that get data */
#define MR_COLLECTIVE_LIST(X)                                                                      \
    X(ALL_REDUCE, "all_reduce", ALL, ALL)                                                          \
    X(BROADCAST, "broadcast", ROOT, ALL)                                                           \
    X(REDUCE, "reduce", ALL, ROOT)                                                                 \
    X(ALL_GATHER, "all_gather", ALL, ALL)                                                          \
    X(REDUCE_SCATTER, "reduce_scatter", ALL, ALL)                                                  \
    X(ALL_TO_ALL, "all_to_all", ALL, ALL)                                                          \
    X(EXCHANGE, "exchange", ALL, ALL) /* sends and receives; `messages` says which */

typedef enum {
#define X(id, ...) MR_COLLECTIVE_##id,
    MR_COLLECTIVE_LIST(X)
#undef X
} mr_collective;

#define MR_REDOP_LIST(X)                                                                           \
    X(SUM, "sum")                                                                                  \
    X(PROD, "prod")                                                                                \
    X(MIN, "min")                                                                                  \
    X(MAX, "max")                                                                                  \
    X(AVG, "avg")

typedef enum {
#define X(id, text) MR_REDOP_##id,
    MR_REDOP_LIST(X)
#undef X
} mr_redop;

const char *mr_collective_text(mr_collective what);
const char *mr_redop_text(mr_redop redop);
bool mr_collective_reduces(mr_collective what);

/* The name of the records and waits that make a communicator's operations serial. The script did not write them. */
#define MR_MEETING_ORDER "communicator"

#define MR_MEETING_NONE (-1) /* no operand */

typedef struct {
    const mr_command *command; /* once it is submitted; not owned: valid while it is pending */
    uint32_t rank;             /* in the communicator */
    uint16_t host;             /* that called: a rank from 1 (mr_machine.rank), 0: none */
    int16_t out, in;           /* its operands: what it receives into, what it sends */
    /* members whose data it gets, as bits: it comes after their predecessors (R61) */
    uint64_t from;
    /* A stand-in for the member of a rank in another process, which began at `begins` (nanoseconds). The data that it
     * receives are dropped. */
    bool far;
    uint64_t begins;
} mr_meeting_member;

/* In an EXCHANGE, the bytes of an operand of one member go to an operand of another. */
typedef struct {
    uint32_t from, to; /* members */
    int16_t in, out;   /* their operands */
} mr_message;

/* A node of a graph that is one rank's call of a collective. It is not a member of a meeting yet: each launch makes the
 * call again, so the instances meet. The node's meeting says what this rank does, as its only member, and has this.
 * src/collective makes it, src/graph launches it. */
typedef struct mr_captured_call mr_captured_call;

/* A call of a launch: its node, and the stream that it goes to. */
typedef struct {
    const struct mr_command *node;
    mr_stream *stream;
} mr_launched_call;

struct mr_captured_call {
    /* The place among the calls of one captured group: consecutive nodes, which a launch makes as one group. */
    uint32_t place, count;
    /* Makes the calls of one group. `caller`: of the launch. Returns once they are submitted: where ranks run, others
     * may come later. `begun`: the launch has submitted something, so these calls cost the host nothing (R42). */
    mr_status (*launch)(const mr_caller *caller, const mr_launched_call *calls, uint32_t count,
                        bool begun);
    /* Whether one may replace the other in an executable (R43). */
    bool (*same)(const struct mr_command *a, const struct mr_command *b);
    void (*drop)(mr_captured_call *captured);
};

typedef struct mr_meeting {
    uint32_t refs;
    uint32_t size;
    mr_collective what;
    mr_redop redop; /* where it reduces */
    uint32_t root;  /* the member, where there is one */
    uint32_t first; /* the member that is submitted first */
    uint32_t last;  /* and the last one */
    uint32_t message_count;
    mr_message *messages;
    uint32_t communicator; /* of the machine's, from 1; 0: none, as in copies */
    uint64_t number;       /* counts the operations of its communicator, from 1 */
    char title[48];        /* of the communicator, for messages */
    void *link;            /* the backend's part of the communicator; NULL: none, as in copies */
    mr_captured_call *captured; /* owned; NULL: it is a meeting */
    mr_meeting_member members[];
} mr_meeting;

/* With zeroed members. NULL: no memory. The caller owns one reference. */
mr_meeting *mr_meeting_new(uint32_t size, uint32_t message_count);
/* Copies the description: members have no commands. NULL: no memory. */
mr_meeting *mr_meeting_copy(const mr_meeting *meeting);
void mr_meeting_release(mr_meeting *meeting); /* accepts NULL */

/* The member that is submitted last. */
static inline uint32_t mr_meeting_last(const mr_meeting *meeting) {
    return meeting->last;
}

/* All members, as bits. */
static inline uint64_t mr_meeting_all(const mr_meeting *meeting) {
    return ~(uint64_t)0 >> (64 - meeting->size);
}

/* Sets `from` of all members. */
void mr_meeting_find_sources(mr_meeting *meeting);
/* Whether each member gets data of all others. */
bool mr_meeting_orders_all(const mr_meeting *meeting);

#endif
