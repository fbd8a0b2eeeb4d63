/* The watch against the definition (naive_watch.c) on random traces: the same bytes race, and each reported pair does.
 * MR_WATCH_TRACES sets how many (4000; nightly 100000), MR_WATCH_SEED where they begin. A trace on which they differ is
 * shrunk and printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/watch/state.h"

#include "naive_watch.c"

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- random traces */

static uint64_t state;

static uint32_t below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}
static bool one_in(uint32_t n) {
    return below(n) == 0;
}

/* The mixture of a trace, so that traces differ in kind and not only in details. */
typedef struct {
    uint32_t few_addresses, strong, sync, fences, odd_sizes, global, full_warps, wide, messages,
        rows;
} habits;

static uint32_t existing(const trace *t, uint32_t warp) {
    uint32_t left = t->threads - 32 * warp;
    return left >= 32 ? UINT32_MAX : ((uint32_t)1 << left) - 1;
}

static uint32_t random_mask(const trace *t, uint32_t warp, bool may_be_full) {
    uint32_t there = existing(t, warp);
    if (may_be_full) return there;
    uint32_t mask = 0;
    for (uint32_t i = 1 + below(3); i > 0; i--) mask |= (uint32_t)1 << below(4);
    mask &= there;
    return mask ? mask : 1;
}

static void random_order(event *e, const habits *h) {
    static const ptx_order strong[] = {PTX_VOLATILE, PTX_RELAXED, PTX_RELAXED,
                                       PTX_ACQUIRE,  PTX_RELEASE, PTX_ACQ_REL};
    e->order = PTX_WEAK;
    if (below(8) >= h->strong) return;
    e->order = strong[below(6)];
    e->atomic = e->order != PTX_VOLATILE;
    e->scope = below(8) < h->wide ? PTX_SCOPE_DEVICE : PTX_SCOPE_BLOCK;
    if (one_in(2)) e->access = MR_PTX_READS | MR_PTX_WRITES;
    if (e->order == PTX_ACQUIRE) e->access |= MR_PTX_READS;
    if (e->order == PTX_RELEASE) e->access |= MR_PTX_WRITES;
}

static void random_access(const trace *t, event *e, const habits *h) {
    e->kind = EVENT_ACCESS;
    e->mask = random_mask(t, e->warp, below(8) < h->full_warps);
    e->space = below(8) < h->global ? PTX_GLOBAL : PTX_SHARED;
    e->access = one_in(2) ? MR_PTX_READS : MR_PTX_WRITES;
    random_order(e, h);
    e->bytes = below(8) < h->odd_sizes ? 1u << below(4) : 4;
    e->element = e->bytes;
    if (e->order != PTX_WEAK && e->bytes == 8 && one_in(2)) e->element = 4;
    uint64_t start = e->space == PTX_GLOBAL ? GLOBAL_START : 0;
    uint32_t places = h->few_addresses ? h->few_addresses : MIDDLE_BYTES / e->bytes;
    uint32_t first = below(places), step = one_in(2), scatter = one_in(4);
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t place = scatter ? below(places) : (first + step * lane) % places;
        e->address[lane] = start + MIDDLE + (uint64_t)place * e->bytes % MIDDLE_BYTES;
    }
}

static void random_sync(const trace *t, event *e, bool may_take_over) {
    uint32_t warps = (t->threads + 31) / 32;
    switch (below(7)) {
    case 0:
    case 1: e->kind = EVENT_BARRIER; break;
    case 2:
        e->kind = may_take_over ? EVENT_BARRIER_ARRIVED : EVENT_BARRIER;
        e->mask = 1 + below((1u << warps) - 1);
        break;
    case 3: e->kind = one_in(3) ? EVENT_ARRIVE : EVENT_BARRIER; break;
    default: e->kind = EVENT_WARP_SYNC; e->mask = random_mask(t, e->warp, one_in(2));
    }
}

static void random_fence(const trace *t, event *e, const habits *h) {
    static const ptx_order orders[] = {PTX_SEQ_CST, PTX_ACQ_REL, PTX_ACQ_REL, PTX_ACQUIRE,
                                       PTX_RELEASE};
    e->kind = EVENT_FENCE;
    e->mask = random_mask(t, e->warp, one_in(6));
    e->order = orders[below(5)];
    e->scope = below(8) < h->wide ? PTX_SCOPE_DEVICE : PTX_SCOPE_BLOCK;
}

/* A whole warp, consecutive words. */
static void whole_rows(const trace *t, event *e) {
    if (existing(t, e->warp) != UINT32_MAX) return;
    e->mask = UINT32_MAX;
    e->bytes = e->element = one_in(4) ? 8 : 4;
    e->order = PTX_WEAK;
    e->atomic = false;
    uint64_t start = e->space == PTX_GLOBAL ? GLOBAL_START : 0;
    if (e->bytes == 4) start += 128 * below(2);
    for (uint32_t lane = 0; lane < 32; lane++) e->address[lane] = start + lane * e->bytes;
}

/* A message from one thread to another, perhaps through a third one, with a step missing or too narrow now and then:
 * data, fence, flag; flag, fence, data. */
static void message(trace *t, uint32_t running, const habits *h) {
    static const ptx_order writes[] = {PTX_RELAXED, PTX_VOLATILE, PTX_RELEASE, PTX_ACQ_REL};
    static const ptx_order reads[] = {PTX_RELAXED, PTX_VOLATILE, PTX_ACQUIRE, PTX_ACQ_REL};
    uint32_t blocks[3], count = 0, flag = 1 + below(3);
    for (uint32_t b = 0; b < t->blocks; b++)
        if (running >> b & 1) blocks[count++ % 3] = b;
    if (!count) return;
    event e[3];
    for (uint32_t i = 0; i < 3; i++) {
        e[i] = (event){.kind = EVENT_ACCESS, .bytes = 4, .element = 4, .space = PTX_GLOBAL};
        e[i].block = blocks[below(count < 3 ? count : 3)];
        e[i].warp = below((t->threads + 31) / 32);
        e[i].mask = 1u << below(4) & existing(t, e[i].warp);
        if (!e[i].mask) e[i].mask = 1;
    }
    for (uint32_t step = 0; step < 7; step++) {
        event n = e[step < 3 ? 0 : step == 3 ? 1 : 2];
        bool is_data = step == 0 || step == 6, is_fence = step == 1 || step == 5;
        if (step == 3 ? !one_in(3) : one_in(12)) continue;
        n.scope = one_in(10) ? PTX_SCOPE_BLOCK : PTX_SCOPE_DEVICE;
        n.order = is_data ? PTX_WEAK : is_fence ? PTX_ACQ_REL : PTX_RELAXED;
        n.atomic = !is_data;
        n.access = step == 0 || step == 2 || (is_data && one_in(2)) ? MR_PTX_WRITES : MR_PTX_READS;
        if (is_fence) n.kind = EVENT_FENCE;
        if (step == 2) n.order = writes[below(4)];
        if (step == 4) n.order = reads[below(4)];
        if (step == 3 || n.order == PTX_ACQ_REL) n.access = MR_PTX_READS | MR_PTX_WRITES;
        uint64_t place = is_data ? (below(6) ? 0 : 4) + (h->few_addresses ? 0 : below(2)) : flag;
        for (uint32_t lane = 0; lane < 32; lane++)
            n.address[lane] = GLOBAL_START + MIDDLE + 4 * place;
        t->events[t->count++] = n;
    }
}

/* Blocks run one after the other, overlap, or run all at once: a block is begun when its first event comes. */
static void trace_random(uint64_t seed, trace *t) {
    static const uint32_t sizes[] = {4, 32, 36, 64, 68, 96};
    state = seed * 0x9e3779b97f4a7c15u + 1;
    memset(t, 0, sizeof *t);
    habits h = {one_in(2) ? 0 : 1 + below(3),
                below(9),
                1 + below(4),
                below(4),
                below(4),
                below(9),
                below(3),
                below(9),
                one_in(2) ? 0 : 2 + below(6),
                one_in(4) ? 4 + below(4) : 0};
    t->blocks = 1 + below(4);
    t->threads = sizes[below(6)];
    uint32_t count = 4 + below(36), begun = 0, ended = 0, left = 0;
    bool in_turn = one_in(3);
    if (h.messages) count = 1 + count / 5;
    for (uint32_t i = 0; i < count && t->count + 12 < MOST_EVENTS; i++) {
        event e = {0};
        e.block = in_turn ? i * t->blocks / count : below(t->blocks);
        if (ended >> e.block & 1) continue;
        e.warp = below((t->threads + 31) / 32);
        if (!(begun >> e.block & 1)) {
            if (in_turn && e.block)
                t->events[t->count++] = (event){.kind = EVENT_END, .block = e.block - 1};
            t->events[t->count++] = (event){.kind = EVENT_BEGIN, .block = e.block};
            begun |= 1u << e.block;
        }
        if (h.messages && below(8) < h.messages)
            message(t, in_turn ? 1u << e.block : begun & ~ended, &h);
        uint32_t what = below(16);
        if (what < h.sync) random_sync(t, &e, left >> e.block & 1);
        else if (what < h.sync + h.fences) random_fence(t, &e, &h);
        else if (what == 15 && one_in(3) && !in_turn) {
            e.kind = EVENT_END;
            ended |= 1u << e.block;
        } else random_access(t, &e, &h);
        if (e.kind == EVENT_ACCESS && below(8) < h.rows) whole_rows(t, &e);
        if (e.kind == EVENT_ARRIVE) left |= 1u << e.block;
        if (e.kind == EVENT_BARRIER_ARRIVED) left &= ~(1u << e.block);
        t->events[t->count++] = e;
    }
}

/* ---- the watch on a trace */

static ptx_instruction instructions[MOST_EVENTS]; /* one an event: so a report names its events */
static bool pairs_are_right;
static uint64_t reports, guesses;
static naive_verdict found;

static void note(const ptx_race *race, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++)
        found.racy[naive_byte(race->space, (uint32_t)race->second.block, race->address) + i] = true;
    uint32_t first = (uint32_t)(race->first.instruction - instructions);
    uint32_t second = (uint32_t)(race->second.instruction - instructions);
    reports++;
    if (naive_is_race(first, race->first.lane, second, race->second.lane)) return;
    /* For a cell that one warp has read by several instructions since its last synchronisation, the watch remembers two
     * of them. So a report may name another one of them, for a lane that did read and does race. */
    bool is_reading = false;
    for (uint32_t i = 0; i < MOST_EVENTS && race->first.access == MR_PTX_READS; i++)
        is_reading |= naive_is_race(i, race->first.lane, second, race->second.lane);
    pairs_are_right &= is_reading;
    guesses++;
}

/* The linker puts this in the place of the watch's own function, which keeps one race for each pair of instructions. */
bool __real_ptx_race_collect(ptx_turn *turn, const ptx_race *race, const ptx_earlier *e,
                             bool is_new);
bool __wrap_ptx_race_collect(ptx_turn *turn, const ptx_race *race, const ptx_earlier *e,
                             bool is_new);
bool __wrap_ptx_race_collect(ptx_turn *turn, const ptx_race *race, const ptx_earlier *e,
                             bool is_new) {
    note(race, turn->cell_bytes);
    return __real_ptx_race_collect(turn, race, e, is_new);
}

/* Half of the rows are told as such: the watch must find the same without. */
static void know_shape(ptx_watched *a) {
    uint32_t first = (uint32_t)__builtin_ctz(a->mask);
    bool row = true, same = true;
    for (uint32_t i = first; i < 32; i++)
        if (a->mask >> i & 1) {
            row &= a->address[i] == a->address[first] + (uint64_t)(i - first) * a->bytes;
            same &= a->address[i] == a->address[first];
        }
    a->is_same = same && (a->address[0] & 4);
    a->is_row = row && !same && (a->address[0] & 8);
}

static void tell(mr_ptx_watch *w, const trace *t, uint32_t index) {
    const event *e = &t->events[index];
    uint64_t warps = e->mask;
    switch (e->kind) {
    case EVENT_BEGIN: ptx_watch_block(w, e->block, REGION_BYTES); break;
    case EVENT_END: ptx_watch_block_done(w, e->block); break;
    case EVENT_BARRIER:
    case EVENT_BARRIER_ARRIVED:
        ptx_watch_barrier(w, e->block, e->mask ? &warps : NULL,
                          (uint32_t)__builtin_popcount(e->mask));
        if (e->kind == EVENT_BARRIER_ARRIVED)
            ptx_watch_arrived(w, e->block, 1, e->mask ? &warps : NULL,
                              (uint32_t)__builtin_popcount(e->mask));
        break;
    case EVENT_ARRIVE: ptx_watch_arrive(w, e->block, e->warp, 1); break;
    case EVENT_WARP_SYNC: ptx_watch_warp_sync(w, e->block, e->warp, e->mask); break;
    case EVENT_FENCE: ptx_watch_fence(w, e->block, e->warp, e->mask, e->order, e->scope); break;
    case EVENT_ACCESS: {
        ptx_instruction *i = &instructions[index];
        *i = (ptx_instruction){.opcode = PTX_OP_ld};
        if (e->element != e->bytes) i->modifiers[i->modifier_count++] = PTX_MOD_v2;
        ptx_watched a = {.block = e->block,
                         .warp = e->warp,
                         .mask = e->mask,
                         .space = e->space,
                         .address = e->address,
                         .bytes = e->bytes,
                         .access = e->access,
                         .atomic = e->atomic,
                         .order = e->order,
                         .scope = e->scope,
                         .instruction = i};
        know_shape(&a);
        ptx_watch_access(w, &a);
    }
    }
}

/* What threads learn of each other in other ways than by barriers. */
static bool has_messages(const trace *t) {
    for (uint32_t i = 0; i < t->count; i++)
        if (t->events[i].kind == EVENT_FENCE ||
            (t->events[i].kind == EVENT_ACCESS && t->events[i].order >= PTX_ACQUIRE))
            return true;
    return false;
}

/* NULL: both agree. */
static const char *differs(const trace *t, naive_verdict *expected) {
    naive_watch(t, expected);
    memset(&found, 0, sizeof found);
    pairs_are_right = true;
    mr_ptx_watch *w = mr_ptx_watch_create(NULL, t->blocks, t->threads);
    if (!w) return "memory is out";
    for (uint32_t i = 0; i < t->count; i++) tell(w, t, i);
    bool stopped = mr_ptx_watch_stopped(w) != NULL;
    found.order_matters = mr_ptx_watch_order_matters(w);
    mr_ptx_watch_destroy(w);
    if (stopped) return "the watch stopped";
    for (uint32_t i = 0; i < NAIVE_BYTES; i++) {
        if (found.racy[i] && !expected->racy[i]) return "a false alarm";
        if (!found.racy[i] && expected->racy[i]) return "a race was missed";
    }
    if (!expected->has_race && expected->order_matters && !found.order_matters)
        return "an order of threads was missed";
    if (!expected->order_matters && found.order_matters && !has_messages(t))
        return "an order of threads does not matter";
    return pairs_are_right ? NULL : "a pair that does not race was reported";
}

static void without_event(const trace *t, uint32_t index, trace *out) {
    *out = *t;
    out->count--;
    memmove(&out->events[index], &t->events[index + 1], (t->count - index - 1) * sizeof *t->events);
}

static void shrink(trace *t) {
    naive_verdict v;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < t->count; i++) {
            static trace smaller;
            without_event(t, i, &smaller);
            bool is_frame = t->events[i].kind == EVENT_BEGIN || t->events[i].kind == EVENT_END;
            if (is_frame && t->events[i].kind == EVENT_BEGIN) continue;
            if (!differs(&smaller, &v)) continue;
            *t = smaller;
            again = true;
            i--;
        }
        for (uint32_t i = 0; i < t->count; i++)
            for (uint32_t m = t->events[i].mask; m & (m - 1); m &= m - 1) {
                trace fewer = *t;
                fewer.events[i].mask &= ~(m & -m);
                if (fewer.events[i].kind == EVENT_BARRIER || !differs(&fewer, &v)) continue;
                *t = fewer;
                again = true;
            }
    }
}

static void print(const trace *t) {
    static const char *const kinds[] = {"access",    "barrier", "arrive", "barrier+arrived",
                                        "warp sync", "fence",   "begin",  "end"};
    static const char *const orders[] = {"weak",    "volatile", "relaxed", "acquire",
                                         "release", "acq_rel",  "seq_cst"};
    printf("%u blocks of %u threads\n", t->blocks, t->threads);
    for (uint32_t i = 0; i < t->count; i++) {
        const event *e = &t->events[i];
        printf("%2u %s block %u warp %u mask %x", i, kinds[e->kind], e->block, e->warp, e->mask);
        if (e->kind == EVENT_FENCE || e->kind == EVENT_ACCESS)
            printf(" %s scope %d", orders[e->order], e->scope);
        if (e->kind == EVENT_ACCESS) {
            printf(" %s%s%s %u/%u bytes at", e->space == PTX_SHARED ? "shared" : "global",
                   e->access & MR_PTX_READS ? " r" : "", e->access & MR_PTX_WRITES ? " w" : "",
                   e->bytes, e->element);
            for (uint32_t l = 0; l < 32; l++)
                if (e->mask >> l & 1) printf(" %u:%llx", l, (unsigned long long)e->address[l]);
        }
        printf("\n");
    }
}

static void verdicts_are_equal(void **unused) {
    (void)unused;
    uint64_t count = setting("MR_WATCH_TRACES", 4000), first = setting("MR_WATCH_SEED", 1);
    uint64_t racy = 0, clean = 0, orders = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        static trace t;
        naive_verdict expected;
        trace_random(seed, &t);
        const char *problem = differs(&t, &expected);
        bool any = false;
        for (uint32_t i = 0; i < NAIVE_BYTES; i++) any |= expected.racy[i];
        racy += any;
        clean += !any;
        orders += !any && expected.order_matters;
        if (!problem) continue;
        shrink(&t);
        problem = differs(&t, &expected);
        printf("-- seed %llu: %s\n", (unsigned long long)seed,
               problem ? problem : "(not any more)");
        print(&t);
        fail_msg("the verdicts differ");
    }
    printf("%llu traces, %llu of them with a race\n", (unsigned long long)count,
           (unsigned long long)racy);
    printf("%llu reports, %llu of which name a neighbour of the instruction\n",
           (unsigned long long)reports, (unsigned long long)guesses);
    assert_true(guesses <= reports / 100);
    printf("%llu without a race in which an order matters\n", (unsigned long long)orders);
    assert_true(count < 100 || (racy > count / 20 && clean > count / 20 && orders > count / 200));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verdicts_are_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
