/* The machine: the devices of one backend, what is current, and the one door through which every
 * action goes. One machine belongs to one Lua state and is used by one thread, so nothing here is
 * atomic; a backend's own threads may only post to queues of that backend. */
#ifndef MR_MODEL_MACHINE_H
#define MR_MODEL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slab.h"
#include "base/status.h"
#include "base/vec.h"

typedef struct mr_machine mr_machine;
typedef struct mr_device mr_device;
typedef struct mr_stream mr_stream;
typedef struct mr_event mr_event;
typedef struct mr_storage mr_storage;
typedef struct mr_tensor mr_tensor;
typedef struct mr_action mr_action;
typedef struct mr_backend mr_backend;
typedef struct mr_observer mr_observer;
typedef struct mr_op mr_op;

struct mr_machine {
    const mr_backend *backend;
    void *backend_state;

    mr_device **devices;
    int device_count;
    mr_device *first_device;   /* current at the start and after a reset; `open` may set it */
    mr_device *current_device; /* R57: never NULL once open */

    /* mr.reset() adds one; an object of an earlier epoch answers every use with invalid-handle. */
    uint32_t epoch;
    mr_status lost; /* the sticky error (R50) since when every call fails, or NULL; owned */

    mr_site where;     /* the script line of the call in progress: bind/ sets it, actions copy it */
    uint64_t next_seq; /* of the next action; starts at 1 */
    uint32_t next_stream; /* ids count from 1 over all devices, in order of creation */
    uint32_t next_event;
    uint64_t next_storage;
    uint64_t next_tensor;

    uint64_t seed;  /* mr.manual_seed */
    uint64_t draws; /* random operations since then: the Philox offset of the next one */

    bool launch_blocking; /* R52 */
    bool collecting;      /* the collect hook runs, in the middle of an allocation: no reset then */
    bool allow_tf32; /* products of f32 may be computed with 10-bit mantissas on tensor cores */
    bool in_host_function; /* R46: a host function runs; what would touch the device is refused */
    const mr_action *host_function; /* which one: its accesses count as its stream's */
    mr_status host_function_error;  /* raised at the wait that drained it; owned, or NULL */

    mr_slab actions;           /* each sizeof(mr_action) + backend->action_extra bytes */
    mr_slab storages, tensors; /* mr_storage; mr_tensor, whose size src/tensor knows */
    MR_VEC(mr_observer *) observers;
    MR_VEC(mr_storage *) deferred_frees; /* dropped by the collector in a host function */

    uint64_t host_live_bytes; /* pinned and pageable storages */
    uint64_t host_peak_bytes;
    uint64_t host_allocations; /* live ones */
    uint64_t memory_limit; /* --sandbox: device + host bytes that may be live at once; 0: none */
    uint64_t bytes_since_collect; /* allocated since bind/ last ran the collector for it */

    /* What a person would call the operations and copies that come now, where one call makes several of
     * them or they are an operation of another name: "item", "ones". NULL: as they are called. */
    const char *called;

    /* Hooks of whoever embeds the machine; each may be NULL. */
    void *hook_context;
    bool (*interrupted)(
        void *context);             /* polled while waiting: true ends the wait with INTERRUPTED */
    void (*collect)(void *context); /* memory is short: drop what is garbage, then we try again */
};

typedef struct {
    const char *device;  /* "virtual", "virtual:4"; NULL: "virtual" */
    const char *model;   /* device model of the virtual GPU: a name or a path; NULL: "h200" */
    const char *chooser; /* NULL: "timed" */
} mr_machine_options;

/* Opens every device of `backend`. On failure *out_machine is NULL and nothing is left behind. */
mr_status mr_machine_open(const mr_backend *backend, const mr_machine_options *options,
                          mr_machine **out_machine);

/* Runs nothing that is still pending: the objects' memory goes, their effects are lost. Streams,
 * events and tensors that outlive the machine are dead handles; releasing them stays legal. */
void mr_machine_close(mr_machine *machine);

/* A fresh device (mr.reset): pending work is dropped, device memory is gone, streams, events and
 * device tensors of before answer with invalid-handle. Host tensors keep their values. */
mr_status mr_machine_reset(mr_machine *machine);

/* NULL when calls may reach the device; else a copy of the sticky error (R50), or not-permitted
 * inside a host function (R46). Every front-door function starts with it. */
mr_status mr_machine_refuse(mr_machine *machine);
static inline mr_status mr_machine_ready(mr_machine *machine) {
    bool ready = !machine->lost && !machine->in_host_function;
    return __builtin_expect(ready, 1) ? MR_OK : mr_machine_refuse(machine);
}

/* Makes `device` current (R57); waits for nothing. */
void mr_machine_set_device(mr_machine *machine, mr_device *device);

/* Host waits for all streams of one device (R10). */
mr_status mr_device_synchronize(mr_device *device);

/* The host's clock in nanoseconds: virtual on the virtual GPU. */
uint64_t mr_machine_time(mr_machine *machine);

void mr_machine_seed(mr_machine *machine, uint64_t seed);

/* Records the device's failure as sticky and returns a copy to raise; takes `error`. */
mr_status mr_machine_lose(mr_machine *machine, mr_status error);

/* One step of a simulated device (see model/simulator.h), with the guards of every other wait. */
mr_status mr_machine_step(mr_machine *machine, mr_stream *stream, bool *out_moved, char *out_text,
                          size_t text_size);

/* For backends, on the Lua thread, with `action` at the head of its stream: calls the host function
 * (R46) with the guards around it. Does not complete the action. */
void mr_machine_run_host_function(mr_machine *machine, mr_action *action);

#endif
