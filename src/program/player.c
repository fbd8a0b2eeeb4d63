/* A player's life: opens a machine in the program's initial state, and closes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/backend.h"
#include "model/given.h"
#include "program/player.h"

/* ---- the machine */

static mr_status open_machine(mr_player *p, const mr_player_options *options) {
    const mr_program *program = p->program;
    char devices[32];
    snprintf(devices, sizeof devices, "%s:%d", options->backend->name, program->device_count);
    mr_machine_options machine = {
        .device = devices,
        .model = options->model ? options->model : program->model,
        .chooser = options->chooser ? options->chooser : program->chooser,
        .memory_limit = options->memory_limit,
    };
    MR_TRY(mr_machine_open(options->backend, &machine, &p->machine));
    p->machine->memory.host_begins_zero = true;
    p->machine->bodies.replayed = true;
    p->machine->bodies.skipped = options->without_bodies;
    const mr_simulator *simulator = options->backend->simulator;
    for (size_t i = 0; i < program->settings.count; i++) {
        const setting_value *s = &program->settings.items[i];
        MR_TRY(simulator->set_setting(p->machine, s->name, s->value));
    }
    return MR_OK;
}

/* ---- the state before the recording: made as if it were new and complete */

static mr_status enable_peers(const mr_player *p) {
    mr_device **devices = p->machine->devices;
    for (int i = 0; i < p->program->device_count; i++)
        for (int k = 0; k < p->program->device_count; k++)
            if (p->program->peers.items[i] >> (k & 63) & 1)
                MR_TRY(mr_device_enable_peer_access(devices[i], devices[k]));
    return MR_OK;
}

static mr_status make_streams(mr_player *p) {
    const mr_program *program = p->program;
    for (size_t i = 0; i < program->streams.count; i++)
        if (program->streams.items[i].before && program->streams.items[i].epoch == 1)
            MR_TRY(mr_stream_open_given(p->stream_at[i]));
    return MR_OK;
}

static mr_status make_events(mr_player *p) {
    mr_caller caller = {.machine = p->machine};
    const mr_program *program = p->program;
    for (size_t i = 0; i < program->events.count; i++) {
        const event_slot *slot = &program->events.items[i];
        if (!slot->before) continue;
        MR_TRY(mr_event_open_given(&p->events[i]));
        if (slot->recorded)
            MR_TRY(
                mr_event_record(&caller, &p->events[i], p->machine->devices[slot->device]->legacy));
    }
    return MR_OK;
}

/* A reset takes device memory only. */
static bool was_there(const storage_slot *slot) {
    return slot->before && (slot->kind != MR_MEMORY_DEVICE || slot->epoch == 1);
}

static mr_status make_memory(mr_player *p, size_t i) {
    mr_storage *storage = &p->storages[i];
    if (storage->kind != MR_MEMORY_DEVICE) return mr_storage_place(storage, NULL);
    mr_command *alloc;
    mr_caller caller = {.machine = p->machine};
    MR_TRY(mr_command_create(&caller, MR_COMMAND_ALLOC, storage->stream, "alloc", 0, &alloc));
    alloc->u.storage = storage;
    mr_storage_retain(storage);
    mr_status status = mr_storage_place(storage, alloc);
    if (!status) return mr_command_submit(alloc);
    mr_command_release(alloc);
    return status;
}

static void fill_memory(mr_player *p) {
    const mr_program *program = p->program;
    for (size_t i = 0; i < program->storages.count; i++) {
        const storage_slot *slot = &program->storages.items[i];
        char *host = p->storages[i].host;
        if (!slot->before || !host) continue;
        if (slot->first.zero) memset(host, 0, slot->first.size);
        else if (slot->first.size)
            memcpy(host, program->bytes.items + slot->first.at, slot->first.size);
    }
}

static mr_status set_up(mr_player *p) {
    const mr_program *program = p->program;
    MR_TRY(enable_peers(p));
    MR_TRY(make_streams(p));
    MR_TRY(make_events(p));
    for (size_t i = 0; i < program->storages.count; i++)
        if (was_there(&program->storages.items[i])) MR_TRY(make_memory(p, i));
    for (int i = 0; i < program->device_count && !program->from_the_start; i++)
        MR_TRY(mr_device_drain(p->machine->devices[i]));
    fill_memory(p);
    p->machine->launch_blocking = program->launch_blocking;
    p->machine->counts.next_seq = program->first_seq * p->spread;
    p->machine->counts.next_storage =
        program->first_storage; /* observers know by it which storages existed */
    p->start_time = p->machine->backend->host_time(p->machine);
    return MR_OK;
}

mr_status mr_player_open(const mr_program *program, const mr_player_options *options,
                         mr_player **out_player) {
    *out_player = NULL;
    if (!options->backend->simulator)
        return mr_fail(MR_CODE_NOT_SUPPORTED, "programs are played on the virtual GPU only");
    mr_player *p = calloc(1, sizeof *p);
    if (!p) return mr_no_memory("to play a program");
    p->program = program;
    p->keep_chooser = options->chooser != NULL;
    p->keep_model = options->model != NULL;
    p->edit = options->edit;
    p->spread = options->edit && options->edit->added_count ? MR_PROGRAM_SPREAD : 1;
    mr_program_retain(program);
    mr_status status = open_machine(p, options);
    if (!status) status = mr_player_build(p, mr_player_run_function);
    if (!status) status = set_up(p);
    if (status) mr_player_close(p);
    else *out_player = p;
    return status;
}

/* Drops what the model would free with the last reference; the machine frees the rest. */
static void drop_objects(mr_player *p) {
    const mr_program *program = p->program;
    for (size_t i = 0; i < program->storages.count && p->block; i++) {
        if (program->storages.items[i].kind != MR_MEMORY_DEVICE && p->storages[i].host)
            mr_storage_drop_given(&p->storages[i]);
        mr_storage_forget_users(&p->storages[i]);
    }
    for (size_t i = 0; i < program->events.count && p->block; i++)
        if (!p->events[i].closed && p->events[i].machine) mr_event_drop_given(&p->events[i]);
    for (size_t i = 0; i < program->streams.count && p->block; i++)
        if (program->streams.items[i].kind == MR_STREAM_USER && p->streams[i].impl)
            mr_stream_drop_given(&p->streams[i]);
}

void mr_player_close(mr_player *p) {
    if (!p) return;
    if (p->machine) drop_objects(p);
    for (size_t i = 0; i < p->extra.count; i++) mr_event_release(p->extra.items[i]);
    mr_vec_free(&p->extra);
    mr_machine_close(p->machine);
    mr_error_destroy(p->host_work);
    mr_player_free_parts(p);
    free(p);
}

/* ---- looking at it */

mr_machine *mr_player_machine(const mr_player *player) {
    return player->machine;
}

static bool is_live(const mr_player *p, size_t i) {
    const mr_storage *storage = &p->storages[i];
    if (!storage->host || storage->freed) return false;
    return storage->kind != MR_MEMORY_DEVICE || storage->epoch == p->machine->epoch;
}

const mr_storage *mr_player_storage(const mr_player *player, uint32_t slot) {
    return slot < player->program->storages.count && is_live(player, slot) ? &player->storages[slot]
                                                                           : NULL;
}

void mr_player_edit(mr_player *player, const mr_program_edit *edit) {
    player->edit = edit;
}

size_t mr_player_position(const mr_player *player) {
    return player->position;
}
