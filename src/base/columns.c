/* Columns of characters: see columns.h. */
#include "base/columns.h"

#include <stdbool.h>
#include <stdint.h>

static bool is_in(const uint32_t (*ranges)[2], size_t count, uint32_t code) {
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
    return false;
}

#define IS_IN(ranges, code) is_in(ranges, sizeof(ranges) / sizeof *(ranges), code)

size_t mr_columns_next(const char *text, size_t size, int *out_columns) {
    static const uint32_t wide[][2] = {
        {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xac00, 0xd7a3},
        {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
        {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
    };
    static const uint32_t narrow[][2] = {
        {0x300, 0x36f}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};
    unsigned char first = (unsigned char)*text;
    size_t length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    *out_columns = 1;
    if (length == 1 || length > size) return 1;
    uint32_t code = first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80) return 1;
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    if (IS_IN(wide, code)) *out_columns = 2;
    if (IS_IN(narrow, code)) *out_columns = 0;
    return length;
}

size_t mr_columns_of(const char *text, size_t size) {
    bool in_code = false;
    size_t sum = 0;
    for (size_t at = 0; at < size;) {
        int columns;
        char byte = text[at];
        at += mr_columns_next(text + at, size - at, &columns);
        if (byte == '\033') in_code = true;
        else if (in_code) in_code = byte != 'm';
        else sum += (size_t)columns;
    }
    return sum;
}
