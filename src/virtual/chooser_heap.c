/* A chooser that keeps its steps in a binary heap: see chooser_heap.h. */
#include "virtual/chooser_heap.h"

#include <stdlib.h>

#include "virtual/chooser.h"

static bool before(const heap_entry *a, const heap_entry *b) {
    if (a->time != b->time) return a->time < b->time;
    if (a->seq != b->seq) return a->seq < b->seq;
    return a->order < b->order;
}

static void sift_up(heap_entry *entries, size_t i, heap_entry entry) {
    for (; i && before(&entry, &entries[(i - 1) / 2]); i = (i - 1) / 2)
        entries[i] = entries[(i - 1) / 2];
    entries[i] = entry;
}

static void sift_down(heap_entry *entries, size_t count, size_t i, heap_entry entry) {
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && before(&entries[child + 1], &entries[child])) child++;
        if (!before(&entries[child], &entry)) break;
        entries[i] = entries[child];
    }
    entries[i] = entry;
}

bool mr_heap_push(heap_chooser *heap, uint64_t time, const mr_device_step *step) {
    if (!mr_vec_reserve_one(&heap->entries)) return false;
    heap_entry entry = {time,          step->command->seq, heap->offers++,
                        step->command, step->work,         step->part};
    sift_up(heap->entries.items, heap->entries.count++, entry);
    return true;
}

const heap_entry *mr_heap_first(const heap_chooser *heap) {
    return heap->entries.count ? heap->entries.items : NULL;
}

void mr_heap_take_first(heap_chooser *heap, mr_device_step *out_step) {
    const heap_entry *first = heap->entries.items;
    *out_step = (mr_device_step){first->time, first->command, first->work, first->part};
    heap_entry last = mr_vec_pop(&heap->entries);
    if (heap->entries.count) sift_down(heap->entries.items, heap->entries.count, 0, last);
}

/* Linear in the number of steps. */
static void withdraw(mr_chooser *chooser, const void *gone) {
    heap_chooser *heap = (heap_chooser *)chooser;
    size_t kept = 0;
    for (size_t i = 0; i < heap->entries.count; i++)
        if (heap->entries.items[i].work != gone)
            heap->entries.items[kept++] = heap->entries.items[i];
    if (kept == heap->entries.count) return;
    heap->entries.count = kept;
    for (size_t i = kept / 2; i-- > 0;)
        sift_down(heap->entries.items, kept, i, heap->entries.items[i]);
}

static void clear(mr_chooser *chooser) {
    ((heap_chooser *)chooser)->entries.count = 0;
}

MR_CHOOSER_STATE(heap_chooser, offers, entries)

mr_status mr_heap_chooser_create(const char *name, heap_chooser **out_chooser) {
    heap_chooser *heap = calloc(1, sizeof *heap);
    if (!heap) return mr_no_memory("for a chooser");
    heap->base = (mr_chooser){.name = name,
                              .withdraw = withdraw,
                              .clear = clear,
                              .destroy = destroy,
                              .saved_size = saved_size,
                              .save = save,
                              .load = load};
    *out_chooser = heap;
    return MR_OK;
}
