/* The three kernels of an elementwise operation on one type. `dense` takes tensors that lie densely in the types it
 * computes with, in vectors of 16 bytes. `rows` takes tensors whose rows lie so, for example a row that is added to
 * each row. `strided` takes everything else.
 *
 * Op has types A (first input), T (the others) and R (result), as they are in memory, and the
 * number of inputs. Its apply(a, b, c) takes the types of the computation: floats for f16 and
 * bf16. Halves have no kernel for everything else: that of f32 takes them. All kernels load all
 * that an item needs before they store it, so the output may be one of the inputs. */
#ifndef MR_CUDA_KERNELS_ELEMENTWISE_CUH
#define MR_CUDA_KERNELS_ELEMENTWISE_CUH

#include "cuda/kernels/device.cuh"

template <class T> MR_DEVICE T number_as(uint64_t bits) {
    T v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ------------------------------------------------------------------------- dense */

/* Elements a vector, so that the widest of them is 16 bytes. A thread makes one vector: more of them only put the
 * pieces of memory that an SM works on further apart (in place, two are 5 % slower). */
template <class T> constexpr int vector_length = 16 / sizeof(T);

/* The value of an input that is the same for all items; of no meaning for the others. */
template <class X> MR_DEVICE computed<X> fixed_input(const mr_cuda_dense &p, int k) {
    if (p.kind[k] == MR_CUDA_ELEMENT) return load_any<computed<X>>(p.in[k], p.dtype[k], 0);
    return number_as<computed<X>>(p.number[k]);
}

/* Input k, V elements from i on. */
template <class X, int V>
MR_DEVICE vector<computed<X>, V> dense_input(const mr_cuda_dense &p, int k, uint64_t i, computed<X> fixed) {
    if (p.kind[k] == MR_CUDA_TENSOR) return widen_vector(load_vector<X, V>(p.in[k], i));
    vector<computed<X>, V> all;
#pragma unroll
    for (int j = 0; j < V; j++) all.v[j] = fixed;
    return all;
}

template <class X> MR_DEVICE computed<X> dense_element(const mr_cuda_dense &p, int k, uint64_t i, computed<X> fixed) {
    return p.kind[k] == MR_CUDA_TENSOR ? widen(((const X *)p.in[k])[i]) : fixed;
}

template <class Op> MR_DEVICE void dense(const mr_cuda_dense &p) {
    typedef typename Op::A A;
    typedef typename Op::T T;
    typedef typename Op::R R;
    typedef computed<T> C;
    constexpr int V = vector_length<T>, N = Op::inputs;
    uint64_t first = thread_number() * V;
    computed<A> x = fixed_input<A>(p, 0);
    C y = N > 1 ? fixed_input<T>(p, 1) : C(), z = N > 2 ? fixed_input<T>(p, 2) : C();
    if (first + V <= p.count) {
        vector<computed<A>, V> a = dense_input<A, V>(p, 0, first, x);
        vector<C, V> b, c;
        vector<R, V> r;
        if (N > 1) b = dense_input<T, V>(p, 1, first, y);
        if (N > 2) c = dense_input<T, V>(p, 2, first, z);
#pragma unroll
        for (int j = 0; j < V; j++) r.v[j] = Op::apply(a.v[j], N > 1 ? b.v[j] : C(), N > 2 ? c.v[j] : C());
        store_vector(p.out, first, r);
        return;
    }
    /* The rest, which does not fill a vector, element by element. */
#pragma unroll 1
    for (uint64_t i = first; i < p.count; i++)
        ((R *)p.out)[i] = Op::apply(dense_element<A>(p, 0, i, x), N > 1 ? dense_element<T>(p, 1, i, y) : C(),
                                    N > 2 ? dense_element<T>(p, 2, i, z) : C());
}

/* ------------------------------------------------------------------------- strided */

/* An item is an element or a vector along the innermost dim. A thread makes STRIDED_ITEMS elements, MR_CUDA_THREADS
 * apart, or one vector. */
enum { STRIDED_ITEMS = MR_CUDA_STRIDED / MR_CUDA_THREADS };

/* Where the operands' elements (the output's first) at the positions of all items are. There are
 * never so many vectors that a division needs 64 bits, which would be a call with registers kept
 * for it. */
template <int N, int U, bool MAY_BE_WIDE>
MR_DEVICE void offsets_of(const mr_cuda_strided &p, uint64_t first, int64_t offset[U][N]) {
    if (MAY_BE_WIDE && p.shape.wide) {
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int k = 0; k < N; k++) offset[u][k] = wide_offset(p.shape, p.stride[k], first + u * MR_CUDA_THREADS);
        return;
    }
    uint32_t rest[U], last = p.shape.ndim - 1;
#pragma unroll
    for (int u = 0; u < U; u++) {
        rest[u] = (uint32_t)first + u * MR_CUDA_THREADS;
#pragma unroll
        for (int k = 0; k < N; k++) offset[u][k] = 0;
    }
#pragma unroll 1
    for (uint32_t d = 0; d < last; d++) {
#pragma unroll
        for (int u = 0; u < U; u++) {
            uint32_t index = next_index(p.shape, d, rest[u]);
#pragma unroll
            for (int k = 0; k < N; k++) offset[u][k] += (int64_t)index * p.stride[k].stride[d];
        }
    }
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
        for (int k = 0; k < N; k++) offset[u][k] += (int64_t)rest[u] * p.stride[k].stride[last];
}

template <class X, int V>
MR_DEVICE vector<computed<X>, V> strided_input(const mr_cuda_strided &p, int k, int64_t offset) {
    typedef computed<X> C;
    vector<C, V> v;
    C x;
    if constexpr (V > 1) {
        if (p.stride[1 + k].stride[0] != 0) return widen_vector(load_vector<X, V>(p.d.in[k], (uint64_t)offset));
        x = p.d.kind[k] == MR_CUDA_NUMBER ? number_as<C>(p.d.number[k]) : widen(((const X *)p.d.in[k])[offset]);
    } else {
        x = p.d.kind[k] == MR_CUDA_NUMBER ? number_as<C>(p.d.number[k])
            : p.own                       ? widen(((const X *)p.d.in[k])[offset])
                                          : load_any<C>(p.d.in[k], p.d.dtype[k], offset);
    }
#pragma unroll
    for (int j = 0; j < V; j++) v.v[j] = x;
    return v;
}

template <class Op, int V> MR_DEVICE void strided(const mr_cuda_strided &p) {
    typedef typename Op::A A;
    typedef typename Op::T T;
    typedef typename Op::R R;
    constexpr int N = Op::inputs, U = V > 1 ? 1 : STRIDED_ITEMS;
    uint64_t first = (uint64_t)blockIdx.x * U * MR_CUDA_THREADS + threadIdx.x;
    int64_t offset[U][1 + N];
    typedef computed<T> C;
    vector<computed<A>, V> a[U];
    vector<C, V> b[U], c[U];
    offsets_of<1 + N, U, V == 1>(p, first, offset);
#pragma unroll
    for (int u = 0; u < U; u++) {
        if (first + u * MR_CUDA_THREADS >= p.d.count) break;
        a[u] = strided_input<A, V>(p, 0, offset[u][1]);
        if constexpr (N > 1) b[u] = strided_input<T, V>(p, 1, offset[u][2]);
        if constexpr (N > 2) c[u] = strided_input<T, V>(p, 2, offset[u][3]);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        if (first + u * MR_CUDA_THREADS >= p.d.count) break;
        vector<R, V> r;
#pragma unroll
        for (int j = 0; j < V; j++) r.v[j] = Op::apply(a[u].v[j], N > 1 ? b[u].v[j] : C(), N > 2 ? c[u].v[j] : C());
        if constexpr (V > 1) {
            store_vector(p.d.out, (uint64_t)offset[u][0], r);
        } else {
            if (p.own) store_vector(p.d.out, (uint64_t)offset[u][0], r);
            else store_any<R>(p.d.out, p.d.out_dtype, offset[u][0], r.v[0]);
        }
    }
}

/* ------------------------------------------------------------------------- from rows to kernels */

/* The value of an expression as it is in memory. */
template <class R, class X> MR_DEVICE R stored(X v) {
    if constexpr (is_half<R>) return narrow<R>((float)v);
    else return (R)v;
}

#define STORE_PLAIN(R, v) stored<R>(v)
#define STORE_BOOL(R, v)  ((R)((v) != 0))
#define STORE_BIT(R, v)   ((R)((v)&1))
#define R_SAME(T)         T
#define R_FLOAT(T)        T
#define R_BOOL(T)         uint8_t

/* The expression sees the types that are computed with as A and T. */
#define OP(name, tag, A_, T_, R_, store, count, expression)                                        \
    struct name##_##tag##_expression {                                                             \
        typedef computed<A_> A;                                                                    \
        typedef computed<T_> T;                                                                    \
        typedef R_ R;                                                                              \
        MR_DEVICE_MEMBER R apply(A a, T b, T c) { return store(R, expression); }                   \
    };                                                                                             \
    struct name##_##tag : name##_##tag##_expression {                                              \
        typedef A_ A;                                                                              \
        typedef T_ T;                                                                              \
        static constexpr int inputs = count;                                                       \
    };

/* The kernels millrace_NAME_TAG and millrace_NAME_TAG_rows; cuda/family/launch.c finds them by these names. */
#define VECTOR_KERNELS(name, tag, A_, T_, R_, store, count, expression)                            \
    OP(name, tag, A_, T_, R_, store, count, expression)                                            \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_##tag(const __grid_constant__ mr_cuda_dense p) {                               \
        dense<name##_##tag>(p);                                                                    \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_##tag##_rows(const __grid_constant__ mr_cuda_strided p) {                      \
        strided<name##_##tag, vector_length<T_>>(p);                                               \
    }

/* And millrace_NAME_TAG_strided. */
#define KERNELS(name, tag, A_, T_, R_, store, count, expression)                                   \
    VECTOR_KERNELS(name, tag, A_, T_, R_, store, count, expression)                                \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_##tag##_strided(const __grid_constant__ mr_cuda_strided p) {                   \
        strided<name##_##tag, 1>(p);                                                               \
    }

/* All inputs of one type; or, in `where`, a bool before them. Halves have the kernels of
 * vectors. */
#define PLAIN(name, tag, T, R, store, count, expression)  KERNELS(name, tag, T, T, R, store, count, expression)
#define SELECT(name, tag, T, R, store, count, expression) KERNELS(name, tag, uint8_t, T, R, store, count, expression)
#define PLAIN_HALF(name, tag, T, R, store, count, expression)                                      \
    VECTOR_KERNELS(name, tag, T, T, R, store, count, expression)
#define SELECT_HALF(name, tag, T, R, store, count, expression)                                     \
    VECTOR_KERNELS(name, tag, uint8_t, T, R, store, count, expression)

#define LOOPS_FLOATS(FORM, name, result, ...)                                                      \
    FORM(name, f32, float, R_##result(float), STORE_PLAIN, __VA_ARGS__)                            \
    FORM(name, f64, double, R_##result(double), STORE_PLAIN, __VA_ARGS__)                          \
    FORM##_HALF(name, f16, f16, R_##result(f16), STORE_PLAIN, __VA_ARGS__)                         \
    FORM##_HALF(name, bf16, bf16, R_##result(bf16), STORE_PLAIN, __VA_ARGS__)
#define LOOPS_NUMBERS(FORM, name, result, ...)                                                     \
    LOOPS_FLOATS(FORM, name, result, __VA_ARGS__)                                                  \
    FORM(name, u8, uint8_t, R_##result(uint8_t), STORE_PLAIN, __VA_ARGS__)                         \
    FORM(name, i32, int32_t, R_##result(int32_t), STORE_PLAIN, __VA_ARGS__)                        \
    FORM(name, i64, int64_t, R_##result(int64_t), STORE_PLAIN, __VA_ARGS__)
#define LOOPS_ALL(FORM, name, result, ...)                                                         \
    LOOPS_NUMBERS(FORM, name, result, __VA_ARGS__)                                                 \
    FORM(name, b8, uint8_t, R_##result(uint8_t), STORE_BOOL, __VA_ARGS__)

#define LOOPS_INTEGERS(FORM, name, result, ...)                                                    \
    FORM(name, u8, uint8_t, R_##result(uint8_t), STORE_PLAIN, __VA_ARGS__)                         \
    FORM(name, i32, int32_t, R_##result(int32_t), STORE_PLAIN, __VA_ARGS__)                        \
    FORM(name, i64, int64_t, R_##result(int64_t), STORE_PLAIN, __VA_ARGS__)
#define LOOPS_WHOLE(FORM, name, result, ...)                                                       \
    LOOPS_INTEGERS(FORM, name, result, __VA_ARGS__)                                                \
    FORM(name, b8, uint8_t, R_##result(uint8_t), STORE_BIT, __VA_ARGS__)

#endif
