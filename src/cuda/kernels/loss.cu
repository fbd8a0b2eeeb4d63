/* nll_loss and its gradient. A loss that is one number is made by one block, whose threads' sums, in double, are joined in
 * a fixed order. */
#include "cuda/kernels/device.cuh"

#include <assert.h>

/* The class of a position, from 0; -1: it does not count. */
MR_DEVICE int64_t class_of(const mr_cuda_loss &p, uint64_t position) {
    int64_t at = offset_of(p.shape, p.target_stride, position);
    int64_t value = p.wide ? ((const int64_t *)p.target)[at] : ((const int32_t *)p.target)[at];
    if (value == p.ignored) return -1;
    if ((uint64_t)value - 1 >= (uint64_t)p.classes) assert(!"a target is out of range");
    return value - 1;
}

template <class T> MR_DEVICE double weight_of(const mr_cuda_loss &p, int64_t cls) {
    if (cls < 0) return 0;
    return p.weight ? (double)((const T *)p.weight)[cls * p.weight_step] : 1.0;
}

template <class T> MR_DEVICE void add(const mr_cuda_loss &p, uint64_t position, double &loss, double &weight) {
    int64_t cls = class_of(p, position);
    if (cls < 0) return;
    double w = weight_of<T>(p, cls);
    loss -= w * (double)((const T *)p.x)[offset_of(p.shape, p.x_stride, position) + cls * p.class_step];
    weight += w;
}

template <class T> MR_DEVICE void each_loss(const mr_cuda_loss &p) {
    uint64_t position = thread_number();
    if (position >= p.count) return;
    double loss = 0, weight = 0;
    add<T>(p, position, loss, weight);
    ((T *)p.out)[position] = (T)loss;
}

template <class T> MR_DEVICE void one_loss(const mr_cuda_loss &p) {
    __shared__ double losses[MR_CUDA_THREADS], weights[MR_CUDA_THREADS];
    double loss = 0, weight = 0;
    for (uint64_t i = threadIdx.x; i < p.count; i += MR_CUDA_THREADS) add<T>(p, i, loss, weight);
    losses[threadIdx.x] = loss;
    weights[threadIdx.x] = weight;
    for (uint32_t half = MR_CUDA_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        losses[threadIdx.x] += losses[threadIdx.x + half];
        weights[threadIdx.x] += weights[threadIdx.x + half];
    }
    if (threadIdx.x > 0) return;
    *(T *)p.out = (T)(p.mean ? losses[0] / weights[0] : losses[0]);
    *(T *)p.total = (T)weights[0];
}

/* x is the result here; a thread makes one element of it: its class is the slowest dim of the grid. */
template <class T> MR_DEVICE void loss_backward(const mr_cuda_loss &p) {
    uint64_t number = thread_number();
    if (number >= p.count * (uint64_t)p.classes) return;
    uint64_t cls = number / p.count, position = number - cls * p.count;
    int64_t own = class_of(p, position);
    T *to = (T *)p.x + offset_of(p.shape, p.x_stride, position) + (int64_t)cls * p.class_step;
    if (own != (int64_t)cls) {
        *to = 0;
        return;
    }
    double g = (double)((const T *)p.gradient)[p.each ? offset_of(p.shape, p.gradient_stride, position) : 0];
    if (p.mean) g /= (double)*(const T *)p.total;
    *to = (T)(-weight_of<T>(p, own) * g);
}

#define LOSS(name)                                                                                 \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_f32(const __grid_constant__ mr_cuda_loss p) {                            \
        name<float>(p);                                                                            \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_f64(const __grid_constant__ mr_cuda_loss p) {                            \
        name<double>(p);                                                                           \
    }
LOSS(each_loss)
LOSS(one_loss)
LOSS(loss_backward)
