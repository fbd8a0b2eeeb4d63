/* The parts of a machine. The comment of each part names the file that owns it: that file changes the part, others read
 * it. It also says whether a checkpoint copies the part. */
#ifndef MR_MODEL_MACHINE_PARTS_H
#define MR_MODEL_MACHINE_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slab.h"
#include "base/status.h"
#include "base/vec.h"

typedef struct mr_storage mr_storage;
typedef struct mr_command mr_command;
typedef struct mr_observer mr_observer;
typedef struct mr_history mr_history;
typedef struct mr_captures mr_captures;
typedef struct mr_loan mr_loan;

/* Numbers given out so far, and counts of objects (command.c, stream.c, event.c, storage.c, tensor.c). In a
 * checkpoint. */
typedef struct {
    uint64_t next_seq;    /* of the next command; starts at 1 */
    uint32_t next_stream; /* ids count from 1 over all devices, in order of creation */
    uint32_t next_event;
    uint64_t next_storage;
    uint64_t next_tensor;
    uint32_t open_streams, open_events; /* that the backend holds, the default streams among them */
} mr_machine_counts;

/* mr.manual_seed (machine.c, command.c). In a checkpoint. */
typedef struct {
    uint64_t seed;
    uint64_t draws; /* random operations since then: the Philox offset of the next one */
} mr_machine_random;

/* Pinned and pageable storages (storage.c). In a checkpoint. */
typedef struct {
    uint64_t live_bytes;
    uint64_t peak_bytes;
    uint64_t allocations;   /* live ones */
    uint64_t since_collect; /* bytes allocated since bind/ last ran the collector for them */
} mr_host_memory;

/* When memory is short (storage.c). */
typedef struct {
    uint64_t limit;         /* --sandbox: device + host bytes that may be live at once; 0: none */
    uint64_t collect_after; /* bytes for which bind/ runs the collector; the backend may raise it */
    bool collecting; /* the collect hook runs, in the middle of an allocation: no reset then */
    bool collect_before_wait; /* once, and then false: see mr_host_gives_way */
    uint64_t crossings;       /* commands that used memory of another stream */
    /* All new host memory is zero, so that a function that runs again finds the same values. Clearing a MiB costs 50
     * us, so other programs clear only memory that a script can read unwritten (mr_storage_begin_zero). */
    bool host_begins_zero;
    /* Storages up to this number stay, even if the collector drops them, until the run of a function is over: another
     * run may use them. 0: there are none. */
    uint64_t stay_until_end;
    MR_VEC(mr_storage *) deferred_frees; /* dropped by the collector, and not to be freed by now */
} mr_machine_memory;

/* Steps back and forward (history.c). */
typedef struct {
    mr_history *history; /* NULL: no step has been made */
    uint64_t limit;      /* bytes that checkpoints may take */
    bool watches_writes; /* of the host, too: a simulator has checkpoints */
    /* The checkpoints belong to a history of steps, so restoring one changes device memory only (history.h). */
    bool host_stays;
} mr_machine_steps;

/* Data that a body keeps from its first slice to its last, and cannot keep in its state, since they are not plain
 * bytes. */
typedef struct {
    const mr_command *command;
    void *data;
    void (*destroy)(void *data);
} mr_body_note;

/* How the bodies of commands run (command.c). */
typedef struct {
    bool skipped; /* a simulator's: only times are of interest, so nothing is computed */
    bool quiet;   /* output of kernels is not shown */
    /* commands already ran on another machine, which handled their output and counts */
    bool replayed;
    MR_VEC(mr_body_note) notes;
} mr_machine_bodies;

/* The running host function (machine.c, R46); calls that use the device are refused meanwhile. */
typedef struct {
    bool running;
    const mr_command *command; /* its accesses count as its stream's */
} mr_machine_function;

/* Captures that have begun (capture.h). */
typedef struct {
    uint32_t open;    /* begun and not ended */
    uint64_t next_id; /* ids count from 1 */
    mr_captures *all; /* NULL: none ever began */
} mr_machine_captures;

/* Objects of one kind that an earlier call of a function has made, between its beginning and its end. */
typedef struct {
    uint64_t older;   /* ids up to this one are older than the first call */
    uint64_t earlier; /* so many ids after them are those of earlier calls */
} mr_earlier_calls;

/* Numbers as people read them (explore/keep.c): of a function that is called again and again, each call counts its
 * objects from the same number on. Ids stay unique. */
typedef struct {
    mr_earlier_calls streams, events, graphs;
} mr_machine_numbers;

static inline uint64_t mr_shown_number(const mr_earlier_calls *calls, uint64_t id) {
    return id > calls->older + calls->earlier ? id - calls->earlier : id;
}

/* Memory of the objects (command.c, storage.c, tensor.c). */
typedef struct {
    mr_slab commands;
    mr_slab storages;
    mr_slab tensors;
    mr_storage *newest_storage; /* and by it all others; see mr_storage_at */
} mr_machine_objects;

/* The observers (observer.c). */
typedef struct {
    MR_VEC(mr_observer *) observers;
    unsigned ran_listeners;        /* observers that have a `ran` */
    unsigned everything_listeners; /* observers that ask for everything */
    uint64_t runs_told;            /* to observers; less again after a restored checkpoint */
    /* > 0: observers are asked or told of a command, or one of them asks about the script */
    unsigned telling;
    /* Some were told of the script's commands instead of the launch that replaced them (observer.h). */
    bool wrote;
} mr_machine_observing;

/* The host's total time inside calls: waiting for a device, working with memory, or skipped by a chooser. */
typedef struct {
    uint64_t total;      /* nanoseconds so far */
    uint64_t begin, end; /* the last one */
} mr_host_times;

/* Accesses of memory that the device may use, while the host's clock stood still (storage.c). */
typedef struct {
    uint64_t count;
    uint64_t at; /* nanoseconds */
} mr_host_looks;

/* The host's times by action (storage.c, and backends by mr_machine_host_stood, _followed and _worked). */
typedef struct {
    mr_host_times waits;
    mr_host_times follows;  /* a chooser moved the device on, and the host's clock with it */
    mr_host_times works;    /* copied, filled or computed; only while there are observers */
    mr_host_times makes;    /* likewise: made memory of the host, which may be pinned */
    uint64_t access_end;    /* likewise: when the host began its last work of that kind */
    const mr_storage *made; /* by the last of those; only its address counts */
    mr_host_looks looks;
} mr_machine_host;

/* See hosts.h. */
typedef struct mr_host_chooser mr_host_chooser;
typedef struct mr_host_ask mr_host_ask;
typedef struct {
    mr_host_chooser *chooser; /* not owned; NULL: no chooser */
    const mr_host_ask *asks;  /* not owned; NULL: a query is the script's own */
    /* With several hosts and a chooser: lets others go on. Returns when this host does. Otherwise NULL. */
    void (*give_way)(void *context, mr_site where);
    void *context;
} mr_machine_hosts;

/* Objects that code outside of millrace can reach (outside.c). */
typedef struct {
    bool used;                   /* something is shared, or was */
    uint32_t loans;              /* that were begun and not taken back */
    _Atomic(mr_loan *) returned; /* given back, by any thread */
} mr_machine_outside;

/* The program that embeds the machine sets these functions; each may be NULL. */
typedef struct {
    void *context;
    /* Polled while waiting: true ends the wait with INTERRUPTED. */
    bool (*interrupted)(void *context);
    /* True: the interruption was a single Ctrl-C, which is cleared; the interrupted work then returns its results so
     * far. False: all running work must end. */
    bool (*take_interrupt)(void *context);
    /* memory is short: collects garbage; then the allocation is tried again */
    void (*collect)(void *context);
    /* At the end of mr_machine_close, for each kind of object ("tensors") with some that were not released: a
     * reference was lost. No tool for leaks sees it, since they lie in slabs that are freed as a whole. */
    void (*left_over)(const char *kind, size_t count);
} mr_machine_hooks;

#endif
