/* The list of docs/kernels.md under "What is not covered", instruction by instruction: each is refused in the kernel
 * that has it. An instruction that has become covered makes a test fail here: take it out of this list and of that
 * page. */
#include "ptx_texts.h"

#include "ptx/ptx.h"

static const char *const instructions[] = {
    /* tensor cores */
    "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1}, [%rd1]",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f2}",
    "wgmma.fence.sync.aligned",
    "tcgen05.commit",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2]",
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r1}",
    "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2",
    /* textures and surfaces */
    "tex.2d.v4.f32.s32 {%f1}, [t]",
    "tld4.r.2d.v4.f32.f32 {%f1}, [t]",
    "txq.width.b32 %r1, [t]",
    "istypep.texref %p1, %rd1",
    "suld.b.1d.b32.trap {%r1}, [t, {%r1}]",
    "sust.b.1d.b32 [t]",
    "sured.b.add.1d.u32 [t]",
    "suq.width.b32 %r1, [t]",
    /* barrier objects in shared memory */
    "mbarrier.init.shared.b64 [%r1], 1",
    "cp.async.mbarrier.arrive.shared.b64 [%r1]",
    "fence.mbarrier_init.release.cluster",
    /* bulk copies */
    "cp.async.bulk.commit_group",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1]",
    "st.bulk.weak.shared::cta [%rd1], %rd2, 0",
    "tensormap.cp_fenceproxy [%rd1]",
    "fence.proxy.async",
    /* clusters */
    "barrier.cluster.arrive",
    "barrier.cluster.wait",
    "mapa.u64 %rd1, %rd2, %r1",
    "getctarank.u64 %r1, %rd1",
    "ld.shared::cluster.u32 %r1, [%r2]",
    "st.async.shared::cluster.b32 [%r1], %r2, [%r3]",
    "red.async.relaxed.cluster.add.u32 [%r1], %r2, [%r3]",
    /* the heap and the stack */
    "call.uni (x), malloc, (y)",
    "call.uni free, (y)",
    "alloca.u64 %rd1, 16",
    "stacksave.u64 %rd1",
    "stackrestore.u64 %rd1",
    "call.uni elsewhere, (y)",
    /* pairs of integers, and .relu */
    "min.u16x2 %r1, %r2, %r3",
    "max.s16x2 %r1, %r2, %r3",
    "max.relu.s32 %r1, %r2, %r3",
    /* narrow floating point */
    "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2",
    "cvt.rn.f16x2.e5m2x2 %r1, %h1",
    "cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2",
    "cvt.rp.satfinite.ue8m0x2.f32 %h1, %f1, %f2",
    /* vector atomics, and 128 bits */
    "atom.global.add.v2.f32 {%f1, %f2}, [%rd1], {%f1, %f2}",
    "red.global.add.v4.f32 [%rd1], {%f1, %f2, %f1, %f2}",
    "atom.cas.b128 %q1, [%rd1], %q2, %q3",
    "atom.exch.b128 %q1, [%rd1], %q2",
    "ld.global.b128 %q1, [%rd1]",
    "st.global.b128 [%rd1], %q1",
    "mov.b128 %q1, {%rd1, %rd2}",
    /* cache policies */
    "createpolicy.fractional.L2::evict_last.b64 %rd1",
    "applypriority.global.L2::evict_normal [%rd1], 128",
    "ld.global.L2::cache_hint.f32 %f1, [%rd1], %rd2",
    "atom.global.L2::cache_hint.add.u32 %r1, [%rd1], %r2, %rd2",
    "prefetch.global.L2::evict_last [%rd1]",
    /* warps */
    "shfl.up.b32 %r1, %r2, 1, 0",
    "vote.ballot.b32 %r1, %p1",
    "redux.sync.min.f32 %f1, %f2, -1",
    "elect.sync _|%p1, -1",
    "setmaxnreg.inc.sync.aligned.u32 240",
    /* the rest */
    "multimem.red.add.f32 [%rd1], %f1",
    "vadd.s32.s32.s32 %r1, %r2, %r3",
    "vadd4.u32.u32.u32 %r1, %r2, %r3, %r4",
    "mov.u32 %r1, %pm0",
    "mov.u32 %r1, %reserved_smem_offset_1",
    "mov.f64 %fd1, 1.0 + 2.0",
};

static const char *const modules[] = {
    ".texref t;",
    ".samplerref t;",
    ".surfref t;",
    ".entry k() .explicitcluster { ret; }",
    ".entry k() .reqnctapercluster 2 { ret; }",
    ".func f(.reg .b32 a) { ret; }",
    ".entry k() { .reg .v4 .f32 %v<9>; ret; }",
    ".global .b8 g; .global .b8 h = 0xFF00(g);",
};

static mr_status load(const char *text) {
    mr_ptx_module *module = NULL;
    mr_status status = mr_ptx_module_load(text, strlen(text), "k.ptx", &module);
    if (status) return status;
    for (uint32_t i = 0; i < mr_ptx_kernel_count(module) && !status; i++) {
        const char *problem = mr_ptx_kernel_at(module, i)->problem;
        if (problem) status = mr_fail(MR_CODE_NOT_SUPPORTED, "%s", problem);
    }
    mr_ptx_module_release(module);
    return status;
}

static void expect_refusal(const char *what, const char *text) {
    mr_status status = load(text);
    if (!status) fail_msg("is covered: %s", what);
    if (status->code != MR_CODE_NOT_SUPPORTED) fail_msg("%s: %s", what, status->message);
    assert_non_null(strstr(status->message, "covered"));
    mr_error_destroy(status);
}

static char *around(const char *instruction) {
    static char text[2000];
    snprintf(text, sizeof text,
             ".version 8.6\n.target sm_90a\n.extern .func (.param .b64 r) malloc(.param .b64 s);\n"
             ".extern .func free(.param .b64 s);\n.extern .func elsewhere(.param .b64 s);\n"
             ".entry k(.param .b64 p) { .reg .pred %%p<3>; .reg .b16 %%h<5>; .reg .b32 %%r<5>;\n"
             ".reg .b64 %%rd<5>; .reg .f32 %%f<3>; .reg .f64 %%fd<4>; .reg .b128 %%q<4>;\n"
             ".param .b64 x; .param .b64 y;\n%s;\nret; }\n",
             instruction);
    return text;
}

static void instructions_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
        expect_refusal(instructions[i], around(instructions[i]));
}

static void declarations_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        char text[300];
        snprintf(text, sizeof text, ".version 8.6\n.target sm_90a\n%s\n", modules[i]);
        expect_refusal(modules[i], text);
    }
}

/* The text around the instructions is no reason to refuse one. */
static void the_text_around_them_is_covered(void **state) {
    (void)state;
    mr_status status = load(around("add.s32 %r1, %r2, %r3"));
    if (status) fail_msg("%s", status->message);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_are_refused),
        cmocka_unit_test(declarations_are_refused),
        cmocka_unit_test(the_text_around_them_is_covered),
    };
    return cmocka_run_group_tests_name("ptx_not_covered", tests, NULL, NULL);
}
