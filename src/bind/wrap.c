/* Wrapping: see wrap.h. */
#include "bind/wrap.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/columns.h"
#include "base/output.h"
#include "bind/bind.h"

enum { LEAST_WIDTH = 20, INDENT = 4, TAB = 8 };

int mr_wrap_width(FILE *file) {
    struct winsize window;
    if (!isatty(fileno(file))) return 0;
    if (ioctl(fileno(file), TIOCGWINSZ, &window) != 0 || window.ws_col < LEAST_WIDTH) return 0;
    return window.ws_col;
}

int mr_page_width(void) {
    const char *columns = getenv("COLUMNS");
    long width = mr_wrap_width(stdout);
    if (!width && columns) width = strtol(columns, NULL, 10);
    if (width <= 0) width = 100;
    return width < 40 ? 40 : width > 1000 ? 1000 : (int)width;
}

static void add_blanks(mr_buffer *out, size_t count) {
    while (count--) mr_buffer_add(out, " ", 1);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* The blanks at the beginning of the text, and the column after them. */
static size_t blanks_of(const char *text, size_t size, size_t *column) {
    size_t count = 0;
    for (; count < size && is_blank(text[count]); count++)
        *column = text[count] == '\t' ? (*column / TAB + 1) * TAB : *column + 1;
    return count;
}

static size_t word_of(const char *text, size_t size) {
    size_t count = 0;
    while (count < size && !is_blank(text[count])) count++;
    return count;
}

/* Adds words after `column`; the first one always stays on that line. */
static void add_words(mr_buffer *out, const char *text, size_t size, size_t width, size_t column,
                      size_t rest) {
    bool is_behind_word = false;
    for (size_t at = 0; at < size;) {
        size_t after = column, blanks = blanks_of(text + at, size - at, &after);
        size_t length = word_of(text + at + blanks, size - at - blanks);
        size_t columns = mr_columns_of(text + at + blanks, length);
        if (is_behind_word && columns && after + columns > width) {
            mr_buffer_add(out, "\n", 1);
            add_blanks(out, rest);
            column = rest;
        } else {
            mr_buffer_add(out, text + at, blanks);
            column = after;
        }
        mr_buffer_add(out, text + at + blanks, length);
        column += columns;
        at += blanks + length;
        is_behind_word |= columns > 0;
    }
}

void mr_wrap_words(mr_buffer *out, const char *text, size_t size, int width, int first, int rest) {
    add_blanks(out, (size_t)first);
    add_words(out, text, size, (size_t)width, (size_t)first, (size_t)rest);
}

/* The column of the lines that continue this one, and in *out_columns the width of this one. */
static size_t continuation_of(const char *text, size_t size, size_t width, size_t *out_columns) {
    size_t column = 0, at = blanks_of(text, size, &column),
           rest = column > INDENT ? column : INDENT;
    bool has_columns = false;
    while (at < size) {
        size_t length = word_of(text + at, size - at);
        size_t end = column + mr_columns_of(text + at, length);
        at += length;
        column = end;
        at += blanks_of(text + at, size - at, &column);
        if (at == size || column < end + 2 || column > width / 2) continue;
        rest = column;
        has_columns = true;
    }
    *out_columns = column;
    return has_columns || rest <= width / 2 ? rest : INDENT;
}

void mr_wrap_lines(mr_buffer *out, const char *text, size_t size, int width) {
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at, columns;
        size_t rest = continuation_of(text + at, length, (size_t)width, &columns);
        if (columns <= (size_t)width) mr_buffer_add(out, text + at, length);
        else add_words(out, text + at, length, (size_t)width, 0, rest);
        if (end) mr_buffer_add(out, "\n", 1);
        at += length + (end ? 1 : 0);
    }
}

const char *mr_wrap_for(FILE *file, const char *text, size_t *io_size, mr_buffer *out) {
    int width = mr_wrap_width(file);
    if (width) mr_wrap_lines(out, text, *io_size, width);
    if (!width || out->failed || !out->data) return text;
    *io_size = out->size;
    return out->data;
}

void mr_write_wrapped(FILE *file, const char *text, size_t size) {
    mr_buffer out = {0};
    text = mr_wrap_for(file, text, &size, &out);
    mr_output_write(file, text, size);
    mr_buffer_free(&out);
}

int mr_wrap_call(lua_State *L) {
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    int width = (int)luaL_checkinteger(L, 2);
    int first = (int)luaL_optinteger(L, 3, 0), rest = (int)luaL_optinteger(L, 4, 0);
    mr_buffer *out = mr_push_buffer(L);
    mr_wrap_words(out, text, size, width, first, rest);
    mr_buffer_to_text(L);
    return 1;
}

int mr_wrap_lines_call(lua_State *L) {
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    int width = (int)luaL_checkinteger(L, 2);
    mr_wrap_lines(mr_push_buffer(L), text, size, width);
    mr_buffer_to_text(L);
    return 1;
}
