/* The observer that writes a program down. It looks at the recorded machine's objects only while it is told of them:
 * what it keeps are numbers and copies of bytes.
 *
 * Easiest to break: when bytes are looked at. What the host reads is there when the access is told. What it writes by
 * itself (a table of numbers into a new tensor) is there only once the call that told of it has ended, so it is
 * copied at the next thing that is told (`flush`). Memory of before the recording is copied when it is first met, in
 * `may`: before that command does anything to it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/backend.h"
#include "program/state.h"

/* Bytes that the host is writing, or may be. */
typedef struct {
    const mr_storage *storage;
    uint32_t slot;  /* all of a new storage; or NO_SLOT: */
    mr_tensor view; /* what item `at` of `inner` or of the items writes */
    bool inner;
    size_t at;
} capture;

struct mr_recorder {
    mr_observer observer;
    mr_machine *machine;
    mr_program *program;
    slot_map streams, events, storages, views;
    slot_map functions;         /* seq of a host function's command: its item */
    MR_VEC(mr_storage *) alive; /* by slot; NULL: gone */
    MR_VEC(capture) captures;
    size_t most_items;
    bool failed; /* memory was out */
    bool full;   /* no more items */
};

static mr_recorder *recorder_of(mr_observer *observer) {
    return (mr_recorder *)((char *)observer - offsetof(mr_recorder, observer));
}

/* ---- texts and bytes */

static char *copy_text(mr_recorder *r, const char *text) {
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) r->failed = true;
    return copy;
}

static uint32_t add_text(mr_recorder *r, const char *text) {
    char *copy = copy_text(r, text);
    if (!copy) return NO_SLOT;
    if (mr_vec_push(&r->program->texts, copy)) return (uint32_t)r->program->texts.count - 1;
    free(copy);
    r->failed = true;
    return NO_SLOT;
}

static uint32_t add_name(mr_recorder *r, const mr_name *name) {
    return add_text(r, mr_name_text(name));
}

static mr_site keep_site(mr_recorder *r, mr_site where) {
    if (where.file)
        where.file = mr_intern(&r->program->files, where.file, strlen(where.file), "[script]");
    return where;
}

/* The first reason counts. */
static void inexact(mr_recorder *r, const char *reason, mr_site where) {
    char text[256];
    if (r->program->inexact) return;
    if (where.file)
        snprintf(text, sizeof text, "%.160s (%.60s:%d)", reason, where.file, where.line);
    else snprintf(text, sizeof text, "%s", reason);
    r->program->inexact = copy_text(r, text);
}

/* Room for `size` bytes behind those that there are; NULL: no memory. */
static char *add_bytes(mr_recorder *r, size_t size, blob *out) {
    mr_program *p = r->program;
    *out = NO_BLOB;
    if (p->bytes.capacity - p->bytes.count < size) {
        size_t capacity = p->bytes.capacity * 2 + size;
        char *grown = realloc(p->bytes.items, capacity);
        if (!grown) {
            r->failed = true;
            return NULL;
        }
        p->bytes.items = grown;
        p->bytes.capacity = capacity;
    }
    *out = (blob){.at = p->bytes.count, .size = size};
    p->bytes.count += size;
    return p->bytes.items + out->at;
}

static bool all_zero(const char *bytes, size_t size) {
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static blob keep_storage_bytes(mr_recorder *r, const mr_storage *storage) {
    blob kept;
    size_t size = (size_t)storage->bytes;
    if (!storage->host || !size) return NO_BLOB;
    if (all_zero(storage->host, size)) return (blob){.size = size, .zero = true};
    char *to = add_bytes(r, size, &kept);
    if (to) memcpy(to, storage->host, size);
    return kept;
}

/* ---- slots */

static uint32_t epoch_of(const mr_recorder *r, uint32_t epoch) {
    return epoch - r->program->first_epoch + 1;
}

#define ADD_SLOT(r, list, map, key, slot)                                                          \
    (mr_vec_push(list, slot) && mr_slot_put(map, key, (uint32_t)(list)->count - 1)                 \
         ? (uint32_t)(list)->count - 1                                                             \
         : ((r)->failed = true, NO_SLOT))

static uint32_t stream_slot_of(mr_recorder *r, const mr_stream *stream, bool created) {
    if (!stream) return NO_SLOT;
    uint32_t found = mr_slot_find(&r->streams, stream->id);
    if (found != NO_SLOT) return found;
    stream_slot slot = {.id = stream->id,
                        .epoch = epoch_of(r, stream->epoch),
                        .kind = stream->kind,
                        .blocking = stream->blocking,
                        .before = stream->kind == MR_STREAM_USER && !created,
                        .priority = stream->priority,
                        .device = stream->device->index,
                        .name = add_name(r, stream->name),
                        .where = keep_site(r, stream->where)};
    return ADD_SLOT(r, &r->program->streams, &r->streams, stream->id, slot);
}

static uint32_t event_slot_of(mr_recorder *r, const mr_event *event, bool created) {
    uint32_t found = mr_slot_find(&r->events, event->id);
    if (found != NO_SLOT) return found;
    event_slot slot = {.id = event->id,
                       .epoch = epoch_of(r, event->epoch),
                       .timing = event->timing,
                       .blocking = event->blocking,
                       .before = !created,
                       .recorded = !created && event->record_seq,
                       .device = event->device ? event->device->index : 0,
                       .name = add_name(r, event->name),
                       .where = keep_site(r, event->where)};
    return ADD_SLOT(r, &r->program->events, &r->events, event->id, slot);
}

static uint32_t storage_slot_of(mr_recorder *r, mr_storage *storage, bool created) {
    uint32_t found = mr_slot_find(&r->storages, storage->id);
    if (found != NO_SLOT) return found;
    storage_slot slot = {.id = storage->id,
                         .bytes = storage->bytes,
                         .made_seq = storage->made_seq,
                         .epoch = epoch_of(r, storage->epoch),
                         .kind = storage->kind,
                         .blank = storage->blank,
                         .transient = storage->transient,
                         .before = !created,
                         .device = storage->device ? storage->device->index : 0,
                         .stream = stream_slot_of(r, storage->stream, false),
                         .name = NO_SLOT,
                         .made = keep_site(r, storage->made)};
    if (slot.before) {
        slot.first = keep_storage_bytes(r, storage);
        if (storage->bytes && !storage->host)
            inexact(r, "memory of a real GPU that was there before the recording is not known",
                    storage->made);
    }
    if (!mr_vec_push(&r->alive, slot.before ? storage : NULL)) r->failed = true;
    return ADD_SLOT(r, &r->program->storages, &r->storages, storage->id, slot);
}

static bool same_shape(const mr_tensor *a, const mr_tensor *b) {
    size_t size = a->ndim * sizeof *a->shape;
    return a->dtype == b->dtype && a->ndim == b->ndim && a->offset == b->offset &&
           memcmp(a->shape, b->shape, size) == 0 && memcmp(a->stride, b->stride, size) == 0;
}

static bool same_name(const mr_recorder *r, uint32_t text, const mr_name *name) {
    if (text == NO_SLOT || !name) return text == NO_SLOT && !name;
    return strcmp(r->program->texts.items[text], name->text) == 0;
}

static uint64_t hash_view(const mr_tensor *t, uint32_t storage) {
    size_t size = t->ndim * sizeof *t->shape;
    uint64_t key[3] = {storage, (uint64_t)t->offset, (uint64_t)t->dtype << 8 | t->ndim};
    uint64_t hash = mr_value_hash(1, key, sizeof key);
    hash = mr_value_hash(hash, t->shape, size);
    hash = mr_value_hash(hash, t->stride, size);
    if (t->name) hash = mr_value_hash(hash, t->name->text, strlen(t->name->text));
    return hash ? hash : 1;
}

static uint32_t view_slot_of(mr_recorder *r, const mr_tensor *t) {
    mr_program *p = r->program;
    uint32_t storage = storage_slot_of(r, t->storage, false);
    if (storage == NO_SLOT) return NO_SLOT;
    uint64_t key = hash_view(t, storage);
    uint32_t found = mr_slot_find(&r->views, key);
    if (found != NO_SLOT) {
        const view_slot *v = &p->views.items[found];
        if (v->storage == storage && same_shape(&v->view, t) && same_name(r, v->name, t->name))
            return found;
    }
    view_slot slot = {.view = *t, .storage = storage, .name = add_name(r, t->name)};
    slot.view.storage = NULL;
    slot.view.name = NULL;
    slot.view.where = keep_site(r, t->where);
    if (t->storage->name && p->storages.items[storage].name == NO_SLOT)
        p->storages.items[storage].name = add_name(r, t->storage->name);
    return ADD_SLOT(r, &p->views, &r->views, key, slot);
}

/* ---- what the host has written */

static void take(mr_recorder *r, const capture *c) {
    mr_program *p = r->program;
    if (c->slot != NO_SLOT) {
        storage_slot *slot = &p->storages.items[c->slot];
        slot->blank = c->storage->blank;
        slot->transient = c->storage->transient;
        slot->first = keep_storage_bytes(r, c->storage);
        return;
    }
    blob written;
    char *to = add_bytes(r, mr_value_view_bytes(&c->view), &written);
    if (!to) return;
    mr_value_gather(&c->view, to);
    item *it = c->inner ? &p->inner.items[c->at] : &p->items.items[c->at];
    if (!it->bytes.size) it->bytes = written;
    else it->bytes.size += written.size; /* the next operand: its bytes lie right behind */
}

/* An operation of the host that overwrites all of a new storage at once: nobody can see what was in it. */
static bool overwrites(const mr_command *command, const mr_storage *storage) {
    if (command->kind != MR_COMMAND_HOST_ACCESS || !command->u.op.row) return false;
    const mr_operand *o = &command->operands[0];
    return o->access == MR_WRITE && o->tensor->storage == storage && o->tensor->contiguous &&
           mr_value_view_bytes(o->tensor) == storage->bytes;
}

/* `command`: what is told now. */
static void flush(mr_recorder *r, const mr_command *command) {
    for (size_t i = 0; i < r->captures.count; i++) {
        const capture *c = &r->captures.items[i];
        bool goes = command && command->kind == MR_COMMAND_HOST_FREE &&
                    command->u.account.storage == c->storage;
        if (c->slot == NO_SLOT || !command || (!goes && !overwrites(command, c->storage)))
            take(r, c);
    }
    r->captures.count = 0;
}

static void capture_later(mr_recorder *r, capture c) {
    if (!mr_vec_push(&r->captures, c)) r->failed = true;
}

/* ---- items */

static uint32_t keep_operands(mr_recorder *r, const mr_command *command) {
    uint32_t first = (uint32_t)r->program->operands.count;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_operand *o = &command->operands[i];
        item_operand kept = {view_slot_of(r, o->tensor), o->access};
        if (!mr_vec_push(&r->program->operands, kept)) r->failed = true;
    }
    return first;
}

static void keep_op(mr_recorder *r, item *it, const mr_command *command) {
    it->row = command->u.op.row;
    if (!it->row) return;
    it->params = (uint32_t)r->program->params.count;
    if (!mr_vec_push(&r->program->params, command->u.op.params)) r->failed = true;
    if (!command->u.op.argument_bytes) return;
    blob skipped;
    add_bytes(r, (16 - r->program->bytes.count % 16) % 16, &skipped);
    char *to = add_bytes(r, command->u.op.argument_bytes, &it->arguments);
    if (to) memcpy(to, command->u.op.arguments, command->u.op.argument_bytes);
}

static uint32_t device_index(const mr_device *device) {
    return device ? (uint32_t)device->index : NO_SLOT;
}

static void keep_account(mr_recorder *r, item *it, const mr_command *command) {
    if (mr_command_has(command, MR_PART_EVENT)) {
        it->object = event_slot_of(r, command->u.event.event, it->kind == MR_COMMAND_EVENT_CREATE);
        return;
    }
    it->value = command->u.account.value;
    it->number = command->u.account.number;
    if (command->u.account.storage)
        it->object =
            storage_slot_of(r, command->u.account.storage, it->kind == MR_COMMAND_HOST_ALLOC);
    if (command->u.account.from) {
        it->object = event_slot_of(r, command->u.account.from, false);
        it->other = event_slot_of(r, command->u.account.to, false);
        if (r->program->events.items[it->object].recorded ||
            r->program->events.items[it->other].recorded)
            inexact(r, "an event of before the recording was asked for a time", command->where);
    }
    if (command->u.account.device) {
        it->object = device_index(command->u.account.device);
        it->other = device_index(command->u.account.peer);
    }
    if (command->u.account.text) it->own_name = add_text(r, command->u.account.text);
}

static void keep_kind(mr_recorder *r, item *it, const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_OP:
    case MR_COMMAND_HOST_ACCESS: keep_op(r, it, command); return;
    case MR_COMMAND_COPY:
        it->flag = command->u.copy.synchronous;
        it->direction = (uint8_t)command->u.copy.direction;
        it->value = command->u.copy.bytes;
        return;
    case MR_COMMAND_ALLOC:
        it->object = storage_slot_of(r, command->u.storage, true);
        it->flag = command->u.storage->impl != NULL;
        return;
    case MR_COMMAND_FREE:
        it->object = storage_slot_of(r, command->u.storage, false);
        it->flag = command->u.at_once;
        return;
    case MR_COMMAND_FAULT: it->value = command->u.fault; return;
    case MR_COMMAND_DEVICE_SYNC: it->object = device_index(command->u.device); return;
    default: break;
    }
    if (mr_command_is(command, MR_TRAIT_ACCOUNT)) {
        keep_account(r, it, command);
    } else if (mr_command_has(command, MR_PART_EVENT)) {
        it->object = event_slot_of(r, command->u.event.event, false);
        it->value = command->u.event.record_seq;
    }
}

static item_list *list_of(const mr_recorder *r) {
    return r->machine->host_function ? &r->program->inner : &r->program->items;
}

/* Inside a host function: counts the item as its. */
static void count_inner(mr_recorder *r) {
    mr_program *p = r->program;
    uint32_t at = mr_slot_find(&r->functions, r->machine->host_function->seq);
    if (at == NO_SLOT) {
        inexact(r, "a host function of before the recording ran", (mr_site){0});
        return;
    }
    item *function = &p->items.items[at];
    if (!function->inner_count++) function->inner = (uint32_t)p->inner.count;
}

/* NULL: no more items, or no memory. Valid until the next one. */
static item *add_item(mr_recorder *r, const mr_command *command, outcome came) {
    mr_program *p = r->program;
    if (r->most_items && p->items.count + p->inner.count >= r->most_items && !r->full) {
        r->full = true;
        inexact(r, "the program is too long to be recorded", command->where);
    }
    if (r->full) return NULL;
    item it = {.kind = (uint8_t)command->kind,
               .outcome = (uint8_t)came,
               .stream =
                   stream_slot_of(r, command->stream, command->kind == MR_COMMAND_STREAM_CREATE),
               .object = NO_SLOT,
               .other = NO_SLOT,
               .first_operand = keep_operands(r, command),
               .operand_count = command->operand_count,
               .own_name = command->own_name ? add_name(r, command->own_name) : NO_SLOT,
               .error = NO_SLOT,
               .name = command->own_name ? NULL : command->name,
               .where = keep_site(r, command->where),
               .seq = command->seq};
    keep_kind(r, &it, command);
    if (mr_command_kinds[command->kind].after != MR_AFTER_NOTHING)
        it.time = r->machine->backend->host_time(r->machine);
    if (r->machine->host_function) count_inner(r);
    item_list *list = list_of(r);
    if (!mr_vec_push(list, it)) {
        r->failed = true;
        return NULL;
    }
    return &list->items[list->count - 1];
}

static void keep_error(mr_recorder *r, item *it, const mr_error *status) {
    it->has_error = true;
    it->code = status->code;
    it->error = add_text(r, status->message);
    if (status->code == MR_CODE_INTERRUPTED) inexact(r, "a wait was interrupted", it->where);
}

/* ---- what the host reads and writes */

static void keep_value(mr_recorder *r, item *it, const mr_tensor *view) {
    if (!view->storage->host) return;
    it->hash = it->hash * 31 + mr_value_hash_view(view);
    size_t size = mr_value_view_bytes(view);
    if (size > VALUE_KEPT || it->operand_count > 1) return;
    char *to = add_bytes(r, size, &it->bytes);
    if (to) mr_value_gather(view, to);
}

static void keep_access(mr_recorder *r, item *it, const mr_command *command) {
    for (uint32_t i = 0; i < command->operand_count && !it->row; i++) {
        const mr_operand *o = &command->operands[i];
        if (o->access != MR_WRITE) keep_value(r, it, o->tensor);
        if (o->access & MR_WRITE) {
            it->bytes = NO_BLOB;
            capture_later(r, (capture){.storage = o->tensor->storage,
                                       .slot = NO_SLOT,
                                       .view = *o->tensor,
                                       .inner = r->machine->host_function != NULL,
                                       .at = list_of(r)->count - 1});
        }
    }
}

static void keep_storage_life(mr_recorder *r, const item *it, const mr_command *command) {
    if (it->object == NO_SLOT) return;
    switch (command->kind) {
    case MR_COMMAND_HOST_ALLOC:
        r->alive.items[it->object] = command->u.account.storage;
        capture_later(r, (capture){.storage = command->u.account.storage, .slot = it->object});
        break;
    case MR_COMMAND_ALLOC: r->alive.items[it->object] = command->u.storage; break;
    case MR_COMMAND_HOST_FREE:
    case MR_COMMAND_FREE: r->alive.items[it->object] = NULL; break;
    case MR_COMMAND_RECORD_STREAM: r->program->storages.items[it->object].used_by++; break;
    default: break;
    }
}

static void forget_device_memory(mr_recorder *r) {
    for (size_t i = 0; i < r->alive.count; i++)
        if (r->program->storages.items[i].kind == MR_MEMORY_DEVICE) r->alive.items[i] = NULL;
}

/* ---- the observer */

static mr_status may(mr_observer *observer, const mr_command *command) {
    mr_recorder *r = recorder_of(observer);
    flush(r, command);
    if (r->full) return MR_OK;
    for (uint32_t i = 0; i < command->operand_count; i++)
        storage_slot_of(r, command->operands[i].tensor->storage, false);
    return MR_OK;
}

static void before(mr_observer *observer) {
    flush(recorder_of(observer), NULL);
}

/* The device goes on. */
static void function_ran(mr_observer *observer, const mr_command *command) {
    (void)command;
    flush(recorder_of(observer), NULL);
}

/* Memory whose last reference goes, and that nothing ever used here. */
static bool is_unknown(const mr_recorder *r, const mr_command *command) {
    if (command->kind == MR_COMMAND_EVENT_CLOSE)
        return mr_slot_find(&r->events, command->u.event.event->id) == NO_SLOT;
    if (command->kind == MR_COMMAND_HOST_FREE)
        return mr_slot_find(&r->storages, command->u.account.storage->id) == NO_SLOT;
    return false;
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    mr_recorder *r = recorder_of(observer);
    (void)host_waited; /* false: interrupted, which `failed` tells */
    flush(r, command);
    if (is_unknown(r, command)) return;
    item *it = add_item(r, command, CAME_TRUE);
    if (!it) return;
    keep_storage_life(r, it, command);
    if (command->kind == MR_COMMAND_HOST_ACCESS) keep_access(r, it, command);
    else if (command->kind == MR_COMMAND_HOST_READ) keep_value(r, it, command->operands[0].tensor);
    else if (command->kind == MR_COMMAND_RESET) forget_device_memory(r);
    else if (command->kind == MR_COMMAND_HOST_FUNCTION &&
             !mr_slot_put(&r->functions, command->seq, (uint32_t)r->program->items.count - 1))
        r->failed = true;
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

/* A host function has raised an error: that is its own, whichever call returns it. */
static void function_failed(mr_recorder *r, const mr_command *command, const mr_error *status) {
    uint32_t at = mr_slot_find(&r->functions, command->seq);
    if (at == NO_SLOT) return;
    r->program->items.items[at].value = (uint64_t)status->code;
    r->program->items.items[at].other = add_text(r, status->message);
}

static void failed(mr_observer *observer, const mr_command *command, const mr_error *status) {
    mr_recorder *r = recorder_of(observer);
    flush(r, command);
    if (r->full) return;
    if (status && r->machine->host_function == command) {
        function_failed(r, command, status);
        return;
    }
    item *it = item_of(r, command);
    if (!it) it = add_item(r, command, status ? FAILED : SAID_NO);
    if (it && status) keep_error(r, it, status);
}

/* ---- beginning */

static mr_status wait_for_devices(mr_machine *machine) {
    if (machine->next_seq == 1) return MR_OK;
    for (int i = 0; i < machine->device_count; i++) MR_TRY(mr_device_drain(machine->devices[i]));
    return MR_OK;
}

static void note_settings(mr_recorder *r, const mr_simulator *simulator) {
    size_t count;
    const mr_setting_info *settings = simulator->settings(&count);
    for (size_t i = 0; i < count; i++) {
        setting_value s = {.name = copy_text(r, settings[i].name)};
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
    p->backend = copy_text(r, machine->backend->name);
    p->device_count = machine->device_count;
    p->launch_blocking = machine->launch_blocking;
    for (int i = 0; i < machine->device_count; i++)
        if (!mr_vec_push(&p->peers, machine->devices[i]->peers)) r->failed = true;
    p->first_seq = machine->next_seq;
    p->first_storage = machine->next_storage;
    p->first_epoch = machine->epoch;
    p->start_time = machine->backend->host_time(machine);
    p->from_the_start = machine->next_seq == 1 && !machine->next_storage && !machine->next_event &&
                        machine->next_stream == 2 * (uint32_t)machine->device_count;
    if (!simulator) {
        inexact(r, "it was recorded on a real GPU, whose order and values may differ",
                (mr_site){0});
        return;
    }
    p->model = copy_text(r, simulator->model(machine));
    p->chooser = copy_text(r, simulator->chooser(machine));
    note_settings(r, simulator);
    if (!p->from_the_start && p->chooser && strncmp(p->chooser, "random", 6) == 0)
        inexact(r, "the recording began after the chooser had drawn random numbers", (mr_site){0});
}

static void destroy(mr_recorder *r) {
    if (r->observer.did) mr_observer_remove(r->machine, &r->observer);
    mr_slot_map_free(&r->streams);
    mr_slot_map_free(&r->events);
    mr_slot_map_free(&r->storages);
    mr_slot_map_free(&r->views);
    mr_slot_map_free(&r->functions);
    mr_vec_free(&r->alive);
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
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a program");
    }
    atomic_init(&r->program->refs, 1);
    r->machine = machine;
    r->most_items = most_items;
    note_machine(r);
    mr_status status =
        r->failed ? mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a program") : MR_OK;
    mr_observer observer = {.name = "recorder",
                            .everything = true,
                            .may = may,
                            .before = before,
                            .did = did,
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
    /* A recording that was cut has not heard what was freed since. */
    for (size_t i = 0; i < r->alive.count && !r->full; i++) {
        const mr_storage *storage = r->alive.items[i];
        storage_slot *slot = &p->storages.items[i];
        slot->live = storage && storage->host;
        if (slot->live) slot->last_hash = mr_value_hash(0, storage->host, storage->bytes);
    }
}

mr_status mr_recorder_finish(mr_recorder *r, mr_program **out_program) {
    *out_program = NULL;
    flush(r, NULL);
    note_end(r);
    mr_status status = MR_OK;
    if (r->failed) {
        status = mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a recorded program");
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
