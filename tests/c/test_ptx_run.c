/* Kernels in the PTX interpreter: control flow, barriers, calls, memory, and what its errors say. */
#include "ptx_fixture.h"

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
        "thread (255,0,0) of block (0,0,0) writes 4 bytes at offset 1020 of shared memory, of "
        "which the block has 1020 bytes");
    unload(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saxpy_stops_at_its_bound),
        cmocka_unit_test(a_block_adds_in_shared_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
