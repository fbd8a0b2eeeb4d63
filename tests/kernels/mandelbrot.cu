// How many steps each point of a plane needs to leave a circle of radius 2: loops of different lengths in a warp.
// kernel: mandelbrot<float>
// kernel: mandelbrot<double>

template <typename T>
__global__ void mandelbrot(int *steps, int width, int height, T left, T top, T scale, int limit) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    T real = left + x * scale, imaginary = top + y * scale, a = 0, b = 0;
    int n = 0;
    while (n < limit && a * a + b * b <= 4) {
        T next = a * a - b * b + real;
        b = 2 * a * b + imaginary;
        a = next;
        n++;
    }
    steps[y * width + x] = n;
}
