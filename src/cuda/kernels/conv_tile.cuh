/* The tile of a result that a block of a convolution makes: a product of two slabs in shared memory. The left side's is
 * [depth][row], the right side's [depth][column]. Only this file knows the form of the product: each thread computes
 * its own part with fused multiply-adds (plain_tile), or each warp uses tensor cores (tensor_tile).
 *
 * A plain tile adds the products of a result in the order of the slabs, so its bits are those of the CPU. */
#ifndef MR_CUDA_KERNELS_CONV_TILE_CUH
#define MR_CUDA_KERNELS_CONV_TILE_CUH

#include "cuda/kernels/device.cuh"

MR_DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
MR_DEVICE double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

/* A thread makes TM x TN of the tile: PER neighbours, then the next PER behind those of the other threads. So the threads
 * of a warp, 8 across and 4 down, read neighbouring vectors. */
template <class Type, int ROWS_, int COLUMNS_, int TM, int TN, int DEPTH_ = 8> struct plain_tile {
    typedef Type T;
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, PER = 16 / sizeof(T), PAD = PER;
    static constexpr int ACROSS = COLUMNS / TN, DOWN = ROWS / TM;
    static constexpr int THREADS = ACROSS * DOWN;
    static_assert(ACROSS % 8 == 0 && DOWN % 4 == 0);
    /* The elements that are written as one, and how many of these groups a thread has in a row and in a column. */
    static constexpr int WIDTH = PER, GROUPS = TN / PER, HEIGHT = TM;
    static constexpr int DEPTH = DEPTH_, LEFT_LANES = 8; /* of convolve() */

    T sum[TM][TN];
    int x, y;

    __device__ plain_tile() : sum{} {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        x = warp % (ACROSS / 8) * 8 + lane % 8;
        y = warp / (ACROSS / 8) * 4 + lane / 8;
    }

    MR_DEVICE_MEMBER T prepared(T v) { return v; }

    template <int DEPTH, int LEFT, int RIGHT>
    __device__ __forceinline__ void add(const T (*left)[LEFT], const T (*right)[RIGHT]) {
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            T a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += PER) take(left[d] + y * PER + i * DOWN, a + i);
#pragma unroll
            for (int j = 0; j < TN; j += PER) take(right[d] + x * PER + j * ACROSS, b + j);
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) sum[i][j] = fused(a[i], b[j], sum[i][j]);
        }
    }

    __device__ __forceinline__ int row(int i) const { return y * PER + i / PER * PER * DOWN + i % PER; }
    __device__ __forceinline__ int column(int group) const { return (x + group * ACROSS) * PER; }
    __device__ __forceinline__ T value(int i, int group, int e) const { return sum[i][group * PER + e]; }

  private:
    MR_DEVICE_MEMBER void take(const T *from, T *to) {
        vector<T, PER> v = load_vector<T, PER>(from, 0);
#pragma unroll
        for (int e = 0; e < PER; e++) to[e] = v.v[e];
    }
};

/* ------------------------------------------------------------------------- tensor cores */

/* There are some that take TF32. The interpreter of PTX has none. */
#if __CUDA_ARCH__ >= 800 && !defined(MR_CUDA_NO_TENSOR_CORES)
#define TENSOR_CORES 1
#else
#define TENSOR_CORES 0
#endif

/* Rounded to the 10 bits of mantissa that TF32 has. */
MR_DEVICE float rounded_to_tf32(float v) {
#if __CUDA_ARCH__ >= 800
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return __uint_as_float(bits);
#else
    return v;
#endif
}

/* sum += a b, of 16 x 8 and 8 x 8 elements. The threads of a warp hold them as the instruction m16n8k8 wants it. Thread
 * 4 g + t has a[g][t], a[g + 8][t], a[g][t + 4] and a[g + 8][t + 4]. It has b[t][g] and b[t + 4][g]. Its part of the
 * sum is [g][2 t], [g][2 t + 1], [g + 8][2 t] and [g + 8][2 t + 1]. */
MR_DEVICE void multiply_fragments(float (&sum)[4], const float (&a)[4], const float (&b)[2]) {
#if TENSOR_CORES
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
                   "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
#else
    int lane = threadIdx.x % 32, first = lane / 4 * 4, column = lane % 4 * 2;
    for (int k = 0; k < 8; k++) {
        for (int e = 0; e < 4; e++) {
            float left = __shfl_sync(0xffffffff, a[k / 4 * 2 + e / 2], first + k % 4);
            float right = __shfl_sync(0xffffffff, b[k / 4], (column + e % 2) * 4 + k % 4);
            sum[e] = fused(left, right, sum[e]);
        }
    }
#endif
}

/* Half of the tile's rows and of its columns a warp, in TF32, added in f32. */
template <int ROWS_, int COLUMNS_, int DEPTH_ = 16> struct tensor_tile {
    typedef float T;
    /* Rows of shared memory begin 8 banks apart, so the 4 x 8 elements that a warp reads at once are in different ones. */
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, PAD = 8;
    static constexpr int THREADS = 128, ACROSS = 2, MI = ROWS / 32, NI = COLUMNS / 16;
    static constexpr int WIDTH = 2, GROUPS = NI, HEIGHT = 2 * MI;
    static constexpr int DEPTH = DEPTH_, LEFT_LANES = 4;

    float sum[MI][NI][4];
    int first_row, first_column, g, t;

    __device__ tensor_tile() : sum{} {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        first_row = warp / ACROSS * (ROWS / 2);
        first_column = warp % ACROSS * (COLUMNS / 2);
        g = lane / 4;
        t = lane % 4;
    }

    MR_DEVICE_MEMBER float prepared(float v) { return rounded_to_tf32(v); }

    template <int DEPTH, int LEFT, int RIGHT>
    __device__ __forceinline__ void add(const float (*left)[LEFT], const float (*right)[RIGHT]) {
#pragma unroll
        for (int d = 0; d < DEPTH; d += 8) {
            float a[MI][4], b[NI][2];
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int e = 0; e < 4; e++) a[i][e] = left[d + t + e / 2 * 4][first_row + i * 16 + e % 2 * 8 + g];
#pragma unroll
            for (int j = 0; j < NI; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) b[j][e] = right[d + t + e * 4][first_column + j * 8 + g];
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int j = 0; j < NI; j++) multiply_fragments(sum[i][j], a[i], b[j]);
        }
    }

    __device__ __forceinline__ int row(int i) const { return first_row + i / 2 * 16 + i % 2 * 8 + g; }
    __device__ __forceinline__ int column(int group) const { return first_column + group * 8 + 2 * t; }
    __device__ __forceinline__ float value(int i, int group, int e) const { return sum[i / 2][group][i % 2 * 2 + e]; }
};

#endif
