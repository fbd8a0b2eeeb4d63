/* The accesses of the kernels in tests/ptx/access.cu, from four compilations. They are compared with a list made by
 * hand, and with the interpreter, which is given no more memory than the extents. */
#include "ptx_fixture.h"

#include "ptx/access/access.h"

static const char *const samples[] = {"nvcc", "nvcc_debug", "clang", "clang_debug"};
enum { SAMPLES = sizeof samples / sizeof *samples, MOST_EXTENTS = 16 };

static char *sample_text(int i) {
    char path[100];
    char *text = calloc(1, 1 << 18);
    snprintf(path, sizeof path, "tests/ptx/access_%s.ptx", samples[i]);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s; the tests run in the folder above tests/", path);
    size_t size = fread(text, 1, (1 << 18) - 1, file);
    fclose(file);
    assert_true(size > 1000);
    return text;
}

/* ---- by hand */

static void put_access(const mr_ptx_kernel *k, char *out) {
    const mr_ptx_param_access *access = mr_ptx_kernel_access(k);
    for (uint32_t p = 0; p < k->param_count; p++) {
        static const char *const names[] = {"-", "R", "W", "RW"};
        assert_int_equal(access[p].known, access[p].reason == NULL);
        out += sprintf(out, "%s%s%s", p ? " " : "", names[access[p].access],
                       access[p].known ? "" : "?");
    }
    if (mr_ptx_kernel_follows_memory(k)) strcpy(out, " memory");
}

static const struct {
    const char *kernel, *access;
} accesses[] = {
    {"saxpy", "RW R - -"},
    {"grid_stride", "W R -"},
    {"matmul", "W R R - - -"},
    {"stencil", "W R -"},
    {"reduce", "W R -"},
    {"scale_part", "RW - - -"},
    {"reverse", "W R R"}, /* the size is added to a pointer: it could be one, too */
    {"triangle", "W R -"},
    {"gather", "W R R -"},
    {"views", "W R"},
    {"choose", "R R W - -"},
    {"swap_each_time", "RW RW - -"},
    {"through_table", "R - memory"},
    {"through_shared", "W R -"},
    {"with_variable", "R -"},
    {"not_used", "W - -"},
};

static void accesses_are_those_of_the_source(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        char *text = sample_text(i), said[200];
        device d;
        load_ptx(&d, text);
        for (size_t k = 0; k < sizeof accesses / sizeof *accesses; k++) {
            put_access(mr_ptx_kernel_find(d.module, accesses[k].kernel), said);
            if (strcmp(said, accesses[k].access))
                fail_msg("%s, %s: %s instead of %s", samples[i], accesses[k].kernel, said,
                         accesses[k].access);
        }
        unload(&d);
        free(text);
    }
}

static void elements_have_the_types_of_the_loads(void **state) {
    (void)state;
    char *text = sample_text(0);
    device d;
    load_ptx(&d, text);
    const mr_ptx_param_access *a = mr_ptx_kernel_access(mr_ptx_kernel_find(d.module, "gather"));
    assert_int_equal(a[0].element, PTX_f32);
    assert_int_equal(mr_ptx_types[a[2].element].bytes, 4);
    assert_int_equal(mr_ptx_kernel_access(mr_ptx_kernel_find(d.module, "reverse"))[0].element,
                     PTX_u8);
    unload(&d);
    free(text);
}

/* Arguments: p pointer, i int, l long, f float, with the number. */
static const struct {
    const char *kernel;
    uint32_t grid[3], block[3];
    const char *arguments, *extents;
    bool may_be_wider; /* in some compilations */
    bool is_certain;   /* in all of them */
} launches[] = {
    {"saxpy",
     {4, 1, 1},
     {64, 1, 1},
     "p p f2 i250",
     "R0[0,1000) W0[0,1000) R1[0,1000)",
     false,
     true},
    {"saxpy",
     {4, 1, 1},
     {64, 1, 1},
     "p p f2 i1000",
     "R0[0,1024) W0[0,1024) R1[0,1024)",
     false,
     true},
    {"saxpy", {4, 1, 1}, {64, 1, 1}, "p p f2 i0", "", false, false},
    {"saxpy", {4, 1, 1}, {64, 1, 1}, "p p f2 i-5", "", false, false},
    {"grid_stride", {2, 1, 1}, {32, 1, 1}, "p p i1000", "W0[0,4000) R1[0,4000)", false, false},
    {"grid_stride", {2, 1, 1}, {32, 1, 1}, "p p i50", "W0[0,200) R1[0,200)", false, false},
    {"matmul",
     {3, 4, 1},
     {8, 8, 1},
     "p p p i30 i20 i45",
     "W0[0,2400) R1[0,5400) R2[0,3600)",
     false,
     false},
    {"stencil", {4, 1, 1}, {32, 1, 1}, "p p i100", "W0[4,396) R1[0,400)", false, false},
    {"reduce", {4, 1, 1}, {64, 1, 1}, "p p i250", "W0[0,16) R1[0,1000)", false, true},
    {"scale_part",
     {4, 1, 1},
     {32, 1, 1},
     "p l500 i100 f2",
     "R0[2000,2400) W0[2000,2400)",
     false,
     true},
    {"scale_part", {4, 1, 1}, {32, 1, 1}, "p l0 i100 f2", "R0[0,400) W0[0,400)", false, true},
    {"triangle", {4, 1, 1}, {32, 1, 1}, "p p i100", "W0[0,400) R1[0,40000)", true, false},
    {"views", {4, 1, 1}, {32, 1, 1}, "p l100 p l100", "W0[0,400) R1[0,400)", false, true},
    {"choose", {4, 1, 1}, {32, 1, 1}, "p p p i1 i100", "R0[0,400) W2[0,400)", false, true},
    {"choose", {4, 1, 1}, {32, 1, 1}, "p p p i0 i100", "R1[0,400) W2[0,400)", false, true},
    {"not_used", {4, 1, 1}, {32, 1, 1}, "p p i5", "", false, false},
    {"not_used", {4, 1, 1}, {32, 1, 1}, "p p i-5", "W0[0,4)", false, true},
};

static uint64_t address_of(uint32_t param) {
    return (uint64_t)(param + 1) << 40;
}

/* Arguments in the order of the members of the parameters: a struct is its members. */
static void put_arguments(unsigned char *params, const char *arguments, mr_ptx_plan *plan) {
    static uint32_t pointers[8];
    uint32_t at = 0, param = 0;
    for (const char *a = arguments; a; a = strchr(a, ' ') ? strchr(a, ' ') + 1 : NULL) {
        uint32_t bytes = *a == 'p' || *a == 'l' ? 8 : 4;
        at = (at + bytes - 1) / bytes * bytes;
        uint64_t number = *a == 'p' ? address_of(param) : (uint64_t)strtoll(a + 1, NULL, 10);
        float real = strtof(a + 1, NULL);
        memcpy(params + at, *a == 'f' ? (void *)&real : (void *)&number, bytes);
        if (*a == 'p') pointers[param++] = at;
        at += bytes;
    }
    *plan = (mr_ptx_plan){.params = params, .pointers = pointers, .pointer_count = param};
}

/* One range for each pointer and way, in the order of the pointers. */
static void put_extents(const mr_ptx_extent *extents, uint32_t count, char *out) {
    char *start = out;
    *out = 0;
    for (uint32_t k = 0; k < 16; k++) {
        int64_t first = INT64_MAX, end = INT64_MIN;
        uint8_t way = k % 2 ? MR_PTX_WRITES : MR_PTX_READS;
        for (uint32_t i = 0; i < count; i++) {
            if (extents[i].param != k / 2 || !(extents[i].access & way)) continue;
            if (extents[i].first < first) first = extents[i].first;
            if (extents[i].end > end) end = extents[i].end;
        }
        if (first < end)
            out += sprintf(out, "%s%s%u[%lld,%lld)", out > start ? " " : "", k % 2 ? "W" : "R",
                           k / 2, (long long)first, (long long)end);
    }
}

static void extents_are_exact_on_usual_kernels(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        char *text = sample_text(i), said[400];
        device d;
        load_ptx(&d, text);
        for (size_t k = 0; k < sizeof launches / sizeof *launches; k++) {
            const mr_ptx_kernel *kernel = mr_ptx_kernel_find(d.module, launches[k].kernel);
            mr_ptx_extent extents[MOST_EXTENTS];
            unsigned char params[256] = {0};
            mr_ptx_plan plan;
            put_arguments(params, launches[k].arguments, &plan);
            memcpy(plan.grid, launches[k].grid, sizeof plan.grid);
            memcpy(plan.block, launches[k].block, sizeof plan.block);
            uint32_t count = mr_ptx_launch_extents(kernel, &plan, extents, MOST_EXTENTS);
            assert_true(count <= MOST_EXTENTS);
            put_extents(extents, count, said);
            if (!launches[k].may_be_wider && strcmp(said, launches[k].extents))
                fail_msg("%s, %s(%s): %s instead of %s", samples[i], launches[k].kernel,
                         launches[k].arguments, said, launches[k].extents);
            for (uint32_t e = 0; e < count && launches[k].is_certain; e++)
                if (extents[e].reason)
                    fail_msg("%s, %s(%s): an extent of parameter %u is assumed (%d)", samples[i],
                             launches[k].kernel, launches[k].arguments, extents[e].param,
                             (int)extents[e].reason);
            /* The second time the result is remembered; fewer than there are may be asked for. */
            mr_ptx_extent again[MOST_EXTENTS];
            assert_int_equal(mr_ptx_launch_extents(kernel, &plan, again, count ? 1 : 0), count);
            if (count) assert_memory_equal(extents, again, sizeof *again);
        }
        unload(&d);
        free(text);
    }
}

/* ---- against the interpreter */

static uint64_t random_state = 1;
static uint32_t below(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

/* No kernel here reaches farther from its pointers. An extent may, where all that is known is a pointer. */
enum { FARTHEST = 1 << 20 };

/* Memory for each pointer that is just what the extents say; read-only where nothing is written. */
static void give_extents(device *d, const mr_ptx_extent *extents, uint32_t count) {
    for (uint32_t p = 0; p < 8; p++) {
        int64_t first = INT64_MAX, end = INT64_MIN;
        bool written = false;
        for (uint32_t k = 0; k < count; k++) {
            if (extents[k].param != p) continue;
            if (extents[k].first < first) first = extents[k].first;
            if (extents[k].end > end) end = extents[k].end;
            written |= (extents[k].access & MR_PTX_WRITES) != 0;
        }
        if (first < -FARTHEST) first = -FARTHEST;
        if (end > FARTHEST) end = FARTHEST;
        if (first >= end) continue;
        d->next = address_of(p) + (uint64_t)first;
        give(d, "memory", (size_t)(end - first), 0, NULL);
        d->pieces[d->piece_count - 1].read_only = !written;
    }
}

static void take_back(device *d, int kept) {
    while (d->piece_count > kept) free(d->pieces[--d->piece_count].host);
}

static void run_in_extents(device *d, const char *kernel, const uint32_t grid[3],
                           const uint32_t block[3], const char *arguments, const char *sample) {
    mr_ptx_extent extents[MOST_EXTENTS];
    int kept = d->piece_count;
    begin(d, kernel, 1, 1);
    mr_ptx_plan plan;
    put_arguments(d->params, arguments, &plan);
    memcpy(plan.grid, grid, sizeof plan.grid);
    memcpy(plan.block, block, sizeof plan.block);
    memcpy(d->launch.grid, grid, sizeof d->launch.grid);
    memcpy(d->launch.block, block, sizeof d->launch.block);
    uint32_t count = mr_ptx_launch_extents(d->launch.kernel, &plan, extents, MOST_EXTENTS);
    assert_true(count <= MOST_EXTENTS);
    give_extents(d, extents, count);
    mr_status status = mr_ptx_run(&d->launch, 0, blocks_of(d));
    if (status)
        fail_msg("%s, %s(%s), grid %u,%u block %u,%u: %s", sample, kernel, arguments, grid[0],
                 grid[1], block[0], block[1], status->message);
    take_back(d, kept);
}

static void launches_stay_in_their_extents(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        char *text = sample_text(i);
        device d;
        load_ptx(&d, text);
        for (size_t k = 0; k < sizeof launches / sizeof *launches; k++)
            run_in_extents(&d, launches[k].kernel, launches[k].grid, launches[k].block,
                           launches[k].arguments, samples[i]);
        unload(&d);
        free(text);
    }
}

/* `%1$u` to `%4$u`: random numbers, the same each time. */
static const struct {
    const char *kernel, *arguments;
    bool is_plane;
} any_launch[] = {
    {"saxpy", "p p f2 i%1$u", false},
    {"grid_stride", "p p i%1$u", false},
    {"matmul", "p p p i%1$u i%2$u i%3$u", true},
    {"stencil", "p p i%1$u", false},
    {"scale_part", "p l%2$u i%1$u f2", false},
    {"triangle", "p p i%3$u", false},
    {"views", "p l%1$u p l%1$u", false},
    {"reverse", "p p l%1$u", false},
    {"choose", "p p p i%4$u i%1$u", false},
};

static void random_launches_stay_in_their_extents(void **state) {
    (void)state;
    const char *wanted = getenv("MR_ACCESS_ROUNDS");
    int rounds = wanted ? atoi(wanted) : 12;
    for (int i = 0; i < SAMPLES; i++) {
        char *text = sample_text(i), arguments[100];
        device d;
        load_ptx(&d, text);
        for (int round = 0; round < rounds; round++) {
            for (size_t k = 0; k < sizeof any_launch / sizeof *any_launch; k++) {
                bool plane = any_launch[k].is_plane;
                /* One statement a draw: C leaves open in which order arguments are computed. */
                uint32_t grid[3] = {1 + below(5), 1, 1};
                if (plane) grid[1] = 1 + below(4);
                uint32_t block[3] = {8, plane ? 8 : 1, 1};
                if (!plane) block[0] = 1 + below(70);
                uint32_t n = below(300), rows = below(60), depth = below(40), flag = below(2);
                snprintf(arguments, sizeof arguments, any_launch[k].arguments, n, rows, depth,
                         flag);
                run_in_extents(&d, any_launch[k].kernel, grid, block, arguments, samples[i]);
            }
        }
        unload(&d);
        free(text);
    }
}

/* ---- small texts */

#define HEAD                                                                                       \
    ".version 8.3\n.target sm_80\n.address_size 64\n.file 1 \"k.cu\"\n"                            \
    ".global .align 8 .b64 variable[4];\n"                                                         \
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n) {\n"                           \
    ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<19>; .reg .f32 %f<9>; .reg .f64 %e<4>;\n"     \
    ".local .align 8 .b8 depot[64]; .shared .align 8 .b8 tile[64];\n"                              \
    "ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r1, [n];\n.loc 1 12 3\n"

static const struct {
    const char *body, *access, *reason; /* of the first parameter that has one */
} texts[] = {
    {"ld.global.f32 %f1, [%d1];", "R - -", NULL},
    {"ld.global.nc.f32 %f1, [%d1];", "R - -", NULL},
    {"atom.global.add.u32 %r2, [%d1], 1; red.global.add.u32 [%d2], 1;", "RW RW -", NULL},
    {"cp.async.ca.shared.global [tile], [%d1], 16;", "R - -", NULL},
    {"st.shared.u32 [tile], 1; ld.shared.u32 %r3, [tile];", "- - -", NULL},
    {"prefetch.global.L2 [%d1];", "- - -", NULL},
    {"st.global.v4.u32 [%d1+16], {%r1, %r1, %r1, %r1};", "W - -", NULL},
    /* differences of pointers: the second array is reached from the first */
    {"sub.s64 %d3, %d2, %d1; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], 0;", "- W -", NULL},
    {"sub.s64 %d3, %d2, %d1; shr.s64 %d4, %d3, 2; mul.lo.s64 %d5, %d4, 4; add.s64 %d6, %d1, %d5;\n"
     "st.global.u32 [%d6], 0;",
     "W RW? -", "the address at k.cu:12 is calculated from the pointer's value"},
    {"add.s64 %d3, %d1, %d2; ld.global.u8 %r2, [%d3]; ld.global.u8 %r2, [%d1]; ld.global.u8 %r2, "
     "[%d2];",
     "RW? RW? -", "the address at k.cu:12 is the sum of two pointers"},
    /* alignment and halves */
    {"and.b64 %d3, %d1, -16; ld.global.f32 %f1, [%d3];", "R - -", NULL},
    {"and.b64 %d3, %d1, 15; add.s64 %d4, %d2, %d3; ld.global.f32 %f1, [%d4];", "- R -", NULL},
    {"mov.b64 {%r2, %r3}, %d1; mov.b64 %d3, {%r2, %r3}; ld.global.f32 %f1, [%d3];", "R - -", NULL},
    {"cvt.u32.u64 %r2, %d1; shr.u64 %d4, %d1, 32; cvt.u32.u64 %r3, %d4; mov.b64 %d3, {%r2, %r3};\n"
     "st.global.f32 [%d3], 0f00000000;",
     "W - -", NULL},
    {"cvt.u32.u64 %r2, %d1; shr.u64 %d4, %d1, 32; cvt.u64.u32 %d5, %r2; shl.b64 %d6, %d4, 32;\n"
     "or.b64 %d7, %d5, %d6; st.global.u32 [%d7], 0;",
     "W - -", NULL},
    /* memory */
    {"st.global.u64 [%d1], %d2;", "W - -", NULL},
    {"st.global.u64 [%d1], %d2; ld.global.u64 %d3, [%d1]; st.global.u32 [%d3], 1;",
     "RW RW? - memory",
     "the pointer is stored to memory, and the address at k.cu:12 comes from memory"},
    {"ld.global.u64 %d3, [%d1]; st.global.u32 [%d3], 1;", "R - - memory", NULL},
    {"ld.global.s32 %d3, [%d1]; shl.b64 %d4, %d3, 2; add.s64 %d5, %d2, %d4; st.global.u32 [%d5], "
     "1;",
     "R W -", NULL},
    {"st.shared.u64 [tile], %d1; ld.shared.u64 %d3, [tile]; st.global.u32 [%d3], 1;", "W - -",
     NULL},
    {"st.global.u64 [variable], 1;", "- - -", NULL},
    {"mov.u64 %d3, 4096; st.global.u64 [%d3], 1;", "- - - memory", NULL},
    /* local memory: one slot, a slot that is written in two sizes, an array */
    {"st.local.u64 [depot+8], %d1; st.local.u64 [depot], %d2; ld.local.u64 %d3, [depot+8];\n"
     "st.global.u32 [%d3], 1;",
     "W - -", NULL},
    {"mov.u64 %d5, depot; cvta.local.u64 %d6, %d5; add.u64 %d7, %d6, 8; st.u64 [%d7], %d1;\n"
     "ld.local.u64 %d3, [%d5+8]; st.u32 [%d3], 1;",
     "W - -", NULL},
    {"st.local.u64 [depot], %d1; st.local.u32 [depot+4], 0; ld.local.u64 %d3, [depot];\n"
     "st.global.u32 [%d3], 1;",
     "W - -", NULL},
    {"st.local.u64 [depot], %d1; st.local.u64 [depot+8], %d2; cvt.u64.u32 %d4, %r1;\n"
     "mov.u64 %d5, depot; add.u64 %d6, %d5, %d4; ld.local.u64 %d3, [%d6]; st.global.u32 [%d3], 1;",
     "W W -", NULL},
    {"mov.u64 %d5, depot; st.local.u64 [depot], %d1; st.local.u64 [depot+16], %d5;\n"
     "ld.local.u64 %d6, [depot+16]; st.local.u64 [%d6], %d2; ld.local.u64 %d3, [depot];\n"
     "st.global.u32 [%d3], 1;",
     "- W -", NULL},
    {"mov.u64 %d5, depot; st.local.u64 [depot], %d1; atom.exch.b64 %d4, [%d5], %d2;\n"
     "ld.local.u64 %d3, [depot]; st.global.u32 [%d3], 1;",
     "W W -", NULL},
    /* loops and choices */
    {"mov.u64 %d3, %d1;\nL: st.global.u32 [%d3], 1; add.s64 %d3, %d3, 4; sub.s32 %r1, %r1, 1;\n"
     "setp.gt.s32 %p1, %r1, 0; @%p1 bra L;",
     "W - -", NULL},
    {"mov.u64 %d3, %d1; mov.u64 %d4, %d2;\nL: st.global.u32 [%d3], 1; mov.u64 %d5, %d3;\n"
     "mov.u64 %d3, %d4; mov.u64 %d4, %d5; sub.s32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, 0; @%p1 bra "
     "L;",
     "W W -", NULL},
    {"setp.gt.s32 %p1, %r1, 0; mov.u64 %d3, %d1; @%p1 mov.u64 %d3, %d2; st.global.u32 [%d3], 1;",
     "W W -", NULL},
    {"setp.gt.s32 %p1, %r1, 0; @%p1 bra T; mov.u64 %d3, %d1; bra J;\nT: mov.u64 %d3, %d2;\n"
     "J: ld.global.u32 %r2, [%d3];",
     "R R -", NULL},
    {"max.u64 %d3, %d1, %d2; ld.global.u32 %r2, [%d3];", "R R -", NULL},
    /* a pointer, or a number that was made from another */
    {"setp.gt.s32 %p1, %r1, 0; xor.b64 %d3, %d1, 4; selp.b64 %d4, %d3, %d2, %p1;\n"
     "st.global.u32 [%d4], 1;",
     "RW? W -", "the address at k.cu:12 is calculated from the pointer's value"},
    {"xor.b64 %d3, %d1, 4; and.b64 %d4, %d2, 28; add.s64 %d5, %d3, %d4; st.global.u8 [%d5], 1;",
     "RW? W -", "the address at k.cu:12 is calculated from the pointer's value"},
    {"slct.u64.s32 %d3, %d1, %d2, %r1; ld.global.u32 %r2, [%d3];", "R R -", NULL},
};

static void small_texts_are_judged_by_hand(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        char text[4000], said[200];
        snprintf(text, sizeof text, "%s%s\nret;\n}\n", HEAD, texts[k].body);
        ptx_tree tree;
        expect_none(ptx_read(text, strlen(text), "k.ptx", &tree));
        ptx_access *access = ptx_access_infer(&tree, &tree.functions[0]);
        assert_non_null(access);
        mr_ptx_kernel kernel = {.param_count = 3, .access = access};
        put_access(&kernel, said);
        if (strcmp(said, texts[k].access))
            fail_msg("%s\n%s instead of %s", texts[k].body, said, texts[k].access);
        const char *reason = NULL;
        for (int p = 2; p >= 0; p--)
            if (mr_ptx_kernel_access(&kernel)[p].reason)
                reason = mr_ptx_kernel_access(&kernel)[p].reason;
        if (reason && texts[k].reason) assert_string_equal(reason, texts[k].reason);
        assert_int_equal(!reason, !texts[k].reason);
        ptx_access_free(access);
        ptx_tree_free(&tree);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_texts_are_judged_by_hand),
        cmocka_unit_test(accesses_are_those_of_the_source),
        cmocka_unit_test(elements_have_the_types_of_the_loads),
        cmocka_unit_test(extents_are_exact_on_usual_kernels),
        cmocka_unit_test(launches_stay_in_their_extents),
        cmocka_unit_test(random_launches_stay_in_their_extents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
