/* Reading the files of scripts, and keeping the last few. */
#include <stdio.h>
#include <stdlib.h>

#include "script/text.h"

#define LARGEST (1 << 20)

/* ---- reading */

static char *read_text(const char *path, const struct stat *status) {
    size_t size = (size_t)status->st_size;
    FILE *file = fopen(path, "rb");
    char *text = file ? calloc(1, size + 2) : NULL;
    if (text && fread(text, 1, size, file) != size) text[0] = '\0';
    if (file) fclose(file);
    return text;
}

/* Takes `text`. */
static mr_script *new_script(const char *path, char *text, bool is_file) {
    mr_script *s = calloc(1, sizeof *s);
    if (!s) {
        free(text);
        return NULL;
    }
    s->refs = 1;
    s->path = strdup(path);
    s->text = text;
    s->is_file = is_file;
    s->failed = !s->path || !s->text;
    if (!s->failed) mr_script_split(s);
    if (!s->failed) mr_script_outline(s);
    if (!s->failed) mr_script_find_targets(s);
    return s;
}

void mr_script_free(mr_script *s) {
    if (!s || --s->refs) return;
    mr_vec_free(&s->words);
    mr_vec_free(&s->blocks);
    mr_vec_free(&s->declarations);
    mr_vec_free(&s->targets);
    free(s->text);
    free(s->path);
    free(s);
}

static bool is_same_file(const mr_script *s, const char *path, const struct stat *status) {
    return strcmp(s->path, path) == 0 && s->status.st_ino == status->st_ino &&
           s->status.st_size == status->st_size &&
           s->status.st_mtim.tv_sec == status->st_mtim.tv_sec &&
           s->status.st_mtim.tv_nsec == status->st_mtim.tv_nsec;
}

static const unsigned most = sizeof(((mr_scripts *)0)->kept) / sizeof(mr_script *);

/* Replaces the script that has been kept for the longest time. */
static mr_script *keep(mr_scripts *scripts, mr_script *s) {
    mr_script **place = &scripts->kept[scripts->next++ % most];
    mr_script_free(*place);
    *place = s;
    return s;
}

static mr_script *refer(mr_script *s) {
    if (!s || s->failed) return NULL;
    s->refs++;
    return s;
}

/* A report asks dozens of times, and the next report mostly about the same file. So the last few files are kept, also
 * those that could not be parsed. */
mr_script *mr_script_read(mr_scripts *scripts, const char *path) {
    mr_script **kept = scripts->kept;
    struct stat status;
    mr_script *s = NULL;
    if (!path || stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > LARGEST)
        return NULL;
    for (unsigned i = 0; i < most && !s; i++)
        if (kept[i] && is_same_file(kept[i], path, &status)) s = kept[i];
    if (s) return refer(s);
    s = new_script(path, read_text(path, &status), true);
    if (!s || !s->path) {
        mr_script_free(s);
        return NULL;
    }
    s->status = status;
    return refer(keep(scripts, s));
}

/* No file has the inode 0. */
mr_script *mr_script_of(mr_scripts *scripts, const char *name, const char *text) {
    mr_script **kept = scripts->kept;
    for (unsigned i = 0; i < most; i++)
        if (kept[i] && !kept[i]->status.st_ino && strcmp(kept[i]->path, name) == 0 &&
            strcmp(kept[i]->text, text) == 0)
            return refer(kept[i]);
    mr_script *s = new_script(name, strdup(text), false);
    if (!s || !s->path || !s->text) {
        mr_script_free(s);
        return NULL;
    }
    return refer(keep(scripts, s));
}

void mr_scripts_free(mr_scripts *scripts) {
    for (size_t i = 0; i < sizeof scripts->kept / sizeof *scripts->kept; i++)
        mr_script_free(scripts->kept[i]);
    *scripts = (mr_scripts){0};
}

/* ---- where a text stands */

static int line_of(const char *in, const char *text, size_t size) {
    const char *end = in + strlen(in);
    const char *found = size ? memmem(in, (size_t)(end - in), text, size) : NULL;
    if (!found) return 0;
    if (memmem(found + 1, (size_t)(end - found - 1), text, size)) return -1;
    int line = 1;
    for (const char *c = in; c < found; c++) line += *c == '\n';
    return line;
}

/* As Lua reads the ends of lines in a long string. */
static void unify_ends(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        bool ends = *from == '\r' || *from == '\n';
        if (ends && from[1] != *from && (from[1] == '\r' || from[1] == '\n')) from++;
        *to++ = ends ? '\n' : *from;
    }
    *to = '\0';
}

int mr_script_line_in(const char *script, const char *text, size_t size) {
    if (!strchr(script, '\r')) return line_of(script, text, size);
    char *copy = strdup(script);
    if (!copy) return 0;
    unify_ends(copy);
    int line = line_of(copy, text, size);
    free(copy);
    return line;
}

int mr_script_line_in_file(const char *path, const char *text, size_t size) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > LARGEST) return 0;
    char *in = read_text(path, &status);
    int line = in ? mr_script_line_in(in, text, size) : 0;
    free(in);
    return line;
}

const char *mr_script_text(const mr_script *script) {
    return script->text;
}

int mr_script_line_count(const mr_script *script) {
    return script->words.items[script->words.count - 1].line - 1; /* the end of the text */
}

const char *mr_script_line(const mr_script *script, int line, int *out_length) {
    const char *at = script->text;
    if (line < 1) return NULL;
    for (; line > 1 && at; line--) {
        at = strchr(at, '\n');
        if (at) at++;
    }
    if (at) *out_length = (int)strcspn(at, "\n");
    return at;
}
