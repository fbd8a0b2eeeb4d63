/* Element types: the one list of them, and the rules of promotion, which are PyTorch's. */
#ifndef MR_TENSOR_DTYPE_H
#define MR_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/command.h"

/* name, C type, name in scripts, category (0 bool, 1 integer, 2 floating). f16 and bf16 (base/half.h) are storage
 * formats only: computation is in f32. New types are appended, as kernels know the numbers. */
#define MR_DTYPE_LIST(X)                                                                           \
    X(BOOL, uint8_t, "bool", 0)                                                                    \
    X(U8, uint8_t, "u8", 1)                                                                        \
    X(I32, int32_t, "i32", 1)                                                                      \
    X(I64, int64_t, "i64", 1)                                                                      \
    X(F32, float, "f32", 2)                                                                        \
    X(F64, double, "f64", 2)                                                                       \
    X(F16, uint16_t, "f16", 2)                                                                     \
    X(BF16, uint16_t, "bf16", 2)

typedef enum {
#define X(name, type, text, category) MR_##name,
    MR_DTYPE_LIST(X)
#undef X
        MR_DTYPE_COUNT
} mr_dtype;

size_t mr_dtype_size(mr_dtype dtype);      /* bytes */
const char *mr_dtype_text(mr_dtype dtype); /* "f32" */
int mr_dtype_category(mr_dtype dtype);
bool mr_dtype_find(const char *text,
                   mr_dtype *out_dtype); /* also PyTorch's words: "float32", "int64" */

/* Whether the integer is a value of the type. Floats count as holding all, rounded. */
bool mr_dtype_holds(mr_dtype dtype, int64_t i);

static inline bool mr_dtype_is_half(mr_dtype dtype) {
    return dtype == MR_F16 || dtype == MR_BF16;
}
/* The dtype in which values of this one are computed: f32 for f16 and bf16, else itself. */
static inline mr_dtype mr_dtype_computed(mr_dtype dtype) {
    return mr_dtype_is_half(dtype) ? MR_F32 : dtype;
}
/* The largest finite number of a floating type. */
double mr_dtype_greatest(mr_dtype dtype);

/* torch.promote_types: the higher category wins; inside one, the wider type (u8 with i32 is i32, i64 with
 * f32 is f32). f16 does not hold all values of bf16, and bf16 not all of f16: together they are f32. */
mr_dtype mr_dtype_promote(mr_dtype a, mr_dtype b);
/* The dtype that a plain number counts as: bool, i64, or f32 (PyTorch's default dtype). */
mr_dtype mr_dtype_of_number(mr_scalar number);

/* torch.result_type: the dtype in which an operation on several inputs is computed. There are three ranks:
 * tensors with dimensions, tensors without, plain numbers. Inside a rank mr_dtype_promote decides. A lower
 * rank changes the dtype only if its category is higher than that of all ranks above it:
 *     f32[2] + f64[] -> f32    u8[1] + i32[] -> u8    i32[2] + f64[] -> f64    f32[] + f64[] -> f64
 *     u8[2] + 300 -> u8, which wraps    i32[] + 1.5 -> f32    bool[2] + true -> bool    bool[2] + 1 -> i64
 * Start with {0}; at least one input must be added before the result is asked for. */
typedef enum { MR_RANK_DIMS, MR_RANK_NO_DIMS, MR_RANK_NUMBER, MR_RANK_COUNT } mr_rank;
typedef struct {
    uint8_t dtype[MR_RANK_COUNT]; /* plus 1; 0: the rank has no input so far */
} mr_promotion;
void mr_promotion_add(mr_promotion *promotion, mr_rank rank, mr_dtype dtype);
mr_dtype mr_promotion_result(const mr_promotion *promotion);

/* Stores one element, converted as C converts. A float is truncated; it saturates in i32 and i64 and wraps in u8, as
 * integers do. NaN gives 0. A bool is != 0. Every number is rounded once to f16 and bf16. */
void mr_dtype_store(mr_dtype dtype, void *address, mr_scalar value);
mr_scalar mr_dtype_load(mr_dtype dtype, const void *address);

#endif
