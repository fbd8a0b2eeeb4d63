/* A child process with a time limit, whose output is read. No shell is involved. */
#ifndef MR_COMPILE_CHILD_H
#define MR_COMPILE_CHILD_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/status.h"

typedef struct {
    const char *const *arguments; /* the first is the program's path; NULL-terminated */
    int time_limit_ms;
    size_t most_output;                 /* what exceeds it is read and dropped */
    bool (*interrupted)(void *context); /* may be NULL */
    void *context;
} mr_child;

typedef struct {
    mr_buffer output; /* standard output and standard error, in the order of writing */
    int exit_status;  /* -1: a signal ended it */
    int signal;
    bool is_late, is_interrupted; /* the child was killed for this reason */
} mr_child_end;

/* Waits for the child and for all that it started, which are killed when the limit is over. Fails only if the child
 * cannot be started (NOT_SUPPORTED: the program is missing, ...). The caller frees out->output also after an error. */
mr_status mr_child_run(const mr_child *child, mr_child_end *out);

#endif
