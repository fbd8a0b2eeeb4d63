/* softmax and log_softmax: the expressions of ops/table_reduce.h along one dim.
 *
 * A row's elements go to its lanes in turn. A row that fits is read once and kept in registers. A longer one is
 * read twice: first for maximum and sum together, the sum so far being scaled when a greater element comes, then
 * for the result. Lanes and parts are joined in an order that depends on the shapes and the device alone. */
#include "cuda/kernels/device.cuh"
#include "ops/table_reduce.h"

/* ------------------------------------------------------------------------- maximum and sum */

/* The device's own: by mr_exp's way arithmetic would take longer than memory does. */
MR_DEVICE float exp_of(float d) { return expf(d); }
MR_DEVICE double exp_of(double d) { return exp(d); }

/* The sum is that of exp(x - base_of(max)). */
template <class T> struct total {
    T max;
    double sum;
};

/* The number to subtract. As long as there is nothing but -inf, exp must give 0 and not NaN; where that is all of a
 * row, 0 / 0 follows. */
template <class T> MR_DEVICE T base_of(T max) { return max == -(T)INFINITY ? (T)0 : max; }

/* In double, as the sum may be scaled many times. */
template <class T> MR_DEVICE void raise_to(total<T> &t, T max) {
    if (max == t.max) return;
    t.sum *= exp((double)t.max - (double)base_of(max));
    t.max = max;
}

MR_DEVICE void join(double &sum, double o) { sum += o; }
MR_DEVICE void join(vector<float, 1> &max, vector<float, 1> o) { max.v[0] = mr_maximum(max.v[0], o.v[0]); }
MR_DEVICE void join(vector<double, 1> &max, vector<double, 1> o) { max.v[0] = mr_maximum(max.v[0], o.v[0]); }
template <class T> MR_DEVICE void join(total<T> &t, total<T> o) {
    T max = mr_maximum(t.max, o.max);
    raise_to(t, max);
    raise_to(o, max);
    t.sum += o.sum;
}

MR_DEVICE double exchange(double sum, uint32_t mask) { return __shfl_xor_sync(~0u, sum, mask); }
template <class T> MR_DEVICE vector<T, 1> exchange(vector<T, 1> max, uint32_t mask) {
    return {{__shfl_xor_sync(~0u, max.v[0], mask)}};
}
template <class T> MR_DEVICE total<T> exchange(total<T> t, uint32_t mask) {
    return {__shfl_xor_sync(~0u, t.max, mask), __shfl_xor_sync(~0u, t.sum, mask)};
}

/* Joins the lanes of each row; all of them get the result, with the same bits. */
template <class C> MR_DEVICE void join_lanes(const mr_cuda_softmax &p, C &c) {
    __shared__ C all[MR_CUDA_THREADS];
    uint32_t apart = p.columns ? p.width : 1, end = apart * p.lanes;
    for (uint32_t mask = apart; mask < 32 && mask < end; mask *= 2) join(c, exchange(c, mask));
    if (end <= 32) return;
    uint32_t step = apart > 32 ? apart : 32, first = threadIdx.x / end * end + threadIdx.x % step;
    __syncthreads(); /* the last call's have been read */
    all[threadIdx.x] = c;
    __syncthreads();
    c = all[first];
    for (uint32_t i = step; i < end; i += step) join(c, all[first + i]);
}

/* ------------------------------------------------------------------------- one row */

/* This thread's place, and what it sees of its row. */
template <class T> struct place {
    uint32_t lane;
    int64_t row, length; /* 0: there is no such row */
    int64_t in, out;     /* where it begins */
};

template <class T> MR_DEVICE place<T> place_of(const mr_cuda_softmax &p) {
    place<T> at;
    uint32_t slot = p.columns ? threadIdx.x % p.width : threadIdx.x / p.lanes;
    at.lane = p.columns ? threadIdx.x / p.width : threadIdx.x % p.lanes;
    at.row = (int64_t)blockIdx.x * p.width + slot;
    at.length = at.row < p.rows ? p.length : 0;
    at.in = far_offset(p.kept, p.in_kept, (uint64_t)at.row);
    at.out = far_offset(p.kept, p.out_kept, (uint64_t)at.row);
    return at;
}

/* V elements from the row's ith on; S is their type in memory. */
template <class S, int V>
MR_DEVICE vector<computed<S>, V> load_row(const mr_cuda_softmax &p, const place<computed<S>> &at, int64_t i) {
    if constexpr (V > 1) return widen_vector(load_vector<S, V>(p.in, (uint64_t)(at.in + i)));
    else if (p.own) return {{widen(((const S *)p.in)[at.in + i * p.in_step])}};
    else return {{load_any<computed<S>>(p.in, (int)p.in_dtype, at.in + i * p.in_step)}};
}

template <class S, int V> MR_DEVICE void store_row(const mr_cuda_softmax &p, const place<computed<S>> &at, int64_t i,
                                                   const vector<computed<S>, V> &v) {
    if constexpr (V > 1) {
        vector<S, V> stored;
#pragma unroll
        for (int j = 0; j < V; j++) stored.v[j] = convert<S>(v.v[j]);
        store_vector(p.out, (uint64_t)(at.out + i), stored);
    } else if (p.own) {
        ((S *)p.out)[at.out + i * p.out_step] = convert<S>(v.v[0]);
    } else {
        store_any<computed<S>>(p.out, (int)p.out_dtype, at.out + i * p.out_step, v.v[0]);
    }
}

/* k in the place of x; returns the sum of e. */
template <class Row, int V> MR_DEVICE double weigh(vector<typename Row::T, V> &v, typename Row::T base) {
    typedef typename Row::T T;
    double sum = 0;
#pragma unroll
    for (int j = 0; j < V; j++) {
        T d = v.v[j] - base, e = exp_of(d);
        v.v[j] = Row::kept(d, e);
        sum += (double)e;
    }
    return sum;
}

template <class Row, int V> MR_DEVICE void finish(vector<typename Row::T, V> &v, typename Row::T n) {
#pragma unroll
    for (int j = 0; j < V; j++) v.v[j] = Row::result(v.v[j], n);
}

/* Rows that are kept in registers. */
template <class Row, int V> MR_DEVICE void held(const mr_cuda_softmax &p) {
    typedef typename Row::T T;
    typedef typename Row::S S;
    constexpr int N = MR_CUDA_HELD / sizeof(T) / V;
    place<T> at = place_of<T>(p);
    int first = (int)at.lane * V, step = (int)p.lanes * V, length = (int)at.length;
    vector<T, V> v[N];
#pragma unroll
    for (int u = 0; u < N; u++)
        if (first + u * step < length) v[u] = load_row<S, V>(p, at, first + u * step);
    vector<T, 1> max = {{-(T)INFINITY}};
#pragma unroll
    for (int u = 0; u < N; u++)
        if (first + u * step < length)
#pragma unroll
            for (int j = 0; j < V; j++) max.v[0] = mr_maximum(max.v[0], v[u].v[j]);
    join_lanes(p, max);
    T base = base_of(max.v[0]);
    double sum = 0;
#pragma unroll
    for (int u = 0; u < N; u++)
        if (first + u * step < length) sum += weigh<Row, V>(v[u], base);
    join_lanes(p, sum);
    T n = (T)Row::norm(sum);
#pragma unroll
    for (int u = 0; u < N; u++) {
        if (first + u * step >= length) break;
        finish<Row, V>(v[u], n);
        store_row<S, V>(p, at, first + u * step, v[u]);
    }
}

/* Gives this lane's share of the elements first to end - 1. */
template <class S, int V>
MR_DEVICE total<computed<S>> sweep(const mr_cuda_softmax &p, const place<computed<S>> &at, int64_t first, int64_t end) {
    typedef computed<S> T;
    constexpr int U = V > 1 ? 4 : 8;
    total<T> t = {-(T)INFINITY, 0};
    int64_t step = (int64_t)p.lanes * V;
    for (int64_t i = first + at.lane * V; i < end; i += U * step) {
        vector<T, V> v[U];
        T max = t.max;
#pragma unroll
        for (int u = 0; u < U; u++) {
#pragma unroll
            for (int j = 0; j < V; j++) v[u].v[j] = -(T)INFINITY; /* which adds nothing */
            if (i + u * step < end) v[u] = load_row<S, V>(p, at, i + u * step);
        }
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int j = 0; j < V; j++) max = mr_maximum(max, v[u].v[j]);
        raise_to(t, max);
        T base = base_of(max);
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int j = 0; j < V; j++) t.sum += (double)exp_of(v[u].v[j] - base);
    }
    return t;
}

/* Longer rows, and those of other dtypes. */
template <class Row, int V> MR_DEVICE void swept(const mr_cuda_softmax &p) {
    typedef typename Row::T T;
    typedef typename Row::S S;
    place<T> at = place_of<T>(p);
    int64_t first = blockIdx.y * p.part, end = first + p.part < at.length ? first + p.part : at.length;
    total<T> t = {-(T)INFINITY, 0};
    if (!p.writes) {
        t = sweep<S, V>(p, at, first, end);
    } else if (at.length > 0) {
        for (uint32_t part = at.lane; part < p.splits; part += p.lanes) {
            const mr_cuda_cell &cell = p.cells[at.row * p.splits + part];
            join(t, {(T)cell.f, cell.g});
        }
    }
    join_lanes(p, t);
    if (p.splits > 1 && !p.writes) {
        if (at.lane == 0 && at.length > 0) p.cells[at.row * p.splits + blockIdx.y] = {(double)t.max, t.sum, 0};
        return;
    }
    T base = base_of(t.max), n = (T)Row::norm(t.sum);
    int64_t step = (int64_t)p.lanes * V;
#pragma unroll 4
    for (int64_t i = first + at.lane * V; i < end; i += step) {
        vector<T, V> v = load_row<S, V>(p, at, i);
        weigh<Row, V>(v, base);
        finish<Row, V>(v, n);
        store_row<S, V>(p, at, i, v);
    }
}

/* ------------------------------------------------------------------------- from rows to kernels */

/* millrace_NAME_TAG takes dense rows that begin at 16 bytes and have a whole number of vectors, and
 * millrace_NAME_TAG_strided any. */
#define SOFTMAX(name, tag, S_, kept_, norm_, result_)                                              \
    struct name##_##tag {                                                                          \
        typedef S_ S;                                                                              \
        typedef computed<S> T;                                                                     \
        MR_DEVICE_MEMBER T kept(T d, T e) { return kept_; }                                        \
        MR_DEVICE_MEMBER double norm(double s) { return norm_; }                                   \
        MR_DEVICE_MEMBER T result(T k, T n) { return result_; }                                    \
    };                                                                                             \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_##tag(const __grid_constant__ mr_cuda_softmax p) {                       \
        if (p.held) held<name##_##tag, 16 / sizeof(S_)>(p);                                        \
        else swept<name##_##tag, 16 / sizeof(S_)>(p);                                              \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_##tag##_strided(const __grid_constant__ mr_cuda_softmax p) {             \
        if (p.held) held<name##_##tag, 1>(p);                                                      \
        else swept<name##_##tag, 1>(p);                                                            \
    }

#define X(name, flops, kept, norm, result)                                                         \
    SOFTMAX(name, f32, float, kept, norm, result)                                                  \
    SOFTMAX(name, f64, double, kept, norm, result)                                                 \
    SOFTMAX(name, f16, f16, kept, norm, result)                                                    \
    SOFTMAX(name, bf16, bf16, kept, norm, result)
MR_SOFTMAX_TABLE(X)
