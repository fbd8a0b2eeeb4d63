/* Objects that code outside of millrace can reach: memory, streams and events that the script shares with a C module,
 * with another library of this process, or with another process. millrace does not see what that code does. So each of
 * them is marked, and from then on every claim about an order leaves it out (hazard/claims.h, OUTSIDE). A recorded
 * program that uses one is not exact.
 *
 * Memory that is lent: a loan keeps a tensor's memory until the borrower gives it back, past a free by the script and
 * past the collector. The borrower may do so on any thread, so a loan that is given back waits in a list, which the
 * thread of the machine empties (mr_loans_collect). If the machine closes before, its backend and the memory stay until
 * the process ends.
 *
 * Memory that is borrowed: mr_storage_create_at with mr_storage_keep. It is given back when the last reference goes,
 * and no earlier than the work that uses it has ended. */
#ifndef MR_MODEL_OUTSIDE_H
#define MR_MODEL_OUTSIDE_H

#include "model/command.h"

/* ---- marks: from now on code outside may use it. `what`: the call, "dlpack", for errors that refuse it. */

void mr_share_memory(const mr_caller *caller, mr_storage *storage, const char *what);
void mr_share_stream(const mr_caller *caller, mr_stream *stream, const char *what);
void mr_share_event(const mr_caller *caller, mr_event *event, const char *what);

/* Whether the command uses something that is shared. Quick while nothing ever was. */
bool mr_command_shares_now(const mr_command *command);
static inline bool mr_command_shares(const mr_command *command) {
    return __builtin_expect(command->machine->outside.used, 0) && mr_command_shares_now(command);
}

/* ---- loans */

/* A part of the borrower's structure. */
struct mr_loan {
    mr_loan *next;
    mr_machine *machine;
    mr_tensor *tensor;           /* one reference and one handle owned */
    void (*drop)(mr_loan *loan); /* frees it, on the thread of the machine */
};

/* Lends the memory of `tensor`, which stays as it is. After an error nothing is lent. */
mr_status mr_loan_begin(const mr_caller *caller, mr_tensor *tensor, mr_loan *loan);
/* By any thread, once. The loan must not be touched afterwards. */
void mr_loan_end(mr_loan *loan);
/* Releases the loans that were given back; not inside a host function. */
void mr_loans_collect(mr_machine *machine);
/* Call this before mr_machine_reset: exported device memory must stay. Memory of a lost device is gone anyway. */
mr_status mr_loans_allow_reset(mr_machine *machine);

/* ---- what a backend of real hardware shares */

#define MR_IPC_HANDLE_BYTES 64

/* The facts that a handle of a stream tells. */
typedef struct {
    mr_stream *known; /* it is one of ours, which is borrowed; else NULL, and: */
    mr_device *device;
    bool blocking;
    int priority;
} mr_stream_look;

struct mr_outside_slots {
    /* The driver's handle, as a number. */
    uint64_t (*stream_handle)(mr_stream *stream);
    /* Refuses a handle that is not a stream of a primary context, if that can be detected. stream_open takes
     * stream->foreign. */
    mr_status (*stream_look)(mr_machine *machine, uint64_t handle, mr_stream_look *out_look);

    /* Whether that is memory of the device, or pinned memory of the host (`device` NULL), as DLPack's capsule says. */
    mr_status (*memory_check)(mr_machine *machine, mr_device *device, uint64_t address,
                              uint64_t *out_address);

    /* Memory that processes can share. It goes back by memory_unshare, which waits for nothing. */
    mr_status (*memory_share)(mr_device *device, uint64_t bytes, uint64_t *out_address);
    void (*memory_unshare)(mr_device *device, uint64_t address);
    mr_status (*memory_handle)(const mr_storage *storage, char out_handle[MR_IPC_HANDLE_BYTES],
                               uint64_t *out_offset);
    /* Memory of another process. It is closed by memory_close, which waits for nothing. */
    mr_status (*memory_open)(mr_device *device, const char handle[MR_IPC_HANDLE_BYTES],
                             uint64_t *out_address, uint64_t *out_bytes);
    void (*memory_close)(mr_device *device, uint64_t address);

    /* Both give an event without a record its device. */
    mr_status (*event_handle)(mr_event *event, mr_device *device,
                              char out_handle[MR_IPC_HANDLE_BYTES]);
    mr_status (*event_import)(mr_event *event, mr_device *device,
                              const char handle[MR_IPC_HANDLE_BYTES]);
};

/* The slots, or NOT_SUPPORTED with the reason: `what` ("s.handle") needs a real GPU, because `why`. */
mr_status mr_outside_of(const mr_machine *machine, const char *what, const char *why,
                        const mr_outside_slots **out_slots);

#endif
