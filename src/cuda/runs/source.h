/* The commands whose times are not known yet, and where times come from: shared by runs.c, cupti.c and events.c. */
#ifndef MR_CUDA_RUNS_SOURCE_H
#define MR_CUDA_RUNS_SOURCE_H

#include "cuda/runs/runs.h"
#include "model/observer.h"

/* A command that was submitted and has not been told of. */
typedef struct {
    uint64_t seq;
    mr_command_id kind;
    mr_site where;
    const char *name;
    mr_name *own_name; /* one reference */
    mr_copy_direction direction;
    uint64_t bytes;
    cuda_device *device;
    mr_engine engine;
    uint64_t begin, end; /* of mr_cuda_now */
    uint32_t calls,
        seen; /* calls of the driver that gave the device work; those whose times are known */
    uint32_t seen_earlier; /* at the flush before this one */
    bool told;
    CUevent before, after; /* by events */
} cuda_run;

/* Where times come from. All functions but `start` and `stop` are only called in between. */
typedef struct {
    const char *how; /* a sentence for the reader of a timeline */
    mr_status (*start)(cuda_runs *runs);
    void (*stop)(cuda_runs *runs);
    /* The driver is about to be called for `run`, whose stream it is; it has been. */
    void (*enter)(cuda_runs *runs, cuda_run *run, cuda_stream *stream);
    void (*leave)(cuda_runs *runs, cuda_run *run, cuda_stream *stream);
    /* Finds times that are known now. `flush`: also those for which the source has to be asked. */
    void (*collect)(cuda_runs *runs, bool flush);
    void (*drop)(cuda_runs *runs, cuda_run *run); /* it will not be told of, or has been */
    /* Nothing of what comes is of interest, or again it is: at once, as `stop` waits for the devices. NULL: `stop` does
     * not wait. */
    void (*rest)(cuda_runs *runs, bool rests);
    /* The contexts are about to go; optional. */
    void (*forget)(cuda_runs *runs);
} cuda_run_source;

/* A call of the driver, as CUPTI numbers them. */
typedef struct {
    uint32_t correlation;
    uint64_t run; /* its number, see mr_cuda_run_at */
} cuda_run_call;

/* The time of an event, from which those of others are measured; of each device. */
typedef struct {
    CUevent event; /* NULL: none yet */
    uint64_t time;
    uint64_t tried; /* when it was looked for without success */
} cuda_base;

struct cuda_runs {
    cuda_machine *cuda;
    unsigned users; /* calls of runs_start without their runs_stop */
    const cuda_run_source *source;
    MR_VEC(cuda_run) list; /* in the order of submission; some in the middle may have been told */
    uint64_t first;        /* the number of list.items[0] */
    /* the number of commands after which known times are collected without a request */
    uint64_t collect_at;
    MR_VEC(cuda_run_call) calls; /* CUPTI: sorted, as the numbers grow */
    cuda_base *bases;            /* events: by device */
};

/* NULL: it was told of. */
static inline cuda_run *mr_cuda_run_at(cuda_runs *runs, uint64_t number) {
    uint64_t i = number - runs->first;
    return number >= runs->first && i < runs->list.count ? &runs->list.items[i] : NULL;
}

extern const cuda_run_source mr_cuda_runs_by_events;
#if MR_CUDA_HAS_CUPTI
extern const cuda_run_source mr_cuda_runs_by_cupti;
#endif

#endif
