/* Reads device models: see device_model.h. Every key must be there once, so that a model that forgot
 * one does not silently get another one's figure. */
#include "virtual/device_model.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/embedded.h"
#include "base/number.h"

#define LONGEST_MODEL (1 << 20) /* bytes: what is larger is not a model */

static const struct {
    const char *key;
    size_t offset;
    double least;
} fields[] = {
#define X(key, least) {#key, offsetof(device_model, key), least},
    MR_DEVICE_MODEL_LIST(X)
#undef X
};

enum { FIELD_COUNT = sizeof fields / sizeof *fields };

typedef struct {
    const char *path; /* for messages */
    int line;
    bool seen[FIELD_COUNT], named;
    device_model model;
} reader;

static char *trim(char *text) {
    text += strspn(text, " \t\r");
    size_t size = strlen(text);
    while (size && strchr(" \t\r", text[size - 1])) text[--size] = 0;
    return text;
}

static mr_status set_name(reader *r, const char *value) {
    if (!*value || strlen(value) >= sizeof r->model.name)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s:%d: a name must have 1 to %zu characters",
                       r->path, r->line, sizeof r->model.name - 1);
    strcpy(r->model.name, value);
    r->named = true;
    return MR_OK;
}

static mr_status set_number(reader *r, const char *key, const char *value) {
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (strcmp(fields[i].key, key) != 0) continue;
        char *end;
        double number = mr_number_parse(value, &end);
        if (end == value || *end || !(number >= fields[i].least && number <= 1e18))
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "%s:%d: `%s`: expected a number of at least %g, got `%s`", r->path,
                           r->line, key, fields[i].least, value);
        if (r->seen[i])
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s:%d: `%s` is given twice", r->path, r->line,
                           key);
        r->seen[i] = true;
        *(double *)((char *)&r->model + fields[i].offset) = number;
        return MR_OK;
    }
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s:%d: a device model has no `%s`", r->path, r->line,
                   key);
}

/* "[m] a copy of 256 MiB" */
static void count_source(reader *r, const char *comment) {
    comment += strspn(comment, "# ");
    char letter = comment[0] == '[' && comment[1] && comment[2] == ']' ? comment[1] : ' ';
    switch (letter) {
#define X(source, which)                                                                           \
    case which: r->model.figures.source++; break;
        MR_MODEL_SOURCES(X)
#undef X
    default: r->model.figures.untold++;
    }
}

static mr_status read_line(reader *r, char *line) {
    char *comment = line + strcspn(line, "#");
    const char *said = *comment ? comment + 1 : comment;
    *comment = 0;
    char *key = trim(line);
    if (!*key) return MR_OK;
    char *equals = strchr(key, '=');
    if (!equals)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s:%d: expected `key = value`, got `%s`", r->path,
                       r->line, key);
    *equals = 0;
    char *value = trim(equals + 1);
    key = trim(key);
    if (strcmp(key, "name") == 0) return set_name(r, value);
    count_source(r, said);
    return set_number(r, key, value);
}

static mr_status check_complete(const reader *r) {
    const char *missing = r->named ? NULL : "name";
    for (int i = 0; i < FIELD_COUNT && !missing; i++)
        if (!r->seen[i]) missing = fields[i].key;
    if (!missing) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: `%s` is missing", r->path, missing);
}

/* `text` is NUL-terminated and is written to. */
static mr_status parse(const char *path, const char *known, char *text, device_model *out) {
    reader r = {.path = path};
    while (text) {
        char *end = strchr(text, '\n');
        if (end) *end++ = 0;
        r.line++;
        MR_TRY(read_line(&r, text));
        text = end;
    }
    MR_TRY(check_complete(&r));
    snprintf(r.model.known, sizeof r.model.known, "%s", known);
    *out = r.model;
    return MR_OK;
}

static mr_status read_file(const char *path, mr_buffer *out) {
    char piece[4096];
    FILE *file = fopen(path, "r");
    if (!file)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "device model `%s`: %s", path, strerror(errno));
    for (size_t count; (count = fread(piece, 1, sizeof piece, file)) && out->size < LONGEST_MODEL;)
        mr_buffer_add(out, piece, count);
    bool failed = ferror(file);
    fclose(file);
    if (failed) return mr_fail(MR_CODE_INVALID_ARGUMENT, "device model `%s`: cannot be read", path);
    return MR_OK;
}

static mr_status unknown_model(const char *name) {
    mr_buffer list = {0};
    static const char folder[] = "models/", suffix[] = ".model";
    for (const mr_embedded *file = mr_embedded_files; file->name; file++) {
        size_t size = strlen(file->name);
        if (strncmp(file->name, folder, sizeof folder - 1) != 0 ||
            size < sizeof folder + sizeof suffix)
            continue;
        mr_buffer_printf(&list, "%s%.*s", list.size ? ", " : "",
                         (int)(size - (sizeof folder - 1) - (sizeof suffix - 1)),
                         file->name + sizeof folder - 1);
    }
    mr_status status = mr_fail(MR_CODE_INVALID_ARGUMENT,
                               "there is no device model `%s`: expected one of %s, or the path of "
                               "a model file (./NAME.model)",
                               name, list.data ? list.data : "none");
    mr_buffer_free(&list);
    return status;
}

mr_status mr_device_model_load(const char *name, device_model *out) {
    mr_buffer text = {0};
    char path[256];
    if (strchr(name, '/') || strstr(name, ".model")) {
        mr_status status = read_file(name, &text);
        if (status) {
            mr_buffer_free(&text);
            return status;
        }
        snprintf(path, sizeof path, "%s", name);
    } else {
        snprintf(path, sizeof path, "models/%s.model", name);
        const mr_embedded *file = mr_embedded_find(path);
        if (!file) return unknown_model(name);
        mr_buffer_add(&text, (const char *)file->data, file->size);
    }
    mr_status status = text.failed || !text.data
                           ? mr_fail(MR_CODE_INVALID_ARGUMENT, "device model `%s` is empty", name)
                           : parse(path, name, text.data, out);
    mr_buffer_free(&text);
    return status;
}
