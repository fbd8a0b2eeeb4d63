/* Element types: the one list of them, and the rules of promotion (PyTorch's). */
#ifndef MR_TENSOR_DTYPE_H
#define MR_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/action.h"

/* name, C type, the word that scripts use, category (0 bool, 1 integer, 2 floating) */
#define MR_DTYPE_LIST(X)                                                                           \
    X(BOOL, uint8_t, "bool", 0)                                                                    \
    X(U8, uint8_t, "u8", 1)                                                                        \
    X(I32, int32_t, "i32", 1)                                                                      \
    X(I64, int64_t, "i64", 1)                                                                      \
    X(F32, float, "f32", 2)                                                                        \
    X(F64, double, "f64", 2)

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

/* The type of an operation on both: the higher category wins; inside one, the wider type (u8 with
 * i32 is i32, i64 with f32 is f32). */
mr_dtype mr_dtype_promote(mr_dtype a, mr_dtype b);
/* A plain number beside a tensor changes the type only when its category is higher: i32 + 1.5 is
 * f32, u8 + 300 stays u8 (and wraps), f32 + 1 stays f32. */
mr_dtype mr_dtype_promote_scalar(mr_dtype tensor, mr_scalar scalar);

/* One element, converted as C converts; float to integer truncates and saturates, NaN gives 0;
 * to bool: != 0. */
void mr_dtype_store(mr_dtype dtype, void *address, mr_scalar value);
mr_scalar mr_dtype_load(mr_dtype dtype, const void *address);

#endif
