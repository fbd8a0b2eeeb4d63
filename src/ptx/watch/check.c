/* Compares one access with a cell's record of earlier ones. Finds races; changes only the form of the strong log.
 *
 * What must be remembered so that a later access is judged exactly? An earlier access A may be forgotten once there is
 * a remembered B that is ordered after A and races with everything that A races with. A later access that comes after B
 * comes after A, too. A weak write stands in this way for all that is ordered before it, a weak read for weak reads. So
 * of weak accesses a cell keeps the last write, and the reads since then that no later read stands for.
 *
 * A strong access (atomic, volatile, relaxed ...) races with fewer accesses than a weak one, and stands only for
 * earlier ones of its own thread with the same size and scope. The log keeps, of each thread, the last such write and
 * load. A strong write is also over for all that comes after a strong read that saw its value, without any fence (PTX:
 * causality order through observation order). So the last block may reset the counter that it has drawn its number
 * from. So the log also keeps readings: for each thread and each write of the log, the first one that has seen this
 * write.
 *
 * A block that has ended without having published anything is never ordered before another block. All its readers, and
 * its writers to a chain, weigh the same: one of them is kept. */
#include "ptx/watch/state.h"

#include <stdlib.h>
#include <string.h>

/* ---- weak accesses */

static void report(ptx_turn *turn, const ptx_judged *j, const ptx_earlier *earlier) {
    ptx_report(turn, j->lane, j->cell_address, turn->cell_bytes, earlier);
}

/* The part of a stored value that lies in a cell; false: it is not known. */
static bool value_in_cell(const ptx_turn *turn, const ptx_cells *cells, const ptx_judged *j,
                          uint32_t *out_value) {
    const ptx_watched *a = turn->access;
    if (!a->value || a->bytes > 8 || j->strong) return false;
    uint64_t value = a->value[j->lane] >> 8 * (j->cell_address - a->address[j->lane]);
    *out_value = (uint32_t)(value & (((uint64_t)1 << 8 * cells->bytes) - 1));
    return true;
}

void ptx_after_write(ptx_turn *turn, const ptx_cells *cells, const ptx_judged *j) {
    uint64_t epoch = cells->written[j->cell];
    if (!epoch || epoch - turn->block < turn->span) return;
    uint32_t lane = epoch & 31, at = cells->written_at[j->cell], value;
    if (!ptx_unordered(turn, j->lane, epoch, (uint32_t)1 << lane)) return;
    bool same_value = j->writes && (at & PTX_VALUE_KNOWN) &&
                      value_in_cell(turn, cells, j, &value) && value == cells->value[j->cell];
    report(turn, j,
           &(ptx_earlier){.epoch = epoch,
                          .lanes = (uint32_t)1 << lane,
                          .at = at & ~PTX_VALUE_KNOWN,
                          .access = MR_PTX_WRITES,
                          .same_value = same_value});
}

static void report_reader(ptx_turn *turn, const ptx_judged *j, const ptx_cell_reader *reader,
                          uint32_t lanes) {
    report(turn, j,
           &(ptx_earlier){
               .epoch = reader->epoch, .lanes = lanes, .at = reader->at, .access = MR_PTX_READS});
}

/* Names a lane whose instruction is known, if there is one among those that race. */
void ptx_after_cell_readers(ptx_turn *turn, const ptx_cells *cells, const ptx_judged *j) {
    uint64_t epoch = cells->read[j->cell];
    uint32_t lanes = epoch ? ptx_unordered(turn, j->lane, epoch, cells->readers[j->cell]) : 0;
    if (!lanes) return;
    uint32_t sample = cells->read_at[j->cell], also = cells->read_also[j->cell];
    if (!(lanes >> PTX_SAMPLE_LANE(sample) & 1) && also && lanes >> PTX_SAMPLE_LANE(also) & 1)
        sample = also;
    report(turn, j,
           &(ptx_earlier){.epoch = epoch,
                          .lanes = lanes,
                          .named = PTX_SAMPLE_LANE(sample),
                          .at = PTX_SAMPLE_NUMBER(sample),
                          .access = MR_PTX_READS});
}

static void after_reader(ptx_turn *turn, const ptx_judged *j, const ptx_cell_reader *reader) {
    uint32_t lanes = ptx_unordered(turn, j->lane, reader->epoch, reader->lanes);
    if (lanes) report_reader(turn, j, reader, lanes);
}

void ptx_after_readers(ptx_turn *turn, ptx_history *h, const ptx_judged *j) {
    if (!h->read_by_several && h->latest_read - turn->block < turn->span) return;
    for (uint32_t i = 0; i < h->reader_count; i++) after_reader(turn, j, &h->readers[i]);
    if (h->has_lost) report_reader(turn, j, &h->lost, h->lost.lanes);
}

/* ---- the log of strong accesses */

static uint64_t position_of(const ptx_strong *s, uint32_t lane) {
    if (!s->writes) return s->position;
    return s->position + (uint32_t)__builtin_popcount(s->all & (((uint32_t)1 << lane) - 1));
}

/* How much of a chain has been read by threads that the lane comes after; 0: nothing. */
static uint64_t observed(const ptx_turn *turn, const ptx_history *h, uint32_t lane,
                         uint64_t chain) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < h->strong_count; i++) {
        const ptx_strong *s = &h->strong[i];
        if (s->chain != chain || !s->observers) continue;
        uint32_t ordered = s->observers & ~ptx_unordered(turn, lane, s->epoch, s->observers);
        if (!ordered) continue;
        uint64_t position = position_of(s, 31 - (uint32_t)__builtin_clz(ordered));
        if (position > most) most = position;
    }
    return most;
}

/* Lanes of a warp that hand values to each other in volatile shared memory, as before Volta, when a warp ran in step.
 * No access can be torn, so PTX does not call this a race, but the value that is read depends on the timing. A flag is
 * something else: there all lanes have one address. */
static bool is_exchange(const ptx_turn *turn, const ptx_strong *s, const ptx_judged *j) {
    return turn->is_exchange && s->is_exchange && (turn->is_spread || s->is_spread) &&
           s->writes != j->writes && ptx_epoch_warp(s->epoch) == turn->warp;
}

/* Morally strong to each other: neither can be torn or lost by the other. */
static bool is_safe_with(const ptx_turn *turn, const ptx_strong *s, const ptx_judged *j) {
    uint32_t shift = turn->watch->block_shift;
    bool wide = ptx_is_wide(turn->access->order, turn->access->scope);
    return j->strong && s->address == j->address && s->bytes == j->bytes &&
           ((s->wide && wide) || s->epoch >> shift == turn->block >> shift);
}

static void after_one_strong(ptx_turn *turn, const ptx_history *h, const ptx_judged *j,
                             const ptx_strong *s) {
    bool exchanges = is_exchange(turn, s, j);
    if (!(s->writes || j->writes) || !s->lanes || (!exchanges && is_safe_with(turn, s, j))) return;
    uint32_t lanes = ptx_unordered(turn, j->lane, s->epoch, s->lanes);
    if (lanes && s->writes) {
        uint64_t most = observed(turn, h, j->lane, s->chain);
        uint32_t unordered = lanes;
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            if (position_of(s, lane) <= most) lanes &= ~((uint32_t)1 << lane);
        }
        if (lanes != unordered && !ptx_is_grid_barrier(turn, s->address))
            ptx_order_matters(turn->watch);
    }
    if (!lanes) return;
    report(turn, j,
           &(ptx_earlier){
               .epoch = s->epoch,
               .lanes = lanes,
               .at = s->at,
               .access = (uint8_t)((s->reads ? MR_PTX_READS : 0) | (s->writes ? MR_PTX_WRITES : 0)),
               .atomic = !exchanges,
               .exchanged = exchanges,
               .sizes_differ = s->address != j->address || s->bytes != j->bytes});
}

void ptx_after_strong(ptx_turn *turn, ptx_history *h, const ptx_judged *j) {
    if (!h->strong_count) return;
    if (!h->strong_of_several && h->latest_strong - turn->block < turn->span) return;
    if (j->strong && !h->strong_mixed && h->strong[0].address == j->address &&
        h->strong[0].bytes == j->bytes && !(turn->is_exchange && h->strong_exchanged)) {
        bool wide = ptx_is_wide(turn->access->order, turn->access->scope);
        if (wide && !h->strong_narrow) return;
        uint32_t shift = turn->watch->block_shift;
        if (!h->strong_of_several && h->latest_strong >> shift == turn->block >> shift) return;
    }
    ptx_compact_strong(turn, h);
    for (uint32_t i = 0; i < h->strong_count; i++) after_one_strong(turn, h, j, &h->strong[i]);
}

/* ---- the order of threads
 *
 * Two strong accesses, one of them a write, do not race, but their order is not defined unless a barrier orders
 * them. Until the first such pair, all that threads know of each other comes from barriers, so ptx_unordered tells.
 * Updates among themselves are left to access/outcome.h, which knows whether their order matters. Knowledge that a
 * thread has only because its update came after another one makes a pair, too: order.c and after_one_strong tell of
 * it. */

void ptx_note_order(ptx_turn *turn, const ptx_history *h, const ptx_judged *j) {
    if (atomic_load_explicit(&turn->watch->order_matters, memory_order_relaxed)) return;
    if (!h->strong_count || (turn->is_update && !h->strong_plain)) return;
    if (!j->writes && !h->strong_written) return;
    if (!h->strong_of_several && h->latest_strong - turn->block < turn->span) return;
    for (uint32_t i = 0; i < h->strong_count; i++) {
        const ptx_strong *s = &h->strong[i];
        if (!(s->writes || j->writes) || (s->is_update && turn->is_update)) continue;
        if (!s->ordered || !ptx_unordered(turn, j->lane, s->epoch, s->ordered)) continue;
        ptx_order_matters(turn->watch);
        return;
    }
}

/* ---- compacting the log: a map of what was met, from the newest to the oldest */

typedef struct {
    uint64_t key, chain;
    uint32_t writes, reads; /* lanes */
    uint64_t position;      /* of the last write, that a lane has seen */
} met_entry;
typedef MR_MAP(met_entry) met_map; /* with room for all that a log can add */

static met_entry *meet(met_map *t, uint64_t key, uint64_t chain) {
    uint64_t hash = (key ^ chain * 0xff51afd7ed558ccdu) >> 1;
    met_entry *met = mr_map_find(t, hash);
    while (met && (met->key != key || met->chain != chain)) met = mr_map_again(t, met);
    if (met) return met;
    met = mr_map_insert(t, hash);
    met->key = key;
    met->chain = chain;
    return met;
}

enum { OF_THREAD = 1, OF_CHAIN = 2, OF_READING = 3, OF_UNHEARD = 4 }; /* kinds of keys */
enum { OF_ORDER = 5, OF_UNHEARD_ORDER = 6 };

/* The properties that a later access of the same thread must share to replace this one. */
static uint64_t manner(const ptx_strong *s) {
    return s->address << 9 | (uint64_t)s->is_exchange << 8 | (uint64_t)s->is_spread << 7 |
           (uint64_t)s->bytes << 1 | s->wide;
}

static uint64_t met_key(const ptx_turn *turn, const ptx_strong *s, int kind) {
    return (s->epoch & turn->same_thread & ~(uint64_t)31) | (uint64_t)kind;
}

/* One write to each chain, and one load, is enough of a block that ended unheard: the last one. */
static uint32_t last_of_unheard(met_map *t, const ptx_strong *s, uint32_t lanes, int kind) {
    bool is_update = kind == OF_UNHEARD_ORDER && s->is_update;
    uint64_t key = s->address << 12 | (uint64_t)is_update << 9 | (uint64_t)s->bytes << 4 |
                   (uint64_t)s->wide << 3 | (uint64_t)kind;
    met_entry *met = meet(t, key, s->writes ? s->chain : 0);
    uint32_t *flag = s->writes ? &met->writes : &met->reads;
    if (*flag) return 0;
    *flag = 1;
    return (uint32_t)1 << (31 - __builtin_clz(lanes));
}

/* An atomic operation does not stand for a store or a load of its thread, whose order with others may matter. */
static void keep_ordered(ptx_turn *turn, met_map *t, ptx_strong *s) {
    met_entry *met = meet(t, met_key(turn, s, OF_ORDER), manner(s) | (uint64_t)s->is_update << 6);
    uint32_t *seen = s->writes ? &met->writes : &met->reads, lanes = s->ordered;
    s->ordered &= ~*seen;
    *seen |= lanes;
    if (mr_ptx_watch_order_matters(turn->watch)) s->ordered = 0; /* not needed any more */
}

static void keep_last_accesses(ptx_turn *turn, met_map *t, ptx_history *h) {
    for (uint32_t i = h->strong_count; i-- > 0;) {
        ptx_strong *s = &h->strong[i];
        met_entry *met = meet(t, met_key(turn, s, OF_THREAD), manner(s));
        uint32_t *seen = s->writes ? &met->writes : &met->reads, lanes = s->lanes;
        s->lanes &= ~*seen;
        *seen |= lanes;
        keep_ordered(turn, t, s);
        if (!turn->is_shared && ptx_block_unheard(turn->watch, s->epoch)) {
            s->observers = 0;
            if (s->lanes) s->lanes = last_of_unheard(t, s, s->lanes, OF_UNHEARD);
            if (s->ordered) s->ordered = last_of_unheard(t, s, s->ordered, OF_UNHEARD_ORDER);
        }
    }
}

/* A thread's first reading of a chain comes before most, and its last one has seen most. So one is kept if it
 * is the first of its thread that has seen some write of the log. Oldest first: a reading comes after the readings that
 * it has seen. */
static void keep_readings(ptx_turn *turn, met_map *t, ptx_history *h) {
    for (uint32_t i = 0; i < h->strong_count; i++) {
        ptx_strong *s = &h->strong[i];
        if (!s->chain) continue;
        met_entry *chain = meet(t, OF_CHAIN, s->chain);
        if (s->writes && s->lanes)
            chain->position = position_of(s, 31 - (uint32_t)__builtin_clz(s->lanes));
        for (uint32_t rest = s->observers; rest; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            met_entry *met = meet(t, met_key(turn, s, OF_READING), s->chain << 5 | lane);
            if (chain->position <= met->position) s->observers &= ~((uint32_t)1 << lane);
            met->position = position_of(s, lane);
        }
    }
}

/* The facts that the whole log has in common, for the short ways of ptx_after_strong. */
static void summarize(ptx_turn *turn, ptx_history *h) {
    uint32_t shift = turn->watch->block_shift;
    h->latest_strong = 0;
    h->strong_of_several = h->strong_mixed = h->strong_narrow = h->strong_exchanged = false;
    h->strong_written = h->strong_plain = false;
    for (uint32_t i = 0; i < h->strong_count; i++) {
        const ptx_strong *s = &h->strong[i];
        if (i && s->epoch >> shift != h->strong[0].epoch >> shift) h->strong_of_several = true;
        if (s->address != h->strong[0].address || s->bytes != h->strong[0].bytes)
            h->strong_mixed = true;
        if (!s->wide) h->strong_narrow = true;
        if (s->is_exchange) h->strong_exchanged = true;
        if (s->writes) h->strong_written = true;
        if (!s->is_update) h->strong_plain = true;
        if (s->epoch > h->latest_strong) h->latest_strong = s->epoch;
    }
}

void ptx_compact_strong(ptx_turn *turn, ptx_history *h) {
    if (h->strong_count == h->compact_count) return;
    met_map t = {0};
    size_t most = 0; /* entries */
    for (uint32_t i = 0; i < h->strong_count; i++)
        most += 5 + (uint32_t)__builtin_popcount(h->strong[i].observers);
    if (!mr_map_reserve(&t, most)) {
        turn->failed = true;
        return;
    }
    keep_last_accesses(turn, &t, h);
    keep_readings(turn, &t, h);
    mr_map_free(&t);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < h->strong_count; i++)
        if (h->strong[i].lanes | h->strong[i].ordered | h->strong[i].observers)
            h->strong[kept++] = h->strong[i];
    h->strong_count = h->compact_count = kept;
    h->compact_at = 2 * kept + 32;
    summarize(turn, h);
}
