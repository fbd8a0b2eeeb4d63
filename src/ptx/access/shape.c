/* Finds the bytes that a launch accesses for certain at a place of its code. The address is a form over free indices
 * and counters, which take all numbers of their intervals in every combination. The conditions on the way to the place
 * bound it.
 *
 * Symbols that a condition ties together make a group. In the address a group must be a multiple of one form that takes
 * all numbers of an interval, and each condition a bound of that form. Then the group is one free number itself, as
 * `256*blockIdx.x + threadIdx.x < n` is. Only numbers with strides are left: contiguous bytes, or a grid of them.
 *
 * Easiest to break: a forgotten condition makes bytes certain that are not accessed. */
#include "ptx/access/run.h"

enum { MOST_SYMBOLS = 12, MOST_CONDITIONS = 24 };

/* A form over the symbols of the shape at hand. */
typedef struct {
    int64_t constant, factors[MOST_SYMBOLS];
} dense;

typedef struct {
    launch_run *run;
    const launch_site *site;
    uint32_t symbols[MOST_SYMBOLS], count;
    uint32_t group[MOST_SYMBOLS];               /* by symbol: the first one of its group */
    dense address, conditions[MOST_CONDITIONS]; /* these are at most 0 */
    uint32_t condition_count;
    uint32_t counters[MOST_SYMBOLS], counter_count; /* of the loops around the site */
} shape;

/* ---- forms */

static bool is_free(const shape *s, uint32_t symbol) {
    const launch_run *r = s->run;
    if (r->why[symbol] || r->holds[symbol]) return false;
    if (!r->is_counter[symbol]) return true;
    for (uint32_t k = 0; k < s->counter_count; k++)
        if (s->counters[k] == symbol) return true;
    return false;
}

static bool number_of(shape *s, uint32_t symbol, uint32_t *out) {
    for (uint32_t k = 0; k < s->count; k++)
        if (s->symbols[k] == symbol) return *out = k, true;
    if (s->count == MOST_SYMBOLS) return false;
    s->symbols[ *out = s->count++] = symbol;
    return true;
}

/* MR_PTX_CERTAIN: it has been made. */
static mr_ptx_reason make_dense(shape *s, const linear_form *f, dense *out) {
    *out = (dense){.constant = f->constant};
    for (uint32_t k = 0; k < f->count; k++) {
        uint32_t symbol = f->terms[k].symbol, n;
        const linear_range *range = &s->run->system->symbols[symbol];
        if (!is_free(s, symbol))
            return s->run->why[symbol] ? (mr_ptx_reason)s->run->why[symbol] : MR_PTX_ARITHMETIC;
        if (range->low != 0 || range->high == LINEAR_MOST) return MR_PTX_LOOP;
        if (!number_of(s, symbol, &n)) return MR_PTX_SIZE;
        out->factors[n] = f->terms[k].factor;
    }
    return MR_PTX_CERTAIN;
}

static int64_t most_of(const shape *s, uint32_t n) {
    return s->run->system->symbols[s->symbols[n]].high;
}

/* ---- conditions */

/* A fact that holds for all threads is not a condition. */
static bool add_condition(shape *s, const linear_form *f) {
    if (linear_plain_upper(s->run->system, f) <= 0) return true;
    if (s->condition_count == MOST_CONDITIONS) return false;
    if (make_dense(s, f, &s->conditions[s->condition_count])) return false;
    s->condition_count++;
    return true;
}

/* left - right + add <= 0 */
static bool add_order(shape *s, const linear_form *left, const linear_form *right, int64_t add) {
    linear_form f;
    if (!linear_add(left, right, -1, &f)) return false;
    f.constant = linear_plus(f.constant, add);
    if (f.constant == LINEAR_LEAST || f.constant == LINEAR_MOST) return false;
    return add_condition(s, &f);
}

/* Judged by what is known before the condition. */
static bool add_different(shape *s, const linear_form *x, const linear_form *y, uint32_t before) {
    linear_form f;
    if (!linear_add(x, y, -1, &f)) return false;
    linear_range d = launch_bounds(s->run, &f, before);
    if (d.low > 0 || d.high < 0) return true;
    if (d.low == 0) return add_order(s, y, x, 1);
    return d.high == 0 && add_order(s, x, y, 1);
}

static bool add_atom(shape *s, const launch_atom *a, uint32_t before) {
    const linear_form *x = &s->run->forms[a->left], *y = &s->run->forms[a->right];
    bool is_less = a->comparison == PTX_MOD_lt || a->comparison == PTX_MOD_le;
    const linear_form *small = is_less ? x : y, *large = is_less ? y : x;
    if (a->comparison == PTX_MOD_eq) return add_order(s, x, y, 0) && add_order(s, y, x, 0);
    if (a->comparison == PTX_MOD_ne) return add_different(s, x, y, before);
    if (!a->is_signed) {
        linear_form zero = linear_constant(0);
        if (launch_is_negative(s->run, large, before) || !add_order(s, &zero, small, 0))
            return false;
    }
    return add_order(s, small, large, a->comparison == PTX_MOD_lt || a->comparison == PTX_MOD_gt);
}

static bool add_loop(shape *s, const access_link *link) {
    const launch_loop *loop = &s->run->loops[link->block];
    if (!loop->is_known) return false;
    return link->kind == ACCESS_LINK_TESTED || (loop->has_bound && add_condition(s, &loop->bound));
}

static mr_ptx_reason add_links(shape *s) {
    const access_program *p = s->run->program;
    const access_link *links = &p->links[s->site->links];
    uint32_t count = s->site->link_count;
    for (uint32_t k = 0; k < count; k++) {
        if (links[k].kind == ACCESS_LINK_CONDITION) continue;
        if (s->counter_count == MOST_SYMBOLS) return MR_PTX_SIZE;
        s->counters[s->counter_count++] = s->run->loops[links[k].block].counter;
    }
    for (uint32_t k = 0; k < count; k++) {
        const launch_block *b = &p->blocks[links[k].block];
        if (links[k].kind != ACCESS_LINK_CONDITION) {
            if (!add_loop(s, &links[k])) return MR_PTX_LOOP;
            continue;
        }
        for (uint32_t a = 0; a < b->atom_count; a++)
            if (!add_atom(s, &p->atoms[b->atoms + a], b->dominator)) return MR_PTX_CONDITION;
    }
    return MR_PTX_CERTAIN;
}

/* ---- groups */

static void find_groups(shape *s) {
    for (uint32_t n = 0; n < s->count; n++) s->group[n] = n;
    for (uint32_t c = 0; c < s->condition_count; c++) {
        uint32_t first = UINT32_MAX;
        for (uint32_t n = 0; n < s->count; n++) {
            if (!s->conditions[c].factors[n]) continue;
            if (first == UINT32_MAX) first = s->group[n];
            uint32_t old = s->group[n];
            for (uint32_t m = 0; m < s->count; m++)
                if (s->group[m] == old) s->group[m] = first;
        }
    }
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* A number of a group: `step` times a number from `low` to `high`. */
typedef struct {
    int64_t step, low, high;
} part;

/* The largest multiple of the form that both are; its factors are those of `f` divided by the result. 0: there is
 * none. */
static int64_t multiple_of(const shape *s, uint32_t group, const dense *f, const dense *unit) {
    int64_t times = 0;
    for (uint32_t n = 0; n < s->count; n++) {
        if (s->group[n] != group) continue;
        if (!unit->factors[n] != !f->factors[n]) return 0;
        if (!unit->factors[n]) continue;
        if (f->factors[n] % unit->factors[n]) return 0;
        int64_t here = f->factors[n] / unit->factors[n];
        if (times && here != times) return 0;
        times = here;
    }
    return times;
}

/* The factors of a group, divided by what they have in common. */
static dense unit_of(const shape *s, uint32_t group, const dense *f) {
    dense unit = {0};
    int64_t divisor = 0;
    for (uint32_t n = 0; n < s->count; n++)
        if (s->group[n] == group) divisor = common_divisor(divisor, f->factors[n]);
    for (uint32_t n = 0; n < s->count && divisor; n++)
        if (s->group[n] == group) unit.factors[n] = f->factors[n] / divisor;
    return unit;
}

/* Does the form take every number between its least and its largest one? */
static bool takes_all(const shape *s, const dense *unit, part *out) {
    int64_t reach = 1;
    *out = (part){.step = 1};
    bool is_done[MOST_SYMBOLS] = {false};
    for (uint32_t round = 0; round < s->count; round++) {
        uint32_t least = UINT32_MAX;
        int64_t size = INT64_MAX;
        for (uint32_t n = 0; n < s->count; n++) {
            int64_t factor = unit->factors[n];
            if (is_done[n] || !factor || !most_of(s, n)) continue;
            if ((factor < 0 ? -factor : factor) < size) {
                size = factor < 0 ? -factor : factor;
                least = n;
            }
        }
        if (least == UINT32_MAX) break;
        is_done[least] = true;
        int64_t grows = linear_times(size, most_of(s, least));
        if (size > reach || grows == LINEAR_MOST) return false;
        reach = linear_plus(reach, grows);
        if (unit->factors[least] < 0) out->low = linear_plus(out->low, -grows);
        else out->high = linear_plus(out->high, grows);
    }
    return out->low != LINEAR_LEAST && out->high != LINEAR_MOST;
}

static int64_t floor_of(int64_t a, int64_t b) { /* b > 0 */
    // cppcheck-suppress zerodivcond
    return a / b - (a % b < 0);
}

/* Cuts the interval of the unit by a condition that is `times` the unit plus a constant. */
static void cut(part *p, int64_t times, int64_t constant) {
    if (times > 0) {
        int64_t high = floor_of(-constant, times);
        if (high < p->high) p->high = high;
    } else {
        int64_t low = -floor_of(-constant, -times);
        if (low > p->low) p->low = low;
    }
}

static bool is_of_group(const shape *s, const dense *f, uint32_t group) {
    for (uint32_t n = 0; n < s->count; n++)
        if (f->factors[n] && s->group[n] == group) return true;
    return false;
}

static mr_ptx_reason part_of_group(const shape *s, uint32_t group, part *out) {
    dense unit = unit_of(s, group, &s->address);
    bool is_in_address = is_of_group(s, &s->address, group);
    for (uint32_t c = 0; c < s->condition_count && !is_in_address; c++)
        if (is_of_group(s, &s->conditions[c], group)) {
            unit = unit_of(s, group, &s->conditions[c]);
            break;
        }
    if (!takes_all(s, &unit, out)) return MR_PTX_GAPS;
    for (uint32_t c = 0; c < s->condition_count; c++) {
        if (!is_of_group(s, &s->conditions[c], group)) continue;
        int64_t times = multiple_of(s, group, &s->conditions[c], &unit);
        if (!times) return MR_PTX_CONDITION;
        cut(out, times, s->conditions[c].constant);
    }
    if (out->low > out->high) return MR_PTX_CONDITION;
    out->step = is_in_address ? multiple_of(s, group, &s->address, &unit) : 0;
    return MR_PTX_CERTAIN;
}

/* ---- bytes */

/* Adds a stride, of those in growing order. */
static bool add_dim(mr_ptx_extent *e, int64_t step, int64_t count) {
    if (step == 0 || count == 1) return true;
    if (!e->dim_count && step <= e->run) {
        e->run = linear_plus(e->run, linear_times(step, count - 1));
        return e->run != LINEAR_MOST;
    }
    if (e->dim_count) {
        int64_t covered =
            linear_times(e->dims[e->dim_count - 1].stride, e->dims[e->dim_count - 1].count);
        if (step < covered || covered == LINEAR_MOST) return false;
        if (step == covered) {
            e->dims[e->dim_count - 1].count *= count;
            return true;
        }
    }
    if (e->dim_count == MR_PTX_EXTENT_DIMS) return false;
    e->dims[e->dim_count].count = count;
    e->dims[e->dim_count++].stride = step;
    return true;
}

static mr_ptx_reason put_parts(part *parts, uint32_t count, int64_t start, uint32_t bytes,
                               mr_ptx_extent *out) {
    out->first = start;
    out->run = bytes;
    out->dim_count = 0;
    for (uint32_t k = 0; k < count; k++) {
        bool falls = parts[k].step < 0;
        int64_t end = falls ? parts[k].high : parts[k].low;
        out->first = linear_plus(out->first, linear_times(parts[k].step, end));
        if (falls) parts[k].step = -parts[k].step;
        for (uint32_t i = k; i > 0 && parts[i].step < parts[i - 1].step; i--) {
            part swap = parts[i];
            parts[i] = parts[i - 1];
            parts[i - 1] = swap;
        }
    }
    for (uint32_t k = 0; k < count; k++)
        if (!add_dim(out, parts[k].step, parts[k].high - parts[k].low + 1)) return MR_PTX_GAPS;
    out->end = linear_plus(out->first, out->run);
    for (uint32_t k = 0; k < out->dim_count; k++)
        out->end = linear_plus(out->end, linear_times(out->dims[k].stride, out->dims[k].count - 1));
    bool is_bounded = out->first != LINEAR_LEAST && out->end != LINEAR_MOST;
    return is_bounded ? MR_PTX_CERTAIN : MR_PTX_SIZE;
}

mr_ptx_reason launch_shape(launch_run *r, const launch_site *site, const linear_form *offset,
                           mr_ptx_extent *out) {
    shape s; /* large: only what counts is set */
    part parts[MOST_SYMBOLS];
    uint32_t count = 0;
    s.run = r;
    s.site = site;
    s.count = s.condition_count = s.counter_count = 0;
    if (site->doubt) return site->doubt;
    mr_ptx_reason why = add_links(&s);
    if (!why) why = make_dense(&s, offset, &s.address);
    if (why) return why;
    find_groups(&s);
    for (uint32_t n = 0; n < s.count; n++) {
        if (s.group[n] != n) continue;
        why = part_of_group(&s, n, &parts[count]);
        if (why) return why;
        count++;
    }
    return put_parts(parts, count, s.address.constant, site->bytes, out);
}
