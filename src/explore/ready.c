/* Operations that can be carried out next: see ready.h. */
#include "explore/ready.h"

#include <stdlib.h>

mr_status ready_open(ready_nodes *r, const order *o) {
    size_t nodes = o->nodes.count + 1;
    *r = (ready_nodes){.left = calloc(o->words_in_set, sizeof *r->left),
                       .ready = calloc(o->words_in_set, sizeof *r->ready),
                       .first = calloc(nodes, sizeof *r->first),
                       .next = calloc(nodes, sizeof *r->next)};
    if (r->left && r->ready && r->first && r->next) return MR_OK;
    ready_close(r);
    return mr_no_memory("to explore schedules");
}

void ready_close(ready_nodes *r) {
    free(r->left);
    free(r->ready);
    free(r->first);
    free(r->next);
    *r = (ready_nodes){0};
}

/* It is kept with the newest of those that it waits for, which is likely to be taken last. Nothing is left in the words
 * behind `word`. */
static void keep_or_make_ready(ready_nodes *r, const order *o, uint32_t n, uint32_t word) {
    const uint64_t *before = o->words + order_before(o, n);
    for (uint32_t i = word + 1; i-- > 0;) {
        uint64_t rest = before[i] & r->left[i];
        if (!rest) continue;
        uint32_t other = i * 64 + 63 - (uint32_t)__builtin_clzll(rest);
        r->next[n] = r->first[other];
        r->first[other] = n;
        return;
    }
    r->ready[n / 64] |= (uint64_t)1 << n % 64;
}

void ready_begin(ready_nodes *r, const order *o, uint32_t set) {
    uint32_t done = order_done(o);
    for (uint32_t i = 0; i < o->words_in_set; i++) {
        r->left[i] = r->ready[i] = 0;
        for (uint64_t rest = o->words[set + i] & ~o->words[done + i]; rest; rest &= rest - 1) {
            uint32_t n = i * 64 + (uint32_t)__builtin_ctzll(rest);
            if (!order_is_operation(&o->nodes.items[n])) continue;
            r->left[i] |= (uint64_t)1 << n % 64;
            r->first[n] = READY_NONE;
        }
    }
    for (uint32_t i = 0; i < o->words_in_set; i++)
        for (uint64_t rest = r->left[i]; rest; rest &= rest - 1)
            keep_or_make_ready(r, o, i * 64 + (uint32_t)__builtin_ctzll(rest), o->words_in_set - 1);
}

static uint32_t choose(const ready_nodes *r, const order *o, uint32_t lane) {
    uint32_t first = READY_NONE;
    for (uint32_t i = 0; i < o->words_in_set; i++)
        for (uint64_t rest = r->ready[i]; rest; rest &= rest - 1) {
            uint32_t n = i * 64 + (uint32_t)__builtin_ctzll(rest);
            if (o->nodes.items[n].lane == lane) return n;
            if (first == READY_NONE) first = n;
        }
    return first;
}

uint32_t ready_take(ready_nodes *r, const order *o, uint32_t lane) {
    uint32_t n = choose(r, o, lane);
    if (n == READY_NONE) return n;
    uint64_t bit = (uint64_t)1 << n % 64;
    r->left[n / 64] &= ~bit;
    r->ready[n / 64] &= ~bit;
    for (uint32_t kept = r->first[n], next; kept != READY_NONE; kept = next) {
        next = r->next[kept];
        keep_or_make_ready(r, o, kept, n / 64);
    }
    return n;
}
