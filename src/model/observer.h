/* An observer sees every command at up to three moments, and changes nothing:
 *
 *   may   before anything is done. It may refuse, and then nothing happens: an observer must not
 *         remember a command from here.
 *   did   the fact. The backend has taken it; or an action of the host (a wait, a successful query, an access) has come
 *         true. Told in the order of the host's calls, except that actions of a host function that runs during a wait
 *         are told before that wait. A refused or failed call, an interrupted wait and a query that said no are never
 *         told.
 *   ran   the device has carried out a part of it: at this time, on this engine. A backend may finish work inside
 *         the call that submits it, so the first `ran` may come before `did`; commands are told apart by their seq. */
#ifndef MR_MODEL_OBSERVER_H
#define MR_MODEL_OBSERVER_H

#include "model/command.h"

#define MR_ENGINE_LIST(X)                                                                          \
    X(NONE, "none") /* records, waits, host functions: no engine of the device */                  \
    X(SM, "sm")                                                                                    \
    X(COPY_IN, "copy-in")                                                                          \
    X(COPY_OUT, "copy-out")                                                                        \
    X(COPY_DEVICE, "copy-device") /* inside a device */                                            \
    X(COPY_PEER, "copy-peer")

typedef enum {
#define X(name, text) MR_ENGINE_##name,
    MR_ENGINE_LIST(X)
#undef X
} mr_engine;

const char *mr_engine_text(mr_engine engine);
/* The engine that carries the command out, on hardware and on the virtual GPU. */
mr_engine mr_engine_of(const mr_command *command);

/* The last thing that a command waited for before the device began it. */
#define MR_CAUSE_LIST(X)                                                                           \
    X(NONE, "none")                                                                                \
    X(STREAM, "same-stream")            /* the operation before it in its stream */                \
    X(EVENT, "event")                   /* an event that its stream waits for */                   \
    X(DEFAULT_STREAM, "default-stream") /* R3: the legacy default stream */                        \
    X(PEER_COPY, "peer-copy")           /* R60: a synchronous copy between devices */              \
    X(MULTIPROCESSORS, "multiprocessors-full")                                                     \
    X(COPY_ENGINE, "copy-engine-busy")                                                             \
    X(CONNECTION, "connection-limit") /* R55 */                                                    \
    X(PAGEABLE, "pageable-memory")    /* R23: the host waited in the call */                       \
    X(HOST, "host")                   /* the host submitted it late */                             \
    X(SYNCHRONIZE, "synchronize")     /* the host stood in a wait before it submitted it */        \
    X(MEMORY, "memory")               /* R30: an allocation that waits for freed memory */         \
    X(HOST_FUNCTION, "host-function") /* R46 */                                                    \
    X(COLLECTIVE, "collective")       /* R61: another member of a collective */                    \
    X(CHOOSER, "chooser")             /* ready, but the chooser of a virtual GPU ran it later */

typedef enum {
#define X(name, text) MR_CAUSE_##name,
    MR_CAUSE_LIST(X)
#undef X
} mr_cause;

const char *mr_cause_text(mr_cause cause);

/* One part of a command, carried out. Times in nanoseconds of the device's clock. */
typedef struct {
    uint64_t ready; /* when all its predecessors were done */
    uint64_t begin, end;
    mr_engine engine;
    uint32_t part,
        parts;        /* from 0: thread blocks of a kernel that began together, slices, or 0 of 1 */
    bool last;        /* the command is done */
    uint32_t blocks;  /* thread blocks of the whole kernel; 0: not known */
    mr_cause held_by; /* the last thing that the command waited for before `begin`; NONE: unknown */
    uint64_t holder;  /* the seq of that command, or 0 */
} mr_run;

typedef enum {
    /* two threads touch the same bytes, one of them writes, and nothing orders them */
    MR_FINDING_RACE,
    /* the second reads bytes that nothing has written; the first is the launch */
    MR_FINDING_UNSET_READ,
    /* this launch was not checked for any of these; only `kind` is set */
    MR_FINDING_NOT_LOOKED,
    MR_FINDING_ORDER,   /* the order of its threads may decide values; only `kind` is set */
    MR_FINDING_STRAYED, /* it accessed memory that no operand describes; only `kind` is set */
} mr_finding_kind;

/* A place in the source of a kernel. */
typedef struct {
    mr_site where;
    uint32_t column; /* 0: unknown */
} mr_kernel_place;

/* A finding inside one launch of the user's kernel. */
typedef struct {
    mr_finding_kind kind;
    const mr_storage *storage; /* NULL: shared or local memory */
    const char *variable;      /* of shared memory: its name in the source; NULL: unknown */
    uint64_t first_byte, last_byte;
    uint8_t first_access, second_access; /* MR_READ | MR_WRITE, in the order in which they ran */
    mr_kernel_place first, second;
    uint64_t count;     /* further such pairs of threads */
    const char *why;    /* a sentence: which threads, which element */
    const char *advice; /* what to do */
} mr_kernel_finding;

/* Bytes that a launch has accessed in the same ways. */
typedef struct {
    uint64_t first, end; /* of the storage */
    uint8_t access; /* MR_READ, MR_WRITE: plain ones; MR_ATOMIC: atomic updates, as of an operand */
} mr_touched_range;

/* The bytes of one storage that a launch of the user's kernel has really accessed. */
typedef struct {
    const mr_storage *storage;
    bool is_known;                  /* false: it failed, or this would take too much memory */
    const mr_touched_range *ranges; /* ascending; none meets another */
    size_t count;
} mr_kernel_touched;

struct mr_observer {
    const char *name;
    /* True: it is also told of commands with the trait ACCOUNT, and so of every request to the backend. */
    bool everything;
    /* True: if a launch replaces the script's commands (mr.graph.auto), the observer is told of these commands, not
     * of the launch. */
    bool as_written;
    /* Optional. Not NULL: the command is not carried out and the error is raised at the caller. */
    mr_status (*may)(mr_observer *observer, const mr_command *command);
    /* Neither this nor `may` may run Lua's collector: a finalizer may use the machine (bind/gcstress.h checks this).
     * Only mr.stress submits and waits here, so a host function may run.
     * `host_waited` is false for a synchronous copy that is under way and whose wait was interrupted. */
    void (*did)(mr_observer *observer, const mr_command *command, bool host_waited);
    /* Optional, with `everything`: called before an action without a `may` that may change memory. */
    void (*before)(mr_observer *observer);
    /* Optional: the call that made the command returns this error. Without an earlier `did`, the command was tried but
     * not carried out, which may have taken time; after its `did`, the call returned an error all the same. `status`
     * NULL: a query said no. Refused commands are not told, and of accounts only those who ask for everything are. */
    void (*failed)(mr_observer *observer, const mr_command *command, const mr_error *status);
    /* Optional. Called while the device moves: it must not call the machine. Real hardware has to be asked for it
     * (runs_start in backend.h), and gives an abridged command. */
    void (*ran)(mr_observer *observer, const mr_command *command, const mr_run *run);
    /* Optional: the machine has returned to an earlier state (simulator.h, restore). The first `runs_told` runs that
     * were told (machine->observing.runs_told at that time) stay valid; later ones are undone. */
    void (*went_back)(mr_observer *observer, uint64_t runs_told);
    /* Optional: seen while a user's kernel ran (virtual GPU only), once for each pair of instructions, when the launch
     * is done. Called while the device moves. */
    void (*found)(mr_observer *observer, const mr_command *command,
                  const mr_kernel_finding *finding);
    /* Optional, with `found`: told once for each storage of an assumed operand when the launch is done, unless
     * MR_FINDING_NOT_LOOKED is told of it. Called while the device moves. */
    void (*touched)(mr_observer *observer, const mr_command *command,
                    const mr_kernel_touched *touched);
    /* Optional, with `found`: returns the bytes of `storage` that nothing had written before `command`, a launch that
     * is about to begin. One bit a byte, lowest bit first, for all of it (malloc). NULL: all are written, or it is not
     * known. */
    uint8_t *(*unset)(mr_observer *observer, const mr_command *command, const mr_storage *storage);
    /* Optional: a host function has returned (R46), on every backend; its accesses have been told before. */
    void (*function_ran)(mr_observer *observer, const mr_command *command);
    /* Optional: a host function has changed the state of the random numbers, for which there is no command. */
    void (*drew)(mr_observer *observer);
    /* Optional: from now on every call fails with this error (R50), until a reset. Called while the device moves. */
    void (*lost)(mr_observer *observer, const mr_error *error);
    /* Optional: the host of this rank goes on, from 1; 0: the one that started the ranks (collective/ranks.h). */
    void (*host_is)(mr_observer *observer, uint16_t rank);
    /* Optional: the script has read something that may differ in another schedule or run, without a command: times,
     * addresses, the progress of work. */
    void (*learned)(mr_observer *observer);
    /* Optional: a finalizer of the script calls a function of ours, at a moment that the collector has chosen. */
    void (*finalized)(mr_observer *observer);
    /* Optional: from now on code outside of millrace may use a tensor's memory, a stream or an event (outside.h).
     * `what`: the call, "dlpack". */
    void (*shared)(mr_observer *observer, const char *what, mr_site where);
    /* Optional, with `as_written`: see mr_observers_reused and mr_observers_renumbered. */
    void (*reused)(mr_observer *observer, mr_storage *storage, uint64_t first, uint64_t last);
    void (*renumbered)(mr_observer *observer, mr_event *event);
    /* Optional: `observed` of these objects is about to become unreachable. */
    void (*storage_gone)(mr_observer *observer, mr_storage *storage);
    void (*stream_gone)(mr_observer *observer, mr_stream *stream);
    void (*event_gone)(mr_observer *observer, mr_event *event);
};

/* The machine does not own it. Observers are told in the order of adding. */
mr_status mr_observer_add(mr_machine *machine, mr_observer *observer);
void mr_observer_remove(mr_machine *machine, mr_observer *observer);

/* For launches that replace commands: whether an observer wants the commands as written, and telling it. */
bool mr_observers_as_written(const mr_machine *machine);
mr_status mr_observers_written(mr_machine *machine, const mr_command *command); /* may, and did */
/* The storage replaces new memory, and the uses of its old contents by commands first..last are complete. */
void mr_observers_reused(mr_machine *machine, mr_storage *storage, uint64_t first, uint64_t last);
/* The last record of the event that was told as written gets the number of its real record. */
void mr_observers_renumbered(mr_machine *machine, mr_event *event);

/* Inside a host function: tells `drew`. */
void mr_observers_drew(mr_machine *machine);
void mr_observers_learned(mr_machine *machine);
void mr_observers_finalized(mr_machine *machine);
void mr_observers_shared(mr_machine *machine, const char *what, mr_site where);
void mr_observers_lost(mr_machine *machine);
/* Sets the running host, machine->rank, and tells the observers. */
void mr_observers_host_is(mr_machine *machine, uint16_t rank);

/* For the bodies of kernels: whether an observer wants findings, telling it, and the `unset` of the first observer that
 * has one. */
bool mr_observers_want_findings(const mr_machine *machine);
void mr_observers_tell_finding(mr_machine *machine, const mr_command *command,
                               const mr_kernel_finding *finding);
bool mr_observers_want_touched(const mr_machine *machine);
void mr_observers_tell_touched(mr_machine *machine, const mr_command *command,
                               const mr_kernel_touched *touched);
uint8_t *mr_observers_unset(const mr_machine *machine, const mr_command *command,
                            const mr_storage *storage);

/* For backends, where machine->observing.ran_listeners is not 0: tells the observers that want to know. */
void mr_observers_ran(mr_machine *machine, const mr_command *command, const mr_run *run);
/* And once a checkpoint was restored: `runs_told` is what the machine's was when it was made. */
void mr_observers_went_back(mr_machine *machine, uint64_t runs_told);

#endif
