/* The memory of a module's variables on each device, as tensors that the module owns. mr_kernel_variable is in
 * kernel.h. */
#ifndef MR_OPS_CALL_KERNEL_VARIABLES_H
#define MR_OPS_CALL_KERNEL_VARIABLES_H

#include "ops/kernel.h"

/* One for each variable of the tree; NULL: no kernel uses it. The first call for a device makes them and copies their
 * initial values. */
mr_status mr_kernel_find_variables(const mr_caller *caller, mr_kernel_module *module,
                                   mr_device *device, mr_tensor ***out_list);
void mr_kernel_drop_variables(mr_kernel_module *module, int device);

#endif
