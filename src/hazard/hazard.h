/* The hazard checker: an observer that knows of any two accesses to the same bytes whether CUDA's
 * rules order them, and explains those that nothing orders.
 *
 * It sees what the host submits, in the order of submission, and uses guaranteed edges only (the [G]
 * rules of docs/semantics.md). Order between streams is fixed by what was submitted and not by when it
 * ran, so a program without a report gives the same values under every schedule of the same host path.
 * What the host's path itself depends on (a query's answer, a value that the host read) is the caveat.
 *
 * Detection (order.c, history.c, check.c, lifetime.c) and explaining (reason.c, fix.c, report.c) are
 * apart: the first runs on every action, the second only for a pair that is about to be reported. */
#ifndef MR_HAZARD_HAZARD_H
#define MR_HAZARD_HAZARD_H

#include "base/buffer.h"
#include "model/observer.h"

typedef struct mr_hazard mr_hazard;

typedef enum {
    MR_HAZARD_OFF,     /* not an observer at all: costs nothing */
    MR_HAZARD_WARN,    /* each new report goes to `write` at once */
    MR_HAZARD_ERROR,   /* the action that makes a hazard is refused */
    MR_HAZARD_COLLECT, /* reports wait for mr_hazard_report_at */
} mr_hazard_mode;

/* name, text, is advice (asked for separately, never an error, never exit code 3) */
#define MR_HAZARD_KIND_LIST(X)                                                                     \
    X(READ_AFTER_WRITE, "read-after-write", false)                                                 \
    X(WRITE_AFTER_READ, "write-after-read", false)                                                 \
    X(WRITE_AFTER_WRITE, "write-after-write", false)                                               \
    X(USE_AFTER_FREE, "use-after-free", false)                                                     \
    X(USE_BEFORE_ALLOC, "use-before-alloc", false)                                                 \
    X(REDUNDANT_WAIT, "redundant-wait", true)                                                      \
    X(NEVER_RECORDED_WAIT, "never-recorded-wait", true)                                            \
    X(UNUSED_RECORD, "unused-record", true)                                                        \
    X(DEVICE_SYNCHRONIZE, "device-synchronize", true)                                              \
    X(PAGEABLE_COPY, "pageable-copy", true)                                                        \
    X(UNSPECIFIED_SYNCHRONY, "unspecified-synchrony", true)

typedef enum {
#define X(name, text, advice) MR_HAZARD_##name,
    MR_HAZARD_KIND_LIST(X)
#undef X
        MR_HAZARD_KIND_COUNT
} mr_hazard_kind;

/* Why no order exists: the stable words of reports. docs/hazards.md has a paragraph for each. */
#define MR_HAZARD_REASON_LIST(X)                                                                   \
    X(NO_PATH, "no-path")                                                                          \
    X(NONBLOCKING_STREAM, "nonblocking-stream")                                                    \
    X(RECORDED_BEFORE_ACCESS, "recorded-before-access")                                            \
    X(RECORDED_BEFORE_WRITE, "recorded-before-write")                                              \
    X(EVENT_RERECORDED, "event-rerecorded")                                                        \
    X(NEVER_RECORDED, "never-recorded")                                                            \
    X(WAITED_AFTER_USE, "waited-after-use")                                                        \
    X(WAIT_ON_WRONG_STREAM, "wait-on-wrong-stream")                                                \
    X(ONE_OF_SEVERAL, "one-of-several")                                                            \
    X(ONE_WAY, "one-way")                                                                          \
    X(HOST_DID_NOT_WAIT, "host-did-not-wait")                                                      \
    X(SYNCHRONIZED_BEFORE, "synchronized-before")                                                  \
    X(OTHER_DEVICE, "other-device-synchronized")                                                   \
    X(COPY_STILL_PENDING, "copy-still-pending")                                                    \
    X(FREED_WITHOUT_RECORD_STREAM, "freed-without-record-stream")                                  \
    X(COLLECTED, "collected-while-pending")                                                        \
    X(ALLOC_NOT_ORDERED, "alloc-not-ordered")                                                      \
    X(ADVICE, "advice")

typedef enum {
#define X(name, text) MR_HAZARD_BECAUSE_##name,
    MR_HAZARD_REASON_LIST(X)
#undef X
        MR_HAZARD_REASON_COUNT
} mr_hazard_reason;

const char *mr_hazard_kind_text(mr_hazard_kind kind);
bool mr_hazard_kind_find(const char *text, mr_hazard_kind *out_kind);
bool mr_hazard_kind_is_advice(mr_hazard_kind kind);
const char *mr_hazard_reason_text(mr_hazard_reason reason);
bool mr_hazard_mode_find(const char *text, mr_hazard_mode *out_mode);
const char *mr_hazard_mode_text(mr_hazard_mode mode);

/* One of the two sides of a report. Texts are copies: they outlive every object. */
typedef struct {
    const char *op;  /* interned: "normal_", "free", "alloc" */
    uint8_t access;  /* MR_READ | MR_WRITE; 0 for alloc and free */
    bool host;       /* the host itself did it */
    char stream[64]; /* "copy", "default", "stream #3", "host" */
    mr_site where;   /* no file: collected by Lua */
    uint64_t seq;
} mr_hazard_side;

/* A line of Lua to be put in, and where. */
typedef struct {
    bool before; /* the line `where`, else after it */
    mr_site where;
    char text[160];
} mr_hazard_fix;

typedef struct {
    mr_hazard_kind kind;
    mr_hazard_reason reason;
    uint64_t number;              /* 1, 2, ... in the order of finding */
    uint64_t count;               /* how often this pair of places was met */
    mr_hazard_side first, second; /* in the order of submission; advice: `first` may have no op */
    char tensor
        [200]; /* "A", or "tensor #7 f32[100,100] made at line 3"; "" for advice without one */
    char signature[80];               /* "f32[100,100]" */
    uint64_t bytes_first, bytes_last; /* of the storage: what both sides touch lies between */
    uint64_t bytes_shared;            /* how many bytes that are; 0: not counted */
    char why[400];                    /* a sentence */
    mr_hazard_fix fix[2];
    int fix_count;
    bool amended; /* `reason` became clearer later (waited-after-use) */
} mr_hazard_report;

/* What binds the checker to the language of the scripts; each may be NULL. */
typedef struct {
    void *context;
    /* A new report, or one that was amended, in warn mode; advice also in error mode. */
    void (*write)(void *context, const mr_hazard_report *report);
    /* The script's own variable for an object, as an expression, or false. */
    bool (*variable)(void *context, const mr_stream *stream, const mr_event *event,
                     const mr_tensor *tensor, char *out, size_t size);
    /* A name for a new local that is set behind the line `first` and used in front of `second`; false:
     * that cannot be, or nobody knows. */
    bool (*event_fits)(void *context, mr_site first, mr_site second, char *name, size_t size);
    /* Every unordered pair, also those that are not reported (follow-ups, ignored): for tests. */
    void (*detected)(void *context, mr_hazard_kind kind, uint64_t first_seq, uint64_t second_seq);
} mr_hazard_hooks;

/* Created in mode off. `hooks` is copied. The machine must outlive it. */
mr_status mr_hazard_create(mr_machine *machine, const mr_hazard_hooks *hooks,
                           mr_hazard **out_hazard);
void mr_hazard_destroy(mr_hazard *hazard); /* accepts NULL */

/* Inside a check it takes effect when that ends. Switching on starts from a state in which all earlier work counts as ordered; switching off forgets
 * the history and keeps the reports. */
mr_status mr_hazard_set_mode(mr_hazard *hazard, mr_hazard_mode mode);
mr_hazard_mode mr_hazard_get_mode(const mr_hazard *hazard);
void mr_hazard_set_advice(mr_hazard *hazard, bool on);

/* mr.hazard.check: between the two, mode is collect and reports go to a list of their own; all work of
 * before counts as ordered. Not nested: a second begin is not-permitted. `end` puts the mode back; the
 * reports found since begin are those from *out_first on, and do not count in the totals' hazards. */
mr_status mr_hazard_check_begin(mr_hazard *hazard);
void mr_hazard_check_end(mr_hazard *hazard, size_t *out_first);
bool mr_hazard_checking(const mr_hazard *hazard);

/* Reports in the order of finding, hazards and advice. Pointers are valid until clear or the next
 * action. At most MR_HAZARD_MAX_REPORTS are kept; the rest is counted. */
#define MR_HAZARD_MAX_REPORTS 1000
size_t mr_hazard_report_count(const mr_hazard *hazard);
const mr_hazard_report *mr_hazard_report_at(const mr_hazard *hazard, size_t i);
void mr_hazard_clear(mr_hazard *hazard);
/* Forgets the reports from `first` on: those of a check, which the caller has copied. */
void mr_hazard_drop_from(mr_hazard *hazard, size_t first);

typedef struct {
    uint64_t operations; /* seen with the checker on */
    uint64_t hazards;    /* pairs found, not counting follow-ups and ignored ones */
    uint64_t reports;    /* hazards kept as reports, by pair of places */
    uint64_t dropped;    /* pairs of places beyond MR_HAZARD_MAX_REPORTS */
    uint64_t
        follow_ups; /* met again only because an order already reported as missing is missing */
    uint64_t ignored;
    uint64_t forgotten; /* accesses given up to bound memory: a miss is possible if it is not 0 */
    uint64_t decided_by_host; /* queries that said yes, and host reads: the caveats of the proof */
} mr_hazard_totals;
mr_hazard_totals mr_hazard_get_totals(const mr_hazard *hazard);

/* Suppression. Each text may be NULL (any). `where` is "file:line" or "file" and matches either side;
 * kind < 0: any. */
mr_status mr_hazard_ignore(mr_hazard *hazard, const char *tensor, int kind, const char *where);
void mr_hazard_clear_ignores(mr_hazard *hazard);
/* One line a rule: what it matches and how often it did. */
void mr_hazard_describe_ignores(const mr_hazard *hazard, mr_buffer *out);

/* Advice that can only be given at the end (records that nobody waited for). */
void mr_hazard_finish(mr_hazard *hazard);

/* The chain that orders two operations, one step a line, or why there is none. Looks at the last
 * MR_HAZARD_LOG operations. Returns whether a chain exists. */
#define MR_HAZARD_LOG 4096
bool mr_hazard_why(mr_hazard *hazard, uint64_t first_seq, uint64_t second_seq, mr_buffer *out);
/* The last operation submitted at a line (file NULL: any file), 0 if the log has none. */
uint64_t mr_hazard_find_operation(const mr_hazard *hazard, const char *file, int line);

/* "no hazards: ..." or the count, with what was ignored or dropped. */
void mr_hazard_summary(const mr_hazard *hazard, mr_buffer *out);

/* Writing. `colour`: ANSI sequences. */
void mr_hazard_write_text(const mr_hazard_report *report, bool colour, mr_buffer *out);
void mr_hazard_write_json(const mr_hazard_report *report, mr_buffer *out); /* one line with '\n' */
void mr_hazard_summary_json(const mr_hazard *hazard, mr_buffer *out);      /* likewise */
void mr_hazard_fix_text(const mr_hazard_report *report, mr_buffer *out); /* lines of Lua, placed */

#endif
