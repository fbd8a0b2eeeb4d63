/* The smallest set of waits that is sufficient, and which waits matter only together.
 *
 * All waits that are needed alone are in every sufficient set. Among the others, a *cut* is a minimal set that cannot
 * go as a whole. A set of waits is sufficient if and only if it has one of each cut. So the search keeps the cuts that
 * it has met, takes a smallest set that has one of each, and asks the checker. If that set is sufficient, no smaller
 * one is. If not, the waits left out contain another cut. For few waits all combinations are tried instead, which also
 * shows for certain which of them matter. */
#include <stdlib.h>
#include <string.h>

#include "waits/parts.h"

#ifndef MOST_TABLED
#define MOST_TABLED 12 /* waits whose combinations are all looked at */
#endif
#define MOST_NODES 200000 /* of the search for a smallest hitting set */
#define TRIES      4      /* number of orders in which the search looks for a cut with a wait */

typedef struct {
    wait_judge *judge;
    wait_search *result;
    uint64_t until; /* limit for judge->told */
    bool *kept;     /* by wait: kept in this question */
    uint32_t *open; /* the waits that are not needed alone */
    size_t open_count, waits;
} searcher;

static bool is_spent(const searcher *s) {
    return s->judge->status || s->judge->told > s->until;
}

/* ---- questions: the waits that are needed alone always stay */

static void keep_needed(searcher *s) {
    memcpy(s->kept, s->result->needed, s->waits * sizeof *s->kept);
}

static bool breaks(searcher *s) {
    mr_waits_judge_keep(s->judge, s->kept);
    return mr_waits_judge_breaks(s->judge);
}

/* Whether the program breaks without these waits. */
static bool cannot_go(searcher *s, const uint32_t *waits, size_t count) {
    if (count == 1) return false; /* none of the open ones is needed alone */
    memset(s->kept, true, s->waits * sizeof *s->kept);
    for (size_t i = 0; i < count; i++) s->kept[waits[i]] = false;
    return breaks(s);
}

/* Whether these waits and the needed ones are sufficient. */
static bool suffice(searcher *s, const uint32_t *waits, size_t count) {
    keep_needed(s);
    for (size_t i = 0; i < count; i++) s->kept[waits[i]] = true;
    return !breaks(s) && !s->judge->status;
}

/* ---- a minimal subset that has a property which larger sets have, too (QuickXplain) */

typedef bool property(searcher *s, const uint32_t *waits, size_t count);

typedef struct {
    searcher *s;
    property *holds;
    uint32_t *set; /* the elements assumed to be in the subset, then those being divided */
} divider;

/* The first `base` elements of `set` are assumed to be in. Moves the needed ones among the next `count` to the front of
 * these, and returns how many they are. Earlier ones are preferred. */
static size_t divide(divider *d, size_t base, bool grown, size_t count) {
    uint32_t *rest = d->set + base;
    if (grown && d->holds(d->s, d->set, base)) return 0;
    if (count <= 1 || is_spent(d->s)) return count;
    size_t half = count / 2;
    /* With the first half: which of the second? */
    size_t second = divide(d, base + half, true, count - half);
    /* With those: which of the first? They come to the front for that. */
    for (size_t i = 0; i < second; i++) {
        uint32_t moved = rest[half + i];
        memmove(rest + i + 1, rest + i, half * sizeof *rest);
        rest[i] = moved;
    }
    return second + divide(d, base + second, second > 0, half);
}

/* ---- cuts */

static bool add_cut(searcher *s, const uint32_t *waits, size_t count) {
    wait_cut cut = {.waits = malloc((count + 1) * sizeof *cut.waits), .count = count};
    if (cut.waits) memcpy(cut.waits, waits, count * sizeof *waits);
    if (cut.waits && mr_vec_push(&s->result->cuts, cut)) {
        for (size_t i = 0; i < count; i++) s->result->matters[waits[i]] = true;
        return true;
    }
    free(cut.waits);
    if (!s->judge->status) s->judge->status = mr_no_memory("to look for a sufficient set of waits");
    return false;
}

/* A wait that orders two commands is submitted between them. */
static bool is_between(const wait_rounds *rounds, uint32_t wait, const new_hazard *h) {
    for (size_t i = rounds->first_round[wait]; i != NO_ITEM; i = rounds->next_round[i])
        if (rounds->rounds.items[i].at > h->first && rounds->rounds.items[i].at < h->second)
            return true;
    return false;
}

/* Moves the waits that may concern the last hazard to the front, and returns how many these are. */
static size_t narrow(searcher *s, uint32_t *waits, size_t count) {
    if (!s->judge->found.count) return count;
    new_hazard h = s->judge->found.items[0];
    size_t front = 0;
    if (h.first == NO_ITEM || h.second == NO_ITEM) return count;
    for (size_t i = 0; i < count; i++) {
        if (!is_between(s->judge->rounds, waits[i], &h)) continue;
        uint32_t swap = waits[front];
        waits[front++] = waits[i];
        waits[i] = swap;
    }
    return front && cannot_go(s, waits, front) ? front : count;
}

/* Finds a cut among these waits, which cannot all be dropped: the last question showed that. Reorders the array. */
static bool find_cut(searcher *s, uint32_t *waits, size_t count, size_t *out_size) {
    divider d = {s, cannot_go, waits};
    size_t size = divide(&d, 0, false, narrow(s, waits, count));
    *out_size = size;
    return !is_spent(s) && add_cut(s, waits, size);
}

/* Finds cuts among these waits that have no wait in common. */
static void find_cuts(searcher *s, uint32_t *waits, size_t count) {
    size_t size;
    while (count && !is_spent(s) && cannot_go(s, waits, count)) {
        if (!find_cut(s, waits, count, &size)) return;
        waits += size;
        count -= size;
    }
}

/* ---- a smallest set that has one of each cut: branch and bound */

typedef struct {
    const searcher *s;
    bool *in, *best;
    size_t *out; /* by wait: ruled out at this depth, from 1; 0: not */
    size_t best_count, nodes;
} hitter;

static bool is_hit(const hitter *h, const wait_cut *cut) {
    for (size_t i = 0; i < cut->count; i++)
        if (h->in[cut->waits[i]]) return true;
    return false;
}

static size_t choices(const hitter *h, const wait_cut *cut) {
    size_t count = 0;
    for (size_t i = 0; i < cut->count; i++) count += !h->out[cut->waits[i]];
    return count;
}

/* A lower bound: cuts without a common wait each need one of their own. `used`: scratch, by wait. */
static size_t lower_bound(const hitter *h, bool *used) {
    size_t bound = 0;
    memset(used, 0, h->s->waits * sizeof *used);
    for (size_t c = 0; c < h->s->result->cuts.count; c++) {
        const wait_cut *cut = &h->s->result->cuts.items[c];
        bool apart = !is_hit(h, cut);
        for (size_t i = 0; i < cut->count && apart; i++) apart = !used[cut->waits[i]];
        for (size_t i = 0; i < cut->count && apart; i++) used[cut->waits[i]] = true;
        bound += apart;
    }
    return bound;
}

static const wait_cut *narrowest(const hitter *h) {
    const wait_cut *best = NULL;
    for (size_t c = 0; c < h->s->result->cuts.count; c++) {
        const wait_cut *cut = &h->s->result->cuts.items[c];
        if (is_hit(h, cut)) continue;
        if (!best || choices(h, cut) < choices(h, best)) best = cut;
    }
    return best;
}

static void hit(hitter *h, size_t count, bool *scratch) {
    if (++h->nodes > MOST_NODES || count + lower_bound(h, scratch) >= h->best_count) return;
    const wait_cut *cut = narrowest(h);
    if (!cut) {
        h->best_count = count;
        memcpy(h->best, h->in, h->s->waits * sizeof *h->in);
        return;
    }
    for (size_t i = 0; i < cut->count; i++) {
        uint32_t wait = cut->waits[i];
        if (h->out[wait]) continue;
        h->in[wait] = true;
        hit(h, count + 1, scratch);
        h->in[wait] = false;
        h->out[wait] = count + 1; /* from here on the sets without it */
    }
    for (size_t i = 0; i < cut->count; i++)
        if (h->out[cut->waits[i]] == count + 1) h->out[cut->waits[i]] = 0;
}

/* Puts the set into s->kept, with the needed ones. False: too many possibilities, or out of memory. */
static bool smallest_hitting_set(searcher *s) {
    bool *flags = calloc(3 * s->waits + 1, sizeof *flags);
    size_t *out = calloc(s->waits + 1, sizeof *out);
    hitter h = {.s = s, .out = out, .best_count = SIZE_MAX};
    if (flags && out) {
        h.in = flags;
        h.best = flags + s->waits;
        hit(&h, 0, flags + 2 * s->waits);
        keep_needed(s);
        for (size_t i = 0; i < s->waits; i++) s->kept[i] |= h.best[i];
    } else if (!s->judge->status) {
        s->judge->status = mr_no_memory("to look for a sufficient set of waits");
    }
    free(flags);
    free(out);
    return !s->judge->status && h.nodes <= MOST_NODES;
}

/* True: s->kept is sufficient, and no smaller set is. */
static bool find_smallest(searcher *s) {
    uint32_t *left_out = malloc((s->open_count + 1) * sizeof *left_out);
    bool done = false;
    while (left_out && !done && !is_spent(s) && smallest_hitting_set(s)) {
        size_t count = 0;
        for (size_t i = 0; i < s->open_count; i++)
            if (!s->kept[s->open[i]]) left_out[count++] = s->open[i];
        done = !breaks(s) && !s->judge->status;
        if (done) memcpy(s->result->kept, s->kept, s->waits * sizeof *s->kept);
        else find_cuts(s, left_out, count);
    }
    if (!left_out && !s->judge->status)
        s->judge->status = mr_no_memory("to look for a sufficient set of waits");
    free(left_out);
    return done;
}

/* If that takes too long: a minimal set, from which no wait can be removed. */
static void find_minimal(searcher *s) {
    uint32_t *set = malloc((s->open_count + 1) * sizeof *set);
    if (!set) {
        if (!s->judge->status)
            s->judge->status = mr_no_memory("to look for a sufficient set of waits");
        return;
    }
    memcpy(set, s->open, s->open_count * sizeof *set);
    s->until = UINT64_MAX;
    divider d = {s, suffice, set};
    size_t count = divide(&d, 0, true, s->open_count);
    keep_needed(s);
    for (size_t i = 0; i < count; i++) {
        s->kept[set[i]] = true;
        s->result->matters[set[i]] = true;
    }
    memcpy(s->result->kept, s->kept, s->waits * sizeof *s->kept);
    free(set);
}

/* ---- all combinations */

typedef struct {
    searcher *s;
    bool *is_enough; /* by set of open waits, as bits */
    size_t sets;
} table;

/* A set that contains a sufficient set is sufficient. Sets are asked for in ascending order, so
 * the subsets of one have been before. */
static bool is_enough(table *t, size_t set) {
    searcher *s = t->s;
    for (size_t i = 0; i < s->open_count; i++)
        if ((set >> i & 1) && t->is_enough[set & ~((size_t)1 << i)]) return true;
    keep_needed(s);
    for (size_t i = 0; i < s->open_count; i++)
        if (set >> i & 1) s->kept[s->open[i]] = true;
    return !breaks(s) && !s->judge->status;
}

static void take_best(const table *t) {
    searcher *s = t->s;
    size_t best = t->sets - 1;
    for (size_t set = 0; set < t->sets; set++)
        if (t->is_enough[set] && __builtin_popcountll(set) < __builtin_popcountll(best)) best = set;
    keep_needed(s);
    for (size_t i = 0; i < s->open_count; i++)
        if (best >> i & 1) s->kept[s->open[i]] = true;
    memcpy(s->result->kept, s->kept, s->waits * sizeof *s->kept);
}

/* A cut is what a greatest insufficient set leaves out. */
static void take_cuts(const table *t) {
    searcher *s = t->s;
    uint32_t cut[MOST_TABLED];
    for (size_t set = 0; set < t->sets; set++) {
        bool greatest = !t->is_enough[set];
        size_t count = 0;
        for (size_t i = 0; i < s->open_count && greatest; i++) {
            if (set >> i & 1) continue;
            greatest = t->is_enough[set | (size_t)1 << i];
            cut[count++] = s->open[i];
        }
        if (greatest && !add_cut(s, cut, count)) return;
    }
}

static void search_table(searcher *s) {
    table t = {.s = s, .sets = (size_t)1 << s->open_count};
    t.is_enough = calloc(t.sets, sizeof *t.is_enough);
    if (!t.is_enough) {
        if (!s->judge->status)
            s->judge->status = mr_no_memory("to look for a sufficient set of waits");
        return;
    }
    for (size_t set = 0; set < t.sets && !s->judge->status; set++)
        t.is_enough[set] = is_enough(&t, set);
    if (!s->judge->status) {
        take_best(&t);
        take_cuts(&t);
    }
    s->result->exact = true;
    free(t.is_enough);
}

/* ---- which waits matter, where there are too many for that */

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void shuffle(uint32_t *waits, size_t count, uint32_t *state) {
    for (size_t i = count; i > 1; i--) {
        size_t k = next_random(state) % i;
        uint32_t swap = waits[i - 1];
        waits[i - 1] = waits[k];
        waits[k] = swap;
    }
}

/* Looks for a minimal sufficient set that has the wait: the first in the order is preferred. */
static void look_for(searcher *s, uint32_t wait, uint32_t *set) {
    uint32_t state = wait + 1;
    for (int tried = 0; tried < TRIES && !s->result->matters[wait] && !is_spent(s); tried++) {
        size_t count = 1;
        set[0] = wait;
        for (size_t i = 0; i < s->open_count; i++)
            if (s->open[i] != wait) set[count++] = s->open[i];
        if (tried == 1)
            for (size_t i = 1, k = count - 1; i < k; i++, k--) {
                uint32_t swap = set[i];
                set[i] = set[k];
                set[k] = swap;
            }
        else if (tried > 1) shuffle(set + 1, count - 1, &state);
        divider d = {s, suffice, set};
        size_t size = divide(&d, 0, true, count);
        for (size_t i = 0; i < size && !is_spent(s); i++) s->result->matters[set[i]] = true;
    }
}

static void see_which_matter(searcher *s) {
    uint32_t *set = malloc((s->open_count + 1) * sizeof *set);
    bool *adds = calloc(s->waits + 1, sizeof *adds);
    if (!set || !adds) {
        if (!s->judge->status)
            s->judge->status = mr_no_memory("to look for a sufficient set of waits");
    } else {
        keep_needed(s);
        /* a wait that adds nothing to the needed ones adds nothing to a larger set */
        s->judge->adds = adds;
        mr_waits_judge_keep(s->judge, s->kept);
        if (!s->judge->status)
            s->judge->status =
                mr_waits_edit_drop(s->judge->rounds, s->judge->dropped, &s->judge->edit);
        mr_waits_judge_edit(s->judge, false);
        s->judge->adds = NULL;
        for (size_t i = 0; i < s->open_count && !is_spent(s); i++)
            if (adds[s->open[i]] || !mr_waits_only_orders(s->judge->rounds, s->open[i]))
                look_for(s, s->open[i], set);
    }
    free(set);
    free(adds);
}

/* ---- all of it */

static void search(searcher *s) {
    keep_needed(s);
    if (!breaks(s)) {
        memcpy(s->result->kept, s->kept, s->waits * sizeof *s->kept);
        s->result->exact = true;
        return; /* so the others do not matter in any combination */
    }
    uint64_t one = s->judge->rounds->items;
    if (s->open_count <= MOST_TABLED && (one << s->open_count) <= s->until - s->judge->told) {
        search_table(s);
        return;
    }
    uint64_t until = s->until;
    s->until = s->judge->told + (until - s->judge->told) / 2;
    s->result->exact = find_smallest(s);
    s->until = until;
    if (!s->result->exact && !s->judge->status) find_minimal(s);
    s->until = until;
    if (!is_spent(s)) see_which_matter(s);
}

/* Waits that delay less come first, because earlier ones are preferred if several would do. A stream's wait comes
 * before the host's, and a wait for an event before one for a stream. */
static void add_open(searcher *s, uint32_t wait) {
    mr_wait_kind kind = mr_waits_kind(s->judge->rounds, wait);
    size_t at = s->open_count++;
    for (; at && mr_waits_kind(s->judge->rounds, s->open[at - 1]) > kind; at--)
        s->open[at] = s->open[at - 1];
    s->open[at] = wait;
}

mr_status mr_waits_search(wait_judge *judge, uint64_t effort, wait_search *r) {
    searcher s = {.judge = judge, .result = r, .waits = judge->rounds->waits};
    r->kept = calloc(s.waits + 1, sizeof *r->kept);
    r->matters = calloc(s.waits + 1, sizeof *r->matters);
    s.kept = calloc(s.waits + 1, sizeof *s.kept);
    s.open = malloc((s.waits + 1) * sizeof *s.open);
    s.until = judge->told + effort < judge->told ? UINT64_MAX : judge->told + effort;
    if (!r->kept || !r->matters || !s.kept || !s.open) {
        if (!judge->status) judge->status = mr_no_memory("to look for a sufficient set of waits");
    } else {
        for (size_t i = 0; i < s.waits; i++)
            if (!r->needed[i]) add_open(&s, (uint32_t)i);
        search(&s);
    }
    free(s.kept);
    free(s.open);
    mr_status status = judge->status;
    judge->status = MR_OK;
    return status;
}

wait_cut *mr_waits_cut_of(const wait_search *search, size_t wait) {
    wait_cut *best = NULL;
    for (size_t c = 0; c < search->cuts.count; c++) {
        wait_cut *cut = &search->cuts.items[c];
        for (size_t i = 0; i < cut->count; i++)
            if (cut->waits[i] == wait && (!best || cut->count < best->count)) best = cut;
    }
    return best;
}

void mr_waits_search_free(wait_search *search) {
    for (size_t i = 0; i < search->cuts.count; i++) free(search->cuts.items[i].waits);
    mr_vec_free(&search->cuts);
    free(search->needed);
    free(search->kept);
    free(search->matters);
    *search = (wait_search){0};
}
