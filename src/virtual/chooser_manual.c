/* The manual chooser: the device advances only when the user calls mr.machine.step. A wait of the host
 * must still end, so it runs the oldest ready submission. */
#include "virtual/chooser.h"
#include "virtual/chooser_heap.h"

/* All at time 0: in the order of submission. */
static bool offer(mr_chooser *chooser, const mr_device_step *step) {
    return mr_heap_push((heap_chooser *)chooser, 0, step);
}

static bool take(mr_chooser *chooser, const mr_moment *moment, mr_device_step *out_step) {
    heap_chooser *heap = (heap_chooser *)chooser;
    if (moment->point != MR_CHOICE_WAIT && moment->point != MR_CHOICE_STEP) return false;
    if (!mr_heap_first(heap)) return false;
    mr_heap_take_first(heap, out_step);
    return true;
}

mr_status mr_virtual_chooser_manual(mr_chooser **out_chooser) {
    heap_chooser *heap;
    MR_TRY(mr_heap_chooser_create("manual", &heap));
    heap->base.offer = offer;
    heap->base.take = take;
    *out_chooser = &heap->base;
    return MR_OK;
}
