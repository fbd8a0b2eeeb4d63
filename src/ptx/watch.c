/* Looks for races inside a launch (watch.h): takes what the interpreter tells apart into cells, and judges weak accesses.
 *
 * The usual case must cost little: 32 lanes, consecutive addresses, cells that nobody else has touched since the last
 * barrier. So a cell holds its last writer and its last readers in two words, and a look at both is two compares. All that does not
 * fit there (readers of several warps, strong accesses) lies in a history beside the cell. Why that is enough to be
 * exact: watch_check.c. After a first race on a cell later ones may be missed there, but none is made up.
 *
 * Several threads may run blocks of the launch. A page's lock is held while its cells are judged and changed, which makes
 * one access to one page one step. Shared memory, times and clocks of a block belong to the thread that runs it. */
#include "ptx/watch_state.h"

#include <stdlib.h>
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

/* A cell's history; in shared memory what an earlier block left there is gone. */
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

static bool lose_if_unheard(const ptx_turn *turn, ptx_history *h, const ptx_reader *r) {
    uint32_t shift = turn->watch->block_shift;
    if (turn->is_shared || r->epoch >> shift == turn->block >> shift ||
        !ptx_block_unheard(turn->watch, r->epoch))
        return false;
    h->lost = *r;
    h->has_lost = true;
    return true;
}

/* Drops the readers that the lane's own reading stands for. */
static void drop_readers(const ptx_turn *turn, ptx_history *h, uint32_t lane) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < h->reader_count; i++) {
        ptx_reader r = h->readers[i];
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
    ptx_reader *r = newest ? &h->readers[newest - 1] : NULL;
    if (r && r->epoch == turn->me && (r->at == turn->at || (r->lanes & bit))) {
        r->lanes |= bit;
        return;
    }
    note_latest(turn, h);
    ptx_reader mine = {turn->me, bit, turn->at};
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
static inline void add_lane(const ptx_turn *turn, ptx_cells *cells, uint32_t cell, uint32_t lane) {
    uint32_t bit = (uint32_t)1 << lane;
    if (PTX_SAMPLE_NUMBER(cells->read_at[cell]) != turn->at && !cells->read_also[cell] &&
        !(cells->readers[cell] & bit))
        cells->read_also[cell] = PTX_SAMPLE(lane, turn->at);
    cells->readers[cell] |= bit;
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
            add_lane(turn, cells, cell, lane);
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

static inline void read_cell(ptx_turn *turn, ptx_cells *cells, uint64_t start, uint32_t cell,
                             uint32_t lane) {
    uint64_t read = cells->read[cell];
    if (is_settled(turn, cells->written[cell], turn->me | lane)) {
        if (read == turn->me) {
            add_lane(turn, cells, cell, lane);
            return;
        }
        if (!read || read - turn->block < turn->span) {
            set_read(turn, cells, cell, lane);
            return;
        }
    }
    read_slowly(turn, cells, start, cell, lane);
}

static inline void write_cell(ptx_turn *turn, ptx_cells *cells, uint64_t start, uint32_t cell,
                              uint32_t lane) {
    uint64_t read = cells->read[cell];
    bool own_reader =
        !((read ^ turn->me) & turn->same_thread) && cells->readers[cell] == (uint32_t)1 << lane;
    if (is_settled(turn, cells->written[cell], turn->me | lane) &&
        (!read || read - turn->block < turn->span || own_reader)) {
        cells->read[cell] = 0;
        set_written(turn, cells, start, cell, lane);
        return;
    }
    write_slowly(turn, cells, start, cell, lane);
}

/* ---- lanes on cells */

/* `cells` begin at address `start`, and hold the `bytes` from `address` on. */
static void weak_access(ptx_turn *turn, ptx_cells *cells, uint64_t start, uint32_t lane,
                        uint64_t address, uint32_t bytes) {
    uint32_t first = (uint32_t)(address - start) / cells->bytes;
    uint32_t end = first + bytes / cells->bytes;
    for (uint32_t c = first; c < end; c++) {
        if (turn->access->access & MR_PTX_READS) read_cell(turn, cells, start, c, lane);
        if (turn->access->access & MR_PTX_WRITES) write_cell(turn, cells, start, c, lane);
    }
}

static bool is_strong(const ptx_watched *a) {
    return a->atomic || a->order >= PTX_VOLATILE;
}

/* Vectors and packed types are several operations to the memory model. */
static uint32_t element_bytes(const ptx_watched *a) {
    const ptx_instruction *i = a->instruction;
    uint32_t bytes = a->bytes;
    if (!i) return bytes;
    for (uint32_t m = 0; m < i->modifier_count; m++) {
        if (i->modifiers[m] == PTX_MOD_v2) bytes /= 2;
        if (i->modifiers[m] == PTX_MOD_v4) bytes /= 4;
        if (i->modifiers[m] == PTX_MOD_v8) bytes /= 8;
    }
    for (uint32_t t = 0; t < i->type_count; t++)
        if ((i->types[t] == PTX_f16x2 || i->types[t] == PTX_bf16x2) && bytes == 4) return 2;
    return bytes ? bytes : a->bytes;
}

/* Fine enough for the access: divides the cells if they are larger than its size or alignment. */
static inline bool fit(ptx_turn *turn, ptx_cells *cells, uint64_t address, uint32_t bytes) {
    uint64_t wanted = ptx_lowest_bit(address | bytes);
    if (wanted < cells->bytes && !ptx_cells_divide(cells, (uint32_t)wanted)) {
        turn->failed = true;
        return false;
    }
    turn->cell_bytes = cells->bytes;
    return true;
}

static void access_lane(ptx_turn *turn, ptx_cells *cells, uint64_t start, uint32_t lane,
                        uint64_t address, uint32_t bytes) {
    if (!is_strong(turn->access)) {
        if (fit(turn, cells, address, bytes)) weak_access(turn, cells, start, lane, address, bytes);
        return;
    }
    uint32_t element = element_bytes(turn->access);
    for (uint32_t done = 0; done < bytes; done += element) {
        if (!fit(turn, cells, address + done, element)) return;
        ptx_strong_access(turn, cells, start, lane, address + done, element);
        if (!turn->has_released) continue;
        /* What was released covers the time until now. */
        turn->has_released = false;
        turn->running->now[turn->warp]++;
        turn->me += (uint64_t)1 << PTX_TIME_SHIFT;
    }
}

/* ---- shared and global memory */

static void access_shared(ptx_turn *turn) {
    const ptx_watched *a = turn->access;
    ptx_cells *cells = &turn->running->shared;
    uint64_t size = (uint64_t)cells->count * cells->bytes;
    for (uint32_t rest = a->mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (a->address[lane] < size && size - a->address[lane] >= a->bytes)
            access_lane(turn, cells, 0, lane, a->address[lane], a->bytes);
    }
}

static ptx_page *page_of(ptx_turn *turn, uint64_t number) {
    ptx_page **recent = &turn->running->pages[number % PTX_RECENT];
    if (*recent && (*recent)->number == number) return *recent;
    ptx_page *page = ptx_page_get(turn->watch->pages, number);
    if (page) *recent = page;
    else turn->failed = true;
    return page;
}

/* A lane whose bytes lie in two pages, which only a misaligned access has. */
static void access_across(ptx_turn *turn, uint32_t lane) {
    uint64_t address = turn->access->address[lane];
    for (uint32_t left = turn->access->bytes; left;) {
        uint64_t start = address & ~(uint64_t)(PTX_PAGE_BYTES - 1);
        uint32_t here = PTX_PAGE_BYTES - (uint32_t)(address - start);
        if (here > left) here = left;
        ptx_page *page = page_of(turn, address >> PTX_PAGE_BITS);
        if (!page) return;
        ptx_page_lock(page);
        if (fit(turn, &page->cells, address, here))
            weak_access(turn, &page->cells, start, lane, address, here);
        ptx_page_unlock(page);
        address += here;
        left -= here;
    }
}

/* One step for all following lanes that are in the same page. */
static uint32_t access_page(ptx_turn *turn, uint32_t rest) {
    const ptx_watched *a = turn->access;
    uint64_t number = a->address[__builtin_ctz(rest)] >> PTX_PAGE_BITS;
    uint64_t start = number << PTX_PAGE_BITS;
    ptx_page *page = page_of(turn, number);
    if (!page) return 0;
    ptx_page_lock(page);
    for (; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint64_t offset = a->address[lane] - start;
        if (offset >= PTX_PAGE_BYTES || offset + a->bytes > PTX_PAGE_BYTES) break;
        access_lane(turn, &page->cells, start, lane, a->address[lane], a->bytes);
    }
    ptx_page_unlock(page);
    return rest;
}

static void access_global(ptx_turn *turn) {
    const ptx_watched *a = turn->access;
    for (uint32_t rest = a->mask; rest && !turn->failed;) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if ((a->address[lane] & (PTX_PAGE_BYTES - 1)) + a->bytes > PTX_PAGE_BYTES) {
            access_across(turn, lane);
            rest &= rest - 1;
        } else {
            rest = access_page(turn, rest);
        }
    }
}

void ptx_watch_access(mr_ptx_watch *watch, const ptx_watched *access) {
    ptx_running *r = ptx_watch_running(watch, access->block);
    if (!r || !access->bytes || access->warp >= r->warps) return;
    ptx_turn turn = {.watch = watch, .running = r, .access = access, .warp = access->warp};
    turn.is_shared = access->space == PTX_SHARED;
    turn.block = turn.is_shared ? 0 : (access->block + 1) << watch->block_shift;
    turn.span = r->floor << PTX_TIME_SHIFT;
    turn.me = turn.block | r->now[turn.warp] << PTX_TIME_SHIFT | turn.warp << PTX_LANE_BITS;
    turn.same_thread =
        ~((((uint64_t)1 << watch->block_shift) - 1) & ~(((uint64_t)1 << PTX_TIME_SHIFT) - 1));
    turn.at = ptx_instruction_number(watch, r, access->instruction);
    if (turn.is_shared) access_shared(&turn);
    else access_global(&turn);
    if (turn.failed) ptx_watch_stop(watch, "memory is out");
}

/* ---- the watch */

void ptx_watch_stop(mr_ptx_watch *watch, const char *why) {
    pthread_mutex_lock(&watch->lock);
    if (!watch->why_stopped) watch->why_stopped = why;
    pthread_mutex_unlock(&watch->lock);
    atomic_store(&watch->is_stopped, true);
}

const char *mr_ptx_watch_stopped(const mr_ptx_watch *watch) {
    return atomic_load(&watch->is_stopped) ? watch->why_stopped : NULL;
}

void ptx_watch_hold(mr_ptx_watch *watch) {
    pthread_mutex_lock(&watch->strong);
}

void ptx_watch_let_go(mr_ptx_watch *watch) {
    pthread_mutex_unlock(&watch->strong);
}

void ptx_watch_listen(mr_ptx_watch *watch, ptx_race_listener listener, void *context) {
    watch->listener = listener;
    watch->listener_context = context;
}

mr_ptx_watch *mr_ptx_watch_create(const mr_ptx_module *module, uint64_t blocks, uint32_t threads) {
    mr_ptx_watch *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->strong, NULL);
    w->module = module;
    w->blocks = blocks;
    w->threads = threads;
    uint32_t block_bits = 1;
    while (block_bits < 40 && (blocks + 1) >> block_bits) block_bits++;
    w->block_shift = 63 - block_bits;
    w->time_limit = ((uint64_t)1 << (w->block_shift - PTX_TIME_SHIFT)) - 4;
    w->pages = calloc(1, sizeof *w->pages);
    w->ended = calloc(blocks / 8 + 1, 1);
    w->heard = calloc(blocks / 8 + 1, 1);
    if (!w->pages || !w->ended || !w->heard) {
        mr_ptx_watch_destroy(w);
        return NULL;
    }
    return w;
}

void mr_ptx_watch_destroy(mr_ptx_watch *watch) {
    if (!watch) return;
    for (ptx_running *r = atomic_load(&watch->all); r;) {
        ptx_running *next = r->next;
        ptx_running_free(r);
        r = next;
    }
    if (watch->pages) ptx_pages_free(watch->pages);
    free(watch->pages);
    free((void *)watch->ended);
    free((void *)watch->heard);
    ptx_races_free(watch);
    pthread_mutex_destroy(&watch->strong);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}
