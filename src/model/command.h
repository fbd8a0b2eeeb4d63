/* A command: the description of one request to the machine. It has the kind of work, the stream, the bytes of each
 * storage that are read and written, and the line of the script. Backends and observers get only commands. A command is
 * counted, and it does not change once it has been submitted: a backend's queue, a trace or a recorded program keeps a
 * reference to it. */
#ifndef MR_MODEL_COMMAND_H
#define MR_MODEL_COMMAND_H

#include "model/event.h"
#include "model/meeting.h"
#include "model/tensor.h"

/* Facts about all commands of a kind. */
enum {
    /* given to a backend, with a stream; otherwise an action of the host */
    MR_TRAIT_SUBMITTED = 1 << 0,
    MR_TRAIT_WORK = 1 << 1, /* an engine of the device moves or computes bytes */
    /* It takes a place in the launch queue (R56): P6 saw 100,000 records not fill it. */
    MR_TRAIT_LAUNCH = 1 << 2,
    MR_TRAIT_MARKER = 1 << 3, /* its only effect is on the order of later commands */
    MR_TRAIT_QUERY = 1 << 4,
    /* It has no number, and only observers that ask for everything are told. */
    MR_TRAIT_ACCOUNT = 1 << 5,
    MR_TRAIT_TOUCH = 1 << 6, /* the host itself reads or writes the operands, in the call */
    /* It waits for, or asks for, the record that its event had at the call (R12). */
    MR_TRAIT_BOUND = 1 << 7,
    MR_TRAIT_BEGINS = 1 << 8, /* the object that it names begins with it; */
    MR_TRAIT_ENDS = 1 << 9,   /* or ends with it */
    MR_TRAIT_TWO = 1 << 10,   /* it names two objects of one kind */
};

/* The member of `u` that a kind uses. command.c releases and describes it. */
typedef enum {
    MR_PART_NONE,
    MR_PART_OP,      /* u.op */
    MR_PART_COPY,    /* u.copy */
    MR_PART_EVENT,   /* u.event */
    MR_PART_MEMORY,  /* u.storage: the life of device memory, which orders no work (R28) */
    MR_PART_HOST,    /* u.host */
    MR_PART_FAULT,   /* u.fault */
    MR_PART_DEVICE,  /* u.device */
    MR_PART_ACCOUNT, /* u.account, which owns nothing */
} mr_command_part;

/* The work that is ordered before the host once a command of the kind has come true (R10). */
typedef enum {
    MR_AFTER_NOTHING,
    MR_AFTER_STREAM, /* all that was submitted to `stream` */
    MR_AFTER_RECORD, /* what the event's record captured */
    MR_AFTER_DEVICE, /* all that was submitted to u.device */
} mr_command_after;

/* One line for each kind: id, its name in messages, traits, part, what the host comes after.
 *
 * A `switch` over kinds has no `default`, so the compiler names each reader that does not handle a new kind.
 * MR_COMMAND_CASE makes the cases of a whole list, for a reader that treats all of its kinds alike. */
// clang-format off
#define MR_SUBMITTED_LIST(X)                                                                                                                          \
    X(OP,              "op",                 SUBMITTED | WORK | LAUNCH,   OP,      NOTHING) /* a kernel: a row of the operation table */              \
    X(COPY,            "copy",               SUBMITTED | WORK | LAUNCH,   COPY,    NOTHING) /* bytes between storages: a copy engine's work */        \
    X(RECORD,          "record",             SUBMITTED | MARKER,          EVENT,   NOTHING)                                                           \
    X(WAIT,            "wait",               SUBMITTED | MARKER | BOUND,  EVENT,   NOTHING)                                                           \
    X(HOST_FUNCTION,   "host-function",      SUBMITTED | LAUNCH,          HOST,    NOTHING)                                                           \
    X(ALLOC,           "alloc",              SUBMITTED | MARKER | BEGINS, MEMORY,  NOTHING) /* R28: accesses must be ordered after it */              \
    X(FREE,            "free",               SUBMITTED | MARKER | ENDS,   MEMORY,  NOTHING) /* R28: and before this */                                \
    X(FAULT,           "fault",              SUBMITTED | LAUNCH,          FAULT,   NOTHING) /* fails on purpose (virtual GPU only) */

/* Actions of the host itself, without a submitted command. */
#define MR_HOST_LIST(X)                                                                                                                               \
    X(STREAM_SYNC,     "stream-synchronize", NONE,                        NONE,    STREAM)                                                            \
    X(EVENT_SYNC,      "event-synchronize",  BOUND,                       EVENT,   RECORD)                                                            \
    X(DEVICE_SYNC,     "device-synchronize", NONE,                        DEVICE,  DEVICE)                                                            \
    X(STREAM_QUERY,    "stream-query",       QUERY,                       NONE,    STREAM)                                                            \
    X(EVENT_QUERY,     "event-query",        QUERY | BOUND,               EVENT,   RECORD)                                                            \
    X(HOST_ACCESS,     "host-access",        TOUCH,                       OP,      NOTHING) /* the host reads or writes the operands, now */          \
    X(STREAM_CREATE,   "stream-create",      BEGINS,                      NONE,    NOTHING)                                                           \
    X(STREAM_CLOSE,    "stream-close",       ENDS,                        NONE,    NOTHING)                                                           \
    X(RESET,           "reset",              NONE,                        NONE,    NOTHING)

/* The other requests to a backend, which are needed to reproduce the same bytes and times. Observers are told
 * afterwards, and cannot refuse them. */
#define MR_OBJECT_LIST(X)                                                                                                                             \
    X(STREAM_DROP,     "stream-drop",        ACCOUNT | ENDS,              NONE,    NOTHING) /* closed with its last reference */                      \
    X(EVENT_CREATE,    "event-create",       ACCOUNT | BEGINS,            EVENT,   NOTHING)                                                           \
    X(EVENT_CLOSE,     "event-close",        ACCOUNT | ENDS,              EVENT,   NOTHING) /* by the script, or with its last reference */           \
    X(HOST_ALLOC,      "host-alloc",         ACCOUNT | BEGINS,            ACCOUNT, NOTHING) /* storage */                                             \
    X(HOST_FREE,       "host-free",          ACCOUNT | ENDS,              ACCOUNT, NOTHING) /* storage: about to go */                                \
    X(FREE_WAIT,       "free-wait",          ACCOUNT,                     ACCOUNT, NOTHING) /* what cudaFree waits for, before its FREE */            \
    X(RECORD_STREAM,   "record-stream",      ACCOUNT,                     ACCOUNT, NOTHING) /* R33: a stream and storage */                           \
    X(HOST_READ,       "host-read",          ACCOUNT | TOUCH,             NONE,    NOTHING) /* operand 0, our memory: the script takes values */      \
    X(HOST_WORK,       "host-work",          ACCOUNT,                     ACCOUNT, NOTHING) /* the host has computed: value bytes */                  \
    X(ELAPSED,         "elapsed-time",       ACCOUNT | TWO,               ACCOUNT, NOTHING) /* from, to, number: milliseconds */                      \
    X(DRAIN,           "drain",              ACCOUNT,                     ACCOUNT, NOTHING) /* the host waits for a device; this adds no order */

/* Questions to the machine as a whole, and settings of it. They order nothing, and name no memory of the program. */
#define MR_MACHINE_LIST(X)                                                                                                                            \
    X(TRIM,            "trim",               ACCOUNT,                     ACCOUNT, NOTHING) /* device */                                              \
    X(ENABLE_PEER,     "enable-peer-access", ACCOUNT | TWO,               ACCOUNT, NOTHING) /* device, peer */                                        \
    X(MEMORY_LOOK,     "memory-look",        ACCOUNT,                     ACCOUNT, NOTHING) /* device, value: bytes in its pool */                    \
    X(HOST_TIME,       "host-time",          ACCOUNT,                     ACCOUNT, NOTHING) /* value: the answer, nanoseconds */                      \
    X(DEVICE_TIME,     "device-time",        ACCOUNT,                     ACCOUNT, NOTHING) /* likewise */                                            \
    X(LAUNCH_BLOCKING, "launch-blocking",    ACCOUNT,                     ACCOUNT, NOTHING) /* value */                                               \
    X(CHOOSER,         "chooser",            ACCOUNT,                     ACCOUNT, NOTHING) /* text */                                                \
    X(MODEL,           "model",              ACCOUNT,                     ACCOUNT, NOTHING) /* text */                                                \
    X(SETTING,         "setting",            ACCOUNT,                     ACCOUNT, NOTHING) /* text, value */                                         \
    X(STEP,            "step",               ACCOUNT,                     ACCOUNT, NOTHING) /* of a stream, or NULL; value: whether anything moved */ \
    X(BACK,            "back",               ACCOUNT,                     ACCOUNT, NOTHING) /* value: steps to undo, number: were undone */           \
    X(PASS,            "pass",               ACCOUNT,                     ACCOUNT, NOTHING) /* value: nanoseconds of the host */                      \
    X(HISTORY,         "history",            ACCOUNT,                     ACCOUNT, NOTHING) /* value: steps, number: bytes, < 0: under any chooser */ \
    X(LOOK,            "look",               ACCOUNT,                     ACCOUNT, NOTHING) /* pending work was listed */

#define MR_ACCOUNT_LIST(X) MR_OBJECT_LIST(X) MR_MACHINE_LIST(X)
#define MR_COMMAND_LIST(X) MR_SUBMITTED_LIST(X) MR_HOST_LIST(X) MR_ACCOUNT_LIST(X)
// clang-format on

typedef enum {
#define X(name, text, traits, part, after) MR_COMMAND_##name,
    MR_COMMAND_LIST(X)
#undef X
} mr_command_id;

#define MR_COMMAND_CASE(name, ...) case MR_COMMAND_##name:

typedef struct {
    const char *name;
    uint32_t traits;
    mr_command_part part;
    mr_command_after after;
} mr_command_kind;

extern const mr_command_kind mr_command_kinds[];

/* Why an operand is only assumed: id, and the clause after "because". */
#define MR_ASSUMED_LIST(X)                                                                         \
    X(GAPS, "bytes that it does not touch lie between those that it touches")                      \
    X(INDEX, "the address depends on a value in memory")                                           \
    X(CONDITION, "a condition that was not followed decides whether it is accessed")               \
    X(LOOP, "the number of iterations of a loop is not known")                                     \
    X(ARITHMETIC, "the computation of the address was not followed")                               \
    X(CHOSEN, "the kernel chooses one of several pointers")                                        \
    X(KEPT, "the pointer passes through memory or a function that was not followed")               \
    X(IN_DATA, "a number among the arguments is its address")                                      \
    X(VARIABLE, "a variable of a module counts as a whole")                                        \
    X(DECLARED, "the script declares the access, and the code does not show it")                   \
    X(SIZE, "the kernel is too large for the analysis")

typedef enum {
    MR_CERTAIN,
#define X(id, text) MR_ASSUMED_##id,
    MR_ASSUMED_LIST(X)
#undef X
} mr_assumed;

/* How a command accesses the bytes of an operand. Bits 0 and 1 say what it does; code that asks for that alone masks
 * with MR_ACCESSES. The others qualify it, and only launches of a user's kernel have them:
 *
 *   MR_GUESSED   With MR_READ and MR_WRITE: the code does not show which of the two it is; it may be neither.
 *   MR_ATOMIC    With MR_READ and MR_WRITE: every access through this operand is an atomic read-modify-write that is
 *                atomic for the whole device. (`atom` and `red` of scope .cta or .cluster are plain accesses.) Plain
 *                accesses of the same bytes are other operands: a command may have several operands over the same
 *                bytes, with different flags, and nothing is known of the order between them.
 *   MR_ASSUMED   A mask: four bits that hold the reason (mr_assumed), 0 where nothing is assumed. Without a reason the
 *                launch accesses every byte of the view in this way, whatever memory holds, if it runs to its end.
 *                With a reason it may access any of these bytes, or none. Both kinds together cover all that it
 *                accesses through its pointers (mr_kernel_escapes names the exceptions), so an operand with a reason
 *                must count wherever order is judged. It never stands for a certain access before it, and a write
 *                with a reason need not leave any byte written. MR_GUESSED implies a reason. */
enum {
    MR_READ = 1,
    MR_WRITE = 2,
    MR_ACCESSES = MR_READ | MR_WRITE,
    MR_GUESSED = 4,
    MR_ATOMIC = 8,
    MR_ASSUMED_SHIFT = 4,
    MR_ASSUMED = 15 << MR_ASSUMED_SHIFT,
};

struct mr_operand {
    mr_tensor *tensor; /* the exact bytes: a view; one reference owned */
    uint8_t access;    /* see above */
};

static inline mr_assumed mr_access_assumed(uint8_t access) {
    return (mr_assumed)(access >> MR_ASSUMED_SHIFT);
}
static inline uint8_t mr_access_assume(uint8_t access, mr_assumed why) {
    return (uint8_t)((access & ~MR_ASSUMED) | ((unsigned)why << MR_ASSUMED_SHIFT));
}
/* The clause of a reason; "" for MR_CERTAIN. */
const char *mr_assumed_text(mr_assumed why);

typedef struct {
    bool is_integer;
    bool is_bool; /* an integer that the script wrote as true or false */
    int64_t i;
    double f; /* always set, also for integers */
} mr_scalar;

/* The part of a graph's launch that a command is (R42). The first operation stands for the call: it costs the host what
 * a launch costs, and takes its place in the launch queue. The rest costs the host nothing. */
enum { MR_LAUNCH_NONE, MR_LAUNCH_FIRST, MR_LAUNCH_REST };

/* The arguments of an operation by value, copied at the call (R26): as many bytes as the largest of them takes. Only
 * the row's family knows what they say (ops/params.h). */
#define MR_PARAMS_BYTES 56

typedef enum {
    MR_COPY_H2D,
    MR_COPY_D2H,
    MR_COPY_D2D,
    MR_COPY_PEER, /* between devices */
    MR_COPY_H2H,
} mr_copy_direction;

#define MR_INLINE_OPERANDS 4

struct mr_command {
    uint32_t refs;
    mr_command_id kind;
    uint32_t operand_count;
    mr_operand *operands; /* inline_operands, or an array of its own (freed with the command) */
    mr_operand inline_operands[MR_INLINE_OPERANDS];
    uint64_t seq; /* order of submission by the host, over all streams and devices */
    mr_machine *machine;
    mr_stream *stream; /* NULL when the host itself acts; one reference owned */
    mr_site where;
    /* the captured command that a graph's launch carries out, which owns names, arguments and
     * context; one reference; NULL: none */
    const mr_command *node;
    mr_site launched; /* with it: the line that launched the graph */
    /* of a node that a launch in a capture or g:set put into a graph: the captured stream at its place, which
     * `launched` names; one reference; NULL: its own */
    mr_stream *placed;
    /* what it takes part in with commands of other streams (meeting.h); one reference; NULL: none */
    mr_meeting *meeting;
    uint32_t member;   /* with `meeting`: the number of the member */
    uint8_t launch;    /* MR_LAUNCH_* */
    bool in_place;     /* of a launch that replaces the script's commands */
    const char *name;  /* the name in messages: "add_", "copy_"; static, or the text of: */
    mr_name *own_name; /* the name that the script gave an mr.op; one reference; else NULL */
    union {
        struct {
            const mr_op *row; /* HOST_ACCESS: NULL if it is not an operation of the table */
            unsigned char params[MR_PARAMS_BYTES];
            void *arguments; /* further arguments of the row, by value; owned; NULL: none */
            size_t argument_bytes;
            void (*drop_arguments)(
                void *arguments); /* gives up what they refer to; NULL: nothing */
        } op; /* OP, HOST_ACCESS: operands[0] is the output, unless the row says otherwise */
        struct {
            mr_copy_direction direction;
            bool synchronous; /* cudaMemcpy rather than cudaMemcpyAsync (R20, R21) */
            int16_t current;  /* the index of the device that was current (R60) */
            uint64_t bytes;
        } copy; /* operands: 0 destination, 1 source; both contiguous, of equal bytes */
        struct {
            mr_event *event;     /* one reference owned */
            uint64_t record_seq; /* the record bound at the call (R12); 0: none */
        } event;
        struct {
            mr_storage *storage; /* ALLOC, FREE; one reference owned */
            bool at_once;  /* FREE: cudaFree, by the host and in the order of no stream (R27) */
            bool by_scope; /* FREE: at the end of a <close> variable's block */
        };
        struct {
            mr_status (*call)(void *context);
            void (*drop)(void *context);
            void *context;
        } host;
        mr_code fault;
        mr_device *device; /* DEVICE_SYNC */
        struct {
            mr_storage *storage;
            mr_event *from, *to;
            mr_device *device, *peer;
            uint64_t value;
            double number;
            const char *text;
        } account; /* only what the list says of the kind is set */
    } u;
};

/* A zeroed command with seq, where and a reference to `stream` (may be NULL) filled in, and space for
 * `operand_count` operands. The caller owns one reference. The seq is taken now: create and submit
 * without another in between. */
mr_status mr_command_create(const mr_caller *caller, mr_command_id kind, mr_stream *stream,
                            const char *name, uint32_t operand_count, mr_command **out_command);

/* Gives it a name of the script's. */
mr_status mr_command_set_name(mr_command *command, const char *name);

/* Gives an OP a copy of these bytes, which only its row understands: of any size, aligned to 16. */
mr_status mr_command_set_arguments(mr_command *command, const void *bytes, size_t size);

/* Sets operand i and takes a reference to the tensor. */
void mr_command_set_operand(mr_command *command, uint32_t i, mr_tensor *tensor, uint8_t access);

/* Asks the observers (an observer in "error" mode may refuse), gives it to the backend, and tells the observers the
 * result. Takes over the caller's reference, also on failure. After a failure the device does nothing for it, with
 * one exception: INTERRUPTED, for a synchronous copy that had begun, ends only the host's wait for it. With
 * launch-blocking (R52) it waits for the command. */
mr_status mr_command_submit(mr_command *command);

typedef struct {
    void (*turn)(void *context, uint32_t i); /* to the clock of the host of the i-th command */
    mr_status (*before)(void *context, uint32_t i); /* called before the i-th is submitted */
    void *context;
} mr_together;

/* The commands of a meeting, that of mr_meeting_last last: asks the observers about all of them before the first is
 * submitted. Takes over the references, also on failure. Where it fails half way (memory is out), the members that were
 * submitted would wait for ever, so the machine is lost (R50). */
mr_status mr_command_submit_together(mr_command **commands, uint32_t count,
                                     const mr_together *together);

/* Notes that it was submitted, for messages and the versions of the memory that it writes. mr_command_submit does it
 * by itself. */
void mr_command_note_writes(const mr_command *command);

/* The two moments of an action of the host itself (waits, queries, accesses, closing a stream). `may` comes before it
 * begins; if it fails, nothing has happened. `did` comes once the action has come true. A wait that was interrupted
 * never gets to `did`. */
mr_status mr_command_may(const mr_command *command);
void mr_command_did(const mr_command *command);
/* Tells the observers that ask for everything (observer.h): the call that made the command returns this error, or a
 * query said no (`status` NULL). */
void mr_command_failed(const mr_command *command, mr_status status);

/* A command of the trait ACCOUNT has come true or, with an error, has not. The caller owns the command, sets kind,
 * stream and `u`, and takes it back after the call: observers may not keep a reference. Without listeners, MR_ACCOUNT
 * costs a comparison. */
void mr_command_account(mr_machine *machine, mr_command *command, mr_status status);
void mr_command_account_may(mr_machine *machine);
/* Called before such a request that may let the device advance: an observer that needs the old bytes must copy them
 * now. */
#define MR_ACCOUNT_BEFORE(machine)                                                                 \
    do {                                                                                           \
        if (__builtin_expect((machine)->observing.everything_listeners != 0, 0))                   \
            mr_command_account_may(machine);                                                       \
    } while (0)
#define MR_ACCOUNT(machine, status, ...)                                                           \
    do {                                                                                           \
        if (__builtin_expect((machine)->observing.everything_listeners != 0, 0)) {                 \
            mr_command account_ = {__VA_ARGS__};                                                   \
            mr_command_account(machine, &account_, status);                                        \
        }                                                                                          \
    } while (0)

static inline void mr_command_retain(const mr_command *command) {
    ((mr_command *)command)->refs++; /* the count is not part of the description */
}
/* The last one drops the command's own references. Accepts NULL. */
void mr_command_release(const mr_command *command);

static inline bool mr_kind_is(mr_command_id kind, uint32_t traits) {
    return (mr_command_kinds[kind].traits & traits) != 0;
}
/* The host waits in it for the device. */
static inline bool mr_kind_waits(mr_command_id kind) {
    return mr_command_kinds[kind].after != MR_AFTER_NOTHING && !mr_kind_is(kind, MR_TRAIT_QUERY);
}
/* In a stream, about an event: a record or a wait. */
static inline bool mr_kind_is_of_event(mr_command_id kind) {
    return mr_kind_is(kind, MR_TRAIT_SUBMITTED) && mr_command_kinds[kind].part == MR_PART_EVENT;
}
static inline bool mr_command_is(const mr_command *command, uint32_t traits) {
    return mr_kind_is(command->kind, traits);
}
/* cudaFree (R27): the host's, in the order of no stream. */
static inline bool mr_command_frees_at_once(const mr_command *command) {
    return command->kind == MR_COMMAND_FREE && command->u.at_once;
}
/* Whether it belongs to a meeting, and is not its last member. */
static inline bool mr_command_waits_for_others(const mr_command *command) {
    return command->meeting && command->member != mr_meeting_last(command->meeting);
}
static inline bool mr_command_has(const mr_command *command, mr_command_part part) {
    return mr_command_kinds[command->kind].part == part;
}

/* Fills in what of an error is still empty: the operation, the stream and the line of the command that failed. */
void mr_command_blame(const mr_command *command, mr_status error);

/* "record_event of event `e` on stream `s` at race.lua:7 (#12)"; returns `out`. */
const char *mr_command_describe(const mr_command *command, char *out, size_t size);

#endif
