/* Decisions: the first of two commands, the answer of a query, and choices that CUDA leaves open. Each is a frame,
 * which can undo everything after it. The order keeps its changes, the plan and the polls are cut, the cursor is kept
 * whole. */
#include "explore/search.h"

/* The node of a query or an allocation. */
uint32_t search_look_node(const search *s) {
    return s->o->first_node[s->at.item];
}

/* Everything that the query asks for comes before the look. */
void search_answer_yes(search *s, uint32_t look) {
    order *o = s->o;
    for (uint32_t n = 0; n < look; n++)
        if (order_has(o, order_scratch(o), n) && !order_has(o, order_before(o, look), n))
            order_decide(o, n, look);
}

/* Places are numbered in place.c. */
bool search_place_goal(search *s, uint32_t place) {
    order *o = s->o;
    if (place == search_place_missed(s)) return s->b->may_miss[s->at.item];
    if (!place || !order_free_for(o, s->at.item, place - 1)) return false;
    return !order_within(o, order_scratch(o), order_before(o, search_look_node(s)));
}

void search_take_place(search *s) {
    plan_answer no = {s->at.item, false, PLAN_NO_ITEM};
    if (s->at.place == search_place_missed(s)) s->o->failed |= !mr_vec_push(&s->plan.answers, no);
    else if (search_place_goal(s, s->at.place)) search_answer_yes(s, search_look_node(s));
    s->at.asked = true;
    s->at.stage = STAGE_LOOK;
}

/* Puts one of the query's nodes after the look: the last one that may come after it. Returns it, or `look` if none can
 * come after it. */
static uint32_t answer_no(search *s, uint32_t look) {
    order *o = s->o;
    for (uint32_t n = look; n-- > 0;)
        if (order_has(o, order_scratch(o), n) && !order_has(o, order_before(o, look), n)) {
            order_decide(o, look, n);
            return n;
        }
    return look;
}

/* Whether an operation of the scratch set is not carried out before the look. Then the query says no by itself. */
static bool waits_for_operation(const search *s, uint32_t look) {
    const order *o = s->o;
    for (uint32_t n = 0; n < look; n++)
        if (order_is_operation(search_node(s, n)) && order_has(o, order_scratch(o), n) &&
            !order_has(o, order_before(o, look), n))
            return true;
    return false;
}

/* Only records, waits, frees and allocations are pending, so the plan must make the query say no. `late`: the node that
 * comes after the query; an allocation has no node, and `late` is then the query's own. */
static bool note_no(search *s, uint32_t look, uint32_t late) {
    plan_answer no = {s->at.item, false, late == look ? PLAN_NO_ITEM : search_node(s, late)->item};
    return waits_for_operation(s, look) || mr_vec_push(&s->plan.answers, no);
}

bool search_takes_part(const search *s, uint32_t node) {
    return branch_takes_part(s->b, node, s->at.asked);
}

/* Pairs of the item at hand whose commands run against the order of submission. A decision for one pair settles others:
 * a node before A comes before all nodes after A. Nodes that enter later only add to the sum. */
static uint32_t count_overtaken(const search *s) {
    const order *o = s->o;
    uint32_t count = 0;
    for (uint32_t n = o->first_node[s->at.item]; n <= s->at.node; n++) {
        const uint64_t *row = s->b->conflicts + (size_t)n * o->words_in_set;
        if (!search_takes_part(s, n)) continue;
        for (uint32_t i = 0; i < o->words_in_set; i++)
            for (uint64_t rest = row[i]; rest; rest &= rest - 1)
                count += order_has(o, order_before(o, i * 64 + (uint32_t)__builtin_ctzll(rest)), n);
    }
    return count;
}

static void decide_pair(search *s, bool second) {
    mr_explore_result *r = s->e->result;
    if (!r->may_mix) r->may_mix = branch_may_mix(s->b, s->at.other, s->at.node);
    if (second) {
        uint32_t before = count_overtaken(s);
        order_decide(s->o, s->at.node, s->at.other);
        s->at.overtaken += count_overtaken(s) - before;
    } else {
        order_decide(s->o, s->at.other, s->at.node);
    }
    s->at.other++;
}

void search_keep_submitted(search *s) {
    decide_pair(s, false);
}

static bool choose(search *s, decision kind, bool second) {
    order *o = s->o;
    uint32_t look, late = 0;
    switch (kind) {
    case DECIDE_PAIR: decide_pair(s, second); return true;
    case DECIDE_QUERY:
        look = search_look_node(s);
        order_goal(o, s->at.item);
        order_close_scratch(o);
        if (second) late = answer_no(s, look);
        else search_answer_yes(s, look);
        s->at.asked = !second;
        s->at.stage = STAGE_LOOK;
        return (!second || note_no(s, look, late)) && polls_note(s, !second);
    case DECIDE_PLACE:
        if (second) s->at.place = s->at.next_place;
        else search_take_place(s);
        return true;
    case DECIDE_TURN:
        if (second) s->at.stage = STAGE_TURN;
        else s->at.turn++;
        return true;
    case DECIDE_OPEN: {
        plan_answer a = {s->at.item, s->at.asked ^ second, PLAN_NO_ITEM};
        s->at.asked = a.yes;
        s->at.stage = STAGE_OPEN;
        return mr_vec_push(&s->plan.answers, a);
    }
    }
    return false;
}

/* splitmix64 */
uint64_t search_draw(explorer *e) {
    uint64_t z = e->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Whether a query says no in the random run: part of the work that it asks about comes later. */
static bool says_no(const search *s) {
    order *o = s->o;
    uint32_t look = search_look_node(s);
    order_goal(o, s->at.item);
    order_close_scratch(o);
    for (uint32_t n = 0; n < look; n++)
        if (order_has(o, order_scratch(o), n) && !order_has(o, order_before(o, look), n) &&
            priority_goes_first(s->b, look, n))
            return true;
    return false;
}

static bool draw_second(const search *s, decision kind) {
    if (s->e->by_priority && s->b->moments) {
        if (kind == DECIDE_PAIR) return priority_goes_first(s->b, s->at.node, s->at.other);
        if (kind == DECIDE_QUERY) return says_no(s);
        if (kind == DECIDE_TURN) return false; /* it is a schedule of this program */
    }
    return search_draw(s->e) & 1;
}

/* The other order of the pair is possible, but the bound of this pass excludes its schedules. */
static bool is_excluded(const search *s) {
    if (s->e->overtaking < 0 || s->at.overtaken <= (uint32_t)s->e->overtaking) return false;
    s->e->excluded = true;
    return true;
}

/* Draws one of the choices at random. No frame is kept for the others. */
static mr_status draw_choice(search *s, decision kind) {
    cursor at = s->at;
    size_t changes = order_changes(s->o);
    uint32_t placed = s->o->placed;
    bool excluded = false;
    if (kind == DECIDE_PAIR && s->e->overtaking >= 0) {
        decide_pair(s, true);
        excluded = is_excluded(s);
        order_undo(s->o, changes, placed);
        s->at = at;
    }
    if (!excluded) s->e->weight *= 2;
    return choose(s, kind, !excluded && draw_second(s, kind))
               ? MR_OK
               : mr_no_memory("to explore schedules");
}

mr_status search_decide(search *s, decision kind) {
    if (s->random) return draw_choice(s, kind);
    frame f = {.kind = kind,
               .at = s->at,
               .changes = order_changes(s->o),
               .steps = s->plan.steps.count,
               .answers = s->plan.answers.count,
               .turns = s->plan.turns.count,
               .polls = s->polls.count,
               .placed = s->o->placed,
               .segment = (uint32_t)s->segments.count - 1};
    if (s->frames.count < SHARE_DEPTHS) s->shape.choices[s->frames.count]++;
    if (!mr_vec_push(&s->frames, f)) return mr_no_memory("to explore schedules");
    s->segments.items[f.segment].frames++;
    return choose(s, kind, false) ? MR_OK : mr_no_memory("to explore schedules");
}

void search_drop_segment(search *s) {
    mr_player_mark_drop(mr_vec_pop(&s->segments).mark);
}

/* The last frame that has another choice takes it. */
progress search_back(search *s) {
    while (s->frames.count) {
        frame *f = &s->frames.items[s->frames.count - 1];
        while (s->segments.count > f->segment + 1) search_drop_segment(s);
        order_undo(s->o, f->changes, f->placed);
        s->plan.steps.count = f->steps;
        s->plan.answers.count = f->answers;
        s->plan.turns.count = f->turns;
        s->polls.count = f->polls;
        s->at = f->at;
        if (!f->second) {
            f->second = true;
            if (!choose(s, f->kind, true)) {
                s->o->failed = true;
                return IS_OVER;
            }
            if (!is_excluded(s)) return GOES_ON;
            order_undo(s->o, f->changes, f->placed);
        }
        s->segments.items[f->segment].frames--;
        s->frames.count--;
    }
    return IS_OVER;
}
