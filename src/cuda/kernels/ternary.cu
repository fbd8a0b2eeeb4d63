/* The kernels of the rows with three inputs. */
#include "cuda/kernels/elementwise.cuh"
#include "ops/table_ternary.h"

#define X(name, dtypes, result, flops, expression, ...)                                   \
    LOOPS_##dtypes(PLAIN, name, result, 3, expression)
MR_TERNARY_TABLE(X)
#undef X

#define X(name, dtypes, result, flops, expression, ...)                                   \
    LOOPS_##dtypes(SELECT, name, result, 3, expression)
MR_SELECT_TABLE(X)
MR_MASKED_TABLE(X)
