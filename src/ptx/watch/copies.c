/* cp.async: copies to shared memory that go on while their threads do. Here the bytes belong to the copy from the
 * moment when it begins until its thread has waited for it: an access in between races, also one of that thread.
 *
 * A copy is told as a write when it begins, and again when it has been waited for. Any order before the reads of other
 * threads must come after that wait. Easiest to break: a word belongs to the last copy to it. */
#include "ptx/watch/state.h"

#include <stdlib.h>

#define WORD        PTX_COPY_WORD
#define UNCOMMITTED UINT64_MAX /* in a copy's group */

/* NULL: memory is out. */
static ptx_copies *copies_of(ptx_running *r) {
    if (r->copies) return r->copies;
    ptx_copies *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->word_count = r->shared.row_count * (PTX_ROW_BYTES / WORD);
    c->of_word = calloc((size_t)c->word_count + 1, sizeof *c->of_word);
    if (!c->of_word) {
        free(c);
        return NULL;
    }
    r->copies = c;
    return c;
}

/* UINT32_MAX: memory is out. */
static uint32_t take_item(ptx_copies *c) {
    if (c->free_item) {
        uint32_t i = c->free_item - 1;
        c->free_item = c->items.items[i].at;
        return i;
    }
    return mr_vec_push(&c->items, (ptx_copy_item){0}) ? (uint32_t)c->items.count - 1 : UINT32_MAX;
}

static void free_item(ptx_copies *c, uint32_t i) {
    c->items.items[i] = (ptx_copy_item){.at = c->free_item};
    c->free_item = i + 1;
}

static uint64_t epoch_of(const ptx_running *r, uint32_t warp) {
    return r->now[warp] << PTX_TIME_SHIFT | warp << PTX_LANE_BITS;
}

void ptx_watch_copy(mr_ptx_watch *watch, const ptx_watched *access) {
    ptx_running *r = ptx_watch_running(watch, access->block);
    if (!r || access->warp >= r->warps) return;
    ptx_copies *c = copies_of(r);
    for (uint32_t rest = access->mask; rest && c; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest), i = take_item(c);
        uint64_t first = access->address[lane] / WORD, count = access->bytes / WORD;
        if (i == UINT32_MAX) c = NULL;
        else if (first + count > c->word_count) free_item(c, i);
        else {
            c->items.items[i] =
                (ptx_copy_item){.epoch = epoch_of(r, access->warp),
                                .group = UNCOMMITTED,
                                .address = (uint32_t)access->address[lane],
                                .bytes = access->bytes,
                                .lane = lane,
                                .at = ptx_instruction_number(watch, r, access->instruction),
                                .instruction = access->instruction};
            for (uint64_t w = 0; w < count; w++) c->of_word[first + w] = i + 1;
            c->under_way++;
        }
    }
    if (!c) ptx_watch_stop(watch, "memory is out");
}

static bool is_of(const ptx_copy_item *item, uint32_t warp, uint32_t mask) {
    return item->bytes && ptx_epoch_warp(item->epoch) == warp && mask >> item->lane & 1;
}

void ptx_watch_commit(mr_ptx_watch *watch, uint64_t block, uint32_t warp, uint32_t mask) {
    ptx_running *r = ptx_watch_running(watch, block);
    ptx_copies *c = r && warp < r->warps ? r->copies : NULL;
    if (!c) return;
    for (uint32_t rest = mask; rest; rest &= rest - 1)
        c->committed[32 * warp + (uint32_t)__builtin_ctz(rest)]++;
    for (uint32_t i = 0; i < c->items.count; i++)
        if (is_of(&c->items.items[i], warp, mask) && c->items.items[i].group == UNCOMMITTED)
            c->items.items[i].group = c->committed[32 * warp + c->items.items[i].lane];
}

/* The copy is over now: it counts as a write of its thread at this time. */
static void end_copy(mr_ptx_watch *watch, ptx_running *r, uint64_t block, uint32_t index) {
    ptx_copies *c = r->copies;
    ptx_copy_item item = c->items.items[index];
    uint64_t addresses[32];
    uint32_t warp = ptx_epoch_warp(item.epoch);
    for (uint32_t w = 0; w < item.bytes / WORD; w++) {
        uint32_t *of = &c->of_word[item.address / WORD + w];
        if (*of == index + 1) *of = 0;
    }
    free_item(c, index);
    c->under_way--;
    if (item.epoch == epoch_of(r, warp)) return; /* as it was told */
    for (int i = 0; i < 32; i++) addresses[i] = item.address;
    const ptx_watched write = {.block = block,
                               .warp = warp,
                               .mask = (uint32_t)1 << item.lane,
                               .space = PTX_SHARED,
                               .address = addresses,
                               .bytes = item.bytes,
                               .access = MR_PTX_WRITES,
                               .order = PTX_WEAK,
                               .instruction = item.instruction};
    ptx_judge(watch, r, &write);
}

void ptx_watch_wait(mr_ptx_watch *watch, uint64_t block, uint32_t warp, uint32_t mask,
                    uint64_t most) {
    ptx_running *r = ptx_watch_running(watch, block);
    ptx_copies *c = r && warp < r->warps ? r->copies : NULL;
    for (uint32_t i = 0; c && c->under_way && i < c->items.count; i++) {
        const ptx_copy_item *item = &c->items.items[i];
        if (!is_of(item, warp, mask)) continue;
        uint64_t committed = c->committed[32 * warp + item->lane];
        bool is_over =
            most == PTX_WAIT_ALL || (item->group != UNCOMMITTED && item->group + most <= committed);
        if (is_over) end_copy(watch, r, block, i);
    }
}

/* ---- other accesses */

static void check(mr_ptx_watch *watch, ptx_running *r, const ptx_watched *a) {
    const ptx_copies *c = r->copies;
    ptx_turn turn = {.watch = watch,
                     .running = r,
                     .access = a,
                     .warp = a->warp,
                     .is_shared = true,
                     .at = ptx_instruction_number(watch, r, a->instruction)};
    for (uint32_t rest = a->mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint64_t word = a->address[lane] / WORD, last = (a->address[lane] + a->bytes - 1) / WORD;
        for (; word <= last && word < c->word_count; word++) {
            uint32_t index = c->of_word[word];
            if (!index) continue;
            const ptx_copy_item *item = &c->items.items[index - 1];
            ptx_report(&turn, lane, word * WORD, WORD,
                       &(ptx_earlier){.epoch = item->epoch,
                                      .lanes = (uint32_t)1 << item->lane,
                                      .at = item->at,
                                      .access = MR_PTX_WRITES,
                                      .copies = true});
        }
    }
}

void ptx_watch_access(mr_ptx_watch *watch, const ptx_watched *access) {
    if (watch->marked.count && access->space == PTX_GLOBAL) ptx_mark(watch, access);
    ptx_running *r = ptx_watch_running(watch, access->block);
    if (!r || !access->bytes || !access->mask || access->warp >= r->warps) return;
    if (access->space == PTX_SHARED && r->copies && r->copies->under_way) check(watch, r, access);
    ptx_judge(watch, r, access);
}
