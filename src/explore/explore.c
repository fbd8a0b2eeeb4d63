/* The exploration as a whole: the first run, its check, all schedules or samples, and what is put back at the end. See
 * explore.h. */
#include "explore/explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore/apart.h"
#include "explore/state.h"
#include "model/backend.h"
#include "model/capture.h"

/* ---- the machine, as it was */

static mr_status check_machine(const mr_machine *machine) {
    if (!machine->backend->simulator)
        return mr_fail(
            MR_CODE_NOT_SUPPORTED,
            "schedules are explored on the virtual GPU only, which can run all of them. Use "
            "mr.stress(fn) on a real GPU, or run with --device virtual");
    if (machine->host_function.running)
        return mr_fail(MR_CODE_NOT_PERMITTED, "not permitted inside a host function");
    MR_TRY(mr_capture_ask_host(&(mr_caller){.machine = (mr_machine *)machine}, MR_ASK_ACCESS,
                               "explore", NULL, NULL, NULL));
    if (machine->captures.open)
        return mr_fail(MR_CODE_NOT_PERMITTED,
                       "not permitted while a stream is captured: the runs would become a part of "
                       "the graph. Call it after the capture");
    if (machine->launch_blocking)
        return mr_fail(MR_CODE_NOT_PERMITTED,
                       "with mr.launch_blocking(true) there is one schedule only: switch it off");
    return MR_OK;
}

/* Observers that exist already are told of the chooser; a recorder among them cannot name it. */
static void take_over(mr_machine *machine, char *out_chooser, size_t size) {
    snprintf(out_chooser, size, "%s", machine->backend->simulator->chooser(machine));
    MR_ACCOUNT(machine, MR_OK, .kind = MR_COMMAND_CHOOSER, .u.account.text = "explorer");
}

/* ---- the first run, and whether it can be repeated */

static mr_status compare_runs(const branch *first, const branch *again) {
    char text[400];
    if (!mr_program_same(first->program, again->program, SIZE_MAX, text, sizeof text))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "the function is not repeatable: called a second time, it makes %s. It may "
                       "depend only on what it reads from tensors and queries, not on a clock, "
                       "random numbers of Lua, or variables that it changes. A graph from outside "
                       "must have been launched before",
                       text);
    const mr_buffer *value = &first->variants.items[0].text,
                    *other = &again->variants.items[0].text;
    if (value->size == other->size &&
        (!value->size || !memcmp(value->data, other->data, value->size)))
        return MR_OK;
    char kind[16];
    if (mr_explore_address_kind(value, other, kind, sizeof kind))
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "the outcome contains the address of a %s (`%s: 0x...`), which is another one in each "
            "run. "
            "Print or return what the %s holds instead, for example a name, a number, or "
            "its elements one by one",
            kind, kind, kind);
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "the function is not repeatable: called a second time under the same schedule, "
                   "it returns another value. It may depend only on what it reads from tensors and "
                   "queries, not on a clock, random numbers of Lua, or variables that it changes");
}

/* The next run has others, or none. */
static mr_status keep_races(explorer *e) {
    const mr_explore_subject *subject = e->subject;
    const mr_explore_race *races;
    size_t count = subject->races ? subject->races(subject->context, &races) : 0;
    for (size_t i = 0; i < count; i++)
        if (!mr_vec_push(&e->races, races[i])) return mr_no_memory("to explore a program");
    return MR_OK;
}

/* Records a run of the function, and derives the first facts from its program. The budget's clock starts afterwards, so
 * there is always one outcome. A program with a proof is not carried out again, so it needs no player. With a grain it
 * does: its steps are parts, which only the order knows. */
static mr_status first_branch(explorer *e) {
    plan none = {.grain = e->options.grain};
    budget_begin(e);
    MR_TRY(branch_record(e, &none, &e->own, &e->root));
    e->own.plan.grain = e->options.grain;
    e->first = e->root->program;
    MR_TRY(keep_races(e));
    budget_measure(e);
    MR_TRY(proof_of_one(e, e->root, &e->result->proved));
    turns_judge(e);
    return e->result->proved && e->options.grain < 2 ? MR_OK : branch_open(e, e->root);
}

/* Only a second run shows whether a function is repeatable. */
static mr_status repeat(explorer *e) {
    plan none = {.grain = e->options.grain};
    branch *again;
    MR_TRY(branch_record(e, &none, NULL, &again));
    mr_status status = compare_runs(e->root, again);
    branch_destroy(e, again);
    return status;
}

/* Runs the function again with an eager plan, as in all later runs. */
static mr_status begin_eagerly(explorer *e) {
    plan eager = {.grain = e->options.grain, .eager = true};
    branch_destroy(e, e->root);
    e->root = NULL;
    plan_free(&e->own.plan);
    mr_buffer_free(&e->own.value);
    e->own = (own_schedule){.plan = eager};
    MR_TRY(branch_record(e, &eager, &e->own, &e->root));
    e->first = e->root->program;
    return MR_OK;
}

/* Counts the schedule of the first run, which stands for all, or is the only one. */
static mr_status count_own(explorer *e) {
    e->result->schedules = 1;
    e->root->clean = true; /* the player has not carried it out, so the addresses are unknown */
    return outcome_count(e, e->root, &e->own.plan, 0, &e->own.value, e->own.text_size);
}

/* ---- all schedules, or some */

/* With a bound: a pass for each number of pairs against the order of submission, so the schedules with the fewest come
 * first. A pass that excludes nothing is the last one. */
static mr_status search_all(explorer *e, branch *b) {
    if (e->options.overtaking < 0) return turns_search(e, b);
    for (e->overtaking = 0;; e->overtaking++) {
        e->excluded = false;
        MR_TRY(search_branch(e, b, NULL, NULL, 0));
        if (e->stop || !e->excluded) {
            e->result->all_turns |= !e->stop && !e->eager;
            return MR_OK;
        }
        if (e->overtaking == e->options.overtaking) break;
    }
    explore_incomplete(
        e,
        "only schedules in which at most %d pairs run against the order of submission "
        "were tried",
        e->options.overtaking);
    return MR_OK;
}

/* Knuth's estimate: multiply the numbers of choices along a random path. The average over paths is the number of
 * leaves. */
static mr_status search_samples(explorer *e, branch *b, uint64_t samples) {
    double sum = 0;
    uint64_t i = 0;
    for (; i < samples && !e->stop; i++) {
        e->weight = 1;
        MR_TRY(search_branch(e, b, NULL, NULL, 0));
        sum += e->weight;
    }
    if (i) e->result->estimate = sum / (double)i;
    return MR_OK;
}

#define WALKS         64
#define WALKS_SECONDS 0.3 /* or a part of the budget: */
#define WALKS_PART    0.03

static double walks_seconds(const explorer *e) {
    double part = WALKS_PART * e->options.seconds;
    return part > 0 && part < WALKS_SECONDS ? part : WALKS_SECONDS;
}

/* Estimates how many schedules there are in all. Paths are drawn at random, and their outcomes are not counted. */
static mr_status walk(explorer *e, branch *b, double *io_sum, unsigned *io_walks) {
    double began = budget_now(e);
    while (*io_walks < WALKS && budget_now(e) - began < walks_seconds(e)) {
        e->weight = 1;
        MR_TRY(search_branch(e, b, NULL, NULL, 0));
        if (e->stop) break;
        *io_sum += e->weight;
        ++*io_walks;
    }
    return MR_OK;
}

static mr_status estimate(explorer *e, branch *b) {
    double sum = 0;
    unsigned walks = 0;
    e->stop = false;
    e->estimating = true;
    e->overtaking = e->options.overtaking;
    e->options.samples = 1;
    budget_end_at(e, 2 * walks_seconds(e));
    mr_status status = b->player ? MR_OK : branch_open_player(e, b);
    if (!status) status = walk(e, b, &sum, &walks);
    if (status && mr_code_is_interruption(status->code) && budget_takes_interruption(e)) {
        mr_error_destroy(status);
        status = MR_OK;
    }
    double all = walks ? sum / walks : 0, tried = (double)e->result->schedules;
    if (walks) e->result->estimate = all > tried ? all : tried;
    return status;
}

static void take_late(explorer *e, mr_status *io_status) {
    if (!*io_status || !mr_code_is_interruption((*io_status)->code)) return;
    if (!budget_takes_interruption(e)) return;
    mr_error_destroy(*io_status);
    *io_status = MR_OK;
}

/* ---- by priorities, for what is left of the time */

#define RESERVED 0.25 /* of the seconds */

/* Drawing needs room for a run: memory may be the reason why the search ended. */
static bool may_draw(const explorer *e, const branch *b) {
    return e->stop && !e->result->interrupted && !e->no_room && e->reserved > 0 &&
           e->result->schedules < e->options.most && priority_can(b);
}

static mr_status draw_schedules(explorer *e, branch *b) {
    double left = e->ends - budget_now(e);
    if (left <= 0) return MR_OK;
    /* these schedules have only one order of the hosts */
    e->result->by_priority_inexact |= turns_are_open(b);
    e->stop = e->estimating = false;
    e->by_priority = e->again = true;
    budget_end_at(e, left);
    mr_status status = b->player ? MR_OK : branch_open_player(e, b);
    while (!status && !e->stop) {
        e->priority_run++;
        status = search_branch(e, b, NULL, NULL, 0);
    }
    if (!e->result->by_priority_inexact) e->result->chance = priority_chance(e->result);
    e->by_priority = e->again = false;
    take_late(e, &status);
    return status;
}

/* If there are independent groups of races, half of the time left is for searching each group alone. */
static mr_status try_alone(explorer *e, branch *b) {
    double left = e->ends - budget_now(e);
    if (left <= 0) return MR_OK;
    e->stop = e->estimating = false;
    e->options.samples = 0;
    e->again = true;
    budget_end_at(e, left / 2);
    mr_status status = b->player ? MR_OK : branch_open_player(e, b);
    if (!status) status = apart_try_alone(e, b);
    e->again = false;
    take_late(e, &status);
    return status;
}

/* No estimate if one schedule takes as long as all walks together may take. */
static bool may_estimate(const explorer *e) {
    double each = (budget_now(e)) / (double)(e->result->schedules + 1);
    return e->stop && !e->result->interrupted && !e->no_room && each < WALKS_SECONDS / 4;
}

/* ---- where all schedules are known to come to one outcome */

#define BRIEF 0.1 /* of the seconds, for counting schedules */

static void be_brief(explorer *e) {
    double left = e->ends - budget_now(e), brief = BRIEF * e->options.seconds;
    if (!(e->options.seconds > 0)) return;
    e->reserved = 0;
    budget_end_at(e, left < brief ? left : brief);
}

/* Only the time or the number of schedules has stopped the search. */
static void settle(explorer *e) {
    mr_explore_result *r = e->result;
    if (!e->stop || r->interrupted || e->no_room || r->outcomes.count != 1) return;
    r->settled = r->complete = true;
    r->all_turns = !e->eager;
    r->incomplete[0] = 0;
    r->alone = (mr_explore_alone){0};
    mr_buffer_free(&r->untried);
    r->untried_count = e->untried_lines = 0;
    e->stop = false;
}

/* If several hosts can go on, races depend on each other through that choice. */
static mr_status search_apart_or_all(explorer *e, branch *b) {
    bool is_done = false, settles = false;
    mr_status status = MR_OK;
    if (e->one_order && !turns_are_open(b)) status = apart_prove_unseen(e, b, &e->result->unseen);
    if (!status && e->result->unseen && e->result->complete) {
        settles = true;
        be_brief(e);
    }
    if (!status && e->one_order && !e->stop) status = apart_explore(e, b, &is_done);
    if (!status && !is_done && !e->stop) status = search_all(e, b);
    take_late(e, &status);
    if (!status && settles) settle(e);
    return status;
}

static mr_status search_as_asked(explorer *e, branch *b) {
    if (!e->options.samples) {
        MR_TRY(search_apart_or_all(e, b));
        bool draws = may_draw(e, b);
        e->reserved = 0;
        if (may_estimate(e)) MR_TRY(estimate(e, b));
        if (draws && e->one_order) MR_TRY(try_alone(e, b));
        return draws && !e->result->interrupted ? draw_schedules(e, b) : MR_OK;
    }
    explore_incomplete(e, "%llu schedules were drawn at random",
                       (unsigned long long)e->options.samples);
    return search_samples(e, b, e->options.samples);
}

static void normalise(mr_explore_options *o) {
    if (!o->most) o->most = 1000000;
    if (!o->polls) o->polls = 2;
    if (!o->grain) o->grain = 1;
}

static void begin_budget(explorer *e) {
    double left = e->options.seconds - (budget_now(e));
    bool reserves = e->options.overtaking < 0 && !e->options.samples && left > 0;
    e->reserved = reserves ? RESERVED * left : 0;
    e->ends = budget_now(e) + left;
    if (e->options.seconds > 0) budget_end_at(e, left > 0 ? left - e->reserved : 1e-6);
}

static mr_status search_once_repeated(explorer *e) {
    const mr_explore_subject *subject = e->subject;
    bool proved = e->result->proved;
    bool needed =
        !proved || !subject->seems_repeatable || !subject->seems_repeatable(subject->context);
    bool has_time = !e->options.seconds || budget_now(e) < e->options.seconds / 2;
    mr_status status = needed && (has_time || !proved) ? repeat(e) : MR_OK;
    e->result->called_once = proved && needed && !has_time;
    if (!status && e->result->proved && e->result->all_turns) return count_own(e);
    bool searched = false;
    if (!status && e->result->proved) status = turns_of_proved(e, &searched);
    if (searched || (status && e->result->proved)) return status;
    e->result->proved = false;
    if (!status && e->eager) status = begin_eagerly(e);
    if (!status && !e->root->player) status = branch_open(e, e->root);
    if (!status) status = branch_order(e, e->root);
    if (!status && !e->stop) rules_find_stricter(e, e->root);
    if (!status && !e->stop) status = search_as_asked(e, e->root);
    turns_check_one(e);
    return status;
}

static mr_status explore(explorer *e) {
    mr_status status = first_branch(e);
    if (!status) begin_budget(e);
    if (!status) status = search_once_repeated(e);
    take_late(e, &status);
    budget_end_at(e, 0);
    if (status && !mr_code_is_interruption(status->code))
        return mr_player_error_outlives(e->subject->machine, status);
    if (!e->result->schedules && e->root) {
        explore_incomplete(e, "it was interrupted after the first run");
        status = mr_error_first(status, count_own(e));
    }
    return status;
}

static void forget(explorer *e) {
    branch_destroy(e, e->root);
    mr_map_free(&e->places);
    mr_buffer_free(&e->value);
    mr_buffer_free(&e->texts);
    mr_buffer_free(&e->own.value);
    plan_free(&e->own.plan);
    mr_vec_free(&e->wanted);
    mr_vec_free(&e->races);
}

/* The result has the outcomes found by then. */
static mr_status take_interruption(explorer *e, mr_status status) {
    if (status && mr_code_is_interruption(status->code)) {
        mr_error_destroy(status);
        status = MR_OK;
        e->result->interrupted = true;
    }
    if (e->result->interrupted)
        explore_incomplete(e, "it was interrupted after %llu schedules",
                           (unsigned long long)e->result->schedules);
    return status;
}

static mr_status put_back(mr_machine *machine, const char *chooser) {
    return machine->backend->simulator->set_chooser(machine, chooser);
}

mr_status mr_explore(const mr_explore_subject *subject, const mr_explore_options *options,
                     mr_explore_result *out_result) {
    mr_machine *machine = subject->machine;
    *out_result = (mr_explore_result){.complete = true};
    MR_TRY(check_machine(machine));
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(mr_machine_drain(machine));
    char chooser[64];
    take_over(machine, chooser, sizeof chooser);
    explorer e = {.subject = subject,
                  .options = *options,
                  .result = out_result,
                  .seed = machine->random.seed,
                  .draws = machine->random.draws,
                  .random = options->seed};
    budget_begin_clock(&e);
    normalise(&e.options);
    e.overtaking = e.options.overtaking;
    e.deviations = -1;
    mr_status status = take_interruption(&e, explore(&e));
    status = mr_error_first(status, put_back(machine, chooser));
    machine->random.seed = e.seed;
    machine->random.draws = e.draws;
    out_result->seconds = budget_now(&e);
    forget(&e);
    return status;
}

/* ---- one schedule again */

mr_status mr_explore_replay(const mr_explore_subject *subject, const char *schedule,
                            mr_explore_value *out_value, bool *out_followed) {
    mr_machine *machine = subject->machine;
    plan p;
    *out_value = (mr_explore_value){0};
    *out_followed = false;
    MR_TRY(check_machine(machine));
    MR_TRY(mr_machine_ready(machine));
    if (!plan_read(&p, schedule))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "this is no schedule of mr.explore: expected a text such as \"mr1 g1 @4 2 1 "
                       ".6\"");
    mr_status status = mr_machine_drain(machine);
    char chooser[64];
    take_over(machine, chooser, sizeof chooser);
    if (!status) status = branch_follow(subject, &p, out_value, out_followed);
    status = mr_error_first(status, put_back(machine, chooser));
    plan_free(&p);
    return status;
}
