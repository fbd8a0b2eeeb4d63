/* The base of the timed and the manual chooser: a chooser that keeps its steps ordered by (time, seq of the
 * command, order of the offer). */
#ifndef MR_VIRTUAL_CHOOSER_HEAP_H
#define MR_VIRTUAL_CHOOSER_HEAP_H

#include "base/vec.h"
#include "model/chooser.h"

typedef struct {
    uint64_t time, seq, order;
    const mr_command *command;
    void *work, *part;
} heap_entry;

typedef struct {
    mr_chooser base;
    uint64_t offers;
    MR_VEC(heap_entry) entries;
} heap_chooser;

/* A chooser that lacks `offer` and `take`. */
mr_status mr_heap_chooser_create(const char *name, heap_chooser **out_chooser);
bool mr_heap_push(heap_chooser *heap, uint64_t time, const mr_device_step *step);
const heap_entry *mr_heap_first(const heap_chooser *heap);             /* NULL: empty */
void mr_heap_take_first(heap_chooser *heap, mr_device_step *out_step); /* must not be empty */

#endif
