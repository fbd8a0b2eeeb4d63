/* The errors of the PTX reader for text that is wrong or not covered: whole sentences. */
#include "ptx_texts.h"

typedef struct {
    const char *text, *message;
} row;

/* The whole text. */
static const row heads[] = {
    {"", "k.ptx, line 1 of the PTX: expected `.version` at the start of the PTX text, but the text "
         "ends here"},
    {"// nothing\n", "k.ptx, line 2 of the PTX: expected `.version` at the start of the PTX text, "
                     "but the text ends here"},
    {"hello",
     "k.ptx, line 1 of the PTX: expected `.version` at the start of the PTX text, found `hello`"},
    {".version 8.3",
     "k.ptx, line 1 of the PTX: expected `.target` after `.version`, but the text ends here"},
    {".version eight", "k.ptx, line 1 of the PTX: expected a version such as `8.3`, found `eight`"},
    {".version 8", "k.ptx, line 1 of the PTX: expected a version such as `8.3`, found `8`"},
    {".version 8.3\n.target",
     "k.ptx, line 2 of the PTX: expected a target such as `sm_90`, but the text ends here"},
    {".version 8.3\n.target sm_100a\n", "k.ptx, line 2 of the PTX: the PTX is made for `sm_100a`, "
                                        "which is newer than sm_90: compile it for sm_90 or older"},
    {".version 8.3\n.target debug\n",
     "k.ptx, line 2 of the PTX: `.target` names no architecture, such as `sm_90`"},
    {".version 1.3\n.target sm_13, map_f64_to_f32\n",
     "k.ptx, line 2 of the PTX: the target `map_f64_to_f32` (GPUs without double) is not covered"},
    {".version 8.3\n.target sm_80\n.address_size 32\n",
     "k.ptx, line 3 of the PTX: addresses of 32 bits are not covered: compile for 64 bits "
     "(`-m64`)"},
    {".version 8.3 /* no end", "k.ptx, line 1 of the PTX: a comment has no end"},
    {"\x01\x02",
     "k.ptx, line 1 of the PTX: expected `.version` at the start of the PTX text, found `\\x01`"},
    {"\xC3\x28\x1b[31m",
     "k.ptx, line 1 of the PTX: expected `.version` at the start of the PTX text, found `\\xc3`"},
};

/* After the head: line 4. */
static const row modules[] = {
    {".visible\n", "k.ptx, line 5 of the PTX: expected a function, a kernel, a variable or a "
                   "directive, but the text ends here"},
    {"add.s32 a, b;\n", "k.ptx, line 4 of the PTX: expected a function, a kernel, a variable or a "
                        "directive, found `add`"},
    {".texref t;\n",
     "k.ptx, line 4 of the PTX: `.texref` is not covered: it belongs to textures and surfaces"},
    {".global .b32 a;\n.global .b32 a;\n",
     "k.ptx, line 5 of the PTX: `a` is declared twice in the same scope"},
    {".global .b32 a[-1];\n",
     "k.ptx, line 4 of the PTX: the size of an array must be an integer that is not negative"},
    {".global .b32 a[];\n",
     "k.ptx, line 4 of the PTX: the array `a` has no size and no initial value"},
    {".global .b32 a[2][];\n",
     "k.ptx, line 4 of the PTX: only the first dimension of an array may be left open"},
    {".global .b64 a[1152921504606846976];\n",
     "k.ptx, line 4 of the PTX: the array `a` is larger than 2^60 bytes"},
    {".global .align 3 .b32 a;\n",
     "k.ptx, line 4 of the PTX: an alignment must be a power of two, not 3"},
    {".global .pred a;\n",
     "k.ptx, line 4 of the PTX: a variable in memory cannot be a predicate (`.pred`)"},
    {".global a;\n", "k.ptx, line 4 of the PTX: expected a type such as `.b32`, found `a`"},
    {".global .b32 .b64 a;\n",
     "k.ptx, line 4 of the PTX: the declaration has two types: `.b64` is the second"},
    {".global .f8 a;\n",
     "k.ptx, line 4 of the PTX: `.f8` is neither a type nor an attribute of a declaration"},
    {".global .b32 a = {1, 2};\n",
     "k.ptx, line 4 of the PTX: `a` or a row of it has more initial values than elements"},
    {".global .b32 a[2] = {1, 2, 3};\n",
     "k.ptx, line 4 of the PTX: `a` or a row of it has more initial values than elements"},
    {".global .b32 a[2] = {{1}};\n",
     "k.ptx, line 4 of the PTX: the braces are nested deeper than the array `a`"},
    {".global .b32 a[2][2] = {{1, 2, 3}};\n",
     "k.ptx, line 4 of the PTX: `a` or a row of it has more initial values than elements"},
    {".global .b32 a[2] = {1 2};\n",
     "k.ptx, line 4 of the PTX: expected `,` or `}` after an initial value, found `2`"},
    {".global .b32 a[2] = {1,", "k.ptx, line 4 of the PTX: expected a number or the name of a "
                                "variable or function, but the text ends here"},
    {".global .b8 a[2] = \"abc\";\n", "k.ptx, line 4 of the PTX: the string is longer than `a`"},
    {".global .b32 a[2] = \"a\";\n",
     "k.ptx, line 4 of the PTX: a string can be the value of bytes only"},
    {".global .b8 a[2] = \"abc\n", "k.ptx, line 4 of the PTX: the string has no closing quote"},
    {".global .b32 a = 1.5;\n",
     "k.ptx, line 4 of the PTX: a real number of 8 bytes cannot be the initial value of a `.b32`"},
    {".global .b64 a = b;\n",
     "k.ptx, line 4 of the PTX: there is no variable or function `b` before this line"},
    {".global .b8 b; .global .b16 a = b;\n",
     "k.ptx, line 4 of the PTX: an address cannot be the initial value of a `.b16`"},
    {".global .b8 b; .global .b8 a = 0xFF00(b);\n",
     "k.ptx, line 4 of the PTX: a mask of an address is covered only as eight bytes in order: "
     "0xFF(x), 0xFF00(x), ..."},
    {".global .b8 b; .global .b8 a[8] = {0xFF(b), 0xFF00(b), 3};\n",
     "k.ptx, line 4 of the PTX: expected all eight bytes of the masked address that begins above"},
    {".global .b8 b; .global .b8 a[8] = {0xFF(b), 0xFF00(b)};\n",
     "k.ptx, line 4 of the PTX: expected all eight bytes of the masked address that begins above"},
    {".global .b8 b[64][33554432] = {{1},{1},{1},{1},{1},{1},{1},{1},{1},{1}};\n",
     "k.ptx, line 4 of the PTX: initial values of more than 256 MiB are not covered"},
    {".shared .b32 a = 1;\n",
     "k.ptx, line 4 of the PTX: only variables in global and constant memory have initial values"},
    {".func f(.reg .b32 a);\n",
     "k.ptx, line 4 of the PTX: a parameter in a register is not covered: declare it as `.param`"},
    {".func f(.b32 a);\n", "k.ptx, line 4 of the PTX: expected `.param`, found `.b32`"},
    {".func f(.param .b32 a;\n",
     "k.ptx, line 4 of the PTX: expected `)` after the parameters, found `;`"},
    {".func f(.param .b32 a);\n.func f();\n",
     "k.ptx, line 5 of the PTX: the function `f` was declared on line 4 with other parameters"},
    {".func f() {}\n.func f() {}\n", "k.ptx, line 5 of the PTX: the function `f` is defined twice"},
    {".global .b32 f;\n.func f() {}\n",
     "k.ptx, line 5 of the PTX: `f` is declared twice in the same scope"},
    {".entry k() .explicitcluster {}\n", "k.ptx, line 4 of the PTX: `.explicitcluster` is not "
                                         "covered: it belongs to clusters of thread blocks"},
    {".entry k() .reqnctapercluster 2, 1, 1 {}\n",
     "k.ptx, line 4 of the PTX: `.reqnctapercluster` is not covered: it belongs to clusters of "
     "thread blocks"},
    {".entry k() .fast {}\n", "k.ptx, line 4 of the PTX: `.fast` is not a directive of a function"},
    {".entry k() .maxntid 1, 2, 3, 4 {}\n",
     "k.ptx, line 4 of the PTX: a block has three extents at most"},
    {".entry k() .maxntid 5000000000 {}\n", "k.ptx, line 4 of the PTX: expected a number of "
                                            "threads of at most 4294967295, found 5000000000"},
    {".entry k()", "k.ptx, line 4 of the PTX: expected `{` before the body of a function, but the "
                   "text ends here"},
    {".entry k(.param .b32 a, .param .b32 a) {}\n",
     "k.ptx, line 4 of the PTX: `a` is declared twice in the same scope"},
    {".alias a, b;\n", "k.ptx, line 4 of the PTX: `.alias` names something that is not a function"},
    {".func a; .func b; .alias a, b;\n", "k.ptx, line 4 of the PTX: `.alias` needs a function that "
                                         "is only declared, and one that is defined"},
    {".section .debug_str { .b8 1\n", "k.ptx, line 4 of the PTX: the section has no closing `}`"},
    {".file 1\n",
     "k.ptx, line 5 of the PTX: expected the name of the file in quotes, but the text ends here"},
    {"}\n", "k.ptx, line 4 of the PTX: expected a function, a kernel, a variable or a directive, "
            "found `}`"},
};

/* In a function: line 6. */
static const row bodies[] = {
    {"frob.b32 %r1, %r2;",
     "k.ptx, line 6 of the PTX: `frob` is no instruction of PTX that is known"},
    {"wgmma.fence.sync.aligned;",
     "k.ptx, line 6 of the PTX: `wgmma` is not covered: it belongs to the tensor cores"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r1}, {%f1};",
     "k.ptx, line 6 of the PTX: `mma` is not covered: it belongs to the tensor cores"},
    {"tex.2d.v4.f32.s32 {%f1}, [t];",
     "k.ptx, line 6 of the PTX: `tex` is not covered: it belongs to textures and surfaces"},
    {"mbarrier.init.shared.b64 [%r1], 1;", "k.ptx, line 6 of the PTX: `mbarrier` is not covered: "
                                           "it belongs to barrier objects in shared memory"},
    {"cp.async.bulk.shared.global [%r1], [%rd1], 16, [%r2];",
     "k.ptx, line 6 of the PTX: `.bulk` of `cp` is not covered: it belongs to bulk copies (TMA)"},
    {"cp.async.mbarrier.arrive.shared.b64 [%r1];",
     "k.ptx, line 6 of the PTX: `.mbarrier` of `cp` is not covered: it belongs to barrier objects "
     "in shared memory"},
    {"mapa.u64 %rd1, %rd2, 1;",
     "k.ptx, line 6 of the PTX: `mapa` is not covered: it belongs to clusters of thread blocks"},
    {"vadd4.s32.s32.s32 %r1, %r1, %r1, %r1;",
     "k.ptx, line 6 of the PTX: `vadd4` is not covered: it is a video instruction"},
    {"cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2;",
     "k.ptx, line 6 of the PTX: `.e2m1x2` of `cvt` is not covered: it belongs to floating-point "
     "types of 8 bits and less"},
    {"elect.sync %r1|%p1, -1;", "k.ptx, line 6 of the PTX: `elect` is not covered: it chooses one "
                                "thread of a warp for the tensor cores or bulk copies"},
    {"multimem.ld_reduce.global.add.f32 %f1, [%rd1];",
     "k.ptx, line 6 of the PTX: `multimem` is not covered: it belongs to memory that several GPUs "
     "share"},
    {"fence.proxy.async;", "k.ptx, line 6 of the PTX: `.proxy` of `fence` is not covered: it "
                           "orders accesses on different hardware paths, such as bulk copies"},
    {"add.s33 %r1, %r2, %r3;", "k.ptx, line 6 of the PTX: `.s33` of `add` is no modifier and no "
                               "type of PTX that is known"},
    {"add.s32 %r1, %r2, %r3",
     "k.ptx, line 7 of the PTX: expected `,` or `;` after the operands of `add`, found `}`"},
    {"add.s32 %r1 %r2, %r3;",
     "k.ptx, line 6 of the PTX: expected `,` or `;` after the operands of `add`, found `%r2`"},
    {"add.s32 %r1, , %r3;", "k.ptx, line 6 of the PTX: expected an operand, found `,`"},
    {"add.s32 %r1, %r99, %r3;",
     "k.ptx, line 6 of the PTX: the register `%r99` is not declared in this function"},
    {"add.s32 %r1, %r01, %r3;",
     "k.ptx, line 6 of the PTX: the register `%r01` is not declared in this function"},
    {"add.s32 %r1, %x, %r3;",
     "k.ptx, line 6 of the PTX: the register `%x` is not declared in this function"},
    {"add.s32 %r1, %r, %r3;",
     "k.ptx, line 6 of the PTX: the register `%r` is not declared in this function"},
    {"add.s32 %r1, nothing, %r3;",
     "k.ptx, line 6 of the PTX: `nothing` is not declared before this line"},
    {"add.s32.s32.s32.s32.s32 %r1, %r2, %r3;",
     "k.ptx, line 6 of the PTX: `add` has more than 4 types"},
    {"add.rn.rn.rn.rn.rn.rn.rn.rn.rn.f32 %f1, %f2;",
     "k.ptx, line 6 of the PTX: `add` has more than 8 modifiers"},
    {"add.s32 %r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1;",
     "k.ptx, line 6 of the PTX: the instruction has more than 8 operands"},
    {"mov.u32 %r1, %tid;",
     "k.ptx, line 6 of the PTX: expected `.x`, `.y` or `.z` after the special register, found `;`"},
    {"mov.u32 %r1, %tid.w;", "k.ptx, line 6 of the PTX: expected `.x`, `.y` or `.z` after the "
                             "special register, found `.w`"},
    {"mov.u32 %r1, %pm3;",
     "k.ptx, line 6 of the PTX: `%pm3` is not covered: it reads the counters of a profiler"},
    {"mov.u32 %r1, %envreg32;",
     "k.ptx, line 6 of the PTX: the register `%envreg32` is not declared in this function"},
    {"mov.u32 %r1, 0x;", "k.ptx, line 6 of the PTX: `0x`: this is not a number"},
    {"mov.u32 %r1, 09;", "k.ptx, line 6 of the PTX: `09`: this is not a number"},
    {"mov.u32 %r1, 12ab;", "k.ptx, line 6 of the PTX: `12ab`: this is not a number"},
    {"mov.u32 %r1, 99999999999999999999;",
     "k.ptx, line 6 of the PTX: `99999999999999999999`: the number needs more than 64 bits"},
    {"mov.f32 %f1, 0f3F80;", "k.ptx, line 6 of the PTX: `0f3F80`: `0f` needs 8 hexadecimal digits"},
    {"mov.f64 %fd1, 0d3F80;",
     "k.ptx, line 6 of the PTX: `0d3F80`: `0d` needs 16 hexadecimal digits"},
    {"mov.u32 %r1, 1/0;", "k.ptx, line 6 of the PTX: the constant expression divides by zero"},
    {"mov.u32 %r1, 1.5 + 2;",
     "k.ptx, line 6 of the PTX: arithmetic of real constants is not covered"},
    {"mov.u32 %r1, ~1.5;", "k.ptx, line 6 of the PTX: arithmetic of real constants is not covered"},
    {"mov.u32 %r1, (1;",
     "k.ptx, line 6 of the PTX: expected `)` in the constant expression, found `;`"},
    {"mov.u32 %r1, !g;", "k.ptx, line 6 of the PTX: `!` stands only before a predicate register"},
    {"mov.f32 %f1, %v.z;", "k.ptx, line 6 of the PTX: the vector register has 2 parts"},
    {"ld.global.b32 %r1, [%rd1;",
     "k.ptx, line 6 of the PTX: expected `]` after the address, found `;`"},
    {"ld.global.b32 %r1, [1.5];", "k.ptx, line 6 of the PTX: an address must be an integer"},
    {"ld.global.b32 %r1, [%tid.x];",
     "k.ptx, line 6 of the PTX: an address begins with a register, a variable or a number"},
    {"ld.global.b32 %r1, [%rd1+1.5];",
     "k.ptx, line 6 of the PTX: the offset of an address must be an integer"},
    {"ld.global.b32 %r1, [%rd1+%rd2];",
     "k.ptx, line 6 of the PTX: expected a constant, found `%rd2`"},
    {"mov.b64 {%r1, %r2, %rd1;",
     "k.ptx, line 6 of the PTX: expected `}` after the list, found `;`"},
    {"mov.b64 {%v, %r2}, %rd1;",
     "k.ptx, line 6 of the PTX: a list holds parts of vector registers, not whole ones"},
    {"bra NOWHERE;", "k.ptx, line 6 of the PTX: there is no label `NOWHERE` in this function"},
    {"bra %r1;", "k.ptx, line 6 of the PTX: there is no label `%r1` in this function"},
    {"bra;", "k.ptx, line 6 of the PTX: expected the label to branch to, found `;`"},
    {"{ IN: } bra IN;", "k.ptx, line 6 of the PTX: there is no label `IN` in this function"},
    {"brx.idx %r1;", "k.ptx, line 6 of the PTX: expected `,` after the index, found `;`"},
    {"brx.idx %r1, %r2;", "k.ptx, line 6 of the PTX: expected a list of labels (`.branchtargets`), "
                          "declared before this line, as the last operand"},
    {"t: .branchtargets A, B; A: brx.idx %r1, t;",
     "k.ptx, line 6 of the PTX: there is no label `B` in this function"},
    {"call %rd1;",
     "k.ptx, line 6 of the PTX: a call through a register needs a prototype (`.callprototype`)"},
    {"call %rd1, (), %rd1;", "k.ptx, line 6 of the PTX: expected a prototype (`.callprototype`), "
                             "declared before this line, as the last operand"},
    {"call g;",
     "k.ptx, line 6 of the PTX: only a function, or a register with its address, can be called"},
    {"call nothing, ();", "k.ptx, line 6 of the PTX: `nothing` is not declared before this line"},
    {"call (%r1 f;", "k.ptx, line 6 of the PTX: expected `)` after the list, found `f`"},
    {"@%r1 ret;",
     "k.ptx, line 6 of the PTX: the guard after `@` must be a register of the type `.pred`"},
    {"@ ret;", "k.ptx, line 6 of the PTX: `ret` is not declared before this line"},
    {"@%p1 L: ret;",
     "k.ptx, line 6 of the PTX: a guard (`@%p`) stands after a label, not before it"},
    {"L: L: ret;", "k.ptx, line 6 of the PTX: `L` is declared twice in the same scope"},
    {".reg .b32 %r<3>;", "k.ptx, line 6 of the PTX: `%r` is declared twice in the same scope"},
    {".reg .b32 %s<3;",
     "k.ptx, line 6 of the PTX: expected `>` after the number of registers, found `;`"},
    {".reg .b32 %s<5000000000>;", "k.ptx, line 6 of the PTX: expected a number of registers of at "
                                  "most 4294967295, found 5000000000"},
    {".reg .v2 .b32 %s<3>;",
     "k.ptx, line 6 of the PTX: a range of vector registers is not covered: declare each one"},
    {".reg .v8 .b32 %s;", "k.ptx, line 6 of the PTX: a vector register has 2 or 4 parts, not 8"},
    {".reg %s;", "k.ptx, line 6 of the PTX: expected a type such as `.b32`, found `%s`"},
    {".local .b32 x = 3;",
     "k.ptx, line 6 of the PTX: a variable in local or shared memory has no initial value"},
    {".global .b32 x;",
     "k.ptx, line 6 of the PTX: expected an instruction or a declaration, found `.global`"},
    {".loc 1 2;", "k.ptx, line 6 of the PTX: expected the number of a column, found `;`"},
    {".loc 1 2 3, elsewhere 4;",
     "k.ptx, line 6 of the PTX: expected `function_name` or `inlined_at`, found `elsewhere`"},
    {".pragma nounroll;",
     "k.ptx, line 6 of the PTX: expected a string after `.pragma`, found `nounroll`"},
    {"#;", "k.ptx, line 6 of the PTX: expected an instruction, found `#`"},
    {"\"text\";", "k.ptx, line 6 of the PTX: expected an instruction, found `text`"},
    {"\xff\xfe;", "k.ptx, line 6 of the PTX: expected an instruction, found `\\xff`"},
    {"a_very_long_name_that_goes_on_and_on_and_on_and_on_and_on_for_more_than_forty_characters;",
     "k.ptx, line 6 of the PTX: `a_very_long_name_that_goes_on_and_on_...` is no instruction "
     "of PTX that is known"},
    {".loc 1 14 3\nfrob;", "t.cu:14: `frob` is no instruction of PTX that is known "
                           "(line 7 of the PTX)"},
};

static bool is_not_covered(const char *message) {
    return strstr(message, "not covered") || strstr(message, "is covered only") ||
           strstr(message, "is newer than");
}

static void expect_message(const char *text, const char *expected) {
    ptx_tree tree;
    mr_status status = ptx_read(text, strlen(text), "k.ptx", &tree);
    if (!status) { /* what is not covered in a function is its own problem */
        for (uint32_t i = 0; i < tree.function_count && !status; i++)
            if (tree.functions[i].problem)
                status = mr_fail(MR_CODE_NOT_SUPPORTED, "%s", tree.functions[i].problem);
        ptx_tree_free(&tree);
    }
    if (!status) fail_msg("is read: %s", text);
    assert_string_equal(status->message, expected);
    assert_int_equal(status->code,
                     is_not_covered(expected) ? MR_CODE_NOT_SUPPORTED : MR_CODE_INVALID_ARGUMENT);
    assert_null(tree.arena);
    mr_error_destroy(status);
}

static void expect_messages(const row *rows, size_t count, const char *before, const char *after) {
    for (size_t i = 0; i < count; i++) {
        mr_buffer text = {0};
        mr_buffer_printf(&text, "%s%s%s", before, rows[i].text, after);
        expect_message(text.data ? text.data : "", rows[i].message);
        mr_buffer_free(&text);
    }
}

#define EXPECT(rows, before, after) expect_messages(rows, sizeof rows / sizeof *rows, before, after)

static void of_the_head(void **state) {
    (void)state;
    EXPECT(heads, "", "");
}

static void of_declarations(void **state) {
    (void)state;
    EXPECT(modules, HEAD, "");
}

/* The names of files stand at the end, as compilers write them. */
static void in_a_function(void **state) {
    (void)state;
    EXPECT(bodies,
           HEAD ".global .b32 g;\n.entry k() { .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 "
                "%rd<3>; .reg .f32 %f<3>; .reg .f64 %fd<3>; .reg .b16 %h<3>; .reg .v2 .f32 %v;\n",
           "\n}\n.file 1 \"t.cu\"\n");
}

static void a_label_is_missing_where_it_is_used(void **state) {
    (void)state;
    expect_message(
        HEAD ".entry k() {\n.loc 1 14 3\nbra NOWHERE;\n.loc 1 15 3\nret;\n}\n.file 1 \"t.cu\"\n",
        "t.cu:14: there is no label `NOWHERE` in this function (line 6 of the PTX)");
}

static void inlined_code_is_reported_at_the_kernels_line(void **state) {
    (void)state;
    expect_message(
        HEAD ".entry k() {\n.loc 1 14 3\n.loc 2 7 1, function_name $L0, inlined_at 1 14 "
             "3\nmma.f32;\n}\n.file 2 \"h.h\"\n.file 1 \"t.cu\"\n",
        "t.cu:14: `mma` is not covered: it belongs to the tensor cores (line 7 of the PTX)");
}

/* `repeated` many times, in an instruction or outside of one. */
static void expect_limit(const char *before, const char *repeated, const char *message) {
    mr_buffer text = {0};
    mr_buffer_puts(&text, before);
    for (int k = 0; k < 100000; k++) mr_buffer_puts(&text, repeated);
    expect_message(text.data, message);
    mr_buffer_free(&text);
}

static void nesting_has_a_limit(void **state) {
    (void)state;
    static const char body[] = HEAD ".entry k() { .reg .b32 %r<2>; mov.b32 %r1, ";
    static const char too_deep[] =
        "k.ptx, line 4 of the PTX: the constant expression is nested more than 64 deep";
    expect_limit(HEAD ".entry k() {", "{",
                 "k.ptx, line 4 of the PTX: scopes are nested more than 64 deep");
    expect_limit(body, "(", too_deep);
    expect_limit(body, "-", too_deep);
    expect_limit(body, "0 ? 1 : ", too_deep);
    expect_limit(HEAD ".global .b8 x", "[1]",
                 "k.ptx, line 4 of the PTX: an array has more than 64 dimensions");
    expect_limit(HEAD ".global .b8 x = ", "{",
                 "k.ptx, line 4 of the PTX: the braces are nested deeper than the array `x`");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_head),
        cmocka_unit_test(of_declarations),
        cmocka_unit_test(in_a_function),
        cmocka_unit_test(a_label_is_missing_where_it_is_used),
        cmocka_unit_test(inlined_code_is_reported_at_the_kernels_line),
        cmocka_unit_test(nesting_has_a_limit),
    };
    return cmocka_run_group_tests_name("ptx_errors", tests, NULL, NULL);
}
