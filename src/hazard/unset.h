/* Unwritten bytes, and reads of them. */
#ifndef MR_HAZARD_UNSET_H
#define MR_HAZARD_UNSET_H

#include "hazard/history.h"

typedef struct unset unset;

/* One access, or one copy, as it is judged once all host functions before it have run. */
typedef struct {
    uint64_t seq;
    history *history, *from;  /* `from`: the source of a copy; NULL: not a copy */
    mr_tensor tensor, source; /* copies; one that is kept holds the storages and the first's name */
    mr_name *op_name;         /* as in an entry */
    uint8_t access;
    /* by a user's kernel, which touches at most these bytes, in one run */
    bool at_most;
    bool guessed; /* and maybe it does not read at all */
    bool may_set; /* it also writes to the tensor, so it may read its own value */
    bool only_look;
    actor *actor;
    const char *op;
    mr_site where;
} unset_event;

typedef struct {
    actor *actor;
    uint64_t seq;
    const char *op;
    mr_site where;
    bool only_look;
} unset_use;

/* What had not been written before a launch: one bit a byte of the storage. */
typedef struct {
    uint64_t seq;
    const mr_storage *storage;
    uint8_t *bits; /* malloc */
    size_t size;
} unset_before;

typedef struct {
    MR_VEC(unset_event) events;  /* by seq */
    MR_VEC(unset_before) before; /* of launches that have not begun */
    size_t before_bytes;
} unset_part;

void mr_hazard_unset_begin(history *h); /* nothing has written it yet */
void mr_hazard_unset_drop(history *h);
/* An exploration restores the bytes of earlier memory, so unwritten bytes become unwritten again. `last`: the last
 * storage that existed at its start. */
void mr_hazard_unset_keep(checker *c);
void mr_hazard_unset_put_back(checker *c, uint64_t last);
void mr_hazard_unset_drop_kept(history *h);
/* Call this for a command with at least one watched operand. */
void mr_hazard_unset_command(checker *c, const mr_command *command, const unset_use *use);
void mr_hazard_unset_apply_deferred(checker *c); /* a host function has run */
/* drops the accesses that wait for a host function */
void mr_hazard_unset_forget(checker *c);
void mr_hazard_unset_destroy(checker *c);

/* unset_before.c */
bool mr_hazard_before_wanted(const checker *c, uint64_t seq, const mr_storage *storage);
void mr_hazard_before_keep(checker *c, uint64_t seq, const mr_storage *storage,
                           uint8_t *bits);            /* owns bits; NULL: no memory */
void mr_hazard_before_drop(checker *c, uint64_t seq); /* they will not be asked for any more */
void mr_hazard_before_forget(checker *c);
/* mr_observer.unset */
uint8_t *mr_hazard_unset_before(mr_observer *observer, const mr_command *command,
                                const mr_storage *storage);

#endif
