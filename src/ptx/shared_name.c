/* Names of shared memory: see shared_name.h. */
#include "ptx/shared_name.h"

#include <stdio.h>
#include <string.h>

#include "ptx/module.h"

const char *ptx_plain_name(const char *symbol) {
    size_t length = strlen(symbol), digits;
    if (strncmp(symbol, "_ZZ", 3) != 0) return symbol;
    for (size_t known = 1; known + 2 < length; known++) {
        char number[24];
        digits = (size_t)snprintf(number, sizeof number, "%zu", known);
        const char *at = symbol + length - known - digits;
        if (digits + known < length && strncmp(at, number, digits) == 0 && at[-1] == 'E')
            return at + digits;
    }
    return symbol;
}

const ptx_variable *ptx_shared_variable_at(const mr_ptx_kernel *kernel, uint64_t offset,
                                           uint64_t *out_byte) {
    const mr_ptx_module *module = kernel->module;
    const ptx_tree *tree = &module->tree;
    const ptx_shared_layout *layout = &module->layouts[kernel - module->kernels];
    for (int64_t f = -1; f < (int64_t)tree->function_count; f++) {
        const ptx_variable *variables = f < 0 ? tree->variables : tree->functions[f].variables;
        uint32_t count = f < 0 ? tree->variable_count : tree->functions[f].variable_count;
        const uint64_t *at = f < 0 ? layout->shared_of_module : layout->shared_of_function[f];
        for (uint32_t i = 0; at && i < count; i++) {
            const ptx_variable *v = &variables[i];
            if (v->space != PTX_SHARED || at[i] == UINT64_MAX || offset < at[i]) continue;
            if (v->bytes && offset >= at[i] + v->bytes) continue;
            *out_byte = offset - at[i];
            return v;
        }
    }
    return NULL;
}

const char *mr_ptx_shared_name(const mr_ptx_kernel *kernel, uint64_t offset) {
    uint64_t byte;
    const ptx_variable *v = kernel->module ? ptx_shared_variable_at(kernel, offset, &byte) : NULL;
    return v ? ptx_plain_name(v->name) : NULL;
}
