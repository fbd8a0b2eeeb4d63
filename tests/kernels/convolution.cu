// A 5 x 5 convolution of an image; the filter is in constant memory, and edges repeat.
// kernel: convolve
// kernel: convolve_tiled

#define SIZE 5
#define HALF (SIZE / 2)
#define TILE 16

__constant__ float filter[SIZE * SIZE] = {
    1 / 256.f, 4 / 256.f,  6 / 256.f,  4 / 256.f,  1 / 256.f,  4 / 256.f,  16 / 256.f, 24 / 256.f, 16 / 256.f,
    4 / 256.f, 6 / 256.f,  24 / 256.f, 36 / 256.f, 24 / 256.f, 6 / 256.f,  4 / 256.f,  16 / 256.f, 24 / 256.f,
    16 / 256.f, 4 / 256.f, 1 / 256.f,  4 / 256.f,  6 / 256.f,  4 / 256.f,  1 / 256.f};

__device__ int inside(int i, int size) {
    return min(max(i, 0), size - 1);
}

extern "C" __global__ void convolve(float *out, const float *in, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int j = 0; j < SIZE; j++)
        for (int i = 0; i < SIZE; i++)
            sum += filter[j * SIZE + i] * in[inside(y + j - HALF, height) * width + inside(x + i - HALF, width)];
    out[y * width + x] = sum;
}

// Blocks of TILE x TILE threads.
extern "C" __global__ void convolve_tiled(float *out, const float *in, int width, int height) {
    __shared__ float tile[TILE + 2 * HALF][TILE + 2 * HALF];
    int left = blockIdx.x * TILE - HALF, top = blockIdx.y * TILE - HALF;
    for (int y = threadIdx.y; y < TILE + 2 * HALF; y += TILE)
        for (int x = threadIdx.x; x < TILE + 2 * HALF; x += TILE)
            tile[y][x] = __ldg(&in[inside(top + y, height) * width + inside(left + x, width)]);
    __syncthreads();
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < SIZE; j++)
#pragma unroll
        for (int i = 0; i < SIZE; i++) sum += filter[j * SIZE + i] * tile[threadIdx.y + j][threadIdx.x + i];
    out[y * width + x] = sum;
}
