/* __nv_bfloat16 for clang. Arithmetic is done in float and rounded once, which gives the nearest result: a float has
 * more than twice the digits. */
#ifndef MILLRACE_CUDA_BF16_H
#define MILLRACE_CUDA_BF16_H
#pragma clang system_header

struct __nv_bfloat16_raw {
    unsigned short x;
};

#define MR_MEMBER __inline__ __attribute__((device, always_inline, nodebug))

/* To the nearest, a tie to the even one; NaN stays NaN. */
MR_DEVICE unsigned short mr_bfloat_of(float x) {
    unsigned int bits = __float_as_uint(x);
    if (x != x) return 0x7fff;
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

struct __align__(2) __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    MR_MEMBER __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
    MR_MEMBER __nv_bfloat16(float x) : bits(mr_bfloat_of(x)) {}
    MR_MEMBER __nv_bfloat16(double x) : bits(mr_bfloat_of((float)x)) {}
    MR_MEMBER __nv_bfloat16(int x) : bits(mr_bfloat_of((float)x)) {}
    MR_MEMBER __nv_bfloat16(unsigned int x) : bits(mr_bfloat_of((float)x)) {}
    MR_MEMBER operator float() const {
        return __uint_as_float((unsigned int)bits << 16);
    }
    MR_MEMBER operator __nv_bfloat16_raw() const {
        return {bits};
    }
};
typedef __nv_bfloat16 nv_bfloat16;

struct __align__(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    MR_MEMBER __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {}
};
typedef __nv_bfloat162 nv_bfloat162;

MR_DEVICE __nv_bfloat16 __float2bfloat16(float x) {
    return __nv_bfloat16(x);
}
MR_DEVICE __nv_bfloat16 __float2bfloat16_rn(float x) {
    return __nv_bfloat16(x);
}
MR_DEVICE __nv_bfloat16 __double2bfloat16(double x) {
    return __nv_bfloat16(x);
}
MR_DEVICE float __bfloat162float(__nv_bfloat16 a) {
    return a;
}
MR_DEVICE unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) {
    return a.bits;
}
MR_DEVICE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
    __nv_bfloat16 a;
    a.bits = bits;
    return a;
}
MR_DEVICE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat162(a, b);
}
MR_DEVICE __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat162(a, b);
}
MR_DEVICE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) {
    return __nv_bfloat162(a, a);
}
MR_DEVICE __nv_bfloat162 __float2bfloat162_rn(float x) {
    return __nv_bfloat162(x, x);
}
MR_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
    return __nv_bfloat162(x, y);
}
MR_DEVICE float2 __bfloat1622float2(__nv_bfloat162 a) {
    return make_float2(a.x, a.y);
}
MR_DEVICE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) {
    return a.x;
}
MR_DEVICE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) {
    return a.y;
}

#define MR_BFLOAT_BINARY(op, one, two, rounded)                                                    \
    MR_DEVICE __nv_bfloat16 one(__nv_bfloat16 a, __nv_bfloat16 b) {                                \
        return __nv_bfloat16(rounded((float)a, (float)b));                                         \
    }                                                                                              \
    MR_DEVICE __nv_bfloat162 two(__nv_bfloat162 a, __nv_bfloat162 b) {                             \
        return __nv_bfloat162(one(a.x, b.x), one(a.y, b.y));                                       \
    }                                                                                              \
    MR_DEVICE __nv_bfloat16 operator op(const __nv_bfloat16 &a, const __nv_bfloat16 &b) {          \
        return one(a, b);                                                                          \
    }                                                                                              \
    MR_DEVICE __nv_bfloat162 operator op(const __nv_bfloat162 &a, const __nv_bfloat162 &b) {       \
        return two(a, b);                                                                          \
    }                                                                                              \
    MR_DEVICE __nv_bfloat16 &operator op##=(__nv_bfloat16 &a, const __nv_bfloat16 &b) {            \
        return a = one(a, b);                                                                      \
    }
MR_BFLOAT_BINARY(+, __hadd, __hadd2, __fadd_rn)
MR_BFLOAT_BINARY(-, __hsub, __hsub2, __fsub_rn)
MR_BFLOAT_BINARY(*, __hmul, __hmul2, __fmul_rn)
MR_BFLOAT_BINARY(/, __hdiv, __h2div, __fdiv_rn)
#undef MR_BFLOAT_BINARY

/* The product of two is exact in float, but the sum is rounded there first: in double it is exact enough. */
MR_DEVICE __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
    double exact = __fma_rn((double)(float)a, (double)(float)b, (double)(float)c);
    float near = __double2float_rz(exact);
    /* Rounded to odd, so that the second rounding is right. */
    if ((double)near != exact && near == near) near = __uint_as_float(__float_as_uint(near) | 1u);
    return __nv_bfloat16(near);
}
MR_DEVICE __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
    return __nv_bfloat162(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
MR_DEVICE __nv_bfloat16 __hneg(__nv_bfloat16 a) {
    return __ushort_as_bfloat16(a.bits ^ 0x8000u);
}
MR_DEVICE __nv_bfloat16 __habs(__nv_bfloat16 a) {
    return __ushort_as_bfloat16(a.bits & 0x7fffu);
}
MR_DEVICE __nv_bfloat16 operator-(const __nv_bfloat16 &a) {
    return __hneg(a);
}
MR_DEVICE __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat16(fminf(a, b));
}
MR_DEVICE __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat16(fmaxf(a, b));
}
MR_DEVICE bool __hisnan(__nv_bfloat16 a) {
    return (a.bits & 0x7fffu) > 0x7f80u;
}

#define MR_BFLOAT_COMPARE(name, op)                                                                \
    MR_DEVICE bool __h##name(__nv_bfloat16 a, __nv_bfloat16 b) {                                   \
        return (float)a op(float) b;                                                               \
    }                                                                                              \
    MR_DEVICE bool operator op(const __nv_bfloat16 &a, const __nv_bfloat16 &b) {                   \
        return (float)a op(float) b;                                                               \
    }
MR_BFLOAT_COMPARE(eq, ==)
MR_BFLOAT_COMPARE(ne, !=)
MR_BFLOAT_COMPARE(lt, <)
MR_BFLOAT_COMPARE(le, <=)
MR_BFLOAT_COMPARE(gt, >)
MR_BFLOAT_COMPARE(ge, >=)
#undef MR_BFLOAT_COMPARE

#define MR_BFLOAT_FUNCTION(name)                                                                   \
    MR_DEVICE __nv_bfloat16 h##name(__nv_bfloat16 a) {                                             \
        return __nv_bfloat16(name##f((float)a));                                                   \
    }
MR_BFLOAT_FUNCTION(sqrt)
MR_BFLOAT_FUNCTION(rsqrt)
MR_BFLOAT_FUNCTION(exp)
MR_BFLOAT_FUNCTION(exp2)
MR_BFLOAT_FUNCTION(log)
MR_BFLOAT_FUNCTION(log2)
MR_BFLOAT_FUNCTION(sin)
MR_BFLOAT_FUNCTION(cos)
#undef MR_BFLOAT_FUNCTION

#define MR_BFLOAT_SHUFFLE(name, argument)                                                          \
    MR_DEVICE __nv_bfloat16 name(unsigned int mask, __nv_bfloat16 value, argument other,           \
                                 int width = warpSize) {                                           \
        return __ushort_as_bfloat16((unsigned short)name(mask, (int)value.bits, other, width));    \
    }
MR_BFLOAT_SHUFFLE(__shfl_sync, int)
MR_BFLOAT_SHUFFLE(__shfl_up_sync, unsigned int)
MR_BFLOAT_SHUFFLE(__shfl_down_sync, unsigned int)
MR_BFLOAT_SHUFFLE(__shfl_xor_sync, int)
#undef MR_BFLOAT_SHUFFLE

#undef MR_MEMBER

#endif
