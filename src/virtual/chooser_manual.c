/* The manual chooser: the device advances only when the user calls mr.machine.step. A wait of the host
 * must still end, so it runs the oldest ready submission. */
#include <stdlib.h>

#include "virtual/chooser.h"
#include "virtual/step_heap.h"

typedef struct {
    mr_chooser base;
    step_heap heap; /* all at time 0: in the order of submission */
} manual_chooser;

static bool offer(mr_chooser *chooser, const mr_step *step) {
    return mr_step_heap_push(&((manual_chooser *)chooser)->heap, 0, step);
}

static bool take(mr_chooser *chooser, const mr_moment *moment, mr_step *out_step) {
    step_heap *heap = &((manual_chooser *)chooser)->heap;
    if (moment->point != MR_CHOICE_WAIT && moment->point != MR_CHOICE_STEP) return false;
    if (!heap->entries.count) return false;
    const heap_entry *first = &heap->entries.items[0];
    *out_step = (mr_step){0, first->command, first->work, first->part};
    mr_step_heap_pop(heap);
    return true;
}

static void withdraw(mr_chooser *chooser, const void *gone) {
    mr_step_heap_remove(&((manual_chooser *)chooser)->heap, gone);
}

static void clear(mr_chooser *chooser) {
    ((manual_chooser *)chooser)->heap.entries.count = 0;
}

static size_t saved_size(const mr_chooser *chooser) {
    const manual_chooser *c = (const manual_chooser *)chooser;
    return MR_SAVED_SIZE(c->heap.offers, c->heap.entries);
}

static void save(const mr_chooser *chooser, void *out_copy) {
    const manual_chooser *c = (const manual_chooser *)chooser;
    MR_SAVE(c->heap.offers, c->heap.entries, out_copy);
}

static void load(mr_chooser *chooser, const void *copy) {
    manual_chooser *c = (manual_chooser *)chooser;
    MR_LOAD(c->heap.offers, c->heap.entries, copy);
}

static void destroy(mr_chooser *chooser) {
    mr_vec_free(&((manual_chooser *)chooser)->heap.entries);
    free(chooser);
}

mr_status mr_virtual_chooser_manual(mr_chooser **out_chooser) {
    manual_chooser *chooser = calloc(1, sizeof *chooser);
    if (!chooser) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a chooser");
    chooser->base = (mr_chooser){.name = "manual",
                                 .offer = offer,
                                 .take = take,
                                 .withdraw = withdraw,
                                 .clear = clear,
                                 .destroy = destroy,
                                 .saved_size = saved_size,
                                 .save = save,
                                 .load = load};
    *out_chooser = &chooser->base;
    return MR_OK;
}
