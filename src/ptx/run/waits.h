/* Where the warps of a function wait for memory. */
#ifndef MR_PTX_RUN_WAITS_H
#define MR_PTX_RUN_WAITS_H

#include "ptx/read/tree.h"

typedef enum { PTX_NO_WAIT, PTX_WAIT_MEMORY, PTX_WAIT_SHARED } ptx_wait;

/* Loads whose addresses do not depend on each other are under way together, and a warp waits for them once. So of each
 * such group the first load is marked: out[i] is a ptx_wait, for each instruction. False: memory is out. */
bool ptx_find_waits(const ptx_function *f, uint8_t *out);

#endif
