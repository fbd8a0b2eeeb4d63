/* Accesses of whole warps to whole rows: 32 lanes, one after the other, from the row's first byte on. That is the usual
 * access, and costs a few compares for all lanes. Whatever is not settled by that is judged on cells, which report it. */
#include "ptx/watch_state.h"

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

/* The epoch of a row's former access: each lane of the turn comes after all lanes of it, or is the same thread as the one
 * that accessed its words. */
static bool is_settled(const ptx_turn *turn, uint64_t epoch, uint8_t epoch_words, uint64_t me,
                       uint32_t words) {
    if (!epoch || epoch - turn->block < turn->span) return true;
    if ((epoch ^ me) & turn->same_thread & ~(uint64_t)31) return false;
    bool same_lanes = (epoch & 31) == (me & 31) && epoch_words == words;
    return same_lanes || ptx_epoch_time(turn->watch, epoch) < turn->running->warp_floor[turn->warp];
}

static bool lose_reader(const ptx_turn *turn, ptx_row *row) {
    uint32_t shift = turn->watch->block_shift;
    if (turn->is_shared || row->read >> shift == turn->block >> shift ||
        !ptx_block_unheard(turn->watch, row->read))
        return false;
    row->lost = row->read;
    row->lost_at = row->read_at;
    row->lost_words = row->read_words;
    return true;
}

static bool read_row(const ptx_turn *turn, ptx_row *row, uint64_t me, uint32_t words) {
    if (!is_settled(turn, row->written, row->written_words, me, words)) return false;
    if (row->read == me && row->read_words == words) return true;
    if (!is_settled(turn, row->read, row->read_words, me, words) && !lose_reader(turn, row))
        return false;
    row->read = me;
    row->read_at = turn->at;
    row->read_words = (uint8_t)words;
    return true;
}

static bool write_row(ptx_turn *turn, ptx_area *area, ptx_row *row, uint64_t me, uint32_t words) {
    if (row->lost || !is_settled(turn, row->written, row->written_words, me, words) ||
        !is_settled(turn, row->read, row->read_words, me, words))
        return false;
    row->written = me;
    row->written_at = turn->at;
    row->written_words = (uint8_t)words;
    row->read = 0;
    if (!turn->access->value || words > 2) return true;
    if (!area->row_values) area->row_values = malloc(area->row_count * PTX_ROW_BYTES);
    if (!area->row_values) {
        turn->failed = true;
        return true;
    }
    row->written_at |= PTX_VALUE_KNOWN;
    uint32_t *values = &area->row_values[(row - area->rows) * 32];
    const uint64_t *from = &turn->access->value[me & 31];
    for (uint32_t i = 0; i < 32; i++)
        values[i] = words == 1 ? (uint32_t)from[i] : (uint32_t)(from[i / 2] >> 32 * (i % 2));
    return true;
}

bool ptx_row_access(ptx_turn *turn, ptx_area *area, uint64_t start) {
    const ptx_watched *a = turn->access;
    if (!covers_rows(a)) return false;
    uint32_t words = a->bytes / 4, lanes = 32 / words;
    uint32_t first = (uint32_t)(a->address[0] - start) / PTX_ROW_BYTES;
    for (uint32_t i = 0; i < words; i++) {
        ptx_row *row = &area->rows[first + i];
        uint64_t me = turn->me | i * lanes;
        bool is_done = !row->is_divided;
        if (a->access & MR_PTX_READS) is_done = is_done && read_row(turn, row, me, words);
        if (a->access & MR_PTX_WRITES) is_done = is_done && write_row(turn, area, row, me, words);
        uint32_t part = words == 1 ? UINT32_MAX : (((uint32_t)1 << lanes) - 1) << i * lanes;
        if (!is_done) ptx_weak_access(turn, area, start, part);
    }
    return true;
}
