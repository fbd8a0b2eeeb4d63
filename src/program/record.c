/* The observer that writes a program down: one item for each command that it is told of. It uses the recorded machine's
 * objects only during a call; it keeps numbers and copies of bytes (objects.c, captures.c).
 *
 * Easiest to break: the time at which bytes are copied. Bytes that the host reads are complete when the access is told.
 * Those that it writes are complete only later, so each call to the recorder first flushes the captures. Memory from
 * before the recording is copied at its first use, in `may`: before that command changes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/backend.h"
#include "model/outside.h"
#include "program/recorder.h"

static mr_recorder *recorder_of(mr_observer *observer) {
    return (mr_recorder *)((char *)observer - offsetof(mr_recorder, observer));
}

/* ---- items */

static uint32_t keep_operands(mr_recorder *r, const mr_command *command) {
    uint32_t first = (uint32_t)r->program->operands.count;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_operand *o = &command->operands[i];
        item_operand kept = {mr_record_view(r, o->tensor), o->access};
        if (!mr_vec_push(&r->program->operands, kept)) r->failed = true;
    }
    return first;
}

static void keep_op(mr_recorder *r, item *it, const mr_command *command) {
    it->row = command->u.op.row;
    if (!it->row) return;
    it->params = (uint32_t)r->program->params.count;
    if (!mr_vec_push(&r->program->params, mr_params_of(command))) r->failed = true;
    if (!command->u.op.argument_bytes) return;
    blob skipped;
    mr_record_bytes(r, (16 - r->program->bytes.count % 16) % 16, &skipped);
    char *to = mr_record_bytes(r, command->u.op.argument_bytes, &it->arguments);
    if (!to) return;
    memcpy(to, command->u.op.arguments, command->u.op.argument_bytes);
    if (!it->row->arguments_retain) return;
    it->row->arguments_retain(to);
    r->program->retains_arguments = true;
}

/* Its members are submitted one after the other. */
static void keep_meeting(mr_recorder *r, item *it, const mr_meeting *meeting) {
    if (it->member == meeting->first) {
        mr_meeting *copy = mr_meeting_copy(meeting);
        if (!copy || !mr_vec_push(&r->program->meetings, copy)) {
            mr_meeting_release(copy);
            r->failed = true;
        }
    }
    it->meeting = (uint32_t)r->program->meetings.count - 1;
}

static uint32_t device_index(const mr_device *device) {
    return device ? (uint32_t)device->index : NO_SLOT;
}

static void set_object(item *it, object_kind kind, uint32_t object) {
    it->object_is = (uint8_t)kind;
    it->object = object;
}

static void keep_account(mr_recorder *r, item *it, const mr_command *command) {
    bool made = mr_kind_is(it->kind, MR_TRAIT_BEGINS);
    if (mr_command_has(command, MR_PART_EVENT)) {
        set_object(it, OBJECT_EVENT, mr_record_event(r, command->u.event.event, made));
        return;
    }
    it->value = command->u.account.value;
    it->number = command->u.account.number;
    if (command->u.account.storage)
        set_object(it, OBJECT_STORAGE, mr_record_storage(r, command->u.account.storage, made));
    if (command->u.account.from) {
        set_object(it, OBJECT_EVENT, mr_record_event(r, command->u.account.from, false));
        it->other = mr_record_event(r, command->u.account.to, false);
        if (r->program->events.items[it->object].recorded ||
            r->program->events.items[it->other].recorded)
            mr_record_inexact(r, "elapsed_time used an event from before the recording",
                              command->where);
    }
    if (command->u.account.device) {
        set_object(it, OBJECT_DEVICE, device_index(command->u.account.device));
        it->other = device_index(command->u.account.peer);
    }
    if (command->u.account.text) it->own_name = mr_record_text(r, command->u.account.text);
    if (it->kind == MR_COMMAND_CHOOSER && strcmp(command->u.account.text, "explorer") == 0)
        mr_record_inexact(r, "schedules were explored, by a chooser that no name tells",
                          command->where);
}

static void keep_kind(mr_recorder *r, item *it, const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_OP:
    case MR_COMMAND_HOST_ACCESS: keep_op(r, it, command); return;
    case MR_COMMAND_COPY:
        it->flag = command->u.copy.synchronous;
        it->direction = (uint8_t)command->u.copy.direction;
        it->object = (uint32_t)command->u.copy.current;
        it->value = command->u.copy.bytes;
        return;
    case MR_COMMAND_ALLOC:
        set_object(it, OBJECT_STORAGE, mr_record_storage(r, command->u.storage, true));
        it->flag = command->u.storage->impl != NULL;
        return;
    case MR_COMMAND_FREE:
        set_object(it, OBJECT_STORAGE, mr_record_storage(r, command->u.storage, false));
        it->flag = command->u.at_once;
        return;
    case MR_COMMAND_FAULT: it->value = command->u.fault; return;
    case MR_COMMAND_DEVICE_SYNC:
        set_object(it, OBJECT_DEVICE, device_index(command->u.device));
        return;
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_EVENT_QUERY:
        set_object(it, OBJECT_EVENT, mr_record_event(r, command->u.event.event, false));
        it->value = command->u.event.record_seq;
        return;
        MR_ACCOUNT_LIST(MR_COMMAND_CASE) keep_account(r, it, command);
        return;
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_RESET: return; /* the stream says all */
    }
}

static item_list *list_of(const mr_recorder *r) {
    return r->machine->host_function.command ? &r->program->inner : &r->program->items;
}

/* Inside a host function: counts the item as its. */
static void count_inner(mr_recorder *r) {
    mr_program *p = r->program;
    uint32_t at = mr_slot_find(&r->functions, r->machine->host_function.command->seq);
    if (at == NO_SLOT) {
        mr_record_inexact(r, "a host function from before the recording ran", (mr_site){0});
        return;
    }
    item *function = &p->items.items[at];
    if (!function->inner_count++) function->inner = (uint32_t)p->inner.count;
}

static uint32_t keep_launched(mr_recorder *r, mr_site where) {
    mr_program *p = r->program;
    if (!mr_vec_push(&p->launched, mr_record_site(r, where))) r->failed = true;
    return (uint32_t)p->launched.count - 1;
}

/* Room for one more, at the end of its list; NULL: no memory. */
static item *next_item(mr_recorder *r) {
    mr_program *p = r->program;
    item_list *list = list_of(r);
    bool is_inner = list == &p->inner;
    if (mr_vec_reserve_one(list) && (is_inner || mr_vec_reserve_one(&p->kinds)))
        return &list->items[list->count];
    r->failed = true;
    return NULL;
}

static item *take_item(mr_recorder *r, item *it) {
    mr_program *p = r->program;
    item_list *list = list_of(r);
    if (list == &p->items) {
        mr_record_meet(r, it);
        mr_vec_push(&p->kinds, it->kind);
        p->has_odd |= !mr_item_is_plain(it);
    }
    list->count++;
    return it;
}

/* NULL: no more items, or no memory. Valid until the next one. */
static item *add_item(mr_recorder *r, const mr_command *command, outcome came) {
    mr_program *p = r->program;
    if (r->most_items && p->items.count + p->inner.count >= r->most_items && !r->full) {
        r->full = p->cut = true;
        mr_record_inexact(r, "the program is too long to be recorded", command->where);
    }
    if (r->full) return NULL;
    /* An exploration has no times, and reports itself what ranks may share (MR_CLAIM_RANKS). */
    if (r->machine->rank && !r->is_explored)
        mr_record_inexact(r, "ranks ran, each with a host and a clock of its own", command->where);
    if (mr_command_shares(command))
        mr_record_inexact(r, "code outside of millrace may use the same memory, stream or event",
                          command->where);
    uint16_t rank = command->machine->rank;
    item *it = next_item(r);
    if (!it) return NULL;
    *it = (item){
        .kind = (uint8_t)command->kind,
        .rank = rank <= UINT8_MAX ? (uint8_t)rank : 0,
        .outcome = (uint8_t)came,
        .stream = mr_record_stream(r, command->stream, command->kind == MR_COMMAND_STREAM_CREATE),
        .object = NO_SLOT,
        .other = NO_SLOT,
        .first_operand = keep_operands(r, command),
        .operand_count = command->operand_count,
        .own_name = command->own_name ? mr_record_name(r, command->own_name) : NO_SLOT,
        .error = NO_SLOT,
        .meeting = NO_SLOT,
        .member = command->member,
        .name = command->own_name ? NULL : command->name,
        .where = mr_record_site(r, command->where),
        .launch = command->launch,
        .launched = command->launched.file ? keep_launched(r, command->launched) : NO_SLOT,
        .seq = command->seq};
    keep_kind(r, it, command);
    if (command->meeting) keep_meeting(r, it, command->meeting);
    if (mr_command_kinds[command->kind].after != MR_AFTER_NOTHING)
        it->time = r->machine->backend->host_time(r->machine);
    if (r->machine->host_function.command) count_inner(r);
    return take_item(r, it);
}

static void keep_error(mr_recorder *r, item *it, const mr_error *status) {
    it->has_error = r->program->has_odd = true;
    it->code = status->code;
    it->error = mr_record_text(r, status->message);
    if (mr_code_is_interruption(status->code))
        mr_record_inexact(r, "a wait was interrupted", it->where);
}

/* ---- bytes that the host reads and writes */

static void keep_value(mr_recorder *r, item *it, const mr_tensor *view) {
    if (!view->storage->host) return;
    it->hash = it->hash * 31 + mr_value_hash_view(view);
    size_t size = mr_value_view_bytes(view);
    if (size > VALUE_KEPT || it->operand_count > 1) return;
    char *to = mr_record_bytes(r, size, &it->bytes);
    if (to) mr_value_gather(view, to);
}

static void keep_access(mr_recorder *r, item *it, const mr_command *command) {
    for (uint32_t i = 0; i < command->operand_count && !it->row; i++) {
        const mr_operand *o = &command->operands[i];
        if (o->access != MR_WRITE) keep_value(r, it, o->tensor);
        if (o->access & MR_WRITE) {
            it->bytes = NO_BLOB;
            mr_record_capture(r, (capture){.storage = o->tensor->storage,
                                           .slot = NO_SLOT,
                                           .view = *o->tensor,
                                           .inner = r->machine->host_function.command != NULL,
                                           .at = list_of(r)->count - 1});
        }
    }
}

static void keep_storage_life(mr_recorder *r, const item *it, const mr_command *command) {
    if (it->object == NO_SLOT) return;
    switch (command->kind) {
    case MR_COMMAND_HOST_ALLOC:
        r->alive.items[it->object] = command->u.account.storage;
        mr_record_capture(r, (capture){.storage = command->u.account.storage, .slot = it->object});
        break;
    case MR_COMMAND_ALLOC: r->alive.items[it->object] = command->u.storage; break;
    case MR_COMMAND_FREE: r->alive.items[it->object] = NULL; break;
    case MR_COMMAND_RECORD_STREAM: r->program->storages.items[it->object].used_by++; break;
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT: MR_HOST_LIST(MR_COMMAND_CASE)
    case MR_COMMAND_STREAM_DROP:
    case MR_COMMAND_EVENT_CREATE:
    case MR_COMMAND_EVENT_CLOSE:
    case MR_COMMAND_HOST_FREE:
    case MR_COMMAND_FREE_WAIT:
    case MR_COMMAND_HOST_READ:
    case MR_COMMAND_HOST_WORK:
    case MR_COMMAND_ELAPSED:
    case MR_COMMAND_DRAIN: MR_MACHINE_LIST(MR_COMMAND_CASE) break;
    }
}

static void forget_device_memory(mr_recorder *r) {
    for (size_t i = 0; i < r->alive.count; i++)
        if (r->program->storages.items[i].kind == MR_MEMORY_DEVICE) r->alive.items[i] = NULL;
}

/* Keeps the rest of a command that has come true. */
static void keep_result(mr_recorder *r, item *it, const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_HOST_ACCESS: keep_access(r, it, command); break;
    case MR_COMMAND_HOST_READ: keep_value(r, it, command->operands[0].tensor); break;
    case MR_COMMAND_RESET: forget_device_memory(r); break;
    case MR_COMMAND_HOST_FUNCTION:
        if (!mr_map_put(&r->functions, command->seq, (uint32_t)r->program->items.count - 1))
            r->failed = true;
        break;
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_STREAM_DROP:
    case MR_COMMAND_EVENT_CREATE:
    case MR_COMMAND_EVENT_CLOSE:
    case MR_COMMAND_HOST_ALLOC:
    case MR_COMMAND_HOST_FREE:
    case MR_COMMAND_FREE_WAIT:
    case MR_COMMAND_RECORD_STREAM:
    case MR_COMMAND_HOST_WORK:
    case MR_COMMAND_ELAPSED:
    case MR_COMMAND_DRAIN: MR_MACHINE_LIST(MR_COMMAND_CASE) break;
    }
}

/* ---- the observer */

static mr_status may(mr_observer *observer, const mr_command *command) {
    mr_recorder *r = recorder_of(observer);
    mr_record_flush(r, command);
    if (r->full) return MR_OK;
    for (uint32_t i = 0; i < command->operand_count; i++)
        mr_record_storage(r, command->operands[i].tensor->storage, false);
    return MR_OK;
}

static void before(mr_observer *observer) {
    mr_record_flush(recorder_of(observer), NULL);
}

/* The device goes on. */
static void function_ran(mr_observer *observer, const mr_command *command) {
    mr_recorder *r = recorder_of(observer);
    uint32_t at = mr_slot_find(&r->functions, command->seq);
    mr_record_flush(r, NULL);
    if (at == NO_SLOT) return;
    item *function = &r->program->items.items[at];
    if (function->flag) /* its actions are recorded once, but may differ in another run */
        mr_record_inexact(r, "a host function ran again after mr.machine.back", command->where);
    function->flag = true;
}

/* Whether the command is not an item but a drop (state.h); *out_slot: the slot. */
static bool is_drop(const mr_recorder *r, const mr_command *command, uint32_t *out_slot) {
    switch (command->kind) {
    case MR_COMMAND_EVENT_CLOSE:
        *out_slot = mr_slot_find(&r->events, command->u.event.event->id);
        return true;
    case MR_COMMAND_STREAM_DROP:
        *out_slot = mr_slot_find(&r->streams, command->stream->id);
        return true;
    case MR_COMMAND_HOST_FREE:
        *out_slot = mr_slot_find(&r->storages, command->u.account.storage->id);
        return true;
    case MR_COMMAND_EVENT_CREATE:
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
    return false;
}

/* An object that no item uses has no slot (NO_SLOT), and does not exist in a player. */
static void keep_drop(mr_recorder *r, mr_command_id kind, uint32_t slot) {
    object_drop drop = {.kind = kind, .slot = slot, .before = r->program->items.count};
    if (slot == NO_SLOT || r->full) return;
    if (kind == MR_COMMAND_HOST_FREE) r->alive.items[slot] = NULL;
    if (!mr_vec_push(&r->program->drops, drop)) r->failed = true;
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    mr_recorder *r = recorder_of(observer);
    uint32_t dropped;
    (void)host_waited; /* false: interrupted, which `failed` tells */
    mr_record_flush(r, command);
    if (is_drop(r, command, &dropped)) {
        keep_drop(r, command->kind, dropped);
        return;
    }
    item *it = add_item(r, command, CAME_TRUE);
    if (!it) return;
    keep_storage_life(r, it, command);
    keep_result(r, it, command);
}

/* The item of a command that has come true; NULL: it has not. */
static item *item_of(mr_recorder *r, const mr_command *command) {
    item_list *list = list_of(r);
    for (size_t i = list->count; i-- > 0 && command->seq;) {
        item *it = &list->items[i];
        if (it->seq == command->seq) return it;
        if (it->seq && it->seq < command->seq) break;
    }
    return NULL;
}

/* The error of a host function belongs to it, whichever call returns it. */
static void function_failed(mr_recorder *r, const mr_command *command, const mr_error *status) {
    uint32_t at = mr_slot_find(&r->functions, command->seq);
    if (at == NO_SLOT) return;
    r->program->items.items[at].value = (uint64_t)status->code;
    r->program->items.items[at].other = mr_record_text(r, status->message);
}

static void failed(mr_observer *observer, const mr_command *command, const mr_error *status) {
    mr_recorder *r = recorder_of(observer);
    mr_record_flush(r, command);
    if (r->full) return;
    if (status && r->machine->host_function.command == command) {
        function_failed(r, command, status);
        return;
    }
    item *it = item_of(r, command);
    if (!it) it = add_item(r, command, status ? FAILED : SAID_NO);
    if (it && status) keep_error(r, it, status);
}

static void shared(mr_observer *observer, const char *what, mr_site where) {
    char reason[80];
    snprintf(reason, sizeof reason, "%s shares something with code outside of millrace", what);
    mr_record_inexact(recorder_of(observer), reason, where);
}

/* ---- beginning */

static mr_status wait_for_devices(mr_machine *machine) {
    return machine->counts.next_seq == 1 ? MR_OK : mr_machine_drain(machine);
}

static void note_settings(mr_recorder *r, const mr_simulator *simulator) {
    size_t count;
    const mr_setting_info *settings = simulator->settings(&count);
    for (size_t i = 0; i < count; i++) {
        setting_value s = {.name = mr_record_copy_text(r, settings[i].name)};
        mr_error_destroy(simulator->get_setting(r->machine, settings[i].name, &s.value));
        if (s.name && !mr_vec_push(&r->program->settings, s)) {
            free(s.name);
            r->failed = true;
        }
    }
}

static void note_machine(mr_recorder *r) {
    mr_machine *machine = r->machine;
    mr_program *p = r->program;
    const mr_simulator *simulator = machine->backend->simulator;
    p->backend = mr_record_copy_text(r, machine->backend->name);
    p->device_count = machine->device_count;
    p->launch_blocking = machine->launch_blocking;
    for (int i = 0; i < machine->device_count; i++)
        if (!mr_vec_push(&p->peers, machine->devices[i]->peers)) r->failed = true;
    p->first_seq = machine->counts.next_seq;
    p->first_storage = machine->counts.next_storage;
    p->first_epoch = machine->epoch;
    p->start_time = machine->backend->host_time(machine);
    p->from_the_start = machine->counts.next_seq == 1 && !machine->counts.next_storage &&
                        !machine->counts.next_event &&
                        machine->counts.next_stream == 2 * (uint32_t)machine->device_count;
    if (!simulator) {
        mr_record_inexact(r, "it was recorded on a real GPU, whose order and values may differ",
                          (mr_site){0});
        return;
    }
    p->model = mr_record_copy_text(r, simulator->model(machine));
    p->chooser = mr_record_copy_text(r, simulator->chooser(machine));
    r->is_explored = p->chooser && strcmp(p->chooser, "explorer") == 0;
    note_settings(r, simulator);
    if (!p->from_the_start && p->chooser && strncmp(p->chooser, "random", 6) == 0)
        mr_record_inexact(r, "the recording began after the chooser had drawn random numbers",
                          (mr_site){0});
}

static void destroy(mr_recorder *r) {
    if (r->observer.did) mr_observer_remove(r->machine, &r->observer);
    mr_map_free(&r->streams);
    mr_map_free(&r->events);
    mr_map_free(&r->storages);
    mr_map_free(&r->views);
    mr_map_free(&r->functions);
    mr_vec_free(&r->alive);
    mr_vec_free(&r->numbers);
    mr_vec_free(&r->captures);
    mr_program_release(r->program);
    free(r);
}

mr_status mr_program_record(mr_machine *machine, size_t most_items, mr_recorder **out_recorder) {
    *out_recorder = NULL;
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(wait_for_devices(machine));
    mr_recorder *r = calloc(1, sizeof *r);
    if (r) r->program = calloc(1, sizeof *r->program);
    if (!r || !r->program) {
        free(r);
        return mr_no_memory("for a program");
    }
    atomic_init(&r->program->refs, 1);
    r->machine = machine;
    r->most_items = most_items;
    note_machine(r);
    mr_status status = r->failed ? mr_no_memory("for a program") : MR_OK;
    mr_observer observer = {.name = "recorder",
                            .everything = true,
                            .may = may,
                            .before = before,
                            .did = did,
                            .shared = shared,
                            .failed = failed,
                            .function_ran = function_ran};
    if (!status) {
        r->observer = observer;
        status = mr_observer_add(machine, &r->observer);
    }
    if (status) destroy(r);
    else *out_recorder = r;
    return status;
}

size_t mr_recorder_count(const mr_recorder *recorder) {
    return recorder->program->items.count;
}

/* ---- the end */

static void note_end(mr_recorder *r) {
    mr_machine *machine = r->machine;
    mr_program *p = r->program;
    const mr_simulator *simulator = machine->backend->simulator;
    p->end_time = machine->backend->host_time(machine);
    p->end_device_time = simulator ? simulator->device_time(machine) : 0;
    p->lost = machine->lost != NULL;
    p->lost_code = machine->lost ? machine->lost->code : 0;
    if (p->lost) forget_device_memory(r);
    /* A recording that was cut was not told of later frees. */
    for (size_t i = 0; i < r->alive.count && !r->full; i++) {
        const mr_storage *storage = r->alive.items[i];
        storage_slot *slot = &p->storages.items[i];
        slot->live = storage && storage->host;
        if (slot->live && !r->is_explored)
            slot->last_hash = mr_value_hash(0, storage->host, storage->bytes);
    }
}

mr_status mr_recorder_finish(mr_recorder *r, mr_program **out_program) {
    *out_program = NULL;
    mr_record_flush(r, NULL);
    if (!r->failed) mr_record_number(r);
    note_end(r);
    mr_status status = MR_OK;
    if (r->failed) {
        status = mr_no_memory("for a recorded program");
    } else {
        *out_program = r->program;
        r->program = NULL;
    }
    destroy(r);
    return status;
}

void mr_recorder_abandon(mr_recorder *recorder) {
    if (recorder) destroy(recorder);
}
