/* Device memory that processes share (R18): the driver shares specially allocated memory, by a handle of
 * MR_IPC_HANDLE_BYTES. Needs a real GPU. */
#ifndef MR_TENSOR_IPC_H
#define MR_TENSOR_IPC_H

#include "model/outside.h"
#include "tensor/tensor.h"

/* Like mr_tensor_create, in memory that can be shared. It is released with its last use. */
mr_status mr_tensor_create_shareable(const mr_caller *caller, mr_stream *stream, mr_dtype dtype,
                                     int ndim, const int64_t *shape, mr_tensor **out_tensor);

/* The handle of the memory, and how many bytes after its beginning the first element lies. */
mr_status mr_tensor_ipc_handle(const mr_caller *caller, const mr_tensor *t,
                               char out_handle[MR_IPC_HANDLE_BYTES], int64_t *out_offset);

/* A contiguous tensor over memory of another process, which is closed with its last use. Ordered by `stream` like new
 * memory; work of the other process must be ordered by events or waits. */
mr_status mr_tensor_from_ipc_handle(const mr_caller *caller, const char handle[MR_IPC_HANDLE_BYTES],
                                    int64_t offset, mr_stream *stream, mr_dtype dtype, int ndim,
                                    const int64_t *shape, mr_tensor **out_tensor);

#endif
