/* The kernels of the rows with two inputs. */
#include "cuda/kernels/elementwise.cuh"
#include "ops/table_binary.h"

#define X(name, dtypes, result, flops, expression) LOOPS_##dtypes(PLAIN, name, result, 2, expression)
MR_BINARY_TABLE(X)
MR_POWER_TABLE(X)
#undef X

/* Entries for the CPU's vectors alone are not used here. */
#define X(name, dtypes, result, flops, expression, near) LOOPS_##dtypes(PLAIN, name, result, 2, expression)
MR_DIVISION_TABLE(X)
#undef X

#define X(name, dtypes, result, flops, expression, parameter, otherwise)                           \
    LOOPS_##dtypes(PLAIN, name, result, 2, expression)
MR_ACTIVATION_TABLE(X)
