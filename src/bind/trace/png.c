/* A trace as a .png: its .svg, and a program of the system that converts it. None is part of millrace: rsvg-convert,
 * inkscape and magick are looked for in PATH, in this order, at each call.
 *
 * Easiest to break: the converter works in a temporary folder, and the complete picture is renamed to its final
 * name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/replace.h"
#include "bind/trace/trace.h"
#include "bind/trace/parts.h"
#include "compile/child.h"
#include "trace/writers.h"

#define MOST_MS 30000

enum { PLACE = 4200 };

typedef struct {
    const char *name;
    const char *arguments[4]; /* "<" is the .svg, ">" at the end of a text the .png */
} converter;

static const converter converters[] = {
    {"rsvg-convert", {"-o", ">", "<"}},
    {"inkscape", {"--export-type=png", "--export-filename=>", "<"}},
    {"magick", {"<", ">"}},
};
#define CONVERTERS (sizeof converters / sizeof *converters)

static bool find_program(const char *name, char *out, size_t size) {
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at;) {
        size_t length = strcspn(at, ":");
        int used = snprintf(out, size, "%.*s/%s", (int)length, at, name);
        if (length && at[0] == '/' && used > 0 && (size_t)used < size && access(out, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* The first installed converter; NULL: none. */
static const converter *find_converter(char *out_program, size_t size) {
    for (size_t i = 0; i < CONVERTERS; i++)
        if (find_program(converters[i].name, out_program, size)) return &converters[i];
    return NULL;
}

static mr_status convert(const converter *c, const char *program, const char *svg,
                         const char *png) {
    char joined[PLACE + 40];
    const char *arguments[6] = {program};
    for (int i = 0; i < 4 && c->arguments[i]; i++) {
        const char *word = c->arguments[i];
        size_t length = strlen(word);
        arguments[i + 1] = strcmp(word, "<") != 0 ? word : svg;
        if (word[length - 1] != '>') continue;
        snprintf(joined, sizeof joined, "%.*s%s", (int)length - 1, word, png);
        arguments[i + 1] = joined;
    }
    mr_child child = {.arguments = arguments, .time_limit_ms = MOST_MS, .most_output = 4096};
    mr_child_end end;
    mr_status status = mr_child_run(&child, &end);
    if (!status && (end.exit_status != 0 || access(png, R_OK) != 0))
        status = mr_fail(MR_CODE_UNKNOWN, "%s could not make a picture: %.400s", c->name,
                         end.is_late           ? "it took too long"
                         : end.output.size > 0 ? end.output.data
                                               : "it said nothing");
    mr_buffer_free(&end.output);
    return status;
}

static mr_status copy_picture(void *context, FILE *file) {
    FILE *picture = fopen(context, "rb");
    char bytes[1 << 14];
    size_t size;
    if (!picture) return mr_fail(MR_CODE_UNKNOWN, "the picture that was made cannot be read");
    while ((size = fread(bytes, 1, sizeof bytes, picture)) > 0) fwrite(bytes, 1, size, file);
    fclose(picture);
    return MR_OK;
}

bool mr_trace_is_png(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcasecmp(path + length - 4, ".png") == 0;
}

static mr_status no_converter(const char *path) {
    return mr_fail(MR_CODE_NOT_SUPPORTED,
                   "`%.300s` needs one of rsvg-convert, inkscape and magick, and none is in "
                   "PATH; a name that ends with .svg needs none",
                   path);
}

mr_status mr_bind_trace_can_save(const char *path) {
    char program[PLACE];
    if (!mr_trace_is_png(path)) MR_TRY(mr_trace_can_save(path));
    else if (!find_converter(program, sizeof program)) return no_converter(path);
    return mr_replace_has_folder(path);
}

size_t mr_bind_trace_stem(const char *path) {
    return mr_trace_is_png(path) ? strlen(path) - strlen(".png") : mr_trace_stem(path);
}

mr_status mr_trace_save_png(const mr_trace *trace, const mr_trace *before, const char *path) {
    char program[PLACE], folder[] = "/tmp/millrace-XXXXXX", svg[40], png[40];
    const converter *c = find_converter(program, sizeof program);
    if (!c) return no_converter(path);
    if (!mkdtemp(folder))
        return mr_fail(MR_CODE_UNKNOWN, "no folder for a picture can be made in /tmp");
    snprintf(svg, sizeof svg, "%s/t.svg", folder);
    snprintf(png, sizeof png, "%s/t.png", folder);
    mr_status status = mr_trace_save(trace, before, svg, NULL, NULL);
    if (!status) status = convert(c, program, svg, png);
    if (!status) status = mr_replace_file(path, copy_picture, png);
    unlink(svg);
    unlink(png);
    rmdir(folder);
    return status;
}
