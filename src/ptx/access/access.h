/* The accesses of a kernel, derived from the tree alone when a module is loaded (access.c), and with the numbers of a
 * launch (launch.c). */
#ifndef MR_PTX_ACCESS_ACCESS_H
#define MR_PTX_ACCESS_ACCESS_H

#include "ptx/access/extents.h"

typedef struct ptx_access ptx_access;

/* For each kernel when a module is loaded. NULL: memory is out. */
ptx_access *ptx_access_infer(const ptx_tree *tree, const ptx_function *kernel);
void ptx_access_free(ptx_access *access); /* accepts NULL */

/* Can the order of its threads decide the outcome of a launch? (outcome.c) */
typedef struct {
    /* The order in which its threads run, or the time, may decide values. Atomic operations do, except those of one
     * kind on integers whose results are not used; clocks, numbers of multiprocessors and activemask do. The barrier of
     * the grid does not. */
    bool matters;
    /* Or it may do so where threads meet in volatile accesses, or in others that are not atomic operations and do not
     * race. Whether they meet, only the watch of a launch knows (watch/watch.h). */
    bool may_matter;
    /* The kind of all its atomic operations: two of a kind may change places. 0: it has none, or `matters`. */
    uint8_t updates;
} access_order;

/* The facts that hold for each launch. */
typedef struct {
    mr_ptx_param_access *params; /* by parameter of the kernel */
    bool follows_memory, has_block_atomics;
    access_order order;
    bool uses_variables; /* their addresses, as numbers */
} ptx_access_facts;
const ptx_access_facts *ptx_access_facts_of(const ptx_access *access);
/* Whether the address at offset `at` in the block of parameters itself influences results, not only the memory
 * there. */
bool ptx_access_uses_address(const ptx_access *access, uint32_t at);

/* A pointer in the parameters, or 8 bytes that could be one; or the addresses of the module's variables. */
typedef struct {
    uint32_t param, offset; /* in the parameter */
} ptx_pointer_place;
#define PTX_SOURCE_VARIABLES UINT32_MAX /* `param` then */
/* All that the accesses of `instruction` compute their addresses from, wherever its function was called. 0: it is not
 * known, or there is more than that. */
uint32_t ptx_access_sources(const ptx_access *access, const ptx_instruction *instruction,
                            const ptx_pointer_place **out_list);

/* How the kernel uses each variable of the tree (uses.c): `out_access` has one entry for each; 0: it does not. False:
 * memory is out. */
bool ptx_access_of_variables(const ptx_access *access, const ptx_tree *tree,
                             const ptx_function *kernel, uint8_t *out_access);

/* As mr_ptx_launch_extents. Any thread. */
uint32_t ptx_access_extents(const ptx_access *access, const mr_ptx_plan *plan, mr_ptx_extent *out,
                            uint32_t most);

#endif
