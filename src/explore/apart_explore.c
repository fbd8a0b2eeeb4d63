/* Independent races, explored apart: which programs allow it, and the search of each group. See apart.h. */
#include <stdlib.h>

#include "explore/apart.h"
#include "explore/search.h"

#define MOST_NODES 4096

static bool may_share(const branch *b) {
    return b->order.aliases && !b->clean;
}

static bool may_look(const explorer *e, const branch *b) {
    const mr_explore_options *o = &e->options;
    return o->overtaking < 0 && !o->samples && !o->full && !o->unspecified && o->grain < 2 &&
           !o->pair[0].where.file && b->count && b->order.nodes.count <= MOST_NODES &&
           proof_of_items(e, b);
}

static bool may_try(const explorer *e, const branch *b) {
    return !may_share(b) && may_look(e, b);
}

/* The smallest group that has not been searched, so that the time is enough for as many groups as possible. */
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

/* Checks that the groups changed different bytes, as the taints predicted. */
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
    mr_status status = apart_find_groups(e, b, &a);
    if (!status && a.count > 1 && !a.looks && !e->stop) status = proof_of_accesses(b, &known);
    if (!status && known) status = explore_groups(e, b, &a, out_done);
    close_apart(&a);
    return status;
}

mr_status apart_prove_unseen(explorer *e, branch *b, bool *out_proved) {
    apart a = {.shares = may_share(b)};
    bool known, written = true;
    *out_proved = false;
    if (!may_look(e, b)) return MR_OK;
    MR_TRY(proof_of_accesses(b, &known));
    if (known && a.shares) MR_TRY(proof_of_first_writes(b, &written));
    if (!known || !written) return MR_OK;
    mr_status status = apart_find_groups(e, b, &a);
    *out_proved = !status && !e->stop && a.group && !a.looks && !a.returns && !a.may_go_wrong;
    close_apart(&a);
    return status;
}

mr_status apart_try_alone(explorer *e, branch *b) {
    apart a = {.alone = true};
    if (e->result->alone.groups || !may_try(e, b)) return MR_OK;
    mr_status status = apart_find_groups(e, b, &a);
    if (!status && a.count > 1) {
        e->apart = &a;
        status = search_groups(e, b);
        e->apart = NULL;
        tell_tried(e->result, &a);
    }
    close_apart(&a);
    return status;
}
