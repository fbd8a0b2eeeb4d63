/* The fix: the weakest change that orders the pair, as lines of Lua with their places.
 *
 * The first choice is a wait for an existing event that covers the access. The second is a new event, if the first
 * stream has been given other work since then. A loop over several buffers needs an event for each, even if it has one
 * event that each round records again. Otherwise the fix is a wait for the stream. A line may use only variables that
 * are visible at its place. If no line can be added, the fix is a description. */
#include "hazard/explain.h"

#include "base/text.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

static void put_line(mr_hazard_report *report, const mr_script_spot *spot, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put_line(mr_hazard_report *report, const mr_script_spot *spot, const char *format,
                     ...) {
    mr_hazard_fix *fix = &report->fix[report->fix_count++];
    va_list args;
    va_start(args, format);
    mr_text_formatv(fix->text, sizeof fix->text, format, args);
    va_end(args);
    fix->place = spot->place;
    fix->where = spot->where;
    fix->in_loop = spot->in_loop;
    fix->has_namesake = spot->has_namesake;
}

/* ---- places */

/* Collects the script's lines that submitted commands from the first access to the second. */
static void measure(const checker *c, const found_pair *pair, mr_script_meeting *meeting) {
    const log_line *line;
    meeting->lowest = meeting->highest = meeting->second.line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->inside) continue; /* its seq is that of its function, which ran late */
        if (line->seq < pair->first_seq) return;
        if (line->seq > pair->second_seq || !line->where.file) continue;
        if (pair->call && line->seq >= pair->call->first_seq)
            continue; /* of the second's own call */
        if (line->where.file != meeting->second.file) break;
        if (line->where.line < meeting->lowest) meeting->lowest = line->where.line;
        if (line->where.line > meeting->highest) meeting->highest = line->where.line;
        if (line->seq == pair->first_seq) return; /* the log may not reach further back */
    }
    meeting->lowest = 0;
}

/* The place in front of the second access; false: a line cannot be put there. With `again`, one place is not enough. */
static bool find_before_second(const checker *c, const found_pair *pair, mr_script_spot *out_spot) {
    mr_script_meeting meeting = {.first = pair->first_where,
                                 .second = pair->second_where,
                                 .first_op = pair->first_op,
                                 .second_op = pair->second_op,
                                 .is_running = !pair->submitted.file,
                                 .is_call = pair->call != NULL};
    if (pair->submitted.file) meeting.second = pair->submitted;
    *out_spot =
        (mr_script_spot){MR_SCRIPT_BEFORE, meeting.second, meeting.second.line, false, false, 0};
    if (!pair->second_where.file) return false;
    if (!c->hooks.before) return true;
    measure(c, pair, &meeting);
    return c->hooks.before(c->hooks.context, &meeting, out_spot);
}

static bool before_first(const checker *c, const found_pair *pair, mr_script_spot *out_spot) {
    mr_script_meeting meeting = {.second = pair->first_where, .first_op = "", .second_op = ""};
    return pair->first_where.file && c->hooks.before &&
           c->hooks.before(c->hooks.context, &meeting, out_spot);
}

static bool find_behind(const checker *c, const found_pair *pair, bool is_over,
                        mr_script_spot *out_spot) {
    *out_spot = (mr_script_spot){
        MR_SCRIPT_AFTER, pair->first_where, pair->first_where.line + 1, false, false, 0};
    if (!pair->first_where.file) return false;
    return !c->hooks.behind ||
           c->hooks.behind(c->hooks.context, pair->first_where, is_over, out_spot);
}

/* After the first access's statement, if that has ended at the second access. */
static bool behind_first(const checker *c, const found_pair *pair, mr_script_spot *out_spot) {
    return find_behind(c, pair, false, out_spot);
}

/* ---- order */

/* Whether the line would stand before the one that recorded the event. Then it would wait for the previous record. */
static bool comes_before(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                         mr_site record) {
    if (spot->place != MR_SCRIPT_BEFORE || !record.file) return false;
    if (record.file == pair->second_where.file && record.line == pair->second_where.line)
        return true;
    return c->hooks.comes_before && c->hooks.comes_before(c->hooks.context, spot, record);
}

/* An event that a script variable holds and whose record in force covers the access: the earliest. The event of
 * a collective's work is that work. */
static bool covering_event(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                           char *out, size_t size, bool *out_is_work, uint64_t *out_covered) {
    uint64_t tried = pair->first_seq;
    for (int tries = 0; tries < 8; tries++) {
        const snapshot *best = NULL;
        for (const snapshot *s = c->order.snapshots; s; s = s->next) {
            if (s->actor != pair->first || s->seq <= tried || (best && best->seq < s->seq))
                continue;
            if (s->seq > pair->second_seq) continue; /* a host function's access may be long past */
            if (s->event->closed || comes_before(c, pair, spot, s->where)) continue;
            best = s;
        }
        if (!best) break;
        *out_covered = tried = best->seq;
        *out_is_work = mr_hazard_work_code(c, best->event, spot, out, size);
        if (*out_is_work || mr_hazard_event_code(c, best->event->id, spot, out, size)) return true;
    }
    *out_covered = 0;
    return false;
}

/* Whether the first stream has work after `seq` that the second need not wait for. */
static bool went_on(const checker *c, const found_pair *pair, uint64_t seq) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->seq <= seq) return false;
        if (line->stream == pair->first->id && line->seq < pair->second_seq &&
            mr_hazard_line_is(line, MR_TRAIT_LAUNCH))
            return true;
    }
    return false;
}

/* The last command that the first access's line submitted to the first stream. An event recorded after that line covers
 * it, too. */
static uint64_t last_time(const checker *c, const found_pair *pair) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->seq <= pair->first_seq) break;
        if (line->stream == pair->first->id && line->seq < pair->second_seq &&
            line->where.file == pair->first_where.file &&
            line->where.line == pair->first_where.line)
            return line->seq;
    }
    return pair->first_seq;
}

/* The fixes of several reports are added to one script: two locals with the same name would hide each
 * other. */
static bool is_proposed(const void *context, const char *name) {
    const checker *c = context;
    char line[NAME_SIZE + 16];
    int length = snprintf(line, sizeof line, "local %s =", name);
    for (size_t i = 0; i < c->reports.listed.count; i++) {
        const mr_hazard_report *report = c->reports.listed.items[i];
        for (int k = 0; k < report->fix_count; k++)
            if (strncmp(report->fix[k].text, line, (size_t)length) == 0) return true;
    }
    return false;
}

/* The line that waits for `event`, in the place of the second. If `second` is NULL, the host waits. */
static void put_wait(mr_hazard_report *report, const mr_script_spot *spot, const char *second,
                     const char *event) {
    if (second) put_line(report, spot, "%s:wait_event(%s)", second, event);
    else put_line(report, spot, "%s:synchronize()", event);
}

/* The same for an entry of a table whose entries are set when they are first used. */
static void put_wait_if_set(mr_hazard_report *report, const mr_script_spot *spot,
                            const char *second, const char *event) {
    if (second) put_line(report, spot, "if %s then %s:wait_event(%s) end", event, second, event);
    else put_line(report, spot, "if %s then %s:synchronize() end", event, event);
}

static bool is_set_later(const checker *c, const mr_script_spot *spot, const char *expression) {
    return c->hooks.is_set_later && c->hooks.is_set_later(c->hooks.context, spot, expression);
}

/* Whether `work:wait()` waits with this stream, where none is named. */
static bool is_current(const checker *c, const found_pair *pair, const actor *a) {
    return a->kind == MR_STREAM_LEGACY && a->stream &&
           mr_hazard_current_before(c, pair) == a->stream;
}

static void put_work_wait(mr_hazard_report *report, const mr_script_spot *spot, const char *second,
                          const char *work, bool is_set_later) {
    char call[NAME_SIZE * 2];
    if (second) mr_text_format(call, sizeof call, "%s:wait(%s)", work, second);
    else mr_text_format(call, sizeof call, "%s:synchronize()", work);
    if (is_set_later) put_line(report, spot, "if %s then %s end", work, call);
    else put_line(report, spot, "%s", call);
}

/* `done`, or `done[k]`. */
static void put_ahead_wait(mr_hazard_report *report, const mr_script_variable *ahead,
                           const mr_script_spot *spot, const char *second) {
    char event[64];
    snprintf(event, sizeof event, "%s[%s]", ahead->name, ahead->index);
    if (ahead->index[0]) put_wait_if_set(report, spot, second, event);
    else put_wait(report, spot, second, ahead->name);
}

static void put_ahead_record(mr_hazard_report *report, const mr_script_variable *ahead,
                             const mr_script_spot *spot, const char *first) {
    if (ahead->index[0])
        put_line(report, spot, "%s[%s] = %s:record_event()", ahead->name, ahead->index, first);
    else put_line(report, spot, "%s:record(%s)", ahead->name, first);
}

/* In the order of the text. */
static void put_event_ahead(mr_hazard_report *report, const mr_script_variable *ahead,
                            const mr_script_spot *record, const char *first,
                            const mr_script_spot *spot, const char *second) {
    bool waits_first = spot->front < record->front;
    put_line(report, &ahead->made, "local %s = %s", ahead->name,
             ahead->index[0] ? "{}" : "mr.event()");
    if (waits_first) put_ahead_wait(report, ahead, spot, second);
    put_ahead_record(report, ahead, record, first);
    if (!waits_first) put_ahead_wait(report, ahead, spot, second);
}

/* The last work of the first stream with which the second races. Its other operands may race with later work, since the
 * second does not even come after the first. */
static uint64_t last_needed(const found_pair *pair) {
    const mr_command *command = pair->command;
    byte_view view;
    uint64_t last = pair->first_seq;
    for (uint32_t i = 0; command && i < command->operand_count; i++) {
        const mr_operand *o = &command->operands[i];
        const history *h = o->tensor->storage->observed;
        if (!h || h == pair->history || !mr_hazard_view_of(o->tensor, &view)) continue;
        for (uint32_t k = 0; k < h->count; k++) {
            const entry *e = h->entries[k];
            if (e->actor == pair->first && e->seq > last && ((e->access | o->access) & MR_WRITE) &&
                mr_hazard_view_overlap(&e->view, &view))
                last = e->seq;
        }
    }
    return last;
}

/* One wait for the stream is less than an event for each. */
static bool needs_later(const found_pair *pair) {
    return last_needed(pair) > pair->first_seq;
}

/* Like covering_event, but for works it is the work of the last collective that the second needs: it covers the earlier
 * ones. */
static bool covering_last(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                          char *out, size_t size, bool *out_is_work, uint64_t *out_covered) {
    found_pair last = *pair;
    last.first_seq = last_needed(pair);
    if (last.first_seq > pair->first_seq &&
        covering_event(c, &last, spot, out, size, out_is_work, out_covered) && *out_is_work)
        return true;
    return covering_event(c, pair, spot, out, size, out_is_work, out_covered);
}

/* In a loop, the second's line uses one of several storages each time. Returns whether its last use of this one was
 * before the first access. */
static bool is_of_round(const checker *c, const found_pair *pair) {
    uint64_t used = 0;
    const log_line *line;
    for (uint32_t k = 0; pair->history && k < pair->history->count; k++) {
        const entry *e = pair->history->entries[k];
        bool is_second =
            e->where.file == pair->second_where.file && e->where.line == pair->second_where.line;
        if (is_second && e->seq < pair->first_seq && e->seq > used) used = e->seq;
    }
    if (!used) return false;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->seq <= used) return true;
        if (line->seq < pair->first_seq && mr_hazard_line_is(line, MR_TRAIT_LAUNCH) &&
            line->where.file == pair->second_where.file &&
            line->where.line == pair->second_where.line)
            return false;
    }
    return false;
}

/* The same for a second access that stands before the first in a loop, or outside the scope of a local made after the
 * first. An event that delays the second as long as the whole stream would is of no use. */
static bool event_ahead(const checker *c, const found_pair *pair, mr_hazard_report *report,
                        const mr_script_spot *record, const char *first, const mr_script_spot *spot,
                        const char *second, bool for_each, bool only_way) {
    char tensor[NAME_SIZE] = "";
    mr_script_variable ahead;
    mr_script_meeting meeting = {.first = pair->first_where, .second = pair->second_where};
    if (pair->submitted.file) meeting.second = pair->submitted;
    if (!c->hooks.ahead || needs_later(pair)) return false;
    meeting.is_of_round = is_of_round(c, pair);
    if (!mr_hazard_tensor_code(c, pair, spot, tensor, sizeof tensor)) tensor[0] = '\0';
    if (!c->hooks.ahead(c->hooks.context, record, spot, &meeting, tensor, first, is_proposed, c,
                        &ahead))
        return false;
    if (for_each && !ahead.index[0]) return false;
    if (!ahead.index[0] && !only_way && !went_on(c, pair, last_time(c, pair))) return false;
    put_event_ahead(report, &ahead, record, first, spot, second);
    return true;
}

/* The event whose record in force covers the first access was also recorded between the two: each round of a loop
 * records it. A wait for it also waits for the last round. An event for each buffer delays less. */
static bool event_for_each(const checker *c, const found_pair *pair, mr_hazard_report *report,
                           const mr_script_spot *spot, const char *second) {
    const log_line *in_force = mr_hazard_log_find(c, report->covered), *line;
    char first[NAME_SIZE];
    mr_script_spot record;
    bool is_again = false;
    if (!in_force || in_force->kind != MR_COMMAND_RECORD) return false;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)) && line->seq > pair->first_seq;
         back++)
        is_again |= line->kind == MR_COMMAND_RECORD && line->event == in_force->event &&
                    line->seq < in_force->seq;
    if (!is_again || pair->first == &c->order.host_actor || !behind_first(c, pair, &record) ||
        !mr_hazard_stream_code(c, pair, pair->first, &record, first, sizeof first) ||
        !event_ahead(c, pair, report, &record, first, spot, second, true, false))
        return false;
    report->covered = pair->first_seq;
    return true;
}

/* A new event, recorded directly after the first access. Returns false if there is no place for it, or if a wait for
 * the stream does the same. `only_way`: at the place of the wait, no variable leads to the stream. */
static bool new_event(const checker *c, const found_pair *pair, mr_hazard_report *report,
                      const mr_script_spot *spot, const char *second, bool only_way) {
    char name[NAME_SIZE], first[NAME_SIZE];
    mr_script_spot record;
    if (!c->hooks.new_local || pair->first == &c->order.host_actor) return false;
    if (!only_way && !went_on(c, pair, pair->first_seq)) return false;
    if (!behind_first(c, pair, &record)) return false;
    if (!mr_hazard_stream_code(c, pair, pair->first, &record, first, sizeof first)) return false;
    report->covered = pair->first_seq;
    if (!c->hooks.new_local(c->hooks.context, &record, spot, is_proposed, c, name, sizeof name)) {
        if (event_ahead(c, pair, report, &record, first, spot, second, false, only_way))
            return true;
        report->covered = 0;
        return false;
    }
    put_line(report, &record, "local %s = %s:record_event()", name, first);
    put_wait(report, spot, second, name);
    return true;
}

/* Says why the host waits, and the smallest change that would allow a wait between streams. Between two parts of a
 * line, what the first part declares is in scope, too; the text of the line does not tell the parts apart. */
static void say_without_variable(const checker *c, const actor *lost, const mr_script_spot *spot,
                                 const char *shown, mr_buffer *out) {
    mr_site front = {spot->where.file, spot->front}, held = {0};
    mr_hazard_object object = {.stream = lost->stream};
    char name[NAME_SIZE], place[PLACE_SIZE];
    bool is_held = c->hooks.holder && lost->stream && !lost->stream->closed &&
                   c->hooks.holder(c->hooks.context, &object, name, sizeof name, &held);
    if (held.file == front.file) mr_made_at(held, place, sizeof place);
    else mr_hazard_place(mr_hazard_shown(c, held), place, sizeof place);
    if (lost->kind == MR_STREAM_USER && (!lost->stream || lost->stream->closed))
        mr_buffer_printf(out, "%s is closed here: wait for it before that", shown);
    else if (spot->place == MR_SCRIPT_WITHIN)
        mr_buffer_printf(out, "or a wait for %s, if a variable of the line holds it", shown);
    else if (is_held)
        mr_buffer_printf(out, "no variable in scope here leads to %s: hand over `%s` of %s", shown,
                         name, place);
    else if (c->hooks.is_running && !c->hooks.is_running(c->hooks.context, front))
        mr_buffer_printf(out, "%s has no name here; use its variable", shown);
    else {
        mr_buffer_printf(out, "no variable in scope here leads to %s", shown);
        if (held.file) mr_buffer_printf(out, ": name it first, at %s: local s = ...", place);
    }
}

/* The first access's line drops the work: proposes a local for it. */
static void say_keep_work(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                          mr_buffer *out) {
    char work[NAME_SIZE], wait[NAME_SIZE * 2];
    mr_script_spot behind, call = {.where = pair->first_where, .front = pair->first_where.line};
    /* In a function on the call's line, a local would end with that. */
    bool is_direct =
        c->hooks.is_direct && c->hooks.is_direct(c->hooks.context, &call, pair->first_where);
    if (c->hooks.new_local && is_direct && behind_first(c, pair, &behind) &&
        c->hooks.new_local(c->hooks.context, &behind, spot, is_proposed, c, work, sizeof work) &&
        mr_hazard_wait_of_work(c, pair, work, spot, wait, sizeof wait))
        mr_buffer_printf(out, "or keep what %s returns at line %d, as local %s, and write %s here",
                         pair->first_op, pair->first_where.line, work, wait);
    else mr_buffer_printf(out, "or keep what %s returns, and call its wait() here", pair->first_op);
}

/* The weaker change for a tensor that would be freed too early. The stream of its memory may be the library's own,
 * which the script cannot name. */
static bool say_record(const checker *c, const found_pair *pair, const actor *lost,
                       const mr_script_spot *spot, mr_buffer *out) {
    const mr_storage *storage = pair->history->storage;
    char stream[NAME_SIZE], made[MR_MADE_AT_SIZE];
    bool is_free = pair->kind == MR_HAZARD_USE_AFTER_FREE && lost == pair->second;
    bool is_open = lost->stream && !lost->stream->closed;
    bool is_own = pair->first->stream && pair->first->stream == storage->stream;
    if (!is_free || !is_open || is_own || !storage->made.file ||
        !mr_hazard_stream_code(c, pair, pair->first, spot, stream, sizeof stream))
        return false;
    mr_buffer_printf(out, "or call record_stream(%s) on the tensor made at %s", stream,
                     mr_made_at(storage->made, made, sizeof made));
    return true;
}

/* If no expression leads to one of the streams, the host can still wait for the whole device of the first
 * one. The variables of a function that is not running are not known, for example when a host function
 * runs after the script. */
static void wait_on_host(const checker *c, const found_pair *pair, const actor *lost,
                         mr_hazard_report *report, const mr_script_spot *spot) {
    const actor *first = pair->first;
    char name[NAME_SIZE], device[16] = "";
    mr_buffer shown = {0}, why = {0}; /* a name with a newline would end the comment */
    mr_hazard_stream_text(c, lost, name, sizeof name);
    mr_text_put(&shown, name);
    if (c->machine->device_count > 1 && !mr_hazard_is_own_device(c, first->device))
        snprintf(device, sizeof device, "%d", first->device);
    if (lost == first && mr_hazard_work_is_lost(c, pair)) say_keep_work(c, pair, spot, &why);
    else if (!say_record(c, pair, lost, spot, &why))
        say_without_variable(c, lost, spot, shown.data ? shown.data : "it", &why);
    put_line(report, spot, "mr.synchronize(%s)%s%s", device, why.data ? " -- " : "",
             why.data ? why.data : "");
    mr_buffer_free(&shown);
    mr_buffer_free(&why);
}

/* The first stream has been closed since, but was open right after the first access. In a loop, the variable may have
 * held another stream then. */
static bool wait_before_close(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    char first[NAME_SIZE], second[NAME_SIZE];
    mr_script_spot behind;
    bool host = pair->second == &c->order.host_actor;
    bool is_closed = pair->first->stream && pair->first->stream->closed;
    if (!is_closed || !behind_first(c, pair, &behind) || behind.in_loop) return false;
    if (!mr_hazard_closed_code(c, pair->first, &behind, first, sizeof first)) return false;
    if (host) put_line(report, &behind, "%s:synchronize()", first);
    else if (mr_hazard_stream_code(c, pair, pair->second, &behind, second, sizeof second))
        put_line(report, &behind, "%s:wait_stream(%s)", second, first);
    else return false;
    report->covered = pair->first_seq;
    return true;
}

/* Waits right after the call of an asynchronous collective: at the second access no variable holds its work. */
static bool wait_behind_call(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    char wait[NAME_SIZE * 2];
    mr_script_spot behind;
    if (!behind_first(c, pair, &behind)) return false;
    if (!mr_hazard_work_wait(c, pair, &behind, wait, sizeof wait)) return false;
    put_line(report, &behind, "%s", wait);
    report->covered = pair->first_seq;
    return true;
}

static void say_wait(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    char first[NAME_SIZE], second[NAME_SIZE], place[2][PLACE_SIZE];
    mr_hazard_stream_text(c, pair->first, first, sizeof first);
    mr_hazard_stream_text(c, pair->second, second, sizeof second);
    mr_text_format(
        report->advice, sizeof report->advice,
        "make %s%s wait for %s, after the operation at %s and before the operation at %s",
        pair->second == &c->order.host_actor ? "the " : "", second, first,
        mr_hazard_place(mr_hazard_shown(c, pair->first_where), place[0], sizeof place[0]),
        mr_hazard_place(mr_hazard_shown(c, pair->second_where), place[1], sizeof place[1]));
}

/* The stream that must wait: the stream of the second, or the stream that the second's call makes its own stream
 * wait for. */
static const actor *find_waiting(const checker *c, const found_pair *pair,
                                 const mr_script_spot *spot, char *out, size_t size) {
    const log_line *wait = mr_hazard_wait_of_call(c, pair);
    const actor *waiting = wait ? mr_hazard_find_actor(c, wait->bound_stream) : NULL;
    if (mr_hazard_stream_code(c, pair, pair->second, spot, out, size)) return pair->second;
    return waiting && mr_hazard_stream_code(c, pair, waiting, spot, out, size) ? waiting : NULL;
}

/* The stream to wait for: the first, or one that has waited for it. */
static bool awaited_code(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                         char *out, size_t size, uint64_t *out_covered) {
    uint64_t before = UINT64_MAX, covered;
    mr_site where;
    const actor *behind;
    if (mr_hazard_stream_code(c, pair, pair->first, spot, out, size)) return true;
    while ((behind = mr_hazard_behind_first(c, pair, &before, &where, &covered))) {
        if (comes_before(c, pair, spot, where) ||
            !mr_hazard_stream_code(c, pair, behind, spot, out, size))
            continue;
        *out_covered = covered;
        return true;
    }
    return false;
}

/* A wait for the stream, or on the host where no variable leads to a stream. */
static void wait_for_stream(const checker *c, const found_pair *pair, mr_hazard_report *report,
                            const mr_script_spot *spot) {
    char first[NAME_SIZE], second[NAME_SIZE];
    bool host = pair->second == &c->order.host_actor;
    if (!host && !find_waiting(c, pair, spot, second, sizeof second))
        wait_on_host(c, pair, pair->second, report, spot);
    else if (!awaited_code(c, pair, spot, first, sizeof first, &report->covered))
        wait_on_host(c, pair, pair->first, report, spot);
    else if (host) put_line(report, spot, "%s:synchronize()", first);
    else put_line(report, spot, "%s:wait_stream(%s)", second, first);
}

/* A loop runs the second at each turn. The first may have run before the loop, in a turn, or both. */
static void wait_at_each_turn(const checker *c, const found_pair *pair, mr_hazard_report *report,
                              const mr_script_spot *head) {
    mr_script_spot end = *head;
    end.where.line = end.front = head->again;
    wait_for_stream(c, pair, report, head);
    wait_for_stream(c, pair, report, &end);
}

static void wait_for(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    char first[NAME_SIZE], second[NAME_SIZE], event[NAME_SIZE];
    bool host = pair->second == &c->order.host_actor, is_work;
    const actor *waiting = pair->second;
    mr_script_spot spot;
    bool fits = find_before_second(c, pair, &spot);
    mr_script_spot behind;
    bool is_behind =
        (!fits || spot.again) && !pair->submitted.file && behind_first(c, pair, &behind);
    if (is_behind) spot = behind;
    if (!fits && !is_behind) {
        say_wait(c, pair, report);
    } else if (spot.again) {
        wait_at_each_turn(c, pair, report, &spot);
    } else if (!host && !(waiting = find_waiting(c, pair, &spot, second, sizeof second))) {
        if (!wait_behind_call(c, pair, report)) wait_on_host(c, pair, pair->second, report, &spot);
    } else if (covering_last(c, pair, &spot, event, sizeof event, &is_work, &report->covered)) {
        bool is_later = is_set_later(c, &spot, event);
        bool is_plain = !host && is_work &&
                        (is_current(c, pair, waiting) || strcmp(second, MR_HAZARD_CURRENT) == 0);
        const char *waits = host ? NULL : is_plain ? "" : second;
        if (!is_work && event_for_each(c, pair, report, &spot, waits)) return;
        if (is_work) put_work_wait(report, &spot, waits, event, is_later);
        else (is_later ? put_wait_if_set : put_wait)(report, &spot, waits, event);
    } else if (new_event(c, pair, report, &spot, host ? NULL : second, false)) {
        return;
    } else if (!awaited_code(c, pair, &spot, first, sizeof first, &report->covered)) {
        if (!wait_behind_call(c, pair, report) && !wait_before_close(c, pair, report) &&
            !new_event(c, pair, report, &spot, host ? NULL : second, true))
            wait_on_host(c, pair, pair->first, report, &spot);
    } else {
        wait_for_stream(c, pair, report, &spot);
    }
}

/* ---- lifetime */

typedef struct {
    mr_script_spot spot[3];
    int count;
} spots;

/* No variable leads to a collected tensor any more. If a `for ... in` made it, the text tells the variable that held
 * it. */
static bool loop_variable(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                          char *out, size_t size) {
    return c->hooks.loop_variable &&
           c->hooks.loop_variable(c->hooks.context, pair->history->storage->made, pair->first_where,
                                  pair->first_op, spot, out, size);
}

typedef bool tensor_at(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                       char *out, size_t size);

/* R33: the free waits for all work that was submitted to the stream before it, so any place before the
 * free is correct. */
static bool record_stream(const checker *c, const found_pair *pair, const spots *where,
                          tensor_at *tensor_code, mr_hazard_report *report) {
    char tensor[NAME_SIZE], stream[NAME_SIZE];
    for (int i = 0; i < where->count; i++) {
        const mr_script_spot *spot = &where->spot[i];
        if (!tensor_code(c, pair, spot, tensor, sizeof tensor)) continue;
        if (!mr_hazard_stream_code(c, pair, pair->first, spot, stream, sizeof stream)) continue;
        put_line(report, spot, "%s:record_stream(%s)", tensor, stream);
        return true;
    }
    return false;
}

/* For memory that a collective uses: work:wait() makes the stream that frees the memory wait. */
static bool wait_for_work(const checker *c, const found_pair *pair, const spots *where,
                          mr_hazard_report *report) {
    char work[NAME_SIZE], stream[NAME_SIZE];
    bool is_work;
    for (int i = where->count; i--;) {
        const mr_script_spot *spot = &where->spot[i];
        if (is_current(c, pair, pair->second)) stream[0] = '\0';
        else if (!mr_hazard_stream_code(c, pair, pair->second, spot, stream, sizeof stream))
            continue;
        if (!covering_event(c, pair, spot, work, sizeof work, &is_work, &report->covered) ||
            !is_work)
            continue;
        put_work_wait(report, spot, stream, work, is_set_later(c, spot, work));
        report->joins = true;
        return true;
    }
    report->covered = 0;
    return false;
}

/* A temporary has no variable. Instead, the stream of its memory can wait. */
static bool delay_free(const checker *c, const found_pair *pair, const spots *where,
                       mr_hazard_report *report) {
    char freeing[NAME_SIZE], stream[NAME_SIZE];
    for (int i = 0; i < where->count; i++) {
        const mr_script_spot *spot = &where->spot[i];
        if (!mr_hazard_stream_code(c, pair, pair->second, spot, freeing, sizeof freeing)) continue;
        if (!awaited_code(c, pair, spot, stream, sizeof stream, &report->covered)) continue;
        put_line(report, spot, "%s:wait_stream(%s)", freeing, stream);
        report->joins = true;
        return true;
    }
    return false;
}

static void say_keep(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    char stream[NAME_SIZE], place[2][PLACE_SIZE];
    mr_hazard_stream_text(c, pair->first, stream, sizeof stream);
    mr_text_format(
        report->advice, sizeof report->advice,
        "call record_stream on the tensor that was made at %s, with %s, before the use at %s",
        mr_hazard_place(mr_hazard_shown(c, pair->history->storage->made), place[0],
                        sizeof place[0]),
        stream, mr_hazard_place(mr_hazard_shown(c, pair->first_where), place[1], sizeof place[1]));
}

/* The collector freed it inside the statement of the use, so the tensor was a temporary of that statement, or of one
 * that ran before it. */
static void say_hold(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    char stream[NAME_SIZE], place[2][PLACE_SIZE];
    mr_hazard_stream_text(c, pair->first, stream, sizeof stream);
    mr_text_format(
        report->advice, sizeof report->advice,
        "hold the tensor that was made at %s in a local variable, and call its record_stream with "
        "%s before the use at %s. A line after that statement comes too late: Lua collected the "
        "tensor while it ran",
        mr_hazard_place(mr_hazard_shown(c, pair->history->storage->made), place[0],
                        sizeof place[0]),
        stream, mr_hazard_place(mr_hazard_shown(c, pair->first_where), place[1], sizeof place[1]));
}

/* Whether the collector freed it before the statement of the use had ended. */
static bool is_freed_inside(const checker *c, const found_pair *pair) {
    mr_script_meeting meeting = {.first = pair->first_where,
                                 .second = pair->first_where,
                                 .first_op = pair->first_op,
                                 .second_op = pair->second_op};
    if (pair->second_where.file || !pair->first_where.file || !c->hooks.still_runs) return false;
    measure(c, pair, &meeting);
    return c->hooks.still_runs(c->hooks.context, &meeting);
}

/* The place after the use, if it is before the free. The end of the block that closes the variable has the line of its
 * last statement, which may be the use. Otherwise a free in the same line comes earlier. */
static bool behind_use(const checker *c, const found_pair *pair, bool is_one_line,
                       mr_script_spot *out_spot) {
    char tensor[NAME_SIZE];
    if (!is_one_line && behind_first(c, pair, out_spot)) return true;
    return pair->by_scope && find_behind(c, pair, true, out_spot) &&
           mr_hazard_tensor_code(c, pair, out_spot, tensor, sizeof tensor);
}

static void keep_alive(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    /* R33: record_stream has no effect for the stream of the allocation. */
    bool own = pair->first->stream && pair->first->stream == pair->history->storage->stream;
    mr_script_spot behind, before, use;
    spots where = {.count = 0}, records;
    bool is_before = find_before_second(c, pair, &before) && !before.again;
    if (!pair->first_where.file) return;
    bool is_one_line = is_before && before.place == MR_SCRIPT_WITHIN;
    bool is_inside = is_freed_inside(c, pair);
    if (is_before && own) where.spot[where.count++] = before;
    if (!is_inside && behind_use(c, pair, is_one_line, &behind)) where.spot[where.count++] = behind;
    if (is_before && !own) where.spot[where.count++] = before;
    records = where;
    if (records.count < 3 && before_first(c, pair, &use)) records.spot[records.count++] = use;
    if (!own && record_stream(c, pair, &records, mr_hazard_tensor_code, report)) return;
    if (wait_for_work(c, pair, &where, report)) return;
    if (delay_free(c, pair, &where, report)) return;
    if (!own && record_stream(c, pair, &records, loop_variable, report)) return;
    if (!is_inside && wait_behind_call(c, pair, report)) {
        report->joins = true;
    } else if (is_inside) {
        say_hold(c, pair, report);
    } else if (where.count == 0) {
        say_keep(c, pair, report);
    } else {
        char text[NAME_SIZE];
        bool known = mr_hazard_stream_code(c, pair, pair->first, &where.spot[0], text, sizeof text);
        wait_on_host(c, pair, known ? pair->second : pair->first, report, &where.spot[0]);
        report->joins = true;
    }
}

void mr_hazard_find_fix(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    if (mr_hazard_is_before_launch(pair)) {
        char place[PLACE_SIZE], stream[NAME_SIZE];
        mr_hazard_stream_text(c, pair->second, stream, sizeof stream);
        mr_text_format(report->advice, sizeof report->advice,
                       "launch the graph before %s, on stream %s or on one that it waits for",
                       mr_hazard_place(mr_hazard_shown(c, pair->second_where), place, sizeof place),
                       stream);
    } else if (pair->kind == MR_HAZARD_UNINITIALISED_READ) {
        char place[PLACE_SIZE];
        mr_text_format(
            report->advice, sizeof report->advice,
            "write all of the tensor before %s, or make it with mr.zeros instead of mr.empty",
            mr_hazard_place(mr_hazard_shown(c, pair->second_where), place, sizeof place));
    } else if (pair->kind == MR_HAZARD_USE_AFTER_FREE && pair->second != &c->order.host_actor) {
        keep_alive(c, pair, report);
    } else if (pair->second_where.file) {
        wait_for(c, pair, report);
    }
}
