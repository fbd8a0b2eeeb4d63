/* topk of long lines: the few that are taken are found before they are sorted (kernels/sort.cu). The digits of the last
 * key that is taken are found one after the other, the highest first. Among the keys that begin with the known digits,
 * a pass counts the next digits. It takes the digit at which enough keys are counted. Then the positions of all keys
 * below it are collected, and after them those of as many keys like it as are still missing: the first ones.
 *
 * Positions are in order on both sides, so a stable sort of them gives what a stable sort of the line gives. */
#include "cuda/kernels/order.cuh"

enum { DIGITS = MR_CUDA_DIGITS, TILE = MR_CUDA_SORT_TILE, ITEMS = TILE / MR_CUDA_THREADS };

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_##name(const __grid_constant__ mr_cuda_select p)

/* Keys of a thread in a tile of a line: element u is at first + u * 32. */
template <class Key> struct tile_keys {
    uint64_t line, tile, first;
    typename Key::K key[ITEMS];
    __device__ __forceinline__ tile_keys(const mr_cuda_select &p) {
        line = blockIdx.x / p.order.tiles;
        tile = blockIdx.x - line * p.order.tiles;
        first = tile * TILE + threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
    }
    __device__ __forceinline__ void load(const mr_cuda_select &p) {
        const mr_cuda_order &o = p.order;
        typename Key::K mask = o.bits < 8 * sizeof mask ? ((typename Key::K)1 << o.bits) - 1 : ~(typename Key::K)0;
        int64_t in = offset_of(o.kept, o.stride[0], line);
#pragma unroll
        for (int u = 0; u < ITEMS; u++)
            key[u] = there(p, u) ? key_at<Key>(o, in + (int64_t)(first + u * 32) * o.step[0]) & mask : 0;
    }
    __device__ __forceinline__ bool there(const mr_cuda_select &p, int u) const { return first + u * 32 < p.order.length; }
};

/* The digits at `shift`, of the keys whose higher digits are those of the last one. */
template <class Key> MR_DEVICE void select_count(const mr_cuda_select &p) {
    __shared__ uint32_t counts[DIGITS];
    tile_keys<Key> k(p);
    uint32_t higher = p.shift + MR_CUDA_DIGIT_BITS;
    bool all = higher >= p.order.bits;
    typename Key::K known = all ? 0 : (typename Key::K)p.last[k.line].key >> higher;
    k.load(p);
    counts[threadIdx.x] = 0;
    __syncthreads();
    digit_counter counter = digit_counter::begin(counts);
#pragma unroll
    for (int u = 0; u < ITEMS; u++)
        if (k.there(p, u) && (all || k.key[u] >> higher == known)) counter.add((uint32_t)(k.key[u] >> p.shift) & (DIGITS - 1));
    counter.end();
    __syncthreads();
    uint32_t own = counts[threadIdx.x];
    if (own) atomicAdd(&p.digits[k.line * DIGITS + threadIdx.x], own);
}

/* A block for each line: the next digit of the last key. */
KERNEL(select_digit) {
    mr_cuda_last *last = &p.last[blockIdx.x];
    uint32_t *count = &p.digits[(uint64_t)blockIdx.x * DIGITS + threadIdx.x], own = *count, all;
    bool first = p.shift + MR_CUDA_DIGIT_BITS >= p.order.bits;
    uint32_t left = first ? (uint32_t)p.order.taken : last->left;
    uint64_t key = first ? 0 : last->key;
    uint32_t before = block_prefix(own, &all); /* after this, all threads have read `last` */
    *count = 0;
    if (before < left && before + own >= left) {
        last->key = key | (uint64_t)threadIdx.x << p.shift;
        last->left = left - before;
    }
}

/* How many keys of a tile are below the last one, and how many are like it. */
template <class Key> MR_DEVICE void select_tally(const mr_cuda_select &p) {
    __shared__ uint32_t sums[2];
    tile_keys<Key> k(p);
    typename Key::K last = (typename Key::K)p.last[k.line].key;
    uint32_t below = 0, like = 0;
    k.load(p);
    if (threadIdx.x < 2) sums[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        below += __popc(__ballot_sync(~0u, k.there(p, u) && k.key[u] < last));
        like += __popc(__ballot_sync(~0u, k.there(p, u) && k.key[u] == last));
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&sums[0], below);
        atomicAdd(&sums[1], like);
    }
    __syncthreads();
    if (threadIdx.x < 2) p.counts[(k.line * 2 + threadIdx.x) * p.order.tiles + k.tile] = sums[threadIdx.x];
}

/* After a scan of the counts (radix_scan). */
template <class Key> MR_DEVICE void select_write(const mr_cuda_select &p) {
    __shared__ uint32_t warps[2][ORDER_WARPS];
    tile_keys<Key> k(p);
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, bits[2][ITEMS], count[2] = {0, 0};
    typename Key::K last = (typename Key::K)p.last[k.line].key;
    uint32_t left = p.last[k.line].left, taken = (uint32_t)p.order.taken;
    uint32_t base[2], end[2];
    for (int kind = 0; kind < 2; kind++) {
        const uint32_t *counts = p.counts + (k.line * 2 + kind) * p.order.tiles + k.tile;
        base[kind] = counts[0];
        end[kind] = k.tile + 1 < p.order.tiles ? counts[1] : p.totals[k.line * 2 + kind];
    }
    if (base[0] == end[0] && (base[1] == end[1] || base[1] >= left)) return; /* nothing of this tile is taken */
    k.load(p);
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        bits[0][u] = __ballot_sync(~0u, k.there(p, u) && k.key[u] < last);
        bits[1][u] = __ballot_sync(~0u, k.there(p, u) && k.key[u] == last);
        count[0] += __popc(bits[0][u]);
        count[1] += __popc(bits[1][u]);
    }
    if (lane < 2) warps[lane][warp] = count[lane];
    __syncthreads();
    for (uint32_t w = 0; w < warp; w++) base[0] += warps[0][w], base[1] += warps[1][w];
    uint32_t *positions = p.order.positions + k.line * taken;
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint32_t before = (1u << lane) - 1, below = base[0] + __popc(bits[0][u] & before),
                 like = base[1] + __popc(bits[1][u] & before);
        if (bits[0][u] >> lane & 1) positions[below] = (uint32_t)(k.first + u * 32);
        else if ((bits[1][u] >> lane & 1) && like < left) positions[taken - left + like] = (uint32_t)(k.first + u * 32);
        base[0] += __popc(bits[0][u]);
        base[1] += __popc(bits[1][u]);
    }
}

#define ELEMENTS(tag)                                                                              \
    KERNEL(select_count_##tag) { select_count<key_##tag>(p); }                                     \
    KERNEL(select_tally_##tag) { select_tally<key_##tag>(p); }                                     \
    KERNEL(select_write_##tag) { select_write<key_##tag>(p); }
ELEMENTS(u8)
ELEMENTS(i32)
ELEMENTS(i64)
ELEMENTS(f32)
ELEMENTS(f64)
ELEMENTS(f16)
ELEMENTS(bf16)
