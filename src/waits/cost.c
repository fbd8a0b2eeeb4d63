/* The cost of a wait: the program is played on the virtual GPU without it, with times only, and the cost is the time
 * saved. A cheaper wait is an event recorded right after the last work that matters, and a wait for it.
 *
 * A change is proposed only after the hazard checker has judged the changed program, and a player has played it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "waits/parts.h"
#include "model/backend.h"

#define LEAST_SHARE   0.01 /* of the whole time: a wait that costs less gets no proposal */
#define MOST_EVENTS   4    /* in one proposal */
#define MOST_ATTEMPTS 4

/* ---- playing */

static double now_ms(const mr_player *player) {
    mr_machine *machine = mr_player_machine(player);
    uint64_t host = machine->backend->host_time(machine);
    uint64_t device = machine->backend->simulator->device_time(machine);
    return (double)(host > device ? host : device) * 1e-6;
}

/* Plays to the end of all work. False: it fails, or differs from the recording. */
static mr_status play_rest(wait_costs *c, mr_player *player, bool *out_done) {
    mr_difference difference = {0};
    mr_machine *machine = mr_player_machine(player);
    size_t items = c->judge->rounds->items, from = mr_player_position(player);
    mr_status status = mr_player_run(player, SIZE_MAX, &difference);
    c->played += mr_player_position(player) - from;
    *out_done = !status && mr_player_position(player) == items;
    if (status && !mr_code_is_interruption(status->code)) {
        mr_error_destroy(status);
        status = MR_OK;
    }
    for (int i = 0; i < machine->device_count && !status && *out_done; i++) {
        mr_status drained = mr_device_drain(machine->devices[i]);
        if (drained) *out_done = false;
        mr_error_destroy(drained);
    }
    return status;
}

static mr_status open_player(const wait_costs *c, const mr_program_edit *edit, mr_player **out) {
    mr_player_options options = {
        .backend = c->options->simulated, .chooser = "timed", .edit = edit, .without_bodies = true};
    MR_TRY(mr_player_open(c->judge->rounds->program, &options, out));
    mr_machine *machine = mr_player_machine(*out);
    machine->hooks.interrupted = c->options->interrupted;
    machine->hooks.context = c->options->context;
    return MR_OK;
}

/* Plays the edited program from the beginning. */
static mr_status play_edit(wait_costs *c, const mr_program_edit *edit, bool *out_done,
                           double *out_ms) {
    mr_player *player;
    MR_TRY(open_player(c, edit, &player));
    double start = now_ms(player);
    mr_status status = play_rest(c, player, out_done);
    *out_ms = now_ms(player) - start;
    mr_player_close(player);
    return status;
}

/* Makes the program whose costs are asked for, without one of its waits; `wait` NO_ITEM: with all of them. */
static mr_status edit_without(wait_costs *c, size_t wait) {
    wait_judge *j = c->judge;
    const wait_rounds *rounds = j->rounds;
    for (size_t i = 0; i < rounds->rounds.count; i++) {
        size_t of = rounds->rounds.items[i].wait;
        j->dropped[i] = of == wait || (c->kept && !c->kept[of]);
    }
    return mr_waits_edit_drop(rounds, j->dropped, &j->edit);
}

static mr_status open_base(wait_costs *c) {
    wait_judge *j = c->judge;
    MR_TRY(mr_waits_edit_open(j->rounds, &c->base));
    MR_TRY(edit_without(c, NO_ITEM));
    return mr_waits_edit_drop(j->rounds, j->dropped, &c->base);
}

mr_status mr_waits_costs_open(wait_judge *judge, const mr_waits_options *options, const bool *kept,
                              wait_costs *out_costs, const char **out_reason) {
    wait_costs *c = out_costs;
    *c = (wait_costs){.judge = judge, .options = options, .kept = kept};
    *out_reason = NULL;
    bool done;
    if (!options->simulated) {
        *out_reason = "this program has no virtual GPU to predict times with";
        return MR_OK;
    }
    MR_TRY(open_base(c));
    MR_TRY(play_edit(c, &c->base.edit, &done, &c->makespan_ms));
    if (!done) *out_reason = "the program cannot be carried out again on the virtual GPU";
    if (!done) return MR_OK;
    MR_TRY(open_player(c, &c->base.edit, &c->player));
    c->start_ms = now_ms(c->player);
    for (size_t i = 0; i < judge->rounds->items && !c->has_reset; i++)
        c->has_reset = mr_program_kind_at(judge->rounds->program, i) == MR_COMMAND_RESET;
    return MR_OK;
}

void mr_waits_costs_close(wait_costs *c) {
    mr_player_close(c->player);
    mr_waits_edit_free(&c->base);
    *c = (wait_costs){0};
}

/* The first item that the edit at hand changes. */
static size_t first_change(const wait_costs *c, size_t wait) {
    const wait_rounds *rounds = c->judge->rounds;
    const wait_round *r = &rounds->rounds.items[rounds->first_round[wait]];
    return r->own_record && r->record != NO_ITEM && r->record < r->at ? r->record : r->at;
}

/* Plays from a mark before the wait's first round, after bringing the player there. */
static mr_status play_from_mark(wait_costs *c, size_t wait, bool *out_done, double *out_end) {
    mr_difference difference = {0};
    mr_player_mark *mark;
    MR_TRY(mr_player_run(c->player, first_change(c, wait), &difference));
    MR_TRY(mr_player_mark_make(c->player, &mark));
    mr_player_edit(c->player, &c->judge->edit.edit);
    mr_status status = play_rest(c, c->player, out_done);
    *out_end = now_ms(c->player);
    mr_player_edit(c->player, &c->base.edit);
    if (!status) status = mr_player_go_back(c->player, mark);
    mr_player_mark_drop(mark);
    return status;
}

mr_status mr_waits_cost_of(wait_costs *c, size_t wait, bool *out_known, double *out_ms) {
    double without = 0;
    MR_TRY(edit_without(c, wait));
    bool marks = !c->judge->edit.edit.added_count && !c->has_reset;
    if (marks && mr_player_position(c->player) <= first_change(c, wait)) {
        MR_TRY(play_from_mark(c, wait, out_known, &without));
        without -= c->start_ms;
    } else {
        MR_TRY(play_edit(c, &c->judge->edit.edit, out_known, &without));
    }
    *out_ms = c->makespan_ms - without;
    return MR_OK;
}

/* ---- something cheaper */

/* One event: recorded after a stream's last relevant work, awaited before the first use of that. */
typedef struct {
    uint32_t producer, consumer; /* slots; consumer NONE: the host */
    size_t round;
    size_t last, first; /* items: of the producer, of the consumer */
} need;

typedef MR_VEC(need) need_list;

/* The round of the wait that came last before the item. */
static size_t round_before(const wait_rounds *rounds, size_t wait, size_t item) {
    size_t best = rounds->first_round[wait];
    for (size_t i = best; i != NO_ITEM && rounds->rounds.items[i].at < item;
         i = rounds->next_round[i])
        best = i;
    return best;
}

static bool is_for_host(const new_hazard *h) {
    return h->is_time || h->lost == MR_LOST_FUNCTION || h->lost == MR_LOST_ANSWER;
}

/* Items that belong together: a script can record and wait before and after them, but not between them. */
typedef struct {
    size_t first, last;
    uint32_t stream;
} whole;

static bool is_within_launch(const wait_rounds *rounds, size_t i) {
    mr_program_item it = mr_program_item_at(rounds->program, i);
    return it.launched.file && it.launch != MR_LAUNCH_NONE;
}

/* The launch of a graph, up to its last record, which is in the launch's own stream (R42); or one item. */
static whole whole_of(const wait_rounds *rounds, size_t item) {
    whole w = {item, item, 0};
    if (mr_program_item_at(rounds->program, item).launched.file)
        while (w.first > 0 && is_within_launch(rounds, w.first - 1)) w.first--;
    while (is_within_launch(rounds, w.last) && w.last + 1 < rounds->items) w.last++;
    w.stream = mr_program_item_at(rounds->program, w.last).stream;
    return w;
}

static bool add_need(const wait_rounds *rounds, size_t wait, const new_hazard *h,
                     need_list *needs) {
    if (h->first == NO_ITEM || h->second == NO_ITEM || h->first >= h->second) return false;
    whole first = whole_of(rounds, h->first), second = whole_of(rounds, h->second);
    if (first.stream == MR_PROGRAM_NONE || first.last >= second.first) return false;
    bool at_once = h->kind == MR_HAZARD_USE_AFTER_FREE &&
                   mr_program_kind_at(rounds->program, h->second) == MR_COMMAND_FREE;
    need n = {.producer = first.stream,
              .consumer = is_for_host(h) || at_once ? MR_PROGRAM_NONE : second.stream,
              .round = round_before(rounds, wait, second.first),
              .last = first.last,
              .first = second.first};
    if (at_once && rounds->rounds.items[n.round].stream != MR_PROGRAM_NONE)
        n.consumer = second.stream;
    for (size_t i = 0; i < needs->count; i++) {
        need *old = &needs->items[i];
        if (old->producer != n.producer || old->consumer != n.consumer || old->round != n.round)
            continue;
        bool grows = n.last > old->last || n.first < old->first;
        if (n.last > old->last) old->last = n.last;
        if (n.first < old->first) old->first = n.first;
        return grows;
    }
    return mr_vec_push(needs, n);
}

static bool is_same_place(mr_site a, mr_site b) {
    return a.file == b.file && a.line == b.line;
}

/* The script's line of an item: rounds of one line have the same. */
static mr_site place_of(const wait_rounds *rounds, size_t item) {
    mr_program_item it = mr_program_item_at(rounds->program, item);
    return it.launched.file ? it.launched : it.where;
}

static bool is_created_between(const wait_rounds *rounds, uint32_t stream, size_t from, size_t to) {
    for (size_t i = from; i < to && stream != MR_PROGRAM_NONE; i++) {
        mr_program_item it = mr_program_item_at(rounds->program, i);
        if (it.kind == MR_COMMAND_STREAM_CREATE && it.stream == stream) return true;
    }
    return false;
}

/* Whether a wait at the place of the removed one would come too early: before the work that it waits for, or before the
 * waiting stream exists. */
static bool has_to_be_late(const wait_rounds *rounds, const need *n) {
    size_t wait_at = rounds->rounds.items[n->round].at;
    return wait_at <= n->last || is_created_between(rounds, n->consumer, wait_at, n->first);
}

/* Adds the wait at the place of the removed one or, if `late`, before the first use. */
static mr_status add_event(const wait_rounds *rounds, const need *n, bool late, uint32_t event,
                           wait_edit *edit) {
    size_t wait_at = rounds->rounds.items[n->round].at;
    if (late || has_to_be_late(rounds, n)) wait_at = n->first;
    mr_program_addition a = {n->last + 1, MR_COMMAND_RECORD, n->producer, event,
                             place_of(rounds, n->last)};
    MR_TRY(mr_waits_edit_add(edit, a));
    a.before = wait_at;
    a.kind = n->consumer == MR_PROGRAM_NONE ? MR_COMMAND_EVENT_SYNC : MR_COMMAND_WAIT;
    a.stream = n->consumer;
    return mr_waits_edit_add(edit, a);
}

static mr_status edit_with(wait_costs *c, size_t wait, const need_list *needs, bool late) {
    wait_judge *j = c->judge;
    MR_TRY(edit_without(c, wait));
    uint32_t event = j->edit.edit.event_count;
    for (size_t i = 0; i < needs->count; i++)
        MR_TRY(add_event(j->rounds, &needs->items[i], late, event++, &j->edit));
    return MR_OK;
}

/* Adds events until no hazard is left. */
static mr_status find_needs(wait_costs *c, size_t wait, need_list *needs, bool *out_found) {
    wait_judge *j = c->judge;
    *out_found = false;
    for (int i = 0; i < MOST_ATTEMPTS; i++) {
        MR_TRY(edit_with(c, wait, needs, false));
        bool broken = mr_waits_judge_edit(j, false), grows = false;
        if (j->status) return MR_OK;
        if (!broken) {
            *out_found = needs->count > 0;
            return MR_OK;
        }
        for (size_t k = 0; k < j->found.count; k++)
            grows |= add_need(j->rounds, wait, &j->found.items[k], needs);
        if (!grows) return MR_OK;
    }
    return MR_OK;
}

/* The need as lines of the script: rounds of one line have the same. */
typedef struct {
    need of[MOST_EVENTS];
    size_t count;
    bool is_older; /* the event is not from the line's last execution, so each buffer needs one */
} proposal;

static bool is_repeated_between(const wait_rounds *rounds, size_t from, size_t to) {
    mr_site where = place_of(rounds, from);
    uint32_t stream = mr_program_item_at(rounds->program, from).stream;
    for (size_t i = from + 1; i < to; i++) {
        mr_program_item it = mr_program_item_at(rounds->program, i);
        if (it.seq && it.stream == stream && is_same_place(place_of(rounds, i), where) &&
            mr_kind_is(it.kind, MR_TRAIT_LAUNCH))
            return true;
    }
    return false;
}

static bool is_same_line(const wait_rounds *rounds, const need *a, const need *b) {
    return is_same_place(place_of(rounds, a->last), place_of(rounds, b->last)) &&
           is_same_place(place_of(rounds, a->first), place_of(rounds, b->first));
}

static bool summarise(const wait_rounds *rounds, const need_list *needs, proposal *out) {
    *out = (proposal){0};
    for (size_t i = 0; i < needs->count; i++) {
        const need *n = &needs->items[i];
        size_t at = rounds->rounds.items[n->round].at;
        if (at < n->last) at = n->first;
        out->is_older |= is_repeated_between(rounds, n->last, at);
        size_t k = 0;
        while (k < out->count && !is_same_line(rounds, &out->of[k], n)) k++;
        if (k < out->count) continue;
        if (out->count == MOST_EVENTS) return false;
        if (!place_of(rounds, n->last).file || !place_of(rounds, n->first).file) return false;
        out->of[out->count++] = *n;
    }
    return out->count > 0;
}

/* An event may also order the work for which another one was added: removes unneeded lines. */
static mr_status prune(wait_costs *c, size_t wait, need_list *needs, proposal *p) {
    wait_judge *j = c->judge;
    for (size_t i = p->count; i-- > 0 && p->count > 1;) {
        need_list fewer = {0};
        bool failed = false;
        for (size_t k = 0; k < needs->count && !failed; k++)
            if (!is_same_line(j->rounds, &needs->items[k], &p->of[i]))
                failed = !mr_vec_push(&fewer, needs->items[k]);
        mr_status status =
            failed ? mr_no_memory("to find what a wait is for") : edit_with(c, wait, &fewer, false);
        if (status || !fewer.count || mr_waits_judge_edit(j, false) || j->status) {
            mr_vec_free(&fewer);
            if (status || j->status) return status;
            continue;
        }
        mr_vec_free(needs);
        *needs = fewer;
        if (!summarise(j->rounds, needs, p)) return MR_OK;
    }
    return MR_OK;
}

static void say_event(const wait_judge *j, const need *n, mr_site where, mr_buffer *out) {
    char place[MR_LONGEST_NAME + 16];
    mr_buffer_puts(out, "an event that ");
    mr_waits_say_stream(j, n->producer, out);
    mr_buffer_printf(
        out, " records after %s and ",
        mr_wait_place(j->options->names, place_of(j->rounds, n->last), where, place, sizeof place));
    mr_waits_say_stream(j, n->consumer, out);
    mr_buffer_puts(out, " waits for");
}

static void say_place(const wait_judge *j, const need *n, bool late, mr_site where,
                      mr_buffer *out) {
    char place[MR_LONGEST_NAME + 16];
    if (late)
        mr_buffer_printf(out, " in front of %s",
                         mr_wait_place(j->options->names, place_of(j->rounds, n->first), where,
                                       place, sizeof place));
    else mr_buffer_puts(out, " here");
}

/* Whether the script records an event of its own just where the need asks for one, and the round waits for that. */
static bool is_recorded(const wait_rounds *rounds, const need *n) {
    const wait_round *r = &rounds->rounds.items[n->round];
    if (r->record == NO_ITEM || r->own_record || r->record <= n->last) return false;
    if (mr_program_item_at(rounds->program, r->record).stream != n->producer) return false;
    for (size_t i = n->last + 1; i < r->record; i++) {
        mr_program_item it = mr_program_item_at(rounds->program, i);
        if (it.stream == n->producer && mr_kind_is(it.kind, MR_TRAIT_SUBMITTED)) return false;
    }
    return true;
}

/* Whether one stream is to wait for the events that the script has: only who waits is another then. */
static bool has_events(const wait_rounds *rounds, const need_list *needs, const proposal *p) {
    for (size_t i = 0; i < needs->count; i++)
        if (!is_recorded(rounds, &needs->items[i])) return false;
    return p->count == 1;
}

/* Describes the present wait, in this round. */
static void say_present(const wait_judge *j, size_t round, mr_buffer *out) {
    const wait_rounds *rounds = j->rounds;
    const wait_round *r = &rounds->rounds.items[round];
    mr_program_item it = mr_program_item_at(rounds->program, r->at);
    if (r->barrier != MR_PROGRAM_NONE) {
        mr_buffer_puts(out, "it is a barrier of streams");
    } else if (it.kind == MR_COMMAND_DEVICE_SYNC) {
        mr_buffer_puts(out, "the host waits for the whole device");
    } else if (r->record != NO_ITEM && !r->own_record) {
        char place[MR_LONGEST_NAME + 16];
        mr_buffer_printf(out, "it waits for the record at %s",
                         mr_wait_place(j->options->names, place_of(rounds, r->record), it.where,
                                       place, sizeof place));
    } else {
        uint32_t of = r->record != NO_ITEM ? mr_program_item_at(rounds->program, r->record).stream
                                           : it.stream;
        mr_buffer_puts(out, "it waits for all of ");
        mr_waits_say_stream(j, of, out);
    }
}

/* Whether the event was already described: with a wait at the old place, one event serves several uses. */
static bool is_said(const wait_rounds *rounds, const proposal *p, size_t i, bool late) {
    for (size_t k = 0; k < i; k++)
        if (!late && p->of[k].producer == p->of[i].producer &&
            p->of[k].consumer == p->of[i].consumer &&
            is_same_place(place_of(rounds, p->of[k].last), place_of(rounds, p->of[i].last)))
            return true;
    return false;
}

static void say_proposal(const wait_judge *j, size_t wait, const need_list *needs,
                         const proposal *p, bool late, double costs_ms, mr_buffer *out) {
    mr_site where = mr_waits_site(j->rounds, wait);
    char cost[24];
    mr_wait_ms_text(costs_ms, cost, sizeof cost);
    say_present(j, p->of[0].round, out);
    mr_buffer_puts(out, "; ");
    if (has_events(j->rounds, needs, p)) {
        mr_buffer_puts(out, "if ");
        mr_waits_say_stream(j, p->of[0].consumer, out);
        mr_buffer_puts(out, " waits for that event");
        say_place(j, &p->of[0], late, where, out);
        mr_buffer_printf(out, ", it costs %s ms", cost);
        return;
    }
    size_t said = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (is_said(j->rounds, p, i, late)) continue;
        if (said++) mr_buffer_puts(out, ", and ");
        say_event(j, &p->of[i], where, out);
        say_place(j, &p->of[i], late, where, out);
    }
    mr_buffer_printf(out, " %s %s ms", said > 1 ? "cost" : "costs", cost);
    if (p->is_older)
        mr_buffer_puts(out,
                       " (it is a record before the last one of its line that has to be waited "
                       "for: keep an event for each buffer, "
                       "or whatever else is used in turn)");
}

/* A sentence names one place for all events. */
static bool is_created_late(const wait_rounds *rounds, const need_list *needs) {
    for (size_t i = 0; i < needs->count; i++) {
        const need *n = &needs->items[i];
        size_t wait_at = rounds->rounds.items[n->round].at;
        if (is_created_between(rounds, n->consumer, wait_at, n->first)) return true;
    }
    return false;
}

/* Chooses the cheaper of the two places for the wait. False: neither saves time. */
static mr_status price(wait_costs *c, size_t wait, const need_list *needs, double costs_ms,
                       bool *out_worth, bool *out_late, double *out_ms) {
    wait_judge *j = c->judge;
    double least = costs_ms;
    *out_worth = false;
    for (int late = is_created_late(j->rounds, needs); late < 2; late++) {
        bool done;
        double without, of_wait;
        MR_TRY(edit_with(c, wait, needs, late));
        if (mr_waits_judge_edit(j, true)) continue;
        if (j->status) return MR_OK;
        MR_TRY(play_edit(c, &j->edit.edit, &done, &without));
        of_wait = without - (c->makespan_ms - costs_ms);
        if (!done || of_wait > least - LEAST_SHARE * c->makespan_ms) continue;
        least = *out_ms = of_wait;
        *out_late = late;
        *out_worth = true;
    }
    return MR_OK;
}

/* Whether the shown digits differ: otherwise the replacement is not better. */
static bool shows_difference(double costs_ms, double instead_ms) {
    char a[24], b[24];
    return strcmp(mr_wait_ms_text(costs_ms, a, sizeof a),
                  mr_wait_ms_text(instead_ms, b, sizeof b)) != 0;
}

mr_status mr_waits_instead(wait_costs *c, size_t wait, double costs_ms, mr_buffer *out) {
    wait_judge *j = c->judge;
    need_list needs = {0};
    proposal p;
    bool found, worth = false, late = false;
    double ms = 0;
    if (costs_ms < LEAST_SHARE * c->makespan_ms) return MR_OK;
    mr_status status = find_needs(c, wait, &needs, &found);
    found = !status && found && summarise(j->rounds, &needs, &p);
    if (found) status = prune(c, wait, &needs, &p);
    if (!status && found) status = price(c, wait, &needs, costs_ms, &worth, &late, &ms);
    if (!status && worth && shows_difference(costs_ms, ms))
        say_proposal(j, wait, &needs, &p, late, ms, out);
    mr_vec_free(&needs);
    return status;
}
