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

/* Macros for the slots saved_size, save and load of a chooser. Its state is a struct and a vector, whose memory never
 * shrinks, so a copy of it fits back. */
#define MR_SAVED_SIZE(head, vec)                                                                   \
    (sizeof(head) + sizeof(vec).count + (vec).count * sizeof *(vec).items)
#define MR_SAVE(head, vec, out_copy)                                                               \
    mr_chooser_save_parts(&(head), sizeof(head), (vec).items, (vec).count, sizeof *(vec).items,    \
                          out_copy)
#define MR_LOAD(head, vec, copy)                                                                   \
    mr_chooser_load_parts(&(head), sizeof(head), (vec).items, &(vec).count, sizeof *(vec).items,   \
                          copy)

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
