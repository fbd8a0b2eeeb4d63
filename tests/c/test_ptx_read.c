/* The reader of PTX: what the tree holds for small texts. */
#include "ptx_texts.h"

#define DECLARATIONS                                                                               \
    ".global .align 4 .b32 g[8];\n.const .align 4 .f32 c[2];\n.extern .shared .align 16 .b8 "      \
    "s[];\n"                                                                                       \
    ".func (.param .b32 r0) f(.param .b32 a0, .param .b64 a1);\n.func q;\n"                        \
    ".visible .entry k(.param .u64 p, .param .align 8 .b8 v[24]) {\n"                              \
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n"    \
    ".reg .f64 %fd<9>; .reg .b64 %SP; .reg .v4 .f32 %q; .local .align 8 .b8 depot[16];\n"          \
    ".param .b32 x; .param .b64 y; .param .b32 z;\nTOP:\nt: .branchtargets TOP, END;\n"            \
    "u: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);\n"

/* The text of an instruction, and how the reader gives it back; NULL: the same. */
static const struct {
    const char *text, *read;
} instructions[] = {
    {"ret", NULL},
    {"bar.sync 0", NULL},
    {"ld.param.u64 %rd1, [p]", NULL},
    {"ld.param.f64 %fd1, [v+16]", NULL},
    {"ld.param.u32 %r1, [v+0]", "ld.param.u32 %r1, [v]"},
    {"mov.u32 %r3, %ctaid.x", NULL},
    {"mov.u32 %r3, %ntid.z", NULL},
    {"mov.u32 %r3, %laneid", NULL},
    {"mov.u32 %r3, %envreg31", NULL},
    {"mov.u64 %rd3, %clock64", NULL},
    {"mov.b32 %r3, WARP_SZ", "mov.b32 %r3, 32"},
    {"mov.u64 %rd3, g", NULL},
    {"mov.u64 %rd3, g+8", NULL},
    {"mov.u64 %SP, depot", NULL},
    {"mov.u32 %r1, s", NULL},
    {"mov.u64 %rd3, f", NULL},
    {"mov.b64 {%r1, %r2}, %rd1", NULL},
    {"mov.b64 %rd1, {%r1,%r2}", "mov.b64 %rd1, {%r1, %r2}"},
    {"mov.b64 {_, %r2}, %rd1", NULL},
    {"mov.f32 %f1, 0f3F800000", NULL},
    {"mov.f32 %f1, 0fbf800000", "mov.f32 %f1, 0fBF800000"},
    {"mov.f64 %fd1, 0d3FF0000000000000", NULL},
    {"mov.f64 %fd1, 1.5", "mov.f64 %fd1, 0d3FF8000000000000"},
    {"mov.f64 %fd1, -2.5e-1", "mov.f64 %fd1, 0dBFD0000000000000"},
    {"mov.f32 %f1, -0f00000000", "mov.f32 %f1, 0f80000000"},
    {"mov.f32 %f1, %q.w", NULL},
    {"mov.f32 %f1, %q.g", "mov.f32 %f1, %q.y"},
    {"ld.global.v4.f32 %q, [%rd1]", "ld.global.v4.f32 {%q.x, %q.y, %q.z, %q.w}, [%rd1]"},
    {"ld.global.v4.f32 {%f1, _, %f3, %f4}, [%rd1+-16]", NULL},
    {"ld.global.f32 %f1, [g+4]", NULL},
    {"ld.global.f32 %f1, [g + 4 * 2 - 4]", "ld.global.f32 %f1, [g+4]"},
    {"ld.global.f32 %f1, [%rd1-4]", "ld.global.f32 %f1, [%rd1+-4]"},
    {"ld.global.f32 %f1, [256]", NULL},
    {"ld.global.f32 %f1, [-8]", NULL},
    {"ld.global.nc.L1::no_allocate.L2::128B.f32 %f1, [%rd1]", NULL},
    {"ld.const.f32 %f1, [c]", NULL},
    {"st.shared.u32 [s+12], %r1", NULL},
    {"st.global.u32 [%rd1], 7", NULL},
    {"add.s32 %r1, %r2, -1", NULL},
    {"add.s32 %r1, %r2, 0x7fffffff", "add.s32 %r1, %r2, 2147483647"},
    {"add.s32 %r1, %r2, 0xFFFFFFFF", "add.s32 %r1, %r2, 4294967295"},
    {"add.s64 %rd1, %rd2, 0xFFFFFFFFFFFFFFFF", "add.s64 %rd1, %rd2, -1"},
    {"add.s32 %r1, %r2, 0x10U", "add.s32 %r1, %r2, 16"},
    {"add.s32 %r1, %r2, 017", "add.s32 %r1, %r2, 15"},
    {"add.s32 %r1, %r2, 0", NULL},
    {"add.s32 %r1, %r2, 0b101", "add.s32 %r1, %r2, 5"},
    {"add.s32 %r1, %r2, ~7", "add.s32 %r1, %r2, -8"},
    {"add.s32 %r1, %r2, (1 << 4) + 2 * 3", "add.s32 %r1, %r2, 22"},
    {"add.s32 %r1, %r2, 1 << 4 + 2 * 3", "add.s32 %r1, %r2, 1024"},
    {"add.s32 %r1, %r2, 7 - 3 - 2", "add.s32 %r1, %r2, 2"},
    {"add.s32 %r1, %r2, -7 / 2 + -7 % 2", "add.s32 %r1, %r2, -4"},
    {"add.s32 %r1, %r2, 1 ? 5 : 0 ? 6 : 7", "add.s32 %r1, %r2, 5"},
    {"add.s32 %r1, %r2, 0 ? 5 : 0 ? 6 : 7", "add.s32 %r1, %r2, 7"},
    {"add.s32 %r1, %r2, !0 + !5", "add.s32 %r1, %r2, 1"},
    {"add.s32 %r1, %r2, 3 < 4 == 1 && 2 | 1", "add.s32 %r1, %r2, 1"},
    {"add.s32 %r1, %r2, -8 >> 1", "add.s32 %r1, %r2, -4"},
    {"add.s32 %r1, %r2, -8 >> 70", "add.s32 %r1, %r2, -1"},
    {"add.s32 %r1, %r2, 1 << 64", "add.s32 %r1, %r2, 0"},
    {"add.u64 %rd1, %rd2, (.u64) -1 >> 60", "add.u64 %rd1, %rd2, 15"},
    {"add.u64 %rd1, %rd2, (.s64) 0xFFFFFFFFFFFFFFF0 >> 2", "add.u64 %rd1, %rd2, -4"},
    {"add.s64 %rd1, %rd2, -0x8000000000000000 / -1", "add.s64 %rd1, %rd2, -9223372036854775808"},
    {"add.s32 %r1, %r2, 12 & 10 ^ 1", "add.s32 %r1, %r2, 9"},
    {"setp.lt.s32 %p1, %r1, %r2", NULL},
    {"setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3", NULL},
    {"setp.nan.f32 %p1, %f1, %f2", NULL},
    {"set.eq.ftz.u32.f32 %r1, %f1, %f2", NULL},
    {"@%p1 add.f32 %f1, %f2, %f3", NULL},
    {"@!%p1 st.global.f32 [%rd1], %f1", NULL},
    {"@%p1 exit", NULL},
    {"shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1", NULL},
    {"shfl.sync.idx.b32 %r1, %r2, %r3, 31, %r4", NULL},
    {"vote.sync.ballot.b32 %r1, !%p1, -1", NULL},
    {"atom.global.acq_rel.gpu.add.u32 %r1, [%rd1], 1", NULL},
    {"red.shared.add.f32 [%r1], %f1", NULL},
    {"atom.cas.b32 %r1, [%rd1], %r2, %r3", NULL},
    {"cvt.rn.f16x2.f32 %r1, %f1, %f2", NULL},
    {"cvta.to.global.u64 %rd1, %rd2", NULL},
    {"lop3.b32 %r1, %r2, %r3, %r4, 0x80", "lop3.b32 %r1, %r2, %r3, %r4, 128"},
    {"prmt.b32 %r1, %r2, %r3, 0x5410", "prmt.b32 %r1, %r2, %r3, 21520"},
    {"prmt.b32.f4e %r1, %r2, %r3, %r4", "prmt.f4e.b32 %r1, %r2, %r3, %r4"},
    {"fence.acq_rel.gpu", NULL},
    {"cp.async.ca.shared.global [%r1], [%rd1], 16, 8", NULL},
    {"cp.async.wait_group 0", NULL},
    {"bar.warp.sync -1", NULL},
    {"bra TOP", "bra L0"},
    {"bra.uni END", "bra.uni L1"},
    {"@%p1 bra END", "@%p1 bra L1"},
    {"brx.idx %r1, t", "brx.idx %r1, T0"},
    {"call.uni (z), f, (x, y)", NULL},
    {"call (z), f, (x, y)", NULL},
    {"call q", NULL},
    {"call.uni q, ()", "call.uni q"},
    {"call (z), %rd1, (x, y), u", "call (z), %rd1, (x, y), P0"},
    {"isspacep.shared %p1, %rd1", NULL},
};

static void instructions_are_read_as_they_stand(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        char text[4096], shown[300];
        snprintf(text, sizeof text, "%s%s%s;\nEND:\n}\n", HEAD, DECLARATIONS, instructions[i].text);
        ptx_tree tree = read_text(text);
        const ptx_function *f = &tree.functions[tree.function_count - 1];
        assert_int_equal(f->instruction_count, 1);
        ptx_instruction_text(&tree, f, &f->instructions[0], shown, sizeof shown);
        assert_string_equal(shown,
                            instructions[i].read ? instructions[i].read : instructions[i].text);
        ptx_tree_free(&tree);
    }
}

static void an_instruction_names_its_parts(void **state) {
    (void)state;
    ptx_tree tree = read_after_head(
        ".visible .entry k(.param .u64 p) { .reg .pred %p<3>; .reg .f32 %f<4>; .reg .b64 %rd<2>;\n"
        ".param .b32 %unused; ld.param.u64 %rd1, [p+4];\n@!%p2 ld.volatile.global.v2.f32 {%f3, _}, "
        "[%rd1+8];}");
    const ptx_function *f = &tree.functions[0];
    const ptx_instruction *i = &f->instructions[0];
    assert_int_equal(i->opcode, PTX_OP_ld);
    assert_true(ptx_has(i, PTX_MOD_param) && !ptx_has(i, PTX_MOD_global));
    assert_int_equal(i->type_count, 1);
    assert_int_equal(i->types[0], PTX_u64);
    assert_int_equal(i->guard, -1);
    assert_int_equal(i->operands[0].kind, PTX_REGISTER);
    assert_int_equal(i->operands[1].kind, PTX_PARAMETER);
    assert_true(i->operands[1].is_address);
    assert_int_equal(i->operands[1].offset, 4);
    assert_int_equal(i->place.ptx_line, 5);
    i++;
    assert_int_equal(i->place.ptx_line, 6);
    assert_int_equal(f->registers[i->guard].type, PTX_pred);
    assert_string_equal(f->registers[i->guard].name, "%p2");
    assert_true(i->guard_negated);
    assert_int_equal(i->modifiers[0], PTX_MOD_volatile_);
    assert_int_equal(i->operands[0].kind, PTX_LIST);
    assert_int_equal(i->operands[0].count, 2);
    assert_string_equal(f->registers[i->operands[0].list[0].index].name, "%f3");
    assert_int_equal(i->operands[0].list[1].kind, PTX_SINK);
    assert_int_equal(i->operands[1].index, f->instructions[0].operands[0].index);
    assert_int_equal(f->register_count, 3); /* only those that are used */
    ptx_tree_free(&tree);
}

static void results_and_prefixes_share_no_number(void **state) {
    (void)state;
    ptx_tree tree = read_after_head(
        ".func (.param .b32 r) f(.param .b32 a, .param .b32 b) { .reg .b32 %r<20>, %r1<3>, %x;\n"
        "st.param.b32 [r], %r12; add.s32 %r12, %r9, %r10; mov.b32 %x, %r12; ret; }");
    const ptx_instruction *i = tree.functions[0].instructions;
    assert_int_equal(i[0].operands[0].kind, PTX_PARAMETER);
    assert_int_equal(i[0].operands[0].index, 2); /* behind the two parameters */
    assert_int_equal(i[0].operands[1].index, i[1].operands[0].index);
    assert_int_equal(i[0].operands[1].index, i[2].operands[1].index);
    assert_int_not_equal(i[1].operands[1].index, i[1].operands[2].index);
    ptx_tree_free(&tree);
}

static void scopes_hide_names_and_give_them_back(void **state) {
    (void)state;
    ptx_tree tree =
        read_after_head(".visible .entry k() { .reg .b32 %r<5>; .reg .b32 a; .reg .pred p;\n"
                        "mov.b32 %r1, a;\n"
                        "{ .reg .b32 a; .reg .f32 %r<9>; mov.f32 %r1, a; @p bra L; { mov.f32 %r1, "
                        "a; } bra L; L: mov.b32 a, 1; }\n"
                        "{ mov.b32 %r2, a; bra L; L: mov.b32 %r1, a; }\n"
                        "mov.b32 %r1, %r2; bra L; { bra L; }\n L: ret; }");
    const ptx_function *f = &tree.functions[0];
    const ptx_instruction *i = f->instructions;
    uint32_t outer_r1 = i[0].operands[0].index, outer_a = i[0].operands[1].index;
    uint32_t inner_r1 = i[1].operands[0].index, inner_a = i[1].operands[1].index;
    assert_int_not_equal(outer_r1, inner_r1);
    assert_int_not_equal(outer_a, inner_a);
    assert_int_equal(f->registers[inner_r1].type, PTX_f32);
    assert_int_equal(i[3].operands[0].index, inner_r1);
    assert_int_equal(i[3].operands[1].index, inner_a);
    assert_int_equal(i[2].operands[0].index, 5); /* the label of the first scope */
    assert_int_equal(i[4].operands[0].index, 5);
    assert_int_equal(i[6].operands[1].index, outer_a);
    assert_int_equal(i[7].operands[0].index, 8);
    assert_int_equal(i[8].operands[0].index, outer_r1);
    assert_int_equal(i[9].operands[1].index,
                     i[6].operands[0].index); /* made in the scope, still the same */
    assert_int_equal(i[10].operands[0].index, 12);
    assert_int_equal(i[11].operands[0].index, 12);
    ptx_tree_free(&tree);
}

/* ---- variables */

static const ptx_variable *variable(const ptx_tree *tree, const char *name) {
    for (uint32_t i = 0; i < tree->variable_count; i++)
        if (strcmp(tree->variables[i].name, name) == 0) return &tree->variables[i];
    fail_msg("no variable %s", name);
    return NULL;
}

static void variables_have_sizes_and_attributes(void **state) {
    (void)state;
    ptx_tree tree = read_after_head(
        ".visible .global .align 16 .f32 a[3][5];\n.const .u16 b;\n.extern .shared .align 32 .b8 "
        "dyn[];\n"
        ".shared .b64 s[4];\n.extern .global .b32 outside;\n.global .attribute(.managed) .align 8 "
        ".b8 m[24];\n"
        ".weak .global .v4 .f32 vec[2];\n.global .b8 big[1152921504606846976];\n.common .global "
        ".b32 com;\n"
        ".global .b32 one, two[2], three;\n.extern .global .b32 later;\n.global .b32 later = 7;\n");
    const ptx_variable *v = variable(&tree, "a");
    assert_int_equal(v->space, PTX_GLOBAL);
    assert_int_equal(v->type, PTX_f32);
    assert_int_equal(v->align, 16);
    assert_int_equal(v->count, 15);
    assert_int_equal(v->bytes, 60);
    assert_true(v->is_visible && !v->is_extern && !v->init && !v->is_managed);
    v = variable(&tree, "b");
    assert_int_equal(v->space, PTX_CONST);
    assert_int_equal(v->align, 2);
    assert_int_equal(v->bytes, 2);
    assert_int_equal(v->count, 1);
    assert_false(v->is_visible);
    v = variable(&tree, "dyn");
    assert_int_equal(v->space, PTX_SHARED);
    assert_int_equal(v->bytes, 0);
    assert_true(v->is_extern);
    assert_int_equal(variable(&tree, "s")->bytes, 32);
    assert_true(variable(&tree, "outside")->is_extern);
    assert_int_equal(variable(&tree, "outside")->bytes, 4);
    assert_true(variable(&tree, "m")->is_managed);
    v = variable(&tree, "vec");
    assert_int_equal(v->count, 8);
    assert_int_equal(v->align, 16);
    assert_true(variable(&tree, "big")->bytes == (uint64_t)1 << 60);
    assert_int_equal(variable(&tree, "two")->bytes, 8);
    v = variable(&tree, "later");
    assert_false(v->is_extern);
    assert_int_equal(v->init[0], 7);
    assert_int_equal(tree.variable_count, 13);
    ptx_tree_free(&tree);
}

/* A declaration, and the bytes of its initial value; the others are zeros. */
static const struct {
    const char *text;
    uint64_t bytes, init_bytes;
    uint8_t init[24];
} initialisers[] = {
    {".global .b8 x[4] = {1, 2, 255, -1};", 4, 4, {1, 2, 255, 255}},
    {".global .u32 x = 0x01020304;", 4, 4, {4, 3, 2, 1}},
    {".global .u32 x[3] = {1, 2};", 12, 8, {1, 0, 0, 0, 2}},
    {".global .b8 x[1152921504606846976] = {9};", (uint64_t)1 << 60, 1, {9}},
    {".global .f32 x = 0f3F800000;", 4, 4, {0, 0, 0x80, 0x3F}},
    {".global .f32 x[2] = {1.0, 2};", 8, 8, {0, 0, 0x80, 0x3F, 0, 0, 0, 0x40}},
    {".global .f64 x = 0d3FF0000000000000;", 8, 8, {0, 0, 0, 0, 0, 0, 0xF0, 0x3F}},
    {".global .f64 x = 1.0;", 8, 8, {0, 0, 0, 0, 0, 0, 0xF0, 0x3F}},
    {".global .f64 x = 0f3F800000;", 8, 8, {0, 0, 0, 0, 0, 0, 0xF0, 0x3F}},
    {".global .b32 x = 0f3F800000;", 4, 4, {0, 0, 0x80, 0x3F}},
    {".global .b16 x[2] = {0x3C00, 0xBC00};", 4, 4, {0, 0x3C, 0, 0xBC}},
    {".global .f16 x = 0x3C00;", 2, 2, {0, 0x3C}},
    {".const .b8 x[6] = \"ab\\n\\x41\\101\";", 6, 6, {'a', 'b', '\n', 'A', 'A', 0}},
    {".const .b8 x[5] = \"ab\\n\\x41\\101\";", 5, 5, {'a', 'b', '\n', 'A', 'A'}},
    {".const .b8 x[] = \"ab\";", 3, 3, {'a', 'b', 0}},
    {".const .b8 x[8] = {\"ab\", 7};", 8, 4, {'a', 'b', 0, 7}},
    {".global .b16 x[] = {1, 2, 3};", 6, 6, {1, 0, 2, 0, 3}},
    {".global .b8 x[2][3] = {{1, 2}, {3}};", 6, 4, {1, 2, 0, 3}},
    {".global .b8 x[2][3] = {{}, {3, 4, 5}};", 6, 6, {0, 0, 0, 3, 4, 5}},
    {".global .b8 x[2][3] = {1, 2, 3, 4};", 6, 4, {1, 2, 3, 4}},
    {".global .b8 x[][2] = {{1}, {2}, {3, 4}};", 6, 6, {1, 0, 2, 0, 3, 4}},
    {".global .b8 x[][2] = {{1}, {2}, {3}};", 6, 5, {1, 0, 2, 0, 3}},
    {".global .b8 x[2][2][2] = {{{1}, {2}}, {{3}}};", 8, 5, {1, 0, 2, 0, 3}},
    {".global .v2 .b8 x[2] = {{1, 2}, {3, 4}};", 4, 4, {1, 2, 3, 4}},
    {".global .b8 x = {3};", 1, 1, {3}},
    {".global .u64 x = -2;", 8, 8, {254, 255, 255, 255, 255, 255, 255, 255}},
    {".global .u32 x = (1 << 3) | 1;", 4, 4, {9}},
};

static void initial_values_are_bytes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof initialisers / sizeof *initialisers; i++) {
        ptx_tree tree = read_after_head(initialisers[i].text);
        const ptx_variable *v = variable(&tree, "x");
        if (v->bytes != initialisers[i].bytes || v->init_bytes != initialisers[i].init_bytes)
            fail_msg("%s: %llu bytes, %llu given", initialisers[i].text,
                     (unsigned long long)v->bytes, (unsigned long long)v->init_bytes);
        assert_memory_equal(v->init, initialisers[i].init, v->init_bytes);
        ptx_tree_free(&tree);
    }
}

static void addresses_in_initial_values(void **state) {
    (void)state;
    ptx_tree tree = read_after_head(
        ".global .b32 a[4];\n.func f;\n"
        ".global .u64 p[6] = {a, generic(a), a+4, generic(a)+8, f, 5};\n"
        ".global .u64 self = generic(self);\n"
        ".global .align 1 .b8 packed[12] = {1, 0xFF(generic(a)+4), 0xFF00(generic(a)+4), "
        "0xFF0000(generic(a)+4), "
        "0xFF000000(generic(a)+4), 0xFF00000000(generic(a)+4), 0xFF0000000000(generic(a)+4), "
        "0xFF000000000000(generic(a)+4), 0xFF00000000000000(generic(a)+4), 2};");
    static const struct {
        uint64_t offset;
        bool generic;
        int variable, function;
        int64_t addend;
    } expected[] = {{0, false, 0, -1, 0},
                    {8, true, 0, -1, 0},
                    {16, false, 0, -1, 4},
                    {24, true, 0, -1, 8},
                    {32, false, -1, 0, 0}};
    const ptx_variable *p = variable(&tree, "p");
    assert_int_equal(p->relocation_count, 5);
    for (int i = 0; i < 5; i++) {
        const ptx_relocation *r = &p->relocations[i];
        assert_int_equal(r->offset, expected[i].offset);
        assert_int_equal(r->size, 8);
        assert_int_equal(r->generic, expected[i].generic);
        assert_int_equal(r->variable, expected[i].variable);
        assert_int_equal(r->function, expected[i].function);
        assert_int_equal(r->addend, expected[i].addend);
    }
    assert_int_equal(p->init[40], 5);
    assert_int_equal(variable(&tree, "self")->relocations[0].variable, 2);
    const ptx_variable *packed = variable(&tree, "packed");
    assert_int_equal(packed->relocation_count, 1);
    assert_int_equal(packed->relocations[0].offset, 1);
    assert_int_equal(packed->relocations[0].size, 8);
    assert_int_equal(packed->relocations[0].addend, 4);
    assert_int_equal(packed->init[9], 2);
    assert_int_equal(packed->init_bytes, 10);
    ptx_tree_free(&tree);
}

/* ---- functions */

static void functions_have_signatures_and_directives(void **state) {
    (void)state;
    ptx_tree tree = read_after_head(
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
        ".func later(.param .b32 x);\n.extern .func stop() .noreturn;\n"
        ".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr .align 1 b, "
        ".param .u64 c,\n"
        "  .param .align 8 .b8 d[24]) .maxntid 128, 2 .minnctapersm 3 .maxnreg 40 { ret; }\n"
        ".weak .entry w() .reqntid 16, 4, 2 .pragma \"nounroll\"; { ret; }\n"
        ".weak .func later(.param .b32 y) { ret; }\n"
        ".visible .func also(.param .b32 x);\n.alias also, later;\n");
    assert_int_equal(tree.function_count, 6);
    const ptx_function *f = &tree.functions[0];
    assert_string_equal(f->name, "vprintf");
    assert_false(f->is_defined || f->is_entry);
    assert_int_equal(f->signature.result_count, 1);
    assert_int_equal(f->signature.parameter_count, 2);
    f = &tree.functions[1];
    assert_true(f->is_defined && f->is_weak);
    assert_string_equal(f->signature.parameters[0].name, "y");
    assert_int_equal(f->place.ptx_line, 10);
    assert_true(tree.functions[2].never_returns);
    f = &tree.functions[3];
    assert_true(f->is_entry && f->is_visible && f->is_defined);
    assert_int_equal(f->max_threads[0], 128);
    assert_int_equal(f->max_threads[1], 2);
    assert_int_equal(f->max_threads[2], 1);
    assert_int_equal(f->wanted_threads[0], 0);
    assert_int_equal(f->min_blocks, 3);
    assert_int_equal(f->max_registers, 40);
    const ptx_variable *p = f->signature.parameters;
    assert_int_equal(p[0].points_into, PTX_GLOBAL);
    assert_int_equal(p[0].points_align, 16);
    assert_int_equal(p[0].space, PTX_PARAM);
    assert_int_equal(p[1].points_into, PTX_GENERIC);
    assert_int_equal(p[1].points_align, 1);
    assert_int_equal(p[2].points_align, 0);
    assert_int_equal(p[3].bytes, 24);
    assert_int_equal(p[3].align, 8);
    assert_int_equal(tree.functions[4].wanted_threads[1], 4);
    f = &tree.functions[5];
    assert_string_equal(f->name, "also");
    assert_true(f->is_defined && f->is_visible && !f->is_weak);
    assert_ptr_equal(f->instructions, tree.functions[1].instructions);
    ptx_tree_free(&tree);
}

static void the_head_is_kept(void **state) {
    (void)state;
    ptx_tree tree = read_text(".version 9.12\n.target sm_90a, texmode_independent, debug\n");
    assert_int_equal(tree.version_major, 9);
    assert_int_equal(tree.version_minor, 12);
    assert_int_equal(tree.target, 90);
    assert_int_equal(tree.function_count, 0);
    ptx_tree_free(&tree);
    ptx_tree_free(&tree); /* a freed tree is zeroed */
}

/* ---- places */

static void places_name_the_kernel_and_the_inlined_code(void **state) {
    (void)state;
    ptx_tree tree = read_after_head(
        ".visible .entry k() {\n"
        "ret;\n"                                                                  /* 5 */
        ".loc 1 14 3\nret;\n"                                                     /* 7 */
        ".loc 7 200 1, function_name $L__info_string0, inlined_at 1 15 5\nret;\n" /* 9 */
        ".loc 3 31 2, function_name $L__info_string1+4, inlined_at 7 200 1\nret;\n"
        ".loc 1 0 9\nret;\n"
        ".loc 1 16 3\nret;\n"
        ".loc 9 1 1\nret;\n" /* without inlined_at: clang */
        ".loc 1 17 1\nret;\n"
        "}\n.file 9 \"nine.h\"\n.file 1 \"t.cu\"\n.file 7 \"/usr/include/inner.h\", 123, "
        "456\n.file 3 \"deep.h\"\n"
        ".section .debug_str { $L__info_string0: .b8 95,90,0 { } 0xFFFFFFFFFFFFFFFFFFFF }\n");
    static const char *const expected[] = {
        "line 5 of the PTX",
        "t.cu:14",
        "t.cu:15 (in code of inner.h:200)",
        "t.cu:15 (in code of deep.h:31)",
        "t.cu:15 (in code of deep.h:31)",
        "t.cu:16",
        "t.cu:16 (in code of nine.h:1)",
        "t.cu:17",
    };
    const ptx_function *f = &tree.functions[0];
    assert_int_equal(f->instruction_count, 8);
    for (int i = 0; i < 8; i++) {
        char shown[100];
        assert_string_equal(ptx_place_text(&tree, &f->instructions[i].place, shown, sizeof shown),
                            expected[i]);
    }
    assert_int_equal(f->place.line, 14);
    assert_string_equal(tree.files[0], "");
    assert_string_equal(tree.files[f->instructions[3].place.file], "deep.h");
    ptx_tree_free(&tree);
}

static void a_text_is_cut_where_the_room_ends(void **state) {
    (void)state;
    ptx_tree tree =
        read_after_head(".visible .entry k() { .reg .b32 %r<3>; add.s32 %r0, %r1, %r2; }");
    const ptx_function *f = &tree.functions[0];
    char whole[100], cut[100];
    ptx_instruction_text(&tree, f, &f->instructions[0], whole, sizeof whole);
    for (size_t size = 1; size < sizeof cut; size++) {
        memset(cut, '#', sizeof cut);
        ptx_instruction_text(&tree, f, &f->instructions[0], cut, size);
        assert_true(strlen(cut) < size && strncmp(whole, cut, strlen(cut)) == 0);
        if (size < sizeof cut) assert_int_equal(cut[size], '#');
    }
    ptx_tree_free(&tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_are_read_as_they_stand),
        cmocka_unit_test(an_instruction_names_its_parts),
        cmocka_unit_test(results_and_prefixes_share_no_number),
        cmocka_unit_test(scopes_hide_names_and_give_them_back),
        cmocka_unit_test(variables_have_sizes_and_attributes),
        cmocka_unit_test(initial_values_are_bytes),
        cmocka_unit_test(addresses_in_initial_values),
        cmocka_unit_test(functions_have_signatures_and_directives),
        cmocka_unit_test(the_head_is_kept),
        cmocka_unit_test(places_name_the_kernel_and_the_inlined_code),
        cmocka_unit_test(a_text_is_cut_where_the_room_ends),
    };
    return cmocka_run_group_tests_name("ptx_read", tests, NULL, NULL);
}
