/* index_add_ and scatter_add_ where additions are many: each element's are made in the order of the index, and still by
 * many threads at a time.
 *
 * The elements of the output, numbered by keys, are cut into bins of neighbours that fit into shared memory. A kernel
 * makes keys of the index. Passes of the stable sort (kernels/sort.cu) then bring together what goes to the same bin;
 * the low bits need no sorting. A block adds up a bin tile by tile. It sorts the additions of each tile by the lowest
 * bits of their keys, and each thread makes the additions of one digit. So each element is added to by one thread
 * alone, in order, and the elements of the threads of a warp lie in different banks of shared memory.
 *
 * Easiest to break: the order. Whatever brings a tile's additions together must keep that of equals. */
#include "cuda/kernels/index.cuh"
#include "cuda/kernels/order.cuh"

enum { DIGITS = MR_CUDA_DIGITS, TILE = MR_CUDA_SORT_TILE, ITEMS = TILE / MR_CUDA_THREADS };
enum { TAKEN = MR_CUDA_BIN_TILE, ROUNDS = TAKEN / MR_CUDA_THREADS };
static_assert(DIGITS == MR_CUDA_THREADS, "each thread owns a digit");

#define KERNEL(name, blocks) \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS, blocks) millrace_##name(const __grid_constant__ mr_cuda_bins p)

/* What carries an element of this size through the sort. */
template <int SIZE> using carrier = std::conditional_t<SIZE == 8, uint64_t, uint32_t>;

/* ------------------------------------------------------------------------- keys */

/* Keys of a tile of additions, and the counts of the first digits that are sorted by. T has the size of an element. */
template <class T> MR_DEVICE void make_keys(const mr_cuda_bins &q) {
    constexpr int AT_ONCE = 8; /* as many loads as their latency needs, and registers for several blocks */
    const mr_cuda_index &p = q.index;
    __shared__ uint32_t counts[DIGITS];
    uint32_t length = (uint32_t)p.length;
    counts[threadIdx.x] = 0;
    __syncthreads();
    digit_counter counter = digit_counter::begin(counts);
#pragma unroll 1
    for (int part = 0; part < ITEMS; part += AT_ONCE) {
        uint64_t first = (uint64_t)blockIdx.x * TILE + part * MR_CUDA_THREADS + threadIdx.x;
        uint32_t line[AT_ONCE], j[AT_ONCE];
        int64_t value[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            uint64_t i = first + u * MR_CUDA_THREADS;
            line[u] = p.count > 1 ? (uint32_t)i / length : 0;
            j[u] = (uint32_t)i - line[u] * length;
            if (i < q.count) value[u] = index_at(p, offset_of(p.shape, p.stride[INDEX], line[u]) + (int64_t)j[u] * p.along[INDEX]);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            uint64_t i = first + u * MR_CUDA_THREADS;
            if (i >= q.count) continue;
            uint32_t key = (uint32_t)(line[u] * (uint64_t)p.size + choice_of(p, value[u]));
            q.keys[i] = key;
            counter.add(key >> q.shift & (DIGITS - 1));
            if (q.payload) ((carrier<sizeof(T)> *)q.payload)[i] = source_at<T>(p, line[u], j[u]);
        }
    }
    counter.end();
    __syncthreads();
    q.counts[(uint64_t)threadIdx.x * q.tiles + blockIdx.x] = counts[threadIdx.x];
}
KERNEL(bins_keys_1, 3) { make_keys<uint8_t>(p); }
KERNEL(bins_keys_2, 3) { make_keys<uint16_t>(p); }
KERNEL(bins_keys_4, 3) { make_keys<uint32_t>(p); }
KERNEL(bins_keys_8, 3) { make_keys<uint64_t>(p); }

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

/* Additions of a thread: element u is u * 32 after the first, as rank_digits has it. */
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

/* A thread's additions of a tile, from place `i` on: `elements` says which of the thread's own each is for. The sum that is
 * added to is in a register as long as it is the same one. */
template <class Op>
MR_DEVICE void add_own(typename Op::A *sums, uint32_t *touched, const typename Op::T *values, const uint8_t *elements, uint32_t i,
                       uint32_t end) {
    if (i >= end) return;
    uint32_t element = elements[i];
    typename Op::A a = sums[element * DIGITS + threadIdx.x];
    for (; i < end; i++) {
        uint32_t next = elements[i];
        typename Op::T v = values[i];
        if (next != element) {
            sums[element * DIGITS + threadIdx.x] = a;
            a = sums[next * DIGITS + threadIdx.x];
            element = next;
        }
        *touched |= 1u << element;
        a = Op::move(a, v);
    }
    sums[element * DIGITS + threadIdx.x] = a;
}

template <class Op> MR_DEVICE void add_bin(const mr_cuda_bins &q) {
    typedef typename Op::T T;
    typedef typename Op::A A;
    typedef carrier<sizeof(T)> W;
    constexpr int MOST = MR_CUDA_BIN_BYTES / sizeof(W), OWN = MOST / DIGITS;
    static_assert(OWN <= 32, "bits of `touched`");
    __shared__ A sums[MOST];
    __shared__ T values[TAKEN];
    __shared__ uint8_t elements[TAKEN];
    __shared__ uint32_t starts[DIGITS + 1];
    const mr_cuda_index &p = q.index;
    uint32_t own = threadIdx.x / 32 * (32 * ROUNDS) + threadIdx.x % 32, touched = 0;
    uint64_t first_key = (uint64_t)blockIdx.x << q.shift, all_keys = p.count * (uint64_t)p.size;
    if (p.flat) all_keys = (uint64_t)p.size;
    uint32_t size = all_keys - first_key < 1u << q.shift ? (uint32_t)(all_keys - first_key) : 1u << q.shift;
    uint64_t begin = first_from(q, first_key), end = first_from(q, first_key + size);
    if (begin == end) return;
    additions<W> next;
    next.load(q, begin + own, end);
    for (uint32_t i = threadIdx.x; i < size; i += MR_CUDA_THREADS) sums[i] = Op::load(*element_of<T>(p, (uint32_t)first_key + i));
    for (uint64_t first = begin; first < end; first += TAKEN) {
        additions<W> now = next;
        uint32_t count = end - first < TAKEN ? (uint32_t)(end - first) : TAKEN, rank[ROUNDS];
        next.load(q, first + TAKEN + own, end);
#pragma unroll
        for (int u = 0; u < ROUNDS; u++) now.key[u] = own + u * 32 < count ? now.key[u] - (uint32_t)first_key : 0;
        rank_digits<ROUNDS>(now.key, 0, ROUNDS, count, rank, starts);
        if (threadIdx.x == 0) starts[DIGITS] = count;
#pragma unroll
        for (int u = 0; u < ROUNDS; u++) {
            if (own + u * 32 >= count) continue;
            elements[rank[u]] = (uint8_t)(now.key[u] / DIGITS);
            memcpy(&values[rank[u]], &now.payload[u], sizeof(T));
        }
        __syncthreads();
        add_own<Op>(sums, &touched, values, elements, starts[threadIdx.x], starts[threadIdx.x + 1]);
        __syncthreads();
    }
#pragma unroll 1
    for (uint32_t i = threadIdx.x, bit = 1; i < size; i += MR_CUDA_THREADS, bit *= 2)
        if (touched & bit) *element_of<T>(p, (uint32_t)first_key + i) = Op::store(sums[i]);
}
KERNEL(add_b8_bins, 2) { add_bin<add_b8>(p); }
KERNEL(add_u8_bins, 2) { add_bin<add<uint8_t>>(p); }
KERNEL(add_i32_bins, 2) { add_bin<add<int32_t>>(p); }
KERNEL(add_i64_bins, 2) { add_bin<add<int64_t>>(p); }
KERNEL(add_f32_bins, 2) { add_bin<add<float>>(p); }
KERNEL(add_f64_bins, 2) { add_bin<add<double>>(p); }
KERNEL(add_f16_bins, 2) { add_bin<add_f16>(p); }
KERNEL(add_bf16_bins, 2) { add_bin<add_bf16>(p); }
