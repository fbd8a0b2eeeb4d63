// Numbers of 16 bits: half, pairs of half, and bfloat16.
// kernel: half_axpy
// kernel: half2_axpy
// kernel: half_dot
// kernel: bfloat_axpy
// kernel: half_functions

#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half_axpy(__half *y, const __half *x, float a, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = __hfma(__float2half(a), x[i], y[i]);
}

extern "C" __global__ void half2_axpy(__half2 *y, const __half2 *x, float a, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pairs) y[i] = __hadd2(__hmul2(__float2half2_rn(a), x[i]), y[i]);
}

// One block of one warp; sums in float.
extern "C" __global__ void half_dot(float *out, const __half *a, const __half *b, int count) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += 32) sum += __half2float(a[i]) * __half2float(b[i]);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (threadIdx.x == 0) *out = sum;
}

extern "C" __global__ void bfloat_axpy(__nv_bfloat16 *y, const __nv_bfloat16 *x, float a, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = __float2bfloat16(a * __bfloat162float(x[i]) + __bfloat162float(y[i]));
}

// Six results for each pair of numbers.
extern "C" __global__ void half_functions(__half *out, const __half *a, const __half *b, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    out[6 * i] = a[i] + b[i];
    out[6 * i + 1] = a[i] - b[i];
    out[6 * i + 2] = a[i] * b[i];
    out[6 * i + 3] = a[i] / b[i];
    out[6 * i + 4] = __hlt(a[i], b[i]) ? __hneg(a[i]) : __habs(b[i]);
    out[6 * i + 5] = hsqrt(__habs(a[i]));
}
