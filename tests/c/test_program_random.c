/* Random programs on the virtual GPU, recorded and carried out again: the same values, answers, errors, times, bytes
 * and verdicts of the checker, under the chooser that they ran with. MR_PROGRAMS sets how many (2000; 10000 in
 * `make check-long`; nightly more), MR_PROGRAM_SEED where they begin. */
#include <stdlib.h>

#include "naive_hazard.c"
#include "hazard_programs.c"
#include "ops/ids.h"
#include "program/program.h"
#include "virtual_fixture.h"

/* ---- running one by the model's own functions */

typedef struct {
    const sample_program *program;
    /* New device memory holds the bytes that its last owner wrote. A program knows no owner of before the recording, so
     * then nothing is freed. */
    bool frees;
    mr_stream *stream[MOST_STREAMS];
    mr_event *event[MOST_EVENTS];
    mr_tensor *tensor[MOST_TENSORS];
} runner;

typedef struct {
    runner *runner;
    int step;
} touch_context;
static touch_context contexts[MOST_STEPS];

static void ignore(mr_status status) {
    mr_error_destroy(status); /* what comes of it is part of what is recorded */
}

static void at_step(int i) {
    caller.where = (mr_site){"random.lua", i + 1};
}

static void make_sample_tensor(runner *r, int t, mr_stream *stream) {
    static const mr_memory_kind kinds[] = {MR_MEMORY_DEVICE, MR_MEMORY_PINNED, MR_MEMORY_PAGEABLE};
    int64_t size = 16;
    mr_memory_kind kind = kinds[r->program->tensor[t].memory];
    OK(mr_tensor_create(&caller, kind, kind == MR_MEMORY_DEVICE ? stream : NULL, MR_F32, 1, &size,
                        &r->tensor[t]));
    r->tensor[t]->storage->blank = r->program->tensor[t].blank;
}

static mr_tensor *view_of(runner *r, const sample_access *a) {
    int64_t shape[2], stride[2];
    mr_tensor *view;
    for (int d = 0; d < a->view.ndim; d++) {
        shape[d] = a->view.shape[d];
        stride[d] = a->view.stride[d];
    }
    OK(mr_tensor_alias(&caller, r->tensor[a->tensor], a->view.size == 4 ? MR_F32 : MR_U8,
                       a->view.ndim, shape, stride, a->view.offset, &view));
    return view;
}

static void run_op(runner *r, const sample_step *s, mr_stream *stream) {
    mr_tensor *reads[3], *writes[3], *views[3];
    mr_abstract op = {.name = s->event ? "mix" : NULL,
                      .reads = reads,
                      .writes = writes,
                      .duration_ns = 20000,
                      .blocks = 1,
                      .stream = stream};
    for (int i = 0; i < s->access_count; i++) {
        views[i] = view_of(r, &s->access[i]);
        if (s->access[i].access & NAIVE_READ) reads[op.read_count++] = views[i];
        if (s->access[i].access & NAIVE_WRITE) writes[op.write_count++] = views[i];
    }
    ignore(mr_abstract_op(&caller, &op));
    for (int i = 0; i < s->access_count; i++) mr_tensor_release(views[i]);
}

static void run_copy(runner *r, const sample_step *s, mr_stream *stream) {
    mr_tensor *to = view_of(r, &s->access[0]), *from = view_of(r, &s->access[1]);
    ignore(mr_memcpy(&caller, to, from, stream, s->synchronous));
    mr_tensor_release(to);
    mr_tensor_release(from);
}

/* The host reads, writes by itself, or fills by an operation of the table. */
static void touch_host(runner *r, const sample_step *s, int step) {
    if (!s->access_count) return;
    mr_tensor *view = view_of(r, &s->access[0]);
    if (step % 2 && s->access[0].access == NAIVE_WRITE && !mr_tensor_self_overlaps(view)) {
        mr_tensor *out;
        bool fresh;
        mr_call call = {.out = view};
        call.in[0].scalar = (mr_scalar){.is_integer = true, .i = step, .f = step};
        mr_status status = mr_call_run(&caller, &mr_ops[MR_OP_fill], &call, &out, &fresh);
        if (!status) mr_tensor_release(out);
        ignore(status);
    } else {
        mr_status status = mr_host_access(&caller, "touch", view, s->access[0].access);
        if (!status && s->access[0].access & NAIVE_WRITE)
            *(unsigned char *)mr_tensor_data(view) = (unsigned char)step;
        ignore(status);
    }
    mr_tensor_release(view);
}

static mr_status host_function(void *context) {
    const touch_context *touch = context;
    const sample_step *s = &touch->runner->program->step[touch->step];
    mr_site where = caller.where;
    at_step(touch->step);
    if (s->access_count && touch->runner->tensor[s->access[0].tensor])
        touch_host(touch->runner, s, touch->step);
    caller.where = where;
    return touch->step % 7 ? MR_OK
                           : mr_fail(MR_CODE_HOST_FUNCTION, "line %d failed", touch->step + 1);
}

static void drop_context(void *context) {
    (void)context;
}

/* A query that says yes lets the host do something else than one that says no. */
static void run_query(runner *r, const sample_step *s) {
    bool done = false;
    if (s->kind == STEP_STREAM_QUERY) ignore(mr_stream_query(&caller, r->stream[s->stream], &done));
    else ignore(mr_event_query(&caller, r->event[s->event], &done));
    if (done) mr_machine_time(machine);
}

static void replace(runner *r, const sample_step *s) {
    mr_stream *old = r->stream[s->stream];
    mr_stream_options options = {.nonblocking = !old->blocking};
    if (machine->lost) return;
    if (s->event) ignore(mr_stream_close(&caller, old));
    OK(mr_stream_create(&caller, old->device, &options, &r->stream[s->stream]));
    mr_stream_release(old);
}

static void free_tensor(runner *r, const sample_step *s) {
    mr_storage *storage = r->tensor[s->tensor]->storage;
    mr_free_mode mode = s->synchronous ? MR_FREE_SYNC
                        : s->event     ? MR_FREE_ON_STREAM
                                       : MR_FREE_OWN_STREAM;
    if (s->event < 2) ignore(mr_storage_free(&caller, storage, mode, r->stream[s->stream]));
    mr_storage_drop_handle(storage);
    mr_tensor_release(r->tensor[s->tensor]);
    r->tensor[s->tensor] = NULL;
}

static void run_step(runner *r, int i) {
    const sample_step *s = &r->program->step[i];
    mr_stream *stream = r->stream[s->stream];
    double ms;
    for (int k = 0; k < s->access_count; k++)
        if (!r->tensor[s->access[k].tensor]) return;
    at_step(i);
    switch (s->kind) {
    case STEP_OP: run_op(r, s, stream); break;
    case STEP_COPY: run_copy(r, s, stream); break;
    case STEP_RECORD: ignore(mr_event_record(&caller, r->event[s->event], stream)); break;
    case STEP_WAIT: ignore(mr_stream_wait_event(&caller, stream, r->event[s->event])); break;
    case STEP_STREAM_SYNC: ignore(mr_stream_synchronize(&caller, stream)); break;
    case STEP_EVENT_SYNC:
        ignore(mr_event_synchronize(&caller, r->event[s->event]));
        ignore(mr_event_elapsed(r->event[0], r->event[s->event], &ms));
        break;
    case STEP_DEVICE_SYNC:
        ignore(mr_device_synchronize(&caller, machine->devices[s->device]));
        break;
    case STEP_STREAM_QUERY:
    case STEP_EVENT_QUERY: run_query(r, s); break;
    case STEP_HOST_ACCESS: touch_host(r, s, i); break;
    case STEP_HOST_FUNCTION:
        contexts[i] = (touch_context){r, i};
        ignore(mr_stream_host_function(&caller, stream, host_function, drop_context, &contexts[i]));
        break;
    case STEP_ALLOC:
        if (!machine->lost) make_sample_tensor(r, s->tensor, stream);
        break;
    case STEP_FREE:
        if (r->tensor[s->tensor] && r->frees) free_tensor(r, s);
        break;
    case STEP_RECORD_STREAM:
        if (r->tensor[s->tensor])
            ignore(mr_storage_record_stream(r->tensor[s->tensor]->storage, stream));
        break;
    case STEP_REPLACE_STREAM: replace(r, s); break;
    case STEP_RUN:
    case STEP_NOTHING: break;
    }
}

static void make_objects(runner *r) {
    const sample_program *p = r->program;
    at_step(MOST_STEPS);
    for (int i = 0; i < p->device_count * p->device_count && p->step_count % 8; i++) /* most: R59 */
        ignore(mr_device_enable_peer_access(machine->devices[i / p->device_count],
                                            machine->devices[i % p->device_count]));
    for (int i = 0; i < p->stream_count; i++) {
        mr_device *d = machine->devices[p->stream[i].device];
        mr_stream_options options = {.nonblocking = !p->stream[i].blocking};
        r->stream[i] = p->stream[i].legacy ? d->legacy : d->per_thread;
        if (p->stream[i].legacy || p->stream[i].per_thread) mr_stream_retain(r->stream[i]);
        else OK(mr_stream_create(&caller, d, &options, &r->stream[i]));
    }
    for (int i = 0; i < p->event_count; i++) {
        mr_event_options options = {.timing = i % 2 == 0};
        OK(mr_event_create(&caller, &options, &r->event[i]));
    }
    for (int t = 0; t < p->tensor_count; t++) {
        bool later = false;
        for (int i = 0; i < p->step_count; i++)
            later |= p->step[i].kind == STEP_ALLOC && p->step[i].tensor == t;
        if (!later) make_sample_tensor(r, t, machine->devices[p->tensor[t].device]->legacy);
    }
}

static void drop_objects(runner *r) {
    for (int t = 0; t < r->program->tensor_count; t++) {
        if (!r->tensor[t]) continue;
        mr_storage_drop_handle(r->tensor[t]->storage);
        mr_tensor_release(r->tensor[t]);
    }
    for (int i = 0; i < r->program->event_count; i++) mr_event_release(r->event[i]);
    for (int i = 0; i < r->program->stream_count; i++) mr_stream_release(r->stream[i]);
}

/* ---- the checker's verdict on a machine */

typedef MR_VEC(mr_hazard_found) verdict;

static void note_found(void *context, const mr_hazard_found *found) {
    verdict *v = context;
    assert_true(mr_vec_push(v, *found));
}

static mr_hazard *watch(mr_machine *watched, verdict *v) {
    mr_hazard *hazard;
    mr_hazard_watcher watcher = {.context = v, .found = note_found};
    v->count = 0;
    OK(mr_hazard_create(watched, NULL, &hazard));
    mr_hazard_watch(hazard, &watcher);
    OK(mr_hazard_set_mode(hazard, MR_HAZARD_COLLECT));
    return hazard;
}

/* ---- both */

static verdict seen, replayed;

static mr_program *record_program(const sample_program *p, const char *chooser, bool from_start) {
    char devices[16];
    static runner r;
    mr_recorder *recorder;
    mr_program *program;
    snprintf(devices, sizeof devices, "virtual:%d", p->device_count);
    open_machine(devices, chooser);
    r = (runner){.program = p, .frees = from_start};
    if (from_start) OK(mr_program_record(machine, 0, &recorder));
    mr_hazard *hazard = from_start ? watch(machine, &seen) : NULL;
    make_objects(&r);
    int begin = from_start ? 0 : p->step_count / 3;
    for (int i = 0; i < begin; i++) run_step(&r, i);
    if (!from_start) {
        mr_status status = mr_program_record(machine, 0, &recorder);
        for (; status && !machine->lost; status = mr_program_record(machine, 0, &recorder))
            mr_error_destroy(status); /* a host function's, which the wait has run */
        if (status) {
            mr_error_destroy(status);
            drop_objects(&r);
            mr_machine_close(machine);
            return NULL;
        }
        hazard = watch(machine, &seen);
    }
    for (int i = begin; i < p->step_count; i++) run_step(&r, i);
    OK(mr_recorder_finish(recorder, &program));
    mr_hazard_destroy(hazard);
    drop_objects(&r);
    left_over = 0;
    mr_machine_close(machine);
    assert_int_equal(left_over, 0);
    return program;
}

/* What the checker finds in `replayed` beside what it found in `seen`; NULL: the same. */
static const char *verdict_differs(const char *where) {
    static char text[400];
    for (size_t i = 0; i < seen.count || i < replayed.count; i++) {
        mr_hazard_found none = {0}, a = i < seen.count ? seen.items[i] : none,
                        b = i < replayed.count ? replayed.items[i] : none;
        if (a.kind == b.kind && a.first_seq == b.first_seq && a.second_seq == b.second_seq &&
            a.bytes_first == b.bytes_first && a.bytes_last == b.bytes_last)
            continue;
        snprintf(text, sizeof text, "hazard %zu of %zu: %s #%d #%d, and in the %s %s #%d #%d",
                 i + 1, seen.count, mr_hazard_kind_text(a.kind), (int)a.first_seq,
                 (int)a.second_seq, where, mr_hazard_kind_text(b.kind), (int)b.first_seq,
                 (int)b.second_seq);
        return text;
    }
    return NULL;
}

/* The writes of a function that has not run by the end are not known, so reads of those bytes have not been judged. */
static bool has_races(const verdict *v) {
    for (size_t i = 0; i < v->count; i++)
        if (seen.count || v->items[i].kind != MR_HAZARD_UNINITIALISED_READ) return true;
    return false;
}

/* The same without carrying anything out. A host function counts as run at once, so of a program with some the pairs
 * may be others; whether there are any is the same. The second telling is with other numbers. */
static const char *telling_differs(const sample_program *p, const mr_program *program) {
    mr_teller *teller;
    bool has_function = false;
    const char *text = NULL;
    for (int i = 0; i < p->step_count; i++) has_function |= p->step[i].kind == STEP_HOST_FUNCTION;
    OK(mr_teller_open(program, &teller));
    for (uint64_t spread = 1; spread <= MR_PROGRAM_SPREAD && !text; spread *= MR_PROGRAM_SPREAD) {
        mr_telling telling = {.spread = spread, .until = SIZE_MAX};
        mr_teller_rewind(teller, spread);
        mr_hazard *hazard = watch(mr_teller_machine(teller), &replayed);
        OK(mr_teller_tell(teller, &telling));
        mr_hazard_destroy(hazard);
        for (size_t i = 0; i < replayed.count; i++) {
            replayed.items[i].first_seq /= spread;
            replayed.items[i].second_seq /= spread;
        }
        if (!has_function) text = verdict_differs("telling");
        else if ((seen.count > 0) != has_races(&replayed)) text = "only one of the two has hazards";
    }
    mr_teller_close(teller);
    return text;
}

static const char *replay_differs(const mr_program *program, mr_difference *d) {
    static char text[400];
    mr_player_options options = {.backend = &mr_virtual_backend};
    mr_player *player;
    OK(mr_player_open(program, &options, &player));
    mr_hazard *hazard = watch(mr_player_machine(player), &replayed);
    mr_error_destroy(mr_player_run(player, SIZE_MAX, d)); /* one that was not recorded is in *d */
    if (mr_player_position(player) == mr_program_count(program)) mr_player_compare_end(player, d);
    mr_hazard_destroy(hazard);
    mr_player_close(player);
    if (d->kind) {
        mr_program_item item = {0};
        if (d->item < mr_program_count(program)) item = mr_program_item_at(program, d->item);
        snprintf(text, sizeof text, "item %zu of %zu, line %d: %s", d->item + 1,
                 mr_program_count(program), item.where.line, d->text);
        return text;
    }
    return verdict_differs("replay");
}

/* ---- going back to a mark */

static const char *end_differs(mr_player *player) {
    static mr_difference d;
    d = (mr_difference){0};
    mr_error_destroy(mr_player_run(player, SIZE_MAX, &d));
    if (!d.kind) mr_player_compare_end(player, &d);
    return d.kind ? d.text : NULL;
}

/* From a random point to the end, twice from there again: each time what was recorded. */
static const char *going_back_differs(const mr_program *program, uint64_t seed) {
    mr_player_options options = {.backend = &mr_virtual_backend};
    mr_player *player;
    mr_player_mark *mark;
    mr_difference d = {0};
    size_t from = seed * 7919 % (mr_program_count(program) + 1);
    OK(mr_player_open(program, &options, &player));
    mr_error_destroy(mr_player_run(player, from, &d));
    const char *text = d.kind ? d.text : NULL;
    mr_status status = text ? MR_OK : mr_player_mark_make(player, &mark);
    if (!text && !status) {
        text = end_differs(player);
        for (int again = 0; again < 2 && !text; again++) {
            OK(mr_player_go_back(player, mark));
            text = end_differs(player);
        }
        mr_player_mark_drop(mark);
    }
    mr_error_destroy(status); /* the device is lost already */
    static char kept[400];
    if (text)
        snprintf(kept, sizeof kept, "after going back to item %zu of %zu: %s", from,
                 mr_program_count(program), text);
    mr_player_close(player);
    return text ? kept : NULL;
}

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t usual(void) {
    return getenv("MILLRACE_LONG") ? 10000 : 2000;
}

typedef struct {
    uint64_t exact, hazards;
} tally;

static void try_program(bool from_start, uint64_t seed, tally *io_tally) {
    static sample_program p;
    char random[40];
    const char *choosers[] = {"timed", "adversarial", random};
    const char *chooser = choosers[seed % (from_start ? 3 : 2)];
    mr_difference d = {0};
    snprintf(random, sizeof random, "random:%llu", (unsigned long long)seed);
    program_random(seed, &p);
    mr_program *program = record_program(&p, chooser, from_start);
    bool is_exact = program && !mr_program_inexact(program);
    const char *text = is_exact ? replay_differs(program, &d) : NULL;
    if (is_exact && !text) text = telling_differs(&p, program);
    if (is_exact && !text && seed % 5 == 0) text = going_back_differs(program, seed);
    io_tally->exact += is_exact;
    io_tally->hazards += seen.count > 0;
    mr_program_release(program);
    if (!text) return;
    printf("-- seed %llu, %s: %s\n", (unsigned long long)seed, chooser, text);
    program_print(&p);
    fail_msg("the replay differs");
}

static void try_programs(bool from_start, uint64_t count) {
    uint64_t first = setting("MR_PROGRAM_SEED", 1);
    tally all = {0};
    for (uint64_t seed = first; seed < first + count; seed++) try_program(from_start, seed, &all);
    printf("%llu of %llu programs are exact, %llu have hazards\n", (unsigned long long)all.exact,
           (unsigned long long)count, (unsigned long long)all.hazards);
    assert_true(all.exact * 10 > count * 8);
    assert_true(count < 100 || all.hazards > count / 20);
}

/* A host function fails after the mark, and no call raises it before the player goes back. */
static void seeds_that_failed_once(void **state) {
    static const uint64_t seeds[] = {22575};
    tally all = {0};
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) try_program(true, seeds[i], &all);
    assert_int_equal(all.exact, sizeof seeds / sizeof *seeds);
}

static void a_replay_gives_the_same(void **state) {
    (void)state;
    try_programs(true, setting("MR_PROGRAMS", usual()));
}

static void also_when_recording_began_later(void **state) {
    (void)state;
    try_programs(false, setting("MR_PROGRAMS", usual()) / 10);
}

static int free_verdicts(void **state) {
    (void)state;
    mr_vec_free(&seen);
    mr_vec_free(&replayed);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(seeds_that_failed_once),
                                       cmocka_unit_test(a_replay_gives_the_same),
                                       cmocka_unit_test(also_when_recording_began_later)};
    return cmocka_run_group_tests(tests, NULL, free_verdicts);
}
