/* Texts of scripts, cut and escaped: see text.h. One table of cases serves people, keys and JSON. */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

typedef enum { FOR_PEOPLE, QUOTED, JSON } style;

/* The length of the character at `s`, and which it is; 0: that byte is no UTF-8. */
static size_t decode(const char *s, uint32_t *out_code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)s;
    size_t size = byte[0] < 0x80             ? 1
                  : (byte[0] & 0xe0) == 0xc0 ? 2
                  : (byte[0] & 0xf0) == 0xe0 ? 3
                  : (byte[0] & 0xf8) == 0xf0 ? 4
                                             : 0;
    uint32_t code = size == 1 ? byte[0] : byte[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((byte[i] & 0xc0) != 0x80) return 0; /* also at the text's end */
        code = code << 6 | (byte[i] & 0x3f);
    }
    if (!size || code < least[size] || code > 0x10ffff || (code & 0xfffff800) == 0xd800) return 0;
    *out_code = code;
    return size;
}

/* Controls, and the separators that some readers take for the end of a line. */
static bool is_control(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
}

static void put_control(mr_buffer *out, uint32_t code, style how) {
    const char *letter = code == '\n' ? "\\n" : code == '\r' ? "\\r" : code == '\t' ? "\\t" : NULL;
    if (letter) mr_buffer_puts(out, letter);
    else if (how == JSON) mr_buffer_printf(out, "\\u%04x", (unsigned)code);
    else mr_buffer_printf(out, code < 0x80 ? "\\x%02x" : "\\u{%x}", (unsigned)code);
}

static void put(mr_buffer *out, const char *text, style how) {
    uint32_t code = 0;
    while (*text) {
        size_t size = decode(text, &code);
        if (size == 0 && how == JSON) mr_buffer_puts(out, "\xef\xbf\xbd");
        else if (size == 0) mr_buffer_printf(out, "\\x%02x", (unsigned)(unsigned char)*text);
        else if (is_control(code)) put_control(out, code, how);
        else if (how != FOR_PEOPLE && (code == '"' || code == '\\'))
            mr_buffer_printf(out, "\\%c", (int)code);
        else mr_buffer_add(out, text, size);
        text += size ? size : 1;
    }
}

void mr_text_put(mr_buffer *out, const char *text) {
    put(out, text, FOR_PEOPLE);
}

int mr_text_width(const char *text) {
    int width = 0;
    mr_buffer shown = {0};
    mr_text_put(&shown, text);
    for (size_t i = 0; i < shown.size; i++) width += ((unsigned char)shown.data[i] & 0xc0) != 0x80;
    mr_buffer_free(&shown);
    return width;
}

static bool needs_quotes(const char *text) {
    uint32_t code = 0;
    if (!*text) return true;
    while (*text) {
        size_t size = decode(text, &code);
        if (!size || is_control(code) || code == ' ' || code == '"' || code == '\\') return true;
        text += size;
    }
    return false;
}

void mr_text_put_value(mr_buffer *out, const char *text) {
    if (!needs_quotes(text)) {
        mr_buffer_puts(out, text);
        return;
    }
    mr_buffer_puts(out, "\"");
    put(out, text, QUOTED);
    mr_buffer_puts(out, "\"");
}

void mr_text_put_json(mr_buffer *out, const char *text) {
    mr_buffer_puts(out, "\"");
    put(out, text, JSON);
    mr_buffer_puts(out, "\"");
}

/* ---- cutting */

static bool continues(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* `out` holds the beginning of a longer text, `size` - 1 bytes. */
static void end_cut(char *out, size_t size) {
    size_t end = size - 4, back = 0;
    while (back < 3 && continues(out[end - back])) back++; /* the first byte that goes is in here */
    if (!continues(out[end - back])) end -= back;
    memcpy(out + end, "...", 4);
}

void mr_text_copy(char *out, size_t size, const char *text) {
    size_t length = strlen(text);
    memcpy(out, text, length < size ? length + 1 : size - 1);
    if (length >= size) end_cut(out, size);
}

void mr_text_copy_end(char *out, size_t size, const char *text) {
    size_t length = strlen(text), skip = 0;
    if (length >= size) {
        skip = length - (size - 4);
        for (int i = 0; i < 3 && continues(text[skip]); i++) skip++;
        memcpy(out, "...", 3);
        out += 3;
    }
    memcpy(out, text + skip, length - skip + 1);
}

void mr_text_formatv(char *out, size_t size, const char *format, va_list args) {
    if (mr_number_formatv(out, size, format, args) >= (int)size) end_cut(out, size);
}

void mr_text_format(char *out, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    mr_text_formatv(out, size, format, args);
    va_end(args);
}
