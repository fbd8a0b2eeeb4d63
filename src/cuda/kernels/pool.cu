/* Pools and their gradients: a thread makes one element. The windows are those of the CPU bodies (ops/pool_window.h), and
 * sums are added in the same order, in double. */
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

template <class T> MR_DEVICE void max_pool_backward(const mr_cuda_pool &p) {
    place at = place_of(p);
    if (!at.exists) return;
    const T *gradient = (const T *)p.other + at.other;
    const int64_t *positions = p.positions + at.positions;
    int64_t own = (int64_t)at.y * p.columns.in + at.x + 1;
    int32_t last_row = mr_pool_last(&p.rows, at.y), last_column = mr_pool_last(&p.columns, at.x);
    double sum = 0;
    for (int32_t v = mr_pool_first(&p.rows, at.y); v <= last_row; v++)
        for (int32_t u = mr_pool_first(&p.columns, at.x); u <= last_column; u++)
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
    int32_t last_row = mr_pool_last(&p.rows, at.y), last_column = mr_pool_last(&p.columns, at.x);
    double sum = 0;
    for (int32_t v = mr_pool_first(&p.rows, at.y); v <= last_row; v++)
        for (int32_t u = mr_pool_first(&p.columns, at.x); u <= last_column; u++)
            sum += (double)gradient[v * p.other_stride[2] + u * p.other_stride[3]] /
                   mr_pool_divisor(&p.rows, v, &p.columns, u, p.include_padding, p.divisor);
    ((T *)p.out)[blockIdx.x * MR_CUDA_THREADS + threadIdx.x] = (T)sum;
}

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
