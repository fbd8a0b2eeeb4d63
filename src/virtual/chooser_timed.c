/* The timed chooser, the default: steps in the order of virtual time, ties in the order of submission, as
 * a GPU of this model would run them. */
#include <stdlib.h>

#include "virtual/chooser.h"
#include "virtual/step_heap.h"

typedef struct {
    mr_chooser base;
    step_heap heap;
} timed_chooser;

static bool offer(mr_chooser *chooser, const mr_step *step) {
    return mr_step_heap_push(&((timed_chooser *)chooser)->heap, step->time, step);
}

/* Nothing after a command that may not be taken now is taken either: time does not leap over it. */
static bool allowed(const mr_command *command, mr_choice_point point) {
    if (point > MR_CHOICE_ACCESS) return true;
    if (command->kind == MR_COMMAND_HOST_FUNCTION) return false;
    return command->kind != MR_COMMAND_FAULT || point == MR_CHOICE_ACCESS;
}

static bool take(mr_chooser *chooser, const mr_moment *moment, mr_step *out_step) {
    step_heap *heap = &((timed_chooser *)chooser)->heap;
    if (!heap->entries.count) return false;
    const heap_entry *first = heap->entries.items;
    if (first->time > moment->until && moment->point != MR_CHOICE_STEP) return false;
    if (!allowed(first->command, moment->point)) return false;
    *out_step = (mr_step){first->time, first->command, first->work, first->part};
    mr_step_heap_pop(heap);
    return true;
}

static void withdraw(mr_chooser *chooser, const void *gone) {
    mr_step_heap_remove(&((timed_chooser *)chooser)->heap, gone);
}

static void clear(mr_chooser *chooser) {
    ((timed_chooser *)chooser)->heap.entries.count = 0;
}

static size_t saved_size(const mr_chooser *chooser) {
    const timed_chooser *c = (const timed_chooser *)chooser;
    return MR_SAVED_SIZE(c->heap.offers, c->heap.entries);
}

static void save(const mr_chooser *chooser, void *out_copy) {
    const timed_chooser *c = (const timed_chooser *)chooser;
    MR_SAVE(c->heap.offers, c->heap.entries, out_copy);
}

static void load(mr_chooser *chooser, const void *copy) {
    timed_chooser *c = (timed_chooser *)chooser;
    MR_LOAD(c->heap.offers, c->heap.entries, copy);
}

static void destroy(mr_chooser *chooser) {
    mr_vec_free(&((timed_chooser *)chooser)->heap.entries);
    free(chooser);
}

mr_status mr_virtual_chooser_timed(mr_chooser **out_chooser) {
    timed_chooser *chooser = calloc(1, sizeof *chooser);
    if (!chooser) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a chooser");
    chooser->base = (mr_chooser){.name = "timed",
                                 .timed = true,
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
