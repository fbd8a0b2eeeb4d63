/* The life of a checker: made in mode off, switched on and off, used for a check. */
#include "hazard/explain.h"

#include <stdlib.h>

/* ---- on and off */

static void switch_on(checker *c) {
    if (!c->log) c->log = calloc(MR_HAZARD_LOG + 1, sizeof *c->log); /* one may be taken back */
    if (!c->log) c->out_of_memory = true;
    c->logged = 0;
    c->totals.cleared = 0;
    c->first_storage = c->machine->next_storage;
    if (c->off_since && c->machine->next_seq > c->off_since) c->missed = true;
    mr_hazard_order_open(c);
}

static void switch_off(checker *c) {
    c->totals.not_run += mr_hazard_functions_left(c, -1);
    mr_hazard_drop_collected(c);
    mr_hazard_history_drop_all(c);
    mr_hazard_order_close(c);
    mr_error_destroy(c->refusal);
    c->refusal = MR_OK;
    c->pageable.pending = false;
    c->off_since = c->machine->next_seq;
}

static void tell_turn(const checker *c, mr_hazard_turn turn, mr_hazard_mode mode) {
    if (c->watcher.turned) c->watcher.turned(c->watcher.context, turn, mode);
}

void mr_hazard_watch(mr_hazard *c, const mr_hazard_watcher *watcher) {
    c->watcher = watcher ? *watcher : (mr_hazard_watcher){0};
}

static mr_status set_mode(mr_hazard *c, mr_hazard_mode mode) {
    if (c->checking) { /* takes effect when the check ends */
        c->mode_before_check = mode;
        return MR_OK;
    }
    if (c->mode == MR_HAZARD_OFF && mode != MR_HAZARD_OFF) {
        switch_on(c);
        mr_status status = c->out_of_memory
                               ? mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for the hazard checker")
                               : mr_observer_add(c->machine, &c->observer);
        c->out_of_memory = false;
        if (status) {
            switch_off(c);
            return status;
        }
    } else if (c->mode != MR_HAZARD_OFF && mode == MR_HAZARD_OFF) {
        switch_off(
            c); /* may release the last reference to a storage: the observer must hear of that */
        mr_observer_remove(c->machine, &c->observer);
    }
    c->mode = mode;
    return MR_OK;
}

mr_status mr_hazard_set_mode(mr_hazard *c, mr_hazard_mode mode) {
    MR_TRY(set_mode(c, mode));
    tell_turn(c, MR_HAZARD_TURN_MODE, mode);
    return MR_OK;
}

mr_hazard_mode mr_hazard_get_mode(const mr_hazard *c) {
    return c->mode;
}

mr_status mr_hazard_check_begin(mr_hazard *c) {
    if (c->checking)
        return mr_fail(
            MR_CODE_NOT_PERMITTED,
            "hazard.check: not permitted inside another check; call the function itself");
    mr_hazard_mode before = c->mode;
    mr_hazard_flush_collected(c); /* found before the check: not its own */
    MR_TRY(mr_hazard_refuse(c));
    MR_TRY(set_mode(c, MR_HAZARD_COLLECT));
    c->checking = true;
    c->returned_before_check = c->returned;
    c->returned = false;
    c->mode_before_check = before;
    c->check_first = c->reports.count;
    c->totals_before_check = c->totals;
    c->floor = c->opened = c->machine->next_seq - 1;
    c->functions_may_be_done = c->functions.count > 0;
    tell_turn(c, MR_HAZARD_TURN_CHECK_BEGIN, c->mode);
    return MR_OK;
}

void mr_hazard_check_end(mr_hazard *c, size_t *out_first) {
    *out_first = c->check_first;
    if (!c->checking) return;
    mr_hazard_flush_collected(c);
    mr_hazard_totals inside = c->totals;
    c->totals = c->totals_before_check;
    c->totals.ignored = inside.ignored;
    c->totals.forgotten = inside.forgotten;
    c->totals.dropped = inside.dropped; /* its list is not whole: that must be told somewhere */
    c->totals.checked_apart += inside.operations - c->totals.operations;
    c->checking = false;
    c->returned = c->returned_before_check;
    c->check_first = 0;
    mr_error_destroy(set_mode(c, c->mode_before_check)); /* to off, or on to on: no failure */
    tell_turn(c, MR_HAZARD_TURN_CHECK_END, c->mode);
}

/* What was collected before is reported when anything comes after it: after a check the script goes on. */
void mr_hazard_returned(mr_hazard *c) {
    if (!c->checking) mr_hazard_drop_collected(c);
    c->returned = true;
    tell_turn(c, MR_HAZARD_TURN_RETURNED, c->mode);
}

void mr_hazard_check_abandon(mr_hazard *c) {
    size_t first;
    if (!c->checking) return;
    mr_hazard_check_end(c, &first);
    mr_hazard_drop_from(c, first);
}

bool mr_hazard_awaits_function(const mr_hazard *c, const mr_device *device) {
    return mr_hazard_functions_left(c, device->index) > 0;
}

bool mr_hazard_checking(const mr_hazard *c) {
    return c->checking;
}

void mr_hazard_set_prompt(mr_hazard *c, const char *prefix) {
    c->prompt = prefix;
}

/* ---- create, destroy */

mr_status mr_hazard_create(mr_machine *machine, const mr_hazard_hooks *hooks,
                           mr_hazard **out_hazard) {
    checker *c = calloc(1, sizeof *c);
    *out_hazard = NULL;
    if (!c) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for the hazard checker");
    c->machine = machine;
    c->barrier_count = machine->device_count;
    c->barriers = calloc((size_t)machine->device_count, sizeof *c->barriers);
    if (!c->barriers) {
        free(c);
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for the hazard checker");
    }
    if (hooks) c->hooks = *hooks;
    c->observer = mr_hazard_observer;
    mr_slab_init(&c->clocks, sizeof(vclock), 64);
    mr_slab_init(&c->history_slab, sizeof(history), 128);
    size_t head = offsetof(entry, view) + offsetof(byte_view, dim);
    mr_slab_init(&c->small_entries, head + SMALL_ENTRY_DIMS * sizeof(view_dim), 128);
    mr_slab_init(&c->large_entries, sizeof(entry), 64);
    *out_hazard = c;
    return MR_OK;
}

void mr_hazard_destroy(mr_hazard *c) {
    if (!c) return;
    mr_hazard_check_abandon(c);
    mr_error_destroy(mr_hazard_set_mode(c, MR_HAZARD_OFF));
    mr_hazard_clear(c);
    mr_hazard_clear_ignores(c);
    mr_vec_free(&c->reports);
    mr_vec_free(&c->held);
    mr_vec_free(&c->ignores);
    mr_vec_free(&c->blames);
    mr_vec_free(&c->found);
    mr_vec_free(&c->collected);
    mr_vec_free(&c->free_slots);
    mr_vec_free(&c->functions);
    mr_vec_free(&c->unset_events);
    mr_hazard_before_forget(c);
    free(c->places);
    mr_hazard_log_free(c);
    mr_hazard_advice_forget(c);
    mr_slab_destroy(&c->clocks);
    mr_slab_destroy(&c->history_slab);
    mr_slab_destroy(&c->small_entries);
    mr_slab_destroy(&c->large_entries);
    free(c->barriers);
    free(c);
}
