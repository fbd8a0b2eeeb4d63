/* A driver for tests on machines without a GPU: a shared library with the functions of cuda/driver.h, opened through
 * MILLRACE_LIBCUDA. Streams are queues in this process, device memory is memory of this process, copies copy, and host
 * functions run on threads of their own. Kernels that are given as PTX text really run: src/ptx carries them out. The
 * library links src/ptx and src/base, on which that stands, and nothing else of the program. The built-in kernels,
 * which come as fat binaries, do nothing but be counted.
 *
 * A queue moves when somebody asks: at each call that asks or waits, everything that is in order and not
 * held up by `hold` or by ticks is carried out. So a test decides what is pending.
 *
 * Pending work is bounded, as it is on hardware. A hardware queue has QUEUE_DEPTH places;
 * records, waits, allocations and frees take none. At most HOST_SWITCHES host functions come
 * behind other work. A call without a place blocks for good if nobody else lets the queue go on.
 *
 * The environment sets what must hold from the start:
 *   FAKE_CUDA_DEVICES=2         how many devices (0: CUDA_ERROR_NO_DEVICE); default 1
 *   FAKE_CUDA_VERSION=12040     what cuDriverGetVersion says
 *   FAKE_CUDA_INIT=803          what cuInit returns
 *   FAKE_CUDA_RETAIN=46         what cuDevicePrimaryCtxRetain returns
 *   FAKE_CUDA_UNUSABLE=1        only the first so many devices refuse their contexts (default: all do)
 *   FAKE_CUDA_GIB=141           the memory of each device in GiB; default 1
 *   FAKE_CUDA_CAPABILITY=61     compute capability 6.1; PTX for a newer one is refused
 *   FAKE_CUDA_PTX=85            PTX of a version after 8.5 is refused; default 9.0
 *   FAKE_CUDA_MEMORY_OPERATIONS=0   no stream memory operations
 *   FAKE_CUDA_KERNELS=1         built-in kernels run as well, from PTX that the build made of them
 *   FAKE_CUDA_LOSE=3:700        the third launch makes the device lost with that result
 *   FAKE_CUDA_WAITS=1           calls that CUDA allows to wait for the device (docs/semantics.md) do wait, inside the driver,
 *                               until nothing pends: what is held up by a host function then never ends
 *   FAKE_CUDA_KERNEL_MS=500     each kernel takes so long, from when its stream gets to it
 *   FAKE_CUPTI_VERSION=120000   what cuptiGetVersion says; FAKE_CUPTI_REFUSES=1: it takes no subscriber */
#ifndef TESTS_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_H

#include <stdbool.h>

#include <cuda.h>

/* Set and read by C tests, which find it as the symbol `fake_cuda`. */
enum { QUEUE_DEPTH = 1021, HOST_SWITCHES = 57, FAKE_REGISTERS = 42 /* of each kernel of PTX */ };

typedef struct {
    bool hold;            /* nothing moves; cleared by a call that would wait for ever */
    int kernel_ticks;     /* a kernel is done when it has been asked about so often */
    int fail_alloc_at;    /* counts down: the n-th device allocation from now is out of memory... */
    int fail_allocs;      /* ...and so many more behind it */
    int fail_register_at; /* likewise for pinned memory */
    int fail_call_at; /* counts down: the n-th from now of the calls that make or submit something... */
    CUresult fail_call_with; /* ...answers this and does nothing */
    int lose_at;        /* counts down: the n-th kernel from now that runs loses its device... */
    CUresult lose_with; /* ...with this */
    bool lost_for_good; /* a reset does not help */
    bool no_peers;
    bool no_memory_operations; /* refused, although the device has said that it has them */
    CUresult refuse_launch;    /* what each launch answers, if it is not success */
    unsigned long long instruction_limit; /* of a warp; 0: as many as MOST_INSTRUCTIONS */
    const char
        *left_out; /* a variable or kernel that the driver's compiler takes out of each module */
    bool cupti_refuses;    /* another subscriber */
    bool cupti_idle_calls; /* each call is told of twice, and only the first number gets a record */
    int cupti_skips;       /* numbers that calls of other threads have taken, before each */
    int cupti_lose_at;     /* counts down: the n-th record from now is lost */
    bool count_bytes;      /* of global memory, that kernels access: in `global_bytes` */
    bool waits;            /* as FAKE_CUDA_WAITS, which sets it at the start */
    int hardware_queues;   /* streams share so many, each in order of submission; 0: one each */

    int launches, kernels_run, copies_run, callbacks_run;
    int contexts, streams, events, blocks, registered, modules; /* alive */
    int shared_limits_set; /* calls that asked for more dynamic shared memory */
    int blocking_calls;    /* calls that waited for a stream, or for a place in a queue */
    int most_pending;      /* places taken in one hardware queue */
    int current_changes;
    int subscribers;                   /* of CUPTI */
    int ranges, open_ranges;           /* of NVTX */
    char range[128], range_domain[32]; /* the last one */
    bool refuse_graphs;                /* none can be instantiated */
    bool refuse_updates;               /* nor updated */
    int graph_updates;
    int captured, graphs, graph_launches; /* tasks; executables alive; calls */
    int queries;
    unsigned long long global_bytes; /* read and written by kernels, while `count_bytes` is set */
} fake_cuda_control;

extern fake_cuda_control fake_cuda;

#endif
