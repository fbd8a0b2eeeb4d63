// The Black-Scholes price of European options, by the error function and by a short polynomial.
// kernel: black_scholes<float>
// kernel: black_scholes<double>
// kernel: black_scholes_fast

__device__ float normal_cdf(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
__device__ double normal_cdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }

template <typename T>
__global__ void black_scholes(T *call, T *put, const T *price, const T *strike, const T *years, T rate, T volatility,
                              int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    T root = sqrt(years[i]), spread = volatility * root;
    T d1 = (log(price[i] / strike[i]) + (rate + volatility * volatility / 2) * years[i]) / spread;
    T d2 = d1 - spread, discounted = strike[i] * exp(-rate * years[i]);
    call[i] = price[i] * normal_cdf(d1) - discounted * normal_cdf(d2);
    put[i] = discounted * normal_cdf(-d2) - price[i] * normal_cdf(-d1);
}

// A logistic curve in place of the normal distribution, and the GPU's fast functions.
extern "C" __global__ void black_scholes_fast(float *call, const float *price, const float *strike, const float *years,
                                              float rate, float volatility, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float spread = volatility * sqrtf(years[i]);
    float d1 = __fdividef(__logf(__fdividef(price[i], strike[i])) + (rate + 0.5f * volatility * volatility) * years[i], spread);
    float d2 = d1 - spread;
    float n1 = __fdividef(1.0f, 1.0f + __expf(-1.5976f * d1 - 0.070566f * d1 * d1 * d1));
    float n2 = __fdividef(1.0f, 1.0f + __expf(-1.5976f * d2 - 0.070566f * d2 * d2 * d2));
    call[i] = price[i] * n1 - strike[i] * __expf(-rate * years[i]) * n2;
}
