/* The fake driver's built-in kernels, from the PTX that the build made of them beside the fat binaries.
 *
 * A file has hundreds of kernels, and reading one takes long. So each kernel that is asked for gets a module, made of a
 * text without the others. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static const char entry_sign[] = ".visible .entry ";

static void *or_abort(void *memory) {
    if (!memory) abort();
    return memory;
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) abort();
    long size = ftell(file);
    char *text = or_abort(calloc(1, (size_t)size + 1));
    rewind(file);
    if (fread(text, 1, (size_t)size, file) != (size_t)size) abort();
    fclose(file);
    return text;
}

/* Behind the body that begins after `at`. */
static const char *end_of_body(const char *at) {
    int depth = 0;
    do {
        at += strcspn(at, "{}");
        if (!*at) abort();
        depth += *at++ == '{' ? 1 : -1;
    } while (depth);
    return at;
}

/* All of the text but the other kernels. */
static char *only(const char *text, const char *entry, size_t entry_size) {
    char *out = or_abort(malloc(strlen(text) + 1)), *end = out;
    for (const char *kernel; (kernel = strstr(text, entry_sign));) {
        const char *behind = end_of_body(kernel);
        const char *kept = memcmp(kernel, entry, entry_size) == 0 ? behind : kernel;
        memcpy(end, text, (size_t)(kept - text));
        end += kept - text;
        text = behind;
    }
    strcpy(end, text);
    return out;
}

static fake_module *load(const char *text, const char *entry, const char *name) {
    CUmodule made;
    char log[400] = "", *alone = only(text, entry, strlen(entry));
    if (fake_load(&made, alone, log, sizeof log)) {
        fprintf(stderr, "fake_cuda: %s", log);
        abort();
    }
    free(alone);
    fake_module *m = (fake_module *)made;
    m->built_in = or_abort(strdup(name));
    return m;
}

static fake_module *find_loaded(const char *name) {
    for (fake_module *m = fake_devices[fake_current].modules; m; m = m->next)
        if (m->built_in && strcmp(m->built_in, name) == 0) return m;
    return NULL;
}

/* Each kernel is in one of the files only. */
CUresult fake_find_built_in(CUfunction *function, const char *name) {
    static char **texts;
    static size_t count;
    if (!texts) {
        glob_t files;
        if (glob(FAKE_KERNELS "/*.ptx", 0, NULL, &files) != 0) abort();
        texts = or_abort(calloc(files.gl_pathc, sizeof *texts));
        for (; count < files.gl_pathc; count++) texts[count] = read_text(files.gl_pathv[count]);
        globfree(&files);
    }
    char entry[200];
    snprintf(entry, sizeof entry, "%s%s(", entry_sign, name);
    fake_module *m = find_loaded(name);
    for (size_t i = 0; i < count && !m; i++)
        if (strstr(texts[i], entry)) m = load(texts[i], entry, name);
    if (!m) return CUDA_ERROR_NOT_FOUND;
    *function = (CUfunction)&m->functions[0];
    return CUDA_SUCCESS;
}
