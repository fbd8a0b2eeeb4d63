/* The values of a launch as linear forms: arithmetic, parameters and special registers.
 *
 * Easiest to break: a form is the exact number in the register, read as a signed number of the register's width. Where
 * a result could wrap around it is a new symbol. Only its width is known. */
#include <string.h>

#include "ptx/access/run.h"

/* ---- arithmetic */

/* The number that is read as unsigned; false: it is only known to be one of `bits`. */
static bool as_unsigned(launch_run *r, const linear_form *f, uint32_t bits, uint32_t block,
                        linear_form *out) {
    *out = *f;
    if (!launch_is_negative(r, f, block)) return true;
    if (bits >= 64 || linear_upper(r->system, f, launch_at(r, block)) >= 0) return false;
    out->constant = linear_plus(out->constant, INT64_C(1) << bits);
    return true;
}

static bool is_constant(const linear_form *f, int64_t *out) {
    *out = f->constant;
    return !f->count;
}

static linear_form sum_of(launch_run *r, const launch_node *node, int64_t factor) {
    linear_form f;
    if (!linear_add(&r->forms[launch_operand(r, node, 0)], &r->forms[launch_operand(r, node, 1)],
                    factor, &f))
        return launch_unknown(r, node->bits);
    return launch_settle(r, &f, node->bits, node->block);
}

static linear_form scaled(launch_run *r, const launch_node *node, const linear_form *f,
                          int64_t by) {
    linear_form zero = linear_constant(0), product;
    if (!linear_add(&zero, f, by, &product)) {
        int64_t x;
        if (is_constant(f, &x)) /* wraps around */
            return linear_constant(launch_canonical((uint64_t)x * (uint64_t)by, node->bits));
        return launch_unknown(r, node->bits);
    }
    return launch_settle(r, &product, node->bits, node->block);
}

static linear_form product_of(launch_run *r, const launch_node *node) {
    const linear_form *a = &r->forms[launch_operand(r, node, 0)],
                      *b = &r->forms[launch_operand(r, node, 1)];
    int64_t x;
    if (launch_as_number(r, b, &x)) return scaled(r, node, a, x);
    if (launch_as_number(r, a, &x)) return scaled(r, node, b, x);
    linear_range p = launch_bounds(r, a, node->block), q = launch_bounds(r, b, node->block);
    int64_t corners[4] = {linear_times(p.low, q.low), linear_times(p.low, q.high),
                          linear_times(p.high, q.low), linear_times(p.high, q.high)};
    int64_t low = corners[0], high = corners[0];
    for (int k = 1; k < 4; k++) {
        if (corners[k] < low) low = corners[k];
        if (corners[k] > high) high = corners[k];
    }
    return launch_within(r, node, low, high);
}

static linear_form quotient(launch_run *r, const launch_node *node, const linear_form *f,
                            int64_t divisor) {
    linear_form q;
    uint32_t before = r->system->symbol_count;
    bool done = linear_quotient_of(r->system, f, divisor, launch_at(r, node->block), &q);
    for (uint32_t k = before; k < r->system->symbol_count; k++) {
        r->holds[k] = r->taint;
        r->why[k] = MR_PTX_ARITHMETIC;
    }
    if (!done) return launch_unknown(r, node->bits);
    return launch_settle(r, &q, node->bits, node->block);
}

static linear_form quotient_of(launch_run *r, const launch_node *node) {
    linear_form a;
    const linear_form *b = &r->forms[launch_operand(r, node, 1)];
    int64_t d, x;
    bool is_plain =
        as_unsigned(r, &r->forms[launch_operand(r, node, 0)], node->bits, node->block, &a);
    if (!launch_as_number(r, b, &d)) { /* by an unknown number that is at least 1, without a sign */
        linear_range q = launch_bounds(r, b, node->block), p = launch_bounds(r, &a, node->block);
        if (is_plain && p.low >= 0 && q.low >= 1) return launch_within(r, node, 0, p.high);
        return launch_unknown(r, node->bits);
    }
    if (!node->is_signed && d < 0 && node->bits < 64) d += INT64_C(1) << node->bits;
    if (d <= 0) {
        return launch_unknown(r, node->bits);
    }
    if (node->is_signed) {
        a = r->forms[launch_operand(r, node, 0)];
        if (is_constant(&a, &x)) return linear_constant(x / d);
        if (!launch_is_negative(r, &a, node->block)) return quotient(r, node, &a, d);
        linear_range p = launch_bounds(r, &a, node->block); /* rounds towards 0 */
        if (p.low == LINEAR_LEAST || p.high == LINEAR_MOST) return launch_unknown(r, node->bits);
        return launch_within(r, node, p.low / d, p.high / d);
    }
    return is_plain ? quotient(r, node, &a, d) : launch_unknown(r, node->bits);
}

/* A number of shifts beyond the width gives 0, or the sign. */
static linear_form shift_of(launch_run *r, const launch_node *node) {
    const linear_form *a = &r->forms[launch_operand(r, node, 0)];
    linear_form plain;
    int64_t by;
    bool is_left = node->op == ACCESS_SHL;
    if (launch_as_number(r, &r->forms[launch_operand(r, node, 1)], &by)) {
        if (by < 0) by = 64; /* an unsigned number: very large */
        if (is_left && by < node->bits && by < 63) return scaled(r, node, a, INT64_C(1) << by);
        if (is_left) return by >= node->bits ? linear_constant(0) : launch_unknown(r, node->bits);
        if (by >= node->bits && !node->is_signed) return linear_constant(0);
        if (by >= 63) by = 62;
        if (node->is_signed) return quotient(r, node, a, INT64_C(1) << by);
        if (!as_unsigned(r, a, node->bits, node->block, &plain))
            return by && node->bits < 64
                       ? launch_within(r, node, 0, (INT64_C(1) << node->bits >> by) - 1)
                       : launch_unknown(r, node->bits);
        return quotient(r, node, &plain, INT64_C(1) << by);
    }
    linear_range p = launch_bounds(r, a, node->block),
                 n = launch_bounds(r, &r->forms[launch_operand(r, node, 1)], node->block);
    if (p.low < 0 || n.low < 0) return launch_unknown(r, node->bits);
    if (!is_left) return launch_within(r, node, 0, p.high);
    if (n.high > 62) return launch_unknown(r, node->bits);
    return launch_within(r, node, 0, linear_times(p.high, INT64_C(1) << n.high));
}

static linear_form least_of(launch_run *r, const launch_node *node) {
    const linear_form *a = &r->forms[launch_operand(r, node, 0)],
                      *b = &r->forms[launch_operand(r, node, 1)];
    bool is_least = node->op == ACCESS_MIN;
    linear_form d;
    if (!node->is_signed &&
        (launch_is_negative(r, a, node->block) || launch_is_negative(r, b, node->block))) {
        linear_range p = launch_bounds(r, a, node->block), q = launch_bounds(r, b, node->block);
        if (is_least && p.low >= 0) return launch_within(r, node, 0, p.high);
        if (is_least && q.low >= 0) return launch_within(r, node, 0, q.high);
        return launch_unknown(r, node->bits);
    }
    if (linear_add(a, b, -1, &d)) {
        linear_range range = launch_bounds(r, &d, node->block);
        if (range.high <= 0) return is_least ? *a : *b;
        if (range.low >= 0) return is_least ? *b : *a;
    }
    linear_range p = launch_bounds(r, a, node->block), q = launch_bounds(r, b, node->block);
    bool first_low = p.low < q.low, first_high = p.high < q.high;
    linear_form f = launch_symbol(r, is_least == first_low ? p.low : q.low,
                                  is_least == first_high ? p.high : q.high);
    linear_scope scope = launch_scope_of(r, node->block);
    for (int k = 0; k < 2 && f.count; k++) {
        const linear_form *other = k ? b : a;
        if (is_least) launch_assume_at_most(r, &f, other, 0, scope);
        else launch_assume_at_most(r, other, &f, 0, scope);
    }
    return f;
}

/* Are all values of one form multiples of a power of two that is above all values of the other? Then | and ^ add. */
static bool is_disjoint(launch_run *r, const linear_form *a, const linear_form *b, uint32_t block) {
    uint64_t bits = (uint64_t)a->constant;
    for (uint32_t k = 0; k < a->count; k++) bits |= (uint64_t)a->terms[k].factor;
    if (!bits) return true;
    int64_t step = (int64_t)(bits & -bits);
    linear_range range = launch_bounds(r, b, block);
    return range.low >= 0 && range.high < step && step > 0;
}

static linear_form bits_of(launch_run *r, const launch_node *node) {
    const linear_form *a = &r->forms[launch_operand(r, node, 0)],
                      *b = &r->forms[launch_operand(r, node, 1)];
    int64_t x, y;
    if (is_constant(a, &x) && is_constant(b, &y))
        return linear_constant(node->op == ACCESS_AND  ? (x & y)
                               : node->op == ACCESS_OR ? (x | y)
                                                       : (x ^ y));
    bool plus = is_disjoint(r, a, b, node->block) || is_disjoint(r, b, a, node->block);
    if (plus) return node->op == ACCESS_AND ? linear_constant(0) : sum_of(r, node, 1);
    linear_range p = launch_bounds(r, a, node->block), q = launch_bounds(r, b, node->block);
    if (node->op == ACCESS_AND) {
        if (p.low < 0 && q.low < 0) return launch_unknown(r, node->bits);
        linear_form f =
            launch_symbol(r, 0, q.low < 0 || (p.low >= 0 && p.high < q.high) ? p.high : q.high);
        linear_scope scope = launch_scope_of(r, node->block);
        if (p.low >= 0 && f.count) launch_assume_at_most(r, &f, a, 0, scope);
        if (q.low >= 0 && f.count) launch_assume_at_most(r, &f, b, 0, scope);
        return f;
    }
    if (p.low < 0 || q.low < 0) return launch_unknown(r, node->bits);
    uint64_t most = (uint64_t)p.high | (uint64_t)q.high;
    int64_t all = most ? (int64_t)(UINT64_MAX >> __builtin_clzll(most)) : 0;
    int64_t low = node->op == ACCESS_OR ? (p.low > q.low ? p.low : q.low) : 0;
    return launch_within(r, node, low, all);
}

static linear_form extended(launch_run *r, const launch_node *node) {
    const linear_form *a = &r->forms[launch_operand(r, node, 0)];
    linear_form f;
    if (node->is_signed) return *a;
    if (as_unsigned(r, a, node->from, node->block, &f)) return f;
    return node->from < 64 ? launch_symbol(r, 0, (INT64_C(1) << node->from) - 1)
                           : launch_unknown(r, node->bits);
}

/* ---- leaves */

/* Part of a pointer is not a known number. */
static linear_form param_of(launch_run *r, const launch_node *node) {
    const access_program *p = r->program;
    uint32_t first = p->param_offsets[node->number] + node->offset, bytes = node->bits / 8;
    uint64_t x = 0;
    for (uint32_t k = 0; k < p->piece_count; k++) {
        uint32_t piece = p->piece_offsets[k];
        if (!r->is_pointer[k] || first + bytes <= piece || piece + 8 <= first) continue;
        return bytes == 8 && piece == first ? r->pieces[k] : launch_unknown(r, node->bits);
    }
    memcpy(&x, (const char *)r->plan->params + first, bytes);
    return linear_constant(launch_canonical(x, node->bits));
}

static linear_form special_of(launch_run *r, const launch_node *node) {
    uint32_t k = node->offset < 3 ? node->offset : 0;
    switch (node->number) {
    case PTX_SREG_tid: return r->indices[0][k];
    case PTX_SREG_ctaid: return r->indices[1][k];
    case PTX_SREG_ntid: return linear_constant(r->plan->block[k]);
    case PTX_SREG_nctaid: return linear_constant(r->plan->grid[k]);
    case PTX_SREG_laneid: return r->lane;
    default: return launch_unknown(r, node->bits);
    }
}

static linear_form other_of(launch_run *r, const launch_node *node) {
    if (node->constant && node->op == ACCESS_OTHER)
        return launch_symbol(r, 0, (int64_t)node->constant);
    return launch_unknown(r, node->bits);
}

static linear_form evaluate(launch_run *r, const launch_node *node) {
    switch ((access_op)node->op) {
    case ACCESS_CONSTANT: return linear_constant((int64_t)node->constant);
    case ACCESS_PARAM: return param_of(r, node);
    case ACCESS_SPECIAL: {
        linear_form f = special_of(r, node);
        return launch_settle(r, &f, node->bits, node->block);
    }
    case ACCESS_ADD: return sum_of(r, node, 1);
    case ACCESS_SUB: return sum_of(r, node, -1);
    case ACCESS_MUL: return product_of(r, node);
    case ACCESS_DIV: return quotient_of(r, node);
    case ACCESS_SHL:
    case ACCESS_SHR: return shift_of(r, node);
    case ACCESS_MIN:
    case ACCESS_MAX: return least_of(r, node);
    case ACCESS_AND:
    case ACCESS_OR:
    case ACCESS_XOR: return bits_of(r, node);
    case ACCESS_EXTEND: return extended(r, node);
    case ACCESS_TRUNCATE: {
        const linear_form *a = &r->forms[launch_operand(r, node, 0)];
        return launch_settle(r, a, node->bits, node->block);
    }
    case ACCESS_SELECT: return launch_merge_select(r, node);
    case ACCESS_PHI: return launch_merge_phi(r, node);
    default: return other_of(r, node);
    }
}

/* What can be in the result: of an operation, what its operands hold. */
static uint64_t taint_of(const launch_run *r, const launch_node *node) {
    uint64_t held = 0;
    if (!node->operand_count || node->is_loop_phi) return node->holds & r->pointers;
    uint32_t stride = node->op == ACCESS_PHI ? 2 : 1;
    for (uint32_t k = 0; k < node->operand_count; k++)
        held |= launch_held(r, &r->forms[launch_operand(r, node, stride * k)]);
    return held;
}

static mr_ptx_reason cause_of(const launch_node *node) {
    switch ((access_op)node->op) {
    case ACCESS_LOAD: return MR_PTX_INDEX;
    case ACCESS_SELECT:
    case ACCESS_PHI: return MR_PTX_CONDITION;
    default: return MR_PTX_ARITHMETIC;
    }
}

linear_form launch_evaluate(launch_run *r, const launch_node *node) {
    r->taint = taint_of(r, node);
    r->cause = cause_of(node);
    linear_form f = evaluate(r, node);
    r->taint = 0;
    return f;
}
