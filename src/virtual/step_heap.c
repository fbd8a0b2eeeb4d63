/* A binary heap of steps: see step_heap.h. */
#include "virtual/step_heap.h"

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

bool mr_step_heap_push(step_heap *heap, uint64_t time, const mr_step *step) {
    if (!mr_vec_reserve_one(&heap->entries)) return false;
    heap_entry entry = {time,          step->command->seq, heap->offers++,
                        step->command, step->work,         step->part};
    sift_up(heap->entries.items, heap->entries.count++, entry);
    return true;
}

void mr_step_heap_pop(step_heap *heap) {
    heap_entry last = mr_vec_pop(&heap->entries);
    if (heap->entries.count) sift_down(heap->entries.items, heap->entries.count, 0, last);
}

void mr_step_heap_remove(step_heap *heap, const void *work) {
    size_t kept = 0;
    for (size_t i = 0; i < heap->entries.count; i++)
        if (heap->entries.items[i].work != work)
            heap->entries.items[kept++] = heap->entries.items[i];
    if (kept == heap->entries.count) return;
    heap->entries.count = kept;
    for (size_t i = kept / 2; i-- > 0;)
        sift_down(heap->entries.items, kept, i, heap->entries.items[i]);
}
