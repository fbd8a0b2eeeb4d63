/* The cure: the weakest change that orders the pair, as lines of Lua with their place.
 *
 * In this order: a wait on an event that exists and covers the access; an event of its own, when the
 * first stream has gone on to other work that need not be waited for; else a wait for the stream. */
#include "hazard/state.h"

#include <stdio.h>
#include <string.h>

static void put_line(mr_hazard_report *report, bool before, mr_site where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void put_line(mr_hazard_report *report, bool before, mr_site where, const char *format,
                     ...) {
    mr_hazard_fix *fix = &report->fix[report->fix_count++];
    va_list args;
    va_start(args, format);
    vsnprintf(fix->text, sizeof fix->text, format, args);
    va_end(args);
    fix->before = before;
    fix->where = where;
}

/* An event that a script variable holds and whose record in force covers the access. */
static bool covering_event(const checker *c, const found_pair *pair, char *out, size_t size) {
    for (const snapshot *s = c->snapshots; s; s = s->next) {
        if (s->actor != pair->first || s->seq < pair->first_seq) continue;
        if (s->event->closed || s->event->refs < 2) continue; /* nobody but an action holds it */
        if (mr_hazard_event_code(c, s->event->id, out, size)) return true;
        if (s->event->name && snprintf(out, size, "%s", s->event->name) > 0 && !strchr(out, ' '))
            return true;
    }
    return false;
}

/* The first stream has been given work since that the second need not wait for. */
static bool went_on(const checker *c, const found_pair *pair) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->seq <= pair->first_seq) return false;
        if (line->stream == pair->first->id && line->seq < pair->second_seq &&
            (line->kind == MR_ACTION_OP || line->kind == MR_ACTION_COPY ||
             line->kind == MR_ACTION_HOST_FUNCTION))
            return true;
    }
    return false;
}

/* An event of its own, recorded right behind the first access; false: there is no place for it. */
static bool new_event(const checker *c, const found_pair *pair, mr_hazard_report *report,
                      const char *first, const char *second) {
    char name[NAME_SIZE];
    if (!c->hooks.event_fits || pair->first == &c->host_actor || !went_on(c, pair)) return false;
    if (!c->hooks.event_fits(c->hooks.context, pair->first_where, pair->second_where, name,
                             sizeof name))
        return false;
    put_line(report, false, pair->first_where, "local %s = %s:record_event()", name, first);
    if (second) put_line(report, true, pair->second_where, "%s:wait_event(%s)", second, name);
    else put_line(report, true, pair->second_where, "%s:synchronize()", name);
    return true;
}

/* No expression leads to one of the streams: the host can always wait for all of the first one's device. */
static void wait_on_host(const checker *c, const actor *first, const actor *lost,
                         mr_hazard_report *report, bool before, mr_site where) {
    char name[NAME_SIZE], device[16] = "";
    mr_hazard_stream_text(c, lost, name, sizeof name);
    if (c->machine->device_count > 1) snprintf(device, sizeof device, "%d", first->device);
    put_line(report, before, where, "mr.synchronize(%s) -- no variable holds %s", device, name);
}

static void wait_for(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    char first[NAME_SIZE], second[NAME_SIZE], event[NAME_SIZE];
    bool host = pair->second == &c->host_actor;
    if (!host && !mr_hazard_stream_code(c, pair->second, second, sizeof second)) {
        wait_on_host(c, pair->first, pair->second, report, true, pair->second_where);
    } else if (covering_event(c, pair, event, sizeof event)) {
        if (host) put_line(report, true, pair->second_where, "%s:synchronize()", event);
        else put_line(report, true, pair->second_where, "%s:wait_event(%s)", second, event);
    } else if (!mr_hazard_stream_code(c, pair->first, first, sizeof first)) {
        wait_on_host(c, pair->first, pair->first, report, true, pair->second_where);
    } else if (new_event(c, pair, report, first, host ? NULL : second)) {
        return;
    } else if (host) {
        put_line(report, true, pair->second_where, "%s:synchronize()", first);
    } else {
        put_line(report, true, pair->second_where, "%s:wait_stream(%s)", second, first);
    }
}

static void keep_alive(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    char tensor[NAME_SIZE], stream[NAME_SIZE], freeing[NAME_SIZE];
    bool before = pair->first->stream == pair->history->storage->stream && pair->second_where.file;
    mr_site where = before ? pair->second_where : pair->first_where;
    if (!pair->first_where.file) return;
    if (!mr_hazard_stream_code(c, pair->first, stream, sizeof stream)) {
        wait_on_host(c, pair->first, pair->first, report, before, where);
    } else if (!before && mr_hazard_tensor_code(c, pair, tensor, sizeof tensor)) {
        put_line(report, false, where, "%s:record_stream(%s)", tensor, stream);
    } else if (mr_hazard_stream_code(c, pair->second, freeing, sizeof freeing)) {
        /* R33: for the stream of allocation record_stream does nothing, and a temporary has no name to call:
         * make the stream of its memory wait instead. */
        put_line(report, before, where, "%s:wait_stream(%s)", freeing, stream);
    } else {
        wait_on_host(c, pair->first, pair->second, report, before, where);
    }
}

void mr_hazard_repair(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    if (pair->kind == MR_HAZARD_USE_AFTER_FREE) {
        keep_alive(c, pair, report);
    } else if (pair->second_where.file) {
        wait_for(c, pair, report);
    }
}

void mr_hazard_fix_text(const mr_hazard_report *report, mr_buffer *out) {
    for (int i = 0; i < report->fix_count; i++) {
        const mr_hazard_fix *fix = &report->fix[i];
        mr_buffer_printf(out, "%s%s line %d add   %s", i ? "\n     " : "",
                         fix->before ? "before" : "after", fix->where.line, fix->text);
    }
}
