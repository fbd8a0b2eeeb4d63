/* The calls of a group, private to this folder. */
#ifndef MR_COLLECTIVE_CALLS_H
#define MR_COLLECTIVE_CALLS_H

#include <string.h>

#include "base/buffer.h"
#include "collective/comm.h"

/* One rank's call, with a reference to all that it names. */
typedef struct {
    mr_collective_call ask;
    mr_site where;
    const char *name;       /* "all_reduce", "send" */
    const mr_command *node; /* of a graph, whose launch makes the call; one reference; NULL: none */
    mr_site launched;       /* with it: where; in another process without it */
    uint8_t launch;         /* with it: MR_LAUNCH_FIRST or _REST */
    uint32_t host;          /* the rank that called, from 1; 0: none (machine->rank) */
    bool is_ready;          /* its group has ended */
    bool submitted;
    uint32_t round; /* of a world, in which it was made known; 0: not yet */
} pending_call;

/* A call of a rank that was submitted; no name: none was. */
typedef struct {
    const char *name;
    mr_site where, launched;
} made_call;

/* Where the calls of several hosts are matched. */
typedef struct {
    /* Commands that are submitted from now on are on the clock of this host (pending_call.host), until it is the turn
     * of another. Ends with the host that runs. */
    void (*turn)(mr_collectives *collectives, uint32_t host);
    /* Where hosts are processes: member `own` is submitted. Waits until it has begun, and until the bytes and times of
     * the others are there. `commands`, `hosts`: by member. */
    mr_status (*meet)(mr_collectives *collectives, mr_meeting *meeting, mr_command *const *commands,
                      const uint32_t *hosts, uint32_t own);
} mr_hosts;

struct mr_collectives {
    mr_machine *machine;
    uint32_t cliques;       /* made so far */
    uint32_t depth;         /* of groups, of the rank that runs */
    struct mr_ranks *ranks; /* while there are some (ranks.h) */
    struct mr_world *world; /* once this process has joined one (world.h) */
    uint32_t own_host;      /* with it: of this process, as in pending_call.host */
    mr_comm *own_comm;      /* likewise, of all ranks; borrowed */
    const mr_hosts *hosts;  /* with either; else NULL */
    mr_status not_joined;   /* why this process could not join a world; NULL: it never failed to */
    mr_clique *newest;      /* of the list of all; not owned */
    struct kept_cliques *kept; /* between mr_collectives_keep and _let_go; else NULL (keep.c) */
    MR_VEC(pending_call) calls;
    made_call last[MR_MEETING_MOST]; /* of each rank that runs, or ran last */
    /* Makes the calls of a group, for graphs (mr_captured_call). */
    mr_status (*launch)(const mr_caller *caller, const mr_launched_call *calls, uint32_t count,
                        bool begun);
};

/* How a process gets so many devices. */
#define MR_MORE_DEVICES                                                                            \
    "start millrace with --device virtual:%u, or a Lua that loads the module with "                \
    "MILLRACE_DEVICE=virtual:%u"

/* Calls of other ranks may come later. */
static inline bool mr_collectives_have_ranks(const mr_collectives *c) {
    return c->ranks || c->world;
}

/* The name of a call, and how many elements a unit of it has (ops/collective.h). */
const char *mr_collective_name(const mr_collective_call *call);
int64_t mr_collective_count(const mr_collective_call *call);
mr_dtype mr_collective_dtype(const mr_collective_call *call);

/* Calls by which ranks meet to make a group, to begin again, or to wait, match only each other (comm.h). */
static inline bool mr_collective_is_named(const pending_call *call, const char *name) {
    return strcmp(call->name, name) == 0;
}

/* group.c: checks the call and collects it, as mr_collective_ask does. Takes no reference of `call`. */
mr_status mr_collective_collect(mr_collectives *collectives, const pending_call *call);

/* captured.c: calls on streams that capture become nodes of a graph */
/* Whether those of the host that runs are; an error where only some are. */
mr_status mr_collectives_are_captured(const mr_collectives *collectives, bool *out_are);
/* At the end of a group. Facts that only the ranks of one process tell are checked now, the rest at each launch. */
mr_status mr_collectives_capture(mr_collectives *collectives);

/* comm.c */
/* "communicator `ring`"; returns `out`. */
const char *mr_clique_describe(const mr_clique *clique, char *out, size_t size);
/* The script's number for that rank of the communicator: its number there; where ranks run, in the world. */
uint32_t mr_clique_rank(const mr_clique *clique, uint32_t rank);
/* Its number among all ranks that run: rank k of one process runs on device k. */
uint32_t mr_clique_host(const mr_clique *clique, uint32_t rank);
void mr_ranks_tell(uint64_t ranks, mr_buffer *out); /* "ranks 1, 3" of a set of bits */
void mr_collective_forget(pending_call *call);      /* gives back its references */
mr_status mr_clique_new(mr_collectives *c, uint32_t size, const char *name, mr_clique **out_clique);
void mr_clique_unlink(mr_clique *clique); /* from its owner's list */
/* Opens the backend's part, once all ranks have their handles. */
mr_status mr_clique_connect(mr_clique *clique);
void mr_clique_release(mr_clique *clique);                                 /* accepts NULL */
mr_comm *mr_comm_new(mr_clique *clique, uint32_t rank, mr_device *device); /* NULL: no memory */

/* check.c: whether a rank may ask for it at all. */
mr_status mr_collective_check(const mr_collective_call *call);
/* check.c: what only the end of the group of the host that runs can tell. */
mr_status mr_collectives_check_group(const mr_collectives *collectives);

/* match.c */
/* "train.lua:12", ", launched at train.lua:30" where it is of a graph; returns `out`. */
#define MR_COLLECTIVE_PLACE 320
const char *mr_collective_place(const pending_call *call, char *out, size_t size);
/* Whether they belong together; submits nothing. */
mr_status mr_collectives_match(mr_collectives *collectives);
/* Makes a meeting of each set of calls that belong together and submits it; forgets those calls. Where ranks
 * run, the peers of a call may come later, and it stays; else that is an error. An error: nothing was submitted, or
 * memory is out. */
mr_status mr_collectives_settle(mr_collectives *collectives);
/* The ranks that have no call to match this one, which was not submitted; as bits. */
uint64_t mr_collectives_missing(mr_collectives *collectives, size_t call);

/* ranks.c: the group of the rank that runs has ended. Returns once all its calls are submitted. */
mr_status mr_ranks_settle(mr_collectives *collectives);

/* deadlock.c */
/* The error if no rank can continue: which rank waits where for which ranks. `ended`: as bits. */
mr_status mr_hosts_deadlock(mr_collectives *collectives, uint32_t count, uint64_t ended);
/* Appends where host `number` waits, from 0, if it does. */
void mr_host_tell(mr_collectives *collectives, uint32_t number, mr_buffer *out);

/* world.c: the same as mr_ranks_separated and mr_ranks_settle, where the ranks are processes. */
mr_status mr_world_separated(const mr_collectives *collectives);
mr_status mr_world_settle(mr_collectives *collectives);
/* Whether this rank may call it. */
mr_status mr_world_check(const pending_call *call);

#endif
