/* The waits that a program needs. The hazard checker judges a recorded program with some of its waits left out; no
 * command is carried out. A wait is needed if a hazard appears without it. Rounds of one line are one wait. */
#ifndef MR_WAITS_WAITS_H
#define MR_WAITS_WAITS_H

#include "base/buffer.h"
#include "hazard/claims.h"
#include "hazard/hazard.h"
#include "program/program.h"

/* The kinds of waits, by the function that the script called. */
#define MR_WAIT_KIND_LIST(X)                                                                       \
    X(EVENT, "wait_event")                                                                         \
    X(STREAM, "wait_stream") /* its record is dropped with it */                                   \
    X(BARRIER, "barrier")    /* one member of mr.barrier: the others go on without it */           \
    X(SYNCHRONIZE, "synchronize")

typedef enum {
#define X(name, text) MR_WAIT_##name,
    MR_WAIT_KIND_LIST(X)
#undef X
} mr_wait_kind;

#define MR_WAIT_VERDICT_LIST(X)                                                                    \
    X(NEEDED, "needed") /* without it alone there is a hazard */                                   \
    X(TOGETHER,                                                                                    \
      "together")         /* others give the same order; without it and them there is a hazard */  \
    X(UNKNOWN, "unknown") /* without it alone an order is lost whose effects are not followed */   \
    X(REDUNDANT, "redundant") /* dropping it adds no hazard, whatever other waits are dropped */

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
    uint32_t needed_rounds; /* how many of them cause a hazard when dropped alone; or NOT_COUNTED */
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
    bool kept; /* in a set of calls that is sufficient with the kept waits */
    uint32_t rounds;
    char *because; /* owned */
} mr_wait_record;

typedef struct {
    mr_wait_record *items;
    size_t count, sufficient;
} mr_waits_records;

typedef struct {
    const mr_program *program; /* a reference: sites point into it */
    const mr_hazard *names;    /* as in the options; borrowed while the text is written */
    mr_wait *waits;            /* in the order of the first round */
    size_t count;
    /* Interrupted: `waits` has the waits with a verdict so far, of `total`. `searched`: all have one, and the fields
     * below are valid; otherwise the waits listed are only known to be needed. */
    bool interrupted, searched;
    size_t total;
    size_t sufficient; /* the size of the kept set */
    /* no smaller set is sufficient; false: only no single wait can be dropped from it */
    bool exact;
    size_t hazards; /* accesses that have a hazard with all waits in place */
    /* all of them are of launches that are only assumed to touch the bytes */
    bool hazards_assumed;
    char *hazard; /* the first of them, as a sentence; or NULL */
    bool has_costs, costs_are_cut;
    double makespan_ms, kept_ms; /* of the program, and of the program with only the kept waits */
    mr_waits_records records;
    char *no_costs; /* why there are no costs, or not all; or NULL */
    /* Claims about the recording (mr_waits_note_claims). Queries and host functions count only if the script's
     * behaviour may depend on them. */
    mr_claims claims;
} mr_waits;

/* A call of the script that reads or changes the device's progress, which no observer follows. */
typedef struct {
    size_t at;        /* after so many items */
    const char *what; /* static: "mr.machine.queues" */
    mr_site where;
    bool is_of_storage; /* it concerns only the bytes of this storage, by its id */
    uint64_t storage;
} mr_waits_look;

typedef struct {
    const mr_backend *simulated;        /* the backend that predicts times; NULL: no times */
    bool (*interrupted)(void *context); /* polled; may be NULL */
    /* The script's name for an object, by its id; NULL: none. Each may be NULL. */
    const char *(*stream_name)(void *context, uint32_t id);
    const char *(*storage_name)(void *context, uint64_t id);
    void *context;
    const mr_hazard *names; /* leaves the script's folder out of texts; NULL: full names */
    /* Items that the script itself did not submit, such as those of backward; ascending. Their waits stay in the
     * program. */
    const size_t *not_judged;
    size_t not_judged_count;
    const mr_waits_look *looks; /* in their order */
    size_t look_count;
    const size_t *prints; /* items: launches that may print; ascending */
    size_t print_count;
    /* The number of items recorded when the judged code returned: later frees by Lua's collector do not belong to it.
     * 0: unknown. */
    size_t returned;
    bool all_costs; /* without a limit of effort */
    /* limit of commands for a search, beyond one question for each wait; 0: the usual one */
    uint64_t effort;
} mr_waits_options;

/* An interruption is not an error: see `interrupted`. */
mr_status mr_waits_find(const mr_program *program, const mr_waits_options *options,
                        mr_waits **out_waits);
void mr_waits_destroy(mr_waits *waits); /* accepts NULL */

/* Adds the claims about what was not followed during the recording. */
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
