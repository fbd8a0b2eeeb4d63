/* The loops of the comparisons, made from the table. */
#include "ops/body/binary_loops.h"
#include "ops/table_compare.h"

MR_COMPARE_TABLE(MR_DECLARE_LOOPS)

#define X(name, dtypes, result, flops, expression)                                                 \
    MR_LOOPS_##dtypes(LOOP, name, result, expression) const mr_elementwise mr_loops_##name = {     \
        .kernel = {MR_ENTRIES_##dtypes(name)}, .bool_result = true};
MR_COMPARE_TABLE(X)
