/* Warps that only wait: a short slice shows whether a warp can continue without the others. */
#ifndef MR_PTX_RUN_SPIN_H
#define MR_PTX_RUN_SPIN_H

#include "ptx/run/warp.h"

/* Runs codes until the budget of the slice is used up, and looks at each. run->changes counts the codes that change
 * memory of others, or may give another result later (clocks). run->polls counts those that read memory of others.
 * Returns where the warp stands if its slice is over, else NULL. */
const ptx_code *ptx_run_probe(ptx_warp *warp, const ptx_code *code);

/* Before a code of a block that is counted: whether it counts. The number of a warp's reads in a spin loop is not work
 * of the kernel, and here it depends on the interpreter's turns. So a repeated read of a warp in the same state, with
 * no change since, does not count until the warp leaves the loop. So a wait costs as much as if all arrived at once: an
 * arrival and two or three reads. */
bool ptx_counts_here(ptx_warp *warp, const ptx_code *code, uint32_t mask);

/* A hash of all that the block's threads go on with: where they are, their registers and local memory. If neither this
 * nor memory has changed since an earlier time, it will not change any more. */
uint64_t ptx_block_state(const ptx_run_state *run);

#endif
