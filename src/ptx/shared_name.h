/* The variable that a byte of a block's shared memory belongs to, for messages. */
#ifndef MR_PTX_SHARED_NAME_H
#define MR_PTX_SHARED_NAME_H

#include "ptx/ptx.h"

/* The name in the source: C++ writes `s` of a function as "_ZZ1fPfE1s", with its length in front, at the end. */
const char *ptx_plain_name(const char *symbol);

/* The variable that holds the byte at `offset`; an extern one, whose size the launch gives, holds all that follows.
 * NULL: there is none. */
const ptx_variable *ptx_shared_variable_at(const mr_ptx_kernel *kernel, uint64_t offset,
                                           uint64_t *out_byte);

#endif
