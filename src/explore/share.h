/* A search that is shared by processes, so that it uses several cores. Private to this folder.
 *
 * The choices of a search are a tree. All schedules with the same first `depth` choices are a subtree. Copies of this
 * process, the workers, go through the same tree in the same order. Each takes the next subtree that nobody has begun,
 * and passes over the others. So nothing has to be handed to a worker: each process carries out what leads to a
 * subtree. A worker searches its subtree as ever, and reports what it has counted.
 *
 * This process goes through the tree, too. At each subtree it takes the report, or waits for it. So all is counted in
 * the order of the tree, as in one process: the same outcomes in the same order, the same counts, the same simplest
 * schedules. This process itself counts a schedule that ends above all subtrees.
 *
 * A worker never calls the function. Where the host reads a value that is new to it, it gives the subtree back, and
 * this process searches it. If a worker ends early, this process searches the rest alone. `max` and the other bounds
 * end the search where they end it in one process: this process searches a subtree within which one may be reached.
 *
 * It begins after a tenth of a second, and only in the search of all races together. By then it is known how many
 * schedules a subtree has: `depth` is the largest with which they take about ten milliseconds.
 *
 * Easiest to break: the tree above the subtrees must be the same in all processes. Each report has a hash of the
 * choices that lead to its subtree, and this process compares it. */
#ifndef MR_EXPLORE_SHARE_H
#define MR_EXPLORE_SHARE_H

#include "explore/search.h"
#include "explore/workers.h"

typedef struct sharing sharing;
struct sharing {
    const search *search;
    workers *workers; /* NULL: they have not begun */
    bool is_worker;
    bool inside;     /* a subtree is searched in this process */
    bool gives_back; /* a worker cannot search it */
    uint32_t depth;
    uint64_t number; /* of the subtree that is next, or is searched; from 0 on */
    uint64_t own;    /* of a worker: the one that it takes */
    uint64_t path;   /* a hash of the choices that lead to the subtree */
    uint64_t runs;   /* of the function, when they began */
};

typedef enum {
    SHARE_SEARCH, /* this process searches the subtree */
    SHARE_PASS,   /* it is in the result, or a worker has it */
    SHARE_WAIT    /* ask again */
} share_answer;

/* Whether the search may be shared at all. */
bool share_may(const search *s);
unsigned share_most_workers(const explorer *e);
/* Decides on the depth, if it is known how large subtrees are. `seconds`: of the search so far. */
mr_status share_choose(search *s, double seconds);
/* The choice that begins a subtree has just been made. */
bool share_is_at_subtree(const search *s);
/* False: there is no worker, and the search is not shared. */
bool share_begin(explorer *e, unsigned workers);
mr_status share_ask(search *s, share_answer *out_answer);
/* After a step back: a subtree may be over. *out_ends: it is of no use to go on sharing. */
void share_step_back(search *s, bool *out_ends);
/* The workers are ended. If the search has been stopped, what they have reported counts. */
mr_status share_end(explorer *e);

/* ---- of a worker */

static inline bool share_is_worker(const explorer *e) {
    return e->share && e->share->is_worker;
}
/* A worker goes through what others count. */
static inline bool share_skips(const explorer *e) {
    return share_is_worker(e) && !e->share->inside;
}
static inline bool share_gives_back(const explorer *e) {
    return e->share && e->share->gives_back;
}
/* All choices of the subtree are taken. */
void share_abandon(search *s);

#endif
