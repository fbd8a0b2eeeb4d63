/* Bytes that nothing has written yet, and what reads them. */
#ifndef MR_HAZARD_UNSET_H
#define MR_HAZARD_UNSET_H

#include "hazard/history.h"

typedef struct unset unset;

/* One access, or one copy, as it is judged once all host functions before it have run. */
typedef struct {
    uint64_t seq;
    history *history, *from;  /* `from`: the source of a copy; NULL: it is none */
    mr_tensor tensor, source; /* copies; one that is kept holds the storages and the first's name */
    mr_name *op_name;         /* as in an entry */
    uint8_t access;
    bool
        at_most; /* of a user's kernel: it touches no more than these bytes, in one run, and maybe fewer */
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

void mr_hazard_unset_begin(history *h); /* nothing has written it yet */
void mr_hazard_unset_drop(history *h);
/* To be called for a command of whose operands one at least is watched. */
void mr_hazard_unset_command(checker *c, const mr_command *command, const unset_use *use);
void mr_hazard_unset_apply_deferred(checker *c); /* a host function has run */
void mr_hazard_unset_forget(checker *c);         /* what waits for one */

#endif
