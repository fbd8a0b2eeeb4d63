/* How operands lie in memory: see layout.h. */
#include "cuda/launch/layout.h"

void mr_cuda_layout_begin(cuda_layout *layout, int ndim, const int64_t *size) {
    layout->count = 0;
    layout->ndim = ndim;
    for (int d = 0; d < ndim; d++) layout->size[d] = size[d];
}

void mr_cuda_layout_add(cuda_layout *layout, int ndim, const int64_t *size, const int64_t *stride) {
    int64_t *to = layout->stride[layout->count++];
    for (int d = 0; d < layout->ndim; d++) {
        int own = d - (layout->ndim - ndim);
        to[d] = own < 0 || size[own] == 1 ? 0 : stride[own];
    }
}

static void swap_dims(cuda_layout *layout, int a, int b) {
    int64_t size = layout->size[a];
    layout->size[a] = layout->size[b];
    layout->size[b] = size;
    for (int k = 0; k < layout->count; k++) {
        int64_t stride = layout->stride[k][a];
        layout->stride[k][a] = layout->stride[k][b];
        layout->stride[k][b] = stride;
    }
}

/* By the output's strides, the largest first; where those are equal (0), by the first input's. */
static void sort_dims(cuda_layout *layout) {
    for (int i = 1; i < layout->ndim; i++) {
        for (int d = i; d > 0; d--) {
            int64_t before = layout->stride[0][d - 1], after = layout->stride[0][d];
            if (before > after ||
                (before == after &&
                 (layout->count < 2 || layout->stride[1][d - 1] >= layout->stride[1][d])))
                break;
            swap_dims(layout, d - 1, d);
        }
    }
}

static void drop_ones(cuda_layout *layout) {
    int n = 0;
    for (int d = 0; d < layout->ndim; d++) {
        if (layout->size[d] == 1) continue;
        layout->size[n] = layout->size[d];
        for (int k = 0; k < layout->count; k++) layout->stride[k][n] = layout->stride[k][d];
        n++;
    }
    layout->ndim = n;
}

static void merge_dims(cuda_layout *layout) {
    int n = 0; /* dims kept so far */
    for (int d = 0; d < layout->ndim; d++) {
        bool merge = n > 0;
        for (int k = 0; k < layout->count && merge; k++)
            merge = layout->stride[k][n - 1] == layout->stride[k][d] * layout->size[d];
        if (merge) {
            layout->size[n - 1] *= layout->size[d];
        } else {
            layout->size[n++] = layout->size[d];
        }
        for (int k = 0; k < layout->count; k++) layout->stride[k][n - 1] = layout->stride[k][d];
    }
    layout->ndim = n;
}

mr_cuda_divisor mr_cuda_divide_by(int64_t value) {
    uint32_t v = value < 1 ? 1 : (uint32_t)value, shift = 0;
    while (((uint64_t)1 << shift) < v) shift++;
    return (mr_cuda_divisor){v, (uint32_t)((((1ull << shift) - v) << 32) / v + 1), shift};
}

/* The divisors by which kernels split positions into indices. */
static void set_divisors(mr_cuda_shape *shape) {
    double positions = 1;
    for (uint32_t d = 0; d < shape->ndim; d++) positions *= (double)shape->size[d];
    shape->wide = positions >= (double)(1u << 31);
    if (shape->wide) return;
    for (uint32_t d = 0; d < shape->ndim; d++) {
        uint32_t size = (uint32_t)shape->size[d],
                 shift = size > 1 ? 32 - (uint32_t)__builtin_clz(size - 1) : 0;
        shape->shift[d] = (uint8_t)shift;
        shape->multiplier[d] = size ? (uint32_t)((((1ull << shift) - size) << 32) / size + 1) : 0;
    }
}

void mr_cuda_layout_end(cuda_layout *layout, bool sort, mr_cuda_shape *out_shape,
                        mr_cuda_strides *out_strides) {
    drop_ones(layout);
    if (sort) sort_dims(layout);
    merge_dims(layout);
    if (layout->ndim == 0) {
        layout->ndim = 1;
        layout->size[0] = 1;
        for (int k = 0; k < layout->count; k++) layout->stride[k][0] = 0;
    }
    out_shape->ndim = (uint32_t)layout->ndim;
    for (int d = 0; d < layout->ndim; d++) {
        int from = layout->ndim - 1 - d;
        out_shape->size[d] = layout->size[from];
        for (int k = 0; k < layout->count; k++) out_strides[k].stride[d] = layout->stride[k][from];
    }
    set_divisors(out_shape);
}

bool mr_cuda_in_vectors(mr_cuda_strided *args, int inputs, int64_t length) {
    mr_cuda_shape *shape = &args->shape;
    if (!args->own || shape->size[0] % length != 0 || args->d.count / (uint64_t)length >= 1u << 31)
        return false;
    for (int k = 0; k <= inputs; k++) {
        const int64_t *stride = args->stride[k].stride;
        if (k > 0 && stride[0] == 0) continue;
        if (stride[0] != 1 ||
            !mr_cuda_aligned((CUdeviceptr)(k == 0 ? args->d.out : args->d.in[k - 1])))
            return false;
        for (uint32_t d = 1; d < shape->ndim; d++)
            if (stride[d] % length != 0) return false;
    }
    args->d.count /= (uint64_t)length;
    shape->size[0] /= length;
    for (int k = 0; k <= inputs; k++) args->stride[k].stride[0] *= length;
    set_divisors(shape);
    return true;
}
