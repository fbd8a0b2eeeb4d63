/* The history of steps: see history.h. */
#include "model/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/backend.h"

#define DEFAULT_STEPS 4096
#define DEFAULT_BYTES ((uint64_t)256 << 20)

struct mr_history {
    mr_history_limits limits;
    MR_VEC(mr_checkpoint *) steps; /* one before each step, the oldest first */
    bool pending;                  /* the newest is of the step that is being carried out */
    char why[320];
};

static const mr_simulator *simulator_of(const mr_machine *machine) {
    return machine->backend->simulator;
}

/* NULL: no memory. */
static mr_history *history_of(mr_machine *machine) {
    if (!machine->steps.history) {
        machine->steps.history = calloc(1, sizeof *machine->steps.history);
        if (machine->steps.history)
            machine->steps.history->limits =
                (mr_history_limits){.steps = DEFAULT_STEPS, .bytes = DEFAULT_BYTES};
    }
    return machine->steps.history;
}

/* ---- the end */

static void drop_all(mr_machine *machine) {
    mr_history *h = machine->steps.history;
    if (!h || !h->steps.count) return;
    h->pending = false;
    machine->steps.host_stays = false;
    while (h->steps.count) simulator_of(machine)->checkpoint_drop(machine, mr_vec_pop(&h->steps));
}

void mr_history_end_now(mr_machine *machine, const char *what, mr_site where) {
    mr_history *h = machine->steps.history;
    if (!h) return;
    char place[160] = "";
    if (where.file) snprintf(place, sizeof place, " at %.120s:%d", where.file, where.line);
    snprintf(h->why, sizeof h->why,
             "the history begins after `%.80s`%s: a step can be undone, a call of the host cannot",
             what, place);
    drop_all(machine);
}

/* Only the newest checkpoint is asked: memory that it does not know is unknown to all. */
void mr_history_host_writes(mr_machine *machine, const char *what, mr_site where,
                            const mr_storage *storage) {
    if (!machine->steps.host_stays || machine->host_function.running) return;
    if (simulator_of(machine)->is_new(machine, storage)) return;
    mr_history_end_now(machine, what, where);
}

void mr_history_free(mr_machine *machine) {
    drop_all(machine);
    if (machine->steps.history) mr_vec_free(&machine->steps.history->steps);
    free(machine->steps.history);
    machine->steps.history = NULL;
}

/* ---- limits */

mr_history_limits mr_history_limits_of(const mr_machine *machine) {
    if (machine->steps.history) return machine->steps.history->limits;
    return (mr_history_limits){.steps = DEFAULT_STEPS, .bytes = DEFAULT_BYTES};
}

mr_status mr_history_set_limits(mr_machine *machine, const mr_history_limits *limits) {
    mr_history *h = history_of(machine);
    if (machine->host_function.running)
        return mr_fail(MR_CODE_NOT_PERMITTED, "history: not permitted inside a host function");
    if (!h) return mr_no_memory("for a history");
    mr_history_end(machine, "mr.machine.history", (mr_site){0});
    h->limits = *limits;
    return MR_OK;
}

uint32_t mr_history_count(const mr_machine *machine, const char **out_why) {
    const mr_history *h = machine->steps.history;
    *out_why = h ? h->why : "";
    return h ? (uint32_t)h->steps.count : 0;
}

/* Forgets the older half at a time, which costs little per step. */
static void keep_limits(mr_machine *machine) {
    mr_history *h = machine->steps.history;
    for (;;) {
        size_t bytes = simulator_of(machine)->checkpoint_bytes(machine), count = h->steps.count;
        if (bytes <= h->limits.bytes && count <= h->limits.steps) return;
        bool many = bytes <= h->limits.bytes;
        snprintf(h->why, sizeof h->why,
                 many ? "older steps were forgotten: the history keeps %" PRIu64
                        " steps (mr.machine.history{steps=})"
                      : "older steps were forgotten: the history keeps %" PRIu64
                        " bytes (mr.machine.history{bytes=})",
                 many ? (uint64_t)h->limits.steps : h->limits.bytes);
        if (bytes == SIZE_MAX || count <= 1) {
            drop_all(machine);
            return;
        }
        size_t forgotten = many ? count - h->limits.steps : count / 2;
        if (many && forgotten < h->limits.steps / 4) forgotten = h->limits.steps / 4;
        if (!forgotten) forgotten = 1;
        simulator_of(machine)->checkpoint_forget(machine, h->steps.items[forgotten]);
        memmove(h->steps.items, h->steps.items + forgotten,
                (count - forgotten) * sizeof *h->steps.items);
        h->steps.count -= forgotten;
    }
}

/* ---- steps */

/* Checkpoints of others (a player that is searching) are below no history: going back to one would free its memory. */
static bool is_wanted(mr_machine *machine) {
    if (!machine->steps.host_stays && machine->steps.watches_writes) return false;
    const mr_history *h = history_of(machine);
    if (!h || !h->limits.steps) return false;
    return h->limits.always || strcmp(simulator_of(machine)->chooser(machine), "manual") == 0;
}

void mr_history_before(mr_machine *machine) {
    if (!is_wanted(machine)) return;
    mr_history *h = machine->steps.history;
    mr_checkpoint *checkpoint = NULL;
    machine->steps.limit = h->limits.bytes;
    mr_status status = simulator_of(machine)->checkpoint_step(machine, &checkpoint);
    if (!status && mr_vec_push(&h->steps, checkpoint)) {
        h->pending = machine->steps.host_stays = true;
        return;
    }
    if (checkpoint) simulator_of(machine)->checkpoint_drop(machine, checkpoint);
    mr_error_destroy(status);
    mr_history_end(machine, "no memory for a checkpoint", (mr_site){0});
}

void mr_history_after(mr_machine *machine, bool moved) {
    mr_history *h = machine->steps.history;
    if (!h || !h->pending) return; /* no history, or the step has ended it */
    h->pending = false;
    if (moved) {
        keep_limits(machine);
        return;
    }
    mr_checkpoint *newest = mr_vec_pop(&h->steps);
    if (!h->steps.count) machine->steps.host_stays = false;
    simulator_of(machine)->checkpoint_drop(machine, newest);
}

mr_status mr_history_back(mr_machine *machine, uint32_t count, uint32_t *out_undone) {
    mr_history *h = machine->steps.history;
    *out_undone = 0;
    if (machine->host_function.running)
        return mr_fail(MR_CODE_NOT_PERMITTED, "back: not permitted inside a host function");
    if (!h || !h->steps.count || !count) return MR_OK;
    uint32_t undone = count < h->steps.count ? count : (uint32_t)h->steps.count;
    mr_checkpoint *target = h->steps.items[h->steps.count - undone];
    MR_TRY(simulator_of(machine)->restore(machine, target));
    h->steps.count -= undone;
    if (!h->steps.count) machine->steps.host_stays = false;
    simulator_of(machine)->checkpoint_drop(machine, target);
    *out_undone = undone;
    return MR_OK;
}
