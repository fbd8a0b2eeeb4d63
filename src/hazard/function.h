/* Host functions that were submitted and may not have run yet: their accesses become known only when they
 * run (R46). */
#ifndef MR_HAZARD_FUNCTION_H
#define MR_HAZARD_FUNCTION_H

#include "base/vec.h"
#include "hazard/order.h"

/* The host's knowledge at a time, by slot; shared by all functions for which it is the same. */
typedef struct host_past {
    uint32_t refs, slots;
    uint64_t floor;
    uint64_t seq[];
} host_past;

/* A host function that has been submitted and has perhaps not run. Its accesses become known only
 * when it runs (R46), and may race with what was submitted before it and after it. */
typedef struct {
    actor *actor;
    uint64_t seq;
    vclock *clock;
    host_past *host;
    mr_site where;
    const char *name;
    bool ran;
} host_function;

/* Those of one stream, in its order. */
typedef struct {
    actor *actor;
    size_t first; /* those before it have run */
    MR_VEC(host_function) items;
} function_queue;

typedef struct {
    MR_VEC(function_queue) queues; /* pending ones; no queue is empty */
    host_past *past;               /* the newest one; one reference */
    bool may_be_done;              /* the host has waited since these were submitted */
    uint64_t noted;                /* up to here they are counted, if they have to be */
} functions_part;

typedef struct entry entry;

host_past *mr_hazard_past_now(checker *c); /* a reference; NULL: no memory, the checker is marked */
void mr_hazard_past_release(host_past *past); /* accepts NULL */
bool mr_hazard_past_knows(const checker *c, const host_past *past, const actor *a, uint64_t seq);

vclock *mr_hazard_order_clock_of(checker *c, actor *t); /* everything that `t` knows; a reference */
uint64_t mr_hazard_clock_reach(const checker *c, const vclock *clock, const actor *a);
void mr_hazard_function_add(checker *c, actor *t, const mr_command *command);
const host_function *mr_hazard_function_of(const checker *c, const mr_command *command);
bool mr_hazard_function_after(const checker *c, const host_function *f, const actor *a,
                              uint64_t seq);
/* Whether a pending function may race with `e`, but not with the current access of `t`, whose clock is `clock`. `t`
 * NULL: whether one may race with `e` at all. */
bool mr_hazard_function_needs(const checker *c, const entry *e, const actor *t,
                              const vclock *clock);
/* Whether a function was submitted after `e` and is not ordered after it. Then the two races are reported
 * separately. */
bool mr_hazard_function_between(const checker *c, const entry *e);
/* all: every one; otherwise those that have surely run */
void mr_hazard_functions_drop(checker *c, bool all);
void mr_hazard_functions_destroy(checker *c);
void mr_hazard_functions_waited(checker *c); /* the host has waited: pending ones may have run */
/* Counts, once each, the host functions that may run before or after this action of the host. */
void mr_hazard_functions_note(checker *c, const mr_command *command);
/* The judged code has returned without a wait: counts the pending functions. */
void mr_hazard_functions_note_rest(checker *c);
void mr_hazard_function_ran(checker *c, const mr_command *command);
/* The number of functions that will still run, on the device with that index; < 0: on any. */
uint64_t mr_hazard_functions_left(const checker *c, int device);
bool mr_hazard_functions_left_before(const checker *c, uint64_t seq);

#endif
