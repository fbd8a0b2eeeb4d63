/* The two kernels of an elementwise operation on one type: `dense` for tensors that lie densely in the types
 * it computes with, in vectors of 16 bytes; `strided` for everything else.
 *
 * Op has types A (first input), T (the others), R (result), the number of inputs, and apply(a, b, c). Both
 * kernels load all that an item needs before they store it, so the output may be one of the inputs. */
#ifndef MR_CUDA_KERNELS_ELEMENTWISE_CUH
#define MR_CUDA_KERNELS_ELEMENTWISE_CUH

#include "cuda/kernels/device.cuh"
#include "ops/table.h"

template <class T> MR_DEVICE T number_as(uint64_t bits) {
    T v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ------------------------------------------------------------------------- dense */

/* Elements a vector, so that the widest of them is 16 bytes; vectors a thread, whose loads are in flight
 * together. cuda/launch.c makes the grid from the same two. */
template <class T> constexpr int vector_length = 16 / sizeof(T);
template <class T> constexpr int vectors_a_thread = sizeof(T) == 1 ? 1 : 2;

/* The value of an input that is the same for all items; of no meaning for the others. */
template <class X> MR_DEVICE X fixed_input(const mr_cuda_dense &p, int k) {
    if (p.kind[k] == MR_CUDA_ELEMENT) return load_any<X>(p.in[k], p.dtype[k], 0);
    return number_as<X>(p.number[k]);
}

/* Input k, V elements from i on. */
template <class X, int V> MR_DEVICE vector<X, V> dense_input(const mr_cuda_dense &p, int k, uint64_t i, X fixed) {
    if (p.kind[k] == MR_CUDA_TENSOR) return load_vector<X, V>(p.in[k], i);
    vector<X, V> all;
#pragma unroll
    for (int j = 0; j < V; j++) all.v[j] = fixed;
    return all;
}

template <class X> MR_DEVICE X dense_element(const mr_cuda_dense &p, int k, uint64_t i, X fixed) {
    return p.kind[k] == MR_CUDA_TENSOR ? ((const X *)p.in[k])[i] : fixed;
}

template <class Op> MR_DEVICE void dense(const mr_cuda_dense &p) {
    typedef typename Op::A A;
    typedef typename Op::T T;
    typedef typename Op::R R;
    constexpr int V = vector_length<T>, U = vectors_a_thread<T>, N = Op::inputs;
    constexpr uint64_t STEP = (uint64_t)MR_CUDA_THREADS * V;
    uint64_t first = (uint64_t)blockIdx.x * U * STEP + threadIdx.x * V;
    A x = fixed_input<A>(p, 0);
    T y = N > 1 ? fixed_input<T>(p, 1) : T(), z = N > 2 ? fixed_input<T>(p, 2) : T();
    if (first + (U - 1) * STEP + V <= p.count) {
        vector<A, V> a[U];
        vector<T, V> b[U], c[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            a[u] = dense_input<A, V>(p, 0, first + u * STEP, x);
            if (N > 1) b[u] = dense_input<T, V>(p, 1, first + u * STEP, y);
            if (N > 2) c[u] = dense_input<T, V>(p, 2, first + u * STEP, z);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            vector<R, V> r;
#pragma unroll
            for (int j = 0; j < V; j++)
                r.v[j] = Op::apply(a[u].v[j], N > 1 ? b[u].v[j] : T(), N > 2 ? c[u].v[j] : T());
            store_vector(p.out, first + u * STEP, r);
        }
        return;
    }
    /* The last block, element by element. */
    for (int u = 0; u < U; u++, first += STEP) {
        uint64_t end = first + V < p.count ? first + V : p.count;
#pragma unroll 1
        for (uint64_t i = first; i < end; i++)
            ((R *)p.out)[i] = Op::apply(dense_element<A>(p, 0, i, x), N > 1 ? dense_element<T>(p, 1, i, y) : T(),
                                        N > 2 ? dense_element<T>(p, 2, i, z) : T());
    }
}

/* ------------------------------------------------------------------------- strided */

enum { STRIDED_ITEMS = 4 }; /* a thread, MR_CUDA_THREADS apart; cuda/launch.c knows it too */

/* Where the operands' elements (the output's first) at the positions of all items are. */
template <int N> MR_DEVICE void offsets_of(const mr_cuda_strided &p, uint64_t first, int64_t offset[STRIDED_ITEMS][N]) {
    if (p.shape.wide) {
#pragma unroll
        for (int u = 0; u < STRIDED_ITEMS; u++)
#pragma unroll
            for (int k = 0; k < N; k++) offset[u][k] = wide_offset(p.shape, p.stride[k], first + u * MR_CUDA_THREADS);
        return;
    }
    uint32_t rest[STRIDED_ITEMS], last = p.shape.ndim - 1;
#pragma unroll
    for (int u = 0; u < STRIDED_ITEMS; u++) {
        rest[u] = (uint32_t)first + u * MR_CUDA_THREADS;
#pragma unroll
        for (int k = 0; k < N; k++) offset[u][k] = 0;
    }
#pragma unroll 1
    for (uint32_t d = 0; d < last; d++) {
#pragma unroll
        for (int u = 0; u < STRIDED_ITEMS; u++) {
            uint32_t index = next_index(p.shape, d, rest[u]);
#pragma unroll
            for (int k = 0; k < N; k++) offset[u][k] += (int64_t)index * p.stride[k].stride[d];
        }
    }
#pragma unroll
    for (int u = 0; u < STRIDED_ITEMS; u++)
#pragma unroll
        for (int k = 0; k < N; k++) offset[u][k] += (int64_t)rest[u] * p.stride[k].stride[last];
}

template <class X> MR_DEVICE X strided_input(const mr_cuda_strided &p, int k, int64_t offset) {
    if (p.d.kind[k] == MR_CUDA_NUMBER) return number_as<X>(p.d.number[k]);
    return p.own ? ((const X *)p.d.in[k])[offset] : load_any<X>(p.d.in[k], p.d.dtype[k], offset);
}

template <class Op> MR_DEVICE void strided(const mr_cuda_strided &p) {
    typedef typename Op::A A;
    typedef typename Op::T T;
    typedef typename Op::R R;
    constexpr int N = Op::inputs;
    uint64_t first = (uint64_t)blockIdx.x * STRIDED_ITEMS * MR_CUDA_THREADS + threadIdx.x;
    int64_t offset[STRIDED_ITEMS][1 + N];
    A a[STRIDED_ITEMS];
    T b[STRIDED_ITEMS], c[STRIDED_ITEMS];
    offsets_of<1 + N>(p, first, offset);
#pragma unroll
    for (int u = 0; u < STRIDED_ITEMS; u++) {
        if (first + u * MR_CUDA_THREADS >= p.d.count) break;
        a[u] = strided_input<A>(p, 0, offset[u][1]);
        if constexpr (N > 1) b[u] = strided_input<T>(p, 1, offset[u][2]);
        if constexpr (N > 2) c[u] = strided_input<T>(p, 2, offset[u][3]);
    }
#pragma unroll
    for (int u = 0; u < STRIDED_ITEMS; u++) {
        if (first + u * MR_CUDA_THREADS >= p.d.count) break;
        R r = Op::apply(a[u], N > 1 ? b[u] : T(), N > 2 ? c[u] : T());
        if (p.own) ((R *)p.d.out)[offset[u][0]] = r;
        else store_any<R>(p.d.out, p.d.out_dtype, offset[u][0], r);
    }
}

/* ------------------------------------------------------------------------- from rows to kernels */

#define STORE_PLAIN(R, v) ((R)(v))
#define STORE_BOOL(R, v)  ((R)((v) != 0))
#define R_SAME(T)         T
#define R_FLOAT(T)        T
#define R_BOOL(T)         uint8_t

/* The kernels millrace_NAME_TAG and millrace_NAME_TAG_strided; cuda/launch.c finds them by these names. */
#define KERNELS(name, tag, A_, T_, R_, store, count, expression)                                   \
    struct name##_##tag {                                                                          \
        typedef A_ A;                                                                              \
        typedef T_ T;                                                                              \
        typedef R_ R;                                                                              \
        static constexpr int inputs = count;                                                       \
        MR_DEVICE_MEMBER R apply(A a, T b, T c) { return store(R, expression); }                   \
    };                                                                                             \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_##tag(const __grid_constant__ mr_cuda_dense p) {                               \
        dense<name##_##tag>(p);                                                                    \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_##tag##_strided(const __grid_constant__ mr_cuda_strided p) {                   \
        strided<name##_##tag>(p);                                                                  \
    }

/* All inputs of one type; or, in `where`, a bool before them. */
#define PLAIN(name, tag, T, R, store, count, expression)  KERNELS(name, tag, T, T, R, store, count, expression)
#define SELECT(name, tag, T, R, store, count, expression) KERNELS(name, tag, uint8_t, T, R, store, count, expression)

#define LOOPS_FLOATS(FORM, name, result, ...)                                                      \
    FORM(name, f32, float, R_##result(float), STORE_PLAIN, __VA_ARGS__)                            \
    FORM(name, f64, double, R_##result(double), STORE_PLAIN, __VA_ARGS__)
#define LOOPS_NUMBERS(FORM, name, result, ...)                                                     \
    LOOPS_FLOATS(FORM, name, result, __VA_ARGS__)                                                  \
    FORM(name, u8, uint8_t, R_##result(uint8_t), STORE_PLAIN, __VA_ARGS__)                         \
    FORM(name, i32, int32_t, R_##result(int32_t), STORE_PLAIN, __VA_ARGS__)                        \
    FORM(name, i64, int64_t, R_##result(int64_t), STORE_PLAIN, __VA_ARGS__)
#define LOOPS_ALL(FORM, name, result, ...)                                                         \
    LOOPS_NUMBERS(FORM, name, result, __VA_ARGS__)                                                 \
    FORM(name, b8, uint8_t, R_##result(uint8_t), STORE_BOOL, __VA_ARGS__)

#endif
