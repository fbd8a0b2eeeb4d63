// The sum of an array in one kernel: the block that finishes last adds the partial sums.
// kernel: sum_all<128>

__device__ unsigned int finished;

template <int SIZE> __device__ float block_sum(float value) {
    __shared__ float values[SIZE];
    values[threadIdx.x] = value;
    __syncthreads();
    for (int step = SIZE / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) values[threadIdx.x] += values[threadIdx.x + step];
        __syncthreads();
    }
    float sum = values[0];
    __syncthreads();
    return sum;
}

template <int SIZE> __global__ void sum_all(float *out, volatile float *partial, const float *in, int count) {
    __shared__ bool is_last;
    float sum = 0.0f;
    for (int i = blockIdx.x * SIZE + threadIdx.x; i < count; i += gridDim.x * SIZE) sum += in[i];
    sum = block_sum<SIZE>(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    sum = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += SIZE) sum += partial[i];
    sum = block_sum<SIZE>(sum);
    if (threadIdx.x == 0) *out = sum;
}
