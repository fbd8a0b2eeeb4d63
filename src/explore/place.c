/* Finds the memory that an allocation may get. The pool chooses memory by its own rules, and the frees that are over by
 * then decide which rule applies. So the player tries out each choice. At place 0 only the items that must be over have
 * been carried out. At place k + 1 everything before the free of item k is over, too. The next to last place does
 * the same for all frees. At the last place frees of other streams are over, and the allocation does not see it (R30).
 * A choice that gives the same address as an earlier choice is left out.
 *
 * A choice only says what comes before the allocation, never what comes after it. Two schedules in which the allocation
 * finds the same memory are equivalent if their conflicting pairs are. It does not matter what else is over by then.
 * And work is carried out only when it is needed, so the player gets the address that was found.
 *
 * Easiest to break: trying out must leave the order and the plan as they were. */
#include "explore/search.h"

/* A value that no other place has: the allocation does not succeed or fail as recorded there. */
static uint64_t no_address(uint32_t place) {
    return UINT64_MAX - place;
}

static mr_status carry_out(search *s, uint32_t place, uint64_t *out_address) {
    mr_difference d = {0};
    bool asked = false;
    s->e->wanted.count = 0;
    MR_TRY(search_go_back(s, true));
    search_find_needed(s);
    MR_TRY(search_plan_needed(s));
    MR_TRY(search_carry_out(s, s->e->wanted.count, &d, &asked));
    const mr_program_item *alloc = &s->o->items[s->at.item];
    const mr_storage *storage = mr_player_storage(s->b->player, alloc->storage);
    *out_address = d.kind == MR_DIFFERS_NOTHING && storage ? storage->address : no_address(place);
    return s->o->failed ? mr_no_memory("to explore schedules") : MR_OK;
}

static mr_status try_place(search *s, uint32_t place, uint64_t *out_address) {
    cursor at = s->at;
    size_t changes = order_changes(s->o), steps = s->plan.steps.count,
           answers = s->plan.answers.count;
    uint32_t placed = s->o->placed;
    s->at.place = place;
    search_take_place(s);
    mr_status status = carry_out(s, place, out_address);
    order_undo(s->o, changes, placed);
    s->plan.steps.count = steps;
    s->plan.answers.count = answers;
    s->at = at;
    return status;
}

static bool has_address(const uint64_t *known, size_t count, uint64_t address) {
    for (size_t i = 0; i < count; i++)
        if (known[i] == address) return true;
    return false;
}

/* The first later place that leads to a new address; 0: there is none. If there is only one choice, the player tries
 * nothing. */
static mr_status find_next(search *s, uint32_t *out_place) {
    MR_VEC(uint64_t) known = {0};
    mr_status status = MR_OK;
    *out_place = 0;
    for (uint32_t place = 1; place <= search_place_missed(s) && !status && !*out_place; place++) {
        uint64_t address;
        if (place <= s->at.item && !s->o->frees[place - 1]) continue; /* as most */
        if (!search_place_goal(s, place)) continue;
        if (!known.count) {
            status = try_place(s, 0, &address);
            if (!status && !mr_vec_push(&known, address))
                status = mr_no_memory("to explore schedules");
        }
        if (!status) status = try_place(s, place, &address);
        if (status || has_address(known.items, known.count, address)) continue;
        if (!mr_vec_push(&known, address)) status = mr_no_memory("to explore schedules");
        else if (place > s->at.place) *out_place = place;
    }
    mr_vec_free(&known);
    return status;
}

/* STAGE_ASK of an allocation. */
mr_status search_place(search *s) {
    MR_TRY(find_next(s, &s->at.next_place));
    if (s->at.next_place) return search_decide(s, DECIDE_PLACE);
    search_take_place(s);
    return MR_OK;
}
