/* Recorded programs: reference counts and queries. See program.h. */
#include <stdlib.h>

#include "ops/op.h"
#include "program/state.h"

void mr_program_retain(const mr_program *program) {
    atomic_fetch_add(&((mr_program *)program)->refs, 1);
}

static void release_arguments(mr_program *p, const item_list *items) {
    for (size_t i = 0; i < items->count && p->retains_arguments; i++) {
        const item *it = &items->items[i];
        if (it->row && it->row->arguments_release && it->arguments.size)
            it->row->arguments_release(p->bytes.items + it->arguments.at);
    }
}

static void destroy(mr_program *p) {
    release_arguments(p, &p->items);
    release_arguments(p, &p->inner);
    for (size_t i = 0; i < p->settings.count; i++) free(p->settings.items[i].name);
    for (size_t i = 0; i < p->texts.count; i++) free(p->texts.items[i]);
    mr_vec_free(&p->settings);
    mr_vec_free(&p->peers);
    mr_vec_free(&p->streams);
    mr_vec_free(&p->events);
    mr_vec_free(&p->storages);
    mr_vec_free(&p->views);
    mr_vec_free(&p->items);
    mr_vec_free(&p->kinds);
    mr_vec_free(&p->drops);
    mr_vec_free(&p->inner);
    mr_vec_free(&p->operands);
    mr_vec_free(&p->launched);
    mr_vec_free(&p->params);
    for (size_t i = 0; i < p->meetings.count; i++) mr_meeting_release(p->meetings.items[i]);
    mr_vec_free(&p->meetings);
    mr_vec_free(&p->texts);
    mr_vec_free(&p->bytes);
    mr_interned_free(&p->files);
    free(p->backend);
    free(p->model);
    free(p->chooser);
    free(p->inexact);
    free(p);
}

void mr_program_release(const mr_program *program) {
    mr_program *p = (mr_program *)program; /* the count is not part of what it says */
    if (p && atomic_fetch_sub(&p->refs, 1) == 1) destroy(p);
}

size_t mr_program_count(const mr_program *program) {
    return program->items.count;
}

const char *mr_program_inexact(const mr_program *program) {
    return program->inexact;
}

size_t mr_program_bytes(const mr_program *p) {
    return sizeof *p + p->bytes.capacity + p->kinds.capacity +
           p->items.capacity * sizeof *p->items.items + p->inner.capacity * sizeof *p->inner.items +
           p->storages.capacity * sizeof *p->storages.items +
           p->views.capacity * sizeof *p->views.items +
           p->operands.capacity * sizeof *p->operands.items +
           p->params.capacity * sizeof *p->params.items;
}

size_t mr_program_host_bytes(const mr_program *p) {
    size_t bytes = 0;
    for (size_t i = 0; i < p->storages.count; i++)
        if (p->storages.items[i].kind != MR_MEMORY_DEVICE) bytes += p->storages.items[i].bytes;
    return bytes;
}

mr_program_facts mr_program_facts_of(const mr_program *p) {
    return (mr_program_facts){.backend = p->backend,
                              .device_count = p->device_count,
                              .model = p->model,
                              .chooser = p->chooser,
                              .from_the_start = p->from_the_start,
                              .cut = p->cut,
                              .first_seq = p->first_seq};
}

static const char *text_at(const mr_program *program, uint32_t text) {
    return text == NO_SLOT ? NULL : program->texts.items[text];
}

/* Memory of the host has none. */
static uint32_t device_of_storage(const mr_program *program, uint32_t slot) {
    const storage_slot *s = &program->storages.items[slot];
    return s->kind == MR_MEMORY_DEVICE ? (uint32_t)s->device : NO_SLOT;
}

static void describe_object(const mr_program *program, const item *it, mr_program_item *out) {
    switch ((object_kind)it->object_is) {
    case OBJECT_EVENT:
        out->event = it->object;
        out->other_event = it->other;
        break;
    case OBJECT_STORAGE: out->storage = it->object; break;
    case OBJECT_DEVICE: out->device = it->object; return;
    case OBJECT_NONE: break;
    }
    if (out->stream != NO_SLOT) out->device = (uint32_t)program->streams.items[out->stream].device;
    else if (out->storage != NO_SLOT) out->device = device_of_storage(program, out->storage);
}

mr_program_item mr_program_item_of(const mr_program *program, const item *it) {
    bool is_of_event = mr_command_kinds[it->kind].part == MR_PART_EVENT;
    mr_program_item out = {.kind = (mr_command_id)it->kind,
                           .name = it->name ? it->name : text_at(program, it->own_name),
                           .where = it->where,
                           .launch = it->launch,
                           .seq = it->seq,
                           .came_true = it->outcome == CAME_TRUE,
                           .failed = it->outcome == FAILED,
                           .has_error = it->has_error,
                           .stream = it->stream,
                           .event = NO_SLOT,
                           .other_event = NO_SLOT,
                           .storage = NO_SLOT,
                           .device = NO_SLOT,
                           .bound = is_of_event ? it->value : 0,
                           .operand_count = it->operand_count,
                           .row = it->row,
                           .is_read_back = it->kind == MR_COMMAND_COPY && it->flag &&
                                           it->direction == MR_COPY_D2H,
                           .meets = it->meeting != NO_SLOT,
                           .rank = it->rank,
                           .inner = it->inner,
                           .inner_count = it->inner_count};
    if (it->launched != NO_SLOT) out.launched = program->launched.items[it->launched];
    describe_object(program, it, &out);
    return out;
}

mr_program_item mr_program_item_at(const mr_program *program, size_t i) {
    return mr_program_item_of(program, &program->items.items[i]);
}

mr_command_id mr_program_kind_at(const mr_program *program, size_t i) {
    return (mr_command_id)program->kinds.items[i];
}

uint32_t mr_program_stream_of(const mr_program *program, size_t i) {
    return program->items.items[i].stream;
}

bool mr_program_is_plain(const mr_program *program, size_t i) {
    return !program->has_odd || mr_item_is_plain(&program->items.items[i]);
}

mr_program_item mr_program_inner_at(const mr_program *program, uint32_t i) {
    return mr_program_item_of(program, &program->inner.items[i]);
}

static mr_program_operand operand_of(const mr_program *program, const item *it, uint32_t k) {
    const item_operand *o = &program->operands.items[it->first_operand + k];
    const view_slot *view = &program->views.items[o->view];
    const storage_slot *storage = &program->storages.items[view->storage];
    const char *name = text_at(program, view->name);
    return (mr_program_operand){.view = &view->view,
                                .storage = view->storage,
                                .storage_id = storage->id,
                                .name = name ? name : text_at(program, storage->name),
                                .access = o->access};
}

mr_program_operand mr_program_operand_at(const mr_program *program, size_t i, uint32_t k) {
    return operand_of(program, &program->items.items[i], k);
}

mr_program_operand mr_program_inner_operand_at(const mr_program *program, uint32_t i, uint32_t k) {
    return operand_of(program, &program->inner.items[i], k);
}

size_t mr_program_storage_count(const mr_program *program) {
    return program->storages.count;
}

mr_program_storage mr_program_storage_at(const mr_program *program, uint32_t slot) {
    const storage_slot *s = &program->storages.items[slot];
    return (mr_program_storage){.id = s->id,
                                .bytes = s->bytes,
                                .kind = s->kind,
                                .stream = s->stream,
                                .device = s->device,
                                .name = text_at(program, s->name),
                                .made = s->made};
}

size_t mr_program_stream_count(const mr_program *program) {
    return program->streams.count;
}

mr_program_stream mr_program_stream_at(const mr_program *program, uint32_t slot) {
    const stream_slot *s = &program->streams.items[slot];
    return (mr_program_stream){.id = s->id,
                               .kind = s->kind,
                               .device = s->device,
                               .blocking = s->blocking,
                               .name = text_at(program, s->name),
                               .where = s->where};
}
