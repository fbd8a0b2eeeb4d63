/* The shadow memory of shadow.h: its cells, their division, pages and histories. order.c decides what is ordered. */
#include "ptx/watch/shadow.h"

#include <stdlib.h>
#include <string.h>

/* ---- chains */

void ptx_chain_release(ptx_chain *chain) {
    if (!chain || --chain->references) return;
    ptx_chain_release(chain->previous); /* which has none itself */
    ptx_clock_release(chain->wide);
    for (size_t i = 0; i < chain->narrow.count; i++)
        ptx_clock_release(chain->narrow.items[i].clock);
    mr_vec_free(&chain->narrow);
    free(chain);
}

void ptx_copies_free(ptx_copies *copies) {
    if (!copies) return;
    mr_vec_free(&copies->items);
    free(copies->of_word);
    free(copies);
}

/* ---- histories */

void ptx_history_forget_readers(ptx_history *h) {
    h->reader_count = 0;
    h->latest_read = 0;
    h->read_by_several = h->has_lost = false;
    memset(h->newest_of_warp, 0, sizeof h->newest_of_warp);
}

void ptx_history_forget(ptx_history *h) {
    ptx_history_forget_readers(h);
    h->strong_count = h->compact_at = h->compact_count = 0;
    h->latest_strong = 0;
    h->strong_of_several = h->strong_mixed = h->strong_narrow = false;
    ptx_chain_release(h->chain);
    h->chain = NULL;
}

static void history_free(ptx_history *h) {
    if (!h) return;
    ptx_chain_release(h->chain);
    mr_few_free(h->readers, h->few);
    free(h->strong);
    free(h);
}

static bool grow_readers(ptx_history *h) {
    if (!mr_few_grow(h->readers, h->few, h->reader_count, 2 * (size_t)h->reader_capacity))
        return false;
    h->reader_capacity *= 2;
    return true;
}

static bool grow_strong(ptx_history *h) {
    uint32_t wanted = h->strong_capacity ? h->strong_capacity * 2 : 4;
    if (!mr_few_grow(h->strong, NULL, 0, wanted)) return false;
    h->strong_capacity = wanted;
    return true;
}

bool ptx_history_add_reader(ptx_history *h, const ptx_cell_reader *reader) {
    if (h->reader_count == h->reader_capacity && !grow_readers(h)) return false;
    h->readers[h->reader_count++] = *reader;
    uint32_t warp = reader->epoch >> PTX_LANE_BITS & 31;
    h->newest_of_warp[warp] = h->reader_count <= UINT8_MAX ? (uint8_t)h->reader_count : 0;
    return true;
}

bool ptx_history_add_strong(ptx_history *h, const ptx_strong *strong) {
    if (h->strong_count == h->strong_capacity && !grow_strong(h)) return false;
    h->strong[h->strong_count++] = *strong;
    return true;
}

ptx_history *ptx_history_of(ptx_cells *cells, uint32_t cell, uint64_t owner) {
    ptx_history *h = ptx_history_at(cells, cell);
    if (h) return h;
    h = calloc(1, sizeof *h);
    if (!h) return NULL;
    h->readers = h->few;
    h->reader_capacity = sizeof h->few / sizeof *h->few;
    uint64_t epoch = cells->read[cell];
    uint32_t at = cells->read_at[cell], also = cells->read_also[cell];
    uint32_t other = also ? (uint32_t)1 << PTX_SAMPLE_LANE(also) : 0;
    ptx_cell_reader readers[] = {{epoch, other, PTX_SAMPLE_NUMBER(also)},
                                 {epoch, cells->readers[cell] & ~other, PTX_SAMPLE_NUMBER(at)}};
    for (int i = 0; i < 2 && epoch; i++)
        if (readers[i].lanes && !ptx_history_add_reader(h, &readers[i])) {
            history_free(h);
            return NULL;
        }
    h->latest_read = epoch;
    h->owner = owner;
    cells->read[cell] = (uint64_t)(uintptr_t)h | PTX_IN_HISTORY;
    return h;
}

static ptx_history *history_copy(const ptx_history *h) {
    ptx_history *copy = malloc(sizeof *copy);
    if (!copy) return NULL;
    *copy = *h;
    copy->readers = malloc(h->reader_capacity * sizeof *copy->readers);
    copy->strong = malloc((h->strong_capacity + 1) * sizeof *copy->strong);
    if (!copy->readers || !copy->strong) {
        copy->chain = NULL;
        history_free(copy);
        return NULL;
    }
    if (h->reader_count) memcpy(copy->readers, h->readers, h->reader_count * sizeof *copy->readers);
    if (h->strong_count) memcpy(copy->strong, h->strong, h->strong_count * sizeof *copy->strong);
    if (copy->chain) copy->chain->references++;
    return copy;
}

/* ---- cells */

static bool cells_init(ptx_cells *cells, uint32_t memory_bytes, uint32_t cell_bytes) {
    size_t count = (memory_bytes + cell_bytes - 1) / cell_bytes;
    char *memory = calloc(count + !count, 40);
    if (!memory) return false;
    *cells = (ptx_cells){.bytes = cell_bytes,
                         .shift = (uint32_t)__builtin_ctz(cell_bytes),
                         .count = (uint32_t)count,
                         .memory = memory};
    cells->written = (uint64_t *)(void *)memory;
    cells->read = cells->written + count;
    cells->readers = (uint32_t *)(void *)(cells->read + count);
    cells->written_at = cells->readers + count;
    cells->read_at = cells->written_at + count;
    cells->read_also = cells->read_at + count;
    cells->value = cells->read_also + count;
    return true;
}

static void cells_free(ptx_cells *cells) {
    if (!cells->memory) return;
    for (uint32_t i = 0; i < cells->count; i++) history_free(ptx_history_at(cells, i));
    free(cells->memory);
    *cells = (ptx_cells){0};
}

static bool cells_divide(ptx_cells *cells, uint32_t cell_bytes) {
    ptx_cells finer;
    if (!cells_init(&finer, cells->count * cells->bytes, cell_bytes)) return false;
    uint32_t parts = cells->bytes / cell_bytes;
    for (uint32_t i = 0; i < finer.count; i++) {
        uint32_t from = i / parts;
        ptx_history *h = ptx_history_at(cells, from), *copy = h ? history_copy(h) : NULL;
        if (h && !copy) {
            cells_free(&finer);
            return false;
        }
        finer.written[i] = cells->written[from];
        finer.read[i] = copy ? (uint64_t)(uintptr_t)copy | PTX_IN_HISTORY : cells->read[from];
        finer.readers[i] = cells->readers[from];
        finer.written_at[i] = cells->written_at[from];
        finer.read_at[i] = cells->read_at[from];
        finer.read_also[i] = cells->read_also[from];
        finer.value[i] = cells->value[from] >> (i % parts * cell_bytes * 8);
    }
    cells_free(cells);
    *cells = finer;
    return true;
}

/* ---- areas and rows */

bool ptx_area_init(ptx_area *area, uint32_t bytes) {
    *area = (ptx_area){.row_count = (bytes + PTX_ROW_BYTES - 1) / PTX_ROW_BYTES};
    area->rows = calloc(area->row_count + 1, sizeof *area->rows);
    return area->rows != NULL;
}

void ptx_area_free(ptx_area *area) {
    for (uint32_t i = 0; i < area->row_count && area->rows; i++)
        if (!ptx_row_is_divided(&area->rows[i])) free(area->rows[i].more);
    cells_free(&area->cells);
    free(area->rows);
    free(area->row_values);
    *area = (ptx_area){0};
}

bool ptx_area_cells(ptx_area *area, uint32_t cell_bytes) {
    if (!area->cells.memory && !cells_init(&area->cells, area->row_count * PTX_ROW_BYTES, 4))
        return false;
    return cell_bytes >= area->cells.bytes || cells_divide(&area->cells, cell_bytes);
}

/* The lane that accessed a word. */
static uint32_t lane_at(const ptx_row_entry *e, uint32_t word) {
    return (uint32_t)(e->epoch & 31) + word / e->words;
}

static ptx_cell_reader reader_at(const ptx_row_entry *e, uint32_t word) {
    return (ptx_cell_reader){e->epoch & ~(uint64_t)31, (uint32_t)1 << lane_at(e, word), e->at};
}

static bool divide_readers(const ptx_row *row, ptx_cells *cells, uint32_t cell, uint32_t word) {
    if (row->read.epoch) {
        ptx_cell_reader r = reader_at(&row->read, word);
        cells->read[cell] = r.epoch;
        cells->readers[cell] = r.lanes;
        cells->read_at[cell] = PTX_SAMPLE(lane_at(&row->read, word), r.at);
    }
    const ptx_row_more *more = row->more;
    if (!more || (!more->lost.epoch && !more->other_count)) return true;
    ptx_history *h = ptx_history_of(cells, cell, more->owner);
    if (!h) return false;
    for (uint32_t i = 0; i < more->other_count; i++) {
        ptx_cell_reader r = reader_at(&more->others[i], word);
        if (!ptx_history_add_reader(h, &r)) return false;
    }
    h->read_by_several = true; /* or not: then it is a longer way to the same end */
    if (!more->lost.epoch) return true;
    h->lost = reader_at(&more->lost, word);
    return h->has_lost = true;
}

/* The record of one word of a row, as a cell. */
static bool divide_cell(const ptx_area *area, const ptx_row *row, ptx_cells *cells, uint32_t cell) {
    uint32_t byte = cell << cells->shift, word = byte % PTX_ROW_BYTES / 4;
    if (row->written.epoch) {
        cells->written[cell] = (row->written.epoch & ~(uint64_t)31) | lane_at(&row->written, word);
        cells->written_at[cell] = row->written.at;
        if (area->row_values) cells->value[cell] = area->row_values[byte / 4] >> 8 * (byte % 4);
    }
    return divide_readers(row, cells, cell, word);
}

bool ptx_row_divide(ptx_area *area, uint32_t row) {
    if (!ptx_area_cells(area, 4)) return false;
    ptx_cells *cells = &area->cells;
    uint32_t per_row = PTX_ROW_BYTES >> cells->shift;
    for (uint32_t i = 0; i < per_row; i++)
        if (!divide_cell(area, &area->rows[row], cells, row * per_row + i)) return false;
    free(area->rows[row].more);
    area->rows[row].more = PTX_ROW_DIVIDED;
    return true;
}

/* ---- pages */

static ptx_page *find(ptx_page *page, const ptx_page *end, uint64_t number) {
    while (page != end && page->number != number) page = page->next;
    return page == end ? NULL : page;
}

ptx_page *ptx_page_get(ptx_pages *pages, uint64_t number) {
    _Atomic(ptx_page *) *chain =
        &pages->chains[number * 0x9e3779b97f4a7c15u >> 32 & (PTX_PAGE_CHAINS - 1)];
    ptx_page *first = atomic_load_explicit(chain, memory_order_acquire);
    ptx_page *page = find(first, NULL, number);
    if (page) return page;
    page = calloc(1, sizeof *page);
    if (!page || !ptx_area_init(&page->area, PTX_PAGE_BYTES)) {
        free(page);
        return NULL;
    }
    page->number = number;
    atomic_flag_clear(&page->lock);
    page->next = first;
    while (!atomic_compare_exchange_weak_explicit(chain, &page->next, page, memory_order_acq_rel,
                                                  memory_order_acquire)) {
        /* Another thread was first: perhaps with the same page. */
        ptx_page *theirs = find(page->next, first, number);
        if (theirs) {
            ptx_area_free(&page->area);
            free(page);
            return theirs;
        }
    }
    return page;
}

void ptx_pages_free(ptx_pages *pages) {
    for (uint32_t i = 0; i < PTX_PAGE_CHAINS; i++) {
        ptx_page *page = atomic_load(&pages->chains[i]);
        while (page) {
            ptx_page *next = page->next;
            ptx_area_free(&page->area);
            free(page);
            page = next;
        }
    }
}
