/* Finds the waits in a recorded program: which function the script called is known by the names of the commands. Waits
 * that an operation makes by itself (a blocking copy) have the operation's name and do not count.
 *
 * Easiest to break: what is dropped with a wait. The record of wait_stream is; that of wait_event is another line. If a
 * barrier's first member is dropped, the rest needs another first member. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "waits/parts.h"

/* ---- streams */

mr_order_facts mr_waits_stream_facts(const mr_program *program, uint32_t stream) {
    mr_program_stream s = mr_program_stream_at(program, stream);
    return mr_order_facts_of_stream(s.kind, s.blocking);
}

bool mr_waits_gathers(const mr_program *program, uint32_t stream, uint32_t other) {
    return (mr_waits_stream_facts(program, stream) & MR_FACT_LEGACY) &&
           mr_order_is_gathered(mr_waits_stream_facts(program, other)) &&
           mr_program_stream_at(program, stream).device ==
               mr_program_stream_at(program, other).device;
}

mr_place_set mr_waits_host_waits_for(const mr_program *program, const mr_program_item *it) {
    mr_order_facts stream =
        it->stream == MR_PROGRAM_NONE ? 0 : mr_waits_stream_facts(program, it->stream);
    return mr_order_returned(mr_order_facts_of_kind(it->kind, stream), MR_SEEN);
}

bool mr_waits_is_within(const mr_program *program, mr_place_set places, const mr_program_item *it,
                        uint32_t stream) {
    if (mr_place_in(places, MR_PLACE_LANE) && it->stream == stream) return true;
    if (mr_place_in(places, MR_PLACE_GATHERED) && mr_waits_gathers(program, it->stream, stream))
        return true;
    return mr_place_in(places, MR_PLACE_DEVICE) &&
           mr_program_stream_at(program, stream).device == (int)it->device;
}

/* ---- while the items are read */

typedef struct {
    wait_rounds *rounds;
    const mr_waits_options *options;
    MR_MAP(size_t) record_of; /* by event: the latest record */
    size_t barrier;           /* the first item of a barrier that is not complete; NO_ITEM: none */
    MR_VEC(wait_round) members;
    uint32_t releases; /* members' waits for the first member that are still to be read */
    bool failed;
} reader;

static bool is_named(const mr_program_item *it, const char *name) {
    return it->name && strcmp(it->name, name) == 0;
}

static void note_record(reader *r, const mr_program_item *it, size_t i) {
    if (!mr_map_put(&r->record_of, it->event, i)) r->failed = true;
}

static size_t record_of(const reader *r, const mr_program_item *it) {
    const size_t *record = it->bound ? mr_map_find(&r->record_of, it->event) : NULL;
    return record ? *record : NO_ITEM;
}

static void add_round(reader *r, wait_round round) {
    if (!mr_vec_push(&r->rounds->rounds, round)) r->failed = true;
}

/* ---- barriers: pairs of record and wait, a record, waits */

static void begin_barrier(reader *r, size_t i) {
    r->barrier = i;
    r->members.count = 0;
    r->releases = 0;
}

static void add_member(reader *r, uint32_t stream, size_t record) {
    for (size_t i = 0; i < r->members.count; i++)
        if (r->members.items[i].stream == stream) return;
    wait_round member = {.stream = stream, .at = r->barrier, .record = record};
    if (!mr_vec_push(&r->members, member)) r->failed = true;
}

static void end_barrier(reader *r, size_t last) {
    barrier_round barrier = {.first = r->barrier,
                             .last = last,
                             .first_round = (uint32_t)r->rounds->rounds.count,
                             .members = (uint32_t)r->members.count};
    if (!mr_vec_push(&r->rounds->barriers, barrier)) r->failed = true;
    for (size_t i = 0; i < r->members.count; i++) {
        wait_round member = r->members.items[i];
        member.barrier = (uint32_t)r->rounds->barriers.count - 1;
        add_round(r, member);
    }
    r->barrier = NO_ITEM;
}

static bool is_same_event(const mr_program *program, size_t a, const mr_program_item *b) {
    return a != NO_ITEM && mr_program_item_at(program, a).event == b->event;
}

static void read_barrier(reader *r, const mr_program_item *it, size_t i) {
    const mr_program *program = r->rounds->program;
    if (r->barrier == NO_ITEM) begin_barrier(r, i);
    if (it->kind == MR_COMMAND_RECORD) {
        bool of_first = r->members.count && it->stream == r->members.items[0].stream;
        if (of_first) r->releases = (uint32_t)r->members.count - 1;
        return;
    }
    size_t record = record_of(r, it);
    if (r->releases) {
        if (--r->releases == 0) end_barrier(r, i);
    } else if (is_same_event(program, record, it)) {
        add_member(r, it->stream, NO_ITEM);
        add_member(r, mr_program_item_at(program, record).stream, record);
    }
}

/* ---- one item */

static void read_wait(reader *r, const mr_program_item *it, size_t i) {
    bool own = is_named(it, "wait_stream");
    if (!own && !is_named(it, "wait_event")) return;
    add_round(r, (wait_round){.stream = it->stream,
                              .barrier = MR_PROGRAM_NONE,
                              .at = i,
                              .record = record_of(r, it),
                              .own_record = own});
}

static void read_sync(reader *r, const mr_program_item *it, size_t i) {
    if (!is_named(it, "synchronize")) return;
    size_t record = mr_kind_is(it->kind, MR_TRAIT_BOUND) ? record_of(r, it) : NO_ITEM;
    add_round(
        r, (wait_round){
               .stream = MR_PROGRAM_NONE, .barrier = MR_PROGRAM_NONE, .at = i, .record = record});
}

static void read_time(reader *r, const mr_program_item *it, size_t i) {
    uint32_t event[2] = {it->event, it->other_event};
    for (int k = 0; k < 2; k++) {
        const size_t *record = mr_map_find(&r->record_of, event[k]);
        if (record && !mr_vec_push(&r->rounds->times, ((timed_record){i, *record})))
            r->failed = true;
    }
}

/* A query that says no orders nothing. It may say yes in another run, which may then take another path. */
static void read_refusal(reader *r, const mr_program_item *it) {
    if (mr_kind_is(it->kind, MR_TRAIT_QUERY) && !it->failed) r->rounds->refusals++;
}

static void read_query(reader *r, const mr_program_item *it, size_t i) {
    timed_record query = {i, NO_ITEM};
    if (mr_kind_is(it->kind, MR_TRAIT_BOUND)) {
        query.record = record_of(r, it);
        if (query.record == NO_ITEM) return; /* R13, or it was complete before */
    }
    if (!mr_vec_push(&r->rounds->queries, query)) r->failed = true;
}

static bool has_item(const size_t *items, size_t count, size_t i) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (items[middle] < i) low = middle + 1;
        else high = middle;
    }
    return low < count && items[low] == i;
}

bool mr_waits_is_judged(const mr_waits_options *options, size_t i) {
    return !has_item(options->not_judged, options->not_judged_count, i);
}

static void read_function(reader *r, size_t i) {
    if (!mr_vec_push(&r->rounds->functions, i)) r->failed = true;
}

static void read_item(reader *r, size_t i) {
    mr_program_item it = mr_program_item_at(r->rounds->program, i);
    if (it.seq && !mr_vec_push(&r->rounds->numbers, ((numbered){it.seq, i}))) r->failed = true;
    if (!it.came_true) {
        read_refusal(r, &it);
        return;
    }
    if (it.kind == MR_COMMAND_RECORD) note_record(r, &it, i);
    if (!mr_waits_is_judged(r->options, i)) return;
    if (mr_kind_is_of_event(it.kind) && is_named(&it, "barrier")) {
        read_barrier(r, &it, i);
        return;
    }
    switch (it.kind) {
    case MR_COMMAND_WAIT: read_wait(r, &it, i); break;
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC: read_sync(r, &it, i); break;
    case MR_COMMAND_ELAPSED: read_time(r, &it, i); break;
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY: read_query(r, &it, i); break;
    case MR_COMMAND_HOST_FUNCTION: read_function(r, i); break;
    case MR_COMMAND_RESET:
        if (!mr_vec_push(&r->rounds->resets, i)) r->failed = true;
        break;
    case MR_COMMAND_OP:
        if (has_item(r->options->prints, r->options->print_count, i)) read_function(r, i);
        break;
    case MR_COMMAND_COPY:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_HOST_ACCESS:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_STREAM_DROP:
    case MR_COMMAND_EVENT_CREATE:
    case MR_COMMAND_EVENT_CLOSE:
    case MR_COMMAND_HOST_ALLOC:
    case MR_COMMAND_HOST_FREE:
    case MR_COMMAND_FREE_WAIT:
    case MR_COMMAND_RECORD_STREAM:
    case MR_COMMAND_HOST_READ:
    case MR_COMMAND_HOST_WORK:
    case MR_COMMAND_DRAIN: MR_MACHINE_LIST(MR_COMMAND_CASE) break;
    }
    if (mr_kind_is(it.kind, MR_TRAIT_ACCOUNT)) return;
    r->barrier = NO_ITEM; /* a barrier that an error ended early is ignored */
}

/* ---- rounds of one line are one wait */

mr_wait_kind mr_waits_kind(const wait_rounds *rounds, size_t wait) {
    const wait_round *r = &rounds->rounds.items[rounds->first_round[wait]];
    if (r->barrier != MR_PROGRAM_NONE) return MR_WAIT_BARRIER;
    if (r->stream == MR_PROGRAM_NONE) return MR_WAIT_SYNCHRONIZE;
    return r->own_record ? MR_WAIT_STREAM : MR_WAIT_EVENT;
}

mr_site mr_waits_site(const wait_rounds *rounds, size_t wait) {
    const wait_round *r = &rounds->rounds.items[rounds->first_round[wait]];
    return mr_program_item_at(rounds->program, r->at).where;
}

typedef struct {
    mr_site where;
    uint32_t kind, member;
    size_t round;
} grouped;

/* Only groups equal keys: the order of file addresses has no visible effect. */
static int compare_groups(const void *a, const void *b) {
    const grouped *x = a, *y = b;
    if (x->where.file != y->where.file)
        return (uintptr_t)x->where.file < (uintptr_t)y->where.file ? -1 : 1;
    if (x->where.line != y->where.line) return x->where.line < y->where.line ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->member != y->member) return x->member < y->member ? -1 : 1;
    return x->round < y->round ? -1 : x->round > y->round;
}

static grouped group_of(const wait_rounds *rounds, size_t i) {
    const wait_round *r = &rounds->rounds.items[i];
    bool barrier = r->barrier != MR_PROGRAM_NONE;
    uint32_t kind = barrier                        ? MR_WAIT_BARRIER
                    : r->stream == MR_PROGRAM_NONE ? MR_WAIT_SYNCHRONIZE
                    : r->own_record                ? MR_WAIT_STREAM
                                                   : MR_WAIT_EVENT;
    return (grouped){mr_program_item_at(rounds->program, r->at).where, kind,
                     barrier ? r->stream : MR_PROGRAM_NONE, i};
}

static bool is_same_wait(const grouped *a, const grouped *b) {
    return a->where.file == b->where.file && a->where.line == b->where.line && a->kind == b->kind &&
           a->member == b->member;
}

/* Numbers the waits by their first rounds. `first` of a round: the first round of its wait. */
static void number_waits(wait_rounds *rounds, const size_t *first) {
    for (size_t i = 0; i < rounds->rounds.count; i++) {
        rounds->next_round[i] = NO_ITEM;
        wait_round *r = &rounds->rounds.items[i];
        if (first[i] == i) {
            r->wait = (uint32_t)rounds->waits;
            rounds->first_round[rounds->waits++] = i;
        } else {
            r->wait = rounds->rounds.items[first[i]].wait;
        }
    }
    for (size_t i = rounds->rounds.count; i-- > 0;) { /* `first` then has the next round's */
        size_t head = rounds->first_round[rounds->rounds.items[i].wait];
        if (head == i) continue;
        rounds->next_round[i] = rounds->next_round[head];
        rounds->next_round[head] = i;
    }
}

static mr_status group_rounds(wait_rounds *rounds) {
    size_t count = rounds->rounds.count;
    grouped *groups = malloc((count + 1) * sizeof *groups);
    size_t *first = malloc((count + 1) * sizeof *first);
    rounds->first_round = malloc((count + 1) * sizeof *rounds->first_round);
    rounds->next_round = malloc((count + 1) * sizeof *rounds->next_round);
    bool ready = groups && first && rounds->first_round && rounds->next_round;
    for (size_t i = 0; i < count && ready; i++) groups[i] = group_of(rounds, i);
    if (ready) {
        qsort(groups, count, sizeof *groups, compare_groups);
        for (size_t i = 0, head = 0; i < count; i++) {
            if (i && !is_same_wait(&groups[head], &groups[i])) head = i;
            first[groups[i].round] = groups[head].round;
        }
        number_waits(rounds, first);
    }
    free(groups);
    free(first);
    return ready ? MR_OK : mr_no_memory("for the waits of a program");
}

mr_status mr_waits_rounds(const mr_program *program, const mr_waits_options *options,
                          wait_rounds *out_rounds) {
    *out_rounds = (wait_rounds){.program = program, .items = mr_program_count(program)};
    reader r = {.rounds = out_rounds, .options = options, .barrier = NO_ITEM};
    for (size_t i = 0; i < out_rounds->items; i++) read_item(&r, i);
    mr_map_free(&r.record_of);
    mr_vec_free(&r.members);
    mr_status status = r.failed ? mr_no_memory("for the waits of a program") : MR_OK;
    if (!status) status = group_rounds(out_rounds);
    if (status) mr_waits_rounds_free(out_rounds);
    return status;
}

void mr_waits_rounds_free(wait_rounds *rounds) {
    mr_vec_free(&rounds->rounds);
    mr_vec_free(&rounds->barriers);
    mr_vec_free(&rounds->numbers);
    mr_vec_free(&rounds->times);
    mr_vec_free(&rounds->resets);
    mr_vec_free(&rounds->functions);
    mr_vec_free(&rounds->queries);
    free(rounds->first_round);
    free(rounds->next_round);
    *rounds = (wait_rounds){0};
}

size_t mr_waits_item_of(const wait_rounds *rounds, uint64_t seq) {
    size_t low = 0, high = rounds->numbers.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rounds->numbers.items[middle].seq < seq) low = middle + 1;
        else high = middle;
    }
    bool is_there = low < rounds->numbers.count && rounds->numbers.items[low].seq == seq;
    return is_there ? rounds->numbers.items[low].item : NO_ITEM;
}

/* ---- edits */

mr_status mr_waits_edit_open(const wait_rounds *rounds, wait_edit *out_edit) {
    *out_edit = (wait_edit){.left_out = calloc(rounds->items + 1, sizeof(bool))};
    out_edit->edit.left_out = out_edit->left_out;
    return out_edit->left_out ? MR_OK : mr_no_memory("to leave out waits");
}

void mr_waits_edit_free(wait_edit *edit) {
    free(edit->left_out);
    mr_vec_free(&edit->added);
    *edit = (wait_edit){0};
}

mr_status mr_waits_edit_add(wait_edit *edit, mr_program_addition addition) {
    if (!mr_vec_push(&edit->added, addition)) return mr_no_memory("to add a command");
    size_t i = edit->added.count - 1;
    for (; i && edit->added.items[i - 1].before > addition.before; i--)
        edit->added.items[i] = edit->added.items[i - 1];
    edit->added.items[i] = addition;
    edit->edit.added = edit->added.items;
    edit->edit.added_count = edit->added.count;
    if (addition.event >= edit->edit.event_count) edit->edit.event_count = addition.event + 1;
    return MR_OK;
}

/* Adds the barrier of the remaining members before its old place; they meet at the first of them. */
static mr_status rebuild_barrier(const wait_rounds *rounds, const barrier_round *b,
                                 const bool *dropped, wait_edit *edit) {
    const wait_round *members = rounds->rounds.items + b->first_round;
    mr_site where = mr_program_item_at(rounds->program, b->first).where;
    uint32_t hub = 0, event = edit->edit.event_count;
    while (dropped[b->first_round + hub]) hub++;
    for (uint32_t i = hub + 1; i < b->members; i++) {
        if (dropped[b->first_round + i]) continue;
        mr_program_addition a = {b->first, MR_COMMAND_RECORD, members[i].stream, event++, where};
        MR_TRY(mr_waits_edit_add(edit, a));
        a.kind = MR_COMMAND_WAIT;
        a.stream = members[hub].stream;
        MR_TRY(mr_waits_edit_add(edit, a));
    }
    mr_program_addition all = {b->first, MR_COMMAND_RECORD, members[hub].stream, event, where};
    MR_TRY(mr_waits_edit_add(edit, all));
    all.kind = MR_COMMAND_WAIT;
    for (uint32_t i = hub + 1; i < b->members; i++) {
        all.stream = members[i].stream;
        if (!dropped[b->first_round + i]) MR_TRY(mr_waits_edit_add(edit, all));
    }
    return MR_OK;
}

static bool is_of_barrier(const wait_rounds *rounds, size_t i) {
    return mr_kind_is_of_event(mr_program_kind_at(rounds->program, i));
}

static bool is_dropped_stream(const wait_rounds *rounds, const barrier_round *b,
                              const bool *dropped, uint32_t stream) {
    for (uint32_t i = 0; i < b->members; i++)
        if (rounds->rounds.items[b->first_round + i].stream == stream)
            return dropped[b->first_round + i];
    return false;
}

/* Drops a member that is not the first: its record, the first one's wait for that, and its own wait. */
static void leave_out_members(const wait_rounds *rounds, const barrier_round *b,
                              const bool *dropped, bool *left_out) {
    bool goes = false; /* the record before */
    for (size_t i = b->first; i <= b->last; i++) {
        mr_program_item it = mr_program_item_at(rounds->program, i);
        if (!is_of_barrier(rounds, i)) continue;
        bool own = is_dropped_stream(rounds, b, dropped, it.stream);
        left_out[i] = own || (it.kind == MR_COMMAND_WAIT && goes);
        goes = it.kind == MR_COMMAND_RECORD && own;
    }
}

static mr_status drop_of_barrier(const wait_rounds *rounds, const barrier_round *b,
                                 const bool *dropped, wait_edit *edit) {
    uint32_t gone = 0;
    for (uint32_t i = 0; i < b->members; i++) gone += dropped[b->first_round + i];
    bool first_goes = dropped[b->first_round], none = b->members - gone < 2;
    if (!gone) return MR_OK;
    if (!first_goes && !none) {
        leave_out_members(rounds, b, dropped, edit->left_out);
        return MR_OK;
    }
    for (size_t i = b->first; i <= b->last; i++) edit->left_out[i] = is_of_barrier(rounds, i);
    return none ? MR_OK : rebuild_barrier(rounds, b, dropped, edit);
}

mr_status mr_waits_edit_drop(const wait_rounds *rounds, const bool *dropped, wait_edit *edit) {
    memset(edit->left_out, 0, rounds->items * sizeof *edit->left_out);
    edit->added.count = 0;
    edit->edit.added_count = 0;
    edit->edit.event_count = 0;
    for (size_t i = 0; i < rounds->rounds.count; i++) {
        const wait_round *r = &rounds->rounds.items[i];
        if (!dropped[i] || r->barrier != MR_PROGRAM_NONE) continue;
        edit->left_out[r->at] = true;
        if (r->own_record && r->record != NO_ITEM) edit->left_out[r->record] = true;
    }
    for (size_t i = 0; i < rounds->barriers.count; i++)
        MR_TRY(drop_of_barrier(rounds, &rounds->barriers.items[i], dropped, edit));
    return MR_OK;
}
