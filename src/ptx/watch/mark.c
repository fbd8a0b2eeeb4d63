/* Marks: the bytes of some memory that a launch has accessed, and how. The watch's shadow memory does not know this,
 * since it forgets an access that a later one replaces. */
#include "ptx/watch/state.h"

bool mr_ptx_watch_mark(mr_ptx_watch *watch, uint64_t address, uint64_t bytes, bool is_shared,
                       _Atomic uint8_t *marks) {
    ptx_marked marked = {address, bytes, is_shared ? PTX_SCOPE_SYSTEM : PTX_SCOPE_DEVICE, marks};
    return mr_vec_push(&watch->marked, marked);
}

void mr_ptx_watch_unmark(mr_ptx_watch *watch) {
    watch->marked.count--;
}

static uint8_t mark_of(const ptx_watched *a, ptx_scope least) {
    uint8_t mark = (a->access & MR_PTX_READS ? PTX_MARK_READ : 0) |
                   (a->access & MR_PTX_WRITES ? PTX_MARK_WRITE : 0);
    bool is_update = a->atomic && a->order >= PTX_RELAXED && a->scope >= least &&
                     mark == (PTX_MARK_READ | PTX_MARK_WRITE);
    return is_update ? PTX_MARK_UPDATE : mark;
}

/* Other threads mark at the same time. Most bytes of a loop have the mark already. */
static void mark_bytes(const ptx_marked *m, uint64_t address, uint64_t bytes, uint8_t mark) {
    uint64_t first = address > m->address ? address - m->address : 0;
    uint64_t end = address + bytes > m->address ? address + bytes - m->address : 0;
    if (end > m->bytes) end = m->bytes;
    for (uint64_t i = first; i < end; i++) {
        uint8_t old = atomic_load_explicit(&m->marks[i], memory_order_relaxed);
        if ((old & mark) != mark)
            atomic_fetch_or_explicit(&m->marks[i], mark, memory_order_relaxed);
    }
}

void ptx_mark(mr_ptx_watch *watch, const ptx_watched *a) {
    for (size_t i = 0; i < watch->marked.count; i++) {
        const ptx_marked *m = &watch->marked.items[i];
        uint8_t mark = mark_of(a, m->least);
        for (uint32_t lanes = a->mask; lanes; lanes &= lanes - 1)
            mark_bytes(m, a->address[__builtin_ctz(lanes)], a->bytes, mark);
    }
}
