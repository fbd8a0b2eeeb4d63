/* The inferred accesses of random kernels. Each is written as PTX, and carried out here, thread by thread, by a walk
 * over the same statements with plain C integers. What a thread touches must lie in the extents, and must be an access
 * that the inference allows. Where all threads of a launch end, extents without a reason must be touched to the last
 * byte. Kernels choose between pointers, compare them with each other, with null and with numbers, round them, and add
 * their differences; memory holds other numbers at each read.
 *
 * MR_ACCESS_ROUNDS: kernels to try; 400 unless given. MR_ACCESS_SEED: of the first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/access/access.h"

/* ---- statements */

enum { WORDS = 8, LONGS = 5, POINTERS = 3, SLOTS = 3, MOST_STATEMENTS = 400, MOST_TEXT = 1 << 18 };

typedef enum {
    ADD,
    SUB,
    MUL,
    AND,
    OR,
    XOR,
    MIN_S,
    MIN_U,
    MAX_S,
    MAX_U,
    SHL,
    SHR_S,
    SHR_U,
    DIV_S,
    DIV_U,
    REM_S,
    REM_U,
    MAD,
    WORD_OPS,
    SPECIAL = WORD_OPS, /* tid, ctaid, ntid, nctaid */
    SIZE,               /* the parameter n */
    SELECT,
    GUARDED_MOVE,
    WIDEN_S,
    WIDEN_U,
    WIDE_MUL,
    LONG_ADD,
    LONG_SUB,
    LONG_MUL,
    LONG_SHL,
    LONG_SIZE,
    NARROW,
    POINT, /* a pointer is set to a parameter */
    MOVE_POINTER,
    SELECT_POINTER,
    ADVANCE, /* pointer += long */
    SPILL,
    RELOAD, /* a pointer, in local memory */
    SPILL_WORD,
    RELOAD_WORD,
    CALL, /* pointer = f(pointer, word) */
    ROUND_POINTER,
    DISTANCE, /* long = pointer - pointer */
    OR_NULL,  /* pointer or null */
    READ,
    WRITE,
    ATOMIC,
    IF,
    WHILE,
    DO_WHILE,
    COUNTED, /* bodies follow */
    KINDS
} kind;

typedef enum { LT_S, LE_S, GT_S, GE_S, LT_U, LE_U, GT_U, GE_U, EQ, NE, COMPARISONS } comparison;

/* The subject of a condition. */
typedef enum {
    OF_WORDS,
    IS_NULL,
    NOT_NULL,
    IS_SAME,
    IS_BELOW,
    IS_BELOW_END, /* p < q + a number of bytes */
    IS_ALIGNED,
    IS_LARGE,
    IS_NEAR, /* p - q < a number */
    SUBJECTS
} subject;

typedef struct {
    kind kind;
    subject subject;
    int p, q; /* pointers of the condition */
    int to, a, b, c;
    bool b_is_immediate;
    int32_t immediate;
    comparison comparison;
    int left, right; /* words that are compared; right < 0: with `limit` */
    int32_t limit;
    /* 0: one comparison; 1: and, 2: or another, of the same words with the other order */
    int second;
    bool through_selp;
    int end, middle; /* of a body: the statement behind it; of IF: where else begins */
    int bytes;
} statement;

typedef struct {
    statement list[MOST_STATEMENTS];
    int count;
    char text[MOST_TEXT];
    size_t length;
    int labels, predicates;
} kernel;

/* ---- random numbers */

static uint64_t state;

static uint32_t draw(uint32_t below) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % below);
}

static int32_t draw_immediate(void) {
    static const int32_t odd[] = {-1, INT32_MAX, INT32_MIN, 65536, 1 << 20, -7, 255, ~3, 31};
    if (draw(5) == 0) return odd[draw(sizeof odd / sizeof *odd)];
    return (int32_t)draw(12) - 2;
}

/* ---- making statements */

static void make_condition(statement *s) {
    s->comparison = (comparison)draw(COMPARISONS);
    s->left = (int)draw(WORDS);
    s->right = draw(2) ? (int)draw(WORDS) : -1;
    s->limit = (int32_t)((uint32_t)draw_immediate() + draw(60));
    s->second = draw(4) == 0 ? 1 + (int)draw(2) : 0;
    s->through_selp = draw(4) == 0;
    s->subject = draw(3) ? OF_WORDS : (subject)draw(SUBJECTS);
    s->p = (int)draw(POINTERS);
    s->q = (int)draw(POINTERS);
}

static void make_body(kernel *k, int depth, int length);

static void make_statement(kernel *k, int depth) {
    statement s = {.kind = (kind)draw(KINDS)};
    if (draw(4) == 0) s.kind = READ + (kind)draw(2);
    if (draw(6) == 0) s.kind = draw(2) ? IF : COUNTED;
    if (s.kind >= IF && depth >= 3) s.kind = WRITE;
    s.to = (int)draw(WORDS);
    s.a = (int)draw(WORDS);
    s.b = (int)draw(WORDS);
    s.c = (int)draw(WORDS);
    s.b_is_immediate = draw(2);
    s.immediate = draw_immediate();
    s.bytes = 1 << draw(4);
    if (s.kind == SHL || s.kind == SHR_S || s.kind == SHR_U || s.kind == LONG_SHL) {
        s.b_is_immediate = true;
        s.immediate = (int32_t)draw(s.kind == LONG_SHL ? 6 : 9);
        if (draw(10) == 0) s.immediate = 31 + (int32_t)draw(4);
    }
    if (s.kind >= DIV_S && s.kind <= REM_U) {
        s.b_is_immediate = true;
        s.immediate = 1 + (int32_t)draw(9);
        if (draw(8) == 0) s.immediate = -3;
    }
    make_condition(&s);
    int at = k->count++;
    if (s.kind >= IF) {
        make_body(k, depth + 1, 1 + (int)draw(5));
        s.middle = k->count;
        if (s.kind == IF && draw(2)) make_body(k, depth + 1, 1 + (int)draw(3));
        s.end = k->count;
    }
    k->list[at] = s;
}

static void make_body(kernel *k, int depth, int length) {
    for (int i = 0; i < length && k->count < MOST_STATEMENTS - 60; i++) make_statement(k, depth);
}

/* ---- as text */

__attribute__((format(printf, 2, 3))) static void put(kernel *k, const char *format, ...) {
    va_list args;
    va_start(args, format);
    k->length += (size_t)vsnprintf(k->text + k->length, MOST_TEXT - k->length, format, args);
    va_end(args);
    assert_true(k->length < MOST_TEXT);
}

static const char *const compare_text[COMPARISONS] = {"lt.s32", "le.s32", "gt.s32", "ge.s32",
                                                      "lt.u32", "le.u32", "gt.u32", "ge.u32",
                                                      "eq.s32", "ne.s32"};

/* Leaves the condition in a predicate and returns its number. */
static int put_condition(kernel *k, const statement *s) {
    int p = k->predicates;
    k->predicates += 4;
    char right[16];
    snprintf(right, sizeof right, s->right < 0 ? "%d" : "%%r%d",
             s->right < 0 ? s->limit : s->right);
    switch (s->subject) {
    case IS_NULL: put(k, "setp.eq.s64 %%p%d, %%p_%d, 0;\n", p, s->p); break;
    case NOT_NULL: put(k, "setp.ne.s64 %%p%d, %%p_%d, 0;\n", p, s->p); break;
    case IS_SAME: put(k, "setp.eq.s64 %%p%d, %%p_%d, %%p_%d;\n", p, s->p, s->q); break;
    case IS_BELOW: put(k, "setp.lt.u64 %%p%d, %%p_%d, %%p_%d;\n", p, s->p, s->q); break;
    case IS_BELOW_END:
        put(k, "add.s64 %%a0, %%p_%d, %d;\nsetp.lt.u64 %%p%d, %%p_%d, %%a0;\n", s->q,
            s->limit & 255, p, s->p);
        break;
    case IS_ALIGNED:
        put(k, "and.b64 %%a0, %%p_%d, 15;\nsetp.eq.s64 %%p%d, %%a0, %d;\n", s->p, p, s->limit & 4);
        break;
    case IS_LARGE: put(k, "setp.gt.u64 %%p%d, %%p_%d, %d;\n", p, s->p, s->limit & 1023); break;
    case IS_NEAR:
        put(k, "sub.s64 %%a0, %%p_%d, %%p_%d;\nsetp.lt.s64 %%p%d, %%a0, %d;\n", s->p, s->q, p,
            s->limit);
        break;
    default: put(k, "setp.%s %%p%d, %%r%d, %s;\n", compare_text[s->comparison], p, s->left, right);
    }
    if (s->second) {
        put(k, "setp.%s %%p%d, %%r%d, %%r%d;\n", compare_text[(s->comparison + 3) % COMPARISONS],
            p + 1, s->b, s->left);
        put(k, "%s.pred %%p%d, %%p%d, %%p%d;\n", s->second == 1 ? "and" : "or", p + 2, p, p + 1);
        put(k, "not.pred %%p%d, %%p%d;\nnot.pred %%p%d, %%p%d;\n", p + 3, p + 2, p, p + 3);
    }
    return p;
}

static void put_operand(kernel *k, const statement *s) {
    if (s->b_is_immediate) put(k, "%d", s->immediate);
    else put(k, "%%r%d", s->b);
}

static void put_word_op(kernel *k, const statement *s) {
    static const char *const names[WORD_OPS] = {
        "add.s32", "sub.s32", "mul.lo.s32", "and.b32", "or.b32",  "xor.b32",
        "min.s32", "min.u32", "max.s32",    "max.u32", "shl.b32", "shr.s32",
        "shr.u32", "div.s32", "div.u32",    "rem.s32", "rem.u32", "mad.lo.s32"};
    put(k, "%s %%r%d, %%r%d, ", names[s->kind], s->to, s->a);
    put_operand(k, s);
    if (s->kind == MAD) put(k, ", %%r%d", s->c);
    put(k, ";\n");
}

static const char *special_text(const statement *s) {
    static const char *const names[] = {"tid.x",   "tid.y",  "ctaid.x",
                                        "ctaid.y", "ntid.x", "nctaid.x"};
    return names[(unsigned)s->a % 6];
}

static void put_access(kernel *k, const statement *s) {
    int p = s->to % POINTERS, bits = s->bytes * 8;
    bool is_generic = s->through_selp;
    const char *space = is_generic ? "" : ".global";
    put(k, "mul.wide.s32 %%a0, %%r%d, %d;\nadd.s64 %%a0, %%p_%d, %%a0;\n", s->a, s->bytes, p);
    if (s->kind == ATOMIC) {
        put(k, "atom%s.add.u32 %%r%d, [%%a0+%d], 1;\n", space, s->b, s->bytes);
    } else if (s->bytes == 8) {
        if (s->kind == READ)
            put(k, "ld%s.v2.u32 {%%r%d, %%r%d}, [%%a0];\n", space, s->b,
                s->b == s->c ? (s->c + 1) % WORDS : s->c);
        else put(k, "st%s.v2.u32 [%%a0], {%%r%d, %%r%d};\n", space, s->b, s->c);
    } else if (s->kind == READ) {
        put(k, "ld%s.u%d %%r%d, [%%a0+%d];\n", space, bits, s->b, s->bytes);
    } else {
        put(k, "st%s.u%d [%%a0+%d], %%r%d;\n", space, bits, s->bytes, s->b);
    }
}

static void put_simple(kernel *k, const statement *s) {
    int to = s->to % LONGS, a = s->a % LONGS, b = s->b % LONGS;
    int p = s->to % POINTERS, q = s->a % POINTERS, o = s->b % POINTERS;
    switch (s->kind) {
    case SPECIAL: put(k, "mov.u32 %%r%d, %%%s;\n", s->to, special_text(s)); break;
    case SIZE: put(k, "ld.param.u32 %%r%d, [k_3];\n", s->to); break;
    case SELECT: {
        int c = put_condition(k, s);
        put(k, "selp.b32 %%r%d, %%r%d, %%r%d, %%p%d;\n", s->to, s->a, s->b, c);
        break;
    }
    case GUARDED_MOVE: {
        int c = put_condition(k, s);
        put(k, "@%s%%p%d mov.u32 %%r%d, %%r%d;\n", s->through_selp ? "!" : "", c, s->to, s->a);
        break;
    }
    case WIDEN_S: put(k, "cvt.s64.s32 %%l%d, %%r%d;\n", to, s->a); break;
    case WIDEN_U: put(k, "cvt.u64.u32 %%l%d, %%r%d;\n", to, s->a); break;
    case WIDE_MUL: put(k, "mul.wide.s32 %%l%d, %%r%d, %d;\n", to, s->a, s->immediate); break;
    case LONG_ADD: put(k, "add.s64 %%l%d, %%l%d, %%l%d;\n", to, a, b); break;
    case LONG_SUB: put(k, "sub.s64 %%l%d, %%l%d, %%l%d;\n", to, a, b); break;
    case LONG_MUL: put(k, "mul.lo.s64 %%l%d, %%l%d, %d;\n", to, a, s->immediate); break;
    case LONG_SHL: put(k, "shl.b64 %%l%d, %%l%d, %d;\n", to, a, s->immediate); break;
    case LONG_SIZE: put(k, "ld.param.u64 %%l%d, [k_4];\n", to); break;
    case NARROW: put(k, "cvt.u32.u64 %%r%d, %%l%d;\n", s->to, a); break;
    case POINT: put(k, "ld.param.u64 %%p_%d, [k_%d];\n", p, q); break;
    case MOVE_POINTER: put(k, "mov.u64 %%p_%d, %%p_%d;\n", p, q); break;
    case SELECT_POINTER: {
        int c = put_condition(k, s);
        put(k, "selp.b64 %%p_%d, %%p_%d, %%p_%d, %%p%d;\n", p, q, o, c);
        break;
    }
    case ADVANCE: put(k, "add.s64 %%p_%d, %%p_%d, %%l%d;\n", p, q, to); break;
    case ROUND_POINTER: put(k, "and.b64 %%p_%d, %%p_%d, -16;\n", p, q); break;
    case DISTANCE: put(k, "sub.s64 %%l%d, %%p_%d, %%p_%d;\n", to, q, o); break;
    case OR_NULL: {
        int c = put_condition(k, s);
        put(k, "selp.b64 %%p_%d, %%p_%d, 0, %%p%d;\n", p, q, c);
        break;
    }
    case SPILL: put(k, "st.u64 [%%SP+%d], %%p_%d;\n", s->b % SLOTS * 8, p); break;
    case RELOAD: put(k, "ld.local.u64 %%p_%d, [%%SPL+%d];\n", p, s->b % SLOTS * 8); break;
    case SPILL_WORD:
        put(k, "st.local.u32 [%%SPL+%d], %%r%d;\n", 24 + s->b % SLOTS * 4, s->to);
        break;
    case RELOAD_WORD: put(k, "ld.u32 %%r%d, [%%SP+%d];\n", s->to, 24 + s->b % SLOTS * 4); break;
    case CALL:
        put(k,
            "{ .param .b64 q0; .param .b32 q1; .param .b64 q2;\nst.param.b64 [q0], %%p_%d;\n"
            "st.param.b32 [q1], %%r%d;\ncall.uni (q2), move, (q0, q1);\n"
            "ld.param.b64 %%p_%d, [q2]; }\n",
            q, s->b, p);
        break;
    default: put_access(k, s); break;
    }
}

static void put_body(kernel *k, int first, int end);

static void put_block(kernel *k, int at) {
    const statement *s = &k->list[at];
    int label = k->labels++, p;
    switch (s->kind) {
    case IF:
        p = put_condition(k, s);
        put(k, "@!%%p%d bra ELSE%d;\n", p, label);
        put_body(k, at + 1, s->middle);
        put(k, "bra.uni END%d;\nELSE%d:\n", label, label);
        put_body(k, s->middle, s->end);
        put(k, "END%d:\n", label);
        break;
    case WHILE:
        put(k, "LOOP%d:\n", label);
        p = put_condition(k, s);
        put(k, "@!%%p%d bra END%d;\n", p, label);
        put_body(k, at + 1, s->end);
        put(k, "add.s32 %%r%d, %%r%d, %d;\nbra.uni LOOP%d;\nEND%d:\n", s->left, s->left,
            s->immediate, label, label);
        break;
    case DO_WHILE:
        put(k, "LOOP%d:\n", label);
        put_body(k, at + 1, s->end);
        put(k, "add.s32 %%r%d, %%r%d, %d;\n", s->left, s->left, s->immediate);
        p = put_condition(k, s);
        put(k, "@%%p%d bra LOOP%d;\n", p, label);
        break;
    default: /* COUNTED: for (left = a; left < right; left += step), as loops are mostly written */
        put(k, "mov.u32 %%r%d, %%r%d;\nLOOP%d:\n", s->left, s->a, label);
        put(k, "setp.ge.s32 %%p%d, %%r%d, ", k->predicates, s->left);
        put(k, s->right < 0 ? "%d" : "%%r%d", s->right < 0 ? s->limit : s->right);
        put(k, ";\n@%%p%d bra END%d;\n", k->predicates++, label);
        put_body(k, at + 1, s->end);
        put(k, "add.s32 %%r%d, %%r%d, %d;\nbra.uni LOOP%d;\nEND%d:\n", s->left, s->left,
            1 + s->c % 4, label, label);
        break;
    }
}

static void put_body(kernel *k, int first, int end) {
    for (int i = first; i < end;) {
        const statement *s = &k->list[i];
        if (s->kind < WORD_OPS) put_word_op(k, s);
        else if (s->kind < IF) put_simple(k, s);
        else put_block(k, i);
        i = s->kind >= IF ? s->end : i + 1;
    }
}

/* The function adds 4 * word to a pointer, with everything in local memory. */
static const char function_text[] =
    ".func (.param .b64 r) move(.param .b64 a, .param .b32 b) {\n"
    ".local .align 8 .b8 depot[16]; .reg .b64 %SP, %SPL; .reg .b64 %x<9>; .reg .b32 %y;\n"
    "mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL;\n"
    "ld.param.u64 %x1, [a]; st.u64 [%SP+0], %x1; ld.param.u32 %y, [b]; st.u32 [%SP+8], %y;\n"
    "ld.s32 %x2, [%SP+8]; shl.b64 %x3, %x2, 2; ld.u64 %x4, [%SP+0]; add.s64 %x5, %x4, %x3;\n"
    "st.param.b64 [r], %x5; ret; }\n";

static void put_kernel(kernel *k) {
    k->length = 0;
    k->labels = k->predicates = 0;
    put(k, ".version 7.0\n.target sm_80\n.address_size 64\n%s", function_text);
    put(k, ".visible .entry k(.param .u64 k_0, .param .u64 k_1, .param .u64 k_2, .param .u32 k_3, "
           ".param .u64 k_4) {\n"
           ".local .align 8 .b8 depot[64]; .reg .b64 %%SP, %%SPL, %%a0; .reg .pred %%p<9999>;\n"
           ".reg .b32 %%r<9>; .reg .b64 %%l<9>; .reg .b64 %%p_<9>;\n"
           "mov.u64 %%SPL, depot; cvta.local.u64 %%SP, %%SPL;\n");
    for (int i = 0; i < POINTERS; i++) put(k, "ld.param.u64 %%p_%d, [k_%d];\n", i, i);
    for (int i = 0; i < SLOTS; i++)
        put(k, "st.local.u64 [%%SPL+%d], %%p_0;\nst.local.u32 [%%SPL+%d], 0;\n", 8 * i, 24 + 4 * i);
    for (int i = 0; i < WORDS; i++) put(k, "mov.u32 %%r%d, %d;\n", i, i);
    for (int i = 0; i < LONGS; i++) put(k, "mov.u64 %%l%d, %d;\n", i, i);
    put(k, "mov.u32 %%r0, %%ctaid.x;\nmov.u32 %%r1, %%ntid.x;\nmov.u32 %%r2, %%tid.x;\n"
           "mad.lo.s32 %%r0, %%r0, %%r1, %%r2;\nld.param.u32 %%r1, [k_3];\n");
    put_body(k, 0, k->count);
    put(k, "ret;\n}\n");
}

/* ---- carrying it out */

typedef struct {
    uint64_t value;
    int param; /* whose memory it points into; < 0: nobody's, so that an access ends the launch */
} pointer;

typedef struct {
    uint32_t param;
    int64_t first, end;
    uint8_t access;
    bool is_atomic;
} access_made;
enum { MOST_MADE = 1 << 16, MOST_SPAN = 1 << 16 };

typedef struct {
    uint32_t words[WORDS], slot_words[SLOTS];
    uint64_t longs[LONGS];
    bool is_distance[LONGS];
    pointer pointers[POINTERS], slots[SLOTS];
    uint32_t tid[2], ctaid[2];
    long steps;
} thread;

typedef struct {
    const kernel *kernel;
    uint32_t grid[3], block[3];
    struct {
        uint64_t pointers[POINTERS];
        uint32_t size, gap;
        uint64_t long_size;
    } params;
    const mr_ptx_param_access *access;
    mr_ptx_extent extents[32];
    uint32_t extent_count;
    uint32_t threads;
    bool is_large;
    bool is_long; /* ran too many steps, or failed */
    bool is_cut;  /* some thread did */
    access_made *made;
    uint32_t made_count;
    uint64_t certain;        /* bytes that had to be touched */
    uint64_t touched, tight; /* accesses; those at the very end of their extent */
} trial;

static bool compare(comparison c, uint32_t a, uint32_t b) {
    switch (c) {
    case LT_S: return (int32_t)a < (int32_t)b;
    case LE_S: return (int32_t)a <= (int32_t)b;
    case GT_S: return (int32_t)a > (int32_t)b;
    case GE_S: return (int32_t)a >= (int32_t)b;
    case LT_U: return a < b;
    case LE_U: return a <= b;
    case GT_U: return a > b;
    case GE_U: return a >= b;
    case EQ: return a == b;
    default: return a != b;
    }
}

static bool holds_first(const thread *t, const statement *s) {
    uint64_t p = t->pointers[s->p].value, q = t->pointers[s->q].value;
    switch (s->subject) {
    case IS_NULL: return p == 0;
    case NOT_NULL: return p != 0;
    case IS_SAME: return p == q;
    case IS_BELOW: return p < q;
    case IS_BELOW_END: return p < q + (uint64_t)(s->limit & 255);
    case IS_ALIGNED: return (p & 15) == (uint64_t)(s->limit & 4);
    case IS_LARGE: return p > (uint64_t)(s->limit & 1023);
    case IS_NEAR: return (int64_t)(p - q) < s->limit;
    default:
        return compare(s->comparison, t->words[s->left],
                       s->right < 0 ? (uint32_t)s->limit : t->words[s->right]);
    }
}

static bool holds(const thread *t, const statement *s) {
    uint32_t left = t->words[s->left];
    bool p = holds_first(t, s);
    if (!s->second) return p;
    bool q = compare((comparison)((s->comparison + 3) % COMPARISONS), t->words[s->b], left);
    return s->second == 1 ? p && q : p || q;
}

static uint32_t word_op(const thread *t, const statement *s) {
    uint32_t a = t->words[s->a], b = s->b_is_immediate ? (uint32_t)s->immediate : t->words[s->b];
    int32_t x = (int32_t)a, y = (int32_t)b;
    switch (s->kind) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case AND: return a & b;
    case OR: return a | b;
    case XOR: return a ^ b;
    case MIN_S: return (uint32_t)(x < y ? x : y);
    case MIN_U: return a < b ? a : b;
    case MAX_S: return (uint32_t)(x > y ? x : y);
    case MAX_U: return a > b ? a : b;
    case SHL: return b > 31 ? 0 : a << b;
    case SHR_S: return (uint32_t)(x >> (b > 31 ? 31 : b));
    case SHR_U: return b > 31 ? 0 : a >> b;
    case DIV_S: return (uint32_t)((int64_t)x / y);
    case DIV_U: return a / b;
    case REM_S: return (uint32_t)((int64_t)x % y);
    case REM_U: return a % b;
    default: return a * b + t->words[s->c];
    }
}

static void complain(const trial *r, const char *what, int param, int64_t first, int64_t end) {
    printf("%s\nparameter %d, bytes [%lld, %lld); grid %u,%u block %u,%u size %u\n",
           r->kernel->text, param, (long long)first, (long long)end, r->grid[0], r->grid[1],
           r->block[0], r->block[1], r->params.size);
    for (uint32_t k = 0; k < r->extent_count; k++)
        printf("extent: parameter %u access %u%s reason %u [%lld, %lld) run %lld dims %u\n",
               r->extents[k].param, (unsigned)r->extents[k].access,
               r->extents[k].is_atomic ? " atomic" : "", (unsigned)r->extents[k].reason,
               (long long)r->extents[k].first, (long long)r->extents[k].end,
               (long long)r->extents[k].run, r->extents[k].dim_count);
    fail_msg("%s", what);
}

static bool is_covered(const trial *r, const access_made *m, uint8_t way, bool by_atomic) {
    for (uint32_t k = 0; k < r->extent_count; k++) {
        const mr_ptx_extent *e = &r->extents[k];
        if (e->param == m->param && (e->access & way) && e->is_atomic == by_atomic &&
            e->first <= m->first && m->end <= e->end)
            return true;
    }
    return false;
}

/* An atomic access is one of an atomic extent, or else two plain ones. */
static void check_cover(trial *r, const access_made *m) {
    if (m->is_atomic && is_covered(r, m, 3, true)) return;
    for (uint8_t one = 1; one <= 2; one++)
        if ((m->access & one) && !is_covered(r, m, one, false))
            complain(r, "an access outside of the extents", (int)m->param, m->first, m->end);
}

static void touch(trial *r, const pointer *p, uint64_t address, int bytes, uint8_t access) {
    if (p->param < 0) {
        r->is_long = true;
        return;
    }
    int64_t first = (int64_t)(address - r->params.pointers[p->param]), end = first + bytes;
    if ((r->access[p->param].access & access) != access)
        complain(r, "an access that the inference does not know", p->param, first, end);
    access_made m = {.param = (uint32_t)p->param, .first = first, .end = end, .access = access};
    m.is_atomic = access == (MR_PTX_READS | MR_PTX_WRITES);
    check_cover(r, &m);
    r->touched++;
    for (uint32_t k = 0; k < r->extent_count; k++)
        r->tight += r->extents[k].param == m.param &&
                    (r->extents[k].end == end || r->extents[k].first == first);
    if (r->made_count < MOST_MADE) r->made[r->made_count] = m;
    r->made_count++;
}

/* ---- extents without a reason: every byte, and in between none that they leave out */

static bool is_in_grid(const mr_ptx_extent *e, int64_t byte) {
    int64_t at = byte - e->first;
    for (uint32_t k = e->dim_count; k-- > 0;) {
        int64_t place = at / e->dims[k].stride;
        if (place >= e->dims[k].count) place = e->dims[k].count - 1;
        at -= place * e->dims[k].stride;
    }
    return at < e->run;
}

static void check_certain(trial *r) {
    static bool is_touched[MOST_SPAN];
    if (r->is_large || r->is_cut || r->made_count > MOST_MADE) return;
    for (uint32_t k = 0; k < r->extent_count; k++) {
        const mr_ptx_extent *e = &r->extents[k];
        if (e->reason || e->end - e->first > MOST_SPAN) continue;
        memset(is_touched, 0, (size_t)(e->end - e->first));
        for (uint32_t i = 0; i < r->made_count; i++) {
            const access_made *m = &r->made[i];
            if (m->param != e->param || (m->access & e->access) != e->access ||
                m->is_atomic != e->is_atomic)
                continue;
            for (int64_t b = m->first; b < m->end; b++)
                if (b >= e->first && b < e->end) is_touched[b - e->first] = true;
        }
        for (int64_t b = e->first; b < e->end; b++) {
            if (!is_in_grid(e, b)) continue;
            r->certain++;
            if (!is_touched[b - e->first])
                complain(r, "a byte that nobody touches is certain", (int)e->param, b, b + 1);
        }
    }
}

static void carry_out_access(trial *r, thread *t, const statement *s) {
    const pointer *p = &t->pointers[s->to % POINTERS];
    uint64_t address = p->value + (uint64_t)((int64_t)(int32_t)t->words[s->a] * s->bytes);
    uint32_t noise = (uint32_t)(address * 2654435761u) >> (draw(3) * 12);
    if (s->kind == ATOMIC) {
        touch(r, p, address + (uint64_t)s->bytes, 4, MR_PTX_READS | MR_PTX_WRITES);
        t->words[s->b] = noise;
    } else if (s->kind == WRITE) {
        touch(r, p, s->bytes == 8 ? address : address + (uint64_t)s->bytes, s->bytes,
              MR_PTX_WRITES);
    } else {
        touch(r, p, s->bytes == 8 ? address : address + (uint64_t)s->bytes, s->bytes, MR_PTX_READS);
        if (s->bytes < 4) noise &= (1u << s->bytes * 8) - 1;
        t->words[s->b] = noise;
        if (s->bytes == 8) t->words[s->b == s->c ? (s->c + 1) % WORDS : s->c] = noise / 3;
    }
}

/* With a distance between pointers, a pointer leads to whatever is there. */
static pointer advance(const trial *r, pointer p, uint64_t by, bool is_distance) {
    pointer to = {p.value + by, p.param};
    for (int i = 0; i < POINTERS && is_distance; i++) {
        int64_t offset = (int64_t)(to.value - r->params.pointers[i]);
        if (!i) to.param = -1;
        if (offset > -(INT64_C(1) << 40) && offset < INT64_C(1) << 40) to.param = i;
    }
    return to;
}

static void carry_out_simple(trial *r, thread *t, const statement *s) {
    uint64_t *to = &t->longs[s->to % LONGS], a = t->longs[s->a % LONGS], b = t->longs[s->b % LONGS];
    pointer *p = &t->pointers[s->to % POINTERS], q = t->pointers[s->a % POINTERS];
    bool *d = &t->is_distance[s->to % LONGS];
    bool d_a = t->is_distance[s->a % LONGS], d_b = t->is_distance[s->b % LONGS];
    uint32_t specials[] = {t->tid[0], t->tid[1], t->ctaid[0], t->ctaid[1], r->block[0], r->grid[0]};
    switch (s->kind) {
    case SPECIAL: t->words[s->to] = specials[(unsigned)s->a % 6]; break;
    case SIZE: t->words[s->to] = r->params.size; break;
    case SELECT: t->words[s->to] = t->words[holds(t, s) ? s->a : s->b]; break;
    case GUARDED_MOVE:
        if (holds(t, s) != s->through_selp) t->words[s->to] = t->words[s->a];
        break;
    case WIDEN_S: *to = (uint64_t)(int64_t)(int32_t)t->words[s->a], *d = false; break;
    case WIDEN_U: *to = t->words[s->a], *d = false; break;
    case WIDE_MUL:
        *to = (uint64_t)((int64_t)(int32_t)t->words[s->a] * s->immediate);
        *d = false;
        break;
    case LONG_ADD: *to = a + b, *d = d_a || d_b; break;
    case LONG_SUB: *to = a - b, *d = d_a || d_b; break;
    case LONG_MUL: *to = a * (uint64_t)(int64_t)s->immediate, *d = d_a; break;
    case LONG_SHL: *to = s->immediate > 63 ? 0 : a << s->immediate, *d = d_a; break;
    case LONG_SIZE: *to = r->params.long_size, *d = false; break;
    case NARROW: t->words[s->to] = (uint32_t)a; break;
    case POINT: *p = (pointer){r->params.pointers[s->a % POINTERS], s->a % POINTERS}; break;
    case MOVE_POINTER: *p = q; break;
    case SELECT_POINTER: *p = holds(t, s) ? q : t->pointers[s->b % POINTERS]; break;
    case ADVANCE: *p = advance(r, q, *to, *d); break;
    case ROUND_POINTER: *p = (pointer){q.value & ~UINT64_C(15), q.param}; break;
    case DISTANCE: *to = q.value - t->pointers[s->b % POINTERS].value, *d = true; break;
    case OR_NULL: *p = holds(t, s) ? q : (pointer){0, -1}; break;
    case SPILL: t->slots[s->b % SLOTS] = *p; break;
    case RELOAD: *p = t->slots[s->b % SLOTS]; break;
    case SPILL_WORD: t->slot_words[s->b % SLOTS] = t->words[s->to]; break;
    case RELOAD_WORD: t->words[s->to] = t->slot_words[s->b % SLOTS]; break;
    case CALL:
        *p = (pointer){q.value + (uint64_t)((int64_t)(int32_t)t->words[s->b] * 4), q.param};
        break;
    default: carry_out_access(r, t, s); break;
    }
}

static void carry_out(trial *r, thread *t, int first, int end);

static void carry_out_block(trial *r, thread *t, int at) {
    const statement *s = &r->kernel->list[at];
    if (s->kind == IF) {
        if (holds(t, s)) carry_out(r, t, at + 1, s->middle);
        else carry_out(r, t, s->middle, s->end);
        return;
    }
    if (s->kind == COUNTED) t->words[s->left] = t->words[s->a];
    while (!r->is_long) {
        int32_t right = s->right < 0 ? s->limit : (int32_t)t->words[s->right];
        if (s->kind == COUNTED && (int32_t)t->words[s->left] >= right) break;
        if (s->kind == WHILE && !holds(t, s)) break;
        carry_out(r, t, at + 1, s->end);
        t->words[s->left] += (uint32_t)(s->kind == COUNTED ? 1 + s->c % 4 : s->immediate);
        if (s->kind == DO_WHILE && !holds(t, s)) break;
        r->is_long |= ++t->steps > 3000;
    }
}

static void carry_out(trial *r, thread *t, int first, int end) {
    for (int i = first; i < end && !r->is_long;) {
        const statement *s = &r->kernel->list[i];
        r->is_long |= ++t->steps > 3000;
        if (s->kind < WORD_OPS) t->words[s->to] = word_op(t, s);
        else if (s->kind < IF) carry_out_simple(r, t, s);
        else carry_out_block(r, t, i);
        i = s->kind >= IF ? s->end : i + 1;
    }
}

static void run_thread(trial *r, uint32_t x, uint32_t y, uint32_t bx, uint32_t by) {
    thread t = {.tid = {x, y}, .ctaid = {bx, by}};
    for (int i = 0; i < WORDS; i++) t.words[i] = (uint32_t)i;
    for (int i = 0; i < LONGS; i++) t.longs[i] = (uint64_t)i;
    for (int i = 0; i < POINTERS; i++) t.pointers[i] = (pointer){r->params.pointers[i], i};
    for (int i = 0; i < SLOTS; i++) t.slots[i] = t.pointers[0];
    t.words[0] = bx * r->block[0] + x;
    t.words[1] = r->params.size;
    t.words[2] = x;
    carry_out(r, &t, 0, r->kernel->count);
}

/* ---- trials */

/* The ends more often than what lies between. */
static uint32_t draw_index(uint32_t below) {
    uint32_t where = draw(4);
    return where == 0 ? 0 : where == 1 ? below - 1 : draw(below);
}

/* Every thread of a small launch, and some of a large one. */
static void launch(trial *r, const ptx_access *access) {
    r->is_large = draw(2);
    for (int d = 0; d < 2; d++) {
        r->grid[d] = 1 + draw(d ? 2 : 4);
        r->block[d] = 1 + draw(d ? 3 : 9);
        if (!r->is_large) continue;
        r->grid[d] = draw(2) ? 1 + draw(60000) : INT32_MAX - draw(3);
        if (d) r->grid[d] = 1 + draw(65535);
        r->block[d] = d ? 1 + draw(4) : 1 + draw(256);
    }
    r->threads = r->is_large ? 48 : r->grid[0] * r->grid[1] * r->block[0] * r->block[1];
    r->grid[2] = r->block[2] = 1;
    r->params.size = draw(4) ? draw(50) : (uint32_t)draw_immediate();
    r->params.long_size = draw(4) ? draw(50) : (uint64_t)(int64_t)draw_immediate();
    static const uint32_t pointers[POINTERS] = {0, 8, 16};
    mr_ptx_plan plan = {.params = &r->params, .pointers = pointers, .pointer_count = POINTERS};
    memcpy(plan.grid, r->grid, sizeof plan.grid);
    memcpy(plan.block, r->block, sizeof plan.block);
    r->extent_count =
        ptx_access_extents(access, &plan, r->extents, sizeof r->extents / sizeof *r->extents);
    assert_true(r->extent_count <= sizeof r->extents / sizeof *r->extents);
    for (uint32_t k = 0; k < r->threads; k++) {
        uint32_t at[4], most[4] = {r->block[0], r->block[1], r->grid[0], r->grid[1]};
        for (int d = 0, rest = (int)k; d < 4; rest /= (int)most[d++])
            at[d] = r->is_large ? draw_index(most[d]) : (uint32_t)rest % most[d];
        run_thread(r, at[0], at[1], at[2], at[3]);
        r->is_cut |= r->is_long;
        r->is_long = false; /* what a thread did before it was cut short counts */
    }
    check_certain(r);
}

static uint64_t number(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void what_random_kernels_touch_lies_in_the_extents(void **unused) {
    (void)unused;
    static kernel k;
    uint64_t rounds = number("MR_ACCESS_ROUNDS", 400), seed = number("MR_ACCESS_SEED", 1);
    static access_made made[MOST_MADE];
    uint64_t touched = 0, bounded = 0, tight = 0, extents = 0, certain = 0, bytes = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        state = (seed + round) * 0xd1342543de82ef95u;
        k.count = 0;
        make_body(&k, 0, 4 + (int)draw(24));
        put_kernel(&k);
        ptx_tree tree = {0};
        mr_status status = ptx_read(k.text, k.length, "random", &tree);
        if (status)
            fail_msg("seed %llu: %s\n%s", (unsigned long long)(seed + round), status->message,
                     k.text);
        const ptx_function *f = NULL;
        for (uint32_t i = 0; i < tree.function_count; i++)
            if (tree.functions[i].is_entry) f = &tree.functions[i];
        ptx_access *access = ptx_access_infer(&tree, f);
        assert_non_null(access);

        for (int launches = 0; launches < 4; launches++) {
            trial r = {.kernel = &k, .access = ptx_access_facts_of(access)->params, .made = made};
            /* Far apart, and not so that a sum of distances leads from one to another. */
            for (int i = 0; i < POINTERS; i++)
                r.params.pointers[i] =
                    ((uint64_t)(i << 12 | draw(4096)) << 44) + (UINT64_C(1) << 43) + 4 * draw(4);
            launch(&r, access);
            touched += r.touched;
            tight += r.tight;
            bytes += r.certain;
            for (uint32_t i = 0; i < r.extent_count; i++) certain += !r.extents[i].reason;
            for (uint32_t i = 0; i < r.extent_count; i++)
                bounded += r.extents[i].first != INT64_MIN && r.extents[i].end != INT64_MAX;
            extents += r.extent_count;
        }
        ptx_access_free(access);
        ptx_tree_free(&tree);
    }
    if (getenv("MR_ACCESS_ROUNDS"))
        printf("%llu accesses, %llu of %llu extents bounded, %llu certain; %llu certain bytes\n",
               (unsigned long long)touched, (unsigned long long)bounded,
               (unsigned long long)extents, (unsigned long long)certain, (unsigned long long)bytes);
    assert_true(touched > rounds && bounded * 4 > extents && tight > rounds);
    assert_true(certain * 10 > extents && bytes > rounds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_random_kernels_touch_lies_in_the_extents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
