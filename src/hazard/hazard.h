/* The hazard checker: an observer that decides for any two accesses to the same bytes whether CUDA's rules order them,
 * and explains unordered ones.
 *
 * It sees what the host submits, in the order of submission, and uses guaranteed edges only (the [G] rules of
 * docs/semantics.md). The submissions fix the order between streams, not the times at which work ran. So a program
 * without a report gives the same values under every schedule of the same host path. The checker cannot follow
 * everything: claims.h lists what it does not follow, which limits the verdict.
 *
 * Detection (order.c, history.c, check.c, touch.c, lifetime.c) is separate from explaining (draft.c, reason.c,
 * fix.c, report.c). Detection runs for every command, explaining only for a pair that is about to be reported. */
#ifndef MR_HAZARD_HAZARD_H
#define MR_HAZARD_HAZARD_H

#include "base/buffer.h"
#include "base/intern.h"
#include "hazard/claims.h"
#include "model/observer.h"
#include "script/spot.h"

typedef struct mr_hazard mr_hazard;

typedef enum {
    MR_HAZARD_OFF,     /* not an observer at all: costs nothing */
    MR_HAZARD_WARN,    /* each new report goes to `write` at once */
    MR_HAZARD_ERROR,   /* the command that makes a hazard is refused */
    MR_HAZARD_COLLECT, /* reports wait for mr_hazard_report_at */
} mr_hazard_mode;

/* name, text, is advice (asked for separately, never an error, never exit code 3), meaning: what
 * help(text) says and docs/hazards.md has word for word (tests/lua/hazard_words.lua) */
#define MR_HAZARD_KIND_LIST(X)                                                                     \
    X(READ_AFTER_WRITE, "read-after-write", false,                                                 \
      "The second operation reads what the first writes, and may read it before it has been "      \
      "written.")                                                                                  \
    X(WRITE_AFTER_READ, "write-after-read", false,                                                 \
      "The second operation overwrites what the first may still be reading. Double buffers often " \
      "lack this wait.")                                                                           \
    X(WRITE_AFTER_WRITE, "write-after-write", false,                                               \
      "Both operations write, so the final value is undefined. To fix it, order them, or give "    \
      "each a tensor of its own.")                                                                 \
    X(USE_AFTER_FREE, "use-after-free", false,                                                     \
      "Device memory is freed in the order of a stream. `t:free()` and the collector use "         \
      "the stream on which the tensor was allocated. If work of another stream is not "            \
      "ordered before the free, it may use memory that already belongs to another tensor. "        \
      "`t:free{sync=true}` is not in the order of any stream, because `cudaFree` of such "         \
      "memory does not wait (R27). So the host must first wait for all work that uses the "        \
      "memory, also for work of the stream that allocated it.")                                    \
    X(USE_BEFORE_ALLOC, "use-before-alloc", false,                                                 \
      "Device memory is allocated in the order of a stream, too. An operation that is not "        \
      "ordered after the allocation may use memory that still belongs to an earlier tensor, "      \
      "which was freed there (R28).")                                                              \
    X(UNINITIALISED_READ, "uninitialised-read", false,                                             \
      "An operation computes with bytes that nothing has written since `mr.empty` allocated "      \
      "them. "                                                                                     \
      "The values may be different in each run.")                                                  \
    X(RACE_IN_KERNEL, "race-in-kernel", false,                                                     \
      "Two threads of one launch of your kernel access the same bytes, one of them writes, and "   \
      "no barrier, warp synchronisation, or chain of atomics and fences orders them. Both places " \
      "are lines of the kernel. The virtual GPU finds this by running the kernel.")                \
    X(REDUNDANT_WAIT, "redundant-wait", true,                                                      \
      "the stream is already ordered after the work that it waits for, or it does nothing "        \
      "after the wait")                                                                            \
    X(NEVER_RECORDED_WAIT, "never-recorded-wait", true,                                            \
      "the event has never been recorded; the record probably comes too late")                     \
    X(UNUSED_RECORD, "unused-record", true,                                                        \
      "nothing waited for this record (events with timing are not reported)")                      \
    X(DEVICE_SYNCHRONIZE, "device-synchronize", true,                                              \
      "the host waited for several busy streams, but then used the results of only one of them")   \
    X(REDUNDANT_SYNCHRONIZE, "redundant-synchronize", true,                                        \
      "the host had already waited for all that this covers")                                      \
    X(PAGEABLE_COPY, "pageable-copy", true,                                                        \
      "an asynchronous copy of pageable memory: CUDA does not specify whether the call waits, "    \
      "and the copy does not overlap with other work (R23)")                                       \
    X(UNCAPTURED_WORK, "uncaptured-work", true,                                                    \
      "work of the default stream while a non-blocking stream captures: it is carried out at "     \
      "once, and is no part of the graph (R39)")                                                   \
    X(WAIT_IN_GROUP, "wait-in-group", true,                                                        \
      "the host waits inside `mr.nccl.group` for a stream that has collectives of the group. "     \
      "They are submitted when the group ends, so the wait does not cover them (R63)")             \
    X(UNORDERED_COLLECTIVES, "unordered-collectives", true,                                        \
      "collectives of two communicators share devices, and nothing orders them on one of these. "  \
      "Devices that begin them in another order need room for both, or they wait for each other "  \
      "for ever (R64a)")                                                                           \
    X(UNSPECIFIED_SYNCHRONY, "unspecified-synchrony", true,                                        \
      "the values are right only if such a copy waited; NVIDIA's driver waits, but CUDA does not " \
      "guarantee it")

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
      "the script has nothing that orders the two operations. If an event exists that "            \
      "covers the first operation, the report names it. If one of the streams is the "             \
      "default stream and the other is non-blocking, the report says that they do not wait "       \
      "for each other (R4). If the first stream waits for the second instead, the report "         \
      "says so. `mr.stream()` makes non-blocking streams, as PyTorch does")                        \
    X(NONBLOCKING_STREAM, "nonblocking-stream",                                                    \
      "work of the default stream was submitted between the two operations. It would order "       \
      "blocking streams (R3), but one of the two streams is non-blocking (R4)")                    \
    X(RECORDED_BEFORE_WRITE, "recorded-before-write",                                              \
      "there is a wait, but its event was recorded before the write. A record covers only work "   \
      "that was submitted before it (R11). Record the event after the write")                      \
    X(RECORDED_BEFORE_ACCESS, "recorded-before-access",                                            \
      "the same as recorded-before-write, where the first operation only reads")                   \
    X(WAITED_BEFORE_WORK, "waited-before-work",                                                    \
      "there is a wait, but it was submitted before the first operation. A wait covers only work " \
      "that was submitted before it (R12). Wait again after that work")                            \
    X(EVENT_RERECORDED, "event-rerecorded",                                                        \
      "the event was recorded again after the wait. A wait uses the record that was the latest "   \
      "at its call (R12). Wait again")                                                             \
    X(NEVER_RECORDED, "never-recorded",                                                            \
      "the event had never been recorded when the wait was submitted. Such a wait succeeds "       \
      "at once and orders nothing (R13). This may also be a wait before the first "                \
      "operation: a reader that waits before the writer records")                                  \
    X(WAITED_AFTER_USE, "waited-after-use",                                                        \
      "there is a wait, but it was submitted after the use. A wait delays only later work (R15). " \
      "The checker finds this when the wait comes, and then amends the report")                    \
    X(WAIT_ON_WRONG_STREAM, "wait-on-wrong-stream",                                                \
      "another stream waits, or the host waits for another stream. The stream that uses the data " \
      "does not wait")                                                                             \
    X(ONE_OF_SEVERAL, "one-of-several",                                                            \
      "several streams used the data. The second operation waits for some of them, but not for "   \
      "this one")                                                                                  \
    X(RECORDED_ON_WRONG_STREAM, "recorded-on-wrong-stream",                                        \
      "there is a wait, but its event was recorded on a stream that did not use the data. Record " \
      "it on the stream that did (R11)")                                                           \
    X(ONE_WAY, "one-way",                                                                          \
      "the reader waited for the writer, but the writer does not wait for the reader before it "   \
      "writes again")                                                                              \
    X(HOST_DID_NOT_WAIT, "host-did-not-wait",                                                      \
      "the host accesses memory that a stream is using, or frees it at once. When a call "         \
      "returns, its work on the device may not be complete (R22)")                                 \
    X(SYNCHRONIZED_BEFORE, "synchronized-before",                                                  \
      "the host waited for the stream, but before the first operation was submitted")              \
    X(OTHER_DEVICE, "other-device-synchronized", "the host synchronized another device (R10)")     \
    X(COPY_STILL_PENDING, "copy-still-pending",                                                    \
      "`mr.memcpy` has returned, but the copy may still be running. From pageable memory it "      \
      "returns when the source has been staged (R20); inside a device it returns at once (R21)")   \
    X(FREED_WITHOUT_RECORD_STREAM, "freed-without-record-stream",                                  \
      "the memory is freed in the order of a stream that does not wait for the stream that uses "  \
      "it")                                                                                        \
    X(COLLECTED, "collected-while-pending",                                                        \
      "the same as freed-without-record-stream, but Lua's collector freed the tensor: its last "   \
      "variable was gone while another stream still used it")                                      \
    X(ALLOC_NOT_ORDERED, "alloc-not-ordered", "the use is not ordered after the allocation")       \
    X(NEVER_WRITTEN, "never-written",                                                              \
      "no work that was submitted before the read writes these bytes")                             \
    X(THREADS_NOT_ORDERED, "threads-not-ordered",                                                  \
      "different threads of the same launch make the two accesses, and nothing in the "            \
      "kernel orders them")                                                                        \
    X(ADVICE, "advice", "not a hazard, but a possible improvement; `--check=advice` shows these")

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
    char op[MR_LONGEST_NAME + 1]; /* "normal_", "free", "alloc"; "": none */
    uint8_t access;               /* MR_READ | MR_WRITE; 0: it allocates or frees */
    uint8_t assumed;              /* mr_assumed: why it is not known to touch these bytes, or 0 */
    bool allocates;               /* the memory comes from it: an alloc, or a launch */
    bool atomic;                  /* each access is an atomic update */
    bool host;                    /* the host itself did it */
    /* `stream` is the stream on which the graph's node was captured */
    bool captured;
    uint16_t rank;   /* the rank that made the call, from 1; 0: no rank */
    char stream[64]; /* "copy", "default", "stream #3", "host" */
    mr_site where;   /* no file: collected by Lua */
    /* for a node of a graph: where the graph was launched (R42); otherwise no file */
    mr_site launched;
    const char *file, *launched_file; /* as sentences name those files; NULL: in full */
    uint64_t seq;
} mr_hazard_side;

const char *mr_hazard_access_text(const mr_hazard_side *side); /* "read-write", "alloc" */

#define MR_HAZARD_STREAM_PAIRS 16
#define MR_HAZARD_FIXES        12   /* lines, of one report */
#define MR_HAZARD_MORE         2048 /* bytes, for the names of the other tensors of one report */

const char *mr_hazard_place_text(mr_script_place place); /* "before" */

/* A line of Lua to be put in, and where. */
typedef struct {
    mr_script_place place; /* relative to the line `where` */
    bool typed;            /* that line was entered at the prompt: the fix is for the next time */
    bool in_loop;          /* within: the body of a loop stands on that line */
    bool has_namesake;     /* and that line calls several operations named `op` */
    mr_site where;
    const char *file; /* as sentences name it */
    /* the second operation of the pair that the line is for, and its stream */
    char op[MR_LONGEST_NAME + 1], stream[64];
    char text[224];
} mr_hazard_fix;

/* The news in a report that is written. */
typedef enum {
    MR_HAZARD_NEWS_REPORT,  /* all of it */
    MR_HAZARD_NEWS_REASON,  /* the reason became clearer (waited-after-use) */
    MR_HAZARD_NEWS_STREAMS, /* the pair of places was met between other streams, too */
    MR_HAZARD_NEWS_TENSORS, /* or with other memory, which needs a fix of its own */
} mr_hazard_news;

typedef struct {
    mr_hazard_kind kind;
    mr_hazard_reason reason;
    uint64_t number;       /* 1, 2, ... in the order of finding */
    uint64_t count;        /* how often this pair of places was met */
    uint64_t within_lines; /* tells apart pairs of places on the same lines; 0: one of its kind */
    mr_hazard_side first, second; /* in the order of submission; advice: `first` may have no op */
    /* for nodes of graphs: the lines that a fix goes by, see mr_hazard_outer_places; otherwise no files */
    mr_site outer_first, outer_second;
    char tensor[MR_LONGEST_NAME +
                1]; /* "A", or "tensor #7 f32[100,100] made at line 3"; "" for advice without one */
    /* The names of other tensors, for which the same holds, each with its '\0': as many as fit. */
    char more[MR_HAZARD_MORE];
    uint32_t more_count, more_size;
    char signature[80]; /* "f32[100,100]" */
    bool is_view;       /* the signature is that of a part of the memory */
    /* range in the storage that contains all bytes that both sides touch */
    uint64_t bytes_first, bytes_last;
    uint64_t bytes_shared; /* how many bytes that are; 0: not counted */
    char why[400];         /* a sentence */
    mr_hazard_fix fix[MR_HAZARD_FIXES];
    int fix_count;
    bool needs_several; /* other pairs of streams need lines of their own */
    char advice[480];   /* the fix in words, if no line can be added; otherwise "" */
    /* The fix orders the first stream's work up to this seq before the second: the seq of a record, or of the first
     * access. 0: all work submitted before the second. */
    uint64_t covered;
    /* A use-after-free whose fix is a wait after the place of the first access: the second stream, or the host, waits
     * for all of the first stream. Not a record_stream, which is for one tensor. */
    bool joins;
    /* Different pairs of streams among `count`, and the ids of the first few; at the bound: or more. */
    uint32_t stream_pairs;
    struct {
        uint32_t first, second; /* 0: the host */
    } streams[MR_HAZARD_STREAM_PAIRS];
    char also[2][64];         /* a first and a second stream unlike those of the sides; "": none */
    uint64_t ranks;           /* of the second sides, as bits from rank 0 on */
    bool withdrawn;           /* advice that the script has since made wrong */
    bool waits;               /* it is not written before its launches have run: withdraw.c */
    uint64_t absent;          /* of `count`: pairs that turned out to be no hazard */
    uint64_t updated;         /* of `absent`: both only update bytes that both touch */
    mr_hazard_news unwritten; /* additions since it was written; or NEWS_REPORT */
    bool amended; /* more became known after it was first written: `reason`, or other streams */
} mr_hazard_report;

/* Whether one of the two sides may not touch the bytes at all. */
static inline bool mr_hazard_is_assumed(const mr_hazard_report *report) {
    return report->first.assumed || report->second.assumed;
}

/* One of the script's objects; the others are NULL. A storage: any tensor that shows it will do. */
typedef struct {
    const mr_stream *stream;
    const mr_event *event;
    const mr_event *work; /* the object that a collective returned (mr.dist.Work), by its event */
    const mr_tensor *tensor;
    const mr_storage *storage;
} mr_hazard_object;

/* Functions that bind the checker to the language of the scripts; each may be NULL. */
typedef struct {
    void *context;
    /* Calls `look`; meanwhile the other hooks answer for the host `rank`, from 1. That rank may be parked, since the
     * last rank submits a collective for all. False: out of memory. NULL: they always answer for the host that runs. */
    bool (*as_host)(void *context, uint16_t rank, void (*look)(void *asked), void *asked);
    /* That host's current stream, of its current device. */
    const mr_stream *(*current)(void *context);
    /* A new report, or one that was amended, in warn mode; advice also in error mode. */
    void (*write)(void *context, const mr_hazard_report *report, mr_hazard_news news);
    /* The script's own variable for an object, as an expression that is valid before that line; no file: any live
     * variable. False: there is none. */
    bool (*variable)(void *context, const mr_hazard_object *object, mr_site front, char *out,
                     size_t size);
    /* A live frame's variable that leads to it, and the current line of that frame. False: there is none. *out_held is
     * then the line of the call that made the stream, if its result is kept in no variable; otherwise without a
     * file. */
    bool (*holder)(void *context, const mr_hazard_object *object, char *out, size_t size,
                   mr_site *out_held);
    /* Whether the function that contains the line `front` is running. Then its variables can be found. */
    bool (*is_running)(void *context, mr_site front);
    /* Where a line of Lua runs after the first access and right before the second. False: nowhere. With
     * out_spot->again it is needed there, too. */
    bool (*before)(void *context, const mr_script_meeting *meeting, mr_script_spot *out_spot);
    /* Where a line of Lua runs right after what the line `where` did. False: nowhere, or the statement of that line has
     * not ended. `is_over`: it has ended, although its line is the current one, as at the end of a <close> variable. */
    bool (*behind)(void *context, mr_site where, bool is_over, mr_script_spot *out_spot);
    /* Whether the run of the first access's statement has not ended, so that a line added after it has not run. */
    bool (*still_runs)(void *context, const mr_script_meeting *meeting);
    /* Whether the statement of the line `where` comes after a line added at the spot. */
    bool (*comes_before)(void *context, const mr_script_spot *spot, mr_site where);
    /* Whether the waiting call directly follows the one that submits a host function, with no code of the script
     * between them. `wait` without a file: there is no wait, and the script ends there. NULL: counts as true. */
    bool (*waits_at_once)(void *context, mr_site function, mr_site wait);
    /* A name for a new local that is set at `from` and used at `to`; false: that cannot be. */
    bool (*new_local)(void *context, const mr_script_spot *from, const mr_script_spot *to,
                      bool (*is_taken)(const void *asker, const char *name), const void *asker,
                      char *name, size_t size);
    /* Finds a variable that is declared ahead of both places. Needed where a local cannot be set at `record` and used
     * at `wait`: `wait` comes before it in a loop, or is out of its scope. `tensor`: an expression for it in front of
     * the second, "" if there is none; `stream`: one for that of the first. */
    bool (*ahead)(void *context, const mr_script_spot *record, const mr_script_spot *wait,
                  const mr_script_meeting *meeting, const char *tensor, const char *stream,
                  bool (*is_taken)(const void *asker, const char *name), const void *asker,
                  mr_script_variable *out_ahead);
    /* Whether `done[k]`, an expression at that place, may be nil: the entry is set only by later code. */
    bool (*is_set_later)(void *context, const mr_script_spot *spot, const char *expression);
    /* Whether the current stream at the spot is also current at the statement of that line. */
    bool (*is_direct)(void *context, const mr_script_spot *spot, mr_site where);
    /* If the line is one call of `name` with `option`: the variable at the spot that gets the result; "": no
     * variable gets it. False: it is no such call. */
    bool (*result)(void *context, mr_site call, const char *name, const char *option,
                   const mr_script_spot *spot, char *out, size_t size);
    /* The variable at the spot of the `for` that begins at `loop`, where the statement of `use` uses the value of no
     * other variable of that loop. False: there is none. */
    bool (*loop_variable)(void *context, mr_site loop, mr_site use, const char *method,
                          const mr_script_spot *spot, char *out, size_t size);
    /* A collective of a group that has not ended, on the stream or the device for which the host waits. False: none. */
    bool (*in_group)(void *context, const mr_command *wait, const char **out_name,
                     mr_site *out_where);
} mr_hazard_hooks;

typedef struct {
    uint64_t operations;         /* seen with the checker on */
    uint64_t hazards;            /* pairs found, not counting follow-ups and ignored ones */
    uint64_t reports;            /* hazards kept as reports, by pair of places */
    uint64_t follow_ups;         /* other pairs that a reported pair's fix also orders */
    uint64_t checked_apart;      /* operations in checks or separate stretches; of them: */
    uint64_t explored, stressed; /* by mr_hazard_apart */
    mr_claims claims;            /* what was not followed, and reports that are not shown */
} mr_hazard_totals;

/* Created in mode off. `hooks` is copied. The machine must outlive it. */
mr_status mr_hazard_create(mr_machine *machine, const mr_hazard_hooks *hooks,
                           mr_hazard **out_hazard);
void mr_hazard_destroy(mr_hazard *hazard); /* accepts NULL */

/* An unordered pair, whether or not it is reported: it may be a follow-up, or ignored. */
typedef struct {
    mr_hazard_kind kind;
    bool ahead;   /* error mode: of a command that has not been carried out and may be refused */
    bool assumed; /* one of the two accesses may not touch the bytes */
    uint64_t first_seq, second_seq; /* in the order of submission */
    mr_site first_where, second_where;
    uint64_t storage;                 /* its id */
    uint64_t bytes_first, bytes_last; /* of the storage: what both touch lies between */
} mr_hazard_found;

/* A call that changes what the checker judges from then on. */
typedef enum {
    MR_HAZARD_TURN_MODE,
    MR_HAZARD_TURN_CHECK_BEGIN,
    MR_HAZARD_TURN_CHECK_END,
    MR_HAZARD_TURN_RETURNED,
    MR_HAZARD_TURN_EXPLORE_BEGIN,
    MR_HAZARD_TURN_STRESS_BEGIN,
    MR_HAZARD_TURN_APART_END,
    MR_HAZARD_TURN_JUDGE_BEGIN,
    MR_HAZARD_TURN_JUDGE_END,
} mr_hazard_turn;

/* For comparisons of verdicts, as tests make them. Each function is optional. */
typedef struct {
    void *context;
    bool only_tell; /* pairs are told to `found`; nothing is counted, explained or reported */
    void (*found)(void *context, const mr_hazard_found *found);
    /* Two atomic updates of the same bytes that nothing orders: no hazard, but either may come first. */
    void (*updated)(void *context, const mr_hazard_found *found);
    /* The two are ordered only if an asynchronous copy of pageable memory waits (R23). */
    void (*unspecified)(void *context, const mr_hazard_found *found);
    /* Such a call has succeeded; `mode`: of TURN_MODE. */
    void (*turned)(void *context, mr_hazard_turn turn, mr_hazard_mode mode);
} mr_hazard_watcher;

/* `watcher` is copied; NULL: no watcher. */
void mr_hazard_watch(mr_hazard *hazard, const mr_hazard_watcher *watcher);

/* Inside a check it takes effect when that ends. Switching on starts from a state in which all earlier work counts as
 * ordered; switching off forgets the history and keeps the reports. */
mr_status mr_hazard_set_mode(mr_hazard *hazard, mr_hazard_mode mode);
mr_hazard_mode mr_hazard_get_mode(const mr_hazard *hazard);
/* The mode, and the number of reports, as a script sees them: the same in each call of an explored function, including
 * the judged one. */
mr_hazard_mode mr_hazard_asked_mode(const mr_hazard *hazard);
size_t mr_hazard_asked_count(const mr_hazard *hazard);
void mr_hazard_set_advice(mr_hazard *hazard, bool on);
/* From now on, files named `prefix` and a number are entries of a prompt; NULL: none are. Only the pointer is kept. */
void mr_hazard_set_prompt(mr_hazard *hazard, const char *prefix);
/* The script's file. Sentences leave its folder out of file names; `where` and the stable line have whole names. Only
 * the pointer is kept; NULL: no file. */
void mr_hazard_set_script(mr_hazard *hazard, const char *path);
/* The place as sentences name it. Every text for the user gets its places here. */
mr_site mr_hazard_shown(const mr_hazard *hazard, mr_site where);
/* The same in the form of a callback; `hazard` is a mr_hazard. */
mr_site mr_hazard_shown_by(const void *hazard, mr_site where);
/* The whole name of a file that mr_hazard_shown named `shown`. */
void mr_hazard_whole_name(const mr_hazard *hazard, const char *shown, mr_buffer *out);

/* mr.hazard.check: between the two, mode is collect and reports go to a list of their own; all work of
 * before counts as ordered. Not nested: a second begin is not-permitted. `end` puts the mode back; the
 * reports found since begin are those from *out_first on. They and the operations do not count in the
 * totals, which say only how many operations there were (`checked_apart`). *out_inside: those of the check; may be
 * NULL. */
mr_status mr_hazard_check_begin(mr_hazard *hazard);
void mr_hazard_check_end(mr_hazard *hazard, size_t *out_first, mr_hazard_totals *out_inside);
/* Work between the two calls is separate. The totals count its operations, but not its hazards, nor what was not
 * followed in it. The checker still follows it, as it may use earlier memory. Inside a check it can have checks of its
 * own. A change of the mode takes effect when it ends. All devices have been waited for when it ends, so its work
 * counts as ordered. Not nested; a second end does nothing. */
typedef enum { MR_HAZARD_EXPLORED, MR_HAZARD_STRESSED } mr_hazard_apart;
mr_status mr_hazard_apart_begin(mr_hazard *hazard, mr_hazard_apart kind);
void mr_hazard_apart_end(mr_hazard *hazard);
/* Inside such work: the work between these two calls is judged like a check, and can contain checks. The reports found
 * since begin, except those of such checks, are those from *out_first on. `out_inside` as of a check. */
mr_status mr_hazard_judge_begin(mr_hazard *hazard);
void mr_hazard_judge_end(mr_hazard *hazard, size_t *out_first, mr_hazard_totals *out_inside);
/* Called when the judged code has returned: the function of a check, or the script. From then on, until the check ends,
 * frees by Lua's collector are not judged. All other work still is. */
void mr_hazard_returned(mr_hazard *hazard);
/* Ends a check that the script has left for good (os.exit): what it found is forgotten. */
void mr_hazard_check_abandon(mr_hazard *hazard);
bool mr_hazard_checking(const mr_hazard *hazard);

/* A write that races with a read. The text is borrowed from the checker. */
typedef struct {
    const char *op;
    mr_site where;
    uint64_t seq;
} mr_hazard_writer;
/* Whether the next command of `stream` (NULL: the host) can read all of the tensor without a hazard. If not,
 * *out_writer is a write that is not ordered before it. Changes no state. */
bool mr_hazard_can_read(mr_hazard *hazard, const mr_tensor *tensor, mr_stream *stream,
                        mr_hazard_writer *out_writer);
/* Whether some of the tensor's bytes are unwritten. */
bool mr_hazard_is_unwritten(const mr_hazard *hazard, const mr_tensor *tensor);
/* Whether a host function or a user's kernel that was submitted to this device may not have run yet. Before a verdict,
 * and before the checker is switched off, the caller runs them if it can (mr_device_drain). Otherwise it depends on
 * timing which accesses and which races were seen. */
bool mr_hazard_awaits_work(const mr_hazard *hazard, const mr_device *device);
void mr_hazard_drained(mr_hazard *hazard, const mr_device *device); /* it has been done */

/* Reports in the order of finding, hazards and advice. Pointers are valid until clear or the next
 * command. At most MR_HAZARD_MAX_REPORTS are kept; the rest is counted. */
#define MR_HAZARD_MAX_REPORTS 1000
size_t mr_hazard_report_count(const mr_hazard *hazard);
const mr_hazard_report *mr_hazard_report_at(const mr_hazard *hazard, size_t i);
/* Forgets the reports and begins new totals; those of the whole run remain. */
void mr_hazard_clear(mr_hazard *hazard);
/* Forgets the reports from `first` on: those of a check, which the caller has copied. */
void mr_hazard_drop_from(mr_hazard *hazard, size_t first);

/* Totals since the last clear; `whole_run`: of the whole run, including cleared work. */
mr_hazard_totals mr_hazard_get_totals(const mr_hazard *hazard, bool whole_run);
/* The claim about these operations; none where there were none, or a hazard. */
mr_claim mr_hazard_claim(const mr_hazard_totals *totals);
/* Call this when the script ended with an error, which no command shows. `status`, if not NULL: the error, caused by
 * work that the script did not wait for. */
void mr_hazard_script_failed(mr_hazard *hazard, const mr_error *status);

/* Suppression. Each text may be NULL (any). `where` is "file:line" or "file" and matches either side;
 * kind < 0: any. A line that no file can have is an invalid argument. */
mr_status mr_hazard_ignore(mr_hazard *hazard, const char *tensor, int kind, const char *where);
void mr_hazard_clear_ignores(mr_hazard *hazard);
/* One line a rule: what it matches and how often it did. */
void mr_hazard_describe_ignores(const mr_hazard *hazard, mr_buffer *out);

/* Gives the advice about lines, by all their occurrences so far, and writes the parts that reports have gained since
 * they were written. Call this at the end of the run, or when asked. */
void mr_hazard_finish(mr_hazard *hazard);
/* Writes the reports that wait for launches to run: at the end of the run. */
void mr_hazard_write_waiting(mr_hazard *hazard);

/* The chain that orders two operations, one step a line, or why there is none. Looks at the last
 * MR_HAZARD_LOG commands, also after the checker was switched off. Returns whether a chain exists. */
#define MR_HAZARD_LOG 4096
bool mr_hazard_why(mr_hazard *hazard, uint64_t first_seq, uint64_t second_seq, mr_buffer *out);
/* The last operation submitted at a line (file NULL: any file; line 0: any line), else the last record, wait or
 * synchronise there; 0 if the log has none. If no file has that name, one whose name ends with it behind a '/'. */
uint64_t mr_hazard_find_operation(const mr_hazard *hazard, const char *file, int line);

/* Whether the next command of `second` (NULL: of the host) comes after all commands of `first` up to `first_seq`. */
bool mr_hazard_is_ordered(mr_hazard *hazard, mr_stream *first, uint64_t first_seq,
                          mr_stream *second);

/* "race.lua:12" taken apart: the size of the file's name (0: there is none) and the line, 0 where the text
 * does not end in ":" and digits. False: those digits are not a line, which is 1 to INT_MAX. */
bool mr_hazard_place_parse(const char *text, size_t *out_file_size, int *out_line);

/* The claim or the count of hazards, then a line for each thing that was not followed (claims.h); since the last
 * clear, or of the whole run. */
void mr_hazard_summary(const mr_hazard *hazard, bool whole_run, mr_buffer *out);

/* Writing. `colour`: ANSI sequences. */
void mr_hazard_write_text(const mr_hazard_report *report, bool colour, mr_buffer *out);
/* Only what is new about a report that has been written before. */
void mr_hazard_write_amended(const mr_hazard_report *report, mr_hazard_news news, bool colour,
                             mr_buffer *out);
void mr_hazard_write_json(const mr_hazard_report *report, mr_buffer *out); /* one line with '\n' */
/* Writes the summary of the run in the same way. `rank`: this process among others; below 0: there are no others. */
void mr_hazard_summary_json(const mr_hazard *hazard, int rank, mr_buffer *out);
void mr_hazard_fix_text(const mr_hazard_report *report, mr_buffer *out); /* lines of Lua, placed */

#endif
