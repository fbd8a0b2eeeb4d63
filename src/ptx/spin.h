/* Warps that only wait: what a warp does in a short slice tells whether it can go on without somebody else. */
#ifndef MR_PTX_SPIN_H
#define MR_PTX_SPIN_H

#include "ptx/warp.h"

/* Runs codes until the budget of the slice is used up, and looks at each: run->changes counts those that change what others
 * may see, or whose result another time may be different (clocks), run->polls those that ask for what others do. Returns
 * where the warp stands if its slice is over, else NULL. */
const ptx_code *ptx_run_probe(ptx_warp *warp, const ptx_code *code);

/* Of all that the block's threads go on with: where they are, their registers and local memory. If neither this nor memory
 * has changed since an earlier time, it will not change any more. */
uint64_t ptx_block_state(const ptx_run_state *run);

#endif
