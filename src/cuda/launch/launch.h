/* What each device has for its launches, and the address of an operand. A device has its loaded modules, the handles of
 * kernels, and for each stream a cuBLAS handle with its workspace and one scratch buffer. */
#ifndef MR_CUDA_LAUNCH_H
#define MR_CUDA_LAUNCH_H

#include "cuda/state.h"
#include "ops/kernel.h"
#include "ops/params.h"

/* Makes the state of a device whose context is current and new, and loads the kernels' modules: later, after
 * a running kernel, that would wait for it. cuBLAS is opened at the first matrix product of floats. */
mr_status mr_cuda_kernels_open(cuda_device *device);

/* Gives everything back. The device must be idle or lost; calls that fail because it is lost are ignored. */
void mr_cuda_kernels_close(cuda_device *device);

/* The stream is about to be destroyed (cuStreamDestroy): its cuBLAS handle and scratch memory are kept for another
 * stream, which waits for the pending work of this one. */
void mr_cuda_kernels_forget_stream(cuda_device *device, CUstream stream);

/* The address of an operand, as a launch sees it. */
static inline CUdeviceptr mr_cuda_data(const mr_tensor *t) {
    static const uint8_t size[] = {1, 1, 4, 8, 4, 8, 2, 2}; /* by mr_dtype */
    return (CUdeviceptr)t->storage->address + (CUdeviceptr)(t->offset * size[t->dtype]);
}

#endif
