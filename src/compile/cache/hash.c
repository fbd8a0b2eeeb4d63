/* BLAKE2b: see hash.h. The names are those of RFC 7693. */
#include "compile/cache/hash.h"

#include <string.h>

static const uint64_t iv[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                               0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                               0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

static const unsigned char sigma[12][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                            {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                            {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                            {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                            {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                            {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                            {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                            {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                            {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                            {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
                                            {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                            {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3}};

static uint64_t rotate(uint64_t x, int by) {
    return x >> by | x << (64 - by);
}

static void mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y) {
    v[a] += v[b] + x;
    v[d] = rotate(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 63);
}

static void compress(mr_hash *hash, const unsigned char *block, uint64_t last) {
    uint64_t v[16], m[16];
    for (int i = 0; i < 16; i++) {
        m[i] = 0;
        for (int j = 7; j >= 0; j--) m[i] = m[i] << 8 | block[8 * i + j];
    }
    memcpy(v, hash->state, sizeof hash->state);
    memcpy(v + 8, iv, sizeof iv);
    v[12] ^= hash->total;
    v[14] ^= last;
    for (int round = 0; round < 12; round++) {
        const unsigned char *s = sigma[round];
        mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
        mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
        mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
        mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
        mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
        mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
        mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
        mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++) hash->state[i] ^= v[i] ^ v[i + 8];
}

void mr_hash_begin(mr_hash *hash) {
    *hash = (mr_hash){.total = 0};
    memcpy(hash->state, iv, sizeof iv);
    hash->state[0] ^= 0x01010000 ^ MR_HASH_SIZE; /* no key */
}

/* The last block is compressed in another way, so a full block waits until more comes. */
void mr_hash_add(mr_hash *hash, const void *data, size_t size) {
    const unsigned char *next = data;
    while (size > 0) {
        if (hash->used == sizeof hash->block) {
            hash->total += hash->used;
            compress(hash, hash->block, 0);
            hash->used = 0;
        }
        size_t room = sizeof hash->block - hash->used;
        size_t part = size < room ? size : room;
        memcpy(hash->block + hash->used, next, part);
        hash->used += part;
        next += part;
        size -= part;
    }
}

void mr_hash_end(mr_hash *hash, unsigned char out[MR_HASH_SIZE]) {
    hash->total += hash->used;
    memset(hash->block + hash->used, 0, sizeof hash->block - hash->used);
    compress(hash, hash->block, ~(uint64_t)0);
    for (int i = 0; i < MR_HASH_SIZE; i++)
        out[i] = (unsigned char)(hash->state[i / 8] >> (8 * (i % 8)));
}
