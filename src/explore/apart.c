/* Independent races, explored apart: which programs allow it, the search of each group, and what it comes to. See
 * apart.h. */
#include "explore/apart.h"

#include <stdlib.h>
#include <string.h>

#include "explore/search.h"
#include "tensor/tensor.h"

#define MOST_NODES 4096
#define MOST_PAIRS 65536

/* ---- what a search asks and tells */

bool apart_fails(explorer *e) {
    if (!e->apart || e->apart->alone) return false;
    return e->apart->failed = e->stop = true;
}

/* The nodes of another branch are those of the root if the function asks for the same, although it reads other
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
    /* A pair that the groups know nothing of: something else orders less than the rules said. */
    if (a->groups.of[late] == NO_GROUP || a->groups.of[late] != a->groups.of[early])
        return !apart_fails(e);
    return a->groups.of[late] == a->now;
}

/* The outcome among those of the group; NULL: no memory, or another group has come to it, too. */
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

mr_status apart_count(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                      size_t decided, const mr_buffer *value, size_t text_size) {
    apart *a = e->apart;
    outcome_met met;
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

/* ---- the groups of a program */

/* Copies that the host waits for are over when it goes on, as in a search. False: one that it does not wait for may
 * write pageable memory, so what later copies wait for depends on the schedule. */
static bool finish_copy(branch *b, uint32_t i) {
    order *o = &b->order;
    bool asked;
    if (o->items[i].item.kind != MR_COMMAND_COPY || b->classes[i] != ITEM_COPY) return true;
    order_is_open(o, i, &asked);
    if (!order_copy_of(o, i, asked).until_done)
        return o->items[i].operands[0].tensor->storage->kind != MR_MEMORY_PAGEABLE;
    for (uint32_t n = o->first_node[i]; n < o->first_node[i + 1]; n++)
        order_add(o, order_done(o), n);
    return true;
}

/* As search_takes_part. */
static bool takes_part(const branch *b, uint32_t node) {
    const order *o = &b->order;
    const order_node *n = &o->nodes.items[node];
    bool asked;
    if (n->marker) return false;
    if (n->parts || o->items[n->item].item.kind != MR_COMMAND_COPY ||
        b->classes[n->item] != ITEM_COPY)
        return true;
    order_is_open(o, n->item, &asked);
    return order_copy_of(o, n->item, asked).reads_source;
}

/* Goes through the order by the rules alone. False: what it is depends on the schedule. */
static bool place_all(explorer *e, branch *b, bool *out_takes_part) {
    order *o = &b->order;
    order_forget(o);
    for (uint32_t i = 0; i < b->count && !e->stop; i++) {
        for (uint32_t n = o->first_node[i]; n < o->first_node[i + 1]; n++)
            out_takes_part[n] = takes_part(b, n);
        rules_place(b, i, true);
        if (!finish_copy(b, i)) return false;
        if (i % 64 == 0) budget_look_at_clock(e);
    }
    return !e->stop && !o->failed;
}

static bool add_races(apart *a, const branch *b, const bool *takes_part, uint64_t *races) {
    const order *o = &b->order;
    for (uint32_t n = 0; n < o->nodes.count; n++) {
        const uint64_t *row = b->conflicts + (size_t)n * o->words_in_set,
                       *before = o->words + order_before(o, n);
        for (uint32_t m = 0; m < n && takes_part[n]; m++) {
            if (!(row[m / 64] >> m % 64 & 1) || (before[m / 64] >> m % 64 & 1) || !takes_part[m])
                continue;
            races[(size_t)n * o->words_in_set + m / 64] |= (uint64_t)1 << m % 64;
            if (a->pairs.count == MOST_PAIRS || !mr_vec_push(&a->pairs, ((apart_pair){n, m, 0})))
                return false;
        }
    }
    return true;
}

/* What the host reads goes nowhere: in all schedules it reads the same. */
static mr_status pass_item(apart *a, const branch *b, uint32_t i) {
    mr_program_item it = mr_program_item_at(b->program, i);
    const order *o = &b->order;
    bool is_look = it.kind == MR_COMMAND_HOST_READ || it.kind == MR_COMMAND_HOST_ACCESS;
    MR_VEC(group_touch) touches = {0};
    for (uint32_t k = 0; k < it.operand_count; k++) {
        mr_program_operand operand = mr_program_operand_at(b->program, i, k);
        group_touch touch = {.memory = operand.storage,
                             .reads = (operand.access & MR_READ) != 0,
                             .writes = (operand.access & MR_WRITE) != 0};
        mr_tensor_extent(operand.view, &touch.first, &touch.end);
        if (is_look && touch.reads) a->looks |= groups_taint_of(&a->groups, &touch) != NO_GROUP;
        touch.reads &= !is_look;
        if (!mr_vec_push(&touches, touch)) {
            mr_vec_free(&touches);
            return mr_no_memory("for groups of races");
        }
    }
    mr_status status = groups_pass(&a->groups, o->first_node[i], o->first_node[i + 1],
                                   touches.items, touches.count);
    mr_vec_free(&touches);
    return status;
}

static mr_status make_groups(apart *a, const branch *b, const uint64_t *races) {
    const order *o = &b->order;
    race_graph graph = {(uint32_t)o->nodes.count, o->words_in_set, o->words, races};
    MR_TRY(groups_open(&a->groups, &graph, (uint32_t)mr_program_storage_count(b->program)));
    for (uint32_t i = 0; i < b->count; i++) MR_TRY(pass_item(a, b, i));
    a->count = groups_number(&a->groups);
    a->group = calloc(a->count + 1, sizeof *a->group);
    if (!a->group) return mr_no_memory("for groups of races");
    for (size_t i = 0; i < a->pairs.count; i++) {
        apart_pair *p = &a->pairs.items[i];
        p->group = a->groups.of[p->late];
        a->group[p->group].races++;
    }
    return MR_OK;
}

/* All storages that may share memory with another one are told apart by the proof of memory, so the rows hold of every
 * schedule. Their copies are those of a program in which nothing is pending. */
static void find_conflicts(branch *b) {
    bool was_clean = b->clean;
    order_forget(&b->order);
    b->clean = true;
    branch_find_conflicts(b, 0, b->count);
    b->clean = was_clean;
}

/* No group: nothing was found, or too much. */
static mr_status find_groups(explorer *e, branch *b, apart *a) {
    size_t nodes = b->order.nodes.count;
    uint64_t *races = calloc(nodes * b->order.words_in_set + 1, sizeof *races);
    bool *part = calloc(nodes + 1, sizeof *part);
    mr_status status = races && part ? MR_OK : mr_no_memory("for groups of races");
    if (!status) find_conflicts(b);
    if (!status && place_all(e, b, part) && add_races(a, b, part, races))
        status = make_groups(a, b, races);
    order_forget(&b->order);
    free(races);
    free(part);
    return status;
}

/* ---- all of it */

static bool may_try(const explorer *e, const branch *b) {
    const mr_explore_options *o = &e->options;
    return o->overtaking < 0 && !o->samples && !o->full && !o->unspecified && o->grain < 2 &&
           !o->pair[0].where.file && b->count && b->order.nodes.count <= MOST_NODES &&
           (b->clean || !b->order.aliases) && proof_of_items(e, b);
}

/* The smallest one that has not been searched: what time there is reaches as many as it can. */
static uint32_t next_group(const apart *a) {
    uint32_t next = NO_GROUP;
    for (uint32_t g = 0; g < a->count; g++)
        if (!a->group[g].begun && (next == NO_GROUP || a->group[g].races < a->group[next].races))
            next = g;
    return next;
}

static mr_status search_groups(explorer *e, branch *b) {
    apart *a = e->apart;
    for (; a->tried < a->count; a->tried++) {
        a->now = next_group(a);
        a->group[a->now].begun = true;
        MR_TRY(search_branch(e, b, NULL, NULL, 0));
        if (e->stop) break;
    }
    return MR_OK;
}

/* The time was over. */
static void tell_tried(mr_explore_result *r, const apart *a) {
    r->alone = (mr_explore_alone){a->count, a->tried, a->pairs.count, a->looks};
    for (uint32_t g = 0; g < a->count && !a->alone; g++)
        if (!a->group[g].begun) r->untried_count += a->group[g].races;
}

/* What the groups change lies apart, as the taint has said. */
static bool is_disjoint(const explorer *e, const apart *a) {
    const mr_explore_outcome *all = e->result->outcomes.items;
    uint16_t *owner = calloc(all[0].size + 1, sizeof *owner);
    bool fine = owner != NULL;
    for (uint32_t g = 0; g < a->count && fine; g++)
        for (size_t i = 0; i < a->group[g].outcomes.count && fine; i++) {
            const mr_explore_outcome *o = &all[a->group[g].outcomes.items[i].outcome];
            fine = o->size == all[0].size && o->text_size == all[0].text_size;
            for (size_t k = 0; k < o->size && fine; k++) {
                if (o->value[k] == all[0].value[k]) continue;
                fine = k >= o->text_size && (!owner[k] || owner[k] == g + 1);
                owner[k] = (uint16_t)(g + 1);
            }
        }
    free(owner);
    return fine;
}

static mr_status tell_groups(mr_explore_result *r, const apart *a) {
    r->combined = r->classes = 1;
    for (uint32_t g = 0; g < a->count; g++) {
        const apart_group *group = &a->group[g];
        mr_explore_group told = {group->races, group->schedules, group->outcomes.count};
        if (!mr_vec_push(&r->groups, told)) return mr_no_memory("for an outcome");
        r->combined *= (double)told.outcomes;
        r->classes *= (double)told.schedules;
    }
    return MR_OK;
}

static void forget_outcomes(explorer *e) {
    mr_explore_result *r = e->result;
    outcome_forget_all(e);
    r->schedules = r->pairs = 0;
    e->stop = false;
}

static void close_apart(apart *a) {
    for (uint32_t g = 0; g < a->count && a->group; g++) {
        for (size_t i = 0; i < a->group[g].outcomes.count; i++)
            free(a->group[g].outcomes.items[i].reversed);
        mr_vec_free(&a->group[g].outcomes);
    }
    free(a->group);
    groups_close(&a->groups);
    mr_vec_free(&a->pairs);
    mr_vec_free(&a->places);
}

/* The groups are there. */
static mr_status explore_groups(explorer *e, branch *b, apart *a, bool *out_done) {
    e->apart = a;
    mr_status status = search_groups(e, b);
    e->apart = NULL;
    if (status) tell_tried(e->result, a);
    if (status) return status;
    if (!a->failed && !e->stop) a->failed = !is_disjoint(e, a);
    if (a->failed) {
        forget_outcomes(e);
        return MR_OK;
    }
    *out_done = true;
    if (e->stop) {
        tell_tried(e->result, a);
        return MR_OK;
    }
    MR_TRY(tell_groups(e->result, a));
    return combine_outcomes(e, b, a);
}

mr_status apart_explore(explorer *e, branch *b, bool *out_done) {
    apart a = {0};
    bool known = false;
    *out_done = false;
    if (!may_try(e, b)) return MR_OK;
    mr_status status = find_groups(e, b, &a);
    if (!status && a.count > 1 && !a.looks && !e->stop) status = proof_of_accesses(b, &known);
    if (!status && known) status = explore_groups(e, b, &a, out_done);
    close_apart(&a);
    return status;
}

mr_status apart_try_alone(explorer *e, branch *b) {
    apart a = {.alone = true};
    if (e->result->alone.groups || !may_try(e, b)) return MR_OK;
    mr_status status = find_groups(e, b, &a);
    if (!status && a.count > 1) {
        e->apart = &a;
        status = search_groups(e, b);
        e->apart = NULL;
        tell_tried(e->result, &a);
    }
    close_apart(&a);
    return status;
}
