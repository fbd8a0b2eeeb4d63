// Sorts the unsigned integers of one block by their bits, from the lowest: a split by each bit, which keeps the order.
// kernel: radix_sort_block
// kernel: count_digits
// kernel: scatter_digits

__device__ unsigned int count_before(unsigned int *sums, bool flag, unsigned int *total) {
    unsigned int thread = threadIdx.x, size = blockDim.x;
    sums[thread] = flag;
    __syncthreads();
    for (unsigned int step = 1; step < size; step *= 2) {
        unsigned int value = thread >= step ? sums[thread - step] : 0;
        __syncthreads();
        sums[thread] += value;
        __syncthreads();
    }
    *total = sums[size - 1];
    unsigned int before = sums[thread] - flag;
    __syncthreads();
    return before;
}

// Two arrays of blockDim.x integers in shared memory.
extern "C" __global__ void radix_sort_block(unsigned int *values) {
    extern __shared__ unsigned int shared[];
    unsigned int *keys = shared, *sums = shared + blockDim.x, thread = threadIdx.x;
    keys[thread] = values[blockIdx.x * blockDim.x + thread];
    __syncthreads();
    for (int bit = 0; bit < 32; bit++) {
        unsigned int key = keys[thread], zeros;
        bool is_one = key >> bit & 1;
        unsigned int zeros_before = count_before(sums, !is_one, &zeros);
        unsigned int to = is_one ? zeros + thread - zeros_before : zeros_before;
        keys[to] = key;
        __syncthreads();
    }
    values[blockIdx.x * blockDim.x + thread] = keys[thread];
}

// One pass over digits of 4 bits: how often each digit occurs in each block, then (after a scan of the counts by digit)
// where each element goes. One warp a block.
extern "C" __global__ void count_digits(unsigned int *counts, const unsigned int *keys, int count, int shift) {
    __shared__ unsigned int of_block[16];
    if (threadIdx.x < 16) of_block[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&of_block[keys[i] >> shift & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = of_block[threadIdx.x];
}

extern "C" __global__ void scatter_digits(unsigned int *out, const unsigned int *keys, const unsigned int *starts, int count,
                                          int shift) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x;
    unsigned int active = __ballot_sync(0xffffffffu, i < count);
    if (i >= count) return;
    unsigned int key = keys[i], digit = key >> shift & 15;
    unsigned int same = __match_any_sync(active, digit);
    unsigned int rank = __popc(same & ((1u << lane) - 1));
    out[starts[digit * gridDim.x + blockIdx.x] + rank] = key;
}
