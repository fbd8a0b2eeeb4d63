/* A stable sort of positions by keys, digit by digit of 8 bits, the least significant first. A pass has three kernels:
 * each block counts the digits of its tile; the counts of each digit are added up over the tiles; each block finds out
 * where its elements go, and moves them. Nobody waits for another block, and nothing depends on the order in which
 * blocks run.
 *
 * Around it, for the rows sort, argsort and topk: keys from elements, and results from positions. */
#include "cuda/kernels/device.cuh"

enum { DIGITS = 256, WARPS = MR_CUDA_THREADS / 32, ITEMS = MR_CUDA_SORT_TILE / MR_CUDA_THREADS };

#define KERNEL(name, args) extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_##name(const __grid_constant__ args p)

/* ------------------------------------------------------------------------- a pass */

/* The digit of element i: of its key, or of the line that its position is in. */
template <class K> MR_DEVICE uint32_t digit_of(const mr_cuda_radix &p, uint64_t i) {
    if (p.line_length) return (p.positions_in[i] / p.line_length) >> p.shift & (DIGITS - 1);
    return (uint32_t)(((const K *)p.keys_in)[i] >> p.shift) & (DIGITS - 1);
}

template <class K> MR_DEVICE void count_digits(const mr_cuda_radix &p) {
    __shared__ uint32_t counts[DIGITS];
    counts[threadIdx.x] = 0;
    __syncthreads();
    uint64_t first = (uint64_t)blockIdx.x * MR_CUDA_SORT_TILE + threadIdx.x;
    for (int u = 0; u < ITEMS; u++) {
        uint64_t i = first + u * MR_CUDA_THREADS;
        if (i < p.count) atomicAdd(&counts[digit_of<K>(p, i)], 1u);
    }
    __syncthreads();
    p.counts[(uint64_t)threadIdx.x * p.tiles + blockIdx.x] = counts[threadIdx.x];
}
KERNEL(radix_count_u32, mr_cuda_radix) { count_digits<uint32_t>(p); }
KERNEL(radix_count_u64, mr_cuda_radix) { count_digits<uint64_t>(p); }

/* The sum of `v` over the threads of the block before this one, and in *total that of all. */
MR_DEVICE uint32_t block_prefix(uint32_t v, uint32_t *total) {
    __shared__ uint32_t warps[WARPS];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = v;
    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    __syncthreads(); /* of a call before this one */
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    uint32_t before = 0, all = 0;
    for (uint32_t w = 0; w < WARPS; w++) {
        if (w < warp) before += warps[w];
        all += warps[w];
    }
    *total = all;
    return before + sum - v;
}

/* A block for each digit: the counts of the tiles become how many there are before each tile. */
KERNEL(radix_scan, mr_cuda_radix) {
    uint32_t *counts = p.counts + (uint64_t)blockIdx.x * p.tiles, before = 0;
    for (uint32_t first = 0; first < p.tiles; first += MR_CUDA_THREADS) {
        uint32_t i = first + threadIdx.x, total, v = i < p.tiles ? counts[i] : 0;
        uint32_t prefix = block_prefix(v, &total);
        if (i < p.tiles) counts[i] = before + prefix;
        before += total;
    }
    if (threadIdx.x == 0) p.totals[blockIdx.x] = before;
}

/* The lanes that have the same digit as this one, among those in `mask`. */
MR_DEVICE uint32_t lanes_with(uint32_t digit, uint32_t mask) {
    uint32_t same = mask;
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        uint32_t set = __ballot_sync(~0u, digit >> bit & 1);
        same &= digit >> bit & 1 ? set : ~set;
    }
    return same;
}

/* A warp has neighbouring elements, 32 at a time, so that the order of equal digits is that in memory. */
template <class K> MR_DEVICE void move_digits(const mr_cuda_radix &p) {
    __shared__ uint32_t place[WARPS][DIGITS];
    uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, digit[ITEMS], rank[ITEMS];
    for (uint32_t w = 0; w < WARPS; w++) place[w][threadIdx.x] = 0;
    __syncthreads();
    uint64_t first = (uint64_t)blockIdx.x * MR_CUDA_SORT_TILE + warp * (32 * ITEMS) + lane;
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint64_t i = first + u * 32;
        bool there = i < p.count;
        digit[u] = there ? digit_of<K>(p, i) : 0;
        uint32_t same = lanes_with(digit[u], __ballot_sync(~0u, there));
        rank[u] = place[warp][digit[u]] + __popc(same & ((1u << lane) - 1));
        __syncwarp();
        if (there && (same >> lane) == 1) place[warp][digit[u]] = rank[u] + 1; /* the last of them */
        __syncwarp();
    }
    __syncthreads();
    uint32_t total, d = threadIdx.x;
    uint32_t next = block_prefix(p.totals[d], &total) + p.counts[(uint64_t)d * p.tiles + blockIdx.x];
    for (uint32_t w = 0; w < WARPS; w++) {
        uint32_t own = place[w][d];
        place[w][d] = next;
        next += own;
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint64_t i = first + u * 32;
        if (i >= p.count) continue;
        uint32_t to = place[warp][digit[u]] + rank[u];
        p.positions_out[to] = p.positions_in[i];
        if (!p.line_length) ((K *)p.keys_out)[to] = ((const K *)p.keys_in)[i];
    }
}
KERNEL(radix_move_u32, mr_cuda_radix) { move_digits<uint32_t>(p); }
KERNEL(radix_move_u64, mr_cuda_radix) { move_digits<uint64_t>(p); }

/* ------------------------------------------------------------------------- elements */

/* A number whose unsigned order is that of the elements: ops/sort.c has the same. NaN is the greatest, whatever its
 * sign, and -0 is 0. */
MR_DEVICE uint32_t key_of(uint8_t v) { return v; }
MR_DEVICE uint32_t key_of(int32_t v) { return (uint32_t)v ^ 0x80000000u; }
MR_DEVICE uint64_t key_of(int64_t v) { return (uint64_t)v ^ 0x8000000000000000u; }
MR_DEVICE uint32_t key_of(float v) {
    uint32_t bits = v == 0 ? 0 : mr_bits_f32(v);
    return v != v ? ~0u : bits >> 31 ? ~bits : bits | 0x80000000u;
}
MR_DEVICE uint64_t key_of(double v) {
    uint64_t bits = v == 0 ? 0 : mr_bits_f64(v);
    return v != v ? ~0ull : bits >> 63 ? ~bits : bits | 0x8000000000000000u;
}
/* Halves as bits: `infinite` are those of infinity, above which are those of NaN. */
template <uint32_t infinite> struct half {
    uint16_t bits;
};
template <uint32_t infinite> MR_DEVICE uint32_t key_of(half<infinite> v) {
    uint32_t size = v.bits & 0x7fff, bits = size ? v.bits : 0;
    return size > infinite ? 0xffff : bits >> 15 ? ~bits & 0xffff : bits | 0x8000;
}

template <class T, class K> MR_DEVICE void sort_keys(const mr_cuda_order &p) {
    for (uint64_t i = thread_number(); i < p.count; i += thread_count()) {
        uint64_t line = i / p.length, j = i - line * p.length;
        K key = key_of(((const T *)p.in)[offset_of(p.kept, p.stride[0], line) + (int64_t)j * p.step[0]]);
        ((K *)p.keys)[i] = p.descending ? (K)~key : key;
        p.positions[i] = (uint32_t)i;
    }
}
KERNEL(sort_keys_u8, mr_cuda_order) { sort_keys<uint8_t, uint32_t>(p); }
KERNEL(sort_keys_i32, mr_cuda_order) { sort_keys<int32_t, uint32_t>(p); }
KERNEL(sort_keys_i64, mr_cuda_order) { sort_keys<int64_t, uint64_t>(p); }
KERNEL(sort_keys_f32, mr_cuda_order) { sort_keys<float, uint32_t>(p); }
KERNEL(sort_keys_f64, mr_cuda_order) { sort_keys<double, uint64_t>(p); }
KERNEL(sort_keys_f16, mr_cuda_order) { sort_keys<half<0x7c00>, uint32_t>(p); }
KERNEL(sort_keys_bf16, mr_cuda_order) { sort_keys<half<0x7f80>, uint32_t>(p); }
KERNEL(sort_keys_b8, mr_cuda_order) { sort_keys<uint8_t, uint32_t>(p); }

/* The first `taken` of each line. A result that nobody wants is NULL. */
template <class T> MR_DEVICE void sort_results(const mr_cuda_order &p) {
    for (uint64_t i = thread_number(); i < p.lines * p.taken; i += thread_count()) {
        uint64_t line = i / p.taken, j = i - line * p.taken;
        uint64_t from = p.positions[line * p.length + j] - line * p.length;
        if (p.values)
            ((T *)p.values)[offset_of(p.kept, p.stride[1], line) + (int64_t)j * p.step[1]] =
                ((const T *)p.in)[offset_of(p.kept, p.stride[0], line) + (int64_t)from * p.step[0]];
        p.order[offset_of(p.kept, p.stride[2], line) + (int64_t)j * p.step[2]] = (int64_t)from + 1;
    }
}
KERNEL(sort_results_1, mr_cuda_order) { sort_results<uint8_t>(p); }
KERNEL(sort_results_2, mr_cuda_order) { sort_results<uint16_t>(p); }
KERNEL(sort_results_4, mr_cuda_order) { sort_results<uint32_t>(p); }
KERNEL(sort_results_8, mr_cuda_order) { sort_results<uint64_t>(p); }
