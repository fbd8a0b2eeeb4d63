/* Compares two tensors, a block at a time, and on several threads. Blocks are made of one dtype. It is i64 for integers
 * of different dtypes, f32 for the small floats, and otherwise f64. No value changes, except that an i64 is rounded in
 * f64, as it is when it is compared with a float.
 *
 * The order of elements does not matter, so dims are taken by their strides: transposed tensors are dense, too. */
#include "ops/agree.h"

#include "base/parallel.h"
#include "ops/body.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 * 1024 }; /* elements that are worth waking a thread for */

typedef struct {
    const mr_tolerance *tolerance;
    const mr_tensor *tensor[2];
    mr_walk walk;
    mr_dtype compared; /* the dtype of the blocks */
    int64_t first;
    atomic_bool differ;
} job;

/* ------------------------------------------------------------------------- loops */

/* Without a way out, for vectors: most blocks agree. Equal infinities have no difference to measure. */
#define AGREE(tag, T)                                                                              \
    MR_CLONES static bool agree_##tag(const mr_tolerance *t, const T *a, const T *b, int64_t n) {  \
        double relative = t->relative, absolute = t->absolute, inf = (double)INFINITY;             \
        int differs = 0, nan_agrees = t->equal_nan;                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double x = (double)a[i], y = (double)b[i];                                             \
            int close = (fabs(x - y) <= absolute + relative * fabs(y)) & (fabs(x) < inf) &         \
                        (fabs(y) < inf);                                                           \
            differs |= !((x == y) | close | (nan_agrees & (x != x) & (y != y)));                   \
        }                                                                                          \
        return !differs;                                                                           \
    }                                                                                              \
    MR_CLONES static bool equal_##tag(const T *a, const T *b, int64_t n) {                         \
        int differs = 0;                                                                           \
        for (int64_t i = 0; i < n; i++) differs |= !(a[i] == b[i]);                                \
        return !differs;                                                                           \
    }
AGREE(f32, float)
AGREE(f64, double)

static bool blocks_agree(const job *j, const void *a, const void *b, int64_t n) {
    const mr_tolerance *t = j->tolerance;
    switch (j->compared) {
    case MR_F32: return t->exact ? equal_f32(a, b, n) : agree_f32(t, a, b, n);
    case MR_F64: return t->exact ? equal_f64(a, b, n) : agree_f64(t, a, b, n);
    default: return memcmp(a, b, (size_t)n * mr_dtype_size(j->compared)) == 0;
    }
}

/* ------------------------------------------------------------------------- blocks */

static mr_dtype compared_dtype(const mr_tolerance *t, mr_dtype a, mr_dtype b) {
    bool floats = mr_dtype_category(a) == 2 || mr_dtype_category(b) == 2;
    if (t->exact && !floats) return a == b ? a : MR_I64;
    return mr_dtype_computed(a) == MR_F32 && mr_dtype_computed(b) == MR_F32 ? MR_F32 : MR_F64;
}

static void set_walk(job *j) {
    mr_tensor sorted[2];
    const mr_tensor *operands[2] = {&sorted[0], &sorted[1]};
    int order[MR_MAX_DIMS] = {0}, ndim = j->tensor[0]->ndim;
    for (int d = 0; d < ndim; d++) {
        int at = d;
        int64_t own = llabs(j->tensor[0]->stride[d]);
        for (; at > 0 && llabs(j->tensor[0]->stride[order[at - 1]]) < own; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int k = 0; k < 2; k++) {
        sorted[k] = (mr_tensor){.ndim = (uint8_t)ndim};
        for (int d = 0; d < ndim; d++) {
            sorted[k].shape[d] = j->tensor[k]->shape[order[d]];
            sorted[k].stride[d] = j->tensor[k]->stride[order[d]];
        }
    }
    mr_walk_init(&j->walk, ndim, sorted[0].shape, 2, operands);
}

/* Elements [first, first + n) of a tensor: where they are, or in one of the blocks. */
static const void *fetch(const job *j, int k, int64_t first, int64_t n, mr_block blocks[2]) {
    const mr_tensor *t = j->tensor[k];
    size_t size = mr_dtype_size((mr_dtype)t->dtype);
    const char *data = mr_tensor_data(t);
    const void *found = data + first * (int64_t)size;
    if (j->walk.ndim > 1 || j->walk.stride[k][0] != 1) {
        mr_gather(data, size, j->walk.ndim, j->walk.shape, j->walk.stride[k], first, n, &blocks[0]);
        found = &blocks[0];
    }
    if (t->dtype == j->compared) return found;
    mr_convert(j->compared, &blocks[1], (mr_dtype)t->dtype, found, n);
    return &blocks[1];
}

static void compare_piece(void *context, int64_t first, int64_t end) {
    job *j = context;
    mr_block of_a[2], of_b[2];
    for (int64_t i = j->first + first; i < j->first + end; i += MR_BLOCK) {
        if (atomic_load_explicit(&j->differ, memory_order_relaxed)) return;
        int64_t rest = j->first + end - i, n = rest < MR_BLOCK ? rest : MR_BLOCK;
        if (!blocks_agree(j, fetch(j, 0, i, n, of_a), fetch(j, 1, i, n, of_b), n))
            atomic_store_explicit(&j->differ, true, memory_order_relaxed);
    }
}

bool mr_tensors_agree(const mr_tolerance *tolerance, const mr_tensor *a, const mr_tensor *b,
                      int64_t first, int64_t end) {
    job j = {.tolerance = tolerance, .tensor = {a, b}, .first = first};
    j.compared = compared_dtype(tolerance, (mr_dtype)a->dtype, (mr_dtype)b->dtype);
    set_walk(&j);
    mr_parallel_for(end - first, PIECE, compare_piece, &j);
    return !atomic_load(&j.differ);
}
