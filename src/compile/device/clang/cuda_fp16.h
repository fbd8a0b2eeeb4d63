/* half and half2 for clang: conversions, arithmetic, comparisons. Sums and products are the GPU's own instructions of
 * 16 bits; quotients, roots and functions are computed in float and rounded, which gives the nearest half. */
#ifndef MILLRACE_CUDA_FP16_H
#define MILLRACE_CUDA_FP16_H
#pragma clang system_header

struct __half_raw {
    unsigned short x;
};
struct __align__(4) __half2_raw {
    unsigned short x, y;
};

#define MR_MEMBER __inline__ __attribute__((device, always_inline, nodebug))

#define MR_TO_HALF(mode)                                                                           \
    MR_DEVICE unsigned short mr_half_##mode(float x) {                                             \
        unsigned short bits;                                                                       \
        asm("cvt." MR_PTX_##mode ".f16.f32 %0, %1;" : "=h"(bits) : "f"(x));                        \
        return bits;                                                                               \
    }
MR_ROUNDINGS(MR_TO_HALF)
#undef MR_TO_HALF
MR_DEVICE unsigned short mr_half_of_double(double x) {
    unsigned short bits;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x));
    return bits;
}
MR_DEVICE float mr_float_of_half(unsigned short bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

struct __align__(2) __half {
    unsigned short bits;
    __half() = default;
    MR_MEMBER __half(__half_raw raw) : bits(raw.x) {}
    MR_MEMBER __half(float x) : bits(mr_half_rn(x)) {}
    MR_MEMBER __half(double x) : bits(mr_half_of_double(x)) {}
    MR_MEMBER __half(int x) : bits(mr_half_of_double(x)) {}
    MR_MEMBER __half(unsigned int x) : bits(mr_half_of_double(x)) {}
    MR_MEMBER __half(short x) : bits(mr_half_rn(x)) {}
    MR_MEMBER __half(unsigned short x) : bits(mr_half_rn(x)) {}
    MR_MEMBER __half(long long x) : bits(mr_half_of_double((double)x)) {}
    MR_MEMBER __half(unsigned long long x) : bits(mr_half_of_double((double)x)) {}
    MR_MEMBER operator float() const {
        return mr_float_of_half(bits);
    }
    MR_MEMBER operator __half_raw() const {
        return {bits};
    }
};
typedef __half half;

struct __align__(4) __half2 {
    __half x, y;
    __half2() = default;
    MR_MEMBER __half2(__half a, __half b) : x(a), y(b) {}
};
typedef __half2 half2;

MR_DEVICE __half mr_half_of_bits(unsigned short bits) {
    __half h;
    h.bits = bits;
    return h;
}
MR_DEVICE unsigned int mr_bits_of(__half2 h) {
    return h.x.bits | (unsigned int)h.y.bits << 16;
}
MR_DEVICE __half2 mr_half2_of_bits(unsigned int bits) {
    __half2 h;
    h.x.bits = (unsigned short)bits;
    h.y.bits = (unsigned short)(bits >> 16);
    return h;
}

/* ---------------------------------------------------------------- conversions */

MR_DEVICE __half __float2half(float x) {
    return mr_half_of_bits(mr_half_rn(x));
}
#define MR_FLOAT_TO_HALF(mode)                                                                     \
    MR_DEVICE __half __float2half_##mode(float x) {                                                \
        return mr_half_of_bits(mr_half_##mode(x));                                                 \
    }
MR_ROUNDINGS(MR_FLOAT_TO_HALF)
#undef MR_FLOAT_TO_HALF
MR_DEVICE __half __double2half(double x) {
    return mr_half_of_bits(mr_half_of_double(x));
}
MR_DEVICE float __half2float(__half h) {
    return mr_float_of_half(h.bits);
}
MR_DEVICE __half __int2half_rn(int x) {
    return __double2half(x);
}
MR_DEVICE __half __uint2half_rn(unsigned int x) {
    return __double2half(x);
}
MR_DEVICE int __half2int_rn(__half h) {
    return __float2int_rn(__half2float(h));
}
MR_DEVICE int __half2int_rz(__half h) {
    return __float2int_rz(__half2float(h));
}
MR_DEVICE unsigned int __half2uint_rn(__half h) {
    return __float2uint_rn(__half2float(h));
}
MR_DEVICE short __half_as_short(__half h) {
    return (short)h.bits;
}
MR_DEVICE unsigned short __half_as_ushort(__half h) {
    return h.bits;
}
MR_DEVICE __half __short_as_half(short bits) {
    return mr_half_of_bits((unsigned short)bits);
}
MR_DEVICE __half __ushort_as_half(unsigned short bits) {
    return mr_half_of_bits(bits);
}
MR_DEVICE __half2 __halves2half2(__half a, __half b) {
    return __half2(a, b);
}
MR_DEVICE __half2 make_half2(__half a, __half b) {
    return __half2(a, b);
}
MR_DEVICE __half2 __half2half2(__half a) {
    return __half2(a, a);
}
MR_DEVICE __half2 __float2half2_rn(float x) {
    return __half2half2(__float2half(x));
}
MR_DEVICE __half2 __floats2half2_rn(float x, float y) {
    return __half2(__float2half(x), __float2half(y));
}
MR_DEVICE __half2 __float22half2_rn(float2 v) {
    return __floats2half2_rn(v.x, v.y);
}
MR_DEVICE float2 __half22float2(__half2 h) {
    return make_float2(__half2float(h.x), __half2float(h.y));
}
MR_DEVICE __half __low2half(__half2 h) {
    return h.x;
}
MR_DEVICE __half __high2half(__half2 h) {
    return h.y;
}
MR_DEVICE float __low2float(__half2 h) {
    return __half2float(h.x);
}
MR_DEVICE float __high2float(__half2 h) {
    return __half2float(h.y);
}
MR_DEVICE __half2 __lowhigh2highlow(__half2 h) {
    return __half2(h.y, h.x);
}
MR_DEVICE __half2 __low2half2(__half2 h) {
    return __half2(h.x, h.x);
}
MR_DEVICE __half2 __high2half2(__half2 h) {
    return __half2(h.y, h.y);
}

/* ---------------------------------------------------------------- arithmetic */

#define MR_HALF_BINARY(name, instruction)                                                          \
    MR_DEVICE __half __h##name(__half a, __half b) {                                               \
        unsigned short bits;                                                                       \
        asm(instruction ".f16 %0, %1, %2;" : "=h"(bits) : "h"(a.bits), "h"(b.bits));               \
        return mr_half_of_bits(bits);                                                              \
    }                                                                                              \
    MR_DEVICE __half2 __h##name##2(__half2 a, __half2 b) {                                         \
        unsigned int bits;                                                                         \
        asm(instruction ".f16x2 %0, %1, %2;"                                                       \
            : "=r"(bits)                                                                           \
            : "r"(mr_bits_of(a)), "r"(mr_bits_of(b)));                                             \
        return mr_half2_of_bits(bits);                                                             \
    }
MR_HALF_BINARY(add, "add")
MR_HALF_BINARY(sub, "sub")
MR_HALF_BINARY(mul, "mul")
#undef MR_HALF_BINARY
MR_DEVICE __half __hfma(__half a, __half b, __half c) {
    unsigned short bits;
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(bits) : "h"(a.bits), "h"(b.bits), "h"(c.bits));
    return mr_half_of_bits(bits);
}
MR_DEVICE __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    unsigned int bits;
    asm("fma.rn.f16x2 %0, %1, %2, %3;"
        : "=r"(bits)
        : "r"(mr_bits_of(a)), "r"(mr_bits_of(b)), "r"(mr_bits_of(c)));
    return mr_half2_of_bits(bits);
}
MR_DEVICE __half __hneg(__half a) {
    return mr_half_of_bits(a.bits ^ 0x8000u);
}
MR_DEVICE __half __habs(__half a) {
    return mr_half_of_bits(a.bits & 0x7fffu);
}
MR_DEVICE __half __hdiv(__half a, __half b) {
    return __float2half(__fdiv_rn(__half2float(a), __half2float(b)));
}
MR_DEVICE __half2 __hneg2(__half2 a) {
    return __half2(__hneg(a.x), __hneg(a.y));
}
MR_DEVICE __half2 __habs2(__half2 a) {
    return __half2(__habs(a.x), __habs(a.y));
}
MR_DEVICE __half2 __h2div(__half2 a, __half2 b) {
    return __half2(__hdiv(a.x, b.x), __hdiv(a.y, b.y));
}
MR_DEVICE __half __hadd_sat(__half a, __half b) {
    return __float2half(__saturatef(__half2float(__hadd(a, b))));
}

MR_DEVICE bool __hisnan(__half a) {
    return (a.bits & 0x7fffu) > 0x7c00u;
}
MR_DEVICE int __hisinf(__half a) {
    return (a.bits & 0x7fffu) != 0x7c00u ? 0 : a.bits >> 15 ? -1 : 1;
}
MR_DEVICE __half __hmin(__half a, __half b) {
    return __float2half(fminf(__half2float(a), __half2float(b)));
}
MR_DEVICE __half __hmax(__half a, __half b) {
    return __float2half(fmaxf(__half2float(a), __half2float(b)));
}
MR_DEVICE __half2 __hmin2(__half2 a, __half2 b) {
    return __half2(__hmin(a.x, b.x), __hmin(a.y, b.y));
}
MR_DEVICE __half2 __hmax2(__half2 a, __half2 b) {
    return __half2(__hmax(a.x, b.x), __hmax(a.y, b.y));
}

/* name, operator; __heq and the operator, and for both halves of a pair */
#define MR_HALF_COMPARE(name, op)                                                                  \
    MR_DEVICE bool __h##name(__half a, __half b) {                                                 \
        return __half2float(a) op __half2float(b);                                                 \
    }                                                                                              \
    MR_DEVICE bool operator op(const __half &a, const __half &b) {                                 \
        return __h##name(a, b);                                                                    \
    }                                                                                              \
    MR_DEVICE bool __hb##name##2(__half2 a, __half2 b) {                                           \
        return __h##name(a.x, b.x) && __h##name(a.y, b.y);                                         \
    }                                                                                              \
    MR_DEVICE __half2 __h##name##2(__half2 a, __half2 b) {                                         \
        return __half2(__half(__h##name(a.x, b.x) ? 1.0f : 0.0f),                                  \
                       __half(__h##name(a.y, b.y) ? 1.0f : 0.0f));                                 \
    }
MR_HALF_COMPARE(eq, ==)
MR_HALF_COMPARE(ne, !=)
MR_HALF_COMPARE(lt, <)
MR_HALF_COMPARE(le, <=)
MR_HALF_COMPARE(gt, >)
MR_HALF_COMPARE(ge, >=)
#undef MR_HALF_COMPARE

#define MR_HALF_OPERATOR(op, one, two)                                                             \
    MR_DEVICE __half operator op(const __half &a, const __half &b) {                               \
        return one(a, b);                                                                          \
    }                                                                                              \
    MR_DEVICE __half2 operator op(const __half2 &a, const __half2 &b) {                            \
        return two(a, b);                                                                          \
    }                                                                                              \
    MR_DEVICE __half &operator op##=(__half &a, const __half &b) {                                 \
        return a = one(a, b);                                                                      \
    }                                                                                              \
    MR_DEVICE __half2 &operator op##=(__half2 &a, const __half2 &b) {                              \
        return a = two(a, b);                                                                      \
    }
MR_HALF_OPERATOR(+, __hadd, __hadd2)
MR_HALF_OPERATOR(-, __hsub, __hsub2)
MR_HALF_OPERATOR(*, __hmul, __hmul2)
MR_HALF_OPERATOR(/, __hdiv, __h2div)
#undef MR_HALF_OPERATOR
MR_DEVICE __half operator-(const __half &a) {
    return __hneg(a);
}
MR_DEVICE __half2 operator-(const __half2 &a) {
    return __hneg2(a);
}
MR_DEVICE __half operator+(const __half &a) {
    return a;
}

#define MR_HALF_FUNCTION(name)                                                                     \
    MR_DEVICE __half h##name(__half a) {                                                           \
        return __float2half(name##f(__half2float(a)));                                             \
    }                                                                                              \
    MR_DEVICE __half2 h2##name(__half2 a) {                                                        \
        return __half2(h##name(a.x), h##name(a.y));                                                \
    }
MR_HALF_FUNCTION(sqrt)
MR_HALF_FUNCTION(rsqrt)
MR_HALF_FUNCTION(exp)
MR_HALF_FUNCTION(exp2)
MR_HALF_FUNCTION(exp10)
MR_HALF_FUNCTION(log)
MR_HALF_FUNCTION(log2)
MR_HALF_FUNCTION(log10)
MR_HALF_FUNCTION(sin)
MR_HALF_FUNCTION(cos)
MR_HALF_FUNCTION(ceil)
MR_HALF_FUNCTION(floor)
MR_HALF_FUNCTION(trunc)
MR_HALF_FUNCTION(rint)
#undef MR_HALF_FUNCTION
MR_DEVICE __half hrcp(__half a) {
    return __float2half(__frcp_rn(__half2float(a)));
}

/* ---------------------------------------------------------------- warps and atomics */

#define MR_HALF_SHUFFLE(name, argument)                                                            \
    MR_DEVICE __half name(unsigned int mask, __half value, argument other, int width = warpSize) { \
        return mr_half_of_bits((unsigned short)name(mask, (int)value.bits, other, width));         \
    }                                                                                              \
    MR_DEVICE __half2 name(unsigned int mask, __half2 value, argument other,                       \
                           int width = warpSize) {                                                 \
        return mr_half2_of_bits(name(mask, mr_bits_of(value), other, width));                      \
    }
MR_HALF_SHUFFLE(__shfl_sync, int)
MR_HALF_SHUFFLE(__shfl_up_sync, unsigned int)
MR_HALF_SHUFFLE(__shfl_down_sync, unsigned int)
MR_HALF_SHUFFLE(__shfl_xor_sync, int)
#undef MR_HALF_SHUFFLE

MR_DEVICE __half atomicAdd(__half *address, __half value) {
    unsigned short old;
    asm volatile("atom.add.noftz.f16 %0, [%1], %2;"
                 : "=h"(old)
                 : "l"(address), "h"(value.bits)
                 : "memory");
    return mr_half_of_bits(old);
}
MR_DEVICE __half2 atomicAdd(__half2 *address, __half2 value) {
    unsigned int old;
    asm volatile("atom.add.noftz.f16x2 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(address), "r"(mr_bits_of(value))
                 : "memory");
    return mr_half2_of_bits(old);
}

#undef MR_MEMBER

#endif
