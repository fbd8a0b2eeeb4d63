/* The interface of capture (R35-R41), as backend.h is that of a backend: the calls that the model makes while a stream
 * captures. src/graph has the implementation. It sets machine->captures.all when the first capture begins.
 *
 * A capturing stream gives its commands to the capture instead of the backend. So a backend never sees them, and the
 * rules and errors of capture are the same on all backends.
 *
 * Easiest to break: a function of the model that reaches the device by another way than a submission, and does not ask
 * here first. Each must ask before its first effect. */
#ifndef MR_MODEL_CAPTURE_H
#define MR_MODEL_CAPTURE_H

#include "model/command.h"

/* Kinds of host calls, which R37 and R40 distinguish. */
typedef enum {
    MR_ASK_STREAM, /* a query or synchronize of a stream */
    MR_ASK_EVENT,
    MR_ASK_DEVICE, /* a synchronize of a device */
    MR_ASK_CLOSE,  /* of a stream; refused where a capture began on it, as only it can end that */
    MR_ASK_UNSAFE, /* a call that may wait for other streams: cudaFree */
    MR_ASK_ACCESS, /* of host memory, which CUDA permits during captures */
    /* a collective: a graph may contain its call, but a function of mr.graph.auto may not */
    MR_ASK_COLLECTIVE,
} mr_capture_ask;

typedef struct {
    /* `command` is about to be submitted while some stream captures. *out_taken: its stream does, and the reference was
     * taken over. If it is false without an error, the caller submits the command as usual. */
    mr_status (*submit)(mr_command *command, bool *out_taken);
    /* A record on a capturing stream: of the capture, not of the device (R36). */
    mr_status (*record)(const mr_caller *caller, mr_event *event, mr_stream *stream);
    /* A wait where the stream captures or the event was last recorded in a capture. *out_taken as above. */
    mr_status (*wait)(const mr_caller *caller, mr_stream *stream, mr_event *event, bool *out_taken);
    /* Called before a query or wait of the host; only the object that the call names is set. */
    mr_status (*host)(const mr_caller *caller, mr_capture_ask ask, const char *name,
                      mr_stream *stream, mr_event *event, mr_device *device);
    /* Optional. Existing memory for an allocation on a capturing stream, with a reference and a handle for the caller;
     * NULL: allocate new memory. The stream may no longer capture afterwards. */
    mr_status (*reuse)(const mr_caller *caller, uint64_t bytes, mr_stream *stream,
                       mr_storage **out_storage);
    /* Memory allocated on a capturing stream (R44). First the stream whose order the memory itself is in, borrowed;
     * then, once it is there, it becomes the capture's. */
    mr_status (*alloc_stream)(const mr_caller *caller, mr_stream *stream, mr_stream **out_stream);
    mr_status (*allocated)(const mr_caller *caller, mr_stream *stream, mr_storage *storage);
    /* The script frees memory of a graph, or frees on a capturing stream. `stream` NULL: the stream of its allocation.
     * *out_taken false: an ordinary free. */
    mr_status (*free)(const mr_caller *caller, mr_storage *storage, mr_stream *stream, bool at_once,
                      bool *out_taken);
    /* The Philox offset of an operation on a capturing stream: it counts from 0 in each graph. */
    uint64_t (*draw)(mr_stream *stream);
    /* Optional. The origin stream of a running capture on the device, borrowed, and the line that began the capture;
     * NULL: the script began none. */
    const mr_stream *(*origin)(const mr_device *device, mr_site *out_begun);
    /* The event is recorded elsewhere, or destroyed. */
    void (*forget_event)(mr_event *event);
    /* Called at a reset, or the machine's end: drops all captures without a graph. */
    void (*abandon)(mr_machine *machine);
    void (*close)(mr_machine *machine);
} mr_capture_rules;

/* A call of a function that becomes a graph by itself (mr.graph.auto), from its beginning to its end. */
typedef struct {
    mr_site where;      /* the line of the call */
    uint64_t first_seq; /* the commands of the call have this number or larger ones */
    mr_stream *stream;  /* the current one at its beginning */
    uint16_t rank;      /* the rank that makes it (mr_machine.rank) */
} mr_function_call;

/* The beginning of what machine->captures.all points to. */
typedef struct mr_captures {
    const mr_capture_rules *rules;
    const mr_function_call *call; /* the outermost one; NULL: none is under way */
} mr_captures;

static inline const mr_capture_rules *mr_capture_rules_of(const mr_machine *machine) {
    return machine->captures.all->rules;
}

/* Call this before the host queries or waits. Costs two comparisons where nothing captures. */
static inline mr_status mr_capture_ask_host(const mr_caller *caller, mr_capture_ask ask,
                                            const char *name, mr_stream *stream, mr_event *event,
                                            mr_device *device) {
    bool captured = event && event->captured;
    if (__builtin_expect(!caller->machine->captures.open && !captured, 1)) return MR_OK;
    return mr_capture_rules_of(caller->machine)->host(caller, ask, name, stream, event, device);
}

#endif
