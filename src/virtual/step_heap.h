/* Steps ordered by (time, seq of the command, order of the offer): the timed and the manual chooser use
 * it. */
#ifndef MR_VIRTUAL_STEP_HEAP_H
#define MR_VIRTUAL_STEP_HEAP_H

#include "base/vec.h"
#include "model/chooser.h"

typedef struct {
    uint64_t time, seq, order;
    const mr_command *command;
    void *work, *part;
} heap_entry;

typedef struct {
    uint64_t offers;
    MR_VEC(heap_entry) entries; /* its memory never shrinks */
} step_heap;

bool mr_step_heap_push(step_heap *heap, uint64_t time, const mr_step *step);
void mr_step_heap_pop(step_heap *heap);                      /* must not be empty */
void mr_step_heap_remove(step_heap *heap, const void *work); /* all its steps; linear */

#endif
