/* The text of PTX: see ptx.h. Both compilers write one directive a line, which is all that this file relies on. */
#include "compile/text/ptx.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/internal.h"

static const char *line_end(const char *at, const char *end) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline + 1 : end;
}

static bool starts_with(const char *at, const char *end, const char *word) {
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
}

static const char *skip_blanks(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    return at;
}

static const char *find_in_line(const char *at, const char *end, const char *word) {
    return memmem(at, (size_t)(end - at), word, strlen(word));
}

static void replace(mr_buffer *ptx, mr_buffer *by) {
    mr_buffer_puts(by, ""); /* a text, even if nothing is left */
    if (by->failed) {
        mr_buffer_free(by);
        ptx->failed = true;
        return;
    }
    mr_buffer_free(ptx);
    *ptx = *by;
}

/* ---------------------------------------------------------------- entries */

/* `.visible .const .align 8 .u64 PREFIX3 = _Z3fooi;`, or with generic(_Z3fooi) */
static bool take_entry(const char *line, const char *end, const char *prefix, char **entries,
                       int count) {
    const char *at = find_in_line(line, end, prefix);
    if (!at) return false;
    int index = atoi(at + strlen(prefix));
    const char *symbol = find_in_line(at, end, "= ");
    if (!symbol || index >= count) return true; /* a comment about it */
    symbol += 2;
    if (starts_with(symbol, end, "generic(")) symbol += strlen("generic(");
    size_t length = strcspn(symbol, ";) \n");
    free(entries[index]);
    entries[index] = strndup(symbol, length);
    return true;
}

/* The place after the last line of a declaration (`.visible .entry NAME ( ... ) ;`); NULL: not one. */
static const char *end_of_declaration(const char *line, const char *end) {
    if (!find_in_line(line, line_end(line, end), ".entry ")) return NULL;
    for (const char *at = line; at < end; at++) {
        if (*at == '{') return NULL;
        if (*at == ';') return line_end(at, end);
    }
    return NULL;
}

void mr_ptx_take_entries(mr_buffer *ptx, const char *prefix, char **entries, int count) {
    mr_buffer out = {0};
    const char *end = ptx->data + ptx->size;
    for (const char *line = ptx->data; line < end;) {
        const char *next = line_end(line, end), *declared = end_of_declaration(line, end);
        if (declared) next = declared;
        else if (!take_entry(line, next, prefix, entries, count))
            mr_buffer_add(&out, line, (size_t)(next - line));
        line = next;
    }
    replace(ptx, &out);
}

bool mr_ptx_has_entry(const char *ptx, const char *symbol) {
    size_t length = strlen(symbol);
    for (const char *at = ptx; (at = strstr(at, ".entry ")) != NULL;) {
        at += strlen(".entry ");
        if (strncmp(at, symbol, length) == 0 &&
            (at[length] == '(' || isspace((unsigned char)at[length])))
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------- files and lines */

/* `.file N "PATH"`: the number, or -1. Some releases write a folder in front: "FOLDER" "NAME". */
static int read_file(const char *line, const char *end, const char **out_path, size_t *out_size) {
    int number = 0;
    line = skip_blanks(line, end);
    if (!starts_with(line, end, ".file")) return -1;
    line = skip_blanks(line + strlen(".file"), end);
    while (line < end && isdigit((unsigned char)*line)) number = number * 10 + (*line++ - '0');
    line = skip_blanks(line, end);
    const char *last = memrchr(line, '"', (size_t)(end - line));
    if (line == end || *line != '"' || last == line) return -1;
    *out_path = line + 1;
    *out_size = (size_t)(last - line - 1);
    return number;
}

/* A file's name as PTX has it. */
static void put_quoted(mr_buffer *out, const char *file) {
    for (; *file; file++)
        mr_buffer_printf(out, *file == '"' || *file == '\\' ? "\\%c" : "%c",
                         *file == '\n' ? ' ' : *file);
}

/* Is `path` the file, perhaps with a folder in front? */
static bool is_path_of(const char *path, size_t size, const mr_buffer *quoted) {
    if (quoted->size > size || memcmp(path + size - quoted->size, quoted->data, quoted->size) != 0)
        return false;
    return size == quoted->size || path[size - quoted->size - 1] == '/';
}

void mr_ptx_name_file(mr_buffer *ptx, const char *file) {
    static const char root[] = MR_COMPILE_ROOT "/";
    mr_buffer out = {0}, quoted = {0};
    const char *end = ptx->data + ptx->size;
    put_quoted(&quoted, file);
    for (const char *line = ptx->data; line < end;) {
        const char *next = line_end(line, end), *path;
        size_t size;
        int number = read_file(line, next, &path, &size);
        if (number >= 0 && !quoted.failed && is_path_of(path, size, &quoted))
            mr_buffer_printf(&out, "\t.file\t%d \"%s\"\n", number, quoted.data);
        else if (number >= 0 && starts_with(path, next, root))
            mr_buffer_printf(&out, "\t.file\t%d \"%.*s\"\n", number, (int)(size - strlen(root)),
                             path + strlen(root));
        else if (!starts_with(skip_blanks(line, next), next, ".section\t.debug_loc"))
            mr_buffer_add(&out, line, (size_t)(next - line));
        line = next;
    }
    mr_buffer_free(&quoted);
    replace(ptx, &out);
}

/* Copies "N LINE", with the line moved if N is `number`; returns what follows. */
static const char *move_place(mr_buffer *out, const char *at, const char *end, int number,
                              int lines) {
    char *after;
    (void)end;
    long file = strtol(at, &after, 10);
    if (after == at) return at;
    long line = strtol(after, &after, 10);
    if (file == number && line > 0) line += lines;
    mr_buffer_printf(out, "%ld %ld", file, line);
    return after;
}

/* `.loc N LINE COLUMN` and, for a call that was inlined, `, inlined_at N LINE COLUMN`. */
static void put_moved(mr_buffer *out, const char *line, const char *end, int number, int lines) {
    static const char inlined[] = "inlined_at ";
    const char *at = skip_blanks(line, end);
    if (!starts_with(at, end, ".loc")) {
        mr_buffer_add(out, line, (size_t)(end - line));
        return;
    }
    at = skip_blanks(at + strlen(".loc"), end);
    mr_buffer_add(out, line, (size_t)(at - line));
    at = move_place(out, at, end, number, lines);
    const char *call = find_in_line(at, end, inlined);
    if (call) {
        call += strlen(inlined);
        mr_buffer_add(out, at, (size_t)(call - at));
        at = move_place(out, call, end, number, lines);
    }
    mr_buffer_add(out, at, (size_t)(end - at));
}

/* The number of a file; -1: the PTX does not name it. */
static int find_file(const mr_buffer *ptx, const mr_buffer *quoted) {
    const char *end = ptx->data + ptx->size, *path;
    size_t size;
    for (const char *line = ptx->data; line < end; line = line_end(line, end)) {
        int number = read_file(line, line_end(line, end), &path, &size);
        if (number >= 0 && size == quoted->size && memcmp(path, quoted->data, size) == 0)
            return number;
    }
    return -1;
}

void mr_ptx_move(mr_buffer *ptx, const char *old_file, const char *new_file, int lines) {
    mr_buffer out = {0}, old_name = {0}, new_name = {0};
    const char *end = ptx->data + ptx->size, *path;
    size_t size;
    put_quoted(&old_name, old_file);
    put_quoted(&new_name, new_file);
    int moved = old_name.failed || new_name.failed ? -1 : find_file(ptx, &old_name);
    for (const char *line = ptx->data; moved >= 0 && line < end;) {
        const char *next = line_end(line, end);
        if (read_file(line, next, &path, &size) == moved)
            mr_buffer_printf(&out, "\t.file\t%d \"%s\"\n", moved, new_name.data);
        else put_moved(&out, line, next, moved, lines);
        line = next;
    }
    mr_buffer_free(&old_name);
    mr_buffer_free(&new_name);
    if (moved >= 0) replace(ptx, &out);
}
