/* The life of a checker: made in mode off, switched on and off, used for a check. */
#include "hazard/explain.h"

#include <stdlib.h>
#include <string.h>

/* ---- on and off */

static void switch_on(checker *c) {
    if (!c->log) c->log = calloc(MR_HAZARD_LOG + 1, sizeof *c->log); /* one may be taken back */
    if (!c->log) c->out_of_memory = true;
    c->logged = 0;
    c->totals.claims.count[MR_CLAIM_CLEARED] = 0;
    c->first_storage = c->machine->next_storage;
    if (c->machine->next_seq > c->off_since)
        mr_claims_add(&c->totals.claims, MR_CLAIM_SWITCHED_OFF);
    mr_hazard_order_open(c);
}

static void switch_off(checker *c) {
    c->totals.claims.count[MR_CLAIM_NOT_RUN] += mr_hazard_functions_left(c, -1);
    c->totals.claims.count[MR_CLAIM_UNFINISHED] += mr_hazard_kernels_left(c, -1);
    mr_hazard_drop_collected(c);
    mr_hazard_write_waiting(c);
    mr_hazard_withdraw_forget(c);
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
        mr_status status = c->out_of_memory ? mr_no_memory("for the hazard checker")
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
    if (c->apart.on) {
        c->apart.mode = mode;
        return MR_OK;
    }
    if (!c->checking && mode != c->mode) mr_hazard_write_waiting(c);
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
    c->totals = (mr_hazard_totals){0};
    c->floor = c->opened = c->machine->next_seq - 1;
    c->functions_may_be_done = c->functions.count > 0;
    tell_turn(c, MR_HAZARD_TURN_CHECK_BEGIN, c->mode);
    return MR_OK;
}

/* Hazards inside belong to the check. What reaches beyond its end counts outside, too. */
static void end_totals(checker *c, mr_hazard_totals *out_inside) {
    mr_hazard_totals inside = mr_hazard_get_totals(c, false);
    c->totals = c->totals_before_check;
    c->totals.checked_apart += inside.operations + inside.checked_apart;
    c->totals.explored += inside.explored;
    c->totals.stressed += inside.stressed;
    mr_claims beyond = {.where = inside.claims.where, .code = inside.claims.code};
    if (c->machine->lost) beyond.count[MR_CLAIM_FAILED] = inside.claims.count[MR_CLAIM_FAILED];
    beyond.count[MR_CLAIM_FORGOTTEN] = inside.claims.count[MR_CLAIM_FORGOTTEN];
    beyond.count[MR_CLAIM_IGNORED] = inside.claims.count[MR_CLAIM_IGNORED];
    beyond.count[MR_CLAIM_DROPPED] = inside.claims.count[MR_CLAIM_DROPPED];
    /* Who judges all of it claims no more than what was followed in its checks. */
    mr_claims_merge(&c->totals.claims, c->apart.judging ? &inside.claims : &beyond);
    if (out_inside) *out_inside = inside;
}

void mr_hazard_check_end(mr_hazard *c, size_t *out_first, mr_hazard_totals *out_inside) {
    *out_first = c->check_first;
    if (out_inside) *out_inside = (mr_hazard_totals){0};
    if (!c->checking) return;
    mr_hazard_flush_collected(c);
    end_totals(c, out_inside);
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

static void abandon_check(checker *c) {
    size_t first;
    if (!c->checking) return;
    mr_hazard_check_end(c, &first, NULL);
    mr_hazard_drop_from(c, first);
}

void mr_hazard_check_abandon(mr_hazard *c) {
    mr_hazard_apart_end(c); /* it may be in a check, and a check in it */
    abandon_check(c);
}

/* ---- work that stands apart */

mr_status mr_hazard_apart_begin(mr_hazard *c, mr_hazard_apart kind) {
    if (c->apart.on)
        return mr_fail(MR_CODE_NOT_PERMITTED, "hazard: what stands apart is not nested");
    mr_hazard_flush_collected(c); /* found before */
    MR_TRY(mr_hazard_refuse(c));
    c->apart = (stretch){.on = true,
                         .kind = kind,
                         .mode = c->checking ? c->mode_before_check : c->mode,
                         .mode_before_check = c->mode_before_check,
                         .advice = c->advice,
                         .checking = c->checking,
                         .returned = c->returned,
                         .returned_before_check = c->returned_before_check,
                         .first = c->reports.count,
                         .check_first = c->check_first,
                         .last_storage = c->machine->next_storage,
                         .totals = c->totals,
                         .totals_before_check = c->totals_before_check};
    c->advice = c->checking = c->returned = false;
    c->check_first = c->reports.count;
    c->totals = (mr_hazard_totals){0};
    if (kind == MR_HAZARD_EXPLORED) mr_hazard_unset_keep(c);
    if (c->mode != MR_HAZARD_OFF) mr_error_destroy(set_mode(c, MR_HAZARD_COLLECT)); /* on to on */
    tell_turn(
        c, kind == MR_HAZARD_EXPLORED ? MR_HAZARD_TURN_EXPLORE_BEGIN : MR_HAZARD_TURN_STRESS_BEGIN,
        c->mode);
    return MR_OK;
}

/* What ends the run or loses the device is no matter of the inside alone. */
static void count_apart(checker *c, const mr_hazard_totals *inside) {
    uint64_t operations = inside->operations + inside->checked_apart;
    mr_claims beyond = {.where = inside->claims.where, .code = inside->claims.code};
    if (c->machine->lost) beyond.count[MR_CLAIM_FAILED] = inside->claims.count[MR_CLAIM_FAILED];
    beyond.count[MR_CLAIM_INTERRUPTED] = inside->claims.count[MR_CLAIM_INTERRUPTED];
    c->totals.checked_apart += operations;
    if (c->apart.kind == MR_HAZARD_EXPLORED) c->totals.explored += operations;
    else c->totals.stressed += operations;
    mr_claims_merge(&c->totals.claims, &beyond);
}

void mr_hazard_apart_end(mr_hazard *c) {
    if (!c->apart.on) return;
    abandon_check(c); /* one inside that was left */
    mr_hazard_flush_collected(c);
    const mr_hazard_totals inside = mr_hazard_get_totals(c, false);
    mr_hazard_drop_from(c, c->apart.first);
    c->totals = c->apart.totals;
    count_apart(c, &inside);
    c->apart.on = false;
    if (c->apart.kind == MR_HAZARD_EXPLORED) mr_hazard_unset_put_back(c, c->apart.last_storage);
    c->advice = c->apart.advice;
    c->checking = c->apart.checking;
    c->returned = c->apart.returned;
    c->returned_before_check = c->apart.returned_before_check;
    c->check_first = c->apart.check_first;
    c->totals_before_check = c->apart.totals_before_check;
    c->mode_before_check = c->apart.mode_before_check;
    c->floor = c->machine->next_seq - 1;
    c->functions_may_be_done = c->functions.count > 0;
    mr_error_destroy(set_mode(c, c->apart.mode));
    tell_turn(c, MR_HAZARD_TURN_APART_END, c->mode);
}

mr_status mr_hazard_judge_begin(mr_hazard *c) {
    if (!c->apart.on || c->checking)
        return mr_fail(MR_CODE_NOT_PERMITTED, "hazard: only work that stands apart is judged so");
    c->apart.judging = true;
    c->apart.judged_in = c->mode;
    c->apart.judged_first = c->reports.count;
    c->apart.before_judged = c->totals;
    MR_TRY(set_mode(c, MR_HAZARD_COLLECT));
    c->totals = (mr_hazard_totals){0};
    c->returned = false;
    c->floor = c->opened = c->machine->next_seq - 1;
    c->functions_may_be_done = c->functions.count > 0;
    tell_turn(c, MR_HAZARD_TURN_JUDGE_BEGIN, c->mode);
    return MR_OK;
}

void mr_hazard_judge_end(mr_hazard *c, size_t *out_first, mr_hazard_totals *out_inside) {
    abandon_check(c); /* one inside that was left */
    mr_hazard_flush_collected(c);
    c->apart.judging = false;
    *out_first = c->apart.judged_first;
    *out_inside = mr_hazard_get_totals(c, false);
    c->totals.operations += c->apart.before_judged.operations;
    c->totals.checked_apart += c->apart.before_judged.checked_apart;
    c->returned = false;
    mr_error_destroy(set_mode(c, c->apart.judged_in)); /* to off, or on to on */
    tell_turn(c, MR_HAZARD_TURN_JUDGE_END, c->mode);
}

bool mr_hazard_awaits_work(const mr_hazard *c, const mr_device *device) {
    return mr_hazard_functions_left(c, device->index) || mr_hazard_kernels_left(c, device->index);
}

void mr_hazard_drained(mr_hazard *c, const mr_device *device) {
    for (actor *a = c->actors; a; a = a->next)
        if (a->device == device->index) a->launched = 0;
}

void mr_hazard_script_failed(mr_hazard *c, const mr_error *status) {
    mr_claims *claims = &c->totals.claims;
    if (claims->count[MR_CLAIM_FAILED]) return;
    if (status && !mr_code_is_interruption(status->code)) {
        claims->where = status->where;
        claims->code = status->code;
    }
    mr_claims_add(claims, !status                                 ? MR_CLAIM_STOPPED
                          : mr_code_is_interruption(status->code) ? MR_CLAIM_INTERRUPTED
                                                                  : MR_CLAIM_FAILED);
}

bool mr_hazard_checking(const mr_hazard *c) {
    return c->checking;
}

void mr_hazard_set_prompt(mr_hazard *c, const char *prefix) {
    c->prompt = prefix;
}

void mr_hazard_set_script(mr_hazard *c, const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    c->script = path;
    c->folder_size = slash ? (size_t)(slash - path) + 1 : 0;
}

/* ---- create, destroy */

mr_status mr_hazard_create(mr_machine *machine, const mr_hazard_hooks *hooks,
                           mr_hazard **out_hazard) {
    checker *c = calloc(1, sizeof *c);
    *out_hazard = NULL;
    if (!c) return mr_no_memory("for the hazard checker");
    c->machine = machine;
    c->off_since = machine->next_seq;
    c->barrier_count = machine->device_count;
    c->barriers = calloc((size_t)machine->device_count, sizeof *c->barriers);
    if (!c->barriers) {
        free(c);
        return mr_no_memory("for the hazard checker");
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
    mr_vec_free(&c->replaced);
    mr_vec_free(&c->collected);
    mr_vec_free(&c->free_slots);
    mr_vec_free(&c->functions);
    mr_vec_free(&c->unset_events);
    mr_hazard_withdraw_forget(c);
    mr_vec_free(&c->touched);
    mr_vec_free(&c->open_pairs);
    mr_hazard_before_forget(c);
    mr_map_free(&c->places);
    mr_hazard_log_free(c);
    mr_hazard_advice_forget(c);
    mr_slab_destroy(&c->clocks);
    mr_slab_destroy(&c->history_slab);
    mr_slab_destroy(&c->small_entries);
    mr_slab_destroy(&c->large_entries);
    free(c->barriers);
    free(c);
}
