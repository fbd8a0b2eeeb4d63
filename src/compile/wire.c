/* The fields of a message: see wire.h. This file is a part of both programs. */
#include "compile/wire.h"

#include <string.h>

void mr_wire_put(mr_buffer *out, const void *data, size_t size) {
    uint64_t length = size;
    mr_buffer_add(out, (const char *)&length, sizeof length);
    if (size) mr_buffer_add(out, data, size);
    mr_buffer_add(out, "", 1);
}

void mr_wire_put_text(mr_buffer *out, const char *text) {
    mr_wire_put(out, text, strlen(text));
}

void mr_wire_put_number(mr_buffer *out, int64_t number) {
    mr_wire_put(out, &number, sizeof number);
}

const char *mr_wire_take(mr_wire *wire, size_t *out_size) {
    uint64_t length = 0;
    size_t left = (size_t)(wire->end - wire->at);
    if (out_size) *out_size = 0;
    if (left > sizeof length) memcpy(&length, wire->at, sizeof length);
    if (left <= sizeof length || length > left - sizeof length - 1 ||
        wire->at[sizeof length + length] != '\0')
        wire->failed = true;
    if (wire->failed) return "";
    const char *field = wire->at + sizeof length;
    wire->at = field + length + 1;
    if (out_size) *out_size = (size_t)length;
    return field;
}

int64_t mr_wire_take_number(mr_wire *wire) {
    size_t size;
    int64_t number = 0;
    const char *field = mr_wire_take(wire, &size);
    if (size != sizeof number) wire->failed = true;
    else memcpy(&number, field, sizeof number);
    return wire->failed ? 0 : number;
}
