/* Communicators and their calls, as NCCL has them (R61-R67). The calls of all ranks are matched and become meetings
 * (model/meeting.h), whose commands go to the ranks' streams together.
 *
 * A clique is a set of devices of one machine; each rank of it has a handle, its communicator. A call is one rank's
 * part in one operation. Calls are collected until the outermost group ends; without a group each is matched at
 * once. The k-th collectives of all ranks of a clique make one meeting (R62). Connected sends and receives of a
 * group make one, too. Nothing is submitted before all calls of the group have found their peers. So a mistake is an
 * error at the call, with the lines of the ranks, and not a device that hangs. */
#ifndef MR_COLLECTIVE_COMM_H
#define MR_COLLECTIVE_COMM_H

#include "base/vec.h"
#include "model/command.h"
#include "tensor/dtype.h"

typedef struct mr_clique mr_clique;
typedef struct mr_collectives mr_collectives;
typedef struct mr_split mr_split;

typedef struct mr_comm mr_comm;
struct mr_comm {
    uint32_t refs;
    mr_clique *clique; /* one reference */
    uint32_t rank;
    mr_device *device;
    /* All operations of a communicator run one after the other (R64a): the stream of the last one, and a record after
     * it. One reference each. */
    mr_stream *last;
    mr_event *done;
    bool closed;
};

struct mr_clique {
    uint32_t refs;
    mr_clique *previous, *next; /* of its machine's; the newest first */
    mr_collectives *owner;      /* NULL: gone */
    uint32_t size;
    uint32_t id; /* of the machine's communicators, from 1 */
    uint32_t epoch;
    bool aborted;
    uint32_t group; /* its number in the world + 1 (world.h); 0: it belongs to this process alone */
    uint32_t hosts[MR_MEETING_MOST]; /* for a group of a world: the world's number of each rank */
    bool is_held;        /* for match.c: an operation of it waits for ranks that have not come */
    uint64_t operations; /* so far */
    mr_machine *machine;
    mr_split *split; /* a split that not all ranks have asked for yet; one reference, or NULL */
    mr_name *name;   /* one reference; NULL: unnamed */
    void *link;      /* of the backend; NULL: it needs none */
    mr_comm **comms; /* by rank; not owned; NULL: destroyed */
    mr_device *devices[MR_MEETING_MOST]; /* by rank */
};

/* The collected calls of one machine. */
mr_status mr_collectives_new(mr_machine *machine, mr_collectives **out_collectives);
void mr_collectives_free(mr_collectives *collectives); /* accepts NULL */

/* For a function that is called several times and must find the same state each time (mr.explore). `keep` saves the
 * state of all communicators, `put_back` restores it, and `let_go` drops it. The work of the last run must be complete.
 * One saved state at a time. OUT_OF_MEMORY. */
mr_status mr_collectives_keep(mr_collectives *collectives);
void mr_collectives_put_back(mr_collectives *collectives);
void mr_collectives_let_go(mr_collectives *collectives); /* also without `keep` */

/* One communicator for each device, in this order (ncclCommInitAll): a handle each, which the caller owns. A device
 * may be in it once (R67). NOT_SUPPORTED: real devices, and no NCCL. */
mr_status mr_comms_create(mr_collectives *collectives, mr_device *const *devices, uint32_t count,
                          const char *name, mr_comm **out_comms);
/* A rank's part in splitting its clique into smaller ones (ncclCommSplit). Ranks with the same color make one, in the
 * order of their keys and then of their ranks; with a negative color it is in none. Complete once all ranks have asked.
 * NOT_SUPPORTED: several ranks run (ranks.h). The caller owns one reference to *out_split, unless it is NULL. */
mr_status mr_comm_split(mr_collectives *collectives, mr_comm *comm, int64_t color, int64_t key,
                        mr_split **out_split);
/* False: not all ranks have asked. Then *out_comm is the rank's new handle, once, which the caller owns, or NULL. */
bool mr_split_take(mr_split *split, uint32_t rank, mr_comm **out_comm);
void mr_split_release(mr_split *split); /* accepts NULL */
/* The same where each rank is a process, and this one has `device`. The backend's part is left to the caller. */
mr_status mr_comms_of_processes(mr_collectives *collectives, mr_device *device, uint32_t count,
                                const char *name, mr_comm **out_comms);
void mr_comm_retain(mr_comm *comm);
void mr_comm_release(mr_comm *comm); /* accepts NULL */
void mr_comm_close(mr_comm *comm);   /* R67; submitted work continues; idempotent */
void mr_comm_reopen(mr_comm *comm);  /* undoes the close by the same rank */
void mr_comm_abort(mr_comm *comm);   /* the whole clique: later calls fail */
/* NULL, or why it cannot be used: it is closed, aborted, or from before a reset. */
mr_status mr_comm_usable(const mr_comm *comm, const char *operation);
/* "rank 1 of communicator `ring`"; returns `out`. */
const char *mr_comm_describe(const mr_comm *comm, char *out, size_t size);

typedef enum { MR_PEER_NONE, MR_PEER_SEND, MR_PEER_RECV } mr_peer_way;

/* The call of one rank. Tensors are contiguous, on the rank's device, and of the sizes that ops/collective.h gives. */
typedef struct {
    mr_comm *comm;
    mr_collective what; /* EXCHANGE with `way`: one send or recv */
    mr_peer_way way;
    mr_redop redop;
    uint32_t root;     /* a rank; of a send and a recv, the peer */
    mr_tensor *in;     /* NULL: no input (recv; broadcast, except on the root) */
    mr_tensor *out;    /* NULL: no output (send; reduce, except on the root); may be `in` */
    mr_stream *stream; /* NULL: the current one of its device */
} mr_collective_call;

/* The names of calls (mr_caller) by which ranks meet to make a group, to begin again, or to wait for each other. */
#define MR_COLLECTIVE_GROUP   "new_group"
#define MR_COLLECTIVE_INIT    "init"
#define MR_COLLECTIVE_BARRIER "barrier"

/* Checks and collects the call; outside groups it also calls mr_collectives_settle. */
mr_status mr_collective_ask(mr_collectives *collectives, const mr_caller *caller,
                            const mr_collective_call *call);

/* Begins a group. Groups nest; only the end of the outermost submits. Returns the number of calls collected before. */
size_t mr_collectives_begin(mr_collectives *collectives);
mr_status mr_collectives_end(mr_collectives *collectives);
/* Ends a group in which an error was raised: forgets its calls, those from `first` on. A group around it goes on. */
void mr_collectives_cancel(mr_collectives *collectives, size_t first);
bool mr_collectives_in_group(const mr_collectives *collectives);
/* The first call of the group that is collected on the stream, or, with NULL, on the device. False: none. */
bool mr_collectives_collected(const mr_collectives *collectives, const mr_stream *stream,
                              const mr_device *device, const char **out_name, mr_site *out_where);

#endif
