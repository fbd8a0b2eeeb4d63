/* Open pairs: pairs that wait until a launch reports the bytes that it touched (find/withdraw.c). Each is counted in a
 * report. */
#include "hazard/explain.h"

#include "model/backend.h"

#include <string.h>

#define MOST_PAIRS 4096

bool mr_hazard_may_withdraw(const checker *c, const found_pair *pair) {
    bool is_told = c->mode == MR_HAZARD_WARN || c->mode == MR_HAZARD_COLLECT;
    return is_told && ((pair->first_access | pair->second_access) & MR_ASSUMED) &&
           pair->kind <= MR_HAZARD_WRITE_AFTER_WRITE && !pair->advisory && !pair->only_look &&
           c->machine->backend && c->machine->backend->simulator &&
           !c->machine->host_function.command;
}

static void fill_side(open_side *side, uint8_t access, uint64_t seq, const byte_view *view) {
    side->access = access & MR_ATOMIC ? MR_ATOMIC : access & MR_ACCESSES;
    side->seq = access & MR_ASSUMED ? seq : 0;
    /* of a small entry only the first dims are there */
    if (!side->seq)
        memcpy(&side->view, view,
               offsetof(byte_view, dim) + (size_t)view->ndim * sizeof view->dim[0]);
}

bool mr_hazard_open_pair(checker *c, const found_pair *pair, mr_hazard_report *report) {
    open_pair open = {.report = report, .is_new = true, .storage = pair->history->storage->id};
    if (!mr_hazard_may_withdraw(c, pair) || pair->first_merged) return false;
    if (c->withdrawing.open.count >= MOST_PAIRS || !pair->first_view || !pair->second_view)
        return false;
    fill_side(&open.first, pair->first_access, pair->first_seq, pair->first_view);
    fill_side(&open.second, pair->second_access, pair->second_seq, pair->second_view);
    c->withdrawing.may_settle = true;
    return mr_vec_push(&c->withdrawing.open, open);
}

void mr_hazard_close_pairs(checker *c, const mr_hazard_report *report) {
    size_t kept = 0;
    for (size_t i = 0; i < c->withdrawing.open.count; i++)
        if (c->withdrawing.open.items[i].report != report)
            c->withdrawing.open.items[kept++] = c->withdrawing.open.items[i];
    c->withdrawing.open.count = kept;
}

void mr_hazard_close_pairs_from(checker *c, uint64_t number) {
    size_t kept = 0;
    for (size_t i = 0; i < c->withdrawing.open.count; i++)
        if (c->withdrawing.open.items[i].report->number < number)
            c->withdrawing.open.items[kept++] = c->withdrawing.open.items[i];
    c->withdrawing.open.count = kept;
}
