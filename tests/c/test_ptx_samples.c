/* The reader of PTX on what compilers write (tests/ptx), and on what is left of it after random damage. */
#include "ptx_texts.h"

static const char *const samples[] = {"nvcc", "nvcc_debug", "clang", "clang_debug"};
enum { SAMPLES = sizeof samples / sizeof *samples };

static mr_buffer sample_text(int i) {
    char path[100], block[4096];
    mr_buffer text = {0};
    snprintf(path, sizeof path, "tests/ptx/%s.ptx", samples[i]);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s; the tests run in the folder above tests/", path);
    for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;) mr_buffer_add(&text, block, n);
    fclose(file);
    return text;
}

static ptx_tree read_sample(int i) {
    ptx_tree tree;
    mr_buffer text = sample_text(i);
    mr_status status = ptx_read(text.data, text.size, samples[i], &tree);
    if (status) fail_msg("%s", status->message);
    mr_buffer_free(&text);
    return tree;
}

static const ptx_function *function(const ptx_tree *tree, const char *name) {
    for (uint32_t i = 0; i < tree->function_count; i++)
        if (strcmp(tree->functions[i].name, name) == 0) return &tree->functions[i];
    fail_msg("no function %s", name);
    return NULL;
}

static const ptx_variable *variable(const ptx_tree *tree, const char *name) {
    for (uint32_t i = 0; i < tree->variable_count; i++)
        if (strcmp(tree->variables[i].name, name) == 0) return &tree->variables[i];
    fail_msg("no variable %s", name);
    return NULL;
}

/* ---- what the source has, each compiler's tree has */

static int count_of(const ptx_function *f, ptx_opcode opcode) {
    int count = 0;
    for (uint32_t i = 0; i < f->instruction_count; i++)
        count += f->instructions[i].opcode == opcode;
    return count;
}

static void the_trees_hold_the_program(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        ptx_tree tree = read_sample(i);
        const ptx_function *f = function(&tree, "everything");
        assert_true(f->is_entry && f->is_visible && f->is_defined);
        assert_int_equal(f->signature.parameter_count, 5);
        assert_int_equal(f->signature.parameters[1].bytes, 24);
        assert_int_equal(f->signature.parameters[1].align, 8);
        assert_true(f->block_count > 20 && f->instruction_count > 150);
        assert_true(count_of(f, PTX_OP_call) >= 4 && count_of(f, PTX_OP_st) > 5);
        assert_int_equal(function(&tree, "_Z9fibonaccii")->signature.result_count, 1);
        assert_false(function(&tree, "vprintf")->is_defined);
        static const uint8_t one_two[] = {1, 0, 0, 0, 2, 0, 0, 0, 3};
        assert_memory_equal(variable(&tree, "numbers")->init, one_two, sizeof one_two);
        assert_int_equal(variable(&tree, "numbers")->bytes, 32);
        assert_int_equal(variable(&tree, "table")->space, PTX_CONST);
        assert_int_equal(variable(&tree, "dynamic")->bytes, 0);
        assert_int_equal(variable(&tree, "middle")->relocation_count, 1);
        assert_true(variable(&tree, "middle")->relocations[0].generic);
        assert_int_equal(variable(&tree, "functions")->relocation_count, 2);
        assert_true(variable(&tree, "functions")->relocations[1].function >= 0);
        ptx_tree_free(&tree);
    }
}

/* Lines of the function `everything` in the source. */
static void find_lines(uint32_t *out_first, uint32_t *out_last) {
    FILE *file = fopen("tests/ptx/sample.cu", "rb");
    char text[400];
    assert_non_null(file);
    *out_first = *out_last = 0;
    for (uint32_t line = 1; fgets(text, sizeof text, file); line++) {
        if (strstr(text, "void everything(")) *out_first = line;
        if (*out_first && !*out_last && text[0] == '}') *out_last = line;
    }
    fclose(file);
}

/* nvcc says where inlined code was called: so every instruction of the kernel has a line of it. */
static void places_lie_in_the_kernel(void **state) {
    (void)state;
    ptx_tree tree = read_sample(0);
    const ptx_function *f = function(&tree, "everything");
    uint32_t first, last, inlined = 0;
    find_lines(&first, &last);
    for (uint32_t k = 0; k < f->instruction_count; k++) {
        const ptx_place *p = &f->instructions[k].place;
        inlined += p->outer_line != p->line;
        assert_in_range(p->outer_line, first, last);
        assert_string_equal(tree.files[p->outer_file], "tests/ptx/sample.cu");
    }
    assert_true(inlined > 50);
    ptx_tree_free(&tree);
}

static void places_lie_in_the_users_file(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        ptx_tree tree = read_sample(i);
        const ptx_function *f = function(&tree, "everything");
        for (uint32_t k = 0; k < f->instruction_count; k++)
            assert_string_equal(tree.files[f->instructions[k].place.outer_file],
                                "tests/ptx/sample.cu");
        ptx_tree_free(&tree);
    }
}

/* ---- round trip: a tree written as PTX reads back as the same tree */

static void write_variable(mr_buffer *out, const ptx_variable *v, const char *space) {
    mr_buffer_printf(out, "%s .align %u .%s %s", space, v->align, mr_ptx_types[v->type].name,
                     v->name);
    uint32_t element = mr_ptx_types[v->type].bytes;
    if (v->count != 1) mr_buffer_printf(out, "[%llu]", (unsigned long long)(v->bytes / element));
}

static void write_list(mr_buffer *out, const ptx_variable *items, uint32_t count, bool named) {
    mr_buffer_puts(out, "(");
    for (uint32_t i = 0; i < count; i++) {
        ptx_variable v = items[i];
        if (!named) v.name = "_";
        if (i) mr_buffer_puts(out, ", ");
        write_variable(out, &v, ".param");
    }
    mr_buffer_puts(out, ") ");
}

static void write_signature(mr_buffer *out, const ptx_signature *s, const char *name, bool named) {
    if (s->result_count) write_list(out, s->results, s->result_count, named);
    mr_buffer_printf(out, "%s ", name);
    write_list(out, s->parameters, s->parameter_count, named);
}

static bool is_first_of_its_name(const ptx_register *registers, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(registers[k].name, registers[i].name) == 0) return false;
    return true;
}

/* Variables of several scopes share a name: the largest serves for all. */
static bool is_largest_of_its_name(const ptx_variable *variables, uint32_t count, uint32_t i) {
    for (uint32_t k = 0; k < count; k++) {
        bool same = k != i && strcmp(variables[k].name, variables[i].name) == 0;
        if (same && variables[k].bytes > variables[i].bytes) return false;
        if (same && k < i && variables[k].bytes == variables[i].bytes) return false;
    }
    return true;
}

static void write_declarations(mr_buffer *out, const ptx_function *f) {
    static const char *const spaces[] = {
        [PTX_SHARED] = ".shared", [PTX_LOCAL] = ".local", [PTX_PARAM] = ".param"};
    for (uint32_t i = 0; i < f->register_count; i++)
        if (is_first_of_its_name(f->registers, i))
            mr_buffer_printf(out, ".reg .%s %s;\n", mr_ptx_types[f->registers[i].type].name,
                             f->registers[i].name);
    for (uint32_t i = 0; i < f->variable_count; i++) {
        if (!is_largest_of_its_name(f->variables, f->variable_count, i)) continue;
        write_variable(out, &f->variables[i], spaces[f->variables[i].space]);
        mr_buffer_puts(out, ";\n");
    }
    for (uint32_t i = 0; i < f->prototype_count; i++) {
        mr_buffer_printf(out, "P%u: .callprototype ", i);
        write_signature(out, &f->prototypes[i], "_", false);
        mr_buffer_puts(out, ";\n");
    }
}

static void write_function(mr_buffer *out, const ptx_tree *tree, const ptx_function *f) {
    char text[1000];
    mr_buffer_puts(out, f->is_entry ? ".entry " : ".func ");
    write_signature(out, &f->signature, f->name, true);
    if (!f->is_defined) {
        mr_buffer_puts(out, ";\n");
        return;
    }
    mr_buffer_puts(out, "{\n");
    write_declarations(out, f);
    for (uint32_t i = 0; i < f->instruction_count; i++)
        mr_buffer_printf(out, "L%u: %s;\n", i,
                         ptx_instruction_text(tree, f, &f->instructions[i], text, sizeof text));
    mr_buffer_printf(out, "L%u:\n}\n", f->instruction_count);
}

static mr_buffer write_tree(const ptx_tree *tree) {
    static const char *const spaces[] = {
        [PTX_GLOBAL] = ".global", [PTX_CONST] = ".const", [PTX_SHARED] = ".shared"};
    mr_buffer out = {0};
    mr_buffer_printf(&out, ".version %d.%d\n.target sm_%d\n", tree->version_major,
                     tree->version_minor, tree->target);
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        const ptx_variable *v = &tree->variables[i];
        if (v->is_extern) mr_buffer_puts(&out, ".extern ");
        if (v->bytes) write_variable(&out, v, spaces[v->space]);
        else
            mr_buffer_printf(&out, "%s .align %u .%s %s[]", spaces[v->space], v->align,
                             mr_ptx_types[v->type].name, v->name);
        mr_buffer_puts(&out, ";\n");
    }
    for (uint32_t i = 0; i < tree->function_count; i++) { /* so that each may call all */
        ptx_function declared = tree->functions[i];
        declared.is_defined = false;
        write_function(&out, tree, &declared);
    }
    for (uint32_t i = 0; i < tree->function_count; i++)
        if (tree->functions[i].is_defined) write_function(&out, tree, &tree->functions[i]);
    return out;
}

static void expect_same_function(const ptx_tree *ta, const ptx_function *a, const ptx_tree *tb,
                                 const ptx_function *b) {
    char text_a[1000], text_b[1000];
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->instruction_count, b->instruction_count);
    for (uint32_t i = 0; i < a->instruction_count; i++) {
        const ptx_instruction *x = &a->instructions[i], *y = &b->instructions[i];
        assert_string_equal(ptx_instruction_text(ta, a, x, text_a, sizeof text_a),
                            ptx_instruction_text(tb, b, y, text_b, sizeof text_b));
        assert_int_equal(x->operand_count, y->operand_count);
        for (int k = 0; k < x->operand_count; k++)
            assert_int_equal(x->operands[k].kind, y->operands[k].kind);
        assert_int_equal(x->two_results, y->two_results);
    }
    assert_int_equal(a->block_count, b->block_count);
    for (uint32_t i = 0; i < a->block_count; i++) {
        assert_int_equal(a->blocks[i].first, b->blocks[i].first);
        assert_int_equal(a->blocks[i].post_dominator, b->blocks[i].post_dominator);
        assert_int_equal(a->blocks[i].successor_count, b->blocks[i].successor_count);
    }
}

static void trees_read_back_as_they_are_written(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        ptx_tree tree = read_sample(i), again;
        mr_buffer text = write_tree(&tree);
        mr_status status = ptx_read(text.data, text.size, samples[i], &again);
        if (status) fail_msg("%s", status->message);
        assert_int_equal(tree.function_count, again.function_count);
        assert_int_equal(tree.variable_count, again.variable_count);
        for (uint32_t k = 0; k < tree.variable_count; k++) {
            assert_string_equal(tree.variables[k].name, again.variables[k].name);
            assert_int_equal(tree.variables[k].bytes, again.variables[k].bytes);
        }
        for (uint32_t k = 0; k < tree.function_count; k++)
            expect_same_function(&tree, &tree.functions[k], &again, &again.functions[k]);
        ptx_tree_free(&tree);
        ptx_tree_free(&again);
        mr_buffer_free(&text);
    }
}

/* ---- damage */

/* What a reader of the tree may rely on: every index lies in its array. */
static void check_operand(const ptx_tree *tree, const ptx_function *f, const ptx_operand *o) {
    const uint32_t ends[] = {
        [PTX_REGISTER] = f->register_count,
        [PTX_SPECIAL] = PTX_SREG_COUNT,
        [PTX_VARIABLE] = tree->variable_count,
        [PTX_LOCAL_VARIABLE] = f->variable_count,
        [PTX_PARAMETER] = f->signature.parameter_count + f->signature.result_count,
        [PTX_FUNCTION] = tree->function_count,
        [PTX_LABEL] = f->instruction_count + 1,
        [PTX_TARGETS] = f->targets_count,
        [PTX_PROTOTYPE] = f->prototype_count,
        [PTX_LIST] = 1,
    };
    assert_true(o->kind <= PTX_LIST);
    if (ends[o->kind]) assert_true(o->index < ends[o->kind]);
    if (o->kind != PTX_LIST) return;
    for (int i = 0; i < o->count; i++) {
        assert_true(o->list[i].kind != PTX_LIST);
        check_operand(tree, f, &o->list[i]);
    }
}

static void check_function(const ptx_tree *tree, const ptx_function *f) {
    char text[300];
    for (uint32_t i = 0; i < f->instruction_count; i++) {
        const ptx_instruction *k = &f->instructions[i];
        assert_true(k->guard < (int32_t)f->register_count);
        for (int o = 0; o < k->operand_count; o++) check_operand(tree, f, &k->operands[o]);
        ptx_instruction_text(tree, f, k, text, sizeof text);
        ptx_place_text(tree, &k->place, text, sizeof text);
    }
    for (uint32_t i = 0; i < f->targets_count; i++)
        for (uint32_t t = 0; t < f->targets[i].count; t++)
            assert_true(f->targets[i].items[t] <= f->instruction_count);
    for (uint32_t i = 0; i < f->block_count; i++) {
        assert_true(f->blocks[i].post_dominator <= f->block_count);
        for (uint32_t s = 0; s < f->blocks[i].successor_count; s++)
            assert_true(f->blocks[i].successors[s] <= f->block_count);
    }
}

static void check_tree(const ptx_tree *tree) {
    for (uint32_t i = 0; i < tree->function_count; i++) check_function(tree, &tree->functions[i]);
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        const ptx_variable *v = &tree->variables[i];
        assert_true(v->init_bytes <= v->bytes || !v->init);
        for (uint32_t k = 0; k < v->relocation_count; k++)
            assert_true(v->relocations[k].offset + v->relocations[k].size <= v->init_bytes);
    }
}

static const char *const pieces[] = {
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "|",
    "@",
    "!",
    "-",
    "+",
    "~",
    "\"",
    "/*",
    "*/",
    "//",
    "\n",
    ".",
    "%",
    "%r1",
    "%rd1",
    "%p1",
    "%f1",
    ".reg .b32 %r<9>;",
    ".v4",
    ".f32",
    ".global",
    ".shared",
    ".extern",
    ".entry k()",
    ".func f()",
    "ret;",
    "bra L;",
    "L:",
    "call (x), f, (y);",
    "0xFFFFFFFFFFFFFFFF",
    "-1",
    "1e999",
    "0f3F800000",
    "0d",
    "99999999999999999999999",
    ".loc 1 2 3",
    ".file 1 \"a\"",
    ".section .x {",
    "t: .branchtargets L, L;",
    "brx.idx %r1, t;",
    "_",
    "%tid.x",
    "%tid",
    "{%r1, %r2}",
    "[%rd1+8]",
    "0xFF(",
    "generic(",
    "[1152921504606846976]",
    "[]",
    "= {",
    "= {{1},{2}}",
    ".align 8",
    ".b8",
    ".param",
    "\0",
    "\xff",
    "\x80\x80",
    "p: .callprototype _ ();",
};

/* A few cuts, insertions, copies of one part over another, and single bytes. */
static void damage(mr_buffer *text) {
    for (uint32_t n = 1 + random_below(4); n > 0 && text->size > 8; n--) {
        uint32_t at = random_below((uint32_t)text->size), length = 1 + random_below(40);
        if (length > text->size - at) length = (uint32_t)text->size - at;
        const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
        uint32_t from = random_below((uint32_t)text->size - length + 1);
        switch (random_below(6)) {
        case 0: text->size = at; break;
        case 1: text->data[at] = (char)random_below(256); break;
        case 2: memmove(text->data + at, text->data + from, length); break;
        case 3:
            memmove(text->data + at, text->data + at + length, text->size - at - length);
            text->size -= length;
            break;
        default:
            length = (uint32_t)(strlen(piece) ? strlen(piece) : 1);
            if (length <= text->size - at) memcpy(text->data + at, piece, length);
        }
    }
}

/* A part of a sample: the whole one takes longer to read than most rounds need. */
static void damaged_texts_are_read_or_refused(void **state) {
    (void)state;
    mr_buffer texts[SAMPLES];
    const char *setting = getenv("MR_PTX_ROUNDS");
    int refused = 0, rounds = setting ? atoi(setting) : 1500;
    for (int i = 0; i < SAMPLES; i++) texts[i] = sample_text(i);
    for (int round = 0; round < rounds; round++) {
        const mr_buffer *whole = &texts[round % SAMPLES];
        /* A block of its exact size, so that the sanitizer finds a read beyond the end. */
        mr_buffer text = {0};
        mr_buffer_add(&text, whole->data, whole->size);
        damage(&text);
        char *exact = malloc(text.size ? text.size : 1);
        memcpy(exact, text.data, text.size);
        ptx_tree tree;
        mr_status status = ptx_read(exact, text.size, "damaged", &tree);
        if (status) refused++;
        else check_tree(&tree);
        if (status && status->code != MR_CODE_INVALID_ARGUMENT &&
            status->code != MR_CODE_NOT_SUPPORTED)
            fail_msg("%s", status->message);
        mr_error_destroy(status);
        ptx_tree_free(&tree);
        free(exact);
        mr_buffer_free(&text);
    }
    assert_true(refused > rounds / 3 && refused < rounds);
    for (int i = 0; i < SAMPLES; i++) mr_buffer_free(&texts[i]);
}

static void random_words_are_read_or_refused(void **state) {
    (void)state;
    for (int round = 0; round < 20000; round++) {
        mr_buffer text = {0};
        if (random_below(8)) mr_buffer_puts(&text, HEAD);
        if (random_below(2))
            mr_buffer_puts(&text, ".entry k(.param .b64 x) { .reg .b32 %r<9>; .reg .b64 %rd<9>; ");
        for (uint32_t n = random_below(30); n > 0; n--) {
            const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
            mr_buffer_add(&text, piece, strlen(piece) ? strlen(piece) : 1);
            if (random_below(2)) mr_buffer_puts(&text, " ");
        }
        ptx_tree tree;
        mr_status status = ptx_read(text.data ? text.data : "", text.size, "random", &tree);
        if (!status) check_tree(&tree);
        mr_error_destroy(status);
        ptx_tree_free(&tree);
        mr_buffer_free(&text);
    }
}

static void prefixes_are_refused(void **state) {
    (void)state;
    mr_buffer text = sample_text(2);
    for (size_t size = 0; size < text.size; size += 1 + random_below(60)) {
        ptx_tree tree;
        mr_status status = ptx_read(text.data, size, "prefix", &tree);
        if (!status) check_tree(&tree);
        mr_error_destroy(status);
        ptx_tree_free(&tree);
    }
    mr_buffer_free(&text);
}

/* ---- size */

/* Time that grows with the square of the size would show as a test that does not end. */
static void large_texts_take_linear_time(void **state) {
    (void)state;
    enum { COUNT = 200000 };
    for (int shape = 0; shape < 7; shape++) {
        mr_buffer text = {0};
        mr_buffer_puts(&text, HEAD);
        if (shape < 5)
            mr_buffer_puts(&text, ".entry k() { .reg .b32 %r<4000000000>; .reg .pred %p<2>;\n");
        for (int i = 0; i < COUNT; i++) {
            switch (shape) {
            case 0:
                mr_buffer_printf(&text, "mov.b32 %%r%d, %%r%u;\n", i, 3999999999u - (unsigned)i);
                break;
            case 1:
                mr_buffer_printf(
                    &text, "{ .reg .b32 a; .param .b32 b; mov.b32 a, %%r%d; bra END; }\n", i % 7);
                break;
            case 2: mr_buffer_printf(&text, ".reg .b32 r%d;\n", i); break;
            case 3: mr_buffer_printf(&text, "L%d: @%%p1 bra END;\n", i); break;
            case 4:
                mr_buffer_printf(
                    &text, ".loc 1 %d 3, function_name $L0, inlined_at 1 %d 3\nmov.b32 %%r0, %d;\n",
                    i + 1, i, i);
                break;
            case 5:
                mr_buffer_printf(&text, ".global .b8 g%d[1152921504606846976] = {1};\n", i);
                break;
            default: mr_buffer_printf(&text, ".func f%d(.param .b32 a) { ret; }\n", i);
            }
        }
        if (shape < 5) mr_buffer_puts(&text, "END: ret;\n}\n");
        ptx_tree tree = read_text(text.data);
        assert_int_equal(shape == 0   ? tree.functions[0].register_count
                         : shape == 2 ? tree.functions[0].register_count
                         : shape == 5 ? tree.variable_count
                         : shape == 6 ? tree.function_count
                                      : tree.functions[0].instruction_count,
                         shape == 0 || shape == 1   ? 2 * COUNT + (shape == 1)
                         : shape == 3 || shape == 4 ? COUNT + 1
                                                    : COUNT);
        ptx_tree_free(&tree);
        mr_buffer_free(&text);
    }
}

/* A short text whose control flow has a billion edges. */
static void shared_lists_of_labels_have_a_limit(void **state) {
    (void)state;
    mr_buffer text = {0};
    ptx_tree tree;
    mr_buffer_puts(&text, HEAD ".entry k() { .reg .b32 %r<2>; t: .branchtargets L0");
    for (int i = 1; i < 30000; i++) mr_buffer_printf(&text, ", L%d", i);
    mr_buffer_puts(&text, ";\n");
    for (int i = 0; i < 30000; i++) mr_buffer_printf(&text, "L%d: brx.idx %%r1, t;\n", i);
    mr_buffer_puts(&text, "}");
    mr_status status = ptx_read(text.data, text.size, "k.ptx", &tree);
    assert_null(status);
    assert_string_equal(tree.functions[0].problem,
                        "k.ptx, line 144 of the PTX: more than 4194304 branches "
                        "through lists of labels are not covered");
    assert_int_equal(tree.functions[0].instruction_count, 0);
    ptx_tree_free(&tree);
    mr_buffer_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_trees_hold_the_program),
        cmocka_unit_test(places_lie_in_the_kernel),
        cmocka_unit_test(places_lie_in_the_users_file),
        cmocka_unit_test(trees_read_back_as_they_are_written),
        cmocka_unit_test(damaged_texts_are_read_or_refused),
        cmocka_unit_test(random_words_are_read_or_refused),
        cmocka_unit_test(prefixes_are_refused),
        cmocka_unit_test(large_texts_take_linear_time),
        cmocka_unit_test(shared_lists_of_labels_have_a_limit),
    };
    return cmocka_run_group_tests_name("ptx_samples", tests, NULL, NULL);
}
