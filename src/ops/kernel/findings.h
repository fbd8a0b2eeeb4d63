/* Findings inside a launch on the virtual GPU while the hazard checker is on: races, and reads of unwritten bytes. They
 * are collected from the first block to the last, then told to the observers. */
#ifndef MR_OPS_KERNEL_FINDINGS_H
#define MR_OPS_KERNEL_FINDINGS_H

#include "ops/kernel.h"

/* Called before the first block; does nothing unless an observer wants findings. `looks` false: tells the observers
 * that this launch is not checked. */
void mr_kernel_findings_begin(const mr_command *command, bool looks);
/* Called before each mr_ptx_run: gives it the collectors. None without memory, or without a check. */
void mr_kernel_findings_attach(const mr_command *command, mr_ptx_launch *launch);
/* After the last block, or (`is_done` false) once one has failed; `launch` as above. */
void mr_kernel_findings_tell(const mr_command *command, const mr_ptx_launch *launch, bool is_done);

/* The bytes of an operand's storage that nothing has written: mr_ptx_range.unset. Any thread. */
uint8_t *mr_kernel_findings_unset(const mr_command *command, const mr_storage *storage);

#endif
