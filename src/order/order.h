/* The rules of order (docs/semantics.md), each written once, as a row without state.
 *
 * A row adds the contents of one place to another. It does so when a command of such a kind enters (is submitted),
 * leaves (is in its stream) or returns (the host goes on). A place is a set of commands that later commands may come
 * after: a stream, the host, a record, ... So the rows tell a reader which commands a new one comes after, and which
 * will come after it.
 *
 * Each reader keeps the places in its own form. The virtual GPU has edges between pending commands (virtual/queue.c),
 * a trace has edges between spans (trace/order.c). The hazard checker has vector clocks (hazard/find/order.c), and
 * lines of the log for its explanations (hazard/explain/why.c). The explorer has sets of bits (explore/rules.c). They
 * use different strengths: the checker only what CUDA guarantees, the others also what devices do. docs/semantics.md
 * lists the differences.
 *
 * Not here: which block of memory an allocation gets (R29-R31), the record that a wait is bound to (R12), engines and
 * multiprocessors (R53-R56). An answer that CUDA leaves open is a fact that the reader decides before it asks. */
#ifndef MR_ORDER_ORDER_H
#define MR_ORDER_ORDER_H

#include "model/command.h"
#include "model/stream.h"

typedef enum {
    MR_PLACE_NODE, /* the command itself */
    MR_PLACE_HOST, /* what the host knows: its next call comes after that */
    MR_PLACE_LANE, /* its stream, up to the last command */
    /* all commands of a device's blocking streams, for its default stream */
    MR_PLACE_GATHERED,
    MR_PLACE_RELEASED, /* the last command of a device's default stream, for its blocking streams */
    MR_PLACE_DEVICE,   /* all commands of a device */
    MR_PLACE_WALL,     /* a device's last synchronous copy between devices */
    MR_PLACE_RECORD,   /* what the event's record has captured */
    MR_PLACE_FREED,    /* of an allocation's memory: its free, and other users at that time */
    MR_PLACE_USERS,    /* of a free's memory: the streams that record_stream named */
    MR_PLACE_OWNER,    /* of a free's memory: the stream that it was made on, once it is closed */
    /* the predecessors of the meeting's members whose data it gets */
    MR_PLACE_SOURCES,
    MR_PLACE_MEETING, /* the predecessors of all members of its meeting */
} mr_place;

typedef enum {
    MR_AT_ENTER,  /* the node comes after the place */
    MR_AT_LEAVE,  /* the place holds the node, and all that it comes after; or what `from` holds */
    MR_AT_CALL,   /* before the command enters, the host waits for the place */
    MR_AT_RETURN, /* the host has waited for the place */
} mr_order_when;

typedef enum {
    MR_GUARANTEED, /* CUDA's documents say so */
    MR_SEEN,       /* devices do so, but no document guarantees it */
    /* devices keep this order for their allocator only: a program's data may not rely on it (R28, R30) */
    MR_ALLOCATOR,
} mr_strength;

/* Facts of a command that rows ask for. A query counts as a wait once it has said yes. */
#define MR_FACT_LIST(X)                                                                            \
    X(SUBMITTED) /* it is in a stream */                                                           \
    X(LEGACY)    /* its stream is a default stream */                                              \
    X(BLOCKING)  /* its stream takes part in the default stream's barrier (R3, R6) */              \
    X(BY_HOST)   /* it is the host's own: a wait, a query, an access, a free at once (R27) */      \
    X(RECORD)                                                                                      \
    X(WAIT)                                                                                        \
    X(ALLOC)                                                                                       \
    X(FREE)                                                                                        \
    X(WALL)        /* a synchronous copy between devices (R60) */                                  \
    X(FOR_STREAM)  /* the host waits for all that the stream has; */                               \
    X(FOR_RECORD)  /* for what the event's record captured; */                                     \
    X(FOR_DEVICE)  /* for all that a device has; */                                                \
    X(FOR_MEMORY)  /* likewise, as calls that release memory may (R27); */                         \
    X(FOR_ITSELF)  /* until this very command is done; */                                          \
    X(FOR_EARLIER) /* before the command enters: for what its stream has by then */                \
    X(MEETS)       /* it takes part in a meeting, whose members enter one after the other */

enum {
#define X(id) MR_FACT_BIT_##id,
    MR_FACT_LIST(X)
#undef X
};
enum {
#define X(id) MR_FACT_##id = 1 << MR_FACT_BIT_##id,
    MR_FACT_LIST(X)
#undef X
};
typedef uint32_t mr_order_facts;

/* One line for each rule: id, when, to, from, whether the place keeps its contents, strength, number of the rule. Then
 * come the facts that the command must have. For a command with the last fact the row is only the allocator's. (R28: an
 * allocation comes before the uses of its memory and a free after them. Between other commands nothing follows from
 * either.)
 *
 * ADDS: the place also holds what it held. REPLACES: it holds the node instead. If the node comes after the old
 * contents anyway, no order is lost, and such a place can be a single command. Only a record forgets (R11).
 *
 * A device's place is that of the command's device; in rows for a WALL, of each device of mr_order_walls. */
// clang-format off
#define MR_ORDER_LIST(X)                                                                                               \
    X(CALL,             ENTER,  NODE,     HOST,     ADDS,     GUARANTEED, 10, NONE,                             ALLOC) \
    X(STREAM,           ENTER,  NODE,     LANE,     ADDS,     GUARANTEED, 1,  SUBMITTED,                        ALLOC) \
    X(GATHER,           ENTER,  NODE,     GATHERED, ADDS,     GUARANTEED, 3,  SUBMITTED | LEGACY,               ALLOC) \
    X(RELEASE,          ENTER,  NODE,     RELEASED, ADDS,     GUARANTEED, 3,  SUBMITTED | BLOCKING,             ALLOC) \
    X(BEHIND_WALL,      ENTER,  NODE,     WALL,     ADDS,     GUARANTEED, 60, SUBMITTED,                        ALLOC) \
    X(EVENT,            ENTER,  NODE,     RECORD,   ADDS,     GUARANTEED, 11, SUBMITTED | WAIT,                 NONE)  \
    X(REUSE,            ENTER,  NODE,     FREED,    ADDS,     ALLOCATOR,  30, SUBMITTED | ALLOC,                NONE)  \
    X(MEET_WALL,        ENTER,  NODE,     DEVICE,   ADDS,     GUARANTEED, 60, SUBMITTED | WALL,                 NONE)  \
    X(MEET_WALLS,       ENTER,  NODE,     WALL,     ADDS,     GUARANTEED, 60, SUBMITTED | WALL,                 NONE)  \
    X(MEET,             ENTER,  NODE,     SOURCES,  ADDS,     GUARANTEED, 61, SUBMITTED | MEETS,                NONE)  \
    X(MEET_ALL,         ENTER,  NODE,     MEETING,  ADDS,     SEEN,       61, SUBMITTED | MEETS,                NONE)  \
    X(TO_HOST,          LEAVE,  HOST,     NODE,     ADDS,     GUARANTEED, 10, BY_HOST,                          NONE)  \
    X(TO_STREAM,        LEAVE,  LANE,     NODE,     REPLACES, GUARANTEED, 1,  SUBMITTED,                        FREE)  \
    X(TO_GATHERED,      LEAVE,  GATHERED, NODE,     ADDS,     GUARANTEED, 3,  SUBMITTED | BLOCKING,             FREE)  \
    X(TO_RELEASED,      LEAVE,  RELEASED, NODE,     REPLACES, GUARANTEED, 3,  SUBMITTED | LEGACY,               FREE)  \
    X(TO_DEVICE,        LEAVE,  DEVICE,   NODE,     ADDS,     GUARANTEED, 10, SUBMITTED,                        FREE)  \
    X(TO_WALL,          LEAVE,  WALL,     NODE,     REPLACES, GUARANTEED, 60, SUBMITTED | WALL,                 NONE)  \
    X(TO_RECORD,        LEAVE,  RECORD,   NODE,     REPLACES, GUARANTEED, 11, SUBMITTED | RECORD,               NONE)  \
    X(TO_FREED,         LEAVE,  FREED,    NODE,     ADDS,     ALLOCATOR,  28, SUBMITTED | FREE,                 NONE)  \
    X(USERS,            LEAVE,  FREED,    USERS,    ADDS,     GUARANTEED, 33, FREE,                             NONE)  \
    X(OWNER,            LEAVE,  FREED,    OWNER,    ADDS,     GUARANTEED, 9,  SUBMITTED | FREE,                 NONE)  \
    X(EARLIER,          CALL,   HOST,     LANE,     ADDS,     GUARANTEED, 20, SUBMITTED | FOR_EARLIER,          NONE)  \
    X(EARLIER_BLOCKING, CALL,   HOST,     GATHERED, ADDS,     SEEN,       20, SUBMITTED | LEGACY | FOR_EARLIER, NONE)  \
    X(ITSELF,           RETURN, HOST,     NODE,     ADDS,     GUARANTEED, 20, SUBMITTED | FOR_ITSELF,           NONE)  \
    X(SYNC_STREAM,      RETURN, HOST,     LANE,     ADDS,     GUARANTEED, 10, FOR_STREAM,                       NONE)  \
    X(SYNC_BLOCKING,    RETURN, HOST,     GATHERED, ADDS,     SEEN,       5,  FOR_STREAM | LEGACY,              NONE)  \
    X(SYNC_RECORD,      RETURN, HOST,     RECORD,   ADDS,     GUARANTEED, 10, FOR_RECORD,                       NONE)  \
    X(SYNC_DEVICE,      RETURN, HOST,     DEVICE,   ADDS,     GUARANTEED, 10, FOR_DEVICE,                       NONE)  \
    X(GIVE_BACK,        RETURN, HOST,     DEVICE,   ADDS,     SEEN,       27, FOR_MEMORY,                       NONE)
// clang-format on

typedef enum {
#define X(id, ...) MR_ORDER_##id,
    MR_ORDER_LIST(X)
#undef X
        MR_ORDER_ROWS
} mr_order_id;

typedef struct {
    uint8_t when, to, from, strength;
    bool replaces;
    uint8_t rule;                  /* 60: R60 */
    uint32_t needs, allocator_for; /* facts */
} mr_order_row;

#ifdef MR_ORDER_MUTATE /* a test that breaks rows one at a time */
extern mr_order_row mr_order_rows[MR_ORDER_ROWS];
#else
extern const mr_order_row mr_order_rows[MR_ORDER_ROWS];
#endif

typedef uint32_t mr_order_set; /* of rows: bit i is row i */

/* The rows of a command with these facts, up to this strength. Pure. */
mr_order_set mr_order_find(mr_order_facts facts, mr_order_when when, mr_strength strength);

/* The first row of a set that is not empty. Readers go through a set in this order, which is the list's. */
static inline const mr_order_row *mr_order_first(mr_order_set set) {
    return &mr_order_rows[__builtin_ctz(set)];
}

/* The rows that a command of a stream has because it takes part in a meeting. Their places hold all members of the
 * meeting once the last one has entered. */
mr_order_set mr_order_of_meeting(mr_strength strength);
/* The rows that a command of a stream has because it is a WALL. Their places are those of each device of
 * mr_order_walls. */
mr_order_set mr_order_of_wall(mr_order_when when, mr_strength strength);

/* A set of places, bit i for mr_place i: the places that a command with these facts comes after, or that hold it. */
typedef uint32_t mr_place_set;
mr_place_set mr_order_taken(mr_order_facts facts, mr_strength strength); /* `from` at ENTER */
mr_place_set mr_order_given(mr_order_facts facts, mr_strength strength); /* `to` at LEAVE */
/* The contents of a place once a command with these facts has left: `from` at LEAVE, of the rows to that place. */
mr_place_set mr_order_put(mr_order_facts facts, mr_place to, mr_strength strength);
/* And what the host has waited for, before it enters and when it returns: `from` at CALL, at RETURN. */
mr_place_set mr_order_called(mr_order_facts facts, mr_strength strength);
mr_place_set mr_order_returned(mr_order_facts facts, mr_strength strength);
static inline bool mr_place_in(mr_place_set set, mr_place place) {
    return set >> place & 1;
}

/* ---- streams
 *
 * The rows of a stream's commands, by kind, for readers that ask at every command. */

#define MR_ORDER_KINDS (MR_COMMAND_FAULT + 1) /* kinds that are submitted are the first ones */

typedef struct {
    mr_order_facts facts;
    /* By kind, without what WALL and MEETS add. */
    mr_order_set enter[MR_ORDER_KINDS], leave[MR_ORDER_KINDS];
    mr_place_set takes[MR_ORDER_KINDS], gives[MR_ORDER_KINDS]; /* the places in these */
} mr_order_lane;

void mr_order_lane_init(mr_order_lane *lane, mr_stream_kind kind, bool blocking,
                        mr_strength strength);
/* A plain command takes from that place, gives to it. */
static inline bool mr_order_takes(const mr_order_lane *lane, mr_place place) {
    return mr_place_in(lane->takes[MR_COMMAND_OP], place);
}
static inline bool mr_order_gives(const mr_order_lane *lane, mr_place place) {
    return mr_place_in(lane->gives[MR_COMMAND_OP], place);
}

/* ---- facts */

mr_order_facts mr_order_facts_of_stream(mr_stream_kind kind, bool blocking);
/* Whether the default stream of its device comes after its work (R3). */
bool mr_order_is_gathered(mr_order_facts stream);
/* Whether a wait for it, or a query that says yes, also covers all those streams (R5). */
bool mr_order_sync_gathers(mr_order_facts stream);
/* The facts that follow from the kind and from the facts of its stream (0: the host's). The caller adds those of a copy
 * and a wait, and MEETS. */
mr_order_facts mr_order_facts_of_kind(mr_command_id kind, mr_order_facts stream);

/* The devices, as bits, for which a synchronous copy between devices is a wall (R60): those of both operands, and the
 * current one. 0: it is not such a copy. */
uint64_t mr_order_walls(const mr_command *command);

/* ---- copies and the host: R20-R24 */

typedef struct {
    mr_copy_direction direction;
    mr_memory_kind to, from;
    bool synchronous;     /* cudaMemcpy rather than cudaMemcpyAsync */
    bool of_graph;        /* a node: the launch waits for none */
    bool fits_staging;    /* the source fits the buffer that pageable memory is staged in */
    bool pageable_writer; /* a pending command may write pageable memory */
    bool early;           /* where is_open (R23): the call returns before the copy is done */
} mr_order_copy;

typedef struct {
    bool after_stream; /* the host first waits for the stream's earlier work */
    bool reads_source; /* and reads the source itself, in the call */
    bool until_done;   /* the host waits for the copy */
    bool is_open;      /* CUDA permits both, and `early` decided */
} mr_order_copy_rules;

/* The facts that the command itself has; the reader fills in the rest (staging, writers, `early`). */
mr_order_copy mr_order_copy_asked(const mr_command *command);
mr_order_copy_rules mr_order_copy_of(const mr_order_copy *copy);
/* Whether CUDA leaves open if the host waits for it (R23): true for an asynchronous copy of pageable memory. */
bool mr_order_copy_is_open(const mr_command *command);
/* Whether the host may wait for it or read its source, in any of the ways that CUDA permits. */
bool mr_order_copy_takes_host(const mr_command *command);
/* The guarantees about it. If CUDA permits both, neither the wait nor the read of the source is guaranteed. */
mr_order_copy_rules mr_order_copy_guaranteed(const mr_command *command);
/* Whether it may write pageable memory when it runs: a copy there, or a host function, which does as it likes. */
static inline bool mr_order_writes_pageable(mr_command_id kind, mr_memory_kind to) {
    switch (kind) {
    case MR_COMMAND_HOST_FUNCTION: return true;
    case MR_COMMAND_COPY: return to == MR_MEMORY_PAGEABLE;
    case MR_COMMAND_OP:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return false;
}

#endif
