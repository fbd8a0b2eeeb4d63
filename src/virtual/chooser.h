/* The choosers, and what they share. */
#ifndef MR_VIRTUAL_CHOOSER_H
#define MR_VIRTUAL_CHOOSER_H

#include <string.h>

#include "virtual/state.h"

mr_status mr_virtual_chooser_create(vgpu *gpu, const char *name, mr_chooser **out_chooser);
mr_status mr_virtual_chooser_timed(mr_chooser **out_chooser);
mr_status mr_virtual_chooser_manual(mr_chooser **out_chooser);
mr_status mr_virtual_chooser_random(uint64_t seed, mr_chooser **out_chooser);
mr_status mr_virtual_chooser_adversarial(vgpu *gpu, mr_chooser **out_chooser);

/* The slots saved_size, save, load and destroy of a chooser whose state is the struct `head` and the vector `vec`. The
 * vector's memory never shrinks, so a copy of it fits back. */
#define MR_CHOOSER_STATE(type, head, vec)                                                          \
    static size_t saved_size(const mr_chooser *chooser) {                                          \
        const type *c = (const type *)chooser;                                                     \
        return sizeof c->head + sizeof c->vec.count + c->vec.count * sizeof *c->vec.items;         \
    }                                                                                              \
    static void save(const mr_chooser *chooser, void *out_copy) {                                  \
        const type *c = (const type *)chooser;                                                     \
        mr_chooser_save_parts(&c->head, sizeof c->head, c->vec.items, c->vec.count,                \
                              sizeof *c->vec.items, out_copy);                                     \
    }                                                                                              \
    static void load(mr_chooser *chooser, const void *copy) {                                      \
        type *c = (type *)chooser;                                                                 \
        mr_chooser_load_parts(&c->head, sizeof c->head, c->vec.items, &c->vec.count,               \
                              sizeof *c->vec.items, copy);                                         \
    }                                                                                              \
    static void destroy(mr_chooser *chooser) {                                                     \
        mr_vec_free(&((type *)chooser)->vec);                                                      \
        free(chooser);                                                                             \
    }

static inline void mr_chooser_save_parts(const void *head, size_t head_size, const void *items,
                                         size_t count, size_t item_size, void *out_copy) {
    char *out = out_copy;
    memcpy(out, &count, sizeof count);
    memcpy(out + sizeof count, head, head_size);
    if (count) memcpy(out + sizeof count + head_size, items, count * item_size);
}

static inline void mr_chooser_load_parts(void *head, size_t head_size, void *items,
                                         size_t *out_count, size_t item_size, const void *copy) {
    const char *in = copy;
    memcpy(out_count, in, sizeof *out_count);
    memcpy(head, in + sizeof *out_count, head_size);
    if (*out_count) memcpy(items, in + sizeof *out_count + head_size, *out_count * item_size);
}

#endif
