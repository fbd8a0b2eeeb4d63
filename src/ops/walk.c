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

/* Element sizes are 1, 2, 4 and 8; a run is `n` elements with one stride. */
#define COPY_RUN(T)                                                                                \
    do {                                                                                           \
        const T *f = from;                                                                         \
        T *t = to;                                                                                 \
        if (from_stride == 0) {                                                                    \
            T v = *f;                                                                              \
            for (int64_t i = 0; i < n; i++) t[i * to_stride] = v;                                  \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) t[i * to_stride] = f[i * from_stride];                 \
        }                                                                                          \
    } while (0)

static void copy_run(void *to, int64_t to_stride, const void *from, int64_t from_stride,
                     size_t size, int64_t n) {
    if (to_stride == 1 && from_stride == 1) {
        if (n > 16) {
            memcpy(to, from, (size_t)n * size);
            return;
        }
    }
    switch (size) {
    case 1: COPY_RUN(uint8_t); break;
    case 2: COPY_RUN(uint16_t); break;
    case 4: COPY_RUN(uint32_t); break;
    default: COPY_RUN(uint64_t); break;
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

/* Moves on by `n` elements of the last dim, at most to its end. */
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
    for (int64_t done = 0; done < n;) {
        int64_t run = shape[last] - p.index[last];
        if (run > n - done) run = n - done;
        copy_run((char *)block + (size_t)done * size, 1,
                 (const char *)base + p.offset * (int64_t)size, stride[last], size, run);
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
        copy_run((char *)base + p.offset * (int64_t)size, stride[last],
                 (const char *)block + (size_t)done * size, 1, size, run);
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
