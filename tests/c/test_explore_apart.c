/* Independent races explored apart and combined, against the search of all of them together, on random programs of
 * parts that meet now and then: the same outcomes, each from as many classes, and each schedule of them leads there.
 * In half of the programs the host often reads what the parts write; it may read the same in all schedules.
 * MR_EXPLORE_PROGRAMS sets how many (2500; 100000 in `make check-long`), MR_EXPLORE_SEED where they begin. */
#include <stdlib.h>

#include "program/program.h"

#include "naive_hazard.c"
#include "virtual_fixture.h"
#include "explore_programs.c"

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- programs of parts */

/* A part has a tensor of its own, or a half of one. */
static sample_access in_part(int part, bool halves, uint8_t access) {
    sample_access a = halves ? whole(part / 2, access) : part_of(part, access);
    if (!halves) return a;
    a.view.shape[0] = ELEMENTS / 2;
    a.view.offset = part % 2 * ELEMENTS / 2;
    return a;
}

static void part_op(const sample_program *p, sample_step *s, int parts, bool halves, int meets) {
    int part = below(parts), from = below(meets) ? part : below(parts);
    bool fits = p->tensor[halves ? from / 2 : from].memory != MEMORY_PAGEABLE;
    s->kind = STEP_OP;
    s->access[s->access_count++] = in_part(part, halves, NAIVE_WRITE);
    if (below(2) && fits) s->access[s->access_count++] = in_part(from, halves, NAIVE_READ);
}

/* The device comes to rest, a part is often written anew, and the host reads it. */
static void read_part(sample_program *p, int parts, bool halves) {
    int part = below(parts);
    if (p->tensor[halves ? part / 2 : part].memory != MEMORY_PINNED ||
        p->step_count + 4 > MOST_STEPS)
        return;
    p->step[p->step_count++] = (sample_step){.kind = STEP_DEVICE_SYNC};
    if (below(8)) {
        sample_step *s = &p->step[p->step_count++];
        *s = (sample_step){.kind = STEP_OP, .stream = 1 + below(p->stream_count - 1)};
        s->access[s->access_count++] = in_part(part, halves, NAIVE_WRITE);
        p->step[p->step_count++] = (sample_step){.kind = STEP_DEVICE_SYNC};
    }
    sample_step *read = &p->step[p->step_count++];
    *read = (sample_step){.kind = STEP_HOST_ACCESS};
    read->access[read->access_count++] = in_part(part, halves, NAIVE_READ);
}

static void part_step(const sample_program *p, sample_step *s, int parts, bool halves, int meets) {
    int kind = below(24);
    s->stream = 1 + below(p->stream_count - 1);
    if (kind < 18) {
        part_op(p, s, parts, halves, meets);
    } else if (kind < 20) {
        s->kind = STEP_COPY;
        s->access_count = 2;
        s->access[0] = in_part(below(parts), halves, NAIVE_WRITE);
        s->access[1] = in_part(below(parts), halves, NAIVE_READ);
        s->access[0].view = s->access[1].view = in_part(0, true, 0).view;
        if (s->access[0].tensor == s->access[1].tensor) *s = (sample_step){.kind = STEP_NOTHING};
    } else if (kind < 21) {
        random_host_step(p, s, STEP_HOST_ACCESS);
    } else {
        static const step_kind others[] = {STEP_RECORD, STEP_WAIT, STEP_STREAM_SYNC};
        s->kind = others[below(3)];
    }
}

static void random_parts(uint64_t seed, sample_program *p) {
    memset(p, 0, sizeof *p);
    random_state = seed * 6007 + 5;
    bool reads = seed % 2;
    bool halves = below(4) == 0;
    int meets = reads ? 16 : 2 + below(12);
    p->device_count = 1;
    p->stream_count = 4 + below(3);
    p->stream[0].legacy = p->stream[1].per_thread = true;
    p->event_count = 1;
    p->tensor_count = halves ? 2 : reads ? 4 : 2 + below(3);
    if (below(4) == 0) p->tensor[p->tensor_count - 1].memory = MEMORY_PINNED;
    int count = 4 + below(6) + 2 * reads, parts = halves ? 4 : p->tensor_count;
    for (int t = 0; t < p->tensor_count && reads; t++)
        if (below(2)) p->tensor[t].memory = MEMORY_PINNED;
    while (p->step_count < count) {
        p->step[p->step_count].kind = STEP_NOTHING;
        part_step(p, &p->step[p->step_count++], parts, halves, meets);
        if (reads && (p->step_count >= count || below(8) == 0)) read_part(p, parts, halves);
    }
}

/* ---- comparing */

static uint64_t programs_with_groups, refused, replayed;

static const mr_explore_outcome *find_outcome(const mr_explore_result *r,
                                              const mr_explore_outcome *o) {
    for (size_t i = 0; i < r->outcomes.count; i++) {
        const mr_explore_outcome *other = &r->outcomes.items[i];
        if (other->size == o->size && !memcmp(other->value, o->value, o->size)) return other;
    }
    return NULL;
}

/* The bytes of the value, as the exploration has them. */
static const char *replay_outcome(const sample_program *p, const mr_explore_outcome *o) {
    mr_explore_value value;
    bool followed;
    mr_explore_subject subject = {.context = (void *)(uintptr_t)p,
                                  .machine = machine,
                                  .begin = begin_sample,
                                  .run = run_sample};
    OK(mr_explore_replay(&subject, o->schedule, &value, &followed));
    for (size_t i = 0; i < value.tensors.count; i++)
        mr_program_read(value.tensors.items[i], &value.text);
    bool same = value.text.size == o->size && !memcmp(value.text.data, o->value, o->size);
    mr_explore_value_free(&value);
    let_go();
    replayed++;
    if (!followed) return "a schedule cannot be followed";
    return same ? NULL : "a schedule leads to another value";
}

/* A line for each pair that runs against the order of submission; few enough that none is left out. */
static bool tells_overtaken(const mr_explore_outcome *o) {
    uint32_t lines = 0;
    for (const char *at = o->difference; (at = strchr(at, '\n')); at++) lines++;
    return o->overtaken > 16 || lines == o->overtaken;
}

static const char *compare_with_full(const sample_program *p, const mr_explore_result *r,
                                     const mr_explore_result *full) {
    if (!r->complete || !full->complete) return "not complete";
    if ((uint64_t)r->classes != full->schedules) return "another number of classes";
    if ((size_t)r->combined != full->outcomes.count) return "another number of outcomes";
    if (r->outcomes.count != full->outcomes.count) return "not all are listed";
    for (size_t i = 0; i < r->outcomes.count; i++) {
        const mr_explore_outcome *o = &r->outcomes.items[i], *other = find_outcome(full, o);
        if (!other) return "an outcome that no schedule leads to";
        if (o->count != other->count) return "an outcome comes from another number of classes";
        if (o->overtaken != other->overtaken || !tells_overtaken(o))
            return "a schedule is not the simplest one";
        const char *text = i < 16 || i + 1 == r->outcomes.count ? replay_outcome(p, o) : NULL;
        if (text) return text;
    }
    return NULL;
}

static const char *differs_from_full(const sample_program *p) {
    mr_explore_result r, full = {0};
    const char *differs = explore_sample(p, -1, false, &r);
    bool apart = !differs && r.groups.count;
    refused += !differs && !apart && r.schedules > 1;
    programs_with_groups += apart;
    if (apart) {
        mr_explore_options options = {.overtaking = -1, .full = true};
        mr_explore_subject subject = {.context = (void *)(uintptr_t)p,
                                      .machine = machine,
                                      .begin = begin_sample,
                                      .run = run_sample};
        OK(mr_explore(&subject, &options, &full));
        let_go();
        differs = compare_with_full(p, &r, &full);
    }
    mr_explore_result_free(&full);
    mr_explore_result_free(&r);
    return differs;
}

static void shrink(sample_program *p) {
    for (int i = p->step_count; i-- > 0;) {
        sample_step kept = p->step[i];
        p->step[i] = (sample_step){.kind = STEP_NOTHING};
        if (!differs_from_full(p)) p->step[i] = kept;
    }
}

static void parts_combine(void **unused) {
    (void)unused;
    uint64_t count = setting("MR_EXPLORE_PROGRAMS", getenv("MILLRACE_LONG") ? 100000 : 2500),
             first = setting("MR_EXPLORE_SEED", 1);
    for (uint64_t seed = first; seed < first + count; seed++) {
        static sample_program p;
        random_parts(seed, &p);
        const char *text = differs_from_full(&p);
        if (!text) continue;
        printf("-- seed %llu: %s\n", (unsigned long long)seed, text);
        shrink(&p);
        explore_print(&p);
        fail_msg("races explored apart differ from all of them together");
    }
    printf("%llu programs, %llu combined, %llu with races that are not, %llu schedules replayed\n",
           (unsigned long long)count, (unsigned long long)programs_with_groups,
           (unsigned long long)refused, (unsigned long long)replayed);
    assert_true(count < 100 || (programs_with_groups > count / 20 && refused > count / 20));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_combine, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
