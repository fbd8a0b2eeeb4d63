/* The memory of a tracer, private to this folder. This is an entry for each command, in the order of their numbers, and
 * the runs that have been told and may still be undone.
 *
 * Easiest to break: entries are found by the command's number, so they stay sorted by it. A call that runs host
 * functions is told after what these did, with a lower number than they have.
 *
 * Two clocks, one axis. The host's times come from `may` and `did`, the device's from `ran`. The backend counts the
 * host's time in waits (`mr_machine.host_waits`), because only the backend knows it. On CUDA, runs are told only
 * between `runs_start` and `runs_stop`.
 *
 * Causes. With each run the virtual GPU tells the last cause of its begin: the predecessor that ended last, with the
 * rule, or the work that had the engine (`mr_run.held_by`). The reason is never a record or a wait, but the work that
 * it waited for. The host's part is added afterwards (`cause.c`). On hardware nothing tells causes. There they follow
 * from the order and the times; a test compares that with what the virtual GPU knows.
 *
 * Undone runs. Runs are a log in the order of being told, and `machine->observing.runs_told` counts them. A
 * checkpoint keeps the count, and a restored one tells it to the observers (`went_back`), which cut their logs.
 * Without a checkpoint, runs are folded into their entries. */
#ifndef MR_TRACE_KEPT_H
#define MR_TRACE_KEPT_H

#include "base/vec.h"
#include "trace/record/tracer.h"

/* When the device carried it out, folded from the runs of its parts. */
typedef struct {
    uint64_t ready, begin, end;
    uint64_t holder; /* seq */
    uint32_t blocks;
    uint8_t engine, held_by; /* mr_engine, mr_cause */
    bool begun, done;
} kept_times;

typedef struct {
    mr_trace_access access; /* name: not used */
    mr_name *name;          /* one reference, or NULL */
} kept_access;

/* No mr_span: an entry changes while its command runs, owns its texts, and names other commands by their numbers. A
 * span is a part of a finished trace: it has the trace's texts, and indices of other spans. A span with what an entry
 * needs beside it would take 232 bytes for each call in place of 192. */
typedef struct {
    uint64_t seq;
    uint64_t call, returned, waited, worked;
    uint64_t bytes;
    uint64_t record_seq; /* 0: none */
    uint64_t walls;      /* of a copy: mr_order_walls */
    /* the seq of the first member of the meeting that it takes part in; 0: none */
    uint64_t meeting;
    uint16_t host;     /* whose clock `call` is of: a rank from 1, or 0 */
    const char *name;  /* static, or of: */
    mr_name *own_name; /* one reference, or NULL */
    mr_name *object;   /* the event's; likewise */
    mr_site where;
    uint32_t stream; /* in kept.streams; MR_TRACE_NONE: none */
    uint32_t blocks;
    int device;   /* -1: none */
    uint8_t kind; /* mr_command_id */
    bool called;
    bool synchronous; /* a copy */
    uint32_t access_count;
    kept_access *accesses; /* owned */
    kept_times times;
} kept_entry;

typedef struct {
    uint64_t seq;
    mr_run run;
} kept_run;

typedef struct {
    mr_trace_stream stream; /* name: not used */
    char *name;             /* owned */
} kept_stream;

#define KEPT_SEGMENT 4096 /* entries: what grows is never copied */

typedef struct {
    MR_VEC(kept_entry *) segments;
    uint64_t added, forgotten;  /* entries so far; those in between are there */
    size_t most;                /* 0: no bound */
    size_t mask;                /* of the ring; all ones: no bound */
    MR_VEC(kept_entry) earlier; /* commands from before the trace that ran during it; by seq */
    MR_VEC(kept_run) log;       /* runs not yet folded in */
    uint64_t log_first;         /* machine->observing.runs_told of the first of them */
    MR_VEC(kept_stream) streams;
    MR_VEC(uint32_t) stream_of_id; /* index + 1, by mr_stream.id; 0: not met yet */
    bool out_of_memory;
    mr_tracer_shown *shown; /* how a snapshot names places; NULL: as they are */
    const void *shown_context;
} mr_kept;

static inline size_t kept_count(const mr_kept *kept) {
    return (size_t)(kept->added - kept->forgotten);
}
/* The i-th of those that are there, from 0. */
static inline kept_entry *kept_at(const mr_kept *kept, size_t i) {
    size_t at = (size_t)(kept->forgotten + i) & kept->mask;
    return &kept->segments.items[at / KEPT_SEGMENT][at % KEPT_SEGMENT];
}

void mr_kept_open(mr_kept *kept, size_t most, uint64_t runs_told);
void mr_kept_free(mr_kept *kept);

/* The place for a command's entry, zeroed but for `seq`; NULL: no memory, which is noted. Valid until the next one. */
kept_entry *mr_kept_add(mr_kept *kept, uint64_t seq);
kept_entry *mr_kept_add_earlier(mr_kept *kept, uint64_t seq);
/* NULL: there is none, or it is forgotten. */
kept_entry *mr_kept_find(mr_kept *kept, uint64_t seq);

/* The accesses of a command. */
void mr_kept_note_accesses(mr_kept *kept, kept_entry *entry, const mr_command *command);

/* The index of a stream; it is met now if it was not before. */
uint32_t mr_kept_stream(mr_kept *kept, const mr_stream *stream);

void mr_kept_fold(kept_times *times, const mr_run *run);
/* Folds the first `count` runs of the log into their entries; they can no longer be undone. */
void mr_kept_settle(mr_kept *kept, size_t count);
/* Only those runs hold that were told before `runs_told`. */
void mr_kept_undo(mr_kept *kept, uint64_t runs_told);

/* A trace of the entries from index `first` on, and of the earlier ones. `facts` but for duration and script. */
mr_status mr_kept_trace(const mr_kept *kept, size_t first, uint64_t began,
                        const mr_trace_facts *facts, const mr_tracer_hazard *hazards,
                        size_t hazard_count, mr_trace **out_trace);

/* cause.c: for spans delayed by the host, whether the host was in a wait. If the backend named no cause, the order
 * and the times decide. `spans` in the order of their numbers. */
mr_status mr_trace_find_causes(mr_span *spans, size_t count, const mr_trace_stream *streams,
                               size_t stream_count);

#endif
