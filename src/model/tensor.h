/* A tensor: a typed, strided view of a storage. It is what the script holds and, as an operand, what a command
 * reads or writes: the exact bytes. Immutable except for its name; counted. This file has the struct and its reference
 * count; src/tensor has views, elements and printing. */
#ifndef MR_MODEL_TENSOR_H
#define MR_MODEL_TENSOR_H

#include "model/storage.h"

#define MR_MAX_DIMS 8

/* Shapes and strides are in elements; dims count from 0 here and from 1 in scripts. */
struct mr_tensor {
    uint32_t refs;
    uint8_t ndim;        /* 0: one element, no dims */
    uint8_t dtype;       /* mr_dtype (tensor/dtype.h) */
    bool contiguous;     /* row-major without gaps (any tensor of at most one element is) */
    uint32_t generation; /* of the storage when it was made */
    uint64_t id;         /* "tensor #7"; a view has one of its own */
    mr_storage *storage; /* one reference owned */
    int64_t offset;      /* of the first element, in elements of dtype */
    int64_t numel;
    mr_name *name; /* one reference; NULL: unnamed */
    mr_site where; /* the line that made it */
    int64_t shape[MR_MAX_DIMS];
    int64_t stride[MR_MAX_DIMS];
};

/* A record with one reference, which the caller owns; it takes a reference to the storage, and no handle. ndim, dtype,
 * numel, contiguous, and of shape and stride the first ndim, are left to be filled in at once. NULL: no memory. */
mr_tensor *mr_tensor_new(const mr_caller *caller, mr_storage *storage);

static inline void mr_tensor_retain(mr_tensor *tensor) {
    tensor->refs++;
}
/* References concern only the struct: a handle is dropped before. Accepts NULL. */
void mr_tensor_release(mr_tensor *tensor);

#endif
