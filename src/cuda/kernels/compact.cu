/* nonzero and masked_select: what a condition chooses, in row-major order. Each block counts in its tile; one block adds
 * the counts up; each block then knows where its elements go. No more is written than the output has room for, and what
 * is left over becomes 0. */
#include "cuda/kernels/device.cuh"

enum { WARPS = MR_CUDA_THREADS / 32, ITEMS = MR_CUDA_COMPACT_TILE / MR_CUDA_THREADS };

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_##name(const __grid_constant__ mr_cuda_compact p)

/* Of a NaN, as of all that is not 0, the double is not 0. */
MR_DEVICE bool is_chosen(const mr_cuda_compact &p, uint64_t i) {
    if (i >= p.count) return false;
    int64_t offset = offset_of(p.shape, p.stride[0], i);
    if (p.condition_dtype == DTYPE_I64) return ((const int64_t *)p.condition)[offset] != 0;
    return load_any<double>(p.condition, p.condition_dtype, offset) != 0;
}

/* A warp has neighbouring elements, 32 at a time. */
MR_DEVICE uint64_t first_of_warp() {
    return (uint64_t)blockIdx.x * MR_CUDA_COMPACT_TILE + threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
}

KERNEL(compact_count) {
    __shared__ uint32_t warps[WARPS];
    uint64_t first = first_of_warp();
    uint32_t count = 0;
    for (int u = 0; u < ITEMS; u++) count += __popc(__ballot_sync(~0u, is_chosen(p, first + u * 32)));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x > 0) return;
    uint64_t sum = 0;
    for (uint32_t w = 0; w < WARPS; w++) sum += warps[w];
    p.counts[blockIdx.x] = sum;
}

/* One block: the counts become how many there are before each tile, and behind them comes how many there are. */
KERNEL(compact_scan) {
    __shared__ uint64_t sums[MR_CUDA_THREADS];
    uint64_t front = 0;
    for (uint64_t first = 0; first < p.tiles; first += MR_CUDA_THREADS) {
        uint64_t i = first + threadIdx.x, v = i < p.tiles ? p.counts[i] : 0;
        sums[threadIdx.x] = v;
        __syncthreads();
        for (uint32_t step = 1; step < MR_CUDA_THREADS; step *= 2) {
            uint64_t other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
            __syncthreads();
            sums[threadIdx.x] += other;
            __syncthreads();
        }
        if (i < p.tiles) p.counts[i] = front + sums[threadIdx.x] - v;
        front += sums[MR_CUDA_THREADS - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0) p.counts[p.tiles] = front;
}

/* Element `to` of the output is what stands at position i. */
struct coordinates {
    MR_DEVICE_MEMBER void write(const mr_cuda_compact &p, uint64_t to, uint64_t i) {
        int64_t *row = (int64_t *)p.out + to * p.ndim;
        for (uint32_t d = p.ndim; d-- > 0;) {
            uint64_t rest = i / (uint64_t)p.size[d];
            row[d] = (int64_t)(i - rest * (uint64_t)p.size[d]) + 1;
            i = rest;
        }
    }
    MR_DEVICE_MEMBER void clear(const mr_cuda_compact &p, uint64_t to) {
        for (uint32_t d = 0; d < p.ndim; d++) ((int64_t *)p.out)[to * p.ndim + d] = 0;
    }
};
template <class T> struct values {
    MR_DEVICE_MEMBER void write(const mr_cuda_compact &p, uint64_t to, uint64_t i) {
        ((T *)p.out)[to] = ((const T *)p.in)[offset_of(p.shape, p.stride[1], i)];
    }
    MR_DEVICE_MEMBER void clear(const mr_cuda_compact &p, uint64_t to) { ((T *)p.out)[to] = 0; }
};

template <class W> MR_DEVICE void write_chosen(const mr_cuda_compact &p) {
    __shared__ uint32_t warps[WARPS];
    uint64_t first = first_of_warp();
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, chosen[ITEMS], count = 0;
    for (int u = 0; u < ITEMS; u++) {
        chosen[u] = __ballot_sync(~0u, is_chosen(p, first + u * 32));
        count += __popc(chosen[u]);
    }
    if (lane == 0) warps[warp] = count;
    __syncthreads();
    uint64_t to = p.counts[blockIdx.x];
    for (uint32_t w = 0; w < warp; w++) to += warps[w];
    for (int u = 0; u < ITEMS; u++) {
        uint64_t own = to + __popc(chosen[u] & ((1u << lane) - 1));
        if ((chosen[u] >> lane & 1) && own < p.room) W::write(p, own, first + u * 32);
        to += __popc(chosen[u]);
    }
    for (uint64_t i = p.counts[p.tiles] + thread_number(); i < p.room; i += thread_count()) W::clear(p, i);
}
KERNEL(compact_positions) { write_chosen<coordinates>(p); }
KERNEL(compact_1) { write_chosen<values<uint8_t>>(p); }
KERNEL(compact_2) { write_chosen<values<uint16_t>>(p); }
KERNEL(compact_4) { write_chosen<values<uint32_t>>(p); }
KERNEL(compact_8) { write_chosen<values<uint64_t>>(p); }
