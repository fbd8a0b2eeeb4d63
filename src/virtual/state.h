/* The structures of the virtual GPU, private to this folder.
 *
 * A `work` is the backend's part of an action, stored behind it. Works form a graph: each counts its
 * unfinished predecessors (the one before it in its stream, and one edge for every other ordering
 * rule), and becomes ready when the count reaches zero. The chooser then says when it goes on. A work
 * that is done is unlinked from everything and destroyed together with its action, so a pointer to a
 * work is valid exactly while it is pending; what must know of it later keeps a `mark` (events) or a
 * stream's count of completed works instead.
 *
 * The invariant easiest to break: under the timed chooser no step later than the host's clock is ever
 * carried out without the host's clock being moved there too. Whatever has been carried out is then in
 * the host's past, and letting the device catch up early can never be noticed. */
#ifndef MR_VIRTUAL_STATE_H
#define MR_VIRTUAL_STATE_H

#include "base/slab.h"
#include "base/vec.h"
#include "model/backend.h"
#include "model/chooser.h"
#include "virtual/device_model.h"
#include "virtual/pool.h"
#include "virtual/settings.h"

typedef struct vgpu vgpu;
typedef struct vdevice vdevice;
typedef struct queue queue;
typedef struct work work;
typedef struct body body;

/* `to` may start only after `from` is done. Lives in two lists; freed with `to`'s, unless `to` is NULL. */
typedef struct edge edge;
struct edge {
    work *from; /* NULL once it is done */
    work *to;   /* NULL: nobody waits (any more), or `guarded` does */
    edge *next_out;
    union {
        edge *next_in;  /* to != NULL */
        block *guarded; /* to == NULL: memory that may not be reused before `from` is done (R33) */
    } u;
};

/* What an event stands for: one record of it. Belongs to the event while it is the event's latest, and
 * to the RECORD action while that is pending; whoever lets go last frees it (R12, R19). */
typedef struct {
    work *record;  /* pending, else NULL */
    queue *queue;  /* valid while the record is pending */
    uint64_t time; /* of completion */
    bool held;     /* by the event */
    bool done;     /* false for ever if the record was dropped by a failure */
} mark;

/* Some of a kernel's thread blocks, started together on free SMs; or all of a copy. */
typedef struct chunk chunk;
struct chunk {
    work *work;
    chunk *previous, *next; /* the other running chunks of the work */
    uint64_t start, duration;
    int64_t first, items; /* its share of the body */
    int64_t next_item;    /* of the slice that is next, or where an interrupted one goes on */
    uint32_t blocks;
    uint32_t slices, slices_done;
};

typedef enum {
    ENGINE_NONE, /* needs nothing of the device */
    ENGINE_SM,
    ENGINE_COPY,
} engine_kind;

typedef enum {
    WORK_WAITING, /* for predecessors */
    WORK_READY,   /* with the chooser, or in an engine's queue */
    WORK_STARTED, /* some of its body may have run */
} work_state;

typedef struct copy_engine copy_engine;

struct work {
    queue *queue;
    work *before, *after; /* in its stream */
    work *older, *newer;  /* among all pending works of the machine, by seq */
    edge *out, *in;
    work *next_ready;    /* in gpu->ready_first */
    uint64_t index;      /* in its stream, from 1 */
    uint64_t time;       /* the earliest start that is known of */
    uint64_t called;     /* the host's clock once it was submitted */
    uint64_t ended;      /* when the body did; of a marker: the last one that it waited for */
    uint32_t unfinished; /* predecessors */
    uint8_t state;
    uint8_t engine;   /* of that body: engine_kind */
    bool barrier;     /* R60: all streams of its devices wait for it */
    bool conflicting; /* the adversarial chooser's: touches what something older does, unordered */
    union {
        mark *mark;   /* RECORD */
        block *freed; /* FREE: what becomes reusable; a list linked by block->sibling */
    } u;

    /* The nearest earlier work of the same stream that waits for another one, for the search of what
     * the stream is ordered behind. Valid while index > queue->completed. */
    work *prior_join;
    uint64_t prior_join_index;
    uint64_t visited; /* stamp of the last search that came by */
    body *body;       /* OP, COPY: from the moment it is prepared to run */
    void *staged;     /* COPY from pageable memory: the source as it was at the call; owned */
};

/* What a work needs while it is carried out. Apart from the work, because few run at a time and many
 * wait: these stay in the cache. */
struct body {
    work *next_in_engine[2];
    copy_engine *copy_engine[2]; /* copies: needed both at once */
    uint32_t engines;            /* how many of them */
    engine_kind engine;
    bool begun;
    void *scratch; /* what op->begin returned */
    int64_t items;
    int64_t items_done; /* untimed choosers: a prefix */
    uint64_t duration;  /* alone on the device */
    uint64_t block_ns;  /* of one thread block */
    uint64_t rounding;  /* what waves * block_ns lacks of the duration */
    uint32_t blocks, blocks_given, blocks_done;
    uint32_t unit; /* threads that one block takes of the SMs' room */
    uint32_t slices, slices_done;
    uint64_t turn;     /* order of becoming ready, among works of one priority */
    chunk *chunks;     /* running */
    chunk first_chunk; /* most works never need another */
    bool first_chunk_used;
};

static inline mr_action *action_of(work *w) {
    return (mr_action *)w - 1;
}

static inline work *work_of(mr_action *action) {
    return mr_action_extra(action);
}

/* A stream. Lives until it is closed and empty. */
struct queue {
    queue *previous, *next; /* of its device, in order of creation */
    vdevice *device;
    uint32_t stream_id; /* tells whether a stream's impl still means this queue */
    bool blocking, legacy, closed;
    bool dirty; /* in the device's list of streams that the next legacy action waits for */
    queue *dirty_previous, *dirty_next;
    work *head, *tail;
    uint64_t submitted, completed; /* counts; FIFO, so they say which */
    uint64_t proven;   /* how many of the completed ones a synchronisation has shown to the host */
    uint64_t last_end; /* when the last completed one ended */
    uint32_t launches; /* pending ones that fill the launch queue (R56) */
    int priority;
    uint64_t legacy_seen; /* device->legacy->submitted when this stream last waited for it */
    uint64_t barrier_seen;
    work *last_join; /* see work.prior_join */
    uint64_t last_join_index;
    cache_bins *cached; /* memory freed in this stream, for its own later allocations (R29) */
};

struct copy_engine {
    bool busy;
    work *first, *last; /* ready, in order */
};

enum { COPY_IN, COPY_OUT, COPY_PEER_IN, COPY_PEER_OUT, COPY_ENGINES };

struct vdevice {
    vgpu *gpu;
    mr_device *device;
    queue *legacy; /* NULL only while streams are reopened by a reset */
    queue *first, *last;
    queue *dirty;         /* blocking streams with work since the last legacy action */
    size_t busy_blocking; /* blocking streams, not the legacy one, with work pending */
    size_t pending;
    uint64_t last_end, blocking_end; /* of all completed works, and of those in blocking streams */
    work *barrier; /* the latest work that everything waits for (R60), NULL once it is done */
    uint64_t barrier_count;
    uint64_t peers; /* bit i: may reach the memory of device i (R59) */

    uint64_t room, capacity; /* of the SMs, in threads */
    uint32_t resident;       /* grids with blocks running (R53) */
    MR_VEC(work *) waiting;  /* kernels with blocks not yet started: a heap by priority and turn */
    bool dispatch;           /* room or `waiting` changed: the block scheduler must look */
    copy_engine copy_engine[COPY_ENGINES];

    pool pool;
};

struct vgpu {
    mr_machine *machine;
    device_model model;
    settings set;
    mr_chooser *chooser;
    const mr_op *spin; /* the row of mr.spin */
    vdevice *devices;
    int device_count;

    uint64_t host_ns;   /* the host's clock */
    uint64_t device_ns; /* how far the devices have got */

    work *oldest, *newest; /* all pending, by seq */
    size_t pending;
    work *ready_first, *ready_last; /* just become ready, not yet offered or started */
    work *keep;                     /* the action being submitted: a failure does not destroy it */
    uint64_t turns;                 /* next work.turn */
    uint64_t searches;              /* next work.visited */
    bool interruptible;  /* a slice may stop half way: the wait that runs it can be given up */
    unsigned unattended; /* submissions since the device was last brought up to date */
    bool out_of_memory;  /* a step could not be offered: the machine is lost at the next chance */

    backing backing;
    uint64_t next_host_address; /* what the script sees of the next host allocation */
    mr_slab queues, edges, marks, bodies, chunks;
};

static inline vgpu *vgpu_of(mr_machine *machine) {
    return machine->backend_state;
}

/* ---- queue.c: order */

/* Links the action behind everything that it must wait for. On failure nothing has changed. */
mr_status mr_virtual_enqueue(mr_action *action, uint64_t earliest);
/* Takes back the work enqueued last, which must not have started. */
void mr_virtual_cancel(work *w);
/* It is done at `now`: frees its successors, unlinks and destroys it. */
void mr_virtual_complete(work *w, uint64_t now);
/* Offers, or under the timed chooser starts, what has become ready; `now` is the device's present. */
void mr_virtual_settle(vgpu *gpu, uint64_t now);
/* Drops all pending work of all devices, but for gpu->keep, which is only unlinked. */
void mr_virtual_drop_pending(vgpu *gpu);
void mr_virtual_offer(work *w, uint64_t time, void *part);
/* Whether `w` comes after the `index`-th work of `earlier`, which is pending; also false if that takes
 * long to find out. */
bool mr_virtual_ordered_after(work *w, const queue *earlier, uint64_t index);
/* The unfinished predecessor of highest seq, NULL: none. */
work *mr_virtual_newest_predecessor(const work *w);
/* The queue behind a stream, also of a closed one that still has work; NULL: gone. */
queue *mr_virtual_queue_of(const mr_stream *stream);
void mr_virtual_queue_destroy(queue *q);

/* ---- engine.c, run.c, cost.c: carrying out */

mr_status mr_virtual_carry_out(vgpu *gpu, const mr_step *step);
void mr_virtual_admit(work *w, uint64_t now); /* timed: to its engine; then mr_virtual_dispatch */
void mr_virtual_unadmit(work *w);             /* a copy: out of the engines' lines again */
void mr_virtual_dispatch(vgpu *gpu, uint64_t now);
void mr_virtual_engines_reset(vdevice *device); /* nothing is under way there any more */
mr_status mr_virtual_finish_started(vgpu *gpu); /* what has begun is run to its end */
bool mr_virtual_prepare(work *w);               /* makes w->body; false when memory is out */
void mr_virtual_body_free(work *w);
/* Items [*io_first, end). INTERRUPTED: not done, but well; *io_first is where to go on. */
mr_status mr_virtual_body_run(work *w, int64_t *io_first, int64_t end);
void mr_virtual_body_finish(work *w); /* after all items; also to abandon it */
/* R50: takes `error`, fills in what failed, drops all pending work; returns what to raise. */
mr_status mr_virtual_fail(work *w, mr_status error);
engine_kind mr_virtual_engine_of(const mr_action *action);
uint64_t mr_virtual_bytes_ns(uint64_t bytes, double gigabytes_per_second);
bool mr_virtual_peers(const vdevice *a, const vdevice *b); /* one may reach the other directly */

/* ---- wait.c: the host's side of time */

/* Lets the device move at a choice point that is not a wait. */
mr_status mr_virtual_attend(vgpu *gpu, mr_choice_point point, mr_action *goal);
mr_status mr_virtual_wait_stream(queue *q); /* the legacy stream: with blocking streams (P1) */
mr_status mr_virtual_wait_device(vdevice *device);
mr_status mr_virtual_wait_mark(vgpu *gpu, mark *m);
mr_status mr_virtual_wait_launch(queue *q); /* room in the launch queue (R56) */
mr_status mr_virtual_wait_kept(work *w);    /* gpu->keep, just enqueued; on failure it is not */
mr_status mr_virtual_wait_frees(vdevice *device); /* until no free is pending */

/* ---- the slots of the backend, by file */

mr_status mr_virtual_submit(mr_action *action);
mr_status mr_virtual_stream_open(mr_stream *stream);
void mr_virtual_stream_close(mr_stream *stream);
mr_status mr_virtual_stream_query(mr_stream *stream, bool *out_done);
mr_status mr_virtual_stream_synchronize(mr_stream *stream);
mr_status mr_virtual_device_synchronize(mr_device *device);
mr_status mr_virtual_event_open(mr_event *event);
void mr_virtual_event_close(mr_event *event);
mr_status mr_virtual_event_query(mr_event *event, bool *out_done);
mr_status mr_virtual_event_synchronize(mr_event *event);
mr_status mr_virtual_event_elapsed(mr_event *from, mr_event *to, double *out_milliseconds);
mr_status mr_virtual_memory_alloc(mr_storage *storage, mr_action *alloc);
void mr_virtual_memory_release(mr_storage *storage);
uint64_t mr_virtual_memory_reserved(mr_device *device);
mr_status mr_virtual_memory_trim(mr_device *device);
mr_status mr_virtual_memory_free_wait(mr_storage *storage);
mr_status mr_virtual_host_access(mr_machine *machine);
void mr_virtual_host_work(mr_machine *machine, uint64_t bytes);
uint64_t mr_virtual_host_time(mr_machine *machine);

void mr_virtual_mark_release(vgpu *gpu, mark *m); /* event.c: no longer pending */
extern const mr_simulator mr_virtual_simulator;
/* virtual.c: properties, engines and memory by the model and the settings; nothing may be in use */
void mr_virtual_device_setup(vdevice *device);
mr_status mr_virtual_pool_setup(vdevice *device);

/* ---- the choosers */

mr_status mr_virtual_chooser_create(vgpu *gpu, const char *name, mr_chooser **out_chooser);
mr_status mr_virtual_chooser_timed(mr_chooser **out_chooser);
mr_status mr_virtual_chooser_manual(mr_chooser **out_chooser);
mr_status mr_virtual_chooser_random(uint64_t seed, mr_chooser **out_chooser);
mr_status mr_virtual_chooser_adversarial(vgpu *gpu, mr_chooser **out_chooser);

static inline bool is_body(const mr_action *action) {
    return action->kind == MR_ACTION_OP || action->kind == MR_ACTION_COPY;
}

/* What takes a place in the launch queue: P6 saw 100,000 records not fill it. */
static inline bool is_launch(const mr_action *action) {
    return is_body(action) || action->kind == MR_ACTION_HOST_FUNCTION ||
           action->kind == MR_ACTION_FAULT;
}

#endif
