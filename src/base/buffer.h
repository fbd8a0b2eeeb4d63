/* A string that grows. If memory runs out, `failed` is set and further additions do nothing; check it once
 * at the end. */
#ifndef MR_BASE_BUFFER_H
#define MR_BASE_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *data; /* NUL-terminated after the first addition; NULL before that */
    size_t size;
    size_t capacity;
    bool failed;
} mr_buffer;

void mr_buffer_add(mr_buffer *buffer, const char *data, size_t size);
/* Makes room for `size` bytes after the present ones, and for a NUL. */
void mr_buffer_reserve(mr_buffer *buffer, size_t size);
void mr_buffer_puts(mr_buffer *buffer, const char *text);
void mr_buffer_printf(mr_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void mr_buffer_printfv(mr_buffer *buffer, const char *format, va_list args);
void mr_buffer_free(mr_buffer *buffer); /* leaves it empty and usable */

#endif
