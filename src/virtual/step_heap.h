/* Steps ordered by (time, seq of the action, order of the offer): what the timed and the manual
 * chooser keep. */
#ifndef MR_VIRTUAL_STEP_HEAP_H
#define MR_VIRTUAL_STEP_HEAP_H

#include "base/vec.h"
#include "model/chooser.h"

typedef struct {
    uint64_t time, seq, order;
    mr_action *action;
    void *part;
} heap_entry;

typedef struct {
    MR_VEC(heap_entry) entries;
    uint64_t offers;
} step_heap;

bool mr_step_heap_push(step_heap *heap, uint64_t time, const mr_step *step);
void mr_step_heap_pop(step_heap *heap);                             /* must not be empty */
void mr_step_heap_remove(step_heap *heap, const mr_action *action); /* all steps of it; linear */

#endif
