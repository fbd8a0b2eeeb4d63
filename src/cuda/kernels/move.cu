/* flip, roll, tril, triu: elements of the input at other places (ops/move.h), or 0. */
#include "cuda/kernels/device.cuh"

template <class T> MR_DEVICE T moved(const mr_cuda_move &p, uint64_t position) {
    int64_t offset = p.offset, index[2] = {0, 0};
    for (uint32_t d = 0; d < p.ndim; d++) {
        uint64_t rest = position / (uint64_t)p.size[d];
        int64_t i = (int64_t)(position - rest * (uint64_t)p.size[d]);
        position = rest;
        if (d < 2) index[d] = i;
        if ((int)d == p.rolled) i = i < p.shift ? i - p.shift + p.size[d] : i - p.shift;
        offset += i * p.stride[d];
    }
    /* The dims are in reverse: column, row. */
    if (p.band < 0 && index[0] - index[1] > p.diagonal) return T();
    if (p.band > 0 && index[0] - index[1] < p.diagonal) return T();
    return ((const T *)p.in)[offset];
}

template <class T> MR_DEVICE void move(const mr_cuda_move &p) {
    constexpr int ITEMS = MR_CUDA_STRIDED / MR_CUDA_THREADS;
    uint64_t first = (uint64_t)blockIdx.x * MR_CUDA_STRIDED + threadIdx.x;
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint64_t i = first + u * MR_CUDA_THREADS;
        if (i < p.count) ((T *)p.out)[offset_of(p.out_shape, p.out_stride, i)] = moved<T>(p, i);
    }
}

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_##name(const __grid_constant__ mr_cuda_move p)
KERNEL(move_1) { move<uint8_t>(p); }
KERNEL(move_2) { move<uint16_t>(p); }
KERNEL(move_4) { move<uint32_t>(p); }
KERNEL(move_8) { move<uint64_t>(p); }
