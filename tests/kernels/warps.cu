// Functions of a warp: shuffles of each kind and type, votes, matches.
// kernel: shuffles
// kernel: shuffle_types
// kernel: votes
// kernel: matches
// kernel: compact

// Eight results a thread.
extern "C" __global__ void shuffles(int *out, const int *in) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, value = in[thread];
    int *mine = out + 8 * thread;
    mine[0] = __shfl_sync(0xffffffffu, value, 5);
    mine[1] = __shfl_sync(0xffffffffu, value, threadIdx.x + 3, 8);
    mine[2] = __shfl_up_sync(0xffffffffu, value, 3);
    mine[3] = __shfl_up_sync(0xffffffffu, value, 2, 16);
    mine[4] = __shfl_down_sync(0xffffffffu, value, 7);
    mine[5] = __shfl_down_sync(0xffffffffu, value, 1, 4);
    mine[6] = __shfl_xor_sync(0xffffffffu, value, 9);
    mine[7] = __shfl_xor_sync(0xffffffffu, value, 1, 2);
}

extern "C" __global__ void shuffle_types(double *d, long long *l, float *f, unsigned int *u) {
    int i = threadIdx.x;
    d[i] = __shfl_down_sync(0xffffffffu, d[i], 1);
    l[i] = __shfl_up_sync(0xffffffffu, l[i], 1);
    f[i] = __shfl_xor_sync(0xffffffffu, f[i], 16);
    u[i] = __shfl_sync(0xffffffffu, u[i], 31 - i);
}

// Four results a thread; the last one by those threads only that take the branch.
extern "C" __global__ void votes(unsigned int *out, const int *in) {
    int i = threadIdx.x;
    out[4 * i] = __ballot_sync(0xffffffffu, in[i] > 0);
    out[4 * i + 1] = __any_sync(0xffffffffu, in[i] > 100);
    out[4 * i + 2] = __all_sync(0xffffffffu, in[i] > -100);
    out[4 * i + 3] = 0;
    unsigned int odd = __ballot_sync(0xffffffffu, in[i] & 1);
    if (in[i] & 1) out[4 * i + 3] = __ballot_sync(odd, in[i] > 3);
}

extern "C" __global__ void matches(unsigned int *out, const int *in) {
    int i = threadIdx.x, is_same;
    out[3 * i] = __match_any_sync(0xffffffffu, in[i]);
    out[3 * i + 1] = __match_all_sync(0xffffffffu, in[i], &is_same);
    out[3 * i + 2] = is_same;
}

// Keeps the order of the elements that are not zero.
extern "C" __global__ void compact(int *out, int *kept, const int *in) {
    int lane = threadIdx.x, value = in[lane];
    unsigned int mask = __ballot_sync(0xffffffffu, value != 0);
    if (value != 0) out[__popc(mask & ((1u << lane) - 1))] = value;
    if (lane == 0) *kept = __popc(mask);
}
