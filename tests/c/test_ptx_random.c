/* Random programs in the PTX interpreter, lanes in lock step, against the same programs thread by thread. Blocks end in
 * branches to anywhere: forwards, and backwards as long as a thread has fuel; some instructions and returns have
 * guards, and functions are called. PTX_RANDOM says how many programs (400). */
#include "ptx_fixture.h"

enum { REGISTERS = 8, PREDICATES = 4, MOST_BLOCKS = 14, MOST_STEPS = 6, THREADS = 80, FUEL = 40 };

typedef struct {
    int op; /* of the list below */
    int d, a, b, c;
    int guard; /* -1: none */
    bool negated;
} step;
typedef enum { GO_ON, JUMP, JUMP_IF, RETURN_IF, SWITCH } ending;
typedef struct {
    step steps[MOST_STEPS];
    int step_count;
    ending end;
    int guard, targets[3]; /* blocks; the first one of JUMP and JUMP_IF */
    bool negated;
} block;
typedef struct {
    block blocks[MOST_BLOCKS];
    int block_count;
    block function; /* what a call does to registers 0 and 1: d = f(a, b) */
} program;

static uint64_t seed = 1;
static int below(int limit) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)limit);
}

/* name, PTX with D A B C for the registers, value of d; the last four set a predicate, and one adds to memory */
#define OPERATIONS(X)                                                                              \
    X("add.u32 %rD, %rA, %rB;", r[s->d] = a + b)                                                   \
    X("sub.u32 %rD, %rA, %rB;", r[s->d] = a - b)                                                   \
    X("mad.lo.u32 %rD, %rA, %rB, %rC;", r[s->d] = a * b + c)                                       \
    X("xor.b32 %rD, %rA, %rB;", r[s->d] = a ^ b)                                                   \
    X("and.b32 %rD, %rA, %rB;", r[s->d] = a & b)                                                   \
    X("shr.u32 %rD, %rA, C;", r[s->d] = a >> s->c)                                                 \
    X("shf.l.wrap.b32 %rD, %rA, %rA, C;", r[s->d] = s->c ? a << s->c | a >> (32 - s->c) : a)       \
    X("min.s32 %rD, %rA, %rB;", r[s->d] = (int32_t)a < (int32_t)b ? a : b)                         \
    X("selp.b32 %rD, %rA, %rB, %pG;", r[s->d] = p[s->c % PREDICATES] ? a : b)                      \
    X("mul.wide.u32 %w, %rA, %rB; mov.b64 {%x, %rD}, %w;",                                         \
      r[s->d] = (uint32_t)((uint64_t)a * b >> 32))                                                 \
    X("mov.b32 {%h0, %h1}, %rA; mov.b32 %rD, {%h1, %h0};", r[s->d] = a << 16 | a >> 16)            \
    X("setp.lt.u32 %pD, %rA, %rB;", p[s->d % PREDICATES] = a < b)                                  \
    X("setp.eq.and.u32 %pD, %rA, %rB, %pG;",                                                       \
      p[s->d % PREDICATES] = a == b && p[s->c % PREDICATES])                                       \
    X("and.b32 %x, %rA, 1; setp.ne.u32 %pD, %x, 0;", p[s->d % PREDICATES] = a & 1)                 \
    X("xor.pred %pD, %pG, %pE;",                                                                   \
      p[s->d % PREDICATES] = p[s->c % PREDICATES] ^ p[s->a % PREDICATES])                          \
    X("red.global.add.u32 [%sum], %rA;", *sum += a)                                                \
    X("CALL", r[s->d] = call(program_, a, b))

static const char *const texts[] = {
#define X(text, value) text,
    OPERATIONS(X)
#undef X
};
enum { OPERATION_COUNT = sizeof texts / sizeof *texts, FUNCTION_OPERATIONS = 11 };

static step random_step(int operations) {
    return (step){.op = below(operations),
                  .d = below(REGISTERS),
                  .a = below(REGISTERS),
                  .b = below(REGISTERS),
                  .c = below(REGISTERS),
                  .guard = below(4) ? -1 : below(PREDICATES),
                  .negated = below(2)};
}

static program random_program(void) {
    program p = {.block_count = 2 + below(MOST_BLOCKS - 1)};
    for (int b = 0; b < p.block_count; b++) {
        block *k = &p.blocks[b];
        k->step_count = below(MOST_STEPS + 1);
        for (int i = 0; i < k->step_count; i++) k->steps[i] = random_step(OPERATION_COUNT);
        int kind = below(12);
        k->end = kind < 2    ? GO_ON
                 : kind < 4  ? JUMP
                 : kind < 10 ? JUMP_IF
                 : kind < 11 ? RETURN_IF
                             : SWITCH;
        k->guard = below(PREDICATES);
        k->negated = below(2);
        for (int t = 0; t < 3; t++)
            k->targets[t] = below(p.block_count + 1); /* the last is the end */
    }
    p.function.step_count = below(MOST_STEPS + 1);
    for (int i = 0; i < p.function.step_count; i++)
        p.function.steps[i] = random_step(FUNCTION_OPERATIONS);
    return p;
}

/* ---- one thread */

static uint32_t call(const program *program_, uint32_t x, uint32_t y);
static void run_step(const program *program_, const step *s, uint32_t *r, bool *p, uint32_t *sum) {
    if (s->guard >= 0 && p[s->guard] == s->negated) return;
    uint32_t a = r[s->a], b = r[s->b], c = r[s->c];
    (void)c;
    int at = 0;
#define X(text, value)                                                                             \
    if (s->op == at++) value;
    OPERATIONS(X)
#undef X
}
/* Some threads return early, and then with another result. */
static uint32_t call(const program *program_, uint32_t x, uint32_t y) {
    uint32_t r[REGISTERS] = {x, y, x ^ y}, sum = 0;
    bool p[PREDICATES] = {x < y, x & 1, y & 1, false};
    if (p[1]) return x + 77;
    for (int i = 0; i < program_->function.step_count; i++) {
        run_step(program_, &program_->function.steps[i], r, p, &sum);
    }
    return r[0] ^ r[3];
}

static void run_thread(const program *p, uint32_t thread, uint32_t *r, uint32_t *sum) {
    bool q[PREDICATES] = {thread & 1, thread & 2, thread % 3 == 0, thread > 40};
    for (uint32_t i = 0; i < REGISTERS; i++) r[i] = thread * (2 * i + 1) + i;
    int at = 0, fuel = FUEL;
    while (at < p->block_count) {
        const block *b = &p->blocks[at];
        for (int i = 0; i < b->step_count; i++) run_step(p, &b->steps[i], r, q, sum);
        int next = at + 1;
        bool on = q[b->guard] != b->negated;
        if (fuel > 0) {
            if (b->end == JUMP || (b->end == JUMP_IF && on)) next = b->targets[0];
            if (b->end == RETURN_IF && on) break;
            if (b->end == SWITCH) next = b->targets[r[0] % 3];
        }
        fuel--;
        at = next;
    }
}

/* ---- as PTX */

static void put_step(mr_buffer *out, const step *s) {
    char guard[16] = "";
    if (s->guard >= 0) snprintf(guard, sizeof guard, "@%s%%p%d ", s->negated ? "!" : "", s->guard);
    if (strcmp(texts[s->op], "CALL") == 0) {
        mr_buffer_printf(out,
                         "{ .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x], %%r%d; "
                         "st.param.b32 [y], %%r%d;\n"
                         "%scall (z), f, (x, y); %sld.param.b32 %%r%d, [z]; }\n",
                         s->a, s->b, guard, guard, s->d);
        return;
    }
    bool sets_predicate = strstr(texts[s->op], "%pD");
    mr_buffer_puts(out, guard);
    for (const char *t = texts[s->op]; *t; t++) {
        if (*t == 'D') mr_buffer_printf(out, "%d", sets_predicate ? s->d % PREDICATES : s->d);
        else if (*t == 'A') mr_buffer_printf(out, "%d", s->a);
        else if (*t == 'B') mr_buffer_printf(out, "%d", s->b);
        else if (*t == 'C') mr_buffer_printf(out, "%d", s->c);
        else if (*t == 'G') mr_buffer_printf(out, "%d", s->c % PREDICATES);
        else if (*t == 'E') mr_buffer_printf(out, "%d", s->a % PREDICATES);
        else if (*t == ';' && t[1]) mr_buffer_printf(out, "; %s", guard);
        else mr_buffer_add(out, t, 1);
    }
    mr_buffer_puts(out, "\n");
}

#define REGISTER_TEXT                                                                              \
    ".reg .pred %p<4>, %go, %fuelled; .reg .b16 %h<2>; .reg .b32 %r<8>, %x, %y, %t, %fuel; "       \
    ".reg .b64 %w, %sum, %at;\n"

static void put_function(mr_buffer *out, const block *f) {
    mr_buffer_puts(out, ".func (.param .b32 z) f(.param .b32 x, .param .b32 y)\n{\n" REGISTER_TEXT
                        "ld.param.b32 %r0, [x]; ld.param.b32 %r1, [y]; xor.b32 %r2, %r0, %r1;\n"
                        "setp.lt.u32 %p0, %r0, %r1; and.b32 %x, %r0, 1; setp.ne.u32 %p1, %x, 0;\n"
                        "and.b32 %x, %r1, 1; setp.ne.u32 %p2, %x, 0; mov.pred %p3, 0;\n"
                        "add.u32 %x, %r0, 77; st.param.b32 [z], %x; @%p1 ret;\n");
    for (int i = 3; i < REGISTERS; i++) mr_buffer_printf(out, "mov.u32 %%r%d, 0;\n", i);
    for (int i = 0; i < f->step_count; i++) put_step(out, &f->steps[i]);
    mr_buffer_puts(out, "xor.b32 %r0, %r0, %r3; st.param.b32 [z], %r0; ret;\n}\n");
}

static void put_ending(mr_buffer *out, const program *p, int at) {
    const block *b = &p->blocks[at];
    mr_buffer_puts(out, "setp.gt.s32 %fuelled, %fuel, 0; sub.s32 %fuel, %fuel, 1;\n");
    if (b->end == JUMP) {
        mr_buffer_printf(out, "@%%fuelled bra $L%d;\n", b->targets[0]);
    } else if (b->end == JUMP_IF || b->end == RETURN_IF) {
        mr_buffer_printf(out, b->negated ? "not.pred %%go, %%p%d;\n" : "mov.pred %%go, %%p%d;\n",
                         b->guard);
        mr_buffer_puts(out, "and.pred %go, %go, %fuelled;\n");
        /* A return must write its results first. */
        mr_buffer_printf(out, "@%%go bra $L%d;\n",
                         b->end == JUMP_IF ? b->targets[0] : p->block_count);
    } else if (b->end == SWITCH) {
        mr_buffer_printf(out, "rem.u32 %%x, %%r0, 3; @!%%fuelled bra $L%d;\n", at + 1);
        mr_buffer_printf(out, "ts%d: .branchtargets $L%d, $L%d, $L%d; brx.idx %%x, ts%d;\n", at,
                         b->targets[0], b->targets[1], b->targets[2], at);
    }
}

static void put_program(mr_buffer *out, const program *p) {
    mr_buffer_puts(out, ".version 8.0\n.target sm_80\n.address_size 64\n");
    put_function(out, &p->function);
    mr_buffer_puts(
        out,
        ".visible .entry k(.param .u64 out, .param .u64 sum)\n{\n" REGISTER_TEXT
        "mov.u32 %t, %tid.x; ld.param.u64 %sum, [sum]; mov.u32 %fuel, 40;\n"
        "and.b32 %x, %t, 1; setp.ne.u32 %p0, %x, 0; and.b32 %x, %t, 2; setp.ne.u32 %p1, %x, 0;\n"
        "rem.u32 %x, %t, 3; setp.eq.u32 %p2, %x, 0; setp.gt.u32 %p3, %t, 40;\n");
    for (int i = 0; i < REGISTERS; i++)
        mr_buffer_printf(out, "mad.lo.u32 %%r%d, %%t, %d, %d;\n", i, 2 * i + 1, i);
    for (int b = 0; b < p->block_count; b++) {
        mr_buffer_printf(out, "$L%d:\n", b);
        for (int i = 0; i < p->blocks[b].step_count; i++) put_step(out, &p->blocks[b].steps[i]);
        put_ending(out, p, b);
    }
    mr_buffer_printf(
        out,
        "$L%d: ld.param.u64 %%at, [out]; mul.wide.u32 %%w, %%t, 32; add.s64 %%at, %%at, %%w;\n",
        p->block_count);
    for (int i = 0; i < REGISTERS; i++)
        mr_buffer_printf(out, "st.global.u32 [%%at+%d], %%r%d;\n", 4 * i, i);
    mr_buffer_puts(out, "ret;\n}\n");
}

static bool is_plain; /* the handlers for processors without AVX2 are tried */
/* The linker puts this in the place of the interpreter's own function. */
bool __real_ptx_has_v3(void);
bool __wrap_ptx_has_v3(void);
bool __wrap_ptx_has_v3(void) {
    return !is_plain && __real_ptx_has_v3();
}

static void random_programs_do_the_same_in_lock_step(void **state) {
    (void)state;
    int count = getenv("PTX_RANDOM") ? atoi(getenv("PTX_RANDOM")) : 400;
    for (int n = 0; n < count; n++) {
        seed = (uint64_t)n * 7919 + 12345;
        program p = random_program();
        mr_buffer text = {0};
        put_program(&text, &p);
        device d;
        is_plain = n % 2 == 0;
        load_ptx(&d, text.data);
        char *out, *sum;
        uint64_t to = give(&d, "out", 4 * REGISTERS * THREADS, 0, &out),
                 total = give(&d, "sum", 4, 0, &sum);
        begin(&d, "k", 1, THREADS);
        PASS(&d, uint64_t, to);
        PASS(&d, uint64_t, total);
        run(&d);
        uint32_t want_sum = 0;
        for (uint32_t t = 0; t < THREADS; t++) {
            uint32_t want[REGISTERS];
            run_thread(&p, t, want, &want_sum);
            if (memcmp(want, out + 4 * REGISTERS * t, sizeof want) != 0) {
                printf("program %d, thread %u:\n%s\n", n, t, text.data);
                for (int i = 0; i < REGISTERS; i++) {
                    printf("r%d %x, wanted %x\n", i,
                           ((uint32_t *)(void *)out)[REGISTERS * t + (uint32_t)i], want[i]);
                }
                fail();
            }
        }
        assert_int_equal(*(uint32_t *)(void *)sum, want_sum);
        unload(&d);
        mr_buffer_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs_do_the_same_in_lock_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
