/* Kernels in the PTX interpreter: control flow, barriers, calls, memory, and what its errors say. */
#include "ptx_fixture.h"

#include <pthread.h>

#include "ptx/run/profile.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* y[i] = a * x[i] + y[i], as nvcc writes it */
static const char saxpy_ptx[] =
    HEAD ".visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)\n"
         "{\n"
         ".reg .pred %p<2>; .reg .f32 %f<5>; .reg .b32 %r<6>; .reg .b64 %rd<8>;\n"
         "ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f1, [a]; ld.param.u32 %r2, "
         "[n];\n"
         "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"
         "mad.lo.s32 %r1, %r3, %r4, %r5;\n"
         "setp.ge.s32 %p1, %r1, %r2;\n"
         "@%p1 bra $end;\n"
         "cvta.to.global.u64 %rd3, %rd1; cvta.to.global.u64 %rd4, %rd2;\n"
         "mul.wide.s32 %rd5, %r1, 4;\n"
         "add.s64 %rd6, %rd4, %rd5; ld.global.f32 %f2, [%rd6];\n"
         "add.s64 %rd7, %rd3, %rd5; ld.global.f32 %f3, [%rd7];\n"
         "fma.rn.f32 %f4, %f2, %f1, %f3;\n"
         "st.global.f32 [%rd7], %f4;\n"
         "$end: ret;\n"
         "}\n";

static void saxpy_stops_at_its_bound(void **state) {
    (void)state;
    device d;
    load_ptx(&d, saxpy_ptx);
    for (uint32_t n = 1; n < 400; n += 37) {
        char *x, *y;
        d.piece_count = 0;
        uint64_t to = give(&d, "y", 4 * n, 0, &y), from = give(&d, "x", 4 * n, 0, &x);
        for (uint32_t i = 0; i < n; i++) {
            ((float *)(void *)x)[i] = (float)i;
            ((float *)(void *)y)[i] = 1.0f;
        }
        begin(&d, "saxpy", 4, 100);
        PASS(&d, uint64_t, to);
        PASS(&d, uint64_t, from);
        PASS(&d, float, 2.0f);
        PASS(&d, uint32_t, n);
        run(&d);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(((float *)(void *)y)[i] == 2.0f * (float)i + 1.0f);
        }
        assert_int_equal(d.pieces[0].told, 1); /* once a run, and only what is written */
        assert_int_equal(d.pieces[1].told, 0);
        /* One element more than there is. */
        d.piece_count = 2;
        begin(&d, "saxpy", 4, 100);
        PASS(&d, uint64_t, to);
        PASS(&d, uint64_t, from);
        PASS(&d, float, 2.0f);
        PASS(&d, uint32_t, n + 1);
        if (n < 400) run_fails(&d, MR_CODE_ILLEGAL_ADDRESS, "reads 4 bytes at 0x");
        for (int i = 0; i < 2; i++) free(d.pieces[i].host);
        d.piece_count = 0;
    }
    unload(&d);
}

/* partial[block] = sum of in[], with a tree in shared memory */
static const char reduce_ptx[] =
    HEAD ".extern .shared .align 4 .b8 values[];\n"
         ".visible .entry reduce(.param .u64 partial, .param .u64 in)\n"
         "{\n"
         ".reg .pred %p<4>; .reg .f32 %f<5>; .reg .b32 %r<16>; .reg .b64 %rd<8>;\n"
         "ld.param.u64 %rd1, [partial]; ld.param.u64 %rd2, [in];\n"
         "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x;\n"
         "mad.lo.s32 %r4, %r3, %r2, %r1;\n"
         "mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd2, %rd3; ld.global.f32 %f1, [%rd4];\n"
         "shl.b32 %r5, %r1, 2; mov.u32 %r6, values; add.s32 %r7, %r6, %r5;\n"
         "st.shared.f32 [%r7], %f1;\n"
         "bar.sync 0;\n"
         "shr.u32 %r8, %r2, 1;\n"
         "$loop: setp.eq.s32 %p1, %r8, 0;\n"
         "@%p1 bra $done;\n"
         "setp.ge.u32 %p2, %r1, %r8;\n"
         "@%p2 bra $skip;\n"
         "shl.b32 %r9, %r8, 2; add.s32 %r10, %r7, %r9;\n"
         "ld.shared.f32 %f2, [%r10]; ld.shared.f32 %f3, [%r7]; add.f32 %f4, %f2, %f3;\n"
         "st.shared.f32 [%r7], %f4;\n"
         "$skip: bar.sync 0;\n"
         "shr.u32 %r8, %r8, 1;\n"
         "bra.uni $loop;\n"
         "$done: setp.ne.s32 %p3, %r1, 0;\n"
         "@%p3 bra $end;\n"
         "ld.shared.f32 %f1, [values]; mul.wide.u32 %rd5, %r3, 4; add.s64 %rd6, %rd1, %rd5;\n"
         "st.global.f32 [%rd6], %f1;\n"
         "$end: ret;\n"
         "}\n";

static void a_block_adds_in_shared_memory(void **state) {
    (void)state;
    device d;
    load_ptx(&d, reduce_ptx);
    char *in, *out;
    uint64_t to = give(&d, "partial", 4 * 5, 0, &out), from = give(&d, "in", 4 * 5 * 256, 0, &in);
    for (int i = 0; i < 5 * 256; i++) ((float *)(void *)in)[i] = (float)i;
    begin(&d, "reduce", 5, 256);
    d.launch.dynamic_shared = 4 * 256;
    PASS(&d, uint64_t, to);
    PASS(&d, uint64_t, from);
    run(&d);
    for (int b = 0; b < 5; b++) {
        float sum = 0;
        for (int i = 0; i < 256; i++) sum += (float)(256 * b + i);
        assert_true(((float *)(void *)out)[b] == sum);
    }
    d.launch.dynamic_shared = 4 * 256 - 4;
    run_fails(
        &d, MR_CODE_ILLEGAL_ADDRESS,
        "thread (255,0,0) of block (0,0,0) writes 4 bytes at offset 1020 of shared memory; the "
        "block has 1020 bytes of it");
    unload(&d);
}

/* ---- small kernels: `body` computes %result (b32) of each thread, from %t, the number of the thread in the grid */

#define KERNEL(extra, body)                                                                        \
    HEAD extra                                                                                     \
        ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n"                                   \
        ".reg .pred %p<9>; .reg .b32 %t, %n, %result, %lane, %r<32>; .reg .b64 %a<9>;\n"           \
        "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"                      \
        "mad.lo.s32 %t, %r0, %r1, %r2; ld.param.u32 %n, [n]; mov.u32 %lane, %laneid;\n"            \
        "mov.u32 %result, 0;\n" body                                                               \
        "$store: mul.wide.u32 %a0, %t, 4; ld.param.u64 %a1, [out]; add.s64 %a1, %a1, %a0;\n"       \
        "st.global.u32 [%a1], %result;\nret;\n}\n"

typedef uint32_t wanted(uint32_t thread, uint32_t n);

static uint32_t *start(device *d, const char *text, uint32_t grid, uint32_t block, uint32_t n) {
    load_ptx(d, text);
    char *out;
    uint64_t to = give(d, "out", 4 * (size_t)grid * block, 0xee, &out);
    begin(d, "k", grid, block);
    PASS(d, uint64_t, to);
    PASS(d, uint32_t, n);
    return (uint32_t *)(void *)out;
}

static void expect_results(const char *text, uint32_t grid, uint32_t block, uint32_t n,
                           wanted *want) {
    device d;
    const uint32_t *out = start(&d, text, grid, block, n);
    run(&d);
    for (uint32_t t = 0; t < grid * block; t++) {
        if (out[t] != want(t, n)) printf("thread %u: %u, not %u\n", t, out[t], want(t, n));
        assert_int_equal(out[t], want(t, n));
    }
    unload(&d);
}

static void expect_failure(const char *text, uint32_t grid, uint32_t block, uint32_t n,
                           mr_code code, const char *part) {
    device d;
    start(&d, text, grid, block, n);
    d.launch.device.instruction_limit = 1000000;
    run_fails(&d, code, part);
    unload(&d);
}

/* ---- control flow */

/* Steps of Collatz, with a loop in each of whose turns lanes take both branches, and leave at different turns. */
static const char collatz_ptx[] =
    KERNEL("", "add.u32 %r3, %t, 1;\n"
               "$loop: setp.eq.u32 %p1, %r3, 1; @%p1 bra $store;\n"
               "and.b32 %r4, %r3, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra $even;\n"
               "mad.lo.u32 %r3, %r3, 3, 1; bra $next;\n"
               "$even: shr.u32 %r3, %r3, 1;\n"
               "$next: add.u32 %result, %result, 1; bra $loop;\n");
static uint32_t collatz(uint32_t t, uint32_t n) {
    (void)n;
    uint32_t steps = 0;
    for (uint32_t x = t + 1; x != 1; steps++) x = x % 2 ? 3 * x + 1 : x / 2;
    return steps;
}

/* Lanes that were apart are one path again: activemask has all of them. */
static const char join_ptx[] = KERNEL(
    "", "and.b32 %r3, %t, 3; setp.eq.u32 %p1, %r3, 0; @%p1 bra $zero;\n"
        "setp.eq.u32 %p2, %r3, 1; @%p2 bra $one;\n"
        "activemask.b32 %r4; bra $inner;\n"
        "$one: activemask.b32 %r4;\n"
        "$inner: activemask.b32 %r5; bra $outer;\n"
        "$zero: activemask.b32 %r4; mov.u32 %r5, %r4;\n"
        "$outer: activemask.b32 %r6; setp.eq.u32 %p3, %r6, 0xffffffff; selp.b32 %r7, 0, 7, %p3;\n"
        "xor.b32 %result, %r4, %r5; add.u32 %result, %result, %r7;\n");
static uint32_t joined(uint32_t t, uint32_t n) {
    (void)n;
    uint32_t mine = t % 4 == 0 ? 0x11111111 : t % 4 == 1 ? 0x22222222 : 0xcccccccc;
    return t % 4 == 0 ? 0 : mine ^ 0xeeeeeeee;
}

/* Lanes that return early, by a guard and by a branch, are missed by nobody. */
static const char early_ptx[] = KERNEL(
    "",
    "mov.u32 %result, 5; mul.wide.u32 %a0, %t, 4; ld.param.u64 %a1, [out]; add.s64 %a1, %a1, %a0;\n"
    "st.global.u32 [%a1], %result; setp.lt.u32 %p1, %t, 7; @%p1 ret;\n"
    "setp.lt.u32 %p2, %lane, 20; @%p2 bra $more; mov.u32 %result, 6; st.global.u32 [%a1], %result; "
    "exit;\n"
    "$more: bar.sync 0; bar.warp.sync 0xffffffff; activemask.b32 %result;\n");
static uint32_t early(uint32_t t, uint32_t n) {
    (void)n;
    uint32_t lane = t % 32, left = t < 32 ? 0x000fff80 : 0x000fffff;
    return t < 7 ? 5 : lane >= 20 ? 6 : left;
}

static const char switch_ptx[] = KERNEL("", "rem.u32 %r3, %t, 5;\n"
                                            "ts: .branchtargets $c0, $c1, $c2, $c1, $c4;\n"
                                            "brx.idx %r3, ts;\n"
                                            "$c0: mov.u32 %result, 100; bra $out;\n"
                                            "$c1: add.u32 %result, %r3, 200; bra $out;\n"
                                            "$c2: mov.u32 %result, 300;\n"
                                            "$c4: add.u32 %result, %result, 400;\n"
                                            "$out: activemask.b32 %r4; setp.ne.u32 %p1, %r4, "
                                            "0xffffffff; @%p1 add.u32 %result, %result, 9;\n");
static uint32_t switched(uint32_t t, uint32_t n) {
    (void)n;
    static const uint32_t values[] = {100, 201, 700, 203, 400};
    return values[t % 5];
}

static void lanes_go_apart_and_meet_again(void **state) {
    (void)state;
    expect_results(collatz_ptx, 2, 96, 0, collatz);
    expect_results(join_ptx, 1, 64, 0, joined);
    expect_results(early_ptx, 1, 96, 0, early);
    expect_results(switch_ptx, 1, 64, 0, switched);
    expect_failure(KERNEL("", "ts: .branchtargets $c0, $c1; brx.idx %lane, ts; $c0: $c1:\n"), 1, 32,
                   0, MR_CODE_LAUNCH_FAILURE,
                   "thread (2,0,0) of block (0,0,0) jumps to target 2 of a list that has 2");
}

/* ---- calls */

#define FACTORIAL                                                                                  \
    ".func (.param .b32 out) factorial(.param .b32 x)\n{\n.reg .pred %p; .reg .b32 %r<5>;\n"       \
    "ld.param.u32 %r1, [x]; setp.gt.u32 %p, %r1, 1; mov.u32 %r2, 1; @!%p bra $end;\n"              \
    "sub.u32 %r3, %r1, 1;\n"                                                                       \
    "{ .param .b32 a; st.param.b32 [a], %r3; .param .b32 b;\n"                                     \
    "call.uni (b), factorial, (a); ld.param.b32 %r4, [b]; }\n"                                     \
    "mul.lo.u32 %r2, %r1, %r4;\n"                                                                  \
    "$end: st.param.b32 [out], %r2; ret;\n}\n"
static const char recursion_ptx[] =
    KERNEL(FACTORIAL, "and.b32 %r3, %t, 7; setp.eq.u32 %p1, %r3, 5;\n"
                      "{ .param .b32 a; st.param.b32 [a], %r3; .param .b32 b;\n"
                      "@!%p1 call (b), factorial, (a); @!%p1 ld.param.b32 %result, [b]; }\n");
static uint32_t recursed(uint32_t t, uint32_t n) {
    (void)n;
    uint32_t r = 1;
    for (uint32_t i = 2; i <= t % 8; i++) r *= i;
    return t % 8 == 5 ? 0 : r;
}

#define INDIRECT                                                                                   \
    ".func (.param .b32 out) twice(.param .b32 x)\n{ .reg .b32 %r; ld.param.u32 %r, [x]; "         \
    "add.u32 %r, %r, %r; st.param.b32 [out], %r; ret; }\n"                                         \
    ".func (.param .b32 out) square(.param .b32 x)\n{ .reg .b32 %r; ld.param.u32 %r, [x]; "        \
    "mul.lo.u32 %r, %r, %r; st.param.b32 [out], %r; ret; }\n"                                      \
    ".global .align 8 .u64 table[2] = {twice, square};\n"
static const char indirect_ptx[] = KERNEL(
    INDIRECT,
    "rem.u32 %r3, %t, 3; setp.eq.u32 %p1, %r3, 0; selp.u32 %r4, 8, 0, %p1; mov.u64 %a2, table;\n"
    "cvt.u64.u32 %a3, %r4; add.s64 %a2, %a2, %a3; ld.global.u64 %a4, [%a2];\n"
    "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
    "{ .param .b32 a; st.param.b32 [a], %t; .param .b32 b;\n"
    "call (b), %a4, (a), proto; ld.param.b32 %result, [b]; }\n"
    "activemask.b32 %r5; setp.ne.u32 %p2, %r5, 0xffffffff; @%p2 mov.u32 %result, 1;\n");
static uint32_t indirect(uint32_t t, uint32_t n) {
    (void)n;
    return t % 3 == 0 ? t * t : 2 * t;
}

/* A function in which some lanes exit, and the others return at different places. */
#define PARTING                                                                                    \
    ".func (.param .b32 out) part(.param .b32 x)\n{ .reg .pred %p<3>; .reg .b32 %r<3>; "           \
    "ld.param.u32 %r1, [x];\n"                                                                     \
    "setp.lt.u32 %p0, %r1, 4; @%p0 exit; setp.lt.u32 %p1, %r1, 9; st.param.b32 [out], 1; @%p1 "    \
    "ret;\n"                                                                                       \
    "setp.lt.u32 %p2, %r1, 12; @%p2 bra $b; st.param.b32 [out], 2; ret; $b: st.param.b32 [out], "  \
    "3; ret; }\n"
static const char parting_ptx[] = KERNEL(
    PARTING, "{ .param .b32 a; st.param.b32 [a], %t; .param .b32 b; call (b), part, (a); "
             "ld.param.b32 %result, [b]; }\n"
             "activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.u32 %result, %r3, 10, %result;\n");
static uint32_t parted(uint32_t t, uint32_t n) {
    (void)n;
    return t < 4 ? 0xeeeeeeee : (t < 32 ? 280u : 320u) + (t < 9 ? 1u : t < 12 ? 3u : 2u);
}

static void functions_return_exit_and_call_themselves(void **state) {
    (void)state;
    expect_results(recursion_ptx, 1, 64, 0, recursed);
    expect_results(indirect_ptx, 1, 64, 0, indirect);
    expect_results(parting_ptx, 1, 64, 0, parted);
    device d;
    load_ptx(&d, recursion_ptx);
    assert_true(mr_ptx_kernel_find(d.module, "k")->recursive);
    unload(&d);
    expect_failure(KERNEL(".func down()\n{ .local .b32 x[100]; .reg .b64 %a; mov.u64 %a, x; call "
                          "down, (); ret; }\n",
                          "call down, ();\n"),
                   1, 32, 0, MR_CODE_LAUNCH_FAILURE, "has no stack left: its calls are 164 deep");
    expect_failure(KERNEL(".func down()\n{ call down, (); ret; }\n", "call down, ();\n"), 1, 32, 0,
                   MR_CODE_LAUNCH_FAILURE, "a recursion that does not end?");
    expect_failure(
        KERNEL("", "mov.u64 %a2, 4096; proto: .callprototype _ (); call %a2, (), proto;\n"), 1, 32,
        0, MR_CODE_LAUNCH_FAILURE, "calls address 0x1000, where no function is");
}

/* ---- barriers */

/* Warps pass a number on, one each turn. */
static const char barrier_ptx[] =
    KERNEL(".shared .align 4 .u32 cell;\n",
           "mov.u32 %r3, 0; setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [cell], 0; bar.sync 0;\n"
           "$loop: shl.b32 %r4, %r3, 5; setp.ne.u32 %p2, %r4, %r2; @%p2 bra $wait;\n"
           "ld.shared.u32 %r5, [cell]; add.u32 %r5, %r5, %r3; add.u32 %r5, %r5, 1; st.shared.u32 "
           "[cell], %r5;\n"
           "$wait: bar.sync 0; add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 4; @%p3 bra $loop;\n"
           "ld.shared.u32 %result, [cell];\n");
static uint32_t ten(uint32_t t, uint32_t n) {
    (void)t, (void)n;
    return 10;
}
static const char reduction_ptx[] =
    KERNEL("", "rem.u32 %r3, %t, 3; setp.eq.u32 %p1, %r3, 0; bar.red.popc.u32 %r4, 0, %p1;\n"
               "bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, !%p1; selp.u32 %r5, 1000, 0, "
               "%p2; selp.u32 %r6, 2000, 0, %p3;\n"
               "add.u32 %result, %r4, %r5; add.u32 %result, %result, %r6;\n");
static uint32_t reduced(uint32_t t, uint32_t n) {
    (void)t, (void)n;
    return 2000 + 34;
}
/* Warp 0 only arrives; warp 1 waits for it at barrier 3, after which it sees what warp 0 wrote. */
static const char arrive_ptx[] = KERNEL(
    ".shared .align 4 .u32 cell;\n",
    "setp.ge.u32 %p1, %t, 64; @%p1 bra $store; setp.ge.u32 %p1, %t, 32; @%p1 bra $second;\n"
    "mov.u32 %r5, 0; $spin: add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 30000; @%p3 bra $spin;\n"
    "setp.eq.u32 %p2, %t, 0; @%p2 st.shared.u32 [cell], 77; bar.arrive 3, 64; bra $store;\n"
    "$second: bar.sync 3, 64; ld.shared.u32 %result, [cell];\n");
static uint32_t arrived(uint32_t t, uint32_t n) {
    (void)n;
    return t >= 32 && t < 64 ? 77 : 0;
}

static void barriers_order_the_threads_of_a_block(void **state) {
    (void)state;
    expect_results(barrier_ptx, 3, 128, 0, ten);
    expect_results(reduction_ptx, 1, 100, 0, reduced);
    expect_results(arrive_ptx, 1, 96, 0, arrived);
}

static void barriers_that_are_never_complete_are_errors(void **state) {
    (void)state;
    expect_failure(KERNEL("", "setp.lt.u32 %p1, %lane, 16; @%p1 bar.sync 0;\n"), 1, 64, 0,
                   MR_CODE_LAUNCH_FAILURE,
                   "thread (0,0,0) of block (0,0,0) waits at a barrier that thread (16,0,0) of the "
                   "same warp does not come to");
    expect_failure(
        KERNEL(
            "",
            "setp.lt.u32 %p1, %lane, 16; @%p1 bra $a; bar.sync 0; bra $b; $a: bar.sync 0; $b:\n"),
        1, 32, 0, MR_CODE_LAUNCH_FAILURE, "waits at this barrier, while thread");
    expect_failure(
        KERNEL("",
               "setp.lt.u32 %p1, %t, 32; @%p1 bra $a; bar.sync 1; bra $b; $a: bar.sync 2; $b:\n"),
        1, 64, 0, MR_CODE_LAUNCH_TIMEOUT, "block (0,0,0) waits for ever: thread (0,0,0) at ");
    expect_failure(KERNEL("", "bar.sync 0, 96;\n"), 1, 64, 0, MR_CODE_LAUNCH_TIMEOUT,
                   "waits for ever");
    expect_failure(KERNEL("", "bar.sync 0, 40;\n"), 1, 64, 0, MR_CODE_LAUNCH_FAILURE,
                   "must be a multiple of 32");
    expect_failure(KERNEL("", "bar.sync %t;\n"), 1, 32, 0, MR_CODE_LAUNCH_FAILURE,
                   "names barrier 0, and thread (1,0,0) of the same warp names barrier 1");
}

/* ---- locks and endless loops */

/* Each thread takes a lock, lanes of one warp, too, and adds to a counter that is not atomic. */
static const char lock_ptx[] =
    KERNEL(".global .align 4 .u32 lock; .global .align 4 .u32 counter;\n",
           "$try: atom.global.cas.b32 %r3, [lock], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra $try;\n"
           "ld.volatile.global.u32 %r4, [counter]; add.u32 %r4, %r4, 1; st.volatile.global.u32 "
           "[counter], %r4;\n"
           "membar.gl; atom.global.exch.b32 %r5, [lock], 0; mov.u32 %result, 1;\n");
static void locks_are_passed_between_lanes_and_warps(void **state) {
    (void)state;
    device d;
    const uint32_t *out = start(&d, lock_ptx, 3, 64, 0);
    run(&d);
    for (int i = 0; i < 192; i++) assert_int_equal(out[i], 1);
    uint32_t counter;
    memcpy(&counter, d.pieces[1].host, 4);
    assert_int_equal(counter, 192);
    unload(&d);
}

/* Warp 1 waits for a flag that warp 0 writes after it. */
static const char flag_ptx[] = KERNEL(
    ".shared .align 4 .u32 flag;\n", "setp.eq.u32 %p1, %t, 0; @%p1 st.volatile.shared.u32 [flag], "
                                     "0; bar.sync 0; setp.ge.u32 %p1, %t, 32; @%p1 bra $second;\n"
                                     "$first: ld.volatile.shared.u32 %r3, [flag]; setp.eq.u32 %p2, "
                                     "%r3, 0; @%p2 bra $first; mov.u32 %result, %r3; bra $store;\n"
                                     "$second: st.volatile.shared.u32 [flag], 4;\n");
static uint32_t flagged(uint32_t t, uint32_t n) {
    (void)n;
    return t < 32 ? 4 : 0;
}
static void warps_that_wait_for_each_other_make_progress(void **state) {
    (void)state;
    expect_results(flag_ptx, 1, 64, 0, flagged);
    expect_failure(
        KERNEL(".global .u32 never;\n",
               "$w: ld.volatile.global.u32 %r3, [never]; setp.eq.u32 %p1, %r3, 0; @%p1 bra $w;\n"),
        2, 64, 0, MR_CODE_LAUNCH_TIMEOUT,
        "waits for ever: what it asks for is not written by any thread that can still run");
    expect_failure(KERNEL("", "$w: add.u32 %r3, %r3, 1; bra $w;\n"), 2, 64, 0,
                   MR_CODE_LAUNCH_TIMEOUT,
                   "is still running after 1000000 instructions of its warp");
    device d;
    start(&d, KERNEL("", "$w: bra $w;\n"), 1, 32, 0);
    d.interruptions = 3;
    run_fails(&d, MR_CODE_INTERRUPTED, "kernel `k` was interrupted");
    unload(&d);
}

/* Each block waits for the one after it, so all of them have to be under way. The calls are for parts of the grid. */
static const char later_ptx[] =
    KERNEL(".global .u32 turn;\n",
           "mov.u32 %r3, %ctaid.x; sub.u32 %r3, 5, %r3;\n"
           "$w: ld.volatile.global.u32 %r4, [turn]; setp.ne.u32 %p1, %r4, %r3; @%p1 bra $w;\n"
           "add.u32 %r4, %r4, 1; st.volatile.global.u32 [turn], %r4; mov.u32 %result, %r4;\n");

static mr_ptx_progress *make_progress(device *d, uint64_t blocks) {
    mr_ptx_progress *progress = calloc(1, mr_ptx_progress_bytes(blocks));
    assert_non_null(progress);
    d->launch.progress = progress;
    return progress;
}

static void blocks_that_wait_for_later_ones_make_progress(void **state) {
    (void)state;
    for (uint64_t part = 1; part <= 6; part++) {
        device d;
        const uint32_t *out = start(&d, later_ptx, 6, 1, 0);
        mr_ptx_progress *progress = make_progress(&d, 6);
        d.launch.device.resident_blocks = 6;
        for (uint64_t b = 0; b < 6; b += part)
            expect_none(mr_ptx_run(&d.launch, b, b + part < 6 ? b + part : 6));
        for (uint32_t b = 0; b < 6; b++) assert_int_equal(out[b], 6 - b);
        assert_int_equal(progress->active, 0);
        free(progress);
        unload(&d);
    }
}

static void blocks_that_do_not_fit_are_waited_for_in_vain(void **state) {
    (void)state;
    device d;
    start(&d, later_ptx, 6, 1, 0);
    mr_ptx_progress *progress = make_progress(&d, 6);
    d.launch.device.resident_blocks = 4;
    mr_status status = mr_ptx_run(&d.launch, 0, 2);
    assert_non_null(status);
    assert_int_equal(status->code, MR_CODE_LAUNCH_TIMEOUT);
    assert_non_null(
        strstr(status->message, "2 blocks have not begun, as the device runs at most 4"));
    mr_error_destroy(status);
    free(progress);
    unload(&d);
}

/* A loop that counts is no endless one: registers change. */
static void a_wait_with_a_limit_ends(void **state) {
    (void)state;
    device d;
    const uint32_t *out =
        start(&d,
              KERNEL(".global .u32 never;\n",
                     "mov.u32 %r4, 0;\n"
                     "$w: add.u32 %r4, %r4, 1; ld.volatile.global.u32 %r3, [never];\n"
                     "setp.eq.u32 %p1, %r3, 0; setp.lt.and.u32 %p1, %r4, 100000, %p1;\n"
                     "@%p1 bra $w; mov.u32 %result, %r4;\n"),
              2, 32, 0);
    run(&d);
    assert_int_equal(out[0], 100000);
    assert_int_equal(out[63], 100000);
    unload(&d);
}

/* ---- lanes together */

static const char shuffle_ptx[] =
    KERNEL("", "shfl.sync.down.b32 %r3|%p1, %t, 1, 0x1f, 0xffffffff; shfl.sync.up.b32 %r4|%p2, %t, "
               "2, 0x0, 0xffffffff;\n"
               "shfl.sync.bfly.b32 %r5, %t, 5, 0x1f, 0xffffffff; shfl.sync.idx.b32 %r6, %t, 3, "
               "0x181f, 0xffffffff;\n"
               "mad.lo.u32 %result, %r3, 3, %r4; mad.lo.u32 %result, %result, 5, %r5; mad.lo.u32 "
               "%result, %result, 7, %r6;\n"
               "selp.u32 %r7, 1, 0, %p1; selp.u32 %r8, 2, 0, %p2; mad.lo.u32 %result, %result, 4, "
               "%r7; add.u32 %result, %result, %r8;\n");
static uint32_t shuffled(uint32_t t, uint32_t n) {
    (void)n;
    uint32_t lane = t % 32, base = t - lane;
    uint32_t down = lane < 31 ? t + 1 : t, up = lane >= 2 ? t - 2 : t;
    uint32_t bfly = base + (lane ^ 5), idx = base + lane / 8 * 8 + 3;
    return (((down * 3 + up) * 5 + bfly) * 7 + idx) * 4 + (lane < 31) + 2 * (lane >= 2);
}
static const char vote_ptx[] =
    KERNEL("", "and.b32 %r3, %t, 3; setp.eq.u32 %p1, %r3, 1; vote.sync.ballot.b32 %r4, %p1, "
               "0xffffffff; vote.sync.any.pred %p2, %p1, 0xffffffff;\n"
               "vote.sync.all.pred %p3, !%p1, 0xffffffff; match.any.sync.b32 %r5, %r3, 0xffffffff; "
               "redux.sync.add.u32 %r6, %r3, 0xffffffff;\n"
               "redux.sync.max.s32 %r7, %lane, 0xffffffff; match.all.sync.b32 %r8|%p4, %r1, "
               "0xffffffff; vote.sync.uni.pred %p5, %p4, 0xffffffff;\n"
               "xor.b32 %result, %r4, %r5; add.u32 %result, %result, %r6; add.u32 %result, "
               "%result, %r7; @%p2 add.u32 %result, %result, 256;\n"
               "@%p3 add.u32 %result, %result, 512; @%p4 add.u32 %result, %result, 1024; @%p5 "
               "add.u32 %result, %result, %r8;\n");
static uint32_t voted(uint32_t t, uint32_t n) {
    (void)n;
    return (0x22222222 ^ 0x11111111u << (t % 4)) + 48 + 31 + 256 + 1024 + 0xffffffff;
}
/* Lanes that name each other come to the same instruction on different ways, one part after a long loop. */
static const char apart_ptx[] = KERNEL(
    "", "setp.lt.u32 %p1, %lane, 16; @%p1 bra $a; mov.u32 %r3, 100; bra $s;\n"
        "$a: mov.u32 %r3, 1; $l: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 50; @%p2 bra $l;\n"
        "$s: shfl.sync.bfly.b32 %result, %r3, 16, 0x1f, 0xffffffff;\n");
static uint32_t met(uint32_t t, uint32_t n) {
    (void)n;
    return t % 32 < 16 ? 100 : 50;
}
/* Two warp barriers in the two branches are one. */
static const char branches_ptx[] =
    KERNEL(".shared .align 4 .b32 s[32];\n",
           "shl.b32 %r3, %lane, 2; mov.u32 %r4, s; add.u32 %r3, %r4, %r3; setp.lt.u32 %p1, %lane, "
           "16; @%p1 bra $a;\n"
           "st.shared.u32 [%r3], %lane; bar.warp.sync 0xffffffff; bra $store;\n"
           "$a: bar.warp.sync 0xffffffff; ld.shared.u32 %result, [%r3+64];\n");
static uint32_t other_half(uint32_t t, uint32_t n) {
    (void)n;
    return t < 16 ? t + 16 : 0;
}
/* Each half of the warp for itself. */
static const char halves_ptx[] =
    KERNEL("", "setp.lt.u32 %p1, %lane, 16; selp.b32 %r3, 0xffff, 0xffff0000, %p1; "
               "redux.sync.add.u32 %result, %lane, %r3;\n");
static uint32_t half_sum(uint32_t t, uint32_t n) {
    (void)n;
    return t % 32 < 16 ? 120 : 376;
}

static void lanes_exchange_values(void **state) {
    (void)state;
    expect_results(shuffle_ptx, 1, 64, 0, shuffled);
    expect_results(vote_ptx, 1, 64, 0, voted);
    expect_results(apart_ptx, 1, 64, 0, met);
    expect_results(branches_ptx, 1, 32, 0, other_half);
    expect_results(halves_ptx, 1, 64, 0, half_sum);
    expect_failure(
        KERNEL("", "shfl.sync.idx.b32 %result, %t, 20, 0x1f, 0xffff; @%p1 bra $store;\n"), 1, 32, 0,
        MR_CODE_LAUNCH_FAILURE, "gives a mask (0xffff) that does not name this lane");
    expect_failure(KERNEL("", "setp.ge.u32 %p1, %lane, 16; @%p1 exit; shfl.sync.idx.b32 %result, "
                              "%t, 20, 0x1f, 0xffffffff;\n"),
                   1, 32, 0, MR_CODE_LAUNCH_FAILURE,
                   "shuffles from lane 20, which does not take part");
}

/* ---- atomics */

static const char histogram_ptx[] =
    KERNEL(".shared .align 4 .u32 bins[8]; .global .align 8 .u64 total; .global .align 4 .f32 sum; "
           ".global .align 4 .u32 wraps; .global .align 4 .u32 least = 99;\n",
           "setp.ge.u32 %p1, %r2, 8; @%p1 bra $made; shl.b32 %r3, %r2, 2; mov.u32 %r4, bins; "
           "add.u32 %r4, %r4, %r3; st.shared.u32 [%r4], 0;\n"
           "$made: bar.sync 0; and.b32 %r5, %t, 7; shl.b32 %r5, %r5, 2; mov.u32 %r6, bins; add.u32 "
           "%r6, %r6, %r5; red.shared.add.u32 [%r6], 1; bar.sync 0;\n"
           "ld.shared.u32 %result, [%r6]; cvt.u64.u32 %a2, %t; atom.global.add.u64 %a3, [total], "
           "%a2; red.global.add.f32 [sum], 0f3F000000;\n"
           "atom.global.inc.u32 %r7, [wraps], 4; red.global.min.u32 [least], %t;\n");
static void atomics_miss_no_thread(void **state) {
    (void)state;
    device d;
    const uint32_t *out = start(&d, histogram_ptx, 2, 128, 0);
    run(&d);
    for (int i = 0; i < 256; i++) assert_int_equal(out[i], 16);
    assert_int_equal(*(uint64_t *)(void *)d.pieces[0].host, 255 * 128);
    assert_true(*(float *)(void *)d.pieces[1].host == 128.0f);
    assert_int_equal(*(uint32_t *)(void *)d.pieces[2].host, 256 % 5);
    assert_int_equal(*(uint32_t *)(void *)d.pieces[3].host, 0);
    unload(&d);
}

/* Each of three threads runs some of the blocks. */
typedef struct {
    const mr_ptx_launch *launch;
    uint64_t first, end;
    mr_status status;
} share;
static void *run_part(void *context) {
    share *p = context;
    p->status = mr_ptx_run(p->launch, p->first, p->end);
    return NULL;
}
static void blocks_run_on_several_threads(void **state) {
    (void)state;
    enum { PARTS = 3, BLOCKS = 60 };
    device d;
    const uint32_t *out = start(&d, histogram_ptx, BLOCKS, 128, 0);
    d.launch.interrupted = NULL; /* that of the fixture counts */
    d.launch.memory.will_write = NULL;
    share parts[PARTS];
    pthread_t threads[PARTS];
    for (uint64_t i = 0; i < PARTS; i++) {
        parts[i] = (share){&d.launch, i * BLOCKS / PARTS, (i + 1) * BLOCKS / PARTS, MR_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, run_part, &parts[i]), 0);
    }
    for (int i = 0; i < PARTS; i++) {
        pthread_join(threads[i], NULL);
        expect_none(parts[i].status);
    }
    for (int i = 0; i < BLOCKS * 128; i++) assert_int_equal(out[i], 16);
    uint64_t n = BLOCKS * 128;
    assert_int_equal(*(uint64_t *)(void *)d.pieces[0].host, n * (n - 1) / 2);
    assert_true(*(float *)(void *)d.pieces[1].host == (float)n / 2);
    assert_int_equal(*(uint32_t *)(void *)d.pieces[2].host, n % 5);
    unload(&d);
}

/* ---- memory */

/* A local array through a generic pointer, with different indices in the lanes; a struct parameter; constants. */
static const char spaces_ptx[] =
    KERNEL(".const .align 4 .u32 primes[4] = {2, 3, 5, 7}; .shared .align 8 .b8 pad[24];\n",
           ".local .align 16 .b8 depot[64]; .reg .b64 %l<9>; .reg .b16 %h<4>;\n"
           "mov.u64 %l1, depot; cvta.local.u64 %l2, %l1; and.b32 %r3, %t, 15; mul.wide.u32 %l3, "
           "%r3, 4; add.s64 %l4, %l2, %l3;\n"
           "st.u32 [%l4], %t; ld.local.u32 %r4, [%l1]; and.b32 %r5, %t, 3; mul.wide.u32 %l5, %r5, "
           "4; mov.u64 %l6, primes; add.s64 %l6, %l6, %l5;\n"
           "ld.const.u32 %r6, [%l6]; ld.u32 %r7, [%l4]; mad.lo.u32 %result, %r6, 1000, %r7;\n"
           "mov.u32 %r8, pad; st.shared.v2.u32 [%r8+8], {%r6, %r7}; cvta.to.local.u64 %l7, %l4; "
           "sub.s64 %l7, %l7, %l1; cvt.u32.u64 %r9, %l7;\n"
           "mad.lo.u32 %result, %r9, 100000, %result;\n");
static void every_space_is_reached_by_generic_addresses(void **state) {
    (void)state;
    device d;
    const uint32_t *out = start(&d, spaces_ptx, 1, 64, 0);
    /* Lanes but the first of 16 read what they have not written. */
    run(&d);
    expect_unset(&d, "thread (1,0,0) of block (0,0,0) reads 4 bytes of a local variable that it "
                     "has not written");
    d.launch.check = false;
    run(&d);
    assert_null(d.unset.data);
    static const uint32_t primes[] = {2, 3, 5, 7};
    for (uint32_t t = 0; t < 64; t++)
        assert_int_equal(out[t], t % 16 * 4 * 100000 + primes[t % 4] * 1000 + t);
    unload(&d);
}

static void wrong_addresses_are_errors(void **state) {
    (void)state;
    expect_failure(KERNEL("", "mov.u64 %a2, 0; ld.global.u32 %result, [%a2+8];\n"), 1, 32, 0,
                   MR_CODE_ILLEGAL_ADDRESS, "reads 4 bytes at address 0x8, through a null pointer");
    expect_failure(KERNEL("", "ld.param.u64 %a2, [out]; ld.global.u32 %result, [%a2+2];\n"), 1, 32,
                   0, MR_CODE_MISALIGNED_ADDRESS,
                   "reads 4 bytes at address 0x700000002 of global memory, which is no multiple of "
                   "4; it is byte 2 of out");
    expect_failure(KERNEL("", "ld.param.u64 %a2, [out]; st.global.u32 [%a2+128], %t;\n"), 1, 32, 0,
                   MR_CODE_ILLEGAL_ADDRESS,
                   "writes 4 bytes at 0x700000080, 0 bytes past the end of out");
    expect_failure(KERNEL("", "ld.param.u64 %a2, [out]; ld.global.v2.u64 {%a3, %a4}, [%a2+120];\n"),
                   1, 32, 0, MR_CODE_MISALIGNED_ADDRESS, "is no multiple of 16");
    expect_failure(KERNEL(".const .u32 c = 1;\n", "mov.u64 %a2, c; st.u32 [%a2], %t;\n"), 1, 32, 0,
                   MR_CODE_ILLEGAL_ADDRESS, "writes to constant memory");
    expect_failure(KERNEL("", "trap;\n"), 1, 32, 0, MR_CODE_LAUNCH_FAILURE, "executes `trap`");
}

static void reads_of_what_nothing_has_written_are_told(void **state) {
    (void)state;
    device d;
    start(&d,
          KERNEL(
              ".shared .u32 s[4];\n",
              "ld.shared.u32 %result, [s+4]; ld.shared.u32 %r3, [s+8]; st.shared.u32 [s+4], %t;\n"),
          1, 32, 0);
    run(&d);
    expect_unset(&d, "reads 4 bytes at offset 4 of shared memory, in `s` at byte 4 (element 1 of 4 "
                     "bytes), which no thread of the block has written");
    unload(&d);
    load_ptx(&d, saxpy_ptx);
    char *x;
    uint64_t to = give_unset(&d, "y", 400, NULL), from = give(&d, "x", 400, 0, &x);
    begin(&d, "saxpy", 1, 100);
    PASS(&d, uint64_t, to);
    PASS(&d, uint64_t, from);
    PASS(&d, float, 1.0f);
    PASS(&d, uint32_t, 100);
    run(&d);
    expect_unset(&d, "reads 4 bytes at 0x700000000, byte 0 of y, which nothing has written");
    for (int i = 0; i < 400; i++) assert_false(d.pieces[0].unset[i / 8] >> (i % 8) & 1);
    d.param_index = 0; /* what was written is no longer told */
    PASS(&d, uint64_t, to);
    PASS(&d, uint64_t, from);
    PASS(&d, float, 1.0f);
    PASS(&d, uint32_t, 100);
    run(&d);
    assert_null(d.unset.data);
    unload(&d);
}

/* ---- what is counted */

/* Loads of neighbours, of every eighth word, of one word; shared memory without and with conflicts of banks. Each of
 * these instructions has a line of its own; all others are on line 1. */
static const char counted_ptx[] = KERNEL(
    ".file 1 \"k.cu\"\n.shared .align 4 .b32 s[1024];\n",
    ".loc 1 1 0\n"
    "ld.param.u64 %a2, [out]; shl.b32 %r3, %lane, 2; cvt.u64.u32 %a3, %r3; add.s64 %a4, %a2, %a3;\n"
    ".loc 1 10 0\n ld.global.u32 %r4, [%a4];\n"
    ".loc 1 1 0\n shl.b32 %r5, %lane, 5; cvt.u64.u32 %a5, %r5; add.s64 %a6, %a2, %a5;\n"
    ".loc 1 11 0\n ld.global.u32 %r6, [%a6];\n"
    ".loc 1 12 0\n ld.global.u32 %r7, [%a2];\n"
    ".loc 1 1 0\n mov.u32 %r8, s; add.u32 %r9, %r8, %r3; add.u32 %r10, %r8, %r5;\n"
    ".loc 1 13 0\n st.shared.u32 [%r9], %r4;\n"
    ".loc 1 14 0\n st.shared.u32 [%r10], %r4;\n"
    ".loc 1 1 0\n setp.lt.u32 %p1, %lane, 8;\n"
    ".loc 1 15 0\n @%p1 add.u32 %result, %lane, 1;\n"
    ".loc 1 1 0\n");

static void instructions_and_accesses_are_counted(void **state) {
    (void)state;
    device d;
    start(&d, counted_ptx, 8, 64, 0);
    mr_ptx_profile *profile = mr_ptx_profile_create(d.module);
    d.launch.profile = profile;
    run(&d);
    assert_int_equal(mr_ptx_profile_blocks(profile), 8);
    static const struct {
        uint32_t line;
        uint64_t lanes, requests, sectors, least, wavefronts;
    } expected[] = {
        {10, 512, 16, 64, 64, 0}, {11, 512, 16, 512, 64, 0}, {12, 512, 16, 16, 16, 0},
        {13, 512, 16, 0, 0, 16},  {14, 512, 16, 0, 0, 128},  {15, 128, 0, 0, 0, 0},
    };
    enum { LINES = sizeof expected / sizeof *expected };
    enum { OTHERS = 2 }; /* in front of the first .loc, and line 1 */
    mr_ptx_line lines[OTHERS + LINES];
    assert_int_equal(mr_ptx_profile_lines(profile, lines, OTHERS + LINES), OTHERS + LINES);
    for (size_t k = 0; k < LINES; k++) {
        const mr_ptx_counts *counts = &lines[OTHERS + k].counts;
        assert_int_equal(lines[OTHERS + k].line, expected[k].line);
        assert_int_equal(counts->warps, 16);
        assert_int_equal(counts->lanes, expected[k].lanes);
        assert_int_equal(counts->requests, expected[k].requests);
        assert_int_equal(counts->sectors, expected[k].sectors);
        assert_int_equal(counts->least, expected[k].least);
        assert_int_equal(counts->wavefronts, expected[k].wavefronts);
    }
    mr_ptx_counts global;
    mr_ptx_profile_class(profile, PTX_CLASS_GLOBAL, &global);
    assert_int_equal(global.warps, 4 * 16); /* with the store at the end */
    mr_ptx_profile_destroy(profile);
    unload(&d);
}

/* ---- printf and assert */

static const char print_ptx[] =
    HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
         ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, "
         ".param .b64 c);\n"
         ".global .align 1 .b8 fmt[] = "
         "{37,53,100,124,37,45,54,46,50,102,124,37,115,124,37,108,108,120,124,37,99,124,37,37,124,"
         "37,42,100,10,0};\n"
         ".global .align 1 .b8 word[] = {119,111,114,100,0};\n"
         ".global .align 1 .b8 file[] = {97,46,99,117,0};\n"
         ".visible .entry say(.param .u32 n)\n{\n.local .align 8 .b8 depot[48]; .reg .b64 %a<9>; "
         ".reg .b32 %r<9>; .reg .pred %p;\n"
         "mov.u32 %r1, %tid.x; sub.s32 %r2, 5, %r1; mov.u64 %a1, depot; cvta.local.u64 %a2, %a1; "
         "st.local.u32 [%a1], %r2; st.local.f64 [%a1+8], 0d3FF4000000000000;\n"
         "mov.u64 %a3, word; cvta.global.u64 %a3, %a3; st.local.u64 [%a1+16], %a3; st.local.u64 "
         "[%a1+24], 0x123456789ab; st.local.u32 [%a1+32], 65;\n"
         "st.local.u32 [%a1+36], 4; st.local.u32 [%a1+40], 7; mov.u64 %a4, fmt; cvta.global.u64 "
         "%a4, %a4;\n"
         "{ .param .b64 f; st.param.b64 [f], %a4; .param .b64 v; st.param.b64 [v], %a2; .param "
         ".b32 r; call.uni (r), vprintf, (f, v); ld.param.b32 %r3, [r]; }\n"
         "setp.lt.u32 %p, %r1, 2; @%p bra $end; mov.u64 %a5, file; cvta.global.u64 %a5, %a5;\n"
         "{ .param .b64 m; st.param.b64 [m], %a3; .param .b64 f; st.param.b64 [f], %a5; .param "
         ".b32 l; st.param.b32 [l], 12; .param .b64 n; st.param.b64 [n], %a3;\n"
         ".param .b64 c; st.param.b64 [c], 1; call.uni __assertfail, (m, f, l, n, c); }\n"
         "$end: ret;\n}\n";

static void kernels_print_and_assert(void **state) {
    (void)state;
    device d;
    load_ptx(&d, print_ptx);
    begin(&d, "say", 1, 2);
    PASS(&d, uint32_t, 0);
    run(&d);
    assert_string_equal(d.printed.data, "    5|1.25  |word|123456789ab|A|%|   7\n"
                                        "    4|1.25  |word|123456789ab|A|%|   7\n");
    d.launch.block[0] = 3;
    run_fails(&d, MR_CODE_ASSERT,
              "a.cu:12: word: block: [0,0,0], thread: [2,0,0] Assertion `word` failed.");
    unload(&d);
}

/* ---- what is refused */

static void refuses_as(mr_code code, const char *text, const char *part) {
    mr_ptx_module *module;
    mr_status status = mr_ptx_module_load(text, strlen(text), "test.ptx", &module);
    if (!status) { /* what is not covered concerns the kernel alone */
        const char *problem = mr_ptx_kernel_at(module, 0)->problem;
        if (problem) status = mr_fail(MR_CODE_NOT_SUPPORTED, "%s", problem);
        mr_ptx_module_release(module);
    }
    assert_non_null(status);
    if (status->code != code || !strstr(status->message, part)) {
        printf("%s: %s\nwanted: %s\n", mr_code_text(status->code), status->message, part);
        fail();
    }
    if (getenv("PTX_MESSAGES")) printf("%s\n", status->message);
    mr_error_destroy(status);
}

static void refuses(const char *text, const char *part) {
    refuses_as(MR_CODE_NOT_SUPPORTED, text, part);
}
static void rejects(const char *text, const char *part) {
    refuses_as(MR_CODE_INVALID_ARGUMENT, text, part);
}

/* 4096 bytes for each lane of two warps, and 4 bytes for each byte that say which lanes have written it. */
static void local_memory_is_bounded(void **state) {
    (void)state;
    static const char text[] =
        KERNEL("", ".local .b8 a[4096]; .reg .b64 %l<3>; mov.u64 %l1, a; st.local.u32 [%l1], %t;\n"
                   "ld.local.u32 %result, [%l1];\n");
    enum { NEEDED = 2 * 4096 * (32 + 4) };
    device d;
    start(&d, text, 3, 64, 192);
    d.launch.device.local_limit = NEEDED;
    expect_none(mr_ptx_run(&d.launch, 0, 3)); /* one block after the other */
    d.launch.device.local_limit = NEEDED - 1;
    run_fails(&d, MR_CODE_OUT_OF_MEMORY,
              "needs 4096 bytes of local memory, as each of the block's 64 threads does");
    unload(&d);
}

static void what_is_not_covered_is_refused_by_name(void **state) {
    (void)state;
    rejects(KERNEL("", "add.u64 %a2, %a3, %r1;\n"),
            "register %r1 has 32 bits, and here it must have 64");
    refuses(KERNEL("", "add.u32 %r3, %r1;\n"), "it must have 3 operands, and has 2");
    refuses(KERNEL("", "add.wide.u32 %r3, %r1, %r2;\n"), "the modifier .wide has no meaning here");
    refuses(KERNEL("", "mul.u32 %r3, %r1, %r2;\n"), "it must have .lo, .hi or .wide");
    rejects(KERNEL("", "and.b32 %p1, %p2, %p3;\n"), "register %p2 is a predicate");
    rejects(KERNEL("", "setp.lt.u32 %r1, %r2, %r3;\n"), "register %r1 is no predicate");
    rejects(KERNEL("", "shl.b32 5, %r2, %r3;\n"), "its result must be a register");
    refuses(KERNEL("", "atom.global.add.b32 %r1, [%a1], %r2;\n"),
            "there is no such atomic operation of this type");
    refuses(
        KERNEL(".extern .func (.param .b64 r) malloc(.param .b64 s);\n",
               "{ .param .b64 s; st.param.b64 [s], 8; .param .b64 r; call (r), malloc, (s); }\n"),
        "the virtual GPU has no heap for kernels: allocate a tensor (mr.empty)");
    refuses(KERNEL("", "barrier.cluster.arrive; \n"), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saxpy_stops_at_its_bound),
        cmocka_unit_test(a_block_adds_in_shared_memory),
        cmocka_unit_test(lanes_go_apart_and_meet_again),
        cmocka_unit_test(functions_return_exit_and_call_themselves),
        cmocka_unit_test(barriers_order_the_threads_of_a_block),
        cmocka_unit_test(barriers_that_are_never_complete_are_errors),
        cmocka_unit_test(locks_are_passed_between_lanes_and_warps),
        cmocka_unit_test(warps_that_wait_for_each_other_make_progress),
        cmocka_unit_test(blocks_that_wait_for_later_ones_make_progress),
        cmocka_unit_test(blocks_that_do_not_fit_are_waited_for_in_vain),
        cmocka_unit_test(a_wait_with_a_limit_ends),
        cmocka_unit_test(lanes_exchange_values),
        cmocka_unit_test(atomics_miss_no_thread),
        cmocka_unit_test(blocks_run_on_several_threads),
        cmocka_unit_test(every_space_is_reached_by_generic_addresses),
        cmocka_unit_test(wrong_addresses_are_errors),
        cmocka_unit_test(reads_of_what_nothing_has_written_are_told),
        cmocka_unit_test(instructions_and_accesses_are_counted),
        cmocka_unit_test(kernels_print_and_assert),
        cmocka_unit_test(local_memory_is_bounded),
        cmocka_unit_test(what_is_not_covered_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
