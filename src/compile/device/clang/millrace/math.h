/* The CUDA math API. */
#ifndef MILLRACE_MATH_H
#define MILLRACE_MATH_H
#pragma clang system_header

MR_DEVICE float rsqrtf(float x) {
    return mr_rsqrt_approx(x);
}
MR_DEVICE float sqrtf(float x) {
    return __builtin_sqrtf(x);
}
MR_DEVICE double sqrt(double x) {
    return __builtin_sqrt(x);
}
MR_DEVICE float fmaf(float x, float y, float z) {
    return __builtin_fmaf(x, y, z);
}
MR_DEVICE double fma(double x, double y, double z) {
    return __builtin_fma(x, y, z);
}

#endif
