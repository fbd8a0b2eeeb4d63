/* Forms as numbers of a register, and as pointers.
 *
 * Easiest to break: a new symbol holds every pointer that it can be made from (launch_run, `taint`). */
#include "ptx/access/run.h"

/* ---- numbers of a width */

linear_range launch_range_of(uint32_t bits) {
    if (bits >= 64) return (linear_range){LINEAR_LEAST, LINEAR_MOST};
    if (bits == 1) return (linear_range){0, 1};
    return (linear_range){-(INT64_C(1) << (bits - 1)), (INT64_C(1) << (bits - 1)) - 1};
}

int64_t launch_canonical(uint64_t x, uint32_t bits) {
    if (bits >= 64) return (int64_t)x;
    return (int64_t)(x << (64 - bits)) >> (64 - bits);
}

linear_form launch_symbol(launch_run *r, int64_t low, int64_t high) {
    linear_form f = linear_constant(0);
    if (!linear_new_symbol(r->system, low, high, &f)) r->is_exhausted = true;
    if (!f.count) return f;
    r->holds[f.terms[0].symbol] = r->taint;
    r->why[f.terms[0].symbol] = (uint8_t)r->cause;
    return f;
}

linear_form launch_unknown(launch_run *r, uint32_t bits) {
    linear_range range = launch_range_of(bits);
    return launch_symbol(r, range.low, range.high);
}

/* Does the exact number fit the register? With 64 bits: is it bounded? */
bool launch_fits(launch_run *r, const linear_form *f, uint32_t bits, uint32_t block) {
    linear_range range = launch_range_of(bits);
    linear_form negative, zero = linear_constant(0);
    if (!f->count && bits >= 64) return true;
    if (!linear_add(&zero, f, -1, &negative)) return false;
    int64_t most = range.high - (bits >= 64), least = range.low + 2 * (bits >= 64);
    if (linear_plain_upper(r->system, f) > most &&
        linear_upper(r->system, f, launch_at(r, block)) > most)
        return false;
    return linear_plain_upper(r->system, &negative) <= -least ||
           linear_upper(r->system, &negative, launch_at(r, block)) <= -least;
}

/* The form as the value of a register of `bits`. */
linear_form launch_settle(launch_run *r, const linear_form *f, uint32_t bits, uint32_t block) {
    if (!f->count) return linear_constant(launch_canonical((uint64_t)f->constant, bits));
    return launch_fits(r, f, bits, block) ? *f : launch_unknown(r, bits);
}

linear_range launch_bounds(launch_run *r, const linear_form *f, uint32_t block) {
    return linear_bounds(r->system, f, launch_at(r, block));
}

bool launch_is_negative(launch_run *r, const linear_form *f, uint32_t block) {
    linear_form negative, zero = linear_constant(0);
    if (linear_add(&zero, f, -1, &negative) && linear_plain_upper(r->system, &negative) <= 0)
        return false;
    return linear_lower(r->system, f, launch_at(r, block)) < 0;
}

/* ---- pointers */

uint64_t launch_held(const launch_run *r, const linear_form *f) {
    uint64_t held = 0;
    for (uint32_t k = 0; k < f->count; k++) held |= r->holds[f->terms[k].symbol];
    return held;
}

const linear_term *launch_base(const launch_run *r, const linear_form *f, bool *out_is_mixed) {
    const linear_term *base = NULL;
    *out_is_mixed = false;
    for (uint32_t k = 0; k < f->count; k++) {
        const linear_term *t = &f->terms[k];
        if (!r->holds[t->symbol]) continue;
        *out_is_mixed |= base || t->factor != 1 || !r->is_base[t->symbol];
        base = t;
    }
    return *out_is_mixed ? NULL : base;
}

/* A symbol with an interval of one number counts as that number: it may be a pointer or a size. */
bool launch_as_number(const launch_run *r, const linear_form *f, int64_t *out) {
    int64_t sum = f->constant;
    for (uint32_t k = 0; k < f->count; k++) {
        const linear_range *range = &r->system->symbols[f->terms[k].symbol];
        if (range->low != range->high) return false;
        sum = linear_plus(sum, linear_times(f->terms[k].factor, range->low));
    }
    *out = sum;
    return sum != LINEAR_LEAST && sum != LINEAR_MOST;
}

linear_form launch_within(launch_run *r, const launch_node *node, int64_t low, int64_t high) {
    linear_range all = launch_range_of(node->bits);
    if (low < all.low || high > all.high || low == LINEAR_LEAST || high == LINEAR_MOST)
        return launch_unknown(r, node->bits);
    return launch_symbol(r, low, high);
}
