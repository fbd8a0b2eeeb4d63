/* The budget of an exploration: seconds, and bytes that it keeps beside the function's own run. Looks at the clock,
 * tells how far the search is, and takes memory back from branches that are not at work.
 *
 * Seconds are the processor time of the search's thread, so other processes on a busy machine do not cut the search
 * short. In wall-clock time it gets at most BUDGET_PATIENCE times as many seconds.
 *
 * A player or branch whose memory was taken back is made again when it is needed. A player carries out the plan so far;
 * a branch calls the function. Easiest to break: an object that a running search uses may not be freed. Only a search
 * that waits for the search of a child gives up its player, and makes it again afterwards (search_remake). */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "explore/apart.h"
#include "explore/search.h"
#include "explore/share.h"
#include "model/backend.h"
#include "model/simulator.h"

/* at most so many seconds of wall-clock time for each second of processor time */
#define BUDGET_PATIENCE 10

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* While workers have the search, the time of the one that has worked most counts. */
static double lent(const explorer *e) {
    bool works = e->share && e->share->workers && !e->share->is_worker;
    return e->lent + (works ? workers_ahead(e->share->workers) : 0);
}

static double worked_so_far(const explorer *e) {
    return seconds_of(CLOCK_THREAD_CPUTIME_ID) - e->began_thread + lent(e);
}

static double waited_so_far(const explorer *e, clockid_t wall) {
    return seconds_of(wall) - e->began_wall;
}

static double budget_now_by(const explorer *e, clockid_t wall) {
    double worked = worked_so_far(e), waited = waited_so_far(e, wall) / BUDGET_PATIENCE;
    return worked > waited ? worked : waited;
}

void budget_begin_clock(explorer *e) {
    e->began_thread = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    e->began_wall = e->tick = seconds_of(CLOCK_MONOTONIC);
}

double budget_now(const explorer *e) {
    return budget_now_by(e, CLOCK_MONOTONIC);
}

/* ---- time */

void budget_end_at(explorer *e, double seconds_from_now) {
    const mr_explore_subject *subject = e->subject;
    e->deadline = seconds_from_now > 0 ? budget_now(e) + seconds_from_now : 0;
    e->is_late = false;
    if (!subject->end_runs_after) return;
    /* 0.02: then the deadline has passed on the coarse clock, too. Each of the two clocks ends a run when it reaches
     * the deadline by itself, not earlier: else it would look like an interruption by the user. */
    double until = e->deadline + e->reserved + 0.02;
    double worked = until - worked_so_far(e),
           waited = BUDGET_PATIENCE * until - waited_so_far(e, CLOCK_MONOTONIC);
    if (!(e->deadline > 0)) worked = waited = 0;
    subject->end_runs_after(subject->context, worked, waited);
}

void budget_note_outcomes(explorer *e) {
    if (!e->others_may_end || e->result->outcomes.count <= 1) return;
    double left = e->ends - budget_now(e);
    e->others_may_end = false;
    if (left > 0) budget_end_at(e, left);
}

static double share_of(const search *s);

/* Groups of races count alike, although the last ones are the largest. */
static double share_done(const explorer *e) {
    double share = e->innermost ? share_of(e->innermost) : 0;
    return e->apart ? (e->apart->tried + share) / e->apart->count : share;
}

/* Then the search will probably finish. */
static bool is_half_done(const explorer *e) {
    bool is_last = !e->apart || e->apart->tried + 1 == e->apart->count;
    return e->innermost && e->overtaking < 0 && e->deviations <= 0 && is_last &&
           share_of(e->innermost) >= 0.5;
}

/* Reading the thread's clock is a system call, so it is read once per tick of the coarse clock, which costs almost
 * nothing. */
static bool has_ticked(explorer *e) {
    double tick = seconds_of(CLOCK_MONOTONIC_COARSE);
    if (tick == e->tick) return false;
    e->tick = tick;
    return true;
}

/* A search that is more than half done may take what is reserved, too. */
static bool is_late(explorer *e) {
    if (!(e->deadline > 0)) return false;
    if (e->is_late || !has_ticked(e)) return e->is_late;
    double now = budget_now_by(e, CLOCK_MONOTONIC_COARSE);
    if (now > e->deadline && e->reserved > 0 && is_half_done(e)) {
        e->deadline += e->reserved;
        e->reserved = 0;
    }
    return e->is_late = now > e->deadline;
}

bool budget_interrupts(void *context) {
    explorer *e = context;
    const mr_machine *machine = e->subject->machine;
    return (machine->hooks.interrupted && machine->hooks.interrupted(machine->hooks.context)) ||
           is_late(e);
}

/* An interruption by the clock does not come from the user. */
bool budget_takes_interruption(explorer *e) {
    if (!is_late(e)) return false;
    explore_incomplete(e, "it stopped after time = %g s", e->options.seconds);
    return e->stop = true;
}

/* ---- how far the search is */

/* Each frame halves what is left of the tree: the half of the choice that was taken first is done when the second one
 * is tried. The search of a child is a part of what the frames of its parent have left. */
static double part_of(const search *s) {
    double part = s->outer ? part_of(s->outer) : 1;
    for (size_t i = 0; s->outer && i < s->outer->frames.count; i++) part /= 2;
    return part;
}

static double share_of(const search *s) {
    double part = part_of(s), done = s->outer ? share_of(s->outer) : 0;
    for (size_t i = 0; i < s->frames.count; i++) {
        part /= 2;
        if (s->frames.items[i].second) done += part;
    }
    return done;
}

/* Schedules at random and others after the search of all are not a part of the tree. */
static double share_told(explorer *e) {
    double share = e->overtaking < 0 && e->deviations <= 0 ? share_done(e) : 0;
    if (share > e->share_told) e->share_told = share;
    return e->share_told;
}

static void tell(explorer *e, double wall) {
    mr_explore_progress p = {.schedules = e->result->schedules,
                             .outcomes = e->result->outcomes.count,
                             .runs = e->result->runs,
                             .seconds = wall - e->began_wall,
                             .share = share_told(e),
                             .left = e->deadline > 0 ? e->deadline - budget_now(e) : -1};
    e->told = wall;
    if (e->subject->go_on(e->subject->context, &p)) return;
    e->stop = e->result->interrupted = true;
}

/* ---- memory */

static size_t bytes_of_marks(const branch *b) {
    mr_machine *machine = b->player ? mr_player_machine(b->player) : NULL;
    size_t bytes = machine ? machine->backend->simulator->checkpoint_bytes(machine) : 0;
    return bytes == SIZE_MAX ? 0 : bytes;
}

static size_t bytes_of_player(const branch *b) {
    mr_machine *machine = mr_player_machine(b->player);
    size_t bytes = bytes_of_marks(b);
    for (int i = 0; i < machine->device_count; i++)
        bytes += machine->backend->memory_reserved(machine->devices[i]);
    return bytes + b->host_bytes;
}

static size_t bytes_of(const branch *b) {
    size_t bytes = b->fixed_bytes + (b->player ? bytes_of_player(b) : 0);
    for (size_t i = 0; i < b->children.count; i++) bytes += bytes_of(b->children.items[i]);
    return bytes;
}

/* The memory of its tensors, until the script's garbage is collected. */
static size_t bytes_of_last_run(const explorer *e) {
    const mr_machine *machine = e->subject->machine;
    size_t live = machine->host_memory.live_bytes,
           bytes = live > e->host_before ? live - e->host_before : 0;
    for (int i = 0; i < machine->device_count; i++)
        bytes += machine->backend->memory_reserved(machine->devices[i]);
    return bytes;
}

/* The value at hand; and where races are explored apart, that of the submitted order, and whose bytes they are. */
static size_t bytes_of_values(const explorer *e) {
    const apart *a = e->apart;
    size_t shared = a && a->owner ? a->base.size * (1 + sizeof *a->owner) : 0;
    return e->outcome_bytes + e->value.size + shared;
}

static size_t budget_used(const explorer *e) {
    return bytes_of_last_run(e) + (e->root ? bytes_of(e->root) : 0) + bytes_of_values(e);
}

static bool is_at_work(const explorer *e, const branch *b) {
    for (const search *s = e->innermost; s; s = s->outer)
        if (s->b == b) return true;
    return false;
}

/* A child that is needed again is made by another run of the function. */
void budget_drop_children(explorer *e, branch *b) {
    size_t kept = 0;
    for (size_t i = 0; i < b->children.count; i++) {
        branch *child = b->children.items[i];
        if (is_at_work(e, child)) b->children.items[kept++] = child;
        else branch_destroy(e, child);
    }
    b->children.count = kept;
    for (size_t i = 0; i < kept; i++) budget_drop_children(e, b->children.items[i]);
}

static bool fits(const explorer *e, size_t more) {
    return !e->store_most || budget_used(e) + more <= e->store_most;
}

bool budget_has_room(explorer *e, size_t more) {
    if (fits(e, more)) return true;
    if (!e->subject->let_go || !bytes_of_last_run(e)) return false;
    e->subject->let_go(e->subject->context);
    return fits(e, more);
}

/* The next run reuses the memory that the last one left. A player needs memory in addition to that. */
void budget_trim_spares(explorer *e, size_t more) {
    mr_machine *machine = e->subject->machine;
    size_t spare = machine->backend->simulator->spare_bytes(machine),
           all = budget_used(e) + spare + more;
    if (!spare || !e->store_most || all <= e->store_most) return;
    machine->backend->simulator->drop_spares(machine, all - e->store_most);
}

static void let_go_of_all(explorer *e) {
    if (!e->innermost) return;
    if (e->looks++ % 4) {
        search_forget_mark(e->innermost);
        return;
    }
    budget_drop_children(e, e->root);
    for (search *s = e->innermost; s; s = s->outer) search_let_go(s);
    e->innermost->b->without_marks ^= e->looks % 3 == 0;
}

static void make_room(explorer *e, size_t more, size_t most) {
    budget_drop_children(e, e->root);
    for (search *s = e->innermost->outer; s && !budget_has_room(e, more); s = s->outer)
        search_let_go(s);
    if (budget_has_room(e, more)) return;
    size_t used = budget_used(e), marks = bytes_of_marks(e->innermost->b);
    if (more) { /* for a child, and this search waits for it */
        search_let_go(e->innermost);
        return;
    }
    if (used - marks <= most) { /* what is kept to go back is more than there is room for */
        search_let_go(e->innermost);
        e->innermost->b->without_marks = true;
        return;
    }
    e->no_room = e->stop = true;
    explore_incomplete(e, "it stopped at memory = %g MB", (double)e->options.memory / (1 << 20));
}

/* Otherwise free memory between used blocks stays with the process. */
static void give_back_free_memory(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void budget_make_room(explorer *e, size_t more) {
    size_t most = e->store_most;
    if (!more) budget_trim_spares(e, 0);
    if (!e->innermost || budget_has_room(e, more)) return;
    make_room(e, more, most);
    give_back_free_memory();
}

/* Now: what an earlier exploration has given back is free again. Without /proc, the most so far. */
static size_t bytes_of_process(void) {
    unsigned long all, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    bool known = file && fscanf(file, "%lu %lu", &all, &resident) == 2;
    if (file) fclose(file);
    if (known) return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss << 10;
}

void budget_begin(explorer *e) {
    give_back_free_memory();
    e->process_before = bytes_of_process();
    e->host_before = e->subject->machine->host_memory.live_bytes;
}

/* Tensors of the function are allocated and freed by each run, and a player needs as much as a run. The process's other
 * memory stays. */
void budget_measure(explorer *e) {
    if (!e->options.memory) return;
    size_t taken = bytes_of_process(), run = bytes_of_last_run(e);
    size_t stays = taken > run ? taken - run : 0;
    if (stays < e->process_before) stays = e->process_before;
    e->store_most = e->options.memory > stays ? e->options.memory - stays : 1;
}

/* Each worker has a copy of the current memory, and needs as much again. */
unsigned budget_divide(explorer *e, unsigned others) {
    size_t each = 2 * budget_used(e) + 1;
    if (!e->store_most) return others;
    e->store_whole = e->store_most;
    if (others + 1 > e->store_most / each) others = (unsigned)(e->store_most / each);
    if (others) others -= others + 1 > e->store_most / each;
    e->store_most /= others + 1;
    return others;
}

void budget_unite(explorer *e) {
    if (e->store_whole) e->store_most = e->store_whole;
    e->store_whole = 0;
}

size_t budget_of_player(const explorer *e, const branch *b) {
    const mr_machine *machine = e->subject->machine;
    size_t bytes = mr_program_host_bytes(b->program);
    for (int i = 0; i < machine->device_count; i++)
        bytes += machine->backend->memory_reserved(machine->devices[i]);
    return bytes;
}

/* ---- both */

static bool look_at_clock(explorer *e) {
    double now = seconds_of(CLOCK_MONOTONIC_COARSE);
    if (now == e->looked) return false;
    e->looked = now;
    /* go_on reports that the user wants to stop. An interruption by the clock is not such a request. */
    if (budget_takes_interruption(e)) return false;
    if (e->subject->go_on && now - e->told >= 0.1) tell(e, now);
    return !e->stop;
}

void budget_look_at_clock(explorer *e) {
    look_at_clock(e);
}

void budget_look(explorer *e) {
    if (e->options.forgetful) let_go_of_all(e);
    if (look_at_clock(e)) budget_make_room(e, 0);
}
