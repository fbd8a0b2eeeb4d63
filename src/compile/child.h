/* A child process with a time limit, whose output is read. No shell is involved. */
#ifndef MR_COMPILE_CHILD_H
#define MR_COMPILE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/status.h"

typedef struct {
    const char *const *arguments; /* the first is the program's path; NULL-terminated */
    int time_limit_ms;
    size_t most_output;                 /* more output is read and dropped */
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

typedef struct {
    int here, there; /* the number of an open file in this process, and in the child */
} mr_child_file;

/* Starts a child in a process group of its own and returns at once. It gets these files, and the null device for those
 * of 0, 1 and 2 that are not among them. The caller waits for it. Returns an error number; 0: *out_pid is set. */
int mr_child_spawn(const char *path, const char *const *arguments, const mr_child_file *files,
                   int file_count, pid_t *out_pid);

#endif
