/* A string that grows: see buffer.h. */
#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static bool reserve(mr_buffer *buffer, size_t more) {
    size_t needed = buffer->size + more + 1;
    if (buffer->failed) return false;
    if (needed <= buffer->capacity) return true;
    size_t capacity = buffer->capacity ? buffer->capacity : 64;
    while (capacity < needed) capacity *= 2;
    char *data = realloc(buffer->data, capacity);
    if (!data) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void mr_buffer_add(mr_buffer *buffer, const char *data, size_t size) {
    if (!reserve(buffer, size)) return;
    if (size) memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
}

void mr_buffer_reserve(mr_buffer *buffer, size_t size) {
    reserve(buffer, size);
}

void mr_buffer_puts(mr_buffer *buffer, const char *text) {
    mr_buffer_add(buffer, text, strlen(text));
}

void mr_buffer_printfv(mr_buffer *buffer, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = mr_number_formatv(NULL, 0, format, again);
    va_end(again);
    if (length < 0 || !reserve(buffer, (size_t)length)) return;
    mr_number_formatv(buffer->data + buffer->size, (size_t)length + 1, format, args);
    buffer->size += (size_t)length;
}

void mr_buffer_printf(mr_buffer *buffer, const char *format, ...) {
    va_list args;
    va_start(args, format);
    mr_buffer_printfv(buffer, format, args);
    va_end(args);
}

void mr_buffer_free(mr_buffer *buffer) {
    free(buffer->data);
    *buffer = (mr_buffer){0};
}
