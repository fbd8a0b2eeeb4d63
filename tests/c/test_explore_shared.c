/* A search that is shared by processes, against the same search in one process, on random programs. Both find the same
 * outcomes in the same order, with the same counts, schedules and steps, also where a bound ends the search.
 * MR_EXPLORE_PROGRAMS sets how many (1500; 20000 in `make check-long`), MR_EXPLORE_SEED where they begin. The last
 * tests kill a worker, and stop the search. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "naive_hazard.c"
#include "virtual_fixture.h"
#include "explore_programs.c"

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* In memory of all processes: a worker has called the function. */
static bool *called_in_worker;
static pid_t own_process;

static mr_status run_here(void *context, mr_explore_value *out) {
    *called_in_worker |= getpid() != own_process;
    return run_sample(context, out);
}

static const char *explore_by(const sample_program *p, mr_explore_options options,
                              mr_explore_result *out) {
    static char text[300];
    mr_explore_subject subject = {.context = (void *)(uintptr_t)p,
                                  .machine = machine,
                                  .begin = begin_sample,
                                  .run = run_here};
    mr_status status = mr_explore(&subject, &options, out);
    let_go();
    if (!status) return NULL;
    snprintf(text, sizeof text, "%s", status->message);
    mr_error_destroy(status);
    return text;
}

static bool same_text(const char *a, const char *b) {
    return !strcmp(a ? a : "", b ? b : "");
}

/* Streams and events without a name have another number in each call, and the columns follow. */
static bool same_but_numbers(const char *a, const char *b) {
    static const char skipped[] = " 0123456789";
    for (;; a++, b++) {
        a += strspn(a, skipped);
        b += strspn(b, skipped);
        if (!*a || *a != *b) return *a == *b;
    }
}

static const char *outcome_differs(const mr_explore_outcome *a, const mr_explore_outcome *b) {
    if (a->size != b->size || memcmp(a->value, b->value, a->size)) return "another value";
    if (a->count != b->count) return "another count";
    if (a->overtaken != b->overtaken || a->switches != b->switches || a->length != b->length)
        return "another simplest schedule";
    if (!same_text(a->schedule, b->schedule)) return "another schedule";
    return same_but_numbers(a->steps, b->steps) && same_but_numbers(a->difference, b->difference)
               ? NULL
               : "other steps";
}

static const char *result_differs(const mr_explore_result *a, const mr_explore_result *b) {
    if (a->schedules != b->schedules) return "another number of schedules";
    if (a->outcomes.count != b->outcomes.count) return "another number of outcomes";
    if (a->complete != b->complete || strcmp(a->incomplete, b->incomplete)) return "another reason";
    if (a->untried_count != b->untried_count || !same_text(a->untried.data, b->untried.data))
        return "other choices that are left";
    if (a->may_mix != b->may_mix || a->pairs != b->pairs) return "other pairs";
    for (size_t i = 0; i < a->outcomes.count; i++) {
        const char *text = outcome_differs(&a->outcomes.items[i], &b->outcomes.items[i]);
        if (text) return text;
    }
    return NULL;
}

static uint64_t compared_here, more_than_one, cut, of_values;

static const char *shared_differs(const sample_program *p, uint64_t seed) {
    mr_explore_result one, shared = {0};
    mr_explore_options options = {.overtaking = -1, .full = seed % 3 != 0, .workers = 1};
    const char *first = explore_by(p, options, &one), *differs = NULL;
    if (!first && seed % 4 == 0 && one.schedules > 2) {
        options.most = 1 + seed / 4 % one.schedules;
        mr_explore_result_free(&one);
        first = explore_by(p, options, &one);
    }
    options.workers = 2 + seed % 2;
    options.shared_depth = 1 + (unsigned)(seed % 5);
    if (!first) {
        differs = explore_by(p, options, &shared);
        if (!differs) differs = result_differs(&one, &shared);
        compared_here++;
        more_than_one += one.schedules > 1;
        cut += options.most > 0;
        of_values += one.runs > 2;
    }
    if (*called_in_worker) differs = "a worker has called the function";
    mr_explore_result_free(&one);
    mr_explore_result_free(&shared);
    return differs;
}

static void shrink(sample_program *p, uint64_t seed) {
    for (int i = p->step_count; i-- > 0;) {
        sample_step kept = p->step[i];
        p->step[i] = (sample_step){.kind = STEP_NOTHING};
        if (!shared_differs(p, seed)) p->step[i] = kept;
    }
}

static void no_child_is_left(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void workers_count_as_one_process(void **unused) {
    (void)unused;
    uint64_t count = setting("MR_EXPLORE_PROGRAMS", getenv("MILLRACE_LONG")    ? 20000
                                                    : getenv("MILLRACE_SHORT") ? 500
                                                                               : 1500),
             first = setting("MR_EXPLORE_SEED", 1);
    for (uint64_t seed = first; seed < first + count; seed++) {
        static sample_program p;
        explore_random_program(seed, &p);
        const char *text = shared_differs(&p, seed);
        no_child_is_left();
        if (!text) continue;
        printf("-- seed %llu: %s\n", (unsigned long long)seed, text);
        shrink(&p, seed);
        text = shared_differs(&p, seed);
        printf("-- shrunk: %s\n", text ? text : "(not any more)");
        explore_print(&p);
        fail_msg("a shared search differs from that of one process");
    }
    printf("%llu programs, %llu with more than one schedule, %llu with other values, %llu cut\n",
           (unsigned long long)compared_here, (unsigned long long)more_than_one,
           (unsigned long long)of_values, (unsigned long long)cut);
    assert_true(count < 100 ||
                (more_than_one > count / 5 && of_values > count / 20 && cut > count / 20));
}

/* ---- a large one */

/* So many operations on three streams: each reads one tensor and writes another one. */
static void make_large(sample_program *p, int operations) {
    memset(p, 0, sizeof *p);
    p->device_count = 1;
    p->stream_count = 5;
    p->stream[0].legacy = p->stream[1].per_thread = true;
    p->event_count = 1;
    p->tensor_count = 3;
    for (int i = 0; i < operations; i++) {
        sample_step *s = &p->step[p->step_count++];
        *s = (sample_step){.kind = STEP_OP, .stream = 2 + i % 3, .access_count = 2};
        s->access[0] = whole(i % 3, NAIVE_WRITE);
        s->access[1] = whole((i + 1) % 3, NAIVE_READ);
    }
}

static unsigned killed;
static int sent = SIGKILL; /* what a child gets */

/* A child of this process; 0: there is none. */
static pid_t find_child(void) {
    char path[300], state;
    int process, parent;
    pid_t found = 0;
    DIR *all = opendir("/proc");
    assert_non_null(all);
    for (struct dirent *entry; !found && (entry = readdir(all));) {
        if (atoi(entry->d_name) <= 0) continue;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fscanf(file, "%d (%*[^)]) %c %d", &process, &state, &parent) == 3 && parent == getpid())
            found = process;
        fclose(file);
    }
    closedir(all);
    return found;
}

static bool kill_a_child(void *context, const mr_explore_progress *progress) {
    (void)context;
    (void)progress;
    pid_t child = find_child();
    if (child) kill(child, sent);
    killed += child != 0;
    return true;
}

static bool stop_with_workers(void *context, const mr_explore_progress *progress) {
    (void)progress;
    return ++*(int *)context < 4;
}

static int large = 14; /* operations */

static mr_status run_large(void *context, mr_explore_value *out) {
    (void)context;
    static sample_program p;
    make_large(&p, large);
    return run_here(&p, out);
}

static void explore_large(bool (*go_on)(void *, const mr_explore_progress *), unsigned workers,
                          mr_explore_result *out) {
    static int told;
    told = 0;
    mr_explore_options options = {
        .overtaking = -1, .full = true, .workers = workers, .most = 150000};
    mr_explore_subject subject = {.context = &told,
                                  .machine = machine,
                                  .begin = begin_sample,
                                  .run = run_large,
                                  .go_on = go_on};
    OK(mr_explore(&subject, &options, out));
    let_go();
    no_child_is_left();
}

/* The first process searches what the killed one had, and what is left. */
static void a_killed_worker_changes_nothing(void **unused) {
    (void)unused;
    mr_explore_result one, shared;
    explore_large(NULL, 1, &one);
    explore_large(kill_a_child, 2, &shared);
    assert_true(killed > 0);
    const char *text = result_differs(&one, &shared);
    if (text) fail_msg("%s", text);
    mr_explore_result_free(&one);
    mr_explore_result_free(&shared);
}

/* The same, although the stopped one would hold the search up for ever. */
static void a_stopped_worker_changes_nothing(void **unused) {
    sent = SIGSTOP;
    a_killed_worker_changes_nothing(unused);
    sent = SIGKILL;
}

static void a_stopped_search_has_no_more_than_all(void **unused) {
    (void)unused;
    mr_explore_result one, shared;
    explore_large(NULL, 1, &one);
    explore_large(stop_with_workers, 2, &shared);
    assert_true(shared.interrupted && !shared.complete && shared.untried_count > 0);
    assert_true(shared.schedules > 0 && shared.schedules < one.schedules);
    uint64_t counted = 0;
    for (size_t i = 0; i < shared.outcomes.count; i++) counted += shared.outcomes.items[i].count;
    assert_true(counted == shared.schedules);
    mr_explore_result_free(&one);
    mr_explore_result_free(&shared);
}

static bool share_never_falls(void *context, const mr_explore_progress *progress) {
    double *share = context;
    assert_true(progress->share >= *share && progress->share <= 1);
    *share = progress->share;
    return true;
}

/* Also while schedules are drawn at random, when the time for the search is over. */
static void progress_does_not_go_back(void **unused) {
    (void)unused;
    mr_explore_result result;
    double share = 0;
    mr_explore_options options = {
        .overtaking = -1, .full = true, .workers = 1, .most = UINT64_MAX, .seconds = 1};
    mr_explore_subject subject = {.context = &share,
                                  .machine = machine,
                                  .begin = begin_sample,
                                  .run = run_large,
                                  .go_on = share_never_falls};
    large = 20;
    OK(mr_explore(&subject, &options, &result));
    large = 14;
    assert_true(result.by_priority > 0 && share > 0);
    mr_explore_result_free(&result);
    let_go();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(workers_count_as_one_process, setup, teardown),
        cmocka_unit_test_setup_teardown(a_killed_worker_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stopped_worker_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(progress_does_not_go_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stopped_search_has_no_more_than_all, setup, teardown)};
    own_process = getpid();
    called_in_worker = mmap(NULL, sizeof *called_in_worker, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
