/* A run: the memory and the state in which one block after the other runs. grid.c says which block has its turn.
 *
 * `src/ptx/decode/load.c` loads a module once: the files of `src/ptx/decode` make *codes* of the instructions, and
 * unsupported instructions are an error there, with the line. A code names its handler and says where its operands are.
 * A register, a constant, a special register and the address of a variable are all vectors of 32 lanes in one of four
 * areas (`code.h`). So a handler reads them in the same way. Registers whose lives do not overlap share a slot of the
 * frame (`slots.c`), so a frame stays in the cache. `lanes.h` has one row for each operation that every lane does for
 * itself. It is compiled twice, for every x86 and for AVX2 with fused multiply-add, and both give the same bits
 * (`tests/c/test_ptx_instructions.c`).
 *
 * `run.c` gives each warp of a block its turn. A warp runs until it waits at a barrier, is done, or has executed 8192
 * instructions; so a warp that spins on a lock lets the others work. The lanes of a warp that go apart at a branch
 * become *paths*, and a *join* at the immediate post-dominator waits for them (`warp.h`, `paths.c`). Lanes that wait
 * at a join for one that spins go on without it after a while, as on devices since Volta. A call is a join, too.
 * Instructions with `.sync` wait for the lanes that they name on whatever path these are.
 *
 * `grid.c` says which block runs: one after the other, as long as none waits for another. After a warp has used up its
 * slice comes a short one, in which `spin.c` looks at each code. A warp that reads memory with volatile or atomic reads
 * and changes nothing only waits. If all warps of a block do, the next block begins in a run of its own. If nothing can
 * begin, and all registers are as they were in an earlier round (Brent's search for a cycle), the launch fails. Which
 * blocks have begun is in the launch's state (`mr_ptx_progress`), so that later slices of virtual time and other
 * threads leave them out.
 *
 * `memory.c` finds the shape of the addresses of an access, and the files of the spaces (`global.c`, `shared.c`,
 * `local.c`) find the bytes and check them. Global memory belongs to the caller; an access keeps the range that it
 * found last. Only when it leaves that range does `ranges.c` look for another one and compare it with the pointers that
 * the address was computed from (`ptx/access/sources.c`). The usual loads and stores need one pass over the 32
 * addresses (`lanes_body.h`); all others go through `load.c` and `memory.c`, which also tell the watch (races) and the
 * counts (`profile.h`).
 *
 * Results do not depend on a clock, an address or a thread: clocks count instructions, and unwritten shared memory
 * reads as all ones. Only the order in which blocks on several threads carry out atomic operations is open, as on a
 * device. */
#ifndef MR_PTX_RUN_RUN_H
#define MR_PTX_RUN_RUN_H

#include "ptx/run/warp.h"

typedef enum {
    PTX_TURN_DONE, /* all threads have exited */
    /* all warps that can run only poll for changes by others; the block may get another turn */
    PTX_TURN_WAITS,
    PTX_TURN_FAILED, /* run->failure says why */
} ptx_turn_end;

/* `run` is zeroed. False: memory is out. Either way ptx_run_finish ends it. */
bool ptx_run_begin(ptx_run_state *run, const mr_ptx_launch *launch);
void ptx_run_finish(ptx_run_state *run); /* leaves run->failure to the caller */

bool ptx_block_begin(ptx_run_state *run, uint64_t linear); /* false: it failed */
/* Gives each warp its turn, until the block is done or waits. */
ptx_turn_end ptx_block_turn(ptx_run_state *run);

#endif
