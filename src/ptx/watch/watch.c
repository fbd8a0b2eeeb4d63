/* Looks for races inside a launch (watch.h): splits the interpreter's reports into cells, and judges weak accesses.
 *
 * The usual case must cost little: 32 lanes, consecutive addresses, cells without another access since the last
 * barrier. So a cell holds its last writer and its last readers in two words, and a look at both is two compares. All
 * that does not fit there (readers of several warps, strong accesses) lies in a history beside the cell. Why that is
 * enough to be exact: check.c. After a first race on a cell later ones may be missed there, but none is made up.
 *
 * Several threads may run blocks of the launch. A page's lock is held while its cells are judged and changed, which
 * makes one access to one page one step. Shared memory, times and clocks of a block belong to the thread that runs
 * it. */
#include "ptx/watch/state.h"

#include <stdlib.h>
#include <string.h>

/* ---- lanes in an area */

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

static void strong_lane(ptx_turn *turn, ptx_area *area, uint64_t start, uint32_t lane) {
    const ptx_watched *a = turn->access;
    uint32_t element = element_bytes(a);
    for (uint32_t done = 0; done < a->bytes; done += element) {
        uint64_t address = a->address[lane] + done;
        if (!ptx_fit(turn, area, start, address, element)) return;
        ptx_strong_access(turn, &area->cells, start, lane, address, element);
        if (!turn->has_released) continue;
        /* The release covers the time until now. */
        turn->has_released = false;
        turn->running->now[turn->warp]++;
        turn->me += (uint64_t)1 << PTX_TIME_SHIFT;
    }
}

/* The lanes' accesses, all within the area, which begins at address `start`. */
static void access_area(ptx_turn *turn, ptx_area *area, uint64_t start, uint32_t lanes) {
    if (!is_strong(turn->access)) {
        if (lanes != UINT32_MAX || !ptx_row_access(turn, area, start))
            ptx_weak_access(turn, area, start, lanes);
        return;
    }
    for (; lanes && !turn->failed; lanes &= lanes - 1)
        strong_lane(turn, area, start, (uint32_t)__builtin_ctz(lanes));
}

/* ---- shared and global memory */

static void access_shared(ptx_turn *turn) {
    const ptx_watched *a = turn->access;
    ptx_area *area = &turn->running->shared;
    uint64_t size = (uint64_t)area->row_count * PTX_ROW_BYTES;
    uint32_t lanes = a->mask;
    bool is_inside = turn->high < size && size - turn->high >= a->bytes;
    for (uint32_t rest = is_inside ? 0 : lanes; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (a->address[lane] >= size || size - a->address[lane] < a->bytes)
            lanes &= ~((uint32_t)1 << lane);
    }
    access_area(turn, area, 0, lanes);
}

static ptx_page *page_of(ptx_turn *turn, uint64_t number) {
    ptx_page **recent = &turn->running->pages[number % PTX_RECENT], *page = *recent;
    if (page && page->number == number) return page;
    page = ptx_page_get(turn->watch->pages, number);
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
        ptx_weak_part(turn, &page->area, start, lane, address, here);
        ptx_page_unlock(page);
        address += here;
        left -= here;
    }
}

/* One step for all lanes in the page of the first one of `rest`; returns the others. */
static uint32_t access_page(ptx_turn *turn, uint32_t rest) {
    const ptx_watched *a = turn->access;
    uint64_t number = a->address[__builtin_ctz(rest)] >> PTX_PAGE_BITS;
    uint64_t start = number << PTX_PAGE_BITS;
    ptx_page *page = page_of(turn, number);
    if (!page) return 0;
    bool is_inside = turn->low >= start && turn->high + a->bytes - start <= PTX_PAGE_BYTES;
    uint32_t lanes = is_inside ? rest : 0;
    for (uint32_t left = is_inside ? 0 : rest; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t offset = a->address[lane] - start;
        if (offset < PTX_PAGE_BYTES && offset + a->bytes <= PTX_PAGE_BYTES)
            lanes |= (uint32_t)1 << lane;
    }
    ptx_page_lock(page);
    access_area(turn, &page->area, start, lanes);
    ptx_page_unlock(page);
    return rest & ~lanes;
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

/* Bounds and common bits of the addresses; the bounds may be wider than need be. */
static void measure_addresses(ptx_turn *turn) {
    const ptx_watched *a = turn->access;
    const uint64_t *address = a->address;
    uint64_t first = address[__builtin_ctz(a->mask)], differs = 0;
    turn->low = turn->high = turn->bits = first;
    if (a->is_same) return;
    if (a->is_row) {
        turn->high = address[31 - __builtin_clz(a->mask)];
        return;
    }
    if (a->mask == UINT32_MAX)
        for (uint32_t i = 0; i < 32; i++) differs |= address[i] ^ first;
    else
        for (uint32_t rest = a->mask; rest; rest &= rest - 1)
            differs |= address[__builtin_ctz(rest)] ^ first;
    uint64_t below = differs ? UINT64_MAX >> __builtin_clzll(differs) : 0;
    turn->low = first & ~below;
    turn->high = first | below;
    turn->bits = first | differs;
}

static bool has_several_addresses(const ptx_watched *a) {
    uint64_t first = a->address[__builtin_ctz(a->mask)];
    for (uint32_t rest = a->mask; rest; rest &= rest - 1)
        if (a->address[__builtin_ctz(rest)] != first) return true;
    return false;
}

void ptx_judge(mr_ptx_watch *watch, ptx_running *r, const ptx_watched *access) {
    ptx_turn turn = {.watch = watch, .running = r, .access = access, .warp = access->warp};
    turn.is_shared = access->space == PTX_SHARED;
    turn.block = turn.is_shared ? 0 : (access->block + 1) << watch->block_shift;
    turn.span = r->floor << PTX_TIME_SHIFT;
    turn.me = turn.block | r->now[turn.warp] << PTX_TIME_SHIFT | turn.warp << PTX_LANE_BITS;
    turn.same_thread =
        ~((((uint64_t)1 << watch->block_shift) - 1) & ~(((uint64_t)1 << PTX_TIME_SHIFT) - 1));
    turn.at = ptx_instruction_number(watch, r, access->instruction);
    measure_addresses(&turn);
    /* Volatile loads and stores of shared memory. Those of several lanes are spread unless all are at one place. */
    turn.is_exchange = turn.is_shared && access->order == PTX_VOLATILE &&
                       access->access != (MR_PTX_READS | MR_PTX_WRITES);
    turn.is_update = is_strong(access) && access->access == (MR_PTX_READS | MR_PTX_WRITES);
    turn.is_spread = turn.is_exchange && has_several_addresses(access);
    if (turn.is_shared) access_shared(&turn);
    else access_global(&turn);
    if (turn.failed) ptx_watch_stop(watch, "memory is out");
}

/* ---- the watch */

void ptx_watch_hold(mr_ptx_watch *watch) {
    pthread_mutex_lock(&watch->strong);
}

void ptx_watch_let_go(mr_ptx_watch *watch) {
    pthread_mutex_unlock(&watch->strong);
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
    mr_vec_free(&watch->marked);
    pthread_mutex_destroy(&watch->strong);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}
