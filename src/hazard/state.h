/* The structures of the checker, private to this folder.
 *
 * Time is the host's order of submission: a command's seq. "Actor i up to seq n" is then a complete
 * description of a prefix of a stream, and a clock is a map from actors to such prefixes.
 *
 * The order is stored in four places, so that the cost of a command does not depend on the number of
 * streams. A command of actor t now comes after (i, n) if any of these says so:
 *     - i is t: a stream is in order (R1);
 *     - the host knows (i, n): what the host has waited for is before everything that it submits;
 *     - t's own clock knows it, from the waits in t;
 *     - t takes part in its device's legacy barrier, and that knows it (R3).
 * Only order.c uses these four.
 *
 * Clocks. Each stream has a vector clock. For each other stream, it holds the number of that stream's last command
 * that is known to be complete. The host has a clock, too. An event record saves a copy of its stream's clock. A
 * wait, a synchronize or a successful query merges that copy into the waiting clock. So a later record does not
 * change earlier waits. The default stream's barrier is stored as two clocks for each device (one collects, one
 * releases) instead of an edge to every blocking stream. Clocks are shared until one is written (copy on write). A
 * closed stream's slot is reused.
 *
 * Epochs. An access is a pair of stream and command number. It is ordered before the current command if the current
 * stream's clock has reached that number. This is one comparison, for any number of streams. Most commands need only
 * this comparison, because the same stream uses the same view again.
 *
 * Histories. A storage has a list of the accesses that a later access may still race with. An access leaves the list
 * when a later access to the same bytes is ordered after it and replaces it. While host functions are pending, an
 * access also stays if a host function could race with it but not with its replacement (`function.c`). Strided views
 * are compared exactly. When a storage has more than a few views, an index by position is used, so a thousand
 * disjoint views cost no more than one.
 *
 * Detection is separate from reporting. The files of `find/` run for every command, and decide which pairs are
 * reported. Those of `explain/` run only for a pair that is about to be reported. They search a log of the last 4096
 * commands for the waits and records that the script did make, and describe what is missing. So an error in a sentence
 * cannot change a verdict. The headers of both, and what both use, stand beside this file.
 *
 * The place of a fix and the variables that are in scope there come from the script's text (`src/script`) and the Lua
 * stack, which tells what runs now (`bind/hazard/place.c`, `bind/hazard/variable.c`). There is one report for each pair
 * of places. Other pairs that the same fix orders are only counted. A fix covers the first stream up to a known point;
 * hazards with later work are reported separately.
 *
 * Uninitialised bytes. `unset.c` keeps which bytes no command has written, exactly, and only while a storage has
 * some: one flag of the history says so. A copy passes this state on to its destination. A read that comes after a
 * host function which has not run is judged once the function has run, in the order of submission.
 *
 * Only guarantees count. The checker uses the order of the host's calls, not the times at which they ran, and the
 * rules that CUDA guarantees. So its verdict holds for every schedule, and is the same on every backend. */
#ifndef MR_HAZARD_STATE_H
#define MR_HAZARD_STATE_H

#include "hazard/advice.h"
#include "hazard/function.h"
#include "hazard/history.h"
#include "hazard/hosts.h"
#include "hazard/log.h"
#include "hazard/mutate.h"
#include "hazard/names.h"
#include "hazard/reports.h"
#include "hazard/stretch.h"
#include "hazard/unset.h"
#include "hazard/withdraw.h"

struct mr_hazard {
    mr_observer observer;
    mr_machine *machine;
    mr_hazard_hooks hooks;
    mr_hazard_watcher watcher;
    mr_hazard_mode mode;
    uint64_t off_since; /* the seq that was next when it was made, or switched off last */
    bool off_pending;   /* there was pending work at that time */
    bool out_of_memory;
    check_part check;
    stretch apart;
    mr_hazard_totals totals, before_clear; /* since the last clear, and before it */

    /* detection */
    mr_slab clocks;
    order_part order;
    hosts_part hosts;
    functions_part functions;
    histories_part histories;
    unset_part unset;

    /* explaining */
    log_part log;
    reports_part reports;
    withdrawing_part withdrawing;
    advice_part advice;
    names_part names;
};

static inline bool mr_hazard_functions_pending(const checker *c) {
    return c->functions.queues.count != 0;
}

/* Host functions touch host memory only: using the device in one is an error (R46). */
static inline bool mr_hazard_functions_reach(const checker *c, const mr_storage *storage) {
    return mr_hazard_functions_pending(c) && storage->kind != MR_MEMORY_DEVICE;
}

/* Whether a command of t comes after (a, seq): the question asked on every access. */
static inline bool mr_hazard_knows(const checker *c, const actor *t, const actor *a, uint64_t seq) {
    if (a == t && mr_order_takes(&t->lane, MR_PLACE_LANE)) return true;
    if (seq <= c->order.floor || c->hosts.now[a->slot] >= seq) return true;
    return mr_hazard_knows_slowly(c, t, a, seq);
}

extern const mr_observer mr_hazard_observer; /* check.c */

/* touch.c. `only_look`: find hazards, change nothing. */
/* `staged`: a copy whose source, operand 1, the host has read before. */
void mr_hazard_touch_operands(checker *c, const mr_command *command, actor *a, bool staged,
                              bool only_look);
/* The host reads the source of a staged copy, behind the stream of `a`. */
void mr_hazard_read_staged(checker *c, const mr_command *command, actor *a, bool only_look);
/* HOST_ACCESS, also of a host function that runs. */
void mr_hazard_host_access(checker *c, const mr_command *command, bool only_look);

/* lifetime.c */
/* A tensor that Lua's collector took: there is no line of the script at which to raise anything. */
static inline bool mr_hazard_is_collected(const mr_command *command) {
    return command->kind == MR_COMMAND_FREE && !command->where.file;
}
void mr_hazard_alloc(checker *c, actor *t, const mr_command *command);
/* `only_look`: find hazards, change nothing. */
void mr_hazard_free_memory(checker *c, actor *t, const mr_command *command, bool only_look);

#endif
