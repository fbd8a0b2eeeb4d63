/* A temporary folder: see folder.h. */
#include "compile/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

mr_status mr_folder_make(mr_folder *out) {
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent) parent = "/tmp";
    int length = snprintf(out->path, sizeof out->path, "%s/millrace-XXXXXX", parent);
    if (length < (int)sizeof out->path && mkdtemp(out->path)) return MR_OK;
    int error = length < (int)sizeof out->path ? errno : ENAMETOOLONG;
    out->path[0] = '\0';
    return mr_fail(
        MR_CODE_UNKNOWN,
        "no temporary folder for the compiler can be made in %s: %s (TMPDIR chooses another place)",
        parent, strerror(error));
}

static int open_in(const mr_folder *folder, const char *name, int flags) {
    char path[sizeof folder->path + 64];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    return open(path, flags | O_CLOEXEC, 0600);
}

mr_status mr_folder_write(const mr_folder *folder, const char *name, const void *data,
                          size_t size) {
    int file = open_in(folder, name, O_WRONLY | O_CREAT | O_TRUNC);
    const char *next = data;
    int error = file < 0 ? errno : 0;
    while (!error && size > 0) {
        ssize_t written = write(file, next, size);
        if (written < 0 && errno != EINTR) error = errno;
        if (written > 0) {
            next += written;
            size -= (size_t)written;
        }
    }
    if (file >= 0 && close(file) != 0 && !error) error = errno;
    if (!error) return MR_OK;
    return mr_fail(MR_CODE_UNKNOWN, "the compiler's files cannot be written in %s: %s",
                   folder->path, strerror(error));
}

mr_status mr_folder_read(const mr_folder *folder, const char *name, mr_buffer *out) {
    char piece[16384];
    int file = open_in(folder, name, O_RDONLY);
    int error = file < 0 ? errno : 0;
    while (!error) {
        ssize_t size = read(file, piece, sizeof piece);
        if (size == 0) break;
        if (size > 0) mr_buffer_add(out, piece, (size_t)size);
        else if (errno != EINTR) error = errno;
    }
    if (file >= 0) close(file);
    if (error)
        return mr_fail(MR_CODE_UNKNOWN, "the compiler's output cannot be read: %s",
                       strerror(error));
    if (out->failed) return mr_no_memory("for the PTX");
    return MR_OK;
}

void mr_folder_remove(mr_folder *folder) {
    if (!folder->path[0]) return;
    DIR *files = opendir(folder->path);
    for (struct dirent *entry; files && (entry = readdir(files));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(files), entry->d_name, 0);
    if (files) closedir(files);
    rmdir(folder->path);
    folder->path[0] = '\0';
}
