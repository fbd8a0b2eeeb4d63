/* The processes of a shared search (share.h): their beginning, what they report, and their end. Private to this folder.
 *
 * A worker is a copy of this process. It never returns to the function that is explored, and ends by _exit. It reports
 * each subtree that it has searched through a pipe of its own, in the order of the tree. A board in memory that all of
 * them share says which subtree is next, and how long each of them has worked.
 *
 * Easiest to break: a report has only the outcomes of its subtree. It has the texts of a schedule only if that is
 * simpler than all before it in this worker, and in the first process when the worker began. So the reports of one
 * worker are taken in their order, and none is left out but the last ones. */
#ifndef MR_EXPLORE_WORKERS_H
#define MR_EXPLORE_WORKERS_H

#include "explore/state.h"

#define MOST_WORKERS 16

typedef struct workers workers;

typedef enum {
    WORKERS_WAIT,     /* the subtree is not reported yet; a little time has passed */
    WORKERS_REPORTED, /* it is in the result now */
    WORKERS_GAVE_BACK /* this process has to search it: a worker could not, or one has failed */
} workers_answer;

/* Starts copies of this process as workers. NULL: none could be made. *out_is_worker: this process is one of them. */
workers *workers_begin(explorer *e, unsigned count, bool *out_is_worker);
/* Ends the workers and waits for their end. Accepts NULL. */
void workers_end(workers *w);
/* Processor seconds of the busiest worker minus those of this process's thread, since the workers began. */
double workers_ahead(const workers *w);

/* Whether subtree `number`, which has this path, has been reported. */
mr_status workers_ask(workers *w, explorer *e, uint64_t number, uint64_t path,
                      workers_answer *out_answer);
/* Called when the search is stopped: also counts the reports of subtrees from this one on. */
mr_status workers_take_rest(workers *w, explorer *e, uint64_t number);
unsigned workers_given_back(const workers *w); /* subtrees, by now */
bool workers_have_failed(const workers *w);    /* one of them has ended before its time */

/* ---- of a worker */

uint64_t worker_next(
    workers *w); /* the subtree that it searches next; waits while it is far ahead of the others */
void worker_begin(explorer *e); /* counts from here on are those of a subtree */
/* It reports the subtree, or gives it back. */
void worker_report(workers *w, explorer *e, uint64_t number, uint64_t path, bool gives_back);
void worker_tick(workers *w); /* call it regularly: it ends the worker if the parent has ended */
void worker_leave(workers *w, bool is_through)
    __attribute__((noreturn)); /* is_through: all reported */

#endif
