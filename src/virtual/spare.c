/* Host memory that waits for its next use: see spare.h. */
#include "virtual/spare.h"

#include <stdlib.h>

#define LEAST       ((uint64_t)1 << 20) /* smaller blocks are the heap's */
#define MOST_BLOCKS 256

void *mr_spares_take(spares *s, uint64_t size) {
    for (size_t i = s->blocks.count; i-- > 0;) {
        if (s->blocks.items[i].size != size) continue;
        void *at = s->blocks.items[i].at;
        s->blocks.items[i] = mr_vec_pop(&s->blocks);
        s->bytes -= size;
        return at;
    }
    return NULL;
}

bool mr_spares_keep(spares *s, void *at, uint64_t size) {
    if (size < LEAST || s->blocks.count == MOST_BLOCKS) return false;
    if (!mr_vec_push(&s->blocks, ((spare_block){at, size}))) return false;
    s->bytes += size;
    return true;
}

void mr_spares_drop(spares *s, size_t bytes) {
    for (size_t dropped = 0; s->blocks.count && dropped < bytes;) {
        spare_block b = mr_vec_pop(&s->blocks);
        free(b.at);
        dropped += b.size;
        s->bytes -= b.size;
    }
    if (!s->blocks.count) mr_vec_free(&s->blocks);
}
