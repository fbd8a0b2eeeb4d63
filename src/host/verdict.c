/* Verdicts of a script and of its replay: see verdict.h.
 *
 * Easiest to break: a checker counts all that was submitted before it is switched on, or before a check begins, as
 * ordered. So the replay's checker must be switched between the same two commands. In mode error a command that
 * is refused is not part of the program: findings about it are left out, and the replay collects. */
#include "host/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- noting */

static void note_found(void *context, const mr_hazard_found *found) {
    mr_verdict *v = context;
    if (!found->ahead && !mr_vec_push(&v->found, *found)) v->failed = true;
}

static void note_turn(void *context, mr_hazard_turn turn, mr_hazard_mode mode) {
    mr_verdict *v = context;
    mr_verdict_turn noted = {mr_recorder_count(v->recorder), turn, mode};
    bool goes_on = turn == MR_HAZARD_TURN_MODE && mode != MR_HAZARD_OFF;
    v->checks += goes_on || turn == MR_HAZARD_TURN_CHECK_BEGIN;
    if (!mr_vec_push(&v->turns, noted)) v->failed = true;
}

void mr_verdict_begin(mr_verdict *v, mr_hazard *hazard, mr_recorder *recorder) {
    mr_hazard_watcher watcher = {
        .context = v, .found = note_found, .turned = recorder ? note_turn : NULL};
    *v = (mr_verdict){.hazard = hazard, .recorder = recorder};
    mr_hazard_watch(hazard, &watcher);
    if (recorder) note_turn(v, MR_HAZARD_TURN_MODE, mr_hazard_get_mode(hazard));
}

void mr_verdict_end(mr_verdict *v) {
    if (v->hazard) mr_hazard_watch(v->hazard, NULL);
    mr_vec_free(&v->found);
    mr_vec_free(&v->turns);
    *v = (mr_verdict){0};
}

/* ---- the replay */

static mr_status take_turn(mr_hazard *hazard, const mr_verdict_turn *turn) {
    size_t first;
    mr_hazard_totals inside;
    switch (turn->turn) {
    case MR_HAZARD_TURN_MODE:
        return mr_hazard_set_mode(hazard,
                                  turn->mode == MR_HAZARD_OFF ? MR_HAZARD_OFF : MR_HAZARD_COLLECT);
    case MR_HAZARD_TURN_CHECK_BEGIN: return mr_hazard_check_begin(hazard);
    case MR_HAZARD_TURN_CHECK_END:
        mr_hazard_check_end(hazard, &first, NULL);
        mr_hazard_drop_from(hazard, first);
        return MR_OK;
    case MR_HAZARD_TURN_RETURNED: mr_hazard_returned(hazard); return MR_OK;
    case MR_HAZARD_TURN_EXPLORE_BEGIN: return mr_hazard_apart_begin(hazard, MR_HAZARD_EXPLORED);
    case MR_HAZARD_TURN_STRESS_BEGIN: return mr_hazard_apart_begin(hazard, MR_HAZARD_STRESSED);
    case MR_HAZARD_TURN_APART_END: mr_hazard_apart_end(hazard); return MR_OK;
    case MR_HAZARD_TURN_JUDGE_BEGIN: return mr_hazard_judge_begin(hazard);
    case MR_HAZARD_TURN_JUDGE_END:
        mr_hazard_judge_end(hazard, &first, &inside);
        mr_hazard_drop_from(hazard, first);
        return MR_OK;
    }
    return MR_OK;
}

static mr_status play(const mr_verdict *script, mr_player *player, mr_hazard *hazard,
                      mr_difference *io_difference) {
    for (size_t i = 0; i < script->turns.count; i++) {
        const mr_verdict_turn *turn = &script->turns.items[i];
        MR_TRY(mr_player_run(player, turn->item, io_difference));
        if (mr_player_position(player) < turn->item) return MR_OK; /* stopped by a difference */
        MR_TRY(take_turn(hazard, turn));
    }
    return mr_player_run(player, SIZE_MAX, io_difference);
}

mr_status mr_verdict_play(const mr_verdict *script, mr_player *player, mr_verdict *replayed,
                          mr_difference *io_difference) {
    mr_hazard *hazard;
    MR_TRY(mr_hazard_create(mr_player_machine(player), NULL, &hazard));
    mr_verdict_begin(replayed, hazard, NULL);
    mr_status status = play(script, player, hazard, io_difference);
    mr_hazard_destroy(hazard);
    replayed->hazard = NULL;
    return status;
}

/* ---- comparing */

static bool same_place(mr_site a, mr_site b) {
    return a.line == b.line && strcmp(a.file ? a.file : "", b.file ? b.file : "") == 0;
}

static bool same_found(const mr_hazard_found *a, const mr_hazard_found *b) {
    return a->kind == b->kind && a->first_seq == b->first_seq && a->second_seq == b->second_seq &&
           same_place(a->first_where, b->first_where) &&
           same_place(a->second_where, b->second_where) && a->bytes_first == b->bytes_first &&
           a->bytes_last == b->bytes_last;
}

static void describe(const mr_verdict *v, size_t i, char *out, size_t size) {
    if (i >= v->found.count) {
        snprintf(out, size, "nothing");
        return;
    }
    const mr_hazard_found *f = &v->found.items[i];
    snprintf(out, size,
             "%s of #%" PRIu64 " at %.60s:%d and #%" PRIu64 " at %.60s:%d, bytes %" PRIu64
             " to %" PRIu64,
             mr_hazard_kind_text(f->kind), f->first_seq,
             f->first_where.file ? f->first_where.file : "?", f->first_where.line, f->second_seq,
             f->second_where.file ? f->second_where.file : "?", f->second_where.line,
             f->bytes_first, f->bytes_last);
}

bool mr_verdict_differs(const mr_verdict *script, const mr_verdict *replayed, char *text,
                        size_t size) {
    size_t i = 0, both = script->found.count < replayed->found.count ? script->found.count
                                                                     : replayed->found.count;
    char first[300], second[300];
    if (script->failed || replayed->failed) {
        snprintf(text, size, "no memory to note what the hazard checker finds");
        return true;
    }
    while (i < both && same_found(&script->found.items[i], &replayed->found.items[i])) i++;
    if (i == script->found.count && i == replayed->found.count) return false;
    describe(script, i, first, sizeof first);
    describe(replayed, i, second, sizeof second);
    snprintf(text, size, "hazard %zu: the checker found %s, and in the replay %s", i + 1, first,
             second);
    return true;
}
