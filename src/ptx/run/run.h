/* A run: the memory and the state in which one block after the other runs. grid.c says which block has its turn. */
#ifndef MR_PTX_RUN_RUN_H
#define MR_PTX_RUN_RUN_H

#include "ptx/run/warp.h"

typedef enum {
    PTX_TURN_DONE,   /* all threads have exited */
    PTX_TURN_WAITS,  /* all that can run only ask for what others do; it may have another turn */
    PTX_TURN_FAILED, /* run->failure says why */
} ptx_turn_end;

/* `run` is zeroed. False: memory is out. Either way ptx_run_finish ends it. */
bool ptx_run_begin(ptx_run_state *run, const mr_ptx_launch *launch);
void ptx_run_finish(ptx_run_state *run); /* leaves run->failure to the caller */

bool ptx_block_begin(ptx_run_state *run, uint64_t linear); /* false: it failed */
/* Gives each warp its turn, until the block is done or waits. */
ptx_turn_end ptx_block_turn(ptx_run_state *run);

#endif
