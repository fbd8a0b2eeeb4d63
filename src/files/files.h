/* Tensors in files: NumPy's .npy, which holds one array, and .safetensors, which holds many by name.
 *
 * A file may be anything: it is from the network, cut off, or made to do harm. So its header is checked as a whole
 * before memory is allocated for a tensor, and each size in it is compared with the file's. Reading runs no code of the
 * file.
 *
 * Easiest to break: sums of offsets. All of them are compared with the size of the file, by subtraction. */
#ifndef MR_FILES_FILES_H
#define MR_FILES_FILES_H

#include <stdio.h>

#include "base/vec.h"
#include "tensor/tensor.h"

/* One tensor of a file, as the header describes it. */
typedef struct {
    char *name; /* UTF-8; NULL in .npy */
    mr_dtype dtype;
    int ndim;
    int64_t shape[MR_MAX_DIMS];
    /* Fortran's order: the elements are stored as those of the transposed shape in C's order */
    bool first_dim_is_fastest;
    bool swapped;           /* the bytes of an element are in the other order than this machine's */
    uint64_t offset, bytes; /* of the elements, from the begin of the file */
} mr_file_tensor;

typedef struct {
    char *key, *value;
} mr_file_note;

typedef struct {
    const char *path; /* the caller's */
    FILE *file;
    uint64_t size;                  /* of the file */
    bool is_single;                 /* .npy */
    MR_VEC(mr_file_tensor) tensors; /* in the order of their offsets */
    MR_VEC(mr_file_note) notes;     /* __metadata__ of .safetensors */
} mr_tensor_file;

/* NULL, or an error: no format has the ending of the path. */
mr_status mr_tensor_file_check_path(const char *path);

/* Opens a file and reads its header; the ending of the path decides the format. After a failure *out_file is empty.
 * Otherwise mr_tensor_file_close gives back what it holds; it may be called twice. */
mr_status mr_tensor_file_open(const char *path, mr_tensor_file *out_file);
void mr_tensor_file_close(mr_tensor_file *file);

/* The elements of one of its tensors, in this machine's byte order, to `bytes` bytes of memory. */
mr_status mr_tensor_file_read(mr_tensor_file *file, const mr_file_tensor *tensor, void *to);

/* Host tensors to write, and their names. */
typedef struct {
    const char *name; /* UTF-8, without NUL; NULL in .npy */
    const mr_tensor *tensor;
} mr_named_tensor;

/* NULL, or the reason why these tensors cannot be saved under this path: its ending, the dtypes, the names. */
mr_status mr_tensor_file_can_save(const char *path, const mr_named_tensor *tensors, size_t count,
                                  const mr_file_note *notes, size_t note_count);
/* Writes them, in C's order and little-endian. The file appears complete or not at all. */
mr_status mr_tensor_file_save(const char *path, const mr_named_tensor *tensors, size_t count,
                              const mr_file_note *notes, size_t note_count);

/* Whether a path has the ending of the format that holds one tensor without a name. */
bool mr_tensor_file_is_single(const char *path);

#endif
