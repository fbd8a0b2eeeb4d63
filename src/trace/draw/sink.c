/* A buffered output: see sink.h. Texts of scripts leave only through the functions at the end. */
#include "trace/draw/sink.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/text.h"

bool mr_sink_flush(mr_sink *sink) {
    size_t size = sink->used;
    sink->used = 0;
    if (!sink->failed && size && fwrite(sink->data, 1, size, sink->file) != size)
        sink->failed = true;
    if (!sink->failed && fflush(sink->file) != 0) sink->failed = true;
    return !sink->failed;
}

void mr_sink_overflow(mr_sink *sink, const char *bytes, size_t size) {
    if (!sink->failed && fwrite(sink->data, 1, sink->used, sink->file) != sink->used)
        sink->failed = true;
    sink->used = 0;
    if (size <= MR_SINK_SIZE) {
        mr_sink_bytes(sink, bytes, size);
        return;
    }
    if (!sink->failed && fwrite(bytes, 1, size, sink->file) != size) sink->failed = true;
}

void mr_sink_format(mr_sink *sink, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    mr_text_formatv(text, sizeof text, format, args);
    va_end(args);
    mr_sink_text(sink, text);
}

/* ---- numbers */

/* The digits of `value`, at least `least` of them, so that they end before `end`; returns the first. */
static char *digits_before(char *end, uint64_t value, int least) {
    for (; value || least > 0; value /= 10, least--) *--end = (char)('0' + value % 10);
    return end;
}

void mr_sink_number(mr_sink *sink, uint64_t value) {
    char text[24], *end = text + sizeof text, *first = digits_before(end, value, 1);
    mr_sink_bytes(sink, first, (size_t)(end - first));
}

/* `value` / 10^decimals, without zeros at its end. */
static void put_decimal(mr_sink *sink, uint64_t value, uint64_t unit, int decimals) {
    char text[32], *end = text + sizeof text, *first = end;
    uint64_t part = value % unit;
    if (part) {
        for (; part % 10 == 0; part /= 10) decimals--;
        first = digits_before(first, part, decimals);
        *--first = '.';
    }
    first = digits_before(first, value / unit, 1);
    mr_sink_bytes(sink, first, (size_t)(end - first));
}

void mr_sink_us(mr_sink *sink, uint64_t nanoseconds) {
    put_decimal(sink, nanoseconds, 1000, 3);
}

void mr_sink_ms(mr_sink *sink, uint64_t nanoseconds) {
    put_decimal(sink, nanoseconds, 1000000, 6);
}

/* ---- texts */

/* The length of the part of `text` that every format takes as it is. */
static size_t plain_part(const char *text) {
    size_t n = 0;
    for (;; n++) {
        unsigned char c = (unsigned char)text[n];
        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' ||
            c == ',')
            return n;
    }
}

/* Bytes that stand for something else in a format: the byte, and what to write for it. */
typedef struct {
    char byte;
    const char *text;
} replacement;

static void put_replaced(mr_sink *sink, const mr_buffer *text, const replacement *list) {
    if (text->failed) sink->failed = true;
    for (size_t i = 0; i < text->size; i++) {
        const replacement *r = list;
        while (r->byte && r->byte != text->data[i]) r++;
        if (r->byte) mr_sink_text(sink, r->text);
        else mr_sink_bytes(sink, &text->data[i], 1);
    }
}

void mr_sink_json(mr_sink *sink, const char *text) {
    static const replacement list[] = {{'<', "\\u003c"}, {'>', "\\u003e"}, {'&', "\\u0026"}, {0}};
    size_t plain = plain_part(text);
    mr_buffer json = {0};
    if (text[plain]) {
        mr_text_put_json(&json, text);
        put_replaced(sink, &json, list);
        mr_buffer_free(&json);
        return;
    }
    mr_sink_bytes(sink, "\"", 1);
    mr_sink_bytes(sink, text, plain);
    mr_sink_bytes(sink, "\"", 1);
}

/* A person is shown controls as \n or \x1b. An XML document may not hold them in any form, nor U+FFFE and U+FFFF. */
void mr_sink_xml(mr_sink *sink, const char *text) {
    static const replacement list[] = {{'<', "&lt;"},   {'>', "&gt;"},   {'&', "&amp;"},
                                       {'"', "&quot;"}, {'\'', "&#39;"}, {0}};
    mr_buffer shown = {0};
    mr_text_put(&shown, text);
    for (size_t i = 0; i + 2 < shown.size; i++) {
        char *c = shown.data + i;
        if (c[0] == '\xef' && c[1] == '\xbf' && (c[2] == '\xbe' || c[2] == '\xbf')) c[2] = '\xbd';
    }
    put_replaced(sink, &shown, list);
    mr_buffer_free(&shown);
}

void mr_sink_csv(mr_sink *sink, const char *text) {
    size_t plain = plain_part(text);
    if (!text[plain]) {
        mr_sink_bytes(sink, text, plain);
        return;
    }
    static const replacement list[] = {{'"', "\"\""}, {0}};
    mr_buffer shown = {0};
    mr_text_put(&shown, text);
    mr_sink_bytes(sink, "\"", 1);
    put_replaced(sink, &shown, list);
    mr_sink_bytes(sink, "\"", 1);
    mr_buffer_free(&shown);
}
