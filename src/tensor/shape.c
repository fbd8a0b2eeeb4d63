/* Shapes: counting, resolving dims, broadcasting, and their text. Sizes come from scripts, so every
 * product is checked. */
#include "tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

mr_status mr_dim_resolve(int ndim, int64_t dim, const char *what, int *out_dim) {
    int limit = ndim > 0 ? ndim : 1;
    if (dim < -limit || dim >= limit) {
        /* Scripts count dims from 1; negative ones are the same on both sides. */
        int64_t shown = dim >= 0 && dim < INT64_MAX ? dim + 1 : dim;
        if (ndim == 0)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "%s: dimension %" PRId64 " of a tensor with no dimensions", what, shown);
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: dimension %" PRId64
                       " of a tensor with %d dimension%s (1 to %d, or -1 to -%d)",
                       what, shown, ndim, ndim == 1 ? "" : "s", ndim, ndim);
    }
    *out_dim = (int)(dim < 0 ? dim + limit : dim);
    return MR_OK;
}

bool mr_has_shape(const mr_tensor *t, int ndim, const int64_t *shape) {
    return t->ndim == ndim && memcmp(t->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

bool mr_same_shape(const mr_tensor *a, const mr_tensor *b) {
    return mr_has_shape(a, b->ndim, b->shape);
}

mr_status mr_shape_numel(int ndim, const int64_t *shape, int64_t *out_numel) {
    if (ndim < 0 || ndim > MR_MAX_DIMS)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "a tensor has at most %d dimensions, got %d",
                       MR_MAX_DIMS, ndim);
    bool empty = false;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "dimension %d has negative size %" PRId64,
                           d + 1, shape[d]);
        if (shape[d] == 0) empty = true;
    }
    int64_t numel = 1;
    for (int d = 0; d < ndim && !empty; d++) {
        if (__builtin_mul_overflow(numel, shape[d], &numel) || numel > MR_MAX_ELEMENTS) {
            char text[192];
            return mr_fail(MR_CODE_OUT_OF_MEMORY,
                           "a tensor of %s has more elements than memory can hold (2^48 at most)",
                           mr_shape_text(ndim, shape, text, sizeof text));
        }
    }
    *out_numel = empty ? 0 : numel;
    return MR_OK;
}

mr_status mr_shape_broadcast(const char *op, int ndim_a, const int64_t *a, int ndim_b,
                             const int64_t *b, int *out_ndim, int64_t *out) {
    int ndim = ndim_a > ndim_b ? ndim_a : ndim_b;
    for (int d = 0; d < ndim; d++) { /* d counts from the last dimension */
        int64_t size_a = d < ndim_a ? a[ndim_a - 1 - d] : 1;
        int64_t size_b = d < ndim_b ? b[ndim_b - 1 - d] : 1;
        if (size_a != size_b && size_a != 1 && size_b != 1) {
            char text_a[192], text_b[192];
            mr_shape_text(ndim_a, a, text_a, sizeof text_a);
            mr_shape_text(ndim_b, b, text_b, sizeof text_b);
            if (ndim_a == ndim_b)
                return mr_fail(MR_CODE_INVALID_ARGUMENT,
                               "%s: cannot broadcast %s with %s: dimension %d is %" PRId64
                               " against %" PRId64,
                               op, text_a, text_b, ndim - d, size_a, size_b);
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "%s: cannot broadcast %s with %s: dimension -%d is %" PRId64
                           " against %" PRId64,
                           op, text_a, text_b, d + 1, size_a, size_b);
        }
        out[ndim - 1 - d] = size_a == 1 ? size_b : size_a;
    }
    *out_ndim = ndim;
    return MR_OK;
}

const char *mr_shape_text(int ndim, const int64_t *shape, char *out, size_t size) {
    if (ndim == 0) {
        snprintf(out, size, "scalar");
        return out;
    }
    size_t used = 0;
    if (size) out[0] = '\0';
    for (int d = 0; d < ndim && used < size; d++) {
        int n = snprintf(out + used, size - used, "%s%" PRId64, d ? "x" : "", shape[d]);
        used += n > 0 ? (size_t)n : 0;
    }
    return out;
}
