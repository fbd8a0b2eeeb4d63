/* Loops over many threads: a pool with one helper thread for each CPU, created at the first loop that
 * needs it. The process has one pool, for callers in any thread. The child of a fork creates its own.
 *
 * The pool must not influence values: a body must give the same result for every way of splitting its
 * range, so it makes no difference which thread ran which part. */
#ifndef MR_BASE_PARALLEL_H
#define MR_BASE_PARALLEL_H

#include <stdint.h>

/* Handles [first, end) of the range; called from any thread, several at a time. */
typedef void (*mr_parallel_body)(void *context, int64_t first, int64_t end);

/* Calls `body` for pieces that together make up [0, count), each but the last of at least `grain`, and
 * returns when all are done. Runs on this thread alone when there is only one piece or one CPU, when
 * no helper can be made, or when the pool serves another caller. A loop never fails. */
void mr_parallel_for(int64_t count, int64_t grain, mr_parallel_body body, void *context);

/* Threads that a loop may use, this one included: the CPUs given to the process, or
 * MILLRACE_THREADS. At least 1. */
int mr_parallel_threads(void);

#endif
