/* The waits that a program needs. A recorded program is shown to the hazard checker with some of its waits left
 * out; nothing is carried out. A wait is needed if a hazard appears without it. Rounds of one line are one wait. */
#ifndef MR_WAITS_WAITS_H
#define MR_WAITS_WAITS_H

#include "base/buffer.h"
#include "hazard/claims.h"
#include "hazard/hazard.h"
#include "program/program.h"

/* The kinds of waits, by the function that the script called. */
#define MR_WAIT_KIND_LIST(X)                                                                       \
    X(EVENT, "wait_event")                                                                         \
    X(STREAM, "wait_stream") /* its record goes with it */                                         \
    X(BARRIER, "barrier")    /* one member of mr.barrier: the others go on without it */           \
    X(SYNCHRONIZE, "synchronize")

typedef enum {
#define X(name, text) MR_WAIT_##name,
    MR_WAIT_KIND_LIST(X)
#undef X
} mr_wait_kind;

#define MR_WAIT_VERDICT_LIST(X)                                                                    \
    X(NEEDED, "needed")     /* without it alone there is a hazard */                               \
    X(TOGETHER, "together") /* others order the same; without them, too, there is a hazard */      \
    X(UNKNOWN, "unknown")   /* without it alone an order is lost that nobody follows */            \
    X(REDUNDANT,                                                                                   \
      "redundant") /* whatever else goes, no access gets a hazard that has none with all waits */

typedef enum {
#define X(name, text) MR_WAIT_IS_##name,
    MR_WAIT_VERDICT_LIST(X)
#undef X
} mr_wait_verdict;

const char *mr_wait_kind_text(mr_wait_kind kind);
const char *mr_wait_verdict_text(mr_wait_verdict verdict);

#define MR_WAIT_NOT_COUNTED UINT32_MAX

typedef struct {
    mr_wait_kind kind;
    mr_site where;
    char who[80]; /* that waits: "stream `copy`", "the host"; of a barrier the member */
    mr_wait_verdict verdict;
    bool kept; /* in the smallest sufficient set */
    uint32_t rounds;
    uint32_t needed_rounds; /* how many of them cannot go alone for a hazard; or NOT_COUNTED */
    bool has_cost;
    /* The time that the whole program would save without it; may be negative. For a wait that is kept: in the program
     * with only those that are kept. */
    double costs_ms;
    char *because; /* sentences; owned */
    char *instead; /* a cheaper way with the same effect, which has been checked; or NULL */
} mr_wait;

/* A line that calls record_stream, see records.c. */
typedef struct {
    mr_site where;
    char tensor[80],
        stream[80]; /* as in a sentence: "`x`", "the default stream"; of the first round */
    mr_wait_verdict verdict;
    bool kept; /* in a set of calls that is enough beside the waits that are kept */
    uint32_t rounds;
    char *because; /* owned */
} mr_wait_record;

typedef struct {
    mr_wait_record *items;
    size_t count, sufficient;
} mr_waits_records;

typedef struct {
    const mr_program *program; /* a reference: sites point into it */
    const mr_hazard *names;    /* as in the options; while the text is written */
    mr_wait *waits;            /* in the order of the first round */
    size_t count;
    /* Interrupted: `waits` are those with a verdict by then, of `total`. `searched`: all have one, and what follows is
     * known; else it is only known that those in `waits` are needed. */
    bool interrupted, searched;
    size_t total;
    size_t sufficient; /* the size of the set that is kept */
    bool exact; /* no smaller set is sufficient; else: none can be had by leaving out one more */
    size_t hazards; /* accesses that have a hazard with all waits in place */
    /* all of them are of launches whose code does not tell which bytes they touch */
    bool hazards_assumed;
    char *hazard; /* the first of them, as a sentence; or NULL */
    bool has_costs, costs_are_cut;
    double makespan_ms, kept_ms; /* of the program, and with only the waits that are kept */
    mr_waits_records records;
    char *no_costs; /* why there are none, or not all; or NULL */
    /* Claims about the recording (mr_waits_note_claims). Queries and host functions count only if the script's
     * behaviour may depend on them. */
    mr_claims claims;
} mr_waits;

/* The script looks at, or changes, what depends on how far the device is, and no observer follows it. */
typedef struct {
    size_t at;        /* behind so many items */
    const char *what; /* static: "mr.machine.queues" */
    mr_site where;
    bool is_of_storage; /* it is about the bytes of this one, by its id */
    uint64_t storage;
} mr_waits_look;

typedef struct {
    const mr_backend *simulated;        /* on which times are predicted; NULL: none are */
    bool (*interrupted)(void *context); /* polled; may be NULL */
    /* The script's name for an object, by its id; NULL: none. Each may be NULL. */
    const char *(*stream_name)(void *context, uint32_t id);
    const char *(*storage_name)(void *context, uint64_t id);
    void *context;
    const mr_hazard *names; /* leaves the script's folder out of texts; NULL: nobody does */
    /* Items that are not waits of the script's own, such as those of backward; ascending. They stay in the program. */
    const size_t *not_judged;
    size_t not_judged_count;
    const mr_waits_look *looks; /* in their order */
    size_t look_count;
    const size_t *prints; /* items: launches that may print; ascending */
    size_t print_count;
    /* How many items were recorded when the judged code had returned: later frees by Lua's collector do not belong
     * to that code. 0: not known. */
    size_t returned;
    bool all_costs; /* however long it takes; else within the usual effort */
    /* commands that a search may look at beyond one look for each wait; 0: the usual */
    uint64_t effort;
} mr_waits_options;

/* An interruption is not an error: see `interrupted`. */
mr_status mr_waits_find(const mr_program *program, const mr_waits_options *options,
                        mr_waits **out_waits);
void mr_waits_destroy(mr_waits *waits); /* accepts NULL */

/* Adds what was not followed when the program was recorded. */
void mr_waits_note_claims(mr_waits *waits, const mr_claims *recorded);

/* The claim of the verdicts; where there is no wait, the claim about the program. */
mr_claim mr_waits_claim(const mr_waits *waits);

/* For a person. */
void mr_waits_write(const mr_waits *waits, mr_buffer *out);
/* "race.lua:9", or "line 9" where `beside` is of the same file. `names`: as in the options. */
const char *mr_wait_place(const mr_hazard *names, mr_site where, mr_site beside, char *out,
                          size_t size);
/* A time in milliseconds: with two digits, or three where it is short. */
const char *mr_wait_ms_text(double ms, char *out, size_t size);

#endif
