/* Basic blocks and post-dominators: directed cases, and random functions against the definitions. */
#include "ptx_texts.h"

#include "base/vec.h"

/* ---- directed */

static ptx_tree read_body(const char *body) {
    mr_buffer text = {0};
    mr_buffer_printf(
        &text, HEAD ".visible .entry k() { .reg .pred %%p<3>; .reg .b32 %%r<9>;\n%s\n}\n", body);
    ptx_tree tree = read_text(text.data);
    mr_buffer_free(&text);
    return tree;
}

/* "0-2>2,1!2": instructions [0, 2), successors 2 and 1, post-dominator 2; one such word a block. `x` is the exit. */
static void expect_blocks(const char *body, const char *expected) {
    ptx_tree tree = read_body(body);
    const ptx_function *f = &tree.functions[0];
    mr_buffer shown = {0};
    for (uint32_t b = 0; b < f->block_count; b++) {
        const ptx_block *block = &f->blocks[b];
        mr_buffer_printf(&shown, "%s%u-%u>", b ? " " : "", block->first, block->end);
        for (uint32_t s = 0; s <= block->successor_count; s++) {
            bool last = s == block->successor_count;
            uint32_t to = last ? block->post_dominator : block->successors[s];
            if (last) mr_buffer_puts(&shown, "!");
            else if (s) mr_buffer_puts(&shown, ",");
            if (to == f->block_count) mr_buffer_puts(&shown, "x");
            else mr_buffer_printf(&shown, "%u", to);
        }
    }
    assert_string_equal(shown.data ? shown.data : "", expected);
    mr_buffer_free(&shown);
    ptx_tree_free(&tree);
}

static void blocks_of_small_functions(void **state) {
    (void)state;
    expect_blocks("", "");
    expect_blocks("L:", "");
    expect_blocks("ret;", "0-1>x!x");
    expect_blocks("bar.sync 0; bar.sync 1;", "0-2>x!x");
    /* if, if-else, a guard on exit */
    expect_blocks("@%p1 bra L; bar.sync 0; L: ret;", "0-1>2,1!2 1-2>2!2 2-3>x!x");
    expect_blocks("@%p1 bra L; bar.sync 0; bra M; L: bar.sync 1; M: ret;",
                  "0-1>2,1!3 1-3>3!3 3-4>3!3 4-5>x!x");
    expect_blocks("@%p1 exit; @%p1 ret; @%p1 trap; bar.sync 0;",
                  "0-1>x,1!x 1-2>x,2!x 2-3>x,3!x 3-4>x!x");
    expect_blocks("trap; exit; ret;", "0-1>x!x 1-2>x!x 2-3>x!x");
    /* a guarded instruction, a call and a barrier end no block; a label that no branch names begins none */
    expect_blocks("@%p1 add.s32 %r1, %r1, 1; L: bar.sync 0; ret;", "0-3>x!x");
    /* loops */
    expect_blocks("L: bar.sync 0; @%p1 bra L; ret;", "0-2>0,1!1 2-3>x!x");
    expect_blocks("L: @%p1 bra M; bar.sync 0; bra L; M: ret;", "0-1>2,1!2 1-3>0!0 3-4>x!x");
    /* a branch to the end, or to the next instruction */
    expect_blocks("@%p1 bra END; bar.sync 0; END:", "0-1>x,1!x 1-2>x!x");
    expect_blocks("@%p1 bra L; L: ret;", "0-1>1!1 1-2>x!x");
    /* endless loops */
    expect_blocks("L: bra L;", "0-1>0!x");
    expect_blocks("@%p1 bra M; L: bra L; M: ret;", "0-1>2,1!2 1-2>1!x 2-3>x!x");
    expect_blocks("L: bar.sync 0; M: @%p1 bra L; bra M;", "0-1>1!x 1-2>0,2!x 2-3>1!x");
    /* a table of labels, which may name a label twice */
    expect_blocks("t: .branchtargets A, B, A, C; brx.idx %r1, t; A: bar.sync 1; bra C; B: bar.sync "
                  "2; C: ret;",
                  "0-1>1,2,3!3 1-3>3!3 3-4>3!3 4-5>x!x");
    expect_blocks("t: .branchtargets A, B; @%p1 brx.idx %r1, t; bar.sync 1; A: ret; B: ret;",
                  "0-1>2,3,1!x 1-2>2!2 2-3>x!x 3-4>x!x");
}

/* ---- random */

enum { MOST = 40 };

/* By the definition, on instructions: b post-dominates a if without b no path leads from a to the exit. */
typedef struct {
    uint32_t count; /* of blocks; the exit is number `count` */
    bool edge[MOST + 1][MOST + 1];
} graph;

static void reach(const graph *g, uint32_t from, uint32_t without, bool *seen) {
    uint32_t stack[MOST + 1], depth = 0;
    memset(seen, 0, (MOST + 1) * sizeof *seen);
    if (from == without) return;
    seen[from] = true;
    stack[depth++] = from;
    while (depth) {
        uint32_t at = stack[--depth];
        for (uint32_t to = 0; to <= g->count; to++)
            if (g->edge[at][to] && to != without && !seen[to]) seen[to] = true, stack[depth++] = to;
    }
}

/* dominates[a][b]: b post-dominates a. Paths that never reach the exit do not count. */
static void check_post_dominators(const ptx_function *f, const graph *g) {
    static bool dominates[MOST + 1][MOST + 1];
    bool seen[MOST + 1], endless[MOST + 1] = {false};
    memset(dominates, 0, sizeof dominates);
    for (uint32_t a = 0; a < g->count; a++) {
        reach(g, a, UINT32_MAX, seen);
        endless[a] = !seen[g->count];
        for (uint32_t b = 0; b <= g->count && !endless[a]; b++) {
            reach(g, a, b, seen);
            dominates[a][b] = a != b && !seen[g->count];
        }
    }
    for (uint32_t a = 0; a < g->count; a++) {
        /* The immediate one is post-dominated by all others. */
        uint32_t nearest = f->blocks[a].post_dominator;
        if (endless[a]) assert_int_equal(nearest, g->count);
        else assert_true(dominates[a][nearest]);
        for (uint32_t b = 0; b <= g->count; b++)
            if (dominates[a][b] && b != nearest) assert_true(dominates[nearest][b]);
    }
}

/* The successors of an instruction, from the text's point of view. */
typedef struct {
    char kind; /* a: add; b: bra; x: brx; r: ret */
    bool guarded;
    uint32_t target[4]; /* `instructions` is the end */
    uint32_t targets;
} step;

static void write_step(mr_buffer *text, const step *s, uint32_t i) {
    if (s->kind == 'x') {
        mr_buffer_printf(text, "t%u: .branchtargets L%u", i, s->target[0]);
        for (uint32_t t = 1; t < s->targets; t++) mr_buffer_printf(text, ", L%u", s->target[t]);
        mr_buffer_puts(text, ";\n");
    }
    mr_buffer_printf(text, "L%u: %s", i, s->guarded ? "@%p1 " : "");
    if (s->kind == 'a') mr_buffer_puts(text, "add.s32 %r1, %r1, 1;\n");
    else if (s->kind == 'b') mr_buffer_printf(text, "bra L%u;\n", s->target[0]);
    else if (s->kind == 'x') mr_buffer_printf(text, "brx.idx %%r1, t%u;\n", i);
    else mr_buffer_puts(text, random_below(2) ? "ret;\n" : "exit;\n");
}

static void make_steps(step *steps, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        step *s = &steps[i];
        *s = (step){.kind = "aaabbbbbxr"[random_below(10)], .guarded = random_below(3) > 0};
        s->targets = s->kind == 'x' ? 1 + random_below(4) : s->kind == 'b' ? 1 : 0;
        for (uint32_t t = 0; t < s->targets; t++) s->target[t] = random_below(count + 1);
    }
}

/* Where control may go after the instruction. */
static void follow(const step *s, uint32_t i, uint32_t count, bool *to) {
    memset(to, 0, (MOST + 1) * sizeof *to);
    for (uint32_t t = 0; t < s->targets; t++) to[s->target[t]] = true;
    if (s->kind == 'a' || s->guarded) to[i + 1] = true;
    if (s->kind == 'r') to[count] = true;
}

static uint32_t block_of(const ptx_function *f, uint32_t instruction) {
    for (uint32_t b = 0; b < f->block_count; b++)
        if (f->blocks[b].first <= instruction && instruction < f->blocks[b].end) return b;
    return f->block_count;
}

/* Blocks cover the instructions, control enters only at their starts and leaves only at their ends. */
static void check_blocks(const ptx_function *f, const step *steps, uint32_t count, graph *g) {
    bool to[MOST + 1];
    assert_int_equal(f->instruction_count, count);
    uint32_t expected = 0;
    for (uint32_t b = 0; b < f->block_count; b++) {
        assert_int_equal(f->blocks[b].first, expected);
        assert_true(f->blocks[b].end > expected);
        expected = f->blocks[b].end;
    }
    assert_int_equal(expected, count);
    *g = (graph){.count = f->block_count};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t b = block_of(f, i), edges = 0;
        follow(&steps[i], i, count, to);
        bool is_last = f->blocks[b].end == i + 1;
        for (uint32_t n = 0; n <= count; n++) {
            if (!to[n]) continue;
            if (!is_last) assert_int_equal(n, i + 1);
            if (is_last && n < count) assert_int_equal(f->blocks[block_of(f, n)].first, n);
            if (is_last) g->edge[b][block_of(f, n)] = true;
        }
        if (!is_last) continue;
        for (uint32_t n = 0; n <= g->count; n++) edges += g->edge[b][n];
        assert_int_equal(f->blocks[b].successor_count, edges);
        for (uint32_t s = 0; s < edges; s++) assert_true(g->edge[b][f->blocks[b].successors[s]]);
    }
}

static void random_functions(void **state) {
    (void)state;
    const char *setting = getenv("MR_PTX_FUNCTIONS");
    for (int round = 0, rounds = setting ? atoi(setting) : 4000; round < rounds; round++) {
        step steps[MOST];
        graph g;
        uint32_t count = 1 + random_below(MOST - 1);
        mr_buffer text = {0};
        make_steps(steps, count);
        mr_buffer_puts(&text, HEAD ".entry k() { .reg .pred %p<2>; .reg .b32 %r<2>;\n");
        for (uint32_t i = 0; i < count; i++) write_step(&text, &steps[i], i);
        mr_buffer_printf(&text, "L%u:\n}\n", count);
        ptx_tree tree = read_text(text.data);
        check_blocks(&tree.functions[0], steps, count, &g);
        check_post_dominators(&tree.functions[0], &g);
        ptx_tree_free(&tree);
        mr_buffer_free(&text);
    }
}

/* Shapes on which a simple iteration takes quadratic time, and recursion the whole stack. */
static void long_functions_take_no_longer(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    for (int shape = 0; shape < 4; shape++) {
        mr_buffer text = {0};
        mr_buffer_puts(&text, HEAD ".entry k() { .reg .pred %p<2>; .reg .b32 %r<2>;\n");
        for (int i = 0; i < COUNT; i++) {
            /* a chain; a ladder to both ends of a chain; loops in loops; a fan */
            int target = shape == 0   ? i + 1
                         : shape == 1 ? (i < COUNT / 2 ? i + 1 : (i & 1 ? COUNT / 2 : COUNT))
                         : shape == 2 ? (i < COUNT / 2 ? i + 1 : COUNT - 1 - i)
                                      : COUNT;
            mr_buffer_printf(&text, "L%d: @%%p1 bra L%d;\n", i, target);
        }
        mr_buffer_printf(&text, "L%d: ret; }\n", COUNT);
        ptx_tree tree = read_text(text.data);
        assert_int_equal(tree.functions[0].block_count, COUNT + 1);
        ptx_tree_free(&tree);
        mr_buffer_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_small_functions),
        cmocka_unit_test(random_functions),
        cmocka_unit_test(long_functions_take_no_longer),
    };
    return cmocka_run_group_tests_name("ptx_flow", tests, NULL, NULL);
}
