/* Tensors: making one with its storage, making a view, describing. view.c decides which views are
 * possible. */
#include "tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(float) == 4 && sizeof(double) == 8, "the element sizes of mr_tensor_data");
_Static_assert(MR_BOOL == 0 && MR_U8 == 1 && MR_I32 == 2 && MR_I64 == 3 && MR_F32 == 4 &&
                   MR_F64 == 5 && MR_F16 == 6 && MR_BF16 == 7 && MR_DTYPE_COUNT == 8,
               "mr_tensor_data's table of element sizes follows MR_DTYPE_LIST");

static mr_status no_memory(void) {
    return mr_no_memory("for a tensor");
}

/* Row-major strides. A tensor without elements gets strides that cannot overflow. */
static void set_strides(mr_tensor *t) {
    int64_t stride = 1;
    for (int d = t->ndim; d-- > 0;) {
        t->stride[d] = stride;
        if (t->numel > 0) stride *= t->shape[d];
    }
}

static bool is_contiguous(const mr_tensor *t) {
    if (t->numel <= 1) return true;
    int64_t expected = 1;
    for (int d = t->ndim; d-- > 0;) {
        if (t->shape[d] == 1) continue;
        if (t->stride[d] != expected) return false;
        expected *= t->shape[d];
    }
    return true;
}

static mr_tensor *new_tensor(const mr_caller *caller, mr_storage *storage, mr_dtype dtype, int ndim,
                             const int64_t *shape, int64_t numel) {
    mr_tensor *t = mr_tensor_new(caller, storage);
    if (!t) return NULL;
    t->ndim = (uint8_t)ndim;
    t->dtype = (uint8_t)dtype;
    t->numel = numel;
    for (int d = 0; d < ndim; d++) t->shape[d] = shape[d];
    return t;
}

/* Takes over the caller's reference and handle. */
static mr_status over(const mr_caller *caller, mr_storage *storage, mr_dtype dtype, int ndim,
                      const int64_t *shape, int64_t numel, mr_tensor **out_tensor) {
    mr_tensor *t = new_tensor(caller, storage, dtype, ndim, shape, numel);
    if (!t) mr_storage_drop_handle(storage);
    mr_storage_release(storage); /* the tensor has a reference of its own */
    if (!t) return no_memory();
    t->contiguous = true;
    set_strides(t);
    *out_tensor = t;
    return MR_OK;
}

mr_status mr_tensor_create(const mr_caller *caller, mr_memory_kind kind, mr_stream *stream,
                           mr_dtype dtype, int ndim, const int64_t *shape, mr_tensor **out_tensor) {
    *out_tensor = NULL;
    int64_t numel;
    MR_TRY(mr_shape_numel(ndim, shape, &numel)); /* at most 2^48: its bytes cannot overflow */
    mr_storage *storage;
    uint64_t bytes = (uint64_t)numel * mr_dtype_size(dtype);
    MR_TRY(mr_storage_create(caller, kind, bytes, stream, &storage));
    return over(caller, storage, dtype, ndim, shape, numel, out_tensor);
}

mr_status mr_tensor_create_at(const mr_caller *caller, mr_stream *stream, uint64_t address,
                              int64_t bytes, mr_tensor **out_tensor) {
    *out_tensor = NULL;
    mr_storage *storage;
    MR_TRY(
        mr_storage_create_at(caller, MR_MEMORY_DEVICE, (uint64_t)bytes, stream, address, &storage));
    return over(caller, storage, MR_U8, 1, &bytes, bytes, out_tensor);
}

/* Whether all elements lie inside the storage. */
static bool fits(const mr_tensor *t) {
    if (t->numel == 0) return true;
    int64_t low = t->offset, high = t->offset, end;
    for (int d = 0; d < t->ndim; d++) {
        int64_t reach;
        if (__builtin_mul_overflow(t->shape[d] - 1, t->stride[d], &reach)) return false;
        if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return false;
    }
    if (low < 0 || __builtin_add_overflow(high, 1, &end) ||
        __builtin_mul_overflow(end, (int64_t)mr_dtype_size(t->dtype), &end))
        return false;
    return (uint64_t)end <= t->storage->bytes;
}

mr_status mr_tensor_over(const mr_caller *caller, mr_storage *storage, mr_dtype dtype, int ndim,
                         const int64_t *shape, const int64_t *stride, mr_tensor **out_tensor) {
    *out_tensor = NULL;
    int64_t numel;
    MR_TRY(mr_shape_numel(ndim, shape, &numel));
    mr_tensor *t = new_tensor(caller, storage, dtype, ndim, shape, numel);
    if (!t) return no_memory();
    for (int d = 0; d < ndim; d++) t->stride[d] = stride[d];
    if (!fits(t)) {
        mr_tensor_release(t);
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "the view is not inside its storage of %" PRIu64 " bytes", storage->bytes);
    }
    t->contiguous = is_contiguous(t);
    *out_tensor = t;
    return MR_OK;
}

mr_status mr_tensor_alias(const mr_caller *caller, mr_tensor *base, mr_dtype dtype, int ndim,
                          const int64_t *shape, const int64_t *stride, int64_t offset,
                          mr_tensor **out_tensor) {
    *out_tensor = NULL;
    int64_t numel;
    MR_TRY(mr_shape_numel(ndim, shape, &numel));
    mr_tensor *t = new_tensor(caller, base->storage, dtype, ndim, shape, numel);
    if (!t) return no_memory();
    t->offset = offset;
    t->generation = base->generation;
    for (int d = 0; d < ndim; d++) t->stride[d] = stride[d];
    if (!fits(t)) {
        mr_tensor_release(t);
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "the view is not inside its storage of %" PRIu64 " bytes",
                       base->storage->bytes);
    }
    t->contiguous = is_contiguous(t);
    t->name = mr_name_retain(base->name);
    *out_tensor = t;
    return MR_OK;
}

mr_status mr_tensor_view(const mr_caller *caller, mr_tensor *base, mr_dtype dtype, int ndim,
                         const int64_t *shape, const int64_t *stride, int64_t offset,
                         mr_tensor **out_tensor) {
    MR_TRY(mr_tensor_alias(caller, base, dtype, ndim, shape, stride, offset, out_tensor));
    mr_name_keep(&(*out_tensor)->name, NULL);
    mr_storage_add_handle(base->storage);
    return MR_OK;
}

mr_status mr_tensor_set_name(mr_tensor *t, const char *text) {
    mr_name *name = mr_name_new(text, strlen(text));
    if (!name) return no_memory();
    mr_name_keep(&t->storage->name, name);
    mr_name_release(t->name);
    t->name = name;
    return MR_OK;
}

static mr_status made_in_an_earlier_call(const mr_tensor *t) {
    char text[160];
    const mr_site *made = &t->storage->made;
    return mr_fail(
        MR_CODE_INVALID_HANDLE,
        "%s was made by an earlier call of a function of mr.graph.auto, and a later call "
        "has its memory now (%s:%d): clone() tensors that must outlive the next call",
        mr_tensor_describe(t, text, sizeof text), made->file ? made->file : "?", made->line);
}

static mr_status overwritten_by_pool(const mr_tensor *t) {
    char text[160];
    return mr_fail(MR_CODE_INVALID_HANDLE,
                   "%s is of graph %" PRIu32 ", and graph %" PRIu32
                   " of the same pool, captured or "
                   "launched since, has its memory: launch graph %" PRIu32 " again, or clone() the "
                   "tensor before the other launch",
                   mr_tensor_describe(t, text, sizeof text), t->generation, t->storage->generation,
                   t->generation);
}

mr_status mr_tensor_usable(const mr_tensor *t) {
    const mr_storage *storage = t->storage;
    bool current = t->generation == storage->generation;
    if (__builtin_expect(!storage->freed && current && storage->epoch == storage->machine->epoch &&
                             !mr_storage_is_foreign(storage),
                         1))
        return MR_OK;
    char text[160];
    /* A captured command may run after launches of other graphs, so the launch checks its memory (graph/pool.c). */
    bool is_of_pool = !current && storage->pool;
    if (is_of_pool && !storage->machine->captures.open) return overwritten_by_pool(t);
    if (!current && !storage->freed && !storage->pool) return made_in_an_earlier_call(t);
    return mr_storage_usable(storage, mr_tensor_describe(t, text, sizeof text));
}

const char *mr_tensor_signature(const mr_tensor *t, char *out, size_t size) {
    int used = snprintf(out, size, "%s[", mr_dtype_text(t->dtype));
    for (int d = 0; d < t->ndim && used > 0 && (size_t)used < size; d++)
        used += snprintf(out + used, size - (size_t)used, "%s%" PRId64, d ? "," : "", t->shape[d]);
    if (used > 0 && (size_t)used < size) snprintf(out + used, size - (size_t)used, "]");
    return out;
}

const char *mr_made_at(mr_site made, char *out, size_t size) {
    bool is_entry = made.file && strncmp(made.file, "mr:", 3) == 0;
    if (is_entry) snprintf(out, size, "%s:%d", made.file, made.line);
    else snprintf(out, size, "line %d", made.line);
    return out;
}

const char *mr_tensor_describe(const mr_tensor *t, char *out, size_t size) {
    char signature[256], made[MR_MADE_AT_SIZE];
    if (t->name) snprintf(out, size, "`%s`", t->name->text);
    else if (t->where.line > 0)
        snprintf(out, size, "tensor #%" PRIu64 " %s made at %s", t->id,
                 mr_tensor_signature(t, signature, sizeof signature),
                 mr_made_at(t->where, made, sizeof made));
    else
        snprintf(out, size, "tensor #%" PRIu64 " %s", t->id,
                 mr_tensor_signature(t, signature, sizeof signature));
    return out;
}
