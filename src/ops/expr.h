/* The functions that expressions of the table call, by type. A backend's own header gives the same names
 * to its compiler (in CUDA as overloads). Integer arithmetic wraps and never is undefined. */
#ifndef MR_OPS_EXPR_H
#define MR_OPS_EXPR_H

#include "ops/math.h"
#include "ops/math_double.h"
#include "ops/math_pow.h"

/* bool is uint8_t here; its loops make the result 0 or 1. */
#define MR_BY_TYPE(name, x)                                                                        \
    _Generic((x), uint8_t                                                                          \
             : name##_u8, int32_t                                                                  \
             : name##_i32, int64_t                                                                 \
             : name##_i64, float                                                                   \
             : name##_f32, double                                                                  \
             : name##_f64)
#define MR_BY_FLOAT(name, x) _Generic((x), float : name##_f32, double : name##_f64)
#define MR_BY_WHOLE(name, x)                                                                       \
    _Generic((x), uint8_t : name##_u8, int32_t : name##_i32, int64_t : name##_i64)

#define mr_below_zero(a)      MR_BY_TYPE(mr_below_zero, a)(a)
#define mr_neg(a)             MR_BY_TYPE(mr_neg, a)(a)
#define mr_abs(a)             MR_BY_TYPE(mr_abs, a)(a)
#define mr_floor(a)           MR_BY_TYPE(mr_floor, a)(a)
#define mr_ceil(a)            MR_BY_TYPE(mr_ceil, a)(a)
#define mr_round(a)           MR_BY_TYPE(mr_round, a)(a)
#define mr_add(a, b)          MR_BY_TYPE(mr_add, a)(a, b)
#define mr_sub(a, b)          MR_BY_TYPE(mr_sub, a)(a, b)
#define mr_mul(a, b)          MR_BY_TYPE(mr_mul, a)(a, b)
#define mr_pow(a, b)          MR_BY_TYPE(mr_pow, a)(a, b)
#define mr_maximum(a, b)      MR_BY_TYPE(mr_maximum, a)(a, b)
#define mr_minimum(a, b)      MR_BY_TYPE(mr_minimum, a)(a, b)
#define mr_remainder(a, b)    MR_BY_TYPE(mr_remainder, a)(a, b)
#define mr_trunc(a)           MR_BY_TYPE(mr_trunc, a)(a)
#define mr_is_nan(a)          MR_BY_TYPE(mr_is_nan, a)(a)
#define mr_is_inf(a)          MR_BY_TYPE(mr_is_inf, a)(a)
#define mr_fmod(a, b)         MR_BY_TYPE(mr_fmod, a)(a, b)
#define mr_floor_divide(a, b) MR_BY_TYPE(mr_floor_divide, a)(a, b)

/* The three operations that divide floats have a second expression, for where
 * mr_quotient_is_near(a, b) holds. */
#define mr_remainder_near(a, b)    MR_BY_FLOAT(mr_remainder_near, a)(a, b)
#define mr_fmod_near(a, b)         MR_BY_FLOAT(mr_fmod_near, a)(a, b)
#define mr_floor_divide_near(a, b) MR_BY_FLOAT(mr_floor_divide_near, a)(a, b)
#define mr_quotient_is_near(a, b)  MR_BY_FLOAT(mr_quotient_is_near, a)(a, b)

#define mr_shift_left(a, b)  MR_BY_WHOLE(mr_shift_left, a)(a, b)
#define mr_shift_right(a, b) MR_BY_WHOLE(mr_shift_right, a)(a, b)

#define mr_exp(a)      MR_BY_FLOAT(mr_exp, a)(a)
#define mr_log(a)      MR_BY_FLOAT(mr_log, a)(a)
#define mr_sqrt(a)     MR_BY_FLOAT(mr_sqrt, a)(a)
#define mr_sin(a)      MR_BY_FLOAT(mr_sin, a)(a)
#define mr_cos(a)      MR_BY_FLOAT(mr_cos, a)(a)
#define mr_tanh(a)     MR_BY_FLOAT(mr_tanh, a)(a)
#define mr_gelu(a)     MR_BY_FLOAT(mr_gelu, a)(a)
#define mr_erf(a)      MR_BY_FLOAT(mr_erf, a)(a)
#define mr_exp2(a)     MR_BY_FLOAT(mr_exp2, a)(a)
#define mr_expm1(a)    MR_BY_FLOAT(mr_expm1, a)(a)
#define mr_log2(a)     MR_BY_FLOAT(mr_log2, a)(a)
#define mr_log10(a)    MR_BY_FLOAT(mr_log10, a)(a)
#define mr_log1p(a)    MR_BY_FLOAT(mr_log1p, a)(a)
#define mr_tan(a)      MR_BY_FLOAT(mr_tan, a)(a)
#define mr_asin(a)     MR_BY_FLOAT(mr_asin, a)(a)
#define mr_acos(a)     MR_BY_FLOAT(mr_acos, a)(a)
#define mr_atan(a)     MR_BY_FLOAT(mr_atan, a)(a)
#define mr_sinh(a)     MR_BY_FLOAT(mr_sinh, a)(a)
#define mr_cosh(a)     MR_BY_FLOAT(mr_cosh, a)(a)
#define mr_silu(a)     MR_BY_FLOAT(mr_silu, a)(a)
#define mr_sigmoid(a)  MR_BY_FLOAT(mr_sigmoid, a)(a)
#define mr_atan2(a, b) MR_BY_FLOAT(mr_atan2, a)(a, b)

/* sin, cos and tan have a second expression, for where mr_is_near(a) holds. */
#define mr_sin_near(a) MR_BY_FLOAT(mr_sin_near, a)(a)
#define mr_cos_near(a) MR_BY_FLOAT(mr_cos_near, a)(a)
#define mr_tan_near(a) MR_BY_FLOAT(mr_tan_near, a)(a)
#define mr_is_near(a)  MR_BY_FLOAT(mr_is_near, a)(a)

/* Apart, because `a < 0` on an unsigned type is always false and compilers remark on it. */
MR_INLINE bool mr_below_zero_u8(uint8_t a) {
    return (void)a, false;
}
MR_INLINE bool mr_below_zero_i32(int32_t a) {
    return a < 0;
}
MR_INLINE bool mr_below_zero_i64(int64_t a) {
    return a < 0;
}
MR_INLINE bool mr_below_zero_f32(float a) {
    return a < 0;
}
MR_INLINE bool mr_below_zero_f64(double a) {
    return a < 0;
}

/* U is unsigned and not narrower than int, so that no product or sum of it is signed. */
#define MR_INTEGER_FUNCTIONS(T, U, tag)                                                            \
    MR_INLINE T mr_neg_##tag(T a) {                                                                \
        return (T)(0 - (U)a);                                                                      \
    }                                                                                              \
    MR_INLINE T mr_abs_##tag(T a) {                                                                \
        return mr_below_zero_##tag(a) ? (T)(0 - (U)a) : a;                                         \
    }                                                                                              \
    MR_INLINE T mr_floor_##tag(T a) {                                                              \
        return a;                                                                                  \
    }                                                                                              \
    MR_INLINE T mr_ceil_##tag(T a) {                                                               \
        return a;                                                                                  \
    }                                                                                              \
    MR_INLINE T mr_round_##tag(T a) {                                                              \
        return a;                                                                                  \
    }                                                                                              \
    MR_INLINE T mr_add_##tag(T a, T b) {                                                           \
        return (T)((U)a + (U)b);                                                                   \
    }                                                                                              \
    MR_INLINE T mr_sub_##tag(T a, T b) {                                                           \
        return (T)((U)a - (U)b);                                                                   \
    }                                                                                              \
    MR_INLINE T mr_mul_##tag(T a, T b) {                                                           \
        return (T)((U)a * (U)b);                                                                   \
    }                                                                                              \
    MR_INLINE T mr_maximum_##tag(T a, T b) {                                                       \
        return a > b ? a : b;                                                                      \
    }                                                                                              \
    MR_INLINE T mr_minimum_##tag(T a, T b) {                                                       \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    MR_INLINE T mr_remainder_##tag(T a, T b) {                                                     \
        if (b == 0 || (mr_below_zero_##tag(b) && b == (T)-1)) return 0; /* INT_MIN % -1 */         \
        T r = (T)(a % b);                                                                          \
        bool other_sign = mr_below_zero_##tag(r) != mr_below_zero_##tag(b);                        \
        return (T)(r != 0 && other_sign ? (U)r + (U)b : (U)r);                                     \
    }                                                                                              \
    MR_INLINE T mr_trunc_##tag(T a) {                                                              \
        return a;                                                                                  \
    }                                                                                              \
    MR_INLINE bool mr_is_nan_##tag(T a) {                                                          \
        return (void)a, false;                                                                     \
    }                                                                                              \
    MR_INLINE bool mr_is_inf_##tag(T a) {                                                          \
        return (void)a, false;                                                                     \
    }                                                                                              \
    MR_INLINE T mr_fmod_##tag(T a, T b) {                                                          \
        return b == 0 || (mr_below_zero_##tag(b) && b == (T)-1) ? (T)0 : (T)(a % b);               \
    }                                                                                              \
    MR_INLINE T mr_floor_divide_##tag(T a, T b) {                                                  \
        if (b == 0) return 0;                                                                      \
        if (mr_below_zero_##tag(b) && b == (T)-1) return (T)(0 - (U)a); /* INT_MIN / -1 */         \
        bool rounded_up = a % b != 0 && mr_below_zero_##tag(a) != mr_below_zero_##tag(b);          \
        return (T)(a / b - rounded_up);                                                            \
    }                                                                                              \
    /* Shifts by more bits than there are, or by fewer than 0, shift all of them out. */           \
    MR_INLINE T mr_shift_left_##tag(T a, T b) {                                                    \
        return mr_below_zero_##tag(b) || b >= (T)(8 * sizeof(T)) ? (T)0 : (T)((U)a << b);          \
    }                                                                                              \
    MR_INLINE T mr_shift_right_##tag(T a, T b) {                                                   \
        bool all = mr_below_zero_##tag(b) || b >= (T)(8 * sizeof(T));                              \
        return all ? (mr_below_zero_##tag(a) ? (T)-1 : (T)0) : (T)(a >> b);                        \
    }                                                                                              \
    MR_INLINE T mr_pow_##tag(T a, T b) {                                                           \
        if (mr_below_zero_##tag(b)) {                                                              \
            if (a == 1) return 1;                                                                  \
            return a == (T)-1 ? (b % 2 ? (T)-1 : 1) : 0;                                           \
        }                                                                                          \
        U base = (U)a, result = 1;                                                                 \
        for (U rest = (U)b; rest; rest >>= 1) {                                                    \
            if (rest & 1) result *= base;                                                          \
            base *= base;                                                                          \
        }                                                                                          \
        return (T)result;                                                                          \
    }
MR_INTEGER_FUNCTIONS(uint8_t, uint32_t, u8)
MR_INTEGER_FUNCTIONS(int32_t, uint32_t, i32)
MR_INTEGER_FUNCTIONS(int64_t, uint64_t, i64)
#undef MR_INTEGER_FUNCTIONS

/* `f` is the suffix of C's functions for the type; a quotient up to `most` is an integer and a fraction of several
 * bits. Rounding is to nearest, even at the middle, as long as the processor's rounding mode is not changed; millrace
 * never changes it. */
#define MR_FLOAT_FUNCTIONS(T, tag, f, most)                                                        \
    MR_INLINE T mr_neg_##tag(T a) {                                                                \
        return -a;                                                                                 \
    }                                                                                              \
    MR_INLINE T mr_abs_##tag(T a) {                                                                \
        return fabs##f(a);                                                                         \
    }                                                                                              \
    MR_INLINE T mr_floor_##tag(T a) {                                                              \
        return floor##f(a);                                                                        \
    }                                                                                              \
    MR_INLINE T mr_ceil_##tag(T a) {                                                               \
        return ceil##f(a);                                                                         \
    }                                                                                              \
    MR_INLINE T mr_round_##tag(T a) {                                                              \
        return rint##f(a);                                                                         \
    }                                                                                              \
    MR_INLINE T mr_add_##tag(T a, T b) {                                                           \
        return a + b;                                                                              \
    }                                                                                              \
    MR_INLINE T mr_sub_##tag(T a, T b) {                                                           \
        return a - b;                                                                              \
    }                                                                                              \
    MR_INLINE T mr_mul_##tag(T a, T b) {                                                           \
        return a * b;                                                                              \
    }                                                                                              \
    /* gcc would make branches of one selection by `a > b or a is NaN` in a larger \
     * expression. */               \
    MR_INLINE T mr_maximum_##tag(T a, T b) {                                                       \
        T greater = a > b ? a : b;                                                                 \
        return a != a ? a : greater;                                                               \
    }                                                                                              \
    MR_INLINE T mr_minimum_##tag(T a, T b) {                                                       \
        T lesser = a < b ? a : b;                                                                  \
        return a != a ? a : lesser;                                                                \
    }                                                                                              \
    /* |a| / |b| as a whole number and the rest, both exact. Rounding the quotient can make it */  \
    /* one too large, never too small; the rest is then negative, and still exact. */              \
    typedef struct {                                                                               \
        T whole, rest;                                                                             \
    } mr_divided_##tag;                                                                            \
    MR_INLINE mr_divided_##tag mr_divide_near_##tag(T a, T b) {                                    \
        T x = fabs##f(a), y = fabs##f(b), whole = trunc##f(x / y);                                 \
        T rest = fma##f(-whole, y, x), below = whole - 1, above = rest + y;                        \
        bool rounded_up = rest < 0;                                                                \
        return (mr_divided_##tag){rounded_up ? below : whole, rounded_up ? above : rest};          \
    }                                                                                              \
    MR_INLINE bool mr_quotient_is_near_##tag(T a, T b) {                                           \
        return (fabs##f(a) < fabs##f(b) * (T)(most)) & (fabs##f(b) < (T)INFINITY);                 \
    }                                                                                              \
    MR_INLINE T mr_fmod_near_##tag(T a, T b) {                                                     \
        return copysign##f(mr_divide_near_##tag(a, b).rest, a);                                    \
    }                                                                                              \
    MR_INLINE T mr_remainder_near_##tag(T a, T b) {                                                \
        T rest = mr_fmod_near_##tag(a, b), other = rest + b;                                       \
        return ((rest != 0) & ((rest < 0) != (b < 0))) ? other : rest;                             \
    }                                                                                              \
    MR_INLINE T mr_floor_divide_near_##tag(T a, T b) {                                             \
        mr_divided_##tag d = mr_divide_near_##tag(a, b);                                           \
        T sign = copysign##f((T)1, a) * copysign##f((T)1, b);                                      \
        T toward_0 = sign * d.whole, below = toward_0 - 1;                                         \
        return ((d.rest != 0) & (sign < 0)) ? below : toward_0;                                    \
    }                                                                                              \
    MR_INLINE T mr_fmod_##tag(T a, T b) {                                                          \
        return mr_quotient_is_near_##tag(a, b) ? mr_fmod_near_##tag(a, b) : fmod##f(a, b);         \
    }                                                                                              \
    MR_INLINE T mr_remainder_##tag(T a, T b) {                                                     \
        T r = mr_fmod_##tag(a, b);                                                                 \
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;                                           \
    }                                                                                              \
    MR_INLINE T mr_trunc_##tag(T a) {                                                              \
        return trunc##f(a);                                                                        \
    }                                                                                              \
    MR_INLINE bool mr_is_nan_##tag(T a) {                                                          \
        return a != a;                                                                             \
    }                                                                                              \
    MR_INLINE bool mr_is_inf_##tag(T a) {                                                          \
        return fabs##f(a) == (T)INFINITY;                                                          \
    }                                                                                              \
    /* The exact quotient's floor, which the quotient, rounded, may have passed. */                \
    MR_INLINE T mr_floor_divide_##tag(T a, T b) {                                                  \
        if (mr_quotient_is_near_##tag(a, b)) return mr_floor_divide_near_##tag(a, b);              \
        if (b == 0) return a / b;                                                                  \
        T rest = fmod##f(a, b), quotient = (a - rest) / b;                                         \
        if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;                                     \
        if (quotient == 0) return copysign##f((T)0, a / b);                                        \
        T whole = floor##f(quotient);                                                              \
        return quotient - whole > (T)0.5 ? whole + 1 : whole;                                      \
    }                                                                                              \
    MR_INLINE T mr_sqrt_##tag(T a) {                                                               \
        return sqrt##f(a);                                                                         \
    }
MR_FLOAT_FUNCTIONS(float, f32, f, 0x1p20f)
MR_FLOAT_FUNCTIONS(double, f64, , 0x1p49)
#undef MR_FLOAT_FUNCTIONS

#endif
