/* The kernels of the rows with one input. */
#include "cuda/kernels/elementwise.cuh"
#include "ops/table_unary.h"

#define X(name, dtypes, result, flops, expression) LOOPS_##dtypes(PLAIN, name, result, 1, expression)
MR_UNARY_TABLE(X)
#undef X

/* Entries for the CPU's vectors alone are not used here. */
#define X(name, dtypes, result, flops, expression, near, condition)                                \
    LOOPS_##dtypes(PLAIN, name, result, 1, expression)
MR_RANGED_TABLE(X)
