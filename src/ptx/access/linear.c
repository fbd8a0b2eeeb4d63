/* Linear forms, facts, and a search for bounds.
 *
 * An upper bound of a form: its last symbol is replaced by the end of its interval. Or it is
 * removed with a fact g <= 0 in which it has a factor of the same sign, as f <= f - k*g for any k
 * >= 0. Then the same is done with the rest. Symbols are numbered as they are made, and facts
 * mostly define later ones by earlier ones, so the last symbol goes first. The least result of
 * the ways that are tried is taken: each of them is a bound, so giving up early loses precision
 * only.
 *
 * Easiest to break: every number is exact or infinite, never wrapped. */
#include "ptx/access/linear.h"

#include <stddef.h>

enum { MOST_DEPTH = 12, STEPS_OF_A_BOUND = 200 };

/* ---- numbers */

static bool is_infinite(int64_t x) {
    return x == LINEAR_LEAST || x == LINEAR_MOST;
}

int64_t linear_plus(int64_t a, int64_t b) {
    int64_t sum;
    if (is_infinite(a)) return a;
    if (is_infinite(b)) return b;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return a < 0 ? LINEAR_LEAST : LINEAR_MOST;
}

int64_t linear_times(int64_t a, int64_t b) {
    int64_t product;
    if (a == 0 || b == 0) return 0;
    if (!is_infinite(a) && !is_infinite(b) && !__builtin_mul_overflow(a, b, &product))
        return product;
    return (a < 0) == (b < 0) ? LINEAR_MOST : LINEAR_LEAST;
}

static int64_t floor_of(int64_t a, int64_t b) { /* b > 0 */
    return a / b - (a % b < 0);
}

static uint64_t magnitude(int64_t x) {
    return x < 0 ? -(uint64_t)x : (uint64_t)x;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* ---- forms */

linear_form linear_constant(int64_t x) {
    linear_form f;
    f.constant = x;
    f.count = 0;
    return f;
}

bool linear_new_symbol(linear_system *s, int64_t low, int64_t high, linear_form *out) {
    if (s->symbol_count == LINEAR_SYMBOLS) return false;
    *out = linear_constant(0);
    if (low == high) {
        out->constant = low;
        return true;
    }
    s->symbols[s->symbol_count] = (linear_range){low, high};
    out->count = 1;
    out->terms[0] = (linear_term){1, s->symbol_count++};
    return true;
}

static bool put_term(linear_form *f, int64_t factor, uint32_t symbol) {
    if (!factor) return true;
    if (f->count == LINEAR_TERMS || is_infinite(factor)) return false;
    f->terms[f->count++] = (linear_term){factor, symbol};
    return true;
}

bool linear_add(const linear_form *a, const linear_form *b, int64_t factor, linear_form *out) {
    linear_form sum;
    uint32_t i = 0, k = 0;
    sum.count = 0;
    sum.constant = linear_plus(a->constant, linear_times(b->constant, factor));
    if (is_infinite(sum.constant)) return false;
    while (i < a->count || k < b->count) {
        int64_t c = 0;
        uint32_t symbol;
        if (k == b->count || (i < a->count && a->terms[i].symbol > b->terms[k].symbol)) {
            symbol = a->terms[i].symbol;
            c = a->terms[i++].factor;
        } else {
            symbol = b->terms[k].symbol;
            c = linear_times(b->terms[k++].factor, factor);
            if (i < a->count && a->terms[i].symbol == symbol)
                c = linear_plus(c, a->terms[i++].factor);
        }
        if (!put_term(&sum, c, symbol)) return false;
    }
    *out = sum;
    return true;
}

static bool equal(const linear_form *a, const linear_form *b) {
    if (a->constant != b->constant || a->count != b->count) return false;
    for (uint32_t k = 0; k < a->count; k++)
        if (a->terms[k].symbol != b->terms[k].symbol || a->terms[k].factor != b->terms[k].factor)
            return false;
    return true;
}

static bool scale(const linear_form *f, int64_t by, linear_form *out) {
    linear_form zero = linear_constant(0);
    return linear_add(&zero, f, by, out);
}

static int64_t factor_of(const linear_form *f, uint32_t symbol) {
    for (uint32_t k = 0; k < f->count && f->terms[k].symbol >= symbol; k++)
        if (f->terms[k].symbol == symbol) return f->terms[k].factor;
    return 0;
}

static uint64_t divisor_of(const linear_form *f) {
    uint64_t divisor = 0;
    for (uint32_t k = 0; k < f->count && divisor != 1; k++)
        divisor = common_divisor(divisor, magnitude(f->terms[k].factor));
    return divisor;
}

void linear_reset(linear_system *s, int steps) {
    s->symbol_count = s->fact_count = s->quotient_count = 0;
    s->steps_left = steps;
    s->searches = 0;
    for (uint32_t k = 0; k < LINEAR_MEMORIES; k++) s->memories[k].search = 0;
}

/* ---- bounds */

static int64_t term_upper(const linear_system *s, const linear_term *t) {
    const linear_range *r = &s->symbols[t->symbol];
    return linear_times(t->factor, t->factor > 0 ? r->high : r->low);
}

int64_t linear_plain_upper(const linear_system *s, const linear_form *form) {
    int64_t sum = form->constant;
    for (uint32_t k = 0; k < form->count; k++) {
        int64_t part = term_upper(s, &form->terms[k]);
        if (part == LINEAR_LEAST) part = LINEAR_MOST; /* did not fit: nothing is known */
        sum = linear_plus(sum, part);
        if (is_infinite(sum)) return LINEAR_MOST;
    }
    return sum;
}

typedef struct {
    linear_system *system;
    uint32_t at;
    int steps;
} search;

static int64_t search_upper(search *q, const linear_form *form, int depth);

/* With the fact g: k * form - j * g has no `symbol`; k, j > 0. */
static int64_t upper_by_fact(search *q, const linear_form *form, const linear_fact *fact,
                             int64_t have, int64_t other, int depth) {
    uint64_t divisor = common_divisor(magnitude(have), magnitude(other));
    uint64_t k = magnitude(other) / divisor, j = magnitude(have) / divisor;
    linear_form scaled, rest;
    if (k > INT32_MAX || j > INT64_MAX / 2) return LINEAR_MOST;
    if (!scale(form, (int64_t)k, &scaled)) return LINEAR_MOST;
    if (!linear_add(&scaled, &fact->form, -(int64_t)j, &rest)) return LINEAR_MOST;
    int64_t upper = search_upper(q, &rest, depth + 1);
    return is_infinite(upper) ? LINEAR_MOST : floor_of(upper, (int64_t)k);
}

/* Ways that use the same facts in another order come to the same form. */
static linear_memory *memory_of(search *q, const linear_form *form, bool *out_known) {
    uint64_t hash = (uint64_t)form->constant;
    for (uint32_t k = 0; k < form->count; k++)
        hash = (hash ^ ((uint64_t)form->terms[k].factor << 9) ^ form->terms[k].symbol) *
               0x9e3779b97f4a7c15u;
    linear_memory *m = &q->system->memories[(hash >> 32) % LINEAR_MEMORIES];
    *out_known = m->search == q->system->searches && equal(&m->form, form);
    return m;
}

/* The largest number up to `upper` that the form can be: 8x + 3 is never 10. */
static int64_t reachable(const linear_form *form, int64_t upper) {
    uint64_t divisor = divisor_of(form);
    if (divisor < 2 || divisor > INT64_MAX) return upper;
    int64_t room = linear_plus(upper, -form->constant);
    if (is_infinite(room)) return upper;
    return form->constant + floor_of(room, (int64_t)divisor) * (int64_t)divisor;
}

static int64_t search_deeper(search *q, const linear_form *form, int depth);

static int64_t search_upper(search *q, const linear_form *form, int depth) {
    if (!form->count) return form->constant;
    bool known;
    linear_memory *m = memory_of(q, form, &known);
    if (known) return m->upper;
    int64_t upper = search_deeper(q, form, depth);
    if (!is_infinite(upper) && (form->count == 1 || depth == 0)) upper = reachable(form, upper);
    *m = (linear_memory){*form, upper, q->system->searches};
    return upper;
}

static int64_t search_deeper(search *q, const linear_form *form, int depth) {
    linear_system *s = q->system;
    int64_t best = linear_plain_upper(s, form);
    if (depth >= MOST_DEPTH || q->steps <= 0) return best;
    q->steps--;
    linear_term last = form->terms[0];
    int64_t end = term_upper(s, &last);
    if (!is_infinite(end) && form->count > 1) {
        linear_form rest = *form;
        rest.count = 0;
        rest.constant = linear_plus(form->constant, end);
        for (uint32_t k = 1; k < form->count; k++) rest.terms[rest.count++] = form->terms[k];
        if (!is_infinite(rest.constant)) {
            int64_t upper = search_upper(q, &rest, depth + 1);
            if (upper < best) best = upper;
        }
    }
    for (uint32_t k = 0; k < s->fact_count; k++) {
        const linear_fact *fact = &s->facts[k];
        if (q->at < fact->scope.enter || q->at >= fact->scope.leave) continue;
        int64_t other = factor_of(&fact->form, last.symbol);
        if (other == 0 || (other > 0) != (last.factor > 0)) continue;
        /* A fact that brings a later symbol back is used only if there is no other. */
        if (fact->form.terms[0].symbol != last.symbol && (form->count > 1 || depth > 2)) continue;
        int64_t upper = upper_by_fact(q, form, fact, last.factor, other, depth);
        if (upper < best) best = upper;
    }
    return best;
}

int64_t linear_upper(linear_system *s, const linear_form *form, uint32_t at) {
    if (!form->count) return form->constant;
    int steps = s->steps_left < STEPS_OF_A_BOUND ? s->steps_left : STEPS_OF_A_BOUND;
    search q = {.system = s, .at = at, .steps = steps};
    s->searches++;
    int64_t upper = search_upper(&q, form, 0);
    s->steps_left -= steps - q.steps;
    return upper;
}

int64_t linear_lower(linear_system *s, const linear_form *form, uint32_t at) {
    linear_form negative;
    if (!scale(form, -1, &negative)) return LINEAR_LEAST;
    int64_t upper = linear_upper(s, &negative, at);
    return is_infinite(upper) ? LINEAR_LEAST : -upper;
}

linear_range linear_bounds(linear_system *s, const linear_form *form, uint32_t at) {
    return (linear_range){linear_lower(s, form, at), linear_upper(s, form, at)};
}

/* ---- facts */

/* 4x - 8y + 3 <= 0 is x - 2y + 1 <= 0, as symbols are integers. */
static bool tighten(linear_form *f) {
    uint64_t divisor = divisor_of(f);
    if (divisor < 2 || divisor > INT64_MAX) return false;
    for (uint32_t k = 0; k < f->count; k++) f->terms[k].factor /= (int64_t)divisor;
    f->constant = -floor_of(-f->constant, (int64_t)divisor);
    return true;
}

bool linear_assume(linear_system *s, const linear_form *form, linear_scope scope) {
    linear_form fact = *form;
    if (!fact.count) return fact.constant <= 0;
    tighten(&fact);
    linear_form negative;
    /* A fact that intervals say by themselves is not added again. No fact may contradict them. */
    if (linear_plain_upper(s, &fact) <= 0) return true;
    if (scale(&fact, -1, &negative) && linear_plain_upper(s, &negative) < 0) return false;
    if (s->fact_count == LINEAR_FACTS) return true;
    s->facts[s->fact_count++] = (linear_fact){fact, scope};
    return true;
}

/* f + k * g without the symbol, if k can be a positive integer. */
static bool combine(const linear_form *f, const linear_form *g, uint32_t symbol, linear_form *out) {
    int64_t a = factor_of(f, symbol), b = factor_of(g, symbol);
    if (!b || (a > 0) == (b > 0) || a % b) return false;
    return linear_add(f, g, -(a / b), out);
}

bool linear_assume_closely(linear_system *s, const linear_form *form, linear_scope scope) {
    uint32_t before = s->fact_count;
    if (!linear_assume(s, form, scope)) return false;
    for (uint32_t k = 0; k < before; k++) {
        const linear_fact *fact = &s->facts[k];
        if (scope.enter < fact->scope.enter || scope.enter >= fact->scope.leave) continue;
        for (uint32_t t = 0; t < form->count; t++) {
            linear_form sum;
            if (!combine(form, &fact->form, form->terms[t].symbol, &sum)) continue;
            if (sum.count + 2 > form->count && (sum.count != 1 || !tighten(&sum))) continue;
            if (!linear_assume(s, &sum, scope)) return false;
            break;
        }
    }
    return true;
}

bool linear_eliminate(linear_system *s, linear_form *in_out, uint32_t symbol, uint32_t at) {
    int64_t have = factor_of(in_out, symbol);
    for (uint32_t k = 0; k < s->fact_count && have; k++) {
        const linear_fact *fact = &s->facts[k];
        if (at < fact->scope.enter || at >= fact->scope.leave) continue;
        int64_t other = factor_of(&fact->form, symbol);
        linear_form rest;
        if (!other || have % other || linear_lower(s, &fact->form, at) != 0) continue;
        if (!linear_add(in_out, &fact->form, -(have / other), &rest)) continue;
        *in_out = rest;
        return true;
    }
    return false;
}

/* ---- quotients */

static const linear_scope everywhere = {0, UINT32_MAX};
/* a block in which only facts that hold everywhere hold */
static const uint32_t NOWHERE = UINT32_MAX - 1;

static bool known_quotient(const linear_system *s, const linear_form *form, int64_t divisor,
                           linear_form *out) {
    for (uint32_t k = 0; k < s->quotient_count; k++) {
        const linear_quotient *q = &s->quotients[k];
        if (q->divisor != divisor || !equal(&q->dividend, form)) continue;
        *out = linear_constant(0);
        out->count = 1;
        out->terms[0] = (linear_term){1, q->symbol};
        return true;
    }
    return false;
}

/* q with divisor * q <= form <= divisor * q + divisor - 1 */
static bool new_quotient(linear_system *s, const linear_form *form, int64_t divisor,
                         linear_form *out) {
    if (known_quotient(s, form, divisor, out)) return true;
    /* The symbol can be met again elsewhere, so its interval holds everywhere; the facts give the rest. */
    linear_range r = linear_bounds(s, form, NOWHERE);
    int64_t low = is_infinite(r.low) ? LINEAR_LEAST : floor_of(r.low, divisor);
    int64_t high = is_infinite(r.high) ? LINEAR_MOST : floor_of(r.high, divisor);
    if (!linear_new_symbol(s, low, high, out)) return false;
    if (!out->count) return true;
    linear_form under, over;
    if (linear_add(form, out, -divisor, &over) && scale(&over, -1, &under)) {
        over.constant = linear_plus(over.constant, 1 - divisor);
        linear_assume(s, &under, everywhere);
        linear_assume(s, &over, everywhere);
    }
    if (s->quotient_count < sizeof s->quotients / sizeof *s->quotients)
        s->quotients[s->quotient_count++] = (linear_quotient){*form, divisor, out->terms[0].symbol};
    return true;
}

bool linear_quotient_of(linear_system *s, const linear_form *form, int64_t divisor, uint32_t at,
                        linear_form *out) {
    /* The part that the divisor divides is taken out: (8x + y) / 4 is 2x + y / 4. */
    linear_form whole = linear_constant(floor_of(form->constant, divisor)), rest, part;
    rest = linear_constant(form->constant - whole.constant * divisor);
    for (uint32_t k = 0; k < form->count; k++) {
        linear_term t = form->terms[k];
        if (t.factor % divisor) rest.terms[rest.count++] = t;
        else whole.terms[whole.count++] = (linear_term){t.factor / divisor, t.symbol};
    }
    if (!rest.count) {
        *out = whole;
        return true;
    }
    linear_range r = linear_bounds(s, &rest, at);
    if (r.low >= 0 && r.high < divisor) {
        *out = whole;
        return true;
    }
    if (!new_quotient(s, &rest, divisor, &part)) return false;
    return linear_add(&whole, &part, 1, out);
}
