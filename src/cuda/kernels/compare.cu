/* The kernels of the rows that compare two inputs. */
#include "cuda/kernels/elementwise.cuh"
#include "ops/table_compare.h"

#define X(name, dtypes, result, flops, expression) LOOPS_##dtypes(PLAIN, name, result, 2, expression)
MR_COMPARE_TABLE(X)
