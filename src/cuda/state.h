/* The structures of the CUDA backend, private to this folder.
 *
 * The driver keeps the queues, the order and the memory. These structures hold only facts that the driver does not
 * report. These are the operation that may have failed, the host memory that a copy may still use, and the progress of
 * each stream. Only the Lua thread uses them, except for the data that turn.c shares with the driver's threads.
 *
 * Two numbers run through all of it. `seq`, the model's number of a command: a stream's work is done up
 * to `done_seq`, and may be pending up to `last_seq`. `generation`, of a device: counts its contexts, so
 * that a stream or event from before a reset, whose handle no longer exists, is recognised.
 *
 * The invariant easiest to break: this thread runs the host functions. So a call that can block inside the driver must
 * not be made while a host function is pending. Streams may share a hardware queue (R55), so it does not matter in
 * which stream (mr_cuda_unblock, mr_cuda_may_wait, mr_cuda_waits). The table of such calls is in docs/semantics.md,
 * "Calls that wait inside the driver".
 *
 * Libraries are loaded at run time. libcuda and cuBLAS are opened through one table of symbols (`driver.h`). So one
 * binary starts on every machine, and says what is missing and where it looked. For tests, `tests/fake_cuda` replaces
 * the driver on machines without a GPU. It can run out of memory at the n-th call, lack a symbol, have an old
 * version, or lose the device.
 *
 * One row, two compilers. The kernels are made from the rows of `ops/table.h`, with the same expression as the CPU
 * body. Each has a dense form (16-byte accesses) and a form for any strides, broadcasts and dtypes. The kernels are
 * compiled into the binary and loaded together with the context. By default, CUDA loads a kernel at its first launch;
 * that load waits for the device, and then two streams would not overlap. `tests/gpu/compare_ops.c` compares every
 * row, dtype and layout with the CPU.
 *
 * What a wait takes back calls no wait. A wait runs host functions (`host.c`), lets go of host memory (`held.c`), and
 * notes what streams have done (`progress.c`). Whatever may have to wait first (`room.c`, `hold.c`, `pinning.c`,
 * `memory.c`, `stream.c`, ...) calls `wait.c`, and none of these calls it. Only the model leads back: with the last
 * reference to a stream it closes the stream, and `stream.c` waits where the driver has no event. Four more calls go
 * the other way, through pointers in `cuda_machine`.
 *
 * No blocking call that Ctrl-C cannot interrupt. The driver's own synchronize functions do not return on Ctrl-C, and
 * they block the thread that runs host functions. So `wait.c` polls: without a pause at first, then with increasing
 * pauses. Some driver calls would block by themselves: a full launch queue, a copy of pageable memory. Then the backend
 * first waits in this way until the call can no longer block. Small values for the host (`item()`, and up to 64 KiB)
 * are copied through our own pinned memory. So the copy is in the stream before the work ahead of it has ended.
 *
 * A host function does not block the host. Only one thread may run Lua. So a stream that reaches a host function must
 * wait for that thread. `turn.c` does this with two stream memory operations. The first writes a number to pinned
 * memory, which the Lua thread reads whenever it waits or queries. The second waits for a value in pinned memory,
 * which the Lua thread writes after it has run the function. No driver thread waits. (With blocking callbacks
 * instead, about 55 host functions with kernels between them worked; after that, the next launch never returned.)
 *
 * CUDA warns that such values can cause deadlocks, because the driver does not know the order that they create. Here
 * the value depends only on the Lua thread, and a host function cannot wait for device work. So the Lua thread itself
 * must not block in the driver. Two measures ensure this:
 *
 *   - The backend counts the submissions after a pending host function. It counts over all streams, because
 *     streams may share a hardware queue (R55). After 256 submissions, which is less than the depth of the launch
 *     queue (R56), it waits for the oldest function. This wait runs host functions, and Ctrl-C ends it.
 *   - Before a call that may wait for the device inside the driver, it runs all pending host functions; before
 *     one that does wait, it waits for the device itself (`mr_cuda_may_wait`, `mr_cuda_waits`). docs/semantics.md
 *     has a table of these calls. A finalizer cannot wait, so the end of a trace, which does, is put off until
 *     the devices are idle.
 *
 * On a device without stream memory operations, or with `MILLRACE_HOST_FUNCTIONS=callback`, the backend uses driver
 * callbacks. Then at most 16 host functions can be pending.
 *
 * The driver compiles the user's kernels. It gets the same PTX that the virtual GPU runs, once for each device that
 * uses a module (`family/user.c`). Its words about an error are a part of ours. It owns the memory of the module's
 * variables. A module stays loaded while a tensor of one of them, or a pending kernel, needs it. An unused module is
 * unloaded when another one is loaded. `tests/fake_cuda` carries PTX out with `src/ptx`, so programs with kernels run
 * through this backend on machines without a GPU. It also runs the built-in kernels, from PTX that the build makes of
 * them: `make check-kernels` compares every operation with its CPU body there.
 *
 * cuBLAS where it is faster. Products of floats use cuBLAS, with one handle and one workspace for each stream. For a
 * small product, cuBLAS takes longer to choose a kernel than to compute. So small products (`mr_matmul_is_small`) use
 * our own kernel. A program with only small products does not load cuBLAS.
 *
 * Convolutions are products without their right side. A block reads the elements that its taps see from the source when
 * it needs them. So no matrix of them is ever in memory. `kernels/args.h` lists the kernels with their tiles, and
 * `family/conv.c` chooses by shapes alone. There is a kernel for few outputs, and one for strides and windows of any
 * size. Tiles should leave little over; they are small where large ones would not occupy the device. All of them add in
 * the order of the CPU. The gradient of the weights is summed in chunks of positions, then over the chunks, so nothing
 * is added atomically. With `mr.allow_tf32(true)` the tiles are multiplied by tensor cores (`conv_tile.cuh`).
 *
 * The command that failed. A device error appears in a later call. The backend remembers the last launches of each
 * device with their lines. The launches that may still have been running are the suspects. If there is only one
 * suspect, the error names it.
 *
 * An index that is out of range. Kernels check each index before they use it. The first thread that finds a wrong one
 * writes the value to pinned memory, which outlives the device, and then fails an assertion. So the error names the
 * operation, the tensors, the value and the size. On the virtual GPU, the CPU body returns the same error. If the
 * index is on the host, the call checks all values before it begins.
 *
 * Sums at an index are made in its order. `scatter_add_` and `index_add_` give the same bits in each run and on each
 * backend. For long lines, the positions of the index are first sorted by where they go (`sort.c`: a stable radix
 * sort without waits between blocks, which `sort` and `topk` use, too). Then one thread adds up what goes to one
 * element. Where additions are many, only the high bits of where they go are sorted by, and a block adds up a bin of
 * neighbouring elements in shared memory (`kernels/bins.cu`). If all goes to one element, this is a single chain of
 * additions.
 *
 * Where hardware differs from the documents. According to the documents, a synchronous copy between devices orders
 * both devices. On an H200 it did not, so the backend creates this order with events (`barrier.c`). After some
 * failures the driver gives the process no new context, so `mr.reset()` fails there. docs/semantics.md lists what was
 * observed. */
#ifndef MR_CUDA_STATE_H
#define MR_CUDA_STATE_H

#include <stdatomic.h>

#include "base/slab.h"
#include "base/vec.h"
#include "cuda/driver.h"
#include "cuda/kernels/order_args.h"
#include "model/backend.h"
#include "model/outside.h"
#include "tensor/tensor.h"

typedef struct cuda_machine cuda_machine;
typedef struct cuda_device cuda_device;
typedef struct cuda_stream cuda_stream;
typedef struct cuda_event cuda_event;
typedef struct cuda_hold cuda_hold;
typedef struct cuda_block cuda_block;
typedef struct cuda_call cuda_call;
typedef struct cuda_slot cuda_slot;
typedef struct cuda_slots cuda_slots;
typedef struct cuda_callback cuda_callback;
typedef struct cuda_pinned cuda_pinned;
typedef struct cuda_runs cuda_runs;
typedef struct cuda_outside cuda_outside;
typedef struct cuda_latches cuda_latches;
typedef struct cuda_link cuda_link;

/* ---- objects of the model */

/* The object of mr_stream.impl. It outlives the stream while events remember that they were recorded here. */
struct cuda_stream {
    CUstream handle;
    mr_stream *stream; /* while it is open */
    cuda_device *device;
    cuda_stream *previous, *next; /* the open streams of the device */
    uint32_t refs;                /* the model's stream; events */
    uint32_t generation;
    bool gathers;  /* to wait for it is to wait for all gathered ones of its device (R5) */
    bool gathered; /* the device's default stream comes after its work (R3) */
    bool foreign;  /* others made it, and destroy it */
    bool closed;
    uint64_t last_seq, done_seq;
    cuda_hold *holds; /* host memory used since the last fence; NULL: none */
    cuda_slot *slot;  /* while turns of its own are pending there (turn.c), so many */
    uint32_t turns;
    char text[48];  /* as mr_stream_describe says it, for sentences */
    char title[48]; /* as mr_stream_title does, for the errors' field */
};

/* The object of mr_event.impl; the handle is made at the first record, when its device is known (R14). */
struct cuda_event {
    CUevent handle;
    cuda_device *device;
    cuda_stream *stream; /* of the last record; one reference owned */
    uint64_t seq;        /* of the last record */
    uint32_t generation;
    bool plain; /* of no option: the handle goes back to device->events */
};

/* The object of mr_storage.impl of device memory. */
struct cuda_block {
    CUdeviceptr address;
    cuda_block *previous, *next; /* the live blocks of the device */
};

/* Host memory that copies and kernels of one stream may be using: kept from being released until the
 * fence after them has been passed. */
enum { HOLDS_A_FENCE = 30 };
struct cuda_hold {
    cuda_hold *next;
    CUevent fence; /* NULL while the stream still adds to it */
    uint32_t count;
    mr_storage *storages[HOLDS_A_FENCE]; /* one reference owned each */
};

/* Pinned memory for our own use, which no account shows. */
typedef struct {
    void *block; /* what to give back */
    void *host;
    CUdeviceptr device;
} cuda_pinned_block;

/* A block of pinned memory that a copy may be using whose wait was interrupted. */
typedef struct {
    void *block;
    CUevent fence; /* NULL: the driver had none */
} cuda_left;

/* ---- what may have failed */

/* A kernel that was launched; the last TRAIL_LENGTH of a device are remembered. A power of two. */
enum { TRAIL_LENGTH = 64 };
typedef struct {
    uint64_t seq; /* 0: none, or known to be done */
    const char *name;
    mr_name *own_name; /* as the command's; one reference */
    mr_site where;
    const cuda_stream *stream; /* NULL: it is gone */
} cuda_trail;

/* The complaint that a kernel of a row with an index leaves before it fails of an index out of range, and the names of
 * the last launches' tensors. */
typedef struct {
    mr_cuda_complaint *complaint; /* in pinned memory, from where the kernels reach it under: */
    CUdeviceptr device;
    void *block; /* that memory, for mr_cuda_pinned_give */
    struct {
        uint64_t seq;
        mr_name *index, *chosen; /* one reference each; NULL: no name */
    } last[TRAIL_LENGTH];
    uint64_t launches;
    void (*close)(cuda_device *device); /* gives all of it back */
} cuda_indices;

/* The commands of a graph of the driver. Kernels know each by a number, from `first` on, as a launch has one number for
 * all of them. */
typedef struct cuda_nodes cuda_nodes;
struct cuda_nodes {
    cuda_nodes *previous, *next; /* of the device */
    uint64_t first;
    MR_VEC(const mr_command *) commands; /* one reference each */
};

/* ---- devices and the machine */

struct cuda_device {
    cuda_machine *machine;
    mr_device *device;
    CUdevice handle;
    CUcontext context; /* NULL: not made yet; see mr_cuda_use */
    uint32_t generation;
    cuda_stream *first, *last; /* open streams, in order of creation */
    CUmemoryPool pool;
    CUstream reclaim; /* frees that must wait for other streams are made here (memory.c) */
    CUevent barrier;  /* later streams come after this event (R60); NULL: none */
    uint64_t peers;   /* bit i: may reach the memory of device i (R59) */
    bool prints;      /* kernels that may print were launched since the last synchronise */
    bool values;      /* its streams can be held by values in memory (turn.c) */
    cuda_block *blocks;
    cuda_hold *fenced; /* oldest first */
    cuda_hold **fenced_end;
    MR_VEC(cuda_left) left;
    MR_VEC(CUevent) events; /* plain ones, to be used again */
    cuda_trail trail[TRAIL_LENGTH];
    uint64_t launches;     /* in this generation: trail[launches % TRAIL_LENGTH] is the next */
    void *kernels;         /* the launcher's (launch.c) */
    cuda_indices *indices; /* NULL: nothing with an index was launched yet */
    cuda_nodes *graphs;    /* that were built in this context */
    void (*close_graphs)(cuda_device *device); /* which is about to go; NULL: there never was one */
};

struct cuda_machine {
    mr_machine *machine;
    cuda_device *devices;
    int device_count;
    cuda_device *home; /* the device of the start, whose context pins host memory */
    uint64_t opened_ns;
    mr_slab streams, events, blocks, holds;
    cuda_pinned *pinned;

    /* Host functions that have not been run yet, oldest first (host.c). */
    cuda_call *calls, **calls_end;
    uint64_t submissions; /* while there were any */
    uint32_t callbacks;   /* turns that hold a thread of the driver (turn.c) */
    cuda_slots *slots;    /* NULL: there are callbacks only */

    bool launched_kernels; /* the script's (family/user.c) */

    cuda_latches *latches; /* NULL: the order is not steered (latch.c) */

    cuda_runs *runs; /* NULL: times of commands are not recorded (runs/runs.c) */
    void *ranges;    /* NULL: no tool wants the names of operations (runs/nvtx.c) */

    cuda_outside *outside; /* NULL: no memory was shared with other processes (outside.c) */

    cuda_link *links; /* NCCL's communicators, also closed ones that may have work (nccl.c) */

    /* Functions of higher files that lower ones call. A context is made with its objects (device.c). */
    mr_status (*make_context)(cuda_device *device);
    /* mr_cuda_host_abandon, for the machine that error.c finds lost. */
    void (*abandon_calls)(cuda_machine *cuda);
    /* For waits. NULL: no process of other ranks is to be looked after (nccl.c). */
    mr_status (*watch_links)(cuda_machine *cuda, uint64_t waited_ns);
    /* NULL: nothing to do. Times are no longer recorded, but `runs` exists until the devices are idle; this frees it if
     * they are (runs/runs.c). */
    void (*give_up_runs)(cuda_machine *cuda);
};

static inline cuda_machine *mr_cuda_of(const mr_machine *machine) {
    return machine->backend_state;
}

/* ---- context.c: the current context */

/* The current context of this thread. The driver keeps it by thread, so we do too, whatever machines the thread has. */
extern _Thread_local CUcontext mr_cuda_current
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The process is a child of one that had started the driver: nothing of CUDA works in it. */
bool mr_cuda_is_forked(void);
mr_status mr_cuda_forked(void); /* the error that says so */
void mr_cuda_watch_forks(void); /* once in a process: its children will know */

void mr_cuda_make_current(CUcontext context); /* NULL: none; mr_cuda_current says whether it is */
mr_status mr_cuda_use_slowly(cuda_device *device);
/* Makes the device's context current, and makes it at the first call. A context costs a third of a
 * second and half a gigabyte, which an unused device should not take. */
static inline mr_status mr_cuda_use(cuda_device *device) {
    bool is_current = device->context == mr_cuda_current && device->context;
    /* Code outside that works on this thread may have made another one current. */
    bool is_sure = !device->machine->machine->outside.used;
    if (__builtin_expect(is_current && is_sure, 1)) return MR_OK;
    return mr_cuda_use_slowly(device);
}

uint64_t mr_cuda_now(void); /* the host's monotonic clock, in nanoseconds */

/* ---- error.c */

/* An error for a failed call of the driver; the format names the action, such as "record_event". A sticky one (R50)
 * names the failed operation as exactly as possible, and the machine is lost. */
mr_status mr_cuda_fail(cuda_device *device, CUresult result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for calls outside any device: never sticky. */
mr_status mr_cuda_complain(CUresult result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define MR_CUDA_TRY(device, call, ...)                                                             \
    do {                                                                                           \
        CUresult try_result_ = (call);                                                             \
        if (__builtin_expect(try_result_ != CUDA_SUCCESS, 0))                                      \
            return mr_cuda_fail(device, try_result_, __VA_ARGS__);                                 \
    } while (0)

void mr_cuda_trail_forget(const cuda_stream *stream);
void mr_cuda_trail_clear(cuda_device *device);
static inline void mr_cuda_trail_add(cuda_device *device, const mr_command *command) {
    cuda_trail *trail = &device->trail[device->launches++ % TRAIL_LENGTH];
    mr_name_release(trail->own_name);
    *trail = (cuda_trail){command->seq, command->name, mr_name_retain(command->own_name),
                          command->where, command->stream->impl};
}

/* ---- spare.c: a plain event of the device, whose context is current; NULL when the driver has none */

CUevent mr_cuda_event_take(cuda_device *device);
void mr_cuda_event_give(cuda_device *device, CUevent event);

#endif
