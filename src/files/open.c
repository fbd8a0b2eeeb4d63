/* A file of tensors, whichever format: opening, reading the elements, saving. */
#include "files/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace.h"

static bool ends_in(const char *path, const char *ending) {
    size_t length = strlen(path), part = strlen(ending);
    return length > part && strcasecmp(path + length - part, ending) == 0;
}

bool mr_tensor_file_is_single(const char *path) {
    return ends_in(path, ".npy");
}

mr_status mr_tensor_file_check_path(const char *path) {
    if (ends_in(path, ".npy") || ends_in(path, ".safetensors")) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "`%.300s`: expected a name that ends with .npy or .safetensors", path);
}

/* ------------------------------------------------------------------------- reading */

/* Without O_NONBLOCK, opening a pipe would wait for a writer. */
static mr_status open_regular(mr_tensor_file *f) {
    struct stat facts;
    int fd = open(f->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &facts) != 0 || !(f->file = fdopen(fd, "rb"))) {
        mr_status status =
            mr_fail(MR_CODE_INVALID_ARGUMENT, "cannot open `%.300s`: %s", f->path, strerror(errno));
        if (fd >= 0) close(fd);
        return status;
    }
    if (!S_ISREG(facts.st_mode))
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "cannot read `%.300s`: it is not a regular file",
                       f->path);
    f->size = (uint64_t)facts.st_size;
    return MR_OK;
}

mr_status mr_tensor_file_open(const char *path, mr_tensor_file *out_file) {
    *out_file = (mr_tensor_file){.path = path, .is_single = mr_tensor_file_is_single(path)};
    MR_TRY(mr_tensor_file_check_path(path));
    mr_status status = open_regular(out_file);
    if (!status)
        status = out_file->is_single ? mr_npy_read(out_file) : mr_safetensors_read(out_file);
    if (status) mr_tensor_file_close(out_file);
    return status;
}

void mr_tensor_file_close(mr_tensor_file *file) {
    if (file->file) fclose(file->file);
    for (size_t i = 0; i < file->tensors.count; i++) free(file->tensors.items[i].name);
    for (size_t i = 0; i < file->notes.count; i++) {
        free(file->notes.items[i].key);
        free(file->notes.items[i].value);
    }
    mr_vec_free(&file->tensors);
    mr_vec_free(&file->notes);
    *file = (mr_tensor_file){0};
}

mr_status mr_tensor_file_read(mr_tensor_file *file, const mr_file_tensor *tensor, void *to) {
    MR_TRY(mr_file_take(file, tensor->offset, tensor->bytes, "the elements", to));
    size_t size = mr_dtype_size(tensor->dtype);
    if (tensor->swapped) mr_elements_swap(to, size, tensor->bytes / size);
    if (tensor->dtype == MR_BOOL) /* everything else in the program relies on 0 and 1 */
        for (uint64_t i = 0; i < tensor->bytes; i++)
            ((uint8_t *)to)[i] = ((const uint8_t *)to)[i] != 0;
    return MR_OK;
}

/* ------------------------------------------------------------------------- saving */

typedef struct {
    const mr_named_tensor *tensors;
    size_t count;
    const mr_file_note *notes;
    size_t note_count;
} job;

static mr_status write_npy(void *context, FILE *file) {
    const job *j = context;
    return mr_npy_write(file, j->tensors->tensor);
}

static mr_status write_safetensors(void *context, FILE *file) {
    const job *j = context;
    return mr_safetensors_write(file, j->tensors, j->count, j->notes, j->note_count);
}

mr_status mr_tensor_file_can_save(const char *path, const mr_named_tensor *tensors, size_t count,
                                  const mr_file_note *notes, size_t note_count) {
    MR_TRY(mr_tensor_file_check_path(path));
    if (mr_tensor_file_is_single(path)) return mr_npy_can_write(tensors->tensor);
    return mr_safetensors_can_write(tensors, count, notes, note_count);
}

mr_status mr_tensor_file_save(const char *path, const mr_named_tensor *tensors, size_t count,
                              const mr_file_note *notes, size_t note_count) {
    MR_TRY(mr_tensor_file_can_save(path, tensors, count, notes, note_count));
    job j = {tensors, count, notes, note_count};
    return mr_replace_file(path, mr_tensor_file_is_single(path) ? write_npy : write_safetensors,
                           &j);
}
