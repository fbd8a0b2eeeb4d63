/* A search that is shared by processes, so that it uses several cores. Private to this folder.
 *
 * The choices of a search are a tree. All schedules with the same first `depth` choices are a subtree. Copies of this
 * process, the workers, go through the same tree in the same order. Each takes the next subtree that no worker has
 * begun, and passes over the others. So no state is sent to a worker: each process itself carries out the choices that
 * lead to a subtree. A worker searches its subtree as ever, and reports what it has counted.
 *
 * This process goes through the tree, too. At each subtree it takes the report, or waits for it. So schedules are
 * counted in the order of the tree, as in one process: the same outcomes in the same order, the same counts, the same
 * simplest schedules. This process itself counts a schedule that ends above all subtrees.
 *
 * A worker never calls the function. Where the host reads a value that is new to it, it gives the subtree back, and
 * this process searches it. If a worker ends early, this process searches the rest alone. `max` and the other bounds
 * end the search at the same point as in one process: if a bound may be reached within a subtree, this process searches
 * it.
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
    uint64_t number; /* of the next or current subtree; from 0 on */
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
/* Chooses the depth, once the size of subtrees is known. `seconds`: of the search so far. */
mr_status share_choose(search *s, double seconds);
/* The choice that begins a subtree has just been made. */
bool share_is_at_subtree(const search *s);
/* False: there is no worker, and the search is not shared. */
bool share_begin(explorer *e, unsigned workers);
mr_status share_ask(search *s, share_answer *out_answer);
/* Called after a step back: a subtree may be finished. *out_ends: sharing is of no more use. */
void share_step_back(search *s, bool *out_ends);
/* Ends the workers. If the search has been stopped, their reports so far count. */
mr_status share_end(explorer *e);

/* ---- of a worker */

static inline bool share_is_worker(const explorer *e) {
    return e->share && e->share->is_worker;
}
/* Whether this process, a worker, only passes through a part of the tree that another process counts. */
static inline bool share_skips(const explorer *e) {
    return share_is_worker(e) && !e->share->inside;
}
static inline bool share_gives_back(const explorer *e) {
    return e->share && e->share->gives_back;
}
/* All choices of the subtree are taken. */
void share_abandon(search *s);

#endif
