/* The cache on disk: see cache.h.
 *
 * A file has a line with the version of its layout, the hash of what follows, and the value. It is written under
 * another name and renamed, so a reader sees all of it or nothing. Easiest to break: a file that another process
 * removes or replaces at any moment must be nothing more than a miss. */
#include "compile/cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"

#define ENDING        ".ptx-cache"
#define TEMPORARY     ".new-"
#define DEFAULT_LIMIT ((size_t)64 << 20)
#define KEPT_TENTHS   8    /* of the limit, when values are removed: not at each put again */
#define TEMPORARY_AGE 3600 /* s; an older one is left over from a process that was killed */

static const char layout[] = "millrace PTX cache 1\n";
#define HEAD_SIZE (sizeof layout - 1 + MR_HASH_SIZE)

void mr_cache_open(mr_cache *out) {
    const char *chosen = getenv("MILLRACE_CACHE"), *shared = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int length = -1;
    *out = (mr_cache){NULL};
    if (chosen && strcmp(chosen, "off") == 0) return;
    if (chosen && *chosen) length = asprintf(&out->folder, "%s", chosen);
    else if (shared && *shared == '/') length = asprintf(&out->folder, "%s/millrace", shared);
    else if (home && *home) length = asprintf(&out->folder, "%s/.cache/millrace", home);
    if (length < 0) out->folder = NULL;
}

void mr_cache_close(mr_cache *cache) {
    free(cache->folder);
    cache->folder = NULL;
}

static char *path_of(const mr_cache *cache, const mr_cache_key *key) {
    char name[2 * MR_HASH_SIZE + 1], *path = NULL;
    for (int i = 0; i < MR_HASH_SIZE; i++) snprintf(name + 2 * i, 3, "%02x", key->bytes[i]);
    if (!cache->folder || asprintf(&path, "%s/%s" ENDING, cache->folder, name) < 0) return NULL;
    return path;
}

/* ---------------------------------------------------------------- reading */

static void hash_of(const char *data, size_t size, unsigned char out[MR_HASH_SIZE]) {
    mr_hash hash;
    mr_hash_begin(&hash);
    mr_hash_add(&hash, data, size);
    mr_hash_end(&hash, out);
}

static bool read_whole(int file, size_t size, mr_buffer *out) {
    char *data = malloc(size + 1);
    size_t got = 0;
    for (ssize_t part = 1; data && got < size && part > 0; got += part > 0 ? (size_t)part : 0)
        part = read(file, data + got, size - got);
    if (data && got == size) mr_buffer_add(out, data, size);
    free(data);
    return out->size == size && !out->failed;
}

/* Only files of this user (or of root) count: what another user wrote would run as this user's kernels. */
static bool is_ours(const struct stat *facts) {
    return S_ISREG(facts->st_mode) && (facts->st_uid == geteuid() || facts->st_uid == 0);
}

static bool is_whole(const mr_buffer *file) {
    unsigned char hash[MR_HASH_SIZE];
    if (file->size < HEAD_SIZE || memcmp(file->data, layout, sizeof layout - 1) != 0) return false;
    hash_of(file->data + HEAD_SIZE, file->size - HEAD_SIZE, hash);
    return memcmp(hash, file->data + sizeof layout - 1, MR_HASH_SIZE) == 0;
}

bool mr_cache_get(const mr_cache *cache, const mr_cache_key *key, mr_buffer *out) {
    mr_buffer content = {0};
    struct stat facts;
    char *path = path_of(cache, key);
    int file = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW) : -1;
    free(path);
    if (file < 0) return false;
    bool is_found = fstat(file, &facts) == 0 && is_ours(&facts) && facts.st_size < (off_t)1 << 30 &&
                    read_whole(file, (size_t)facts.st_size, &content) && is_whole(&content);
    if (is_found) {
        futimens(file, NULL);
        mr_buffer_add(out, content.data + HEAD_SIZE, content.size - HEAD_SIZE);
    }
    close(file);
    mr_buffer_free(&content);
    return is_found && !out->failed;
}

/* ---------------------------------------------------------------- the folder */

typedef struct {
    char name[2 * MR_HASH_SIZE + sizeof ENDING];
    size_t size;
    struct timespec used;
} value;

typedef MR_VEC(value) values;

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), part = strlen(ending);
    return length >= part && strcmp(text + length - part, ending) == 0;
}

/* All values of the folder, and their size in blocks of the disk. Removes files of killed processes. */
static size_t list_values(DIR *folder, values *out) {
    size_t total = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat facts;
        value v = {.size = 0};
        bool is_value = ends_with(entry->d_name, ENDING) && strlen(entry->d_name) < sizeof v.name;
        bool is_temporary = strncmp(entry->d_name, TEMPORARY, strlen(TEMPORARY)) == 0;
        if ((!is_value && !is_temporary) ||
            fstatat(dirfd(folder), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (is_temporary && facts.st_mtime + TEMPORARY_AGE < time(NULL))
            unlinkat(dirfd(folder), entry->d_name, 0);
        if (!is_value) continue;
        size_t length = strlen(entry->d_name);
        if (length >= sizeof v.name) continue;
        memcpy(v.name, entry->d_name, length + 1);
        v.size = (size_t)facts.st_blocks * 512;
        v.used = facts.st_mtim;
        total += v.size;
        if (!mr_vec_push(out, v)) break;
    }
    return total;
}

static int by_use(const void *a, const void *b) {
    const value *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static size_t limit_of_size(void) {
    const char *text = getenv("MILLRACE_CACHE_SIZE");
    long megabytes = text ? strtol(text, NULL, 10) : 0;
    return megabytes > 0 && megabytes < 1 << 20 ? (size_t)megabytes << 20 : DEFAULT_LIMIT;
}

static void remove_old(const mr_cache *cache) {
    values list = {0};
    DIR *folder = opendir(cache->folder);
    if (!folder) return;
    size_t total = list_values(folder, &list), limit = limit_of_size();
    if (total > limit) {
        qsort(list.items, list.count, sizeof *list.items, by_use);
        for (size_t i = 0; i < list.count && total > limit / 10 * KEPT_TENTHS; i++) {
            unlinkat(dirfd(folder), list.items[i].name, 0);
            total -= list.items[i].size;
        }
    }
    mr_vec_free(&list);
    closedir(folder);
}

bool mr_cache_measure(const mr_cache *cache, size_t *out_count, size_t *out_size) {
    values list = {0};
    DIR *folder = cache->folder ? opendir(cache->folder) : NULL;
    if (!folder) return false;
    *out_size = list_values(folder, &list);
    *out_count = list.count;
    mr_vec_free(&list);
    closedir(folder);
    return true;
}

/* ---------------------------------------------------------------- writing */

static void make_folders(const char *path) {
    char *part = strdup(path);
    if (!part) return;
    for (char *at = part; *at;) {
        at += 1 + strcspn(at + 1, "/");
        char end = *at;
        *at = '\0';
        mkdir(part, 0700);
        *at = end;
    }
    free(part);
}

static bool is_writable(const mr_cache *cache) {
    if (!cache->folder) return false;
    make_folders(cache->folder);
    return access(cache->folder, W_OK | X_OK) == 0;
}

static bool write_whole(int file, const char *data, size_t size) {
    while (size > 0) {
        ssize_t part = write(file, data, size);
        if (part < 0 && errno != EINTR) return false;
        if (part > 0) {
            data += part;
            size -= (size_t)part;
        }
    }
    return true;
}

static bool write_value(int file, const char *data, size_t size) {
    unsigned char hash[MR_HASH_SIZE];
    hash_of(data, size, hash);
    return write_whole(file, layout, sizeof layout - 1) &&
           write_whole(file, (const char *)hash, sizeof hash) && write_whole(file, data, size);
}

void mr_cache_put(const mr_cache *cache, const mr_cache_key *key, const char *data, size_t size) {
    char *path = path_of(cache, key), *temporary = NULL;
    if (path && is_writable(cache) &&
        asprintf(&temporary, "%s/" TEMPORARY "XXXXXX", cache->folder) >= 0) {
        int file = mkostemp(temporary, O_CLOEXEC);
        bool is_written = file >= 0 && write_value(file, data, size);
        if (file >= 0 && close(file) != 0) is_written = false;
        if (file >= 0 && (!is_written || rename(temporary, path) != 0)) unlink(temporary);
        free(temporary);
        if (is_written) remove_old(cache);
    }
    free(path);
}
