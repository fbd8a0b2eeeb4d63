/* The manual chooser: the device moves only when a person says so (mr.machine.step). A wait of the
 * host must end all the same; it then takes the oldest submission that is ready. */
#include <stdlib.h>

#include "virtual/state.h"
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
    *out_step = (mr_step){0, heap->entries.items[0].action, heap->entries.items[0].part};
    mr_step_heap_pop(heap);
    return true;
}

static void withdraw(mr_chooser *chooser, mr_action *action) {
    mr_step_heap_remove(&((manual_chooser *)chooser)->heap, action);
}

static void clear(mr_chooser *chooser) {
    ((manual_chooser *)chooser)->heap.entries.count = 0;
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
                                 .destroy = destroy};
    *out_chooser = &chooser->base;
    return MR_OK;
}
