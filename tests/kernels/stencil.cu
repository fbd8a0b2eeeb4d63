// Stencils: the sum of seven neighbours on a line, by shared memory with a halo, and one step of heat on a plane.
// kernel: stencil_line
// kernel: heat_step

#define RADIUS 3
#define BLOCK 128

// Blocks of BLOCK threads. Outside the array there are zeros.
extern "C" __global__ void stencil_line(int *out, const int *in, int count) {
    __shared__ int line[BLOCK + 2 * RADIUS];
    int i = blockIdx.x * BLOCK + threadIdx.x, at = threadIdx.x + RADIUS;
    line[at] = i < count ? in[i] : 0;
    if (threadIdx.x < RADIUS) {
        line[at - RADIUS] = i >= RADIUS && i - RADIUS < count ? in[i - RADIUS] : 0;
        line[at + BLOCK] = i + BLOCK < count ? in[i + BLOCK] : 0;
    }
    __syncthreads();
    int sum = 0;
    for (int offset = -RADIUS; offset <= RADIUS; offset++) sum += line[at + offset];
    if (i < count) out[i] = sum;
}

extern "C" __global__ void heat_step(float *next, const float *now, int width, int height, float rate) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int i = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        next[i] = now[i];
        return;
    }
    next[i] = now[i] + rate * (now[i - 1] + now[i + 1] + now[i - width] + now[i + width] - 4.0f * now[i]);
}
