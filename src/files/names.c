/* The names of dtypes in files. */
#include "files/formats.h"

#include <string.h>

/* For each dtype of MR_DTYPE_LIST: NumPy's letter, bytes, and the tag in .safetensors. */
#define NAMES_BOOL 'b', 1, "BOOL"
#define NAMES_U8   'u', 1, "U8"
#define NAMES_I32  'i', 4, "I32"
#define NAMES_I64  'i', 8, "I64"
#define NAMES_F32  'f', 4, "F32"
#define NAMES_F64  'f', 8, "F64"
#define NAMES_F16  'f', 2, "F16"
#define NAMES_BF16 0, 2, "BF16"

static const mr_file_dtype dtypes[] = {
#define X(name, ...) {MR_##name, NAMES_##name},
    MR_DTYPE_LIST(X)
#undef X
};

const mr_file_dtype *mr_file_dtype_of(mr_dtype dtype) {
    return &dtypes[dtype];
}

const mr_file_dtype *mr_file_dtype_numpy(char kind, uint64_t size) {
    for (int i = 0; i < MR_DTYPE_COUNT; i++)
        if (dtypes[i].numpy && dtypes[i].numpy == kind && dtypes[i].size == size) return &dtypes[i];
    return NULL;
}

const mr_file_dtype *mr_file_dtype_tagged(const char *tag) {
    for (int i = 0; i < MR_DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].tagged, tag) == 0) return &dtypes[i];
    return NULL;
}
