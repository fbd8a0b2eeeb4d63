/* The compile worker: a process with NVRTC (worker/). If a text crashes the compiler, or makes it work for ever, only
 * this process ends. It starts with the first compilation, and serves the later ones, too.
 *
 * A confined worker has no file system: the kernel refuses the calls (worker/confine.c), and toolkit.h says which
 * headers it gets instead. */
#ifndef MR_COMPILE_WORKER_H
#define MR_COMPILE_WORKER_H

#include "base/buffer.h"
#include "base/status.h"
#include "compile/wire.h"

typedef struct {
    const char *library; /* the path of NVRTC */
    const char *headers; /* the toolkit's folder of headers; NULL: none */
    bool is_confined;
    int time_limit_ms;
    bool (*interrupted)(void *context); /* may be NULL */
    void *context;
} mr_worker_job;

typedef enum {
    MR_WORKER_ANSWERED,
    MR_WORKER_CRASHED, /* `signal`; 0: it ended in another way */
    MR_WORKER_LATE,
    MR_WORKER_INTERRUPTED,
    MR_WORKER_MISSING, /* it cannot be started, or cannot use the library: `problem` */
} mr_worker_end;

typedef struct {
    mr_worker_end end;
    int signal;
    char name[48]; /* of the compiler: "NVRTC 13.0" */
    char problem[256];
    mr_buffer answer; /* the caller frees it, whatever the end */
} mr_worker_result;

/* Gives the request to a worker and waits for the answer. `request` NULL: starts one only, if none is there. A worker
 * that did not answer is ended before this returns. */
void mr_worker_run(const mr_worker_job *job, const mr_buffer *request, mr_worker_result *out);

#endif
