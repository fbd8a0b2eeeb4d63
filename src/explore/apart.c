/* Independent races, explored apart: the functions that a search calls. See apart.h. */
#include "explore/apart.h"

#include <stdlib.h>
#include <string.h>

#include "explore/search.h"

bool apart_fails(explorer *e) {
    if (!e->apart || e->apart->alone) return false;
    return e->apart->failed = e->stop = true;
}

/* Another branch has the same nodes as the root if the function submits the same commands, although it reads other
 * values. */
static bool has_nodes_of_root(const explorer *e, branch *b) {
    char text[400];
    if (b == e->root) return true;
    if (b->likeness == NOT_COMPARED) {
        bool same = mr_program_same(e->root->program, b->program, SIZE_MAX, text, sizeof text);
        b->likeness = same ? LIKE_ROOT : UNLIKE_ROOT;
    }
    return b->likeness == LIKE_ROOT;
}

bool apart_decides(explorer *e, branch *b, uint32_t late, uint32_t early) {
    const apart *a = e->apart;
    if (!a || !has_nodes_of_root(e, b)) return true;
    /* The pair is in no common group: the search found it unordered, although the rules alone ordered it. */
    if (a->groups.of[late] == NO_GROUP || a->groups.of[late] != a->groups.of[early])
        return !apart_fails(e);
    return a->groups.of[late] == a->now;
}

/* Finds the outcome among those of the group; NULL: no memory, or another group has reached the same outcome. */
static apart_outcome *outcome_of(apart *a, size_t index) {
    apart_group *group = &a->group[a->now];
    if (!index && group->outcomes.count) return &group->outcomes.items[0];
    if (index < a->places.count && index) {
        a->failed = a->places.items[index].group != a->now;
        return a->failed ? NULL : &group->outcomes.items[a->places.items[index].place];
    }
    struct apart_place place = {a->now, group->outcomes.count};
    if (index == a->places.count && !mr_vec_push(&a->places, place)) return NULL;
    if (!mr_vec_push(&group->outcomes, ((apart_outcome){.outcome = index}))) return NULL;
    apart_outcome *o = &group->outcomes.items[place.place];
    o->reversed = calloc(a->pairs.count / 64 + 1, sizeof *o->reversed);
    return o->reversed ? o : NULL;
}

static void keep_orders(const apart *a, const order *o, apart_outcome *out) {
    memset(out->reversed, 0, (a->pairs.count / 64 + 1) * sizeof *out->reversed);
    for (size_t i = 0; i < a->pairs.count; i++) {
        const apart_pair *p = &a->pairs.items[i];
        if (p->group == a->now && order_has(o, order_before(o, p->early), p->late))
            out->reversed[i / 64] |= (uint64_t)1 << i % 64;
    }
}

static mr_status keep_base(apart *a, const mr_buffer *value) {
    a->base.size = 0;
    mr_buffer_add(&a->base, value->data, value->size);
    return a->base.failed ? mr_no_memory("for an outcome") : MR_OK;
}

mr_status apart_count(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                      size_t decided, mr_buffer *value, size_t text_size) {
    apart *a = e->apart;
    outcome_met met;
    if (a->now == NO_GROUP) return keep_base(a, value);
    slice_complete(a, value, text_size);
    if (a->failed) e->stop = true;
    if (a->failed) return MR_OK;
    MR_TRY(outcome_meet(e, b, schedule, overtaken, value, text_size, &met));
    if (e->stop) return MR_OK;
    apart_group *group = &a->group[a->now];
    apart_outcome *o = outcome_of(a, met.index);
    if (!o && a->failed) e->stop = true;
    if (!o) return a->failed ? MR_OK : mr_no_memory("for an outcome");
    if (!group->schedules++) e->result->pairs += decided;
    if (!o->classes++ || met.is_simplest) keep_orders(a, &b->order, o);
    return MR_OK;
}
