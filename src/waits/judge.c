/* Asks the hazard checker about a program without some of its waits. One checker and one set of objects serve all
 * questions; the checker is switched off and on again in between.
 *
 * The judge counts accesses that have a hazard now and had none with all waits. It does not count pairs: which earlier
 * access the checker names depends on what it could forget. Such accesses only become more when more waits go, so the
 * answers are monotone, and the searches rely on that. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "waits/parts.h"

/* ---- names, for the checker's chains */

static bool variable(void *context, const mr_hazard_object *object, mr_site front, char *out,
                     size_t size) {
    const wait_judge *j = context;
    const mr_waits_options *o = j->options;
    const char *name = NULL;
    if (front.file) return false;
    if (object->stream && o->stream_name) name = o->stream_name(o->context, object->stream->id);
    if (name) mr_text_copy(out, size, name);
    return name != NULL;
}

/* ---- what is found */

static bool is_known(const wait_judge *j, judged_access access) {
    return j->known.count && bsearch(&access, j->known.items, j->known.count, sizeof access,
                                     mr_waits_compare_accesses) != NULL;
}

/* Whether Lua's collector freed it after the judged code had returned. */
static bool is_collected_late(const wait_judge *j, uint64_t seq) {
    size_t item = mr_waits_item_of(j->rounds, seq);
    if (!j->options->returned || item == NO_ITEM || item < j->options->returned) return false;
    mr_program_item it = mr_program_item_at(j->rounds->program, item);
    return it.kind == MR_COMMAND_FREE && !it.where.file;
}

static void found(void *context, const mr_hazard_found *f) {
    wait_judge *j = context;
    judged_access access = {f->second_seq / j->spread, f->storage};
    if (is_collected_late(j, access.seq)) return;
    if (j->learning) {
        if (!mr_vec_push(&j->known, access)) j->stop = true;
        /* one is enough for the text */
        if (j->has_certain || (j->found.count && f->assumed)) return;
        j->has_certain = !f->assumed;
        j->found.count = 0;
    } else if (is_known(j, access)) {
        return;
    }
    mr_waits_judge_add(j,
                       (new_hazard){.kind = f->kind,
                                    .assumed = f->assumed,
                                    .first = mr_waits_item_of(j->rounds, f->first_seq / j->spread),
                                    .second = mr_waits_item_of(j->rounds, access.seq),
                                    .storage = f->storage});
}

static void updated(void *context, const mr_hazard_found *f) {
    wait_judge *j = context;
    judged_access access = {f->second_seq / j->spread, f->storage};
    mr_waits_beyond_updated(j, access, f->first_seq / j->spread);
}

static void unspecified(void *context, const mr_hazard_found *f) {
    wait_judge *j = context;
    judged_access access = {f->second_seq / j->spread, f->storage};
    mr_waits_beyond_copied(j, access, f->first_seq / j->spread);
}

/* ---- what a wait would have ordered */

/* Whether the waiting stream, or the host, is not known to come after all earlier commands of that stream. */
static bool is_ahead(const wait_judge *j, const wait_round *r, uint32_t of) {
    uint64_t seq = mr_program_item_at(j->rounds->program, r->at).seq;
    return !mr_waits_judge_ordered(j, of, seq - 1, r->stream);
}

/* Whether the round would add to the order, also to one that CUDA does not guarantee (R5). A wait of a default stream
 * is behind the blocking streams, too. */
static bool would_add(const wait_judge *j, const wait_round *r) {
    const mr_program *program = j->rounds->program;
    mr_program_item it = mr_program_item_at(program, r->at);
    if (r->barrier != MR_PROGRAM_NONE) return true; /* not used */
    if (mr_kind_is(it.kind, MR_TRAIT_BOUND)) {
        if (r->record == NO_ITEM) return it.bound != 0;
        mr_program_item record = mr_program_item_at(program, r->record);
        /* Its own record is dropped, too, so only earlier work counts. */
        uint64_t seq = r->own_record ? record.seq - 1 : record.seq;
        if (!mr_waits_judge_ordered(j, record.stream, seq, r->stream)) return true;
    }
    mr_place_set places = mr_waits_host_waits_for(program, &it);
    for (uint32_t s = 0; s < mr_program_stream_count(program); s++) {
        bool is_waited_for = r->stream == MR_PROGRAM_NONE
                                 ? mr_waits_is_within(program, places, &it, s)
                                 : mr_waits_gathers(program, r->stream, s);
        if (is_waited_for && is_ahead(j, r, s)) return true;
    }
    return false;
}

static bool has_barrier(const wait_rounds *rounds, uint32_t stream) {
    return mr_waits_stream_facts(rounds->program, stream) & (MR_FACT_LEGACY | MR_FACT_BLOCKING);
}

bool mr_waits_only_orders(const wait_rounds *rounds, size_t wait) {
    for (size_t i = rounds->first_round[wait]; i != NO_ITEM; i = rounds->next_round[i]) {
        const wait_round *r = &rounds->rounds.items[i];
        if (r->barrier != MR_PROGRAM_NONE) return false;
        if (r->stream != MR_PROGRAM_NONE && has_barrier(rounds, r->stream)) return false;
        if (r->own_record && r->record != NO_ITEM &&
            has_barrier(rounds, mr_program_item_at(rounds->program, r->record).stream))
            return false;
    }
    return true;
}

/* Asks before the round's own record, which is dropped with the round: later, that record would count as an unordered
 * command. */
static void look_ahead(wait_judge *j, size_t i) {
    if (j->next_round == j->rounds->rounds.count) return;
    const wait_round *r = &j->rounds->rounds.items[j->next_round];
    if (r->own_record && r->record == i && r->at == i + 1) j->adds_nothing = !would_add(j, r);
}

/* Notes the next round, in a run with all waits. */
static void learn_round(wait_judge *j, const wait_round *r) {
    bool is_wait = mr_program_kind_at(j->rounds->program, r->at) == MR_COMMAND_WAIT;
    bool nothing = r->own_record ? j->adds_nothing : !would_add(j, r);
    if (!is_wait || !nothing) j->may_add[r->wait] = true;
    j->adds_nothing = false;
}

bool mr_waits_judge_adds_nothing(const wait_judge *j, size_t wait) {
    return !j->may_add[wait] && mr_waits_only_orders(j->rounds, wait);
}

static void check_time(wait_judge *j) {
    const timed_record *t = &j->rounds->times.items[j->time];
    mr_program_item record = mr_program_item_at(j->rounds->program, t->record);
    bool late = !mr_waits_judge_ordered(j, record.stream, record.seq, MR_PROGRAM_NONE);
    if (late && j->learning) j->late_times[j->time] = true;
    else if (late && !j->late_times[j->time])
        mr_waits_judge_add(j, (new_hazard){.is_time = true, .first = t->record, .second = t->at});
}

/* Checks a reset as if the host used everything that is pending. */
static void check_reset(wait_judge *j, size_t i) {
    uint64_t seq = mr_program_item_at(j->rounds->program, i).seq;
    for (uint32_t s = 0; s < mr_program_stream_count(j->rounds->program); s++) {
        judged_access access = {seq, UINT64_MAX - s};
        if (mr_waits_judge_ordered(j, s, seq, MR_PROGRAM_NONE)) continue;
        if (!j->learning && !is_known(j, access))
            mr_waits_judge_add(j, (new_hazard){.is_reset = true, .first = NO_ITEM, .second = i});
        else if (j->learning && !mr_vec_push(&j->known, access)) j->stop = true;
    }
}

static void note_claims(wait_judge *j) {
    j->claims = mr_hazard_get_totals(j->hazard, false).claims;
}

static void next(void *context, size_t i, bool left_out) {
    wait_judge *j = context;
    const wait_rounds *rounds = j->rounds;
    (void)left_out;
    j->told++;
    if (j->learning && i == mr_waits_end_of_code(j)) note_claims(j);
    mr_waits_beyond_next(j, i);
    mr_waits_looks_next(j, i);
    for (; j->time < rounds->times.count && rounds->times.items[j->time].at <= i; j->time++)
        check_time(j);
    if (j->reset < rounds->resets.count && rounds->resets.items[j->reset] == i) {
        j->reset++;
        check_reset(j, i);
    }
    for (; j->next_round < rounds->rounds.count && rounds->rounds.items[j->next_round].at <= i;
         j->next_round++) {
        const wait_round *r = &rounds->rounds.items[j->next_round];
        if (j->adds && j->dropped[j->next_round] && would_add(j, r)) j->adds[r->wait] = true;
        if (j->learning) learn_round(j, r);
    }
    if (j->learning) look_ahead(j, i);
}

/* ---- runs */

static uint64_t room_of(const wait_judge *j) {
    return mr_hazard_get_totals(j->hazard, false).claims.count[MR_CLAIM_ROOM];
}

static mr_status run(wait_judge *j, size_t until, bool leave_on) {
    mr_telling telling = {.edit = &j->edit.edit,
                          .spread = j->edit.edit.added_count ? MR_PROGRAM_SPREAD : 1,
                          .until = until,
                          .stop = &j->stop,
                          .next = next,
                          .context = j};
    mr_hazard_watcher watcher = {.context = j,
                                 .only_tell = true,
                                 .found = found,
                                 .updated = updated,
                                 .unspecified = unspecified};
    j->stop = false;
    j->found.count = 0;
    j->time = j->reset = j->next_round = 0;
    j->lost.lost = MR_LOST_NOTHING;
    mr_waits_beyond_rewind(j);
    mr_waits_looks_rewind(j);
    j->spread = telling.spread;
    if (j->options->interrupted && j->options->interrupted(j->options->context))
        return mr_fail(MR_CODE_INTERRUPTED, "interrupted while waits were judged");
    mr_teller_rewind(j->teller, telling.spread);
    mr_hazard_watch(j->hazard, &watcher);
    MR_TRY(mr_hazard_set_mode(j->hazard, MR_HAZARD_COLLECT));
    uint64_t room = room_of(j);
    mr_status status = mr_teller_tell(j->teller, &telling);
    if (until >= j->rounds->items && !j->stop) {
        mr_waits_beyond_next(j, j->rounds->items);
        mr_waits_looks_next(j, j->rounds->items);
    }
    if (j->learning && mr_waits_end_of_code(j) >= j->rounds->items) note_claims(j);
    room = room_of(j) - room;
    if (room > j->room) j->room = room;
    if (!leave_on) mr_error_destroy(mr_hazard_set_mode(j->hazard, MR_HAZARD_OFF));
    return status;
}

/* Keeps the first failure. */
static bool judge(wait_judge *j, bool stop_at_first) {
    j->stop_at_first = stop_at_first;
    if (!j->status) j->status = run(j, SIZE_MAX, false);
    return !j->status && j->found.count > 0;
}

bool mr_waits_judge_edit(wait_judge *j, bool stop_at_first) {
    return judge(j, stop_at_first);
}

bool mr_waits_judge_breaks(wait_judge *j) {
    if (!j->status) j->status = mr_waits_edit_drop(j->rounds, j->dropped, &j->edit);
    return judge(j, true);
}

void mr_waits_judge_keep(wait_judge *j, const bool *kept) {
    for (size_t i = 0; i < j->rounds->rounds.count; i++)
        j->dropped[i] = !kept[j->rounds->rounds.items[i].wait];
}

void mr_waits_judge_drop_wait(wait_judge *j, size_t wait) {
    memset(j->dropped, 0, j->rounds->rounds.count * sizeof *j->dropped);
    for (size_t i = j->rounds->first_round[wait]; i != NO_ITEM; i = j->rounds->next_round[i])
        j->dropped[i] = true;
}

void mr_waits_judge_drop_round(wait_judge *j, size_t round) {
    memset(j->dropped, 0, j->rounds->rounds.count * sizeof *j->dropped);
    j->dropped[round] = true;
}

bool mr_waits_judge_chain(wait_judge *j, size_t first, size_t second, mr_buffer *out) {
    uint64_t a = mr_program_item_at(j->rounds->program, first).seq;
    uint64_t b = mr_program_item_at(j->rounds->program, second).seq;
    if (!j->status) j->status = mr_waits_edit_drop(j->rounds, j->dropped, &j->edit);
    j->stop_at_first = false;
    if (!j->status && !j->edit.edit.added_count) j->status = run(j, second + 1, true);
    if (j->status || j->edit.edit.added_count) return false;
    bool ordered = mr_hazard_why(j->hazard, a, b, out);
    mr_error_destroy(mr_hazard_set_mode(j->hazard, MR_HAZARD_OFF));
    return ordered;
}

/* ---- life */

/* Runs the program with all its waits, and notes hazards and orders. */
static mr_status learn(wait_judge *j) {
    memset(j->dropped, 0, j->rounds->rounds.count * sizeof *j->dropped);
    MR_TRY(mr_waits_edit_drop(j->rounds, j->dropped, &j->edit));
    j->learning = true;
    j->stop_at_first = false;
    mr_status status = run(j, SIZE_MAX, false);
    j->learning = false;
    if (!status && j->stop) status = mr_no_memory("for what the hazard checker finds");
    size_t kept = 0;
    if (!status && j->known.count)
        qsort(j->known.items, j->known.count, sizeof *j->known.items, mr_waits_compare_accesses);
    for (size_t i = 0; i < j->known.count; i++)
        if (!i || mr_waits_compare_accesses(&j->known.items[i], &j->known.items[kept - 1]) != 0)
            j->known.items[kept++] = j->known.items[i];
    j->known.count = kept;
    if (!status) status = mr_waits_beyond_learnt(j);
    return status;
}

mr_status mr_waits_judge_open(const wait_rounds *rounds, const mr_waits_options *options,
                              wait_judge *out_judge) {
    wait_judge *j = out_judge;
    *j = (wait_judge){.rounds = rounds, .options = options};
    mr_status status = mr_teller_open(rounds->program, &j->teller);
    mr_hazard_hooks hooks = {.context = j, .variable = variable};
    if (!status) status = mr_hazard_create(mr_teller_machine(j->teller), &hooks, &j->hazard);
    if (!status) status = mr_waits_edit_open(rounds, &j->edit);
    j->dropped = calloc(rounds->rounds.count + 1, sizeof *j->dropped);
    j->late_times = calloc(rounds->times.count + 1, sizeof *j->late_times);
    j->may_add = calloc(rounds->waits + 1, sizeof *j->may_add);
    if (!status && (!j->dropped || !j->late_times || !j->may_add))
        status = mr_no_memory("to look at waits");
    if (!status) status = mr_waits_beyond_open(j);
    if (!status) status = mr_waits_looks_open(j);
    if (!status) status = learn(j);
    if (status) mr_waits_judge_close(j);
    return status;
}

void mr_waits_judge_close(wait_judge *j) {
    mr_hazard_destroy(j->hazard);
    mr_teller_close(j->teller);
    mr_waits_edit_free(&j->edit);
    free(j->dropped);
    free(j->late_times);
    free(j->may_add);
    mr_waits_beyond_close(j);
    mr_waits_looks_close(j);
    mr_vec_free(&j->known);
    mr_vec_free(&j->found);
    mr_error_destroy(j->status);
    *j = (wait_judge){0};
}
