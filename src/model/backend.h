/* The contract of a backend, which carries commands out.
 *
 * The model has validated everything before it calls (open handles, right devices, sizes, views in
 * range), has counted references, and has told the observers. A backend only does the work. All
 * slots are called on the Lua thread. Slots that wait poll machine->hooks.interrupted and return
 * INTERRUPTED promptly, with the device's state as consistent as if the wait had not been tried.
 * A device failure is returned by the first slot that notices it, filled in with op, stream and
 * line of the failing command, after mr_machine_lose(). Slots may be NULL only where that is said. */
#ifndef MR_MODEL_BACKEND_H
#define MR_MODEL_BACKEND_H

#include "model/command.h"
#include "model/simulator.h"

struct mr_kernel_code; /* ops/kernel.h */

/* A launch as steps (graph/lower.c): lane 0 is the stream of the launch, each other lane has an order of its own. */
typedef enum { MR_STEP_NODE, MR_STEP_RECORD, MR_STEP_WAIT } mr_graph_step_kind;
typedef struct {
    mr_graph_step_kind kind;
    uint32_t lane;
    uint32_t event;            /* RECORD, WAIT: below mr_graph_plan.events */
    const mr_command *command; /* NODE: as it was captured */
} mr_graph_step;
typedef struct {
    const mr_graph_step *steps;
    size_t count;
    uint32_t lanes, events;
    /* out: why an earlier graph could not be changed, so that there is a new one; else untouched */
    char *refusal;
    size_t refusal_size;
} mr_graph_plan;
typedef struct {
    uint64_t seq;          /* of no other command */
    uint64_t seed, offset; /* Philox: commands that draw add their own offset to this one */
} mr_graph_launch;

#define MR_COMMUNICATOR_ID 128 /* bytes */

/* The arguments with which a rank that is a process joins a communicator. */
typedef struct {
    const char *id; /* MR_COMMUNICATOR_ID bytes */
    uint32_t rank, size;
    /* Asked again and again while the host waits for a device, until the link is closed: an error ends the wait. It may
     * abort the link. `waited`: seconds so far. */
    mr_status (*watch)(void *context, double waited);
    void *context;
} mr_membership;

struct mr_backend {
    const char *name; /* "virtual", "cuda": what mr.backend shows */

    /* Sets machine->backend_state, ->devices and ->device_count: each device zeroed but for
     * machine, index, properties and impl; ->first_device if it is not devices[0]. Streams are opened by
     * the model afterwards. */
    mr_status (*open)(mr_machine *machine, const mr_machine_options *options);
    /* Drops pending commands (mr_command_release each), frees everything; default streams have
     * been closed; streams that only pending commands hold close as those are destroyed. Frees machine->devices too. */
    void (*close)(mr_machine *machine);
    /* The recovery from R50: drops pending commands, forgets all memory and the failure. The model bumps the epoch and
     * reopens default streams; old streams and events still get their close call. */
    mr_status (*reset)(mr_machine *machine);

    /* Sets stream->impl. */
    mr_status (*stream_open)(mr_stream *stream);
    /* R9: at once; its pending work still completes. Afterwards the model does not use impl. */
    void (*stream_close)(mr_stream *stream);
    mr_status (*stream_query)(mr_stream *stream, bool *out_done);
    mr_status (*stream_synchronize)(mr_stream *stream); /* legacy: all blocking streams, P1 */
    mr_status (*device_synchronize)(mr_device *device);

    mr_status (*event_open)(mr_event *event);
    void (*event_close)(mr_event *event); /* R19: waits already submitted stay valid */
    /* Only called for events that have been recorded. */
    mr_status (*event_query)(mr_event *event, bool *out_done);
    mr_status (*event_synchronize)(mr_event *event);
    /* Both timed, recorded, of one device. not-ready when either is incomplete. */
    mr_status (*event_elapsed)(mr_event *from, mr_event *to, double *out_milliseconds);

    /* Finds memory for storage->bytes (0 is served as 1) of storage->kind and sets address, host,
     * impl. Device memory: in the order of storage->stream, by R28-R31; the model submits the ALLOC
     * command next. OUT_OF_MEMORY leaves all as it was.
     * No zeroing is promised. */
    mr_status (*memory_alloc)(mr_storage *storage);
    /* Host memory only: the last reference is gone, nothing pending touches it. */
    void (*memory_release)(mr_storage *storage);
    uint64_t (*memory_reserved)(mr_device *device);
    mr_status (*memory_trim)(mr_device *device);
    /* cudaFree's wait, called before the FREE command of mode SYNC. The backend decides what it waits for (R27; a
     * setting on the virtual GPU). */
    mr_status (*memory_free_wait)(mr_storage *storage);

    /* Enqueues one command of a kind with the trait SUBMITTED, and keeps a reference to it for as
     * long as it needs one. *out_taken (false at the call) becomes true when the device will carry it out. It will on
     * success, and for a synchronous copy whose wait was INTERRUPTED after it had begun. Blocks the host only where
     * CUDA does: a full launch queue (R56), copies by the table of R20-R24. FREE: memory goes back to the pool in the
     * stream's order (at_once: now), after the work submitted so far to each stream in storage->used_by (R33). Never
     * fails for FREE. */
    mr_status (*submit)(const mr_command *command, bool *out_taken);

    /* The host is about to touch its own memory, which copies may still be reading or writing:
     * brings the device to the host's present. Called often; quick when nothing is pending. */
    mr_status (*host_access)(mr_machine *machine);
    /* Likewise, after many accesses during which its clock stood still: the access counts as a query of all pending
     * work. NULL: the device goes on by itself. */
    mr_status (*host_polls)(mr_machine *machine);
    /* The host is about to write these bytes of its own memory; only called while machine->steps.watches_writes. */
    void (*host_writes)(mr_machine *machine, const mr_operand *operands, uint32_t count);
    /* The host computed for a while on `bytes` of its own memory; may be NULL. */
    void (*host_work)(mr_machine *machine, uint64_t bytes);
    uint64_t (*host_time)(mr_machine *machine); /* nanoseconds */

    /* The user's kernels. Loads a code for a device, so that its first launch costs no more than others. Returns the
     * address of one of its variables; 0: it does not exist, since no kernel uses it. The backend owns the variable
     * while the code is referenced. Both NULL: the backend runs the row's body, and variables are ordinary memory. */
    mr_status (*kernels_load)(mr_device *device, struct mr_kernel_code *code);
    mr_status (*kernels_variable)(mr_device *device, struct mr_kernel_code *code, const char *name,
                                  uint64_t *out_address);

    /* The number of registers of a thread of the kernel on the device; optional: NULL if it is unknown. */
    mr_status (*kernels_registers)(mr_device *device, struct mr_kernel_code *code,
                                   const char *symbol, int *out_registers);

    /* Graphs of the backend's own (R42). All three NULL: a launch is its commands, one submission each.
     * graph_build: the plan may go after the call; the backend retains the commands. *graph is NULL, or an earlier
     * graph with as many nodes and edges, which the new one takes over, whether or not the call fails. Launches of it
     * may be pending. An error says that the backend cannot build this graph, or not now: *graph is then NULL, and its
     * launches are submitted as commands. graph_launch: all order before it, also after earlier launches of the graph,
     * has been submitted as waits. graph_drop: launches may be pending, which run all the same. */
    mr_status (*graph_build)(const mr_graph_plan *plan, mr_stream *stream, void **graph);
    mr_status (*graph_launch)(void *graph, mr_stream *stream, const mr_graph_launch *launch);
    void (*graph_drop)(void *graph);

    /* When commands ran, for a device that does not say so by itself. All three NULL: observers with a `ran` are told
     * whenever the device moves (the virtual GPU). Otherwise they are told of commands that were submitted between
     * `runs_start` and `runs_stop`. These two are counted: each start needs a stop.
     *
     * Observers are told of commands with the trait WORK for which a device computed or copied. mr_run.begin and ->end
     * are on the axis of mr_machine_time; ->ready is ->begin, as nothing else is measured. An observer gets an abridged
     * command. It has `kind`, `seq`, `machine`, `where` and `name`, and a copy also has its direction and its bytes. It
     * has no stream and no operands, and must not be kept. runs_flush and runs_stop tell of the commands, and `submit`
     * does when many of them are over. Each command has one run, and those of one stream come in their order.
     *
     * runs_start may wait for the devices. *out_how: a sentence, static, that says how times are found. An error
     * (OUT_OF_MEMORY, INTERRUPTED, a lost device): nothing has been started. runs_flush tells of all that is over,
     * without waiting for the device. A later call tells of the commands that still run. runs_stop flushes. Commands
     * that are still pending then are never reported, unless another start is active: synchronize before. */
    mr_status (*runs_start)(mr_machine *machine, const char **out_how);
    void (*runs_flush)(mr_machine *machine);
    void (*runs_stop)(mr_machine *machine);

    /* Latches: numbers from 0 to `count` - 1, each closed at first and then open for good. A stream waits at one until
     * it is open, and opens one when it gets there. explore/follow.c uses them to choose an order that CUDA leaves
     * open. All NULL, or latches_begin says NOT_SUPPORTED: the device cannot wait for a value in memory.
     *
     * One set at a time. `patience_ns`: if no latch has been opened for so long, all are opened, since the streams may
     * be stuck. So the host may block in a wait, or in the driver, behind a latch. latches_begin and latches_end need
     * an idle machine; *out_gave_up: patience has ended. latch_open is by the host, at once. latch_is_open also runs
     * the host functions that were reached, and returns a failure of the device. */
    mr_status (*latches_begin)(mr_machine *machine, uint32_t count, uint64_t patience_ns);
    void (*latches_end)(mr_machine *machine, bool *out_gave_up);
    mr_status (*latch_wait)(mr_stream *stream, uint32_t latch);
    mr_status (*latch_open_behind)(mr_stream *stream, uint32_t latch);
    void (*latch_open)(mr_machine *machine, uint32_t latch);
    mr_status (*latch_is_open)(mr_device *device, uint32_t latch, bool *out_open);

    /* The backend's part of a communicator, whose rank k is on devices[k]. It becomes the `link` of meetings, and is
     * valid until it is closed or the machine is reset. Work submitted before the close continues. Both NULL: the
     * backend needs only the meeting. */
    mr_status (*communicator_open)(mr_device *const *devices, uint32_t count, void **out_link);
    void (*communicator_close)(mr_machine *machine, void *link);
    /* The same if each rank is a process; NULL: not available. One rank makes the id, and all join by it:
     * communicator_join blocks until all have joined. communicator_abort ends submitted work at once; then the link can
     * only be closed. */
    mr_status (*communicator_id)(mr_machine *machine, char out_id[MR_COMMUNICATOR_ID]);
    mr_status (*communicator_join)(mr_device *device, const mr_membership *membership,
                                   void **out_link);
    void (*communicator_abort)(mr_machine *machine, void *link);

    bool (*can_access_peer)(mr_device *device, mr_device *peer);
    mr_status (*enable_peer_access)(mr_device *device, mr_device *peer); /* second time: 704 */
    /* The next time is a first one again. A real device may keep its access. */
    void (*forget_peer_access)(mr_device *device, mr_device *peer);

    /* Whether a user's kernel may have failed, and no call has returned the error yet. False while a host function is
     * pending, because a wait would run it. NULL: a simulation, which shows what is pending. */
    bool (*kernel_may_fail)(const mr_machine *machine);

    /* for sharing with code outside (outside.h); NULL: a simulation */
    const mr_outside_slots *outside;
    const mr_simulator *simulator; /* NULL: real hardware, which cannot be stepped */
};

#endif
