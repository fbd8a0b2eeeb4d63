/* Findings inside a launch on the virtual GPU while the hazard checker is on: races, and reads of bytes that nothing
 * has written. They are collected from the first block to the last, then told to the observers. */
#ifndef MR_OPS_KERNEL_FINDINGS_H
#define MR_OPS_KERNEL_FINDINGS_H

#include "ops/kernel.h"

/* Before the first block; nothing, unless an observer wants to know. `looks` false: the observers are told that nobody
 * looks. */
void mr_kernel_findings_begin(const mr_command *command, bool looks);
/* Before each call of mr_ptx_run: hands it what collects. Nothing, if there is no memory or nobody looks. */
void mr_kernel_findings_attach(const mr_command *command, mr_ptx_launch *launch);
/* After the last block, or (`is_done` false) once one has failed; `launch` as above. */
void mr_kernel_findings_tell(const mr_command *command, const mr_ptx_launch *launch, bool is_done);

/* The bytes of an operand's storage that nothing has written: mr_ptx_range.unset. Any thread. */
uint8_t *mr_kernel_findings_unset(const mr_command *command, const mr_storage *storage);

#endif
