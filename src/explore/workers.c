/* The processes of a shared search: see workers.h. */
#include "explore/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AHEAD   64 /* subtrees that workers may be ahead of the result */
#define PATIENT 10 /* milliseconds that the search waits before it looks at its clock again */
/* Seconds that a worker may be stopped by a signal. A stop of the whole job (Ctrl-Z) ends for all processes at about
 * the same moment. */
#define MOST_STOPPED 0.5

/* In shared memory. */
typedef struct {
    _Atomic uint64_t next;                 /* the first subtree that no worker has begun */
    _Atomic uint64_t taken;                /* all before it are in the result */
    _Atomic uint64_t worked[MOST_WORKERS]; /* nanoseconds of the processor */
} board;

/* What a worker has reported about an outcome. */
typedef struct {
    bool is_known; /* its value */
    uint32_t overtaken, switches, length;
} reported;

typedef struct {
    pid_t process;
    int pipe;        /* -1: it is closed */
    bool is_through; /* it has reported all */
    mr_buffer in;    /* reports; the result has those before `at` */
    size_t at;
    /* The numbers in the result of outcomes that the worker found itself, after the common ones. */
    MR_VEC(uint32_t) indices;
} worker;

struct workers {
    board *board;
    unsigned count;
    worker worker[MOST_WORKERS];
    uint32_t common; /* outcomes found before the workers began, which all processes have */
    double began;    /* by the clock of the thread */
    unsigned given_back;
    double stopped_since; /* by the clock on the wall; 0: no worker is stopped */
    bool failed;
    /* of a worker */
    unsigned self;
    mr_explore_subject subject; /* without the function */
    pid_t parent;
    int out;
    mr_buffer report;
    MR_VEC(reported) reported; /* by outcome */
};

/* The head of a report. The reason why the result is not complete comes behind it, and then the outcomes. */
typedef struct {
    uint64_t size; /* of all; 0: the worker is through */
    uint64_t number, path, schedules, pairs;
    uint32_t outcomes, reason;
    bool gives_back, may_mix;
} report_head;

/* The value follows, if it is new, and the texts, if there are any. */
typedef struct {
    uint64_t count, value, text_size; /* value: bytes; 0 if it is not new */
    uint64_t text[3];                 /* with the NUL; 0: none */
    uint32_t index, overtaken, switches, length;
    bool is_new;
} report_outcome;

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double seconds_of_thread(void) {
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- beginning and end */

/* A worker never runs the function; it gives back a subtree that needs a run. */
static mr_status never_run(void *context, mr_explore_value *out_value) {
    (void)context;
    (void)out_value;
    return mr_fail(MR_CODE_NOT_PERMITTED, "a worker does not call the function");
}

/* Only the parent ends a worker: Ctrl-C goes to all processes of a terminal, so a worker ignores it. */
static void become_worker(workers *w, explorer *e, unsigned self, int out) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    for (unsigned i = 0; i < self; i++) close(w->worker[i].pipe);
    w->self = self;
    w->out = out;
    w->subject = (mr_explore_subject){.context = e->subject->context,
                                      .machine = e->subject->machine,
                                      .run = never_run,
                                      .shown = e->subject->shown};
    e->subject = &w->subject;
    e->deadline = e->reserved = 0;
    for (size_t i = 0; i < e->result->outcomes.count; i++) {
        const mr_explore_outcome *o = &e->result->outcomes.items[i];
        if (!mr_vec_push(&w->reported, ((reported){true, o->overtaken, o->switches, o->length})))
            _exit(1);
    }
}

/* Starts one worker. False: that failed. Returns true in the worker, too. */
static bool begin_one(workers *w, explorer *e, bool *out_is_worker) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        *out_is_worker = true;
        become_worker(w, e, w->count, ends[1]);
        return true;
    }
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return false;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    w->worker[w->count++] = (worker){.process = process, .pipe = ends[0]};
    return true;
}

workers *workers_begin(explorer *e, unsigned count, bool *out_is_worker) {
    workers *w = calloc(1, sizeof *w);
    sigset_t all, before;
    *out_is_worker = false;
    if (!w) return NULL;
    w->board =
        mmap(NULL, sizeof *w->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w->board == MAP_FAILED) {
        free(w);
        return NULL;
    }
    w->common = (uint32_t)e->result->outcomes.count;
    w->began = seconds_of_thread();
    w->parent = getpid();
    sigfillset(
        &all); /* a signal finds the handlers of a worker, or those of this process, never both */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (w->count < count && w->count < MOST_WORKERS && !*out_is_worker)
        if (!begin_one(w, e, out_is_worker)) break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (*out_is_worker || w->count) return w;
    workers_end(w);
    return NULL;
}

void workers_end(workers *w) {
    if (!w) return;
    for (unsigned i = 0; i < w->count; i++) kill(w->worker[i].process, SIGKILL);
    for (unsigned i = 0; i < w->count; i++) {
        while (waitpid(w->worker[i].process, NULL, 0) < 0 && errno == EINTR) continue;
        if (w->worker[i].pipe >= 0) close(w->worker[i].pipe);
        mr_buffer_free(&w->worker[i].in);
        mr_vec_free(&w->worker[i].indices);
    }
    munmap(w->board, sizeof *w->board);
    free(w);
}

double workers_ahead(const workers *w) {
    double most = 0, own = seconds_of_thread() - w->began;
    for (unsigned i = 0; i < w->count; i++) {
        double worked = (double)atomic_load(&w->board->worked[i]) * 1e-9;
        if (worked > most) most = worked;
    }
    return most > own ? most - own : 0;
}

/* ---- reports that come in */

static bool has_head(const worker *k, report_head *out) {
    if (k->in.size - k->at < sizeof *out) return false;
    memcpy(out, k->in.data + k->at, sizeof *out);
    return k->in.size - k->at >= out->size;
}

static void note_end(worker *k) {
    report_head head;
    if (has_head(k, &head) && !head.size) {
        k->is_through = true;
        k->at += sizeof head;
    }
}

/* Frees the room of reports that are in the result. */
static void drop_taken(worker *k) {
    if (k->at < k->in.size / 2 && k->at < k->in.size) return;
    memmove(k->in.data, k->in.data + k->at, k->in.size - k->at);
    k->in.size -= k->at;
    k->at = 0;
}

static bool read_some(workers *w, worker *k) {
    char bytes[1 << 16];
    ssize_t got = read(k->pipe, bytes, sizeof bytes);
    if (got < 0) return errno == EINTR;
    if (k->at) drop_taken(k);
    if (got > 0) {
        mr_buffer_add(&k->in, bytes, (size_t)got);
        w->failed |= k->in.failed;
        return true;
    }
    close(k->pipe);
    k->pipe = -1;
    return false;
}

static void read_all(workers *w, int milliseconds) {
    struct pollfd open[MOST_WORKERS];
    for (unsigned i = 0; i < w->count; i++)
        open[i] = (struct pollfd){.fd = w->worker[i].pipe, .events = POLLIN};
    if (poll(open, w->count, milliseconds) <= 0) return;
    for (unsigned i = 0; i < w->count; i++)
        while (open[i].revents && w->worker[i].pipe >= 0 && read_some(w, &w->worker[i])) continue;
}

/* ---- what they say */

static const char *take_bytes(const char **io_at, size_t size) {
    const char *bytes = *io_at;
    *io_at += size;
    return bytes;
}

static mr_status take_outcome(workers *w, worker *k, explorer *e, const report_outcome *o,
                              const char **io_at) {
    uint32_t own = o->index - w->common;
    const char *value = take_bytes(io_at, o->value);
    outcome_part part = {.count = o->count,
                         .overtaken = o->overtaken,
                         .switches = o->switches,
                         .length = o->length,
                         .index = o->index};
    for (int i = 0; i < 3 && o->text[0]; i++) part.texts[i] = take_bytes(io_at, o->text[i]);
    if (o->is_new) {
        MR_TRY(outcome_find_or_add(e, value, o->value, o->text_size, &part.index));
        while (k->indices.count <= own)
            if (!mr_vec_push(&k->indices, 0)) return mr_no_memory("for an outcome");
        k->indices.items[own] = part.index;
    } else if (o->index >= w->common) {
        part.index = k->indices.items[own];
    }
    return outcome_add_part(e, &part);
}

static mr_status take_report(workers *w, worker *k, explorer *e, const report_head *head) {
    const char *at = k->in.data + k->at + sizeof *head;
    mr_explore_result *r = e->result;
    const char *reason = take_bytes(&at, head->reason);
    if (head->reason) explore_incomplete(e, "%s", reason);
    r->may_mix |= head->may_mix;
    if (!r->schedules) r->pairs = head->pairs;
    r->schedules += head->schedules;
    for (uint32_t i = 0; i < head->outcomes; i++) {
        report_outcome o;
        memcpy(&o, take_bytes(&at, sizeof o), sizeof o);
        MR_TRY(take_outcome(w, k, e, &o, &at));
    }
    return MR_OK;
}

/* False: a bound would end the search within the subtree. Only a search of it can tell which schedules were tried by
 * then. */
static bool fits(const explorer *e, const report_head *head) {
    return e->result->schedules + head->schedules < e->options.most &&
           outcome_has_room(e, head->outcomes);
}

static worker *reporter_of(workers *w, uint64_t number, report_head *out_head) {
    for (unsigned i = 0; i < w->count; i++) {
        worker *k = &w->worker[i];
        note_end(k);
        if (has_head(k, out_head) && out_head->size && out_head->number == number) return k;
    }
    return NULL;
}

static bool is_stopped(const worker *k) {
    siginfo_t info = {0};
    int options = WSTOPPED | WNOHANG | WNOWAIT;
    return waitid(P_PID, (id_t)k->process, &info, options) == 0 && info.si_pid == k->process;
}

/* A worker that is stopped holds the search up, and uses none of its time. */
static bool is_held_up(workers *w) {
    bool found = false;
    double now = seconds_of(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < w->count; i++) found |= is_stopped(&w->worker[i]);
    if (!found) w->stopped_since = 0;
    else if (w->stopped_since == 0) w->stopped_since = now;
    return found && now - w->stopped_since > MOST_STOPPED;
}

/* Whether a worker ended before it had reported all, or is stopped, or all have finished and none has reported the
 * subtree. */
static bool is_lost(workers *w) {
    unsigned through = 0;
    for (unsigned i = 0; i < w->count; i++) {
        worker *k = &w->worker[i];
        w->failed |= k->pipe < 0 && !k->is_through;
        through += k->is_through;
    }
    return w->failed |= through == w->count || is_held_up(w);
}

mr_status workers_ask(workers *w, explorer *e, uint64_t number, uint64_t path,
                      workers_answer *out_answer) {
    report_head head;
    worker *k = reporter_of(w, number, &head);
    atomic_store(&w->board->taken, number);
    if (!k) {
        read_all(w, 0);
        k = reporter_of(w, number, &head);
    }
    *out_answer = WORKERS_WAIT;
    if (!k) {
        if (is_lost(w)) *out_answer = WORKERS_GAVE_BACK;
        else read_all(w, PATIENT);
        return MR_OK;
    }
    bool takes = !head.gives_back && head.path == path && fits(e, &head);
    *out_answer = takes ? WORKERS_REPORTED : WORKERS_GAVE_BACK;
    w->given_back += head.gives_back;
    w->failed |= head.path != path || (!takes && !head.gives_back);
    mr_status status = takes ? take_report(w, k, e, &head) : MR_OK;
    k->at += head.size;
    return status;
}

mr_status workers_take_rest(workers *w, explorer *e, uint64_t number) {
    worker *k;
    report_head head;
    read_all(w, 0);
    /* Each worker's reports have rising numbers: the lowest one of all is the next one. */
    for (;;) {
        report_head lowest = {0};
        worker *next = NULL;
        for (unsigned i = 0; i < w->count; i++) {
            k = &w->worker[i];
            if (!has_head(k, &head) || !head.size || head.number < number) continue;
            if (!next || head.number < lowest.number) next = k, lowest = head;
        }
        if (!next || w->failed || lowest.gives_back || !fits(e, &lowest)) return MR_OK;
        MR_TRY(take_report(w, next, e, &lowest));
        next->at += lowest.size;
    }
}

unsigned workers_given_back(const workers *w) {
    return w->given_back;
}

bool workers_have_failed(const workers *w) {
    return w->failed;
}

/* ---- of a worker */

void worker_tick(workers *w) {
    atomic_store(&w->board->worked[w->self], (uint64_t)(seconds_of_thread() * 1e9));
    if (getppid() != w->parent) _exit(1);
}

uint64_t worker_next(workers *w) {
    uint64_t number = atomic_fetch_add(&w->board->next, 1);
    worker_tick(w);
    while (number >= atomic_load(&w->board->taken) + AHEAD) {
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
        worker_tick(w);
    }
    return number;
}

void worker_begin(explorer *e) {
    mr_explore_result *r = e->result;
    for (size_t i = 0; i < r->outcomes.count; i++) r->outcomes.items[i].count = 0;
    r->schedules = 0;
    r->may_mix = false;
    r->complete = true;
    r->incomplete[0] = '\0';
}

static void write_outcome(workers *w, const mr_explore_outcome *o, uint32_t index) {
    reported *was = &w->reported.items[index];
    bool is_simpler = !was->is_known || was->overtaken != o->overtaken ||
                      was->switches != o->switches || was->length != o->length;
    const char *const texts[] = {o->schedule, o->steps, o->difference};
    report_outcome head = {.count = o->count,
                           .value = was->is_known ? 0 : o->size,
                           .text_size = o->text_size,
                           .index = index,
                           .overtaken = o->overtaken,
                           .switches = o->switches,
                           .length = o->length,
                           .is_new = !was->is_known};
    for (int i = 0; i < 3 && is_simpler; i++) head.text[i] = strlen(texts[i]) + 1;
    mr_buffer_add(&w->report, (const char *)&head, sizeof head);
    if (head.value) mr_buffer_add(&w->report, o->value, o->size);
    for (int i = 0; i < 3 && is_simpler; i++) mr_buffer_add(&w->report, texts[i], head.text[i]);
    *was = (reported){true, o->overtaken, o->switches, o->length};
}

static void write_all(workers *w, const char *bytes, size_t size) {
    while (size) {
        ssize_t written = write(w->out, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(1); /* the parent no longer reads */
        bytes += written;
        size -= (size_t)written;
    }
}

void worker_report(workers *w, explorer *e, uint64_t number, uint64_t path, bool gives_back) {
    mr_explore_result *r = e->result;
    report_head head = {.number = number, .path = path, .gives_back = gives_back};
    w->report.size = 0;
    mr_buffer_add(&w->report, (const char *)&head, sizeof head);
    if (!gives_back) {
        head.schedules = r->schedules;
        head.pairs = r->pairs;
        head.may_mix = r->may_mix;
        head.reason = r->incomplete[0] ? (uint32_t)strlen(r->incomplete) + 1 : 0;
        mr_buffer_add(&w->report, r->incomplete, head.reason);
        for (uint32_t i = 0; i < r->outcomes.count; i++) {
            if (i == w->reported.count && !mr_vec_push(&w->reported, (reported){0})) _exit(1);
            if (!r->outcomes.items[i].count) continue;
            write_outcome(w, &r->outcomes.items[i], i);
            head.outcomes++;
        }
    }
    if (w->report.failed) _exit(1);
    head.size = w->report.size;
    memcpy(w->report.data, &head, sizeof head);
    write_all(w, w->report.data, w->report.size);
    worker_tick(w);
}

void worker_leave(workers *w, bool is_through) {
    report_head end = {0};
    if (is_through) write_all(w, (const char *)&end, sizeof end);
    _exit(!is_through);
}
