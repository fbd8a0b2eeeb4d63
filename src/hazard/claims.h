/* The claim of a check's final sentence. A ledger counts what was not followed; each row of the list below is one thing
 * that the checker can miss, with its own clause. A row either forbids the sentence "every legal schedule gives the
 * same values" or puts a condition behind it. Only these rows decide the claim: mr.hazard.summary(), the verdict of
 * --check, its JSON, mr.explore and mr.waits all use them. mr.explore says one clause in other words, as it has tried
 * the orders (lua/millrace/explore.lua).
 *
 * Each thing that the checker does not follow has a row, and is counted where it happens. A row without a
 * count says nothing. docs/hazards.md has the same rows, word for word (tests/host/claims.lua). */
#ifndef MR_HAZARD_CLAIMS_H
#define MR_HAZARD_CLAIMS_H

#include "base/buffer.h"
#include "model/observer.h"

typedef enum {
    MR_CLAIM_FORBIDS, /* nothing is claimed about every schedule */
    MR_CLAIM_IF,      /* the claim holds under this condition */
} mr_claim_effect;

/* The explorer carries out every schedule. So it follows decisions by values itself, and reports a failure as an
 * outcome. Rows with EXPLORED also concern the explorer: they say that accesses are missing. */
enum { MR_CLAIM_FOLLOWED, MR_CLAIM_EXPLORED };

/* id, key (stable: JSON and mr.hazard.summary), effect, whether it concerns the explorer, the clause for one, the
 * clause for several. In a clause "#" is the count and "@" the place of the first failure with its code. */
// clang-format off
#define MR_CLAIM_LIST(X)                                                                                                        \
    X(FAILED, "failed", FORBIDS, FOLLOWED,                                                                                      \
      "the run failed at @; nothing is claimed about what came after",                                                          \
      "the run failed # times, first at @; nothing is claimed about what came after")                                           \
    X(STOPPED, "stopped", FORBIDS, FOLLOWED,                                                                                    \
      "the script ended with an error; nothing is claimed about what it did not reach",                                         \
      "the script ended with an error; nothing is claimed about what it did not reach")                                         \
    X(INTERRUPTED, "interrupted", FORBIDS, FOLLOWED,                                                                            \
      "a wait was interrupted; nothing is claimed about what came after",                                                       \
      "# waits were interrupted; nothing is claimed about what came after")                                                     \
    X(RESET, "reset", FORBIDS, FOLLOWED,                                                                                        \
      "not checked: host memory that pending work was writing at a call of mr.reset()",                                         \
      "not checked: host memory that pending work was writing at # calls of mr.reset()")                                        \
    X(NOT_RUN, "not_run", FORBIDS, FOLLOWED,                                                                                    \
      "not checked: the accesses of 1 host function that has not run; wait for it",                                             \
      "not checked: the accesses of # host functions that have not run; wait for them")                                         \
    X(UNFINISHED, "unfinished", FORBIDS, FOLLOWED,                                                                              \
      "not checked: 1 stream whose kernels may not have finished; wait for it",                                                 \
      "not checked: # streams whose kernels may not have finished; wait for them")                                              \
    X(POINTERS, "pointers_as_data", FORBIDS, EXPLORED,                                                                          \
      "not checked: what 1 launch accesses through a pointer that it was given as data",                                        \
      "not checked: what # launches access through pointers that they were given as data")                                      \
    X(STRAYED, "strayed", FORBIDS, EXPLORED,                                                                                    \
      "not checked: 1 launch that accessed memory in other ways than its arguments tell",                                       \
      "not checked: # launches that accessed memory in other ways than their arguments tell")                                   \
    X(OUTSIDE, "shared_outside", FORBIDS, EXPLORED,                                                                             \
      "not checked: what code outside of millrace does with the memory, stream or event of 1 call",                             \
      "not checked: what code outside of millrace does with the memory, stream or event of # calls")                            \
    X(DRAWN, "drawn_by_host_functions", FORBIDS, FOLLOWED,                                                                      \
      "not checked: which random numbers 1 host function takes; that depends on when it runs",                                  \
      "not checked: which random numbers # host functions take; that depends on when they run")                                 \
    X(RANK_ORDER, "order_of_ranks", FORBIDS, FOLLOWED,                                                                          \
      "not checked: in which order ranks use 1 tensor from before them, which one of them writes",                              \
      "not checked: in which order ranks use # tensors from before them, which one of them writes")                             \
    X(FORGOTTEN, "forgotten", FORBIDS, FOLLOWED,                                                                                \
      "not checked: 1 access, which was forgotten to limit memory",                                                             \
      "not checked: # accesses, which were forgotten to limit memory")                                                          \
    X(DROPPED, "dropped", FORBIDS, FOLLOWED,                                                                                    \
      "not shown: 1 report beyond the limit",                                                                                   \
      "not shown: # reports beyond the limit")                                                                                  \
    X(IGNORED, "ignored", FORBIDS, FOLLOWED,                                                                                    \
      "not shown: 1 hazard that mr.hazard.ignore hides",                                                                        \
      "not shown: # hazards that mr.hazard.ignore hides")                                                                       \
    X(CLEARED, "cleared", FORBIDS, FOLLOWED,                                                                                    \
      "not counted: 1 hazard, which mr.hazard.clear() forgot",                                                                  \
      "not counted: # hazards, which mr.hazard.clear() forgot")                                                                 \
    X(SWITCHED_OFF, "switched_off", IF, FOLLOWED,                                                                               \
      "This holds for the operations that were checked: others were pending or submitted while the checker was off.",           \
      "This holds for the operations that were checked: others were pending or submitted while the checker was off.")           \
    X(HOST_READS, "host_reads", IF, FOLLOWED,                                                                                   \
      "This holds if 1 value that the host read does not change what it submits.",                                              \
      "This holds if # values that the host read do not change what it submits.")                                               \
    X(QUERIES, "queries", IF, FOLLOWED,                                                                                         \
      "This holds if 1 query answers as in this run.",                                                                          \
      "This holds if # queries answer as in this run.")                                                                         \
    X(SHORT, "short_of_memory", IF, FOLLOWED,                                                                                   \
      "This holds if 1 request for memory, which was refused, is refused whenever earlier frees complete.",                     \
      "This holds if # requests for memory, which were refused, are refused whenever earlier frees complete.")                  \
    X(HOST_FUNCTIONS, "host_functions", IF, EXPLORED,                                                                           \
      "This holds if 1 host function and other code share nothing that changes, except values of tensors.",                     \
      "This holds if # host functions and other code share nothing that changes, except values of tensors.")                    \
    X(UNSPECIFIED, "unspecified", IF, EXPLORED,                                                                                 \
      "This holds if an asynchronous copy of pageable memory waits, which CUDA does not specify (see --check=advice).",         \
      "This holds if asynchronous copies of pageable memory wait (# uses), which CUDA does not specify (see --check=advice).")  \
    X(UPDATES, "unordered_updates", IF, EXPLORED,                                                                               \
      "This holds if no value depends on the order of the atomic updates of 1 pair of launches, which nothing orders.",         \
      "This holds if no value depends on the order of the atomic updates of # pairs of launches, which nothing orders.")        \
    X(WITHDRAWN, "withdrawn", IF, FOLLOWED,                                                                                     \
      "This holds if 1 pair of launches, which touched no byte in common, uses no other indices under another schedule.",       \
      "This holds if # pairs of launches, which touched no byte in common, use no other indices under another schedule.")       \
    X(COLLECTED, "collected", IF, EXPLORED,                                                                                     \
      "This holds if Lua's collector does not free 1 tensor earlier than in this run.",                                         \
      "This holds if Lua's collector does not free # tensors earlier than in this run.")                                        \
    X(FINALIZED, "finalizers", IF, FOLLOWED,                                                                                    \
      "This holds if 1 call from a finalizer (__gc) comes where it came in this run.",                                          \
      "This holds if # calls from finalizers (__gc) come where they came in this run.")                                         \
    X(LEARNED, "learned", IF, EXPLORED,                                                                                         \
      "This holds if 1 answer about times, addresses or pending work does not change what the host does.",                      \
      "This holds if # answers about times, addresses or pending work do not change what the host does.")                       \
    X(DECLARED, "declared_accesses", IF, EXPLORED,                                                                              \
      "This holds if 1 launch does no other accesses than the script declares (access=).",                                      \
      "This holds if # launches do no other accesses than the script declares (access=).")                                      \
    X(ADDRESSES, "addresses_as_numbers", IF, EXPLORED,                                                                          \
      "This holds if 1 launch, which uses an address as a number, does the same wherever memory lies.",                         \
      "This holds if # launches, which use addresses as numbers, do the same wherever memory lies.")                            \
    X(THREADS, "order_of_threads", IF, EXPLORED,                                                                                \
      "This holds if 1 launch does the same in whatever order its threads run (atomics, volatile accesses, a clock).",          \
      "This holds if # launches do the same in whatever order their threads run (atomics, volatile accesses, a clock).")        \
    X(RANKS, "ranks", IF, EXPLORED,                                                                                             \
      "This holds if 1 rank shares nothing with others but what collectives carry.",                                            \
      "This holds if # ranks share nothing but what collectives carry.")                                                        \
    X(ROOM, "room_for_collectives", IF, EXPLORED,                                                                               \
      "This holds if 1 communicator finds room on its GPUs beside the collectives of others (R64a, see --check=advice).",       \
      "This holds if # communicators find room on their GPUs beside the collectives of others (R64a, see --check=advice).")     \
    X(ONE_STREAM, "ranks_in_one_stream", IF, EXPLORED,                                                                          \
      "This holds if ranks that use 1 tensor in the same stream submit one after the other all that is between two waits.",     \
      "This holds if ranks that use # tensors in the same stream submit one after the other all that is between two waits.")    \
    X(TOGETHER, "collectives_end_together", IF, EXPLORED,                                                                       \
      "This holds if the collective between the accesses of 1 race ends on all ranks at the same time, which CUDA does not guarantee (R61).", \
      "This holds if the collectives between the accesses of # races end on all ranks at the same time, which CUDA does not guarantee (R61).") \
    X(NOT_LOOKED, "not_looked_inside", IF, EXPLORED,                                                                            \
      "This holds if no race and no access out of bounds is in 1 launch, which was not looked into (kernel_checks = 2 does).",\
      "This holds if no race and no access out of bounds is in # launches, which were not looked into (kernel_checks = 2 does).")
// clang-format on

typedef enum {
#define X(id, key, effect, concerns, one, several) MR_CLAIM_##id,
    MR_CLAIM_LIST(X)
#undef X
        MR_CLAIM_COUNT
} mr_claim_id;

typedef struct {
    const char *key;
    mr_claim_effect effect;
    bool is_explored; /* it concerns the explorer, too */
    const char *one, *several;
} mr_claim_row;

extern const mr_claim_row mr_claim_rows[MR_CLAIM_COUNT];

/* The ledger. All zero: everything was followed. It owns nothing; the place is the machine's. */
typedef struct {
    uint64_t count[MR_CLAIM_COUNT];
    uint64_t ranks; /* ranks that have submitted something, as bits */
    mr_site where;  /* of the first failure; no file: not known */
    mr_code code;
} mr_claims;

static inline void mr_claims_add(mr_claims *claims, mr_claim_id id) {
    claims->count[id]++;
}
/* Only what concerns the explorer. */
mr_claims mr_claims_explored(const mr_claims *claims);
void mr_claims_merge(mr_claims *claims,
                     const mr_claims *earlier); /* adds what was counted earlier */

/* Events that each ledger counts in the same way, for an observer's `did`, `failed`, `lost` and `found`. TOGETHER
 * concerns only the explorer, whose schedules end a collective's ranks together. It is counted with a race of ranks, so
 * it is in no verdict of the checker; in other cases the explorer finds it itself (rules_find_stricter). HOST_FUNCTIONS
 * counts only functions during which the host did something else, so code that knows the order counts it. */
void mr_claims_did(mr_claims *claims, const mr_command *command);
void mr_claims_failed(mr_claims *claims, const mr_command *command, const mr_error *status);
void mr_claims_lost(mr_claims *claims, const mr_error *error);
void mr_claims_found(mr_claims *claims, const mr_command *command,
                     const mr_kernel_finding *finding);

/* The claim about a run without a hazard. */
#define MR_CLAIM_WORD_LIST(X)                                                                      \
    X(NONE, "none")                  /* nothing about schedules that were not seen */              \
    X(CONDITIONAL, "conditional")    /* every legal schedule, under the conditions that follow */  \
    X(EVERY, "every-legal-schedule") /* without a condition */

typedef enum {
#define X(id, text) MR_CLAIM_IS_##id,
    MR_CLAIM_WORD_LIST(X)
#undef X
} mr_claim;

mr_claim mr_claims_judge(const mr_claims *claims);
const char *mr_claim_text(mr_claim claim);

/* Writes the clauses of all rows that were counted, one a line with '\n', in the order of the list. The rows that
 * forbid a claim come first, then the conditions. The conditions are left out where `claim` is NONE. */
void mr_claims_write(const mr_claims *claims, mr_claim claim, mr_buffer *out);
/* The clause of one row, without '\n'. */
void mr_claims_write_row(const mr_claims *claims, mr_claim_id id, mr_buffer *out);

/* A ledger of its own, where there is no checker: between begin and end it observes the machine. It must stay at its
 * address. */
typedef struct {
    mr_observer observer;
    mr_claims claims;
} mr_ledger;
mr_status mr_ledger_begin(mr_ledger *ledger, mr_machine *machine);
void mr_ledger_end(mr_ledger *ledger, mr_machine *machine); /* the counts remain */

#endif
