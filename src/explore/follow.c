/* Follows a schedule on hardware: see follow.h.
 *
 * The steps of the schedule are one list. Latch p is opened behind the command of step p in its stream. The command of
 * step p + 1 has a wait for it in front, whatever stream that is and whichever the host submits first. The host takes
 * part: step p happens while the host is at one of its items. So before the host does an item, it waits for the latches
 * of all steps up to there. The first step of each item waits for latch `count` + p, which the host opens when it has
 * come to that item. These waits follow the schedule's order, which agrees with CUDA's rules, so there is no circle of
 * waits.
 *
 * A query may be answered no although all operations are done, since a record, a wait or a free comes behind it. That
 * one waits for a latch of its own (2 * `count` + the number of the answer), which the host opens behind the query.
 *
 * If the function leaves the schedule, all latches are opened, and the rest runs in any order. Easiest to break: an
 * observer is told in `may` of a command that a later observer may refuse. */
#include "explore/follow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/number.h"
#include "explore/steer.h"
#include "model/backend.h"

#define MOST_STEPS 4096
#define PAUSE_NS   20000
#define QUERY_NS   UINT64_C(20000000)

typedef struct {
    mr_observer observer;
    mr_machine *machine;
    const mr_backend *backend;
    mr_recorder *recorder;
    const plan *plan;
    uint64_t patience_ns;
    mr_stream **streams;  /* by step: where it was submitted, a reference each; NULL: not yet */
    size_t gates, passed; /* steps that the host has come to; that are known to be over */
    size_t answered;      /* answers whose queries are over */
    size_t between;       /* a step whose command is being submitted; SIZE_MAX: none */
    bool strayed;
    char *why;
    size_t why_size;
} follower;

static uint32_t present(const follower *f) {
    return (uint32_t)mr_recorder_count(f->recorder);
}

static size_t count_of(const follower *f) {
    return f->plan->steps.count;
}

static uint32_t answer_latch(const follower *f, size_t answer) {
    return (uint32_t)(2 * count_of(f) + answer);
}

static size_t latch_count(const follower *f) {
    return 2 * count_of(f) + f->plan->answers.count;
}

static size_t step_of(const follower *f, uint32_t item) {
    size_t p = 0;
    while (p < count_of(f) && f->plan->steps.items[p].command != item) p++;
    return p < count_of(f) ? p : SIZE_MAX;
}

__attribute__((format(printf, 2, 3))) static void stray(follower *f, const char *format, ...) {
    if (f->strayed) return;
    va_list arguments;
    va_start(arguments, format);
    mr_number_formatv(f->why, f->why_size, format, arguments);
    va_end(arguments);
    f->strayed = true;
    for (size_t i = 0; i < latch_count(f); i++) f->backend->latch_open(f->machine, (uint32_t)i);
}

static void stray_by(follower *f, mr_status status) {
    if (status) stray(f, "%s", status->message);
    mr_error_destroy(status);
}

static bool is_over(follower *f, size_t step) {
    bool open = false;
    mr_device *device = f->streams[step]->device;
    stray_by(f, f->backend->latch_is_open(device, (uint32_t)step, &open));
    if (!open && f->machine->hooks.interrupted &&
        f->machine->hooks.interrupted(f->machine->hooks.context))
        stray(f, "it was interrupted");
    return open || f->strayed;
}

static void pause_briefly(void) {
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* Opens the latches of the commands that come after the queries before `at`. */
static void let_behind(follower *f, uint32_t at) {
    const plan_answer *answers = f->plan->answers.items;
    for (; f->answered < f->plan->answers.count && answers[f->answered].at < at; f->answered++)
        f->backend->latch_open(f->machine, answer_latch(f, f->answered));
}

/* The host has come to its next item: it opens the latches of that item's steps, and waits for them, except for those
 * from the item's own command on. */
static void come(follower *f, bool waits) {
    uint32_t at = present(f);
    const plan_step *steps = f->plan->steps.items;
    let_behind(f, at);
    for (; f->gates < count_of(f) && steps[f->gates].at <= at; f->gates++)
        f->backend->latch_open(f->machine, (uint32_t)(count_of(f) + f->gates));
    while (waits && !f->strayed && f->passed < f->gates && steps[f->passed].command < at) {
        if (!f->streams[f->passed]) {
            stray(
                f,
                "the function waits for the device before it submits what the schedule puts first");
            return;
        }
        if (is_over(f, f->passed)) f->passed++;
        else pause_briefly();
    }
}

/* ---- commands */

static void let_on(follower *f) {
    if (f->between == SIZE_MAX) return;
    size_t step = f->between;
    f->between = SIZE_MAX;
    stray_by(f, f->backend->latch_open_behind(f->streams[step], (uint32_t)step));
}

static void hold_up(follower *f, const mr_command *command) {
    const plan_step *steps = f->plan->steps.items;
    size_t step = step_of(f, present(f));
    if (present(f) >= f->plan->until) return;
    if (step == SIZE_MAX || f->streams[step]) {
        stray(f, "the schedule has no %s at %s:%d, so it was made for another function",
              command->name, command->where.file ? command->where.file : "?", command->where.line);
        return;
    }
    f->streams[step] = command->stream;
    mr_stream_retain(command->stream);
    f->between = step;
    if (step && f->streams[step - 1] != command->stream)
        stray_by(f, f->backend->latch_wait(command->stream, (uint32_t)(step - 1)));
    if (step >= f->gates && (!step || steps[step - 1].at != steps[step].at))
        stray_by(f, f->backend->latch_wait(command->stream, (uint32_t)(count_of(f) + step)));
}

/* A record, a wait or a free that comes behind a query. */
static void hold_behind(follower *f, const mr_command *command) {
    const plan_answer *answers = f->plan->answers.items;
    for (size_t i = f->answered; i < f->plan->answers.count; i++) {
        if (answers[i].behind != present(f)) continue;
        stray_by(f, f->backend->latch_wait(command->stream, answer_latch(f, i)));
    }
}

static bool is_answered_no(const follower *f) {
    return f->answered < f->plan->answers.count &&
           f->plan->answers.items[f->answered].at == present(f);
}

/* The stream says that it is done a moment after the latch behind its last command is open. If a latch holds work back
 * until after the query, the stream must not look done. */
static void let_end(follower *f, const mr_command *command) {
    bool done = false, held = is_answered_no(f);
    uint64_t most = held ? PAUSE_NS : QUERY_NS;
    mr_event *event = command->kind == MR_COMMAND_EVENT_QUERY ? command->u.event.event : NULL;
    if (event && !command->u.event.record_seq) return;
    for (uint64_t ns = 0; ns < most && !done && !f->strayed; ns += PAUSE_NS) {
        stray_by(f, event ? f->backend->event_query(event, &done)
                          : f->backend->stream_query(command->stream, &done));
        if (!done) pause_briefly();
    }
    if (held && done)
        stray(f, "the query at %s:%d says yes, which the schedule answers with no",
              command->where.file ? command->where.file : "?", command->where.line);
}

/* The host is about to wait for work that the schedule runs later, so it would wait for ever. For an event, the
 * latches' time limit covers this case. */
static void check_wait(follower *f, const mr_command *command) {
    mr_command_after after = mr_command_kinds[command->kind].after;
    if (command->kind == MR_COMMAND_RESET) stray(f, "the function resets the device");
    if (after != MR_AFTER_STREAM && after != MR_AFTER_DEVICE) return;
    if (mr_command_is(command, MR_TRAIT_QUERY)) return;
    for (size_t p = f->gates; p < count_of(f); p++) {
        const mr_stream *stream = f->streams[p];
        if (!stream) continue;
        if (after == MR_AFTER_STREAM ? stream != command->stream
                                     : stream->device != command->u.device)
            continue;
        char text[80];
        stray(f,
              "%s:%d waits for work of %s that the schedule puts behind work which the function "
              "submits "
              "later",
              command->where.file ? command->where.file : "?", command->where.line,
              mr_stream_describe(stream, text, sizeof text));
    }
}

static follower *follower_of(mr_observer *observer) {
    return (follower *)((char *)observer - offsetof(follower, observer));
}

static bool is_quiet(const follower *f) {
    return f->strayed || f->machine->host_function.running || f->machine->lost;
}

static mr_status follow_may(mr_observer *observer, const mr_command *command) {
    follower *f = follower_of(observer);
    if (is_quiet(f)) return MR_OK;
    let_on(f);
    come(f, true);
    if (!f->strayed) check_wait(f, command);
    if (f->strayed) return MR_OK;
    if (mr_command_is(command, MR_TRAIT_LAUNCH)) hold_up(f, command);
    else if (mr_command_is(command, MR_TRAIT_MARKER) && command->stream) hold_behind(f, command);
    if (mr_command_is(command, MR_TRAIT_QUERY)) let_end(f, command);
    return MR_OK;
}

static void follow_before(mr_observer *observer) {
    follower *f = follower_of(observer);
    if (is_quiet(f)) return;
    let_on(f);
    come(f, true);
}

static void follow_did(mr_observer *observer, const mr_command *command, bool host_waited) {
    follower *f = follower_of(observer);
    (void)host_waited;
    if (is_quiet(f)) return;
    if (mr_command_is(command, MR_TRAIT_LAUNCH)) let_on(f);
    come(f, false);
}

static void follow_failed(mr_observer *observer, const mr_command *command,
                          const mr_error *status) {
    follower *f = follower_of(observer);
    if (!is_quiet(f) && status && mr_command_is(command, MR_TRAIT_LAUNCH)) let_on(f);
}

/* ---- one run */

static mr_status check_plan(const plan *p) {
    if (p->grain > 1)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "the schedule cuts operations into parts (grain); a GPU cannot do that");
    if (p->turns.count)
        return mr_fail(MR_CODE_NOT_SUPPORTED, "the schedule decides which rank or task continues; "
                                              "only mr.replay on the virtual GPU can do that");
    for (size_t i = 0; i < p->answers.count; i++)
        if (p->answers.items[i].behind == PLAN_NO_ITEM)
            return mr_fail(MR_CODE_NOT_SUPPORTED,
                           "the schedule decides what CUDA leaves open besides the order "
                           "(unspecified, or where an allocation finds memory); only the virtual "
                           "GPU can do that");
    if (p->answers.count > MOST_STEPS)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "the schedule has %zu answers to queries; a GPU follows up to %d",
                       p->answers.count, MOST_STEPS);
    if (p->steps.count > MOST_STEPS)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "the schedule has %zu operations; a GPU follows up to %d", p->steps.count,
                       MOST_STEPS);
    return MR_OK;
}

static mr_status observed_run(follower *f, const mr_explore_subject *subject,
                              mr_explore_value *out_value) {
    MR_TRY(mr_program_record(f->machine, 0, &f->recorder));
    mr_status status = mr_observer_add(f->machine, &f->observer);
    if (!status) {
        status = subject->run(subject->context, out_value);
        if (!f->strayed && f->passed < count_of(f) && !f->machine->lost)
            stray(f, "the function ends before the schedule does");
        let_behind(f, UINT32_MAX);
        mr_observer_remove(f->machine, &f->observer);
    }
    mr_recorder_abandon(f->recorder);
    return status;
}

static mr_status run(follower *f, const mr_explore_subject *subject, mr_explore_value *out_value) {
    bool gave_up = false;
    MR_TRY(f->backend->latches_begin(f->machine, (uint32_t)latch_count(f), f->patience_ns));
    mr_status status = observed_run(f, subject, out_value);
    status = mr_error_first(status, mr_machine_drain(f->machine));
    f->backend->latches_end(f->machine, &gave_up);
    if (gave_up) /* whatever came of it */
        mr_number_format(f->why, f->why_size, "nothing went on for %g seconds",
                         (double)f->patience_ns * 1e-9);
    return status;
}

mr_status mr_explore_follow(const mr_explore_subject *subject, const char *schedule,
                            uint64_t patience_ns, mr_explore_value *out_value, char *why,
                            size_t size) {
    mr_machine *machine = subject->machine;
    plan p;
    *out_value = (mr_explore_value){0};
    *why = 0;
    MR_TRY(mr_machine_ready(machine));
    if (!machine->backend->latches_begin)
        return mr_fail(MR_CODE_NOT_SUPPORTED, "this backend cannot be given an order");
    if (!plan_read(&p, schedule))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "this is no schedule of mr.explore: expected a text such as \"mr1 g1 @4 2 1 "
                       ".6\"");
    follower f = {.observer = {.name = "follower",
                               .everything = true,
                               .may = follow_may,
                               .did = follow_did,
                               .failed = follow_failed,
                               .before = follow_before},
                  .machine = machine,
                  .backend = machine->backend,
                  .plan = &p,
                  .patience_ns = patience_ns,
                  .between = SIZE_MAX,
                  .why = why,
                  .why_size = size};
    mr_status status = check_plan(&p);
    if (!status) status = subject->begin ? subject->begin(subject->context) : MR_OK;
    if (!status) {
        f.streams = calloc(p.steps.count + 1, sizeof(mr_stream *));
        if (!f.streams) status = mr_no_memory("to follow a schedule");
    }
    if (!status) status = run(&f, subject, out_value);
    for (size_t i = 0; f.streams && i < p.steps.count; i++)
        if (f.streams[i]) mr_stream_release(f.streams[i]);
    free(f.streams);
    plan_free(&p);
    return status;
}
