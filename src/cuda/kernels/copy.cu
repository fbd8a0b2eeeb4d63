/* Copies on one device that are more than bytes in a row: other strides, other dtypes, transposed. */
#include "cuda/kernels/elementwise.cuh"

/* ------------------------------------------------------------------------- strides and dtypes */

/* millrace_copy_TAG: memory of one element type; _strided also converts to it from any other. f16 stands for both
 * halves, whose bits it copies; it does not convert (cuda/family/copy.c). */
#define COPY(tag, T) KERNELS(copy, tag, T, T, T, STORE_PLAIN, 1, a)
COPY(u8, uint8_t)
COPY(i32, int32_t)
COPY(i64, int64_t)
COPY(f32, float)
COPY(f64, double)
COPY(f16, uint16_t)
/* By way of double: there only 0 becomes 0. */
KERNELS(copy, b8, double, double, uint8_t, STORE_BOOL, 1, a)

/* millrace_cast_FROM_TO: dense to dense. From bool and to bool, which share a C type with u8, the value is
 * `!= 0`. */
#define CONVERTED(R, v) convert<R>(v)
#define CAST(from, F, to, To, value)                                                               \
    OP(cast, from##_##to, F, F, To, CONVERTED, 1, value)                                           \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_cast_##from##_##to(const __grid_constant__ mr_cuda_dense p) {                     \
        dense<cast_##from##_##to>(p);                                                              \
    }
#define CASTS(from, F, value)                                                                      \
    CAST(from, F, u8, uint8_t, value)                                                              \
    CAST(from, F, i32, int32_t, value)                                                             \
    CAST(from, F, i64, int64_t, value)                                                             \
    CAST(from, F, f32, float, value)                                                               \
    CAST(from, F, f64, double, value)                                                              \
    CAST(from, F, f16, f16, value)                                                                 \
    CAST(from, F, bf16, bf16, value)                                                               \
    CAST(from, F, b8, uint8_t, (uint8_t)(a != 0))
CASTS(b8, uint8_t, (uint8_t)(a != 0))
CASTS(u8, uint8_t, a)
CASTS(i32, int32_t, a)
CASTS(i64, int64_t, a)
CASTS(f32, float, a)
CASTS(f64, double, a)
CASTS(f16, f16, a)
CASTS(bf16, bf16, a)

/* ------------------------------------------------------------------------- transposed */

/* A tile goes through shared memory, so that both sides are read and written along their rows: V elements (16 bytes) a
 * thread where both begin at such multiples. Rows of the tile are one element longer than it is wide, which spreads a
 * column over the banks. L1 is left out, since a tile's rows are far apart, often by a power of two, and compete for
 * few of its lines. With plain stores a copy has 60 % of the speed. */
template <class T, int TILE> MR_DEVICE void transpose(const mr_cuda_transpose &p) {
    constexpr int V = 16 / sizeof(T), ACROSS = TILE / V, DOWN = MR_CUDA_THREADS / ACROSS;
    __shared__ T tile[TILE][TILE + 1]; /* [column of the output][row of the output] */

    /* Tiles are numbered down GROUP rows of tiles before going on to the right. Blocks that run at the same time then
     * touch neighbouring pieces of the same rows, in the input as in the output. */
    constexpr uint32_t GROUP = 4;
    uint32_t tiles = p.row_tiles * p.column_tiles, number = blockIdx.x % tiles, batch = blockIdx.x / tiles;
    uint32_t group = number / (GROUP * p.column_tiles), within = number % (GROUP * p.column_tiles);
    uint32_t height = p.row_tiles - group * GROUP < GROUP ? p.row_tiles - group * GROUP : GROUP;
    int64_t row = (int64_t)(group * GROUP + within % height) * TILE, column = (int64_t)(within / height) * TILE;
    T *out = (T *)p.out + batch * p.batch_out;
    const T *in = (const T *)p.in + batch * p.batch_in;

    bool whole = row + TILE <= p.rows && column + TILE <= p.columns;
    if (whole && p.aligned) {
        int x = threadIdx.x % ACROSS * V, y = threadIdx.x / ACROSS;
        vector<T, V> v[TILE / DOWN];
#pragma unroll
        for (int k = 0; k < TILE / DOWN; k++)
            v[k] = load_past_l1<T, V>(in + (column + y + k * DOWN) * p.in_row + row + x);
#pragma unroll
        for (int k = 0; k < TILE / DOWN; k++)
#pragma unroll
            for (int j = 0; j < V; j++) tile[y + k * DOWN][x + j] = v[k].v[j];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE / DOWN; k++) {
            vector<T, V> r;
#pragma unroll
            for (int j = 0; j < V; j++) r.v[j] = tile[x + j][y + k * DOWN];
            store_past_l1(out + (row + y + k * DOWN) * p.out_row + column + x, r);
        }
        return;
    }
    constexpr int WIDE = TILE < MR_CUDA_THREADS ? TILE : MR_CUDA_THREADS, ROWS = MR_CUDA_THREADS / WIDE;
    int x = threadIdx.x % WIDE;
#pragma unroll 4
    for (int y = threadIdx.x / WIDE; y < TILE; y += ROWS)
        if (column + y < p.columns && row + x < p.rows) tile[y][x] = in[(column + y) * p.in_row + row + x];
    __syncthreads();
#pragma unroll 4
    for (int y = threadIdx.x / WIDE; y < TILE; y += ROWS)
        if (row + y < p.rows && column + x < p.columns) out[(row + y) * p.out_row + column + x] = tile[x][y];
}

/* cuda/family/copy.c knows the tiles. */
#define TRANSPOSE(size, T, tile)                                                                   \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_transpose_##size(const __grid_constant__ mr_cuda_transpose p) {                   \
        transpose<T, tile>(p);                                                                     \
    }
TRANSPOSE(1, uint8_t, 128)
TRANSPOSE(2, uint16_t, 64)
TRANSPOSE(4, uint32_t, 64)
TRANSPOSE(8, uint64_t, 32)

/* ------------------------------------------------------------------------- one value */

/* Fills with a pattern of 16 bytes: the byte at an address is that of address % 16. This is right for every dtype, as
 * its elements are aligned and their size divides 16. */
extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_fill(const __grid_constant__ mr_cuda_fill p) {
    uint64_t begin = (uint64_t)p.out, end = begin + p.bytes, first = (begin + 15) / 16, last = end / 16;
    uint64_t i = first + thread_number();
    if (i < last) *(uint4 *)(i * 16) = make_uint4(p.pattern[0], p.pattern[1], p.pattern[2], p.pattern[3]);
    /* The rest on both sides: fewer than 16 bytes each, or all of it. */
    if (thread_number() < 32) {
        uint64_t address = thread_number() < 16 ? begin + thread_number() : (first > last ? first : last) * 16 + thread_number() - 16;
        bool left = thread_number() < 16 && address < first * 16 && address < end;
        bool right = thread_number() >= 16 && address < end;
        if (left || right) *(uint8_t *)address = (uint8_t)(p.pattern[address % 16 / 4] >> (address % 4 * 8));
    }
}
