// C++ in kernels: classes, operators, templates over functions, lambdas, a namespace.
// kernel: math::dot<3>
// kernel: transform_lambda
// kernel: complex_power

namespace math {
template <int SIZE> struct vector {
    float at[SIZE];
    __device__ vector operator*(const vector &other) const {
        vector product;
        for (int i = 0; i < SIZE; i++) product.at[i] = at[i] * other.at[i];
        return product;
    }
    __device__ float sum() const {
        float total = 0.0f;
        for (float value : at) total += value;
        return total;
    }
};

template <int SIZE> __global__ void dot(float *out, const vector<SIZE> *a, const vector<SIZE> *b, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = (a[i] * b[i]).sum();
}
} // namespace math

template <typename F> __device__ void for_each(int count, F f) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) f(i);
}

extern "C" __global__ void transform_lambda(float *out, const float *in, float scale, int count) {
    for_each(count, [=](int i) { out[i] = scale * in[i] * in[i]; });
}

class complex {
    double real, imaginary;

  public:
    __device__ complex(double r, double i) : real(r), imaginary(i) {}
    __device__ complex &operator*=(const complex &z) {
        double r = real * z.real - imaginary * z.imaginary;
        imaginary = real * z.imaginary + imaginary * z.real;
        real = r;
        return *this;
    }
    __device__ void store(double2 *out) const { *out = make_double2(real, imaginary); }
};

extern "C" __global__ void complex_power(double2 *out, const double2 *in, int power, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    complex base(in[i].x, in[i].y), result(1.0, 0.0);
    for (int k = 0; k < power; k++) result *= base;
    result.store(&out[i]);
}
