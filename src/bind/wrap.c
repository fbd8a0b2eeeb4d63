/* Wrapping: see wrap.h. Colours (escape sequences) and all but the first byte of a character take no room. */
#include "bind/wrap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/output.h"

#define INDENT "    "

/* 0: it is no terminal, or one that does not say. */
static size_t width_of(FILE *file) {
    struct winsize window;
    if (!isatty(fileno(file))) return 0;
    if (ioctl(fileno(file), TIOCGWINSZ, &window) != 0 || window.ws_col < 20) return 0;
    return window.ws_col;
}

/* Up to the next blank or end of line; *out_columns is what it takes. */
static size_t word_length(const char *text, size_t size, size_t *out_columns) {
    bool in_escape = false;
    size_t at = 0;
    *out_columns = 0;
    for (; at < size && text[at] != ' ' && text[at] != '\n'; at++) {
        if (text[at] == '\033') in_escape = true;
        else if (in_escape) in_escape = text[at] != 'm';
        else if (((unsigned char)text[at] & 0xc0) != 0x80) ++*out_columns;
    }
    return at;
}

static void wrap(mr_buffer *out, const char *text, size_t size, size_t width) {
    size_t column = 0;
    for (size_t at = 0; at < size;) {
        size_t blanks = 0, columns;
        while (at + blanks < size && text[at + blanks] == ' ') blanks++;
        size_t length = word_length(text + at + blanks, size - at - blanks, &columns);
        bool is_behind_word = column > strlen(INDENT);
        if (is_behind_word && columns && column + blanks + columns > width) {
            mr_buffer_puts(out, "\n" INDENT);
            column = strlen(INDENT);
        } else {
            mr_buffer_add(out, text + at, blanks);
            column += blanks;
        }
        at += blanks;
        mr_buffer_add(out, text + at, length);
        column += columns;
        at += length;
        if (at == size || text[at] != '\n') continue;
        mr_buffer_add(out, "\n", 1);
        column = 0;
        at++;
    }
}

void mr_write_wrapped(FILE *file, const char *text, size_t size) {
    size_t width = width_of(file);
    mr_buffer out = {0};
    if (width) wrap(&out, text, size, width);
    bool is_wrapped = width && !out.failed && out.data;
    if (is_wrapped) mr_output_write(file, out.data, out.size);
    else mr_output_write(file, text, size);
    mr_buffer_free(&out);
}
