/* Schedules by priorities, for what a search has not tried: probabilistic concurrency testing (Burckhardt and others,
 * ASPLOS 2010). The host and each stream are a thread with a priority of its own, drawn at random. The thread of the
 * highest priority that can go on does. At one step, drawn at random too, the thread that goes falls behind all others.
 *
 * A mistake of depth 2 needs two given orders. With n threads and k steps, each run has them with a chance of at least
 * 1 / (n k).
 *
 * The threads are followed here on the order of the rules alone. That tells which of two commands goes first. The
 * search decides by that, carries the schedule out and reads its value as always. If the function submits other
 * commands, the new program is followed from its start with the same draws.
 *
 * Easiest to break: a run is a function of the seed and its number, whatever was carried out before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explore/search.h"

#define NONE       UINT32_MAX
#define MOST_NODES 4096 /* the order by the rules takes the square of them in memory */

typedef struct {
    const branch *b;
    uint32_t threads;    /* the lanes, then the host */
    uint32_t *priority;  /* by thread; the highest goes */
    uint32_t *next;      /* by lane: the node that is next, or NONE */
    uint32_t *following; /* by node: the next one of its lane, or NONE */
    uint64_t *done;
    uint32_t item; /* the host is at it */
    uint32_t steps, change;
    uint64_t random;
} follow;

static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- the order by the rules alone */

static mr_status find_ruled(branch *b) {
    order *o = &b->order;
    size_t words = o->nodes.count * o->words_in_set;
    b->ruled = malloc((words + 1) * sizeof *b->ruled);
    b->moments = malloc((o->nodes.count + 1) * sizeof *b->moments);
    if (!b->ruled || !b->moments) return mr_no_memory("to explore schedules");
    order_forget(o);
    for (uint32_t i = 0; i < b->count; i++) rules_place(b, i, false);
    for (uint32_t n = 0; n < o->nodes.count; n++)
        memcpy(b->ruled + (size_t)n * o->words_in_set, o->words + order_before(o, n),
               o->words_in_set * sizeof *b->ruled);
    order_forget(o);
    return o->failed ? mr_no_memory("to explore schedules") : MR_OK;
}

/* ---- following the threads */

static bool is_ready(const follow *f, uint32_t node) {
    const order *o = &f->b->order;
    const uint64_t *before = f->b->ruled + (size_t)node * o->words_in_set;
    for (uint32_t i = 0; i < o->words_in_set; i++)
        if (before[i] & ~f->done[i]) return false;
    return true;
}

static void set_done(follow *f, uint32_t node) {
    f->done[node / 64] |= (uint64_t)1 << node % 64;
    f->b->moments[node] = f->steps;
}

/* The host can go on with its item if the host's own nodes of the item can run. */
static bool host_can(const follow *f) {
    const order *o = &f->b->order;
    if (f->item == f->b->count) return false;
    for (uint32_t n = o->first_node[f->item]; n < o->first_node[f->item + 1]; n++)
        if (!o->nodes.items[n].parts && !is_ready(f, n)) return false;
    return true;
}

static bool lane_can(const follow *f, uint32_t lane) {
    uint32_t n = f->next[lane];
    return n != NONE && f->b->order.nodes.items[n].item < f->item && is_ready(f, n);
}

static void host_goes(follow *f) {
    const order *o = &f->b->order;
    for (uint32_t n = o->first_node[f->item]; n < o->first_node[f->item + 1]; n++)
        if (!o->nodes.items[n].parts) set_done(f, n);
    f->item++;
}

/* Records, waits and frees that are next are over at once. */
static void pass_markers(follow *f) {
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t lane = 0; lane + 1 < f->threads; lane++)
            while (lane_can(f, lane) && f->b->order.nodes.items[f->next[lane]].marker) {
                set_done(f, f->next[lane]);
                f->next[lane] = f->following[f->next[lane]];
                moved = true;
            }
    }
}

static uint32_t who_goes(const follow *f) {
    uint32_t best = NONE;
    for (uint32_t t = 0; t < f->threads; t++)
        if ((t + 1 < f->threads ? lane_can(f, t) : host_can(f)) &&
            (best == NONE || f->priority[t] > f->priority[best]))
            best = t;
    return best;
}

/* Items without nodes are not steps. */
static void pass_items(follow *f) {
    const order *o = &f->b->order;
    while (f->item < f->b->count && o->first_node[f->item] == o->first_node[f->item + 1]) f->item++;
}

static void go(follow *f) {
    for (uint32_t t;; f->steps++) {
        pass_items(f);
        pass_markers(f);
        if ((t = who_goes(f)) == NONE) return;
        if (f->steps == f->change) f->priority[t] = 0; /* the lowest: no other thread has it */
        if (f->steps == f->change && (t = who_goes(f)) == NONE) return;
        if (t + 1 == f->threads) {
            host_goes(f);
            continue;
        }
        set_done(f, f->next[t]);
        f->next[t] = f->following[f->next[t]];
    }
}

static void draw_priorities(follow *f) {
    for (uint32_t t = 0; t < f->threads; t++) f->priority[t] = t + 1;
    for (uint32_t t = f->threads; t-- > 1;) {
        uint32_t other = (uint32_t)(draw(&f->random) % (t + 1)), kept = f->priority[t];
        f->priority[t] = f->priority[other];
        f->priority[other] = kept;
    }
}

static void thread_lanes(follow *f) {
    const order *o = &f->b->order;
    for (uint32_t lane = 0; lane + 1 < f->threads; lane++) f->next[lane] = NONE;
    for (uint32_t n = (uint32_t)o->nodes.count; n-- > 0;) {
        const order_node *node = &o->nodes.items[n];
        if (!node->parts) continue;
        f->following[n] = f->next[node->lane];
        f->next[node->lane] = n;
    }
}

/* Lanes without a node are not threads. */
static uint32_t count_threads(const follow *f) {
    uint32_t count = 1;
    for (uint32_t lane = 0; lane + 1 < f->threads; lane++) count += f->next[lane] != NONE;
    return count;
}

static void note_size(explorer *e, uint32_t threads, uint32_t steps) {
    mr_explore_result *r = e->result;
    if (threads > r->threads) r->threads = threads;
    if (steps > r->steps) r->steps = steps;
}

static bool open_follow(follow *f, const branch *b) {
    *f = (follow){.b = b, .threads = b->order.lanes + 1};
    f->priority = calloc(f->threads, sizeof *f->priority);
    f->next = calloc(f->threads, sizeof *f->next);
    f->following = calloc(b->order.nodes.count + 1, sizeof *f->following);
    f->done = calloc(b->order.words_in_set + 1, sizeof *f->done);
    return f->priority && f->next && f->following && f->done;
}

static void close_follow(follow *f) {
    free(f->priority);
    free(f->next);
    free(f->following);
    free(f->done);
}

mr_status priority_draw(explorer *e, branch *b) {
    follow f;
    if (!priority_can(b)) {
        e->result->by_priority_inexact = true;
        return MR_OK;
    }
    if (!b->ruled) MR_TRY(find_ruled(b));
    bool fine = open_follow(&f, b);
    if (fine) {
        f.random = e->options.seed * 0x2545f4914f6cdd1du + e->priority_run;
        memset(b->moments, 0xff, b->order.nodes.count * sizeof *b->moments);
        thread_lanes(&f);
        draw_priorities(&f);
        uint32_t threads = count_threads(&f);
        f.change = e->result->steps ? (uint32_t)(draw(&f.random) % e->result->steps) : NONE;
        go(&f);
        note_size(e, threads, f.steps);
    }
    close_follow(&f);
    return fine ? MR_OK : mr_no_memory("to explore schedules");
}

bool priority_can(const branch *b) {
    return b->order.nodes.count <= MOST_NODES;
}

double priority_chance(const mr_explore_result *r) {
    double each = r->threads && r->steps ? 1.0 / ((double)r->threads * r->steps) : 0;
    return each > 0 ? -expm1((double)r->by_priority * log1p(-each)) : 0;
}
