/* The kernels of the rows with two inputs. */
#include "cuda/kernels/elementwise.cuh"

#define X(name, dtypes, result, flops, expression, help) LOOPS_##dtypes(PLAIN, name, result, 2, expression)
MR_BINARY_TABLE(X)
MR_POWER_TABLE(X)
#undef X

#define X(name, dtypes, result, flops, expression, parameter, otherwise, help)                     \
    LOOPS_##dtypes(PLAIN, name, result, 2, expression)
MR_ACTIVATION_TABLE(X)
