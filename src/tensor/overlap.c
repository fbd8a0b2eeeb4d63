/* Whether views share bytes. Two views share one if a solution exists to
 *
 *     first_a + sum(i_k * stride_a_k) + byte_a  =  first_b + sum(j_k * stride_b_k) + byte_b
 *
 * with every index inside its dimension. In general that is a hard problem; with the few dims of real
 * views a search that prunes by reach ends after a handful of steps. */
#include "tensor/tensor.h"

#include <stdlib.h>

void mr_tensor_extent(const mr_tensor *t, uint64_t *out_first, uint64_t *out_end) {
    uint64_t size = mr_dtype_size(t->dtype);
    int64_t low = t->offset, high = t->offset;
    for (int d = 0; d < t->ndim && t->numel > 0; d++) {
        int64_t reach = (t->shape[d] - 1) * t->stride[d];
        if (reach < 0) low += reach;
        else high += reach;
    }
    *out_first = (uint64_t)low * size;
    *out_end = t->numel > 0 ? (uint64_t)(high + 1) * size : *out_first;
}

/* One unknown of the equation: a coefficient > 0 in bytes, and how often it can be taken. */
typedef struct {
    int64_t coefficient, limit;
} term;

enum { MAX_TERMS = 2 * MR_MAX_DIMS + 2, SEARCH_LIMIT = 20000 };

static int by_coefficient_descending(const void *a, const void *b) {
    int64_t x = ((const term *)a)->coefficient, y = ((const term *)b)->coefficient;
    return (x < y) - (x > y);
}

/* Can the terms from `k` on add up to exactly `rest`? `reach[k]` is the most that they can add up to.
 * Counts steps down and answers true, the safe answer, when it runs out of them. */
static bool solve(const term *terms, const int64_t *reach, int count, int k, int64_t rest,
                  int *steps) {
    if (rest == 0) return true;
    if (k == count || rest < 0 || rest > reach[k]) return false;
    if (--*steps < 0) return true;
    int64_t c = terms[k].coefficient;
    int64_t most = rest / c < terms[k].limit ? rest / c : terms[k].limit;
    int64_t missing = rest - reach[k + 1];
    int64_t least = missing > 0 ? (missing + c - 1) / c : 0;
    for (int64_t n = most; n >= least; n--)
        if (solve(terms, reach, count, k + 1, rest - n * c, steps)) return true;
    return false;
}

/* Adds t's dims with the given sign. Returns the constant that negative coefficients leave behind,
 * since i * -c with i in [0, m] is the same set as -c * m + i * c. */
static int64_t add_terms(const mr_tensor *t, int sign, term *terms, int *count) {
    int64_t size = (int64_t)mr_dtype_size(t->dtype), constant = 0;
    for (int d = 0; d < t->ndim; d++) {
        int64_t c = t->stride[d] * size * sign, limit = t->shape[d] - 1;
        if (c == 0 || limit == 0) continue;
        if (c < 0) {
            constant += c * limit;
            c = -c;
        }
        terms[(*count)++] = (term){c, limit};
    }
    return constant;
}

bool mr_tensor_may_overlap(const mr_tensor *a, const mr_tensor *b) {
    if (a->storage != b->storage || a->numel == 0 || b->numel == 0) return false;
    uint64_t first_a, end_a, first_b, end_b;
    mr_tensor_extent(a, &first_a, &end_a);
    mr_tensor_extent(b, &first_b, &end_b);
    if (end_a <= first_b || end_b <= first_a) return false;
    if (a->contiguous && b->contiguous) return true;

    int64_t size_a = (int64_t)mr_dtype_size(a->dtype), size_b = (int64_t)mr_dtype_size(b->dtype);
    term terms[MAX_TERMS];
    int64_t reach[MAX_TERMS + 1];
    int count = 0;
    /* Where b's first byte lies beyond a's, to be made up by a's indices less b's. */
    int64_t rest = b->offset * size_b - a->offset * size_a;
    rest -= add_terms(a, 1, terms, &count);
    rest -= add_terms(b, -1, terms, &count);
    if (size_a > 1) terms[count++] = (term){1, size_a - 1};
    if (size_b > 1) {
        terms[count++] = (term){1, size_b - 1};
        rest += size_b - 1;
    }
    qsort(terms, (size_t)count, sizeof *terms, by_coefficient_descending);
    reach[count] = 0;
    for (int k = count; k-- > 0;) reach[k] = reach[k + 1] + terms[k].coefficient * terms[k].limit;
    int steps = SEARCH_LIMIT;
    return solve(terms, reach, count, 0, rest, &steps);
}

bool mr_tensor_self_overlaps(const mr_tensor *t) {
    if (t->contiguous || t->numel <= 1) return false;
    term dims[MR_MAX_DIMS] = {0};
    int count = 0;
    for (int d = 0; d < t->ndim; d++) {
        if (t->shape[d] == 1) continue;
        if (t->stride[d] == 0) return true;
        dims[count++] = (term){llabs(t->stride[d]), t->shape[d] - 1};
    }
    /* Every view that scripts can make steps over all smaller dims, or repeats by stride 0. */
    qsort(dims, (size_t)count, sizeof *dims, by_coefficient_descending);
    int64_t below = 0;
    for (int k = count; k-- > 0;) {
        if (dims[k].coefficient <= below) return true;
        below += dims[k].coefficient * dims[k].limit;
    }
    return false;
}
