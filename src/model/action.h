/* An action: the record of one thing asked of the machine. What, on which stream, which bytes of
 * which storages it reads and writes, and which line of the script asked. Everything that the
 * observers know and all that a backend is given. */
#ifndef MR_MODEL_ACTION_H
#define MR_MODEL_ACTION_H

#include "model/event.h"
#include "model/storage.h"

/* Actions that a backend carries out come first; the rest only tell observers what the host did. */
#define MR_ACTION_LIST(X)                                                                          \
    X(OP, "op")     /* a kernel: a row of the operation table, with a CPU body */                  \
    X(COPY, "copy") /* bytes between storages: a copy engine's work */                             \
    X(RECORD, "record")                                                                            \
    X(WAIT, "wait")                                                                                \
    X(HOST_FUNCTION, "host-function")                                                              \
    X(ALLOC, "alloc") /* R28: accesses must be ordered after it */                                 \
    X(FREE, "free")   /* R28: and before this */                                                   \
    X(FAULT, "fault") /* fails on purpose with `fault` (virtual GPU only) */                       \
    X(STREAM_SYNC, "stream-synchronize")                                                           \
    X(EVENT_SYNC, "event-synchronize")                                                             \
    X(DEVICE_SYNC, "device-synchronize")                                                           \
    X(STREAM_QUERY, "stream-query") /* a successful one: orders like a synchronise (R10) */        \
    X(EVENT_QUERY, "event-query")                                                                  \
    X(HOST_ACCESS, "host-access") /* the host reads or writes the operands, now */                 \
    X(STREAM_CREATE, "stream-create")                                                              \
    X(STREAM_CLOSE, "stream-close")                                                                \
    X(RESET, "reset")

typedef enum {
#define X(name, text) MR_ACTION_##name,
    MR_ACTION_LIST(X)
#undef X
} mr_action_kind;

#define MR_ACTION_LAST_SUBMITTED MR_ACTION_FAULT

enum { MR_READ = 1, MR_WRITE = 2 };

typedef struct {
    mr_tensor *tensor; /* the exact bytes: a view; one reference owned */
    uint8_t access;    /* MR_READ | MR_WRITE */
} mr_operand;

typedef struct {
    bool is_integer;
    int64_t i;
    double f; /* always set, also for integers */
} mr_scalar;

/* Arguments by value, copied at the call (R26). What each means is the operation row's business. */
typedef struct {
    mr_scalar scalar[2];
    int64_t integer[2];
    uint64_t seed, offset; /* Philox, for random operations */
    uint64_t duration_ns;  /* > 0: takes this long on the device, whatever the cost model says */
    uint32_t blocks;       /* with duration_ns: thread blocks, each of which occupies a whole SM */
    uint64_t mix;          /* mr.op: hash of the operation's name, for the values that it writes */
} mr_params;

typedef enum {
    MR_COPY_H2D,
    MR_COPY_D2H,
    MR_COPY_D2D,
    MR_COPY_PEER, /* between devices */
    MR_COPY_H2H,
} mr_copy_direction;

#define MR_INLINE_OPERANDS 4

struct mr_action {
    mr_action_kind kind;
    uint32_t operand_count;
    mr_operand *operands; /* inline_operands, or an array of its own (freed with the action) */
    mr_operand inline_operands[MR_INLINE_OPERANDS];
    uint64_t seq; /* order of submission by the host, over all streams and devices */
    mr_machine *machine;
    mr_stream *stream; /* NULL when the host itself acts; one reference owned */
    mr_site where;
    const char *name; /* what a person would call it: "add_", "copy_", an mr.op's name; interned
                             or static */
    union {
        struct {
            const mr_op *row;
            mr_params params;
        } op; /* operands[0] is the output, unless the row says otherwise */
        struct {
            mr_copy_direction direction;
            bool synchronous; /* cudaMemcpy rather than cudaMemcpyAsync (R20, R21) */
            uint64_t bytes;
        } copy; /* operands: 0 destination, 1 source; both contiguous, of equal bytes */
        struct {
            mr_event *event;     /* one reference owned */
            uint64_t record_seq; /* the record bound at the call (R12); 0: none */
        } event;
        mr_storage *storage; /* ALLOC, FREE; one reference owned */
        struct {
            mr_status (*call)(void *context);
            void (*drop)(void *context);
            void *context;
        } host;
        mr_code fault;
        mr_device *device; /* DEVICE_SYNC */
    } u;
    /* backend->action_extra bytes of the backend follow */
};

/* Where the backend's own part of an action begins. */
static inline void *mr_action_extra(mr_action *action) {
    return action + 1;
}

/* A zeroed action with seq, where and a reference to `stream` (may be NULL) filled in, and room for
 * `operand_count` operands. The seq is taken now: create and submit without another in between. */
mr_status mr_action_create(mr_machine *machine, mr_action_kind kind, mr_stream *stream,
                           const char *name, uint32_t operand_count, mr_action **out_action);

/* Sets operand i and takes a reference to the tensor. */
void mr_action_set_operand(mr_action *action, uint32_t i, mr_tensor *tensor, uint8_t access);

/* Shows it to the observers (one of which may refuse: "error" mode), then gives it to the backend,
 * which owns it from then on; after a failure it has been destroyed and nothing is enqueued. With
 * launch-blocking (R52) waits for it. */
mr_status mr_action_submit(mr_action *action);

/* Shows it to the observers and destroys it: for what the host did itself. */
mr_status mr_action_announce(mr_action *action);

/* Drops the references. The backend calls it when the device is done with the action. */
void mr_action_destroy(mr_action *action);

const char *mr_action_kind_text(mr_action_kind kind);

#endif
