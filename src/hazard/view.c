/* Views as sets of bytes: a normal form, and whether two of them share a byte. Exact: a wrong "yes"
 * is a false alarm, a wrong "no" a missed race.
 *
 * The bytes of a view are first + sum(i_k * stride_k) + [0, run). Two views meet if and only if
 *
 *     b.first - a.first + sum(j_k * b.stride_k) - sum(i_k * a.stride_k)  is in  (-b.run, a.run)
 *
 * for some indices in range: one bounded integer combination that has to land in a window. Dims of equal stride become
 * one unknown. A window that no multiple of the remaining strides' common divisor hits is refused at once. The rest is
 * searched from the largest stride down, where reach leaves few candidates. Views made for puzzles could make that
 * long; then the runs of the smaller one are looked up one by one. */
#include "hazard/view.h"

#include "hazard/mutate.h"

#include <string.h>

/* ---- the normal form */

static void sort_dims(view_dim *dim, int n) { /* by descending stride; n is at most 8 */
    for (int i = 1; i < n; i++) {
        view_dim d = dim[i];
        int k = i;
        for (; k > 0 && dim[k - 1].stride < d.stride; k--) dim[k] = dim[k - 1];
        dim[k] = d;
    }
}

/* Joins what is contiguous into the run, and dims that continue each other into one. */
static void join_dims(byte_view *v) {
    while (v->ndim > 0 && (uint64_t)v->dim[v->ndim - 1].stride <= v->run) {
        view_dim d = v->dim[--v->ndim];
        v->run +=
            (uint64_t)((d.count - 1) * d.stride); /* windows that overlap leave no gap either */
    }
    for (int k = v->ndim - 2; k >= 0; k--) {
        view_dim *outer = &v->dim[k], *inner = &v->dim[k + 1];
        if (outer->stride > inner->count * inner->stride || outer->stride % inner->stride) continue;
        inner->count += (outer->count - 1) * (outer->stride / inner->stride);
        memmove(outer, outer + 1, (size_t)(v->ndim - k - 1) * sizeof *outer);
        v->ndim--;
    }
}

static int64_t period_of(const byte_view *v) {
    if (v->ndim == 0) return 0;
    int64_t smallest = v->dim[v->ndim - 1].stride;
    for (int k = 0; k < v->ndim; k++)
        if (v->dim[k].stride % smallest) return -1;
    return smallest;
}

bool mr_hazard_view_of(const mr_tensor *t, byte_view *v) {
    if (t->numel == 0) return false;
    int64_t size = (int64_t)mr_dtype_size((mr_dtype)t->dtype), first = t->offset * size;
    v->ndim = 0;
    v->period = 0;
    if (t->contiguous) {
        v->run = (uint64_t)(t->numel * size);
        v->first = (uint64_t)first;
        v->end = v->first + v->run;
        return true;
    }
    v->run = (uint64_t)size;
    for (int d = 0; d < t->ndim; d++) {
        int64_t stride = t->stride[d] * size;
        if (t->shape[d] == 1 || stride == 0) continue; /* an expanded dim repeats the same bytes */
        if (stride < 0) {
            first += (t->shape[d] - 1) * stride;
            stride = -stride;
        }
        v->dim[v->ndim++] = (view_dim){t->shape[d], stride};
    }
    sort_dims(v->dim, v->ndim);
    join_dims(v);
    v->period = period_of(v);
    v->first = (uint64_t)first;
    v->end = v->first + v->run;
    for (int k = 0; k < v->ndim; k++)
        v->end += (uint64_t)((v->dim[k].count - 1) * v->dim[k].stride);
    return true;
}

bool mr_hazard_view_equal(const byte_view *a, const byte_view *b) {
    if (a->first != b->first || a->end != b->end || a->run != b->run || a->ndim != b->ndim)
        return false;
    return a->ndim == 0 || memcmp(a->dim, b->dim, (size_t)a->ndim * sizeof *a->dim) == 0;
}

bool mr_hazard_view_covers(const byte_view *outer, const byte_view *inner) {
    if (MR_BROKEN(PARTIAL_COVER)) return outer->first < inner->end && inner->first < outer->end;
    if (outer->ndim == 0) return outer->first <= inner->first && inner->end <= outer->end;
    if (mr_hazard_view_equal(outer, inner)) return true;
    /* Two sets of rows of the same pitch: columns inside columns, rows inside rows. */
    if (outer->ndim != 1 || inner->ndim > 1) return false;
    int64_t pitch = outer->dim[0].stride;
    if (inner->ndim == 1 && inner->dim[0].stride != pitch) return false;
    if (inner->first < outer->first || inner->end > outer->end) return false;
    return (inner->first - outer->first) % (uint64_t)pitch + inner->run <= outer->run;
}

/* ---- overlap */

typedef struct {
    int64_t coefficient, count; /* x in [0, count] */
} unknown;

typedef struct {
    unknown x[2 * MR_MAX_DIMS];
    int64_t reach[2 * MR_MAX_DIMS + 1];   /* the greatest sum of the unknowns from k on */
    int64_t divisor[2 * MR_MAX_DIMS + 1]; /* greatest common divisor of their coefficients */
    int count, steps;
} equation;

/* Adds x with |coefficient|, and returns by how much a negative sign shifts the sum. */
static int64_t add_unknown(equation *e, int64_t coefficient, int64_t limit, bool negative) {
    int k = 0;
    while (k < e->count && e->x[k].coefficient > coefficient) k++;
    if (k < e->count && e->x[k].coefficient == coefficient) {
        e->x[k].count += limit; /* i - j over both ranges takes every value between */
    } else {
        memmove(&e->x[k + 1], &e->x[k], (size_t)(e->count - k) * sizeof *e->x);
        e->x[k] = (unknown){coefficient, limit};
        e->count++;
    }
    return negative ? -coefficient * limit : 0;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b < 0);
}

typedef enum { NO, YES, TOO_LONG } answer;

/* Can the unknowns from k on make a sum in [low, high]? */
static answer solve(equation *e, int k, int64_t low, int64_t high) {
    if (low < 0) low = 0;
    if (high > e->reach[k]) high = e->reach[k];
    if (low > high) return NO;
    if (low == 0 || high == e->reach[k]) return YES; /* all at 0, or all at their ends */
    int64_t g = e->divisor[k];
    if (floor_div(high, g) * g < low) return NO;
    if (k == e->count - 1) return YES; /* one unknown: a multiple of it lies in the window */
    if (--e->steps < 0) return TOO_LONG;
    int64_t c = e->x[k].coefficient;
    int64_t most = high / c < e->x[k].count ? high / c : e->x[k].count;
    int64_t missing = low - e->reach[k + 1];
    for (int64_t n = missing > 0 ? (missing + c - 1) / c : 0; n <= most; n++) {
        answer found = solve(e, k + 1, low - n * c, high - n * c);
        if (found != NO) return found;
    }
    return NO;
}

/* Whether v has a byte in [low, high), by descending through its dims from k on. */
static bool hits(const byte_view *v, int k, int64_t first, int64_t low, int64_t high) {
    if (k == v->ndim) return first < high && first + (int64_t)v->run > low;
    int64_t inner = (int64_t)v->run;
    for (int d = k + 1; d < v->ndim; d++) inner += (v->dim[d].count - 1) * v->dim[d].stride;
    view_dim d = v->dim[k];
    int64_t from =
        floor_div(low - first - inner, d.stride) + 1; /* the first that ends beyond low */
    int64_t to = floor_div(high - 1 - first, d.stride);
    if (from < 0) from = 0;
    if (to > d.count - 1) to = d.count - 1;
    for (int64_t i = from; i <= to; i++)
        if (hits(v, k + 1, first + i * d.stride, low, high)) return true;
    return false;
}

static bool any_run_hits(const byte_view *runs, int k, int64_t first, const byte_view *other) {
    if (k == runs->ndim) {
        int64_t low = first, high = first + (int64_t)runs->run;
        return hits(other, 0, (int64_t)other->first, low, high);
    }
    for (int64_t i = 0; i < runs->dim[k].count; i++)
        if (any_run_hits(runs, k + 1, first + i * runs->dim[k].stride, other)) return true;
    return false;
}

static int64_t run_count(const byte_view *v) {
    int64_t n = 1;
    for (int k = 0; k < v->ndim; k++) n *= v->dim[k].count;
    return n;
}

static bool overlap_strided(const byte_view *a, const byte_view *b) {
    equation e;
    e.count = 0;
    e.steps = 2000;
    int64_t shift = (int64_t)b->first - (int64_t)a->first;
    for (int k = 0; k < a->ndim; k++) /* less i * stride: from -count * stride upwards */
        shift += add_unknown(&e, a->dim[k].stride, a->dim[k].count - 1, true);
    for (int k = 0; k < b->ndim; k++)
        shift += add_unknown(&e, b->dim[k].stride, b->dim[k].count - 1, false);
    e.reach[e.count] = e.divisor[e.count] = 0;
    for (int k = e.count; k-- > 0;) {
        e.reach[k] = e.reach[k + 1] + e.x[k].coefficient * e.x[k].count;
        e.divisor[k] = gcd(e.x[k].coefficient, e.divisor[k + 1]);
    }
    answer found = solve(&e, 0, 1 - (int64_t)b->run - shift, (int64_t)a->run - 1 - shift);
    if (found != TOO_LONG) return found == YES;
    return run_count(a) <= run_count(b) ? any_run_hits(a, 0, (int64_t)a->first, b)
                                        : any_run_hits(b, 0, (int64_t)b->first, a);
}

bool mr_hazard_view_overlap(const byte_view *a, const byte_view *b) {
    if (MR_BROKEN(START_ONLY)) return a->first == b->first;
    if (a->end <= b->first || b->end <= a->first) return false;
    if ((a->ndim == 0 && b->ndim == 0) || MR_BROKEN(EXTENT_ONLY)) return true;
    return overlap_strided(a, b);
}

/* ---- how much */

static uint64_t shared_in(const byte_view *v, int k, int64_t first, int64_t low, int64_t high) {
    if (k == v->ndim) {
        int64_t from = first > low ? first : low, end = first + (int64_t)v->run;
        int64_t to = end < high ? end : high;
        return to > from ? (uint64_t)(to - from) : 0;
    }
    uint64_t sum = 0;
    for (int64_t i = 0; i < v->dim[k].count; i++)
        sum += shared_in(v, k + 1, first + i * v->dim[k].stride, low, high);
    return sum;
}

static uint64_t shared_runs(const byte_view *runs, int k, int64_t first, const byte_view *other) {
    if (k == runs->ndim)
        return shared_in(other, 0, (int64_t)other->first, first, first + (int64_t)runs->run);
    uint64_t sum = 0;
    for (int64_t i = 0; i < runs->dim[k].count; i++)
        sum += shared_runs(runs, k + 1, first + i * runs->dim[k].stride, other);
    return sum;
}

uint64_t mr_hazard_view_shared(const byte_view *a, const byte_view *b) {
    if (run_count(a) > 4096 || run_count(b) > 4096 || run_count(a) * run_count(b) > 1 << 20)
        return 0;
    return shared_runs(a, 0, (int64_t)a->first, b);
}
