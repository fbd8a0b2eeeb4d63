/* Unwritten bytes, as in the memory of mr.empty. A read of them gets any value under every schedule, so it is a hazard
 * of its own.
 *
 * Bytes count as written once a write was submitted. If nothing orders that write before a read, that is a race, and is
 * reported as one. A copy does not count as a read: it passes the unwritten bytes on, and an operation that computes
 * with them is reported. After a report, those bytes count as written.
 *
 * Kept for each byte, and only while some are unwritten: history.watched is false for all other memory, and a use of
 * that memory checks only this flag. Host functions write host memory when they run (R46), so commands submitted after
 * one are judged once it has run. */
#include "hazard/explain.h"

#include <stdlib.h>
#include <string.h>

#include "ops/ids.h"
#include "ops/kernel.h"
#include "ops/op.h"

#define PAGE       4096u
#define PAGE_WORDS (PAGE / 64)
/* accesses that wait for host functions; further reads are not judged */
#define MOST_DEFERRED (1u << 16)

struct unset {
    uint64_t left; /* bytes that nothing has written */
    uint64_t bytes, page_count;
    mr_site made;     /* where their memory was allocated, if they came by a copy */
    uint64_t *page[]; /* NULL: all written; `whole`: none; else a bit for each byte that is not */
};

static uint64_t whole[PAGE_WORDS]; /* stands for a page in which nothing has been written */
static unset nothing;              /* and this for such memory */

typedef struct {
    uint64_t count, first, last;
} gap;

/* ---- bits */

static uint64_t mask_of(unsigned from, unsigned to) { /* of one word; to in 1..64 */
    uint64_t below = to == 64 ? UINT64_MAX : ((uint64_t)1 << to) - 1;
    return below & ~(((uint64_t)1 << from) - 1);
}

static void gap_add(gap *g, uint64_t from, uint64_t to) {
    if (!g->count) g->first = from;
    g->count += to - from;
    g->last = to - 1;
}

static void page_look(const uint64_t *page, uint64_t base, unsigned from, unsigned to, gap *g) {
    if (!page) return;
    if (page == whole) {
        gap_add(g, base + from, base + to);
        return;
    }
    for (unsigned w = from / 64; w <= (to - 1) / 64; w++) {
        unsigned low = w == from / 64 ? from % 64 : 0;
        unsigned high = w == (to - 1) / 64 ? (to - 1) % 64 + 1 : 64;
        uint64_t bits = page[w] & mask_of(low, high);
        if (!bits) continue;
        uint64_t at = base + w * 64u;
        if (!g->count) g->first = at + (unsigned)__builtin_ctzll(bits);
        g->count += (unsigned)__builtin_popcountll(bits);
        g->last = at + 63 - (unsigned)__builtin_clzll(bits);
    }
}

static void gap_look(const unset *u, uint64_t from, uint64_t to, gap *g) {
    if (u == &nothing) {
        gap_add(g, from, to);
        return;
    }
    for (uint64_t at = from; u && at < to;) {
        uint64_t base = at / PAGE * PAGE, end = base + PAGE < to ? base + PAGE : to;
        page_look(u->page[at / PAGE], base, (unsigned)(at - base), (unsigned)(end - base), g);
        at = end;
    }
}

/* A page with bits of its own; NULL: no memory. */
static uint64_t *page_own(unset *u, uint64_t index) {
    uint64_t *page = u->page[index];
    if (page && page != whole) return page;
    bool full = page == whole;
    page = malloc(PAGE_WORDS * sizeof *page);
    if (!page) return NULL;
    memset(page, full ? 0xff : 0, PAGE_WORDS * sizeof *page);
    u->page[index] = page;
    return page;
}

static void page_release(uint64_t *page) {
    if (page != whole) free(page);
}

/* Makes [from, to) written, or not. False: no memory. */
static bool bits_change(unset *u, uint64_t from, uint64_t to, bool missing) {
    for (uint64_t at = from; at < to;) {
        uint64_t index = at / PAGE, base = index * PAGE;
        uint64_t end = base + PAGE < to ? base + PAGE : to;
        uint64_t page_end = base + PAGE < u->bytes ? base + PAGE : u->bytes;
        gap before = {0};
        page_look(u->page[index], base, (unsigned)(at - base), (unsigned)(end - base), &before);
        if (at == base && end == page_end) {
            page_release(u->page[index]);
            u->page[index] = missing ? whole : NULL;
        } else if (before.count != (missing ? end - at : 0)) {
            uint64_t *page = page_own(u, index);
            if (!page) return false;
            unsigned low = (unsigned)(at - base), high = (unsigned)(end - base);
            for (unsigned w = low / 64; w <= (high - 1) / 64; w++) {
                uint64_t bits = mask_of(w == low / 64 ? low % 64 : 0,
                                        w == (high - 1) / 64 ? (high - 1) % 64 + 1 : 64);
                page[w] = missing ? page[w] | bits : page[w] & ~bits;
            }
        }
        u->left -= before.count;
        if (missing) u->left += end - at;
        at = end;
    }
    return true;
}

/* ---- of a storage */

static void rewatch(history *h) {
    h->watched = h->unset || h->unset_events;
}

static void unset_destroy(unset *u) {
    if (!u || u == &nothing) return;
    for (uint64_t i = 0; i < u->page_count; i++) page_release(u->page[i]);
    free(u);
}

void mr_hazard_unset_begin(history *h) {
    if (h->unset || !h->storage->bytes) return;
    h->unset = &nothing;
    h->watched = true;
}

void mr_hazard_unset_drop(history *h) {
    unset_destroy(h->unset);
    h->unset = NULL;
    rewatch(h);
}

/* ---- while functions are explored */

void mr_hazard_unset_drop_kept(history *h) {
    if (h->is_kept) unset_destroy(h->kept);
    h->kept = NULL;
    h->is_kept = false;
}

/* NULL: no memory, and all of it counts as written. */
static unset *copy_of(unset *u) {
    if (!u || u == &nothing) return u;
    unset *copy = malloc(sizeof *u + u->page_count * sizeof *u->page);
    if (!copy) return NULL;
    *copy = *u;
    for (uint64_t i = 0; i < u->page_count; i++) {
        copy->page[i] = u->page[i];
        if (!u->page[i] || u->page[i] == whole) continue;
        copy->page[i] = malloc(PAGE_WORDS * sizeof *u->page[i]);
        if (copy->page[i]) memcpy(copy->page[i], u->page[i], PAGE_WORDS * sizeof *u->page[i]);
    }
    return copy;
}

void mr_hazard_unset_keep(checker *c) {
    for (history *h = c->histories.all; h; h = h->next) {
        mr_hazard_unset_drop_kept(h);
        h->kept = copy_of(h->unset);
        h->is_kept = true;
    }
}

void mr_hazard_unset_put_back(checker *c, uint64_t last) {
    for (history *h = c->histories.all; h; h = h->next) {
        bool was_blank = h->storage->blank && h->storage->id <= last;
        if (h->is_kept) {
            unset_destroy(h->unset);
            h->unset = h->kept;
            h->kept = NULL;
            h->is_kept = false;
            rewatch(h);
        } else if (was_blank && h->storage->id > c->histories.first_storage) {
            mr_hazard_unset_drop(h); /* first met inside */
            mr_hazard_unset_begin(h);
        }
    }
}

/* One that can be changed; NULL: no memory, and all of it counts as written. */
static unset *own_unset(checker *c, history *h) {
    if (h->unset && h->unset != &nothing) return h->unset;
    uint64_t bytes = h->storage->bytes, pages = (bytes + PAGE - 1) / PAGE;
    unset *u = malloc(sizeof *u + pages * sizeof *u->page);
    if (u) {
        *u = (unset){.bytes = bytes, .page_count = pages, .left = h->unset ? bytes : 0};
        for (uint64_t i = 0; i < pages; i++) u->page[i] = h->unset ? whole : NULL;
    } else {
        c->out_of_memory = true;
    }
    h->unset = u;
    return u;
}

/* After a change. */
static void update_flags(checker *c, history *h, bool had_memory) {
    if (!had_memory) c->out_of_memory = true;
    if (!had_memory || (h->unset && h->unset != &nothing && !h->unset->left))
        mr_hazard_unset_drop(h);
    rewatch(h);
}

typedef struct {
    unset *unset;
    gap gap;
    bool missing, had_memory;
} walk;

/* The runs of bytes of a view, from dim k on. */
static void each_run(const byte_view *v, int k, uint64_t first, walk *w,
                     void (*visit)(walk *w, uint64_t from, uint64_t to)) {
    if (k == v->ndim) {
        visit(w, first, first + v->run);
        return;
    }
    for (int64_t i = 0; i < v->dim[k].count; i++)
        each_run(v, k + 1, first + (uint64_t)(i * v->dim[k].stride), w, visit);
}

static void visit_look(walk *w, uint64_t from, uint64_t to) {
    gap_look(w->unset, from, to, &w->gap);
}

static void visit_change(walk *w, uint64_t from, uint64_t to) {
    w->had_memory = w->had_memory && bits_change(w->unset, from, to, w->missing);
}

static gap missing_in(const history *h, const byte_view *view) {
    walk w = {.unset = h->unset};
    if (h->unset) each_run(view, 0, view->first, &w, visit_look);
    return w.gap;
}

static void mark_written(checker *c, history *h, const byte_view *view) {
    if (!h->unset) return;
    if ((view->ndim == 0 && view->run == h->storage->bytes) || MR_BROKEN(UNSET_WHOLE)) {
        mr_hazard_unset_drop(h);
        return;
    }
    walk w = {.unset = own_unset(c, h), .had_memory = true};
    if (w.unset) each_run(view, 0, view->first, &w, visit_change);
    update_flags(c, h, w.unset && w.had_memory);
}

/* ---- copies */

/* Where an element lies, by its index in the copy's shape: the source may be broadcast. */
static uint64_t place_of(const mr_tensor *t, const mr_tensor *shape, int64_t index, uint64_t size) {
    int64_t at = t->offset;
    for (int d = shape->ndim - 1; d >= 0; d--) {
        int64_t i = index % shape->shape[d];
        int own_dim = d - (shape->ndim - t->ndim);
        index /= shape->shape[d];
        if (own_dim >= 0 && t->shape[own_dim] > 1) at += i * t->stride[own_dim];
    }
    return (uint64_t)at * size;
}

/* Both dense, byte for byte. */
static bool copy_range(unset *to, uint64_t at, const unset *from, uint64_t of, uint64_t bytes) {
    for (uint64_t end = of + bytes, next; of < end; at += next - of, of = next) {
        next = of / PAGE * PAGE + PAGE < end ? of / PAGE * PAGE + PAGE : end;
        gap g = {0};
        gap_look(from, of, next, &g);
        bool mixed = g.count && g.count < next - of;
        if (!mixed && !bits_change(to, at, at + (next - of), g.count > 0)) return false;
        for (uint64_t b = 0; mixed && b < next - of; b++) {
            gap one = {0};
            gap_look(from, of + b, of + b + 1, &one);
            if (!bits_change(to, at + b, at + b + 1, one.count)) return false;
        }
    }
    return true;
}

static bool copy_elements(unset *to, const mr_tensor *target, const unset *from,
                          const mr_tensor *source) {
    uint64_t to_size = mr_dtype_size((mr_dtype)target->dtype);
    uint64_t from_size = mr_dtype_size((mr_dtype)source->dtype);
    if (target->contiguous && source->contiguous && target->dtype == source->dtype &&
        target->numel == source->numel)
        return copy_range(to, (uint64_t)target->offset * to_size, from,
                          (uint64_t)source->offset * from_size, (uint64_t)target->numel * to_size);
    for (int64_t i = 0; i < target->numel; i++) {
        uint64_t at = place_of(target, target, i, to_size);
        uint64_t of = place_of(source, target, i, from_size);
        gap g = {0};
        if (target->dtype == source->dtype) {
            if (!copy_range(to, at, from, of, to_size)) return false;
            continue;
        }
        /* an element with an unwritten part counts as unwritten */
        gap_look(from, of, of + from_size, &g);
        if (!bits_change(to, at, at + to_size, g.count > 0)) return false;
    }
    return true;
}

static void mark_copied(checker *c, const unset_event *e) {
    byte_view to, from;
    if (!mr_hazard_view_of(&e->tensor, &to) || !mr_hazard_view_of(&e->source, &from)) return;
    gap g = missing_in(e->from, &from);
    if (!g.count || MR_BROKEN(UNSET_COPIED)) {
        mark_written(c, e->history, &to);
        return;
    }
    mr_site made = e->from->unset == &nothing || !e->from->unset->made.file ? e->from->storage->made
                                                                            : e->from->unset->made;
    unset *u = own_unset(c, e->history);
    bool had_memory = u && copy_elements(u, &e->tensor, e->from->unset, &e->source);
    if (u) u->made = made;
    update_flags(c, e->history, had_memory);
}

/* ---- reads */

/* One bit a byte of the storage, lowest bit first; NULL: no memory. */
static uint8_t *bits_of(const history *h) {
    const uint64_t bytes = h->storage->bytes;
    uint8_t *bits = calloc(bytes / 8 + 1, 1);
    for (uint64_t at = 0; bits && at < bytes; at += PAGE) {
        const uint64_t *page = h->unset == &nothing ? whole : h->unset->page[at / PAGE];
        uint64_t size = bytes - at < PAGE ? bytes - at : PAGE;
        if (!page) continue;
        for (uint64_t b = 0; b < size; b++) {
            bool missing = page == whole || (page[b / 64] >> (b % 64) & 1);
            bits[(at + b) / 8] |= (uint8_t)(missing << ((at + b) % 8));
        }
    }
    return bits;
}

/* The launch may read written and unwritten bytes: which ones, is known when it runs. */
static void keep_before(checker *c, const unset_event *e) {
    const mr_storage *storage = e->history->storage;
    if (!e->only_look && mr_hazard_before_wanted(c, e->seq, storage))
        mr_hazard_before_keep(c, e->seq, storage, bits_of(e->history));
}

static void report_read(checker *c, const unset_event *e, const byte_view *view, gap g) {
    history *h = e->history;
    byte_view missing = {.first = g.first, .end = g.last + 1, .run = g.last + 1 - g.first};
    found_pair pair = {.kind = MR_HAZARD_UNINITIALISED_READ,
                       .history = h,
                       .tensor = &e->tensor,
                       .first = h->alloc_actor ? h->alloc_actor : &c->order.host_actor,
                       .second = e->actor,
                       .first_seq = h->alloc_seq,
                       .second_seq = e->seq,
                       .second_access = e->access,
                       .first_op = "alloc",
                       .second_op = e->op,
                       .first_where = h->storage->made,
                       .second_where = e->where,
                       .first_view = &missing,
                       .second_view = view,
                       .unset_bytes = g.count,
                       .only_look = e->only_look};
    if (h->unset != &nothing) pair.unset_made = h->unset->made;
    mr_hazard_tell_found(c, &pair);
    mr_hazard_pair_found(c, &pair);
}

static void event_apply(checker *c, const unset_event *e) {
    byte_view view;
    if (e->from) {
        mark_copied(c, e);
        return;
    }
    if (!e->history->unset || !mr_hazard_view_of(&e->tensor, &view)) return;
    if (e->access & MR_READ) {
        gap g = missing_in(e->history, &view);
        if (!g.count) return;
        bool some_are_set = g.count < view.end - view.first;
        if (e->at_most && (some_are_set || e->guessed || e->may_set)) {
            keep_before(c, e);
            return;
        }
        report_read(c, e, &view, g);
        if (e->only_look) return;
    }
    mark_written(c, e->history, &view);
}

/* ---- what waits for host functions */

static void event_free(checker *c, unset_event *e) {
    history *of[2] = {e->history, e->from};
    mr_hazard_actor_release(c, e->actor);
    mr_name_release(e->op_name);
    mr_name_release(e->tensor.name);
    for (int i = 0; i < 2 && of[i]; i++) {
        of[i]->unset_events--;
        rewatch(of[i]);
    }
    for (int i = 0; i < 2 && of[i]; i++) mr_storage_release(of[i]->storage);
}

/* In the order of submission; those of one command as they come. */
static void event_defer(checker *c, const unset_event *e) {
    if (c->unset.events.count >= MOST_DEFERRED) {
        mr_claims_add(&c->totals.claims, MR_CLAIM_FORGOTTEN);
        return;
    }
    if (!mr_vec_push(&c->unset.events, *e)) {
        c->out_of_memory = true;
        return;
    }
    unset_event *items = c->unset.events.items;
    size_t at = c->unset.events.count - 1;
    for (; at > 0 && items[at - 1].seq > e->seq; at--) items[at] = items[at - 1];
    items[at] = *e;
    mr_hazard_actor_retain(e->actor);
    mr_name_retain(e->op_name);
    mr_name_retain(e->tensor.name);
    history *of[2] = {e->history, e->from};
    for (int i = 0; i < 2 && of[i]; i++) {
        mr_storage_retain(of[i]->storage);
        of[i]->unset_events++;
        of[i]->watched = true;
    }
}

static bool undecided(const history *h, bool copies) {
    return h->unset_events || ((h->unset || copies) && h->storage->kind != MR_MEMORY_DEVICE);
}

static void event_happens(checker *c, const unset_event *e) {
    bool wait = mr_hazard_functions_pending(c) &&
                (undecided(e->history, e->from) || (e->from && undecided(e->from, false))) &&
                mr_hazard_functions_left_before(c, e->seq);
    if (!wait || MR_BROKEN(UNSET_HURRIED)) event_apply(c, e);
    else if (!e->only_look) event_defer(c, e);
}

void mr_hazard_unset_apply_deferred(checker *c) {
    size_t done = 0;
    while (done < c->unset.events.count &&
           !mr_hazard_functions_left_before(c, c->unset.events.items[done].seq)) {
        unset_event e = c->unset.events.items[done++];
        event_apply(c, &e);
        event_free(c, &e);
    }
    if (!done) return;
    c->unset.events.count -= done;
    memmove(c->unset.events.items, c->unset.events.items + done,
            c->unset.events.count * sizeof *c->unset.events.items);
}

void mr_hazard_unset_forget(checker *c) {
    while (c->unset.events.count) {
        unset_event e = mr_vec_pop(&c->unset.events);
        event_free(c, &e);
    }
}

/* ---- a command */

static bool is_copy(const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_COPY: return !command->operands[0].tensor->storage->transient;
    case MR_COMMAND_OP:
    case MR_COMMAND_HOST_ACCESS: return command->u.op.row && command->u.op.row->family->copies;
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_RESET: MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return false;
}

static bool writes_to(const mr_command *command, const mr_storage *storage) {
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_operand *o = &command->operands[i];
        if (o->tensor->storage == storage && (o->access & MR_WRITE)) return true;
    }
    return false;
}

void mr_hazard_unset_command(checker *c, const mr_command *command, const unset_use *use) {
    unset_event e = {.seq = use->seq,
                     .actor = use->actor,
                     .op = use->op,
                     .op_name = command->own_name,
                     .where = use->where,
                     .only_look = use->only_look};
    bool copies = is_copy(command);
    const mr_op *row = command->kind == MR_COMMAND_OP ? command->u.op.row : NULL;
    e.at_most = row && row->id == MR_OP_kernel;
    if (copies && use->only_look) return;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < command->operand_count; i++) {
            e.tensor = *command->operands[i].tensor;
            e.history = mr_hazard_history_of(c, e.tensor.storage);
            if (!e.history) return;
            if (copies) {
                e.source = *command->operands[1].tensor;
                e.from = mr_hazard_history_of(c, e.source.storage);
                e.access = MR_WRITE;
                if (e.from) event_happens(c, &e);
                return;
            }
            e.access = command->operands[i].access & (pass ? MR_WRITE : MR_READ);
            e.guessed = (command->operands[i].access & (MR_GUESSED | MR_ASSUMED)) != 0;
            e.may_set = e.at_most && writes_to(command, e.tensor.storage);
            if (e.at_most && e.history->watched) mr_kernel_type_view(command, &e.tensor);
            if (e.access && e.history->watched && (!pass || !use->only_look)) event_happens(c, &e);
        }
    }
}

bool mr_hazard_is_unwritten(const mr_hazard *c, const mr_tensor *tensor) {
    const mr_storage *storage = tensor->storage;
    const history *h = storage->observed;
    byte_view view;
    if (c->mode == MR_HAZARD_OFF || (h && !h->watched)) return false;
    if (!h) return storage->blank && storage->id > c->histories.first_storage && tensor->numel > 0;
    return mr_hazard_view_of(tensor, &view) && missing_in(h, &view).count > 0;
}
