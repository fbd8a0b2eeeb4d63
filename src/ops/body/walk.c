/* Iterating over strided operands: merging dims, and moving runs of elements between strided memory and
 * dense blocks. */
#include "ops/body.h"

#include <string.h>

void mr_walk_init(mr_walk *walk, int ndim, const int64_t *shape, int count,
                  const mr_tensor *const *operands) {
    int n = 0; /* dims kept so far; from the first to the last */
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 1) continue;
        int64_t stride[MR_WALK_OPERANDS];
        for (int k = 0; k < count; k++) {
            int own = d - (ndim - operands[k]->ndim);
            stride[k] = own < 0 || operands[k]->shape[own] == 1 ? 0 : operands[k]->stride[own];
        }
        bool merge = n > 0;
        for (int k = 0; k < count && merge; k++)
            merge = walk->stride[k][n - 1] == stride[k] * shape[d];
        if (merge) {
            walk->shape[n - 1] *= shape[d];
        } else {
            walk->shape[n] = shape[d];
            n++;
        }
        for (int k = 0; k < count; k++) walk->stride[k][n - 1] = stride[k];
    }
    if (n == 0) {
        walk->shape[0] = 1;
        for (int k = 0; k < count; k++) walk->stride[k][0] = 1;
        n = 1;
    }
    walk->ndim = n;
}

int64_t mr_walk_offset(const mr_walk *walk, int operand, int64_t position) {
    int64_t offset = 0;
    for (int d = walk->ndim; d-- > 0;) {
        int64_t index = d > 0 ? position % walk->shape[d] : position;
        position = d > 0 ? position / walk->shape[d] : 0;
        offset += index * walk->stride[operand][d];
    }
    return offset;
}

/* A run is `n` elements with one stride; one of the two sides is dense. Every other element is frequent (pairs, and the
 * parts of complex numbers), and the compiler has shuffles for it. */
enum { TOGETHER = 64, LINE = 64, AHEAD = 8192 };
#define GATHER_RUN(T)                                                                              \
    MR_CLONES static void gather_run_##T(T *restrict t, const T *restrict f, int64_t stride,       \
                                         int64_t n) {                                              \
        if (stride == 0) {                                                                         \
            for (int64_t i = 0; i < n; i++) t[i] = *f;                                             \
        } else if (stride == 2) {                                                                  \
            int64_t i = 0;                                                                         \
            for (; i + TOGETHER <= n; i += TOGETHER) {                                             \
                for (size_t at = 0; at < 2 * TOGETHER * sizeof(T); at += LINE)                     \
                    __builtin_prefetch((const void *)((uintptr_t)(f + i * 2) + AHEAD + at));       \
                for (int k = 0; k < TOGETHER; k++) t[i + k] = f[(i + k) * 2];                      \
            }                                                                                      \
            for (; i < n; i++) t[i] = f[i * 2];                                                    \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) t[i] = f[i * stride];                                  \
        }                                                                                          \
    }                                                                                              \
    static void scatter_run_##T(T *restrict t, const T *restrict f, int64_t stride, int64_t n) {   \
        for (int64_t i = 0; i < n; i++) t[i * stride] = f[i];                                      \
    }
GATHER_RUN(uint8_t)
GATHER_RUN(uint16_t)
GATHER_RUN(uint32_t)
GATHER_RUN(uint64_t)

static void gather_run(void *to, const void *from, int64_t stride, size_t size, int64_t n) {
    if (stride == 1 && n > 16) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: gather_run_uint8_t(to, from, stride, n); break;
    case 2: gather_run_uint16_t(to, from, stride, n); break;
    case 4: gather_run_uint32_t(to, from, stride, n); break;
    default: gather_run_uint64_t(to, from, stride, n); break;
    }
}

static void scatter_run(void *to, int64_t stride, const void *from, size_t size, int64_t n) {
    if (stride == 1 && n > 16) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: scatter_run_uint8_t(to, from, stride, n); break;
    case 2: scatter_run_uint16_t(to, from, stride, n); break;
    case 4: scatter_run_uint32_t(to, from, stride, n); break;
    default: scatter_run_uint64_t(to, from, stride, n); break;
    }
}

/* A place in a strided shape: the offset of the run's start and the index in each outer dim. */
typedef struct {
    int64_t index[MR_MAX_DIMS];
    int64_t offset;
} place;

static place place_of(int ndim, const int64_t *shape, const int64_t *stride, int64_t position) {
    place p = {.offset = 0};
    for (int d = ndim; d-- > 0;) {
        p.index[d] = d > 0 ? position % shape[d] : position;
        position = d > 0 ? position / shape[d] : 0;
        p.offset += p.index[d] * stride[d];
    }
    return p;
}

/* Moves on by `n` in the last of `ndim` dims, at most to its end. */
static void advance(place *p, int ndim, const int64_t *shape, const int64_t *stride, int64_t n) {
    int d = ndim - 1;
    p->index[d] += n;
    p->offset += n * stride[d];
    while (d > 0 && p->index[d] == shape[d]) {
        p->offset -= shape[d] * stride[d];
        p->index[d] = 0;
        d--;
        p->index[d]++;
        p->offset += stride[d];
    }
}

void mr_gather(const void *base, size_t size, int ndim, const int64_t *shape, const int64_t *stride,
               int64_t first, int64_t n, void *block) {
    place p = place_of(ndim, shape, stride, first);
    int last = ndim - 1;
    bool turned = ndim > 1 && stride[last] != 1 && stride[last - 1] == 1;
    for (int64_t done = 0; done < n;) {
        const char *from = (const char *)base + p.offset * (int64_t)size;
        char *to = (char *)block + (size_t)done * size;
        int64_t rows = turned && p.index[last] == 0 ? (n - done) / shape[last] : 0;
        if (rows > 1) {
            if (rows > shape[last - 1] - p.index[last - 1])
                rows = shape[last - 1] - p.index[last - 1];
            mr_transpose(to, shape[last], from, stride[last], size, rows, shape[last]);
            done += rows * shape[last];
            advance(&p, ndim - 1, shape, stride, rows);
            continue;
        }
        int64_t run = shape[last] - p.index[last];
        if (run > n - done) run = n - done;
        gather_run(to, from, stride[last], size, run);
        done += run;
        advance(&p, ndim, shape, stride, run);
    }
}

void mr_scatter(void *base, size_t size, int ndim, const int64_t *shape, const int64_t *stride,
                int64_t first, int64_t n, const void *block) {
    place p = place_of(ndim, shape, stride, first);
    int last = ndim - 1;
    for (int64_t done = 0; done < n;) {
        int64_t run = shape[last] - p.index[last];
        if (run > n - done) run = n - done;
        scatter_run((char *)base + p.offset * (int64_t)size, stride[last],
                    (const char *)block + (size_t)done * size, size, run);
        done += run;
        advance(&p, ndim, shape, stride, run);
    }
}

void mr_output_init(mr_output *out, const mr_tensor *tensor, mr_dtype dtype) {
    out->tensor = tensor;
    out->dtype = dtype;
    out->direct = tensor->contiguous && tensor->dtype == dtype;
    if (!tensor->contiguous) mr_walk_init(&out->walk, tensor->ndim, tensor->shape, 1, &tensor);
}

void *mr_output_begin(mr_output *out, int64_t first) {
    if (!out->direct) return out->block.bytes;
    return (char *)mr_tensor_data(out->tensor) + first * (int64_t)mr_dtype_size(out->dtype);
}

void mr_output_end(mr_output *out, int64_t first, int64_t n) {
    if (out->direct) return;
    const mr_tensor *t = out->tensor;
    char *data = mr_tensor_data(t);
    size_t size = mr_dtype_size(t->dtype);
    if (t->contiguous) {
        mr_convert(t->dtype, data + first * (int64_t)size, out->dtype, out->block.bytes, n);
        return;
    }
    const void *block = out->block.bytes;
    if (t->dtype != out->dtype) {
        mr_convert(t->dtype, out->converted.bytes, out->dtype, block, n);
        block = out->converted.bytes;
    }
    mr_scatter(data, size, out->walk.ndim, out->walk.shape, out->walk.stride[0], first, n, block);
}
