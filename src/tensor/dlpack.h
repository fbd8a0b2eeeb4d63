/* Tensors as DLPack structures, by which libraries of one process pass tensors without a copy
 * (https://dmlc.github.io/dlpack). The structures below have the layout that DLPack fixes.
 *
 * In Lua a capsule is a full userdata that holds one pointer, with a metatable of the registry that any C module
 * finds by its name:
 *
 *   "dltensor_versioned"   mr_dl_versioned *
 *   "dltensor"             mr_dl_managed *, of DLPack before 1.0
 *
 *     DLManagedTensorVersioned **capsule = luaL_checkudata(L, 1, "dltensor_versioned");
 *
 * The pointer is NULL once the tensor was taken: the code that takes it sets it to NULL, and calls the deleter once,
 * when it no longer needs the memory. The collector calls the deleter of a capsule that was not taken. The module that
 * makes the metatable first (luaL_newmetatable) gives it that `__gc`. docs/interop.md explains it to authors of such
 * modules. */
#ifndef MR_TENSOR_DLPACK_H
#define MR_TENSOR_DLPACK_H

#include "model/outside.h"
#include "tensor/tensor.h"

#define MR_DL_VERSIONED_NAME "dltensor_versioned"
#define MR_DL_MANAGED_NAME   "dltensor"

/* ---- the layout */

enum {
    MR_DL_CPU = 1,
    MR_DL_CUDA = 2,
    MR_DL_CUDA_HOST = 3,
    MR_DL_CUDA_MANAGED = 13,
};

enum { MR_DL_INT, MR_DL_UINT, MR_DL_FLOAT, MR_DL_OPAQUE, MR_DL_BFLOAT, MR_DL_COMPLEX, MR_DL_BOOL };

enum { MR_DL_READ_ONLY = 1, MR_DL_COPIED = 2 };

enum { MR_DL_MAJOR = 1, MR_DL_MINOR = 0 }; /* what is written here */

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} mr_dl_dtype;

typedef struct {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    mr_dl_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major without gaps */
    uint64_t byte_offset;
} mr_dl_tensor;

typedef struct mr_dl_managed mr_dl_managed;
struct mr_dl_managed {
    mr_dl_tensor tensor;
    void *context;                        /* the deleter's */
    void (*deleter)(mr_dl_managed *self); /* may be NULL */
};

typedef struct mr_dl_versioned mr_dl_versioned;
struct mr_dl_versioned {
    uint32_t major, minor; /* in another major version only deleter and context are valid */
    void *context;
    void (*deleter)(mr_dl_versioned *self); /* may be NULL */
    uint64_t flags;
    mr_dl_tensor tensor;
};

/* A capsule of either kind, empty where both are NULL. */
typedef struct {
    mr_dl_versioned *versioned;
    mr_dl_managed *managed;
} mr_dl_capsule;

/* ---- lending */

/* Lends the memory of `t`. The caller owns the structure, and ends that by its deleter. Device memory of the virtual
 * GPU: NOT_SUPPORTED. `versioned`: which of the two is made. */
mr_status mr_dlpack_export(const mr_caller *caller, mr_tensor *t, bool versioned,
                           mr_dl_capsule *out_capsule);

/* ---- borrowing */

/* A tensor over the memory, used in the order of `stream` (device memory only; NULL: the current stream of its device),
 * with a handle that is the caller's. The capsule is taken: its deleter is called when nothing here uses the memory any
 * more. A capsule that mr_dlpack_export made of this machine becomes a view of the same memory. After an error the
 * capsule is the caller's as before. `may_write` false: read-only memory is accepted, as the caller only copies. */
mr_status mr_dlpack_import(const mr_caller *caller, mr_dl_capsule capsule, mr_stream *stream,
                           bool may_write, mr_tensor **out_tensor);

/* Calls the deleter, if there is one. */
void mr_dlpack_drop(mr_dl_capsule capsule);

#endif
