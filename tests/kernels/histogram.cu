// Counts of the 256 values of a byte.
// kernel: histogram_global
// kernel: histogram_shared

extern "C" __global__ void histogram_global(unsigned int *counts, const unsigned char *data, int size) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
        atomicAdd(&counts[data[i]], 1u);
}

// Each block counts in shared memory first.
extern "C" __global__ void histogram_shared(unsigned int *counts, const unsigned char *data, int size) {
    __shared__ unsigned int of_block[256];
    for (int value = threadIdx.x; value < 256; value += blockDim.x) of_block[value] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
        atomicAdd(&of_block[data[i]], 1u);
    __syncthreads();
    for (int value = threadIdx.x; value < 256; value += blockDim.x)
        if (of_block[value]) atomicAdd(&counts[value], of_block[value]);
}
