/* Shape algebra: each function computes the shape and strides of another view of the same storage, or
 * says in the script's terms (dims count from 1) why there is none. */
#include "tensor/tensor.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* A view under construction: begins as a copy of the base's geometry. */
typedef struct {
    int ndim;
    int64_t shape[MR_MAX_DIMS + 1], stride[MR_MAX_DIMS + 1];
    int64_t offset;
} geometry;

static geometry geometry_of(const mr_tensor *t) {
    geometry g = {.ndim = t->ndim, .offset = t->offset};
    memcpy(g.shape, t->shape, sizeof t->shape);
    memcpy(g.stride, t->stride, sizeof t->stride);
    return g;
}

static mr_status make_view(const mr_caller *caller, mr_tensor *t, const geometry *g,
                           mr_tensor **out) {
    return mr_tensor_view(caller, t, t->dtype, g->ndim, g->shape, g->stride, g->offset, out);
}

static void drop_dim(geometry *g, int dim) {
    for (int d = dim; d + 1 < g->ndim; d++) {
        g->shape[d] = g->shape[d + 1];
        g->stride[d] = g->stride[d + 1];
    }
    g->ndim--;
}

/* Strides that show t's elements, in row-major order, under another shape of as many elements. Old
 * dims are taken in groups that lie in memory without gaps; each group must be used up by a group of
 * new dims. False if no strides can. */
static bool reshape_strides(const mr_tensor *t, geometry *g) {
    int64_t run = 1;  /* elements of the current group of old dims not yet used by new dims */
    int64_t step = 1; /* the stride of the next new dim in this group */
    int old = t->ndim - 1;
    bool fresh = true;
    for (int d = g->ndim; d-- > 0;) {
        if (g->shape[d] == 1) {
            g->stride[d] = step;
            continue;
        }
        if (run == 1 || fresh) {
            while (old >= 0 && t->shape[old] == 1) old--;
            if (old < 0) return false;
            run = t->shape[old];
            step = t->stride[old];
            old--;
            /* Joins the older dims that continue this one. */
            int64_t next = step * run;
            while (old >= 0 && (t->shape[old] == 1 || t->stride[old] == next)) {
                run *= t->shape[old];
                next *= t->shape[old];
                old--;
            }
            fresh = false;
        }
        if (run % g->shape[d] != 0) return false;
        g->stride[d] = step;
        step *= g->shape[d];
        run /= g->shape[d];
    }
    return true;
}

mr_status mr_tensor_reshape(const mr_caller *caller, mr_tensor *t, int ndim, const int64_t *shape,
                            mr_tensor **out) {
    *out = NULL;
    char text[192], own[192];
    if (ndim < 0 || ndim > MR_MAX_DIMS)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "reshape: a tensor has at most %d dimensions, got %d", MR_MAX_DIMS, ndim);
    mr_shape_text(ndim, shape, text, sizeof text);
    mr_shape_text(t->ndim, t->shape, own, sizeof own);
    geometry g = {.ndim = ndim, .offset = t->offset};
    int unknown = -1;
    for (int d = 0; d < ndim; d++) {
        g.shape[d] = shape[d];
        if (shape[d] != -1) continue;
        if (unknown >= 0)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "reshape: only one size may be -1, but dimensions %d and %d both are",
                           unknown + 1, d + 1);
        unknown = d;
        g.shape[d] = 1;
    }
    int64_t numel;
    MR_TRY(mr_shape_numel(ndim, g.shape, &numel));
    if (unknown >= 0) {
        if (numel == 0)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "reshape: in %s, the size of dimension %d cannot be computed, because "
                           "another size is 0",
                           text, unknown + 1);
        if (t->numel % numel != 0)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "reshape: the tensor has %" PRId64
                           " elements (shape %s), which the shape %s cannot hold: %" PRId64
                           " does not divide %" PRId64,
                           t->numel, own, text, numel, t->numel);
        g.shape[unknown] = t->numel / numel;
        numel = t->numel;
    }
    if (numel != t->numel)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "reshape: the tensor has %" PRId64
                       " element%s (shape %s), and the shape %s needs %" PRId64,
                       t->numel, t->numel == 1 ? "" : "s", own, text, numel);
    if (numel == 0) {
        for (int d = 0; d < ndim; d++) g.stride[d] = 1;
    } else if (!reshape_strides(t, &g)) {
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "view: the strides of this %s tensor do not allow the shape %s without a "
                       "copy; use reshape or contiguous",
                       own, text);
    }
    return make_view(caller, t, &g, out);
}

mr_status mr_tensor_permute(const mr_caller *caller, mr_tensor *t, const int *dims,
                            mr_tensor **out) {
    *out = NULL;
    geometry g = {.ndim = t->ndim, .offset = t->offset};
    unsigned seen = 0;
    for (int d = 0; d < t->ndim; d++) {
        int from;
        MR_TRY(mr_dim_resolve(t->ndim, dims[d], "permute", &from));
        if (seen & (1u << from))
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "permute: dimension %d is given twice",
                           from + 1);
        seen |= 1u << from;
        g.shape[d] = t->shape[from];
        g.stride[d] = t->stride[from];
    }
    return make_view(caller, t, &g, out);
}

mr_status mr_tensor_transpose(const mr_caller *caller, mr_tensor *t, int dim0, int dim1,
                              mr_tensor **out) {
    *out = NULL;
    int a, b;
    MR_TRY(mr_dim_resolve(t->ndim, dim0, "transpose", &a));
    MR_TRY(mr_dim_resolve(t->ndim, dim1, "transpose", &b));
    geometry g = geometry_of(t);
    if (t->ndim > 0) {
        g.shape[a] = t->shape[b], g.stride[a] = t->stride[b];
        g.shape[b] = t->shape[a], g.stride[b] = t->stride[a];
    }
    return make_view(caller, t, &g, out);
}

mr_status mr_tensor_narrow(const mr_caller *caller, mr_tensor *t, int dim, int64_t start,
                           int64_t length, int64_t step, mr_tensor **out) {
    *out = NULL;
    int d;
    if (t->ndim == 0)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "narrow: the tensor has no dimensions");
    MR_TRY(mr_dim_resolve(t->ndim, dim, "narrow", &d));
    if (step < 1)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "narrow: the step must be at least 1, not %" PRId64, step);
    if (length < 0)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "narrow: the length must not be negative, but is %" PRId64, length);
    int64_t size = t->shape[d];
    /* The last row is start + (length - 1) * step; written so that no product can overflow. */
    bool inside = start >= 0 && start <= size &&
                  (length == 0 || (start < size && (length - 1) <= (size - 1 - start) / step));
    if (!inside) {
        int64_t last = 0, first = start < INT64_MAX ? start + 1 : start;
        if (__builtin_mul_overflow(length - 1, step, &last) ||
            __builtin_add_overflow(last, first, &last))
            last = INT64_MAX;
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "narrow: rows %" PRId64 " to %" PRId64
                       " do not fit in dimension %d of size %" PRId64,
                       first, last, d + 1, size);
    }
    geometry g = geometry_of(t);
    if (t->numel > 0) g.offset += start * t->stride[d];
    g.shape[d] = length;
    if (length > 1) g.stride[d] = t->stride[d] * step;
    return make_view(caller, t, &g, out);
}

mr_status mr_tensor_select(const mr_caller *caller, mr_tensor *t, int dim, int64_t index,
                           mr_tensor **out) {
    *out = NULL;
    int d;
    if (t->ndim == 0)
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "select: a tensor with no dimensions cannot be indexed; item() reads its value");
    MR_TRY(mr_dim_resolve(t->ndim, dim, "select", &d));
    int64_t size = t->shape[d];
    if (index < -size || index >= size)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "select: index %" PRId64 " is outside dimension %d of size %" PRId64,
                       index >= 0 && index < INT64_MAX ? index + 1 : index, d + 1, size);
    geometry g = geometry_of(t);
    if (t->numel > 0) g.offset += (index < 0 ? index + size : index) * t->stride[d];
    drop_dim(&g, d);
    return make_view(caller, t, &g, out);
}

mr_status mr_tensor_squeeze(const mr_caller *caller, mr_tensor *t, int dim, mr_tensor **out) {
    *out = NULL;
    geometry g = geometry_of(t);
    if (dim != INT_MIN) {
        int d;
        MR_TRY(mr_dim_resolve(t->ndim, dim, "squeeze", &d));
        if (t->ndim > 0 && t->shape[d] == 1) drop_dim(&g, d);
        return make_view(caller, t, &g, out);
    }
    for (int d = t->ndim; d-- > 0;)
        if (g.shape[d] == 1) drop_dim(&g, d);
    return make_view(caller, t, &g, out);
}

mr_status mr_tensor_unsqueeze(const mr_caller *caller, mr_tensor *t, int dim, mr_tensor **out) {
    *out = NULL;
    if (t->ndim == MR_MAX_DIMS)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "unsqueeze: a tensor has at most %d dimensions",
                       MR_MAX_DIMS);
    int at;
    MR_TRY(mr_dim_resolve(t->ndim + 1, dim, "unsqueeze", &at));
    geometry g = geometry_of(t);
    for (int d = g.ndim; d > at; d--) {
        g.shape[d] = g.shape[d - 1];
        g.stride[d] = g.stride[d - 1];
    }
    g.shape[at] = 1;
    g.stride[at] = at < t->ndim ? t->shape[at] * t->stride[at] : 1;
    g.ndim++;
    return make_view(caller, t, &g, out);
}

mr_status mr_tensor_expand(const mr_caller *caller, mr_tensor *t, int ndim, const int64_t *shape,
                           mr_tensor **out) {
    *out = NULL;
    char own[192], text[192];
    mr_shape_text(t->ndim, t->shape, own, sizeof own);
    if (ndim < 0 || ndim > MR_MAX_DIMS)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "expand: a tensor has at most %d dimensions, got %d", MR_MAX_DIMS, ndim);
    if (ndim < t->ndim)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "expand: %s cannot become %s, which has fewer dimensions", own,
                       mr_shape_text(ndim, shape, text, sizeof text));
    geometry g = {.ndim = ndim, .offset = t->offset};
    int extra = ndim - t->ndim;
    for (int d = 0; d < ndim; d++) {
        int64_t size = d < extra ? 1 : t->shape[d - extra];
        int64_t wanted = shape[d];
        if (wanted == -1 && d >= extra) wanted = size;
        if (wanted < 0)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "expand: dimension %d cannot have size %" PRId64, d + 1, wanted);
        if (size != wanted && size != 1)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "expand: %s cannot become %s: dimension %d is %" PRId64
                           ", and only a dimension of size 1 can be expanded",
                           own, mr_shape_text(ndim, shape, text, sizeof text), d + 1, size);
        g.shape[d] = wanted;
        g.stride[d] = size == wanted && d >= extra ? t->stride[d - extra] : 0;
    }
    return make_view(caller, t, &g, out);
}

mr_status mr_tensor_flatten(const mr_caller *caller, mr_tensor *t, int first, int last,
                            mr_tensor **out) {
    *out = NULL;
    int a, b;
    MR_TRY(mr_dim_resolve(t->ndim, first, "flatten", &a));
    MR_TRY(mr_dim_resolve(t->ndim, last, "flatten", &b));
    if (a > b)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "flatten: the first dimension, %d, comes after the last, %d", a + 1, b + 1);
    int64_t shape[MR_MAX_DIMS], joined = 1;
    int ndim = 0;
    for (int d = 0; d < a; d++) shape[ndim++] = t->shape[d];
    /* Sizes of a tensor without elements may multiply beyond the range: then a 0 is among them. */
    bool empty = false;
    for (int d = a; d <= b && d < t->ndim; d++) empty |= t->shape[d] == 0;
    for (int d = a; d <= b && d < t->ndim && !empty; d++) {
        if (__builtin_mul_overflow(joined, t->shape[d], &joined))
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "flatten: the joined dimension would have too many elements");
    }
    shape[ndim++] = empty ? 0 : joined;
    for (int d = b + 1; d < t->ndim; d++) shape[ndim++] = t->shape[d];
    return mr_tensor_reshape(caller, t, ndim, shape, out);
}
