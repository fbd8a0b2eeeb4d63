/* How reports name objects: by the name that the script gave, by the variable that holds the object, or by
 * the line that made it. In a fix, the variable comes first, because a fix must be valid code. */
#include "hazard/explain.h"

#include "base/text.h"
#include "ops/kernel.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds a live variable (`spot` is NULL), or one that a line at that place can use. */
static bool variable(const checker *c, mr_hazard_object object, const mr_script_spot *spot,
                     char *out, size_t size) {
    mr_site front = {0};
    if (spot) front = (mr_site){spot->where.file, spot->front};
    return c->hooks.variable && c->hooks.variable(c->hooks.context, &object, front, out, size);
}

const char *mr_hazard_place(mr_site where, char *out, size_t size) {
    char line[16];
    int length = snprintf(line, sizeof line, ":%d", where.line);
    if (where.file) {
        mr_text_copy_end(out, size - (size_t)length, where.file);
        strcat(out, line);
    } else {
        snprintf(out, size, "?");
    }
    return out;
}

void mr_hazard_set_prompt(mr_hazard *c, const char *prefix) {
    c->names.prompt = prefix;
}

void mr_hazard_set_script(mr_hazard *c, const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    c->names.script = path;
    c->names.folder_size = slash ? (size_t)(slash - path) + 1 : 0;
}

mr_site mr_hazard_shown(const checker *c, mr_site where) {
    size_t size = c->names.folder_size;
    if (!where.file || !size || strncmp(where.file, c->names.script, size) != 0) return where;
    if (where.file[size] && !mr_is_interned(&c->machine->files, where.file + size))
        where.file += size;
    return where;
}

mr_site mr_hazard_shown_by(const void *hazard, mr_site where) {
    return mr_hazard_shown(hazard, where);
}

void mr_hazard_folder(const checker *c, char *out, size_t size) {
    *out = 0;
    if (c->names.folder_size && c->names.folder_size < size)
        mr_text_format(out, size, "%.*s", (int)c->names.folder_size, c->names.script);
}

void mr_hazard_whole_name(const checker *c, const char *shown, mr_buffer *out) {
    bool is_short = c->names.folder_size && !mr_is_interned(&c->machine->files, shown);
    if (is_short) mr_buffer_add(out, c->names.script, c->names.folder_size);
    mr_buffer_puts(out, shown);
}

bool mr_hazard_file_ends(const char *file, const char *end) {
    size_t have = strlen(file), want = strlen(end);
    if (have < want || strcmp(file + have - want, end) != 0) return false;
    return have == want || file[have - want - 1] == '/';
}

bool mr_hazard_is_entry(const checker *c, const char *file) {
    size_t length = c->names.prompt ? strlen(c->names.prompt) : 0;
    if (!length || strncmp(file, c->names.prompt, length) != 0) return false;
    size_t digits = strspn(file + length, "0123456789");
    return digits && !file[length + digits];
}

bool mr_hazard_place_parse(const char *text, size_t *out_file_size, int *out_line) {
    const char *colon = strrchr(text, ':');
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    *out_file_size = strlen(text);
    *out_line = 0;
    if (!digits || colon[1 + digits]) return true;
    long long line = strtoll(colon + 1, NULL, 10); /* LLONG_MAX if it is even more */
    if (line < 1 || line > INT_MAX) return false;
    *out_file_size = (size_t)(colon - text);
    *out_line = (int)line;
    return true;
}

void mr_hazard_stream_text(const checker *c, const actor *a, char *out, size_t size) {
    char name[NAME_SIZE];
    const char *kind = a->kind == MR_STREAM_LEGACY ? "default" : "per-thread";
    if (a == &c->order.host_actor) snprintf(out, size, "host");
    else if (a->kind != MR_STREAM_USER && c->machine->device_count > 1)
        snprintf(out, size, "%s of device %d", kind, a->device);
    else if (a->kind != MR_STREAM_USER) snprintf(out, size, "%s", kind);
    else if (a->name) mr_text_copy(out, size, a->name->text);
    else if (a->stream &&
             variable(c, (mr_hazard_object){.stream = a->stream}, NULL, name, sizeof name))
        snprintf(out, size, "%s", name);
    else snprintf(out, size, "stream #%u", a->id);
}

static const mr_stream *current_stream(const checker *c) {
    if (c->hooks.current) return c->hooks.current(c->hooks.context);
    const mr_device *device = c->machine->current_device;
    return device ? device->current : NULL;
}

bool mr_hazard_is_own_device(const checker *c, int device) {
    const mr_stream *current = current_stream(c);
    return c->hosts.number && current && current->device->index == device;
}

bool mr_hazard_closed_code(const checker *c, const actor *a, const mr_script_spot *spot, char *out,
                           size_t size) {
    return a->stream && variable(c, (mr_hazard_object){.stream = a->stream}, spot, out, size);
}

const mr_stream *mr_hazard_current_before(const checker *c, const found_pair *pair) {
    return pair->call ? pair->call->stream : current_stream(c);
}

/* Whether the stream is current at the new line, right before the call of the second. */
static bool current_code(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                         const actor *a, char *out, size_t size) {
    bool is_current = pair && a->stream && !pair->submitted.file &&
                      spot->place == MR_SCRIPT_BEFORE &&
                      mr_hazard_current_before(c, pair) == a->stream && c->hooks.is_direct &&
                      c->hooks.is_direct(c->hooks.context, spot, pair->second_where);
    if (is_current) snprintf(out, size, MR_HAZARD_CURRENT);
    return is_current;
}

static bool default_code(const checker *c, const actor *a, char *out, size_t size) {
    const char *kind = a->kind == MR_STREAM_LEGACY ? "default_stream" : "per_thread_stream";
    if (a->kind == MR_STREAM_USER || a->device < 0) return false;
    if (c->machine->device_count > 1 && !mr_hazard_is_own_device(c, a->device))
        snprintf(out, size, "mr.%s(%d)", kind, a->device);
    else snprintf(out, size, "mr.%s()", kind);
    return true;
}

bool mr_hazard_stream_code(const checker *c, const found_pair *pair, const actor *a,
                           const mr_script_spot *spot, char *out, size_t size) {
    bool is_open = a->stream && !a->stream->closed;
    return (is_open && mr_hazard_closed_code(c, a, spot, out, size)) ||
           default_code(c, a, out, size) || current_code(c, pair, spot, a, out, size);
}

const char *mr_hazard_event_text(const log_line *line, char *out, size_t size) {
    char name[NAME_SIZE];
    if (line->event_name) mr_text_copy(name, sizeof name, line->event_name->text);
    if (line->event_name) snprintf(out, size, "event `%s`", name);
    else snprintf(out, size, "event #%u", line->event);
    return out;
}

bool mr_hazard_event_code(const checker *c, uint32_t id, const mr_script_spot *spot, char *out,
                          size_t size) {
    for (const snapshot *s = c->order.snapshots; s; s = s->next)
        if (s->event->id == id)
            return variable(c, (mr_hazard_object){.event = s->event}, spot, out, size);
    return false;
}

bool mr_hazard_work_code(const checker *c, const mr_event *event, const mr_script_spot *spot,
                         char *out, size_t size) {
    return variable(c, (mr_hazard_object){.work = event}, spot, out, size);
}

static mr_hazard_object tensor_of(const found_pair *pair) {
    if (pair->tensor) return (mr_hazard_object){.tensor = pair->tensor};
    return (mr_hazard_object){.storage = pair->history->storage};
}

/* The variable that holds it now, or held it when an earlier report was made. */
static bool holder(const checker *c, mr_hazard_object object, const mr_storage *storage, char *out,
                   size_t size) {
    history *h = storage->observed;
    if (variable(c, object, NULL, out, size)) {
        if (h && !h->last_name) h->last_name = strdup(out);
        return true;
    }
    if (h && h->last_name) mr_text_copy(out, size, h->last_name);
    return h && h->last_name;
}

static void made_text(const mr_storage *storage, char *out, size_t size) {
    char made[MR_MADE_AT_SIZE];
    if (storage->made.file)
        snprintf(out, size, "memory of %llu bytes made at %s", (unsigned long long)storage->bytes,
                 mr_made_at(storage->made, made, sizeof made));
    else
        snprintf(out, size, "memory #%llu of %llu bytes", (unsigned long long)storage->id,
                 (unsigned long long)storage->bytes);
}

const char *mr_hazard_signature(const found_pair *pair, char *out, size_t size) {
    out[0] = '\0';
    if (!pair->tensor) return out;
    mr_tensor shown = *pair->tensor;
    if (pair->command) mr_kernel_type_view(pair->command, &shown);
    return mr_tensor_signature(&shown, out, size);
}

void mr_hazard_tensor_text(const checker *c, const found_pair *pair, char *out, size_t size) {
    const mr_tensor *t = pair->tensor;
    const mr_storage *storage = pair->history->storage;
    char name[NAME_SIZE], signature[80], made[MR_MADE_AT_SIZE];
    const char *given = t && t->name       ? t->name->text
                        : pair->first_name ? pair->first_name
                                           : mr_name_text(storage->name);
    if (given) snprintf(out, size, "%s", given);
    else if (holder(c, tensor_of(pair), storage, name, sizeof name))
        snprintf(out, size, "%s", name);
    else if (t && t->where.file)
        snprintf(out, size, "tensor #%llu %s made at %s", (unsigned long long)t->id,
                 mr_hazard_signature(pair, signature, sizeof signature),
                 mr_made_at(t->where, made, sizeof made));
    else made_text(storage, out, size);
}

bool mr_hazard_tensor_code(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                           char *out, size_t size) {
    return variable(c, tensor_of(pair), spot, out, size);
}

void mr_hazard_storage_text(const checker *c, const mr_storage *storage, char *out, size_t size) {
    char name[NAME_SIZE];
    if (storage->name) mr_text_copy(out, size, storage->name->text);
    else if (holder(c, (mr_hazard_object){.storage = storage}, storage, name, sizeof name))
        mr_text_copy(out, size, name);
    else made_text(storage, out, size);
}
