/* Waits that Ctrl-C ends, and what they take back: host functions, host memory, the progress of streams. */
#ifndef MR_CUDA_WAIT_WAIT_H
#define MR_CUDA_WAIT_WAIT_H

#include "cuda/state.h"

/* ---- progress.c: what is known of a stream's progress */

/* All its work up to seq is done; all that it was given is (for the legacy stream: and all that the blocking ones
 * were). */
void mr_cuda_stream_done(cuda_stream *stream, uint64_t seq);
void mr_cuda_stream_idle(cuda_stream *stream);
void mr_cuda_stream_release(cuda_stream *stream);
/* Its context goes. The call that closes it comes later from the model. */
void mr_cuda_stream_forget(cuda_stream *stream);
void mr_cuda_stream_shut(cuda_stream *stream); /* takes it out of the device's list */

/* ---- wait.c: waiting that lets Ctrl-C and host functions through */

mr_status mr_cuda_wait_stream(cuda_stream *stream); /* the legacy stream: with blocking ones, P1 */
/* `is_ours`: that it is complete says how far its stream is. */
mr_status mr_cuda_wait_event(cuda_event *event, bool yielding, bool is_ours);
mr_status mr_cuda_wait_device(cuda_device *device);
mr_status mr_cuda_wait_devices(cuda_machine *cuda); /* all of them */
mr_status mr_cuda_device_synchronize(mr_device *device);
mr_status mr_cuda_wait_call(cuda_machine *cuda); /* until the oldest host function has run */

/* Without waiting: nothing is under way on any device, and no host function is pending. May change the current
 * context. */
bool mr_cuda_is_idle(cuda_machine *cuda);

/* Call this before a call of the driver, of cuBLAS or of CUPTI that may wait for a device. It waits until no host
 * function is pending, runs them meanwhile, and can be interrupted. Inside a host function it is an error that says
 * `what` may wait. Afterwards `device` is current, if it has a context. */
mr_status mr_cuda_may_wait(cuda_device *device, const char *what);
/* The same before a call that does wait for the device, or for all devices: waits for it here, so that the call need
 * not, and Ctrl-C ends the wait. */
mr_status mr_cuda_waits(cuda_device *device, const char *what);
mr_status mr_cuda_waits_for_all(cuda_machine *cuda, const char *what); /* then home is current */

/* ---- turn.c: the place of a host function in its stream. The stream says when it gets there, and goes no
 * further until it is told to. */

typedef struct {
    cuda_slot *slot; /* by values in pinned memory, from `number` on... */
    uint64_t number;
    cuda_callback *callback; /* ...or, if slot is NULL, by a callback of the driver */
} cuda_turn;

/* A callback blocks a thread of the driver, which accepts only some and then blocks the caller. On an H200, 55 with a
 * kernel before each passed, and 60 never returned. */
enum { MOST_CALLBACKS = 16 };

bool mr_cuda_turns_by_values(CUdevice device); /* as far as the device and the environment say */
/* Values lie in `block`, of BOUNCED_BYTES. Without it there are callbacks only. */
mr_status mr_cuda_turns_open(cuda_machine *cuda, const cuda_pinned_block *block);
/* Called before the contexts are destroyed; all turns have ended. Returns the memory to free, or NULL. */
void *mr_cuda_turns_close(cuda_machine *cuda);
bool mr_cuda_turn_is_free(const cuda_stream *stream); /* one more does not block */
mr_status mr_cuda_turn_enqueue(cuda_stream *stream, cuda_turn *out_turn);
bool mr_cuda_turn_has_come(const cuda_turn *turn);
void mr_cuda_turn_end(cuda_stream *stream, const cuda_turn *turn); /* the stream may go on */

/* ---- host.c: host functions (R46) */

/* Keeps a reference until the function has run. There is room for one more turn. */
mr_status mr_cuda_host_add(cuda_stream *stream, const mr_command *command);
uint64_t mr_cuda_host_behind(const cuda_machine *cuda); /* submissions after the oldest one */
void mr_cuda_host_run(cuda_machine *cuda);              /* those that their streams have reached */
/* Drops all functions that have not run, without running them. No stream is held after that. */
void mr_cuda_host_abandon(cuda_machine *cuda);
uint64_t mr_cuda_host_number(const cuda_call *call); /* no other call ever has the same */
cuda_stream *mr_cuda_host_stream(const cuda_call *call);

/* ---- room.c: the driver never blocks the thread that must run host functions */

mr_status mr_cuda_host_submit(const mr_command *command); /* waits until there is room */
mr_status mr_cuda_host_limit(cuda_machine *cuda);         /* the slow path of mr_cuda_unblock */

/* Submissions to all streams after a pending host function. Each takes up to three places in the launch queue,
 * which has some 1,000 and may be shared (R55, R56). */
enum { MOST_BEHIND = 256 };

/* Call this before each submission: it keeps their number after a pending host function so low that the driver
 * never blocks the thread that must run it. What submits more than a command's usual work adds it to
 * `submissions`. */
static inline mr_status mr_cuda_unblock(cuda_machine *cuda) {
    return __builtin_expect(!cuda->calls, 1) ? MR_OK : mr_cuda_host_limit(cuda);
}
static inline void mr_cuda_host_run_ready(cuda_machine *cuda) {
    if (cuda->calls) mr_cuda_host_run(cuda);
}

/* ---- pinned.c: the pool of pinned memory, which waits for nothing */

mr_status mr_cuda_pinned_open(cuda_machine *cuda);
void mr_cuda_pinned_close(cuda_machine *cuda);   /* host tensors that outlive it are dead handles */
bool mr_cuda_pinned_is_possible(uint64_t bytes); /* false: more than any computer has */
bool mr_cuda_pinned_has(const cuda_machine *cuda, uint64_t bytes); /* free, and pinned already */
/* Takes a block that is free; false: there is none. */
bool mr_cuda_pinned_find(cuda_machine *cuda, uint64_t bytes, cuda_pinned_block *out_block);
void mr_cuda_pinned_give(cuda_machine *cuda, void *block);
CUresult mr_cuda_pinned_refill(cuda_machine *cuda, uint64_t bytes); /* then one can be found */
void mr_cuda_pinned_release(mr_storage *storage);
bool mr_cuda_pinned_has_unused(const cuda_machine *cuda); /* regions with nothing in use */
void mr_cuda_pinned_drop_unused(cuda_machine *cuda);      /* the devices are idle */
void mr_cuda_pinned_suspend(cuda_machine *cuda);          /* before the context goes: values stay */
/* In the new context. Values stay, also after a failure. */
mr_status mr_cuda_pinned_resume(cuda_machine *cuda);

/* ---- pinning.c: the same with waits, where memory must be pinned or given back first */

mr_status mr_cuda_pinned_alloc(mr_storage *storage);
mr_status mr_cuda_pinned_take(cuda_machine *cuda, uint64_t bytes, cuda_pinned_block *out_block);
/* Values for pageable memory up to this size come by pinned memory of ours. The copy is then queued before the stream's
 * work has ended. That makes a waiting item() a quarter shorter. Beyond, copying once more costs more than that. */
#define BOUNCED_BYTES ((uint64_t)64 << 10)
/* Regions with nothing in use go back to the system, once the devices are idle: the driver waits for them. */
mr_status mr_cuda_pinned_trim(cuda_machine *cuda);

/* ---- hold.c: host memory that the device may be using is kept; where the driver has no event for it, these wait */

void mr_cuda_hold(cuda_stream *stream, mr_storage *storage); /* until its work so far is done */
void mr_cuda_hold_block(cuda_stream *stream, void *block);   /* likewise, of mr_cuda_pinned_take */
void mr_cuda_hold_fence(cuda_stream *stream);  /* later holds wait for something later */
void mr_cuda_hold_collect(cuda_machine *cuda); /* host memory is short */

/* ---- held.c: what is held is let go */

void mr_cuda_hold_release(cuda_stream *stream); /* the stream is idle */
void mr_cuda_hold_poll(cuda_device *device);
void mr_cuda_hold_drop(cuda_device *device); /* nothing is under way there any more */

#endif
