/* Reductions: the folds of ops/fold_table.h, argmax and argmin, var and std.
 *
 * An output's elements go to the lanes of a block in turn, lanes are joined in a tree, and where the elements
 * are cut into parts, the block that finishes last joins the parts in the order of their numbers. So the
 * order of additions depends on the shapes and the device alone, and results are the same on every run. */
#include "cuda/kernels/device.cuh"
#include "ops/fold_table.h"

/* ------------------------------------------------------------------------- folds */

/* A fold has the element type T; Run, what a thread keeps while it goes over elements; Cell, what is joined
 * (at most an mr_cuda_cell); and final(), whose result is a double or an int64_t. */

MR_DEVICE double result_of(float v) { return v; }
MR_DEVICE double result_of(double v) { return v; }
template <class I> MR_DEVICE int64_t result_of(I v) { return (int64_t)v; }

#define LOAD(v)      (v)
#define LOAD_BOOL(v) ((v) != 0)
#define FOLD(name, tag, T_, load, A_, begin_, step_, joined, final_)                               \
    struct name##_##tag {                                                                          \
        typedef T_ T;                                                                              \
        typedef A_ A;                                                                              \
        typedef A Run;                                                                             \
        typedef A Cell;                                                                            \
        MR_DEVICE_MEMBER A begin() { return (A)begin_(tag); }                                      \
        MR_DEVICE_MEMBER void step(A &s, T stored, int64_t) {                                      \
            T x = load(stored);                                                                    \
            s = (A)(step_);                                                                        \
        }                                                                                          \
        MR_DEVICE_MEMBER A cell_of(const A &s) { return s; }                                       \
        MR_DEVICE_MEMBER void join(A &s, const A &o) { s = (A)(joined); }                          \
        MR_DEVICE_MEMBER auto final(const A &s, int64_t n, double) { return result_of(final_); }   \
    };                                                                                             \
    REDUCTION(name, tag)

#define REDUCTION(name, tag)                                                                       \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_##tag(const __grid_constant__ mr_cuda_reduce p) {                        \
        reduce<name##_##tag>(p);                                                                   \
    }

/* Where the extreme is, counted from 0; of several the first; NaN before all else. -1: no element yet. */
template <class T_, bool greatest> struct arg {
    typedef T_ T;
    struct Cell {
        T best;
        int64_t i;
    };
    typedef Cell Run;
    MR_DEVICE_MEMBER Cell begin() { return {(T)0, -1}; }
    MR_DEVICE_MEMBER bool better(T x, T best) { return (greatest ? x > best : x < best) || (x != x && best == best); }
    MR_DEVICE_MEMBER void step(Cell &s, T x, int64_t i) {
        if (s.i < 0 || better(x, s.best)) s = {x, i};
    }
    MR_DEVICE_MEMBER Cell cell_of(const Cell &s) { return s; }
    MR_DEVICE_MEMBER void join(Cell &s, const Cell &o) {
        if (o.i < 0) return;
        if (s.i < 0 || better(o.best, s.best) || (o.i < s.i && !better(s.best, o.best))) s = o;
    }
    MR_DEVICE_MEMBER int64_t final(const Cell &s, int64_t, double) { return s.i + 1; }
};

/* A thread sums differences from its first element and their squares, which does not cancel; cells hold the
 * mean, the sum of squared differences from it and the count, and are joined by Chan's formula. */
template <class T_, bool root> struct spread {
    typedef T_ T;
    struct Run {
        double shift, sum, squares;
        int64_t n;
    };
    typedef mr_cuda_cell Cell;
    MR_DEVICE_MEMBER Run begin() { return {0, 0, 0, 0}; }
    MR_DEVICE_MEMBER void step(Run &s, T x, int64_t) {
        if (s.n++ == 0) s.shift = (double)x;
        double d = (double)x - s.shift;
        s.sum += d;
        s.squares = __fma_rn(d, d, s.squares);
    }
    MR_DEVICE_MEMBER Cell cell_of(const Run &s) {
        if (s.n == 0) return {0, 0, 0};
        double part = s.sum / (double)s.n, rest = s.squares - s.sum * part;
        return {s.shift + part, rest < 0 ? 0 : rest, s.n};
    }
    MR_DEVICE_MEMBER void join(Cell &s, const Cell &o) {
        if (o.i == 0) return;
        double n = (double)(s.i + o.i), d = o.f - s.f;
        s.f += d * ((double)o.i / n);
        s.g += o.g + d * d * ((double)s.i * (double)o.i / n);
        s.i += o.i;
    }
    MR_DEVICE_MEMBER double final(const Cell &s, int64_t n, double correction) {
        double freedom = (double)n - correction, variance = s.g / (freedom > 0 ? freedom : 0);
        return root ? sqrt(variance) : variance;
    }
};

/* A bool counts as 0 or 1 whatever its byte. */
template <class Fold> struct of_bool : Fold {
    MR_DEVICE_MEMBER void step(typename Fold::Run &s, uint8_t x, int64_t i) { Fold::step(s, x != 0, i); }
};

/* ------------------------------------------------------------------------- the kernel */

/* Elements first to end - 1 of one output, of which every `lanes`th is this thread's. */
template <class F> MR_DEVICE void fold_part(const mr_cuda_reduce &p, const typename F::T *x, int64_t first, int64_t end,
                                            uint32_t lane, typename F::Run &run) {
    typedef typename F::T T;
    constexpr int V = 16 / sizeof(T), U = V == 16 ? 1 : 4;
    int64_t i, step;
    if (p.vectors) {
        i = first + lane * V, step = (int64_t)p.lanes * V;
        for (; i + (U - 1) * step + V <= end; i += U * step) {
            vector<T, V> v[U];
#pragma unroll
            for (int u = 0; u < U; u++) v[u] = load_vector<T, V>(x, (uint64_t)(i + u * step));
#pragma unroll
            for (int u = 0; u < U; u++)
#pragma unroll
                for (int j = 0; j < V; j++) F::step(run, v[u].v[j], i + u * step + j);
        }
#pragma unroll 1
        for (; i < end; i += step)
#pragma unroll 1
            for (int j = 0; j < V && i + j < end; j++) F::step(run, x[i + j], i + j);
        return;
    }
    i = first + lane, step = p.lanes;
    if (p.reduced.ndim == 1) {
        int64_t stride = p.reduced_stride.stride[0];
        for (; i + 3 * step < end; i += 4 * step) {
            T v[4];
#pragma unroll
            for (int u = 0; u < 4; u++) v[u] = x[(i + u * step) * stride];
#pragma unroll
            for (int u = 0; u < 4; u++) F::step(run, v[u], i + u * step);
        }
    }
#pragma unroll 1
    for (; i < end; i += step) F::step(run, x[far_offset(p.reduced, p.reduced_stride, (uint64_t)i)], i);
}

/* Joins the lanes of each output; the result is lane 0's. */
template <class F> MR_DEVICE void join_lanes(const mr_cuda_reduce &p, typename F::Cell *cells, uint32_t lane,
                                             typename F::Cell &cell) {
    uint32_t apart = p.columns ? p.width : 1;
    for (uint32_t half = p.lanes / 2; half > 0; half /= 2) {
        if (lane >= half && lane < 2 * half) cells[threadIdx.x] = cell;
        __syncthreads();
        if (lane < half) F::join(cell, cells[threadIdx.x + half * apart]);
        __syncthreads();
    }
}

template <class F> MR_DEVICE void reduce(const mr_cuda_reduce &p) {
    typedef typename F::Cell Cell;
    static_assert(sizeof(Cell) <= sizeof(mr_cuda_cell));
    __shared__ Cell cells[MR_CUDA_THREADS];
    __shared__ bool is_last;
    uint32_t slot = p.columns ? threadIdx.x % p.width : threadIdx.x / p.lanes;
    uint32_t lane = p.columns ? threadIdx.x / p.width : threadIdx.x % p.lanes;
    int64_t output = (int64_t)blockIdx.x * p.width + slot;
    bool writes = lane == 0 && output < p.outputs;

    typename F::Run run = F::begin();
    if (output < p.outputs) {
        int64_t first = blockIdx.y * p.part, end = first + p.part < p.length ? first + p.part : p.length;
        const typename F::T *x = (const typename F::T *)p.in + far_offset(p.kept, p.kept_stride, (uint64_t)output);
        fold_part<F>(p, x, first, end, lane, run);
    }
    Cell cell = F::cell_of(run);
    join_lanes<F>(p, cells, lane, cell);

    if (p.splits > 1) {
        Cell *partial = (Cell *)p.partial + (uint64_t)blockIdx.x * p.splits * p.width;
        if (writes) partial[blockIdx.y * p.width + slot] = cell;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) is_last = atomicAdd(&p.arrived[blockIdx.x], 1) == p.splits - 1;
        __syncthreads();
        if (!is_last) return;
        __threadfence();
        cell = F::cell_of(F::begin());
        if (output < p.outputs)
            for (uint32_t part = lane; part < p.splits; part += p.lanes) F::join(cell, partial[part * p.width + slot]);
        join_lanes<F>(p, cells, lane, cell);
        if (threadIdx.x == 0) p.arrived[blockIdx.x] = 0; /* for the next launch */
    }
    if (writes)
        store_any(p.out, p.out_dtype, far_offset(p.out_shape, p.out_stride, (uint64_t)output),
                  F::final(cell, p.length, p.correction));
}

/* ------------------------------------------------------------------------- from rows to kernels */

#define X(name, kind, begin, step, join, final)                                                    \
    FOLD(name, f32, float, LOAD, A_##kind(float, double), BEGIN_##begin, step, join, final)        \
    FOLD(name, f64, double, LOAD, A_##kind(double, double), BEGIN_##begin, step, join, final)      \
    FOLD(name, u8, uint8_t, LOAD, A_##kind(uint8_t, int64_t), BEGIN_##begin, step, join, final)    \
    FOLD(name, i32, int32_t, LOAD, A_##kind(int32_t, int64_t), BEGIN_##begin, step, join, final)   \
    FOLD(name, i64, int64_t, LOAD, A_##kind(int64_t, int64_t), BEGIN_##begin, step, join, final)   \
    FOLD(name, b8, uint8_t, LOAD_BOOL, A_##kind(uint8_t, int64_t), BEGIN_##begin, step, join, final)
FOLDS(X)
#undef X

#define ALL_TYPES(name, fold, variant)                                                             \
    typedef fold<float, variant> name##_f32;                                                       \
    typedef fold<double, variant> name##_f64;                                                      \
    typedef fold<uint8_t, variant> name##_u8;                                                      \
    typedef fold<int32_t, variant> name##_i32;                                                     \
    typedef fold<int64_t, variant> name##_i64;                                                     \
    typedef of_bool<fold<uint8_t, variant>> name##_b8;                                             \
    REDUCTION(name, f32)                                                                           \
    REDUCTION(name, f64)                                                                           \
    REDUCTION(name, u8)                                                                            \
    REDUCTION(name, i32)                                                                           \
    REDUCTION(name, i64)                                                                           \
    REDUCTION(name, b8)
ALL_TYPES(argmax, arg, true)
ALL_TYPES(argmin, arg, false)
ALL_TYPES(var, spread, false)
ALL_TYPES(std, spread, true)
