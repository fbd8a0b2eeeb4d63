/* The pending work of the virtual GPU: mr.machine.queues(), and sentences about what an operation waits for.
 *
 * Easiest to break: a row of the list is a copy. Making Lua values runs the collector, which may submit and close. */
#include "bind/machine/pending.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "bind/field.h"
#include "bind/open.h"
#include "bind/outside.h"
#include "bind/hazard/waits.h"

/* --- what it waits for ------------------------------------------------------------------------------ */

/* "event `done`, which record_event on stream `p` at race.lua:4 (#7) records" */
static void describe_event(const mr_command *record, char *out, size_t size) {
    char event[80], stream[80], place[120] = "";
    if (record->where.file)
        snprintf(place, sizeof place, " at %.100s:%d", record->where.file, record->where.line);
    snprintf(out, size, "%s, recorded on %s%s (#%" PRIu64 ")",
             mr_event_describe(record->u.event.event, event, sizeof event),
             mr_stream_describe(record->stream, stream, sizeof stream), place, record->seq);
}

/* "waits for event `done`, recorded on stream `p` at race.lua:4 (#7)"; empty: nothing holds it up. */
static void pending_explain(const mr_pending *pending, char out[MR_PENDING_TEXT]) {
    const mr_command *other = pending->waits_for;
    char what[200] = "";
    *out = 0;
    if (other && pending->held_by == MR_CAUSE_EVENT) describe_event(other, what, sizeof what);
    else if (other) mr_command_describe(other, what, sizeof what);
    switch (pending->held_by) {
    case MR_CAUSE_NONE: return;
    case MR_CAUSE_STREAM:
        snprintf(out, MR_PENDING_TEXT, "waits for the operation before it in its stream");
        return;
    case MR_CAUSE_EVENT: snprintf(out, MR_PENDING_TEXT, "waits for %s", what); return;
    case MR_CAUSE_DEFAULT_STREAM:
        snprintf(out, MR_PENDING_TEXT,
                 "waits for %s: the default stream and blocking streams wait for each other (R3)",
                 what);
        return;
    case MR_CAUSE_PEER_COPY:
        snprintf(out, MR_PENDING_TEXT, "waits for %s: a copy between devices (R60)", what);
        return;
    case MR_CAUSE_COLLECTIVE:
        snprintf(out, MR_PENDING_TEXT, "waits for %s: the ranks of a collective run together (R61)",
                 what);
        return;
    case MR_CAUSE_MEMORY:
        snprintf(out, MR_PENDING_TEXT, "waits for the memory that %s gives back (R30)", what);
        return;
    case MR_CAUSE_MULTIPROCESSORS:
        snprintf(out, MR_PENDING_TEXT, "waits for free multiprocessors: %s runs on them", what);
        return;
    case MR_CAUSE_COPY_ENGINE:
        snprintf(out, MR_PENDING_TEXT, "waits for the copy engine: %s uses it", what);
        return;
    case MR_CAUSE_CONNECTION:
        snprintf(out, MR_PENDING_TEXT,
                 "waits for its turn in a hardware queue, which its stream shares (R55)");
        return;
    case MR_CAUSE_HOST:
        mr_number_format(out, MR_PENDING_TEXT, "starts at %.6g ms of the clock",
                         (double)pending->start * 1e-6);
        return;
    default: snprintf(out, MR_PENDING_TEXT, "waits: %s", mr_cause_text(pending->held_by)); return;
    }
}

typedef struct {
    const mr_stream *stream;
    char *out;
    bool found;
} search;

static void see_head(void *context, const mr_pending *pending) {
    search *s = context;
    if (s->found || (s->stream && pending->command->stream != s->stream)) return;
    s->found = true;
    char what[240], why[MR_PENDING_TEXT];
    pending_explain(pending, why);
    mr_text_format(s->out, MR_PENDING_TEXT, "%s %s",
                   mr_command_describe(pending->command, what, sizeof what),
                   *why ? why : "is ready");
}

void mr_pending_explain_stream(mr_machine *machine, const mr_stream *stream,
                               char out[MR_PENDING_TEXT]) {
    search s = {.stream = stream, .out = out};
    char name[80];
    mr_machine_pending(machine, see_head, &s);
    if (s.found) return;
    if (!stream) snprintf(out, MR_PENDING_TEXT, "nothing is pending");
    else
        snprintf(out, MR_PENDING_TEXT, "nothing is pending on %s",
                 mr_stream_describe(stream, name, sizeof name));
}

/* --- the list --------------------------------------------------------------------------------------- */

/* One pending command, as it is shown. */
typedef struct {
    mr_stream *stream; /* owned */
    const char *name;  /* interned */
    mr_site where;
    uint64_t seq, waits_for; /* 0: for none */
    const char *state;
    uint32_t part, parts;
    char why[MR_PENDING_TEXT];
} row;

static int drop_rows(lua_State *L) {
    mr_buffer *rows = lua_touserdata(L, 1);
    for (size_t i = 0; i < rows->size / sizeof(row); i++) {
        mr_stream *stream = ((row *)(void *)rows->data)[i].stream;
        stream->device->machine->hooks.context = L;
        mr_stream_release(stream);
    }
    mr_buffer_free(rows);
    return 0;
}

static void copy_pending(void *context, const mr_pending *pending) {
    mr_buffer *rows = context;
    const mr_command *command = pending->command;
    row copy = {.stream = command->stream,
                .name = command->name,
                .where = command->where,
                .seq = command->seq,
                .waits_for = pending->waits_for ? pending->waits_for->seq : 0,
                .part = pending->part,
                .parts = pending->parts,
                .state = pending->running ? "running"
                         : pending->ready ? "ready"
                                          : "waiting"};
    pending_explain(pending, copy.why);
    mr_buffer_add(rows, (const char *)&copy, sizeof copy);
    if (!rows->failed) mr_stream_retain(copy.stream);
}

static void push_pending(lua_State *L, const row *r) {
    lua_createtable(L, 0, 8);
    lua_pushstring(L, r->name);
    lua_setfield(L, -2, "op");
    lua_pushinteger(L, (lua_Integer)r->seq);
    lua_setfield(L, -2, "seq");
    mr_set_site(L, "where", r->where);
    lua_pushstring(L, r->state);
    lua_setfield(L, -2, "state");
    lua_pushinteger(L, r->part);
    lua_setfield(L, -2, "part");
    lua_pushinteger(L, r->parts);
    lua_setfield(L, -2, "parts");
    if (*r->why) {
        lua_pushstring(L, r->why);
        lua_setfield(L, -2, "why");
    }
    if (!r->waits_for) return;
    lua_pushinteger(L, (lua_Integer)r->waits_for);
    lua_setfield(L, -2, "waits_for");
}

/* Pushes {stream=, pending={...}} for the rows of one stream, from *next on. */
static void push_queue(lua_State *L, const row *rows, size_t count, size_t *next) {
    mr_stream *stream = rows[*next].stream;
    lua_createtable(L, 0, 2);
    mr_push_stream(L, &stream);
    lua_setfield(L, -2, "stream");
    lua_newtable(L);
    for (int i = 1; *next < count && rows[*next].stream == stream; i++, ++*next) {
        push_pending(L, &rows[*next]);
        lua_rawseti(L, -2, i);
    }
    lua_setfield(L, -2, "pending");
}

MR_FUNCTION(
    machine_queues, "queues", "mr.machine.queues() -> queues: table[]",
    "Returns the pending work: for each stream with work {stream=, pending={{op=, seq=, where=, "
    "state=, part=, parts=, waits_for=, why=}, ...}}, oldest first. `state` is \"running\", "
    "\"ready\" or \"waiting\". `part` of `parts` steps of it are done. `waits_for` is the seq of "
    "an "
    "operation of another stream. `why` is a sentence that says what it waits for. The device does "
    "not advance.") {
    mr_machine *machine = mr_set_context(L);
    mr_buffer *copy = mr_push_owner(L, sizeof *copy, drop_rows);
    mr_bind_waits_looks(L, "mr.machine.queues", NULL);
    mr_machine_pending(machine, copy_pending, copy);
    mr_note_times(L);
    mr_observers_learned(machine);
    if (copy->failed) mr_raise(L, mr_no_memory("for queues"));
    const row *rows = (const row *)(const void *)copy->data;
    size_t count = copy->size / sizeof *rows, next = 0;
    lua_newtable(L);
    for (int i = 1; next < count; i++) {
        push_queue(L, rows, count, &next);
        lua_rawseti(L, -2, i);
    }
    return 1;
}

static const mr_function *const functions[] = {&machine_queues_function, NULL};

const mr_class mr_pending_class = {"mr.machine", "Pending commands.", functions, NULL, NULL};

void mr_open_pending(lua_State *L) {
    lua_getfield(L, -1, "machine");
    mr_table_open(L, &mr_pending_class);
    lua_pop(L, 1);
}
