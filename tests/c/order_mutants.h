/* Breaks the rows of src/order one at a time, and asks a reader's judge whether it notices. The rows are compiled here
 * once more, so that they can be changed; everything else is the library. Include this first. */
#ifndef ORDER_MUTANTS_H
#define ORDER_MUTANTS_H

#define MR_ORDER_MUTATE
#include "../../src/order/order.c"

#include <stdio.h>
#include <string.h>

typedef enum {
    MUTANT_DROPPED,   /* the rule does not exist */
    MUTANT_WEAKENED,  /* it is only the allocator's */
    MUTANT_MISPLACED, /* it is about another place */
    MUTANT_WIDENED,   /* it asks for a fact less: once for each fact */
    MUTANT_BOUND,     /* it is not only the allocator's for any command */
    MUTANT_KEPT,      /* the place keeps what it had, or does not */
    MUTANTS
} order_mutant;

enum {
    EVERY_MUTANT = (1 << MUTANTS) - 1,
    ONLY_WIDENED = 1 << MUTANT_WIDENED,
    ONLY_BOUND = 1 << MUTANT_BOUND,
    ONLY_KEPT = 1 << MUTANT_KEPT
};

static const char *const order_row_names[] = {
#define X(id, ...) #id,
    MR_ORDER_LIST(X)
#undef X
};

/* A place that every command, or every wait, has. */
static uint8_t other_place(uint8_t place, bool in_stream) {
    if (!in_stream) return MR_PLACE_HOST;
    return place == MR_PLACE_LANE ? MR_PLACE_DEVICE : MR_PLACE_LANE;
}

/* Any command can do without these: they say of what kind its stream is, and what the host does. Not so with what only
 * some commands name: an event, memory, a meeting, the devices that a copy is a wall for, the stream of a wait. */
enum {
    WIDENS = MR_FACT_LEGACY | MR_FACT_BLOCKING | MR_FACT_BY_HOST | MR_FACT_FOR_DEVICE |
             MR_FACT_FOR_MEMORY | MR_FACT_FOR_ITSELF | MR_FACT_FOR_EARLIER
};

/* Commands that come there have no order among themselves. Elsewhere each comes after all that is there:
 * test_order_readers.c. */
static bool may_lose(const mr_order_row *row) {
    return row->to == MR_PLACE_RECORD || row->to == MR_PLACE_GATHERED || row->to == MR_PLACE_DEVICE;
}

/* `fact`: of MUTANT_WIDENED. False: there is no such mutant for a reader of rows up to `strength`. */
static bool order_break(mr_order_row *row, order_mutant how, uint32_t fact, mr_strength strength) {
    bool in_stream = row->when == MR_AT_ENTER || row->when == MR_AT_LEAVE;
    switch (how) {
    case MUTANT_DROPPED: row->needs = UINT32_MAX; return true;
    case MUTANT_WEAKENED: row->strength = MR_ALLOCATOR; return strength < MR_ALLOCATOR;
    case MUTANT_MISPLACED:
        if (row->when == MR_AT_LEAVE) row->to = other_place(row->to, true);
        else row->from = other_place(row->from, in_stream);
        return true;
    case MUTANT_WIDENED: row->needs &= ~fact; return fact != 0;
    case MUTANT_BOUND:
        if (!row->allocator_for) return false;
        row->allocator_for = 0;
        return strength < MR_ALLOCATOR;
    case MUTANT_KEPT:
        row->replaces = !row->replaces;
        return row->when == MR_AT_LEAVE && may_lose(row);
    case MUTANTS: break;
    }
    return false;
}

/* A row that a reader has in the form of its places, so that it does not ask for it; or mutants of it that change
 * nothing. */
typedef struct {
    mr_order_id id;
    const char *why;
    unsigned mutants; /* bits of order_mutant */
} order_inherent;

static const order_inherent *order_excuse(const order_inherent *inherent, mr_order_id id,
                                          order_mutant how) {
    for (const order_inherent *i = inherent; i && i->why; i++)
        if (i->id == id && (i->mutants >> how & 1)) return i;
    return NULL;
}

/* Whether the judge does not notice it. `notices` is asked with the row broken. */
static int order_missed(mr_order_id id, order_mutant how, uint32_t fact, mr_strength strength,
                        bool (*notices)(void)) {
    static const char *const texts[] = {"dropped", "weakened", "misplaced",
                                        "widened", "bound",    "kept"};
    mr_order_row kept = mr_order_rows[id];
    bool is_mutant = order_break(&mr_order_rows[id], how, fact, strength);
    bool noticed = !is_mutant || notices();
    mr_order_rows[id] = kept;
    if (is_mutant)
        printf("%-14s %s: %s\n", order_row_names[id], texts[how],
               noticed ? "noticed" : "NOT NOTICED");
    return !noticed;
}

/* How many mutants of a row a judge does not notice, of a reader that takes rows up to `strength`. `inherent` ends with
 * a `why` of NULL, or is NULL. */
static int order_row_unnoticed(mr_order_id id, mr_strength strength, const order_inherent *inherent,
                               bool (*notices)(void)) {
    int missed = 0;
    for (int how = 0; how < MUTANTS; how++) {
        const order_inherent *excuse = order_excuse(inherent, id, (order_mutant)how);
        if (excuse) {
            if (excuse->mutants != EVERY_MUTANT || !how)
                printf("%-14s %s\n", order_row_names[id], excuse->why);
            continue;
        }
        uint32_t facts = how == MUTANT_WIDENED ? mr_order_rows[id].needs & WIDENS : 0;
        do {
            missed += order_missed(id, (order_mutant)how, facts & -facts, strength, notices);
            facts &= facts - 1;
        } while (facts);
    }
    return missed;
}

enum { MOST_SEEDS = 20000 };

/* Whether the judge finds a difference for one of the seeds 1 to `count` (up to MOST_SEEDS). Seeds that found another
 * mutant are tried first: a program that has what one rule needs mostly has what others need. */
static inline bool order_any_seed(uint64_t count, bool (*differs)(uint64_t seed)) {
    static uint64_t seeds[MOST_SEEDS];
    for (uint64_t i = 0; i < MOST_SEEDS && !seeds[MOST_SEEDS - 1]; i++) seeds[i] = i + 1;
    for (uint64_t i = 0; i < count && i < MOST_SEEDS; i++) {
        uint64_t seed = seeds[i];
        if (!differs(seed)) continue;
        memmove(seeds + 1, seeds, i * sizeof *seeds);
        seeds[0] = seed;
        return true;
    }
    return false;
}

/* ---- copies: each fact of each kind of copy, the other way round */

typedef enum {
    COPY_D2D,
    COPY_PEER,
    COPY_H2H,
    COPY_TO_PINNED,
    COPY_TO_PINNED_ASYNC,
    COPY_TO_PAGEABLE,
    COPY_TO_PAGEABLE_ASYNC,
    COPY_FROM_PINNED,
    COPY_FROM_PINNED_ASYNC,
    COPY_FROM_PAGEABLE,
    COPY_FROM_PAGEABLE_ASYNC,
    ORDER_COPIES
} order_copy_kind;

typedef enum { AFTER_STREAM, READS_SOURCE, UNTIL_DONE, IS_OPEN, COPY_FACTS } order_copy_fact;

static int broken_copy = -1, broken_fact; /* -1: none */

static order_copy_kind order_copy_kind_of(const mr_order_copy *copy) {
    int async = !copy->synchronous;
    switch (copy->direction) {
    case MR_COPY_D2D: return COPY_D2D;
    case MR_COPY_PEER: return COPY_PEER;
    case MR_COPY_H2H: break;
    case MR_COPY_D2H:
        return (copy->to == MR_MEMORY_PAGEABLE ? COPY_TO_PAGEABLE : COPY_TO_PINNED) + async;
    case MR_COPY_H2D:
        return (copy->from == MR_MEMORY_PAGEABLE ? COPY_FROM_PAGEABLE : COPY_FROM_PINNED) + async;
    }
    return COPY_H2H;
}

static mr_order_copy_rules order_break_copy(const mr_order_copy *copy, mr_order_copy_rules rules) {
    if (broken_copy != (int)order_copy_kind_of(copy)) return rules;
    switch ((order_copy_fact)broken_fact) {
    case AFTER_STREAM: rules.after_stream ^= true; break;
    case READS_SOURCE: rules.reads_source ^= true; break;
    case UNTIL_DONE: rules.until_done ^= true; break;
    case IS_OPEN: rules.is_open ^= true; break;
    case COPY_FACTS: break;
    }
    return rules;
}

/* `same`: by kind, the facts (bits) whose opposite is the same to this reader. How many others its judge does not
 * notice. */
static inline int order_copies_unnoticed(const unsigned same[ORDER_COPIES], bool (*notices)(void)) {
    static const char *const facts[] = {"after_stream", "reads_source", "until_done", "is_open"};
    int missed = 0;
    for (broken_copy = 0; broken_copy < ORDER_COPIES; broken_copy++)
        for (broken_fact = 0; broken_fact < COPY_FACTS; broken_fact++) {
            if (same[broken_copy] >> broken_fact & 1) continue;
            bool noticed = notices();
            printf("copy %2d %s: %s\n", broken_copy, facts[broken_fact],
                   noticed ? "noticed" : "NOT NOTICED");
            missed += !noticed;
        }
    broken_copy = -1;
    return missed;
}

static inline int order_unnoticed(mr_strength strength, const order_inherent *inherent,
                                  bool (*notices)(void)) {
    int missed = 0;
    for (unsigned id = 0; id < MR_ORDER_ROWS; id++) {
        if (mr_order_rows[id].strength > strength)
            printf("%-14s is not this reader's\n", order_row_names[id]);
        else missed += order_row_unnoticed((mr_order_id)id, strength, inherent, notices);
    }
    return missed;
}

#endif
