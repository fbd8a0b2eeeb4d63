// Variables of the module: constants, tables, counters, and memory that a kernel leaves for the next.
// kernel: polynomial
// kernel: count_calls
// kernel: read_calls
// kernel: remember
// kernel: recall

__constant__ float coefficients[4] = {1.0f, -0.5f, 0.25f, -0.125f};
__device__ int calls = 100;
__device__ unsigned long long total;
__device__ float remembered[256];
__device__ const unsigned char squares[8] = {0, 1, 4, 9, 16, 25, 36, 49};
__device__ int *const where = &calls;

extern "C" __global__ void polynomial(float *out, const float *in, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = in[i], sum = 0.0f;
    for (int k = 3; k >= 0; k--) sum = sum * x + coefficients[k];
    out[i] = sum;
}

extern "C" __global__ void count_calls(int by) {
    atomicAdd(where, by);
    atomicAdd(&total, (unsigned long long)squares[threadIdx.x % 8]);
}

extern "C" __global__ void read_calls(int *out_calls, unsigned long long *out_total) {
    *out_calls = calls;
    *out_total = total;
}

extern "C" __global__ void remember(const float *in) { remembered[threadIdx.x] = in[threadIdx.x]; }
extern "C" __global__ void recall(float *out) { out[threadIdx.x] = remembered[255 - threadIdx.x]; }
