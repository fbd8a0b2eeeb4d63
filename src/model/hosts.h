/* Several hosts on one machine, one of them running at a time: ranks of one process (collective/ranks.h), or tasks
 * (lua/millrace/tasks.lua).
 *
 * Ranks: if several can continue, a host chooser decides which one does, as the explorer does. Without a chooser, each
 * continues until it cannot. Tasks query the device in turns, and the first one with the answer yes goes on. So for
 * tasks the open choice is the answers. */
#ifndef MR_MODEL_HOSTS_H
#define MR_MODEL_HOSTS_H

#include "model/machine.h"

#define MR_HOST_CHOICE_MOST 64

/* The ranks that can continue. Without a chooser, the first one continues. */
typedef struct {
    uint32_t count; /* at least 2 */
    uint32_t numbers[MR_HOST_CHOICE_MOST];
    /* Bit i: number i is about to wait; the others have something to do first. */
    uint64_t waits;
    mr_site where; /* the wait that the first one is about to make; no file: none */
} mr_host_choice;

struct mr_host_chooser {
    uint32_t (*choose)(mr_host_chooser *chooser, const mr_host_choice *choice); /* an index */
};

/* A task that waits asks whether it may go on; mr_machine_hosts.asks, while it calls a query. */
struct mr_host_ask {
    uint32_t task; /* its number, from 1 on */
    /* It does not ask again before a task has gone on. */
    bool once;
    /* All others got no, and no task has gone on since: if this one gets no, too, time must pass. */
    bool last;
};

/* The index of the host that goes on. */
static inline uint32_t mr_host_choose(const mr_machine *machine, const mr_host_choice *choice) {
    mr_host_chooser *chooser = machine->hosts.chooser;
    return chooser && choice->count > 1 ? chooser->choose(chooser, choice) : 0;
}

/* Collects the script's garbage; does not recurse if called from finalizers. */
void mr_machine_collect(mr_machine *machine);
/* Whether the command uses memory of another stream that a collector may free in this run, maybe while it is in use.
 * False for ranks: the process frees a rank's remaining memory only after the end of all ranks. */
bool mr_command_crosses(const mr_command *command);
/* Requests a collection if so. A full one costs as much as thousands of commands. So collections are frequent at the
 * beginning, and get rarer in a long program. This is decided by the number of commands, not by a clock. */
void mr_command_asks_collector(const mr_command *command);

/* Call this where the host is about to wait for the device, to query it, or to touch memory that the device may use.
 * Other hosts may go on meanwhile. It is also the last moment at which a collector could free memory that this wait
 * would protect. An observer that looks for such frees asks for a collection here
 * (mr_machine_memory.collect_before_wait). Costs two comparisons if there is no chooser and no request.
 *
 * Other hosts and finalizers may close, free and reset, and make other streams current. So a call gives way before it
 * checks its objects and before it looks for a current stream. */
static inline void mr_host_gives_way(mr_machine *machine, mr_site where) {
    if (__builtin_expect(machine->memory.collect_before_wait, 0)) mr_machine_collect(machine);
    if (__builtin_expect(machine->hosts.give_way != NULL, 0))
        machine->hosts.give_way(machine->hosts.context, where);
}

/* The same for a call that needs the device: as mr_machine_ready. */
static inline mr_status mr_host_comes(const mr_caller *caller) {
    MR_TRY(mr_machine_ready(caller->machine));
    mr_host_gives_way(caller->machine, caller->where);
    return mr_machine_ready(caller->machine);
}

#endif
