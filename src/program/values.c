/* The bytes of views: hashed, taken out, put back, element after element in row-major order. */
#include <string.h>

#include "program/state.h"

uint64_t mr_value_hash(uint64_t hash, const void *data, size_t size) {
    const unsigned char *bytes = data;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 0x9fb21c651e98df25u;
        hash ^= hash >> 29;
    }
    for (; size; size--, bytes++) hash = (hash ^ *bytes) * 1099511628211u;
    return hash ^ hash >> 32;
}

size_t mr_value_view_bytes(const mr_tensor *view) {
    return (size_t)view->numel * mr_dtype_size(view->dtype);
}

/* Pieces that lie densely, in order. */
static void each_piece(const mr_tensor *view, void (*see)(void *context, char *piece, size_t size),
                       void *context) {
    size_t size = mr_dtype_size(view->dtype);
    char *data = mr_tensor_data(view);
    if (view->contiguous) {
        see(context, data, mr_value_view_bytes(view));
        return;
    }
    int64_t at[MR_MAX_DIMS] = {0};
    for (int64_t n = view->numel; n > 0; n--) {
        see(context, data, size);
        for (int d = view->ndim - 1; d >= 0; d--) {
            int64_t stride = view->stride[d] * (int64_t)size;
            data += stride;
            if (++at[d] < view->shape[d]) break;
            data -= stride * view->shape[d];
            at[d] = 0;
        }
    }
}

static void hash_piece(void *context, char *piece, size_t size) {
    uint64_t *hash = context;
    *hash = mr_value_hash(*hash, piece, size);
}

uint64_t mr_value_hash_view(const mr_tensor *view) {
    uint64_t hash = 0;
    each_piece(view, hash_piece, &hash);
    return hash;
}

static void gather_piece(void *context, char *piece, size_t size) {
    char **out = context;
    memcpy(*out, piece, size);
    *out += size;
}

void mr_value_gather(const mr_tensor *view, char *out) {
    each_piece(view, gather_piece, &out);
}

static void scatter_piece(void *context, char *piece, size_t size) {
    const char **from = context;
    memcpy(piece, *from, size);
    *from += size;
}

void mr_value_scatter(const mr_tensor *view, const char *from) {
    each_piece(view, scatter_piece, (void *)&from);
}
