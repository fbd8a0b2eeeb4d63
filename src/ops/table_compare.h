/* Rows of the comparisons: see table.h. */
#ifndef MR_OPS_TABLE_COMPARE_H
#define MR_OPS_TABLE_COMPARE_H

// clang-format off
#define MR_COMPARE_TABLE(X) \
    X(eq,          ALL,     BOOL,  1, a == b) \
    X(ne,          ALL,     BOOL,  1, a != b) \
    X(lt,          ALL,     BOOL,  1, a < b) \
    X(le,          ALL,     BOOL,  1, a <= b) \
    X(gt,          ALL,     BOOL,  1, a > b) \
    X(ge,          ALL,     BOOL,  1, a >= b) \
    X(logical_and, ALL,     BOOL,  1, (a != 0) & (b != 0)) \
    X(logical_or,  ALL,     BOOL,  1, (a != 0) | (b != 0)) \
    X(logical_xor, ALL,     BOOL,  1, (a != 0) ^ (b != 0))
// clang-format on

#endif
