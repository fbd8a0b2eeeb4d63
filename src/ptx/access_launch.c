/* The bytes that a launch can access: each needed value as a linear form over the indices of threads and blocks, the
 * counters of loops, and symbols for what is not linear; conditions as facts; then the bounds of each address.
 *
 * A form is the exact number in the register, read as a signed number of the register's width. Where a result could wrap
 * around it is a new symbol, of which only the width is known.
 *
 * What is easiest to break: a form holds for the last time that its block was entered, and so do facts. Both are used
 * only in blocks that the block of the value, or of the condition, dominates. */
#include <stdlib.h>
#include <string.h>

#include "ptx/access_launch.h"
#include "ptx/access_linear.h"

enum { STEPS_OF_A_LAUNCH = 8000 };

typedef struct {
    int64_t first, end;
    bool is_there;
} extent;

typedef struct {
    const access_program *program;
    const uint32_t *grid, *block;
    const unsigned char *params;
    linear_system *system;
    linear_form *forms;              /* by node */
    bool *is_dead;                   /* by block: this launch does not come here */
    bool *is_defined;                /* by node: not an undefined value */
    linear_form *pieces;             /* by piece */
    extent *extents;                 /* by piece: reads, then writes */
    linear_form indices[2][3], lane; /* tid, ctaid */
    bool is_counter[LINEAR_SYMBOLS]; /* by symbol: counts the iterations of a loop */
    bool is_exhausted;               /* no memory for more symbols: nothing is bounded */
} run;

static const launch_node *node_at(const run *r, uint32_t n) {
    return &r->program->nodes[n];
}

static uint32_t operand(const run *r, const launch_node *node, uint32_t k) {
    return r->program->operands[node->operands + k];
}

static linear_scope scope_of(const run *r, uint32_t block) {
    const launch_block *b = &r->program->blocks[block];
    return (linear_scope){b->enter, b->leave};
}

static uint32_t at(const run *r, uint32_t block) {
    return r->program->blocks[block].enter;
}

/* ---- numbers of a width */

static linear_range range_of(uint32_t bits) {
    if (bits >= 64) return (linear_range){LINEAR_LEAST, LINEAR_MOST};
    if (bits == 1) return (linear_range){0, 1};
    return (linear_range){-(INT64_C(1) << (bits - 1)), (INT64_C(1) << (bits - 1)) - 1};
}

static int64_t canonical(uint64_t x, uint32_t bits) {
    if (bits >= 64) return (int64_t)x;
    return (int64_t)(x << (64 - bits)) >> (64 - bits);
}

static linear_form symbol(run *r, int64_t low, int64_t high) {
    linear_form f = linear_constant(0);
    if (!linear_new_symbol(r->system, low, high, &f)) r->is_exhausted = true;
    return f;
}

static linear_form unknown(run *r, uint32_t bits) {
    linear_range range = range_of(bits);
    return symbol(r, range.low, range.high);
}

/* Does the exact number fit the register? Of 64 bits: is it bounded? */
static bool fits(run *r, const linear_form *f, uint32_t bits, uint32_t block) {
    linear_range range = range_of(bits);
    linear_form negative, zero = linear_constant(0);
    if (!f->count && bits >= 64) return true;
    if (!linear_add(&zero, f, -1, &negative)) return false;
    int64_t most = range.high - (bits >= 64), least = range.low + 2 * (bits >= 64);
    if (linear_plain_upper(r->system, f) > most && linear_upper(r->system, f, at(r, block)) > most)
        return false;
    return linear_plain_upper(r->system, &negative) <= -least ||
           linear_upper(r->system, &negative, at(r, block)) <= -least;
}

/* The form as the value of a register of `bits`. */
static linear_form settle(run *r, const linear_form *f, uint32_t bits, uint32_t block) {
    if (!f->count) return linear_constant(canonical((uint64_t)f->constant, bits));
    return fits(r, f, bits, block) ? *f : unknown(r, bits);
}

static linear_range bounds(run *r, const linear_form *f, uint32_t block) {
    return linear_bounds(r->system, f, at(r, block));
}

static bool is_negative(run *r, const linear_form *f, uint32_t block) {
    linear_form negative, zero = linear_constant(0);
    if (linear_add(&zero, f, -1, &negative) && linear_plain_upper(r->system, &negative) <= 0)
        return false;
    return linear_lower(r->system, f, at(r, block)) < 0;
}

/* The number that is read as unsigned; false: it is only known to be one of `bits`. */
static bool as_unsigned(run *r, const linear_form *f, uint32_t bits, uint32_t block,
                        linear_form *out) {
    *out = *f;
    if (!is_negative(r, f, block)) return true;
    if (bits >= 64 || linear_upper(r->system, f, at(r, block)) >= 0) return false;
    out->constant = linear_plus(out->constant, INT64_C(1) << bits);
    return true;
}

/* ---- facts */

/* left - right + add <= 0. False: that can never be. */
static bool assume_at_most(run *r, const linear_form *left, const linear_form *right, int64_t add,
                           linear_scope scope) {
    linear_form f;
    if (!linear_add(left, right, -1, &f)) return true;
    f.constant = linear_plus(f.constant, add);
    if (f.constant == LINEAR_LEAST || f.constant == LINEAR_MOST) return true;
    return linear_assume_closely(r->system, &f, scope);
}

/* x != y is x < y where x <= y is known. */
static bool assume_different(run *r, const linear_form *x, const linear_form *y, uint32_t block,
                             linear_scope scope) {
    linear_form f;
    if (!linear_add(x, y, -1, &f)) return true;
    linear_range d = bounds(r, &f, block);
    if (d.low == 0 && d.high == 0) return false;
    if (d.high == 0) return assume_at_most(r, x, y, 1, scope);
    if (d.low == 0) return assume_at_most(r, y, x, 1, scope);
    return true;
}

static bool assume_order(run *r, const launch_atom *a, const linear_form *x, const linear_form *y,
                         uint32_t block, linear_scope scope) {
    bool is_less = a->comparison == PTX_MOD_lt || a->comparison == PTX_MOD_le;
    const linear_form *small = is_less ? x : y, *large = is_less ? y : x;
    int64_t add = a->comparison == PTX_MOD_lt || a->comparison == PTX_MOD_gt;
    if (!a->is_signed) {
        linear_form zero = linear_constant(0);
        /* What is at most a number without the sign bit has none, either. */
        if (is_negative(r, large, block)) return true;
        if (!assume_at_most(r, &zero, small, 0, scope)) return false;
    }
    return assume_at_most(r, small, large, add, scope);
}

/* False: the comparison can not be true. */
static bool assume_atom(run *r, const launch_atom *a, uint32_t block, linear_scope scope) {
    const linear_form *x = &r->forms[a->left], *y = &r->forms[a->right];
    switch (a->comparison) {
    case PTX_MOD_eq: return assume_at_most(r, x, y, 0, scope) && assume_at_most(r, y, x, 0, scope);
    case PTX_MOD_ne: return assume_different(r, x, y, block, scope);
    default: return assume_order(r, a, x, y, block, scope);
    }
}

/* ---- values that are one of several */

typedef struct {
    linear_form first; /* the others are described by their differences from it */
    linear_range difference, whole;
    uint32_t count;
    bool differ;
} merged;

static void merge(run *r, merged *m, const linear_form *f, uint32_t place) {
    linear_range whole = linear_bounds(r->system, f, place);
    if (!m->count++) {
        m->first = *f;
        m->whole = whole;
        return;
    }
    linear_form d;
    linear_range range = {LINEAR_LEAST, LINEAR_MOST};
    if (linear_add(f, &m->first, -1, &d)) range = linear_bounds(r->system, &d, place);
    m->differ |= range.low != 0 || range.high != 0;
    if (range.low < m->difference.low) m->difference.low = range.low;
    if (range.high > m->difference.high) m->difference.high = range.high;
    if (whole.low < m->whole.low) m->whole.low = whole.low;
    if (whole.high > m->whole.high) m->whole.high = whole.high;
}

static linear_form merged_form(run *r, const merged *m, uint32_t bits, uint32_t block) {
    if (!m->count) return unknown(r, bits);
    if (!m->differ) return m->first;
    linear_form f = symbol(r, m->whole.low, m->whole.high), limit, sum;
    if (!f.count) return f;
    /* first + low <= f <= first + high */
    linear_scope scope = scope_of(r, block);
    if (m->difference.high != LINEAR_MOST && linear_add(&f, &m->first, -1, &limit)) {
        limit.constant = linear_plus(limit.constant, -m->difference.high);
        linear_assume(r->system, &limit, scope);
    }
    if (m->difference.low != LINEAR_LEAST && linear_add(&m->first, &f, -1, &sum)) {
        sum.constant = linear_plus(sum.constant, m->difference.low);
        linear_assume(r->system, &sum, scope);
    }
    return f;
}

/* After a loop that some threads do not enter, its counter means nothing to those. Where the loop ends with an equation
 * (the counter is the bound), the value is written without the counter: one form for both ways, perhaps. */
static bool common_form(run *r, const launch_node *node, linear_form *out) {
    bool found = false;
    for (uint32_t k = 0; k < node->operand_count && !found; k++) {
        uint32_t value = operand(r, node, 2 * k), from = operand(r, node, 2 * k + 1);
        *out = r->forms[value];
        if (r->is_dead[from]) continue;
        for (uint32_t t = 0; t < r->forms[value].count; t++) {
            uint32_t counter = r->forms[value].terms[t].symbol;
            if (r->is_counter[counter])
                found |= linear_eliminate(r->system, out, counter, at(r, from));
        }
    }
    for (uint32_t k = 0; k < node->operand_count && found; k++) {
        uint32_t value = operand(r, node, 2 * k), from = operand(r, node, 2 * k + 1);
        linear_form d;
        if (r->is_dead[from]) continue;
        found = linear_add(&r->forms[value], out, -1, &d);
        if (!found) break;
        linear_range range = linear_bounds(r->system, &d, at(r, from));
        found = range.low == 0 && range.high == 0;
    }
    return found;
}

static linear_form merge_phi(run *r, const launch_node *node) {
    merged m = {0};
    linear_form common;
    if (node->operand_count > 1 && common_form(r, node, &common)) return common;
    for (uint32_t k = 0; k < node->operand_count; k++) {
        uint32_t value = operand(r, node, 2 * k), from = operand(r, node, 2 * k + 1);
        if (r->is_dead[from] || !r->is_defined[value]) continue;
        merge(r, &m, &r->forms[value], at(r, from));
    }
    return merged_form(r, &m, node->bits, node->block);
}

/* Each side is judged under what the predicate says then; these facts are taken back. */
static linear_form merge_select(run *r, const launch_node *node) {
    merged m = {0};
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t first = side ? node->number : node->step;
        uint32_t count = side ? node->offset : node->step_count;
        uint32_t facts = r->system->fact_count;
        bool possible = true;
        for (uint32_t k = 0; k < count; k++)
            possible &= assume_atom(r, &r->program->atoms[first + k], node->block,
                                    scope_of(r, node->block));
        uint32_t value = operand(r, node, side);
        if (possible && r->is_defined[value]) merge(r, &m, &r->forms[value], at(r, node->block));
        r->system->fact_count = facts;
    }
    return merged_form(r, &m, node->bits, node->block);
}

/* ---- arithmetic */

static bool is_constant(const linear_form *f, int64_t *out) {
    *out = f->constant;
    return !f->count;
}

/* A symbol whose interval is a single number counts as that number: a pointer or a size that is used as both. */
static bool as_number(const run *r, const linear_form *f, int64_t *out) {
    int64_t sum = f->constant;
    for (uint32_t k = 0; k < f->count; k++) {
        const linear_range *range = &r->system->symbols[f->terms[k].symbol];
        if (range->low != range->high) return false;
        sum = linear_plus(sum, linear_times(f->terms[k].factor, range->low));
    }
    *out = sum;
    return sum != LINEAR_LEAST && sum != LINEAR_MOST;
}

static linear_form sum_of(run *r, const launch_node *node, int64_t factor) {
    linear_form f;
    if (!linear_add(&r->forms[operand(r, node, 0)], &r->forms[operand(r, node, 1)], factor, &f))
        return unknown(r, node->bits);
    return settle(r, &f, node->bits, node->block);
}

static linear_form scaled(run *r, const launch_node *node, const linear_form *f, int64_t by) {
    linear_form zero = linear_constant(0), product;
    if (!linear_add(&zero, f, by, &product)) {
        int64_t x;
        if (is_constant(f, &x)) /* wraps around */
            return linear_constant(canonical((uint64_t)x * (uint64_t)by, node->bits));
        return unknown(r, node->bits);
    }
    return settle(r, &product, node->bits, node->block);
}

static linear_form within(run *r, const launch_node *node, int64_t low, int64_t high) {
    linear_range all = range_of(node->bits);
    if (low < all.low || high > all.high || low == LINEAR_LEAST || high == LINEAR_MOST)
        return unknown(r, node->bits);
    return symbol(r, low, high);
}

static linear_form product_of(run *r, const launch_node *node) {
    const linear_form *a = &r->forms[operand(r, node, 0)], *b = &r->forms[operand(r, node, 1)];
    int64_t x;
    if (as_number(r, b, &x)) return scaled(r, node, a, x);
    if (as_number(r, a, &x)) return scaled(r, node, b, x);
    linear_range p = bounds(r, a, node->block), q = bounds(r, b, node->block);
    int64_t corners[4] = {linear_times(p.low, q.low), linear_times(p.low, q.high),
                          linear_times(p.high, q.low), linear_times(p.high, q.high)};
    int64_t low = corners[0], high = corners[0];
    for (int k = 1; k < 4; k++) {
        if (corners[k] < low) low = corners[k];
        if (corners[k] > high) high = corners[k];
    }
    return within(r, node, low, high);
}

static linear_form quotient(run *r, const launch_node *node, const linear_form *f,
                            int64_t divisor) {
    linear_form q;
    if (!linear_quotient_of(r->system, f, divisor, at(r, node->block), &q))
        return unknown(r, node->bits);
    return settle(r, &q, node->bits, node->block);
}

static linear_form quotient_of(run *r, const launch_node *node) {
    linear_form a;
    const linear_form *b = &r->forms[operand(r, node, 1)];
    int64_t d, x;
    bool is_plain = as_unsigned(r, &r->forms[operand(r, node, 0)], node->bits, node->block, &a);
    if (!as_number(r, b, &d)) { /* by an unknown number that is at least 1, without a sign */
        linear_range q = bounds(r, b, node->block), p = bounds(r, &a, node->block);
        if (is_plain && p.low >= 0 && q.low >= 1) return within(r, node, 0, p.high);
        return unknown(r, node->bits);
    }
    if (!node->is_signed && d < 0 && node->bits < 64) d += INT64_C(1) << node->bits;
    if (d <= 0) {
        return unknown(r, node->bits);
    }
    if (node->is_signed) {
        a = r->forms[operand(r, node, 0)];
        if (is_constant(&a, &x)) return linear_constant(x / d);
        if (!is_negative(r, &a, node->block)) return quotient(r, node, &a, d);
        linear_range p = bounds(r, &a, node->block); /* rounds towards 0 */
        if (p.low == LINEAR_LEAST || p.high == LINEAR_MOST) return unknown(r, node->bits);
        return within(r, node, p.low / d, p.high / d);
    }
    return is_plain ? quotient(r, node, &a, d) : unknown(r, node->bits);
}

/* A number of shifts beyond the width gives 0, or the sign. */
static linear_form shift_of(run *r, const launch_node *node) {
    const linear_form *a = &r->forms[operand(r, node, 0)];
    linear_form plain;
    int64_t by;
    bool is_left = node->op == ACCESS_SHL;
    if (as_number(r, &r->forms[operand(r, node, 1)], &by)) {
        if (by < 0) by = 64; /* an unsigned number: very large */
        if (is_left && by < node->bits && by < 63) return scaled(r, node, a, INT64_C(1) << by);
        if (is_left) return by >= node->bits ? linear_constant(0) : unknown(r, node->bits);
        if (by >= node->bits && !node->is_signed) return linear_constant(0);
        if (by >= 63) by = 62;
        if (node->is_signed) return quotient(r, node, a, INT64_C(1) << by);
        if (!as_unsigned(r, a, node->bits, node->block, &plain))
            return by && node->bits < 64 ? within(r, node, 0, (INT64_C(1) << node->bits >> by) - 1)
                                         : unknown(r, node->bits);
        return quotient(r, node, &plain, INT64_C(1) << by);
    }
    linear_range p = bounds(r, a, node->block),
                 n = bounds(r, &r->forms[operand(r, node, 1)], node->block);
    if (p.low < 0 || n.low < 0) return unknown(r, node->bits);
    if (!is_left) return within(r, node, 0, p.high);
    if (n.high > 62) return unknown(r, node->bits);
    return within(r, node, 0, linear_times(p.high, INT64_C(1) << n.high));
}

static linear_form least_of(run *r, const launch_node *node) {
    const linear_form *a = &r->forms[operand(r, node, 0)], *b = &r->forms[operand(r, node, 1)];
    bool is_least = node->op == ACCESS_MIN;
    linear_form d;
    if (!node->is_signed && (is_negative(r, a, node->block) || is_negative(r, b, node->block))) {
        linear_range p = bounds(r, a, node->block), q = bounds(r, b, node->block);
        if (is_least && p.low >= 0) return within(r, node, 0, p.high);
        if (is_least && q.low >= 0) return within(r, node, 0, q.high);
        return unknown(r, node->bits);
    }
    if (linear_add(a, b, -1, &d)) {
        linear_range range = bounds(r, &d, node->block);
        if (range.high <= 0) return is_least ? *a : *b;
        if (range.low >= 0) return is_least ? *b : *a;
    }
    linear_range p = bounds(r, a, node->block), q = bounds(r, b, node->block);
    bool first_low = p.low < q.low, first_high = p.high < q.high;
    linear_form f =
        symbol(r, is_least == first_low ? p.low : q.low, is_least == first_high ? p.high : q.high);
    linear_scope scope = scope_of(r, node->block);
    for (int k = 0; k < 2 && f.count; k++) {
        const linear_form *other = k ? b : a;
        if (is_least) assume_at_most(r, &f, other, 0, scope);
        else assume_at_most(r, other, &f, 0, scope);
    }
    return f;
}

/* Are all values of one form multiples of a power of two that is above all values of the other? Then | and ^ add. */
static bool is_disjoint(run *r, const linear_form *a, const linear_form *b, uint32_t block) {
    uint64_t bits = (uint64_t)a->constant;
    for (uint32_t k = 0; k < a->count; k++) bits |= (uint64_t)a->terms[k].factor;
    if (!bits) return true;
    int64_t step = (int64_t)(bits & -bits);
    linear_range range = bounds(r, b, block);
    return range.low >= 0 && range.high < step && step > 0;
}

static linear_form bits_of(run *r, const launch_node *node) {
    const linear_form *a = &r->forms[operand(r, node, 0)], *b = &r->forms[operand(r, node, 1)];
    int64_t x, y;
    if (is_constant(a, &x) && is_constant(b, &y))
        return linear_constant(node->op == ACCESS_AND  ? (x & y)
                               : node->op == ACCESS_OR ? (x | y)
                                                       : (x ^ y));
    bool plus = is_disjoint(r, a, b, node->block) || is_disjoint(r, b, a, node->block);
    if (plus) return node->op == ACCESS_AND ? linear_constant(0) : sum_of(r, node, 1);
    linear_range p = bounds(r, a, node->block), q = bounds(r, b, node->block);
    if (node->op == ACCESS_AND) {
        if (p.low < 0 && q.low < 0) return unknown(r, node->bits);
        linear_form f =
            symbol(r, 0, q.low < 0 || (p.low >= 0 && p.high < q.high) ? p.high : q.high);
        linear_scope scope = scope_of(r, node->block);
        if (p.low >= 0 && f.count) assume_at_most(r, &f, a, 0, scope);
        if (q.low >= 0 && f.count) assume_at_most(r, &f, b, 0, scope);
        return f;
    }
    if (p.low < 0 || q.low < 0) return unknown(r, node->bits);
    uint64_t most = (uint64_t)p.high | (uint64_t)q.high;
    int64_t all = most ? (int64_t)(UINT64_MAX >> __builtin_clzll(most)) : 0;
    int64_t low = node->op == ACCESS_OR ? (p.low > q.low ? p.low : q.low) : 0;
    return within(r, node, low, all);
}

static linear_form extended(run *r, const launch_node *node) {
    const linear_form *a = &r->forms[operand(r, node, 0)];
    linear_form f;
    if (node->is_signed) return *a;
    if (as_unsigned(r, a, node->from, node->block, &f)) return f;
    return node->from < 64 ? symbol(r, 0, (INT64_C(1) << node->from) - 1) : unknown(r, node->bits);
}

/* ---- leaves */

static linear_form param_of(run *r, const launch_node *node) {
    const access_program *p = r->program;
    uint32_t offset = p->param_offsets[node->number] + node->offset;
    uint64_t x = 0;
    if (node->bits == 64)
        for (uint32_t k = 0; k < p->piece_count; k++)
            if (p->is_pointer[k] && p->piece_offsets[k] == offset &&
                p->pieces[k].param == node->number)
                return r->pieces[k];
    memcpy(&x, r->params + offset, node->bits / 8);
    return linear_constant(canonical(x, node->bits));
}

static linear_form special_of(run *r, const launch_node *node) {
    uint32_t k = node->offset < 3 ? node->offset : 0;
    switch (node->number) {
    case PTX_SREG_tid: return r->indices[0][k];
    case PTX_SREG_ctaid: return r->indices[1][k];
    case PTX_SREG_ntid: return linear_constant(r->block[k]);
    case PTX_SREG_nctaid: return linear_constant(r->grid[k]);
    case PTX_SREG_laneid: return r->lane;
    default: return unknown(r, node->bits);
    }
}

static linear_form other_of(run *r, const launch_node *node) {
    if (node->constant && node->op == ACCESS_OTHER) return symbol(r, 0, (int64_t)node->constant);
    return unknown(r, node->bits);
}

static linear_form evaluate(run *r, const launch_node *node) {
    switch ((access_op)node->op) {
    case ACCESS_CONSTANT: return linear_constant((int64_t)node->constant);
    case ACCESS_PARAM: return param_of(r, node);
    case ACCESS_SPECIAL: {
        linear_form f = special_of(r, node);
        return settle(r, &f, node->bits, node->block);
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
        const linear_form *a = &r->forms[operand(r, node, 0)];
        return settle(r, a, node->bits, node->block);
    }
    case ACCESS_SELECT: return merge_select(r, node);
    case ACCESS_PHI: return merge_phi(r, node);
    default: return other_of(r, node);
    }
}

/* ---- loops */

/* Adds up pairs of a node and a sign. */
static bool add_chain(run *r, uint32_t first, uint32_t count, linear_form *in_out) {
    const uint32_t *pairs = &r->program->operands[first];
    for (uint32_t k = 0; k < count; k++) {
        int64_t sign = pairs[2 * k + 1] == 1 ? 1 : -1;
        linear_form sum;
        if (!linear_add(in_out, &r->forms[pairs[2 * k]], sign, &sum)) return false;
        *in_out = sum;
    }
    return true;
}

static bool step_of(run *r, const launch_node *phi, int64_t *out) {
    linear_form f = linear_constant(0);
    return phi->is_affine && add_chain(r, phi->step, phi->step_count, &f) && as_number(r, &f, out);
}

static bool divides(const linear_form *f, int64_t step) {
    if (f->constant % step) return false;
    for (uint32_t k = 0; k < f->count; k++)
        if (f->terms[k].factor % step) return false;
    return true;
}

/* A counter that grows: it is `start` plus a multiple of `step` > 0, and the loop goes on only if it is at most `limit`. */
typedef struct {
    linear_form start, limit;
    int64_t step;
} counter;

static bool mirror(counter *c) {
    linear_form zero = linear_constant(0), start, limit;
    if (!linear_add(&zero, &c->start, -1, &start) || !linear_add(&zero, &c->limit, -1, &limit))
        return false;
    c->start = start;
    c->limit = limit;
    c->step = -c->step;
    return true;
}

/* Without a sign, a counter that falls must stop before it gets below 0, and bounds must have no sign bit. */
static bool is_signed_enough(run *r, const launch_test *t, const counter *c, uint32_t header) {
    linear_form after = c->limit;
    if (t->is_signed || t->comparison == PTX_MOD_ne) return true;
    if (is_negative(r, &c->limit, header)) return false;
    if (c->step > 0) return true;
    after.constant = linear_plus(after.constant, c->step + (t->comparison == PTX_MOD_gt));
    return !is_negative(r, &after, header) && !is_negative(r, &c->start, header);
}

static bool find_limit(run *r, const launch_test *t, counter *c, uint32_t header) {
    bool falls = c->step < 0;
    if (!is_signed_enough(r, t, c, header)) return false;
    if (falls && !mirror(c)) return false;
    linear_form d;
    switch (t->comparison) {
    case PTX_MOD_lt:
    case PTX_MOD_gt:
        if (falls != (t->comparison == PTX_MOD_gt)) return false;
        c->limit.constant = linear_plus(c->limit.constant, -1);
        return true;
    case PTX_MOD_le:
    case PTX_MOD_ge: return falls == (t->comparison == PTX_MOD_ge);
    case PTX_MOD_ne: /* meets the bound, if it begins below and the step divides the distance */
        if (!linear_add(&c->start, &c->limit, -1, &d) || !divides(&d, c->step)) return false;
        if (linear_upper(r->system, &d, at(r, header)) > 0) return false;
        c->limit.constant = linear_plus(c->limit.constant, -c->step);
        return true;
    default: return false;
    }
}

/* How often the loop goes on at most because of one test, and what that says of the number of iterations. */
static void judge_test(run *r, const launch_test *t, uint32_t header, linear_form *starts,
                       const linear_form *iteration, int64_t *in_out_most) {
    const launch_node *phi = node_at(r, t->phi);
    counter c = {.limit = r->forms[t->bound]};
    linear_form d, f;
    if (!step_of(r, phi, &c.step) || !c.step) return;
    c.start = starts[t->phi - r->program->blocks[header].nodes];
    if (!add_chain(r, t->chain, t->chain_count, &c.start)) return;
    if (!fits(r, &c.start, t->bits, header) || !find_limit(r, t, &c, header)) return;
    /* One step beyond the limit must not wrap around. */
    linear_form beyond = c.limit;
    beyond.constant = linear_plus(beyond.constant, c.step);
    int64_t most = range_of(t->bits).high - 1;
    if (linear_upper(r->system, &beyond, at(r, header)) > most) return;
    if (!linear_add(&c.limit, &c.start, -1, &d)) return;
    int64_t room = linear_upper(r->system, &d, at(r, header));
    if (room == LINEAR_MOST) return;
    int64_t times = room < 0 ? 0 : room / c.step + 1;
    if (times < *in_out_most) *in_out_most = times;
    /* start + step * (iteration - 1) <= limit in all iterations but the first, and there, too, give or take `slack` */
    if (!linear_add(&c.start, &c.limit, -1, &d)) return;
    d.constant = linear_plus(d.constant, -c.step);
    int64_t slack = linear_upper(r->system, &d, at(r, header));
    if (slack == LINEAR_MOST || !linear_add(&d, iteration, c.step, &f)) return;
    if (slack > 0) f.constant = linear_plus(f.constant, -slack);
    linear_assume_closely(r->system, &f, scope_of(r, header));
}

static linear_form loop_phi(run *r, const launch_node *phi, const linear_form *start,
                            const linear_form *iteration) {
    int64_t step;
    linear_form f;
    if (step_of(r, phi, &step) && linear_add(start, iteration, step, &f) &&
        fits(r, &f, phi->bits, phi->block))
        return f;
    if (phi->is_shrinking && !is_negative(r, start, phi->block))
        return within(r, phi, 0, linear_upper(r->system, start, at(r, phi->block)));
    return unknown(r, phi->bits);
}

/* The phis of a loop: what they are at first, plus the number of iterations times what one adds. */
static void enter_loop(run *r, uint32_t header) {
    const launch_block *b = &r->program->blocks[header];
    uint32_t count = 0;
    while (count < b->node_count && node_at(r, b->nodes + count)->is_loop_phi) count++;
    if (!count) return;
    linear_form *starts = malloc(count * sizeof *starts);
    linear_form iteration = symbol(r, 0, LINEAR_MOST);
    if (!starts || !iteration.count) {
        free(starts);
        r->is_exhausted = true;
        return;
    }
    for (uint32_t k = 0; k < count; k++) starts[k] = merge_phi(r, node_at(r, b->nodes + k));
    r->is_counter[iteration.terms[0].symbol] = true;
    int64_t most = LINEAR_MOST;
    for (uint32_t k = 0; k < b->test_count; k++)
        judge_test(r, &r->program->tests[b->tests + k], header, starts, &iteration, &most);
    r->system->symbols[iteration.terms[0].symbol].high = most;
    for (uint32_t k = 0; k < count; k++)
        r->forms[b->nodes + k] = loop_phi(r, node_at(r, b->nodes + k), &starts[k], &iteration);
    free(starts);
}

/* ---- blocks */

static void enter_block(run *r, uint32_t k) {
    const launch_block *b = &r->program->blocks[k];
    r->is_dead[k] = k && r->is_dead[b->dominator];
    for (uint32_t a = 0; a < b->atom_count && !r->is_dead[k]; a++)
        r->is_dead[k] = !assume_atom(r, &r->program->atoms[b->atoms + a], k, scope_of(r, k));
    if (b->is_header && !r->is_dead[k]) enter_loop(r, k);
    for (uint32_t n = b->nodes; n < b->nodes + b->node_count; n++) {
        const launch_node *node = node_at(r, n);
        r->is_defined[n] = node->op != ACCESS_UNDEFINED;
        if (r->is_dead[k]) r->forms[n] = linear_constant(0);
        else if (!node->is_loop_phi) r->forms[n] = evaluate(r, node);
    }
}

/* ---- extents */

static void widen(extent *e, int64_t first, int64_t end) {
    if (!e->is_there || first < e->first) e->first = first;
    if (!e->is_there || end > e->end) e->end = end;
    e->is_there = true;
}

static void widen_site(run *r, const launch_site *site, uint32_t piece, int64_t first,
                       int64_t end) {
    if (site->access & MR_PTX_READS) widen(&r->extents[2 * piece], first, end);
    if (site->access & MR_PTX_WRITES) widen(&r->extents[2 * piece + 1], first, end);
}

static bool contains(const linear_form *f, const linear_form *piece) {
    for (uint32_t k = 0; k < f->count; k++)
        if (f->terms[k].symbol == piece->terms[0].symbol) return true;
    return false;
}

/* Of the pointers that an address can come from, this launch may leave one: the form says which. */
static bool names_base(const run *r, const launch_site *site) {
    for (uint32_t k = 0; k < site->base_count; k++) {
        const linear_form *piece = &r->pieces[r->program->bases[site->bases + k]];
        if (contains(&r->forms[site->address], piece)) return true;
    }
    return false;
}

static void add_site(run *r, const launch_site *site) {
    if (r->is_dead[site->block]) return;
    for (uint32_t k = 0; k < site->unclear_count; k++)
        widen_site(r, site, r->program->bases[site->unclear + k], LINEAR_LEAST, LINEAR_MOST);
    bool names_one = names_base(r, site);
    for (uint32_t k = 0; k < site->base_count; k++) {
        uint32_t piece = r->program->bases[site->bases + k];
        linear_form offset;
        if (names_one && !contains(&r->forms[site->address], &r->pieces[piece])) continue;
        linear_range range = {LINEAR_LEAST, LINEAR_MOST};
        if (linear_add(&r->forms[site->address], &r->pieces[piece], -1, &offset))
            range = bounds(r, &offset, site->block);
        if (range.low > range.high) return; /* the conditions contradict each other: not reached */
        int64_t end = linear_plus(range.high, site->bytes);
        widen_site(r, site, piece, range.low, end);
    }
}

static uint32_t list_extents(const run *r, mr_ptx_extent *out, uint32_t most) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < 2 * r->program->piece_count; k++) {
        const extent *e = &r->extents[k];
        if (!e->is_there) continue;
        const access_piece *piece = &r->program->pieces[k / 2];
        if (count++ < most)
            out[count - 1] = (mr_ptx_extent){
                .param = piece->param,
                .offset = piece->offset,
                .access = k % 2 ? MR_PTX_WRITES : MR_PTX_READS,
                .reason = e->first == LINEAR_LEAST || e->end == LINEAR_MOST ? MR_PTX_INDEX
                                                                            : MR_PTX_CERTAIN,
                .first = e->first,
                .end = e->end};
    }
    return count;
}

static void prepare(run *r) {
    linear_system *s = r->system;
    linear_reset(s, STEPS_OF_A_LAUNCH);
    for (uint32_t k = 0; k < r->program->piece_count; k++) {
        int64_t x;
        if (!r->program->is_pointer[k]) continue;
        memcpy(&x, r->params + r->program->piece_offsets[k], sizeof x);
        r->pieces[k] = (linear_form){.count = 1, .terms = {{1, s->symbol_count}}};
        if (s->symbol_count == LINEAR_SYMBOLS / 2) {
            r->is_exhausted = true;
            return;
        }
        s->symbols[s->symbol_count++] = (linear_range){x, x};
    }
    for (uint32_t k = 0; k < 3; k++) {
        r->indices[0][k] = symbol(r, 0, (int64_t)r->block[k] - 1);
        r->indices[1][k] = symbol(r, 0, (int64_t)r->grid[k] - 1);
    }
    r->lane = symbol(r, 0, 31);
}

static uint32_t evaluate_all(run *r, mr_ptx_extent *out, uint32_t most) {
    const access_program *p = r->program;
    prepare(r);
    for (uint32_t k = 0; k < p->block_count && !r->is_exhausted; k++) enter_block(r, k);
    for (uint32_t k = 0; k < p->site_count; k++) {
        const launch_site *site = &p->sites[k];
        if (!r->is_exhausted) {
            add_site(r, site);
            continue;
        }
        for (uint32_t b = 0; b < site->base_count; b++)
            widen_site(r, site, p->bases[site->bases + b], LINEAR_LEAST, LINEAR_MOST);
        for (uint32_t b = 0; b < site->unclear_count; b++)
            widen_site(r, site, p->bases[site->unclear + b], LINEAR_LEAST, LINEAR_MOST);
    }
    return list_extents(r, out, most);
}

static uint32_t without_memory(const access_program *p, mr_ptx_extent *out, uint32_t most) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->piece_count; k++)
        if (count++ < most)
            out[count - 1] = (mr_ptx_extent){.param = p->pieces[k].param,
                                             .offset = p->pieces[k].offset,
                                             .access = MR_PTX_READS | MR_PTX_WRITES,
                                             .reason = MR_PTX_SIZE,
                                             .first = LINEAR_LEAST,
                                             .end = LINEAR_MOST};
    return count;
}

uint32_t access_evaluate(const access_program *program, const uint32_t grid[3],
                         const uint32_t block[3], const void *params, mr_ptx_extent *out,
                         uint32_t most) {
    run r = {.program = program, .grid = grid, .block = block, .params = params};
    uint32_t nodes = program->node_count, pieces = program->piece_count;
    size_t forms = ((size_t)nodes + pieces) * sizeof(linear_form);
    size_t extents = 2 * (size_t)pieces * sizeof(extent);
    size_t flags = (size_t)program->block_count + nodes;
    char *memory = malloc(sizeof(linear_system) + forms + extents + flags);
    if (!memory) return without_memory(program, out, most);
    r.system = (linear_system *)memory;
    r.forms = (linear_form *)(memory + sizeof(linear_system));
    r.pieces = r.forms + nodes;
    r.extents = (extent *)(r.pieces + pieces);
    r.is_dead = (bool *)(r.extents + 2 * (size_t)pieces);
    r.is_defined = r.is_dead + program->block_count;
    memset(r.extents, 0, extents + flags);
    uint32_t count = evaluate_all(&r, out, most);
    free(memory);
    return count;
}
