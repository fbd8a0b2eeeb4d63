/* Calls an observer as if a program were carried out, but carries out no command: no queue, no memory, no values. The
 * objects are a player's, on a machine of the null backend.
 *
 * Easiest to break: the state after a telling. The next one begins with the same objects, so mr_teller_rewind must
 * restore all changes to them (closed streams, record_stream, numbers). */
#include <stdio.h>
#include <stdlib.h>

#include "model/given.h"
#include "null/null.h"
#include "program/player.h"

struct mr_teller {
    mr_player player; /* objects only */
    mr_event *extra;  /* the edit's events */
    uint32_t extra_count;
    uint64_t spread;
    uint64_t told; /* the number of the last command */
};

/* ---- life */

static mr_status run_no_function(void *context) {
    (void)context;
    return MR_OK;
}

mr_status mr_teller_open(const mr_program *program, mr_teller **out_teller) {
    *out_teller = NULL;
    mr_teller *t = calloc(1, sizeof *t);
    if (!t) return mr_no_memory("to look at a program");
    mr_player *p = &t->player;
    char devices[16];
    snprintf(devices, sizeof devices, "null:%d", program->device_count);
    p->program = program;
    p->spread = 1;
    mr_program_retain(program);
    mr_status status =
        mr_machine_open(&mr_null_backend, &(mr_machine_options){.device = devices}, &p->machine);
    if (!status) status = mr_player_build(p, run_no_function);
    if (!status) mr_player_find_default_streams(p, UINT32_MAX); /* the same ones after a reset */
    if (status) mr_teller_close(t);
    else *out_teller = t;
    return status;
}

void mr_teller_close(mr_teller *t) {
    if (!t) return;
    mr_player *p = &t->player;
    mr_machine_close(p->machine);
    mr_player_free_parts(p);
    free(t->extra);
    free(t);
}

mr_machine *mr_teller_machine(const mr_teller *teller) {
    return teller->player.machine;
}

const mr_stream *mr_teller_stream(const mr_teller *teller, uint32_t slot) {
    return teller->player.stream_at[slot];
}

void mr_teller_rewind(mr_teller *t, uint64_t spread) {
    mr_player *p = &t->player;
    const mr_program *program = p->program;
    t->spread = spread;
    p->machine->counts.next_seq = program->first_seq * spread;
    p->machine->counts.next_storage = program->first_storage;
    p->machine->host_function.command = NULL;
    t->told = p->machine->counts.next_seq - 1;
    for (size_t i = 0; i < program->storages.count; i++) p->storages[i].used_by.count = 0;
    for (size_t i = 0; i < program->streams.count; i++)
        if (program->streams.items[i].kind == MR_STREAM_USER) p->stream_at[i]->closed = false;
}

/* ---- telling */

static void tell(mr_teller *t, const mr_command *command) {
    t->told = command->seq;
    t->player.machine->counts.next_seq = command->seq + 1;
    for (size_t i = 0; i < t->player.machine->observing.observers.count; i++) {
        mr_observer *observer = t->player.machine->observing.observers.items[i];
        observer->did(observer, command, true);
    }
}

/* A command of a kind that a player makes anew each time. */
static void tell_host(mr_teller *t, const item *it) {
    mr_player *p = &t->player;
    mr_command command = {.kind = (mr_command_id)it->kind,
                          .operand_count = it->operand_count,
                          .operands = &p->operands[it->first_operand],
                          .seq = it->seq * t->spread,
                          .machine = p->machine,
                          .stream = it->stream == NO_SLOT ? NULL : p->stream_at[it->stream],
                          .where = it->where,
                          .name = it->name};
    switch (mr_command_kinds[it->kind].part) {
    case MR_PART_DEVICE: command.u.device = p->machine->devices[it->object]; break;
    case MR_PART_EVENT:
        command.u.event.event = &p->events[it->object];
        command.u.event.record_seq = it->value * t->spread;
        break;
    case MR_PART_NONE: /* the stream and the operands say all */
    case MR_PART_OP:
    case MR_PART_COPY: /* the rest have commands of their own, or are told to no observer */
    case MR_PART_MEMORY:
    case MR_PART_HOST:
    case MR_PART_FAULT:
    case MR_PART_ACCOUNT: break;
    }
    tell(t, &command);
}

static bool is_told(const item *it) {
    return it->outcome == CAME_TRUE && !mr_kind_is(it->kind, MR_TRAIT_ACCOUNT);
}

static void count_storage(mr_teller *t, const item *it) {
    const mr_storage *storage = &t->player.storages[it->object];
    mr_machine *machine = t->player.machine;
    if (machine->counts.next_storage < storage->id) machine->counts.next_storage = storage->id;
}

/* The changes of an item that are not commands of their own. */
static mr_status take_account(mr_teller *t, const item *it) {
    mr_player *p = &t->player;
    switch ((mr_command_id)it->kind) {
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_HOST_ALLOC: count_storage(t, it); break;
    case MR_COMMAND_STREAM_CLOSE: p->stream_at[it->stream]->closed = true; break;
    case MR_COMMAND_RECORD_STREAM: /* R33; the references are given ones */
        if (!mr_vec_push(&p->storages[it->object].used_by, p->stream_at[it->stream]))
            return mr_no_memory("to look at a program");
        break;
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_HOST_ACCESS:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_RESET:
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
    return MR_OK;
}

static void tell_command(mr_teller *t, const item *it, mr_command *command) {
    command->seq = it->seq * t->spread;
    if (mr_command_has(command, MR_PART_EVENT)) command->u.event.record_seq = it->value * t->spread;
    tell(t, command);
}

static void tell_ran(const mr_teller *t, const mr_command *function) {
    for (size_t i = 0; i < t->player.machine->observing.observers.count; i++) {
        mr_observer *observer = t->player.machine->observing.observers.items[i];
        if (observer->function_ran) observer->function_ran(observer, function);
    }
}

static mr_status tell_item(mr_teller *t, const item *it) {
    mr_player *p = &t->player;
    if (it->outcome == CAME_TRUE) MR_TRY(take_account(t, it));
    if (!is_told(it)) return MR_OK;
    mr_command *command = command_at(p, it);
    if (command) tell_command(t, it, command);
    else tell_host(t, it);
    if (it->kind != MR_COMMAND_HOST_FUNCTION) return MR_OK;
    p->machine->host_function.command = command;
    mr_status status = MR_OK;
    for (uint32_t i = 0; i < it->inner_count && !status; i++)
        status = tell_item(t, &p->program->inner.items[it->inner + i]);
    p->machine->host_function.command = NULL;
    tell_ran(t, command);
    return status;
}

static void tell_addition(mr_teller *t, const mr_program_addition *a) {
    mr_player *p = &t->player;
    mr_event *event = &t->extra[a->event];
    mr_command command = {
        .kind = a->kind,
        .seq = t->told + 1,
        .machine = p->machine,
        .stream = mr_kind_is(a->kind, MR_TRAIT_SUBMITTED) ? p->stream_at[a->stream] : NULL,
        .where = a->where,
        .name = mr_command_kinds[a->kind].name};
    if (a->kind == MR_COMMAND_RECORD) event->record_seq = command.seq;
    command.u.event.event = event;
    command.u.event.record_seq = event->record_seq;
    tell(t, &command);
}

static mr_status make_extra(mr_teller *t, uint32_t count) {
    if (count <= t->extra_count) return MR_OK;
    mr_event *extra = calloc(count, sizeof *extra);
    if (!extra) return mr_no_memory("to look at a program");
    free(t->extra);
    t->extra = extra;
    t->extra_count = count;
    for (uint32_t i = 0; i < count; i++)
        extra[i] = (mr_event){.refs = MR_GIVEN_REFS, .machine = t->player.machine};
    return MR_OK;
}

mr_status mr_teller_tell(mr_teller *t, const mr_telling *telling) {
    const mr_program *program = t->player.program;
    const mr_program_edit *edit = telling->edit;
    size_t added = 0, end = telling->until;
    if (end > program->items.count) end = program->items.count;
    if (edit) MR_TRY(make_extra(t, edit->event_count));
    for (size_t i = 0; i < end; i++) {
        if (telling->stop && *telling->stop) return MR_OK;
        while (edit && added < edit->added_count && edit->added[added].before <= i)
            tell_addition(t, &edit->added[added++]);
        bool left_out = edit && edit->left_out && edit->left_out[i];
        if (telling->next) telling->next(telling->context, i, left_out);
        if (!left_out) MR_TRY(tell_item(t, &program->items.items[i]));
    }
    return MR_OK;
}
