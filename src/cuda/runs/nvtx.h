/* Names for the tools that look at a GPU's work (Nsight Systems, Nsight Compute). This is a range of NVTX around the
 * calls of each operation and copy, named after it and the script's line. */
#ifndef MR_CUDA_NVTX_H
#define MR_CUDA_NVTX_H

#include "cuda/state.h"

/* The domain of our ranges, or NULL: no tool asks for them, as NVTX_INJECTION64_PATH is not set, nor MILLRACE_NVTX=1;
 * or this build was made without NVTX's headers. */
void *mr_cuda_nvtx_open(void);
void mr_cuda_nvtx_close(void *domain); /* accepts NULL */

void mr_cuda_nvtx_push(void *domain, const mr_command *command);
void mr_cuda_nvtx_pop(void *domain);

#endif
