/* The files of this folder: CUDA C++ with lines "// kernel: NAME" at the start, one for each name to ask for. */
#ifndef KERNEL_FILE_H
#define KERNEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_MOST 32

typedef struct {
    char *text;
    size_t size;
    const char *names[KERNEL_MOST];
    int name_count;
} kernel_file;

static bool kernel_file_read(const char *path, kernel_file *out) {
    static const char title[] = "\n// kernel: ";
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    *out = (kernel_file){.text = calloc(1, 1 << 20)};
    if (out->text) out->size = fread(out->text, 1, (1 << 20) - 1, file);
    fclose(file);
    for (char *at = out->text; at && (at = strstr(at, title)) && out->name_count < KERNEL_MOST;) {
        at += strlen(title);
        out->names[out->name_count++] = strndup(at, strcspn(at, "\n"));
    }
    return out->text && out->size > 0;
}

static void kernel_file_free(kernel_file *file) {
    for (int i = 0; i < file->name_count; i++) free((char *)file->names[i]);
    free(file->text);
}

#endif
