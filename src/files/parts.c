/* Bytes of a file, and elements as bytes. */
#include "files/formats.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { HOST_IS_BIG = 1 };
#else
enum { HOST_IS_BIG = 0 };
#endif

mr_status mr_file_bad(const mr_tensor_file *file, const char *format, ...) {
    char text[600];
    va_list args;
    va_start(args, format);
    mr_text_formatv(text, sizeof text, format, args);
    va_end(args);
    mr_buffer shown = {0}; /* names of a file can be anything, also commands to a terminal */
    mr_text_put(&shown, text);
    mr_status status = mr_fail(MR_CODE_INVALID_ARGUMENT, "`%.300s`: %s", file->path,
                               shown.failed ? "it is damaged" : shown.data);
    mr_buffer_free(&shown);
    return status;
}

mr_status mr_file_take(mr_tensor_file *file, uint64_t offset, uint64_t size, const char *what,
                       void *to) {
    if (offset <= file->size && size <= file->size - offset) {
        if (fseeko(file->file, (off_t)offset, SEEK_SET) == 0 &&
            fread(to, 1, (size_t)size, file->file) == size)
            return MR_OK;
        if (ferror(file->file)) return mr_file_bad(file, "it could not be read");
    }
    return mr_file_bad(file, "the file ends in the middle of %s: it has %" PRIu64 " bytes", what,
                       file->size);
}

bool mr_file_measure(mr_file_tensor *tensor) {
    int64_t numel;
    mr_status status = mr_shape_numel(tensor->ndim, tensor->shape, &numel);
    mr_error_destroy(status);
    if (status || numel > MR_MAX_ELEMENTS) return false;
    tensor->bytes = (uint64_t)numel * mr_dtype_size(tensor->dtype);
    return true;
}

/* ------------------------------------------------------------------------- elements */

static void swap_element(unsigned char *element, size_t size) {
    for (size_t i = 0; i < size / 2; i++) {
        unsigned char byte = element[i];
        element[i] = element[size - 1 - i];
        element[size - 1 - i] = byte;
    }
}

void mr_elements_swap(void *elements, size_t size, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) swap_element((unsigned char *)elements + i * size, size);
}

/* Steps `at` to the next position in C's order; returns how far that is from the one before, in elements. */
static int64_t step(const mr_tensor *t, int64_t *at) {
    int64_t moved = 0;
    for (int d = t->ndim - 1; d >= 0; d--) {
        moved += t->stride[d];
        if (++at[d] < t->shape[d]) break;
        moved -= t->stride[d] * t->shape[d];
        at[d] = 0;
    }
    return moved;
}

void mr_elements_write(FILE *file, const mr_tensor *t) {
    size_t size = mr_dtype_size(t->dtype);
    const char *from = mr_tensor_data(t);
    if (t->contiguous && !HOST_IS_BIG) {
        fwrite(from, size, (size_t)t->numel, file);
        return;
    }
    char block[8192];
    size_t used = 0;
    int64_t at[MR_MAX_DIMS] = {0};
    for (int64_t n = t->numel; n > 0; n--) {
        memcpy(block + used, from, size);
        if (HOST_IS_BIG) swap_element((unsigned char *)block + used, size);
        used += size;
        if (n > 1) from += step(t, at) * (int64_t)size;
        if (used < sizeof block && n > 1) continue;
        if (fwrite(block, 1, used, file) != used) return;
        used = 0;
    }
}
