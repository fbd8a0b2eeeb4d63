/* The two orders of a hazard, each by the simplest schedule that is carried out and has it: the first access before the
 * second, or the other way round. sides.c finds the commands. */
#include <stdlib.h>
#include <string.h>

#include "explore/state.h"

#define NOT_IN_THIS_SCHEDULE (UINT32_MAX - 1) /* later than all else */

static bool is_side(const branch *b, uint32_t item, const explorer *e, int i) {
    const mr_explore_side *side = &e->options.pair[i];
    if (b->sides[i] != UINT32_MAX) return item == b->sides[i];
    const mr_stream *stream = b->order.items[item].stream_object;
    const mr_name *name = stream ? stream->name : NULL;
    if (name && side->stream && strcmp(name->text, side->stream) != 0) return false;
    return sides_is_at(b, item, side->where);
}

static bool touches_again(const mr_program_item *it, const mr_storage *freed) {
    for (uint32_t k = 0; k < it->operand_count; k++) {
        const mr_storage *storage = it->operands[k].tensor->storage;
        if (storage != freed && branch_share_memory(storage, freed)) return true;
    }
    return false;
}

/* A free by itself changes no byte: what counts is when the next owner uses the memory. */
static uint32_t moment_of_reuse(const branch *b, const plan *p, uint32_t freeing) {
    const mr_storage *freed = b->order.items[freeing].command->u.storage;
    for (size_t i = 0; i < p->steps.count; i++) {
        uint32_t item = p->steps.items[i].command;
        if (item > freeing && touches_again(&b->order.items[item], freed))
            return 2 * (uint32_t)i + 1;
    }
    return NOT_IN_THIS_SCHEDULE;
}

/* When a side is carried out: the number of the step, or of the one before which the host does it; twice, so that
 * the host's lie between. UINT32_MAX: not at all. */
static uint32_t moment_of(const explorer *e, const branch *b, const plan *p, int side) {
    uint32_t known = b->sides[side];
    if (known != UINT32_MAX && b->order.items[known].kind == MR_COMMAND_FREE)
        return moment_of_reuse(b, p, known);
    for (size_t i = 0; i < p->steps.count; i++)
        if (is_side(b, p->steps.items[i].command, e, side)) return 2 * (uint32_t)i + 1;
    for (uint32_t item = 0; item < b->count; item++) {
        if (b->classes[item] != ITEM_HOST || !is_side(b, item, e, side)) continue;
        uint32_t before = 0;
        while (before < p->steps.count && p->steps.items[before].at <= item) before++;
        return 2 * before;
    }
    return UINT32_MAX;
}

mr_status witness_look(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                       const mr_buffer *value, size_t text_size) {
    uint32_t first = moment_of(e, b, schedule, 0), second = moment_of(e, b, schedule, 1);
    if (first == UINT32_MAX || second == UINT32_MAX || first == second) return MR_OK;
    mr_explore_outcome *w = &e->result->witness[first > second];
    if (w->schedule && w->switches <= overtaken) return MR_OK;
    char *copy = malloc(value->size + 1);
    if (!copy) return mr_no_memory("for an outcome");
    if (value->size) memcpy(copy, value->data, value->size);
    copy[value->size] = 0;
    free(w->value);
    w->value = copy;
    w->size = value->size;
    w->text_size = text_size;
    w->switches = overtaken;
    return outcome_keep_schedule(e, w, b, schedule);
}
