/* The CUDA math API: the names, for float and double. functions.h has what computes. */
#ifndef MILLRACE_MATH_H
#define MILLRACE_MATH_H
#pragma clang system_header

#define MR_TABLE static const __attribute__((device, nodebug))
#include <millrace/functions.h>

/* ---------------------------------------------------------------- instructions of the GPU */

MR_DEVICE double sqrt(double x) {
    return __builtin_sqrt(x);
}
MR_DEVICE float sqrtf(float x) {
    return __builtin_sqrtf(x);
}
MR_DEVICE double fabs(double x) {
    return __builtin_fabs(x);
}
MR_DEVICE float fabsf(float x) {
    return __builtin_fabsf(x);
}
MR_DEVICE double floor(double x) {
    return __builtin_floor(x);
}
MR_DEVICE float floorf(float x) {
    return __builtin_floorf(x);
}
MR_DEVICE double ceil(double x) {
    return __builtin_ceil(x);
}
MR_DEVICE float ceilf(float x) {
    return __builtin_ceilf(x);
}
MR_DEVICE double trunc(double x) {
    return __builtin_trunc(x);
}
MR_DEVICE float truncf(float x) {
    return __builtin_truncf(x);
}
MR_DEVICE double rint(double x) {
    return __builtin_rint(x);
}
MR_DEVICE float rintf(float x) {
    return __builtin_rintf(x);
}
MR_DEVICE double nearbyint(double x) {
    return __builtin_nearbyint(x);
}
MR_DEVICE float nearbyintf(float x) {
    return __builtin_nearbyintf(x);
}
MR_DEVICE double round(double x) {
    return __builtin_round(x);
}
MR_DEVICE float roundf(float x) {
    return __builtin_roundf(x);
}
MR_DEVICE double fmin(double x, double y) {
    return __builtin_fmin(x, y);
}
MR_DEVICE float fminf(float x, float y) {
    return __builtin_fminf(x, y);
}
MR_DEVICE double fmax(double x, double y) {
    return __builtin_fmax(x, y);
}
MR_DEVICE float fmaxf(float x, float y) {
    return __builtin_fmaxf(x, y);
}
MR_DEVICE double copysign(double x, double y) {
    return __builtin_copysign(x, y);
}
MR_DEVICE float copysignf(float x, float y) {
    return __builtin_copysignf(x, y);
}
MR_DEVICE double fma(double x, double y, double z) {
    return __builtin_fma(x, y, z);
}
MR_DEVICE float fmaf(float x, float y, float z) {
    return __builtin_fmaf(x, y, z);
}
MR_DEVICE float rsqrtf(float x) {
    return mr_rsqrt_approx(x);
}
MR_DEVICE float fdividef(float x, float y) {
    return x / y;
}

/* ---------------------------------------------------------------- one argument */

/* name, function of double; the float form computes in double and rounds once */
#define MR_UNARY_LIST(X)                                                                           \
    X(expm1)                                                                                       \
    X(sinh)                                                                                        \
    X(cosh)                                                                                        \
    X(tanh)                                                                                        \
    X(log1p)                                                                                       \
    X(asinh)                                                                                       \
    X(acosh)                                                                                       \
    X(atanh)                                                                                       \
    X(cbrt)                                                                                        \
    X(sinpi)                                                                                       \
    X(cospi)                                                                                       \
    X(atan)                                                                                        \
    X(asin)                                                                                        \
    X(acos)                                                                                        \
    X(erf)                                                                                         \
    X(erfc)                                                                                        \
    X(erfcx)                                                                                       \
    X(erfinv)                                                                                      \
    X(erfcinv)                                                                                     \
    X(normcdf)                                                                                     \
    X(normcdfinv)                                                                                  \
    X(tgamma)                                                                                      \
    X(lgamma)                                                                                      \
    X(logb)
#define X(name)                                                                                    \
    MR_DEVICE double name(double x) {                                                              \
        return mr_##name(x);                                                                       \
    }                                                                                              \
    MR_DEVICE float name##f(float x) {                                                             \
        return (float)mr_##name((double)x);                                                        \
    }
MR_UNARY_LIST(X)
#undef X

/* These have a float form of their own, and a fast one for --use_fast_math. */
#define MR_FAST_LIST(X)                                                                            \
    X(exp)                                                                                         \
    X(exp2)                                                                                        \
    X(exp10)                                                                                       \
    X(log)                                                                                         \
    X(log2)                                                                                        \
    X(log10)                                                                                       \
    X(sin)                                                                                         \
    X(cos)                                                                                         \
    X(tan)
#ifdef __MR_FAST_MATH__
MR_DEVICE float mr_fast_exp2f(float x) {
    return mr_exp2_approx(x);
}
#define __exp2f mr_fast_exp2f
#define X(name)                                                                                    \
    MR_DEVICE double name(double x) {                                                              \
        return mr_##name(x);                                                                       \
    }                                                                                              \
    MR_DEVICE float name##f(float x) {                                                             \
        return __##name##f(x);                                                                     \
    }
#else
#define X(name)                                                                                    \
    MR_DEVICE double name(double x) {                                                              \
        return mr_##name(x);                                                                       \
    }                                                                                              \
    MR_DEVICE float name##f(float x) {                                                             \
        return mr_##name##f(x);                                                                    \
    }
#endif
MR_FAST_LIST(X)
#undef X
#undef __exp2f

MR_DEVICE double rsqrt(double x) {
    if (!(x > 0.0 && x < MR_INFINITY))
        return x == 0.0 ? mr_of_bits(mr_bits(x) | 0x7ff0000000000000ull) : x > 0.0 ? 0.0 : MR_NAN;
    mr_pair root = mr_pair_sqrt(mr_pair_of(x, 0.0)),
            value = mr_pair_quotient(mr_pair_of(1.0, 0.0), root);
    return value.high + value.low;
}
MR_DEVICE double rcbrt(double x) {
    return 1.0 / mr_cbrt(x);
}
MR_DEVICE float rcbrtf(float x) {
    return (float)(1.0 / mr_cbrt((double)x));
}
MR_DEVICE int ilogb(double x) {
    return x == 0.0 || x != x ? -2147483647 - 1 : mr_is_finite(x) ? (int)mr_logb(x) : 2147483647;
}
MR_DEVICE int ilogbf(float x) {
    return ilogb((double)x);
}
MR_DEVICE double frexp(double x, int *exponent) {
    return mr_frexp(x, exponent);
}
MR_DEVICE float frexpf(float x, int *exponent) {
    return (float)mr_frexp((double)x, exponent);
}
MR_DEVICE double modf(double x, double *whole) {
    *whole = __builtin_trunc(x);
    return __builtin_copysign(mr_is_finite(x) ? x - *whole : x == x ? 0.0 : x, x);
}
MR_DEVICE float modff(float x, float *whole) {
    double part;
    float rest = (float)modf((double)x, &part);
    *whole = (float)part;
    return rest;
}
MR_DEVICE void sincos(double x, double *sine, double *cosine) {
    mr_sincos(x, sine, cosine);
}
MR_DEVICE void sincosf(float x, float *sine, float *cosine) {
    *sine = sinf(x);
    *cosine = cosf(x);
}
MR_DEVICE void sincospi(double x, double *sine, double *cosine) {
    *sine = mr_sinpi(x);
    *cosine = mr_cospi(x);
}
MR_DEVICE void sincospif(float x, float *sine, float *cosine) {
    *sine = sinpif(x);
    *cosine = cospif(x);
}

#define MR_TO_INTEGER(name, type, rounded)                                                         \
    MR_DEVICE type name(double x) {                                                                \
        return (type)rounded(x);                                                                   \
    }                                                                                              \
    MR_DEVICE type name##f(float x) {                                                              \
        return (type)rounded##f(x);                                                                \
    }
MR_TO_INTEGER(lrint, long, rint)
MR_TO_INTEGER(llrint, long long, rint)
MR_TO_INTEGER(lround, long, round)
MR_TO_INTEGER(llround, long long, round)
#undef MR_TO_INTEGER

/* ---------------------------------------------------------------- several arguments */

MR_DEVICE double pow(double x, double y) {
    return mr_pow(x, y);
}
#ifdef __MR_FAST_MATH__
MR_DEVICE float powf(float x, float y) {
    return __powf(x, y);
}
#else
MR_DEVICE float powf(float x, float y) {
    return mr_powf(x, y);
}
#endif
MR_DEVICE double powi(double x, int n) {
    return mr_pow(x, (double)n);
}
MR_DEVICE float powif(float x, int n) {
    return powf(x, (float)n);
}
MR_DEVICE double nextafter(double x, double y) {
    return mr_nextafter(x, y);
}
MR_DEVICE float nextafterf(float x, float y) {
    return mr_nextafterf(x, y);
}
MR_DEVICE double ldexp(double x, int n) {
    return mr_ldexp(x, n);
}
MR_DEVICE float ldexpf(float x, int n) {
    return (float)mr_ldexp((double)x, n);
}
MR_DEVICE double scalbn(double x, int n) {
    return mr_ldexp(x, n);
}
MR_DEVICE float scalbnf(float x, int n) {
    return ldexpf(x, n);
}
MR_DEVICE double remquo(double x, double y, int *quotient) {
    return mr_remquo(x, y, quotient);
}
MR_DEVICE float remquof(float x, float y, int *quotient) {
    return (float)mr_remquo((double)x, (double)y, quotient);
}
MR_DEVICE double remainder(double x, double y) {
    int quotient;
    return mr_remquo(x, y, &quotient);
}
MR_DEVICE double fdim(double x, double y) {
    return x > y ? x - y : x == x && y == y ? 0.0 : MR_NAN;
}

/* name, its value for doubles */
#define MR_BINARY_LIST(X)                                                                          \
    X(atan2, mr_atan2(x, y))                                                                       \
    X(fmod, mr_fmod(x, y))                                                                         \
    X(hypot, mr_norm(x, y, 0.0, 0.0, 0))                                                           \
    X(rhypot, mr_norm(x, y, 0.0, 0.0, 1))
#define X(name, value)                                                                             \
    MR_DEVICE double name(double x, double y) {                                                    \
        return value;                                                                              \
    }                                                                                              \
    MR_DEVICE float name##f(float x, float y) {                                                    \
        return (float)name((double)x, (double)y);                                                  \
    }
MR_BINARY_LIST(X)
#undef X
MR_DEVICE float remainderf(float x, float y) {
    return (float)remainder((double)x, (double)y);
}
MR_DEVICE float fdimf(float x, float y) {
    return (float)fdim((double)x, (double)y);
}
MR_DEVICE double norm3d(double x, double y, double z) {
    return mr_norm(x, y, z, 0.0, 0);
}
MR_DEVICE double norm4d(double x, double y, double z, double w) {
    return mr_norm(x, y, z, w, 0);
}
MR_DEVICE double rnorm3d(double x, double y, double z) {
    return mr_norm(x, y, z, 0.0, 1);
}
MR_DEVICE double rnorm4d(double x, double y, double z, double w) {
    return mr_norm(x, y, z, w, 1);
}
MR_DEVICE float norm3df(float x, float y, float z) {
    return (float)norm3d(x, y, z);
}
MR_DEVICE float norm4df(float x, float y, float z, float w) {
    return (float)norm4d(x, y, z, w);
}
MR_DEVICE float rnorm3df(float x, float y, float z) {
    return (float)rnorm3d(x, y, z);
}
MR_DEVICE float rnorm4df(float x, float y, float z, float w) {
    return (float)rnorm4d(x, y, z, w);
}

/* ---------------------------------------------------------------- kinds of numbers */

#define MR_CLASSIFY(type, suffix)                                                                  \
    MR_DEVICE bool isnan(type x) {                                                                 \
        return x != x;                                                                             \
    }                                                                                              \
    MR_DEVICE bool isinf(type x) {                                                                 \
        return __builtin_fabs##suffix(x) == __builtin_inf##suffix();                               \
    }                                                                                              \
    MR_DEVICE bool isfinite(type x) {                                                              \
        return __builtin_fabs##suffix(x) < __builtin_inf##suffix();                                \
    }                                                                                              \
    MR_DEVICE bool signbit(type x) {                                                               \
        return mr_is_negative((double)x);                                                          \
    }
MR_CLASSIFY(double, )
MR_CLASSIFY(float, f)
#undef MR_CLASSIFY
MR_DEVICE bool isnormal(float x) {
    return isfinite(x) && __builtin_fabsf(x) >= 1.17549435e-38f;
}
MR_DEVICE bool isnormal(double x) {
    return isfinite(x) && __builtin_fabs(x) >= 2.2250738585072014e-308;
}
MR_DEVICE double nan(const char *) {
    return MR_NAN;
}
MR_DEVICE float nanf(const char *) {
    return __builtin_nanf("");
}

/* ---------------------------------------------------------------- C++: sin(float), sin(int), min(float, float) */

template <typename T> struct mr_only_integer {};
#define X(type)                                                                                    \
    template <> struct mr_only_integer<type> { typedef double result; };
X(bool)
X(char)
X(signed char)
X(unsigned char)
X(short)
X(unsigned short)
X(int)
X(unsigned int)
X(long)
X(unsigned long)
X(long long)
X(unsigned long long)
#undef X

#define X(name)                                                                                    \
    MR_DEVICE float name(float x) {                                                                \
        return name##f(x);                                                                         \
    }                                                                                              \
    template <typename T> MR_DEVICE typename mr_only_integer<T>::result name(T x) {                \
        return name((double)x);                                                                    \
    }
MR_UNARY_LIST(X)
MR_FAST_LIST(X)
X(sqrt)
X(fabs)
X(floor)
X(ceil)
X(trunc)
X(rint)
X(nearbyint)
X(round)
X(rsqrt)
X(rcbrt)
#undef X
#undef MR_UNARY_LIST
#undef MR_FAST_LIST

#define X(name)                                                                                    \
    MR_DEVICE float name(float x, float y) {                                                       \
        return name##f(x, y);                                                                      \
    }                                                                                              \
    MR_DEVICE double name(double x, float y) {                                                     \
        return name(x, (double)y);                                                                 \
    }                                                                                              \
    MR_DEVICE double name(float x, double y) {                                                     \
        return name((double)x, y);                                                                 \
    }                                                                                              \
    template <typename T> MR_DEVICE typename mr_only_integer<T>::result name(double x, T y) {      \
        return name(x, (double)y);                                                                 \
    }                                                                                              \
    template <typename T> MR_DEVICE typename mr_only_integer<T>::result name(float x, T y) {       \
        return name((double)x, (double)y);                                                         \
    }                                                                                              \
    template <typename T> MR_DEVICE typename mr_only_integer<T>::result name(T x, double y) {      \
        return name((double)x, y);                                                                 \
    }                                                                                              \
    template <typename T> MR_DEVICE typename mr_only_integer<T>::result name(T x, float y) {       \
        return name((double)x, (double)y);                                                         \
    }
X(pow)
X(atan2)
X(fmod)
X(hypot)
X(rhypot)
X(remainder)
X(fdim)
X(fmin)
X(fmax)
X(copysign)
X(nextafter)
#undef X
#undef MR_BINARY_LIST
MR_DEVICE double pow(int x, int y) {
    return mr_pow((double)x, (double)y);
}
MR_DEVICE float fma(float x, float y, float z) {
    return fmaf(x, y, z);
}
MR_DEVICE float ldexp(float x, int n) {
    return ldexpf(x, n);
}
MR_DEVICE float scalbn(float x, int n) {
    return scalbnf(x, n);
}
MR_DEVICE float frexp(float x, int *exponent) {
    return frexpf(x, exponent);
}
MR_DEVICE float modf(float x, float *whole) {
    return modff(x, whole);
}
MR_DEVICE void sincos(float x, float *sine, float *cosine) {
    sincosf(x, sine, cosine);
}
MR_DEVICE long lrint(float x) {
    return lrintf(x);
}
MR_DEVICE long long llrint(float x) {
    return llrintf(x);
}
MR_DEVICE long lround(float x) {
    return lroundf(x);
}
MR_DEVICE long long llround(float x) {
    return llroundf(x);
}
MR_DEVICE int ilogb(float x) {
    return ilogbf(x);
}
MR_DEVICE float abs(float x) {
    return __builtin_fabsf(x);
}
MR_DEVICE double abs(double x) {
    return __builtin_fabs(x);
}

MR_DEVICE float min(float x, float y) {
    return __builtin_fminf(x, y);
}
MR_DEVICE float max(float x, float y) {
    return __builtin_fmaxf(x, y);
}
MR_DEVICE double min(double x, double y) {
    return __builtin_fmin(x, y);
}
MR_DEVICE double max(double x, double y) {
    return __builtin_fmax(x, y);
}
MR_DEVICE double min(float x, double y) {
    return __builtin_fmin((double)x, y);
}
MR_DEVICE double max(float x, double y) {
    return __builtin_fmax((double)x, y);
}
MR_DEVICE double min(double x, float y) {
    return __builtin_fmin(x, (double)y);
}
MR_DEVICE double max(double x, float y) {
    return __builtin_fmax(x, (double)y);
}

/* The functions that <cmath> puts into std, so that std::sqrt means the same. */
namespace std {
using ::abs;
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::fdim;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::frexp;
using ::hypot;
using ::ilogb;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::isnormal;
using ::ldexp;
using ::lgamma;
using ::llrint;
using ::llround;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::logb;
using ::lrint;
using ::lround;
using ::modf;
using ::nearbyint;
using ::nextafter;
using ::pow;
using ::remainder;
using ::remquo;
using ::rint;
using ::round;
using ::scalbn;
using ::signbit;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;
} // namespace std

#endif
