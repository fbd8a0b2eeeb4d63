/* mr.trace and mr.timeline: tracing what a script does. The methods of a trace are in trace.c.
 *
 * Easiest to break: tracers are observers of the machine, so each has an owner that stops it before the machine closes.
 * The owner is the box of this state, or the userdata of a call of mr.timeline. */
#include <stdlib.h>

#include "bind/explore_guard.h"
#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "bind/open.h"
#include "bind/trace/trace.h"
#include "bind/trace/parts.h"
#include "collective/calls.h"
#include "collective/ranks.h"
#include "collective/world.h"
#include "trace/record/join.h"
#include "trace/record/tracer.h"
#include "trace/writers.h"

#define MOST_SPANS      1000000 /* some 150 bytes each */
#define MOST_IN_SANDBOX 100000  /* which do not count as Lua's memory */

typedef struct {
    mr_machine *machine;
    mr_tracer *started; /* by mr.trace.start */
    uint64_t first_seq; /* when it was */
    mr_tracer *outer; /* `started` as it was before a function that mr.explore or its like calls */
    mr_tracer *whole; /* of --trace */
    const char *path;
    const char *joined; /* of all ranks; NULL: none */
} state;

static const char state_box; /* its address is a registry key */

static state *state_of(lua_State *L) {
    return mr_under_key(L, &state_box);
}

/* ---- snapshots */

/* A hazard with the positions of its texts in a buffer, which may still grow. */
typedef struct {
    uint64_t first, second;
    const char *kind;
    size_t message, fix;
} noted;

static void note_texts(const mr_hazard_report *report, noted *note, mr_buffer *texts) {
    note->message = texts->size;
    mr_hazard_write_text(report, false, texts);
    mr_buffer_add(texts, "", 1);
    note->fix = texts->size;
    for (int i = 0; i < report->fix_count; i++)
        mr_buffer_printf(texts, i ? "\n%s" : "%s", report->fix[i].text);
    if (!report->fix_count) mr_buffer_puts(texts, report->advice);
    mr_buffer_add(texts, "", 1);
}

/* The reports about commands from `first_seq` on. */
static void note_hazards(const mr_hazard *hazard, uint64_t first_seq, mr_buffer *notes,
                         mr_buffer *texts) {
    for (size_t i = 0; i < mr_hazard_report_count(hazard); i++) {
        const mr_hazard_report *report = mr_hazard_report_at(hazard, i);
        bool advice = mr_hazard_kind_is_advice(report->kind);
        if (advice || report->withdrawn || report->second.seq < first_seq) continue;
        noted note = {report->first.seq, report->second.seq, mr_hazard_kind_text(report->kind), 0,
                      0};
        note_texts(report, &note, texts);
        mr_buffer_add(notes, (const char *)&note, sizeof note);
    }
}

static mr_status snapshot_with(mr_tracer *tracer, const mr_buffer *notes, const mr_buffer *texts,
                               mr_trace **out_trace) {
    const noted *note = (const noted *)(const void *)notes->data;
    size_t count = notes->size / sizeof *note;
    mr_tracer_hazard *hazards = calloc(count + 1, sizeof *hazards);
    if (!hazards || notes->failed || texts->failed) {
        free(hazards);
        return mr_no_memory("for the hazards of a trace");
    }
    for (size_t i = 0; i < count; i++)
        hazards[i] = (mr_tracer_hazard){note[i].first, note[i].second, note[i].kind,
                                        texts->data + note[i].message, texts->data + note[i].fix};
    mr_status status = mr_tracer_snapshot(tracer, 0, hazards, count, out_trace);
    free(hazards);
    return status;
}

static mr_status snapshot(lua_State *L, mr_tracer *tracer, uint64_t first_seq,
                          const mr_trace **out_trace) {
    mr_buffer notes = {0}, texts = {0};
    mr_trace *trace = NULL;
    note_hazards(mr_bind_hazard(L), first_seq, &notes, &texts);
    mr_status status = snapshot_with(tracer, &notes, &texts, &trace);
    mr_buffer_free(&notes);
    mr_buffer_free(&texts);
    *out_trace = trace;
    return status;
}

/* Places are named as in reports. */
static mr_status start(lua_State *L, mr_machine *machine, size_t most, mr_tracer **out_tracer) {
    MR_TRY(mr_tracer_start(machine, most, out_tracer));
    mr_tracer_set_shown(*out_tracer, mr_hazard_shown_by, mr_bind_hazard(L));
    return MR_OK;
}

/* ---- mr.trace */

MR_FUNCTION(trace_start, "start", "mr.trace.start([options: {max: integer=1000000}])",
            "Begins to trace each operation from now on: its line, the time of the host's call, "
            "and the time at which the device carried it out. Pending work is traced when it runs. "
            "When there are more than `max` operations, the oldest are forgotten. An error if "
            "a trace is under way.") {
    static const char *const known[] = {"max", NULL};
    mr_machine *machine = mr_set_context(L);
    mr_option_slots options = mr_check_options(L, 1, known);
    lua_Integer most = mr_option_integer(L, &options, "max", MOST_SPANS);
    if (machine->memory.limit && most > MOST_IN_SANDBOX) most = MOST_IN_SANDBOX;
    if (most < 1) return mr_misuse(L, "trace.start: max: expected at least 1, got %lld", most);
    state *s = state_of(L);
    if (s->started)
        return mr_misuse(L, "trace.start: a trace is under way: mr.trace.stop() ends it");
    s->first_seq = machine->counts.next_seq;
    mr_raise(L, start(L, machine, (size_t)most, &s->started));
    return 0;
}

MR_FUNCTION(trace_stop, "stop", "mr.trace.stop() -> trace: trace",
            "Ends the trace that mr.trace.start began, and returns it. Waits for nothing: pending "
            "work is in the trace without times. Call mr.synchronize() first to have all.") {
    mr_machine *machine = mr_set_context(L);
    state *s = state_of(L);
    const mr_trace **box = mr_new_trace(L); /* first: a finalizer may stop the trace */
    if (!s->started)
        return mr_misuse(L, "trace.stop: no trace is under way: mr.trace.start() begins one");
    if (mr_explore_guard_is_busy(L) && s->started == s->outer)
        return mr_misuse(L, "trace.stop: not permitted here: the function would end a trace from "
                            "outside, and its other runs need it");
    mr_tracer *tracer = s->started;
    mr_status status = snapshot(L, tracer, s->first_seq, box);
    s->started = NULL;
    mr_tracer_stop(tracer);
    mr_raise(L, status);
    mr_observers_learned(machine); /* when everything ran */
    return 1;
}

void mr_bind_tracer_keep(lua_State *L) {
    state *s = state_of(L);
    s->outer = s->started;
}

/* Ends a trace that the run has started. */
void mr_bind_tracer_put_back(lua_State *L) {
    state *s = state_of(L);
    if (s->started != s->outer) mr_tracer_stop(s->started);
    s->started = s->outer;
}

/* ---- mr.timeline */

typedef struct {
    mr_machine *machine;
    mr_tracer *tracer;
} call_owner;

static void end_call(call_owner *owner) {
    mr_tracer *tracer = owner->tracer;
    owner->tracer = NULL;
    mr_tracer_stop(tracer);
}

static int drop_call(lua_State *L) {
    call_owner *owner = lua_touserdata(L, 1);
    if (owner->tracer) owner->machine->hooks.context = L;
    end_call(owner);
    return 0;
}

static int drain_protected(lua_State *L) {
    mr_raise(L, mr_machine_drain(mr_set_context(L)));
    return 0;
}

MR_FUNCTION(trace_timeline, "timeline", "mr.timeline(fn: function, ...) -> trace: trace, ...",
            "Runs `fn(...)`, waits until all devices are done, and returns a trace of it, and then "
            "what `fn` returned. An error in `fn` is raised.") {
    mr_machine *machine = mr_set_context(L);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    uint64_t first_seq = machine->counts.next_seq;
    const mr_trace **box = mr_new_trace(L);
    lua_insert(L, 1);
    call_owner *owner = mr_push_owner(L, sizeof *owner, drop_call);
    lua_insert(L, 2);
    owner->machine = machine;
    mr_raise(
        L, start(L, machine, machine->memory.limit ? MOST_IN_SANDBOX : MOST_SPANS, &owner->tracer));
    int status = lua_pcall(L, lua_gettop(L) - 3, LUA_MULTRET, 0);
    if (status == LUA_OK) {
        mr_push_module(L);
        lua_pushcclosure(L, drain_protected, 1);
        status = lua_pcall(L, 0, 0, 0);
    }
    mr_set_context(L);
    mr_status made = status == LUA_OK ? snapshot(L, owner->tracer, first_seq, box) : MR_OK;
    end_call(owner);
    if (status != LUA_OK) return lua_error(L);
    mr_raise(L, made);
    mr_observers_learned(machine);
    lua_remove(L, 2);
    return lua_gettop(L);
}

/* ---- for the host program */

mr_status mr_bind_trace_begin(lua_State *L, const char *path, const char *joined) {
    state *s = state_of(L);
    MR_TRY(start(L, s->machine, MOST_SPANS, &s->whole));
    s->path = path;
    s->joined = joined;
    return MR_OK;
}

/* An error that names the ranks whose processes have not ended. */
static mr_status missing(const mr_world_handed *handed, uint32_t count) {
    mr_buffer who = {0};
    uint64_t ranks = 0;
    for (uint32_t k = 1; k < count; k++)
        if (!handed[k].bytes) ranks |= (uint64_t)1 << k;
    if (!ranks) return MR_OK;
    mr_ranks_tell(ranks, &who);
    mr_status status = mr_fail(MR_CODE_UNKNOWN, "the timeline of all ranks lacks %s",
                               who.data ? who.data : "some");
    mr_buffer_free(&who);
    return status;
}

static mr_status save_joined(lua_State *L, mr_collectives *c, const mr_buffer *own,
                             const char *path) {
    mr_world_handed handed[MR_MEETING_MOST] = {{0}};
    mr_trace_bytes parts[MR_MEETING_MOST] = {{own->data, own->size}};
    uint32_t count = mr_ranks_count(c);
    mr_trace *trace;
    mr_world_gather(c, handed);
    for (uint32_t k = 1; k < count; k++)
        parts[k] = (mr_trace_bytes){handed[k].bytes, handed[k].size};
    MR_TRY(mr_trace_join(parts, count, &trace));
    mr_status status = mr_trace_save_as(L, trace, NULL, path);
    mr_trace_release(trace);
    return status ? status : missing(handed, count);
}

/* This rank's trace becomes a part of the timeline of all. */
static mr_status join(lua_State *L, const mr_trace *trace, const char *path) {
    mr_collectives *c = mr_bind_module(L)->collectives;
    mr_buffer bytes = {0};
    if (!c || !mr_world_is_joined(c))
        return mr_fail(MR_CODE_UNKNOWN, "no timeline of all ranks was saved, since the script has "
                                        "not joined them: mr.dist.init() does");
    uint32_t rank = mr_ranks_current(c);
    mr_status status = mr_trace_to_bytes(trace, rank, &bytes);
    if (!status && rank) status = mr_world_hand_over(c, &bytes);
    else if (!status) status = save_joined(L, c, &bytes, path);
    mr_buffer_free(&bytes);
    return status;
}

static bool was_unchecked(lua_State *L, const mr_trace *trace) {
    const mr_hazard *hazard = mr_bind_hazard(L);
    return hazard && mr_trace_stream_count(trace) > 1 &&
           !mr_hazard_get_totals(hazard, true).operations;
}

mr_status mr_bind_trace_end(lua_State *L, bool wait, bool *out_unchecked) {
    state *s = state_of(L); /* NULL: no machine could be opened */
    mr_tracer *tracer = s ? s->whole : NULL;
    const mr_trace *trace = NULL;
    *out_unchecked = false;
    if (!tracer) return MR_OK;
    s->whole = NULL;
    s->machine->hooks.context = L;
    if (wait)
        mr_error_destroy(
            mr_machine_drain(s->machine)); /* the script did not wait, so it gets no error */
    mr_status status = snapshot(L, tracer, 0, &trace);
    mr_tracer_stop(tracer);
    if (!status) status = mr_trace_save_as(L, trace, NULL, s->path);
    if (!status && s->joined) status = join(L, trace, s->joined);
    *out_unchecked = !status && was_unchecked(L, trace);
    mr_trace_release(trace);
    return status;
}

/* ---- opening */

static int state_gc(lua_State *L) {
    state *s = lua_touserdata(L, 1);
    mr_tracer_stop(s->started);
    mr_tracer_stop(s->whole);
    s->started = s->whole = NULL;
    return 0;
}

static const mr_function *const trace_functions[] = {&trace_start_function, &trace_stop_function,
                                                     NULL};
static const mr_function *const timeline_functions[] = {&trace_timeline_function, NULL};

const mr_class mr_tracer_class = {
    "mr.trace",
    "Traces record each operation: the time of the host's call, and the time at which a device "
    "carried it out. "
    "mr.timeline(fn) is the short way. docs/timelines.md has an introduction.",
    trace_functions, NULL, NULL};
const mr_class mr_timeline_class = {"mr", "Timelines.", timeline_functions, NULL, NULL};

/* Made right after the machine and the checker, so that its finalizer comes after those of all tensors and streams, and
 * before theirs. */
void mr_open_tracer(lua_State *L) {
    state *s = mr_push_owner(L, sizeof *s, state_gc);
    s->machine = mr_bind_machine(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &state_box);
    lua_createtable(L, 0, 2);
    mr_table_open(L, &mr_tracer_class);
    lua_setfield(L, -2, "trace");
    mr_table_open(L, &mr_timeline_class);
}
