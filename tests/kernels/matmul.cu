// C = A B for row-major matrices: A is rows x inner, B is inner x columns.
// kernel: matmul_direct
// kernel: matmul_tiled<16>
// kernel: matmul_tiled<32>
// kernel: matmul_double

extern "C" __global__ void matmul_direct(float *c, const float *a, const float *b, int rows, int inner, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    float sum = 0.0f;
    for (int k = 0; k < inner; k++) sum += a[row * inner + k] * b[k * columns + column];
    c[row * columns + column] = sum;
}

// Blocks of SIZE x SIZE threads.
template <int SIZE>
__global__ void __launch_bounds__(SIZE * SIZE)
    matmul_tiled(float *c, const float *a, const float *b, int rows, int inner, int columns) {
    __shared__ float tile_a[SIZE][SIZE], tile_b[SIZE][SIZE];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * SIZE + x, row = blockIdx.y * SIZE + y;
    float sum = 0.0f;
    for (int first = 0; first < inner; first += SIZE) {
        tile_a[y][x] = row < rows && first + x < inner ? a[row * inner + first + x] : 0.0f;
        tile_b[y][x] = first + y < inner && column < columns ? b[(first + y) * columns + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < SIZE; k++) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    if (row < rows && column < columns) c[row * columns + column] = sum;
}

extern "C" __global__ void matmul_double(double *c, const double *a, const double *b, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    double sum = 0.0;
    for (int k = 0; k < n; k++) sum = fma(a[row * n + k], b[k * n + column], sum);
    c[row * n + column] = sum;
}
