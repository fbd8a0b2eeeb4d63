/* Several hosts on one machine, one of them running at a time: ranks of one process (collective/ranks.h), or tasks
 * (lua/millrace/tasks.lua).
 *
 * Ranks: if several can continue, a host chooser decides which one does, as the explorer does. Without a chooser, each
 * continues until it cannot. Tasks ask the device in turns, and the first one that is told yes goes on. So
 * there the answers are open. */
#ifndef MR_MODEL_HOSTS_H
#define MR_MODEL_HOSTS_H

#include "model/machine.h"

#define MR_HOST_CHOICE_MOST 64

/* The ranks that can continue. Without a chooser, the first one continues. */
typedef struct {
    uint32_t count; /* at least 2 */
    uint32_t numbers[MR_HOST_CHOICE_MOST];
    /* Bit i: number i stands in front of a wait; the others have something to do first. */
    uint64_t waits;
    mr_site where; /* the wait that the first one stands in front of; no file: none */
} mr_host_choice;

struct mr_host_chooser {
    uint32_t (*choose)(mr_host_chooser *chooser, const mr_host_choice *choice); /* an index */
};

/* A task that waits asks whether it may go on; mr_machine_hosts.asks, while it calls a query. */
struct mr_host_ask {
    uint32_t task; /* its number, from 1 on */
    /* It does not ask again before a task has gone on. */
    bool once;
    /* All others have been told no, and no task has gone on since: if this one is, too, time goes by. */
    bool last;
};

/* The index of who goes on. */
static inline uint32_t mr_host_choose(const mr_machine *machine, const mr_host_choice *choice) {
    mr_host_chooser *chooser = machine->hosts.chooser;
    return chooser && choice->count > 1 ? chooser->choose(chooser, choice) : 0;
}

/* Drops what is garbage of the script, once where this is called from its own finalizers. */
void mr_machine_collect(mr_machine *machine);
/* Whether the command uses memory of another stream that a collector may free in this run, maybe while it is in use.
 * Not for ranks: what one of them has left behind at its end, the process frees at the end of all. */
bool mr_command_crosses(const mr_command *command);
/* Asks for a collection if so. A full one costs as much as thousands of commands. So there are some at the beginning,
 * and fewer and fewer in a program that goes on and on. Commands are counted for that: the clock decides nothing. */
void mr_command_asks_collector(const mr_command *command);

/* Call this where the host is about to wait for the device, to query it, or to touch memory that the device may use.
 * Other hosts may go on meanwhile. It is also the last moment at which a collector could free memory that this wait
 * would protect. An observer that looks for such frees asks for a collection here
 * (mr_machine_memory.collect_before_wait). Costs two comparisons where nobody chooses or asks. */
static inline void mr_host_gives_way(mr_machine *machine, mr_site where) {
    if (__builtin_expect(machine->memory.collect_before_wait, 0)) mr_machine_collect(machine);
    if (__builtin_expect(machine->hosts.give_way != NULL, 0))
        machine->hosts.give_way(machine->hosts.context, where);
}

#endif
