/* Strong accesses: atomic and volatile ones, and those with an order. They are judged, logged, and they carry what
 * release patterns publish to acquire patterns, through chains (shadow.h). */
#include "ptx/watch/state.h"

#include <stdlib.h>

/* The cells of one element. */
typedef struct {
    ptx_cells *cells;
    uint32_t first, count;
} element;

static ptx_history *history(const element *e, uint32_t i) {
    return ptx_history_at(e->cells, e->first + i);
}

/* The chain whose value a strong access reads: all of its bytes come from the last write of it, and that write and the
 * access are morally strong. */
static ptx_chain *chain_read(const ptx_turn *turn, const element *e, uint64_t address,
                             uint32_t bytes) {
    ptx_chain *chain = history(e, 0)->chain;
    for (uint32_t i = 1; i < e->count; i++)
        if (history(e, i)->chain != chain) return NULL;
    if (!chain || chain->address != address || chain->bytes != bytes) return NULL;
    bool wide = ptx_is_wide(turn->access->order, turn->access->scope);
    return chain->last_block == turn->access->block || (chain->last_wide && wide) ? chain : NULL;
}

static ptx_chain *chain_begin(ptx_turn *turn, const element *e, uint64_t address, uint32_t bytes) {
    ptx_chain *chain = calloc(1, sizeof *chain);
    if (!chain) return NULL;
    chain->number = 1 + atomic_fetch_add_explicit(&turn->watch->chains, 1, memory_order_relaxed);
    chain->address = address;
    chain->bytes = bytes;
    chain->references = e->count;
    for (uint32_t i = 0; i < e->count; i++) {
        ptx_history *h = history(e, i);
        ptx_chain_release(h->chain);
        h->chain = chain;
    }
    return chain;
}

/* Lanes of one instruction that follow each other in a chain, or that have read the same, are one entry. */
static bool extend(ptx_strong *last, const ptx_strong *s) {
    if (last->epoch != s->epoch || last->at != s->at || last->chain != s->chain ||
        last->address != s->address || last->bytes != s->bytes || last->writes != s->writes ||
        last->reads != s->reads || last->wide != s->wide || last->is_exchange != s->is_exchange ||
        last->is_update != s->is_update)
        return false;
    uint32_t count = (uint32_t)__builtin_popcount(last->all);
    if (last->position + (s->writes ? count : 0) != s->position) return false;
    if (s->writes && s->all < last->all)
        return false; /* positions are counted in ascending order */
    last->all |= s->all;
    last->lanes |= s->lanes;
    last->ordered |= s->ordered;
    last->observers |= s->observers;
    return true;
}

static void log_strong(ptx_turn *turn, ptx_history *h, const ptx_strong *s) {
    uint32_t shift = turn->watch->block_shift;
    if (h->strong_count && extend(&h->strong[h->strong_count - 1], s)) {
        h->compact_count = 0;
        return;
    }
    if (h->strong_count >= (h->compact_at ? h->compact_at : 32)) ptx_compact_strong(turn, h);
    if (!ptx_history_add_strong(h, s)) {
        turn->failed = true;
        return;
    }
    h->compact_count = 0;
    const ptx_strong *first = &h->strong[0];
    if (first->epoch >> shift != s->epoch >> shift) h->strong_of_several = true;
    if (first->address != s->address || first->bytes != s->bytes) h->strong_mixed = true;
    if (!s->wide) h->strong_narrow = true;
    if (s->is_exchange) h->strong_exchanged = true;
    if (s->writes) h->strong_written = true;
    if (!s->is_update) h->strong_plain = true;
    if (s->epoch > h->latest_strong) h->latest_strong = s->epoch;
}

static void judge(ptx_turn *turn, const element *e, uint64_t start, ptx_judged *j) {
    for (uint32_t i = 0; i < e->count; i++) {
        ptx_history *h = history(e, i);
        j->cell = e->first + i;
        j->cell_address = start + (uint64_t)j->cell * e->cells->bytes;
        ptx_after_write(turn, e->cells, j);
        if (j->writes) ptx_after_readers(turn, h, j);
        ptx_after_strong(turn, h, j);
    }
}

static bool have_histories(ptx_turn *turn, const element *e) {
    for (uint32_t i = 0; i < e->count; i++) {
        ptx_history *h = ptx_history_of(e->cells, e->first + i, turn->access->block);
        if (!h) return false;
        if (turn->is_shared && h->owner != turn->access->block) {
            ptx_history_forget(h);
            h->owner = turn->access->block;
        }
        /* Accesses before a barrier of the only block that can see them are irrelevant. */
        if (turn->is_shared && h->strong_count && h->latest_strong < turn->span) {
            h->strong_count = h->compact_at = h->compact_count = 0;
            h->strong_mixed = h->strong_narrow = h->strong_exchanged = false;
            h->strong_written = h->strong_plain = false;
        }
    }
    return true;
}

/* ---- the barrier of a grid (a cooperative launch)
 *
 * A block that waits may look at the barrier only when others have gone on and come to it again. The block has not
 * waited for their work in between, though this run read their value. So each round of the barrier is a chain of its
 * own, and a block takes over what was published in the last round that it took part in. */

static ptx_chain *chain_waited_for(const ptx_turn *turn, ptx_chain *chain) {
    return chain && chain->round >= turn->running->grid_rounds ? chain->previous : chain;
}

/* The chain that an arrival belongs to; NULL: memory is out. */
static ptx_chain *arrive(ptx_turn *turn, const element *e, uint64_t address, uint32_t bytes,
                         ptx_chain *chain) {
    turn->running->grid_rounds++;
    if (chain && chain->length < turn->watch->blocks) return chain;
    if (chain) chain->references++;
    ptx_chain *next = chain_begin(turn, e, address, bytes);
    if (!chain || !next) {
        ptx_chain_release(chain);
        return next;
    }
    ptx_chain_release(chain->previous);
    chain->previous = NULL;
    next->previous = chain;
    next->round = chain->round + 1;
    return next;
}

void ptx_strong_access(ptx_turn *turn, ptx_cells *cells, uint64_t start, uint32_t lane,
                       uint64_t address, uint32_t bytes) {
    const ptx_watched *a = turn->access;
    element e = {cells, (uint32_t)(address - start) >> cells->shift, bytes >> cells->shift};
    bool reads = a->access & MR_PTX_READS, writes = a->access & MR_PTX_WRITES;
    if (!have_histories(turn, &e)) {
        turn->failed = true;
        return;
    }
    ptx_judged j = {
        .lane = lane, .bytes = bytes, .address = address, .writes = writes, .strong = true};
    bool is_barrier = ptx_is_grid_barrier(turn, address);
    for (uint32_t i = 0; i < e.count && !is_barrier; i++) ptx_note_order(turn, history(&e, i), &j);
    /* An acquire operation itself comes after the accesses that it acquires, too. */
    ptx_chain *chain = reads ? chain_read(turn, &e, address, bytes) : NULL;
    if (is_barrier && !writes) chain = chain_waited_for(turn, chain);
    if (reads) ptx_observe(turn, lane, address, bytes, chain);
    judge(turn, &e, start, &j);
    bool saw = chain != NULL;
    if (writes) {
        if (is_barrier) chain = arrive(turn, &e, address, bytes, chain);
        else if (!chain) chain = chain_begin(turn, &e, address, bytes);
        if (!chain) {
            turn->failed = true;
            return;
        }
        chain->length++;
        chain->last_block = a->block;
        chain->last_wide = ptx_is_wide(a->order, a->scope);
        ptx_publish(turn, lane, address, bytes, chain);
    }
    uint32_t bit = (uint32_t)1 << lane;
    ptx_strong s = {.epoch = turn->me,
                    .chain = chain ? chain->number : 0,
                    .position = chain ? chain->length : 0,
                    .address = address,
                    .all = bit,
                    .lanes = bit,
                    .ordered = bit,
                    .observers = saw ? bit : 0,
                    .at = turn->at,
                    .bytes = (uint8_t)bytes,
                    .reads = reads,
                    .writes = writes,
                    .wide = ptx_is_wide(a->order, a->scope),
                    .is_exchange = turn->is_exchange,
                    .is_spread = turn->is_spread,
                    .is_update = turn->is_update};
    for (uint32_t i = 0; i < e.count; i++) log_strong(turn, history(&e, i), &s);
}
