/* The machine: the devices of one backend, and what is current. One machine belongs to one Lua state and is used by one
 * thread at a time, so nothing here is atomic. A backend's own threads may only post to queues of that backend.
 * Machines in several threads share what docs/design.md lists, and that is locked or never changes. */
#ifndef MR_MODEL_MACHINE_H
#define MR_MODEL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/name.h"
#include "base/status.h"
#include "model/machine_parts.h"

typedef struct mr_machine mr_machine;
typedef struct mr_device mr_device;
typedef struct mr_stream mr_stream;
typedef struct mr_event mr_event;
typedef struct mr_tensor mr_tensor;
typedef struct mr_operand mr_operand;
typedef struct mr_backend mr_backend;
typedef struct mr_op mr_op;
typedef struct mr_outside_slots mr_outside_slots;

struct mr_machine {
    const mr_backend *backend;
    void *backend_state;

    mr_device **devices;
    int device_count;
    mr_device *first_device;   /* current at the start and after a reset; `open` may set it */
    mr_device *current_device; /* R57: never NULL once open */

    /* mr.reset() adds one; each use of an object from an earlier epoch returns invalid-handle. */
    uint32_t epoch;
    uint16_t rank;        /* the running one, from 1 (collective/ranks.h); 0: none */
    uint16_t payer;       /* the rank with the running clock, if not `rank`; 0: it is `rank` */
    bool launch_blocking; /* R52 */
    /* the sticky error (R50), with which every call fails from then on, or NULL; owned */
    mr_status lost;
    mr_status deferred_error; /* see mr_machine_defer_error; owned, or NULL */
    mr_interned files;        /* that sites name */

    mr_machine_counts counts;
    mr_machine_random random;
    mr_machine_memory memory;
    mr_host_memory host_memory;
    mr_machine_objects objects;
    mr_machine_bodies bodies;
    mr_machine_function host_function;
    mr_machine_captures captures;
    mr_machine_numbers numbers;
    mr_machine_steps steps;
    mr_machine_observing observing;
    mr_machine_host host;
    mr_machine_hosts hosts;
    mr_machine_outside outside;
    mr_machine_hooks hooks;
};

static inline void mr_host_times_add(mr_host_times *times, uint64_t begin, uint64_t end) {
    if (end <= begin) return;
    times->total += end - begin;
    times->begin = begin;
    times->end = end;
}
/* For backends: the host waited for a device from `begin` to `end` (of mr_machine_time). */
static inline void mr_machine_host_stood(mr_machine *machine, uint64_t begin, uint64_t end) {
    mr_host_times_add(&machine->host.waits, begin, end);
}
/* Likewise, a chooser moved the device on, and the host's clock followed: no call took that time. */
static inline void mr_machine_host_followed(mr_machine *machine, uint64_t begin, uint64_t end) {
    mr_host_times_add(&machine->host.follows, begin, end);
}
/* Likewise, it worked. */
static inline void mr_machine_host_worked(mr_machine *machine, uint64_t begin, uint64_t end) {
    mr_host_times_add(&machine->host.works, begin, end);
}

/* The caller of a function: the machine, and the line of the script. Every function that makes a command, or an object
 * that remembers the line that made it, takes one as its first argument. */
typedef struct {
    mr_machine *machine;
    mr_site where; /* the script's line; no file: there is none, as in a finalizer */
    /* The script's name for the operations and copies of this call: "item", "ones". Set where one call makes several of
     * them, or one of another name. Static; NULL: their own names. */
    const char *name;
    bool in_place; /* its commands take the place of others (observer.h, as_written) */
} mr_caller;

typedef struct {
    const char *device;  /* "virtual", "virtual:4"; NULL: "virtual" */
    const char *model;   /* device model of the virtual GPU: a name or a path; NULL: "h200" */
    const char *chooser; /* NULL: "timed" */
    /* limit for memory of host and simulated devices together; 0: the available memory */
    uint64_t memory_limit;
} mr_machine_options;

/* Opens every device of `backend`. On failure *out_machine is NULL and nothing is left behind. */
mr_status mr_machine_open(const mr_backend *backend, const mr_machine_options *options,
                          mr_machine **out_machine);

/* Pending work is not carried out: its memory is released, and its effects are lost. Streams, events and tensors that
 * outlive the machine are dead handles; releasing them stays legal. */
void mr_machine_close(mr_machine *machine);

/* A fresh device (mr.reset): pending work is dropped, device memory is gone, each use of earlier streams, events and
 * device tensors returns invalid-handle. Host tensors keep their values. */
mr_status mr_machine_reset(const mr_caller *caller);

/* NULL when calls may reach the device; else a copy of the sticky error (R50), or not-permitted
 * inside a host function (R46). Every function that reaches the device begins
 * with mr_machine_ready. */
mr_status mr_machine_refuse(mr_machine *machine);
static inline mr_status mr_machine_ready(mr_machine *machine) {
    bool ready = !machine->lost && !machine->host_function.running;
    return __builtin_expect(ready, 1) ? MR_OK : mr_machine_refuse(machine);
}

/* Makes `device` current (R57); waits for nothing. */
void mr_machine_set_device(mr_machine *machine, mr_device *device);

/* Host waits for all streams of one device (R10). */
mr_status mr_device_synchronize(const mr_caller *caller, mr_device *device);
/* The same without telling observers: for callers that need host functions to have run, when the script has not asked
 * for a wait. */
mr_status mr_device_drain(mr_device *device);
mr_status mr_machine_drain(mr_machine *machine); /* all devices, up to the first error */

/* The host's clock in nanoseconds: virtual on the virtual GPU. */
uint64_t mr_machine_time(mr_machine *machine);

void mr_machine_seed(mr_machine *machine, uint64_t seed);

void mr_machine_set_launch_blocking(mr_machine *machine, bool on); /* R52 */

/* Records the device's failure as sticky and returns a copy to raise; takes `error`. */
mr_status mr_machine_lose(mr_machine *machine, mr_status error);

/* The failure of a command that lost no device: the call in which the device got to it raises it, or the next
 * one; of several, the first. Takes `error`, and fills in the failed command. */
void mr_machine_defer_error(mr_machine *machine, const mr_command *command, mr_status error);

/* For backends, on the Lua thread, with `command` at the head of its stream: calls the host function
 * (R46) with the guards around it. Does not complete the command. */
void mr_machine_run_host_function(mr_machine *machine, const mr_command *command);

#endif
