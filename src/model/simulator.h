/* What a simulated device can do beyond a real one: be stepped, looked into, set. The slots behind
 * `mr.machine`. */
#ifndef MR_MODEL_SIMULATOR_H
#define MR_MODEL_SIMULATOR_H

#include "model/machine.h"

/* One pending action, as `mr.machine.queues()` shows it. */
typedef struct {
    const mr_action *action;
    bool running;               /* started, not finished */
    bool ready;                 /* could run next: all it waits for is done */
    const mr_action *waits_for; /* a pending action of another stream that it waits for, or NULL */
} mr_pending;

typedef struct {
    const char *name; /* "launch_queue_depth" */
    const char *type; /* "integer", "boolean", "bytes" */
    const char *help; /* one sentence, with the rule */
} mr_setting_info;

typedef struct mr_simulator {
    /* "timed", "adversarial", "random:SEED", "manual". Legal at any time: pending work goes on under
     * the new one. Unknown names: invalid-argument with the list of known ones. */
    mr_status (*set_chooser)(mr_machine *machine, const char *name);
    const char *(*chooser)(mr_machine *machine);

    /* Makes the device take one step of `stream` (NULL: whatever the chooser picks). *out_action is
     * what moved, valid until the next call, or NULL when nothing can; *out_finished: it is done (the
     * action is then already destroyed and only its description in `out_text` is left). */
    mr_status (*step)(mr_machine *machine, mr_stream *stream, bool *out_moved, char *out_text,
                      size_t text_size);

    /* Calls `see` for each pending action: streams in order of creation, oldest first in each. */
    void (*pending)(mr_machine *machine, void (*see)(void *context, const mr_pending *pending),
                    void *context);

    uint64_t (*device_time)(mr_machine *machine); /* nanoseconds: how far the devices have got */

    /* A name ("h200"), or a path to a model file. Only while nothing is pending and no device memory
     * is live, else not-permitted. */
    mr_status (*set_model)(mr_machine *machine, const char *name);
    const char *(*model)(mr_machine *machine);

    /* Settings: what CUDA leaves open ([M] rules), one documented default each. */
    const mr_setting_info *(*settings)(size_t *out_count);
    mr_status (*get_setting)(mr_machine *machine, const char *name, int64_t *out_value);
    mr_status (*set_setting)(mr_machine *machine, const char *name, int64_t value);
} mr_simulator;

#endif
