/* The cache on disk: one file for each compilation, named by a hash of all that was compiled.
 *
 * The cache never fails. A file that is damaged is a miss, and a folder that cannot be used holds nothing. Several
 * processes can use a folder at a time. */
#ifndef MR_COMPILE_CACHE_H
#define MR_COMPILE_CACHE_H

#include "base/buffer.h"
#include "compile/cache/hash.h"

typedef struct {
    char *folder; /* NULL: there is no cache */
} mr_cache;

typedef struct {
    unsigned char bytes[MR_HASH_SIZE];
} mr_cache_key;

/* By MILLRACE_CACHE ("off" or a folder), XDG_CACHE_HOME, HOME. */
void mr_cache_open(mr_cache *out);
void mr_cache_close(mr_cache *cache);

/* Appends the value of a key; false: there is none. Marks it as used. */
bool mr_cache_get(const mr_cache *cache, const mr_cache_key *key, mr_buffer *out);
/* Stores a value, and removes those that were not used for longest, once all are larger than the limit: 64 MiB, or
 * MILLRACE_CACHE_SIZE in MiB. */
void mr_cache_put(const mr_cache *cache, const mr_cache_key *key, const char *data, size_t size);

/* Number and size of the values, in bytes; false: there is no folder. */
bool mr_cache_measure(const mr_cache *cache, size_t *out_count, size_t *out_size);

#endif
