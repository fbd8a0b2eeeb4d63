/* Matrix products without cuBLAS: of integers, which wrap, of floats with strides that cuBLAS cannot read, and small
 * ones. */
#include "cuda/kernels/device.cuh"

MR_DEVICE uint64_t batches_of(const mr_cuda_product &p) {
    uint64_t batches = 1;
    for (uint32_t d = 0; d < p.batch.ndim; d++) batches *= (uint64_t)p.batch.size[d];
    return batches;
}

/* ------------------------------------------------------------------------- any */

/* A block makes a tile of 64 x 64 from panels in shared memory, a thread 4 x 4 of it. */
enum { TILE = MR_CUDA_TILE, DEPTH = 16, PER = 4 };

/* The element that a thread puts into shared memory, as it is computed with. */
template <class S> MR_DEVICE computed<S> element(bool inside, const S *data, int64_t at) {
    return inside ? widen(data[at]) : 0;
}

template <class S> MR_DEVICE void product(const mr_cuda_product &p) {
    typedef computed<S> T;
    __shared__ T left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];
    int x = threadIdx.x % (TILE / PER), y = threadIdx.x / (TILE / PER);
    int64_t row = (int64_t)(blockIdx.x / p.column_tiles) * TILE, column = (int64_t)(blockIdx.x % p.column_tiles) * TILE;
    uint64_t batches = batches_of(p);
    for (uint64_t batch = blockIdx.y; batch < batches; batch += gridDim.y) {
        const S *a = (const S *)p.a + far_offset(p.batch, p.a_batch, batch);
        const S *b = (const S *)p.b + far_offset(p.batch, p.b_batch, batch);
        S *c = (S *)p.c + batch * p.m * p.n;
        T sum[PER][PER] = {};
        for (int64_t l = 0; l < p.k; l += DEPTH) {
            for (int e = threadIdx.x; e < TILE * DEPTH; e += MR_CUDA_THREADS) {
                int64_t i = row + e / DEPTH, k = l + e % DEPTH, j = column + e % TILE, d = l + e / TILE;
                left[e % DEPTH][e / DEPTH] = element(i < p.m && k < p.k, a, i * p.a_row + k * p.a_column);
                right[e / TILE][e % TILE] = element(j < p.n && d < p.k, b, d * p.b_row + j * p.b_column);
            }
            __syncthreads();
#pragma unroll 4
            for (int d = 0; d < DEPTH; d++) {
#pragma unroll
                for (int i = 0; i < PER; i++)
#pragma unroll
                    for (int j = 0; j < PER; j++)
                        sum[i][j] = (T)(sum[i][j] + left[d][y + i * (TILE / PER)] * right[d][x + j * (TILE / PER)]);
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < PER; i++)
#pragma unroll
            for (int j = 0; j < PER; j++) {
                int64_t to_row = row + y + i * (TILE / PER), to_column = column + x + j * (TILE / PER);
                if (to_row < p.m && to_column < p.n) c[to_row * p.n + to_column] = convert<S>(sum[i][j]);
            }
    }
}

#define PRODUCT(name, T, make)                                                                     \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name(const __grid_constant__ mr_cuda_product p) {                               \
        make<T>(p);                                                                                \
    }

/* Integers as unsigned ones, which wrap; their product in int could overflow for none of these types. */
PRODUCT(product_u8, uint8_t, product)
PRODUCT(product_i32, uint32_t, product)
PRODUCT(product_i64, uint64_t, product)
PRODUCT(product_f32, float, product)
PRODUCT(product_f64, double, product)
PRODUCT(product_f16, f16, product)
PRODUCT(product_bf16, bf16, product)

/* ------------------------------------------------------------------------- small ones of floats */

MR_DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
MR_DEVICE double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

/* Most of the time is spent waiting for memory and for other threads. So a block makes 16 x 16 results, one a
 * thread, so that many blocks run at once, and reads ahead as deep as there is room. Neighbouring threads read along
 * the dim in which a matrix lies in memory. */
enum { SMALL_TILE = MR_CUDA_SMALL_TILE, SMALL_DEPTH = 64 };

template <class S> MR_DEVICE void small_product(const mr_cuda_product &p) {
    typedef computed<S> T;
    __shared__ T left[SMALL_TILE][SMALL_DEPTH + 1], right[SMALL_DEPTH][SMALL_TILE];
    int x = threadIdx.x % SMALL_TILE, y = threadIdx.x / SMALL_TILE, m = (int)p.m, n = (int)p.n, k = (int)p.k;
    int row = (int)(blockIdx.x / p.column_tiles) * SMALL_TILE, column = (int)(blockIdx.x % p.column_tiles) * SMALL_TILE;
    bool a_by_rows = p.a_column == 1, b_by_rows = p.b_column == 1;
    uint64_t batches = batches_of(p);
    for (uint64_t batch = blockIdx.y; batch < batches; batch += gridDim.y) {
        const S *a = (const S *)p.a + far_offset(p.batch, p.a_batch, batch);
        const S *b = (const S *)p.b + far_offset(p.batch, p.b_batch, batch);
        T sum = 0;
        for (int from = 0; from < k; from += SMALL_DEPTH) {
#pragma unroll
            for (int e = threadIdx.x; e < SMALL_TILE * SMALL_DEPTH; e += MR_CUDA_THREADS) {
                int i = a_by_rows ? e / SMALL_DEPTH : e % SMALL_TILE, d = a_by_rows ? e % SMALL_DEPTH : e / SMALL_TILE;
                left[i][d] = element(row + i < m && from + d < k, a, (row + i) * p.a_row + (from + d) * p.a_column);
            }
#pragma unroll
            for (int e = threadIdx.x; e < SMALL_TILE * SMALL_DEPTH; e += MR_CUDA_THREADS) {
                int j = b_by_rows ? e % SMALL_TILE : e / SMALL_DEPTH, d = b_by_rows ? e / SMALL_TILE : e % SMALL_DEPTH;
                right[d][j] = element(column + j < n && from + d < k, b, (from + d) * p.b_row + (column + j) * p.b_column);
            }
            __syncthreads();
#pragma unroll 16
            for (int d = 0; d < SMALL_DEPTH; d++) sum = fused(left[y][d], right[d][x], sum);
            __syncthreads();
        }
        if (row + y < m && column + x < n) ((S *)p.c)[batch * p.m * p.n + (row + y) * p.n + column + x] = convert<S>(sum);
    }
}

PRODUCT(small_product_f32, float, small_product)
PRODUCT(small_product_f64, double, small_product)
PRODUCT(small_product_f16, f16, small_product)
PRODUCT(small_product_bf16, bf16, small_product)
