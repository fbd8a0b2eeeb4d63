/* The C stack. Lua allows 200 calls of C functions inside each other (pcall, string.gsub, mr.with), whatever the
 * stack can hold; under a small limit (ulimit -s) that many overrun it. */
#ifndef MR_HOST_STACK_H
#define MR_HOST_STACK_H

#include <stddef.h>

/* Runs body(context) where the C stack holds as many calls as Lua allows. This is on the calling thread if the limit is
 * high enough, else on a thread of its own, which gets all signals. Returns what `body` returns. */
int mr_stack_run(int (*body)(void *context), void *context);

/* The size in bytes of the calling thread's C stack. */
size_t mr_stack_size(void);

#endif
