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

void mr_spares_drop(spares *s) {
    for (size_t i = 0; i < s->blocks.count; i++) free(s->blocks.items[i].at);
    mr_vec_free(&s->blocks);
    s->bytes = 0;
}
