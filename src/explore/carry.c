/* Carrying out: turns sets of nodes into a plan, and runs the plan on the player's machine. A greedy choice keeps the
 * number of changes between streams low. Easiest to break: it carries out only what the host's next look needs. The
 * search has not decided anything beyond that. */
#include <stdio.h>

#include "explore/apart.h"
#include "explore/search.h"
#include "model/backend.h"

#define NONE UINT32_MAX

static const mr_command *command_of(const search *s, uint32_t node) {
    return s->o->items[search_node(s, node)->item].command;
}

/* Whether everything before the node is done. The host's own nodes are done, since the host has already passed them. */
static bool comes_next(const search *s, uint32_t n) {
    const order *o = s->o;
    uint32_t before = order_before(o, n), done = order_done(o);
    for (uint32_t i = 0; i < o->words_in_set; i++) {
        uint64_t rest = o->words[before + i] & ~o->words[done + i];
        for (; rest; rest &= rest - 1)
            if (order_is_operation(search_node(s, i * 64 + (uint32_t)__builtin_ctzll(rest))))
                return false;
    }
    return true;
}

static bool plan_node(search *s, uint32_t n) {
    plan_step step = {s->at.item, search_node(s, n)->item};
    order_add(s->o, order_done(s->o), n);
    if (!mr_vec_push(&s->plan.steps, step)) return false;
    return branch_leaves_out(s->b, step.command) || mr_vec_push(&s->e->wanted, command_of(s, n));
}

/* Plans all that the scratch set needs. */
mr_status search_plan_needed(search *s) {
    order *o = s->o;
    size_t planned = s->plan.steps.count;
    uint32_t lane = NONE;
    order_close_scratch(o);
    if (planned) {
        uint32_t item = s->plan.steps.items[planned - 1].command;
        lane = search_node(s, o->first_node[item + 1] - 1)->lane;
    }
    ready_begin(&s->b->ready, o, order_scratch(o));
    for (uint32_t n; (n = ready_take(&s->b->ready, o, lane)) != READY_NONE;) {
        if (!plan_node(s, n)) return mr_no_memory("to explore schedules");
        lane = search_node(s, n)->lane;
    }
    return MR_OK;
}

/* Finds what must have been carried out before the host carries out the item. */
void search_find_needed(search *s) {
    order *o = s->o;
    uint32_t i = s->at.item;
    if (i == s->b->count) {
        order_scratch_clear(o);
        for (uint32_t n = 0; n < o->placed; n++)
            o->words[order_scratch(o) + n / 64] |= (uint64_t)1 << n % 64;
        return;
    }
    order_goal(o, i);
    item_class class = (item_class)s->b->classes[i];
    if ((class == ITEM_QUERY || class == ITEM_LOOK) && !s->at.asked) order_scratch_clear(o);
    bool until_done = true;
    if (class == ITEM_COPY && s->o->items[i].kind == MR_COMMAND_COPY) {
        mr_order_copy_rules rules = order_copy_of(o, i, s->at.asked);
        until_done = rules.until_done;
        if (!rules.after_stream) order_scratch_clear(o);
    }
    /* The host only submits a copy that it does not wait for; its own part is to read the source. */
    for (uint32_t n = o->first_node[i]; n < o->first_node[i + 1]; n++)
        if (until_done || !search_node(s, n)->parts) order_scratch_join(o, order_before(o, n));
    /* Its parts before the last one are not submitted yet. */
    for (uint32_t n = o->first_node[i]; n < o->first_node[i + 1]; n++)
        o->words[order_scratch(o) + n / 64] &= ~((uint64_t)1 << n % 64);
}

/* The item's own nodes, where the host waits for them in the call. */
mr_status search_plan_own(search *s) {
    order *o = s->o;
    uint32_t i = s->at.item;
    if (i == s->b->count || s->b->classes[i] != ITEM_COPY) return MR_OK;
    const mr_program_item *it = &s->o->items[i];
    bool waits = it->kind == MR_COMMAND_COPY && order_copy_of(o, i, s->at.asked).until_done;
    for (uint32_t n = o->first_node[i]; n < o->first_node[i + 1] && waits; n++)
        if (search_node(s, n)->parts && !plan_node(s, n))
            return mr_no_memory("to explore schedules");
    return MR_OK;
}

#define LARGE ((size_t)32 << 20)

/* A mark keeps the bytes that are overwritten after it. The budget would see this memory only afterwards, so a large
 * program reserves all of it first. */
static bool may_mark(const search *s) {
    size_t most = budget_of_player(s->e, s->b);
    return most < LARGE || budget_has_room(s->e, most);
}

mr_status search_go_back(search *s, bool returns) {
    segment *g = &s->segments.items[s->segments.count - 1];
    if (g->dirty && g->mark) MR_TRY(mr_player_go_back(s->b->player, g->mark));
    else if (g->dirty) MR_TRY(search_remake(s));
    if (!g->mark && (g->frames || returns) && !s->b->without_marks && may_mark(s))
        MR_TRY(mr_player_mark_make(s->b->player, &g->mark));
    g->dirty = true;
    return MR_OK;
}

/* The part that ran without being requested: the host waited for a reason that is not in the order, such as a full
 * launch queue. */
static uint32_t next_part(const search *s, const mr_command *command) {
    for (uint32_t n = 0; n < s->o->placed; n++)
        if (search_node(s, n)->parts && !order_has(s->o, order_done(s->o), n) &&
            command_of(s, n) == command)
            return n;
    return NONE;
}

static bool may_go(void *context, const mr_command *command) {
    const search *s = context;
    uint32_t n = next_part(s, command);
    return n != NONE && comes_next(s, n);
}

static void has_gone(void *context, const mr_command *command) {
    search *s = context;
    uint32_t n = next_part(s, command);
    if (n == NONE) return;
    apart_fails(s->e);
    plan_step step = {s->at.item, search_node(s, n)->item};
    order_add(s->o, order_done(s->o), n);
    order_add(s->o, order_host(s->o), n);
    if (!mr_vec_push(&s->plan.steps, step)) s->o->failed = true;
}

void search_give(search *s, size_t count) {
    steer_player *steer = s->b->steer;
    steer->wanted = s->e->wanted.items;
    steer->wanted_count = count;
    steer->next = 0;
    steer->allowed = may_go;
    steer->went = has_gone;
    steer->context = s;
}

bool search_is_interrupted(mr_status status) {
    return status && mr_code_is_interruption(status->code);
}

bool search_answer_for(const plan *p, uint32_t item, bool *out_yes) {
    for (size_t i = p->answers.count; i-- > 0 && p->answers.items[i].at >= item;)
        if (p->answers.items[i].at == item) {
            *out_yes = p->answers.items[i].yes;
            return true;
        }
    return false;
}

static void note_stricter(search *s) {
    mr_site where = s->at.item < s->b->count ? s->o->items[s->at.item].where : (mr_site){0};
    if (apart_fails(s->e)) return;
    char place[MR_LONGEST_NAME + 32] = "the end";
    where = explore_shown(s->e, where);
    if (where.file) snprintf(place, sizeof place, "%s:%d", where.file, where.line);
    explore_incomplete(
        s->e,
        "at %s the virtual GPU waits for more than CUDA guarantees, and some orders of "
        "before were not tried",
        place);
}

/* Lets the device carry out the requested parts, then the host carries out the item. *out_asked: the host got to the
 * item. */
mr_status search_carry_out(search *s, size_t before, mr_difference *d, bool *out_asked) {
    branch *b = s->b;
    size_t wanted = s->e->wanted.count;
    search_give(s, wanted);
    mr_status status = before ? mr_player_let_move(b->player, d) : MR_OK;
    if (search_is_interrupted(status)) return status;
    /* R49: a later call returns the error to the host, and that call is compared */
    mr_error_destroy(status);
    if (b->steer->next < before && !mr_player_machine(b->player)->lost) note_stricter(s);
    if (s->at.item < b->count && d->kind == MR_DIFFERS_NOTHING) {
        *out_asked = true;
        b->steer->answered = search_answer_for(&s->plan, s->at.item, &b->steer->answer);
        status = mr_player_run(b->player, s->at.item + 1, d);
        b->steer->answered = false;
        if (search_is_interrupted(status)) return status;
        mr_error_destroy(status); /* another error than was recorded is a difference, too */
    }
    b->steer->wanted_count = 0;
    return MR_OK;
}
