// y = a x + y, for one type and as a template.
// kernel: saxpy
// kernel: axpy<double>
// kernel: axpy<int>

extern "C" __global__ void saxpy(float *y, const float *x, float a, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = a * x[i] + y[i];
}

template <typename T> __global__ void axpy(T *__restrict__ y, const T *__restrict__ x, T a, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = a * x[i] + y[i];
}
