/* Makes a player's objects from a program's slots, once. These are records of streams, events, storages and views, and
 * a command for each item that is submitted. All are in one block of memory and have more references than are ever
 * dropped. So nothing is allocated or freed while the program is carried out. */
#include <stdlib.h>
#include <string.h>

#include "model/backend.h"
#include "model/given.h"
#include "program/player.h"

/* ---- one block */

/* With base NULL it only counts. */
typedef struct {
    char *base;
    size_t used;
} packer;

static void *pack(packer *pk, size_t count, size_t size) {
    void *at = pk->base ? pk->base + pk->used : NULL;
    pk->used += (count * size + 63) / 64 * 64;
    return at;
}

static bool needs_command(const item *it) {
    return mr_kind_is(it->kind, MR_TRAIT_SUBMITTED) ||
           (it->kind == MR_COMMAND_HOST_ACCESS && it->row);
}

typedef struct {
    size_t commands, functions;
} counts;

static counts count_commands(const mr_program *program) {
    counts c = {0};
    for (size_t i = 0; i < program->items.count; i++) {
        c.commands += needs_command(&program->items.items[i]);
        c.functions += program->items.items[i].kind == MR_COMMAND_HOST_FUNCTION;
    }
    for (size_t i = 0; i < program->inner.count; i++)
        c.commands += needs_command(&program->inner.items[i]);
    return c;
}

static void lay_out(mr_player *p, packer *pk, counts c) {
    const mr_program *program = p->program;
    p->streams = pack(pk, program->streams.count, sizeof *p->streams);
    p->events = pack(pk, program->events.count, sizeof *p->events);
    p->storages = pack(pk, program->storages.count, sizeof *p->storages);
    p->views = pack(pk, program->views.count, sizeof *p->views);
    p->operands = pack(pk, program->operands.count, sizeof *p->operands);
    p->commands = pack(pk, c.commands, sizeof *p->commands);
    p->command_count = c.commands;
    p->functions = pack(pk, c.functions, sizeof *p->functions);
    p->due = pack(pk, program->storages.count + 1, sizeof *p->due);
    if (pk->base) p->due[0] = 0;
}

/* ---- names: counted, too, and parts of the block */

static mr_name *pack_name(packer *pk, const mr_program *program, uint32_t text) {
    if (text == NO_SLOT) return NULL;
    const char *chars = program->texts.items[text];
    size_t size = strlen(chars) + 1;
    mr_name *name = pack(pk, 1, sizeof *name + size);
    if (!name) return NULL;
    name->refs = MR_GIVEN_REFS;
    memcpy(name->text, chars, size);
    return name;
}

/* ---- objects */

static void make_stream(mr_player *p, packer *pk, size_t i) {
    const stream_slot *slot = &p->program->streams.items[i];
    mr_name *name = pack_name(pk, p->program, slot->name);
    if (!pk->base) return;
    p->streams[i] = (mr_stream){.refs = MR_GIVEN_REFS,
                                .id = slot->id,
                                .epoch = slot->epoch,
                                .kind = slot->kind,
                                .blocking = slot->blocking,
                                .priority = slot->priority,
                                .name = name,
                                .device = p->machine->devices[slot->device],
                                .where = slot->where};
    if (slot->kind == MR_STREAM_USER) p->stream_at[i] = &p->streams[i];
}

static void make_event(mr_player *p, packer *pk, size_t i) {
    const event_slot *slot = &p->program->events.items[i];
    mr_name *name = pack_name(pk, p->program, slot->name);
    if (!pk->base) return;
    p->events[i] = (mr_event){.refs = MR_GIVEN_REFS,
                              .id = slot->id,
                              .epoch = slot->epoch,
                              .timing = slot->timing,
                              .blocking = slot->blocking,
                              .closed = true, /* not yet open */
                              .name = name,
                              .machine = p->machine,
                              .where = slot->where};
}

static void make_storage(mr_player *p, packer *pk, size_t i) {
    const storage_slot *slot = &p->program->storages.items[i];
    mr_name *name = pack_name(pk, p->program, slot->name);
    void *used_by = pack(pk, slot->used_by, sizeof(mr_stream *));
    if (!pk->base) return;
    bool device = slot->kind == MR_MEMORY_DEVICE;
    p->storages[i] = (mr_storage){.refs = MR_GIVEN_REFS,
                                  .handles = 1,
                                  .epoch = slot->epoch,
                                  .kind = slot->kind,
                                  .blank = slot->blank,
                                  .transient = slot->transient,
                                  .id = slot->id,
                                  .bytes = slot->bytes,
                                  .machine = p->machine,
                                  .device = device ? p->machine->devices[slot->device] : NULL,
                                  .stream = device ? p->stream_at[slot->stream] : NULL,
                                  .used_by = {used_by, 0, slot->used_by},
                                  .made = slot->made,
                                  .made_seq = slot->made_seq,
                                  .name = name};
}

static void make_view(mr_player *p, packer *pk, size_t i) {
    const view_slot *slot = &p->program->views.items[i];
    mr_name *name = pack_name(pk, p->program, slot->name);
    if (!pk->base) return;
    p->views[i] = slot->view;
    p->views[i].refs = MR_GIVEN_REFS;
    p->views[i].storage = &p->storages[slot->storage];
    p->views[i].name = name;
}

/* ---- commands */

static void fill_kind(mr_player *p, mr_command *command, const item *it) {
    switch ((mr_command_id)it->kind) {
    case MR_COMMAND_OP:
    case MR_COMMAND_HOST_ACCESS:
        command->u.op.row = it->row;
        mr_params_set(command, &p->program->params.items[it->params]);
        command->u.op.argument_bytes = it->row ? it->arguments.size : 0;
        /* borrowed: they are constant, and live as long as the program */
        if (command->u.op.argument_bytes)
            command->u.op.arguments = p->program->bytes.items + it->arguments.at;
        return;
    case MR_COMMAND_COPY:
        command->u.copy.direction = (mr_copy_direction)it->direction;
        command->u.copy.synchronous = it->flag;
        command->u.copy.current = (int16_t)it->object;
        command->u.copy.bytes = it->value;
        return;
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
        command->u.event.event = &p->events[it->object];
        command->u.event.record_seq = it->value * p->spread;
        return;
    case MR_COMMAND_ALLOC: command->u.storage = &p->storages[it->object]; return;
    case MR_COMMAND_FREE:
        command->u.storage = &p->storages[it->object];
        command->u.at_once = it->flag;
        return;
    case MR_COMMAND_FAULT: command->u.fault = (mr_code)it->value; return;
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_RESET: MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
}

typedef struct {
    size_t commands, functions; /* made so far */
} progress;

static void make_command(mr_player *p, packer *pk, const item *it, size_t index, progress *made) {
    if (!needs_command(it)) return;
    mr_name *name = pack_name(pk, p->program, it->own_name);
    if (!pk->base) return;
    mr_command *command = p->command_of[index] = &p->commands[made->commands++];
    *command = (mr_command){.refs = MR_GIVEN_REFS,
                            .kind = (mr_command_id)it->kind,
                            .operand_count = it->operand_count,
                            .operands = &p->operands[it->first_operand],
                            .seq = it->seq * p->spread,
                            .machine = p->machine,
                            .stream = it->stream == NO_SLOT ? NULL : p->stream_at[it->stream],
                            .where = it->where,
                            .launch = it->launch,
                            .name = name ? name->text : it->name,
                            .own_name = name};
    if (it->launched != NO_SLOT) command->launched = p->program->launched.items[it->launched];
    fill_kind(p, command, it);
    if (it->meeting != NO_SLOT) {
        command->meeting = p->meetings[it->meeting];
        command->member = it->member;
        command->meeting->members[it->member].command = command;
    }
    if (it->kind != MR_COMMAND_HOST_FUNCTION) return;
    function_context *context = &p->functions[made->functions++];
    *context = (function_context){p, it};
    command->u.host.call = p->run_function;
    command->u.host.context = context;
}

static void make_all(mr_player *p, packer *pk, counts c) {
    const mr_program *program = p->program;
    progress made = {0};
    lay_out(p, pk, c);
    for (size_t i = 0; i < program->streams.count; i++) make_stream(p, pk, i);
    if (pk->base) mr_player_find_default_streams(p, 1);
    for (size_t i = 0; i < program->events.count; i++) make_event(p, pk, i);
    for (size_t i = 0; i < program->storages.count; i++) make_storage(p, pk, i);
    for (size_t i = 0; i < program->views.count; i++) make_view(p, pk, i);
    for (size_t i = 0; i < program->operands.count && pk->base; i++)
        p->operands[i] = (mr_operand){&p->views[program->operands.items[i].view],
                                      program->operands.items[i].access};
    for (size_t i = 0; i < program->items.count; i++)
        make_command(p, pk, &program->items.items[i], i, &made);
    for (size_t i = 0; i < program->inner.count; i++)
        make_command(p, pk, &program->inner.items[i], program->items.count + i, &made);
}

/* The commands that use each storage of host memory: by storage, counted first. */
typedef struct {
    mr_player *p;
    size_t *next; /* of storage i: how many use the one before; then where its next one goes */
    bool counts;
    size_t all;
} user_search;

static void note_user(user_search *u, size_t storage, size_t command) {
    if (u->p->storages[storage].kind == MR_MEMORY_DEVICE) return;
    u->all++;
    if (u->counts) u->next[storage + 1]++;
    else u->p->users[u->next[storage]++] = (uint32_t)command;
}

static void note_operands(user_search *u, const mr_operand *operands, uint32_t count,
                          size_t command) {
    for (uint32_t k = 0; k < count; k++)
        note_user(u, (size_t)(operands[k].tensor->storage - u->p->storages), command);
}

static void note_users(user_search *u, size_t commands) {
    const mr_player *p = u->p;
    for (size_t i = 0; i < commands; i++) {
        const mr_command *command = &p->commands[i];
        note_operands(u, command->operands, command->operand_count, i);
        if (command->kind != MR_COMMAND_HOST_FUNCTION) continue;
        const item *function = ((const function_context *)command->u.host.context)->item;
        for (uint32_t k = 0; k < function->inner_count; k++) {
            const item *it = &p->program->inner.items[function->inner + k];
            note_operands(u, &p->operands[it->first_operand], it->operand_count, i);
            if (it->kind != MR_COMMAND_HOST_ALLOC || it->object == NO_SLOT) continue;
            note_user(u, it->object, i);
            u->p->made_inside = true;
        }
    }
}

static mr_status find_users(mr_player *p, size_t commands) {
    const size_t storages = p->program->storages.count;
    p->users_from = calloc(storages + 2, sizeof *p->users_from);
    if (!p->users_from) return mr_no_memory("to play a program");
    user_search u = {.p = p, .next = p->users_from + 1, .counts = true};
    note_users(&u, commands);
    p->users = malloc((u.all + 1) * sizeof *p->users);
    if (!p->users) return mr_no_memory("to play a program");
    for (size_t i = 1; i <= storages; i++) u.next[i] += u.next[i - 1];
    u.counts = false;
    note_users(&u, commands);
    return MR_OK;
}

static mr_status make_meetings(mr_player *p) {
    const mr_program *program = p->program;
    p->meetings = calloc(program->meetings.count + 1, sizeof *p->meetings);
    bool fine = p->meetings != NULL;
    for (size_t i = 0; i < program->meetings.count && fine; i++)
        fine = (p->meetings[i] = mr_meeting_copy(program->meetings.items[i])) != NULL;
    return fine ? MR_OK : mr_no_memory("to play a program");
}

void mr_player_free_parts(mr_player *p) {
    for (size_t i = 0; p->meetings && i < p->program->meetings.count; i++)
        mr_meeting_release(p->meetings[i]);
    free(p->meetings);
    free(p->block);
    free(p->stream_at);
    free(p->command_of);
    free(p->users);
    free(p->users_from);
    mr_program_release(p->program);
}

mr_status mr_player_build(mr_player *p, mr_status (*run_function)(void *context)) {
    p->run_function = run_function;
    const mr_program *program = p->program;
    counts c = count_commands(program);
    packer pk = {0};
    MR_TRY(make_meetings(p));
    make_all(p, &pk, c);
    p->block_bytes = pk.used;
    p->block = aligned_alloc(64, pk.used ? pk.used : 64);
    p->stream_at = calloc(program->streams.count + 1, sizeof *p->stream_at);
    p->command_of = calloc(program->items.count + program->inner.count + 1, sizeof *p->command_of);
    if (!p->block || !p->stream_at || !p->command_of) return mr_no_memory("to play a program");
    pk = (packer){.base = p->block};
    make_all(p, &pk, c);
    return find_users(p, c.commands);
}

static mr_stream *default_stream(const mr_player *p, const stream_slot *slot) {
    const mr_device *device = p->machine->devices[slot->device];
    return slot->kind == MR_STREAM_LEGACY ? device->legacy : device->per_thread;
}

void mr_player_find_default_streams(mr_player *p, uint32_t epoch) {
    const mr_program *program = p->program;
    for (size_t i = 0; i < program->streams.count; i++) {
        const stream_slot *slot = &program->streams.items[i];
        if (slot->kind != MR_STREAM_USER && slot->epoch <= epoch)
            p->stream_at[i] = default_stream(p, slot);
    }
    if (epoch == 1) return; /* commands and storages are yet to be made */
    for (size_t i = p->position; i < program->items.count; i++) {
        const item *it = &program->items.items[i];
        if (p->command_of[i] && it->stream != NO_SLOT)
            p->command_of[i]->stream = p->stream_at[it->stream];
    }
    for (size_t i = 0; i < program->storages.count; i++)
        if (program->storages.items[i].kind == MR_MEMORY_DEVICE)
            p->storages[i].stream = p->stream_at[program->storages.items[i].stream];
}
