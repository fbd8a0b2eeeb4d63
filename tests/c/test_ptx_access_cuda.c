/* The inferred accesses of kernels, against their runs. Random kernels in CUDA C++ (cuda_kernels.h) are compiled by
 * each compiler that this machine has. The interpreter runs them, and tells each access before it is carried out. Every
 * byte that is read, written or changed must lie in the extents of its launch with that access. If a launch ends, it
 * has touched extents without a reason to the last byte. Arguments are null, the same memory twice, or inside of an
 * allocation.
 *
 * The linker puts __wrap_ptx_watch_access in the place of the watch's own function.
 *
 * MR_ACCESS_ROUNDS: kernels of each compiler; 60 unless given. MR_ACCESS_SEED: of the first module. MR_ACCESS_MODULE:
 * kernels of a module, 60 unless given. MR_ACCESS_COMPILER: nvrtc or clang alone. MR_ACCESS_OPTION: one more option for
 * the compiler. MR_ACCESS_TEXT: prints the texts. */
#include "ptx_fixture.h"

#include "compile/compile.h"
#include "cuda_kernels.c"
#include "ptx/access/access.h"
#include "ptx/watch/watch.h"

enum {
    PLACE = 2 * CUDA_REACH + 4096, /* bytes of an allocation; pointers are near its middle */
    MOST_EXTENTS = 200,
    LAUNCHES = 4,
    READ = 1,
    WRITTEN = 2,
    ATOMIC = 4, /* READ and WRITTEN at once, for the whole device */
};

static uint64_t state;
static uint32_t draw(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

static uint64_t number(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* One for each pointer among the arguments. */
typedef struct {
    uint64_t first;
    char *host, before[PLACE];
    uint8_t touched[PLACE], allowed[PLACE];
    const ptx_instruction *by[PLACE]; /* of the last access */
} place;

typedef struct {
    uint64_t kernels, launches, ended, bytes, certain, extents, certain_extents, memory, missed;
} tally;

typedef struct {
    device d;
    place places[CUDA_POINTERS];
    cuda_params params;
    mr_ptx_extent extents[MOST_EXTENTS];
    uint32_t extent_count;
    const char *compiler, *name, *source;
    int source_length;
    uint64_t seed;
    tally tally;
} trial;

static trial *watched_trial; /* by the function below */

void __wrap_ptx_watch_access(mr_ptx_watch *watch, const ptx_watched *a);
void __wrap_ptx_watch_access(mr_ptx_watch *watch, const ptx_watched *a) {
    (void)watch;
    if (a->space != PTX_GLOBAL) return;
    for (uint32_t left = a->mask; left; left &= left - 1) {
        uint64_t address = a->address[__builtin_ctz(left)];
        for (int i = 0; i < CUDA_POINTERS; i++) {
            place *p = &watched_trial->places[i];
            for (uint64_t at = address - p->first, end = at + a->bytes; at < end && at < PLACE;
                 at++) {
                bool is_atomic = a->access == (READ | WRITTEN) && a->scope != PTX_SCOPE_BLOCK;
                p->touched[at] |= is_atomic ? ATOMIC : a->access;
                p->by[at] = a->instruction;
            }
        }
    }
}

/* ---- arguments */

static const size_t pointer_at[CUDA_POINTERS] = {
    offsetof(cuda_params, a),         offsetof(cuda_params, b),
    offsetof(cuda_params, c),         offsetof(cuda_params, d),
    offsetof(cuda_params, ix),        offsetof(cuda_params, opt),
    offsetof(cuda_params, two.first), offsetof(cuda_params, two.second),
    offsetof(cuda_params, out)};
enum { A, B, C, D, IX, OPT, FIRST, SECOND, OUT };

static uint64_t *pointer_of(trial *r, int i) {
    return (uint64_t *)(void *)((char *)&r->params + pointer_at[i]);
}

static void fill_memory(trial *r) {
    for (int i = 0; i < CUDA_POINTERS; i++) {
        for (int k = 0; k < PLACE / 4; k++) {
            float real = (float)draw(8);
            int32_t whole = (int32_t)draw(40);
            memcpy(r->places[i].host + 4 * k, i == IX || i == D ? (void *)&whole : (void *)&real,
                   4);
        }
    }
}

static void draw_arguments(trial *r) {
    memset(&r->params, 0, sizeof r->params);
    for (int i = 0; i < CUDA_POINTERS; i++) {
        uint64_t inside = draw(3) ? 0 : i == IX || i == D || i == C ? 16 * draw(3) : 4 * draw(6);
        *pointer_of(r, i) = r->places[i].first + PLACE / 2 + inside;
    }
    if (draw(2)) r->params.opt = draw(3) ? 0 : r->params.a;
    if (draw(3) == 0) r->params.two.second = 0;
    if (draw(6) == 0) r->params.b = r->params.a + 4 * draw(40);
    if (draw(6) == 0) r->params.two.first = r->params.out;
    if (draw(40) == 0) *pointer_of(r, (int)draw(CUDA_POINTERS)) = 0;
    r->params.two.count = (int32_t)draw(9);
    r->params.n = draw(12) ? (int32_t)draw(100) : -(int32_t)draw(3);
    r->params.m = (int32_t)draw(12);
    r->params.w = draw(12);
}

static void draw_launch(trial *r) {
    static const uint32_t blocks[][2] = {{32, 1}, {64, 1}, {7, 1}, {33, 1}, {8, 4}, {1, 1}};
    mr_ptx_launch *launch = &r->d.launch;
    const uint32_t *block = blocks[draw(6)];
    launch->grid[0] = 1 + draw(3), launch->grid[1] = 1 + draw(2);
    launch->block[0] = block[0], launch->block[1] = block[1];
    launch->check = false;
    launch->unset_read = NULL;
    launch->device.instruction_limit = 20000;
}

/* ---- the comparison */

static void complain(trial *r, const char *what, int which, uint64_t at) {
    const place *p = &r->places[which];
    const mr_ptx_launch *l = &r->d.launch;
    if (r->tally.missed++ > 5) return;
    printf("%.*s\n%s, seed %llu: %s\npointer %d, byte %lld (touched %u, allowed %u, line %u); grid "
           "%u,%u block %u,%u n %d m %d w %lld count %d\n",
           r->source_length, r->source, r->compiler, (unsigned long long)r->seed, what, which,
           (long long)at - (long long)(*pointer_of(r, which) - p->first), p->touched[at],
           p->allowed[at], p->by[at] ? p->by[at]->place.line : 0, l->grid[0], l->grid[1],
           l->block[0], l->block[1], r->params.n, r->params.m, (long long)r->params.w,
           r->params.two.count);
    for (int i = 0; i < CUDA_POINTERS; i++)
        printf("pointer %d: 0x%llx\n", i, (unsigned long long)*pointer_of(r, i));
    for (uint32_t k = 0; k < r->extent_count; k++) {
        const mr_ptx_extent *e = &r->extents[k];
        printf("extent: parameter %u+%u access %u%s reason %d [%lld, %lld) run %lld dims %u\n",
               e->param, e->offset, e->access, e->is_atomic ? " atomic" : "", (int)e->reason,
               (long long)e->first, (long long)e->end, (long long)e->run, e->dim_count);
    }
}

/* The pointer of an extent, and the place that it points into; -1: it is null or no pointer. */
static int place_of(trial *r, const mr_ptx_extent *e, uint64_t *out_pointer) {
    size_t at = r->d.launch.kernel->params[e->param].offset + e->offset;
    for (int i = 0; i < CUDA_POINTERS; i++) {
        if (pointer_at[i] != at) continue;
        *out_pointer = *pointer_of(r, i);
        for (int k = 0; k < CUDA_POINTERS; k++)
            if (*out_pointer - r->places[k].first < PLACE) return k;
    }
    return -1;
}

static void allow(trial *r) {
    for (uint32_t k = 0; k < r->extent_count; k++) {
        const mr_ptx_extent *e = &r->extents[k];
        uint64_t pointer;
        int which = place_of(r, e, &pointer);
        if (which < 0) continue;
        int64_t base = (int64_t)(pointer - r->places[which].first);
        int64_t first = e->first < -base ? -base : e->first;
        int64_t end = e->end > PLACE - base ? PLACE - base : e->end;
        for (int64_t b = first; b < end; b++)
            r->places[which].allowed[base + b] |= e->is_atomic ? ATOMIC : e->access;
    }
}

static void check_places(trial *r) {
    for (int i = 0; i < CUDA_POINTERS; i++) {
        place *p = &r->places[i];
        for (uint64_t at = 0; at < PLACE; at++) {
            uint8_t touched = p->touched[at], allowed = p->allowed[at];
            if (p->host[at] != p->before[at] && !(touched & (WRITTEN | ATOMIC))) {
                complain(r, "a byte has changed and nothing was told", i, at);
                break;
            }
            if (!touched) continue;
            r->tally.bytes++;
            bool misses = (touched & (READ | WRITTEN) & ~allowed) != 0;
            misses |= (touched & ATOMIC) && !(allowed & ATOMIC) && (allowed & 3) != 3;
            if (!misses) continue;
            complain(r, "an access outside of the extents", i, at);
            break;
        }
    }
}

static bool is_in_grid(const mr_ptx_extent *e, int64_t at) {
    for (uint32_t k = e->dim_count; k-- > 0;) {
        int64_t index = at / e->dims[k].stride;
        if (index >= e->dims[k].count) index = e->dims[k].count - 1;
        at -= index * e->dims[k].stride;
    }
    return at < e->run;
}

static void check_certain(trial *r) {
    for (uint32_t k = 0; k < r->extent_count; k++) {
        const mr_ptx_extent *e = &r->extents[k];
        uint64_t pointer;
        int which = e->reason ? -1 : place_of(r, e, &pointer);
        if (which < 0) continue;
        r->tally.certain_extents++;
        int64_t base = (int64_t)(pointer - r->places[which].first);
        for (int64_t b = e->first; b < e->end; b++) {
            if (!is_in_grid(e, b - e->first) || base + b < 0 || base + b >= PLACE) continue;
            uint8_t touched = r->places[which].touched[base + b];
            r->tally.certain++;
            bool has_atomic = (touched & ATOMIC) != 0;
            bool is_touched =
                e->is_atomic ? has_atomic : has_atomic || (touched & e->access) == e->access;
            if (is_touched) continue;
            complain(r, "a byte that nothing touches is certain", which, (uint64_t)(base + b));
            break;
        }
    }
}

static void launch(trial *r, mr_ptx_watch *watch) {
    uint32_t pointers[CUDA_POINTERS];
    mr_ptx_launch *l = &r->d.launch;
    uint32_t count = 0;
    begin(&r->d, r->name, 1, 1);
    draw_arguments(r);
    draw_launch(r);
    fill_memory(r);
    assert_int_equal(l->kernel->param_bytes, sizeof r->params);
    memcpy(r->d.params, &r->params, sizeof r->params);
    l->watch = watch;
    l->check_sources =
        true; /* as on the virtual GPU: the extents do not tell what leaves its allocation */
    for (int i = 0; i < CUDA_POINTERS; i++) {
        place *p = &r->places[i];
        if (*pointer_of(r, i)) pointers[count++] = (uint32_t)pointer_at[i];
        memcpy(p->before, p->host, PLACE);
        memset(p->touched, 0, PLACE);
        memset(p->allowed, 0, PLACE);
    }
    mr_ptx_plan plan = {.params = r->d.params, .pointers = pointers, .pointer_count = count};
    memcpy(plan.grid, l->grid, sizeof plan.grid);
    memcpy(plan.block, l->block, sizeof plan.block);
    r->extent_count = mr_ptx_launch_extents(l->kernel, &plan, r->extents, MOST_EXTENTS);
    assert_true(r->extent_count <= MOST_EXTENTS);
    allow(r);
    mr_status status = mr_ptx_run(l, 0, blocks_of(&r->d));
    check_places(r);
    if (!status) check_certain(r);
    r->tally.launches++;
    r->tally.ended += !status;
    r->tally.extents += r->extent_count;
    if (status) mr_error_destroy(status);
}

static void run_kernel(trial *r) {
    const mr_ptx_kernel *kernel = mr_ptx_kernel_find(r->d.module, r->name);
    assert_non_null(kernel);
    if (kernel->problem) fail_msg("%.*s\n%s", r->source_length, r->source, kernel->problem);
    r->tally.kernels++;
    /* No extent stands for what is reached through memory, and the verdict says so. */
    if (mr_ptx_kernel_follows_memory(kernel)) {
        r->tally.memory++;
        return;
    }
    for (int i = 0; i < LAUNCHES; i++) {
        mr_ptx_watch *watch = mr_ptx_watch_create(r->d.module, 6, 64);
        assert_non_null(watch);
        launch(r, watch);
        mr_ptx_watch_destroy(watch);
    }
}

/* ---- modules */

static mr_compiled compile(const char *compiler, const mr_buffer *text) {
    mr_compiled compiled;
    const char *option = getenv("MR_ACCESS_OPTION");
    const mr_compile_source source = {.text = text->data,
                                      .size = text->size,
                                      .compute_major = 9,
                                      .options = &option,
                                      .option_count = option ? 1 : 0};
    setenv("MILLRACE_COMPILER", compiler, 1);
    setenv("MILLRACE_CACHE", "off", 1);
    mr_status status = mr_compile(&source, &compiled);
    if (status && status->code == MR_CODE_NOT_SUPPORTED) {
        printf("without %s: %s\n", compiler, status->message);
        mr_error_destroy(status);
        skip();
    }
    expect_none(status);
    return compiled;
}

static void run_module(trial *r, uint32_t count) {
    mr_buffer text = {0};
    char name[24];
    size_t *starts = calloc(count + 1, sizeof *starts);
    assert_non_null(starts);
    state = r->seed * 0xd1342543de82ef95u + 1;
    cuda_put_prologue(&text);
    for (uint32_t i = 0; i < count; i++) {
        starts[i] = text.size;
        snprintf(name, sizeof name, "k%u", i);
        cuda_put_kernel(&text, name, &state);
    }
    starts[count] = text.size;
    if (getenv("MR_ACCESS_TEXT")) printf("%s\n", text.data);
    mr_compiled compiled = compile(r->compiler, &text);
    load_ptx(&r->d, compiled.ptx);
    for (int i = 0; i < CUDA_POINTERS; i++)
        r->places[i].first = give(&r->d, "memory", PLACE, 0, &r->places[i].host);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "k%u", i);
        r->name = name;
        r->source = text.data + starts[i];
        r->source_length = (int)(starts[i + 1] - starts[i]);
        run_kernel(r);
    }
    unload(&r->d);
    mr_compiled_free(&compiled);
    mr_buffer_free(&text);
    free(starts);
}

static void run_kernels_of(const char *compiler) {
    static trial r;
    const char *only = getenv("MR_ACCESS_COMPILER");
    uint64_t rounds = number("MR_ACCESS_ROUNDS", 60), module = number("MR_ACCESS_MODULE", 60);
    if (only && strcmp(only, compiler) != 0) skip();
    memset(&r.tally, 0, sizeof r.tally);
    watched_trial = &r;
    r.compiler = compiler;
    r.seed = number("MR_ACCESS_SEED", 5000);
    for (; r.tally.kernels < rounds; r.seed++) run_module(&r, (uint32_t)module);
    const tally *t = &r.tally;
    if (getenv("MR_ACCESS_ROUNDS"))
        printf("%s: %llu kernels (%llu follow memory), %llu launches (%llu ended), %llu bytes "
               "touched, %llu extents, %llu certain with %llu bytes, %llu missed\n",
               compiler, (unsigned long long)t->kernels, (unsigned long long)t->memory,
               (unsigned long long)t->launches, (unsigned long long)t->ended,
               (unsigned long long)t->bytes, (unsigned long long)t->extents,
               (unsigned long long)t->certain_extents, (unsigned long long)t->certain,
               (unsigned long long)t->missed);
    assert_int_equal(t->missed, 0);
    assert_true(t->memory * 8 <= t->kernels && t->ended * 2 > t->launches);
    assert_true(t->bytes > 100 * t->kernels && t->certain > 10 * t->kernels);
}

static void kernels_of_nvrtc_stay_in_their_extents(void **unused) {
    (void)unused;
    run_kernels_of("nvrtc");
}
static void kernels_of_clang_stay_in_their_extents(void **unused) {
    (void)unused;
    run_kernels_of("clang");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_nvrtc_stay_in_their_extents),
        cmocka_unit_test(kernels_of_clang_stay_in_their_extents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
