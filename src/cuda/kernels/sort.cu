/* A stable sort of lines by keys, digit by digit of 8 bits, the least significant first. A pass has three kernels. In
 * the first, each block counts the digits of its tile. The second adds up the counts of each digit over the tiles of a
 * line. In the third, each block finds out where its elements go, and moves them. No block waits for another one, and
 * nothing depends on the order in which blocks run. Lines that fit in a tile are sorted by one block in shared memory,
 * several of them at a time.
 *
 * Around it, for the rows sort, argsort and topk: keys from elements, and results from keys and positions. */
#include "cuda/kernels/order.cuh"

enum { DIGITS = MR_CUDA_DIGITS, TILE = MR_CUDA_SORT_TILE, ITEMS = TILE / MR_CUDA_THREADS };
enum { LINE_TILE = MR_CUDA_SORT_LINE, LINE_ITEMS = LINE_TILE / MR_CUDA_THREADS };

#define KERNEL_OF(name, args, blocks) \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS, blocks) millrace_##name(const __grid_constant__ args p)
#define KERNEL(name, args) KERNEL_OF(name, args, 1)

/* Which tile of which line a block has; the tile is `first` elements after the line's beginning. */
struct place {
    uint64_t line, tile, first;
    __device__ __forceinline__ place(uint32_t tiles) {
        line = blockIdx.x / tiles;
        tile = blockIdx.x - line * tiles;
        first = tile * TILE;
    }
};

/* ------------------------------------------------------------------------- a pass */

template <class K> MR_DEVICE void count_digits(const mr_cuda_radix &p) {
    constexpr int V = 16 / sizeof(K);
    __shared__ uint32_t counts[DIGITS];
    place at(p.tiles);
    const K *keys = (const K *)p.keys_in + at.line * p.pitch;
    counts[threadIdx.x] = 0;
    __syncthreads();
    digit_counter counter = digit_counter::begin(counts);
    if (at.first + TILE <= p.length) {
        vector<K, V> v[ITEMS / V];
#pragma unroll
        for (int u = 0; u < ITEMS / V; u++) v[u] = load_vector<K, V>(keys, at.first + (u * MR_CUDA_THREADS + threadIdx.x) * V);
#pragma unroll
        for (int u = 0; u < ITEMS; u++) counter.add(digit_of(v[u / V].v[u % V], p.shift));
    } else {
        for (uint64_t i = at.first + threadIdx.x; i < p.length; i += MR_CUDA_THREADS) counter.add(digit_of(keys[i], p.shift));
    }
    counter.end();
    __syncthreads();
    p.counts[(at.line * DIGITS + threadIdx.x) * p.tiles + at.tile] = counts[threadIdx.x];
}
KERNEL(radix_count_u32, mr_cuda_radix) { count_digits<uint32_t>(p); }
KERNEL(radix_count_u64, mr_cuda_radix) { count_digits<uint64_t>(p); }

/* A block for each list: the counts of the tiles become how many there are before each tile. */
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

/* The same of many short lists, by a thread each: `length` of them. */
KERNEL(radix_scan_short, mr_cuda_radix) {
    uint64_t list = thread_number();
    if (list >= p.length) return;
    uint32_t *counts = p.counts + list * p.tiles, before = 0;
    for (uint32_t i = 0; i < p.tiles; i++) {
        uint32_t own = counts[i];
        counts[i] = before;
        before += own;
    }
    p.totals[list] = before;
}

/* The elements of the tile are brought in order in shared memory first, so that those with the same digit are written
 * side by side. */
template <class K, class V> MR_DEVICE void move_digits(const mr_cuda_radix &p) {
    constexpr int SIZE = sizeof(K) > sizeof(V) ? sizeof(K) : sizeof(V);
    __shared__ __align__(16) unsigned char memory[TILE * SIZE];
    __shared__ uint32_t starts[DIGITS], bases[DIGITS];
    place at(p.tiles);
    uint32_t count = p.length - at.first < TILE ? (uint32_t)(p.length - at.first) : TILE;
    uint32_t own = threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32, rank[ITEMS];
    uint64_t line = at.line * p.pitch;
    const K *keys_in = (const K *)p.keys_in + line + at.first;
    const V *payload_in = p.payload_in ? (const V *)p.payload_in + line + at.first : NULL;
    K *keys_out = (K *)p.keys_out + line, key[ITEMS];
    V *payload_out = (V *)p.payload_out + line, payload[ITEMS];
#pragma unroll
    for (int u = 0; u < ITEMS; u++) key[u] = own + u * 32 < count ? keys_in[own + u * 32] : (K)0;
    rank_digits<ITEMS>(key, p.shift, ITEMS, count, rank, starts);
    uint32_t digit = threadIdx.x, all, *totals = p.totals + at.line * DIGITS;
    bases[digit] = block_prefix(totals[digit], &all) + p.counts[(at.line * DIGITS + digit) * p.tiles + at.tile] - starts[digit];
#pragma unroll
    for (int u = 0; u < ITEMS; u++)
        if (own + u * 32 < count) ((K *)memory)[rank[u]] = key[u];
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint32_t i = own + u * 32;
        payload[u] = i >= count ? (V)0 : payload_in ? payload_in[i] : (V)(at.first + i);
    }
    __syncthreads();
    uint32_t to[ITEMS];
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint32_t i = threadIdx.x + u * MR_CUDA_THREADS;
        if (i >= count) continue;
        K sorted = ((K *)memory)[i];
        to[u] = bases[digit_of(sorted, p.shift)] + i;
        keys_out[to[u]] = sorted;
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < ITEMS; u++)
        if (own + u * 32 < count) ((V *)memory)[rank[u]] = payload[u];
    __syncthreads();
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint32_t i = threadIdx.x + u * MR_CUDA_THREADS;
        if (i < count) payload_out[to[u]] = ((V *)memory)[i];
    }
}
KERNEL_OF(radix_move_u32_4, mr_cuda_radix, 3) { move_digits<uint32_t, uint32_t>(p); }
KERNEL(radix_move_u64_4, mr_cuda_radix) { move_digits<uint64_t, uint32_t>(p); }
KERNEL(radix_move_u32_8, mr_cuda_radix) { move_digits<uint32_t, uint64_t>(p); }

/* ------------------------------------------------------------------------- elements */

/* Keys of the elements of a tile, and the counts of their lowest digits. */
template <class Key> MR_DEVICE void sort_keys(const mr_cuda_order &p) {
    typedef typename Key::K K;
    __shared__ uint32_t counts[DIGITS];
    place at(p.tiles);
    int64_t in = offset_of(p.kept, p.stride[0], at.line);
    K *keys = (K *)p.keys + at.line * p.pitch, key[ITEMS];
    counts[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint64_t i = at.first + threadIdx.x + u * MR_CUDA_THREADS;
        if (i < p.length) key[u] = key_at<Key>(p, in + (int64_t)i * p.step[0]);
    }
    digit_counter counter = digit_counter::begin(counts);
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint64_t i = at.first + threadIdx.x + u * MR_CUDA_THREADS;
        if (i >= p.length) continue;
        keys[i] = key[u];
        counter.add(digit_of(key[u], 0));
    }
    counter.end();
    __syncthreads();
    p.counts[(at.line * DIGITS + threadIdx.x) * p.tiles + at.tile] = counts[threadIdx.x];
}

/* Result j of a line: the element that was at `from`. A result that is not wanted is NULL. A key determines its
 * element, except for keys that stand for several elements: these are looked up. */
template <class Key>
MR_DEVICE void write_result(const mr_cuda_order &p, uint64_t line, uint64_t j, typename Key::K key, uint64_t from) {
    typedef typename Key::T T;
    if (p.descending) key = ~key;
    if (p.bits < 8 * sizeof(key)) key &= ((typename Key::K)1 << p.bits) - 1;
    if (p.values) {
        T v = Key::back(key);
        if (Key::is_shared(key)) v = ((const T *)p.in)[offset_of(p.kept, p.stride[0], line) + (int64_t)from * p.step[0]];
        ((T *)p.values)[offset_of(p.kept, p.stride[1], line) + (int64_t)j * p.step[1]] = v;
    }
    p.order[offset_of(p.kept, p.stride[2], line) + (int64_t)j * p.step[2]] = (int64_t)from + 1;
}

/* The first `taken` of each line. */
template <class Key> MR_DEVICE void sort_results(const mr_cuda_order &p) {
    place at(p.tiles);
    const typename Key::K *keys = (const typename Key::K *)p.keys + at.line * p.pitch;
    const uint32_t *positions = p.positions + at.line * p.pitch;
    typename Key::K key[ITEMS];
    uint32_t position[ITEMS];
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint64_t j = at.first + threadIdx.x + u * MR_CUDA_THREADS;
        if (j < p.taken) key[u] = keys[j], position[u] = positions[j];
    }
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint64_t j = at.first + threadIdx.x + u * MR_CUDA_THREADS;
        if (j < p.taken) write_result<Key>(p, at.line, j, key[u], position[u]);
    }
}

/* ------------------------------------------------------------------------- lines of a block */

/* Elements of the block in registers, as rank_digits has them: by keys, and where they were. */
template <class K> struct held {
    K key[LINE_ITEMS];
    uint32_t from[LINE_ITEMS];
};

/* Sorts them by 8 bits of `digits`, which a function makes of a key and a place. */
template <class K, class Digits>
MR_DEVICE void sort_held(held<K> &h, int items, uint32_t count, K *keys, uint16_t *from, uint32_t *starts, Digits digits) {
    uint32_t own = threadIdx.x / 32 * (32 * items) + threadIdx.x % 32, digit[LINE_ITEMS], rank[LINE_ITEMS];
#pragma unroll
    for (int u = 0; u < LINE_ITEMS; u++) digit[u] = u < items ? digits(h.key[u], h.from[u]) : 0;
    rank_digits<LINE_ITEMS>(digit, 0, items, count, rank, starts);
#pragma unroll
    for (int u = 0; u < LINE_ITEMS; u++) {
        if (u >= items || own + u * 32 >= count) continue;
        keys[rank[u]] = h.key[u];
        from[rank[u]] = (uint16_t)h.from[u];
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < LINE_ITEMS; u++) {
        uint32_t i = own + u * 32;
        if (u >= items || i >= count) continue;
        h.key[u] = keys[i];
        h.from[u] = from[i];
    }
}

/* `group` lines of a block: all elements by their keys, then by their lines. */
template <class Key> MR_DEVICE void sort_lines(const mr_cuda_order &p) {
    typedef typename Key::K K;
    __shared__ K keys[LINE_TILE];
    __shared__ uint16_t from[LINE_TILE];
    __shared__ uint32_t starts[DIGITS];
    uint64_t first = (uint64_t)blockIdx.x * p.group;
    uint32_t lines = p.lines - first < p.group ? (uint32_t)(p.lines - first) : p.group;
    uint32_t length = (uint32_t)p.length, count = lines * length;
    int items = (int)((count + MR_CUDA_THREADS - 1) / MR_CUDA_THREADS);
    uint32_t own = threadIdx.x / 32 * (32 * items) + threadIdx.x % 32;
    const uint32_t *positions = p.positions ? p.positions + first * p.pitch : NULL;
    held<K> h;
#pragma unroll
    for (int u = 0; u < LINE_ITEMS; u++) {
        uint32_t i = own + u * 32, line = i / length, j = i - line * length;
        h.from[u] = i;
        h.key[u] = 0;
        if (u >= items || i >= count) continue;
        if (positions) j = positions[line * p.pitch + j];
        h.key[u] = key_at<Key>(p, offset_of(p.kept, p.stride[0], first + line) + j * p.step[0]);
    }
    for (uint32_t shift = 0; shift < p.bits; shift += MR_CUDA_DIGIT_BITS)
        sort_held(h, items, count, keys, from, starts, [=](K key, uint32_t) { return digit_of(key, shift); });
    if (lines > 1) sort_held(h, items, count, keys, from, starts, [=](K, uint32_t i) { return i / length; });
#pragma unroll
    for (int u = 0; u < LINE_ITEMS; u++) {
        uint32_t i = own + u * 32, line = i / length, j = i - line * length;
        if (u >= items || i >= count || j >= p.taken) continue;
        uint32_t at = h.from[u] - line * length;
        write_result<Key>(p, first + line, j, h.key[u], positions ? positions[line * p.pitch + at] : at);
    }
}

#define ELEMENTS(tag)                                                                              \
    KERNEL(sort_keys_##tag, mr_cuda_order) { sort_keys<key_##tag>(p); }                            \
    KERNEL(sort_results_##tag, mr_cuda_order) { sort_results<key_##tag>(p); }                      \
    KERNEL(sort_lines_##tag, mr_cuda_order) { sort_lines<key_##tag>(p); }
ELEMENTS(u8)
ELEMENTS(i32)
ELEMENTS(i64)
ELEMENTS(f32)
ELEMENTS(f64)
ELEMENTS(f16)
ELEMENTS(bf16)
