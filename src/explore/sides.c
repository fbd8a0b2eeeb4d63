/* Which two items of a branch are the accesses of a hazard's report.
 *
 * A report names its accesses by the numbers that their commands had in the run that was checked. The function asks for
 * the same in each run until it reads another value, so the same number is the same command; where it is not, the line
 * decides. Easiest to break: one line may be carried out several times, in the same stream, too. */
#include <string.h>

#include "explore/state.h"

bool sides_is_at(const branch *b, uint32_t item, mr_site where) {
    mr_site here = b->order.items[item].item.where;
    return here.line == where.line && here.file && strcmp(here.file, where.file) == 0;
}

/* UINT32_MAX: this program has no such command at this line. */
static uint32_t find_item(const branch *b, const mr_explore_side *side) {
    uint64_t first = mr_program_facts_of(b->program).first_seq;
    for (uint32_t i = 0; i < b->count && side->number; i++)
        if (mr_program_item_at(b->program, i).seq == first + side->number - 1)
            return sides_is_at(b, i, side->where) ? i : UINT32_MAX;
    return UINT32_MAX;
}

void sides_find(const explorer *e, branch *b) {
    for (int i = 0; i < 2; i++)
        b->sides[i] =
            e->options.pair[i].where.file ? find_item(b, &e->options.pair[i]) : UINT32_MAX;
}
