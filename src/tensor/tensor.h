/* Functions on a tensor (model/tensor.h): making one with its storage, views, overlap, names for messages, printing. */
#ifndef MR_TENSOR_TENSOR_H
#define MR_TENSOR_TENSOR_H

#include "base/buffer.h"
#include "model/tensor.h"
#include "tensor/dtype.h"

/* The limit holds for views, too: an expanded dim can have more elements than memory, but an operation on more would
 * not end. */
#define MR_MAX_ELEMENTS ((int64_t)1 << 48)

/* A new storage and a contiguous tensor over all of it, contents undefined. `stream` as in
 * mr_storage_create: the allocation's stream for device memory, NULL for host memory. The tensor
 * holds the storage's only reference; the script's handle count is 1 and belongs to the caller. */
mr_status mr_tensor_create(const mr_caller *caller, mr_memory_kind kind, mr_stream *stream,
                           mr_dtype dtype, int ndim, const int64_t *shape, mr_tensor **out_tensor);

/* A tensor of bytes, in device memory with another owner: see mr_storage_create_at. */
mr_status mr_tensor_create_at(const mr_caller *caller, mr_stream *stream, uint64_t address,
                              int64_t bytes, mr_tensor **out_tensor);

/* A view of a storage that has no tensor yet. The caller's handle becomes the tensor's; its reference stays the
 * caller's. After an error both are the caller's. */
mr_status mr_tensor_over(const mr_caller *caller, mr_storage *storage, mr_dtype dtype, int ndim,
                         const int64_t *shape, const int64_t *stride, mr_tensor **out_tensor);

/* Another view of base's storage; adds a handle to it. Checks that every element lies inside. */
mr_status mr_tensor_view(const mr_caller *caller, mr_tensor *base, mr_dtype dtype, int ndim,
                         const int64_t *shape, const int64_t *stride, int64_t offset,
                         mr_tensor **out_tensor);

/* The same without a handle: an operand of a command, which must not keep device memory from being
 * freed (R28). It carries base's name for messages. */
mr_status mr_tensor_alias(const mr_caller *caller, mr_tensor *base, mr_dtype dtype, int ndim,
                          const int64_t *shape, const int64_t *stride, int64_t offset,
                          mr_tensor **out_tensor);

/* Sets its name, and its storage's: a storage has the name given last. */
mr_status mr_tensor_set_name(mr_tensor *t, const char *text);

/* Shape algebra. Each makes a view (with a handle) or explains why it cannot; `dim` may be negative
 * (from the end); messages show dims as scripts count them, from 1. */
mr_status mr_tensor_reshape(const mr_caller *caller, mr_tensor *t, int ndim, const int64_t *shape,
                            mr_tensor **out); /* one -1
    allowed; NOT_SUPPORTED when no view can show it (the caller copies first) */
mr_status mr_tensor_permute(const mr_caller *caller, mr_tensor *t, const int *dims,
                            mr_tensor **out);
mr_status mr_tensor_transpose(const mr_caller *caller, mr_tensor *t, int dim0, int dim1,
                              mr_tensor **out);
mr_status mr_tensor_narrow(const mr_caller *caller, mr_tensor *t, int dim, int64_t start,
                           int64_t length, int64_t step,
                           mr_tensor **out); /* start counts from 0; step >= 1 */
mr_status mr_tensor_select(const mr_caller *caller, mr_tensor *t, int dim, int64_t index,
                           mr_tensor **out);
mr_status mr_tensor_squeeze(const mr_caller *caller, mr_tensor *t, int dim /* INT_MIN: all */,
                            mr_tensor **out);
mr_status mr_tensor_unsqueeze(const mr_caller *caller, mr_tensor *t, int dim, mr_tensor **out);
mr_status mr_tensor_expand(const mr_caller *caller, mr_tensor *t, int ndim, const int64_t *shape,
                           mr_tensor **out); /* -1 keeps */
mr_status mr_tensor_flatten(const mr_caller *caller, mr_tensor *t, int first, int last,
                            mr_tensor **out); /* as reshape */

/* Resolves a dim (0-based or negative) against ndim; `ndim` 0 is treated as 1 for 0 and -1. */
mr_status mr_dim_resolve(int ndim, int64_t dim, const char *what, int *out_dim);
/* Elements of a shape; INVALID_ARGUMENT for a negative size, OUT_OF_MEMORY when it overflows. */
mr_status mr_shape_numel(int ndim, const int64_t *shape, int64_t *out_numel);
/* The common shape of two (R: NumPy's and PyTorch's broadcasting), else an error with both shapes. */
mr_status mr_shape_broadcast(const char *op, int ndim_a, const int64_t *a, int ndim_b,
                             const int64_t *b, int *out_ndim, int64_t *out);
bool mr_has_shape(const mr_tensor *t, int ndim, const int64_t *shape);
bool mr_same_shape(const mr_tensor *a, const mr_tensor *b);

/* The bytes between the first and one past the last that a view touches, from the storage's start. */
void mr_tensor_extent(const mr_tensor *t, uint64_t *out_first, uint64_t *out_end);
/* Whether two views may share a byte: false only if they surely do not (exact for contiguous ones). */
bool mr_tensor_may_overlap(const mr_tensor *a, const mr_tensor *b);
/* Whether two elements of one view share an address (an expanded dim): unfit as a destination. */
bool mr_tensor_self_overlaps(const mr_tensor *t);

/* The first element, where the CPU reaches it. */
static inline void *mr_tensor_data(const mr_tensor *t) {
    static const uint8_t size[] = {1, 1, 4, 8, 4, 8, 2, 2}; /* by mr_dtype; checked in tensor.c */
    return (char *)t->storage->host + t->offset * size[t->dtype];
}

static inline bool mr_tensor_on_host(const mr_tensor *t) {
    return t->storage->kind != MR_MEMORY_DEVICE;
}

/* NULL, or an error with its name: it is freed, or from before a reset. */
mr_status mr_tensor_usable(const mr_tensor *t);

/* "`x`" or "tensor #7 f32[100,100] made at line 3"; returns `out`. */
const char *mr_tensor_describe(const mr_tensor *t, char *out, size_t size);
/* "line 3", or "mr:2:3" of an entry of a prompt, where a line alone says nothing; returns `out`. */
#define MR_MADE_AT_SIZE 64
const char *mr_made_at(mr_site made, char *out, size_t size);
/* "f32[100,100]" */
const char *mr_tensor_signature(const mr_tensor *t, char *out, size_t size);
/* "100x100", "scalar" */
const char *mr_shape_text(int ndim, const int64_t *shape, char *out, size_t size);

/* The values as text (PyTorch's layout: brackets, aligned columns, "..." beyond 1000 elements, 4 decimals), then a line
 * with dtype, shape and device. `t` must be a host tensor, and its values current; `origin` is the tensor to describe
 * (t itself, or the device tensor it copies). Rows have at most `width` columns, where an element has room in that. */
#define MR_TENSOR_WIDTH 80
void mr_tensor_print(const mr_tensor *t, const mr_tensor *origin, int width, mr_buffer *out);

#endif
