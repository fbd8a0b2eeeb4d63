/* See toolkit.h. A path is reduced by its text alone, so that no folder outside of the toolkit is asked for. */
#include "compile/compiler/toolkit.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_PATH 4096

/* How names in the toolkit's folder begin. Headers that other packages have put there are ignored. */
static const char *const ours[] = {
    "cuda",
    "cooperative_groups",
    "crt",
    "cccl",
    "nv",
    "thrust",
    "cub",
    "mma.h",
    "sm_",
    "vector_",
    "math_",
    "device_",
    "builtin_types",
    "channel_descriptor",
    "common_",
    "driver_",
    "host_",
    "library_types",
    "surface_",
    "texture_",
    "cuComplex.h",
    "curand",
    "fatbin",
    "link.stub",
};

static bool is_ours(const char *name) {
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strncmp(name, ours[i], strlen(ours[i])) == 0) return true;
    return false;
}

/* Writes the part of an absolute path that is below `folder`, without "." and "..". False: the path leaves the folder
 * somewhere, or is too long. */
static bool reduce(const char *folder, const char *path, char out[MOST_PATH]) {
    size_t length = strlen(folder), size = 0;
    if (strncmp(path, folder, length) != 0 || path[length] != '/' ||
        strlen(path + length) >= MOST_PATH)
        return false;
    for (const char *at = path + length; *at;) {
        at += strspn(at, "/");
        size_t part = strcspn(at, "/");
        if (part == 2 && memcmp(at, "..", 2) == 0) {
            if (!size) return false;
            while (size && out[--size] != '/') continue;
        } else if (part && !(part == 1 && *at == '.')) {
            if (size) out[size++] = '/';
            memcpy(out + size, at, part);
            size += part;
        }
        at += part;
    }
    out[size] = '\0';
    return size > 0;
}

int mr_toolkit_open(const char *folder, const char *path) {
    char below[MOST_PATH];
    struct stat facts;
    if (!folder || !reduce(folder, path, below) || !is_ours(below)) return -1;
    int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) return -1;
    int flags = O_CLOEXEC | O_NONBLOCK, file = -1;
    if (fstatat(root, below, &facts, 0) == 0 && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)))
        file = openat(root, below, flags | (S_ISDIR(facts.st_mode) ? O_PATH : O_RDONLY));
    close(root);
    return file;
}
