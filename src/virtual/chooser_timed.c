/* The timed chooser, the default: steps in the order of virtual time, ties in the order of submission, as
 * a GPU of this model would run them. */
#include "virtual/chooser.h"
#include "virtual/chooser_heap.h"

static bool offer(mr_chooser *chooser, const mr_device_step *step) {
    return mr_heap_push((heap_chooser *)chooser, step->time, step);
}

/* Steps after a command that may not be taken now are not taken, either: time does not skip it. */
static bool allowed(const mr_command *command, mr_choice_point point) {
    if (point > MR_CHOICE_ACCESS) return true;
    switch (command->kind) {
    case MR_COMMAND_HOST_FUNCTION: return false;
    case MR_COMMAND_FAULT: return point == MR_CHOICE_ACCESS;
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return true;
}

static bool take(mr_chooser *chooser, const mr_moment *moment, mr_device_step *out_step) {
    heap_chooser *heap = (heap_chooser *)chooser;
    const heap_entry *first = mr_heap_first(heap);
    if (!first) return false;
    if (first->time > moment->until && moment->point != MR_CHOICE_STEP) return false;
    if (!allowed(first->command, moment->point)) return false;
    mr_heap_take_first(heap, out_step);
    return true;
}

mr_status mr_virtual_chooser_timed(mr_chooser **out_chooser) {
    heap_chooser *heap;
    MR_TRY(mr_heap_chooser_create("timed", &heap));
    heap->base.timed = true;
    heap->base.offer = offer;
    heap->base.take = take;
    *out_chooser = &heap->base;
    return MR_OK;
}
