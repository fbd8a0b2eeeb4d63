/* The allocations that a run has used, and which of them an access may hit (ranges.c). */
#ifndef MR_PTX_RUN_RANGES_H
#define MR_PTX_RUN_RANGES_H

#include "ptx/run/memory.h"

/* The allocation in which `address` lies; NULL: none, or memory is out (then run->failure is set). */
ptx_known_range *ptx_range_at(ptx_warp *warp, uint64_t address);

/* Whether the access may use that allocation: a source of its address points there, or the sources are unknown. Always
 * true without launch->check_sources. Calls launch->strayed. */
bool ptx_range_may_be_used(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                           const ptx_known_range *known);

/* The source of the address that points to the nearest allocation; 0: its sources are not known. */
uint64_t ptx_meant_address(ptx_warp *warp, const ptx_code *code, uint64_t address);

static inline bool ptx_range_holds(const ptx_known_range *known, uint64_t address, uint64_t bytes) {
    return address >= known->range.first && address <= known->range.end &&
           bytes <= known->range.end - address;
}

#endif
