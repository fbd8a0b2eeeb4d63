/* The life of a checker: made in mode off, switched on and off, used for a check. */
#include "hazard/explain.h"

#include <stdlib.h>
#include <string.h>

/* ---- on and off */

static void switch_on(checker *c) {
    if (!mr_hazard_log_open(c)) c->out_of_memory = true;
    c->totals.claims.count[MR_CLAIM_CLEARED] = 0;
    mr_hazard_histories_begin(c);
    if (c->machine->counts.next_seq > c->off_since || c->off_pending)
        mr_claims_add(&c->totals.claims, MR_CLAIM_SWITCHED_OFF);
    mr_hazard_order_open(c);
}

/* Whether there is work for which the host has not waited. Switching the checker on does not order it. */
static bool is_pending(const checker *c) {
    bool pending = false;
    for (const actor *a = c->order.actors; a && !pending; a = a->next)
        pending = a->did && !mr_hazard_all_know(c, a, a->did);
    return pending && !c->machine->lost;
}

static void switch_off(checker *c) {
    c->off_pending = is_pending(c);
    c->totals.claims.count[MR_CLAIM_NOT_RUN] += mr_hazard_functions_left(c, -1);
    c->totals.claims.count[MR_CLAIM_UNFINISHED] += mr_hazard_kernels_left(c, -1);
    mr_hazard_drop_collected(c);
    mr_hazard_write_waiting(c);
    mr_hazard_withdraw_forget(c);
    mr_hazard_history_drop_all(c);
    mr_hazard_order_close(c);
    mr_error_destroy(mr_hazard_refuse(c));
    mr_hazard_advice_end(c);
    c->off_since = c->machine->counts.next_seq;
}

static void tell_turn(const checker *c, mr_hazard_turn turn, mr_hazard_mode mode) {
    if (c->watcher.turned) c->watcher.turned(c->watcher.context, turn, mode);
}

void mr_hazard_watch(mr_hazard *c, const mr_hazard_watcher *watcher) {
    c->watcher = watcher ? *watcher : (mr_hazard_watcher){0};
}

static mr_status set_mode(mr_hazard *c, mr_hazard_mode mode) {
    if (c->check.on) { /* takes effect when the check ends */
        c->check.mode_before = mode;
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
            c); /* may release the last reference to a storage: the observer must still be told */
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
    if (!c->check.on && mode != c->mode) mr_hazard_write_waiting(c);
    MR_TRY(set_mode(c, mode));
    tell_turn(c, MR_HAZARD_TURN_MODE, mode);
    return MR_OK;
}

mr_hazard_mode mr_hazard_get_mode(const mr_hazard *c) {
    return c->mode;
}

mr_hazard_mode mr_hazard_asked_mode(const mr_hazard *c) {
    return c->apart.judging && !c->check.on ? c->apart.judged_in : c->mode;
}

size_t mr_hazard_asked_count(const mr_hazard *c) {
    bool explored = c->apart.on && c->apart.kind == MR_HAZARD_EXPLORED;
    return explored && !c->check.on ? c->apart.first : c->reports.listed.count;
}

static mr_status refuse_inner_check(const mr_hazard *c) {
    if (!c->check.rank || c->check.rank == c->machine->rank)
        return mr_fail(
            MR_CODE_NOT_PERMITTED,
            "hazard.check: not permitted inside another check; call the function itself");
    return mr_fail(MR_CODE_NOT_PERMITTED,
                   "hazard.check: rank %u is in a check, and it follows all ranks of this process: "
                   "call mr.hazard.check around mr.dist.spawn, or use --check",
                   c->check.rank - 1u);
}

mr_status mr_hazard_check_begin(mr_hazard *c) {
    if (c->check.on) return refuse_inner_check(c);
    mr_hazard_mode before = c->mode;
    mr_hazard_flush_collected(c); /* reports found before the check do not belong to it */
    MR_TRY(mr_hazard_refuse(c));
    MR_TRY(set_mode(c, MR_HAZARD_COLLECT));
    c->check.on = true;
    c->check.rank = c->machine->rank;
    c->check.returned_before = c->check.returned;
    c->check.returned = false;
    c->check.mode_before = before;
    c->check.first = c->reports.listed.count;
    c->check.totals_before = c->totals;
    c->totals = (mr_hazard_totals){0};
    mr_hazard_order_restart(c);
    c->order.opened = c->order.floor;
    tell_turn(c, MR_HAZARD_TURN_CHECK_BEGIN, c->mode);
    return MR_OK;
}

/* Hazards inside belong to the check. Those that reach beyond its end count outside, too. */
static void end_totals(checker *c, mr_hazard_totals *out_inside) {
    mr_hazard_totals inside = mr_hazard_get_totals(c, false);
    c->totals = c->check.totals_before;
    c->totals.checked_apart += inside.operations + inside.checked_apart;
    c->totals.explored += inside.explored;
    c->totals.stressed += inside.stressed;
    mr_claims beyond = {.where = inside.claims.where, .code = inside.claims.code};
    if (c->machine->lost) beyond.count[MR_CLAIM_FAILED] = inside.claims.count[MR_CLAIM_FAILED];
    beyond.count[MR_CLAIM_FORGOTTEN] = inside.claims.count[MR_CLAIM_FORGOTTEN];
    beyond.count[MR_CLAIM_IGNORED] = inside.claims.count[MR_CLAIM_IGNORED];
    beyond.count[MR_CLAIM_DROPPED] = inside.claims.count[MR_CLAIM_DROPPED];
    /* In judged work, the verdict includes the inner checks, and what they did not follow. */
    mr_claims_merge(&c->totals.claims, c->apart.judging ? &inside.claims : &beyond);
    if (out_inside) *out_inside = inside;
}

void mr_hazard_check_end(mr_hazard *c, size_t *out_first, mr_hazard_totals *out_inside) {
    *out_first = c->check.first;
    if (out_inside) *out_inside = (mr_hazard_totals){0};
    if (!c->check.on) return;
    mr_hazard_flush_collected(c);
    end_totals(c, out_inside);
    c->check.on = false;
    c->check.returned = c->check.returned_before;
    c->check.first = 0;
    mr_error_destroy(set_mode(c, c->check.mode_before)); /* to off, or on to on: no failure */
    tell_turn(c, MR_HAZARD_TURN_CHECK_END, c->mode);
}

/* Tensors that were collected earlier in the check are still reported, since the script goes on after the check. */
void mr_hazard_returned(mr_hazard *c) {
    if (!c->check.on) mr_hazard_drop_collected(c);
    if (c->mode != MR_HAZARD_OFF && mr_hazard_functions_pending(c))
        mr_hazard_functions_note_rest(c);
    c->check.returned = true;
    tell_turn(c, MR_HAZARD_TURN_RETURNED, c->mode);
}

static void abandon_check(checker *c) {
    size_t first;
    if (!c->check.on) return;
    mr_hazard_check_end(c, &first, NULL);
    mr_hazard_drop_from(c, first);
}

void mr_hazard_check_abandon(mr_hazard *c) {
    mr_hazard_apart_end(c); /* it may be inside a check, and contain a check */
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
                         .mode = c->check.on ? c->check.mode_before : c->mode,
                         .advice = c->advice.on,
                         .check = c->check,
                         .first = c->reports.listed.count,
                         .last_storage = c->machine->counts.next_storage,
                         .totals = c->totals};
    c->advice.on = c->check.on = c->check.returned = false;
    c->check.first = c->reports.listed.count;
    c->totals = (mr_hazard_totals){0};
    if (kind == MR_HAZARD_EXPLORED) mr_hazard_unset_keep(c);
    if (c->mode != MR_HAZARD_OFF) mr_error_destroy(set_mode(c, MR_HAZARD_COLLECT)); /* on to on */
    tell_turn(
        c, kind == MR_HAZARD_EXPLORED ? MR_HAZARD_TURN_EXPLORE_BEGIN : MR_HAZARD_TURN_STRESS_BEGIN,
        c->mode);
    return MR_OK;
}

/* An error that ends the run or loses the device also counts outside. */
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
    c->advice.on = c->apart.advice;
    c->check = c->apart.check;
    mr_hazard_order_restart(c);
    mr_error_destroy(set_mode(c, c->apart.mode));
    tell_turn(c, MR_HAZARD_TURN_APART_END, c->mode);
}

mr_status mr_hazard_judge_begin(mr_hazard *c) {
    if (!c->apart.on || c->check.on)
        return mr_fail(MR_CODE_NOT_PERMITTED, "hazard: only work that stands apart is judged so");
    c->apart.judging = true;
    c->apart.judged_in = c->mode;
    c->apart.judged_first = c->reports.listed.count;
    c->apart.before_judged = c->totals;
    MR_TRY(set_mode(c, MR_HAZARD_COLLECT));
    c->totals = (mr_hazard_totals){0};
    c->check.returned = false;
    mr_hazard_order_restart(c);
    c->order.opened = c->order.floor;
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
    c->check.returned = false;
    mr_error_destroy(set_mode(c, c->apart.judged_in)); /* to off, or on to on */
    tell_turn(c, MR_HAZARD_TURN_JUDGE_END, c->mode);
}

bool mr_hazard_awaits_work(const mr_hazard *c, const mr_device *device) {
    return mr_hazard_functions_left(c, device->index) || mr_hazard_kernels_left(c, device->index);
}

void mr_hazard_drained(mr_hazard *c, const mr_device *device) {
    mr_hazard_order_drained(c, device->index);
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
    return c->check.on;
}

/* ---- create, destroy */

mr_status mr_hazard_create(mr_machine *machine, const mr_hazard_hooks *hooks,
                           mr_hazard **out_hazard) {
    checker *c = calloc(1, sizeof *c);
    *out_hazard = NULL;
    if (!c) return mr_no_memory("for the hazard checker");
    c->machine = machine;
    c->off_since = machine->counts.next_seq;
    if (!mr_hazard_order_create(c)) {
        free(c);
        return mr_no_memory("for the hazard checker");
    }
    if (hooks) c->hooks = *hooks;
    c->observer = mr_hazard_observer;
    mr_hazard_histories_create(c);
    *out_hazard = c;
    return MR_OK;
}

void mr_hazard_destroy(mr_hazard *c) {
    if (!c) return;
    mr_hazard_check_abandon(c);
    mr_error_destroy(mr_hazard_set_mode(c, MR_HAZARD_OFF));
    mr_hazard_clear(c);
    mr_hazard_clear_ignores(c);
    mr_hazard_reports_destroy(c);
    mr_hazard_withdraw_destroy(c);
    mr_hazard_advice_forget(c);
    mr_hazard_log_free(c);
    mr_hazard_unset_destroy(c);
    mr_hazard_functions_destroy(c);
    mr_hazard_histories_destroy(c);
    mr_hazard_order_destroy(c);
    free(c);
}
