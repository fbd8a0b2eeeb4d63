// The sum of two vectors: one thread an element, and with a grid-stride loop.
// kernel: vector_add
// kernel: vector_add_stride

extern "C" __global__ void vector_add(float *sum, const float *a, const float *b, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) sum[i] = a[i] + b[i];
}

extern "C" __global__ void vector_add_stride(float *sum, const float *a, const float *b, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        sum[i] = a[i] + b[i];
}
