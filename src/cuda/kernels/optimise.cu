/* Steps of optimisers: one launch for up to MR_CUDA_STEP_TENSORS parameters. A block makes MR_CUDA_STEP_BLOCK elements of
 * one of them. */
#include "cuda/kernels/device.cuh"
#include "ops/table.h"

#define inline inline __device__
#include "ops/step.h"
#undef inline

/* The parameter that a block is for: the first one whose last block is after it. */
MR_DEVICE uint32_t parameter_of(const mr_cuda_step &a, uint32_t block) {
    uint32_t low = 0, high = a.count - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (a.end[middle] > block) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* STEP(numbers, flags, &p, g, &s0, &s1) makes one element. */
template <class T, int STATES, class STEP> MR_DEVICE void optimise(const mr_cuda_step &a, STEP step) {
    constexpr int V = 16 / sizeof(T);
    uint32_t i = parameter_of(a, blockIdx.x);
    uint64_t first = (uint64_t)(blockIdx.x - (i ? a.end[i - 1] : 0)) * MR_CUDA_STEP_BLOCK;
    T number[8];
    for (int k = 0; k < 8; k++) number[k] = (T)a.number[k];
    T *p = (T *)a.p[i] + first, *s0 = (T *)a.s0[i] + (STATES > 0 ? first : 0), *s1 = (T *)a.s1[i] + (STATES > 1 ? first : 0);
    const T *g = (const T *)a.g[i] + first;
    uint64_t left = a.numel[i] - first;
    uint32_t count = left < MR_CUDA_STEP_BLOCK ? (uint32_t)left : MR_CUDA_STEP_BLOCK;
    T none0 = 0, none1 = 0;
    if (a.aligned >> i & 1 && count == MR_CUDA_STEP_BLOCK) {
        for (uint32_t e = threadIdx.x * V; e < MR_CUDA_STEP_BLOCK; e += MR_CUDA_THREADS * V) {
            vector<T, V> vp = load_vector<T, V>(p, e), vg = load_vector<T, V>(g, e), v0, v1;
            if (STATES > 0) v0 = load_vector<T, V>(s0, e);
            if (STATES > 1) v1 = load_vector<T, V>(s1, e);
#pragma unroll
            for (int k = 0; k < V; k++)
                step(number, a.flags, &vp.v[k], vg.v[k], STATES > 0 ? &v0.v[k] : &none0, STATES > 1 ? &v1.v[k] : &none1);
            store_vector<T, V>(p, e, vp);
            if (STATES > 0) store_vector<T, V>(s0, e, v0);
            if (STATES > 1) store_vector<T, V>(s1, e, v1);
        }
        return;
    }
    for (uint32_t e = threadIdx.x; e < count; e += MR_CUDA_THREADS)
        step(number, a.flags, &p[e], g[e], STATES > 0 ? &s0[e] : &none0, STATES > 1 ? &s1[e] : &none1);
}

#define KERNEL(name, states, tag, T_)                                                              \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_##name##_##tag(const __grid_constant__ mr_cuda_step a) { \
        optimise<T_, states>(a, [](const T_ *n, uint32_t flags, T_ *p, T_ g, T_ *s0, T_ *s1) {     \
            mr_##name##_##tag(n, flags, p, g, s0, s1);                                             \
        });                                                                                        \
    }
#define X(name, states, ...) KERNEL(name, states, f32, float) KERNEL(name, states, f64, double)
MR_OPTIMISE_TABLE(X)
