/* index_add_ and scatter_add_ where additions are many: each element's are made in the order of the index, and still by
 * many threads at a time.
 *
 * The elements of the output, numbered by keys, are cut into bins of neighbours that fit into shared memory. A kernel
 * makes keys of the index. Passes of the stable sort (kernels/sort.cu) then bring together what goes to the same bin; the
 * low bits need no sorting. A block adds up a bin: it takes the additions tile by tile, and shares the elements of
 * the bin out to its warps, so that each element is added to by one warp alone, in order.
 *
 * Easiest to break: the order. Within the 32 additions of a round, those to the same element are made one after the other. */
#include "cuda/kernels/index.cuh"
#include "cuda/kernels/order.cuh"

enum { DIGITS = MR_CUDA_DIGITS, TILE = MR_CUDA_SORT_TILE, ITEMS = TILE / MR_CUDA_THREADS };
enum { TAKEN = MR_CUDA_BIN_TILE, ROUNDS = TAKEN / MR_CUDA_THREADS, OWNER_BITS = 3 };
static_assert(1 << OWNER_BITS == ORDER_WARPS, "each warp owns a part of a bin");

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_##name(const __grid_constant__ mr_cuda_bins p)

/* What carries an element of this size through the sort. */
template <int SIZE> using carrier = std::conditional_t<SIZE == 8, uint64_t, uint32_t>;

/* ------------------------------------------------------------------------- keys */

/* Keys of a tile of additions, and the counts of the first digits that are sorted by. T has the size of an element. */
template <class T> MR_DEVICE void make_keys(const mr_cuda_bins &q) {
    const mr_cuda_index &p = q.index;
    __shared__ uint32_t counts[DIGITS];
    uint64_t first = (uint64_t)blockIdx.x * TILE + threadIdx.x;
    uint32_t length = (uint32_t)p.length, line[ITEMS], j[ITEMS];
    int64_t value[ITEMS];
    counts[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint64_t i = first + u * MR_CUDA_THREADS;
        line[u] = p.count > 1 ? (uint32_t)i / length : 0;
        j[u] = (uint32_t)i - line[u] * length;
        if (i < q.count) value[u] = index_at(p, offset_of(p.shape, p.stride[INDEX], line[u]) + (int64_t)j[u] * p.along[INDEX]);
    }
    digit_counter counter = digit_counter::begin(counts);
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint64_t i = first + u * MR_CUDA_THREADS;
        if (i >= q.count) continue;
        uint32_t key = (uint32_t)(line[u] * (uint64_t)p.size + choice_of(p, value[u]));
        q.keys[i] = key;
        counter.add(key >> q.shift & (DIGITS - 1));
        if (q.payload) ((carrier<sizeof(T)> *)q.payload)[i] = source_at<T>(p, line[u], j[u]);
    }
    counter.end();
    __syncthreads();
    q.counts[(uint64_t)threadIdx.x * q.tiles + blockIdx.x] = counts[threadIdx.x];
}
KERNEL(bins_keys_1) { make_keys<uint8_t>(p); }
KERNEL(bins_keys_2) { make_keys<uint16_t>(p); }
KERNEL(bins_keys_4) { make_keys<uint32_t>(p); }
KERNEL(bins_keys_8) { make_keys<uint64_t>(p); }

/* ------------------------------------------------------------------------- a bin */

/* The first of the additions, in order of their bins, whose key is not below `key`, at which a bin begins: by all
 * threads. */
MR_DEVICE uint64_t first_from(const mr_cuda_bins &q, uint64_t key) {
    uint64_t low = 0, high = q.count;
    while (low < high) {
        uint64_t step = (high - low + MR_CUDA_THREADS - 1) / MR_CUDA_THREADS, last = low + (threadIdx.x + 1) * step - 1;
        low += __syncthreads_count(last < high && q.keys[last] < key) * step;
        if (low + step - 1 < high) high = low + step - 1;
    }
    return low;
}

/* The element of the output that a key stands for. */
template <class T> MR_DEVICE T *element_of(const mr_cuda_index &p, uint32_t key) {
    uint32_t line = p.count > 1 ? key / (uint32_t)p.size : 0, k = key - line * (uint32_t)p.size;
    return (T *)p.chosen + offset_of(p.shape, p.stride[CHOSEN], line) + (int64_t)k * p.step;
}

/* A warp's next additions, one for each lane that is `there`, in the order of the lanes. */
template <class Op>
MR_DEVICE void add_in_order(typename Op::A *sums, uint8_t *touched, bool there, uint32_t key, typename Op::T v) {
    uint32_t lane = threadIdx.x % 32, like = __match_any_sync(~0u, there ? key : 1u << 16 | lane);
    if (there) touched[key] = 1;
    if (__all_sync(~0u, like == 1u << lane)) {
        if (there) sums[key] = Op::move(sums[key], v);
    } else if (__all_sync(~0u, like == ~0u)) {
        typename Op::A a = sums[key];
        for (int l = 0; l < 32; l++) a = Op::move(a, (typename Op::T)__shfl_sync(~0u, v, l));
        if (lane == 0) sums[key] = a;
    } else {
        uint32_t turn = __popc(like & ((1u << lane) - 1));
        for (uint32_t now = 0; __any_sync(~0u, there && turn >= now); now++) {
            if (there && turn == now) sums[key] = Op::move(sums[key], v);
            __syncwarp();
        }
    }
    __syncwarp();
}

/* Additions of a thread: element u is u * 32 behind the first, as rank_in_warp has it. */
template <class W> struct additions {
    uint32_t key[ROUNDS];
    W payload[ROUNDS];
    __device__ __forceinline__ void load(const mr_cuda_bins &q, uint64_t first, uint64_t end) {
#pragma unroll
        for (int u = 0; u < ROUNDS; u++) {
            if (first + u * 32 >= end) continue;
            key[u] = q.keys[first + u * 32];
            payload[u] = ((const W *)q.payload)[first + u * 32];
        }
    }
};

/* Places for what each warp owns: starts[owner * WARPS + warp] is where that of one warp begins, in owner's list. `seen`
 * has how many there are. By the first warp. */
MR_DEVICE void start_lists(const uint16_t (*seen)[ORDER_WARPS], uint16_t *starts) {
    uint32_t lane = threadIdx.x, at[2], sum = 0;
    for (int i = 0; i < 2; i++) {
        uint32_t list = 2 * lane + i;
        at[i] = sum;
        sum += seen[list % ORDER_WARPS][list / ORDER_WARPS];
    }
    uint32_t up = sum;
    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(~0u, up, step);
        if (lane >= step) up += other;
    }
    for (int i = 0; i < 2; i++) starts[2 * lane + i] = (uint16_t)(up - sum + at[i]);
    if (lane == 31) starts[ORDER_WARPS * ORDER_WARPS] = (uint16_t)up;
}

template <class Op> MR_DEVICE void add_bin(const mr_cuda_bins &q) {
    typedef typename Op::T T;
    typedef typename Op::A A;
    typedef carrier<sizeof(T)> W;
    constexpr int MOST = MR_CUDA_BIN_BYTES / sizeof(W);
    __shared__ A sums[MOST];
    __shared__ uint8_t touched[MOST];
    __shared__ T values[TAKEN];
    __shared__ uint16_t keys[TAKEN], seen[ORDER_WARPS][ORDER_WARPS], starts[ORDER_WARPS * ORDER_WARPS + 1];
    const mr_cuda_index &p = q.index;
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = warp * (32 * ROUNDS) + lane;
    uint64_t first_key = (uint64_t)blockIdx.x << q.shift, all_keys = p.count * (uint64_t)p.size;
    if (p.flat) all_keys = (uint64_t)p.size;
    uint32_t size = all_keys - first_key < 1u << q.shift ? (uint32_t)(all_keys - first_key) : 1u << q.shift;
    uint64_t begin = first_from(q, first_key), end = first_from(q, first_key + size);
    if (begin == end) return;
    additions<W> next;
    next.load(q, begin + own, end);
    for (uint32_t i = threadIdx.x; i < size; i += MR_CUDA_THREADS) {
        sums[i] = Op::load(*element_of<T>(p, (uint32_t)first_key + i));
        touched[i] = 0;
    }
    for (uint64_t first = begin; first < end; first += TAKEN) {
        additions<W> now = next;
        uint32_t count = end - first < TAKEN ? (uint32_t)(end - first) : TAKEN, rank[ROUNDS];
        next.load(q, first + TAKEN + own, end);
        if (lane < ORDER_WARPS) seen[warp][lane] = 0;
        __syncwarp();
#pragma unroll
        for (int u = 0; u < ROUNDS; u++) {
            bool there = own + u * 32 < count;
            now.key[u] = there ? now.key[u] - (uint32_t)first_key : 0;
            rank[u] = rank_in_warp<OWNER_BITS>(seen[warp], now.key[u] % ORDER_WARPS, there);
        }
        __syncthreads();
        if (warp == 0) start_lists(seen, starts);
        __syncthreads();
#pragma unroll
        for (int u = 0; u < ROUNDS; u++) {
            if (own + u * 32 >= count) continue;
            uint32_t to = starts[now.key[u] % ORDER_WARPS * ORDER_WARPS + warp] + rank[u];
            keys[to] = (uint16_t)now.key[u];
            memcpy(&values[to], &now.payload[u], sizeof(T));
        }
        __syncthreads();
        uint32_t last = starts[(warp + 1) * ORDER_WARPS];
        for (uint32_t i = starts[warp * ORDER_WARPS]; i < last; i += 32) {
            bool there = i + lane < last;
            uint32_t at = there ? i + lane : i;
            add_in_order<Op>(sums, touched, there, keys[at], values[at]);
        }
        __syncthreads();
    }
    for (uint32_t i = threadIdx.x; i < size; i += MR_CUDA_THREADS)
        if (touched[i]) *element_of<T>(p, (uint32_t)first_key + i) = Op::store(sums[i]);
}
KERNEL(add_b8_bins) { add_bin<add_b8>(p); }
KERNEL(add_u8_bins) { add_bin<add<uint8_t>>(p); }
KERNEL(add_i32_bins) { add_bin<add<int32_t>>(p); }
KERNEL(add_i64_bins) { add_bin<add<int64_t>>(p); }
KERNEL(add_f32_bins) { add_bin<add<float>>(p); }
KERNEL(add_f64_bins) { add_bin<add<double>>(p); }
KERNEL(add_f16_bins) { add_bin<add_f16>(p); }
KERNEL(add_bf16_bins) { add_bin<add_bf16>(p); }
