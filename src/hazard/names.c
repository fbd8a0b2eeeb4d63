/* What reports call things: by the name that the script gave, by the variable that holds it, or by
 * where it was made; and as code, by the variable first, since a fix has to run. */
#include "hazard/state.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool variable(const checker *c, const mr_stream *s, const mr_event *e, const mr_tensor *t,
                     char *out, size_t size) {
    return c->hooks.variable && !c->in_collector &&
           c->hooks.variable(c->hooks.context, s, e, t, out, size);
}

static bool is_identifier(const char *name) {
    if (!name || !(isalpha((unsigned char)*name) || *name == '_')) return false;
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_') return false;
    return true;
}

const char *mr_hazard_place(mr_site where, char *out, size_t size) {
    if (where.file) snprintf(out, size, "%s:%d", where.file, where.line);
    else snprintf(out, size, "?");
    return out;
}

void mr_hazard_stream_text(const checker *c, const actor *a, char *out, size_t size) {
    char name[NAME_SIZE];
    const char *kind = a->kind == MR_STREAM_LEGACY ? "default" : "per-thread";
    if (a == &c->host_actor) snprintf(out, size, "host");
    else if (a->kind != MR_STREAM_USER && c->machine->device_count > 1)
        snprintf(out, size, "%s of device %d", kind, a->device);
    else if (a->kind != MR_STREAM_USER) snprintf(out, size, "%s", kind);
    else if (a->name) snprintf(out, size, "%s", a->name);
    else if (a->stream && variable(c, a->stream, NULL, NULL, name, sizeof name))
        snprintf(out, size, "%s", name);
    else snprintf(out, size, "stream #%u", a->id);
}

bool mr_hazard_stream_code(const checker *c, const actor *a, char *out, size_t size) {
    const char *kind = a->kind == MR_STREAM_LEGACY ? "default_stream" : "per_thread_stream";
    if (a->stream && variable(c, a->stream, NULL, NULL, out, size)) return true;
    if (a->kind == MR_STREAM_USER && !is_identifier(a->name)) return false;
    if (a->kind == MR_STREAM_USER) snprintf(out, size, "%s", a->name);
    else if (c->machine->device_count > 1) snprintf(out, size, "mr.%s(%d)", kind, a->device);
    else snprintf(out, size, "mr.%s()", kind);
    return true;
}

const char *mr_hazard_event_text(const log_line *line, char *out, size_t size) {
    if (line->event_name) snprintf(out, size, "event `%s`", line->event_name);
    else snprintf(out, size, "event #%u", line->event);
    return out;
}

const mr_event *mr_hazard_event_find(const checker *c, uint32_t id) {
    for (const snapshot *s = c->snapshots; s; s = s->next)
        if (s->event->id == id) return s->event;
    return NULL;
}

bool mr_hazard_event_code(const checker *c, uint32_t id, char *out, size_t size) {
    const mr_event *event = mr_hazard_event_find(c, id);
    return event && variable(c, NULL, event, NULL, out, size);
}

/* The script's name for the tensor, and the facts behind it. */
void mr_hazard_tensor_text(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    const mr_tensor *t = pair->tensor;
    const mr_storage *storage = pair->history->storage;
    char name[NAME_SIZE];
    if (t) mr_tensor_signature(t, report->signature, sizeof report->signature);
    const char *given = t && t->name       ? t->name
                        : pair->first_name ? pair->first_name
                                           : storage->name;
    if (given) snprintf(report->tensor, sizeof report->tensor, "%s", given);
    else if (t && variable(c, NULL, NULL, t, name, sizeof name))
        snprintf(report->tensor, sizeof report->tensor, "%s", name);
    else if (t && t->where.file)
        snprintf(report->tensor, sizeof report->tensor, "tensor #%llu %s made at line %d",
                 (unsigned long long)t->id, report->signature, t->where.line);
    else if (storage->made.file)
        snprintf(report->tensor, sizeof report->tensor, "memory of %llu bytes made at line %d",
                 (unsigned long long)storage->bytes, storage->made.line);
    else
        snprintf(report->tensor, sizeof report->tensor, "memory #%llu of %llu bytes",
                 (unsigned long long)storage->id, (unsigned long long)storage->bytes);
}

bool mr_hazard_tensor_code(const checker *c, const found_pair *pair, char *out, size_t size) {
    const mr_tensor *t = pair->tensor;
    if (t && variable(c, NULL, NULL, t, out, size)) return true;
    const char *name = t && t->name       ? t->name
                       : pair->first_name ? pair->first_name
                                          : pair->history->storage->name;
    if (!is_identifier(name)) return false;
    snprintf(out, size, "%s", name);
    return true;
}
