/* Kernels for tests/c/test_ptx_access.c, which knows by hand what each of them reads and writes. make_samples.sh compiles it. */
#ifdef __clang__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define THREAD_X ((int)__nvvm_read_ptx_sreg_tid_x())
#define THREAD_Y ((int)__nvvm_read_ptx_sreg_tid_y())
#define BLOCK_X ((int)__nvvm_read_ptx_sreg_ctaid_x())
#define BLOCK_Y ((int)__nvvm_read_ptx_sreg_ctaid_y())
#define THREADS ((int)__nvvm_read_ptx_sreg_ntid_x())
#define BLOCKS ((int)__nvvm_read_ptx_sreg_nctaid_x())
#define SYNC() __nvvm_bar_sync(0)
#else
#define THREAD_X ((int)threadIdx.x)
#define THREAD_Y ((int)threadIdx.y)
#define BLOCK_X ((int)blockIdx.x)
#define BLOCK_Y ((int)blockIdx.y)
#define THREADS ((int)blockDim.x)
#define BLOCKS ((int)gridDim.x)
#define SYNC() __syncthreads()
#endif
#define INDEX (BLOCK_X * THREADS + THREAD_X)
#define KERNEL extern "C" __global__ void

KERNEL saxpy(float *y, const float *x, float a, int n) {
    int i = INDEX;
    if (i < n) y[i] = a * x[i] + y[i];
}

KERNEL grid_stride(float *y, const float *x, int n) {
    for (int i = INDEX; i < n; i += THREADS * BLOCKS) y[i] = 2 * x[i];
}

#define TILE 8
KERNEL matmul(float *c, const float *a, const float *b, int m, int n, int k) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int x = THREAD_X, y = THREAD_Y, row = BLOCK_Y * TILE + y, column = BLOCK_X * TILE + x;
    float sum = 0;
    for (int first = 0; first < k; first += TILE) {
        tile_a[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0;
        tile_b[y][x] = column < n && first + y < k ? b[(first + y) * n + column] : 0;
        SYNC();
        for (int i = 0; i < TILE; i++) sum += tile_a[y][i] * tile_b[i][x];
        SYNC();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

KERNEL stencil(float *out, const float *in, int n) {
    int i = INDEX;
    if (i > 0 && i < n - 1) out[i] = in[i - 1] + in[i] + in[i + 1];
}

KERNEL reduce(float *out, const float *in, int n) {
    __shared__ float part[64];
    int i = INDEX;
    part[THREAD_X] = i < n ? in[i] : 0;
    SYNC();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (THREAD_X < step) part[THREAD_X] += part[THREAD_X + step];
        SYNC();
    }
    if (THREAD_X == 0) out[BLOCK_X] = part[0];
}

KERNEL scale_part(float *x, long first, int n, float by) {
    int i = INDEX;
    if (i >= n) return;
    x[first + i] *= by;
}

KERNEL reverse(unsigned char *out, const unsigned char *in, long n) {
    long i = INDEX;
    if (i < n) out[i] = in[n - 1 - i];
}

KERNEL triangle(float *out, const float *in, int n) {
    int row = INDEX;
    if (row >= n) return;
    float sum = 0;
    for (int j = 0; j <= row; j++) sum += in[row * n + j];
    out[row] = sum;
}

KERNEL gather(float *out, const float *in, const int *at, int n) {
    int i = INDEX;
    if (i < n) out[i] = in[at[i]];
}

struct vector_of {
    float *data;
    long size;
    __device__ float &operator[](long i) { return data[i]; }
};

KERNEL views(vector_of a, vector_of b) {
    long i = INDEX;
    if (i < a.size) a[i] = b[a.size - 1 - i];
}

KERNEL choose(float *a, float *b, float *out, int first, int n) {
    const float *from = first ? a : b;
    int i = INDEX;
    if (i < n) out[i] = from[i];
}

KERNEL swap_each_time(float *a, float *b, int times, int n) {
    int i = INDEX;
    if (i >= n) return;
    for (int t = 0; t < times; t++) {
        b[i] = a[n - 1 - i] + 1;
        float *swap = a;
        a = b;
        b = swap;
    }
}

KERNEL through_table(float **table, int n) {
    int i = INDEX;
    if (i < n) table[0][i] = table[1][i];
}

KERNEL through_shared(float *a, const float *b, int n) {
    __shared__ float *kept;
    int i = INDEX;
    if (THREAD_X == 0) kept = a;
    SYNC();
    if (i < n) kept[i] = b[i];
}

__device__ int counter[4];
KERNEL with_variable(const int *in, int n) {
    int i = INDEX;
    if (i < n) counter[i % 4] = in[i];
}

#ifdef __CUDACC__
#define APART __noinline__
#else
#define APART __attribute__((noinline))
#endif
__device__ APART float sum_of(const float *x, int first, int n) {
    if (n == 1) return x[first];
    return sum_of(x, first, n / 2) + sum_of(x, first + n / 2, n - n / 2);
}
KERNEL recursive(float *out, const float *in, int n) {
    if (INDEX == 0) out[0] = sum_of(in, 0, n);
}

__device__ APART void put(float *to, const float *from, int i) { to[i] = *from; }
KERNEL by_call(float *out, const float *in, int n) {
    int i = INDEX;
    float local[4];
    if (i >= n) return;
    for (int k = 0; k < 4; k++) put(local, &in[i], k);
    put(out, &local[i % 4], i);
}

KERNEL not_used(float *a, float *b, int n) {
    if (n < 0) a[0] = 1;
}
