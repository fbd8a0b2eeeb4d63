/* The timed chooser: by virtual time, ties by the order of submission. The default: what a GPU of this
 * model would do. */
#include <stdlib.h>

#include "virtual/state.h"
#include "virtual/step_heap.h"

typedef struct {
    mr_chooser base;
    step_heap heap;
} timed_chooser;

static bool offer(mr_chooser *chooser, const mr_step *step) {
    return mr_step_heap_push(&((timed_chooser *)chooser)->heap, step->time, step);
}

/* Nothing after an action that may not be taken now is taken either: time does not leap over it. */
static bool allowed(const mr_action *action, mr_choice_point point) {
    if (point > MR_CHOICE_ACCESS) return true;
    if (action->kind == MR_ACTION_HOST_FUNCTION) return false;
    return action->kind != MR_ACTION_FAULT || point == MR_CHOICE_ACCESS;
}

static bool take(mr_chooser *chooser, const mr_moment *moment, mr_step *out_step) {
    step_heap *heap = &((timed_chooser *)chooser)->heap;
    if (!heap->entries.count) return false;
    const heap_entry *first = heap->entries.items;
    if (first->time > moment->until && moment->point != MR_CHOICE_STEP) return false;
    if (!allowed(first->action, moment->point)) return false;
    *out_step = (mr_step){first->time, first->action, first->part};
    mr_step_heap_pop(heap);
    return true;
}

static void withdraw(mr_chooser *chooser, mr_action *action) {
    mr_step_heap_remove(&((timed_chooser *)chooser)->heap, action);
}

static void clear(mr_chooser *chooser) {
    ((timed_chooser *)chooser)->heap.entries.count = 0;
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
                                 .destroy = destroy};
    *out_chooser = &chooser->base;
    return MR_OK;
}
