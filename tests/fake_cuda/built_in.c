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

typedef struct {
    const char *at, *behind;
} part;

/* A file. Where its kernels are is found once: a file has megabytes, and under AddressSanitizer each strstr or strcspn
 * goes through all that is left of them. */
typedef struct {
    char *text;
    size_t size;
    part *kernels; /* NULL: not looked for yet */
    size_t count;
} built_in_text;

static built_in_text read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) abort();
    long size = ftell(file);
    char *text = or_abort(calloc(1, (size_t)size + 1));
    rewind(file);
    if (fread(text, 1, (size_t)size, file) != (size_t)size) abort();
    fclose(file);
    return (built_in_text){.text = text, .size = (size_t)size};
}

static const char *find(const built_in_text *t, const char *from, const char *what) {
    return memmem(from, t->size - (size_t)(from - t->text), what, strlen(what));
}

/* Behind the body that begins after `at`. */
static const char *end_of_body(const char *at) {
    for (int depth = 0; *at; at++) {
        if (*at == '{') depth++;
        else if (*at == '}' && --depth == 0) return at + 1;
    }
    abort();
}

static void find_kernels(built_in_text *t) {
    const char *behind = t->text;
    for (const char *kernel; (kernel = find(t, behind, entry_sign)); t->count++) {
        behind = end_of_body(kernel);
        t->kernels = or_abort(realloc(t->kernels, (t->count + 1) * sizeof *t->kernels));
        t->kernels[t->count] = (part){kernel, behind};
    }
}

static char *put(char *end, const char *from, const char *to) {
    memcpy(end, from, (size_t)(to - from));
    return end + (to - from);
}

/* All of the text but the other kernels. */
static char *only(built_in_text *t, const char *entry) {
    char *out = or_abort(malloc(t->size + 1)), *end = out;
    const char *from = t->text;
    if (!t->kernels) find_kernels(t);
    for (size_t i = 0; i < t->count; i++) {
        const part *k = &t->kernels[i];
        bool is_wanted = memcmp(k->at, entry, strlen(entry)) == 0;
        end = put(end, from, is_wanted ? k->behind : k->at);
        from = k->behind;
    }
    *put(end, from, t->text + t->size) = 0;
    return out;
}

static fake_module *load(built_in_text *text, const char *entry, const char *name) {
    CUmodule made;
    char log[400] = "", *alone = only(text, entry);
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
    static built_in_text *texts;
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
        if (find(&texts[i], texts[i].text, entry)) m = load(&texts[i], entry, name);
    if (!m) return CUDA_ERROR_NOT_FOUND;
    *function = (CUfunction)&m->functions[0];
    return CUDA_SUCCESS;
}
