/* New tensors that a row of the operation table fills. */
#ifndef MR_BIND_TENSOR_CREATION_H
#define MR_BIND_TENSOR_CREATION_H

#include "bind/tensor/placement.h"
#include "ops/ids.h"

/* Sizes from argument `first` on, and options after them; returns the number of dims. */
int mr_check_new(lua_State *L, const char *what, int first, mr_dtype dtype, mr_new_options *options,
                 int64_t *out_shape);
/* Pushes a new tensor, filled by a FILL or RANDOM row with these numbers. */
mr_tensor *mr_push_generated(lua_State *L, const mr_caller *caller, mr_op_id row,
                             const mr_new_options *options, int ndim, const int64_t *shape,
                             const mr_scalar numbers[2]);

#endif
