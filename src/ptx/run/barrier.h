/* Barriers of a block: sixteen, each of all threads or of a number of them. */
#ifndef MR_PTX_RUN_BARRIER_H
#define MR_PTX_RUN_BARRIER_H

#include "ptx/run/warp.h"

/* Lanes have exited: opens barriers for which only they were missing. */
void ptx_barriers_settle(ptx_run_state *run);
/* All warps wait: sets run->failure to what they wait for. */
void ptx_fault_deadlock(ptx_run_state *run);

#endif
