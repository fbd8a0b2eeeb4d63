/* Whether the values of two tensors agree: for mr.equal and mr.allclose. */
#ifndef MR_OPS_AGREE_H
#define MR_OPS_AGREE_H

#include "tensor/tensor.h"

typedef struct {
    bool exact; /* equal values only; the rest does not count */
    double relative, absolute;
    bool equal_nan;
} mr_tolerance;

/* Compares elements [first, end) of two tensors of the same shape in host memory, with any dtypes
 * and strides. Their order is the same for all calls with these tensors. */
bool mr_tensors_agree(const mr_tolerance *tolerance, const mr_tensor *a, const mr_tensor *b,
                      int64_t first, int64_t end);

#endif
