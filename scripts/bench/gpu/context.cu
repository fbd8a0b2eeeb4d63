/* What a process costs that makes a context, runs one kernel, reads its result and ends. */
#include <cstdio>

__global__ void one(float *x) { *x = 1; }

int main() {
    float *device, host = 0;
    if (cudaMalloc(&device, sizeof *device)) return 1;
    one<<<1, 1>>>(device);
    if (cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost)) return 1;
    printf("%g\n", host);
    return 0;
}
