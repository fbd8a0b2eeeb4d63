/* An event: a name for "everything that was in a stream when it was recorded" (R11). Its state is the last record; a
 * wait keeps the record that it found (R12). Counted like streams. */
#ifndef MR_MODEL_EVENT_H
#define MR_MODEL_EVENT_H

#include "model/stream.h"

struct mr_event {
    uint32_t refs;
    uint32_t id;
    uint32_t epoch;
    bool timing;   /* R17, R18: default off, as in PyTorch */
    bool blocking; /* R18: costs host time, never order */
    bool closed;
    bool interprocess; /* another process can have it */
    /* Code outside of millrace may record it (outside.h): `record_seq` is only this process's latest record, so the
     * backend is asked even without one. */
    bool shared;
    mr_name *name; /* one reference; NULL: unnamed */
    mr_machine *machine;
    mr_device *device; /* of the first record; NULL before (R14) */
    mr_site where;
    uint64_t record_seq; /* of the RECORD command in force, 0 = never recorded (R13) */
    mr_site record_where;
    void *captured; /* last recorded in this capture (capture.h); NULL: it was not */
    void *impl;
    void *observed;
};

typedef struct {
    bool timing, blocking;
    bool interprocess; /* without timing */
    const char *name;  /* copied; NULL: unnamed */
} mr_event_options;

mr_status mr_event_create(const mr_caller *caller, const mr_event_options *options,
                          mr_event **out_event);
void mr_event_retain(mr_event *event);
void mr_event_release(mr_event *event);    /* accepts NULL; R19 */
mr_status mr_event_close(mr_event *event); /* R19: returns at once; idempotent */

mr_status mr_event_record(const mr_caller *caller, mr_event *event,
                          mr_stream *stream); /* R11, R12, R14, R16 */
/* The same as part of another call, whose name observers get. */
mr_status mr_event_record_as(const mr_caller *caller, mr_event *event, mr_stream *stream,
                             const char *name);
mr_status mr_event_query(const mr_caller *caller, mr_event *event,
                         bool *out_done); /* never recorded: true (R13) */
mr_status mr_event_synchronize(const mr_caller *caller,
                               mr_event *event); /* never recorded: at once (R13) */

/* R17: three different errors: not timed (invalid-handle), never recorded (invalid-handle), not
 * complete (not-ready); events of different devices: invalid-handle (R58). */
mr_status mr_event_elapsed(mr_event *from, mr_event *to, double *out_milliseconds);

mr_status mr_event_usable(const mr_event *event);
uint32_t mr_event_number(const mr_event *event); /* its id, as people read it */
const char *mr_event_describe(const mr_event *event, char *out, size_t size);

#endif
