// Prefix sums of one block: the simple form (inclusive), the work-efficient form (exclusive), and by warps.
// kernel: scan_inclusive
// kernel: scan_exclusive
// kernel: scan_warps

// Hillis and Steele: log2(n) rounds, each adds the element `step` places before. Two buffers, 2 * blockDim.x ints.
extern "C" __global__ void scan_inclusive(int *out, const int *in, int count) {
    extern __shared__ int buffer[];
    int thread = threadIdx.x, n = blockDim.x, from = 0, to = n;
    int i = blockIdx.x * n + thread;
    buffer[thread] = i < count ? in[i] : 0;
    __syncthreads();
    for (int step = 1; step < n; step *= 2) {
        int value = buffer[from + thread];
        if (thread >= step) value += buffer[from + thread - step];
        buffer[to + thread] = value;
        int swap = from;
        from = to;
        to = swap;
        __syncthreads();
    }
    if (i < count) out[i] = buffer[from + thread];
}

// Blelloch: a tree of sums upwards, then downwards. 2 * blockDim.x elements a block, a power of two.
extern "C" __global__ void scan_exclusive(int *out, const int *in, int *totals, int count) {
    extern __shared__ int tree[];
    int thread = threadIdx.x, n = 2 * blockDim.x, base = blockIdx.x * n, stride = 1;
    tree[2 * thread] = base + 2 * thread < count ? in[base + 2 * thread] : 0;
    tree[2 * thread + 1] = base + 2 * thread + 1 < count ? in[base + 2 * thread + 1] : 0;
    for (int active = n / 2; active > 0; active /= 2, stride *= 2) {
        __syncthreads();
        if (thread < active) tree[stride * (2 * thread + 2) - 1] += tree[stride * (2 * thread + 1) - 1];
    }
    if (thread == 0) {
        if (totals) totals[blockIdx.x] = tree[n - 1];
        tree[n - 1] = 0;
    }
    for (int active = 1; active < n; active *= 2) {
        stride /= 2;
        __syncthreads();
        if (thread < active) {
            int left = stride * (2 * thread + 1) - 1, right = stride * (2 * thread + 2) - 1;
            int before = tree[left];
            tree[left] = tree[right];
            tree[right] += before;
        }
    }
    __syncthreads();
    if (base + 2 * thread < count) out[base + 2 * thread] = tree[2 * thread];
    if (base + 2 * thread + 1 < count) out[base + 2 * thread + 1] = tree[2 * thread + 1];
}

__device__ int warp_scan(int value, int lane) {
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_up_sync(0xffffffffu, value, step);
        if (lane >= step) value += before;
    }
    return value;
}

// Inclusive. Blocks of a multiple of 32 threads.
extern "C" __global__ void scan_warps(int *out, const int *in, int count) {
    __shared__ int of_warp[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = warp_scan(i < count ? in[i] : 0, lane);
    if (lane == 31) of_warp[warp] = value;
    __syncthreads();
    if (warp == 0) of_warp[lane] = warp_scan(lane < blockDim.x / 32 ? of_warp[lane] : 0, lane);
    __syncthreads();
    if (warp > 0) value += of_warp[warp - 1];
    if (i < count) out[i] = value;
}
