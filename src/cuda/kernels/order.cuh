/* The shared parts of the kernels that put elements in order. Keys have the elements' order as unsigned numbers. Sums
 * add up the values before a thread. Ranks are the places of elements among those of a block when they are sorted by a
 * digit. */
#ifndef MR_CUDA_KERNELS_ORDER_CUH
#define MR_CUDA_KERNELS_ORDER_CUH

#include "cuda/kernels/device.cuh"
#include "cuda/kernels/order_args.h"

enum { ORDER_WARPS = MR_CUDA_THREADS / 32 };

/* ------------------------------------------------------------------------- keys */

/* As in ops/body/sort.c: NaN is the greatest, whatever its sign, and -0 is 0. `of` makes a key of an element's bits, `back` the
 * bits again; `is_shared` tells of a key that different bits have. */
template <class Bits, class Key> struct integer_key {
    typedef Bits T;
    typedef Key K;
    static constexpr K flip = sizeof(T) == 1 ? 0 : (K)1 << (8 * sizeof(K) - 1);
    MR_DEVICE_MEMBER K of(T v) { return (K)v ^ flip; }
    MR_DEVICE_MEMBER T back(K key) { return (T)(key ^ flip); }
    MR_DEVICE_MEMBER bool is_shared(K) { return false; }
};
/* `infinite`: the bits of infinity, above which are those of NaN. */
template <class Bits, class Key, Bits infinite> struct float_key {
    typedef Bits T;
    typedef Key K;
    static constexpr K sign = (K)1 << (8 * sizeof(T) - 1), all = sign | (sign - 1);
    MR_DEVICE_MEMBER K of(T v) {
        K bits = v, size = bits & ~sign;
        return size > infinite ? all : bits & sign && size ? ~bits & all : bits | sign;
    }
    MR_DEVICE_MEMBER T back(K key) { return (T)(key & sign ? key & ~sign : ~key); }
    MR_DEVICE_MEMBER bool is_shared(K key) { return key == all || key == sign; }
};
typedef integer_key<uint8_t, uint32_t> key_u8;
typedef integer_key<uint32_t, uint32_t> key_i32;
typedef integer_key<uint64_t, uint64_t> key_i64;
typedef float_key<uint32_t, uint32_t, 0x7f800000u> key_f32;
typedef float_key<uint64_t, uint64_t, 0x7ff0000000000000ull> key_f64;
typedef float_key<uint16_t, uint32_t, 0x7c00> key_f16;
typedef float_key<uint16_t, uint32_t, 0x7f80> key_bf16;

/* The key of what stands at an offset. Only the lowest `bits` count, also in descending keys. */
template <class Key> MR_DEVICE typename Key::K key_at(const mr_cuda_order &p, int64_t offset) {
    typename Key::K key = Key::of(((const typename Key::T *)p.in)[offset]);
    return p.descending ? ~key : key;
}

/* ------------------------------------------------------------------------- sums */

/* The sum of `v` over the threads of the block before this one, and in *total that of all. */
MR_DEVICE uint32_t block_prefix(uint32_t v, uint32_t *total) {
    __shared__ uint32_t warps[ORDER_WARPS];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = v;
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    __syncthreads(); /* of a call before this one */
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    uint32_t before = 0, all = 0;
#pragma unroll
    for (uint32_t w = 0; w < ORDER_WARPS; w++) {
        if (w < warp) before += warps[w];
        all += warps[w];
    }
    *total = all;
    return before + sum - v;
}

/* Counts digits in shared memory. A thread often counts the same digit several times over, such as the high digits of
 * floats. It adds those at once, since atomic additions to one address wait for each other. */
struct digit_counter {
    uint32_t *counts, digit, times;
    MR_DEVICE_MEMBER digit_counter begin(uint32_t *counts) { return {counts, 0, 0}; }
    __device__ __forceinline__ void add(uint32_t next) {
        if (next != digit) {
            end();
            digit = next;
            times = 0;
        }
        times++;
    }
    __device__ __forceinline__ void end() {
        if (times) atomicAdd(&counts[digit], times);
    }
};

/* ------------------------------------------------------------------------- ranks */

/* The lanes that have the same digit as this one, among those that are `there`. */
template <int BITS> MR_DEVICE uint32_t lanes_with(uint32_t digit, bool there) {
    uint32_t same = __ballot_sync(~0u, there);
#pragma unroll
    for (int bit = 0; bit < BITS; bit++) {
        uint32_t set = __ballot_sync(~0u, digit >> bit & 1);
        same &= digit >> bit & 1 ? set : ~set;
    }
    return same;
}

/* How many elements of this warp with the same digit come before this one, in this round or an earlier one: `seen` are
 * those of earlier rounds, by digit. All lanes take part. */
template <int BITS> MR_DEVICE uint32_t rank_in_warp(uint16_t *seen, uint32_t digit, bool there) {
    uint32_t lane = threadIdx.x % 32, same = lanes_with<BITS>(digit, there);
    uint32_t rank = seen[digit] + __popc(same & ((1u << lane) - 1));
    __syncwarp();
    if (there && (same >> lane) == 1) seen[digit] = (uint16_t)(rank + 1); /* the last of them */
    __syncwarp();
    return rank;
}

template <class K> MR_DEVICE uint32_t digit_of(K key, uint32_t shift) {
    return (uint32_t)(key >> shift) & (MR_CUDA_DIGITS - 1);
}

/* Where each element of a warp goes among those of the block, sorted by digit. A warp has `items` times 32
 * neighbours; `count` of them are the block's. Afterwards, starts[d] is where digit d begins. */
template <int ITEMS, class K>
MR_DEVICE void rank_digits(const K *key, uint32_t shift, int items, uint32_t count, uint32_t *rank, uint32_t *starts) {
    __shared__ uint16_t seen[ORDER_WARPS][MR_CUDA_DIGITS];
    uint32_t warp = threadIdx.x / 32, first = warp * (32 * items) + threadIdx.x % 32;
#pragma unroll
    for (uint32_t w = 0; w < ORDER_WARPS; w++) seen[w][threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int u = 0; u < ITEMS; u++)
        if (u < items) rank[u] = rank_in_warp<MR_CUDA_DIGIT_BITS>(seen[warp], digit_of(key[u], shift), first + u * 32 < count);
    __syncthreads();
    uint32_t total = 0, all;
#pragma unroll
    for (uint32_t w = 0; w < ORDER_WARPS; w++) total += seen[w][threadIdx.x];
    uint32_t next = block_prefix(total, &all);
    starts[threadIdx.x] = next;
#pragma unroll
    for (uint32_t w = 0; w < ORDER_WARPS; w++) {
        uint32_t own = seen[w][threadIdx.x];
        seen[w][threadIdx.x] = (uint16_t)next;
        next += own;
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < ITEMS; u++)
        if (u < items) rank[u] += seen[warp][digit_of(key[u], shift)];
}

#endif
