/* Rows of the reductions, and of softmax: see table.h. */
#ifndef MR_OPS_TABLE_REDUCE_H
#define MR_OPS_TABLE_REDUCE_H

// clang-format off
/* X(name, dtypes taken, result, flops, rules, positions, of two, options). fold.c has the code that combines the
 * elements. positions: the row of the second result, which says where the first one was found. of two: the row that
 * runs when two tensors are given. NONE: there is none. */
#define MR_REDUCE_TABLE(X) \
    X(sum,         ALL,     SUM,   1, 0,               NONE, NONE, "out=") \
    X(mean,        ALL,     FLOAT, 1, 0,               NONE, NONE, "out=") \
    X(prod,        ALL,     SUM,   1, 0,               NONE, NONE, "out=") \
    X(max,         ALL,     SAME,  1, MR_RULE_NEEDS_ELEMENT, argmax, maximum, "out=") \
    X(min,         ALL,     SAME,  1, MR_RULE_NEEDS_ELEMENT, argmin, minimum, "out=") \
    X(any,         ALL,     BOOL,  1, 0,               NONE, NONE, "out=") \
    X(all,         ALL,     BOOL,  1, 0,               NONE, NONE, "out=") \
    X(argmax,      ALL,     INDEX, 1, MR_RULE_NEEDS_ELEMENT | MR_RULE_ONE_DIM, NONE, NONE, "out=") \
    X(argmin,      ALL,     INDEX, 1, MR_RULE_NEEDS_ELEMENT | MR_RULE_ONE_DIM, NONE, NONE, "out=") \
    X(norm,        ALL,     FLOAT, 2, 0,               NONE, NONE, "p=2, out=") \
    X(var,         ALL,     FLOAT, 4, MR_RULE_CORRECTION,               NONE, NONE, "correction=1, out=") \
    X(std,         ALL,     FLOAT, 4, MR_RULE_CORRECTION,               NONE, NONE, "correction=1, out=")

/* X(name, flops, kept, norm, result), along one dim, in f32 or f64. For an element x, d is x -
 * max and e is exp(d); one of these is kept as k. s is the sum of all e, in double, and n the
 * norm. The result is made of k and n. Subtracting the greatest element changes nothing and lets
 * nothing overflow. */
#define MR_SOFTMAX_TABLE(X) \
    X(softmax,     12, e, 1 / s,     k * n) \
    X(log_softmax, 12, d, mr_log(s), k - n)
// clang-format on

#endif
