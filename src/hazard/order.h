/* The order of commands: what each stream is ordered after. Only order.c uses the fields that hold clocks. */
#ifndef MR_HAZARD_ORDER_H
#define MR_HAZARD_ORDER_H

#include "base/vec.h"
#include "hazard/clock.h"
#include "order/order.h"

/* A stream. Outlives it while the history names it. */
typedef struct actor actor;
struct actor {
    mr_stream *stream; /* NULL: the stream is gone */
    uint32_t slot;
    uint32_t refs; /* entries and snapshots that name it, and the stream itself */
    uint32_t id;   /* the stream's */
    int device;    /* index; -1: the host */
    mr_stream_kind kind;
    mr_order_lane lane; /* the guaranteed rules for its commands */
    bool grouped;       /* it takes part in the default stream's barrier, by `lane` */
    bool legacy;
    bool slot_given;   /* its slot has been handed on */
    mr_name *name;     /* one reference, or NULL */
    vclock *clock;     /* what its waits have ordered before it */
    uint64_t acquired; /* seq of the last wait that changed `clock` */
    uint64_t last;     /* seq of the last command */
    /* and of the last one that was not only a record or similar mark; for advice */
    uint64_t worked;
    uint64_t did;         /* the same without waits, which only pass on the work of others */
    uint64_t launched;    /* seq of its last command whose accesses become known when it runs */
    uint32_t idle_wait;   /* index + 1 in `advised`, if its last command was a wait at that place */
    uint64_t legacy_seen; /* the last legacy command before that, for a blocking stream */
    vclock *released;     /* and what the barrier had brought by then */
    uint64_t device_barrier_seen; /* the last device barrier that it has passed */
    actor *previous, *next;
};

/* The contents of a record: the recording actor up to seq, and all that this actor knew. Belongs to the event. */
typedef struct snapshot snapshot;
struct snapshot {
    actor *actor;
    uint64_t seq;
    uint64_t known_as; /* the number by which waits name it, if another one; otherwise 0 */
    vclock *clock;
    vclock *barrier; /* what the legacy barrier had brought, or NULL */
    uint64_t group;  /* all of the actor's group up to here */
    mr_event *event;
    mr_site where;
    uint64_t worked; /* the actor's, when it was recorded */
    bool used;       /* a wait, a synchronise or a query used it */
    bool carries;    /* the record itself ordered more than what it captured (R5) */
    bool timed;      /* for elapsed_time: needed even without a wait */
    snapshot *previous, *next;
};

/* The last collective of a communicator on a device (in_flight.c). */
typedef struct {
    uint32_t communicator;
    uint64_t number; /* as in mr_meeting */
    actor *actor;    /* one reference */
    uint64_t seq;
    bool counted;
    uint32_t beside; /* a communicator whose last collective here may run beside it; 0: none */
    mr_site where;
    char name[32], title[48]; /* of the call, and of the communicator */
} in_flight;

/* The host's knowledge right before a device's last synchronise. */
typedef struct {
    struct host_past *before; /* NULL: there was none */
    uint64_t seq;
    uint32_t place; /* index + 1 in `advised` */
} sync_watch;

/* The legacy barrier of a device, and two slots that stand for many streams at once. */
typedef struct {
    uint32_t group_slot;  /* the legacy stream and all blocking ones */
    uint32_t all_slot;    /* every stream of the device */
    uint64_t legacy_last; /* seq of the last legacy command */
    vclock *gathered;     /* what all blocking streams have waited for so far */
    vclock *released;     /* `gathered` as it was at the last legacy command */
    sync_watch watch;     /* for advice */
    /* R60: the clock that the next command of every stream of the device will merge */
    vclock *device_barrier;
    uint64_t device_barrier_seq;
} barrier;

/* The streams, and what orders them; what the hosts know is in hosts.h. */
typedef struct {
    actor host_actor;
    actor *actors;       /* all of them, linked */
    snapshot *snapshots; /* likewise */
    /* for each member of the meeting in progress: its predecessors */
    snapshot *entered;
    uint32_t entered_size; /* by member; a member that has not entered has no actor */
    /* seq of the last meeting that orders only some of its ranks, though the virtual GPU ends it on all at once */
    uint64_t ends_together;
    MR_VEC(in_flight) in_flight; /* by communicator and device */
    uint32_t slots, slot_capacity;
    MR_VEC(uint32_t) free_slots;
    uint32_t zombies, zombies_swept; /* actors without stream that still hold a slot */
    uint64_t floor;                  /* everything up to here counts as ordered */
    uint64_t opened;                 /* what was submitted before the check, up to here */
    barrier *barriers;               /* by device */
    int barrier_count;
} order_part;

actor *mr_hazard_actor_of(checker *c, mr_stream *stream); /* NULL: out of memory */
void mr_hazard_actor_retain(actor *a);
void mr_hazard_actor_release(checker *c, actor *a);
void mr_hazard_actor_lose(checker *c, actor *a); /* its stream is gone, with its reference */
bool mr_hazard_order_create(checker *c);         /* false: out of memory */
void mr_hazard_order_destroy(checker *c);
void mr_hazard_order_open(checker *c);
void mr_hazard_order_close(checker *c); /* forgets all streams and snapshots */
/* all submitted work counts as ordered before later work */
void mr_hazard_order_restart(checker *c);
/* the launches there have reported their accesses */
void mr_hazard_order_drained(checker *c, int device);

bool mr_hazard_host_knows(const checker *c, const actor *a, uint64_t seq);
bool mr_hazard_all_know(const checker *c, const actor *a, uint64_t seq); /* every host does */
bool mr_hazard_clock_knows(const checker *c, const vclock *clock, const actor *a, uint64_t seq);
/* Whether a command of `t`, or of the host (`t` is &c->order.host_actor), comes after `a`'s command seq. */
bool mr_hazard_knows_slowly(const checker *c, const actor *t, const actor *a, uint64_t seq);

/* R3: whether each command of `t` comes after all earlier commands of `a`. */
bool mr_hazard_gathers_from(const actor *t, const actor *a);

/* Like mr_hazard_knows, but for `t`'s last command instead of its next one: what a wait for `t` covers. */
bool mr_hazard_knew(const checker *c, const actor *t, const actor *a, uint64_t seq);

/* R28: uses of memory come after its allocation and before its free, but neither orders two other commands. A script
 * cannot rely on the time at which Lua's collector frees. */
void mr_hazard_order_alloc(checker *c, actor *t, uint64_t seq);
void mr_hazard_order_free(checker *c, actor *t, uint64_t seq);
bool mr_hazard_order_before_free(const checker *c, const actor *t, const actor *a, uint64_t seq);
void mr_hazard_order_record(checker *c, actor *t, const mr_command *command, bool carries);
/* False: it added nothing. */
bool mr_hazard_order_wait(checker *c, actor *t, uint64_t seq, const snapshot *s);
/* R61: a member of a meeting has entered. Once the last one has, each comes after the predecessors of the members whose
 * data it gets. */
void mr_hazard_order_meet(checker *c, actor *t, const mr_command *command);
/* in_flight.c: notes the member for the rule about room on a device (R64a). Call it before mr_hazard_order_meet. */
void mr_hazard_in_flight_note(checker *c, actor *t, const mr_command *command);
void mr_hazard_order_stream_sync(checker *c, actor *t, uint64_t seq);
void mr_hazard_order_event_sync(checker *c, const snapshot *s);
void mr_hazard_order_device_sync(checker *c, mr_device *device, uint64_t seq);
/* Updates the order for a command before its accesses: by the legacy barrier, and for a peer copy by R60. True: the
 * barrier alone ordered `t` after more work; for the legacy stream, it may have ordered other streams after more. */
bool mr_hazard_order_before(checker *c, actor *t, const mr_command *command);

/* A copy of the state that mr_hazard_order_before changes, so that one can ask what a command would come after. */
typedef struct {
    actor *actor;
    actor was;
    uint32_t barriers;
    struct {
        barrier *at, was;
    } barrier[4]; /* of its stream's device; of a wall's, three at most */
} order_before;
void mr_hazard_order_save(const checker *c, actor *t, const mr_command *command,
                          order_before *out_before);
void mr_hazard_order_restore(checker *c, order_before *before);

/* The record that a wait or a synchronise is bound to; NULL: it is not known. */
static inline snapshot *mr_hazard_snapshot_of(const mr_command *command) {
    snapshot *s = (snapshot *)command->u.event.event->observed;
    uint64_t bound = command->u.event.record_seq;
    return s && bound && (s->seq == bound || s->known_as == bound) ? s : NULL;
}
void mr_hazard_snapshot_free(checker *c, snapshot *s);

#endif
