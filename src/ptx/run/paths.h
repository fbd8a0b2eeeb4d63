/* The paths of a warp, its joins, and the frames of its calls: see warp.h. */
#ifndef MR_PTX_RUN_PATHS_H
#define MR_PTX_RUN_PATHS_H

#include "ptx/run/warp.h"

/* Each returns the code with which the warp goes on; NULL: it cannot, and warp->state says why. */

/* Some lanes of the path that runs go to `target`, the others to `other`; they meet again at `join`. */
const ptx_code *ptx_diverge(ptx_warp *warp, uint32_t to_target, const ptx_code *target,
                            const ptx_code *other, const ptx_code *join);
/* The path that runs is where its innermost join may be. */
const ptx_code *ptx_arrive(ptx_warp *warp, const ptx_code *code);
/* The path that runs calls: a frame for `routine`, whose lanes meet again at `back`. */
const ptx_code *ptx_enter(ptx_warp *warp, const ptx_code *code, const ptx_routine *routine,
                          const ptx_code *back);
/* Lanes of the path that runs return from the call of its frame. */
const ptx_code *ptx_leave(ptx_warp *warp, const ptx_code *next, uint32_t mask);
/* Lanes of the path that runs exit. */
const ptx_code *ptx_exit_lanes(ptx_warp *warp, const ptx_code *next, uint32_t mask);

/* The path that runs waits; `code` is where it waits. */
void ptx_park(ptx_warp *warp, const ptx_code *code, ptx_path_state state);
/* Goes on with a path that can run. */
const ptx_code *ptx_next_path(ptx_warp *warp);
/* The warp goes on later, with another of its paths if it has one. */
void ptx_pause(ptx_warp *warp, const ptx_code *code);

/* Lanes that the instruction of the path names, of those that live; `code->c` is its mask of members. */
uint32_t ptx_members(const ptx_warp *warp, const ptx_code *code, uint32_t mask);

/* Paths that are ready at the same place, in front of the same join, become one again. `ptx_unite_with_active`: those
 * at `code` become part of the path that runs and is about to go on there. */
void ptx_unite_paths(ptx_warp *warp);
void ptx_unite_with_active(ptx_warp *warp, const ptx_code *code);

ptx_frame *ptx_frame_take(ptx_run_state *run, const ptx_routine *routine); /* NULL: memory is out */
/* After a pause: lanes that wait at a join for too long, perhaps for something that they should do, go on. */
bool ptx_lose_patience(ptx_warp *warp);

#endif
