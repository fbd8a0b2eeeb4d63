// Seven ways to add up an array, from the simplest to the fastest. Each block writes one partial sum.
// kernel: reduce_divergent
// kernel: reduce_strided
// kernel: reduce_sequential
// kernel: reduce_first_add
// kernel: reduce_last_warp
// kernel: reduce_unrolled<128>
// kernel: reduce_unrolled<256>
// kernel: reduce_grid_stride<256>
// kernel: reduce_shuffle

// 1. Every second thread works, then every fourth, ...: each warp stays busy and takes both branches.
extern "C" __global__ void reduce_divergent(float *partial, const float *in, int count) {
    extern __shared__ float values[];
    int thread = threadIdx.x, i = blockIdx.x * blockDim.x + thread;
    values[thread] = i < count ? in[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        if (thread % (2 * step) == 0) values[thread] += values[thread + step];
        __syncthreads();
    }
    if (thread == 0) partial[blockIdx.x] = values[0];
}

// 2. The first threads work, on elements far apart: no divergence, but conflicts of banks.
extern "C" __global__ void reduce_strided(float *partial, const float *in, int count) {
    extern __shared__ float values[];
    int thread = threadIdx.x, i = blockIdx.x * blockDim.x + thread;
    values[thread] = i < count ? in[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        int at = 2 * step * thread;
        if (at < blockDim.x) values[at] += values[at + step];
        __syncthreads();
    }
    if (thread == 0) partial[blockIdx.x] = values[0];
}

// 3. Neighbouring threads use neighbouring elements.
extern "C" __global__ void reduce_sequential(float *partial, const float *in, int count) {
    extern __shared__ float values[];
    int thread = threadIdx.x, i = blockIdx.x * blockDim.x + thread;
    values[thread] = i < count ? in[i] : 0.0f;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (thread < step) values[thread] += values[thread + step];
        __syncthreads();
    }
    if (thread == 0) partial[blockIdx.x] = values[0];
}

// 4. The first addition happens while the data is read.
extern "C" __global__ void reduce_first_add(float *partial, const float *in, int count) {
    extern __shared__ float values[];
    int thread = threadIdx.x, i = blockIdx.x * (blockDim.x * 2) + thread;
    float sum = i < count ? in[i] : 0.0f;
    if (i + blockDim.x < count) sum += in[i + blockDim.x];
    values[thread] = sum;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (thread < step) values[thread] += values[thread + step];
        __syncthreads();
    }
    if (thread == 0) partial[blockIdx.x] = values[0];
}

__device__ void add_last_warp(volatile float *values, int thread) {
    for (int step = 32; step > 0; step /= 2) {
        float sum = values[thread] + values[thread + step];
        __syncwarp();
        values[thread] = sum;
        __syncwarp();
    }
}

// 5. The last 64 elements belong to one warp, which needs no barrier of the block. Blocks of at least 64 threads.
extern "C" __global__ void reduce_last_warp(float *partial, const float *in, int count) {
    extern __shared__ float values[];
    int thread = threadIdx.x, i = blockIdx.x * (blockDim.x * 2) + thread;
    float sum = i < count ? in[i] : 0.0f;
    if (i + blockDim.x < count) sum += in[i + blockDim.x];
    values[thread] = sum;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 32; step /= 2) {
        if (thread < step) values[thread] += values[thread + step];
        __syncthreads();
    }
    if (thread < 32) add_last_warp(values, thread);
    if (thread == 0) partial[blockIdx.x] = values[0];
}

template <int block_size> __device__ void add_block(float *values, int thread) {
    if (block_size >= 512) {
        if (thread < 256) values[thread] += values[thread + 256];
        __syncthreads();
    }
    if (block_size >= 256) {
        if (thread < 128) values[thread] += values[thread + 128];
        __syncthreads();
    }
    if (block_size >= 128) {
        if (thread < 64) values[thread] += values[thread + 64];
        __syncthreads();
    }
    if (thread < 32) add_last_warp(values, thread);
}

// 6. The size of a block is known to the compiler, so no loop is left.
template <int block_size> __global__ void reduce_unrolled(float *partial, const float *in, int count) {
    __shared__ float values[block_size];
    int thread = threadIdx.x, i = blockIdx.x * (block_size * 2) + thread;
    float sum = i < count ? in[i] : 0.0f;
    if (i + block_size < count) sum += in[i + block_size];
    values[thread] = sum;
    __syncthreads();
    add_block<block_size>(values, thread);
    if (thread == 0) partial[blockIdx.x] = values[0];
}

// 7. Each thread adds many elements before the threads add theirs.
template <int block_size> __global__ void reduce_grid_stride(float *partial, const float *in, int count) {
    __shared__ float values[block_size];
    int thread = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * block_size + thread; i < count; i += gridDim.x * block_size) sum += in[i];
    values[thread] = sum;
    __syncthreads();
    add_block<block_size>(values, thread);
    if (thread == 0) partial[blockIdx.x] = values[0];
}

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

// And with shuffles: a warp adds in registers. Blocks of a multiple of 32 threads.
extern "C" __global__ void reduce_shuffle(float *partial, const float *in, int count) {
    __shared__ float of_warp[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) sum += in[i];
    sum = warp_sum(sum);
    if (lane == 0) of_warp[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < blockDim.x / 32 ? of_warp[lane] : 0.0f);
        if (lane == 0) partial[blockIdx.x] = sum;
    }
}
