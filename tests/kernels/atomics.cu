// Each atomic function, on global and shared memory.
// kernel: atomics_int
// kernel: atomics_unsigned
// kernel: atomics_long
// kernel: atomics_float
// kernel: atomic_max_float
// kernel: spin_lock
// kernel: scopes

extern "C" __global__ void atomics_int(int *cells, const int *values) {
    int value = values[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&cells[0], value);
    atomicSub(&cells[1], value);
    atomicMin(&cells[2], value);
    atomicMax(&cells[3], value);
    atomicAnd(&cells[4], value);
    atomicOr(&cells[5], value);
    atomicXor(&cells[6], value);
    atomicExch(&cells[7], 77);
    atomicCAS(&cells[8], 0, 88);
}

extern "C" __global__ void atomics_unsigned(unsigned int *cells, const unsigned int *values) {
    __shared__ unsigned int shared[4];
    unsigned int value = values[blockIdx.x * blockDim.x + threadIdx.x];
    if (threadIdx.x < 4) shared[threadIdx.x] = threadIdx.x == 1 ? 0xffffffffu : 0;
    __syncthreads();
    atomicAdd(&shared[0], value);
    atomicMin(&shared[1], value);
    atomicMax(&shared[2], value);
    atomicInc(&shared[3], 9);
    __syncthreads();
    if (threadIdx.x < 4) atomicAdd(&cells[threadIdx.x], shared[threadIdx.x]);
    atomicInc(&cells[4], 9);
    atomicDec(&cells[5], 9);
}

extern "C" __global__ void atomics_long(unsigned long long *cells, const unsigned long long *values) {
    unsigned long long value = values[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&cells[0], value);
    atomicMin(&cells[1], value);
    atomicMax(&cells[2], value);
    atomicXor(&cells[3], value);
    atomicCAS(&cells[4], 0ull, 99ull);
}

extern "C" __global__ void atomics_float(float *f, double *d, const float *values) {
    float value = values[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(f, value);
    atomicAdd(d, (double)value);
}

// A maximum by comparing and swapping.
extern "C" __global__ void atomic_max_float(float *most, const float *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int *bits = (int *)most, old = *bits, expected;
    do {
        expected = old;
        if (__int_as_float(expected) >= values[i]) break;
        old = atomicCAS(bits, expected, __float_as_int(values[i]));
    } while (old != expected);
}

// The threads of a warp wait for each other: this needs threads that advance on their own.
extern "C" __global__ void spin_lock(int *lock, int *counter) {
    bool is_done = false;
    while (!is_done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *(volatile int *)counter = *(volatile int *)counter + 1;
            __threadfence();
            atomicExch(lock, 0);
            is_done = true;
        }
    }
}

extern "C" __global__ void scopes(int *cells) {
    atomicAdd_block(&cells[blockIdx.x], 1);
    __threadfence_block();
    atomicAdd_system(&cells[gridDim.x], 1);
    __threadfence_system();
}
