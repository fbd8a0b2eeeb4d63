/* Reductions: the folds of ops/fold_table.h, argmax and argmin, var and std.
 *
 * An output's elements go to the lanes of a block in turn, and lanes are joined in a tree. Where
 * the elements are cut into parts, the block that finishes last joins the parts in the order of
 * their numbers. So the order of additions depends on the shapes and the device alone, and
 * results are the same on every run. */
#include "cuda/kernels/device.cuh"
#include "ops/fold_table.h"

/* ------------------------------------------------------------------------- folds */

/* A fold has the element type T as in memory. Its Cell holds what a thread keeps of the elements that it has seen (at
 * most an mr_cuda_cell). begin() makes a cell of no elements, which may know the output's first element. step() takes
 * in an element and its position, and join() a cell. final() returns a double or an int64_t. */

MR_DEVICE double result_of(float v) { return v; }
MR_DEVICE double result_of(double v) { return v; }
template <class I> MR_DEVICE int64_t result_of(I v) { return (int64_t)v; }

#define LOAD(v)      widen(v)
#define LOAD_BOOL(v) ((v) != 0)
#define FOLD(name, tag, T_, load, A_, begin_, step_, joined, final_)                               \
    struct name##_##tag {                                                                          \
        typedef T_ T;                                                                              \
        typedef A_ A;                                                                              \
        typedef A Cell;                                                                            \
        MR_DEVICE_MEMBER A begin(T) { return (A)begin_(tag); }                                     \
        MR_DEVICE_MEMBER void step(A &s, T stored, int64_t) {                                      \
            computed<T> x = load(stored);                                                          \
            s = (A)(step_);                                                                        \
        }                                                                                          \
        MR_DEVICE_MEMBER void join(A &s, const A &o) { s = (A)(joined); }                          \
        MR_DEVICE_MEMBER auto final(const A &s, int64_t n, double) { return result_of(final_); }   \
    };                                                                                             \
    REDUCTION(name, tag)

#define REDUCTION(name, tag)                                                                       \
    KERNEL(name, tag, rows) KERNEL(name, tag, tile) KERNEL(name, tag, columns)
#define KERNEL(name, tag, form)                                                                    \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS, MR_CUDA_REDUCE_BLOCKS)           \
        millrace_##name##_##tag##_##form(const __grid_constant__ mr_cuda_reduce p) {               \
        reduce_##form<name##_##tag>(p);                                                            \
    }

/* Where max and min of a type begin. */
#define BEGIN_OF(T, tag)                                                                           \
    MR_DEVICE T begin_of(T, bool greatest) { return greatest ? LEAST_##tag : GREATEST_##tag; }
BEGIN_OF(float, f32)
BEGIN_OF(double, f64)
BEGIN_OF(uint8_t, u8)
BEGIN_OF(int32_t, i32)
BEGIN_OF(int64_t, i64)

/* Where the extreme is, counted from 0; of several the first; NaN before all else. It begins as though element 0
 * were the worst there is: if nothing is better than that, the first is the one. */
template <class T_, bool greatest> struct arg {
    typedef T_ T;
    typedef computed<T> C;
    struct Cell {
        C best;
        int64_t i;
    };
    MR_DEVICE_MEMBER Cell begin(T) { return {begin_of(C(), greatest), 0}; }
    MR_DEVICE_MEMBER bool better(C x, C best) { return !(greatest ? x <= best : x >= best) && best == best; }
    MR_DEVICE_MEMBER void step(Cell &s, T stored, int64_t i) {
        C x = widen(stored);
        if (better(x, s.best)) s = {x, i};
    }
    MR_DEVICE_MEMBER void join(Cell &s, const Cell &o) {
        if (better(o.best, s.best) || (o.i < s.i && !better(s.best, o.best))) s = o;
    }
    MR_DEVICE_MEMBER int64_t final(const Cell &s, int64_t, double) { return s.i + 1; }
};

/* Sums of the differences from the output's first element and of their squares. That element is one of the elements
 * of the variance. So the part that cancels at the end is at most n times the result, with n elements. */
template <class T_, bool root> struct spread {
    typedef T_ T;
    struct Cell {
        double shift, sum, squares;
    };
    MR_DEVICE_MEMBER Cell begin(T first) { return {(double)widen(first), 0, 0}; }
    MR_DEVICE_MEMBER void step(Cell &s, T x, int64_t) {
        double d = (double)widen(x) - s.shift;
        s.sum += d;
        s.squares = __fma_rn(d, d, s.squares);
    }
    MR_DEVICE_MEMBER void join(Cell &s, const Cell &o) {
        s.sum += o.sum;
        s.squares += o.squares;
    }
    MR_DEVICE_MEMBER double final(const Cell &s, int64_t n, double correction) {
        double freedom = (double)n - correction, left = s.squares - s.sum * (s.sum / (double)n);
        double variance = (left < 0 ? 0 : left) / (freedom > 0 ? freedom : 0);
        return root ? sqrt(variance) : variance;
    }
};

/* A bool counts as 0 or 1 whatever its byte. */
template <class Fold> struct of_bool : Fold {
    MR_DEVICE_MEMBER void step(typename Fold::Cell &s, uint8_t x, int64_t i) { Fold::step(s, x != 0, i); }
};

/* ------------------------------------------------------------------------- what the forms share */

/* n / d, bit by bit: rare, and where it is a library's division the whole kernel has fewer registers. */
MR_DEVICE int64_t slow_quotient(int64_t n, int64_t d) {
    int64_t quotient = 0, rest = 0;
#pragma unroll 1
    for (int bit = 62; bit >= 0; bit--) {
        rest = rest * 2 + (n >> bit & 1);
        quotient *= 2;
        if (rest >= d) rest -= d, quotient++;
    }
    return quotient;
}

/* Where the element at a position is: offset_of without a call. */
MR_DEVICE int64_t place_of(const mr_cuda_shape &shape, const mr_cuda_strides &strides, int64_t position) {
    int64_t place = 0;
    uint32_t d = 0;
#pragma unroll 1
    for (; d + 1 < shape.ndim; d++) {
        int64_t index;
        if (shape.wide) {
            int64_t rest = slow_quotient(position, shape.size[d]);
            index = position - rest * shape.size[d], position = rest;
        } else {
            uint32_t rest = (uint32_t)position;
            index = next_index(shape, d, rest), position = rest;
        }
        place += index * strides.stride[d];
    }
    return place + position * strides.stride[d];
}

/* Units that are loaded before the first one is used: the bytes in flight hide the latency of memory. More of them
 * would take registers, and with them blocks that work at the same time. */
template <class T, int V> constexpr int at_once = sizeof(T) * V < 16 ? 8 : 4;

/* A unit as it is in memory. The compiler would keep each of several bytes in a register of its
 * own. */
template <class T, int V>
using unit_of = std::conditional_t<sizeof(T) * V < 4, vector<T, V>, vector<uint32_t, (sizeof(T) * V + 3) / 4>>;

/* Folds units that are `stride` elements apart, the first at x: of the n units from there on every `step`th is this
 * thread's. A unit is V neighbours, which are loaded as one. C is 1 if they belong to one output, in whose order they
 * count, and V if each has an output of its own. `position`: which element of its output the first is. */
template <class F, int V, int C>
MR_DEVICE void fold_run(typename F::Cell *cell, const typename F::T *x, int64_t stride, int64_t n, int32_t step,
                        int64_t position) {
    typedef typename F::T T;
    constexpr int U = at_once<T, V>;
#pragma unroll 1
    for (; n > 0; n -= U * step) {
        int32_t left = n < U * step ? (int32_t)n : U * step;
        unit_of<T, V> v[U];
#pragma unroll
        for (int u = 0; u < U; u++, x += stride)
            if (u * step < left) v[u] = *(const unit_of<T, V> *)x;
#pragma unroll
        for (int u = 0; u < U; u++, position += step * (V / C)) {
            if (u * step >= left) continue;
            T element[V];
            memcpy(element, &v[u], sizeof element);
#pragma unroll
            for (int j = 0; j < V; j++) F::step(cell[C == 1 ? 0 : j], element[j], C == 1 ? position + j : position);
        }
    }
}

/* A thread's share of this block's part of the elements from x on. */
template <class F, int V, int C>
MR_DEVICE void fold_part(const mr_cuda_reduce &p, typename F::Cell *cell, const typename F::T *x, uint32_t lane) {
    constexpr int unit = V / C; /* elements of one output */
    uint32_t outer_part = blockIdx.y / p.inner_parts, inner_part = blockIdx.y - outer_part * p.inner_parts;
    int64_t first = (int64_t)inner_part * p.part, outer = (int64_t)outer_part * p.outer_part;
    int64_t runs = p.outers - outer < p.outer_part ? p.outers - outer : p.outer_part;
#pragma unroll 1
    for (; runs > 0; runs--, outer++) {
        const typename F::T *at = x + place_of(p.outer, p.outer_stride, outer);
        int64_t position = outer * p.inner;
        /* A run of neighbours may begin and end in less than a unit. */
        int64_t head = unit > 1 ? -((intptr_t)at / (intptr_t)sizeof(typename F::T)) & (unit - 1) : 0;
        if (unit > 1 && inner_part == 0)
#pragma unroll 1
            for (int64_t i = lane; i < head && i < p.inner; i += p.lanes) F::step(*cell, at[i], position + i);
        int64_t units = (p.inner - head) / unit, left = units - first, from = head + (first + lane) * unit;
        fold_run<F, V, C>(cell, at + from * p.inner_stride, p.inner_stride * unit * p.lanes,
                          (left < p.part ? left : p.part) - lane, (int32_t)p.lanes, position + from);
        if (unit > 1 && inner_part == p.inner_parts - 1)
#pragma unroll 1
            for (int64_t i = head + units * unit + lane; i < p.inner; i += p.lanes)
                F::step(*cell, at[i], position + i);
    }
}

/* The cell of the thread `distance` further on in the warp. */
template <class Cell> MR_DEVICE Cell shuffle_down(const Cell &cell, uint32_t distance) {
    uint32_t words[(sizeof cell + 3) / 4] = {};
    memcpy(words, &cell, sizeof cell);
#pragma unroll
    for (uint32_t &word : words) word = __shfl_down_sync(~0u, word, distance);
    Cell other;
    memcpy(&other, words, sizeof other);
    return other;
}

/* Joins the lanes of each output in a tree; the result is lane 0's. Within a warp other threads join what means
 * nothing, but lane 0's tree has none of that. `shared` has room for C * MR_CUDA_THREADS / 2 cells. */
template <class F, int C>
MR_DEVICE void join_lanes(uint32_t lanes, uint32_t width, bool columns, uint32_t slot, uint32_t lane,
                          typename F::Cell *shared, typename F::Cell *cell) {
#pragma unroll 1
    for (uint32_t half = lanes / 2; half > 0; half /= 2) {
        uint32_t distance = columns ? half * width : half;
        if (distance < 32) {
#pragma unroll
            for (int c = 0; c < C; c++) F::join(cell[c], shuffle_down(cell[c], distance));
            continue;
        }
        constexpr int stride = MR_CUDA_THREADS / 2;
        if (lane >= half && lane < 2 * half)
#pragma unroll
            for (int c = 0; c < C; c++) shared[c * stride + (lane - half) * width + slot] = cell[c];
        __syncthreads();
        if (lane < half)
#pragma unroll
            for (int c = 0; c < C; c++) F::join(cell[c], shared[c * stride + lane * width + slot]);
        __syncthreads();
    }
}

/* The common types without a call. */
MR_DEVICE void store_result(const mr_cuda_reduce &p, int64_t place, double v) {
    if (p.out_dtype == DTYPE_F32) ((float *)p.out)[place] = (float)v;
    else store_any(p.out, p.out_dtype, place, v);
}
MR_DEVICE void store_result(const mr_cuda_reduce &p, int64_t place, int64_t v) {
    if (p.out_dtype == DTYPE_I64) ((int64_t *)p.out)[place] = v;
    else store_any(p.out, p.out_dtype, place, v);
}

/* From what each thread has of C outputs, the first of them `output`, to results. */
template <class F, int C>
MR_DEVICE void finish(const mr_cuda_reduce &p, bool columns, uint32_t slot, uint32_t lane, int64_t output,
                      typename F::Cell *shared, typename F::Cell *cell) {
    typedef typename F::Cell Cell;
    bool active = output < p.outputs;
    join_lanes<F, C>(p.lanes, p.width, columns, slot, lane, shared, cell);
    if (p.splits > 1) {
        __shared__ bool is_last;
        Cell *partial = (Cell *)p.partial + ((uint64_t)blockIdx.x * p.splits * p.width + slot) * C;
        if (lane == 0 && active)
#pragma unroll
            for (int c = 0; c < C; c++) partial[(uint64_t)blockIdx.y * p.width * C + c] = cell[c];
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) is_last = atomicAdd(&p.arrived[blockIdx.x], 1) == p.splits - 1;
        __syncthreads();
        if (!is_last) return;
        __threadfence();
#pragma unroll
        for (int c = 0; c < C; c++) cell[c] = F::begin(typename F::T());
        if (active)
            for (uint32_t part = lane; part < p.splits; part += p.lanes)
#pragma unroll
                for (int c = 0; c < C; c++) F::join(cell[c], partial[(uint64_t)part * p.width * C + c]);
        join_lanes<F, C>(p.lanes, p.width, columns, slot, lane, shared, cell);
        if (threadIdx.x == 0) p.arrived[blockIdx.x] = 0; /* for the next launch */
    }
    if (lane == 0 && active) {
        int64_t place = place_of(p.kept, p.out_stride, output);
#pragma unroll
        for (int c = 0; c < C; c++)
            store_result(p, place + c * p.out_stride.stride[0], F::final(cell[c], p.length, p.correction));
    }
}

/* ------------------------------------------------------------------------- the forms */

/* The elements of one output go to `lanes` threads side by side, unit by unit. */
template <class F> MR_DEVICE void reduce_rows(const mr_cuda_reduce &p) {
    typedef typename F::T T;
    typedef typename F::Cell Cell;
    static_assert(sizeof(Cell) <= sizeof(mr_cuda_cell));
    __shared__ Cell shared[MR_CUDA_THREADS / 2];
    uint32_t lane = threadIdx.x & (p.lanes - 1), slot = threadIdx.x / p.lanes;
    int64_t output = (int64_t)blockIdx.x * p.width + slot;
    Cell cell = F::begin(T());
    if (output < p.outputs && p.length > 0) {
        const T *x = (const T *)p.in + place_of(p.kept, p.kept_stride, output);
        cell = F::begin(*x);
        if (p.unit > 1) fold_part<F, 16 / sizeof(T), 1>(p, &cell, x, lane);
        else fold_part<F, 1, 1>(p, &cell, x, lane);
    }
    finish<F, 1>(p, false, slot, lane, output, shared, &cell);
}

/* Short rows, one after the other: a block takes `width` of them into shared memory, whatever their length and
 * alignment, and folds each with few threads. Rows of whole units are put an odd number of units apart, so that
 * threads that go along different rows meet in few banks. */
template <class F, int V> MR_DEVICE void fold_tile(const mr_cuda_reduce &p, uint4 *staged) {
    typedef typename F::T T;
    constexpr int WIDE = 16 / sizeof(T), U = 8;
    T *tile = (T *)staged;
    int64_t output = (int64_t)blockIdx.x * p.width;
    uint32_t rows = p.outputs - output < p.width ? (uint32_t)(p.outputs - output) : p.width;
    uint32_t length = (uint32_t)p.length, pitch = V > 1 ? length | V : length;
    uint32_t units = rows * length / WIDE, rest = units * WIDE + threadIdx.x;
    const T *x = (const T *)p.in + output * p.length;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < units; i += U * MR_CUDA_THREADS) {
        uint4 v[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            if (i + u * MR_CUDA_THREADS < units) v[u] = ((const uint4 *)x)[i + u * MR_CUDA_THREADS];
#pragma unroll
        for (int u = 0; u < U; u++) {
            uint32_t to = i + u * MR_CUDA_THREADS, row = to * WIDE;
            if (V > 1) to = (next_index(p.row, 0, row) + row * pitch) / WIDE;
            if (i + u * MR_CUDA_THREADS < units) staged[to] = v[u];
        }
    }
    if (V == 1 && rest < rows * length) tile[rest] = x[rest];
    __syncthreads();

    uint32_t lane = threadIdx.x & (p.lanes - 1), slot = threadIdx.x / p.lanes;
#pragma unroll 1
    for (uint32_t first = 0; first < rows; first += MR_CUDA_THREADS / p.lanes) {
        uint32_t row = first + slot;
        typename F::Cell cell = F::begin(T());
        if (row < rows) {
            const T *own = tile + row * pitch;
            cell = F::begin(*own);
            fold_run<F, V, 1>(&cell, own + lane * V, V * p.lanes, (int64_t)(length / V) - lane, (int32_t)p.lanes,
                              lane * V);
        }
        join_lanes<F, 1>(p.lanes, 0, false, slot, lane, (typename F::Cell *)nullptr, &cell);
        if (lane == 0 && row < rows)
            store_result(p, (output + row) * p.out_stride.stride[0], F::final(cell, p.length, p.correction));
    }
}

template <class F> MR_DEVICE void reduce_tile(const mr_cuda_reduce &p) {
    typedef typename F::T T;
    extern __shared__ uint4 staged[];
    if (p.unit > 1) fold_tile<F, 16 / sizeof(T)>(p, staged);
    else fold_tile<F, 1>(p, staged);
}

/* Threads side by side go along neighbouring outputs, C each, and down every `lanes`th of the rows that are
 * folded. */
template <class F, int C> MR_DEVICE void fold_columns(const mr_cuda_reduce &p, typename F::Cell *shared) {
    typedef typename F::T T;
    uint32_t slot = threadIdx.x & (p.width - 1), lane = threadIdx.x / p.width;
    int64_t output = ((int64_t)blockIdx.x * p.width + slot) * C;
    bool active = output < p.outputs && p.length > 0;
    const T *x = (const T *)p.in + (active ? place_of(p.kept, p.kept_stride, output) : 0);
    typename F::Cell cell[C];
#pragma unroll
    for (int c = 0; c < C; c++) cell[c] = F::begin(active ? x[c] : T());
    if (active) fold_part<F, C, C>(p, cell, x, lane);
    finish<F, C>(p, true, slot, lane, output, shared, cell);
}

template <class F> MR_DEVICE void reduce_columns(const mr_cuda_reduce &p) {
    typedef typename F::T T;
    constexpr int C = sizeof(T) < 4 ? 4 : 16 / sizeof(T);
    __shared__ typename F::Cell shared[C * MR_CUDA_THREADS / 2];
    if (p.unit > 1) fold_columns<F, C>(p, shared);
    else fold_columns<F, 1>(p, shared);
}

/* ------------------------------------------------------------------------- from rows to kernels */

#define X(name, kind, begin, step, join, final)                                                    \
    FOLD(name, f32, float, LOAD, A_##kind(float, double), BEGIN_##begin, step, join, final)        \
    FOLD(name, f64, double, LOAD, A_##kind(double, double), BEGIN_##begin, step, join, final)      \
    FOLD(name, f16, f16, LOAD, A_##kind(float, double), BEGIN_##begin, step, join, final)          \
    FOLD(name, bf16, bf16, LOAD, A_##kind(float, double), BEGIN_##begin, step, join, final)        \
    FOLD(name, u8, uint8_t, LOAD, A_##kind(uint8_t, int64_t), BEGIN_##begin, step, join, final)    \
    FOLD(name, i32, int32_t, LOAD, A_##kind(int32_t, int64_t), BEGIN_##begin, step, join, final)   \
    FOLD(name, i64, int64_t, LOAD, A_##kind(int64_t, int64_t), BEGIN_##begin, step, join, final)   \
    FOLD(name, b8, uint8_t, LOAD_BOOL, A_##kind(uint8_t, int64_t), BEGIN_##begin, step, join, final)
FOLDS(X)
#undef X

#define ALL_TYPES(name, fold, variant)                                                             \
    typedef fold<float, variant> name##_f32;                                                       \
    typedef fold<double, variant> name##_f64;                                                      \
    typedef fold<f16, variant> name##_f16;                                                         \
    typedef fold<bf16, variant> name##_bf16;                                                       \
    typedef fold<uint8_t, variant> name##_u8;                                                      \
    typedef fold<int32_t, variant> name##_i32;                                                     \
    typedef fold<int64_t, variant> name##_i64;                                                     \
    typedef of_bool<fold<uint8_t, variant>> name##_b8;                                             \
    REDUCTION(name, f32)                                                                           \
    REDUCTION(name, f64)                                                                           \
    REDUCTION(name, f16)                                                                           \
    REDUCTION(name, bf16)                                                                          \
    REDUCTION(name, u8)                                                                            \
    REDUCTION(name, i32)                                                                           \
    REDUCTION(name, i64)                                                                           \
    REDUCTION(name, b8)
ALL_TYPES(argmax, arg, true)
ALL_TYPES(argmin, arg, false)
ALL_TYPES(var, spread, false)
ALL_TYPES(std, spread, true)
