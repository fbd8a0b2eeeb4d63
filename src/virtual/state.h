/* The structures of the virtual GPU, private to this folder.
 *
 * A `work` is this backend's record of a command, from its submission until it is done. Works form a graph. Each counts
 * its unfinished predecessors (the one before it in its stream, and one edge for every other ordering rule), and
 * becomes ready when the count reaches zero. The chooser then decides when its next step runs. A work that is done is
 * unlinked from everything and destroyed, so a pointer to a work is valid exactly while it is pending. Code that needs
 * it later keeps a `mark` (events) or a stream's count of completed works instead.
 *
 * The invariant easiest to break: under the timed chooser, a step later than the host's clock is never
 * carried out without also advancing the host's clock to its time. So everything that was carried out is
 * in the host's past, and a program cannot notice that the device advanced early. */
#ifndef MR_VIRTUAL_STATE_H
#define MR_VIRTUAL_STATE_H

#include "base/slab.h"
#include "base/vec.h"
#include "model/backend.h"
#include "model/chooser.h"
#include "order/order.h"
#include "virtual/device_model.h"
#include "virtual/pool.h"
#include "virtual/settings.h"
#include "virtual/spare.h"

typedef struct vgpu vgpu;
typedef struct vdevice vdevice;
typedef struct queue queue;
typedef struct work work;
typedef struct body body;

/* `to` may start only after `from` is done. Lives in two lists; freed with `to`'s, unless `to` is NULL. */
typedef struct edge edge;
struct edge {
    work *from; /* NULL once it is done */
    work *to;   /* NULL: no work waits (any more), or `guarded` does */
    edge *next_out;
    uint8_t cause; /* mr_cause: the rule that made it */
    union {
        edge *next_in;  /* to != NULL */
        block *guarded; /* to == NULL: memory that may not be reused before `from` is done (R33) */
    } u;
};

/* The mark that an event stands for: one record of it. Belongs to the event while it is the event's latest, and to the
 * RECORD's work while that is pending; the last one to release it frees it (R12, R19). */
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
    /* the first item of the next slice, or where an interrupted one continues */
    int64_t next_item;
    uint32_t blocks;
    uint32_t slices, slices_done;
    uint64_t holder; /* the seq of the command that had the engine before */
    bool stretched;  /* its slices have run, and it ends later than was known before */
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

/* A meeting with works of it pending (meet.c). */
typedef struct meet meet;
struct meet {
    const mr_meeting *meeting;
    meet *previous, *next; /* in gpu->meets, the newest first */
    work *first;           /* its members' works so far, linked by u.member.next */
    work *last;            /* the one that carries it out; NULL: not submitted yet */
    uint32_t missing;      /* members that have not begun */
    uint64_t newest;       /* the time at which the last of the others began, and its seq */
    uint64_t newest_seq;
};

/* The source of a copy as it was at the call. Never changed, so checkpoints share it. */
typedef struct {
    size_t refs;
    char bytes[];
} staged;

struct work {
    const mr_command *command; /* one reference owned */
    queue *queue;
    work *before, *after; /* in its stream */
    work *older, *newer;  /* among all pending works of the machine, by seq */
    edge *out, *in;
    work *next_ready;    /* in gpu->ready_first */
    uint64_t index;      /* in its stream, from 1 */
    uint64_t time;       /* the earliest possible start so far */
    uint64_t called;     /* the host's clock once it was submitted */
    uint64_t ended;      /* when the body did; of a marker: the last one that it waited for */
    uint32_t unfinished; /* predecessors */
    uint8_t state;
    uint8_t engine; /* of that body: engine_kind */
    bool gated;     /* ready, but not the first of its hardware queue (R55) */
    bool barrier;   /* R60: all streams of its devices wait for it */
    /* for the adversarial chooser: an older work touches the same bytes, unordered */
    bool conflicting;
    uint8_t held_by; /* mr_cause: what `time` comes from */
    uint64_t holder; /* the seq of the command that set it; 0: none */
    union {
        mark *mark;   /* RECORD */
        block *freed; /* FREE: what becomes reusable; a list linked by block->sibling */
        struct {
            meet *meet;
            work *next;
            bool begun; /* started, and has all its multiprocessors */
        } member;       /* of a meeting */
    } u;

    /* The nearest earlier work of the same stream that waits for another one, for the search of what
     * the stream is ordered after. Valid while index > queue->completed. */
    work *prior_join;
    uint64_t prior_join_index;
    uint64_t visited; /* stamp of the last search that came by */
    body *body;       /* OP, COPY: from the moment it is prepared to run */
    staged *staged;   /* COPY from pageable memory: one reference */
};

/* The state of a work while it is carried out. Apart from the work, because few run at a time and many wait: these stay
 * in the cache. */
struct body {
    work *next_in_engine[2];
    copy_engine *copy_engine[2]; /* copies: needed both at once */
    uint32_t engines;            /* how many of them */
    engine_kind engine;
    bool begun;
    bool failed;   /* without losing the device: the rest takes its time and has no effect */
    void *scratch; /* the operation's state, mr_op_state_bytes() long; owned */
    int64_t items;
    int64_t items_done; /* untimed choosers: a prefix */
    uint64_t duration;  /* alone on the device */
    uint64_t block_ns;  /* of one thread block */
    uint64_t rounding;  /* the duration minus waves * block_ns */
    uint32_t blocks, blocks_given, blocks_done;
    uint32_t unit; /* threads of the SMs that one block takes */
    uint32_t slices, slices_done;
    uint64_t turn;     /* order of becoming ready, among works of one priority */
    chunk *chunks;     /* running */
    chunk first_chunk; /* most works never need another */
    bool first_chunk_used;
};

/* A stream. Lives until it is closed and empty. */
struct queue {
    queue *previous, *next; /* of its device, in order of creation */
    vdevice *device;
    uint32_t stream_id; /* tells whether a stream's impl still means this queue */
    mr_order_lane lane;
    bool closed;
    bool dirty; /* in the device's list of streams that the next legacy command waits for */
    queue *dirty_previous, *dirty_next;
    work *head, *tail;
    uint64_t submitted, completed; /* counts; FIFO, so they say which */
    /* the number of completed works that a synchronisation has shown to the host */
    uint64_t proven;
    uint64_t last_end; /* when the last completed one ended */
    /* of that one: its `ended` and `engine` */
    uint64_t last_ended;
    uint8_t last_engine;
    uint32_t launches; /* pending ones that fill the launch queue (R56) */
    int priority;
    uint64_t released_seen; /* device->legacy->submitted when this stream last waited for it */
    uint64_t device_barrier_seen;
    work *last_join; /* see work.prior_join */
    uint64_t last_join_index;
    cache_bins *cached; /* memory freed in this stream, for its own later allocations (R29) */
};

struct copy_engine {
    bool busy;
    uint64_t last_seq;  /* of the copy that had it last */
    work *first, *last; /* ready, in order */
};

enum { COPY_IN, COPY_OUT, COPY_PEER_IN, COPY_PEER_OUT, COPY_ENGINES };

struct vdevice {
    vgpu *gpu;
    mr_device *device;
    queue *legacy; /* NULL only while streams are reopened by a reset */
    queue *first, *last;
    queue *dirty;         /* blocking streams with work since the last legacy command */
    size_t busy_blocking; /* blocking streams, not the legacy one, with work pending */
    size_t pending;
    uint64_t last_end, blocking_end; /* of all completed works, and of those in blocking streams */
    /* the latest work for which all later commands wait (R60); NULL once it is done */
    work *barrier;
    uint64_t barrier_count;
    uint64_t peers; /* bit i: may reach the memory of device i (R59) */

    uint64_t free_threads, capacity; /* of the SMs, in threads */
    uint32_t resident;               /* grids with blocks running (R53) */
    work **waiting; /* kernels with blocks not yet started: a heap by priority and turn */
    size_t waiting_count, waiting_bytes;
    uint32_t gated;    /* works of the device that are so */
    bool dispatch;     /* free_threads or `waiting` changed: the block scheduler must run */
    uint64_t last_seq; /* of the kernel that gave multiprocessors back last */
    copy_engine copy_engine[COPY_ENGINES];

    pool pool;
};

/* An event's latest mark, or a stream's queue: the host has closed it. */
typedef struct {
    mark *mark;   /* or NULL */
    queue *queue; /* or NULL */
} closed_object;

/* All state that changes while the device advances is in `region`, or here from `set` on. A checkpoint copies this
 * state (checkpoint.c). The rest does not change while there are checkpoints. */
struct vgpu {
    mr_machine *machine;
    device_model model;
    mr_chooser *chooser;
    vdevice *devices;
    int device_count;
    mr_region region;
    undo undo;
    spares spares; /* of the host's memory */
    mr_checkpoint *newest_checkpoint, *spare_checkpoint;
    size_t checkpoint_bytes;      /* of all there are, without `undo` */
    MR_VEC(closed_object) let_go; /* as soon as there is no checkpoint */

    settings set;
    uint64_t host_ns;   /* the host's clock */
    uint64_t device_ns; /* how far the devices have got */

    work *oldest, *newest; /* all pending, by seq */
    size_t pending;
    size_t pageable_writers;        /* pending works that may write pageable memory */
    work *ready_first, *ready_last; /* just become ready, not yet offered or started */
    meet *meets;                    /* all with members pending */
    work *keep;        /* a copy that the host waits for in its call, until it is done or dropped */
    uint64_t turns;    /* next work.turn */
    uint64_t searches; /* next work.visited */
    bool interruptible;     /* a slice may stop half way: the wait that runs it can be given up */
    unsigned since_advance; /* submissions since the device was last brought up to date */
    bool out_of_memory; /* a step could not be offered: the machine is lost at the next chance */

    backing backing;
    uint64_t next_host_address; /* what the script sees of the next host allocation */
    mr_slab queues, works, edges, marks, bodies, chunks, caches, meet_slab;
};

static inline vgpu *vgpu_of(mr_machine *machine) {
    return machine->backend_state;
}

/* Decides a choice that CUDA leaves open: by the chooser's answer, or by the settings. */
static inline bool mr_virtual_decide(const vgpu *gpu, mr_open_choice what,
                                     const mr_command *command, bool usual) {
    mr_chooser *chooser = gpu->chooser;
    return chooser->decide ? chooser->decide(chooser, what, command, usual) : usual;
}

/* ---- graph.c: the waits between works; nothing there changes what is pending */

/* False: memory is out. */
bool mr_virtual_add_edge(vgpu *gpu, work *from, work *to, mr_cause cause);
/* Frees the edges from `w`'s predecessors. */
void mr_virtual_free_edges_in(vgpu *gpu, work *w);
/* Whether `w` comes after the `index`-th work of `earlier`, which is pending; also false if that takes
 * long to find out. */
bool mr_virtual_ordered_after(work *w, const queue *earlier, uint64_t index);
/* The unfinished predecessor of highest seq; of a member of a meeting then another one that it waits for. NULL:
 * none. */
work *mr_virtual_newest_predecessor(const work *w);
/* Whether `end` is in the past of the host's clock. It always is, except with ranks: another rank, which waited, may
 * have advanced the devices further (collective/ranks.h). */
static inline bool mr_virtual_is_past(const vgpu *gpu, uint64_t end) {
    return !gpu->machine->rank || !gpu->chooser->timed || end <= gpu->host_ns;
}
/* The queue of a stream, even of a closed one that still has work; NULL: it is gone. */
queue *mr_virtual_queue_of(const mr_stream *stream);

/* ---- queue.c: order */

/* A work that is in no queue yet. */
mr_status mr_virtual_work_create(vgpu *gpu, const mr_command *command, work **out_work);
void mr_virtual_work_destroy(work *w); /* likewise */
/* Links it after everything that it must wait for. On failure nothing has changed. */
mr_status mr_virtual_enqueue(work *w, uint64_t earliest);
/* Takes back the work enqueued last, which must not have started; it is then in no queue. */
void mr_virtual_unlink(work *w);
/* It is done at `now`: frees its successors, unlinks and destroys it. */
void mr_virtual_complete(work *w, uint64_t now);
/* Drops all pending work of all devices, except gpu->keep, which is only unlinked. */
void mr_virtual_drop_works(vgpu *gpu);
void mr_virtual_queue_destroy(queue *q);
void mr_virtual_queue_close(queue *q);     /* no more commands will be submitted to it */
void mr_virtual_staged_release(staged *s); /* accepts NULL */

/* ---- engine.c, run.c, cost.c: carrying out */

mr_status mr_virtual_carry_out(vgpu *gpu, const mr_device_step *step);
void mr_virtual_offer_ready(work *w); /* it waits for no other work, and has not begun */
/* Offers, or under the timed chooser starts, what has become ready; `now` is the device's present. */
void mr_virtual_start_ready(vgpu *gpu, uint64_t now);
/* mr_virtual_unlink and mr_virtual_drop_works, for works that may also be on an engine. */
void mr_virtual_cancel(work *w);
void mr_virtual_drop_pending(vgpu *gpu);
void mr_virtual_engines_reset(vdevice *device); /* no work runs there any more */
mr_status mr_virtual_finish_started(vgpu *gpu); /* what has begun is run to its end */
/* The bytes that a half-run body has in w->body->scratch; 0: none, or it has not begun. */
int64_t mr_virtual_scratch_bytes(const work *w);
/* How much longer a part of `duration` takes than estimated, now that it has run. */
uint64_t mr_virtual_stretch(const work *w, uint64_t duration);
bool mr_virtual_prepare(work *w); /* makes w->body; false when memory is out */
void mr_virtual_body_free(work *w);
/* Items [*io_first, end). INTERRUPTED: not done, and can continue from *io_first. After any other failure the body does
 * nothing more. */
mr_status mr_virtual_body_run(work *w, int64_t *io_first, int64_t end);
void mr_virtual_body_finish(work *w); /* after all items */
engine_kind mr_virtual_engine_of(const mr_command *command);
uint64_t mr_virtual_bytes_ns(uint64_t bytes, double gigabytes_per_second);

/* Host memory has just been made: notes between which checkpoints. */
void mr_virtual_born(const vgpu *gpu, mr_storage *storage);
bool mr_virtual_is_new(mr_machine *machine, const mr_storage *storage);
/* Before anything writes to [first, end) of the storage: for checkpoints. */
void mr_virtual_keep_bytes(vgpu *gpu, const mr_storage *storage, uint64_t first, uint64_t end);
static inline void mr_virtual_before_write(vgpu *gpu, const mr_storage *storage, uint64_t first,
                                           uint64_t end) {
    if (__builtin_expect(mr_undo_is_on(&gpu->undo), 0))
        mr_virtual_keep_bytes(gpu, storage, first, end);
}

/* ---- meet.c: collectives */

bool mr_virtual_meet_join(vgpu *gpu, work *w); /* a member is submitted; false: memory is out */
/* A member begins. Returns the work that carries the meeting out, if all have begun now; otherwise NULL. */
work *mr_virtual_meet_begin(work *w, uint64_t now);
/* The meeting of `last` has been carried out and is gone. The caller completes the works of its members: this one, and
 * what follows by `u.member.next`. */
work *mr_virtual_meet_end(vgpu *gpu, work *last);
/* `w` is a member that waits only for its meeting. Returns the work that it waits for: a member that has not begun, or
 * the work that carries the meeting out. NULL: `w` is that work and can run, or the last member is not submitted
 * yet. */
work *mr_virtual_meet_waits_for(const work *w);
/* Resets a member that has begun; false: all had begun, so the meeting must be carried out. */
bool mr_virtual_meet_interrupt(work *w);
void mr_virtual_meets_drop(vgpu *gpu); /* once all works are dropped */
/* The error when no work can go on. It names which member waits for which. */
mr_status mr_virtual_meet_deadlock(const vgpu *gpu);
/* cost.c: how long it takes once all have begun. Its members are all submitted. */
uint64_t mr_virtual_meeting_ns(const vdevice *device, const mr_meeting *meeting);

/* ran.c: a part has been carried out, from `begin` to `end`. `holder`: the seq of the command that had its engine
 * before. */
void mr_virtual_tell_ran(const work *w, uint64_t begin, uint64_t end, uint32_t part, uint32_t parts,
                         bool last, uint64_t holder);
static inline void mr_virtual_ran(const work *w, uint64_t begin, uint64_t end, uint32_t part,
                                  uint32_t parts, bool last, uint64_t holder) {
    if (__builtin_expect(w->command->machine->observing.ran_listeners, 0))
        mr_virtual_tell_ran(w, begin, end, part, parts, last, holder);
}

/* ---- checkpoint.c */

mr_status mr_virtual_checkpoint(mr_machine *machine, mr_checkpoint **out_checkpoint);
mr_status mr_virtual_checkpoint_step(mr_machine *machine, mr_checkpoint **out_checkpoint);
mr_status mr_virtual_restore(mr_machine *machine, mr_checkpoint *checkpoint);
void mr_virtual_checkpoint_drop(mr_machine *machine, mr_checkpoint *checkpoint);
void mr_virtual_checkpoint_forget(mr_machine *machine, mr_checkpoint *keep);
size_t mr_virtual_checkpoint_bytes(mr_machine *machine);
/* Called before a change that cannot be undone: no checkpoint can be restored any more. */
void mr_virtual_checkpoints_void(vgpu *gpu);
/* Keeps a closed object while a checkpoint may need it, if checkpoints do not restore the host's objects. False: the
 * object is freed now. */
bool mr_virtual_let_go_later(vgpu *gpu, closed_object object);

/* ---- wait.c: the host's side of time */

/* Puts the host's clock to the device's, after a chooser moved the device on. */
void mr_virtual_follow(vgpu *gpu);
/* Lets the device move at a choice point that is not a wait. */
mr_status mr_virtual_advance(vgpu *gpu, mr_choice_point point, work *goal);
void mr_virtual_queue_rows(queue *q); /* of a new one, whose lane is set */
mr_status mr_virtual_wait_stream(queue *q);
mr_status mr_virtual_wait_device(vdevice *device);
mr_status mr_virtual_wait_mark(vgpu *gpu, mark *m);
mr_status mr_virtual_wait_launch(queue *q); /* until the launch queue is not full (R56) */
mr_status mr_virtual_wait_kept(work *w);    /* gpu->keep, just enqueued; on failure it is not */
/* Waits until this member of a meeting has begun, without the other members. Call it right after its submission. */
mr_status mr_virtual_wait_member(vgpu *gpu, const mr_command *member, uint64_t *out_time);
mr_status mr_virtual_wait_frees(vdevice *device); /* until no free is pending */

/* ---- the slots of the backend, by file */

mr_status mr_virtual_submit(const mr_command *command, bool *out_taken);
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
mr_status mr_virtual_memory_alloc(mr_storage *storage);
void mr_virtual_memory_release(mr_storage *storage);
size_t mr_virtual_spare_bytes(mr_machine *machine);
void mr_virtual_drop_spares(mr_machine *machine, size_t bytes);
bool mr_virtual_memory_at(mr_machine *machine, uint64_t address, mr_memory_block *out_block);
void mr_virtual_will_write(mr_machine *machine, const mr_memory_block *block);
uint64_t mr_virtual_memory_reserved(mr_device *device);
mr_status mr_virtual_memory_trim(mr_device *device);
mr_status mr_virtual_memory_free_wait(mr_storage *storage);
mr_status mr_virtual_host_access(mr_machine *machine);
mr_status mr_virtual_host_polls(mr_machine *machine);
void mr_virtual_host_writes(mr_machine *machine, const mr_operand *operands, uint32_t count);
void mr_virtual_host_work(mr_machine *machine, uint64_t bytes);
uint64_t mr_virtual_host_time(mr_machine *machine);

void mr_virtual_mark_drop(vgpu *gpu, mark *m); /* no longer the event's */
extern const mr_simulator mr_virtual_simulator;
/* device.c: properties, engines and memory by the model and the settings; nothing may be in use */
void mr_virtual_device_setup(vdevice *device);
mr_status mr_virtual_pool_setup(vdevice *device);

static inline bool is_body(const mr_command *command) {
    return mr_command_is(command, MR_TRAIT_WORK);
}

static inline bool is_launch(const mr_command *command) {
    return mr_command_is(command, MR_TRAIT_LAUNCH);
}

/* In the launch queue (R56). */
static inline bool takes_place(const mr_command *command) {
    return is_launch(command) && command->launch != MR_LAUNCH_REST;
}

#endif
