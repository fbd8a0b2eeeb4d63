/* The history file: see history.h. Several prompts may add to it at a time. Each writes a line by one call, and
 * one that shortens the file replaces it, so the others look whether it is still theirs. A lock makes both one
 * thing. */
#include "repl/history.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/replace.h"

#define MOST_ENTRIES 10000

#define PATIENCE_MS 200 /* with a prompt that has the lock, and may have been stopped */

static int file = -1;
static mr_buffer path;

/* ---- where it is */

static void make_folders(void) {
    for (char *c = path.data + 1; *c; c++) {
        if (*c != '/') continue;
        *c = '\0';
        mkdir(path.data, 0700);
        *c = '/';
    }
}

static bool find_path(void) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state == '/') mr_buffer_printf(&path, "%s/millrace/history", state);
    else if (home && *home) mr_buffer_printf(&path, "%s/.local/state/millrace/history", home);
    else return false;
    return !path.failed;
}

static void lock(void) {
    for (int ms = 0; flock(file, LOCK_EX | LOCK_NB) != 0 && ms < PATIENCE_MS; ms += 5) usleep(5000);
}

static bool is_at_path(void) {
    struct stat ours, there;
    return fstat(file, &ours) == 0 && stat(path.data, &there) == 0 && ours.st_ino == there.st_ino &&
           ours.st_dev == there.st_dev;
}

/* Opens the file that is at the path now, and locks it. */
static void open_locked(void) {
    for (int tries = 0; tries < 10; tries++) {
        if (file < 0) file = open(path.data, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (file < 0) return;
        lock();
        if (is_at_path()) return;
        mr_history_close();
    }
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
static void shorten(char *text) {
    mr_status status = mr_replace_file(path.data, write_text, text);
    if (!status) {
        mr_history_close();
        open_locked();
    }
    mr_error_destroy(status);
}

static size_t count_lines(const char *text) {
    size_t lines = 0;
    while ((text = strchr(text, '\n'))) lines++, text++;
    return lines;
}

void mr_history_open(bool (*add)(const char *entry)) {
    mr_buffer text = {0};
    if (find_path()) {
        make_folders();
        open_locked();
        if (file >= 0) read_all(&text);
    }
    if (text.data && !text.failed) {
        char *kept = last_entries(text.data);
        if (count_lines(text.data) > 2 * MOST_ENTRIES) shorten(kept);
        for (char *line = kept, *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            unescape(line);
            add(line);
        }
    }
    if (file >= 0) flock(file, LOCK_UN);
    mr_buffer_free(&text);
}

void mr_history_add(const char *entry) {
    mr_buffer line = {0};
    if (file < 0) return;
    open_locked();
    escape(entry, &line);
    if (!line.failed && file >= 0 && write(file, line.data, line.size) < 0) mr_history_close();
    if (file >= 0) flock(file, LOCK_UN);
    mr_buffer_free(&line);
}

void mr_history_close(void) {
    if (file >= 0) close(file);
    file = -1;
}
