// The transposed of a matrix, in tiles of 32 x 32 by blocks of 32 x 8 threads.
// kernel: transpose_direct
// kernel: transpose_shared
// kernel: transpose_padded

#define TILE 32
#define ROWS 8

extern "C" __global__ void transpose_direct(float *out, const float *in, int width, int height) {
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < width && y + j < height) out[x * height + y + j] = in[(y + j) * width + x];
}

// PAD = 1 keeps the 32 elements of a column in 32 different banks.
template <int PAD> __device__ void transpose(float *out, const float *in, int width, int height) {
    __shared__ float tile[TILE][TILE + PAD];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void transpose_shared(float *out, const float *in, int width, int height) {
    transpose<0>(out, in, width, height);
}

extern "C" __global__ void transpose_padded(float *out, const float *in, int width, int height) {
    transpose<1>(out, in, width, height);
}
