/* The failure of a launch, as a sentence with the kernel, the line, the thread and its block. The first failure of a
 * run is kept. */
#ifndef MR_PTX_RUN_FAULT_H
#define MR_PTX_RUN_FAULT_H

#include "ptx/run/warp.h"

/* "(3,0,0)"; returns `out`. */
const char *ptx_thread_text(const ptx_run_state *run, uint32_t thread, char out[40]);
const char *ptx_block_text(const ptx_run_state *run, char out[40]);
/* "t.cu:14" */
const char *ptx_code_text(const ptx_run_state *run, const ptx_code *code, char *out, size_t size);

/* Returns NULL, for handlers. The message continues "kernel `k` at t.cu:14: thread (3,0,0) of block (0,0,0) ". */
const ptx_code *ptx_fault(ptx_warp *warp, const ptx_code *code, unsigned lane, mr_code error,
                          const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The message continues "kernel `k` at t.cu:14: ". */
const ptx_code *ptx_fault_block(ptx_warp *warp, const ptx_code *code, mr_code error,
                                const char *format, ...) __attribute__((format(printf, 4, 5)));
/* No failure: tells launch->unset_read, the first time for this access. `read` has space, address and bytes. */
void ptx_tell_unset(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *memory,
                    unsigned lane, mr_ptx_unset_read read, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
const ptx_code *ptx_fault_memory(ptx_warp *warp); /* the host's memory is out */

static inline unsigned ptx_first_lane(uint32_t mask) {
    return (unsigned)__builtin_ctz(mask);
}

#endif
