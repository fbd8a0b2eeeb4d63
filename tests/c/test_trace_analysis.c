/* The answers of a trace, against brute force. Random programs of kernels, events and waits run on the virtual GPU, and
 * in a simulation that knows nothing but the rules and looks at all pairs. On a device model without latencies both
 * must agree to the nanosecond. */
#include <stdlib.h>
#include <unistd.h>

#include "model/backend.h"
#include "trace/analysis.h"
#include "trace/analysis/chain.h"
#include "trace/analysis/replan.h"
#include "trace/record/kept.h"
#include "virtual_fixture.h"

enum { STREAMS = 4, EVENTS = 4, STEPS = 48, ROUNDS = 400, NOTHING = STEPS };

typedef enum { DO_SPIN, DO_RECORD, DO_WAIT, DO_STREAM_SYNC, DO_EVENT_SYNC, DO_DEVICE_SYNC } action;

typedef struct {
    action what;
    int stream, event;
    uint64_t length; /* nanoseconds */
} step;

typedef struct {
    bool blocking[STREAMS]; /* stream 0 is the legacy default stream */
    step steps[STEPS];
    int count;
} program;

static uint64_t random_state;
static uint32_t random_below(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

static program random_program(uint64_t seed) {
    program p = {.count = STEPS};
    random_state = seed * 977 + 5;
    for (int s = 0; s < STREAMS; s++) p.blocking[s] = s == 0 || random_below(2);
    for (int i = 0; i < STEPS; i++) {
        static const action often[] = {DO_SPIN,   DO_SPIN, DO_SPIN, DO_SPIN, DO_RECORD,
                                       DO_RECORD, DO_WAIT, DO_WAIT, DO_WAIT};
        uint32_t dice = random_below(30);
        p.steps[i] = (step){dice == 0   ? DO_STREAM_SYNC
                            : dice == 1 ? DO_EVENT_SYNC
                            : dice == 2 ? DO_DEVICE_SYNC
                                        : often[random_below(9)],
                            (int)random_below(STREAMS), (int)random_below(EVENTS),
                            1000 * (1 + random_below(40)) + random_below(1000)};
        if (p.steps[i].stream == 0 && random_below(3))
            p.steps[i].stream = 1; /* or all is in turn */
    }
    return p;
}

/* ---- by the rules alone */

typedef struct {
    uint64_t begin[STEPS], end[STEPS]; /* of the device's part */
    int bound[STEPS];                  /* WAIT, EVENT_SYNC: the step of the record; -1 */
    uint64_t total;
} naive;

static bool on_device(const step *s) {
    return s->what == DO_SPIN || s->what == DO_RECORD || s->what == DO_WAIT;
}

/* Whether the rules put `j` behind the earlier `i` directly. */
static bool follows(const program *p, const naive *n, int i, int j) {
    const step *a = &p->steps[i], *b = &p->steps[j];
    if (a->stream == b->stream) return true;
    if (b->what == DO_WAIT && n->bound[j] == i) return true;
    bool legacy = a->stream == 0 || b->stream == 0;
    return legacy && p->blocking[a->stream] && p->blocking[b->stream];
}

/* `skip`: a step that is left out, or NOTHING. */
static naive simulate(const program *p, int skip) {
    naive n = {0};
    int recorded[EVENTS] = {-1, -1, -1, -1};
    uint64_t host = 0;
    for (int i = 0; i < p->count; i++) {
        const step *s = &p->steps[i];
        if (i == skip) continue;
        n.bound[i] = recorded[s->event];
        if (s->what == DO_RECORD) recorded[s->event] = i;
        if (on_device(s)) {
            uint64_t begin = host;
            for (int j = 0; j < i; j++)
                if (j != skip && on_device(&p->steps[j]) && follows(p, &n, j, i) &&
                    n.end[j] > begin)
                    begin = n.end[j];
            n.begin[i] = begin;
            n.end[i] = begin + (s->what == DO_SPIN ? s->length : 0);
            if (n.end[i] > n.total) n.total = n.end[i];
            continue;
        }
        for (int j = 0; j < i; j++) {
            const step *a = &p->steps[j];
            if (j == skip || !on_device(a)) continue;
            bool waited = s->what == DO_DEVICE_SYNC ||
                          (s->what == DO_EVENT_SYNC && n.bound[i] == j) ||
                          (s->what == DO_STREAM_SYNC &&
                           (a->stream == s->stream || (s->stream == 0 && p->blocking[a->stream])));
            if (waited && n.end[j] > host) host = n.end[j];
        }
    }
    if (host > n.total) n.total = host;
    return n;
}

/* ---- on the virtual GPU */

typedef struct {
    const mr_trace *trace;
    uint32_t span[STEPS]; /* of each step; NONE: skipped, or an event that was never recorded */
} traced;

static const char *free_model(void) { /* a device on which nothing but kernels takes time */
    static char path[] = "/tmp/millrace_trace_XXXXXX.model";
    static bool made;
    if (made) return path;
    FILE *from = fopen("src/virtual/models/h200.model", "r");
    int fd = mkstemps(path, 6);
    FILE *to = fdopen(fd, "w");
    char line[512], key[64];
    assert_true(from && to);
    while (fgets(line, sizeof line, from)) {
        bool takes_time = sscanf(line, "%63s", key) == 1 && strlen(key) > 3 &&
                          strcmp(key + strlen(key) - 3, "_ns") == 0;
        if (takes_time) fprintf(to, "%s = %d\n", key, strcmp(key, "query_ns") == 0);
        else fputs(line, to);
    }
    fclose(from);
    fclose(to);
    made = true;
    return path;
}

static traced run(const program *p, int skip, const char *model) {
    traced out;
    mr_stream *streams[STREAMS];
    mr_event *events[EVENTS];
    mr_tracer *tracer;
    bool is_recorded[EVENTS] = {false};
    open_machine(NULL, NULL);
    OK(machine->backend->simulator->set_model(machine, model));
    for (int s = 0; s < STREAMS; s++)
        streams[s] = s ? stream_with(!p->blocking[s], 0) : device->legacy;
    for (int e = 0; e < EVENTS; e++) events[e] = new_event();
    OK(mr_tracer_start(machine, 0, &tracer));
    for (int i = 0; i < p->count; i++) {
        const step *s = &p->steps[i];
        out.span[i] = MR_TRACE_NONE;
        bool waits_for_nothing =
            (s->what == DO_WAIT || s->what == DO_EVENT_SYNC) && !is_recorded[s->event];
        if (i == skip) continue;
        caller.where = (mr_site){"random.lua", i + 1};
        if (!waits_for_nothing) out.span[i] = (uint32_t)mr_tracer_count(tracer);
        switch (s->what) {
        case DO_SPIN: OK(mr_spin(&caller, streams[s->stream], s->length)); break;
        case DO_RECORD:
            OK(mr_event_record(&caller, events[s->event], streams[s->stream]));
            is_recorded[s->event] = true;
            break;
        case DO_WAIT:
            OK(mr_stream_wait_event(&caller, streams[s->stream], events[s->event]));
            break;
        case DO_STREAM_SYNC: OK(mr_stream_synchronize(&caller, streams[s->stream])); break;
        case DO_EVENT_SYNC: OK(mr_event_synchronize(&caller, events[s->event])); break;
        case DO_DEVICE_SYNC: OK(mr_device_synchronize(&caller, device)); break;
        }
    }
    OK(mr_device_drain(device));
    mr_trace *trace;
    OK(mr_tracer_snapshot(tracer, 0, NULL, 0, &trace));
    out.trace = trace;
    mr_tracer_stop(tracer);
    void *nothing;
    assert_int_equal(teardown(&nothing), 0);
    return out;
}

/* ---- the tests */

static void times_are_those_of_the_rules(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        program p = random_program((uint64_t)round);
        naive n = simulate(&p, NOTHING);
        traced t = run(&p, NOTHING, free_model());
        const mr_span *spans = mr_trace_spans(t.trace);
        assert_int_equal(mr_trace_facts_of(t.trace)->duration, n.total);
        for (int i = 0; i < p.count; i++) {
            if (!on_device(&p.steps[i]) || t.span[i] == MR_TRACE_NONE) continue;
            assert_true(spans[t.span[i]].ran);
            assert_int_equal(spans[t.span[i]].begin, n.begin[i]);
            assert_int_equal(spans[t.span[i]].end, n.end[i]);
        }
        mr_trace_release(t.trace);
    }
}

/* The longest way through all that is done has the length of the whole, and the path is such a way. */
static void the_critical_path_is_a_longest_path(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        program p = random_program((uint64_t)round);
        naive n = simulate(&p, NOTHING);
        traced t = run(&p, NOTHING, free_model());
        mr_trace_path path;
        OK(mr_trace_critical_path(t.trace, &path));
        uint64_t length = 0, at = 0;
        for (size_t i = 0; i < path.count; i++) {
            const mr_trace_link *link = &path.items[i];
            assert_int_equal(link->begin, at);
            assert_true(link->end >= link->begin);
            length += link->end - link->begin;
            at = link->end;
        }
        assert_int_equal(length, n.total);
        mr_vec_free(&path);
        mr_trace_release(t.trace);
    }
}

/* Each link of the path is there for a reason: with a shorter kernel the whole is shorter, unless another path is as
 * long. Lengths differ by less than a microsecond with small probability, so ties are rare. */
static void what_is_on_the_path_decides(void **state) {
    (void)state;
    int shorter = 0, links = 0;
    for (int round = 0; round < ROUNDS / 4; round++) {
        program p = random_program((uint64_t)round);
        naive n = simulate(&p, NOTHING);
        traced t = run(&p, NOTHING, free_model());
        mr_trace_path path;
        OK(mr_trace_critical_path(t.trace, &path));
        for (size_t k = 0; k < path.count; k++) {
            for (int i = 0; i < p.count && !path.items[k].is_host; i++) {
                if (t.span[i] != path.items[k].span || p.steps[i].what != DO_SPIN) continue;
                program q = p;
                q.steps[i].length--;
                links++;
                shorter += simulate(&q, NOTHING).total < n.total;
            }
        }
        mr_vec_free(&path);
        mr_trace_release(t.trace);
    }
    assert_true(links > 300);
    assert_true(shorter >= links - links / 100);
}

static bool is_behind(const mr_trace_order *order, uint32_t a, uint32_t b, char *seen) {
    if (a == b) return true;
    if (seen[b]++) return false;
    for (size_t e = order->first[b]; e < order->first[b + 1]; e++)
        if (order->edges[e].rule != MR_CAUSE_SYNCHRONIZE &&
            is_behind(order, a, order->edges[e].from, seen))
            return true;
    return false;
}

static void the_order_is_that_of_the_rules(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS / 4; round++) {
        program p = random_program((uint64_t)round);
        naive n = simulate(&p, NOTHING);
        traced t = run(&p, NOTHING, free_model());
        static bool before[STEPS][STEPS];
        memset(before, 0, sizeof before);
        for (int j = 0; j < p.count; j++)
            for (int i = j - 1; i >= 0; i--) {
                if (!on_device(&p.steps[i]) || !on_device(&p.steps[j])) continue;
                before[i][j] = follows(&p, &n, i, j);
                for (int k = i + 1; k < j; k++) before[i][j] |= before[i][k] && before[k][j];
            }
        mr_trace_order order;
        OK(mr_trace_order_make(mr_trace_spans(t.trace), mr_trace_count(t.trace),
                               mr_trace_stream_at(t.trace, 0), mr_trace_stream_count(t.trace),
                               &order));
        for (int j = 0; j < p.count; j++)
            for (int i = 0; i < j; i++) {
                char seen[2 * STEPS] = {0};
                if (t.span[i] == MR_TRACE_NONE || t.span[j] == MR_TRACE_NONE ||
                    !on_device(&p.steps[i]) || !on_device(&p.steps[j]))
                    continue;
                assert_int_equal(is_behind(&order, t.span[i], t.span[j], seen), before[i][j]);
            }
        mr_trace_order_free(&order);
        mr_trace_release(t.trace);
    }
}

/* ---- causes that no backend names */

/* Two causes that hold at once are both right: which of them was later is decided by microseconds. */
static bool nearly_at_once(const mr_span *one) {
    int64_t late = (int64_t)one->ready - (int64_t)one->call;
    return late < 30000;
}

/* As on hardware: of work there are only times, of all else nothing. */
static void forget_causes(const mr_trace *trace, mr_span *out_spans) {
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        mr_span *one = &out_spans[i];
        *one = mr_trace_spans(trace)[i];
        one->held_by = MR_CAUSE_NONE;
        one->holder = MR_TRACE_NONE;
        one->ready = one->begin;
        if (!mr_span_is_work(one)) one->ran = false;
    }
}

static void causes_follow_from_order_and_times(void **state) {
    (void)state;
    int compared = 0, same = 0, markers = 0;
    for (int round = 0; round < ROUNDS / 2; round++) {
        program p = random_program((uint64_t)round);
        static mr_span spans[2 * STEPS];
        for (int i = 0; i < p.count; i++) p.steps[i].length *= 20;
        traced t = run(&p, NOTHING, "h200");
        forget_causes(t.trace, spans);
        OK(mr_trace_find_causes(spans, mr_trace_count(t.trace), mr_trace_stream_at(t.trace, 0),
                                mr_trace_stream_count(t.trace)));
        for (size_t i = 0; i < mr_trace_count(t.trace); i++) {
            const mr_span *exact = &mr_trace_spans(t.trace)[i], *found = &spans[i];
            if (exact->stream == MR_TRACE_NONE || !exact->ran) continue;
            assert_true(found->ran);
            assert_true(llabs((long long)found->begin - (long long)exact->begin) < 10000);
            markers += !mr_span_is_work(exact);
            if (!mr_span_is_work(exact) || nearly_at_once(exact)) continue;
            compared++;
            /* Each of several that ended at once is right: of two waits for one event, or a record in the default
             * stream that leads back to the stream's own work. */
            uint32_t marker, left, right;
            left = mr_trace_work_behind(mr_trace_spans(t.trace), (uint32_t)i, &marker);
            right = mr_trace_work_behind(spans, (uint32_t)i, &marker);
            assert_true(left != MR_TRACE_NONE && right != MR_TRACE_NONE);
            assert_true(llabs((long long)spans[left].end - (long long)spans[right].end) < 1000);
            same += exact->held_by == found->held_by && exact->holder == found->holder;
        }
        mr_trace_release(t.trace);
    }
    assert_true(compared > 1000 && markers > 1000 && same > compared * 9 / 10);
}

/* ---- replanning */

static void replanning_nothing_changes_nothing(void **state) {
    (void)state;
    const char *models[] = {free_model(), "h200", "t4"};
    for (int round = 0; round < ROUNDS; round++) {
        program p = random_program((uint64_t)round);
        traced t = run(&p, NOTHING, models[round % 3]);
        const mr_span *spans = mr_trace_spans(t.trace);
        mr_trace_replan *replan;
        OK(mr_trace_replan_open(t.trace, &replan));
        for (uint32_t i = 0; i < mr_trace_count(t.trace); i++) {
            OK(mr_trace_replan_without(replan,
                                       (mr_trace_removal){i, MR_CAUSE_NONE, MR_TRACE_NONE}));
            int64_t begin = mr_trace_replan_begin(replan, i);
            if (spans[i].ran) assert_int_equal(begin, spans[i].begin);
        }
        mr_trace_replan_close(replan);
        mr_trace_release(t.trace);
    }
}

static void without_a_wait_the_rules_say_the_same(void **state) {
    (void)state;
    int earlier = 0;
    for (int round = 0; round < ROUNDS; round++) {
        program p = random_program((uint64_t)round);
        naive n = simulate(&p, NOTHING);
        traced t = run(&p, NOTHING, free_model());
        mr_trace_replan *replan;
        OK(mr_trace_replan_open(t.trace, &replan));
        for (int skip = 0; skip < p.count; skip++) {
            action what = p.steps[skip].what;
            if (what == DO_SPIN || what == DO_RECORD || t.span[skip] == MR_TRACE_NONE) continue;
            naive without = simulate(&p, skip);
            mr_cause rule = what == DO_WAIT ? MR_CAUSE_EVENT : MR_CAUSE_SYNCHRONIZE;
            mr_trace_removal removal = {t.span[skip], rule, t.span[skip]};
            OK(mr_trace_replan_without(replan, removal));
            for (int i = skip + 1; i < p.count; i++) {
                if (p.steps[i].what != DO_SPIN) continue;
                int64_t begin = mr_trace_replan_begin(replan, t.span[i]);
                assert_int_equal(begin, without.begin[i]);
                earlier += without.begin[i] < n.begin[i];
                if (i > skip + 3) i += 5; /* each is a pass over all */
            }
        }
        mr_trace_replan_close(replan);
        mr_trace_release(t.trace);
    }
    assert_true(earlier > 1000);
}

/* With latencies the trace cannot know all; but a run without the wait is near. */
static void without_a_wait_a_run_is_near(void **state) {
    (void)state;
    int compared = 0;
    for (int round = 0; round < ROUNDS / 8; round++) {
        program p = random_program((uint64_t)round);
        for (int i = 0; i < p.count; i++) p.steps[i].length *= 20;
        traced t = run(&p, NOTHING, "h200");
        mr_trace_replan *replan;
        OK(mr_trace_replan_open(t.trace, &replan));
        for (int skip = (int)(random_state % 7); skip < p.count; skip += 7) {
            action what = p.steps[skip].what;
            if (what == DO_SPIN || what == DO_RECORD || t.span[skip] == MR_TRACE_NONE) continue;
            mr_cause rule = what == DO_WAIT ? MR_CAUSE_EVENT : MR_CAUSE_SYNCHRONIZE;
            traced without = run(&p, skip, "h200");
            for (int i = skip + 1; i < p.count; i++) {
                if (p.steps[i].what != DO_SPIN) continue;
                OK(mr_trace_replan_without(replan,
                                           (mr_trace_removal){t.span[skip], rule, t.span[skip]}));
                int64_t begin = mr_trace_replan_begin(replan, t.span[i]);
                int64_t ran = (int64_t)mr_trace_spans(without.trace)[without.span[i]].begin;
                assert_true(llabs(begin - ran) < 30000); /* kernels take 20 to 800 us */
                compared++;
                break;
            }
            mr_trace_release(without.trace);
        }
        mr_trace_replan_close(replan);
        mr_trace_release(t.trace);
    }
    assert_true(compared > 30);
}

/* ---- overlap and idle time */

static bool is_busy(const mr_trace *trace, uint32_t stream, uint64_t from, uint64_t to) {
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        const mr_span *s = &mr_trace_spans(trace)[i];
        if (s->kind == MR_COMMAND_OP && s->stream == stream && s->begin <= from && s->end >= to)
            return true;
    }
    return false;
}

static int by_value(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* All times between which nothing changes; returns how many. */
static size_t instants(const mr_trace *trace, uint64_t *out) {
    size_t count = 0;
    out[count++] = 0;
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        const mr_span *s = &mr_trace_spans(trace)[i];
        if (!s->ran) continue;
        out[count++] = s->begin;
        out[count++] = s->end;
    }
    qsort(out, count, sizeof *out, by_value);
    return count;
}

static uint64_t last_begin(const mr_trace *trace, uint32_t stream) {
    uint64_t last = 0;
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        const mr_span *s = &mr_trace_spans(trace)[i];
        if (s->kind == MR_COMMAND_OP && s->stream == stream && s->begin > last) last = s->begin;
    }
    return last;
}

static void overlap_and_idle_time_are_those_of_samples(void **state) {
    (void)state;
    static uint64_t times[4 * STEPS];
    for (int round = 0; round < ROUNDS; round++) {
        program p = random_program((uint64_t)round);
        traced t = run(&p, NOTHING, round % 2 ? "h200" : free_model());
        size_t count = instants(t.trace, times);
        uint32_t streams = (uint32_t)mr_trace_stream_count(t.trace);
        for (uint32_t a = 0; a < streams; a++) {
            for (uint32_t b = 0; b < streams; b++) {
                uint64_t overlap, expected = 0;
                for (size_t i = 0; i + 1 < count; i++)
                    if (times[i] < times[i + 1] && is_busy(t.trace, a, times[i], times[i + 1]) &&
                        is_busy(t.trace, b, times[i], times[i + 1]))
                        expected += times[i + 1] - times[i];
                OK(mr_trace_overlap(t.trace, a, b, &overlap));
                assert_int_equal(overlap, expected);
            }
            uint64_t idle = 0, expected = 0, until = last_begin(t.trace, a);
            for (size_t i = 0; i + 1 < count && times[i + 1] <= until; i++)
                if (!is_busy(t.trace, a, times[i], times[i + 1]))
                    expected += times[i + 1] - times[i];
            mr_trace_gaps gaps;
            OK(mr_trace_idle(t.trace, a, &gaps));
            for (size_t g = 0; g < gaps.count; g++) {
                const mr_trace_gap *gap = &gaps.items[g];
                assert_true(gap->begin < gap->end);
                assert_int_equal(mr_trace_spans(t.trace)[gap->next].begin, gap->end);
                idle += gap->end - gap->begin;
            }
            assert_int_equal(idle, expected);
            mr_vec_free(&gaps);
        }
        mr_trace_release(t.trace);
    }
}

/* ---- why: a case for each cause */

typedef struct {
    mr_trace_why why;
    int line; /* of the span that is the cause; 0: none */
} answer;

static answer ask(const mr_trace *trace, int line_a, int line_b) {
    const mr_span *spans = mr_trace_spans(trace);
    uint32_t a = MR_TRACE_NONE, b = MR_TRACE_NONE;
    answer out;
    for (uint32_t i = 0; i < mr_trace_count(trace); i++) {
        if (spans[i].where.line == line_a) a = i;
        if (spans[i].where.line == line_b) b = i;
    }
    assert_true(a != MR_TRACE_NONE && b != MR_TRACE_NONE);
    OK(mr_trace_explain(trace, a, b, &out.why));
    out.line = out.why.holder == MR_TRACE_NONE ? 0 : spans[out.why.holder].where.line;
    return out;
}

static mr_tracer *why_tracer;
static void at(int line) {
    caller.where = (mr_site){"race.lua", line};
}
static void begin_why(void) {
    OK(mr_tracer_start(machine, 0, &why_tracer));
}
static answer end_why(int a, int b) {
    mr_trace *trace;
    OK(mr_device_drain(device));
    OK(mr_tracer_snapshot(why_tracer, 0, NULL, 0, &trace));
    mr_tracer_stop(why_tracer);
    answer out = ask(trace, a, b);
    mr_trace_release(trace);
    return out;
}
static void assert_why(answer got, mr_cause cause, int line, double saved_ms) {
    if (got.why.overlapped) fail_msg("they overlapped");
    assert_string_equal(mr_cause_text(got.why.cause), mr_cause_text(cause));
    assert_int_equal(got.line, line);
    assert_ms((double)got.why.saved * 1e-6, saved_ms);
}

static void spin_at(int line, mr_stream *stream, double length) {
    at(line);
    OK(mr_spin(&caller, stream, ns(length)));
}

static void why_same_stream(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    begin_why();
    spin_at(1, a, 2);
    spin_at(2, a, 1);
    assert_why(end_why(1, 2), MR_CAUSE_STREAM, 1, 2);
}

static void why_event(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    begin_why();
    spin_at(1, a, 2);
    at(2);
    mr_event *event = record(a);
    at(3);
    OK(mr_stream_wait_event(&caller, b, event));
    spin_at(4, b, 1);
    spin_at(5, b, 1);
    answer got = end_why(5, 1);
    assert_why(got, MR_CAUSE_EVENT, 3, 2);
    assert_non_null(strstr(got.why.text, "race.lua:3"));
    assert_non_null(strstr(got.why.text, "race.lua:2"));
}

static void why_default_stream(void **state) {
    (void)state;
    mr_stream *a = blocking_stream();
    begin_why();
    spin_at(1, a, 2);
    spin_at(2, device->legacy, 1);
    assert_why(end_why(1, 2), MR_CAUSE_DEFAULT_STREAM, 1, 2);
}

static void why_full_multiprocessors(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    begin_why();
    at(1);
    occupy(a, 2, (uint32_t)device->properties.sm_count);
    at(2);
    occupy(b, 1, 1);
    assert_why(end_why(1, 2), MR_CAUSE_MULTIPROCESSORS, 1, 2);
}

static void why_copy_engine(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *to[2] = {tensor(a, 1 << 22), tensor(b, 1 << 22)};
    mr_tensor *from = tensor_of(MR_MEMORY_PINNED, NULL, 1 << 22);
    begin_why();
    at(1);
    copy(a, to[0], from);
    at(2);
    copy(b, to[1], from);
    answer got = end_why(1, 2);
    assert_int_equal(got.why.cause, MR_CAUSE_COPY_ENGINE);
    assert_int_equal(got.line, 1);
    assert_true(got.why.saved > ns(0.25));
}

static void why_synchronize(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    begin_why();
    spin_at(1, a, 2);
    at(2);
    OK(mr_stream_synchronize(&caller, a));
    spin_at(3, b, 1);
    assert_why(end_why(1, 3), MR_CAUSE_SYNCHRONIZE, 2, 2);
}

static void why_pageable(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *on_host = tensor_of(MR_MEMORY_PAGEABLE, NULL, 64), *t = tensor(a, 64);
    begin_why();
    spin_at(1, a, 2);
    at(2);
    copy(a, on_host, t);
    spin_at(3, b, 1);
    assert_why(end_why(1, 3), MR_CAUSE_PAGEABLE, 2, 2);
}

static void why_host(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    begin_why();
    spin_at(1, a, 0.002);
    spin_at(2, b, 0.001);
    answer got = end_why(1, 2);
    assert_int_equal(got.why.cause, MR_CAUSE_HOST);
}

static mr_status do_nothing(void *context) {
    (void)context;
    return MR_OK;
}

static void why_host_function_is_its_stream(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    begin_why();
    spin_at(1, a, 2);
    at(2);
    OK(mr_stream_host_function(&caller, a, do_nothing, NULL, NULL));
    spin_at(3, a, 1);
    assert_int_equal(end_why(1, 3).why.cause, MR_CAUSE_STREAM);
}

static void why_nothing_two_that_overlap(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    begin_why();
    spin_at(1, a, 2);
    spin_at(2, b, 1);
    answer got = end_why(2, 1);
    assert_true(got.why.overlapped);
    assert_int_equal(got.why.overlap, ns(1));
}

static void why_not_of_a_wait(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    begin_why();
    spin_at(1, a, 2);
    at(2);
    record(a);
    mr_trace *trace;
    mr_trace_why why;
    OK(mr_device_drain(device));
    OK(mr_tracer_snapshot(why_tracer, 0, NULL, 0, &trace));
    mr_tracer_stop(why_tracer);
    FAILS(MR_CODE_INVALID_ARGUMENT, mr_trace_explain(trace, 0, 1, &why));
    mr_trace_release(trace);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_those_of_the_rules),
        cmocka_unit_test(the_critical_path_is_a_longest_path),
        cmocka_unit_test(what_is_on_the_path_decides),
        cmocka_unit_test(the_order_is_that_of_the_rules),
        cmocka_unit_test(causes_follow_from_order_and_times),
        cmocka_unit_test(replanning_nothing_changes_nothing),
        cmocka_unit_test(without_a_wait_the_rules_say_the_same),
        cmocka_unit_test(without_a_wait_a_run_is_near),
        cmocka_unit_test(overlap_and_idle_time_are_those_of_samples),
        TEST(why_same_stream),
        TEST(why_event),
        TEST(why_default_stream),
        TEST(why_full_multiprocessors),
        TEST(why_copy_engine),
        TEST(why_synchronize),
        TEST(why_pageable),
        TEST(why_host),
        TEST(why_host_function_is_its_stream),
        TEST(why_nothing_two_that_overlap),
        TEST(why_not_of_a_wait),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(free_model());
    return failed;
}
