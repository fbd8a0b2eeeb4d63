/* What the files of the fake driver share: see fake_cuda.h. Everything is under one lock, which calls
 * take by ENTER. */
#ifndef TESTS_FAKE_H
#define TESTS_FAKE_H

#include <pthread.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "fake_cuda.h"
#include "ptx/ptx.h"

enum { MOST_DEVICES = 8, ALIGNMENT = 256 };

/* The device, as far as kernels see it. */
enum {
    SM_COUNT = 4,
    MOST_THREADS = 1024,
    SHARED_FOR_ALL = 48 << 10, /* of a block; more is to be asked for */
    MOST_SHARED = 227 << 10,
    MOST_INSTRUCTIONS = 100000000, /* of a warp, in place of a watchdog */
};

typedef enum {
    TASK_KERNEL,
    TASK_COPY,
    TASK_SET,
    TASK_RECORD,
    TASK_WAIT,
    TASK_HOST,
    TASK_FREE,
    TASK_WRITE_VALUE,
    TASK_WAIT_VALUE,
    TASK_MEET,
} task_kind;

/* An operation of a communicator (nccl.c): it is carried out by the first of its tasks that may go, once all have come. */
typedef struct fake_meet fake_meet;

/* One record of an event: waits hold on to the one that they found (R12). */
typedef struct {
    int refs;
    bool done;
    int64_t time;
} mark;

/* ---- modules and kernels: what the handles CUmodule and CUfunction point to */

typedef struct fake_module fake_module;

typedef struct {
    fake_module *module;
    const mr_ptx_kernel *kernel; /* NULL: of a fat binary; it does nothing */
    unsigned shared_limit;       /* static and dynamic shared memory together */
} fake_function;

struct fake_module {
    fake_module *next; /* of the device */
    int device;
    mr_ptx_module *ptx;       /* NULL: a fat binary */
    uint64_t *variables;      /* addresses, by index of variable; 0: it has no memory */
    fake_function *functions; /* by kernel */
    char *built_in;           /* the built-in kernel that it was made for; owned; else NULL */
};

typedef struct {
    const fake_function *function; /* NULL: none */
    unsigned grid[3], block[3], shared;
    bool is_cooperative;
} fake_launch;

/* ---- work */

typedef struct task task;
struct task {
    task *next;
    task_kind kind;
    uint64_t number; /* order of submission, over all streams */
    int ticks;
    uint64_t until; /* TASK_KERNEL: the time at which it is over; 0: it has not begun */
    void *to;
    const void *from;
    void *staged;       /* owned; TASK_KERNEL: the block of parameters */
    fake_launch launch; /* TASK_KERNEL */
    size_t bytes;
    int byte;
    uint64_t value;  /* TASK_WRITE_VALUE, TASK_WAIT_VALUE, at `to` */
    fake_meet *meet; /* TASK_MEET; one reference owned */
    bool has_come;   /* TASK_MEET: it is the first of its stream */
    mark *mark;      /* TASK_RECORD, TASK_WAIT; one reference owned */
    CUevent event;   /* the same in a graph: of outside */
    CUhostFn call;
    void *context;
    bool switches;        /* TASK_HOST: it comes behind other work */
    uint32_t correlation; /* TASK_KERNEL, TASK_COPY, TASK_SET: the number of the call */
    bool running;         /* TASK_HOST: its thread has been started... */
    bool returned;        /* ...and is done */
};

/* The three handles that the driver's header leaves open. */
struct CUstream_st {
    CUstream next; /* of the device, open or with work */
    int device;
    int ordinal; /* its hardware queue follows from it */
    bool blocking, legacy, closed;
    int places;      /* taken in its queue by its tasks */
    bool after_work; /* the last task that takes a place is no host function */
    task *first, **end;
    CUgraph capture; /* what it is given becomes a part of it; NULL: it does not capture */
    bool origin;     /* on which that began */
};

/* An event of several processes. */
typedef struct {
    uint64_t submitted, done; /* records */
} fake_counts;

struct CUevent_st {
    CUevent previous, next; /* of the device */
    mark *mark;             /* the latest record; NULL: none yet */
    CUgraph capture;        /* in which that was; NULL: in none */
    bool timed;
    fake_counts *counts; /* that processes share, instead of marks; NULL: it is of this process alone */
    bool is_opened;      /* another process made it */
    char path[64];
};

struct CUctx_st {
    int device;
};

/* A device allocation. */
typedef struct block block;
struct block {
    block *next;
    char *address;
    size_t bytes;
    char path[64];    /* of the file that processes share; "": it is of a pool */
    bool is_opened;   /* another process made it */
    int times_opened; /* and not closed since */
};

typedef struct {
    struct CUctx_st context;
    int retained;
    CUresult lost;
    struct CUstream_st legacy, per_thread;
    CUstream streams;
    int stream_count;         /* ever */
    int switches;             /* pending */
    struct CUevent_st events; /* the list's head */
    block *blocks;
    size_t used, reserved;
    unsigned open_to; /* bit i: device i may reach its memory */
    fake_module *modules;
    CUgraphExec executables;
} fake_device;

extern pthread_mutex_t fake_lock;
extern fake_device fake_devices[MOST_DEVICES];
extern int fake_device_count;
extern _Thread_local int fake_current; /* -1: no context */

/* The state of the current context: what every call but a few returns first. */
CUresult fake_state(void);
CUresult fake_enter(void); /* takes the lock; a result that is not success has given it back */
CUresult fake_leave(CUresult result);

#define ENTER()                                                                                    \
    do {                                                                                           \
        CUresult enter_result_ = fake_enter();                                                     \
        if (enter_result_) return enter_result_;                                                   \
    } while (0)

/* For calls of which tests choose one that fails. */
#define ENTER_OR_FAIL()                                                                            \
    do {                                                                                           \
        ENTER();                                                                                   \
        if (fake_cuda.fail_call_at && --fake_cuda.fail_call_at == 0)                               \
            return fake_leave(fake_cuda.fail_call_with);                                           \
    } while (0)

/* In calls that may wait for the device (R7, R27, R46), behind ENTER. */
#define WAIT_AS_ALLOWED()                                                                          \
    do {                                                                                           \
        CUresult wait_result_ = fake_wait_as_allowed();                                            \
        if (wait_result_) return fake_leave(wait_result_);                                         \
    } while (0)

int fake_number_of(const char *variable, int otherwise); /* of the environment */
size_t fake_total_memory(void);                          /* of a device */

/* module.c, under the lock */
CUresult fake_load(CUmodule *module, const void *image, char *log, size_t log_size);
CUresult fake_find_built_in(CUfunction *function, const char *name); /* built_in.c */
CUresult fake_run(const fake_launch *launch, const void *params);
bool fake_find_variable(int device, uint64_t address, mr_ptx_range *out_range);
void fake_free_modules(int device);
void fake_free_executables(int device); /* graph.c */
void fake_write_prints(void);

/* queue.c, all under the lock */
CUstream fake_stream_of(CUstream handle);
task *fake_add(CUstream stream,
               task_kind kind); /* at the end of the stream, once there is a place */
task *fake_capture(CUgraph graph, task_kind kind); /* graph.c: at the end of the graph */
void fake_bind_event(task *t, CUevent event);      /* the record that a wait finds, or a new one */
void fake_move(void);                              /* carries out whatever can go on */
bool fake_stream_done(CUstream stream);            /* the legacy stream: with blocking ones */
CUresult fake_finish(CUstream stream);             /* waits for it; NULL: for the current device */
CUresult fake_wait_as_allowed(
    void); /* a call that may wait for all devices, and here does if it is told to */
bool fake_uses(const fake_module *module); /* a kernel of it is pending */
void fake_drop(int device);                /* the context is gone, and with it streams and events */
void fake_stream_init(CUstream stream, int device, bool blocking);

/* outside.c, under the lock */
block *fake_find_block(uint64_t address, int *out_device); /* NULL: none */
void fake_unmap(const block *b);
fake_counts *fake_share_event(char path[64]); /* NULL: no memory */
void fake_forget_event(const struct CUevent_st *event);
CUevent fake_new_event(void); /* queue.c */

/* nccl.c, under the lock */
bool fake_meet_come(task *t);            /* whether all have */
void fake_meet_carry_out(task *t);       /* once for all tasks */
void fake_meet_release(fake_meet *meet); /* accepts NULL */

/* activity.c, under the lock. Tells the subscriber of a call of the driver, and returns its number; the time of
 * records; a task of such a call is done. */
uint32_t fake_call(uint32_t id);
uint64_t fake_now(void);
void fake_finished(const task *t, uint64_t begin);
#if MR_CUDA_HAS_CUPTI
#define FAKE_CALL(name) fake_call(CUPTI_DRIVER_TRACE_CBID_##name)
#else
#define FAKE_CALL(name) fake_call(0)
#endif

/* memory.c, under the lock */
void fake_free_block(int device, void *address);
void fake_free_all(int device); /* the context is gone: also what it had registered */
void *fake_alloc(size_t bytes); /* aligned as the driver aligns; NULL: host memory is out */
/* The registered range in which `host` lies. */
bool fake_find_pinned(const void *host, char **out_first, uint64_t *out_end);

/* The functions of the lists, under the driver's names. */
#define X(name, symbol, parameters) CUresult CUDAAPI fake_##name parameters __asm__(symbol);
MR_CUDA_DRIVER_LIST(X)
#undef X

#endif
