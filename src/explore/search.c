/* The search: one schedule of each class. It goes through the items in the order of the host's
 * calls. For each node that enters, it decides which of the conflicting earlier nodes come before
 * it.
 *
 * Items at which the host does not look at the device are a segment: its commands are all submitted before anything is
 * decided. A mark of the player lies behind them, so that each set of decisions in the segment begins by going back to
 * that mark. When the host looks, exactly the work before the look has run.
 *
 * Easiest to break: a frame undoes everything after it, so decide.c must restore every piece of state that a search
 * changes. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "explore/apart.h"
#include "explore/search.h"
#include "explore/share.h"
#include "explore/tell.h"
#include "model/backend.h"

#define MOST_DEPTH 400

/* ---- a schedule that has come to its end */

/* Whether an earlier pass with a lower bound counted the schedule. Decisions at the end do not change the program, so
 * that pass met the same schedule. */
static bool was_counted(const search *s) {
    const explorer *e = s->e;
    if (s->random) return false;
    return (e->overtaking >= 0 && s->at.overtaken < (uint32_t)e->overtaking) ||
           (e->deviations >= 0 && s->at.deviations < (uint32_t)e->deviations);
}

static void count_schedule(search *s) {
    explorer *e = s->e;
    e->result->by_priority += e->by_priority;
    budget_note_outcomes(e);
    if (e->again) return;
    if (!e->result->schedules++ && !e->apart) e->result->pairs = s->frames.count;
    if (s->random || e->result->schedules < e->options.most) return;
    explore_incomplete(e, "it stopped after max = %llu schedules",
                       (unsigned long long)e->options.most);
    e->stop = true;
}

static mr_status finish(search *s) {
    explorer *e = s->e;
    size_t text_size;
    if (e->estimating || share_skips(e)) return MR_OK;
    s->plan.until = s->b->count;
    s->plan.grain = e->options.grain;
    MR_TRY(branch_value(e, s->b, &s->plan, &e->value, &text_size));
    if (e->apart && !e->apart->alone) {
        MR_TRY(
            apart_count(e, s->b, &s->plan, s->at.overtaken, s->frames.count, &e->value, text_size));
        if (!e->stop && e->apart->now != NO_GROUP) count_schedule(s);
        return MR_OK;
    }
    MR_TRY(
        outcome_count(e, s->b, &s->plan, s->at.overtaken + s->at.deviations, &e->value, text_size));
    if (e->options.pair[0].where.file)
        MR_TRY(witness_look(e, s->b, &s->plan, s->at.overtaken, &e->value, text_size));
    count_schedule(s);
    return MR_OK;
}

/* Joins the schedule so far and the steps of the leaf's own run. */
static mr_status finish_leaf(search *s, const branch *leaf) {
    plan p = {0};
    if (s->e->estimating || was_counted(s)) return MR_OK;
    bool fine = plan_copy(&p, &s->plan);
    for (size_t i = leaf->forced; i < leaf->own.plan.steps.count && fine; i++)
        fine = mr_vec_push(&p.steps, leaf->own.plan.steps.items[i]);
    p.until = leaf->count;
    p.grain = s->e->options.grain;
    uint32_t deviations = s->at.overtaken + s->at.deviations;
    mr_status status =
        fine ? outcome_count(s->e, leaf, &p, deviations, &leaf->own.value, leaf->own.text_size)
             : mr_no_memory("to explore schedules");
    plan_free(&p);
    if (!status) count_schedule(s);
    return status;
}

/* ---- items with another result than recorded */

static uint64_t stir(uint64_t value) {
    value = (value + 1) * 0x9e3779b97f4a7c15u;
    return (value ^ value >> 29) * 0xbf58476d1ce4e5b9u;
}

static branch_key key_of(const search *s, uint32_t item, const mr_difference *d) {
    branch_key key = {.item = item, .kind = d->kind, .value = d->value};
    for (size_t i = 0; i < s->plan.steps.count; i++) {
        uint32_t command = s->plan.steps.items[i].command;
        if (s->o->items[command].kind == MR_COMMAND_HOST_FUNCTION) key.functions += stir(command);
    }
    if (d->kind != MR_DIFFERS_NOTHING) return key;
    plan_turn last = s->plan.turns.items[s->plan.turns.count - 1];
    key.turn = last.number + 1;
    key.who = last.who;
    return key;
}

static bool is_same_key(const branch_key *a, const branch_key *b) {
    return a->item == b->item && a->kind == b->kind && a->value == b->value &&
           a->functions == b->functions && a->turn == b->turn && a->who == b->who;
}

static branch *child_for(const branch *b, const branch_key *key) {
    for (size_t i = 0; i < b->children.count; i++)
        if (is_same_key(&b->children.items[i]->key, key)) return b->children.items[i];
    return NULL;
}

static mr_status not_repeatable(const branch *b, const branch *child, size_t until) {
    char text[400];
    if (mr_program_same(b->program, child->program, until, text, sizeof text)) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "the function is not repeatable: called again, it makes %s. It may depend only "
                   "on what it reads from tensors and queries, not on a clock, random numbers of "
                   "Lua, or variables that it changes",
                   text);
}

/* The cursor at the next item, with the counts that go on over all items. */
static cursor behind_item(const cursor *at) {
    return (cursor){.item = at->item + 1,
                    .overtaken = at->overtaken,
                    .turn = at->turn,
                    .deviations = at->deviations};
}

/* Whether the device has completed everything before the look, and the host has waited for it. */
static bool is_all_over(search *s, uint32_t item) {
    order *o = s->o;
    order_scratch_clear(o);
    order_scratch_join(o, order_host(o));
    for (uint32_t n = o->first_node[item]; n < o->first_node[item + 1]; n++)
        order_scratch_join(o, order_before(o, n));
    order_close_scratch(o);
    for (uint32_t n = 0; n < o->first_node[item]; n++)
        if (order_is_operation(search_node(s, n)) &&
            (!order_has(o, order_scratch(o), n) || !order_has(o, order_done(o), n)))
            return false;
    return true;
}

/* The function can behave differently only after the host has looked, and the schedule is decided by then. */
static bool is_leaf(search *s, const branch *child, uint32_t item) {
    const mr_explore_options *o = &s->e->options;
    bool is_decided = !child->key.turn && (s->e->one_order || child->turns.count <= s->at.turn);
    return is_decided && s->b->player && !o->full && !child->parts.count && !child->strayed &&
           o->grain < 2 && !o->pair[0].where.file && is_all_over(s, item) &&
           proof_of_rest(s->e, child, item);
}

/* The child has been recorded. */
static mr_status settle(search *s, branch *child, uint32_t item) {
    MR_TRY(not_repeatable(s->b, child, item));
    if (child->strayed)
        explore_incomplete(s->e, "a run of the function did not follow a schedule, and what comes "
                                 "after that was not tried");
    child->leaf = is_leaf(s, child, item);
    child->reads_more = child->leaf && proof_reads_more(child, item);
    child->before = s->b;
    if (child->leaf) return MR_OK;
    budget_make_room(s->e, budget_of_player(s->e, s->b));
    return s->e->stop ? MR_OK : branch_prepare(s->e, child);
}

#define UNENDED_TIMES 10 /* as long as the first run */

/* A run under this plan was stopped. Whether it would have ended is not known. */
static void note_unended(search *s, const plan *forced, uint32_t item) {
    explorer *e = s->e;
    mr_explore_unended *u = &e->result->unended;
    mr_buffer text = {0};
    if (e->last_run < UNENDED_TIMES * e->first_run || e->last_run <= u->seconds) return;
    const char *where = e->subject->stopped_at ? e->subject->stopped_at(e->subject->context) : "";
    tell_beginning(e, s->b, forced, item + 1, &text);
    if (text.failed) {
        mr_buffer_free(&text);
        return;
    }
    free(u->difference);
    snprintf(u->where, sizeof u->where, "%s", where);
    u->seconds = e->last_run;
    u->first = e->first_run;
    u->difference = text.data;
}

static mr_status make_child(search *s, uint32_t until, uint32_t item, const branch_key *key,
                            branch **out_child) {
    plan forced = {0};
    own_schedule own = {0};
    branch *child = NULL;
    if (!plan_copy(&forced, &s->plan)) {
        plan_free(&forced);
        return mr_no_memory("to explore schedules");
    }
    forced.until = item + (until > item);
    forced.grain = s->e->options.grain;
    mr_status status = branch_record(s->e, &forced, &own, &child);
    if (status && mr_code_is_interruption(status->code)) note_unended(s, &forced, item);
    plan_free(&forced);
    if (!status) {
        child->key = *key;
        child->own = own;
        child->forced = s->plan.steps.count;
        status = settle(s, child, item);
        if (!status && !mr_vec_push(&s->b->children, child))
            status = mr_no_memory("to explore schedules");
    } else {
        plan_free(&own.plan);
        mr_buffer_free(&own.value);
    }
    if (status) branch_destroy(s->e, child);
    else *out_child = child;
    return status;
}

#define MOST_BRANCHES 64 /* players that are open at a time */

static void forget_child(search *s, branch *child) {
    if (s->e->branches <= MOST_BRANCHES && !child->reads_more) return;
    size_t i = 0;
    while (s->b->children.items[i] != child) i++;
    s->b->children.items[i] = mr_vec_pop(&s->b->children);
    branch_destroy(s->e, child);
}

static mr_status resume(search *s) {
    return s->b->player ? MR_OK : branch_open_player(s->e, s->b);
}

/* The line of the call that the item is a part of. */
static mr_site place_of(const search *s, uint32_t item) {
    while (item && !s->o->items[item].where.file) item--;
    return explore_shown(s->e, s->o->items[item].where);
}

/* Explores the function's other program from the same state. `d` without a difference: another host goes on. `undo`:
 * the state before the item was carried out. */
static mr_status diverge(search *s, const frame *undo, uint32_t item, uint32_t until,
                         const mr_difference *d) {
    if (apart_fails(s->e) || share_skips(s->e)) return MR_OK;
    if (s->depth == MOST_DEPTH) {
        mr_site where = place_of(s, item);
        explore_incomplete(s->e,
                           "the host reads more than %d values that differ between schedules, here "
                           "at %s:%d, and what comes after them was not tried",
                           MOST_DEPTH, where.file ? where.file : "?", where.line);
        return MR_OK;
    }
    branch_key key = key_of(s, item, d);
    if (s->depth && is_same_key(&s->b->key, &key))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "the function is not repeatable: called again under the same schedule, it "
                       "comes to another result (%s)",
                       d->text);
    branch *child = child_for(s->b, &key);
    if (!child && share_is_worker(s->e)) {
        s->e->share->gives_back = true;
        return MR_OK;
    }
    budget_make_room(s->e, child ? 0 : budget_of_player(s->e, s->b));
    if (s->e->stop) return MR_OK;
    if (!child) MR_TRY(make_child(s, until, item, &key, &child));
    if (s->e->stop) return MR_OK;
    if (child->leaf) {
        mr_status counted = finish_leaf(s, child);
        forget_child(s, child);
        return counted;
    }
    order_undo(s->o, undo->changes, undo->placed);
    s->plan.steps.count = undo->steps;
    journey j = {.at = undo->at, .plan = s->plan};
    j.polls.items = s->polls.items;
    j.polls.count = undo->polls;
    mr_status status = search_branch(s->e, child, &j, s->o, s->depth + 1);
    forget_child(s, child);
    if (status || s->e->stop || s->b->player) return status;
    if (!budget_has_room(s->e, budget_of_player(s->e, s->b))) budget_drop_children(s->e, s->b);
    status = resume(s);
    return status;
}

/* ---- going through the items */

static mr_status open_segment(search *s, uint32_t begin, progress *out_progress);

/* STAGE_LOOK: the host gets here. */
static mr_status look(search *s, progress *out_progress) {
    mr_difference d = {0};
    frame undo = {.at = s->at,
                  .changes = order_changes(s->o),
                  .steps = s->plan.steps.count,
                  .polls = s->polls.count,
                  .placed = s->o->placed};
    if (s->at.item == s->b->count && (was_counted(s) || share_skips(s->e))) {
        *out_progress = IS_OVER;
        return MR_OK;
    }
    s->e->wanted.count = 0;
    MR_TRY(search_go_back(s, false));
    search_find_needed(s);
    MR_TRY(search_plan_needed(s));
    size_t before = s->e->wanted.count;
    MR_TRY(search_plan_own(s));
    bool asked = false;
    MR_TRY(search_carry_out(s, before, &d, &asked));
    if (s->o->failed) return mr_no_memory("to explore schedules");
    if (d.kind != MR_DIFFERS_NOTHING) {
        *out_progress = IS_OVER;
        return diverge(s, &undo, s->at.item, s->at.item + asked, &d);
    }
    if (s->at.item == s->b->count) {
        *out_progress = IS_OVER;
        return finish(s);
    }
    order_leave(s->o, s->at.item, s->at.asked);
    s->at = behind_item(&s->at);
    return open_segment(s, s->at.item, out_progress);
}

/* The commands up to the next look are submitted; the device does nothing meanwhile. */
static mr_status open_segment(search *s, uint32_t begin, progress *out_progress) {
    branch *b = s->b;
    segment g = {.begin = begin, .end = b->breaks_at[begin]};
    mr_difference d = {0};
    if (!mr_vec_push(&s->segments, g)) return mr_no_memory("to explore schedules");
    search_give(s, 0);
    mr_status status = mr_player_run(b->player, g.end, &d);
    if (search_is_interrupted(status)) return status;
    mr_error_destroy(status);
    if (d.kind != MR_DIFFERS_NOTHING) {
        frame undo = {.at = s->at,
                      .changes = order_changes(s->o),
                      .steps = s->plan.steps.count,
                      .polls = s->polls.count,
                      .placed = s->o->placed};
        *out_progress = IS_OVER;
        return diverge(s, &undo, (uint32_t)d.item, (uint32_t)d.item + 1, &d);
    }
    branch_find_conflicts(b, begin, g.end);
    return MR_OK;
}

/* Nodes of the item enter. */
void search_place_nodes(search *s) {
    order_place_nodes(s->o, s->at.item, s->at.asked);
    s->at.stage = STAGE_SCAN;
    s->at.node = s->o->first_node[s->at.item];
    s->at.other = 0;
}

static bool is_open_pair(const search *s, uint32_t node, uint32_t other) {
    const order *o = s->o;
    return !order_has(o, order_before(o, node), other) &&
           !order_has(o, order_before(o, other), node);
}

/* The first earlier node from `other` on that touches the same bytes; none: `node`. */
static uint32_t next_conflict(const search *s, uint32_t node, uint32_t other) {
    const uint64_t *row = s->b->conflicts + (size_t)node * s->o->words_in_set;
    for (uint32_t i = other / 64; i <= node / 64; i++) {
        uint64_t rest = i == other / 64 ? row[i] & ~(uint64_t)0 << other % 64 : row[i];
        if (rest) return i * 64 + (uint32_t)__builtin_ctzll(rest);
    }
    return node;
}

/* STAGE_SCAN: decides one pair after the other. If the bound allows no more overtaking, pairs keep the order of
 * submission. */
static mr_status scan(search *s) {
    const order *o = s->o;
    cursor *at = &s->at;
    uint32_t end = o->first_node[at->item + 1];
    for (; at->node < end; at->node++, at->other = 0) {
        if (!search_takes_part(s, at->node)) continue;
        for (; (at->other = next_conflict(s, at->node, at->other)) < at->node; at->other++) {
            if (!is_open_pair(s, at->node, at->other)) continue;
            if (apart_decides(s->e, s->b, at->node, at->other))
                return search_decide(s, DECIDE_PAIR);
            search_keep_submitted(s);
            return MR_OK;
        }
    }
    bool passes = s->b->breaks_at[at->item] != at->item;
    if (passes) {
        order_leave(s->o, at->item, at->asked);
        *at = behind_item(at);
    } else {
        item_class class = (item_class)s->b->classes[at->item];
        at->stage = class == ITEM_QUERY || class == ITEM_ALLOC ? STAGE_ASK : STAGE_LOOK;
    }
    return MR_OK;
}

/* Whether what a query asks for is not known to be over. */
static bool is_uncertain(search *s) {
    order *o = s->o;
    order_goal(o, s->at.item);
    order_close_scratch(o);
    return !order_within(o, order_scratch(o), order_before(o, search_look_node(s))) ||
           order_allocates(o, s->at.item);
}

/* STAGE_ASK */
static mr_status ask(search *s) {
    uint32_t look_at = search_look_node(s);
    if (s->b->classes[s->at.item] == ITEM_ALLOC) return search_place(s);
    if (is_uncertain(s) && polls_may_say_no(s)) return search_decide(s, DECIDE_QUERY);
    search_answer_yes(s, look_at);
    s->at.asked = true;
    s->at.stage = STAGE_LOOK;
    return MR_OK;
}

/* STAGE_OPEN */
static mr_status begin_item(search *s) {
    if (order_has_nodes((item_class)s->b->classes[s->at.item])) search_place_nodes(s);
    else s->at.stage = STAGE_LOOK;
    return MR_OK;
}

/* Searches the schedules in which host `who` goes on at the cursor. */
static mr_status follow_turn(search *s, uint32_t who) {
    const cursor at = s->at;
    mr_difference none = {0};
    if (!mr_vec_push(&s->plan.turns, ((plan_turn){at.turn, who})))
        return mr_no_memory("to explore schedules");
    s->at.stage = STAGE_ENTER;
    s->at.turn++;
    s->at.deviations++;
    frame undo = {.at = s->at,
                  .changes = order_changes(s->o),
                  .steps = s->plan.steps.count,
                  .polls = s->polls.count,
                  .placed = s->o->placed};
    mr_status status = diverge(s, &undo, at.item, at.item, &none);
    s->plan.turns.count--;
    s->at = at;
    return status;
}

/* STAGE_TURN: another host goes on than the first one, which went on in this program. */
static mr_status take_turn(search *s, progress *out_progress) {
    explorer *e = s->e;
    uint32_t count = s->b->turns.items[s->at.turn].choice.count, who = 1;
    *out_progress = IS_OVER;
    if (s->random) {
        e->weight *= count - 1;
        who += (uint32_t)(search_draw(e) % (count - 1));
        return follow_turn(s, who);
    }
    e->deviates |= e->deviations >= 0 && s->at.deviations == (uint32_t)e->deviations;
    if (e->deviations >= 0 && s->at.deviations == (uint32_t)e->deviations) return MR_OK;
    for (; who < count && !e->stop; who++) MR_TRY(follow_turn(s, who));
    return MR_OK;
}

/* STAGE_ENTER */
static mr_status enter(search *s, progress *out_progress) {
    uint32_t i = s->at.item;
    if (!s->e->one_order && s->at.turn < s->b->turns.count && s->b->turns.items[s->at.turn].at <= i)
        return search_decide(s, DECIDE_TURN);
    if (i == s->b->count) return look(s, out_progress);
    if (s->b->classes[i] == ITEM_PLAIN) {
        order_leave(s->o, i, false);
        s->at.item++;
        return MR_OK;
    }
    bool is_open = order_is_open(s->o, i, &s->at.asked);
    if (is_open && s->e->options.unspecified) return search_decide(s, DECIDE_OPEN);
    return begin_item(s);
}

static mr_status advance(search *s, progress *out_progress) {
    switch (s->at.stage) {
    case STAGE_ENTER: return enter(s, out_progress);
    case STAGE_TURN: return take_turn(s, out_progress);
    case STAGE_OPEN: return begin_item(s);
    case STAGE_SCAN: return scan(s);
    case STAGE_ASK: return ask(s);
    case STAGE_LOOK: break;
    }
    return look(s, out_progress);
}

/* ---- the beginning */

/* Brings the player from its position to item `until` by the plan; `next`: the first step that is not yet carried out.
 * Afterwards the list of requested commands is empty. */
static mr_status replay(search *s, uint32_t until, size_t next) {
    branch *b = s->b;
    for (uint32_t i = (uint32_t)mr_player_position(b->player); i < until; i++) {
        mr_difference d = {0};
        size_t before = 0;
        s->e->wanted.count = 0;
        for (; next < s->plan.steps.count && s->plan.steps.items[next].at <= i; next++) {
            uint32_t command = s->plan.steps.items[next].command;
            if (branch_leaves_out(b, command)) continue;
            if (!mr_vec_push(&s->e->wanted, s->o->items[command].command))
                return mr_no_memory("to explore schedules");
            before += command != i;
        }
        search_give(s, s->e->wanted.count);
        mr_status status = before ? mr_player_let_move(b->player, &d) : MR_OK;
        if (search_is_interrupted(status)) return status;
        mr_error_destroy(status);
        b->steer->answered = search_answer_for(&s->plan, i, &b->steer->answer);
        status = mr_player_run(b->player, i + 1, &d);
        b->steer->answered = false;
        if (search_is_interrupted(status)) return status;
        mr_error_destroy(status);
        if (d.kind != MR_DIFFERS_NOTHING)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "the function is not repeatable: under the same schedule, %s", d.text);
    }
    s->e->wanted.count = 0;
    search_give(s, 0);
    return MR_OK;
}

/* ---- players that were taken back */

void search_let_go(search *s) {
    if (!s->b->player) return;
    for (size_t i = s->segments.count; i-- > 0;) {
        mr_player_mark_drop(s->segments.items[i].mark);
        s->segments.items[i].mark = NULL;
        s->segments.items[i].dirty = true;
    }
    branch_close_player(s->b);
}

void search_forget_mark(search *s) {
    segment *g = s->segments.count ? &s->segments.items[s->segments.count - 1] : NULL;
    if (!g || !s->b->player) return;
    mr_player_mark_drop(g->mark);
    g->mark = NULL;
    g->dirty = true;
}

/* Begins at the newest earlier segment with a mark. Within a segment the device does nothing before its end. */
mr_status search_remake(search *s) {
    const segment *g = &s->segments.items[s->segments.count - 1];
    size_t i = s->segments.count - 1, next = 0;
    while (i > 0 && !s->segments.items[i - 1].mark) i--;
    if (i > 0) {
        const segment *from = &s->segments.items[i - 1];
        MR_TRY(mr_player_go_back(s->b->player, from->mark));
        while (next < s->plan.steps.count && s->plan.steps.items[next].at < from->begin) next++;
    } else {
        MR_TRY(branch_go_to_start(s->e, s->b));
    }
    MR_TRY(replay(s, g->begin, next));
    mr_difference d = {0};
    mr_status status = mr_player_run(s->b->player, g->end, &d);
    if (search_is_interrupted(status)) return status;
    mr_error_destroy(status);
    return MR_OK;
}

static mr_status prepare(search *s, const journey *begin, const order *from) {
    order *o = s->o;
    s->plan.eager = s->e->eager;
    if (from) {
        order_copy(o, from);
    } else {
        order_forget(o);
    }
    if (!begin) return MR_OK;
    s->at = begin->at; /* the item's nodes are yet to come */
    if (s->at.item > s->b->count)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "the function is not repeatable: called again, it ends too early");
    if (!plan_copy(&s->plan, &begin->plan)) return mr_no_memory("to explore schedules");
    for (size_t i = 0; i < begin->polls.count; i++)
        if (!mr_vec_push(&s->polls, begin->polls.items[i]))
            return mr_no_memory("to explore schedules");
    return MR_OK;
}

/* If the search begins in the middle of an item, nothing is submitted. */
static mr_status first_segment(search *s, progress *out_progress) {
    segment here = {s->at.item, s->at.item, NULL, false, 0};
    if (s->at.stage == STAGE_ENTER) return open_segment(s, s->at.item, out_progress);
    return mr_vec_push(&s->segments, here) ? MR_OK : mr_no_memory("to explore schedules");
}

static mr_status go_to_begin(search *s) {
    MR_TRY(branch_go_to_start(s->e, s->b));
    return replay(s, s->at.item, 0);
}

/* ---- shared by processes: share.h */

static mr_status begin_to_share(search *s) {
    explorer *e = s->e;
    unsigned count = budget_divide(e, share_most_workers(e));
    if (count && share_begin(e, count)) return MR_OK;
    budget_unite(e);
    e->shares = UINT_MAX;
    return share_end(e);
}

static mr_status end_to_share(search *s) {
    mr_status status = share_end(s->e);
    budget_unite(s->e);
    s->shape = (search_shape){.from = s->e->result->schedules, .began = budget_now(s->e)};
    return status;
}

/* Now and then. */
static mr_status think_of_sharing(search *s) {
    explorer *e = s->e;
    if (e->looked == s->looked && !e->options.shared_depth) return MR_OK;
    s->looked = e->looked;
    if (share_is_worker(e)) worker_tick(e->share->workers);
    if (s->depth || e->share || !share_may(s)) return MR_OK;
    return share_choose(s, budget_now(e) - s->shape.began);
}

/* Called after a choice that begins a subtree. */
static mr_status begin_subtree(search *s, progress *out_progress) {
    explorer *e = s->e;
    share_answer answer = SHARE_WAIT;
    if (!e->share->workers) MR_TRY(begin_to_share(s));
    while (e->share && answer == SHARE_WAIT && !e->stop) {
        MR_TRY(share_ask(s, &answer));
        if (answer == SHARE_WAIT) budget_look(e);
    }
    if (!e->share || e->stop) return MR_OK;
    if (answer == SHARE_PASS) *out_progress = IS_OVER;
    if (share_is_worker(e)) return MR_OK;
    budget_note_outcomes(e);
    /* While workers had the search, the function's own clock stood still. */
    if (answer == SHARE_SEARCH && e->deadline > 0) budget_end_at(e, e->deadline - budget_now(e));
    return MR_OK;
}

static mr_status step_back(search *s, progress *out_progress) {
    bool ends;
    *out_progress = s->e->stop ? IS_OVER : search_back(s);
    if (s->e->stop || s->o->failed) return MR_OK;
    share_step_back(s, &ends);
    return ends ? end_to_share(s) : MR_OK;
}

/* ---- all of it */

static mr_status take_step(search *s, progress *io_progress) {
    if (!s->b->player) MR_TRY(resume(s));
    if (*io_progress == GOES_ON) MR_TRY(advance(s, io_progress));
    if (s->o->failed) return mr_no_memory("to explore schedules");
    if (share_is_at_subtree(s)) MR_TRY(begin_subtree(s, io_progress));
    if (!share_gives_back(s->e)) return MR_OK;
    *io_progress = IS_OVER;
    if (s->e->share->search == s) share_abandon(s);
    return MR_OK;
}

/* *out_is_through: not stopped. */
static mr_status go_through(search *s, bool *out_is_through) {
    progress p = GOES_ON;
    MR_TRY(go_to_begin(s));
    MR_TRY(first_segment(s, &p));
    while (!s->e->stop) {
        budget_look(s->e);
        if (s->e->stop) break;
        MR_TRY(think_of_sharing(s));
        MR_TRY(take_step(s, &p));
        if (share_gives_back(s->e) && s->e->share->search != s) break;
        if (p == GOES_ON) continue;
        MR_TRY(step_back(s, &p));
        if (p == IS_OVER) break;
    }
    *out_is_through = !s->e->stop && !s->o->failed;
    return s->o->failed ? mr_no_memory("to explore schedules") : MR_OK;
}

mr_status search_branch(explorer *e, branch *b, const journey *begin, const order *from,
                        unsigned depth) {
    search s = {.e = e,
                .b = b,
                .o = &b->order,
                .outer = e->innermost,
                .depth = depth,
                .random = e->options.samples > 0 || e->by_priority};
    e->innermost = &s;
    mr_status status = e->by_priority ? priority_draw(e, b) : MR_OK;
    if (!status) status = prepare(&s, begin, from);
    s.shape.from = e->result->schedules;
    s.shape.began = budget_now(e);
    bool is_through = false;
    if (!status) status = go_through(&s, &is_through);
    if (share_is_worker(e) && e->share->search == &s)
        worker_leave(e->share->workers, !status && is_through);
    if (e->share && e->share->search == &s) status = mr_error_first(status, end_to_share(&s));
    bool is_cut = e->stop || (status && mr_code_is_interruption(status->code));
    if (is_cut && !e->estimating && !e->again && !s.random) search_note_untried(&s);
    e->innermost = s.outer;
    while (s.segments.count) search_drop_segment(&s);
    mr_vec_free(&s.segments);
    mr_vec_free(&s.frames);
    mr_vec_free(&s.polls);
    plan_free(&s.plan);
    return status;
}
