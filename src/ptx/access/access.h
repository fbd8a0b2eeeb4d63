/* The accesses of a kernel, derived from the tree alone when a module is loaded (access.c), and with the numbers of a
 * launch (launch.c). */
#ifndef MR_PTX_ACCESS_ACCESS_H
#define MR_PTX_ACCESS_ACCESS_H

#include "ptx/ptx.h"

typedef struct ptx_access ptx_access;

/* module.c calls this for each kernel when a module is loaded, and keeps the result in mr_ptx_kernel.access. NULL:
 * memory is out. */
ptx_access *ptx_access_infer(const ptx_tree *tree, const ptx_function *kernel);
void ptx_access_free(ptx_access *access); /* accepts NULL */

/* A pointer in the parameters, or 8 bytes that could be one; or the addresses of the module's variables. */
typedef struct {
    uint32_t param, offset; /* in the parameter */
} ptx_pointer_place;
#define PTX_SOURCE_VARIABLES UINT32_MAX /* `param` then */
/* All that the accesses of `instruction` compute their addresses from, wherever its function was called. 0: it is not
 * known, or there is more than that. */
uint32_t ptx_access_sources(const ptx_access *access, const ptx_instruction *instruction,
                            const ptx_pointer_place **out_list);

/* By parameter of the kernel. */
const mr_ptx_param_access *ptx_access_params(const ptx_access *access);
/* As mr_ptx_launch_extents. Any thread. */
uint32_t ptx_access_extents(const ptx_access *access, const mr_ptx_plan *plan, mr_ptx_extent *out,
                            uint32_t most);

#endif
