// Bitonic sort: one block in shared memory, and one step of a sort across blocks.
// kernel: bitonic_block
// kernel: bitonic_step

// Sorts blockDim.x floats, a power of two, upwards.
extern "C" __global__ void bitonic_block(float *values) {
    extern __shared__ float part[];
    unsigned int thread = threadIdx.x;
    part[thread] = values[blockIdx.x * blockDim.x + thread];
    __syncthreads();
    for (unsigned int size = 2; size <= blockDim.x; size *= 2) {
        for (unsigned int distance = size / 2; distance > 0; distance /= 2) {
            unsigned int partner = thread ^ distance;
            if (partner > thread) {
                bool upwards = (thread & size) == 0;
                float a = part[thread], b = part[partner];
                if ((a > b) == upwards) {
                    part[thread] = b;
                    part[partner] = a;
                }
            }
            __syncthreads();
        }
    }
    values[blockIdx.x * blockDim.x + thread] = part[thread];
}

extern "C" __global__ void bitonic_step(int *values, unsigned int distance, unsigned int size) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, partner = i ^ distance;
    if (partner <= i) return;
    int a = values[i], b = values[partner];
    values[i] = (i & size) == 0 ? min(a, b) : max(a, b);
    values[partner] = (i & size) == 0 ? max(a, b) : min(a, b);
}
