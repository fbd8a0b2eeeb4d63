/* Rows of the ternary operations: see table.h. */
#ifndef MR_OPS_TABLE_TERNARY_H
#define MR_OPS_TABLE_TERNARY_H

// clang-format off
/* These rows also have the names of the inputs after the first, for the usage line. The last two fields are the rows
 * that run when only the second or only the third input is given (NONE: both must be). */
#define MR_TERNARY_TABLE(X) \
    X(clamp,       NUMBERS, SAME,  2, mr_minimum(mr_maximum(a, b), c), "least, greatest", maximum, minimum) \
    X(lerp,        FLOATS,  FLOAT, 4, c < (T)0.5 ? a + c * (b - a) : b - (b - a) * (1 - c), "y, w", NONE, NONE)

/* Ternary with a bool `a`. */
#define MR_SELECT_TABLE(X) \
    X(where,       ALL,     SAME,  1, a ? b : c,              "y, z")

/* Like select; the third input is the tensor that is written in place. */
#define MR_MASKED_TABLE(X) \
    X(masked_fill, ALL,     SAME,  1, a ? b : c,              "x:masked_fill(mask, value [, {out=}]) -> tensor")
// clang-format on

#endif
