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

static mr_script *read_script(const char *path, const struct stat *status) {
    mr_script *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->refs = 1;
    s->status = *status;
    s->path = strdup(path);
    s->text = read_text(path, status);
    s->failed = !s->path || !s->text;
    if (!s->failed) mr_script_split(s);
    if (!s->failed) mr_script_outline(s);
    return s;
}

void mr_script_free(mr_script *s) {
    if (!s || --s->refs) return;
    mr_vec_free(&s->words);
    mr_vec_free(&s->blocks);
    mr_vec_free(&s->declarations);
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

/* A report asks dozens of times, and the next one mostly of the same file: the last few are kept, also those
 * that were not understood. */
mr_script *mr_script_read(mr_scripts *scripts, const char *path) {
    mr_script **kept = scripts->kept;
    const unsigned most = sizeof scripts->kept / sizeof *scripts->kept;
    struct stat status;
    mr_script *s = NULL;
    if (!path || stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > LARGEST)
        return NULL;
    for (unsigned i = 0; i < most && !s; i++)
        if (kept[i] && is_same_file(kept[i], path, &status)) s = kept[i];
    if (!s) {
        s = read_script(path, &status);
        if (!s || !s->path) {
            mr_script_free(s);
            return NULL;
        }
        mr_script_free(kept[scripts->next % most]);
        kept[scripts->next++ % most] = s;
    }
    if (s->failed) return NULL;
    s->refs++;
    return s;
}

void mr_scripts_free(mr_scripts *scripts) {
    for (size_t i = 0; i < sizeof scripts->kept / sizeof *scripts->kept; i++)
        mr_script_free(scripts->kept[i]);
    *scripts = (mr_scripts){0};
}

int mr_script_line_of(const mr_script *script, const char *text, size_t size) {
    const char *end = script->text + strlen(script->text);
    if (!size || size > (size_t)(end - script->text)) return 0;
    const char *found = memmem(script->text, (size_t)(end - script->text), text, size);
    if (!found || memmem(found + 1, (size_t)(end - found - 1), text, size)) return 0;
    int line = 1;
    for (const char *c = script->text; c < found; c++) line += *c == '\n';
    return line;
}
