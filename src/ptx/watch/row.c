/* Accesses of whole warps to whole rows: 32 lanes, one after the other, from the row's first byte on. That is the usual
 * access, and costs a few compares for all lanes. Accesses that this does not settle are judged on cells, which report
 * them. */
#include "ptx/watch/state.h"

#include <stdlib.h>

static bool covers_rows(const ptx_watched *a) {
    if (a->mask != UINT32_MAX || a->address[0] % PTX_ROW_BYTES || a->is_same) return false;
    if (a->bytes != 4 && a->bytes != 8 && a->bytes != 16) return false;
    if (a->is_row) return true;
    uint64_t differs = 0;
    for (uint32_t i = 0; i < 32; i++)
        differs |= a->address[i] ^ (a->address[0] + (uint64_t)i * a->bytes);
    return differs == 0;
}

/* Each lane of `me` comes after all lanes of a former access, or is the thread that accessed its words. */
static bool is_settled(const ptx_turn *turn, const ptx_row_entry *former, const ptx_row_entry *me) {
    uint64_t epoch = former->epoch;
    if (!epoch || epoch - turn->block < turn->span) return true;
    if ((epoch ^ me->epoch) & turn->same_thread & ~(uint64_t)31) return false;
    bool same_lanes = (epoch & 31) == (me->epoch & 31) && former->words == me->words;
    return same_lanes || ptx_epoch_time(turn->watch, epoch) < turn->running->warp_floor[turn->warp];
}

enum { MOST_OTHERS = 64 };

/* Room for one more of the other readers. False: cells can hold more, and know whether memory is out. */
static bool has_room(ptx_row *row) {
    ptx_row_more *more = row->more;
    if (more && more->other_count < more->other_capacity) return true;
    uint32_t wanted = more ? 2 * more->other_capacity : 2;
    if (wanted > MOST_OTHERS) return false;
    ptx_row_more *grown = realloc(more, sizeof *more + wanted * sizeof more->others[0]);
    if (!grown) return false;
    if (!more) *grown = (ptx_row_more){0};
    grown->other_capacity = wanted;
    row->more = grown;
    return true;
}

static bool is_unheard(const ptx_turn *turn, const ptx_row_entry *reader) {
    uint32_t shift = turn->watch->block_shift;
    return !turn->is_shared && reader->epoch >> shift != turn->block >> shift &&
           ptx_block_unheard(turn->watch, reader->epoch);
}

/* Drops the other readers that `me` stands for. */
static void drop_settled(const ptx_turn *turn, ptx_row_more *more, const ptx_row_entry *me) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < more->other_count; i++) {
        if (is_settled(turn, &more->others[i], me)) continue;
        if (is_unheard(turn, &more->others[i])) more->lost = more->others[i];
        else more->others[kept++] = more->others[i];
    }
    more->other_count = kept;
}

/* The last reader becomes one of the others, unless the warp is among them: then the two change places. */
static bool keep_reader(const ptx_turn *turn, ptx_row *row, const ptx_row_entry *me) {
    if (!row->more && !has_room(row)) return false;
    ptx_row_more *more = row->more;
    more->owner = turn->access->block;
    if (is_unheard(turn, &row->read)) {
        more->lost = row->read;
        return true;
    }
    for (uint32_t i = 0; i < more->other_count; i++)
        if (is_settled(turn, &more->others[i], me)) {
            more->others[i] = row->read;
            return true;
        }
    if (more->other_count == more->other_capacity) drop_settled(turn, more, me);
    if (!has_room(row)) return false;
    more = row->more;
    more->others[more->other_count++] = row->read;
    return true;
}

static bool read_row(const ptx_turn *turn, ptx_row *row, const ptx_row_entry *me) {
    if (!is_settled(turn, &row->written, me)) return false;
    if (row->read.epoch == me->epoch && row->read.words == me->words) return true;
    ptx_row_more *more = row->more;
    if (more && turn->is_shared && more->owner != turn->access->block) {
        more->other_count = 0;
        more->owner = turn->access->block;
    }
    bool is_new = row->read.epoch - turn->block < turn->span;
    if (more && is_new && more->other_count) drop_settled(turn, more, me);
    if (!is_settled(turn, &row->read, me) && !keep_reader(turn, row, me)) return false;
    row->read = *me;
    return true;
}

static bool all_settled(const ptx_turn *turn, const ptx_row *row, const ptx_row_entry *me) {
    const ptx_row_more *more = row->more;
    if (!is_settled(turn, &row->written, me) || !is_settled(turn, &row->read, me)) return false;
    if (!more) return true;
    for (uint32_t i = 0; i < more->other_count; i++)
        if (!is_settled(turn, &more->others[i], me)) return false;
    return !more->lost.epoch;
}

static void note_values(ptx_turn *turn, ptx_area *area, ptx_row *row, uint32_t words) {
    if (!turn->access->value || words > 2) return;
    if (!area->row_values) area->row_values = malloc(area->row_count * PTX_ROW_BYTES);
    if (!area->row_values) {
        turn->failed = true;
        return;
    }
    row->written.at |= PTX_VALUE_KNOWN;
    uint32_t *values = &area->row_values[(row - area->rows) * 32];
    const uint64_t *from = &turn->access->value[row->written.epoch & 31];
    for (uint32_t i = 0; i < 32; i++)
        values[i] = words == 1 ? (uint32_t)from[i] : (uint32_t)(from[i / 2] >> 32 * (i % 2));
}

static bool write_row(ptx_turn *turn, ptx_area *area, ptx_row *row, const ptx_row_entry *me) {
    if (!all_settled(turn, row, me)) return false;
    row->written = *me;
    row->read.epoch = 0;
    if (row->more) row->more->other_count = 0;
    note_values(turn, area, row, me->words);
    return true;
}

bool ptx_row_access(ptx_turn *turn, ptx_area *area, uint64_t start) {
    const ptx_watched *a = turn->access;
    if (!covers_rows(a)) return false;
    uint32_t words = a->bytes / 4, lanes = 32 / words;
    uint32_t first = (uint32_t)(a->address[0] - start) / PTX_ROW_BYTES;
    for (uint32_t i = 0; i < words; i++) {
        ptx_row *row = &area->rows[first + i];
        ptx_row_entry me = {turn->me | i * lanes, turn->at, (uint8_t)words};
        bool is_done = !ptx_row_is_divided(row);
        if (a->access & MR_PTX_READS) is_done = is_done && read_row(turn, row, &me);
        if (a->access & MR_PTX_WRITES) is_done = is_done && write_row(turn, area, row, &me);
        uint32_t part = words == 1 ? UINT32_MAX : (((uint32_t)1 << lanes) - 1) << i * lanes;
        if (!is_done) ptx_weak_access(turn, area, start, part);
    }
    return true;
}
