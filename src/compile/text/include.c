/* The user's files that a text includes: see include.h. Easiest to break: a file that this overlooks makes a value of
 * the cache stale, so whatever cannot be followed makes the result unknown. */
#include "compile/text/include.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "compile/text/scan.h"

#define MOST_FILES    256
#define MOST_CONTENTS ((size_t)32 << 20)

/* The folder of the user's file, where the compiler looks for included files; "." without a slash. The caller frees
 * it. */
static char *folder_of(const char *file) {
    const char *slash = strrchr(file, '/');
    if (!slash) return strdup(".");
    return strndup(file, slash > file ? (size_t)(slash - file) : 1);
}

/* ---------------------------------------------------------------- collecting */

typedef MR_VEC(char *) paths;

typedef struct {
    paths folders, seen; /* `seen` has full paths */
    mr_dependencies *out;
} collector;

static void push(collector *c, paths *list, char *path) {
    if (path && mr_vec_push(list, path)) return;
    free(path);
    c->out->is_unknown = true;
}

static void free_paths(paths *list) {
    for (size_t i = 0; i < list->count; i++) free(list->items[i]);
    mr_vec_free(list);
}

/* An option that names a folder, as "-Ifolder" or as "-I" and "folder". */
static const char *folder_of_option(const mr_compile_source *source, int *index) {
    static const char *const names[] = {"--include-path=", "-isystem", "-iquote", "-I"};
    const char *option = source->options[*index];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(option, names[i], length) != 0) continue;
        if (option[length]) return option + length;
        return *index + 1 < source->option_count ? source->options[++*index] : NULL;
    }
    return NULL;
}

/* Other options that make a compiler read a file. */
static bool reads_file(const char *option) {
    static const char *const names[] = {"-include",     "--pre-include", "-idirafter",
                                        "-iwithprefix", "-imacros",      "@",
                                        "-fplugin",     "-Xclang",       "--options-file",
                                        "-optf",        "-isysroot",     "--sysroot",
                                        "-fmodule",     "-ivfsoverlay",  "--config",
                                        "-pch",         "--use-pch",     "--create-pch",
                                        "-F",           "-cxx-isystem",  "-B",
                                        "--pch"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(option, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static bool read_file(const char *path, mr_buffer *out) {
    char piece[16384];
    struct stat facts;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    bool is_file = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
    for (ssize_t size; is_file && (size = read(file, piece, sizeof piece)) > 0;)
        mr_buffer_add(out, piece, (size_t)size);
    close(file);
    mr_buffer_add(out, "", 0);
    return is_file;
}

static bool is_seen(const collector *c, const char *path) {
    for (size_t i = 0; i < c->seen.count; i++)
        if (strcmp(c->seen.items[i], path) == 0) return true;
    return false;
}

static void add_file(collector *c, const mr_include *include, const char *folder) {
    char *path = NULL;
    mr_buffer contents = {0};
    int length = *include->name == '/'
                     ? asprintf(&path, "%.*s", (int)include->size, include->name)
                     : asprintf(&path, "%s/%.*s", folder, (int)include->size, include->name);
    if (length < 0) {
        c->out->is_unknown = true;
        return;
    }
    if (is_seen(c, path) || !read_file(path, &contents)) {
        free(path);
        mr_buffer_free(&contents);
        return;
    }
    mr_buffer_printf(&c->out->contents, "%.*s %zu\n", (int)include->size, include->name,
                     contents.size);
    if (contents.size) mr_buffer_add(&c->out->contents, contents.data, contents.size);
    if (contents.failed || c->out->contents.failed || c->out->contents.size > MOST_CONTENTS)
        c->out->is_unknown = true;
    mr_buffer_free(&contents);
    push(c, &c->seen, path);
}

/* Each file of that name counts, whichever the compiler takes. */
static void follow(collector *c, const char *text, size_t size, const char *folder) {
    mr_buffer code = {0};
    mr_include include;
    mr_scan_code(text, size, &code);
    const char *at = code.data ? code.data : "";
    if (code.failed) c->out->is_unknown = true;
    if (mr_scan_uses_place(at)) c->out->uses_place = true;
    while (!c->out->is_unknown && mr_scan_include(&at, &include, &c->out->is_unknown)) {
        add_file(c, &include, folder);
        for (size_t i = 0; i < c->folders.count && *include.name != '/'; i++)
            add_file(c, &include, c->folders.items[i]);
        if (c->seen.count > MOST_FILES) c->out->is_unknown = true;
    }
    mr_buffer_free(&code);
}

static void follow_files(collector *c) {
    for (size_t i = 0; i < c->seen.count && !c->out->is_unknown; i++) {
        mr_buffer text = {0};
        char *folder = folder_of(c->seen.items[i]);
        if (!folder || !read_file(c->seen.items[i], &text)) c->out->is_unknown = true;
        else follow(c, text.data, text.size, folder);
        mr_buffer_free(&text);
        free(folder);
    }
}

static void add_folders(collector *c, const mr_compile_source *source) {
    for (int i = 0; i < source->option_count; i++) {
        const char *option = source->options[i], *folder = folder_of_option(source, &i);
        if (folder) push(c, &c->folders, strdup(folder));
        else if (reads_file(option)) c->out->is_unknown = true;
        if (mr_scan_uses_place(option)) c->out->uses_place = true;
    }
    push(c, &c->folders, strdup("."));
}

void mr_include_collect(const mr_compile_job *job, mr_dependencies *out) {
    *out = (mr_dependencies){.uses_place = false};
    collector c = {.out = out};
    char *folder = folder_of(job->beside);
    add_folders(&c, job->source);
    if (folder) follow(&c, job->source->text, job->source->size, folder);
    else out->is_unknown = true;
    follow_files(&c);
    free(folder);
    free_paths(&c.folders);
    free_paths(&c.seen);
}
