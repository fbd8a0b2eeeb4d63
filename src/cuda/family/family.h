/* Turns one OP command into kernels on a stream. They are the built-in kernels (src/cuda/kernels), or cuBLAS for the
 * matrix products of floats. nvcc compiles the built-in ones from the rows of ops/table.h; the binary embeds them.
 *
 * All of it is called on the Lua thread with the device's context current, and nothing of it waits for
 * the device. */
#ifndef MR_CUDA_FAMILY_FAMILY_H
#define MR_CUDA_FAMILY_FAMILY_H

#include "cuda/launch/kernels.h"

/* Enqueues one OP command. After a failure nothing, or only a part that writes no operand, is enqueued. */
mr_status mr_cuda_launch(const mr_command *command, CUstream stream);

/* ---- the families */

mr_status mr_cuda_launch_copy(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_fill(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_generate(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_random(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_reduce(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_softmax(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_matmul(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_conv(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_pool(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_loss(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_optimise(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_user(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_scan(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_sort(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_move(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_compact(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_index(const mr_command *command, CUstream stream);
mr_status mr_cuda_launch_abstract(const mr_command *command, CUstream stream);

/* ---- generate.c */

mr_cuda_philox mr_cuda_philox_of(uint64_t seed, uint64_t offset);

/* ---- blas.c */

/* Opens so many handles for graphs, unless cuBLAS cannot be used: a handle that is opened in a capture may fail it. */
mr_status mr_cuda_blas_prepare(cuda_device *device, size_t count);
bool mr_cuda_uses_blas(const mr_command *command);

/* ---- user.c: the backend's slots for the user's kernels */

mr_status mr_cuda_kernels_load(mr_device *device, mr_kernel_code *code);
mr_status mr_cuda_kernels_variable(mr_device *device, mr_kernel_code *code, const char *name,
                                   uint64_t *out_address);
mr_status mr_cuda_kernels_registers(mr_device *device, mr_kernel_code *code, const char *symbol,
                                    int *out_registers);

/* A kernel of the user's was launched as a part of a graph. */
void mr_cuda_user_kernel_launched(cuda_device *device, const mr_command *command);
bool mr_cuda_kernel_may_fail(const mr_machine *machine); /* see mr_backend */

#endif
