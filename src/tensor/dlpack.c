/* Tensors as DLPack structures: see dlpack.h.
 *
 * Easiest to break: the owner of the structure. An exported tensor is freed by the loan's `drop`, after a call of the
 * deleter. An imported one is owned by the storage (mr_storage_keep), once no step can fail any more. */
#include "tensor/dlpack.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/backend.h"

_Static_assert(sizeof(mr_dl_dtype) == 4 && offsetof(mr_dl_tensor, ndim) == 16 &&
                   offsetof(mr_dl_tensor, dtype) == 20 && offsetof(mr_dl_tensor, shape) == 24 &&
                   offsetof(mr_dl_tensor, byte_offset) == 40 && sizeof(mr_dl_tensor) == 48 &&
                   offsetof(mr_dl_managed, context) == 48 && sizeof(mr_dl_managed) == 64 &&
                   offsetof(mr_dl_versioned, context) == 8 &&
                   offsetof(mr_dl_versioned, flags) == 24 && sizeof(mr_dl_versioned) == 80,
               "the layout that DLPack fixes on computers of 64 bits");

/* ---- dtypes */

/* By mr_dtype. */
static const mr_dl_dtype dtypes[MR_DTYPE_COUNT] = {
    [MR_BOOL] = {MR_DL_BOOL, 8, 1},  [MR_U8] = {MR_DL_UINT, 8, 1},
    [MR_I32] = {MR_DL_INT, 32, 1},   [MR_I64] = {MR_DL_INT, 64, 1},
    [MR_F32] = {MR_DL_FLOAT, 32, 1}, [MR_F64] = {MR_DL_FLOAT, 64, 1},
    [MR_F16] = {MR_DL_FLOAT, 16, 1}, [MR_BF16] = {MR_DL_BFLOAT, 16, 1},
};

static mr_status find_dtype(mr_dl_dtype dtype, mr_dtype *out_dtype) {
    static const char *const words[] = {"int",    "uint",    "float", "opaque handle",
                                        "bfloat", "complex", "bool"};
    char other[24];
    for (int i = 0; i < MR_DTYPE_COUNT; i++) {
        if (memcmp(&dtypes[i], &dtype, sizeof dtype) != 0) continue;
        *out_dtype = (mr_dtype)i;
        return MR_OK;
    }
    snprintf(other, sizeof other, "type code %d, ", dtype.code);
    bool is_known = dtype.code < sizeof words / sizeof *words;
    return mr_fail(MR_CODE_NOT_SUPPORTED,
                   "from_dlpack: the elements are %s%d bits%s: expected bool, uint8, int32, int64, "
                   "float16, float32, float64 or bfloat16, one value each: convert it first",
                   is_known ? words[dtype.code] : other, dtype.bits,
                   dtype.lanes == 1 ? "" : ", several in each");
}

/* ---- lending */

typedef struct {
    mr_loan loan;
    union {
        mr_dl_versioned versioned;
        mr_dl_managed managed;
    };
    int64_t shape[MR_MAX_DIMS], strides[MR_MAX_DIMS];
} lent;

static void drop_lent(mr_loan *loan) {
    free((char *)loan - offsetof(lent, loan));
}

static void end_versioned(mr_dl_versioned *self) {
    mr_loan_end(&((lent *)((char *)self - offsetof(lent, versioned)))->loan);
}

static void end_managed(mr_dl_managed *self) {
    mr_loan_end(&((lent *)((char *)self - offsetof(lent, managed)))->loan);
}

/* Pinned memory of a simulation is not pinned for CUDA. */
static int32_t device_type_of(const mr_storage *storage) {
    if (storage->kind == MR_MEMORY_DEVICE) return MR_DL_CUDA;
    bool is_pinned = storage->kind == MR_MEMORY_PINNED && storage->machine->backend->outside;
    return is_pinned ? MR_DL_CUDA_HOST : MR_DL_CPU;
}

static void describe(lent *l, const mr_tensor *t, mr_dl_tensor *out) {
    const mr_storage *storage = t->storage;
    uint64_t offset = (uint64_t)t->offset * mr_dtype_size((mr_dtype)t->dtype);
    bool on_device = storage->kind == MR_MEMORY_DEVICE;
    uint64_t base = on_device ? storage->address : (uint64_t)(uintptr_t)storage->host;
    for (int i = 0; i < t->ndim; i++) {
        l->shape[i] = t->shape[i];
        l->strides[i] = t->stride[i];
    }
    *out = (mr_dl_tensor){.data = t->numel ? (void *)(uintptr_t)(base + offset) : NULL,
                          .device_type = device_type_of(storage),
                          .device_id = on_device ? storage->device->index : 0,
                          .ndim = t->ndim,
                          .dtype = dtypes[t->dtype],
                          .shape = l->shape,
                          .strides = l->strides};
}

mr_status mr_dlpack_export(const mr_caller *caller, mr_tensor *t, bool versioned,
                           mr_dl_capsule *out_capsule) {
    const mr_outside_slots *slots;
    *out_capsule = (mr_dl_capsule){0};
    MR_TRY(mr_tensor_usable(t));
    if (!mr_tensor_on_host(t))
        MR_TRY(mr_outside_of(caller->machine, "dlpack",
                             "its device memory holds the values of a simulation, which runs its "
                             "work later than other code could look; send t:cpu():dlpack()",
                             &slots));
    lent *l = calloc(1, sizeof *l);
    if (!l) return mr_no_memory("for a DLPack capsule");
    mr_status status = mr_loan_begin(caller, t, &l->loan);
    if (status) {
        free(l);
        return status;
    }
    l->loan.drop = drop_lent;
    if (versioned) {
        l->versioned =
            (mr_dl_versioned){.major = MR_DL_MAJOR, .minor = MR_DL_MINOR, .deleter = end_versioned};
        describe(l, t, &l->versioned.tensor);
        out_capsule->versioned = &l->versioned;
    } else {
        l->managed = (mr_dl_managed){.deleter = end_managed};
        describe(l, t, &l->managed.tensor);
        out_capsule->managed = &l->managed;
    }
    mr_share_memory(caller, t->storage, "dlpack");
    return MR_OK;
}

/* The tensor that this machine lent by the capsule; NULL: it is not one of ours. */
static mr_tensor *lent_tensor(const mr_machine *machine, mr_dl_capsule capsule) {
    const lent *l = NULL;
    if (capsule.versioned && capsule.versioned->deleter == end_versioned)
        l = (const lent *)((char *)capsule.versioned - offsetof(lent, versioned));
    if (capsule.managed && capsule.managed->deleter == end_managed)
        l = (const lent *)((char *)capsule.managed - offsetof(lent, managed));
    return l && l->loan.machine == machine ? l->loan.tensor : NULL;
}

/* ---- borrowing */

void mr_dlpack_drop(mr_dl_capsule capsule) {
    if (capsule.versioned && capsule.versioned->deleter)
        capsule.versioned->deleter(capsule.versioned);
    if (capsule.managed && capsule.managed->deleter) capsule.managed->deleter(capsule.managed);
}

static void release_versioned(void *kept) {
    mr_dlpack_drop((mr_dl_capsule){.versioned = kept});
}

static void release_managed(void *kept) {
    mr_dlpack_drop((mr_dl_capsule){.managed = kept});
}

/* The facts of the structure, checked. */
typedef struct {
    mr_memory_kind kind;
    mr_device *device; /* of device memory */
    mr_dtype dtype;
    int ndim;
    int64_t shape[MR_MAX_DIMS], stride[MR_MAX_DIMS];
    int64_t numel;
    uint64_t first, bytes; /* of all elements: the address, and so many bytes from there on */
} borrowed;

static mr_status check_device(const mr_machine *machine, const mr_dl_tensor *d, borrowed *b) {
    switch (d->device_type) {
    case MR_DL_CPU: b->kind = MR_MEMORY_PAGEABLE; return MR_OK;
    case MR_DL_CUDA_HOST: b->kind = MR_MEMORY_PINNED; return MR_OK;
    case MR_DL_CUDA:
    case MR_DL_CUDA_MANAGED: b->kind = MR_MEMORY_DEVICE; break;
    default:
        return mr_fail(
            MR_CODE_NOT_SUPPORTED,
            "from_dlpack: the memory is on a device of DLPack's type %d: expected the host (1), "
            "a CUDA device (2, 13) or pinned memory (3)",
            d->device_type);
    }
    const mr_outside_slots *slots;
    MR_TRY(mr_outside_of(machine, "from_dlpack",
                         "the memory is on a real GPU, which its simulated kernels cannot reach",
                         &slots));
    if (d->device_id < 0 || d->device_id >= machine->device_count)
        return mr_fail(MR_CODE_INVALID_DEVICE,
                       "from_dlpack: the memory is on device %d: this machine has %d, from 0 on",
                       d->device_id, machine->device_count);
    b->device = machine->devices[d->device_id];
    return MR_OK;
}

static mr_status too_large(void) {
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "from_dlpack: shape and strides reach beyond any memory");
}

/* Shape and strides, and the elements from the first to the last, in *out_span. */
static mr_status check_shape(const mr_dl_tensor *d, borrowed *b, int64_t *out_span) {
    if (d->ndim < 0 || d->ndim > MR_MAX_DIMS)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "from_dlpack: the tensor has %d dims: expected 0 to %d", d->ndim,
                       MR_MAX_DIMS);
    if (d->ndim && !d->shape)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "from_dlpack: the structure has no shape");
    b->ndim = d->ndim;
    memcpy(b->shape, d->shape ? d->shape : b->shape, (size_t)d->ndim * sizeof *b->shape);
    MR_TRY(mr_shape_numel(b->ndim, b->shape, &b->numel));
    int64_t dense = 1, last = 0, span = 0;
    for (int i = b->ndim; i-- > 0;) {
        b->stride[i] = d->strides ? d->strides[i] : dense;
        if (b->numel && __builtin_mul_overflow(dense, b->shape[i], &dense)) return too_large();
        if (b->numel && b->shape[i] > 1 && b->stride[i] < 0)
            return mr_fail(MR_CODE_NOT_SUPPORTED,
                           "from_dlpack: dim %d has the stride %" PRId64
                           ": expected none below 0: make it contiguous first",
                           i + 1, b->stride[i]);
        if (b->shape[i] <= 1) continue;
        if (__builtin_mul_overflow(b->shape[i] - 1, b->stride[i], &span) ||
            __builtin_add_overflow(last, span, &last))
            return too_large();
    }
    if (last >= MR_MAX_ELEMENTS) return too_large();
    *out_span = b->numel ? last + 1 : 0;
    return MR_OK;
}

static mr_status check_place(const mr_dl_tensor *d, int64_t span, borrowed *b) {
    uint64_t size = mr_dtype_size(b->dtype);
    b->bytes = (uint64_t)span * size;
    if (!b->numel) return MR_OK;
    if (!d->data)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "from_dlpack: the structure has elements and no data");
    if (__builtin_add_overflow((uint64_t)(uintptr_t)d->data, d->byte_offset, &b->first) ||
        b->first + b->bytes < b->first)
        return too_large();
    if (b->first % size)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "from_dlpack: the first element is at an address that is no multiple of the "
                       "%d bytes of "
                       "an element: copy it first",
                       (int)size);
    return MR_OK;
}

static mr_status check(const mr_machine *machine, mr_dl_capsule capsule, bool may_write,
                       borrowed *b) {
    const mr_dl_versioned *v = capsule.versioned;
    const mr_dl_tensor *d = v ? &v->tensor : &capsule.managed->tensor;
    int64_t span = 0;
    *b = (borrowed){0};
    if (v && v->major != MR_DL_MAJOR)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "from_dlpack: the capsule is of DLPack %u.%u: expected version 1", v->major,
                       v->minor);
    if (v && v->flags & MR_DL_READ_ONLY && may_write)
        return mr_fail(MR_CODE_NOT_SUPPORTED, "from_dlpack: the memory is read-only, and each "
                                              "tensor here can be written: take a copy by "
                                              "mr.from_dlpack(capsule, {copy=true})");
    MR_TRY(check_device(machine, d, b));
    MR_TRY(find_dtype(d->dtype, &b->dtype));
    MR_TRY(check_shape(d, b, &span));
    return check_place(d, span, b);
}

static mr_status make_storage(const mr_caller *caller, const borrowed *b, mr_stream *stream,
                              mr_storage **out_storage) {
    mr_machine *machine = caller->machine;
    const mr_outside_slots *slots = machine->backend->outside;
    uint64_t address = b->first;
    bool on_device = b->kind == MR_MEMORY_DEVICE;
    if (on_device && !stream) stream = b->device->current;
    if (on_device && stream->device != b->device)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "from_dlpack: the memory is on device %d, and the stream on device %d",
                       b->device->index, stream->device->index);
    if (!b->numel) /* there is no memory to share */
        return mr_storage_create(caller, b->kind, 0, on_device ? stream : NULL, out_storage);
    if (slots && b->kind != MR_MEMORY_PAGEABLE)
        MR_TRY(slots->memory_check(machine, b->device, b->first, &address));
    MR_TRY(mr_storage_create_at(caller, b->kind, b->bytes, on_device ? stream : NULL, b->first,
                                out_storage));
    if (slots) (*out_storage)->address = address;
    return MR_OK;
}

mr_status mr_dlpack_import(const mr_caller *caller, mr_dl_capsule capsule, mr_stream *stream,
                           bool may_write, mr_tensor **out_tensor) {
    borrowed b;
    mr_storage *storage;
    *out_tensor = NULL;
    mr_tensor *own = lent_tensor(caller->machine, capsule);
    if (own) {
        MR_TRY(mr_tensor_usable(own));
        MR_TRY(mr_tensor_view(caller, own, (mr_dtype)own->dtype, own->ndim, own->shape, own->stride,
                              own->offset, out_tensor));
        mr_dlpack_drop(capsule);
        return MR_OK;
    }
    MR_TRY(check(caller->machine, capsule, may_write, &b));
    MR_TRY(make_storage(caller, &b, stream, &storage));
    mr_status status =
        mr_tensor_over(caller, storage, b.dtype, b.ndim, b.shape, b.stride, out_tensor);
    if (status) {
        mr_storage_drop_handle(storage);
        mr_storage_release(storage);
        return status;
    }
    if (capsule.versioned) mr_storage_keep(storage, capsule.versioned, release_versioned);
    else mr_storage_keep(storage, capsule.managed, release_managed);
    mr_storage_release(storage); /* the tensor has one */
    if (b.numel) mr_share_memory(caller, storage, "from_dlpack");
    return MR_OK;
}
