/* The memory that a launch sees on the CPU: addresses of the command's storages, and the storage at an address. */
#ifndef MR_OPS_KERNEL_MEMORY_H
#define MR_OPS_KERNEL_MEMORY_H

#include "ops/kernel.h"

/* Callbacks for src/ptx, whose context is the command. */
mr_ptx_memory mr_kernel_memory_of(const mr_command *command);

/* The storage of an operand in which the address lies; NULL: none. */
static inline mr_storage *mr_kernel_storage_at(const mr_command *command, uint64_t address) {
    for (uint32_t i = 0; i < command->operand_count; i++) {
        mr_storage *s = command->operands[i].tensor->storage;
        if (address - s->address < s->bytes) return s;
    }
    return NULL;
}

/* How texts of src/ptx name it: by its own name, or as a tensor of that size and line. */
void mr_kernel_describe_storage(const mr_storage *storage, char *out, size_t size);

/* Where the module's variables lie: `out` has one entry for each variable of the tree. */
void mr_kernel_fill_variables(const mr_command *command, uint64_t *out);

#endif
