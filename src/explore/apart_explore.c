/* Independent races, explored apart: which programs allow it, and the search of each group. See apart.h. */
#include <stdlib.h>
#include <string.h>

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

/* If results are combined, a group that the host reads comes first: it may forbid that. A smaller group comes first, so
 * that the time is enough for as many groups as possible. */
static bool is_earlier(const apart *a, const apart_group *group, const apart_group *other) {
    if (!a->alone && group->looks != other->looks) return group->looks;
    return group->races < other->races;
}

/* The next group that has not been searched. */
static uint32_t next_group(const apart *a) {
    uint32_t next = NO_GROUP;
    for (uint32_t g = 0; g < a->count; g++)
        if (!a->group[g].begun &&
            (next == NO_GROUP || is_earlier(a, &a->group[g], &a->group[next])))
            next = g;
    return next;
}

/* The submitted order, which all groups share. */
static mr_status search_base(explorer *e, branch *b) {
    apart *a = e->apart;
    a->now = NO_GROUP;
    a->left_out = calloc(b->count + 1, sizeof *a->left_out);
    if (!a->left_out) return mr_no_memory("for groups of races");
    MR_TRY(search_branch(e, b, NULL, NULL, 0));
    return e->stop ? MR_OK : slice_find_owners(a, b);
}

static mr_status search_groups(explorer *e, branch *b) {
    apart *a = e->apart;
    if (!a->alone) MR_TRY(search_base(e, b));
    for (; a->tried < a->count && !e->stop && !a->failed; a->tried++) {
        a->now = next_group(a);
        a->group[a->now].begun = true;
        if (!a->alone) MR_TRY(slice_find(a, b));
        if (!a->alone) branch_leave_out(b, a->left_out);
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

/* Checks that all values have the text of the submitted order, and as many bytes. */
static bool is_alike(const explorer *e) {
    const mr_explore_outcome *all = e->result->outcomes.items;
    for (size_t i = 1; i < e->result->outcomes.count; i++)
        if (all[i].size != all[0].size || all[i].text_size != all[0].text_size ||
            memcmp(all[i].value, all[0].value, all[0].text_size) != 0)
            return false;
    return true;
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
    free(a->left_out);
    free(a->owner);
    mr_buffer_free(&a->base);
    groups_close(&a->groups);
    mr_vec_free(&a->pairs);
    mr_vec_free(&a->places);
}

/* The groups are there. */
static mr_status explore_groups(explorer *e, branch *b, apart *a, bool *out_done) {
    e->apart = a;
    mr_status status = search_groups(e, b);
    e->apart = NULL;
    branch_leave_out(b, NULL);
    if (status) tell_tried(e->result, a);
    if (status) return status;
    if (!a->failed && !e->stop) a->failed = !is_alike(e);
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
    if (!status && a.count > 1 && !e->stop) status = proof_of_accesses(b, &known);
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
