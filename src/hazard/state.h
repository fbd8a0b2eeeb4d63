/* The structures of the checker, private to this folder.
 *
 * Time is the host's order of submission: an action's seq. "Actor i up to seq n" is then a complete
 * description of a prefix of a stream, and a clock is a map from actors to such prefixes.
 *
 * Who knows what is spread over four places, so that no action costs more because there are more
 * streams. An action of actor t now comes after (i, n) if any of these says so:
 *     - i is t: a stream is in order (R1);
 *     - the host knows (i, n): what the host has waited for is before everything that it submits;
 *     - t's own clock knows it, from the waits in t;
 *     - t takes part in its device's legacy barrier, and that knows it (R3).
 * order.c keeps these four and nothing else may look at them. */
#ifndef MR_HAZARD_STATE_H
#define MR_HAZARD_STATE_H

#include "base/slab.h"
#include "base/vec.h"
#include "hazard/hazard.h"
#include "hazard/mutate.h"
#include "tensor/tensor.h"

typedef struct mr_hazard checker;

/* ---- clocks (clock.c) */

typedef struct {
    uint32_t slot;
    uint64_t seq;
} mark;

/* An array over slots, shared by many clocks and never changed. Slots beyond `count` are 0. */
typedef struct {
    uint32_t refs, count;
    bool in_host; /* the host knows all of it */
    uint64_t seq[];
} clock_base;

#ifndef CLOCK_DELTA
#define CLOCK_DELTA 12
#endif

/* A base and a few differences from it; shared by reference count and copied before it changes. NULL is
 * the clock that knows nothing. */
typedef struct {
    uint32_t refs, count;
    clock_base *base;
    mark delta[CLOCK_DELTA];
} vclock;

vclock *mr_hazard_clock_retain(vclock *clock); /* accepts NULL */
void mr_hazard_clock_release(checker *c, vclock *clock);
uint64_t mr_hazard_clock_get(const vclock *clock, uint32_t slot);
/* After these *clock is exclusively the caller's. */
void mr_hazard_clock_raise(checker *c, vclock **clock, uint32_t slot, uint64_t seq);
void mr_hazard_clock_merge(checker *c, vclock **into, vclock *from);
void mr_hazard_clock_to_host(checker *c, vclock *clock); /* the host learns all of it */

/* ---- actors (order.c) */

/* A stream. Outlives it while the history names it. */
typedef struct actor actor;
struct actor {
    mr_stream *stream; /* NULL: the stream is gone */
    uint32_t slot;
    uint32_t refs; /* entries and snapshots that name it, and the stream itself */
    uint32_t id;   /* the stream's */
    int device;    /* index; -1: the host */
    mr_stream_kind kind;
    bool grouped; /* takes part in the legacy barrier: the legacy stream or a blocking one */
    bool legacy;
    bool slot_given; /* its slot has been handed on */
    const char *name;
    vclock *clock;        /* what waits have brought */
    uint64_t acquired;    /* seq of the last wait that changed `clock` */
    uint64_t last;        /* seq of the last action */
    uint64_t legacy_seen; /* the last legacy action before that, for a blocking stream */
    vclock *released;     /* and what the barrier had brought by then */
    uint64_t wall_seen;   /* the last wall that it has met */
    actor *previous, *next;
};

/* What a record captured: the recording actor up to seq, and what that knew. Belongs to the event. */
typedef struct snapshot snapshot;
struct snapshot {
    actor *actor;
    uint64_t seq;
    vclock *clock;
    vclock *barrier; /* what the legacy barrier had brought, or NULL */
    uint64_t group;  /* all of the actor's group up to here */
    mr_event *event;
    mr_site where;
    bool used;    /* somebody waited, synchronised or asked */
    bool carries; /* the record itself ordered more than what it captured (R5) */
    bool timed;   /* for elapsed_time: nobody need wait for it */
    snapshot *previous, *next;
};

/* What the host knew right before a device's last synchronise. */
typedef struct {
    struct host_past *before; /* NULL: there was none */
    uint64_t seq;
    uint32_t place; /* index + 1 in `advised` */
} sync_watch;

/* The legacy barrier of a device, and two slots that stand for many streams at once. */
typedef struct {
    uint32_t group_slot;  /* the legacy stream and all blocking ones */
    uint32_t all_slot;    /* every stream of the device */
    uint64_t legacy_last; /* seq of the last legacy action */
    vclock *gathered;     /* what all blocking streams have waited for so far */
    vclock *released;     /* `gathered` as it was at the last legacy action */
    sync_watch watch;     /* for advice */
    vclock *wall;         /* R60: what the next action of every stream of the device will know */
    uint64_t wall_seq;
} barrier;

actor *mr_hazard_actor_of(checker *c, mr_stream *stream); /* NULL: out of memory */
void mr_hazard_actor_retain(actor *a);
void mr_hazard_actor_release(checker *c, actor *a);
void mr_hazard_order_open(checker *c);
void mr_hazard_order_close(checker *c); /* forgets all streams and snapshots */

bool mr_hazard_host_knows(const checker *c, const actor *a, uint64_t seq);
bool mr_hazard_clock_knows(const checker *c, const vclock *clock, const actor *a, uint64_t seq);
/* Whether an action of `t`, or of the host (`t` is &c->host_actor), comes after `a`'s action seq. */
bool mr_hazard_knows_slowly(const checker *c, const actor *t, const actor *a, uint64_t seq);

/* The same for `t`'s last action instead of its next: what waiting for `t` is worth. */
bool mr_hazard_knew(const checker *c, const actor *t, const actor *a, uint64_t seq);

/* First thing for every command, which is every action of a stream but to allocate and to free. True:
 * by this alone `t` came after more than before, or for the legacy stream other streams may have. */
bool mr_hazard_order_submitted(checker *c, actor *t, uint64_t seq);
/* R28: what is used comes after the allocation and before the free, but no order between two pieces of
 * work follows from either: when Lua's collector frees is nothing that a script can rely on. */
void mr_hazard_order_alloc(checker *c, actor *t, uint64_t seq);
void mr_hazard_order_free(checker *c, actor *t, uint64_t seq);
bool mr_hazard_order_before_free(const checker *c, const actor *t, const actor *a, uint64_t seq);
void mr_hazard_order_record(checker *c, actor *t, const mr_action *action, bool carries);
/* False: it added nothing. */
bool mr_hazard_order_wait(checker *c, actor *t, uint64_t seq, const snapshot *s);
void mr_hazard_order_stream_sync(checker *c, actor *t, uint64_t seq);
void mr_hazard_order_event_sync(checker *c, const snapshot *s);
void mr_hazard_order_device_sync(checker *c, mr_device *device, uint64_t seq);
void mr_hazard_order_peer_copy(checker *c, const mr_action *action);
snapshot *
mr_hazard_snapshot_of(const mr_action *action); /* the record that it is bound to, or NULL */
void mr_hazard_snapshot_free(checker *c, snapshot *s);

/* ---- host functions (function.c) */

/* What the host knew at a time, by slot; shared by all of which it is true. */
typedef struct host_past {
    uint32_t refs, slots;
    uint64_t floor;
    uint64_t seq[];
} host_past;

/* A host function that has been submitted and has perhaps not run: its accesses become known only
 * when it runs (R46), and may race with what was submitted before it and after it. */
typedef struct {
    actor *actor;
    uint64_t seq;
    vclock *clock;
    host_past *host;
    mr_site where;
    const char *name;
} host_function;

/* Those of one stream, in its order. */
typedef struct {
    actor *actor;
    size_t first; /* those before it have run */
    MR_VEC(host_function) items;
} function_queue;

typedef struct entry entry;

host_past *mr_hazard_past_now(checker *c); /* a reference; NULL: no memory, the checker is marked */
void mr_hazard_past_release(host_past *past); /* accepts NULL */
bool mr_hazard_past_knows(const checker *c, const host_past *past, const actor *a, uint64_t seq);

vclock *mr_hazard_order_clock_of(checker *c, actor *t); /* everything that `t` knows; a reference */
uint64_t mr_hazard_clock_reach(const checker *c, const vclock *clock, const actor *a);
void mr_hazard_function_add(checker *c, actor *t, const mr_action *action);
const host_function *mr_hazard_function_of(const checker *c, const mr_action *action);
bool mr_hazard_function_after(const checker *c, const host_function *f, const actor *a,
                              uint64_t seq);
/* Whether a function that has yet to run may race with `e` and not with what `t` does now, knowing
 * `clock`, in its place. `t` NULL: with `e` at all. */
bool mr_hazard_function_needs(const checker *c, const entry *e, const actor *t,
                              const vclock *clock);
/* Whether one was submitted since and is not ordered after `e`: the two races are reported apart. */
bool mr_hazard_function_between(const checker *c, const entry *e);
void mr_hazard_functions_drop(checker *c, bool all); /* else those that have surely run */

/* ---- accesses (view.c, history.c) */

typedef struct {
    int64_t count, stride; /* stride in bytes, > 0 */
} view_dim;

/* Bytes of a storage: runs of `run` bytes, repeated by the dims, largest stride first. Normal form: no
 * dim of one step, none that a longer run could express. */
typedef struct {
    uint64_t first, end; /* of the whole: the extent */
    uint64_t run;
    int64_t period; /* > 0: divides all strides; 0: no dims; -1: no such number */
    int ndim;
    view_dim dim[MR_MAX_DIMS];
} byte_view;

bool mr_hazard_view_of(const mr_tensor *t, byte_view *out_view);     /* false: no bytes at all */
bool mr_hazard_view_overlap(const byte_view *a, const byte_view *b); /* exact */
bool mr_hazard_view_covers(const byte_view *outer,
                           const byte_view *inner); /* true only if it does */
bool mr_hazard_view_equal(const byte_view *a, const byte_view *b);
/* Bytes that both touch, counted; 0 if that would take long. */
uint64_t mr_hazard_view_shared(const byte_view *a, const byte_view *b);

struct entry {
    actor *actor; /* one reference */
    uint64_t seq;
    uint8_t access;
    bool advisory;  /* pageable memory by an asynchronous copy: unspecified, not a hazard (R23) */
    bool large;     /* which slab */
    uint32_t at;    /* in history.entries */
    uint64_t stamp; /* of the search that met it last */
    uint64_t from, length; /* where the index has it (index.c) */
    const char *op;
    mr_site where;
    const char *tensor_name;
    vclock *clock;  /* what the actor knew, while host functions are pending; else NULL */
    byte_view view; /* only the first ndim dims are there in a small entry */
};
#define SMALL_ENTRY_DIMS 1

typedef struct view_index view_index;

typedef struct history history;
struct history {
    mr_storage *storage;
    history *previous, *next;
    entry **entries; /* `few`, or an array of its own */
    entry *few[2];
    uint32_t count, capacity;
    view_index *index;  /* NULL while there are few */
    actor *alloc_actor; /* NULL: made before the checker was on, or host memory */
    uint64_t alloc_seq;
    bool freed; /* the free has been submitted; later uses are errors before they get here */
    bool alloc_unordered; /* a use before the allocation has been reported */
};

/* Many views of one storage, found by where they lie (index.c). */
view_index *mr_hazard_index_create(history *h); /* of all its entries; NULL: out of memory */
void mr_hazard_index_destroy(view_index *index);
bool mr_hazard_index_add(view_index *index, entry *e);
void mr_hazard_index_remove(view_index *index, entry *e);
void mr_hazard_index_search(checker *c, view_index *index, const byte_view *view);

history *mr_hazard_history_of(checker *c,
                              mr_storage *storage); /* made if need be; NULL: no memory */
void mr_hazard_history_drop(checker *c, history *h);
void mr_hazard_history_drop_all(checker *c);
/* Puts the entries whose extent meets `view`'s into c->found. */
void mr_hazard_history_search(checker *c, history *h, const byte_view *view);
entry *mr_hazard_history_add(checker *c, history *h, actor *a, const byte_view *view);
void mr_hazard_history_remove(checker *c, history *h, entry *e);

/* ---- the checker itself (hazard.c, check.c) */

/* What a copy means for the host and for other streams (R20-R24, R60). */
typedef struct {
    bool host_waits; /* until it is done */
    bool staged;     /* the host waits for the stream's earlier work and reads the source itself */
    bool peer;       /* a barrier for both devices */
} copy_effect;

static inline copy_effect mr_hazard_copy_effect(const mr_action *action) {
    mr_copy_direction direction = action->u.copy.direction;
    bool synchronous = action->u.copy.synchronous;
    copy_effect r = {.peer = synchronous && direction == MR_COPY_PEER,
                     .staged = synchronous && direction == MR_COPY_H2D &&
                               action->operands[1].tensor->storage->kind == MR_MEMORY_PAGEABLE};
    r.host_waits = direction == MR_COPY_H2H ||
                   (synchronous && direction != MR_COPY_D2D && !r.peer && !r.staged);
    return r;
}

typedef struct {
    uint64_t seq;
    uint64_t bound; /* the record that a wait, sync or query was bound to */
    const char *stream_name, *event_name, *op;
    mr_site where;
    uint32_t stream, event; /* ids; 0: the host, none */
    uint32_t bound_stream;
    mr_action_kind kind;
    int device;
    int16_t peer_device[2]; /* of a copy that is a barrier for both */
    bool blocking, legacy, per_thread;
    bool synchronous; /* a copy of cudaMemcpy's kind */
    copy_effect copy; /* likewise */
    bool inside; /* an access in a host function: `seq` and place in the order are that one's */
} log_line;

/* A line that waits, records or synchronises the device, and whether it could go: only if it did
 * nothing at every occurrence, which is known at the end. */
typedef struct {
    mr_site where;
    mr_action_kind kind; /* MR_ACTION_WAIT, RECORD or DEVICE_SYNC */
    bool needed;         /* at some occurrence */
    bool fresh;          /* it occurred since the last clear */
    bool told;
    bool recorded;     /* a wait: its event had been recorded, at some occurrence */
    uint64_t seq;      /* of the first occurrence */
    uint64_t count;    /* occurrences */
    int busy;          /* a device synchronise: streams that it waited for, at most */
    uint32_t producer; /* and the one whose work was used behind it; 0: none so far */
    const char *op;
    char stream[64], event[80];
} advice_place;

typedef struct {
    uint32_t first, second; /* ids of streams, 0: the host */
    uint64_t seq;           /* an order reported as missing, up to here */
} blame;

typedef struct {
    const char *tensor;
    int kind;
    const char *file;
    int line;
    uint64_t count;
} ignore_rule;

typedef struct found_pair found_pair;

struct mr_hazard {
    mr_observer observer;
    mr_machine *machine;
    mr_hazard_hooks hooks;
    mr_hazard_mode mode, mode_before_check;
    bool advice, checking, out_of_memory;
    size_t check_first;
    mr_hazard_totals totals_before_check;
    const char *prompt; /* the file whose lines are typed at a prompt, or NULL */
    uint64_t opened;    /* what was submitted before the check, up to here */
    uint64_t off_since; /* the seq that was next when it was switched off last; 0: never */
    bool missed;        /* between two times on something was submitted */

    /* order */
    actor host_actor;
    actor *actors;       /* all of them, linked */
    snapshot *snapshots; /* likewise */
    uint64_t *host;      /* by slot: what the host knows */
    uint32_t slots, slot_capacity;
    MR_VEC(uint32_t) free_slots;
    uint32_t zombies, zombies_swept; /* actors without stream that still hold a slot */
    uint64_t floor;                  /* everything up to here counts as ordered */
    barrier *barriers;               /* by device */
    int barrier_count;
    MR_VEC(function_queue) functions; /* pending ones; no queue is empty */
    host_past *host_past;             /* the newest one; one reference */
    bool functions_may_be_done;       /* the host has waited since they were submitted */
    mr_slab clocks;

    /* history */
    history *histories;
    mr_slab history_slab, small_entries, large_entries;
    size_t entry_count;
    MR_VEC(entry *) found;
    uint64_t stamp;

    /* explaining */
    log_line *log; /* ring, by order of arrival; kept when the checker is switched off */
    uint64_t logged;
    MR_VEC(blame) blames;
    struct {
        size_t report; /* index + 1; 0: unused */
        uint32_t first, second;
        uint64_t first_seq;
    } recent[8]; /* that a later wait may explain */
    unsigned recent_next;
    MR_VEC(mr_hazard_report *) reports;
    uint32_t *places; /* hash of pairs of places to index + 1 in reports */
    uint32_t place_capacity;
    MR_VEC(ignore_rule) ignores;
    mr_hazard_totals totals, before_clear; /* since the last clear, and what was before */
    uint64_t numbered;                     /* reports, over all clears */
    mr_status
        refusal; /* error mode: what the action in progress, or the next one, is refused with */

    /* advice */
    struct {
        bool
            pending; /* an asynchronous pageable copy: advice unless a synchronise follows at once */
        uint32_t stream;
        mr_site where;
        uint64_t seq;
    } pageable;
    MR_VEC(advice_place) advised; /* in the order of the first occurrence */
    uint32_t *advised_at;         /* hash of places to index + 1 */

    /* collected tensors whose free was unordered: reported when the script does anything more */
    MR_VEC(mr_hazard_report *) collected;
};

/* Host functions touch host memory only: using the device in one is an error (R46). */
static inline bool mr_hazard_functions_reach(const checker *c, const mr_storage *storage) {
    return c->functions.count && storage->kind != MR_MEMORY_DEVICE;
}

/* Whether an action of t comes after (a, seq): the question asked on every access. */
static inline bool mr_hazard_knows(const checker *c, const actor *t, const actor *a, uint64_t seq) {
    if ((a == t && !MR_BROKEN(FIFO)) || seq <= c->floor || c->host[a->slot] >= seq) return true;
    return mr_hazard_knows_slowly(c, t, a, seq);
}

extern const mr_observer mr_hazard_observer; /* check.c */

/* ---- explaining (rules.c, reason.c, fix.c, report.c, advice.c, log.c) */

/* An unordered pair, as detection hands it over. `first` and `second` point into the history or the
 * stack and are valid only during the call. */
struct found_pair {
    mr_hazard_kind kind;
    history *history;
    const mr_tensor *tensor; /* of the second; NULL for a free */
    actor *first, *second;
    uint64_t first_seq, second_seq;
    uint8_t first_access, second_access;
    const char *first_op, *second_op;
    mr_site first_where, second_where;
    mr_site
        submitted; /* where the second was given to its stream, if that was before; or no file */
    const byte_view *first_view, *second_view; /* NULL: the whole storage */
    const char *first_name;
    const mr_action
        *action;        /* that is being looked at, with all its operands; NULL: an ALLOC or FREE */
    bool covered_other; /* the same action is ordered after another stream's work on its operands */
    bool advisory;
    bool only_look; /* error mode: it has not happened, and may be looked at again */
};

/* report.c: counts it, or reports it; whatever it may take, the pair has been found unordered. */
void mr_hazard_pair_found(checker *c, const found_pair *pair);
/* Adds to the report of this pair of places, or makes it; *out_new then. The draft gets its number and
 * count. NULL: ignored, or no room. */
mr_hazard_report *mr_hazard_report_add(checker *c, mr_hazard_report *draft, bool *out_new);
void mr_hazard_publish(checker *c, const mr_hazard_report *report);
/* check.c: what the call in progress is refused with, which is over then; MR_OK: nothing. */
mr_status mr_hazard_refuse(checker *c);
/* A wait of `t` may come after a use that was reported. */
void mr_hazard_amend(checker *c, const actor *t, const mr_action *action);

void mr_hazard_explain(const checker *c, const found_pair *pair,
                       mr_hazard_report *report); /* reason.c */
void mr_hazard_repair(const checker *c, const found_pair *pair,
                      mr_hazard_report *report); /* fix.c */

/* names.c: what a person calls it, and an expression that a script can use. */
#define NAME_SIZE 64
void mr_hazard_stream_text(const checker *c, const actor *a, char *out, size_t size);
/* An expression for it at that place; false: nothing that the script has there leads to it. */
bool mr_hazard_stream_code(const checker *c, const actor *a, const mr_hazard_spot *spot, char *out,
                           size_t size);
const char *mr_hazard_event_text(const log_line *line, char *out, size_t size);
bool mr_hazard_event_code(const checker *c, uint32_t id, const mr_hazard_spot *spot, char *out,
                          size_t size);
void mr_hazard_tensor_text(const checker *c, const found_pair *pair, mr_hazard_report *report);
bool mr_hazard_tensor_code(const checker *c, const found_pair *pair, const mr_hazard_spot *spot,
                           char *out, size_t size);
/* "race.lua:3"; without the room for it, "...ce.lua:3". What has PLACE_SIZE is always whole. */
#define PLACE_SIZE (MR_LONGEST_NAME + 16)
const char *mr_hazard_place(mr_site where, char *out, size_t size);

/* log.c */
void mr_hazard_log_action(checker *c, const mr_action *action);
void mr_hazard_log_take_back(checker *c); /* the newest: it was refused */
const log_line *mr_hazard_log_back(const checker *c,
                                   uint64_t back); /* 0: the newest; NULL: no more */
const log_line *mr_hazard_log_find(const checker *c, uint64_t seq);
/* By mr_hazard_log_back's number: what CUDA orders before that action (why.c). The caller frees it; NULL: no
 * memory. */
bool *mr_hazard_log_before(const checker *c, uint64_t seq);

/* advice.c: called only with c->advice. `carries`: see mr_hazard_order_submitted. */
void mr_hazard_advise_action(checker *c, const mr_action *action);
bool mr_hazard_advise_carries(const checker *c, const actor *t); /* for a legacy command */
void mr_hazard_advise_wait(checker *c, const mr_action *action, bool added, bool carries);
void mr_hazard_advise_record(checker *c, const mr_action *action, bool carries);
void mr_hazard_advise_used(checker *c, const snapshot *s);
void mr_hazard_advise_needed(checker *c, const actor *first, uint64_t seq);
void mr_hazard_advice_clear(checker *c);
void mr_hazard_advice_forget(checker *c);

/* lifetime.c */
void mr_hazard_alloc(checker *c, actor *t, const mr_action *action);
void mr_hazard_free_memory(checker *c, actor *t, const mr_action *action);
void mr_hazard_flush_collected(checker *c);
void mr_hazard_drop_collected(checker *c);

#endif
