/* The calls of a group, private to this folder. */
#ifndef MR_COLLECTIVE_CALLS_H
#define MR_COLLECTIVE_CALLS_H

#include <string.h>

#include "base/buffer.h"
#include "collective/comm.h"

/* One rank's call, with a reference to each object that it names. */
typedef struct {
    mr_collective_call ask;
    mr_site where;
    const char *name; /* "all_reduce", "send" */
    /* the graph's node whose launch makes the call; one reference; NULL: none */
    const mr_command *node;
    /* for a node: where its graph was launched; from another process also without `node` */
    mr_site launched;
    uint8_t launch; /* for a node: MR_LAUNCH_FIRST or _REST */
    uint32_t host;  /* the rank that called, from 1; 0: none (machine->rank) */
    bool is_ready;  /* its group has ended */
    bool submitted; /* or found for a meeting that is about to be */
    bool refused;   /* its meeting was not submitted, because of an error */
    uint32_t round; /* the round of the world in which other ranks got it; 0: not yet */
} pending_call;

/* A call of a rank that was submitted; no name: none was. */
typedef struct {
    const char *name;
    mr_site where, launched;
} made_call;

/* Where the calls of several hosts are matched. */
typedef struct {
    /* Commands submitted from now on use the clock of this host (pending_call.host), until the next call. The last call
     * is for the host that runs. */
    void (*turn)(mr_collectives *collectives, uint32_t host);
    /* If hosts are processes: called after member `own` is submitted. Waits until it has begun, and until the bytes and
     * times of the others have arrived. `commands`, `hosts`: by member. */
    mr_status (*meet)(mr_collectives *collectives, mr_meeting *meeting, mr_command *const *commands,
                      const uint32_t *hosts, uint32_t own);
} mr_hosts;

struct mr_collectives {
    mr_machine *machine;
    uint32_t cliques;       /* made so far */
    uint32_t depth;         /* the depth of nested groups of the running rank */
    struct mr_ranks *ranks; /* while ranks of this process run (ranks.h); else NULL */
    struct mr_world *world; /* once this process has joined a world (world.h); else NULL */
    uint32_t own_host;      /* with `world`: this process, as in pending_call.host */
    mr_comm *own_comm;      /* likewise: the communicator of all ranks; borrowed */
    const mr_hosts *hosts;  /* with ranks or a world; else NULL */
    mr_status not_joined;   /* why this process could not join a world; NULL: it never failed to */
    mr_clique *newest;      /* of the list of all; not owned */
    struct kept_cliques *kept; /* between mr_collectives_keep and _let_go; else NULL (keep.c) */
    MR_VEC(pending_call) calls;
    made_call last[MR_MEETING_MOST]; /* of each rank that runs, or ran last */
    /* Makes the calls of a group when a graph is launched (mr_captured_call). */
    mr_status (*launch)(const mr_caller *caller, const mr_launched_call *calls, uint32_t count,
                        bool begun);
};

/* How a process gets more devices. */
#define MR_MORE_DEVICES                                                                            \
    "start millrace with --device virtual:%u, or a Lua that loads the module with "                \
    "MILLRACE_DEVICE=virtual:%u"

/* Whether calls of other ranks may still come. */
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
/* Drops the calls of a host, from index `first` on. Releasing an object never calls back into this list. */
void mr_collectives_drop(mr_collectives *collectives, size_t first, uint32_t host);

/* captured.c: calls on streams that capture become nodes of a graph */
/* Whether the calls of the running host are captured; an error if only some are. */
mr_status mr_collectives_are_captured(const mr_collectives *collectives, bool *out_are);
/* At the end of a group. Now checks what depends only on the ranks of one process; the rest is checked at each
 * launch. */
mr_status mr_collectives_capture(mr_collectives *collectives);

/* comm.c */
/* "communicator `ring`"; returns `out`. */
const char *mr_clique_describe(const mr_clique *clique, char *out, size_t size);
/* The script's number for that rank of the communicator: its number there or, if ranks run, its number in the world. */
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
/* check.c: the checks that are possible only at the end of the running host's group. */
mr_status mr_collectives_check_group(const mr_collectives *collectives);

/* match.c */
/* "train.lua:12"; for a call of a graph also ", launched at train.lua:30". Returns `out`. */
#define MR_COLLECTIVE_PLACE 320
const char *mr_collective_place(const pending_call *call, char *out, size_t size);
/* Checks that the calls match; submits nothing. */
mr_status mr_collectives_match(mr_collectives *collectives);
/* Makes a meeting of each set of calls that belong together and submits it; forgets those calls. If ranks run, the
 * peers of a call may come later, and the call stays in the list; otherwise missing peers are an error. The meeting of
 * an error, and those after it, are not submitted: their calls stay in the list, and those of the former are `refused`.
 * If the calls do not match, no meeting was submitted, and no call is refused. */
mr_status mr_collectives_settle(mr_collectives *collectives);
/* For a call that was not submitted: the ranks without a matching call, as bits. */
uint64_t mr_collectives_missing(mr_collectives *collectives, size_t call);

/* ranks.c: called at the end of the running rank's group. Returns once all its calls are submitted. */
mr_status mr_ranks_settle(mr_collectives *collectives);

/* deadlock.c */
/* The error if no rank can continue: for each waiting rank its place, and the ranks that it waits for. `ended`: as
 * bits. */
mr_status mr_hosts_deadlock(mr_collectives *collectives, uint32_t count, uint64_t ended);
/* Appends the place where host `number` (from 0) waits, if it waits. */
void mr_host_tell(mr_collectives *collectives, uint32_t number, mr_buffer *out);

/* world.c: the same as mr_ranks_separated and mr_ranks_settle, where the ranks are processes. */
mr_status mr_world_separated(const mr_collectives *collectives);
mr_status mr_world_settle(mr_collectives *collectives);
/* Whether this rank may call it. */
mr_status mr_world_check(const pending_call *call);

#endif
