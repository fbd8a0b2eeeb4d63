/* Carries out a program's items, each through the function of the model that the script's call went through, and
 * compares the result with what was recorded. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "model/backend.h"
#include "model/given.h"
#include "model/history.h"
#include "program/player.h"

/* ---- what differs */

__attribute__((format(printf, 3, 4))) static void differs(mr_player *p, mr_difference_kind kind,
                                                          const char *format, ...) {
    mr_difference *d = p->difference;
    if (!d || d->kind != MR_DIFFERS_NOTHING) return;
    d->kind = kind;
    d->item = p->position;
    va_list args;
    va_start(args, format);
    mr_number_formatv(d->text, sizeof d->text, format, args);
    va_end(args);
}

/* Adds the different value to the hash of the difference. */
static void differs_by(mr_player *p, uint64_t value) {
    mr_difference *d = p->difference;
    if (!d) return;
    d->value = (d->value ^ value) * 0x9fb21c651e98df25u;
    d->value ^= d->value >> 32;
}

static void check_answer(mr_player *p, const item *it, uint64_t answer, uint64_t recorded) {
    if (answer == recorded) return;
    differs(p, MR_DIFFERS_ANSWER, "%s: %" PRIu64 ", and %" PRIu64 " was recorded",
            mr_command_kinds[it->kind].name, answer, recorded);
    differs_by(p, answer);
}

/* Since the recording began, or the player's items. */
static uint64_t clock_of(const mr_player *p) {
    return p->machine->backend->host_time(p->machine) - p->start_time;
}

static void check_time(mr_player *p, const item *it, uint64_t recorded) {
    if (p->keep_chooser || p->keep_model || p->edit)
        return; /* times are those of the recorded ones */
    uint64_t now = clock_of(p), then = recorded - p->program->start_time;
    if (now != then)
        differs(p, MR_DIFFERS_TIME,
                "%s: the host's clock is at %" PRIu64 " ns, and was at %" PRIu64,
                mr_command_kinds[it->kind].name, now, then);
}

static void check_values(mr_player *p, const item *it) {
    if (p->machine->bodies.skipped) return;
    const mr_operand *operands = &p->operands[it->first_operand];
    uint64_t hash = 0;
    for (uint32_t i = 0; i < it->operand_count; i++) {
        if (operands[i].access == MR_WRITE) continue;
        if (!operands[i].tensor->storage->host) return;
        hash = hash * 31 + mr_value_hash_view(operands[i].tensor);
    }
    if (hash == it->hash) return;
    differs(p, MR_DIFFERS_VALUE, "%s: the host reads other values than were recorded", it->name);
    differs_by(p, hash ^ p->reader * 0x9e3779b97f4a7c15u);
}

#define HEX_DIGITS "0123456789abcdef"

/* Addresses depend on the process's other memory, so the player's machine has other ones than the recorded machine. */
static bool same_but_addresses(const char *a, const char *b) {
    while (*a && *a == *b) {
        bool address = a[0] == '0' && a[1] == 'x' && b[1] == 'x';
        a += address ? 2 + strspn(a + 2, HEX_DIGITS) : 1;
        b += address ? 2 + strspn(b + 2, HEX_DIGITS) : 1;
    }
    return *a == *b;
}

static bool same_error(const mr_player *p, const item *it, const mr_error *status) {
    if (status->code != it->code) return false;
    /* Its text has the amount of free memory, which depends on this process's other memory. */
    if (status->code == MR_CODE_OUT_OF_MEMORY || it->error == NO_SLOT) return true;
    return same_but_addresses(status->message, p->program->texts.items[it->error]);
}

/* Takes `status`, and returns it if it was not recorded. */
static mr_status check_error(mr_player *p, const item *it, mr_status status) {
    if (!status && !it->has_error) return MR_OK;
    if (status && it->has_error && same_error(p, it, status)) {
        mr_error_destroy(status);
        return MR_OK;
    }
    const char *recorded = it->error == NO_SLOT ? "no error" : p->program->texts.items[it->error];
    differs(p, MR_DIFFERS_ERROR, "%s: %.100s; recorded: %.100s", it->name,
            status ? status->message : "no error", it->has_error ? recorded : "no error");
    if (status)
        differs_by(p,
                   mr_value_hash((uint64_t)status->code, status->message, strlen(status->message)));
    p->stopped = true;
    return status;
}

static mr_caller caller_of(const mr_player *p, const item *it) {
    return (mr_caller){.machine = p->machine, .where = it->where};
}

/* ---- the host */

static void put_bytes(const mr_program *program, blob from, size_t skip, const mr_tensor *view) {
    size_t size = mr_value_view_bytes(view);
    if (from.size >= skip + size) mr_value_scatter(view, program->bytes.items + from.at + skip);
}

static void write_as_recorded(mr_player *p, const item *it) {
    const mr_operand *operands = &p->operands[it->first_operand];
    size_t done = 0;
    for (uint32_t i = 0; i < it->operand_count; i++) {
        if (!(operands[i].access & MR_WRITE)) continue;
        put_bytes(p->program, it->bytes, done, operands[i].tensor);
        done += mr_value_view_bytes(operands[i].tensor);
    }
}

static mr_status host_access(mr_player *p, const item *it) {
    const mr_params *params = it->row ? &p->program->params.items[it->params] : NULL;
    mr_caller caller = caller_of(p, it);
    MR_TRY(mr_host_accesses(&caller, it->name, &p->operands[it->first_operand], it->operand_count,
                            it->row, params));
    if (!it->row) {
        check_values(p, it);
        write_as_recorded(p, it);
        return MR_OK;
    }
    if (p->machine->bodies.skipped) return MR_OK;
    mr_error_destroy(p->host_work);
    p->host_work = mr_op_run_now(command_at(p, it));
    return MR_OK;
}

static mr_status host_work(mr_player *p, const item *it) {
    mr_status status = p->host_work;
    p->host_work = MR_OK;
    mr_host_worked(p->machine, it->value, status);
    return status;
}

/* Observers know by this count which storages existed before. */
static void count_storage(mr_player *p, const mr_storage *storage) {
    if (p->machine->counts.next_storage < storage->id)
        p->machine->counts.next_storage = storage->id;
}

static mr_status host_alloc(mr_player *p, const item *it) {
    mr_storage *storage = &p->storages[it->object];
    count_storage(p, storage);
    blob first = p->program->storages.items[it->object].first;
    MR_TRY(mr_storage_place(storage, NULL));
    if (first.zero) memset(storage->host, 0, first.size);
    else if (first.size) memcpy(storage->host, p->program->bytes.items + first.at, first.size);
    return MR_OK;
}

/* The last reference is dropped here or in a later call: completed commands, or an observer, may still hold one. The
 * backend holds a reference to each command that is pending. */
static bool is_used(const mr_player *p, uint32_t storage) {
    if (p->storages[storage].refs > MR_GIVEN_REFS) return true;
    for (size_t i = p->users_from[storage]; i < p->users_from[storage + 1]; i++)
        if (p->commands[p->users[i]].refs > MR_GIVEN_REFS) return true;
    return false;
}

static void free_due(mr_player *p) {
    uint32_t kept = 0;
    for (uint32_t i = 1; i <= p->due[0]; i++) {
        uint32_t storage = p->due[i];
        if (is_used(p, storage)) p->due[++kept] = storage;
        else if (p->storages[storage].host) mr_storage_drop_given(&p->storages[storage]);
    }
    p->due[0] = kept;
}

/* ---- what is submitted */

static mr_status submit(mr_player *p, const item *it, mr_command *command) {
    command->refs = MR_GIVEN_REFS + 1; /* one for the call, which takes it over */
    mr_status status;
    switch ((mr_command_id)it->kind) {
    case MR_COMMAND_RECORD:
        status = mr_command_submit(command);
        if (!status) mr_event_recorded(&p->events[it->object], command);
        return status;
    case MR_COMMAND_ALLOC:
        count_storage(p, &p->storages[it->object]);
        MR_TRY(mr_storage_place(&p->storages[it->object], command));
        return mr_command_submit(command);
    case MR_COMMAND_FREE: return mr_storage_submit_free(command);
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return mr_command_submit(command);
}

static mr_status carry_out(mr_player *p, const item *it); /* of a function: its own items */

mr_status mr_player_run_function(void *context) {
    const function_context *function = context;
    const item *it = function->item;
    mr_player *p = function->player;
    const mr_program *program = p->program;
    mr_status status = MR_OK;
    for (uint32_t i = 0; i < it->inner_count && !p->stopped && !status; i++) {
        p->reader = ((it->seq - program->first_seq) << 16) + i + 1;
        status = carry_out(p, &program->inner.items[it->inner + i]);
    }
    p->reader = 0;
    MR_TRY(status);
    if (it->other == NO_SLOT) return MR_OK;
    return mr_fail((mr_code)it->value, "%s", program->texts.items[it->other]);
}

/* ---- queries and other looks */

static mr_status query(mr_player *p, const item *it) {
    mr_caller caller = caller_of(p, it);
    bool done = false;
    if (it->kind == MR_COMMAND_STREAM_QUERY)
        MR_TRY(mr_stream_query(&caller, p->stream_at[it->stream], &done));
    else MR_TRY(mr_event_query(&caller, &p->events[it->object], &done));
    if (!it->has_error) check_answer(p, it, done, it->outcome == CAME_TRUE);
    return MR_OK;
}

static mr_status elapsed(mr_player *p, const item *it) {
    double milliseconds;
    MR_TRY(mr_event_elapsed(&p->events[it->object], &p->events[it->other], &milliseconds));
    if (milliseconds == it->number) return MR_OK;
    differs(p, MR_DIFFERS_ANSWER, "elapsed_time: %g ms, and %g was recorded", milliseconds,
            it->number);
    differs_by(p, mr_value_hash(0, &milliseconds, sizeof milliseconds));
    return MR_OK;
}

static void see_nothing(void *context, const mr_pending *pending) {
    (void)context, (void)pending;
}

static mr_status step(mr_player *p, const item *it) {
    char text[256];
    bool moved;
    mr_stream *stream = it->stream == NO_SLOT ? NULL : p->stream_at[it->stream];
    MR_TRY(mr_machine_step(p->machine, stream, &moved, text, sizeof text));
    check_answer(p, it, moved, it->value);
    return MR_OK;
}

static mr_status back(mr_player *p, const item *it) {
    uint32_t undone;
    MR_TRY(mr_machine_back(p->machine, (uint32_t)it->value, &undone));
    check_answer(p, it, undone, (uint64_t)it->number);
    return MR_OK;
}

static void host_time(mr_player *p, const item *it) {
    mr_machine_time(p->machine);
    check_time(p, it, it->value);
}

static void device_time(mr_player *p, const item *it) {
    if (p->program->from_the_start)
        check_answer(p, it, mr_machine_device_time(p->machine), it->value);
}

static void memory_look(mr_player *p, const item *it) {
    mr_memory_stats stats = mr_device_memory(p->machine->devices[it->object]);
    if (p->program->from_the_start) check_answer(p, it, stats.reserved, it->value);
}

/* ---- the machine as a whole */

static mr_status reset(mr_player *p, const item *it) {
    mr_caller caller = caller_of(p, it);
    mr_machine *machine = p->machine;
    const mr_program *program = p->program;
    for (size_t i = 0; i < program->streams.count; i++) /* ids stay different */
        if (machine->counts.next_stream < program->streams.items[i].id)
            machine->counts.next_stream = program->streams.items[i].id;
    MR_TRY(mr_machine_reset(&caller));
    mr_player_find_default_streams(p, machine->epoch);
    return MR_OK;
}

static mr_status set_history(mr_machine *machine, const item *it) {
    mr_history_limits limits = {.always = it->number < 0,
                                .steps = (uint32_t)it->value,
                                .bytes = (uint64_t)(it->number < 0 ? -it->number : it->number)};
    return mr_machine_set_history(machine, &limits);
}

static const char *text_of(const mr_player *p, const item *it) {
    return it->own_name == NO_SLOT ? "" : p->program->texts.items[it->own_name];
}

static mr_status set_chooser(mr_player *p, const item *it) {
    return p->keep_chooser ? MR_OK : mr_machine_set_chooser(p->machine, text_of(p, it));
}

static mr_status set_model(mr_player *p, const item *it) {
    return p->keep_model ? MR_OK : mr_machine_set_model(p->machine, text_of(p, it));
}

/* ---- objects are made and dropped */

/* A stream from before a reset, which was before the recording, was never opened here. */
static void drop(mr_player *p, const object_drop *d) {
    switch (d->kind) {
    case MR_COMMAND_EVENT_CLOSE:
        if (!p->events[d->slot].closed) mr_event_drop_given(&p->events[d->slot]);
        break;
    case MR_COMMAND_STREAM_DROP:
        if (p->stream_at[d->slot]->impl || p->stream_at[d->slot]->closed)
            mr_stream_drop_given(p->stream_at[d->slot]);
        break;
    case MR_COMMAND_HOST_FREE:
        p->due[++p->due[0]] = d->slot;
        free_due(p);
        break;
    case MR_COMMAND_EVENT_CREATE: /* the rest are items */
    case MR_COMMAND_HOST_ALLOC:
    case MR_COMMAND_FREE_WAIT:
    case MR_COMMAND_RECORD_STREAM:
    case MR_COMMAND_HOST_READ:
    case MR_COMMAND_HOST_WORK:
    case MR_COMMAND_ELAPSED:
    case MR_COMMAND_DRAIN:
        MR_SUBMITTED_LIST(MR_COMMAND_CASE)
        MR_HOST_LIST(MR_COMMAND_CASE)
        MR_MACHINE_LIST(MR_COMMAND_CASE) break;
    }
}

/* Carries out the drops that come before the present item. */
static void carry_out_drops(mr_player *p) {
    const mr_program *program = p->program;
    while (p->dropped < program->drops.count &&
           program->drops.items[p->dropped].before <= p->position)
        drop(p, &program->drops.items[p->dropped++]);
}

/* ---- one item */

static mr_status dispatch(mr_player *p, const item *it) {
    mr_machine *machine = p->machine;
    mr_device **devices = machine->devices;
    mr_caller caller = caller_of(p, it);
    switch ((mr_command_id)it->kind) {
    case MR_COMMAND_STREAM_SYNC: return mr_stream_synchronize(&caller, p->stream_at[it->stream]);
    case MR_COMMAND_EVENT_SYNC: return mr_event_synchronize(&caller, &p->events[it->object]);
    case MR_COMMAND_DEVICE_SYNC: return mr_device_synchronize(&caller, devices[it->object]);
    case MR_COMMAND_DRAIN: return mr_device_drain(devices[it->object]);
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY: return query(p, it);
    case MR_COMMAND_HOST_ACCESS: return host_access(p, it);
    case MR_COMMAND_HOST_WORK: return host_work(p, it);
    case MR_COMMAND_HOST_READ: check_values(p, it); return MR_OK;
    case MR_COMMAND_ELAPSED: return elapsed(p, it);
    case MR_COMMAND_TRIM: return mr_device_trim(devices[it->object]);
    case MR_COMMAND_ENABLE_PEER:
        return mr_device_enable_peer_access(devices[it->object], devices[it->other]);
    case MR_COMMAND_STEP: return step(p, it);
    case MR_COMMAND_BACK: return back(p, it);
    case MR_COMMAND_PASS: return mr_machine_pass(machine, it->value);
    case MR_COMMAND_RESET: return reset(p, it);
    case MR_COMMAND_HOST_TIME: host_time(p, it); return MR_OK;
    case MR_COMMAND_DEVICE_TIME: device_time(p, it); return MR_OK;
    case MR_COMMAND_MEMORY_LOOK: memory_look(p, it); return MR_OK;
    case MR_COMMAND_LOOK: mr_machine_pending(machine, see_nothing, NULL); return MR_OK;
    case MR_COMMAND_CHOOSER: return set_chooser(p, it);
    case MR_COMMAND_MODEL: return set_model(p, it);
    case MR_COMMAND_SETTING:
        return mr_machine_set_setting(machine, text_of(p, it), (int64_t)it->value);
    case MR_COMMAND_HISTORY: return set_history(machine, it);
    case MR_COMMAND_LAUNCH_BLOCKING:
        mr_machine_set_launch_blocking(machine, it->value != 0);
        return MR_OK;
    case MR_COMMAND_STREAM_CREATE: return mr_stream_open_given(p->stream_at[it->stream]);
    case MR_COMMAND_STREAM_CLOSE: return mr_stream_close(&caller, p->stream_at[it->stream]);
    case MR_COMMAND_EVENT_CREATE: return mr_event_open_given(&p->events[it->object]);
    case MR_COMMAND_HOST_ALLOC: return host_alloc(p, it);
    case MR_COMMAND_FREE_WAIT: return mr_storage_free_wait(&p->storages[it->object]);
    case MR_COMMAND_RECORD_STREAM:
        return mr_storage_record_stream_at(&p->storages[it->object], p->stream_at[it->stream],
                                           it->where);
    case MR_COMMAND_STREAM_DROP: /* these three are drops, not items */
    case MR_COMMAND_EVENT_CLOSE:
    case MR_COMMAND_HOST_FREE: MR_SUBMITTED_LIST(MR_COMMAND_CASE) break;
    }
    return MR_OK;
}

/* Under another schedule a host function may run after the items that use its memory. The script would have made other
 * requests then. */
static bool is_missing_memory(const mr_player *p, const item *it) {
    for (uint32_t i = 0; i < it->operand_count; i++) {
        const mr_storage *storage = p->operands[it->first_operand + i].tensor->storage;
        if (storage->kind != MR_MEMORY_DEVICE && !storage->host && storage->bytes) return true;
    }
    return false;
}

static mr_status carry_out(mr_player *p, const item *it) {
    mr_machine *machine = p->machine;
    if (__builtin_expect(p->made_inside, 0) && is_missing_memory(p, it)) {
        differs(p, MR_DIFFERS_ERROR, "%s: the host function that makes its memory has not run",
                it->name);
        p->stopped = true;
        return MR_OK;
    }
    mr_command *command = command_at(p, it);
    mr_status status;
    if (command && command->stream) {
        status = submit(p, it, command);
    } else {
        if (it->seq) machine->counts.next_seq = it->seq * p->spread;
        status = dispatch(p, it);
        if (it->time && !status) check_time(p, it, it->time);
        if (p->due[0]) free_due(p);
    }
    if (it->seq * p->spread >= machine->counts.next_seq)
        machine->counts.next_seq = it->seq * p->spread + 1;
    if (__builtin_expect(!status && !it->has_error, 1)) return MR_OK;
    return check_error(p, it, status);
}

/* ---- edits */

static bool is_left_out(const mr_player *p, size_t i) {
    return p->edit && p->edit->left_out && p->edit->left_out[i];
}

/* An edit may name a stream where the program has not created it yet, or has dropped it. */
static mr_status check_added(const mr_player *p, const mr_program_addition *a) {
    if (!mr_kind_is(a->kind, MR_TRAIT_SUBMITTED) || p->stream_at[a->stream]->impl) return MR_OK;
    return mr_fail(MR_CODE_INVALID_HANDLE, "an added %s: its stream does not exist there",
                   mr_command_kinds[a->kind].name);
}

static mr_status add(mr_player *p, const mr_program_addition *a) {
    MR_TRY(check_added(p, a));
    mr_caller caller = {.machine = p->machine, .where = a->where};
    mr_event_options options = {0};
    while (p->extra.count <= a->event) {
        mr_event *event;
        MR_TRY(mr_event_create(&caller, &options, &event));
        if (mr_vec_push(&p->extra, event)) continue;
        mr_event_release(event);
        return mr_no_memory("for an event");
    }
    mr_event *event = p->extra.items[a->event];
    if (!mr_kind_is(a->kind, MR_TRAIT_SUBMITTED)) return mr_event_synchronize(&caller, event);
    mr_stream *stream = p->stream_at[a->stream];
    return a->kind == MR_COMMAND_RECORD ? mr_event_record(&caller, event, stream)
                                        : mr_stream_wait_event(&caller, stream, event);
}

/* Carries out the additions that come before the present item. */
static mr_status carry_out_added(mr_player *p) {
    const mr_program_edit *edit = p->edit;
    while (edit && p->added < edit->added_count && edit->added[p->added].before <= p->position)
        MR_TRY(add(p, &edit->added[p->added++]));
    return MR_OK;
}

mr_status mr_player_run(mr_player *p, size_t until, mr_difference *io_difference) {
    const mr_program *program = p->program;
    mr_status status = MR_OK;
    if (until > program->items.count) until = program->items.count;
    p->difference = io_difference;
    p->stopped = false;
    while (p->position < until && !status && !p->stopped) {
        carry_out_drops(p);
        if (p->edit) status = carry_out_added(p);
        if (!status && !is_left_out(p, p->position))
            status = carry_out(p, &program->items.items[p->position]);
        if (!status && !p->stopped) p->position++;
    }
    if (!status && !p->stopped && p->position == program->items.count) {
        carry_out_drops(p);
        status = carry_out_added(p);
    }
    p->difference = NULL;
    return status;
}

mr_status mr_player_let_move(mr_player *p, mr_difference *io_difference) {
    p->difference = io_difference;
    mr_status status = p->machine->backend->host_access(p->machine);
    p->difference = NULL;
    return status;
}

mr_status mr_player_error_outlives(mr_machine *machine, mr_status error) {
    mr_error *details = error ? mr_error_details(error) : NULL;
    if (details && details->where.file)
        details->where.file = mr_intern(&machine->files, details->where.file,
                                        strlen(details->where.file), "[script]");
    return error;
}
