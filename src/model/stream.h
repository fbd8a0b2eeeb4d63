/* A stream: a queue of one device, in which commands run in the order of submission (R1). Counted:
 * a Lua handle and each pending command hold one reference. */
#ifndef MR_MODEL_STREAM_H
#define MR_MODEL_STREAM_H

#include <stddef.h>

#include "model/device.h"

typedef enum {
    MR_STREAM_LEGACY,     /* R3: a barrier for all blocking streams of its device, both ways */
    MR_STREAM_PER_THREAD, /* R6: an ordinary blocking stream with a fixed handle */
    MR_STREAM_USER,
} mr_stream_kind;

struct mr_stream {
    uint32_t refs;
    uint32_t id;
    uint32_t epoch;
    mr_stream_kind kind;
    bool blocking; /* takes part in the legacy barrier (R4: false = cudaStreamNonBlocking) */
    bool closed;
    bool shared; /* code outside of millrace may use it (outside.h) */
    /* the handle of a stream that other code made and will destroy; 0: it is ours */
    uint64_t foreign;
    int priority;  /* clamped (R8) */
    mr_name *name; /* one reference; NULL: unnamed */
    mr_device *device;
    mr_site where;     /* the line that made it */
    uint64_t last_seq; /* of the command submitted last, 0 = none yet; for observers */
    void *impl;        /* the backend's */
    void *observed;    /* the hazard checker's clock; not owned here */
    void *capture;     /* what it captures (capture.h); NULL: it does not */
};

typedef struct {
    bool nonblocking;
    int priority;
    const char *name; /* copied; NULL: unnamed */
    uint64_t foreign; /* see mr_stream; the rest is what that stream is */
} mr_stream_options;

mr_status mr_stream_create(const mr_caller *caller, mr_device *device,
                           const mr_stream_options *options, mr_stream **out_stream);
void mr_stream_retain(mr_stream *stream);
void mr_stream_release(mr_stream *stream); /* accepts NULL; waits for nothing (R9) */

/* R9: returns at once, pending work completes, later use is invalid-handle. Idempotent. Closing a
 * default stream is an error. A closed stream that was current gives way to the default stream. */
mr_status mr_stream_close(const mr_caller *caller, mr_stream *stream);

mr_status mr_stream_query(const mr_caller *caller, mr_stream *stream,
                          bool *out_done);                                   /* R10; never blocks */
mr_status mr_stream_synchronize(const mr_caller *caller, mr_stream *stream); /* R10 */

/* R12, R15: later work of `stream` waits for the event's most recent record; none is a no-op (R13). */
mr_status mr_stream_wait_event(const mr_caller *caller, mr_stream *stream, mr_event *event);
/* The same as part of another call, whose name observers get. */
mr_status mr_stream_wait_event_as(const mr_caller *caller, mr_stream *stream, mr_event *event,
                                  const char *name);
/* Later work of `stream` waits for what has been submitted to `other` so far. */
mr_status mr_stream_wait_stream(const mr_caller *caller, mr_stream *stream, mr_stream *other);
/* The same as part of an operation, which its record and its wait are named after: observers can tell them
 * from those that the script asked for. */
mr_status mr_stream_join(const mr_caller *caller, mr_stream *stream, mr_stream *other,
                         const char *operation);
mr_status mr_stream_synchronize_as(const mr_caller *caller, mr_stream *stream,
                                   const char *operation);
/* Later work of each of them waits for what has been submitted to any of them so far (mr.barrier). */
mr_status mr_stream_barrier(const mr_caller *caller, mr_stream *const *streams, int count);

/* R46: `call(context)` runs on the Lua thread, in stream order, while the host waits or asks.
 * `drop(context)` is called exactly once, after the call or instead of it. */
mr_status mr_stream_host_function(const mr_caller *caller, mr_stream *stream,
                                  mr_status (*call)(void *context), void (*drop)(void *context),
                                  void *context);

/* Submits work that fails with `code`, a sticky one, when its turn comes (virtual GPU only). */
mr_status mr_stream_fault(const mr_caller *caller, mr_stream *stream, mr_code code);

/* Makes it current on its device, and its device current. */
mr_status mr_stream_set_current(mr_stream *stream);

/* NULL, or why it cannot be used: it is closed, or from before a reset. Checks nothing else. */
mr_status mr_stream_usable(const mr_stream *stream);

/* Its id, as people read it. */
uint32_t mr_stream_number(const mr_stream *stream);
/* "stream `copy`", "stream #3", "the default stream of device 1"; returns `out`. */
const char *mr_stream_describe(const mr_stream *stream, char *out, size_t size);
/* As the checker's reports call it: "copy", "stream #3", "default of device 1"; returns `out`. */
const char *mr_stream_title(const mr_stream *stream, char *out, size_t size);
/* The error's stream, if it has none yet. */
void mr_stream_blame(const mr_stream *stream, mr_status error);

#endif
