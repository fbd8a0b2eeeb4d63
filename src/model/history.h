/* The history of steps: what mr_machine_back returns to. Before each step that a person asks for, a checkpoint of the
 * simulated device is made; going back restores one.
 *
 * A checkpoint covers only the device. So a call ends the history if it changes what the host or the model knows of the
 * device. Such calls are a submission, a completed wait, a query that said yes, a new stream, a setting, and a write to
 * host memory that the device may use. The next step begins a new history. Three kinds of actions do not end it and are
 * not taken back: accesses to the host's own memory, closing an object, and dropping one by the collector
 * (machine->steps.host_stays). Device memory that the collector drops meanwhile is freed with the next submission.
 *
 * Easiest to break: a function of the model that changes the device by another way than a step and does not call
 * mr_history_end first.
 *
 * Stepping back. `mr.machine.back` restores such a checkpoint, made before each step (`model/history.h`). It takes back
 * the device, not the script. So a checkpoint of a step does not change what belongs to the host. It frees and
 * allocates no host memory, and keeps the contents of host memory that was made later. A call by which the host or the
 * model learns something of the device (a submission, a wait, a query that says yes) ends the history. The records of
 * the model could not follow. Memory that Lua's collector drops meanwhile is freed with the next submission, so a
 * collection does not end it. */
#ifndef MR_MODEL_HISTORY_H
#define MR_MODEL_HISTORY_H

#include "model/simulator.h"

/* Bounds. `steps` 0: no history is kept. The oldest steps are forgotten. */
struct mr_history_limits {
    bool always;    /* under every chooser; false: only under "manual" */
    uint32_t steps; /* that can be undone */
    uint64_t bytes; /* of the host's memory that it may take */
};

mr_history_limits mr_history_limits_of(const mr_machine *machine);
/* Ends the history. Refused in a host function. */
mr_status mr_history_set_limits(mr_machine *machine, const mr_history_limits *limits);

/* How many steps can be undone now. *out_why: a sentence on what ended the history last, or ""; valid until the next
 * call. */
uint32_t mr_history_count(const mr_machine *machine, const char **out_why);

/* The host is about to do, or has just done, something that a step back cannot undo: the history ends there. `what`:
 * "add_". */
void mr_history_end_now(mr_machine *machine, const char *what, mr_site where);
static inline void mr_history_end(mr_machine *machine, const char *what, mr_site where) {
    if (__builtin_expect(machine->steps.host_stays, 0)) mr_history_end_now(machine, what, where);
}
/* The same for a write to host memory; it does nothing if no checkpoint covers that memory. */
void mr_history_host_writes(mr_machine *machine, const char *what, mr_site where,
                            const mr_storage *storage);

/* Around a step: _before makes a checkpoint if a history is wanted, and _after keeps it if something has moved. */
void mr_history_before(mr_machine *machine);
void mr_history_after(mr_machine *machine, bool moved);

/* Undoes up to `count` steps, and returns how many. Also works if the device was lost meanwhile; it is then usable
 * again. */
mr_status mr_history_back(mr_machine *machine, uint32_t count, uint32_t *out_undone);

void mr_history_free(mr_machine *machine);

#endif
