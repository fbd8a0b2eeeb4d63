/* The slots that only a simulated device has: it can be stepped and inspected, and has settings. The slots behind
 * `mr.machine`. */
#ifndef MR_MODEL_SIMULATOR_H
#define MR_MODEL_SIMULATOR_H

#include "model/observer.h"

/* One pending command, as `mr.machine.queues()` shows it. */
typedef struct {
    const mr_command *command;
    bool running; /* started, not finished */
    bool ready;   /* could run next: all it waits for is done */
    /* a pending command of another stream that it waits for, or NULL */
    const mr_command *waits_for;
    /* Why it does not run now; NONE: it could. STREAM: the one before it in its stream. MULTIPROCESSORS and
     * COPY_ENGINE: `waits_for` is one that runs there. HOST: it may begin at `start`, which is later than the host's
     * clock. */
    mr_cause held_by;
    uint64_t start;       /* nanoseconds; of one that is ready */
    uint32_t part, parts; /* `part` of `parts` are carried out; 0 of 1 before it has begun */
} mr_pending;

typedef struct {
    const char *name; /* "launch_queue_depth" */
    const char *type; /* "integer", "boolean", "bytes" */
    const char *help; /* one sentence, with the rule */
} mr_setting_info;

/* A piece of device memory that is in use. */
typedef struct {
    uint64_t first, end; /* addresses */
    void *host;          /* where the byte at `first` is */
} mr_memory_block;

typedef struct mr_chooser mr_chooser;               /* model/chooser.h */
typedef struct mr_checkpoint mr_checkpoint;         /* the backend's */
typedef struct mr_history_limits mr_history_limits; /* model/history.h */

/* Nanoseconds. */
typedef struct {
    /* from the end of a call to the begin; of work: from its begin, see `launch` */
    uint64_t latency;
    uint64_t launch, copy_call; /* the last part of a call, which submits an operation or a copy */
    uint64_t wait;              /* from the end of work that another stream waits for */
    uint64_t handover;          /* from the end of work on one engine to work on another */
} mr_lags;

typedef struct mr_simulator {
    /* "timed", "adversarial", "random:SEED", "manual". Legal at any time: pending work goes on under
     * the new one. Unknown names: invalid-argument with the list of known ones. */
    mr_status (*set_chooser)(mr_machine *machine, const char *name);
    /* A chooser of the embedding program, which the machine destroys at the next change. */
    mr_status (*use_chooser)(mr_machine *machine, mr_chooser *chooser);
    const char *(*chooser)(mr_machine *machine);

    /* Makes the device take one step of `stream` (NULL: whatever the chooser picks). *out_command is
     * what moved, valid until the next call, or NULL when nothing can. *out_finished: it is done (the
     * command is then already destroyed and only its description in `out_text` is left). */
    mr_status (*step)(mr_machine *machine, mr_stream *stream, bool *out_moved, char *out_text,
                      size_t text_size);

    /* The host does something else for so long. */
    mr_status (*pass)(mr_machine *machine, uint64_t nanoseconds);

    /* Calls `see` for each pending command: streams in order of creation, oldest first in each. */
    void (*pending)(mr_machine *machine, void (*see)(void *context, const mr_pending *pending),
                    void *context);

    uint64_t (*device_time)(mr_machine *machine); /* nanoseconds: how far the devices have got */
    /* The host's clock and how far its devices have got, in this order: for several hosts that take turns, each with
     * clocks of its own (collective/ranks.h). */
    void (*clocks)(const mr_machine *machine, uint64_t out_clocks[2]);
    void (*set_clocks)(mr_machine *machine, const uint64_t clocks[2]);

    /* Lets the devices go on until this member of a meeting has begun, and says when that is; its clocks stay for the
     * host as they are. Other members need not be submitted yet. */
    mr_status (*begin_member)(mr_machine *machine, const mr_command *member, uint64_t *out_time);

    /* A name ("h200"), or a path to a model file. Only while nothing is pending and no device memory
     * is live, else not-permitted. */
    mr_status (*set_model)(mr_machine *machine, const char *name);
    const char *(*model)(mr_machine *machine);

    /* Settings: what CUDA leaves open ([M] rules), one documented default each. */
    const mr_setting_info *(*settings)(size_t *out_count);
    mr_status (*get_setting)(mr_machine *machine, const char *name, int64_t *out_value);
    mr_status (*set_setting)(mr_machine *machine, const char *name, int64_t value);

    /* After a device was lost: nothing is pending, and memory, streams and modules are as they were left. No real CUDA
     * device can do that. The model clears its own record of the loss (mr_machine_revive). */
    void (*revive)(mr_machine *machine);

    /* The piece of any device's memory in which `address` lies; false: none is in use there. For bodies, also on
     * several threads: nothing is allocated or freed while they run. */
    bool (*memory_at)(mr_machine *machine, uint64_t address, mr_memory_block *out_block);
    /* A body is about to write there, maybe beyond its command's operands: for checkpoints. One thread at a time. */
    void (*will_write)(mr_machine *machine, const mr_memory_block *block);

    /* The state of the machine at this moment: what is pending and how far it has got, clocks, memory pools, the bytes
     * of all memory, what the chooser knows. Checkpoints are a stack: restoring one, as often as one likes, drops those
     * made after it. Their cost depends on the changes in between and on the machine's own records, not on the amount
     * of memory.
     *
     * Between the two the caller may let the device advance (step, waits). It may also submit, if it restores the
     * model's own state itself (objects made and freed, clocks of observers). A backend knows of the device only. A new
     * chooser, mr.reset and whatever lays out memory anew end all checkpoints: not-permitted. It is not permitted in a
     * host function, either. A device that was lost at the checkpoint is lost again; one that was lost later is usable
     * again. */
    mr_status (*checkpoint)(mr_machine *machine, mr_checkpoint **out_checkpoint);
    /* One of a history of steps (history.h): restoring it changes device memory only. It
     * allocates and frees no host memory. Streams and events that the host has closed stay
     * closed, and host memory that was made after the checkpoint keeps its contents. A lost
     * device has none. */
    mr_status (*checkpoint_step)(mr_machine *machine, mr_checkpoint **out_checkpoint);
    mr_status (*restore)(mr_machine *machine, mr_checkpoint *checkpoint);
    /* And those made after it; accepts NULL. Drop each before the machine closes. */
    void (*checkpoint_drop)(mr_machine *machine, mr_checkpoint *checkpoint);
    /* Drops those made before `keep`, which are then not to be dropped again. */
    void (*checkpoint_forget)(mr_machine *machine, mr_checkpoint *keep);
    /* Whether it is host memory that no checkpoint covers. */
    bool (*is_new)(mr_machine *machine, const mr_storage *storage);
    /* The delays between a call, or the end of work, and the begin of work that waited for it, under a timed
     * chooser. */
    void (*lags)(mr_machine *machine, mr_lags *out_lags);
    /* The host memory that all of them take. SIZE_MAX: that was more than there is, or machine->steps.limit, and none
     * can be restored any more. */
    size_t (*checkpoint_bytes)(mr_machine *machine);
    /* Freed host memory that is kept for the next allocations, where memory.host_begins_zero. */
    size_t (*spare_bytes)(mr_machine *machine);
    void (*drop_spares)(mr_machine *machine, size_t bytes); /* at least so many, or all */
} mr_simulator;

/* The same slots for callers above the model: observers that ask for everything are told. */
mr_status mr_machine_step(mr_machine *machine, mr_stream *stream, bool *out_moved, char *out_text,
                          size_t text_size);
/* Undoes steps, including failed ones, and passed time, as far as the history reaches back (history.h). */
mr_status mr_machine_back(mr_machine *machine, uint32_t count, uint32_t *out_undone);
mr_status mr_machine_pass(mr_machine *machine, uint64_t nanoseconds);
mr_status mr_machine_set_history(mr_machine *machine, const mr_history_limits *limits);
mr_status mr_machine_set_chooser(mr_machine *machine, const char *name);
mr_status mr_machine_set_model(mr_machine *machine, const char *name);
mr_status mr_machine_set_setting(mr_machine *machine, const char *name, int64_t value);
void mr_machine_pending(mr_machine *machine, void (*see)(void *context, const mr_pending *pending),
                        void *context);
uint64_t mr_machine_device_time(mr_machine *machine);
/* Makes lost devices usable again. Objects made before and during the loss stay valid, unlike after mr_machine_reset.
 * Commands that were pending at the loss are dropped; drains tell observers so. */
void mr_machine_revive(mr_machine *machine);

#endif
