/* Kernels in the interpreter with the watch: races are found, their repaired forms are silent. MR_WATCH_BENCH=1 prints
 * what the checks and the watch cost. */
#include <time.h>

#include "ptx_fixture.h"

#include "ptx/watch/watch.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"t.cu\"\n"

/* Runs the launch with a watch; how many races it found. The first one's text goes to `text`. */
static uint32_t races(device *d, char *text, size_t size) {
    uint32_t threads = d->launch.block[0] * d->launch.block[1] * d->launch.block[2];
    mr_ptx_watch *watch = mr_ptx_watch_create(d->module, blocks_of(d), threads);
    assert_non_null(watch);
    d->launch.watch = watch;
    run(d);
    assert_null(mr_ptx_watch_stopped(watch));
    uint32_t count = mr_ptx_watch_race_count(watch);
    if (count) { /* the first, and what orders it */
        const ptx_race *race = mr_ptx_watch_race(watch, 0);
        mr_ptx_race_text(watch, race, &d->launch, text, size);
        snprintf(text + strlen(text), size - strlen(text), "\nfix: %s", race->advice);
    }
    mr_ptx_watch_destroy(watch);
    d->launch.watch = NULL;
    return count;
}

/* s[tid] = tid; MIDDLE; out[i] = s[63 - tid] */
#define REVERSE(middle)                                                                            \
    HEAD ".visible .entry reverse(.param .u64 out)\n"                                              \
         "{\n"                                                                                     \
         ".shared .align 4 .b8 s[256];\n"                                                          \
         ".reg .b32 %r<9>; .reg .b64 %rd<5>;\n"                                                    \
         "ld.param.u64 %rd1, [out];\n"                                                             \
         "mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;\n"      \
         ".loc 1 5 1\n"                                                                            \
         "st.shared.u32 [%r4], %r1;\n" middle "sub.u32 %r5, %r2, %r3;\n"                           \
         ".loc 1 6 1\n"                                                                            \
         "ld.shared.u32 %r6, [%r5+252];\n"                                                         \
         "mov.u32 %r7, %ctaid.x; mad.lo.u32 %r8, %r7, 64, %r1; mul.wide.u32 %rd2, %r8, 4;\n"       \
         "add.u64 %rd3, %rd1, %rd2;\n"                                                             \
         "st.global.u32 [%rd3], %r6;\n"                                                            \
         "ret;\n"                                                                                  \
         "}\n"

static void a_barrier_between_write_and_read(void **state) {
    (void)state;
    static const char *const kernels[] = {REVERSE("bar.sync 0;\n"), REVERSE("")};
    char text[600];
    for (int i = 0; i < 2; i++) {
        device d;
        load_ptx(&d, kernels[i]);
        uint64_t out = give(&d, "out", 4 * 192, 0, NULL);
        begin(&d, "reverse", 3, 64);
        PASS(&d, uint64_t, out);
        d.launch.check = i == 0; /* else the read of what nobody has written yet ends the launch */
        assert_int_equal(races(&d, text, sizeof text), i);
        unload(&d);
    }
    assert_string_equal(text,
                        "race in kernel `reverse`: thread (31,0,0) of block (0,0,0) reads "
                        "byte 128 of shared memory (`s`) at t.cu:6, and thread (32,0,0) writes it "
                        "at t.cu:5; nothing orders the two (and 191 more pairs, all in "
                        "bytes 0..255)\n"
                        "fix: __syncthreads() between the two orders them");
}

/* Each block adds its number to *out. */
#define COUNT(how)                                                                                 \
    HEAD ".visible .entry count(.param .u64 out)\n"                                                \
         "{\n"                                                                                     \
         ".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;\n"                                  \
         "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n"                 \
         "setp.ne.u32 %p1, %r1, 0;\n"                                                              \
         "@%p1 bra $end;\n"                                                                        \
         ".loc 1 7 1\n" how "$end: ret;\n"                                                         \
         "}\n"

static void blocks_that_change_one_place(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t races;
        const char *advice;
    } kernels[] = {
        {COUNT("red.global.gpu.add.u32 [%rd1], %r2;\n"), 0, ""},
        {COUNT("ld.global.u32 %r3, [%rd1]; add.u32 %r3, %r3, %r2; st.global.u32 [%rd1], %r3;\n"), 2,
         "atomicAdd"},
        {COUNT("red.global.cta.add.u32 [%rd1], %r2;\n"), 1, "device scope"},
    };
    for (int i = 0; i < 3; i++) {
        device d;
        char text[600];
        load_ptx(&d, kernels[i].text);
        uint64_t out = give(&d, "out", 4, 0, NULL);
        begin(&d, "count", 5, 32);
        PASS(&d, uint64_t, out);
        assert_int_equal(races(&d, text, sizeof text), kernels[i].races);
        if (kernels[i].races) assert_non_null(strstr(text, kernels[i].advice));
        if (kernels[i].races) assert_non_null(strstr(text, "byte 0 of out at t.cu:7"));
        unload(&d);
    }
}

/* Block 0 writes data and a flag, block 1 waits for the flag and reads the data. */
#define MESSAGE(release, acquire)                                                                  \
    HEAD ".visible .entry message(.param .u64 data, .param .u64 flag)\n"                           \
         "{\n"                                                                                     \
         ".reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>;\n"                                  \
         "ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [flag]; mov.u32 %r1, %ctaid.x;\n"          \
         "mov.u32 %r3, 1; setp.ne.u32 %p1, %r1, 0;\n"                                              \
         "@%p1 bra $wait;\n"                                                                       \
         "st.global.u32 [%rd1], %r3;\n" release "ret;\n"                                           \
         "$wait:\n" acquire "setp.eq.u32 %p2, %r4, 0;\n"                                           \
         "@%p2 bra $wait;\n"                                                                       \
         "ld.global.u32 %r5, [%rd1];\n"                                                            \
         "ret;\n"                                                                                  \
         "}\n"

static void a_message_between_blocks(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t races;
    } kernels[] = {
        {MESSAGE("membar.gl; st.volatile.global.u32 [%rd2], %r3;\n",
                 "ld.volatile.global.u32 %r4, [%rd2]; membar.gl;\n"),
         0},
        {MESSAGE("fence.acq_rel.gpu; atom.global.exch.b32 %r2, [%rd2], %r3;\n",
                 "ld.acquire.gpu.global.u32 %r4, [%rd2];\n"),
         0},
        {MESSAGE("st.release.gpu.global.u32 [%rd2], %r3;\n",
                 "ld.relaxed.gpu.global.u32 %r4, [%rd2]; fence.acq_rel.gpu;\n"),
         0},
        {MESSAGE("st.relaxed.gpu.global.u32 [%rd2], %r3;\n",
                 "ld.acquire.gpu.global.u32 %r4, [%rd2];\n"),
         1},
        {MESSAGE("membar.gl; st.volatile.global.u32 [%rd2], %r3;\n",
                 "ld.volatile.global.u32 %r4, [%rd2];\n"),
         1},
        {MESSAGE("membar.cta; st.volatile.global.u32 [%rd2], %r3;\n",
                 "ld.volatile.global.u32 %r4, [%rd2]; membar.gl;\n"),
         1},
        {MESSAGE("membar.gl; st.global.u32 [%rd2], %r3;\n",
                 "ld.global.u32 %r4, [%rd2]; membar.gl;\n"),
         2},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        device d;
        char text[600];
        load_ptx(&d, kernels[i].text);
        uint64_t data = give(&d, "data", 4, 0, NULL), flag = give(&d, "flag", 4, 0, NULL);
        begin(&d, "message", 2, 1);
        PASS(&d, uint64_t, data);
        PASS(&d, uint64_t, flag);
        assert_int_equal(races(&d, text, sizeof text), kernels[i].races);
        unload(&d);
    }
}

/* Lanes pass a value on through shared memory; `sync` is in between. Addresses are generic. */
#define LANES(sync)                                                                                \
    HEAD ".visible .entry lanes(.param .u64 out)\n"                                                \
         "{\n"                                                                                     \
         ".shared .align 8 .b8 s[264];\n"                                                          \
         ".reg .b32 %r<4>; .reg .b64 %rd<6>;\n"                                                    \
         "mov.u64 %rd1, s; cvta.shared.u64 %rd2, %rd1; mov.u32 %r1, %tid.x;\n"                     \
         "mul.wide.u32 %rd3, %r1, 8; add.u64 %rd4, %rd2, %rd3;\n"                                  \
         "st.v2.u32 [%rd4], {%r1, %r1};\n" sync "ld.u32 %r2, [%rd4+4];\n"                          \
         "ld.u32 %r2, [%rd4+8];\n"                                                                 \
         "ret;\n"                                                                                  \
         "}\n"

static void lanes_of_a_warp(void **state) {
    (void)state;
    static const char *const kernels[] = {LANES("bar.warp.sync -1;\n"), LANES("membar.cta;\n")};
    for (int i = 0; i < 2; i++) {
        device d;
        char text[600];
        load_ptx(&d, kernels[i]);
        begin(&d, "lanes", 1, 32);
        PASS(&d, uint64_t, 0);
        d.launch.check = false; /* lane 31 reads what nobody has written */
        assert_int_equal(races(&d, text, sizeof text), i);
        if (i) assert_non_null(strstr(text, "__syncwarp()"));
        unload(&d);
    }
}

/* Halves of a warp sync at one instruction; lane i then reads what lane i ^ distance / 4 wrote. */
#define HALVES(distance)                                                                           \
    HEAD ".visible .entry halves(.param .u64 out)\n"                                               \
         "{\n"                                                                                     \
         ".shared .align 4 .b8 s[128];\n"                                                          \
         ".reg .pred %p<2>; .reg .b32 %r<9>;\n"                                                    \
         "mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;\n"      \
         "setp.lt.u32 %p1, %r1, 16; selp.b32 %r5, 65535, -65536, %p1;\n"                           \
         "st.shared.u32 [%r4], %r1;\n"                                                             \
         "bar.warp.sync %r5;\n"                                                                    \
         "xor.b32 %r6, %r3, " distance "; add.u32 %r7, %r2, %r6;\n"                                \
         "ld.shared.u32 %r8, [%r7];\n"                                                             \
         "ret;\n"                                                                                  \
         "}\n"
/* The same, where each half has its own instruction, and both name the whole warp. */
static const char branches_ptx[] =
    HEAD ".visible .entry halves(.param .u64 out)\n"
         "{\n"
         ".shared .align 4 .b8 s[128];\n"
         ".reg .pred %p<2>; .reg .b32 %r<9>;\n"
         "mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;\n"
         "setp.lt.u32 %p1, %r1, 16;\n"
         "st.shared.u32 [%r4], %r1;\n"
         "@%p1 bra $low;\n"
         "bar.warp.sync -1;\n"
         "bra.uni $on;\n"
         "$low: bar.warp.sync -1;\n"
         "$on: xor.b32 %r6, %r3, 64; add.u32 %r7, %r2, %r6;\n"
         "ld.shared.u32 %r8, [%r7];\n"
         "ret;\n"
         "}\n";

static void halves_of_a_warp(void **state) {
    (void)state;
    static const char *const kernels[] = {HALVES("4"), HALVES("64"), branches_ptx};
    for (int i = 0; i < 3; i++) {
        device d;
        char text[600];
        load_ptx(&d, kernels[i]);
        begin(&d, "halves", 1, 32);
        PASS(&d, uint64_t, 0);
        assert_int_equal(races(&d, text, sizeof text), i == 1);
        unload(&d);
    }
}

/* Warp 0 writes, arrives, and writes something else; warp 1 waits and reads one of the two. */
#define ARRIVE(offset)                                                                             \
    HEAD ".visible .entry arrive(.param .u64 out)\n"                                               \
         "{\n"                                                                                     \
         ".shared .align 4 .b8 s[256];\n"                                                          \
         ".reg .pred %p<2>; .reg .b32 %r<9>;\n"                                                    \
         "mov.u32 %r1, %tid.x; mov.u32 %r2, s; and.b32 %r3, %r1, 31; shl.b32 %r3, %r3, 2;\n"       \
         "add.u32 %r4, %r2, %r3; setp.gt.u32 %p1, %r1, 31;\n"                                      \
         "@%p1 bra $reader;\n"                                                                     \
         "st.shared.u32 [%r4], %r1;\n"                                                             \
         "bar.arrive 1, 64;\n"                                                                     \
         "st.shared.u32 [%r4+128], %r1;\n"                                                         \
         "ret;\n"                                                                                  \
         "$reader: bar.sync 1, 64;\n"                                                              \
         "ld.shared.u32 %r8, [%r4+" offset "];\n"                                                  \
         "ret;\n"                                                                                  \
         "}\n"

static void a_warp_that_arrives(void **state) {
    (void)state;
    static const char *const kernels[] = {ARRIVE("0"), ARRIVE("128")};
    for (int i = 0; i < 2; i++) {
        device d;
        char text[600];
        load_ptx(&d, kernels[i]);
        begin(&d, "arrive", 1, 64);
        PASS(&d, uint64_t, 0);
        d.launch.check = false;
        assert_int_equal(races(&d, text, sizeof text), i);
        unload(&d);
    }
}

/* ---- what it costs */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure_file(const char *path, const char *kernel, const uint32_t grid[3],
                         const uint32_t block[3], const uint64_t *numbers, uint32_t count) {
    static char text[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) return;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    device d;
    load_ptx(&d, text);
    uint64_t pieces[4];
    for (int i = 0; i < 4; i++) pieces[i] = give(&d, "x", 16 << 20, 0, NULL);
    begin(&d, kernel, 1, 1);
    memcpy(d.launch.grid, grid, sizeof d.launch.grid);
    memcpy(d.launch.block, block, sizeof d.launch.block);
    for (uint32_t i = 0, pointers = 0; i < d.launch.kernel->param_count; i++) {
        const mr_ptx_param *p = &d.launch.kernel->params[i];
        uint64_t value = p->may_be_pointer ? pieces[pointers++] : i < count ? numbers[i] : 0;
        memcpy(d.params + p->offset, &value, p->bytes);
        d.param_index++;
    }
    for (int mode = 0; mode < 3; mode++) {
        char found[600] = "";
        d.launch.check = mode > 0;
        double start = seconds();
        uint32_t n = 0;
        if (mode == 2) n = races(&d, found, sizeof found);
        else run(&d);
        static const char *const modes[] = {"unchecked", "checked", "watched"};
        printf("%-22s %-10s %8.2f ms  %s\n", kernel, modes[mode], (seconds() - start) * 1e3,
               n ? found : "");
    }
    unload(&d);
}

static void measure(const char *folder) {
    char path[400];
    snprintf(path, sizeof path, "%s/saxpy.clang.ptx", folder);
    measure_file(path, "saxpy", (uint32_t[]){8192, 1, 1}, (uint32_t[]){256, 1, 1},
                 (uint64_t[]){1 << 21, 1 << 21, 1 << 21, 1 << 21}, 4);
    snprintf(path, sizeof path, "%s/matmul.clang.ptx", folder);
    measure_file(path, "_Z12matmul_tiledILi16EEvPfPKfS2_iii", (uint32_t[]){16, 16, 1},
                 (uint32_t[]){16, 16, 1}, (uint64_t[]){0, 0, 0, 256, 256, 256}, 6);
    measure_file(path, "matmul_direct", (uint32_t[]){16, 16, 1}, (uint32_t[]){16, 16, 1},
                 (uint64_t[]){0, 0, 0, 256, 256, 256}, 6);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_barrier_between_write_and_read),
        cmocka_unit_test(blocks_that_change_one_place),
        cmocka_unit_test(a_message_between_blocks),
        cmocka_unit_test(lanes_of_a_warp),
        cmocka_unit_test(halves_of_a_warp),
        cmocka_unit_test(a_warp_that_arrives),
    };
    if (getenv("MR_WATCH_BENCH")) {
        measure(argc > 1 ? argv[1] : "build/ptx");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
