/* Counts of one run (profile.h). */
#ifndef MR_PTX_RUN_COUNTS_H
#define MR_PTX_RUN_COUNTS_H

#include "ptx/module.h"
#include "ptx/run/profile.h"
#include "ptx/run/warp.h"

/* Atomic operations on global memory are carried out by the L2 cache, whose parts share the lines of memory by a hash
 * of the address. A part makes one pass a clock over a sector, in which each address is changed once. */
#define PTX_CACHE_PARTS 64

struct ptx_counts {
    uint64_t atomic_passes[PTX_CACHE_PARTS];
    mr_ptx_counts *of_code; /* by index of a code in the module */
    uint32_t code_count;
    uint64_t blocks;
};

ptx_counts *ptx_counts_create(const mr_ptx_module *module); /* NULL: memory is out */
/* profile.c: adds the counts to the profile and frees them. */
void ptx_counts_merge(mr_ptx_profile *profile, ptx_counts *counts);
/* A warp comes to `code` with the lanes `active`, and executes it for those of `mask`. */
void ptx_counts_add(ptx_counts *counts, const ptx_routine *routine, const ptx_code *code,
                    uint32_t mask);
void ptx_counts_block(ptx_counts *counts);
void ptx_counts_access(ptx_counts *counts, const ptx_routine *routine, const ptx_code *code,
                       const ptx_memory_code *memory, ptx_space space, uint32_t mask,
                       const uint64_t address[PTX_LANES]);

#endif
