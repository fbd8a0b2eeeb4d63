/* Inside src/ops only: from rows of the table to loops. Each family's file defines its LOOP macro
 *
 *     LOOP(name, tag, T, R, store, expression)
 *
 * which makes one function `name_tag` of type mr_kernel, and MR_KERNELS makes the loops of all dtypes
 * of a row and their array. `store(v)` turns the expression's value into R. */
#ifndef MR_OPS_BODY_LOOPS_H
#define MR_OPS_BODY_LOOPS_H

#include "ops/body.h"
#include "ops/expr.h"

#define MR_STORE_PLAIN(R, v) ((R)(v))
#define MR_STORE_BOOL(R, v)  ((R)((v) != 0))
#define MR_STORE_BIT(R, v)   ((R)((v)&1)) /* ~1 is another number than 0, but the bool false */

/* Type of the result, and how it is stored. */
#define MR_R_SAME(T)  T
#define MR_R_FLOAT(T) T
#define MR_R_BOOL(T)  uint8_t

#define MR_LOOPS_FLOATS(LOOP, name, result, ...)                                                   \
    LOOP(name, f32, float, MR_R_##result(float), MR_STORE_PLAIN, __VA_ARGS__)                      \
    LOOP(name, f64, double, MR_R_##result(double), MR_STORE_PLAIN, __VA_ARGS__)
#define MR_LOOPS_NUMBERS(LOOP, name, result, ...)                                                  \
    MR_LOOPS_FLOATS(LOOP, name, result, __VA_ARGS__)                                               \
    LOOP(name, u8, uint8_t, MR_R_##result(uint8_t), MR_STORE_PLAIN, __VA_ARGS__)                   \
    LOOP(name, i32, int32_t, MR_R_##result(int32_t), MR_STORE_PLAIN, __VA_ARGS__)                  \
    LOOP(name, i64, int64_t, MR_R_##result(int64_t), MR_STORE_PLAIN, __VA_ARGS__)
#define MR_LOOPS_ALL(LOOP, name, result, ...)                                                      \
    MR_LOOPS_NUMBERS(LOOP, name, result, __VA_ARGS__)                                              \
    LOOP(name, b8, uint8_t, MR_R_##result(uint8_t), MR_STORE_BOOL, __VA_ARGS__)

#define MR_LOOPS_INTEGERS(LOOP, name, result, ...)                                                 \
    LOOP(name, u8, uint8_t, MR_R_##result(uint8_t), MR_STORE_PLAIN, __VA_ARGS__)                   \
    LOOP(name, i32, int32_t, MR_R_##result(int32_t), MR_STORE_PLAIN, __VA_ARGS__)                  \
    LOOP(name, i64, int64_t, MR_R_##result(int64_t), MR_STORE_PLAIN, __VA_ARGS__)
#define MR_LOOPS_WHOLE(LOOP, name, result, ...)                                                    \
    MR_LOOPS_INTEGERS(LOOP, name, result, __VA_ARGS__)                                             \
    LOOP(name, b8, uint8_t, MR_R_##result(uint8_t), MR_STORE_BIT, __VA_ARGS__)

#define MR_ENTRIES_FLOATS(name) [MR_F32] = name##_f32, [MR_F64] = name##_f64
#define MR_ENTRIES_NUMBERS(name)                                                                   \
    MR_ENTRIES_FLOATS(name), [MR_U8] = name##_u8, [MR_I32] = name##_i32, [MR_I64] = name##_i64
#define MR_ENTRIES_INTEGERS(name) [MR_U8] = name##_u8, [MR_I32] = name##_i32, [MR_I64] = name##_i64
#define MR_ENTRIES_WHOLE(name)    MR_ENTRIES_INTEGERS(name), [MR_BOOL] = name##_b8
#define MR_ENTRIES_ALL(name)      MR_ENTRIES_NUMBERS(name), [MR_BOOL] = name##_b8

/* Declares the loops of a row: the file of its family defines them for table.c. */
#define MR_DECLARE_LOOPS(name, ...) extern const mr_elementwise mr_loops_##name;

#endif
