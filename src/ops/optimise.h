/* Steps of optimisers: one command for all parameters.
 *
 * An OPTIMISE command has these operands for each parameter: the parameter (read and written; gather_grads only writes
 * it), its gradient (read), and the states of the optimiser (read and written). The row says how many states there are.
 * All are dense, of one shape, and of the command's dtype. Its arguments are an mr_step. An item is one element of one
 * parameter, counted over all parameters. */
#ifndef MR_OPS_OPTIMISE_H
#define MR_OPS_OPTIMISE_H

#include "ops/op.h"
#include "ops/optimise_flags.h"

enum { MR_STEP_NUMBERS = 8, MR_STEP_STATES = 2 };

/* Numbers that all elements share. The numbers are those of table.h's rows, in their order. */
typedef struct {
    double number[MR_STEP_NUMBERS];
    uint32_t flags;
    uint32_t parameters;
} mr_step;

/* `tensors` has (2 + states of the row) entries for each parameter. The parameters and states are written on their
 * device's current stream, or at once on the host. All checks come first. */
mr_status mr_optimise(const mr_caller *caller, const mr_op *op, const mr_step *step,
                      mr_tensor *const *tensors);

/* How many states a row of this family has. */
int mr_step_states(const mr_op *op);

#endif
