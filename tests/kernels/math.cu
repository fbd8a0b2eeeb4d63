// Functions of the math API, in float, in double, and the fast ones.
// kernel: float_functions
// kernel: double_functions
// kernel: fast_functions
// kernel: roundings

#define FLOATS 24
extern "C" __global__ void float_functions(float *out, const float *in, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = in[i], *o = out + FLOATS * i;
    o[0] = sinf(x);
    o[1] = cosf(x);
    o[2] = tanf(x);
    o[3] = expf(x);
    o[4] = exp2f(x);
    o[5] = logf(fabsf(x));
    o[6] = log2f(fabsf(x));
    o[7] = log10f(fabsf(x));
    o[8] = sqrtf(fabsf(x));
    o[9] = rsqrtf(fabsf(x));
    o[10] = powf(fabsf(x), 1.7f);
    o[11] = tanhf(x);
    o[12] = atanf(x);
    o[13] = asinf(x / (1.0f + fabsf(x)));
    o[14] = acosf(x / (1.0f + fabsf(x)));
    o[15] = atan2f(x, 2.0f);
    o[16] = erff(x);
    o[17] = cbrtf(x);
    o[18] = fmodf(x, 0.7f);
    o[19] = hypotf(x, 3.0f);
    o[20] = floorf(x) + ceilf(x) * 0.5f;
    o[21] = roundf(x) + truncf(x) * 0.5f + rintf(x) * 0.25f;
    o[22] = fminf(x, 0.5f) + fmaxf(x, -0.5f);
    o[23] = copysignf(2.0f, x) + fmaf(x, x, 1.0f);
}

#define DOUBLES 18
extern "C" __global__ void double_functions(double *out, const double *in, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double x = in[i], *o = out + DOUBLES * i;
    o[0] = sin(x);
    o[1] = cos(x);
    o[2] = tan(x);
    o[3] = exp(x);
    o[4] = log(fabs(x));
    o[5] = sqrt(fabs(x));
    o[6] = pow(fabs(x), 1.7);
    o[7] = tanh(x);
    o[8] = atan(x);
    o[9] = erf(x);
    o[10] = erfc(x);
    o[11] = cbrt(x);
    o[12] = fmod(x, 0.7);
    o[13] = lgamma(fabs(x) + 0.1);
    o[14] = tgamma(fabs(x) + 0.1);
    o[15] = log1p(fabs(x)) + expm1(-fabs(x));
    o[16] = sinh(x * 0.5) + cosh(x * 0.5);
    o[17] = ldexp(x, 3) + round(x) + rint(x);
}

extern "C" __global__ void fast_functions(float *out, const float *in, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = in[i], *o = out + 8 * i;
    o[0] = __sinf(x);
    o[1] = __cosf(x);
    o[2] = __expf(x);
    o[3] = __logf(fabsf(x));
    o[4] = __powf(fabsf(x), 0.3f);
    o[5] = __fdividef(x, 3.0f);
    o[6] = __log2f(fabsf(x));
    o[7] = __saturatef(x);
}

extern "C" __global__ void roundings(float *f, int *n, const float *in, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = in[i];
    f[6 * i] = __fadd_rz(x, 1e-9f);
    f[6 * i + 1] = __fmul_ru(x, x);
    f[6 * i + 2] = __fdiv_rd(x, 3.0f);
    f[6 * i + 3] = __fsqrt_rn(fabsf(x));
    f[6 * i + 4] = __frcp_rn(x);
    f[6 * i + 5] = __fmaf_rn(x, x, -x);
    n[6 * i] = __float2int_rn(x);
    n[6 * i + 1] = __float2int_rz(x);
    n[6 * i + 2] = __float2int_ru(x);
    n[6 * i + 3] = __float2int_rd(x);
    n[6 * i + 4] = __float_as_int(x);
    n[6 * i + 5] = isnan(x) + 2 * isinf(x) + 4 * signbit(x);
}
