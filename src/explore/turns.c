/* Choices of hosts: which of several ranks goes on. In a run without a plan the first one goes on (model/hosts.h). Any
 * other choice leads to another program, and so to another branch.
 *
 * Orders that deviate from the usual one least often come first: most mistakes show with one or two deviations. */
#include "explore/state.h"

#define MOST_WAITING 100000 /* orders that are known and yet to be followed */

/* Ranks that are apart influence each other only through their devices' work. Submitting earlier excludes no schedule,
 * so only the order of their waits matters. Their behaviour after other values is unknown here: see turns_check_one. */
void turns_judge(explorer *e) {
    const mr_explore_subject *subject = e->subject;
    bool are_apart = subject->hosts_are_apart && subject->hosts_are_apart(subject->context);
    e->one_order = !turns_are_open(e->root) || (are_apart && proof_of_ranks(e));
    e->eager = are_apart && !e->one_order;
    e->result->all_turns = e->one_order;
}

/* After another value a rank may do something that other ranks see. The first two runs precede the search, so more runs
 * mean another value. */
void turns_check_one(explorer *e) {
    if (e->one_order && (e->result->outcomes.count > 1 || e->result->runs > 2))
        e->result->all_turns = false;
}

/* Whether all schedules of the usual order of the hosts were searched, and had one outcome. */
static bool is_fine_so_far(const explorer *e) {
    const mr_explore_subject *subject = e->subject;
    const mr_hazard_totals *totals = subject->verdict ? subject->verdict(subject->context) : NULL;
    return totals && !totals->hazards && !totals->claims.count[MR_CLAIM_QUERIES] && !e->stop &&
           e->result->complete && e->result->outcomes.count == 1;
}

/* part of the seconds for other orders, if the usual order had one outcome */
#define PART_OF_OTHERS 0.25

/* Other orders get less time, since the result for the usual order is already complete. As soon as there is another
 * outcome, they get all the time left. */
static void begin_others(explorer *e) {
    double left = e->ends - budget_now(e), part = PART_OF_OTHERS * e->options.seconds;
    e->reserved = 0;
    if (!(e->options.seconds > 0)) return;
    e->others_may_end = left > part;
    budget_end_at(e, left < part ? left : part);
}

/* Not all orders were searched, but they had one outcome: the result for the usual order stays valid. */
static void end_early(explorer *e) {
    mr_explore_result *r = e->result;
    r->complete = true;
    r->incomplete[0] = 0;
    r->all_turns = e->stop = false;
    mr_buffer_free(&r->untried);
    r->untried_count = e->untried_lines = 0;
}

/* One pass for each number of deviations. A pass that excludes no schedule is the last. */
mr_status turns_search(explorer *e, branch *b) {
    mr_status status = MR_OK;
    bool is_fine = false;
    for (e->deviations = 0, e->deviates = true; !status && !e->stop && e->deviates;
         e->deviations++) {
        e->deviates = false;
        if (is_fine && e->deviations == 1) begin_others(e);
        status = search_branch(e, b, NULL, NULL, 0);
        if (!status && !e->deviations) is_fine = is_fine_so_far(e);
    }
    e->deviations = -1;
    e->others_may_end = false;
    if (status && mr_code_is_interruption(status->code) && budget_takes_interruption(e)) {
        mr_error_destroy(status);
        status = MR_OK;
    }
    if (!status && !e->stop) e->result->all_turns = !e->eager;
    if (!status && is_fine && e->stop && e->result->outcomes.count == 1 && !e->result->interrupted)
        end_early(e);
    return status;
}

/* ---- without a search */

typedef MR_VEC(plan) orders;

/* Adds all orders that begin like this one and deviate once more, at a later choice. */
static bool add_orders(orders *waiting, const plan *from, const host_turns *turns) {
    uint32_t first = from->turns.count ? from->turns.items[from->turns.count - 1].number + 1 : 0;
    for (uint32_t n = first; n < turns->count; n++)
        for (uint32_t who = 1; who < turns->items[n].choice.count; who++) {
            plan next = {0};
            if (waiting->count == MOST_WAITING) return false;
            if (!plan_copy(&next, from) || !mr_vec_push(&next.turns, ((plan_turn){n, who})) ||
                !mr_vec_push(waiting, next)) {
                plan_free(&next);
                return false;
            }
        }
    return true;
}

static mr_status count_order(explorer *e, branch *b, own_schedule *own, const plan *forced) {
    for (size_t i = 0; i < forced->turns.count; i++)
        if (!mr_vec_push(&own->plan.turns, forced->turns.items[i]))
            return mr_no_memory("to explore schedules");
    own->plan.grain = e->options.grain;
    b->clean = true; /* as in count_own of explore.c */
    uint32_t deviations = (uint32_t)forced->turns.count;
    MR_TRY(outcome_count(e, b, &own->plan, deviations, &own->value, own->text_size));
    budget_note_outcomes(e);
    e->result->schedules++;
    return MR_OK;
}

/* Runs the function once. *out_proved: the order of its work makes no difference. */
static mr_status follow_order(explorer *e, const plan *forced, orders *waiting, bool *io_all,
                              bool *out_proved) {
    own_schedule own = {0};
    branch *b;
    mr_status status = branch_record(e, forced, &own, &b);
    *out_proved = false;
    if (!status) {
        status = proof_of_one(e, b, out_proved);
        *out_proved &= !b->strayed;
        if (!status && *out_proved) status = count_order(e, b, &own, forced);
        if (!status && *out_proved && *io_all) *io_all = add_orders(waiting, forced, &b->turns);
        branch_destroy(e, b);
    }
    plan_free(&own.plan);
    mr_buffer_free(&own.value);
    return status;
}

/* Forgets the counts so far. A search counts again. */
static void forget_counted(explorer *e) {
    mr_explore_result *r = e->result;
    outcome_forget_all(e);
    mr_vec_free(&r->outcomes);
    r->schedules = 0;
    if (e->options.seconds > 0) budget_end_at(e, e->ends - budget_now(e));
}

mr_status turns_of_proved(explorer *e, bool *out_searched) {
    orders waiting = {0};
    plan none = {.grain = e->options.grain};
    bool all = true, proved = true;
    size_t next = 0;
    mr_status status = mr_vec_push(&waiting, none) ? MR_OK : mr_no_memory("to explore schedules");
    if (e->options.seconds > 0) begin_others(e);
    for (; !status && proved && next < waiting.count; next++) {
        budget_look_at_clock(e);
        if (e->stop || e->result->schedules == e->options.most) break;
        const plan now = waiting.items[next]; /* the list may move */
        status = follow_order(e, &now, &waiting, &all, &proved);
        if (status && mr_code_is_interruption(status->code) && budget_takes_interruption(e)) {
            mr_error_destroy(status);
            status = MR_OK;
            break;
        }
    }
    all &= !e->stop && next == waiting.count;
    for (size_t i = 0; i < waiting.count; i++) plan_free(&waiting.items[i]);
    mr_vec_free(&waiting);
    *out_searched = proved;
    e->result->all_turns = proved && all;
    if (status) return status;
    if (!proved) forget_counted(e);
    else if (!all && e->result->outcomes.count == 1 && !e->result->interrupted) end_early(e);
    else if (!all)
        explore_incomplete(e, "it stopped after %llu orders of the hosts",
                           (unsigned long long)e->result->schedules);
    return MR_OK;
}
