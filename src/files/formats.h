/* Internal to src/files: the formats, and the code that they share. */
#ifndef MR_FILES_FORMATS_H
#define MR_FILES_FORMATS_H

#include "files/files.h"

/* Reads the header of an open file, and fills in `tensors` and `notes`. */
mr_status mr_npy_read(mr_tensor_file *file);
mr_status mr_safetensors_read(mr_tensor_file *file);

mr_status mr_npy_can_write(const mr_tensor *t);
mr_status mr_npy_write(FILE *file, const mr_tensor *t);
mr_status mr_safetensors_can_write(const mr_named_tensor *tensors, size_t count,
                                   const mr_file_note *notes, size_t note_count);
mr_status mr_safetensors_write(FILE *file, const mr_named_tensor *tensors, size_t count,
                               const mr_file_note *notes, size_t note_count);

/* ---- what a dtype is called in files (names.c) */

typedef struct {
    mr_dtype dtype;
    char numpy;         /* NumPy's letter for the kind, as in "<f4"; 0: NumPy has no such dtype */
    uint8_t size;       /* bytes an element */
    const char *tagged; /* in .safetensors: "F32" */
} mr_file_dtype;

const mr_file_dtype *mr_file_dtype_of(mr_dtype dtype); /* never NULL */
const mr_file_dtype *mr_file_dtype_numpy(char kind, uint64_t size);
const mr_file_dtype *mr_file_dtype_tagged(const char *tag);

/* ---- parts of a file (parts.c) */

/* `what` completes "it ends in the middle of ...". */
mr_status mr_file_take(mr_tensor_file *file, uint64_t offset, uint64_t size, const char *what,
                       void *to);
/* An error about the contents: "`x.npy`: " and the text. */
mr_status mr_file_bad(const mr_tensor_file *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Fills in `bytes`, of dtype and shape; false: they do not fit into 63 bits, or are more elements than a tensor can
 * have. */
bool mr_file_measure(mr_file_tensor *tensor);
/* Writes all elements in C's order, little-endian. A failure sets the error flag of the file. */
void mr_elements_write(FILE *file, const mr_tensor *t);
/* In place, `count` elements of `size` bytes. */
void mr_elements_swap(void *elements, size_t size, uint64_t count);

#endif
