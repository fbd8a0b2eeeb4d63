/* One operation with a chosen rounding (__fadd_rn, ...), conversions with one (__float2int_rz, ...), and the bits of
 * floats as integers. */
#ifndef MILLRACE_ROUNDING_H
#define MILLRACE_ROUNDING_H
#pragma clang system_header

/* Pure, so not volatile: the compiler may drop or move them, and it never fuses them with a neighbour. */
#define MR_BINARY(name, type, constraint, instruction)                                             \
    MR_DEVICE type name(type x, type y) {                                                          \
        type result;                                                                               \
        asm(instruction " %0, %1, %2;" : "=" constraint(result) : constraint(x), constraint(y));   \
        return result;                                                                             \
    }
#define MR_UNARY(name, result_type, out, type, in, instruction)                                    \
    MR_DEVICE result_type name(type x) {                                                           \
        result_type result;                                                                        \
        asm(instruction " %0, %1;" : "=" out(result) : in(x));                                     \
        return result;                                                                             \
    }
#define MR_TERNARY(name, type, constraint, instruction)                                            \
    MR_DEVICE type name(type x, type y, type z) {                                                  \
        type result;                                                                               \
        asm(instruction " %0, %1, %2, %3;"                                                         \
            : "=" constraint(result)                                                               \
            : constraint(x), constraint(y), constraint(z));                                        \
        return result;                                                                             \
    }

#define MR_ROUNDINGS(X) X(rn) X(rz) X(ru) X(rd)
/* PTX calls upwards rp and downwards rm. */
#define MR_PTX_rn "rn"
#define MR_PTX_rz "rz"
#define MR_PTX_ru "rp"
#define MR_PTX_rd "rm"
/* And with a rounding to an integer: rni, rzi, rpi, rmi. */
#define X(mode)                                                                                    \
    MR_BINARY(__fadd_##mode, float, "f", "add." MR_PTX_##mode ".f32")                              \
    MR_BINARY(__fsub_##mode, float, "f", "sub." MR_PTX_##mode ".f32")                              \
    MR_BINARY(__fmul_##mode, float, "f", "mul." MR_PTX_##mode ".f32")                              \
    MR_BINARY(__fdiv_##mode, float, "f", "div." MR_PTX_##mode ".f32")                              \
    MR_TERNARY(__fmaf_##mode, float, "f", "fma." MR_PTX_##mode ".f32")                             \
    MR_UNARY(__fsqrt_##mode, float, "f", float, "f", "sqrt." MR_PTX_##mode ".f32")                 \
    MR_UNARY(__frcp_##mode, float, "f", float, "f", "rcp." MR_PTX_##mode ".f32")                   \
    MR_BINARY(__dadd_##mode, double, "d", "add." MR_PTX_##mode ".f64")                             \
    MR_BINARY(__dsub_##mode, double, "d", "sub." MR_PTX_##mode ".f64")                             \
    MR_BINARY(__dmul_##mode, double, "d", "mul." MR_PTX_##mode ".f64")                             \
    MR_BINARY(__ddiv_##mode, double, "d", "div." MR_PTX_##mode ".f64")                             \
    MR_TERNARY(__fma_##mode, double, "d", "fma." MR_PTX_##mode ".f64")                             \
    MR_UNARY(__dsqrt_##mode, double, "d", double, "d", "sqrt." MR_PTX_##mode ".f64")               \
    MR_UNARY(__drcp_##mode, double, "d", double, "d", "rcp." MR_PTX_##mode ".f64")                 \
    MR_UNARY(__float2int_##mode, int, "r", float, "f", "cvt." MR_PTX_##mode "i.s32.f32")           \
    MR_UNARY(__float2uint_##mode, unsigned int, "r", float, "f", "cvt." MR_PTX_##mode "i.u32.f32") \
    MR_UNARY(__float2ll_##mode, long long, "l", float, "f", "cvt." MR_PTX_##mode "i.s64.f32")      \
    MR_UNARY(__float2ull_##mode, unsigned long long, "l", float, "f",                              \
             "cvt." MR_PTX_##mode "i.u64.f32")                                                     \
    MR_UNARY(__double2int_##mode, int, "r", double, "d", "cvt." MR_PTX_##mode "i.s32.f64")         \
    MR_UNARY(__double2uint_##mode, unsigned int, "r", double, "d",                                 \
             "cvt." MR_PTX_##mode "i.u32.f64")                                                     \
    MR_UNARY(__double2ll_##mode, long long, "l", double, "d", "cvt." MR_PTX_##mode "i.s64.f64")    \
    MR_UNARY(__double2ull_##mode, unsigned long long, "l", double, "d",                            \
             "cvt." MR_PTX_##mode "i.u64.f64")                                                     \
    MR_UNARY(__int2float_##mode, float, "f", int, "r", "cvt." MR_PTX_##mode ".f32.s32")            \
    MR_UNARY(__uint2float_##mode, float, "f", unsigned int, "r", "cvt." MR_PTX_##mode ".f32.u32")  \
    MR_UNARY(__ll2float_##mode, float, "f", long long, "l", "cvt." MR_PTX_##mode ".f32.s64")       \
    MR_UNARY(__ull2float_##mode, float, "f", unsigned long long, "l",                              \
             "cvt." MR_PTX_##mode ".f32.u64")                                                      \
    MR_UNARY(__ll2double_##mode, double, "d", long long, "l", "cvt." MR_PTX_##mode ".f64.s64")     \
    MR_UNARY(__ull2double_##mode, double, "d", unsigned long long, "l",                            \
             "cvt." MR_PTX_##mode ".f64.u64")                                                      \
    MR_UNARY(__double2float_##mode, float, "f", double, "d", "cvt." MR_PTX_##mode ".f32.f64")
MR_ROUNDINGS(X)
#undef X
MR_DEVICE double __int2double_rn(int x) {
    return x;
}
MR_DEVICE double __uint2double_rn(unsigned int x) {
    return x;
}

MR_DEVICE int __float_as_int(float x) {
    return __nvvm_bitcast_f2i(x);
}
MR_DEVICE unsigned int __float_as_uint(float x) {
    return (unsigned int)__nvvm_bitcast_f2i(x);
}
MR_DEVICE float __int_as_float(int x) {
    return __nvvm_bitcast_i2f(x);
}
MR_DEVICE float __uint_as_float(unsigned int x) {
    return __nvvm_bitcast_i2f((int)x);
}
MR_DEVICE long long __double_as_longlong(double x) {
    return __nvvm_bitcast_d2ll(x);
}
MR_DEVICE double __longlong_as_double(long long x) {
    return __nvvm_bitcast_ll2d(x);
}
MR_DEVICE int __double2hiint(double x) {
    return (int)(__nvvm_bitcast_d2ll(x) >> 32);
}
MR_DEVICE int __double2loint(double x) {
    return (int)__nvvm_bitcast_d2ll(x);
}
MR_DEVICE double __hiloint2double(int high, int low) {
    return __nvvm_bitcast_ll2d(
        (long long)((unsigned long long)(unsigned int)high << 32 | (unsigned int)low));
}

/* The fast forms: one or two instructions, with the error that CUDA's programming guide gives. */
MR_UNARY(mr_exp2_approx, float, "f", float, "f", "ex2.approx.ftz.f32")
MR_UNARY(mr_log2_approx, float, "f", float, "f", "lg2.approx.ftz.f32")
MR_UNARY(mr_sin_approx, float, "f", float, "f", "sin.approx.ftz.f32")
MR_UNARY(mr_cos_approx, float, "f", float, "f", "cos.approx.ftz.f32")
MR_UNARY(mr_rsqrt_approx, float, "f", float, "f", "rsqrt.approx.f32")
MR_BINARY(__fdividef, float, "f", "div.approx.f32")
MR_DEVICE float __expf(float x) {
    return mr_exp2_approx(x * 1.44269504f);
}
MR_DEVICE float __exp10f(float x) {
    return mr_exp2_approx(x * 3.32192809f);
}
MR_DEVICE float __log2f(float x) {
    return mr_log2_approx(x);
}
MR_DEVICE float __logf(float x) {
    return mr_log2_approx(x) * 0.693147181f;
}
MR_DEVICE float __log10f(float x) {
    return mr_log2_approx(x) * 0.301029996f;
}
MR_DEVICE float __powf(float x, float y) {
    return mr_exp2_approx(y * mr_log2_approx(x));
}
MR_DEVICE float __sinf(float x) {
    return mr_sin_approx(x);
}
MR_DEVICE float __cosf(float x) {
    return mr_cos_approx(x);
}
MR_DEVICE float __tanf(float x) {
    return __fdividef(mr_sin_approx(x), mr_cos_approx(x));
}
MR_DEVICE void __sincosf(float x, float *sine, float *cosine) {
    *sine = mr_sin_approx(x);
    *cosine = mr_cos_approx(x);
}
MR_DEVICE float __frsqrt_rn(float x) {
    return mr_rsqrt_approx(x);
}
MR_DEVICE float __saturatef(float x) {
    return x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f;
}

#undef MR_UNARY
#undef MR_BINARY
#undef MR_TERNARY

#endif
