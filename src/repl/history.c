/* The history file: see history.h. Several prompts may add to it at a time: each writes a line by one call. */
#include "repl/history.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/replace.h"

#define MOST_ENTRIES 1000

static int file = -1;

/* ---- where it is */

static void make_folders(char *path) {
    for (char *c = path + 1; *c; c++) {
        if (*c != '/') continue;
        *c = '\0';
        mkdir(path, 0700);
        *c = '/';
    }
}

static bool find_path(mr_buffer *path) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state == '/') mr_buffer_printf(path, "%s/millrace/history", state);
    else if (home && *home) mr_buffer_printf(path, "%s/.local/state/millrace/history", home);
    else return false;
    return !path->failed;
}

/* ---- its lines */

static void escape(const char *entry, mr_buffer *out) {
    for (; *entry; entry++) {
        if (*entry == '\n') mr_buffer_add(out, "\\n", 2);
        else if (*entry == '\\') mr_buffer_add(out, "\\\\", 2);
        else mr_buffer_add(out, entry, 1);
    }
    mr_buffer_add(out, "\n", 1);
}

static void unescape(char *line) {
    char *to = line;
    for (const char *from = line; *from; from++) {
        bool escaped = *from == '\\' && (from[1] == 'n' || from[1] == '\\');
        if (escaped) from++;
        *to++ = escaped && *from == 'n' ? '\n' : *from;
    }
    *to = '\0';
}

/* The last entries of a text whose lines are entries. */
static char *last_entries(char *text) {
    size_t lines = 0;
    char *at = text + strlen(text);
    while (at > text && lines <= MOST_ENTRIES) lines += *--at == '\n';
    return at > text ? at + 1 : text;
}

static void read_all(mr_buffer *out) {
    char piece[1 << 16];
    ssize_t size;
    while ((size = read(file, piece, sizeof piece)) > 0) mr_buffer_add(out, piece, (size_t)size);
}

static mr_status write_text(void *context, FILE *out) {
    fputs(context, out);
    return MR_OK;
}

/* A file that has grown to twice its size is written anew. A history that cannot be written stays
 * as it is. */
static void shorten(const char *path, char *text) {
    mr_status status = mr_replace_file(path, write_text, text);
    if (!status) {
        close(file);
        file = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    }
    mr_error_destroy(status);
}

static size_t count_lines(const char *text) {
    size_t lines = 0;
    while ((text = strchr(text, '\n'))) lines++, text++;
    return lines;
}

void mr_history_open(bool (*add)(const char *entry)) {
    mr_buffer path = {0}, text = {0};
    if (find_path(&path)) {
        make_folders(path.data);
        file = open(path.data, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (file >= 0) read_all(&text);
    }
    if (text.data && !text.failed) {
        char *kept = last_entries(text.data);
        if (count_lines(text.data) > 2 * MOST_ENTRIES) shorten(path.data, kept);
        for (char *line = kept, *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            unescape(line);
            add(line);
        }
    }
    mr_buffer_free(&text);
    mr_buffer_free(&path);
}

void mr_history_add(const char *entry) {
    mr_buffer line = {0};
    if (file < 0) return;
    escape(entry, &line);
    if (!line.failed && write(file, line.data, line.size) < 0) mr_history_close();
    mr_buffer_free(&line);
}

void mr_history_close(void) {
    if (file >= 0) close(file);
    file = -1;
}
