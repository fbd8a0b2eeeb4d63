/* cumsum and cumprod along lines: in double for floats, in i64 for all others (ops/body/scan.c). Lines are cut into tiles.
 * Where a line has several, a first launch leaves each tile's total, and a second writes the results: each block adds
 * up the totals of the tiles before its own. So no block waits for another one. The order in which numbers are combined
 * depends on the line's length alone.
 *
 * The second launch begins with the last tile, since the end of the input is what the cache still has. */
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/order_args.h"

enum { WARPS = MR_CUDA_THREADS / 32, WARP_TILE = MR_CUDA_SCAN_TILE / WARPS, ROUNDS = WARP_TILE / 128 };

struct plus_op {
    template <class A> MR_DEVICE_MEMBER A start() { return 0; }
    MR_DEVICE_MEMBER double join(double a, double b) { return a + b; }
    MR_DEVICE_MEMBER int64_t join(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
};
struct times_op {
    template <class A> MR_DEVICE_MEMBER A start() { return 1; }
    MR_DEVICE_MEMBER double join(double a, double b) { return a * b; }
    MR_DEVICE_MEMBER int64_t join(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
};

/* An element of a dtype that only the launch knows. */
struct unknown {};

/* ------------------------------------------------------------------------- four neighbours */

template <class A, class In> MR_DEVICE void load_four(const mr_cuda_scan &p, int64_t line, int64_t at, A nothing, A *v) {
    if constexpr (std::is_same_v<In, unknown>) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            v[j] = at + j < p.length ? load_any<A>(p.in, p.in_dtype, line + (at + j) * p.step[0]) : nothing;
    } else {
        const In *in = (const In *)p.in + line;
        if (p.vectors && at + 4 <= p.length) {
            vector<In, 4> w = load_vector<In, 4>(in, (uint64_t)at);
#pragma unroll
            for (int j = 0; j < 4; j++) v[j] = convert<A>(w.v[j]);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) v[j] = at + j < p.length ? convert<A>(in[(at + j) * p.step[0]]) : nothing;
        }
    }
}

template <class A, class Out> MR_DEVICE void store_four(const mr_cuda_scan &p, int64_t line, int64_t at, const A *v) {
    if constexpr (std::is_same_v<Out, unknown>) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (at + j < p.length) store_any<A>(p.out, p.out_dtype, line + (at + j) * p.step[1], v[j]);
    } else {
        Out *out = (Out *)p.out + line;
        if (p.vectors && at + 4 <= p.length) {
            vector<Out, 4> w;
#pragma unroll
            for (int j = 0; j < 4; j++) w.v[j] = convert<Out>(v[j]);
            store_vector<Out, 4>(out, (uint64_t)at, w);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (at + j < p.length) out[(at + j) * p.step[1]] = convert<Out>(v[j]);
        }
    }
}

/* ------------------------------------------------------------------------- tiles */

template <class Op, class A> MR_DEVICE A of_warp(A v) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) v = Op::join(v, __shfl_xor_sync(~0u, v, step));
    return v;
}

/* The total of a tile. */
template <class Op, class A, class In> MR_DEVICE void total_of_tile(const mr_cuda_scan &p) {
    __shared__ A totals[WARPS];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t line = blockIdx.x / p.tiles, number = blockIdx.x - line * p.tiles;
    int64_t at = (int64_t)number * MR_CUDA_SCAN_TILE + warp * WARP_TILE + lane * 4;
    int64_t in = offset_of(p.kept, p.stride[0], line);
    A nothing = Op::template start<A>(), sum = nothing, v[ROUNDS][4];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) load_four<A, In>(p, in, at + r * 128, nothing, v[r]);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) sum = Op::join(sum, Op::join(Op::join(v[r][0], v[r][1]), Op::join(v[r][2], v[r][3])));
    sum = of_warp<Op>(sum);
    if (lane == 0) totals[warp] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    A all = nothing;
    for (uint32_t w = 0; w < WARPS; w++) all = Op::join(all, totals[w]);
    ((A *)p.cells)[blockIdx.x] = all;
}

/* What the tiles of the line before this one have, in parts: each thread has one. Nothing else depends on it for long, so
 * it is asked for first, and its loads are under way together with those of the elements. */
template <class Op, class A> MR_DEVICE A front_of_thread(const mr_cuda_scan &p, uint64_t line, uint64_t number) {
    const A *cells = (const A *)p.cells + line * p.tiles;
    A front = Op::template start<A>();
    if (p.prefixes) {
        if (threadIdx.x == 0 && number > 0) front = cells[number];
    } else if (number > 0) {
        constexpr int AT_ONCE = 4;
#pragma unroll 1
        for (uint64_t i = threadIdx.x; i < number; i += AT_ONCE * MR_CUDA_THREADS) {
            A v[AT_ONCE];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++)
                v[u] = i + u * MR_CUDA_THREADS < number ? cells[i + u * MR_CUDA_THREADS] : Op::template start<A>();
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) front = Op::join(front, v[u]);
        }
    }
    return front;
}

/* The total of the line's tiles before this one and of the block's warps before this one. `own` is the warp's total. */
template <class Op, class A> MR_DEVICE A front_of_warp(A front, A own) {
    __shared__ A fronts[WARPS], warps[WARPS];
    front = of_warp<Op>(front);
    if (threadIdx.x % 32 == 0) {
        fronts[threadIdx.x / 32] = front;
        warps[threadIdx.x / 32] = own;
    }
    __syncthreads();
    A before = fronts[0];
    for (uint32_t w = 1; w < WARPS; w++) before = Op::join(before, fronts[w]);
    for (uint32_t w = 0; w < threadIdx.x / 32; w++) before = Op::join(before, warps[w]);
    return before;
}

/* A tile of a line; or, of short lines, one for each warp. A warp goes through its part in rounds of four neighbours for
 * each lane. */
template <class Op, class A, class In, class Out> MR_DEVICE void scan_tile(const mr_cuda_scan &p) {
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t block = gridDim.x - 1 - blockIdx.x, line, number = 0;
    int64_t at = lane * 4;
    if (p.warps) {
        line = block * WARPS + warp;
        if (line >= p.lines) return;
    } else {
        line = block / p.tiles;
        number = block - line * p.tiles;
        at += (int64_t)number * MR_CUDA_SCAN_TILE + warp * WARP_TILE;
    }
    int64_t in = offset_of(p.kept, p.stride[0], line), out = offset_of(p.kept, p.stride[1], line);
    A nothing = Op::template start<A>(), v[ROUNDS][4], before[ROUNDS], carry = nothing;
    A ahead = p.warps ? nothing : front_of_thread<Op, A>(p, line, number);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) load_four<A, In>(p, in, at + r * 128, nothing, v[r]);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
#pragma unroll
        for (int j = 1; j < 4; j++) v[r][j] = Op::join(v[r][j - 1], v[r][j]);
        A sum = v[r][3];
#pragma unroll
        for (uint32_t step = 1; step < 32; step *= 2) {
            A other = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum = Op::join(other, sum);
        }
        A left = __shfl_up_sync(~0u, sum, 1);
        before[r] = lane > 0 ? Op::join(carry, left) : carry;
        carry = Op::join(carry, __shfl_sync(~0u, sum, 31));
    }
    A front = p.warps ? nothing : front_of_warp<Op, A>(ahead, carry);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        A here = Op::join(front, before[r]);
#pragma unroll
        for (int j = 0; j < 4; j++) v[r][j] = Op::join(here, v[r][j]);
        store_four<A, Out>(p, out, at + r * 128, v[r]);
    }
}

/* A block for each line of many tiles: their totals become what is before each tile. */
template <class Op, class A> MR_DEVICE void scan_totals(const mr_cuda_scan &p) {
    __shared__ A warps[WARPS];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    A *cells = (A *)p.cells + (uint64_t)blockIdx.x * p.tiles, front = Op::template start<A>();
    for (uint32_t first = 0; first < p.tiles; first += MR_CUDA_THREADS) {
        uint32_t i = first + threadIdx.x;
        A sum = i < p.tiles ? cells[i] : Op::template start<A>();
        for (uint32_t step = 1; step < 32; step *= 2) {
            A other = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum = Op::join(other, sum);
        }
        if (lane == 31) warps[warp] = sum;
        A before = __shfl_up_sync(~0u, sum, 1);
        if (lane == 0) before = Op::template start<A>();
        __syncthreads();
        A all = front;
        for (uint32_t w = 0; w < WARPS; w++) {
            if (w == warp) before = Op::join(all, before);
            all = Op::join(all, warps[w]);
        }
        if (i < p.tiles) cells[i] = before;
        front = all;
        __syncthreads();
    }
}

/* Lines side by side, long in a dim that is not the innermost: a thread has a line, so neighbours load neighbours. */
template <class Op, class A> MR_DEVICE void scan_columns(const mr_cuda_scan &p) {
    uint64_t line = thread_number();
    if (line >= p.lines) return;
    int64_t in = offset_of(p.kept, p.stride[0], line), out = offset_of(p.kept, p.stride[1], line);
    A sum = Op::template start<A>();
    for (int64_t j = 0; j < p.length; j++) {
        sum = Op::join(sum, load_any<A>(p.in, p.in_dtype, in + j * p.step[0]));
        store_any<A>(p.out, p.out_dtype, out + j * p.step[1], sum);
    }
}

#define KERNEL(name, blocks)                                                                      \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS, blocks) millrace_##name(const __grid_constant__ mr_cuda_scan p)
#define TILES(row, tag, Op, A, In, Out)                                                            \
    KERNEL(row##_##tag##_total, 6) { total_of_tile<Op, A, In>(p); }                                \
    KERNEL(row##_##tag##_tile, 4) { scan_tile<Op, A, In, Out>(p); }
#define SCAN(row, Op)                                                                              \
    TILES(row, f16, Op, double, f16, f16)                                                          \
    TILES(row, bf16, Op, double, bf16, bf16)                                                       \
    TILES(row, f32, Op, double, float, float)                                                      \
    TILES(row, f64, Op, double, double, double)                                                    \
    TILES(row, i32, Op, int64_t, int32_t, int64_t)                                                 \
    TILES(row, i64, Op, int64_t, int64_t, int64_t)                                                 \
    SCAN_ANY(row, f64, Op, double)                                                                 \
    SCAN_ANY(row, i64, Op, int64_t)
#define SCAN_ANY(row, tag, Op, A)                                                                  \
    TILES(row, any_##tag, Op, A, unknown, unknown)                                                         \
    KERNEL(row##_##tag##_totals, 1) { scan_totals<Op, A>(p); }                                        \
    KERNEL(row##_##tag##_columns, 1) { scan_columns<Op, A>(p); }
SCAN(cumsum, plus_op)
SCAN(cumprod, times_op)
