/* Elements that an index chooses: ops/index.h defines positions, and ops/body/index.c the results.
 *
 * One thread makes all additions to one element of the output, in the order of the index. Mostly
 * it has the whole line. Where lines are long and few, each element has a thread. It finds its
 * additions side by side, since the positions have been sorted by where they go (kernels/sort.cu,
 * which keeps the order of equals). Where additions are many, kernels/bins.cu has a faster
 * way. */
#include "cuda/kernels/index.cuh"

#define KERNEL(name, args) extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_##name(const __grid_constant__ args p)

/* ------------------------------------------------------------------------- picking */

template <class T> MR_DEVICE void pick(const mr_cuda_index &p) {
    constexpr int ITEMS = MR_CUDA_STRIDED / MR_CUDA_THREADS;
    uint64_t first = (uint64_t)blockIdx.x * MR_CUDA_STRIDED + threadIdx.x;
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        uint64_t i = first + u * MR_CUDA_THREADS;
        if (i >= p.count) return;
        uint64_t k = choice(p, offset_of(p.shape, p.stride[INDEX], i));
        ((T *)p.plain)[offset_of(p.shape, p.stride[PLAIN], i)] =
            ((const T *)p.chosen)[offset_of(p.shape, p.stride[CHOSEN], i) + (int64_t)k * p.step];
    }
}
KERNEL(pick_1, mr_cuda_index) { pick<uint8_t>(p); }
KERNEL(pick_2, mr_cuda_index) { pick<uint16_t>(p); }
KERNEL(pick_4, mr_cuda_index) { pick<uint32_t>(p); }
KERNEL(pick_8, mr_cuda_index) { pick<uint64_t>(p); }
KERNEL(pick_16, mr_cuda_index) { pick<uint4>(p); }

/* ------------------------------------------------------------------------- setting, adding */

/* A thread has a line. */
template <class Op> MR_DEVICE void place_lines(const mr_cuda_index &p) {
    typedef typename Op::T T;
    uint64_t line = thread_number();
    if (line >= p.count) return;
    int64_t index = offset_of(p.shape, p.stride[INDEX], line);
    T *chosen = (T *)p.chosen + offset_of(p.shape, p.stride[CHOSEN], line);
    for (int64_t j = 0; j < p.length; j++) {
        uint64_t k = choice(p, index + j * p.along[INDEX]);
        T *x = &chosen[(int64_t)k * p.step + j * p.along[CHOSEN]];
        *x = Op::store(Op::move(Op::load(*x), source_at<T>(p, (int64_t)line, j)));
    }
}

/* The positions' keys, for sorting: which element of the output each of them goes to. A flat
 * index is the same for all lines, so only the place in the line counts. */
template <class K> MR_DEVICE void keys(const mr_cuda_index_keys &q) {
    const mr_cuda_index &p = q.index;
    uint64_t count = p.flat ? (uint64_t)p.length : p.count * (uint64_t)p.length;
    for (uint64_t i = thread_number(); i < count; i += thread_count()) {
        uint64_t line = p.flat ? 0 : i / (uint64_t)p.length, j = i - line * (uint64_t)p.length;
        int64_t offset = p.flat ? 0 : offset_of(p.shape, p.stride[INDEX], line);
        uint64_t k = choice(p, offset + (int64_t)j * p.along[INDEX]);
        ((K *)q.keys)[i] = (K)(line * (uint64_t)p.size + k);
    }
}
KERNEL(index_keys_u32, mr_cuda_index_keys) { keys<uint32_t>(p); }
KERNEL(index_keys_u64, mr_cuda_index_keys) { keys<uint64_t>(p); }

/* A thread has the sorted positions with one key, which are side by side. With a flat index it
 * has those of one line. */
template <class Op, class K> MR_DEVICE void place_sorted(const mr_cuda_index_keys &q) {
    typedef typename Op::T T;
    const mr_cuda_index &p = q.index;
    const K *keys = (const K *)q.keys;
    uint64_t lines = p.flat ? p.count : 1, count = p.flat ? (uint64_t)p.length : p.count * (uint64_t)p.length;
    for (uint64_t t = thread_number(); t < count * lines; t += thread_count()) {
        uint64_t i = t / lines, line = t - i * lines;
        K key = keys[i];
        if (i > 0 && keys[i - 1] == key) continue;
        uint64_t end = i + 1;
        while (end < count && keys[end] == key) end++;
        if (!p.flat) line = key / (uint64_t)p.size;
        uint64_t k = p.flat ? key : key - line * (uint64_t)p.size;
        T *x = (T *)p.chosen + offset_of(p.shape, p.stride[CHOSEN], line) + (int64_t)k * p.step;
        typename Op::A a = Op::load(*x);
        for (uint64_t n = Op::last_only ? end - 1 : i; n < end; n++) {
            uint64_t position = q.positions[n];
            uint64_t j = p.flat ? position : position - line * (uint64_t)p.length;
            a = Op::move(a, source_at<T>(p, (int64_t)line, (int64_t)j));
        }
        *x = Op::store(a);
    }
}

#define PLACE(name, ...)                                                                           \
    KERNEL(name##_lines, mr_cuda_index) { place_lines<__VA_ARGS__>(p); }                           \
    KERNEL(name##_u32, mr_cuda_index_keys) { place_sorted<__VA_ARGS__, uint32_t>(p); }             \
    KERNEL(name##_u64, mr_cuda_index_keys) { place_sorted<__VA_ARGS__, uint64_t>(p); }
PLACE(set_1, set<uint8_t>)
PLACE(set_2, set<uint16_t>)
PLACE(set_4, set<uint32_t>)
PLACE(set_8, set<uint64_t>)
PLACE(add_b8, add_b8)
PLACE(add_u8, add<uint8_t>)
PLACE(add_i32, add<int32_t>)
PLACE(add_i64, add<int64_t>)
PLACE(add_f32, add<float>)
PLACE(add_f64, add<double>)
PLACE(add_f16, add_f16)
PLACE(add_bf16, add_bf16)
