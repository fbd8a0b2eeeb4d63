/* The plain reductions: one row a fold, compiled as C for the CPU bodies (fold_*.c) and as CUDA for a GPU
 * (cuda/kernels/reduce.cu). Expressions call the functions of expr.h. */
#ifndef MR_OPS_FOLD_TABLE_H
#define MR_OPS_FOLD_TABLE_H

#include <math.h>
#include <stdint.h>

/* Least and greatest value of a type: where max and min begin. */
#define LEAST_f32     (-INFINITY)
#define LEAST_f64     (-INFINITY)
#define LEAST_f16     (-INFINITY)
#define LEAST_bf16    (-INFINITY)
#define LEAST_i32     INT32_MIN
#define LEAST_i64     INT64_MIN
#define LEAST_u8      0
#define LEAST_b8      0
#define GREATEST_f32  INFINITY
#define GREATEST_f64  INFINITY
#define GREATEST_f16  INFINITY
#define GREATEST_bf16 INFINITY
#define GREATEST_i32  INT32_MAX
#define GREATEST_i64  INT64_MAX
#define GREATEST_u8   UINT8_MAX
#define GREATEST_b8   1

/* max and min test x for NaN, and not s: so vectors wait for one comparison of s only.
 *
 * X(name, accumulator, begin, step, join, final): expressions of the accumulators s and o, the element x and the count
 * n. x has type T, and is converted to the accumulator's type A where it is a number. Accumulators: WIDE is double or
 * i64, REAL double, SAME the element's type, FLAG any that holds 0 and 1. */
#define FOLDS_WIDE(X)                                                                              \
    X(sum, WIDE, 0, mr_add(s, (A)x), mr_add(s, o), s)                                              \
    X(prod, WIDE, 1, mr_mul(s, (A)x), mr_mul(s, o), s)
#define FOLDS_MEAN(X) X(mean, REAL, 0, s + (A)x, s + o, s / (double)n)
#define FOLDS_NORM(X) X(norm, REAL, 0, s + (A)x * (A)x, s + o, mr_sqrt(s))
#define FOLDS_SAME(X)                                                                              \
    X(max, SAME, LEAST, mr_maximum(x, s), mr_maximum(s, o), s)                                     \
    X(min, SAME, GREATEST, mr_minimum(x, s), mr_minimum(s, o), s)
#define FOLDS_FLAG(X)                                                                              \
    X(any, FLAG, 0, s | (x != 0), s | o, s)                                                        \
    X(all, FLAG, 1, s &(x != 0), s &o, s)
#define FOLDS(X) FOLDS_WIDE(X) FOLDS_MEAN(X) FOLDS_NORM(X) FOLDS_SAME(X) FOLDS_FLAG(X)

#define A_WIDE(T, W) W
#define A_REAL(T, W) double
#define A_SAME(T, W) T
#define A_FLAG(T, W) uint8_t

#define BEGIN_0(tag)        0
#define BEGIN_1(tag)        1
#define BEGIN_LEAST(tag)    LEAST_##tag
#define BEGIN_GREATEST(tag) GREATEST_##tag

#endif
