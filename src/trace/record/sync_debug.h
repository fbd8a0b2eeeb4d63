/* Names the calls in which the host waits for a device although the script does not ask for a wait: an observer, after
 * PyTorch's torch.cuda.set_sync_debug_mode. Calls of synchronize() are expected to wait and are not named. */
#ifndef MR_TRACE_SYNC_DEBUG_H
#define MR_TRACE_SYNC_DEBUG_H

#include "model/observer.h"

typedef struct mr_sync_debug mr_sync_debug;

typedef enum { MR_SYNC_OFF, MR_SYNC_WARN, MR_SYNC_ERROR } mr_sync_mode;

/* name, the reason of the host's wait, the way to avoid it: parts of a message */
#define MR_HIDDEN_WAIT_LIST(X)                                                                     \
    X(READ, "the host reads what a device computes",                                               \
      "keep it on the device, or copy it to pinned memory with non_blocking=true and wait where "  \
      "it is used")                                                                                \
    X(COPY, "the copy is a blocking one",                                                          \
      "use non_blocking=true (mr.memcpy_async) with pinned memory, and wait where it is used")     \
    X(PAGEABLE, "a copy of pageable memory waits (R23)", "use pinned memory: pinned=true")         \
    X(FREE, "freeing at once waits for the device (cudaFree), or may (R27)",                       \
      "use t:free(), which frees in the order of a stream")                                        \
    X(QUEUE, "the launch queue of the stream is full (R56)", "submit less ahead, or larger kernels")

typedef enum {
#define X(name, because, instead) MR_HIDDEN_##name,
    MR_HIDDEN_WAIT_LIST(X)
#undef X
} mr_hidden_kind;

typedef struct {
    mr_hidden_kind kind;
    const char *name; /* "item" */
    mr_site where;
    const mr_stream *stream; /* or NULL */
    uint64_t waited;         /* nanoseconds */
    const char *because, *instead;
} mr_hidden_wait;

/* In mode off. `tell` is called in mode WARN, once for each place of the script. The machine must outlive it. */
mr_status mr_sync_debug_create(mr_machine *machine,
                               void (*tell)(void *context, const mr_hidden_wait *wait),
                               void *context, mr_sync_debug **out_debug);
void mr_sync_debug_destroy(mr_sync_debug *debug); /* accepts NULL */

/* In mode ERROR such a call is refused with NOT_PERMITTED, before the host waits (after it for FREE and QUEUE, which is
 * only known then and not refused). Off: no observer at all. */
mr_status mr_sync_debug_set(mr_sync_debug *debug, mr_sync_mode mode);
mr_sync_mode mr_sync_debug_mode(const mr_sync_debug *debug);

#endif
