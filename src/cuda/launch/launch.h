/* Turns one OP command into kernels on a stream. They are the built-in kernels (src/cuda/kernels), or cuBLAS for the
 * matrix products of floats. nvcc compiles the built-in ones from the rows of ops/table.h; the binary embeds them.
 *
 * All of it is called on the Lua thread with the device's context current, and nothing of it waits for
 * the device. The state (loaded modules, function handles, one cuBLAS handle with its workspace and one
 * scratch buffer a stream) hangs off the device. */
#ifndef MR_CUDA_LAUNCH_H
#define MR_CUDA_LAUNCH_H

#include "cuda/state.h"
#include "ops/kernel.h"
#include "ops/params.h"

/* Makes the state of a device whose context is current and new, and loads the kernels' modules: later, behind
 * a running kernel, that would wait for it. cuBLAS is opened at the first matrix product of floats. */
mr_status mr_cuda_kernels_open(cuda_device *device);

/* Gives everything back. The device must be idle or lost; calls that fail because it is lost are ignored. */
void mr_cuda_kernels_close(cuda_device *device);

/* Enqueues one OP command. After a failure nothing, or only a part that writes no operand, is enqueued. */
mr_status mr_cuda_launch(const mr_command *command, CUstream stream);

/* The backend's slots for the user's kernels (family/user.c). */
mr_status mr_cuda_kernels_load(mr_device *device, mr_kernel_code *code);
mr_status mr_cuda_kernels_variable(mr_device *device, mr_kernel_code *code, const char *name,
                                   uint64_t *out_address);
mr_status mr_cuda_kernels_registers(mr_device *device, mr_kernel_code *code, const char *symbol,
                                    int *out_registers);

/* The stream is about to be destroyed (cuStreamDestroy): its cuBLAS handle and scratch memory are kept for
 * another stream, which waits for what is pending in this one. */
void mr_cuda_kernels_forget_stream(cuda_device *device, CUstream stream);

/* A kernel of the user's was launched as a part of a graph. */
void mr_cuda_user_kernel_launched(cuda_device *device, const mr_command *command);
bool mr_cuda_kernel_may_fail(const mr_machine *machine); /* see mr_backend */

/* The backend's slots for graphs (graph/graph.c). */
mr_status mr_cuda_graph_build(const mr_graph_plan *plan, mr_stream *stream, void **graph);
mr_status mr_cuda_graph_launch(void *graph, mr_stream *stream, const mr_graph_launch *launch);
void mr_cuda_graph_drop(void *graph);

/* One operand of an operation, as a launch sees it: how the launcher's parts share it. */
static inline CUdeviceptr mr_cuda_data(const mr_tensor *t) {
    static const uint8_t size[] = {1, 1, 4, 8, 4, 8, 2, 2}; /* by mr_dtype */
    return (CUdeviceptr)t->storage->address + (CUdeviceptr)(t->offset * size[t->dtype]);
}

#endif
