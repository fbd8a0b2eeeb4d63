/* Pools and their gradients: a thread makes one element. The windows are those of the CPU bodies (ops/pool_window.h), and
 * sums are added in the same order, in double. Pools of 2x2 that halve the planes have kernels of their own for f32. */
#define inline inline __device__
#include "ops/pool_window.h"
#undef inline
#include "cuda/kernels/device.cuh"

MR_DEVICE uint32_t quotient(const mr_cuda_divisor &d, uint32_t n) {
    return (__umulhi(n, d.multiplier) + n) >> d.shift;
}

/* An element of the result: where its channel begins in the other tensors, and its row and column. */
struct place {
    int64_t other, positions;
    int32_t y, x;
    bool exists;
};

MR_DEVICE place place_of(const mr_cuda_pool &p) {
    uint32_t position = blockIdx.x * MR_CUDA_THREADS + threadIdx.x;
    uint32_t line = quotient(p.columns_made, position), plane = quotient(p.rows_made, line);
    uint32_t image = quotient(p.channels, plane), channel = plane - image * p.channels.value;
    return {image * p.other_stride[0] + channel * p.other_stride[1],
            image * p.positions_stride[0] + channel * p.positions_stride[1],
            (int32_t)(line - plane * p.rows_made.value), (int32_t)(position - line * p.columns_made.value),
            position < p.count};
}

template <class T> MR_DEVICE void max_pool(const mr_cuda_pool &p) {
    place at = place_of(p);
    if (!at.exists) return;
    const mr_pool_line &r = p.rows, &c = p.columns;
    const T *x = (const T *)p.other + at.other;
    int32_t top = mr_pool_begin(&r, at.y), left = mr_pool_begin(&c, at.x);
    int32_t v0 = top, u0 = left;
    while (v0 < 0) v0 += r.dilation;
    while (u0 < 0) u0 += c.dilation;
    T most = -(T)INFINITY;
    int64_t index = (int64_t)v0 * c.in + u0 + 1;
    for (int32_t a = 0; a < r.size; a++) {
        int32_t v = top + a * r.dilation;
        if (v < 0 || v >= r.in) continue;
        for (int32_t b = 0; b < c.size; b++) {
            int32_t u = left + b * c.dilation;
            if (u < 0 || u >= c.in) continue;
            T value = x[v * p.other_stride[2] + u * p.other_stride[3]];
            if (!(value > most) && value == value) continue;
            most = value;
            index = (int64_t)v * c.in + u + 1;
        }
    }
    uint32_t to = blockIdx.x * MR_CUDA_THREADS + threadIdx.x;
    ((T *)p.out)[to] = most;
    if (p.positions) p.positions[to] = index;
}

/* mr_pool_first and mr_pool_last, without their divisions by the stride. */
MR_DEVICE int32_t first_window(const mr_pool_line &l, const mr_cuda_divisor &stride, int32_t i) {
    if (l.adaptive) return mr_pool_first(&l, i);
    int32_t before = i + l.padding - (l.size - 1) * l.dilation;
    return before <= 0 ? 0 : (int32_t)quotient(stride, (uint32_t)before + stride.value - 1);
}
MR_DEVICE int32_t last_window(const mr_pool_line &l, const mr_cuda_divisor &stride, int32_t i) {
    if (l.adaptive) return mr_pool_last(&l, i);
    return min((int32_t)quotient(stride, (uint32_t)(i + l.padding)), l.out - 1);
}

template <class T> MR_DEVICE void max_pool_backward(const mr_cuda_pool &p) {
    place at = place_of(p);
    if (!at.exists) return;
    const T *gradient = (const T *)p.other + at.other;
    const int64_t *positions = p.positions + at.positions;
    int64_t own = (int64_t)at.y * p.columns.in + at.x + 1;
    int32_t last_row = last_window(p.rows, p.row_stride, at.y);
    int32_t first_column = first_window(p.columns, p.column_stride, at.x);
    int32_t last_column = last_window(p.columns, p.column_stride, at.x);
    double sum = 0;
    for (int32_t v = first_window(p.rows, p.row_stride, at.y); v <= last_row; v++)
        for (int32_t u = first_column; u <= last_column; u++)
            if (positions[v * p.positions_stride[2] + u * p.positions_stride[3]] == own)
                sum += (double)gradient[v * p.other_stride[2] + u * p.other_stride[3]];
    ((T *)p.out)[blockIdx.x * MR_CUDA_THREADS + threadIdx.x] = (T)sum;
}

template <class T> MR_DEVICE void avg_pool(const mr_cuda_pool &p) {
    place at = place_of(p);
    if (!at.exists) return;
    const T *x = (const T *)p.other + at.other;
    int32_t top = max(mr_pool_begin(&p.rows, at.y), 0), bottom = min(mr_pool_end(&p.rows, at.y), p.rows.in);
    int32_t left = max(mr_pool_begin(&p.columns, at.x), 0), right = min(mr_pool_end(&p.columns, at.x), p.columns.in);
    double sum = 0;
    for (int32_t v = top; v < bottom; v++)
        for (int32_t u = left; u < right; u++) sum += (double)x[v * p.other_stride[2] + u * p.other_stride[3]];
    double divisor = mr_pool_divisor(&p.rows, at.y, &p.columns, at.x, p.include_padding, p.divisor);
    ((T *)p.out)[blockIdx.x * MR_CUDA_THREADS + threadIdx.x] = (T)(sum / divisor);
}

template <class T> MR_DEVICE void avg_pool_backward(const mr_cuda_pool &p) {
    place at = place_of(p);
    if (!at.exists) return;
    const T *gradient = (const T *)p.other + at.other;
    int32_t last_row = last_window(p.rows, p.row_stride, at.y);
    int32_t first_column = first_window(p.columns, p.column_stride, at.x);
    int32_t last_column = last_window(p.columns, p.column_stride, at.x);
    double sum = 0;
    for (int32_t v = first_window(p.rows, p.row_stride, at.y); v <= last_row; v++)
        for (int32_t u = first_column; u <= last_column; u++)
            sum += (double)gradient[v * p.other_stride[2] + u * p.other_stride[3]] /
                   mr_pool_divisor(&p.rows, v, &p.columns, u, p.include_padding, p.divisor);
    ((T *)p.out)[blockIdx.x * MR_CUDA_THREADS + threadIdx.x] = (T)sum;
}

/* ------------------------------------------------------------------------- 2x2 windows side by side */

/* Windows of 2x2 that cover each element of the input once, all dense (family/pool.c decides). A thread takes two
 * neighbouring windows, so that it reads and writes whole vectors; `count` counts these pairs. */
struct pair_of_windows {
    uint32_t pair; /* its number: where it is in the tensors of outputs */
    int64_t top;   /* its first element of the input */
    int32_t own;   /* position of that element in its plane, from 1 */
    bool exists;
};

MR_DEVICE pair_of_windows pair_at(const mr_cuda_pool &p) {
    uint32_t pair = blockIdx.x * MR_CUDA_THREADS + threadIdx.x;
    uint32_t line = quotient(p.columns_made, pair), plane = quotient(p.rows_made, line);
    uint32_t y = 2 * (line - plane * p.rows_made.value), x = 4 * (pair - line * p.columns_made.value);
    uint32_t own = y * (uint32_t)p.columns.in + x;
    return {pair, (int64_t)plane * p.rows.in * p.columns.in + own, (int32_t)own + 1, pair < p.count};
}

/* The greater one, or the later NaN, as max_pool takes elements in turn. */
MR_DEVICE void take(float value, int32_t position, float &most, int32_t &index) {
    bool next = value > most || value != value;
    most = next ? value : most;
    index = next ? position : index;
}

MR_DEVICE void max_pool_halves(const mr_cuda_pool &p) {
    pair_of_windows at = pair_at(p);
    if (!at.exists) return;
    const float *x = (const float *)p.other + at.top;
    vector<float, 4> upper = load_vector<float, 4>(x, 0), lower = load_vector<float, 4>(x, (uint64_t)p.columns.in);
    vector<float, 2> most;
    vector<int64_t, 2> index;
#pragma unroll
    for (int w = 0; w < 2; w++) {
        float value = -INFINITY;
        int32_t own = at.own + 2 * w, position = own;
        take(upper.v[2 * w], own, value, position);
        take(upper.v[2 * w + 1], own + 1, value, position);
        take(lower.v[2 * w], own + p.columns.in, value, position);
        take(lower.v[2 * w + 1], own + p.columns.in + 1, value, position);
        most.v[w] = value;
        index.v[w] = position;
    }
    store_vector(p.out, (uint64_t)at.pair * 2, most);
    if (p.positions) store_vector(p.positions, (uint64_t)at.pair * 2, index);
}

MR_DEVICE void max_pool_backward_halves(const mr_cuda_pool &p) {
    pair_of_windows at = pair_at(p);
    if (!at.exists) return;
    vector<float, 2> gradient = load_vector<float, 2>(p.other, (uint64_t)at.pair * 2);
    vector<int64_t, 2> position = load_vector<int64_t, 2>(p.positions, (uint64_t)at.pair * 2);
    vector<float, 4> upper, lower;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        /* A sum of one term, to which 0 is added: of -0 it makes 0. */
        float g = gradient.v[e / 2] + 0.0f;
        int64_t own = at.own + e;
        upper.v[e] = position.v[e / 2] == own ? g : 0.0f;
        lower.v[e] = position.v[e / 2] == own + p.columns.in ? g : 0.0f;
    }
    float *out = (float *)p.out + at.top;
    store_vector(out, 0, upper);
    store_vector(out, (uint64_t)p.columns.in, lower);
}

extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)
    millrace_max_pool_halves_f32(const __grid_constant__ mr_cuda_pool p) {
    max_pool_halves(p);
}
extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)
    millrace_max_pool_backward_halves_f32(const __grid_constant__ mr_cuda_pool p) {
    max_pool_backward_halves(p);
}

/* ------------------------------------------------------------------------- the kernels */

#define POOL(name)                                                                                 \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_f32(const __grid_constant__ mr_cuda_pool p) {                            \
        name<float>(p);                                                                            \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_f64(const __grid_constant__ mr_cuda_pool p) {                            \
        name<double>(p);                                                                           \
    }
POOL(max_pool)
POOL(max_pool_backward)
POOL(avg_pool)
POOL(avg_pool_backward)
