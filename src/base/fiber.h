/* Fibers: C stacks of their own. Code that runs on one can be left at any depth of calls and continued there later. One
 * thread runs all of them, one at a time. */
#ifndef MR_BASE_FIBER_H
#define MR_BASE_FIBER_H

#include <stdbool.h>

typedef struct mr_fiber mr_fiber;

/* `run(context)` will run on it. NULL: no memory. */
mr_fiber *mr_fiber_new(void (*run)(void *context), void *context);
/* Call it only for a fiber that has ended or was never entered. Accepts NULL. */
void mr_fiber_free(mr_fiber *stack);

/* Enters the stack, or goes on where it was left. Returns when it leaves or ends; true: it has ended. */
bool mr_fiber_enter(mr_fiber *stack);
/* Called on the stack itself: goes back to the caller of mr_fiber_enter. Returns when the stack is entered again. */
void mr_fiber_leave(mr_fiber *stack);

#endif
