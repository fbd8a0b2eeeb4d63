/* BLAKE2b (RFC 7693) with a result of 32 bytes: names the entries of the cache and checks their contents. */
#ifndef MR_COMPILE_HASH_H
#define MR_COMPILE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define MR_HASH_SIZE 32

typedef struct {
    uint64_t state[8];
    uint64_t total; /* bytes that are in `state` */
    unsigned char block[128];
    size_t used; /* of `block` */
} mr_hash;

void mr_hash_begin(mr_hash *hash);
void mr_hash_add(mr_hash *hash, const void *data, size_t size);
void mr_hash_end(mr_hash *hash, unsigned char out[MR_HASH_SIZE]);

#endif
