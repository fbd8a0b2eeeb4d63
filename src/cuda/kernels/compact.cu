/* nonzero and masked_select: what a condition chooses, in row-major order. Each block counts in its tile; each block then
 * adds up what is chosen before its tile, and writes. No more is written than the output has room for, and what is left
 * over becomes 0.
 *
 * Within a tile, positions are brought together in shared memory, so that neighbouring threads write neighbours. */
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/order_args.h"

enum { WARPS = MR_CUDA_THREADS / 32, ITEMS = MR_CUDA_COMPACT_TILE / MR_CUDA_THREADS };

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_##name(const __grid_constant__ mr_cuda_compact p)

/* ------------------------------------------------------------------------- the condition */

/* Where the elements of a thread begin, within its tile, that it loads as one vector of V: there are ITEMS / V such
 * rounds. Within a warp, all of a round come before all of the next. */
template <int V> MR_DEVICE uint32_t first_of_round(int round) {
    return threadIdx.x / 32 * (32 * ITEMS) + round * (32 * V) + threadIdx.x % 32 * V;
}

/* Bit j: element j of the round is chosen. T has the size of the condition's elements. */
template <class T, int V> MR_DEVICE uint32_t chosen_of(const mr_cuda_compact &p, uint64_t first) {
    const T *condition = (const T *)p.condition;
    T mask = (T)p.mask;
    uint32_t bits = 0;
    if (p.dense && first + V <= p.count) {
        vector<T, V> v = load_vector<T, V>(condition, first);
#pragma unroll
        for (int j = 0; j < V; j++) bits |= (uint32_t)((v.v[j] & mask) != 0) << j;
    } else {
#pragma unroll
        for (int j = 0; j < V; j++)
            if (first + j < p.count) bits |= (uint32_t)((condition[offset_of(p.shape, p.stride[0], first + j)] & mask) != 0) << j;
    }
    return bits;
}

/* ------------------------------------------------------------------------- sums */

template <class N> MR_DEVICE N sum_of_warp(N v) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step);
    return v;
}

template <class N> MR_DEVICE N sum_of_block(N v) {
    __shared__ N warps[WARPS];
    v = sum_of_warp(v);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    N sum = 0;
    for (uint32_t w = 0; w < WARPS; w++) sum += warps[w];
    return sum;
}

/* The sum of the lanes up to this one. */
MR_DEVICE uint32_t sum_up_to(uint32_t v) {
    uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(~0u, v, step);
        if (lane >= step) v += other;
    }
    return v;
}

template <class T> MR_DEVICE void count_chosen(const mr_cuda_compact &p) {
    constexpr int V = 16 / sizeof(T), ROUNDS = ITEMS / V;
    uint64_t tile = (uint64_t)blockIdx.x * MR_CUDA_COMPACT_TILE;
    uint32_t count = 0;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) count += __popc(chosen_of<T, V>(p, tile + first_of_round<V>(r)));
    count = sum_of_block(count);
    if (threadIdx.x == 0) p.counts[blockIdx.x] = count;
}
KERNEL(compact_count_1) { count_chosen<uint8_t>(p); }
KERNEL(compact_count_2) { count_chosen<uint16_t>(p); }
KERNEL(compact_count_4) { count_chosen<uint32_t>(p); }
KERNEL(compact_count_8) { count_chosen<uint64_t>(p); }

/* One block, where tiles are many: the counts become how many there are before each tile, and after them comes how many
 * there are. */
KERNEL(compact_scan) {
    enum { EACH = 8 };
    __shared__ uint64_t warps[WARPS];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t front = 0;
    for (uint64_t first = 0; first < p.tiles; first += EACH * MR_CUDA_THREADS) {
        uint64_t own[EACH], sum = 0, i = first + threadIdx.x * EACH;
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            own[u] = sum;
            if (i + u < p.tiles) sum += p.counts[i + u];
        }
        uint64_t up = sum;
        for (uint32_t step = 1; step < 32; step *= 2) {
            uint64_t other = __shfl_up_sync(~0u, up, step);
            if (lane >= step) up += other;
        }
        if (lane == 31) warps[warp] = up;
        __syncthreads();
        uint64_t before = front + up - sum;
        for (uint32_t w = 0; w < WARPS; w++) {
            if (w < warp) before += warps[w];
            front += warps[w];
        }
#pragma unroll
        for (int u = 0; u < EACH; u++)
            if (i + u < p.tiles) p.counts[i + u] = before + own[u];
        __syncthreads();
    }
    if (threadIdx.x == 0) p.counts[p.tiles] = front;
}

/* How many are chosen in the tiles before this one. */
MR_DEVICE uint64_t chosen_before(const mr_cuda_compact &p) {
    if (p.prefixes) return p.counts[blockIdx.x];
    uint64_t sum = 0;
    for (uint32_t i = threadIdx.x; i < blockIdx.x; i += MR_CUDA_THREADS) sum += p.counts[i];
    return sum_of_block(sum);
}

/* ------------------------------------------------------------------------- writing */

/* Element `to` of the output is what stands at position i. */
struct coordinates {
    MR_DEVICE_MEMBER void write(const mr_cuda_compact &p, uint64_t to, uint64_t i) {
        int64_t *row = (int64_t *)p.out + to * p.ndim;
        for (uint32_t d = p.ndim; d-- > 1;) {
            uint64_t rest = i / (uint64_t)p.size[d];
            row[d] = (int64_t)(i - rest * (uint64_t)p.size[d]) + 1;
            i = rest;
        }
        if (p.ndim > 0) row[0] = (int64_t)i + 1;
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

/* `at` gets the places of what the block's tile has; returns how many. */
template <class T> MR_DEVICE uint32_t gather_chosen(const mr_cuda_compact &p, uint16_t *at) {
    constexpr int V = 16 / sizeof(T), ROUNDS = ITEMS / V;
    __shared__ uint32_t warps[WARPS];
    uint64_t tile = (uint64_t)blockIdx.x * MR_CUDA_COMPACT_TILE;
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, bits[ROUNDS], to[ROUNDS], count = 0;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) bits[r] = chosen_of<T, V>(p, tile + first_of_round<V>(r));
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        uint32_t own = __popc(bits[r]), up = sum_up_to(own);
        to[r] = count + up - own;
        count += __shfl_sync(~0u, up, 31);
    }
    if (lane == 0) warps[warp] = count;
    __syncthreads();
    uint32_t before = 0, all = 0;
    for (uint32_t w = 0; w < WARPS; w++) {
        if (w < warp) before += warps[w];
        all += warps[w];
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        uint32_t next = before + to[r], first = first_of_round<V>(r);
#pragma unroll
        for (int j = 0; j < V; j++)
            if (bits[r] >> j & 1) at[next++] = (uint16_t)(first + j);
    }
    __syncthreads();
    return all;
}

template <class T, class W> MR_DEVICE void write_chosen(const mr_cuda_compact &p) {
    __shared__ uint16_t at[MR_CUDA_COMPACT_TILE];
    uint32_t count = gather_chosen<T>(p, at);
    uint64_t before = chosen_before(p), tile = (uint64_t)blockIdx.x * MR_CUDA_COMPACT_TILE;
    for (uint32_t i = threadIdx.x; i < count; i += MR_CUDA_THREADS)
        if (before + i < p.room) W::write(p, before + i, tile + at[i]);
    if (blockIdx.x + 1 < p.tiles) return;
    for (uint64_t i = before + count + threadIdx.x; i < p.room; i += MR_CUDA_THREADS) W::clear(p, i);
}
KERNEL(compact_positions_1) { write_chosen<uint8_t, coordinates>(p); }
KERNEL(compact_positions_2) { write_chosen<uint16_t, coordinates>(p); }
KERNEL(compact_positions_4) { write_chosen<uint32_t, coordinates>(p); }
KERNEL(compact_positions_8) { write_chosen<uint64_t, coordinates>(p); }
/* A mask is of bools. */
KERNEL(compact_1) { write_chosen<uint8_t, values<uint8_t>>(p); }
KERNEL(compact_2) { write_chosen<uint8_t, values<uint16_t>>(p); }
KERNEL(compact_4) { write_chosen<uint8_t, values<uint32_t>>(p); }
KERNEL(compact_8) { write_chosen<uint8_t, values<uint64_t>>(p); }
