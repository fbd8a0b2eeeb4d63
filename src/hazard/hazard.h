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
#include "base/intern.h"
#include "model/observer.h"

typedef struct mr_hazard mr_hazard;

typedef enum {
    MR_HAZARD_OFF,     /* not an observer at all: costs nothing */
    MR_HAZARD_WARN,    /* each new report goes to `write` at once */
    MR_HAZARD_ERROR,   /* the action that makes a hazard is refused */
    MR_HAZARD_COLLECT, /* reports wait for mr_hazard_report_at */
} mr_hazard_mode;

/* name, text, is advice (asked for separately, never an error, never exit code 3), meaning: what
 * help(text) says and docs/hazards.md has word for word (tests/lua/hazard_words.lua) */
#define MR_HAZARD_KIND_LIST(X)                                                                     \
    X(READ_AFTER_WRITE, "read-after-write", false,                                                 \
      "The second reads what the first writes, perhaps before it has been written.")               \
    X(WRITE_AFTER_READ, "write-after-read", false,                                                 \
      "The second overwrites what the first may still be reading. The forgotten half of a double " \
      "buffer.")                                                                                   \
    X(WRITE_AFTER_WRITE, "write-after-write", false,                                               \
      "Both write; which value stays is open. The cure is the same: order them, or give each a "   \
      "tensor of its own.")                                                                        \
    X(USE_AFTER_FREE, "use-after-free", false,                                                     \
      "Device memory is freed in the order of a stream: by `t:free()` and by the collector, that " \
      "of the stream it was allocated on. Work of another stream that is not ordered before the "  \
      "free may use memory that has been given to somebody else.")                                 \
    X(USE_BEFORE_ALLOC, "use-before-alloc", false,                                                 \
      "The allocation is in stream order, too: its memory may still belong to what was freed "     \
      "there (R28).")                                                                              \
    X(REDUNDANT_WAIT, "redundant-wait", true,                                                      \
      "another path already orders the stream after what the event captured")                      \
    X(NEVER_RECORDED_WAIT, "never-recorded-wait", true,                                            \
      "the event has never been recorded: probably the record comes too late")                     \
    X(UNUSED_RECORD, "unused-record", true,                                                        \
      "nobody waited for this record (events with timing excepted)")                               \
    X(DEVICE_SYNCHRONIZE, "device-synchronize", true,                                              \
      "the host waited for several busy streams and then used what one of them did")               \
    X(PAGEABLE_COPY, "pageable-copy", true,                                                        \
      "an asynchronous copy of pageable memory: whether the call waits is open, and it does not "  \
      "overlap (R23)")                                                                             \
    X(UNSPECIFIED_SYNCHRONY, "unspecified-synchrony", true,                                        \
      "the values are right only if such a copy waited, which NVIDIA's does and CUDA does not "    \
      "promise")

typedef enum {
#define X(name, text, advice, meaning) MR_HAZARD_##name,
    MR_HAZARD_KIND_LIST(X)
#undef X
        MR_HAZARD_KIND_COUNT
} mr_hazard_kind;

/* Why no order exists: the stable words of reports, and what is missing, for help(text) and word for
 * word for docs/hazards.md. */
#define MR_HAZARD_REASON_LIST(X)                                                                   \
    X(NO_PATH, "no-path",                                                                          \
      "nothing at all was written that would order the two; where an event exists that would "     \
      "cover it, the sentence names it; where one is the default stream and the other "            \
      "non-blocking, it says that they do not wait for each other (R4). `mr.stream()` makes "      \
      "non-blocking streams, as PyTorch does")                                                     \
    X(NONBLOCKING_STREAM, "nonblocking-stream",                                                    \
      "work of the default stream lies between the two and would order blocking streams (R3), "    \
      "but one of them is non-blocking (R4)")                                                      \
    X(RECORDED_BEFORE_WRITE, "recorded-before-write",                                              \
      "the wait is there, but its event was recorded before the write: a record covers what was "  \
      "submitted before it (R11). Move the record behind the write")                               \
    X(RECORDED_BEFORE_ACCESS, "recorded-before-access",                                            \
      "as recorded-before-write, where the first only reads")                                      \
    X(EVENT_RERECORDED, "event-rerecorded",                                                        \
      "the wait came first and the event was recorded again since: a wait keeps the record that "  \
      "it found (R12). Wait again")                                                                \
    X(NEVER_RECORDED, "never-recorded",                                                            \
      "the event had never been recorded when it was waited for: that succeeds at once and "       \
      "orders nothing (R13)")                                                                      \
    X(WAITED_AFTER_USE, "waited-after-use",                                                        \
      "the wait is there, behind the use: it holds up later work only (R15). Found when the wait " \
      "comes, so the report is amended")                                                           \
    X(WAIT_ON_WRONG_STREAM, "wait-on-wrong-stream",                                                \
      "another stream, or the host for another stream, waits; the one that uses the data does "    \
      "not")                                                                                       \
    X(ONE_OF_SEVERAL, "one-of-several",                                                            \
      "several streams worked on what is used, and some of them are waited for, but not this one") \
    X(RECORDED_ON_WRONG_STREAM, "recorded-on-wrong-stream",                                        \
      "the wait is there, but its event was recorded on a stream that did not work on the data. "  \
      "Record it on the one that did (R11)")                                                       \
    X(ONE_WAY, "one-way",                                                                          \
      "the reader waited for what the writer had written there, and nothing makes the writer "     \
      "wait for the reader before it writes again")                                                \
    X(HOST_DID_NOT_WAIT, "host-did-not-wait",                                                      \
      "the host touches memory that a stream works on. That a call has returned does not mean "    \
      "that its work is done (R22)")                                                               \
    X(SYNCHRONIZED_BEFORE, "synchronized-before",                                                  \
      "the host waited for that stream, but before the work was submitted")                        \
    X(OTHER_DEVICE, "other-device-synchronized", "the host synchronized another device (R10)")     \
    X(COPY_STILL_PENDING, "copy-still-pending",                                                    \
      "`mr.memcpy` has returned and the copy may still run: from pageable memory it returns when " \
      "the source is staged (R20), within the device at once (R21)")                               \
    X(FREED_WITHOUT_RECORD_STREAM, "freed-without-record-stream",                                  \
      "the free is in the order of a stream that does not wait for the user")                      \
    X(COLLECTED, "collected-while-pending",                                                        \
      "as freed-without-record-stream, by Lua's collector: the last variable was gone while "      \
      "another stream still worked on the tensor")                                                 \
    X(ALLOC_NOT_ORDERED, "alloc-not-ordered", "the use is not ordered after the allocation")       \
    X(ADVICE, "advice", "not a hazard: what could be better; `--check=advice` asks for it")

typedef enum {
#define X(name, text, meaning) MR_HAZARD_BECAUSE_##name,
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

/* The words above with their meanings, for i from 0 on; false: there is none. */
typedef struct {
    const char *word, *sort; /* "no-path", "reason": or "kind", "advice" */
    const char *meaning;
} mr_hazard_word;
bool mr_hazard_word_at(int i, mr_hazard_word *out_word);

/* One of the two sides of a report. Texts are copies: they outlive every object. */
typedef struct {
    const char *op;  /* interned: "normal_", "free", "alloc" */
    uint8_t access;  /* MR_READ | MR_WRITE; 0 for alloc and free */
    bool host;       /* the host itself did it */
    char stream[64]; /* "copy", "default", "stream #3", "host" */
    mr_site where;   /* no file: collected by Lua */
    uint64_t seq;
} mr_hazard_side;

#define MR_HAZARD_STREAM_PAIRS 16

typedef enum {
    MR_HAZARD_BEFORE, /* the line */
    MR_HAZARD_AFTER,
    MR_HAZARD_WITHIN, /* both operations are of that line: it has to be split, and this goes between */
} mr_hazard_fix_place;
const char *mr_hazard_place_text(mr_hazard_fix_place place); /* "before" */

/* A place for a line of Lua: as a person is told, and the line in front of which it comes to stand, whose
 * variables it can use. No text to judge by: the same line. */
typedef struct {
    mr_hazard_fix_place place;
    mr_site where;
    int front;
} mr_hazard_spot;

/* A line of Lua to be put in, and where. */
typedef struct {
    mr_hazard_fix_place place; /* seen from the line `where` */
    bool typed;                /* that line was entered at the prompt: it is for the next time */
    mr_site where;
    char text[160];
} mr_hazard_fix;

typedef struct {
    mr_hazard_kind kind;
    mr_hazard_reason reason;
    uint64_t number;              /* 1, 2, ... in the order of finding */
    uint64_t count;               /* how often this pair of places was met */
    mr_hazard_side first, second; /* in the order of submission; advice: `first` may have no op */
    char tensor[MR_LONGEST_NAME +
                1]; /* "A", or "tensor #7 f32[100,100] made at line 3"; "" for advice without one */
    char signature[80];               /* "f32[100,100]" */
    uint64_t bytes_first, bytes_last; /* of the storage: what both sides touch lies between */
    uint64_t bytes_shared;            /* how many bytes that are; 0: not counted */
    char why[400];                    /* a sentence */
    mr_hazard_fix fix[2];
    int fix_count;
    char advice[480]; /* what to do, in words, where no line can be put in; else "" */
    /* The fix orders the first stream's work up to this seq before the second: a record's, or the
     * first access's; 0: all that was submitted before the second. */
    uint64_t covered;
    /* Different pairs of streams among `count`, and the ids of the first few; at the bound: or more. */
    uint32_t stream_pairs;
    struct {
        uint32_t first, second; /* 0: the host */
    } streams[MR_HAZARD_STREAM_PAIRS];
    char also[2][64]; /* a first and a second stream unlike those of the sides; "": none */
    bool withdrawn;   /* advice that the script has since made wrong */
    bool amended;     /* more became known after it was first written: `reason`, or other streams */
} mr_hazard_report;

/* What is new about a report that is written. */
typedef enum {
    MR_HAZARD_NEWS_REPORT,  /* all of it */
    MR_HAZARD_NEWS_REASON,  /* the reason became clearer (waited-after-use) */
    MR_HAZARD_NEWS_STREAMS, /* the pair of places was met between other streams, too */
} mr_hazard_news;

/* One of the script's objects; the others are NULL. A storage: any tensor that shows it will do. */
typedef struct {
    const mr_stream *stream;
    const mr_event *event;
    const mr_tensor *tensor;
    const mr_storage *storage;
} mr_hazard_object;

/* Two accesses, and the lines that all that was submitted from the one to the other is from. */
typedef struct {
    mr_site first, second;
    const char *first_op, *second_op;
    int lowest, highest; /* of second's file; 0: other files, too */
    bool is_running;     /* the script is in the middle of the second */
} mr_hazard_meeting;

/* What binds the checker to the language of the scripts; each may be NULL. */
typedef struct {
    void *context;
    /* A new report, or one that was amended, in warn mode; advice also in error mode. */
    void (*write)(void *context, const mr_hazard_report *report, mr_hazard_news news);
    /* The script's own variable for an object, as an expression: one that means it in front of that
     * line; no file: any that is alive. False: there is none. */
    bool (*variable)(void *context, const mr_hazard_object *object, mr_site front, char *out,
                     size_t size);
    /* Where a line of Lua runs after the first access and right before the second. False: nowhere. */
    bool (*before)(void *context, const mr_hazard_meeting *meeting, mr_hazard_spot *out_spot);
    /* Where a line of Lua runs right after what the line `where` did. False: nowhere. */
    bool (*behind)(mr_site where, mr_hazard_spot *out_spot);
    /* A name for a new local that is set at `from` and used at `to`; false: that cannot be. */
    bool (*new_local)(const mr_hazard_spot *from, const mr_hazard_spot *to,
                      bool (*is_taken)(const void *context, const char *name), const void *context,
                      char *name, size_t size);
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
/* The lines of `file` are typed at a prompt, from now on; NULL: of none. The text is kept by address. */
void mr_hazard_set_prompt(mr_hazard *hazard, const char *file);

/* mr.hazard.check: between the two, mode is collect and reports go to a list of their own; all work of
 * before counts as ordered. Not nested: a second begin is not-permitted. `end` puts the mode back; the
 * reports found since begin are those from *out_first on. Neither they nor the operations count in the
 * totals, which say only how many operations there were (`checked_apart`). */
mr_status mr_hazard_check_begin(mr_hazard *hazard);
void mr_hazard_check_end(mr_hazard *hazard, size_t *out_first);
/* Ends a check that the script has left for good (os.exit): what it found is forgotten. */
void mr_hazard_check_abandon(mr_hazard *hazard);
bool mr_hazard_checking(const mr_hazard *hazard);

/* Reports in the order of finding, hazards and advice. Pointers are valid until clear or the next
 * action. At most MR_HAZARD_MAX_REPORTS are kept; the rest is counted. */
#define MR_HAZARD_MAX_REPORTS 1000
size_t mr_hazard_report_count(const mr_hazard *hazard);
const mr_hazard_report *mr_hazard_report_at(const mr_hazard *hazard, size_t i);
/* Forgets the reports and begins new totals; those of the whole run remain. */
void mr_hazard_clear(mr_hazard *hazard);
/* Forgets the reports from `first` on: those of a check, which the caller has copied. */
void mr_hazard_drop_from(mr_hazard *hazard, size_t first);

typedef struct {
    uint64_t operations;  /* seen with the checker on */
    uint64_t hazards;     /* pairs found, not counting follow-ups and ignored ones */
    uint64_t reports;     /* hazards kept as reports, by pair of places */
    uint64_t dropped;     /* pairs of places beyond MR_HAZARD_MAX_REPORTS */
    uint64_t follow_ups;  /* what the cure of a reported one orders, too */
    uint64_t unspecified; /* uses of pageable memory that an asynchronous copy works on (R23) */
    uint64_t ignored;
    uint64_t forgotten; /* accesses given up to bound memory: a miss is possible if it is not 0 */
    uint64_t decided_by_host; /* queries that said yes, and host reads: the caveats of the proof */
    uint64_t checked_apart;   /* operations in checks, which answer for themselves */
    uint64_t cleared; /* hazards that clear has forgotten since the checker was switched on */
} mr_hazard_totals;
/* Since the last clear; `whole_run`: of everything, also of what was forgotten. */
mr_hazard_totals mr_hazard_get_totals(const mr_hazard *hazard, bool whole_run);

/* Suppression. Each text may be NULL (any). `where` is "file:line" or "file" and matches either side;
 * kind < 0: any. A line that no file can have is an invalid argument. */
mr_status mr_hazard_ignore(mr_hazard *hazard, const char *tensor, int kind, const char *where);
void mr_hazard_clear_ignores(mr_hazard *hazard);
/* One line a rule: what it matches and how often it did. */
void mr_hazard_describe_ignores(const mr_hazard *hazard, mr_buffer *out);

/* Gives the advice about lines, by all their occurrences so far: at the end of the run, or when asked. */
void mr_hazard_finish(mr_hazard *hazard);

/* The chain that orders two operations, one step a line, or why there is none. Looks at the last
 * MR_HAZARD_LOG actions, also after the checker was switched off. Returns whether a chain exists. */
#define MR_HAZARD_LOG 4096
bool mr_hazard_why(mr_hazard *hazard, uint64_t first_seq, uint64_t second_seq, mr_buffer *out);
/* The last operation submitted at a line (file NULL: any file), else the last record, wait or
 * synchronise there; 0 if the log has none. */
uint64_t mr_hazard_find_operation(const mr_hazard *hazard, const char *file, int line);

/* "race.lua:12" taken apart: the size of the file's name (0: there is none) and the line, 0 where the text
 * does not end in ":" and digits. False: those digits are no line, which is 1 to INT_MAX. */
bool mr_hazard_place_parse(const char *text, size_t *out_file_size, int *out_line);

/* "no hazards: ..." or the count, with what was ignored or dropped; since the last clear, or of the
 * whole run. */
void mr_hazard_summary(const mr_hazard *hazard, bool whole_run, mr_buffer *out);

/* Writing. `colour`: ANSI sequences. */
void mr_hazard_write_text(const mr_hazard_report *report, bool colour, mr_buffer *out);
/* Only what is new about a report that has been written before. */
void mr_hazard_write_amended(const mr_hazard_report *report, mr_hazard_news news, bool colour,
                             mr_buffer *out);
void mr_hazard_write_json(const mr_hazard_report *report, mr_buffer *out); /* one line with '\n' */
void mr_hazard_summary_json(const mr_hazard *hazard, mr_buffer *out);      /* likewise: the run's */
void mr_hazard_fix_text(const mr_hazard_report *report, mr_buffer *out); /* lines of Lua, placed */

#endif
