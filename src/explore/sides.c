/* Finds the two items of a branch that are the accesses of a hazard's report.
 *
 * A report names its accesses by the numbers that their commands had in the run that was checked. The function submits
 * the same commands in each run until it reads another value, so until then a number means the same command. After
 * that, the line decides. Easiest to break: one line may be carried out several times, in the same stream, too. */
#include <string.h>

#include "explore/state.h"

bool sides_is_at(const branch *b, uint32_t item, mr_site where) {
    mr_site here = b->order.items[item].where;
    return here.line == where.line && here.file && strcmp(here.file, where.file) == 0;
}

uint32_t sides_item(const branch *b, uint64_t seq) {
    for (uint32_t i = 0; i < b->count; i++)
        if (mr_program_item_at(b->program, i).seq == seq) return i;
    return SIDES_NONE;
}

/* SIDES_NONE: this program has no such command at this line. */
static uint32_t find_item(const branch *b, const mr_explore_side *side) {
    if (!side->number) return SIDES_NONE;
    uint32_t i = sides_item(b, mr_program_facts_of(b->program).first_seq + side->number - 1);
    return i != SIDES_NONE && sides_is_at(b, i, side->where) ? i : SIDES_NONE;
}

void sides_find(const explorer *e, branch *b) {
    for (int i = 0; i < 2; i++)
        b->sides[i] =
            e->options.pair[i].where.file ? find_item(b, &e->options.pair[i]) : UINT32_MAX;
}
