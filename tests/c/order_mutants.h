/* Breaks the rows of src/order one at a time, and asks a reader's judge whether it notices. The rows are compiled here
 * once more, so that they can be changed; everything else is the library. To be included first. */
#ifndef ORDER_MUTANTS_H
#define ORDER_MUTANTS_H

#define MR_ORDER_MUTATE
#include "../../src/order/order.c"

#include <stdio.h>

typedef enum {
    MUTANT_DROPPED,   /* the rule does not exist */
    MUTANT_WEAKENED,  /* it is only the allocator's */
    MUTANT_MISPLACED, /* it is about another place */
    MUTANTS
} order_mutant;

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

static void order_break(unsigned id, order_mutant how) {
    mr_order_row *row = &mr_order_rows[id];
    bool in_stream = row->when == MR_AT_ENTER || row->when == MR_AT_LEAVE;
    switch (how) {
    case MUTANT_DROPPED: row->needs = UINT16_MAX; break;
    case MUTANT_WEAKENED: row->strength = MR_ALLOCATOR; break;
    case MUTANT_MISPLACED:
        if (row->when == MR_AT_LEAVE) row->to = other_place(row->to, true);
        else row->from = other_place(row->from, in_stream);
        break;
    case MUTANTS: break;
    }
}

/* A row that a reader has in the form of its places, so that it does not ask for it. */
typedef struct {
    mr_order_id id;
    const char *why;
} order_inherent;

/* How many mutants of a row a judge does not notice, of a reader that takes rows up to `strength`. `notices` is asked
 * with the row broken. */
static int order_row_unnoticed(mr_order_id id, mr_strength strength, bool (*notices)(void)) {
    static const char *const texts[] = {"dropped", "weakened", "misplaced"};
    mr_order_row kept = mr_order_rows[id];
    int missed = 0;
    for (int how = 0; how < MUTANTS; how++) {
        if (how == MUTANT_WEAKENED && strength == MR_ALLOCATOR) continue;
        order_break(id, (order_mutant)how);
        bool noticed = notices();
        mr_order_rows[id] = kept;
        missed += !noticed;
        printf("%-14s %s: %s\n", order_row_names[id], texts[how],
               noticed ? "noticed" : "NOT NOTICED");
    }
    return missed;
}

/* Of all rows. `inherent` ends with a `why` of NULL. */
static inline int order_unnoticed(mr_strength strength, const order_inherent *inherent,
                                  bool (*notices)(void)) {
    int missed = 0;
    for (unsigned id = 0; id < MR_ORDER_ROWS; id++) {
        const char *why = NULL;
        for (const order_inherent *i = inherent; i->why && !why; i++)
            if (i->id == (mr_order_id)id) why = i->why;
        if (!why && mr_order_rows[id].strength > strength) why = "is not this reader's";
        if (why) printf("%-14s %s\n", order_row_names[id], why);
        else missed += order_row_unnoticed((mr_order_id)id, strength, notices);
    }
    return missed;
}

#endif
