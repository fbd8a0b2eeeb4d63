/* A program's replacements for the recorded machine's objects: slots for streams, events, storages and views, and
 * copies of texts and bytes.
 *
 * Easiest to break: a slot is found by the object's id, not by its address, which may be used again. A view has no id:
 * it is found by a hash of the properties that a player needs, and then compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/recorder.h"

/* ---- texts and bytes */

char *mr_record_copy_text(mr_recorder *r, const char *text) {
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) r->failed = true;
    return copy;
}

uint32_t mr_record_text(mr_recorder *r, const char *text) {
    char *copy = mr_record_copy_text(r, text);
    if (!copy) return NO_SLOT;
    if (mr_vec_push(&r->program->texts, copy)) return (uint32_t)r->program->texts.count - 1;
    free(copy);
    r->failed = true;
    return NO_SLOT;
}

uint32_t mr_record_name(mr_recorder *r, const mr_name *name) {
    return mr_record_text(r, mr_name_text(name));
}

mr_site mr_record_site(mr_recorder *r, mr_site where) {
    if (!where.file) return where;
    if (where.file != r->file) { /* places refer to texts that the machine keeps */
        r->file = where.file;
        r->own_file = mr_intern(&r->program->files, where.file, strlen(where.file), "[script]");
    }
    where.file = r->own_file;
    return where;
}

void mr_record_inexact(mr_recorder *r, const char *reason, mr_site where) {
    char text[256];
    if (r->program->inexact) return;
    if (where.file)
        snprintf(text, sizeof text, "%.160s (%.60s:%d)", reason, where.file, where.line);
    else snprintf(text, sizeof text, "%s", reason);
    r->program->inexact = mr_record_copy_text(r, text);
}

char *mr_record_bytes(mr_recorder *r, size_t size, blob *out) {
    mr_program *p = r->program;
    *out = NO_BLOB;
    if (!mr_vec_reserve(&p->bytes, size)) {
        r->failed = true;
        return NULL;
    }
    *out = (blob){.at = p->bytes.count, .size = size};
    p->bytes.count += size;
    return p->bytes.items ? p->bytes.items + out->at : NULL; /* NULL: `size` is 0 */
}

static bool all_zero(const char *bytes, size_t size) {
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

blob mr_record_storage_bytes(mr_recorder *r, const mr_storage *storage) {
    blob kept;
    size_t size = (size_t)storage->bytes;
    if (!storage->host || !size) return NO_BLOB;
    if (all_zero(storage->host, size)) return (blob){.size = size, .zero = true};
    char *to = mr_record_bytes(r, size, &kept);
    if (to) memcpy(to, storage->host, size);
    return kept;
}

/* ---- objects */

static uint32_t epoch_of(const mr_recorder *r, uint32_t epoch) {
    return epoch - r->program->first_epoch + 1;
}

#define ADD_SLOT(r, list, map, key, slot)                                                          \
    (mr_vec_push(list, slot) && mr_map_put(map, key, (uint32_t)(list)->count - 1)                  \
         ? (uint32_t)(list)->count - 1                                                             \
         : ((r)->failed = true, NO_SLOT))

uint32_t mr_record_stream(mr_recorder *r, const mr_stream *stream, bool created) {
    if (!stream) return NO_SLOT;
    uint32_t found = mr_slot_find(&r->streams, stream->id);
    if (found != NO_SLOT) return found;
    stream_slot slot = {.id = mr_stream_number(stream),
                        .epoch = epoch_of(r, stream->epoch),
                        .kind = stream->kind,
                        .blocking = stream->blocking,
                        .before = stream->kind == MR_STREAM_USER && !created,
                        .priority = stream->priority,
                        .device = stream->device->index,
                        .name = mr_record_name(r, stream->name),
                        .where = mr_record_site(r, stream->where)};
    return ADD_SLOT(r, &r->program->streams, &r->streams, stream->id, slot);
}

uint32_t mr_record_event(mr_recorder *r, const mr_event *event, bool created) {
    uint32_t found = mr_slot_find(&r->events, event->id);
    if (found != NO_SLOT) return found;
    event_slot slot = {.id = mr_event_number(event),
                       .epoch = epoch_of(r, event->epoch),
                       .timing = event->timing,
                       .blocking = event->blocking,
                       .before = !created,
                       .recorded = !created && event->record_seq,
                       .device = event->device ? event->device->index : 0,
                       .name = mr_record_name(r, event->name),
                       .where = mr_record_site(r, event->where)};
    return ADD_SLOT(r, &r->program->events, &r->events, event->id, slot);
}

uint32_t mr_record_storage(mr_recorder *r, mr_storage *storage, bool created) {
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
                         .stream = mr_record_stream(r, storage->stream, false),
                         .name = NO_SLOT,
                         .made = mr_record_site(r, storage->made)};
    if (slot.before) {
        slot.first = mr_record_storage_bytes(r, storage);
        if (storage->bytes && !storage->host)
            mr_record_inexact(
                r, "memory of a real GPU that was there before the recording is not known",
                storage->made);
    }
    if (!mr_vec_push(&r->alive, slot.before ? storage : NULL)) r->failed = true;
    if (!mr_vec_push(&r->numbers, NO_SLOT)) r->failed = true;
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
    return hash >> 1;
}

uint32_t mr_record_view(mr_recorder *r, const mr_tensor *t) {
    mr_program *p = r->program;
    uint32_t storage = mr_record_storage(r, t->storage, false);
    if (storage == NO_SLOT) return NO_SLOT;
    uint64_t key = hash_view(t, storage);
    uint32_t found = mr_slot_find(&r->views, key);
    if (found != NO_SLOT) {
        const view_slot *v = &p->views.items[found];
        if (v->storage == storage && same_shape(&v->view, t) && same_name(r, v->name, t->name))
            return found;
    }
    view_slot slot = {.view = *t, .storage = storage, .name = mr_record_name(r, t->name)};
    slot.view.storage = NULL;
    slot.view.generation = 0; /* the player's storages are handed out once */
    slot.view.name = NULL;
    slot.view.where = mr_record_site(r, t->where);
    if (t->storage->name && p->storages.items[storage].name == NO_SLOT)
        p->storages.items[storage].name = mr_record_name(r, t->storage->name);
    return ADD_SLOT(r, &p->views, &r->views, key, slot);
}
