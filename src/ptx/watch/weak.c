/* Weak accesses: plain loads and stores, on cells.
 *
 * A cell holds its last writer and its last readers in two words, and a look at both is two compares. The rest (readers
 * of several warps, strong accesses) is in a history beside the cell. Why that is enough to be exact: check.c. */
#include "ptx/watch/state.h"

#include <string.h>

/* ---- one cell */

static inline bool is_settled(const ptx_turn *turn, uint64_t epoch, uint64_t thread) {
    return !epoch || epoch - turn->block < turn->span || !((epoch ^ thread) & turn->same_thread);
}

static ptx_judged judged(const ptx_turn *turn, const ptx_cells *cells, uint64_t start,
                         uint32_t cell, uint32_t lane, bool writes) {
    return (ptx_judged){.lane = lane,
                        .bytes = turn->access->bytes,
                        .address = turn->access->address[lane],
                        .writes = writes,
                        .cell = cell,
                        .cell_address = start + (uint64_t)cell * cells->bytes};
}

/* A cell's history; in shared memory records of an earlier block do not count. */
static ptx_history *own_history(const ptx_turn *turn, const ptx_cells *cells, uint32_t cell) {
    ptx_history *h = ptx_history_at(cells, cell);
    if (h && turn->is_shared && h->owner != turn->access->block) {
        ptx_history_forget(h);
        h->owner = turn->access->block;
    }
    return h;
}

static void renumber(ptx_history *h) {
    memset(h->newest_of_warp, 0, sizeof h->newest_of_warp);
    for (uint32_t i = 0; i < h->reader_count && i < UINT8_MAX; i++)
        h->newest_of_warp[ptx_epoch_warp(h->readers[i].epoch)] = (uint8_t)(i + 1);
}

static bool lose_if_unheard(const ptx_turn *turn, ptx_history *h, const ptx_cell_reader *r) {
    uint32_t shift = turn->watch->block_shift;
    if (turn->is_shared || r->epoch >> shift == turn->block >> shift ||
        !ptx_block_unheard(turn->watch, r->epoch))
        return false;
    h->lost = *r;
    h->has_lost = true;
    return true;
}

/* Drops the readers that the lane's own reading replaces. */
static void drop_readers(const ptx_turn *turn, ptx_history *h, uint32_t lane) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < h->reader_count; i++) {
        ptx_cell_reader r = h->readers[i];
        if (ptx_unordered(turn, lane, r.epoch, r.lanes) && !lose_if_unheard(turn, h, &r))
            h->readers[kept++] = r;
    }
    h->reader_count = kept;
    renumber(h);
}

static void note_latest(const ptx_turn *turn, ptx_history *h) {
    uint32_t shift = turn->watch->block_shift;
    bool same = h->latest_read >> shift == turn->me >> shift;
    if ((h->reader_count || h->has_lost) && !same) h->read_by_several = true;
    if (!same || turn->me > h->latest_read) h->latest_read = turn->me;
}

static void add_reader(ptx_turn *turn, ptx_history *h, uint32_t lane) {
    if (!h->read_by_several && h->latest_read - turn->block < turn->span)
        ptx_history_forget_readers(h);
    uint32_t bit = (uint32_t)1 << lane, newest = h->newest_of_warp[turn->warp];
    ptx_cell_reader *r = newest ? &h->readers[newest - 1] : NULL;
    if (r && r->epoch == turn->me && (r->at == turn->at || (r->lanes & bit))) {
        r->lanes |= bit;
        return;
    }
    note_latest(turn, h);
    ptx_cell_reader mine = {turn->me, bit, turn->at};
    if (r && (!ptx_unordered(turn, lane, r->epoch, r->lanes) || lose_if_unheard(turn, h, r))) {
        *r = mine;
        return;
    }
    if (h->reader_count >= 8 && h->reader_count == h->reader_capacity) drop_readers(turn, h, lane);
    if (!ptx_history_add_reader(h, &mine)) turn->failed = true;
}

static inline void set_read(const ptx_turn *turn, ptx_cells *cells, uint32_t cell, uint32_t lane) {
    cells->read[cell] = turn->me;
    cells->readers[cell] = (uint32_t)1 << lane;
    cells->read_at[cell] = PTX_SAMPLE(lane, turn->at);
    cells->read_also[cell] = 0;
}

/* The warp has read the cell at this time already. */
static inline void add_lanes(const ptx_turn *turn, ptx_cells *cells, uint32_t cell,
                             uint32_t lanes) {
    uint32_t fresh = lanes & ~cells->readers[cell];
    if (fresh && PTX_SAMPLE_NUMBER(cells->read_at[cell]) != turn->at && !cells->read_also[cell])
        cells->read_also[cell] = PTX_SAMPLE((uint32_t)__builtin_ctz(fresh), turn->at);
    cells->readers[cell] |= lanes;
}

static __attribute__((noinline)) void read_slowly(ptx_turn *turn, ptx_cells *cells, uint64_t start,
                                                  uint32_t cell, uint32_t lane) {
    ptx_history *h = own_history(turn, cells, cell);
    if (!is_settled(turn, cells->written[cell], turn->me | lane) || (h && h->strong_count)) {
        ptx_judged j = judged(turn, cells, start, cell, lane, false);
        ptx_after_write(turn, cells, &j);
        if (h) ptx_after_strong(turn, h, &j);
    }
    if (!h) {
        uint64_t epoch = cells->read[cell];
        if (epoch == turn->me) {
            add_lanes(turn, cells, cell, (uint32_t)1 << lane);
            return;
        }
        if (!epoch || !ptx_unordered(turn, lane, epoch, cells->readers[cell])) {
            set_read(turn, cells, cell, lane);
            return;
        }
        h = ptx_history_of(cells, cell, turn->access->block);
    }
    if (h) add_reader(turn, h, lane);
    else turn->failed = true;
}

static inline void set_written(const ptx_turn *turn, ptx_cells *cells, uint64_t start,
                               uint32_t cell, uint32_t lane) {
    const ptx_watched *a = turn->access;
    cells->written[cell] = turn->me | lane;
    bool is_known = a->value && a->bytes <= 8;
    cells->written_at[cell] = turn->at | (is_known ? PTX_VALUE_KNOWN : 0);
    if (!is_known) return;
    uint64_t offset = start + (uint64_t)cell * cells->bytes - a->address[lane];
    uint64_t value = a->value[lane] >> 8 * offset;
    cells->value[cell] = (uint32_t)(value & (((uint64_t)1 << 8 * cells->bytes) - 1));
}

static __attribute__((noinline)) void write_slowly(ptx_turn *turn, ptx_cells *cells, uint64_t start,
                                                   uint32_t cell, uint32_t lane) {
    ptx_judged j = judged(turn, cells, start, cell, lane, true);
    ptx_after_write(turn, cells, &j);
    ptx_history *h = own_history(turn, cells, cell);
    if (h) {
        ptx_after_readers(turn, h, &j);
        ptx_after_strong(turn, h, &j);
        ptx_history_forget(h);
    } else {
        ptx_after_cell_readers(turn, cells, &j);
        cells->read[cell] = 0;
    }
    set_written(turn, cells, start, cell, lane);
}

/* The place of a reader that the turn's own reading stands for, whatever its lanes are. */
static inline bool replaces(const ptx_turn *turn, ptx_history *h, const ptx_cell_reader *r) {
    if (r->epoch - turn->block < turn->span) return true;
    if (turn->is_shared || !lose_if_unheard(turn, h, r)) return false;
    h->read_by_several = true;
    return true;
}

/* Adds lanes that need no judging to the readers in a history; false: it takes more than that. */
static inline bool read_in_history(const ptx_turn *turn, ptx_history *h, uint32_t lanes) {
    if (h->strong_count || (turn->is_shared && h->owner != turn->access->block)) return false;
    uint32_t newest = h->newest_of_warp[turn->warp];
    ptx_cell_reader mine = {turn->me, lanes, turn->at};
    if (!h->read_by_several && h->latest_read - turn->block < turn->span) {
        memset(h->newest_of_warp, 0, sizeof h->newest_of_warp);
        h->reader_count = 0;
    } else if (newest) {
        ptx_cell_reader *r = &h->readers[newest - 1];
        if (r->epoch == turn->me) {
            if (r->at != turn->at && (lanes & ~r->lanes)) return false;
            r->lanes |= lanes;
            return true;
        }
        if (!replaces(turn, h, r)) return false;
        *r = mine;
        note_latest(turn, h);
        return true;
    }
    if (h->reader_count == h->reader_capacity || h->reader_count >= UINT8_MAX) return false;
    note_latest(turn, h);
    h->readers[h->reader_count++] = mine;
    h->newest_of_warp[turn->warp] = (uint8_t)h->reader_count;
    return true;
}

/* The data of the loops over lanes, in registers. */
typedef struct {
    uint64_t block, span, me, same_thread, *written, *read;
    uint32_t *readers;
} view;

static inline view view_of(const ptx_turn *turn, const ptx_cells *cells) {
    return (view){turn->block,    turn->span,  turn->me,      turn->same_thread,
                  cells->written, cells->read, cells->readers};
}

static inline bool before_barrier(view v, uint64_t epoch) {
    return !epoch || epoch - v.block < v.span;
}

/* Lanes that read one cell in one instruction. */
static inline __attribute__((always_inline)) void read_cell(ptx_turn *turn, view v,
                                                            ptx_cells *cells, uint64_t start,
                                                            uint32_t cell, uint32_t lane,
                                                            uint32_t lanes) {
    uint64_t written = v.written[cell], read = v.read[cell];
    bool is_judged = before_barrier(v, written) ||
                     (!(lanes & (lanes - 1)) && !((written ^ (v.me | lane)) & v.same_thread));
    if (is_judged && before_barrier(v, read)) {
        set_read(turn, cells, cell, lane);
        v.readers[cell] = lanes;
        return;
    }
    if (is_judged && read == v.me) {
        add_lanes(turn, cells, cell, lanes);
        return;
    }
    if (is_judged && read & PTX_IN_HISTORY &&
        read_in_history(turn, ptx_history_at(cells, cell), lanes))
        return;
    for (; lanes; lanes &= lanes - 1)
        read_slowly(turn, cells, start, cell, (uint32_t)__builtin_ctz(lanes));
}

static inline void write_cell(ptx_turn *turn, view v, ptx_cells *cells, uint64_t start,
                              uint32_t cell, uint32_t lane) {
    uint64_t written = v.written[cell], read = v.read[cell];
    bool is_judged = before_barrier(v, written) || !((written ^ (v.me | lane)) & v.same_thread);
    bool own_reader = !((read ^ v.me) & v.same_thread) && v.readers[cell] == (uint32_t)1 << lane;
    if (is_judged && (own_reader || before_barrier(v, read))) {
        v.read[cell] = 0;
        set_written(turn, cells, start, cell, lane);
    } else {
        write_slowly(turn, cells, start, cell, lane);
    }
}

/* Cells fine enough for addresses and sizes that have these lowest bits. */
static inline bool has_cells(ptx_turn *turn, ptx_area *area, uint64_t bits) {
    uint64_t wanted = ptx_lowest_bit(bits | 4);
    if (wanted < area->cells.bytes || !area->cells.memory) {
        if (!ptx_area_cells(area, (uint32_t)wanted)) {
            turn->failed = true;
            return false;
        }
    }
    turn->cell_bytes = area->cells.bytes;
    return true;
}

static inline bool is_divided(ptx_turn *turn, ptx_area *area, uint64_t offset) {
    uint32_t row = (uint32_t)(offset >> PTX_ROW_BITS);
    if (ptx_row_is_divided(&area->rows[row]) || ptx_row_divide(area, row)) return true;
    turn->failed = true;
    return false;
}

/* A quick yes, for accesses to few rows. */
static inline bool all_divided(const ptx_area *area, uint64_t low, uint64_t high) {
    uint64_t first = low >> PTX_ROW_BITS, last = high >> PTX_ROW_BITS;
    if (last - first > 8 || last >= area->row_count) return false;
    bool all = true;
    for (uint64_t row = first; row <= last; row++) all &= ptx_row_is_divided(&area->rows[row]);
    return all;
}

bool ptx_fit(ptx_turn *turn, ptx_area *area, uint64_t start, uint64_t address, uint32_t bytes) {
    return has_cells(turn, area, address | bytes) && is_divided(turn, area, address - start) &&
           is_divided(turn, area, address - start + bytes - 1);
}

void ptx_weak_part(ptx_turn *turn, ptx_area *area, uint64_t start, uint32_t lane, uint64_t address,
                   uint32_t bytes) {
    if (!ptx_fit(turn, area, start, address, bytes)) return;
    ptx_cells *cells = &area->cells;
    uint32_t first = (uint32_t)(address - start) >> cells->shift;
    uint32_t end = first + (bytes >> cells->shift);
    for (uint32_t c = first; c < end; c++) {
        if (turn->access->access & MR_PTX_READS)
            read_cell(turn, view_of(turn, cells), cells, start, c, lane, (uint32_t)1 << lane);
        if (turn->access->access & MR_PTX_WRITES)
            write_cell(turn, view_of(turn, cells), cells, start, c, lane);
    }
}

/* How many lanes from lane 0 on access different addresses before these come again in all further lanes, as in the rows
 * of a tile; 32: they do not. */
static uint32_t period(const ptx_watched *a) {
    if (a->mask != UINT32_MAX || a->is_row) return 32;
    for (uint32_t p = 1; p < 32; p *= 2) {
        if (a->address[p] != a->address[0]) continue;
        uint64_t differs = 0;
        for (uint32_t i = p; i < 32; i++) differs |= a->address[i] ^ a->address[i - p];
        return differs ? 32 : p;
    }
    return 32;
}

/* Every p-th lane. */
static uint32_t every(uint32_t p) {
    static const uint32_t masks[] = {UINT32_MAX, 0x55555555, 0x11111111, 0x01010101, 0x00010001, 1};
    return masks[__builtin_ctz(p)];
}

/* The lanes from `lane` on that access the same address, next to each other. */
static inline uint32_t neighbours(const ptx_watched *a, uint32_t lane, uint32_t rest) {
    uint32_t together = (uint32_t)1 << lane;
    while (lane < 31 && rest >> (lane + 1) & 1 && a->address[lane + 1] == a->address[lane])
        together |= (uint32_t)1 << ++lane;
    return together;
}

static void read_lanes(ptx_turn *turn, ptx_cells *cells, uint64_t start, uint32_t lanes) {
    const ptx_watched *a = turn->access;
    uint32_t p = a->is_same ? 1 : period(a), words = a->bytes >> cells->shift;
    view v = view_of(turn, cells);
    if (a->is_row) {
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            uint32_t first = (uint32_t)(a->address[lane] - start) >> cells->shift;
            for (uint32_t c = first; c < first + words; c++)
                read_cell(turn, v, cells, start, c, lane, (uint32_t)1 << lane);
        }
        return;
    }
    for (uint32_t rest = lanes; rest;) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint32_t together = p < 32 ? every(p) << lane & lanes : neighbours(a, lane, rest);
        uint32_t first = (uint32_t)(a->address[lane] - start) >> cells->shift;
        for (uint32_t c = first; c < first + words; c++)
            read_cell(turn, v, cells, start, c, lane, together);
        rest &= ~together;
    }
}

static void write_lanes(ptx_turn *turn, ptx_cells *cells, uint64_t start, uint32_t lanes) {
    const ptx_watched *a = turn->access;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint32_t first = (uint32_t)(a->address[lane] - start) >> cells->shift;
        for (uint32_t c = first; c < first + (a->bytes >> cells->shift); c++)
            write_cell(turn, view_of(turn, cells), cells, start, c, lane);
    }
}

void ptx_weak_access(ptx_turn *turn, ptx_area *area, uint64_t start, uint32_t lanes) {
    const ptx_watched *a = turn->access;
    if (!has_cells(turn, area, turn->bits | a->bytes)) return;
    uint64_t low = turn->low < start ? 0 : turn->low - start;
    if (!all_divided(area, low, turn->high + a->bytes - 1 - start))
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            uint64_t offset = a->address[__builtin_ctz(rest)] - start;
            if (!is_divided(turn, area, offset) || !is_divided(turn, area, offset + a->bytes - 1))
                return;
        }
    if (a->access & MR_PTX_READS) read_lanes(turn, &area->cells, start, lanes);
    if (a->access & MR_PTX_WRITES) write_lanes(turn, &area->cells, start, lanes);
}
