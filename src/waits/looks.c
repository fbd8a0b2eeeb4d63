/* Calls of the script that read or change the progress of work: t:peek(), mr.machine.queues, mr.machine.model and the
 * like. No observer follows their results. Assume that with all waits some work is complete before such a call. If it
 * may be pending without a wait, that wait is not called redundant.
 *
 * A first run with all waits notes each such order once, in its weakest form. That is the last complete work of each
 * stream, if it is later than at the previous look. */
#include <stdlib.h>

#include "waits/parts.h"

static bool is_work(const mr_program_item *it) {
    return it->came_true && mr_kind_is(it->kind, MR_TRAIT_LAUNCH);
}

static bool is_over(const wait_judge *j, const mr_program_item *work) {
    return mr_waits_judge_ordered(j, work->stream, work->seq, MR_PROGRAM_NONE);
}

static void note(wait_judge *j, size_t look, size_t work) {
    if (!mr_vec_push(&j->looks.orders, ((look_order){look, work}))) mr_waits_judge_no_memory(j);
}

/* Notes the complete work of all streams. This set only grows. */
static void learn_all(wait_judge *j, size_t look) {
    wait_looks *l = &j->looks;
    const mr_program *program = j->rounds->program;
    for (size_t s = 0; s < mr_program_stream_count(program); s++) {
        uint32_t next;
        while ((next = l->over[s] ? l->next[l->over[s] - 1] : l->first[s])) {
            mr_program_item it = mr_program_item_at(program, next - 1);
            if (next > j->options->looks[look].at || !is_over(j, &it)) break;
            l->over[s] = next;
        }
        if (l->over[s] == l->noted[s]) continue;
        l->noted[s] = l->over[s];
        note(j, look, l->over[s] - 1);
    }
}

static bool writes(const wait_judge *j, size_t i, uint32_t operands, uint64_t storage) {
    for (uint32_t k = 0; k < operands; k++) {
        mr_program_operand o = mr_program_operand_at(j->rounds->program, i, k);
        if (o.storage_id == storage && (o.access & MR_WRITE)) return true;
    }
    return false;
}

/* Notes the last complete work of each stream that writes one storage, back to its allocation. */
static void learn_storage(wait_judge *j, size_t look) {
    const mr_waits_look *of = &j->options->looks[look];
    const mr_program *program = j->rounds->program;
    uint32_t slot = mr_program_storage_slot(program, of->storage);
    size_t begin = j->looks.orders.count;
    for (size_t i = of->at; i-- > 0;) {
        mr_program_item it = mr_program_item_at(program, i);
        bool is_noted = false;
        if (it.kind == MR_COMMAND_ALLOC && it.storage == slot) break;
        if (!is_work(&it) || !writes(j, i, it.operand_count, of->storage)) continue;
        for (size_t k = begin; k < j->looks.orders.count; k++)
            is_noted |=
                mr_program_item_at(program, j->looks.orders.items[k].work).stream == it.stream;
        if (!is_noted && is_over(j, &it)) note(j, look, i);
    }
}

static void check(wait_judge *j, size_t look) {
    wait_looks *l = &j->looks;
    for (; l->order < l->orders.count && l->orders.items[l->order].look <= look; l->order++) {
        const look_order *o = &l->orders.items[l->order];
        mr_program_item work = mr_program_item_at(j->rounds->program, o->work);
        if (is_over(j, &work)) continue;
        mr_waits_judge_add(
            j, (new_hazard){
                   .lost = MR_LOST_LOOK, .first = o->work, .second = NO_ITEM, .look = o->look});
    }
}

void mr_waits_looks_next(wait_judge *j, size_t i) {
    const mr_waits_options *options = j->options;
    wait_looks *l = &j->looks;
    for (; l->look < options->look_count && options->looks[l->look].at <= i; l->look++) {
        if (!j->learning) check(j, l->look);
        else if (options->looks[l->look].is_of_storage) learn_storage(j, l->look);
        else learn_all(j, l->look);
    }
}

void mr_waits_looks_rewind(wait_judge *j) {
    j->looks.look = j->looks.order = 0;
}

/* ---- life */

static bool chain_work(wait_judge *j) {
    wait_looks *l = &j->looks;
    const mr_program *program = j->rounds->program;
    size_t streams = mr_program_stream_count(program);
    uint32_t *last = calloc(streams + 1, sizeof *last);
    l->over = calloc(streams + 1, sizeof *l->over);
    l->noted = calloc(streams + 1, sizeof *l->noted);
    l->first = calloc(streams + 1, sizeof *l->first);
    l->next = calloc(j->rounds->items + 1, sizeof *l->next);
    bool ready = last && l->over && l->noted && l->first && l->next;
    for (size_t i = 0; i < j->rounds->items && ready; i++) {
        mr_program_item it = mr_program_item_at(program, i);
        if (!is_work(&it)) continue;
        if (last[it.stream]) l->next[last[it.stream] - 1] = (uint32_t)i + 1;
        else l->first[it.stream] = (uint32_t)i + 1;
        last[it.stream] = (uint32_t)i + 1;
    }
    free(last);
    return ready;
}

mr_status mr_waits_looks_open(wait_judge *j) {
    if (!j->options->look_count || chain_work(j)) return MR_OK;
    return mr_no_memory("for what waits order");
}

void mr_waits_looks_close(wait_judge *j) {
    wait_looks *l = &j->looks;
    mr_vec_free(&l->orders);
    free(l->over);
    free(l->noted);
    free(l->first);
    free(l->next);
    *l = (wait_looks){0};
}
