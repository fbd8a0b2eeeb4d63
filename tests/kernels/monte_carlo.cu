// Pi from random points in a square. Each thread has its own linear congruential generator.
// kernel: count_inside

__device__ unsigned int next_random(unsigned long long *state) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned int)(*state >> 32);
}

__device__ float next_uniform(unsigned long long *state) {
    return (next_random(state) >> 8) * (1.0f / 16777216.0f);
}

extern "C" __global__ void count_inside(unsigned long long *inside, unsigned long long seed, int points) {
    unsigned long long state = seed + blockIdx.x * blockDim.x + threadIdx.x;
    next_random(&state);
    unsigned int count = 0;
    for (int i = 0; i < points; i++) {
        float x = next_uniform(&state), y = next_uniform(&state);
        if (x * x + y * y < 1.0f) count++;
    }
    atomicAdd(inside, (unsigned long long)count);
}
