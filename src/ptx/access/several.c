/* Conditions as facts, and values that are one of several: at a phi, of a selection. */
#include "ptx/access/run.h"

/* ---- facts */

/* left - right + add <= 0. False: that can never be. */
bool launch_assume_at_most(launch_run *r, const linear_form *left, const linear_form *right,
                           int64_t add, linear_scope scope) {
    linear_form f;
    if (!linear_add(left, right, -1, &f)) return true;
    f.constant = linear_plus(f.constant, add);
    if (f.constant == LINEAR_LEAST || f.constant == LINEAR_MOST) return true;
    return linear_assume_closely(r->system, &f, scope);
}

/* x != y is x < y where x <= y is known. */
static bool assume_different(launch_run *r, const linear_form *x, const linear_form *y,
                             uint32_t block, linear_scope scope) {
    linear_form f;
    if (!linear_add(x, y, -1, &f)) return true;
    linear_range d = launch_bounds(r, &f, block);
    if (d.low == 0 && d.high == 0) return false;
    if (d.high == 0) return launch_assume_at_most(r, x, y, 1, scope);
    if (d.low == 0) return launch_assume_at_most(r, y, x, 1, scope);
    return true;
}

static bool assume_order(launch_run *r, const launch_atom *a, const linear_form *x,
                         const linear_form *y, uint32_t block, linear_scope scope) {
    bool is_less = a->comparison == PTX_MOD_lt || a->comparison == PTX_MOD_le;
    const linear_form *small = is_less ? x : y, *large = is_less ? y : x;
    int64_t add = a->comparison == PTX_MOD_lt || a->comparison == PTX_MOD_gt;
    if (!a->is_signed) {
        linear_form zero = linear_constant(0);
        /* A value that is at most a number without the sign bit has none, either. */
        if (launch_is_negative(r, large, block)) return true;
        if (!launch_assume_at_most(r, &zero, small, 0, scope)) return false;
    }
    return launch_assume_at_most(r, small, large, add, scope);
}

/* False: the comparison can not be true. */
bool launch_assume_atom(launch_run *r, const launch_atom *a, uint32_t block, linear_scope scope) {
    const linear_form *x = &r->forms[a->left], *y = &r->forms[a->right];
    switch (a->comparison) {
    case PTX_MOD_eq:
        return launch_assume_at_most(r, x, y, 0, scope) && launch_assume_at_most(r, y, x, 0, scope);
    case PTX_MOD_ne: return assume_different(r, x, y, block, scope);
    default: return assume_order(r, a, x, y, block, scope);
    }
}

/* ---- values that are one of several
 *
 * Pointers with one base, and numbers, keep the differences from the first one. For pointers with different bases,
 * or of a pointer and a number, the value is a new base that holds all of those, plus what they have after their
 * bases. */

typedef struct {
    linear_form first; /* the others are described by their differences from it */
    linear_range difference, whole;
    linear_range bases; /* what the base can be, if it is a new one */
    uint32_t count;
    bool differ;
    const linear_term *base; /* of those before; NULL: none has one */
    uint64_t held;
    bool has_numbers, is_mixed, has_bases; /* several different ones */
} merged;

/* First checks all of them, to find the kind of the value. */
static void look_at(launch_run *r, merged *m, const linear_form *f, uint32_t place) {
    bool is_mixed;
    const linear_term *base = launch_base(r, f, &is_mixed);
    m->is_mixed |= is_mixed;
    m->held |= launch_held(r, f);
    if (is_mixed) return;
    linear_range range =
        base ? r->system->symbols[base->symbol] : linear_bounds(r->system, f, place);
    if (!m->base && !m->has_numbers) m->bases = range;
    if (range.low < m->bases.low) m->bases.low = range.low;
    if (range.high > m->bases.high) m->bases.high = range.high;
    if (base && m->base) m->has_bases |= m->base->symbol != base->symbol;
    if (base) m->base = base;
    else m->has_numbers = true;
}

static bool is_new_base(const merged *m) {
    return m->has_bases || (m->base && m->has_numbers);
}

static void merge(launch_run *r, merged *m, const linear_form *value, uint32_t place) {
    bool is_mixed;
    linear_form f = *value;
    const linear_term *base = launch_base(r, value, &is_mixed);
    if (m->is_mixed) return;
    linear_form start = {.count = 1, .terms = {{1, base ? base->symbol : 0}}};
    if (base && !linear_add(value, &start, -1, &f)) m->is_mixed = true;
    if (!base && is_new_base(m)) f = linear_constant(0); /* that number is the base */
    linear_range whole = linear_bounds(r->system, &f, place);
    if (!m->count++) {
        m->first = f;
        m->whole = whole;
        return;
    }
    linear_form d;
    linear_range range = {LINEAR_LEAST, LINEAR_MOST};
    if (linear_add(&f, &m->first, -1, &d)) range = linear_bounds(r->system, &d, place);
    m->differ |= range.low != 0 || range.high != 0;
    if (range.low < m->difference.low) m->difference.low = range.low;
    if (range.high > m->difference.high) m->difference.high = range.high;
    if (whole.low < m->whole.low) m->whole.low = whole.low;
    if (whole.high > m->whole.high) m->whole.high = whole.high;
}

static linear_form merged_number(launch_run *r, const merged *m, uint32_t block) {
    if (!m->differ) return m->first;
    linear_form f = launch_symbol(r, m->whole.low, m->whole.high), limit, sum;
    if (!f.count) return f;
    /* first + low <= f <= first + high */
    linear_scope scope = launch_scope_of(r, block);
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

static linear_form merged_base(launch_run *r, const merged *m) {
    if (!is_new_base(m)) return (linear_form){.count = 1, .terms = {{1, m->base->symbol}}};
    r->taint = m->held;
    linear_form f = launch_symbol(r, m->bases.low, m->bases.high);
    if (f.count) r->why[f.terms[0].symbol] = MR_PTX_CHOSEN;
    if (f.count) r->is_base[f.terms[0].symbol] = true;
    return f;
}

static linear_form merged_form(launch_run *r, const merged *m, uint32_t bits, uint32_t block) {
    r->taint = m->held;
    if (!m->count || m->is_mixed) return launch_unknown(r, bits);
    if (!m->base) return merged_number(r, m, block);
    linear_form base = merged_base(r, m), offset, sum;
    r->taint = 0;
    offset = merged_number(r, m, block);
    r->taint = m->held;
    bool fits = linear_add(&base, &offset, 1, &sum) && launch_fits(r, &sum, bits, block);
    return fits ? sum : launch_unknown(r, bits);
}

/* A loop that some threads do not enter has no counter for those threads. Where the loop ends with an equation (the
 * counter is the bound), the value is written without the counter. Both ways may then have the same form. */
static bool common_form(launch_run *r, const launch_node *node, linear_form *out) {
    bool found = false;
    for (uint32_t k = 0; k < node->operand_count && !found; k++) {
        uint32_t value = launch_operand(r, node, 2 * k), from = launch_operand(r, node, 2 * k + 1);
        *out = r->forms[value];
        if (r->is_dead[from]) continue;
        for (uint32_t t = 0; t < r->forms[value].count; t++) {
            uint32_t counter = r->forms[value].terms[t].symbol;
            if (r->is_counter[counter])
                found |= linear_eliminate(r->system, out, counter, launch_at(r, from));
        }
    }
    for (uint32_t k = 0; k < node->operand_count && found; k++) {
        uint32_t value = launch_operand(r, node, 2 * k), from = launch_operand(r, node, 2 * k + 1);
        linear_form d;
        if (r->is_dead[from]) continue;
        found = linear_add(&r->forms[value], out, -1, &d);
        if (!found) break;
        linear_range range = linear_bounds(r->system, &d, launch_at(r, from));
        found = range.low == 0 && range.high == 0;
    }
    return found;
}

linear_form launch_merge_phi(launch_run *r, const launch_node *node) {
    merged m = {0};
    linear_form common;
    if (node->operand_count > 1 && common_form(r, node, &common)) return common;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; k < node->operand_count; k++) {
            uint32_t value = launch_operand(r, node, 2 * k);
            uint32_t from = launch_operand(r, node, 2 * k + 1);
            if (r->is_dead[from] || !r->is_defined[value]) continue;
            (pass ? merge : look_at)(r, &m, &r->forms[value], launch_at(r, from));
        }
    return merged_form(r, &m, node->bits, node->block);
}

/* Each side is judged under the facts of the predicate; these facts are removed afterwards. */
linear_form launch_merge_select(launch_run *r, const launch_node *node) {
    merged m = {0};
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t pass = k / 2, side = k % 2;
        uint32_t first = side ? node->number : node->step;
        uint32_t count = side ? node->offset : node->step_count;
        uint32_t facts = r->system->fact_count, value = launch_operand(r, node, side);
        bool possible = r->is_defined[value];
        for (uint32_t a = 0; a < count; a++)
            possible &= launch_assume_atom(r, &r->program->atoms[first + a], node->block,
                                           launch_scope_of(r, node->block));
        if (possible) (pass ? merge : look_at)(r, &m, &r->forms[value], launch_at(r, node->block));
        r->system->fact_count = facts;
    }
    return merged_form(r, &m, node->bits, node->block);
}
