/* Fibers: C stacks of their own. Code that runs on one can be left in the middle and gone back to, from any depth of
 * calls. One thread runs all of them, one at a time. */
#ifndef MR_BASE_FIBER_H
#define MR_BASE_FIBER_H

#include <stdbool.h>

typedef struct mr_fiber mr_fiber;

/* `run(context)` will run on it. NULL: no memory. */
mr_fiber *mr_fiber_new(void (*run)(void *context), void *context);
/* It has ended, or was never entered. Accepts NULL. */
void mr_fiber_free(mr_fiber *stack);

/* Enters the stack, or goes on where it was left. Returns when it leaves or ends; true: it has ended. */
bool mr_fiber_enter(mr_fiber *stack);
/* On the stack itself: back to who entered it. Returns when it is entered again. */
void mr_fiber_leave(mr_fiber *stack);

#endif
