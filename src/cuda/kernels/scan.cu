/* cumsum and cumprod along lines: in double for floats, in i64 for all others (ops/scan.c). Lines are cut into tiles.
 * Where a line has several, the first launch leaves each tile's total, the second adds these up along each line, and the
 * third writes the results. The order in which numbers are combined depends on the line's length alone. */
#include "cuda/kernels/device.cuh"

enum { WARPS = MR_CUDA_THREADS / 32, ITEMS = MR_CUDA_SCAN_TILE / MR_CUDA_THREADS };

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

/* What the threads before this one have together; in *total what all have. */
template <class Op, class A> MR_DEVICE A block_before(A v, A *total) {
    __shared__ A warps[WARPS];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    A sum = v;
    for (uint32_t step = 1; step < 32; step *= 2) {
        A other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum = Op::join(other, sum);
    }
    A before = __shfl_up_sync(~0u, sum, 1);
    if (lane == 0) before = Op::template start<A>();
    __syncthreads(); /* of a call before this one */
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    A front = Op::template start<A>(), all = front;
    for (uint32_t w = 0; w < WARPS; w++) {
        if (w < warp) front = Op::join(front, warps[w]);
        all = Op::join(all, warps[w]);
    }
    *total = all;
    return Op::join(front, before);
}

/* One tile of one line. Elements pass through shared memory: neighbouring threads load neighbours, and each then has a
 * run of ITEMS. */
template <class Op, class A> MR_DEVICE void scan_tile(const mr_cuda_scan &p) {
    __shared__ A tile[MR_CUDA_SCAN_TILE];
    uint64_t line = blockIdx.x / p.tiles, number = blockIdx.x - line * p.tiles;
    int64_t first = (int64_t)number * MR_CUDA_SCAN_TILE;
    int64_t in = offset_of(p.kept, p.stride[0], line), out = offset_of(p.kept, p.stride[1], line);
    for (uint32_t i = threadIdx.x; i < MR_CUDA_SCAN_TILE; i += MR_CUDA_THREADS) {
        int64_t at = first + i;
        tile[i] = at < p.length ? load_any<A>(p.in, p.in_dtype, in + at * p.step[0]) : Op::template start<A>();
    }
    __syncthreads();
    A own[ITEMS], sum = Op::template start<A>(), total;
#pragma unroll
    for (int u = 0; u < ITEMS; u++) own[u] = sum = Op::join(sum, tile[threadIdx.x * ITEMS + u]);
    A before = block_before<Op, A>(sum, &total);
    A *cells = (A *)p.cells;
    if (p.totals_only) {
        if (threadIdx.x == 0) cells[blockIdx.x] = total;
        return;
    }
    if (p.tiles > 1) before = Op::join(cells[blockIdx.x], before);
#pragma unroll
    for (int u = 0; u < ITEMS; u++) tile[threadIdx.x * ITEMS + u] = Op::join(before, own[u]);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < MR_CUDA_SCAN_TILE; i += MR_CUDA_THREADS) {
        int64_t at = first + i;
        if (at < p.length) store_any<A>(p.out, p.out_dtype, out + at * p.step[1], tile[i]);
    }
}

/* A block for each line: the tiles' totals become what is before each tile. */
template <class Op, class A> MR_DEVICE void scan_totals(const mr_cuda_scan &p) {
    A *cells = (A *)p.cells + (uint64_t)blockIdx.x * p.tiles, front = Op::template start<A>();
    for (uint32_t first = 0; first < p.tiles; first += MR_CUDA_THREADS) {
        uint32_t i = first + threadIdx.x;
        A total, v = i < p.tiles ? cells[i] : Op::template start<A>();
        A before = block_before<Op, A>(v, &total);
        if (i < p.tiles) cells[i] = Op::join(front, before);
        front = Op::join(front, total);
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

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_##name(const __grid_constant__ mr_cuda_scan p)
#define SCAN(row, tag, Op, A)                                                                      \
    KERNEL(row##_##tag##_tile) { scan_tile<Op, A>(p); }                                            \
    KERNEL(row##_##tag##_totals) { scan_totals<Op, A>(p); }                                        \
    KERNEL(row##_##tag##_columns) { scan_columns<Op, A>(p); }
SCAN(cumsum, f64, plus_op, double)
SCAN(cumsum, i64, plus_op, int64_t)
SCAN(cumprod, f64, times_op, double)
SCAN(cumprod, i64, times_op, int64_t)
