/* A kernel's reads and writes: the answers of the folder access, which knows only a kernel's function. */
#include "ptx/access/access.h"
#include "ptx/ptx.h"

static const ptx_access_facts *facts_of(const mr_ptx_kernel *kernel) {
    return ptx_access_facts_of(kernel->access);
}

const mr_ptx_param_access *mr_ptx_kernel_access(const mr_ptx_kernel *kernel) {
    return facts_of(kernel)->params;
}

bool mr_ptx_kernel_follows_memory(const mr_ptx_kernel *kernel) {
    return facts_of(kernel)->follows_memory;
}

bool mr_ptx_kernel_uses_address(const mr_ptx_kernel *kernel, uint32_t at) {
    return ptx_access_uses_address(kernel->access, at);
}

bool mr_ptx_kernel_uses_addresses_of_variables(const mr_ptx_kernel *kernel) {
    return facts_of(kernel)->uses_variables;
}

bool mr_ptx_kernel_depends_on_order(const mr_ptx_kernel *kernel) {
    return facts_of(kernel)->order.matters;
}

bool mr_ptx_kernel_may_depend_on_order(const mr_ptx_kernel *kernel) {
    return facts_of(kernel)->order.may_matter;
}

uint8_t mr_ptx_kernel_updates(const mr_ptx_kernel *kernel) {
    return facts_of(kernel)->order.updates;
}

bool mr_ptx_kernel_uses(const mr_ptx_kernel *kernel, uint8_t *out_access) {
    return ptx_access_of_variables(kernel->access, kernel->tree, kernel->function, out_access);
}

bool mr_ptx_kernel_has_block_atomics(const mr_ptx_kernel *kernel) {
    return facts_of(kernel)->has_block_atomics;
}

uint32_t mr_ptx_launch_extents(const mr_ptx_kernel *kernel, const mr_ptx_plan *plan,
                               mr_ptx_extent *out, uint32_t most) {
    return ptx_access_extents(kernel->access, plan, out, most);
}
