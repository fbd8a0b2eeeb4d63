/* The exploration as a whole: the first run, its check, all schedules or samples, and what is put back at the end. See
 * explore.h. */
#include "explore/explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "explore/state.h"
#include "model/backend.h"
#include "model/capture.h"

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- the machine, as it was */

static mr_status check_machine(const mr_machine *machine) {
    if (!machine->backend->simulator)
        return mr_fail(
            MR_CODE_NOT_SUPPORTED,
            "schedules are explored on the virtual GPU only, which can run all of them. Use "
            "mr.stress(fn) on a real GPU, or run with --device virtual");
    if (machine->in_host_function)
        return mr_fail(MR_CODE_NOT_PERMITTED, "not permitted inside a host function");
    MR_TRY(mr_capture_ask_host(&(mr_caller){.machine = (mr_machine *)machine}, MR_ASK_ACCESS,
                               "explore", NULL, NULL, NULL));
    if (machine->capturing)
        return mr_fail(MR_CODE_NOT_PERMITTED,
                       "not permitted while a stream is captured: the runs would become a part of "
                       "the graph. Call it after the capture");
    if (machine->launch_blocking)
        return mr_fail(MR_CODE_NOT_PERMITTED,
                       "with mr.launch_blocking(true) there is one schedule only: switch it off");
    return MR_OK;
}

/* Observers of before hear of the chooser; a recorder among them cannot name it. */
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
                       "random numbers of Lua, or variables that it changes; a graph from outside "
                       "must have been launched before",
                       text);
    const mr_buffer *value = &first->variants.items[0].text,
                    *other = &again->variants.items[0].text;
    if (value->size == other->size &&
        (!value->size || !memcmp(value->data, other->data, value->size)))
        return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "the function is not repeatable: called a second time under the same schedule, "
                   "it returns another value. It may depend only on what it reads from tensors and "
                   "queries, not on a clock, random numbers of Lua, or variables that it changes");
}

static mr_status first_branch(explorer *e, branch **out_branch) {
    plan none = {.grain = e->options.grain};
    branch *again;
    MR_TRY(branch_run(e, &none, out_branch));
    e->first = (*out_branch)->program;
    mr_status status = branch_run(e, &none, &again);
    if (status) return status;
    status = compare_runs(*out_branch, again);
    branch_destroy(e, again);
    return status;
}

/* ---- all schedules, or some */

/* With a bound: a pass for each number of pairs against the order of submission, so the schedules with the fewest come
 * first. A pass that excludes nothing is the last one. */
static mr_status search_all(explorer *e, branch *b) {
    if (e->options.overtaking < 0) return search_branch(e, b, NULL, NULL, 0);
    for (e->overtaking = 0;; e->overtaking++) {
        e->excluded = false;
        MR_TRY(search_branch(e, b, NULL, NULL, 0));
        if (e->stop || !e->excluded) return MR_OK;
        if (e->overtaking == e->options.overtaking) break;
    }
    explore_incomplete(
        e,
        "only schedules in which at most %d pairs run against the order of submission "
        "were tried",
        e->options.overtaking);
    return MR_OK;
}

/* Knuth: the product of the choices on a way that is drawn is the number of leaves, on average. */
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
#define WALKS_SECONDS 0.3

/* How many there would have been. Each way is drawn, and not counted. */
static mr_status estimate(explorer *e, branch *b) {
    double began = now_seconds(), sum = 0;
    unsigned walks = 0;
    e->stop = false;
    e->estimating = true;
    e->overtaking = e->options.overtaking;
    e->options.samples = 1;
    while (walks < WALKS && now_seconds() - began < WALKS_SECONDS) {
        e->weight = 1;
        MR_TRY(search_branch(e, b, NULL, NULL, 0));
        sum += e->weight;
        walks++;
    }
    double all = sum / walks, tried = (double)e->result->schedules;
    e->result->estimate = all > tried ? all : tried;
    return MR_OK;
}

static mr_status search_as_asked(explorer *e, branch *b) {
    if (!e->options.samples) {
        MR_TRY(search_all(e, b));
        return e->stop && !e->result->interrupted ? estimate(e, b) : MR_OK;
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

static mr_status explore(explorer *e) {
    branch *b = NULL;
    mr_status status = first_branch(e, &b);
    if (!status) status = search_as_asked(e, b);
    status = mr_player_error_outlives(e->subject->machine, status);
    branch_destroy(e, b);
    return status;
}

/* What has been found by then is the result. */
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
                  .seed = machine->seed,
                  .draws = machine->draws,
                  .random = options->seed,
                  .began = now_seconds()};
    normalise(&e.options);
    e.overtaking = e.options.overtaking;
    mr_status status = take_interruption(&e, explore(&e));
    status = mr_error_first(status, put_back(machine, chooser));
    machine->seed = e.seed;
    machine->draws = e.draws;
    out_result->seconds = now_seconds() - e.began;
    outcome_table_free(&e.table);
    mr_buffer_free(&e.value);
    mr_vec_free(&e.wanted);
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
