/* Combines the outcomes of independent groups of races: see apart.h. */
#include <stdlib.h>
#include <string.h>

#include "explore/apart.h"
#include "explore/search.h"

#define MOST_LISTED 4096
/* limit for the bytes of the listed values and schedules */
#define MOST_BYTES ((double)((size_t)64 << 20))
#define MOST_WORK  1e9 /* squares of nodes */

/* One outcome of each group. */
typedef struct {
    const apart *a;
    mr_explore_outcome *alone; /* the outcomes that the search found, each group by itself */
    size_t *chosen;            /* by group */
    uint64_t *reversed;        /* by node: the earlier nodes that it goes before */
} combination;

static const apart_outcome *chosen_of(const combination *c, uint32_t group) {
    return &c->a->group[group].outcomes.items[c->chosen[group]];
}

/* Goes on to the next combination, with the last group first; false: that was the last combination. */
static bool go_on(combination *c) {
    for (uint32_t g = c->a->count; g-- > 0; c->chosen[g] = 0)
        if (++c->chosen[g] < c->a->group[g].outcomes.count) return true;
    return false;
}

/* ---- its schedule: as a search goes through the items, without a player */

static void find_reversed(const combination *c, const order *o) {
    for (size_t i = 0; i < c->a->pairs.count; i++) {
        const apart_pair *p = &c->a->pairs.items[i];
        uint64_t *word = &c->reversed[(size_t)p->late * o->words_in_set + p->early / 64],
                 bit = (uint64_t)1 << p->early % 64;
        bool is = chosen_of(c, p->group)->reversed[i / 64] >> i % 64 & 1;
        *word = is ? *word | bit : *word & ~bit;
    }
}

static void decide_pairs(search *s, const uint64_t *reversed) {
    order *o = s->o;
    uint32_t end = o->first_node[s->at.item + 1];
    for (uint32_t n = s->at.node; n < end; n++) {
        size_t row = (size_t)n * o->words_in_set;
        for (uint32_t m = 0; m < n && search_takes_part(s, n); m++) {
            if (!(s->b->conflicts[row + m / 64] >> m % 64 & 1)) continue;
            if (order_has(o, order_before(o, n), m) || order_has(o, order_before(o, m), n))
                continue;
            if (reversed[row + m / 64] >> m % 64 & 1) order_decide(o, n, m);
            else order_decide(o, m, n);
        }
    }
}

static mr_status pass_item(search *s, const uint64_t *reversed) {
    const branch *b = s->b;
    uint32_t i = s->at.item;
    if (i < b->count) {
        order_is_open(s->o, i, &s->at.asked);
        if (order_has_nodes((item_class)b->classes[i])) {
            search_place_nodes(s);
            decide_pairs(s, reversed);
        }
    }
    if (b->breaks_at[i] == i) {
        s->e->wanted.count = 0;
        search_find_needed(s);
        MR_TRY(search_plan_needed(s));
        MR_TRY(search_plan_own(s));
    }
    if (i < b->count) order_leave(s->o, i, s->at.asked);
    return s->o->failed ? mr_no_memory("to explore schedules") : MR_OK;
}

static mr_status find_plan(explorer *e, branch *b, const uint64_t *reversed, plan *out) {
    search s = {.e = e, .b = b, .o = &b->order};
    mr_status status = MR_OK;
    order_forget(s.o);
    for (uint32_t i = 0; i <= b->count && !status; i++) {
        s.at = (cursor){.item = i};
        status = pass_item(&s, reversed);
    }
    s.plan.until = b->count;
    s.plan.grain = e->options.grain;
    *out = s.plan;
    return status;
}

/* ---- its value */

static void find_value(const combination *c, mr_buffer *out) {
    const mr_explore_outcome *base = &c->alone[0];
    out->size = 0;
    mr_buffer_add(out, base->value, base->size);
    for (uint32_t g = 0; g < c->a->count && !out->failed; g++) {
        if (!c->chosen[g]) continue;
        const char *own = c->alone[chosen_of(c, g)->outcome].value;
        for (size_t i = 0; i < base->size; i++)
            if (own[i] != base->value[i]) out->data[i] = own[i];
    }
}

/* 2^63 - 1 stands for more. */
static uint64_t multiply(uint64_t a, uint64_t b) {
    return b && a > INT64_MAX / b ? INT64_MAX : a * b;
}

static uint64_t classes_of(const combination *c) {
    uint64_t classes = 1;
    for (uint32_t g = 0; g < c->a->count; g++)
        classes = multiply(classes, chosen_of(c, g)->classes);
    return classes;
}

static mr_status add_combination(explorer *e, branch *b, const combination *c) {
    plan p = {0};
    uint32_t overtaken = 0;
    outcome_met met = {0};
    for (uint32_t g = 0; g < c->a->count; g++)
        overtaken += c->alone[chosen_of(c, g)->outcome].overtaken;
    find_reversed(c, &b->order);
    find_value(c, &e->value);
    if (e->value.failed) return mr_no_memory("for an outcome");
    mr_status status = find_plan(e, b, c->reversed, &p);
    if (!status) status = outcome_meet(e, b, &p, overtaken, &e->value, c->alone[0].text_size, &met);
    if (!status) e->result->outcomes.items[met.index].count = classes_of(c);
    plan_free(&p);
    return status;
}

static mr_status list_all(explorer *e, branch *b, combination *c) {
    size_t count = e->result->outcomes.count;
    c->alone = e->result->outcomes.items;
    e->result->outcomes.items = NULL;
    e->result->outcomes.count = e->result->outcomes.capacity = 0;
    outcome_forget_all(e);
    mr_status status;
    do status = add_combination(e, b, c);
    while (!status && go_on(c));
    for (size_t i = 0; i < count; i++) mr_explore_outcome_free(&c->alone[i]);
    free(c->alone);
    return status;
}

/* All groups but one are as submitted. */
static void count_alone(explorer *e, combination *c) {
    for (uint32_t g = 0; g < c->a->count; g++) {
        for (; c->chosen[g] < c->a->group[g].outcomes.count; c->chosen[g]++)
            e->result->outcomes.items[chosen_of(c, g)->outcome].count = classes_of(c);
        c->chosen[g] = 0;
    }
}

static bool may_list(explorer *e, const branch *b) {
    double all = e->result->combined, nodes = (double)b->order.nodes.count,
           bytes = (double)e->result->outcomes.items[0].size + 100 * nodes;
    return all <= MOST_LISTED && all * bytes <= MOST_BYTES && all * nodes * nodes <= MOST_WORK &&
           budget_has_room(e, (size_t)(all * bytes));
}

mr_status combine_outcomes(explorer *e, branch *b, const apart *a) {
    combination c = {
        .a = a,
        .chosen = calloc(a->count + 1, sizeof *c.chosen),
        .reversed = calloc(b->order.nodes.count * b->order.words_in_set + 1, sizeof *c.reversed)};
    mr_status status = c.chosen && c.reversed ? MR_OK : mr_no_memory("for an outcome");
    if (!status && may_list(e, b)) status = list_all(e, b, &c);
    else if (!status) count_alone(e, &c);
    order_forget(&b->order);
    free(c.chosen);
    free(c.reversed);
    return status;
}
