/* Constant expressions, by precedence climbing: PTX's operators are C's, on 64-bit integers. Real constants stand
 * alone, with or without a minus. */
#include "ptx/read/reader.h"

#define SIGN_BIT ((uint64_t)1 << 63)

typedef struct {
    uint16_t mark;
    uint8_t precedence;
} operator_row;

static const operator_row operators[] = {
    {PTX_MARK2('|', '|'), 1},
    {PTX_MARK2('&', '&'), 2},
    {'|', 3},
    {'^', 4},
    {'&', 5},
    {PTX_MARK2('=', '='), 6},
    {PTX_MARK2('!', '='), 6},
    {'<', 7},
    {PTX_MARK2('<', '='), 7},
    {'>', 7},
    {PTX_MARK2('>', '='), 7},
    {PTX_MARK2('<', '<'), 8},
    {PTX_MARK2('>', '>'), 8},
    {'+', 9},
    {'-', 9},
    {'*', 10},
    {'/', 10},
    {'%', 10},
};

static int precedence_of(const ptx_token *t) {
    if (t->kind != PTX_TOKEN_MARK) return 0;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].mark == t->mark) return operators[i].precedence;
    return 0;
}

static mr_status divide(ptx_reader *r, uint16_t mark, const ptx_literal *a, const ptx_literal *b,
                        ptx_literal *out) {
    if (!b->bits) return ptx_wrong(r, "the constant expression divides by zero");
    bool overflows = !out->is_unsigned && a->bits == SIGN_BIT && b->bits == UINT64_MAX;
    if (overflows) out->bits = mark == '/' ? SIGN_BIT : 0;
    else if (out->is_unsigned) out->bits = mark == '/' ? a->bits / b->bits : a->bits % b->bits;
    else if (mark == '/') out->bits = (uint64_t)((int64_t)a->bits / (int64_t)b->bits);
    else out->bits = (uint64_t)((int64_t)a->bits % (int64_t)b->bits);
    return MR_OK;
}

static uint64_t shift_right(const ptx_literal *a, uint64_t by) {
    bool fill = !a->is_unsigned && (a->bits & SIGN_BIT);
    if (by >= 64) return fill ? UINT64_MAX : 0;
    uint64_t shifted = a->bits >> by;
    return fill && by ? shifted | ~(UINT64_MAX >> by) : shifted;
}

static bool less(const ptx_literal *a, const ptx_literal *b, bool is_unsigned) {
    return is_unsigned ? a->bits < b->bits : (int64_t)a->bits < (int64_t)b->bits;
}

static mr_status real_arithmetic(ptx_reader *r) {
    return ptx_fail(r, r->token.line, MR_CODE_NOT_SUPPORTED,
                    "arithmetic of real constants is not covered");
}

static mr_status apply(ptx_reader *r, uint16_t mark, const ptx_literal *a, const ptx_literal *b,
                       ptx_literal *out) {
    if (a->is_real || b->is_real) return real_arithmetic(r);
    bool u = a->is_unsigned || b->is_unsigned;
    ptx_literal result = {.is_unsigned = u};
    switch (mark) {
    case '+': result.bits = a->bits + b->bits; break;
    case '-': result.bits = a->bits - b->bits; break;
    case '*': result.bits = a->bits * b->bits; break;
    case '/':
    case '%': MR_TRY(divide(r, mark, a, b, &result)); break;
    case '&': result.bits = a->bits & b->bits; break;
    case '|': result.bits = a->bits | b->bits; break;
    case '^': result.bits = a->bits ^ b->bits; break;
    case PTX_MARK2('<', '<'):
        result = (ptx_literal){.is_unsigned = a->is_unsigned,
                               .bits = b->bits < 64 ? a->bits << b->bits : 0};
        break;
    case PTX_MARK2('>', '>'):
        result = (ptx_literal){.is_unsigned = a->is_unsigned, .bits = shift_right(a, b->bits)};
        break;
    default:
        result.is_unsigned = false;
        result.bits = mark == '<'                   ? less(a, b, u)
                      : mark == '>'                 ? less(b, a, u)
                      : mark == PTX_MARK2('<', '=') ? !less(b, a, u)
                      : mark == PTX_MARK2('>', '=') ? !less(a, b, u)
                      : mark == PTX_MARK2('=', '=') ? a->bits == b->bits
                      : mark == PTX_MARK2('!', '=') ? a->bits != b->bits
                      : mark == PTX_MARK2('&', '&') ? a->bits && b->bits
                                                    : a->bits || b->bits;
    }
    *out = result;
    return MR_OK;
}

static mr_status read_binary(ptx_reader *r, int lowest, int depth, ptx_literal *out);

static mr_status read_conditional(ptx_reader *r, int depth, ptx_literal *out) {
    if (depth > PTX_DEEPEST)
        return ptx_wrong(r, "the constant expression is nested more than %d deep", PTX_DEEPEST);
    MR_TRY(read_binary(r, 1, depth, out));
    bool taken;
    MR_TRY(ptx_accept(r, '?', &taken));
    if (!taken) return MR_OK;
    ptx_literal yes, no;
    MR_TRY(read_conditional(r, depth + 1, &yes));
    MR_TRY(ptx_expect(r, ':', "in the constant expression"));
    MR_TRY(read_conditional(r, depth + 1, &no));
    *out = out->bits ? yes : no;
    return MR_OK;
}

/* After `(`: a cast or an expression. */
static mr_status read_parenthesis(ptx_reader *r, int depth, ptx_literal *out) {
    bool to_signed = ptx_at_dot(r, "s64"), cast = to_signed || ptx_at_dot(r, "u64");
    if (cast) MR_TRY(ptx_advance(r));
    else MR_TRY(read_conditional(r, depth, out));
    MR_TRY(ptx_expect(r, ')', "in the constant expression"));
    if (!cast) return MR_OK;
    MR_TRY(read_binary(r, 11, depth, out));
    out->is_unsigned = !to_signed;
    return MR_OK;
}

static void negate(ptx_literal *c) {
    if (c->is_real) c->bits ^= c->single ? (uint64_t)1 << 31 : SIGN_BIT;
    else c->bits = 0 - c->bits;
    if (!c->is_real && c->is_unsigned && c->bits >= SIGN_BIT) c->is_unsigned = false;
}

static mr_status read_unary(ptx_reader *r, int depth, ptx_literal *out) {
    if (depth > PTX_DEEPEST)
        return ptx_wrong(r, "the constant expression is nested more than %d deep", PTX_DEEPEST);
    const ptx_token t = r->token;
    if (t.kind == PTX_TOKEN_INTEGER || t.kind == PTX_TOKEN_REAL) {
        *out = (ptx_literal){t.kind == PTX_TOKEN_REAL, t.single, t.is_unsigned, t.bits};
        return ptx_advance(r);
    }
    if (t.kind == PTX_TOKEN_WORD && t.size == 7 && !__builtin_memcmp(t.text, "WARP_SZ", 7)) {
        *out = (ptx_literal){.bits = 32};
        return ptx_advance(r);
    }
    if (!ptx_begins_constant(r)) return ptx_expected(r, "a constant");
    MR_TRY(ptx_advance(r));
    if (t.mark == '(') return read_parenthesis(r, depth + 1, out);
    MR_TRY(read_unary(r, depth + 1, out));
    if (out->is_real && t.mark != '-' && t.mark != '+') return real_arithmetic(r);
    if (t.mark == '-') negate(out);
    if (t.mark == '~') out->bits = ~out->bits;
    if (t.mark == '!') *out = (ptx_literal){.bits = !out->bits};
    return MR_OK;
}

static mr_status read_binary(ptx_reader *r, int lowest, int depth, ptx_literal *out) {
    MR_TRY(read_unary(r, depth, out));
    for (int p; (p = precedence_of(&r->token)) >= lowest;) {
        uint16_t mark = r->token.mark;
        ptx_literal right;
        MR_TRY(ptx_advance(r));
        MR_TRY(read_binary(r, p + 1, depth, &right));
        MR_TRY(apply(r, mark, out, &right, out));
    }
    return MR_OK;
}

bool ptx_begins_constant(const ptx_reader *r) {
    const ptx_token *t = &r->token;
    if (t->kind == PTX_TOKEN_INTEGER || t->kind == PTX_TOKEN_REAL) return true;
    return ptx_at(r, '-') || ptx_at(r, '~') || ptx_at(r, '+') || ptx_at(r, '!') || ptx_at(r, '(');
}

mr_status ptx_read_constant(ptx_reader *r, ptx_literal *out) {
    return read_conditional(r, 0, out);
}

mr_status ptx_read_offset(ptx_reader *r, int64_t *out) {
    *out = 0;
    bool plus;
    MR_TRY(ptx_accept(r, '+', &plus));
    if (!plus && !ptx_at(r, '-')) return MR_OK;
    ptx_literal value;
    MR_TRY(read_conditional(r, 0, &value));
    if (value.is_real) return ptx_wrong(r, "the offset of an address must be an integer");
    *out = (int64_t)value.bits;
    return MR_OK;
}
