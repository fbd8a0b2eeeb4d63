/* The operands of a launch of a user's kernel: its accesses by src/ptx, as views of the tensors passed to it. */
#ifndef MR_OPS_CALL_KERNEL_OPERANDS_H
#define MR_OPS_CALL_KERNEL_OPERANDS_H

#include "ops/kernel.h"

#define MR_KERNEL_FEW_OPERANDS 8

typedef struct {
    const mr_caller *caller;
    const mr_device *device;
    mr_kernel_call call; /* with the pointers that were found in its numbers */
    mr_kernel_escapes escapes;
    mr_operand *items; /* their tensors are views of their own; `few`, or owned */
    uint32_t count, capacity;
    mr_operand few[MR_KERNEL_FEW_OPERANDS];
    mr_kernel_pointer *pointers; /* those of `call`, if some were found; owned */
} mr_kernel_operands;

void mr_kernel_operands_open(mr_kernel_operands *list);
/* After a failure the list can only be closed. */
mr_status mr_kernel_operands_find(mr_kernel_operands *list, const mr_caller *caller,
                                  const mr_kernel_call *call, const mr_device *device,
                                  mr_tensor **variables, uint32_t variable_count);
/* The operand whose storage holds `t`, or a new one of no bytes. */
mr_status mr_kernel_operand_of(mr_kernel_operands *list, mr_tensor *t, uint32_t *out_operand);
void mr_kernel_operands_close(mr_kernel_operands *list);

#endif
