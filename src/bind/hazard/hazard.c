/* mr.hazard: the checker for scripts. */
#include "bind/hazard/hazard.h"
#include "bind/hazard/hooks.h"
#include "bind/hazard/tables.h"
#include "bind/open.h"
#include "bind/source.h"

#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "bind/explore.h"
#include "bind/field.h"
#include "bind/internal.h"
#include "bind/ranks/comm.h"
#include "bind/wrap.h"
#include "collective/comm.h"
#include "hazard/hazard.h"
#include "model/capture.h"

/* --- state -------------------------------------------------------------------------------------- */

typedef struct {
    mr_machine *machine;
    mr_hazard *hazard;
    mr_bind_answerer answerer;
    void (*at_close)(lua_State *L); /* or NULL */
} state;

static const char state_box; /* its address is a registry key */

static state *state_of(lua_State *L) {
    return mr_under_key(L, &state_box);
}

static mr_hazard *hazard_of(lua_State *L) {
    return state_of(L)->hazard;
}

mr_hazard *mr_bind_hazard(lua_State *L) {
    return hazard_of(L);
}

/* --- host functions ----------------------------------------------------------------------------- */

/* Runs the pending host functions that the checker has seen, and pending kernels of the user. So their accesses are
 * judged whether or not the script waits for them. No order follows: the script did not ask for it. */
static mr_status run_functions(const state *s) {
    mr_machine *machine = s->machine;
    for (int i = 0; i < machine->device_count && !machine->host_function.running; i++) {
        if (!mr_hazard_awaits_work(s->hazard, machine->devices[i])) continue;
        mr_status status = mr_device_drain(machine->devices[i]);
        if (status) mr_hazard_script_failed(s->hazard, status);
        MR_TRY(status);
        mr_hazard_drained(s->hazard, machine->devices[i]);
    }
    return MR_OK;
}

/* In a check, all earlier work counts as ordered, so the host waits for it. */
static mr_status wait_for_all(const mr_caller *caller, mr_hazard *hazard) {
    mr_machine *machine = caller->machine;
    for (int i = 0; i < machine->device_count; i++) {
        MR_TRY(mr_capture_ask_host(caller, MR_ASK_DEVICE, "hazard.check", NULL, NULL,
                                   machine->devices[i]));
        mr_status status = mr_device_drain(machine->devices[i]);
        if (status) mr_hazard_script_failed(hazard, status);
        MR_TRY(status);
        mr_hazard_drained(hazard, machine->devices[i]);
    }
    return MR_OK;
}

/* Inside a scope, operations cannot run if the checker must know what they touch. */
static void refuse_in_function(lua_State *L, const char *what) {
    if (state_of(L)->machine->host_function.running)
        mr_raise(L,
                 mr_fail(MR_CODE_NOT_PERMITTED, "%s: not permitted inside a host function", what));
}

/* --- functions ---------------------------------------------------------------------------------- */

static mr_hazard_mode check_mode(lua_State *L, int arg) {
    mr_hazard_mode mode = MR_HAZARD_OFF;
    const char *text = luaL_checkstring(L, arg);
    if (!mr_hazard_mode_find(text, &mode))
        mr_misuse(
            L, "hazard.mode: no mode \"%s\"; there are \"off\", \"warn\", \"error\", \"collect\"",
            text);
    return mode;
}

MR_FUNCTION(
    hazard_mode, "mode", "mr.hazard.mode([mode: string]) -> before: string",
    "\"off\" (costs nothing), \"warn\" (each new report goes to standard error), \"error\" (the "
    "call that makes a hazard raises, and is not carried out), \"collect\" (for reports()). "
    "If \"error\" refuses a node of a graph's launch, the nodes before it may be carried out. "
    "When the checker is switched on, it does not judge earlier work; if earlier work may be "
    "pending, the verdict holds only for the operations that were checked. Inside check(fn), "
    "mr.explore, mr.stress and mr.replay the new mode starts at their end. Before the checker is "
    "switched off, pending host "
    "functions run. A host function can ask for the mode and not change it. Returns the previous "
    "mode.") {
    mr_set_context(L);
    mr_hazard *hazard = hazard_of(L);
    const char *before = mr_hazard_mode_text(mr_hazard_asked_mode(hazard));
    if (!lua_isnoneornil(L, 1)) {
        mr_hazard_mode mode = check_mode(L, 1);
        refuse_in_function(L, "hazard.mode");
        if (mode == MR_HAZARD_ERROR)
            mr_bind_explore_refuse(L,
                                   "mr.hazard.mode(\"error\"): no schedule goes on after a hazard");
        if (mode == MR_HAZARD_OFF && !mr_hazard_checking(hazard))
            mr_raise(L, run_functions(state_of(L)));
        mr_raise(L, mr_hazard_set_mode(hazard, mode));
    }
    lua_pushstring(L, before);
    return 1;
}

MR_FUNCTION(
    hazard_reports, "reports", "mr.hazard.reports() -> reports: table[]",
    "Returns the hazards found so far, one table for each pair of places. It has kind, reason, "
    "tensor, tensors (that one and the others of the same operation) and bytes. first and second "
    "have op, access, stream, where, seq, and rank for a rank's call. For a kernel's launch they "
    "also have assumed (why it may not touch these bytes at all) and atomic (true for atomic "
    "updates). fix has the lines to add, as text, and fixes the same as a list, with their places. "
    "There are also count, stream_pairs (between how many pairs of streams), amended, why and "
    "message. tostring of a report is its message, and of the list all of them. Where ranks run, "
    "also ranks, a list. In a function of mr.explore: the reports from before it.") {
    mr_set_context(L);
    mr_copy_reports(hazard_of(L), 0, mr_hazard_asked_count(hazard_of(L)), false, mr_push_buffer(L));
    mr_push_reports(L);
    return 1;
}

MR_FUNCTION(hazard_clear, "clear", "mr.hazard.clear()",
            "Forgets the reports and begins a new summary; the order of the work remains. The "
            "verdict and the exit status of --check still count what was forgotten.") {
    mr_set_context(L);
    if (mr_hazard_checking(hazard_of(L)))
        return mr_misuse(L, "hazard.clear: not inside hazard.check");
    mr_hazard_write_waiting(hazard_of(L));
    mr_hazard_clear(hazard_of(L));
    return 0;
}

MR_FUNCTION(hazard_check, "check", "mr.hazard.check(fn: function, ...) -> reports: table[]",
            "Waits for all devices, runs `fn(...)` and returns the hazards in it. Host functions "
            "that are pending after `fn` then run, and their accesses count. Works in every mode "
            "and restores the mode; an error in `fn` is raised after that. Cannot be called inside "
            "another check or a host function.") {
    const mr_caller caller = mr_enter(L);
    mr_hazard *hazard = hazard_of(L);
    size_t first;
    luaL_checktype(L, 1, LUA_TFUNCTION);
    refuse_in_function(L, "hazard.check");
    mr_buffer *copies = mr_push_buffer(L);
    lua_insert(L, 1);
    if (!mr_hazard_checking(hazard)) mr_raise(L, wait_for_all(&caller, hazard));
    mr_raise(L, mr_hazard_check_begin(hazard));
    int status = lua_pcall(L, lua_gettop(L) - 2, 0, 0);
    mr_hazard_returned(hazard);
    if (status == LUA_OK) {
        lua_pushcfunction(L, mr_bind_check_run_pending);
        status = lua_pcall(L, 0, 0, 0);
    }
    mr_set_context(L);
    mr_hazard_totals inside;
    mr_hazard_check_end(hazard, &first, &inside);
    mr_copy_reports(hazard, first, mr_hazard_report_count(hazard), false, copies);
    mr_hazard_drop_from(hazard, first);
    if (status != LUA_OK) return lua_error(L);
    lua_pushvalue(L, 1);
    mr_push_reports(L);
    mr_push_totals(L, &inside);
    return 2;
}

int mr_bind_check_judge(lua_State *L) {
    mr_set_context(L);
    mr_hazard *hazard = hazard_of(L);
    mr_hazard_totals inside;
    size_t first;
    lua_settop(L, 1);
    mr_buffer *copies = mr_push_buffer(L);
    mr_raise(L, mr_hazard_judge_begin(hazard));
    lua_pushvalue(L, 1);
    int status = lua_pcall(L, 0, 0, 0);
    mr_set_context(L);
    mr_hazard_returned(hazard);
    mr_hazard_judge_end(hazard, &first, &inside);
    mr_copy_reports(hazard, first, mr_hazard_report_count(hazard), false, copies);
    mr_hazard_drop_from(hazard, first);
    if (status != LUA_OK) return lua_error(L);
    mr_bind_explore_judged(L, &inside, (const mr_hazard_report *)(const void *)copies->data,
                           copies->size / sizeof(mr_hazard_report));
    lua_pushvalue(L, 2);
    mr_push_reports(L);
    mr_push_totals(L, &inside);
    return 2;
}

MR_FUNCTION(hazard_ignore, "ignore",
            "mr.hazard.ignore([what: {tensor: string, kind: string, where: string}])",
            "Reports that match all that is given are counted and not shown: by the tensor's name, "
            "the kind, "
            "and a place (\"file.lua\" or \"file.lua:12\", either side). Without an argument: "
            "removes all rules.") {
    static const char *const known[] = {"tensor", "kind", "where", NULL};
    mr_set_context(L);
    mr_hazard *hazard = hazard_of(L);
    if (lua_isnoneornil(L, 1)) {
        mr_hazard_clear_ignores(hazard);
        return 0;
    }
    mr_option_slots options = mr_check_options(L, 1, known);
    const char *tensor = mr_option_name(L, &options, "tensor");
    const char *where = mr_option_name(L, &options, "where");
    const char *text = mr_option_name(L, &options, "kind");
    mr_hazard_kind kind = MR_HAZARD_READ_AFTER_WRITE;
    if (text && !mr_hazard_kind_find(text, &kind))
        return mr_misuse(L,
                         "hazard.ignore: no kind \"%s\"; the kinds are in docs/hazards.md, such as "
                         "\"read-after-write\"",
                         text);
    if (!tensor && !where && !text)
        return mr_misuse(L, "hazard.ignore: expected at least one of tensor=, kind= and where=");
    mr_raise(L, mr_hazard_ignore(hazard, tensor, text ? (int)kind : -1, where));
    return 0;
}

MR_FUNCTION(
    hazard_advice, "advice", "mr.hazard.advice([on: boolean]) -> reports: table[]",
    "Returns possible improvements: waits that order nothing new, records that nothing waits "
    "for, a device synchronize where an event is enough, asynchronous copies of pageable "
    "memory. The first call turns advice on; it covers what is submitted from then on "
    "while the checker is on.") {
    mr_set_context(L);
    mr_hazard *hazard = hazard_of(L);
    bool on = lua_isnoneornil(L, 1) || lua_toboolean(L, 1);
    if (!lua_isnoneornil(L, 1) && !lua_isboolean(L, 1))
        return mr_bad_argument(L, 1, "true or false");
    mr_buffer *copies = mr_push_buffer(L);
    mr_hazard_finish(hazard);
    mr_copy_reports(hazard, 0, mr_hazard_asked_count(hazard), true, copies);
    mr_hazard_set_advice(hazard, on);
    mr_push_reports(L);
    return 1;
}

/* An operation: a seq, a side of a report, "file.lua:12", or a line of any file. */
static uint64_t check_operation(lua_State *L, int arg, const mr_hazard *hazard) {
    if (lua_type(L, arg) == LUA_TTABLE) {
        lua_getfield(L, arg, "seq");
        if (!lua_isinteger(L, -1))
            mr_bad_argument(L, arg,
                            "a side of a report, \"file.lua:12\" or a number of an operation");
        return (uint64_t)lua_tointeger(L, -1);
    }
    if (lua_type(L, arg) == LUA_TNUMBER) {
        int whole;
        lua_Integer seq = lua_tointegerx(L, arg, &whole);
        if (!whole || seq <= 0) mr_bad_argument(L, arg, "the number of an operation, 1 or more");
        return (uint64_t)seq;
    }
    const char *text = lua_type(L, arg) == LUA_TSTRING ? lua_tostring(L, arg) : NULL;
    size_t length = 0;
    int line = 0;
    char file[MR_LONGEST_NAME + 1];
    bool is_entry = text && mr_source_entry(text);
    if (is_entry) length = strlen(text);
    else if (!text || !mr_hazard_place_parse(text, &length, &line) || !line ||
             length >= sizeof file)
        mr_bad_argument(L, arg, "a side of a report, \"file.lua:12\" or a number of an operation");
    snprintf(file, sizeof file, "%.*s", (int)length, text);
    uint64_t seq = mr_hazard_find_operation(hazard, file[0] ? file : NULL, line);
    if (!seq) mr_misuse(L, "hazard.why: no operation at %s among those that are remembered", text);
    return seq;
}

MR_FUNCTION(
    hazard_why, "why",
    "mr.hazard.why(first: table|string|integer, second: table|string|integer) -> text: string, "
    "ordered: boolean",
    "Returns a text to print: the chain that orders two operations, or a sentence that nothing "
    "orders them. For a free, what only comes before the reuse of its memory counts, too. Each "
    "operation is given as a side of a report, its seq, or \"file.lua:12\" "
    "(\":12\": of any file). A line "
    "stands for its last operation since the last reset, or, if it has none, for its last record, "
    "wait or synchronize. The last 4096 commands are remembered, also after the checker is "
    "switched off or a check has ended.") {
    mr_set_context(L);
    mr_hazard *hazard = hazard_of(L);
    uint64_t first = check_operation(L, 1, hazard), second = check_operation(L, 2, hazard);
    mr_buffer *text = mr_push_buffer(L);
    bool ordered = mr_hazard_why(hazard, first, second, text);
    while (text->size && text->data[text->size - 1] == '\n') text->size--; /* print ends the line */
    mr_buffer_to_text(L);
    lua_pushboolean(L, ordered);
    return 2;
}

MR_FUNCTION(
    hazard_summary, "summary", "mr.hazard.summary() -> text: string, totals: table",
    "Returns the verdict as a text: \"no hazards: every legal schedule ...\" or the number of "
    "hazards, and a line for each thing that was not followed. Returns also the numbers since the "
    "last clear(). These are claim (\"every-legal-schedule\", \"conditional\", \"none\"), "
    "operations, hazards, reports (pairs of places), follow_ups (other accesses that the same "
    "fixes order) and checked_apart (operations inside check()). The others say how much of each "
    "row in docs/hazards.md was not followed: failed, not_run, queries and so on.") {
    mr_set_context(L);
    mr_hazard *hazard = hazard_of(L);
    mr_bind_explore_differs(L, "mr.hazard.summary(), which counts one run only: ask outside of it");
    mr_buffer *text = mr_push_buffer(L);
    mr_hazard_totals t = mr_hazard_get_totals(hazard, false);
    mr_hazard_summary(hazard, false, text);
    mr_buffer_to_text(L);
    mr_push_totals(L, &t);
    return 2;
}

/* --- for the host program ------------------------------------------------------------------------ */

static bool find_check(const char *text, mr_hazard_mode *out_mode, bool *out_advice) {
    *out_mode = MR_HAZARD_WARN;
    *out_advice = strcmp(text, "advice") == 0;
    return *out_advice || mr_hazard_mode_find(text, out_mode);
}

bool mr_bind_is_check(const char *text) {
    mr_hazard_mode mode;
    bool advice;
    return find_check(text, &mode, &advice);
}

mr_status mr_bind_check(lua_State *L, const char *text, bool json) {
    state *s = state_of(L);
    mr_hazard_mode mode;
    bool advice;
    if (!find_check(text, &mode, &advice))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "no check \"%s\"; there are warn, error, collect, advice, off", text);
    s->answerer.json = json;
    if (advice) mr_hazard_set_advice(s->hazard, true);
    return mr_hazard_set_mode(s->hazard, mode);
}

void mr_bind_check_returned(lua_State *L, void (*at_close)(lua_State *L)) {
    state *s = state_of(L);
    s->machine->hooks.context = L;
    mr_hazard_returned(s->hazard);
    s->at_close = at_close;
}

int mr_bind_check_run_pending(lua_State *L) {
    state *s = state_of(L);
    s->machine->hooks.context = L;
    mr_raise(L, run_functions(s));
    return 0;
}

void mr_bind_check_stopped(lua_State *L) {
    mr_hazard_script_failed(hazard_of(L), NULL);
}

mr_check_end mr_bind_check_end(lua_State *L, bool summary) {
    state *s = state_of(L);
    s->machine->hooks.context = L;
    mr_hazard_check_abandon(s->hazard);
    mr_hazard_finish(s->hazard);
    mr_hazard_write_waiting(s->hazard);
    mr_buffer text = {0};
    /* In error mode a report is the text of an error, in either form. */
    for (size_t i = 0; s->answerer.json && mr_hazard_get_mode(s->hazard) == MR_HAZARD_ERROR &&
                       i < mr_hazard_report_count(s->hazard);
         i++) {
        const mr_hazard_report *report = mr_hazard_report_at(s->hazard, i);
        if (!mr_hazard_kind_is_advice(report->kind)) mr_hazard_write_json(report, &text);
    }
    int rank = mr_bind_rank_of_process(L);
    if (summary && s->answerer.json) {
        mr_hazard_summary_json(s->hazard, rank, &text);
    } else if (summary) {
        if (rank >= 0) mr_buffer_printf(&text, "rank %d: ", rank); /* others print theirs, too */
        mr_hazard_summary(s->hazard, true, &text);
    }
    if (text.data && s->answerer.json) mr_output_write(stderr, text.data, text.size);
    else if (text.data) mr_write_wrapped(stderr, text.data, text.size);
    mr_buffer_free(&text);
    mr_error_destroy(mr_hazard_set_mode(s->hazard, MR_HAZARD_OFF));
    if (mr_hazard_get_totals(s->hazard, true).hazards) return MR_CHECK_HAZARDS;
    return s->machine->lost ? MR_CHECK_LOST : MR_CHECK_WELL;
}

void mr_bind_check_prompt(lua_State *L) {
    mr_hazard_set_prompt(hazard_of(L), MR_SOURCE_ENTRY);
}

void mr_bind_check_script(lua_State *L, const char *path) {
    mr_hazard_set_script(hazard_of(L), path);
}

/* --- opening ------------------------------------------------------------------------------------ */

static int state_gc(lua_State *L) {
    state *s = lua_touserdata(L, 1);
    s->machine->hooks.context = L;
    if (s->at_close) s->at_close(L);
    mr_hazard_destroy(s->hazard);
    s->hazard = NULL;
    return 0;
}

static const mr_function *const functions[] = {
    &hazard_mode_function,  &hazard_reports_function, &hazard_clear_function,
    &hazard_check_function, &hazard_ignore_function,  &hazard_advice_function,
    &hazard_why_function,   &hazard_summary_function, NULL};

const mr_class mr_hazard_class = {"mr.hazard",
                                  "The hazard checker: finds accesses to the same bytes that "
                                  "nothing orders, and reports the reason and the lines to add. "
                                  "docs/hazards.md explains each kind and reason.",
                                  functions, NULL, NULL};

/* Made right after the machine, so that its finalizer comes after those of all tensors and streams. */
void mr_open_hazard(lua_State *L) {
    mr_machine *machine = mr_bind_machine(L);
    state *s = mr_push_owner(L, sizeof *s, state_gc);
    s->machine = machine;
    s->answerer = (mr_bind_answerer){.machine = machine, .colour = mr_output_has_colour(stderr)};
    mr_hazard_hooks hooks = mr_bind_hazard_hooks(&s->answerer);
    mr_raise(L, mr_hazard_create(machine, &hooks, &s->hazard));
    lua_rawsetp(L, LUA_REGISTRYINDEX, &state_box);
    lua_createtable(L, 0, 8);
    mr_table_open(L, &mr_hazard_class);
    lua_setfield(L, -2, "hazard");
}
