/* The bytes that a launch on the virtual GPU really accessed, in the storages that it is only assumed to access. */
#ifndef MR_OPS_KERNEL_TOUCHED_H
#define MR_OPS_KERNEL_TOUCHED_H

#include "ops/kernel.h"
#include "ptx/watch/watch.h"

typedef struct mr_touched_marks mr_touched_marks;

/* Call this before the first block. `watch` collects the bytes, and must be destroyed before the marks. NULL: no
 * observer asks, no operand is assumed, or memory is out. */
mr_touched_marks *mr_touched_marks_create(const mr_command *command, mr_ptx_watch *watch);
void mr_touched_marks_destroy(mr_touched_marks *marks); /* accepts NULL */
/* Call this after the last block: it tells the observers. A launch that failed (`is_done` false) might have touched
 * more, so its bytes are unknown. Accepts NULL. */
void mr_touched_marks_tell(const mr_touched_marks *marks, const mr_command *command, bool is_done);

#endif
