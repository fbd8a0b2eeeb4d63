/* mr.hazard: the checker for scripts. */
#include "bind/hazard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind/internal.h"
#include "bind/nearest.h"
#include "hazard/hazard.h"

/* --- state -------------------------------------------------------------------------------------- */

typedef struct {
    mr_machine *machine;
    mr_hazard *hazard;
    bool json, colour;
} state;

static const char state_box, printed_text; /* their addresses are registry keys */

static state *state_of(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &state_box);
    state *s = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return s;
}

static mr_hazard *hazard_of(lua_State *L) {
    return state_of(L)->hazard;
}

static bool variable(void *context, const mr_hazard_object *object, mr_site front, char *out,
                     size_t size) {
    const state *s = context;
    return mr_bind_variable(s->machine->hook_context, object, front, out, size);
}

static bool before(void *context, const mr_hazard_meeting *meeting, mr_hazard_spot *out_spot) {
    const state *s = context;
    return mr_bind_before(s->machine->hook_context, meeting, out_spot);
}

/* --- reports to standard error ------------------------------------------------------------------ */

static void write_report(void *context, const mr_hazard_report *report, mr_hazard_news news) {
    const state *s = context;
    mr_buffer text = {0};
    fflush(stdout);
    if (s->json) mr_hazard_write_json(report, &text);
    else if (news == MR_HAZARD_NEWS_REPORT) mr_hazard_write_text(report, s->colour, &text);
    else mr_hazard_write_amended(report, news, s->colour, &text);
    if (text.data) fwrite(text.data, 1, text.size, stderr);
    mr_buffer_free(&text);
}

/* --- reports as tables -------------------------------------------------------------------------- */

static void set_string(lua_State *L, const char *key, const char *value) {
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void set_integer(lua_State *L, const char *key, uint64_t value) {
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

static void set_side(lua_State *L, const char *key, const mr_hazard_side *side) {
    static const char *const access[] = {NULL, "read", "write", "read-write"};
    if (!side->op) return;
    lua_createtable(L, 0, 5);
    set_string(L, "op", side->op);
    set_string(L, "access", side->access ? access[side->access & 3] : side->op);
    set_string(L, "stream", side->stream);
    set_integer(L, "seq", side->seq);
    mr_push_site(L, side->where);
    lua_setfield(L, -2, "where");
    lua_setfield(L, -2, key);
}

static void set_fixes(lua_State *L, const mr_hazard_report *report) {
    luaL_Buffer lines;
    lua_createtable(L, report->fix_count, 0);
    for (int i = 0; i < report->fix_count; i++) {
        const mr_hazard_fix *fix = &report->fix[i];
        lua_createtable(L, 0, 4);
        set_string(L, "place", mr_hazard_place_text(fix->place));
        set_string(L, "file", fix->where.file);
        set_integer(L, "line", (uint64_t)fix->where.line);
        set_string(L, "text", fix->text);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "fixes");
    luaL_buffinit(L, &lines);
    for (int i = 0; i < report->fix_count; i++) {
        if (i) luaL_addchar(&lines, '\n');
        luaL_addstring(&lines, report->fix[i].text);
    }
    if (!report->fix_count) luaL_addstring(&lines, report->advice);
    luaL_pushresult(&lines);
    lua_setfield(L, -2, "fix");
}

static void push_report(lua_State *L, const mr_hazard_report *report) {
    mr_buffer text = {0};
    lua_createtable(L, 0, 14);
    set_string(L, "kind", mr_hazard_kind_text(report->kind));
    set_string(L, "reason", mr_hazard_reason_text(report->reason));
    if (report->tensor[0]) set_string(L, "tensor", report->tensor);
    set_string(L, "why", report->why);
    set_integer(L, "count", report->count);
    set_integer(L, "stream_pairs", report->stream_pairs);
    lua_pushboolean(L, report->amended);
    lua_setfield(L, -2, "amended");
    lua_createtable(L, 2, 0);
    lua_pushinteger(L, (lua_Integer)report->bytes_first);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, (lua_Integer)report->bytes_last);
    lua_rawseti(L, -2, 2);
    lua_setfield(L, -2, "bytes");
    set_side(L, "first", &report->first);
    set_side(L, "second", &report->second);
    set_fixes(L, report);
    mr_hazard_write_text(report, false, &text);
    lua_pushstring(L, text.data ? text.data : "");
    mr_buffer_free(&text);
    lua_setfield(L, -2, "message");
}

static void push_reports(lua_State *L, const mr_hazard *hazard, size_t first, bool advice) {
    lua_newtable(L);
    int n = 0;
    for (size_t i = first; i < mr_hazard_report_count(hazard); i++) {
        const mr_hazard_report *report = mr_hazard_report_at(hazard, i);
        if (mr_hazard_kind_is_advice(report->kind) != advice || report->withdrawn) continue;
        push_report(L, report);
        lua_rawseti(L, -2, ++n);
    }
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
    "Switching on starts from a state in which all earlier work counts as ordered; inside "
    "check(fn) "
    "the new mode holds from its end on. Returns the mode of before.") {
    mr_enter(L);
    mr_hazard *hazard = hazard_of(L);
    const char *before = mr_hazard_mode_text(mr_hazard_get_mode(hazard));
    if (!lua_isnoneornil(L, 1)) mr_raise(L, mr_hazard_set_mode(hazard, check_mode(L, 1)));
    lua_pushstring(L, before);
    return 1;
}

MR_FUNCTION(
    hazard_reports, "reports", "mr.hazard.reports() -> reports: table[]",
    "What has been found so far, one table for each pair of places: kind, reason, tensor, bytes, "
    "first, second (op, access, stream, where, seq), fix (the lines to add, as text), fixes (the "
    "same as a list, with their places), count, stream_pairs (between how many pairs of streams), "
    "amended, why, message.") {
    mr_enter(L);
    push_reports(L, hazard_of(L), 0, false);
    return 1;
}

MR_FUNCTION(hazard_clear, "clear", "mr.hazard.clear()",
            "Forgets the reports and begins a new summary; the order of the work remains. The "
            "verdict and the exit status of --check still count what was forgotten.") {
    mr_enter(L);
    if (mr_hazard_checking(hazard_of(L)))
        return mr_misuse(L, "hazard.clear: not inside hazard.check");
    mr_hazard_clear(hazard_of(L));
    return 0;
}

MR_FUNCTION(
    hazard_check, "check", "mr.hazard.check(fn: function, ...) -> reports: table[]",
    "Runs `fn(...)` from a state in which all earlier work is ordered and returns the hazards in "
    "it. Works in every mode and puts it back; an error in `fn` is raised after that. Not inside "
    "another check.") {
    mr_enter(L);
    mr_hazard *hazard = hazard_of(L);
    size_t first;
    luaL_checktype(L, 1, LUA_TFUNCTION);
    mr_raise(L, mr_hazard_check_begin(hazard));
    int status = lua_pcall(L, lua_gettop(L) - 1, 0, 0);
    mr_lend_stack(L);
    mr_hazard_check_end(hazard, &first);
    if (status != LUA_OK) {
        mr_hazard_drop_from(hazard, first);
        return lua_error(L);
    }
    push_reports(L, hazard, first, false);
    mr_hazard_drop_from(hazard, first);
    return 1;
}

MR_FUNCTION(hazard_ignore, "ignore",
            "mr.hazard.ignore([what: {tensor: string, kind: string, where: string}])",
            "Reports that match all that is given are counted and not shown: by the tensor's name, "
            "the kind, "
            "and a place (\"file.lua\" or \"file.lua:12\", either side). Without an argument: no "
            "rule any more.") {
    static const char *const known[] = {"tensor", "kind", "where", NULL};
    mr_enter(L);
    mr_hazard *hazard = hazard_of(L);
    if (lua_isnoneornil(L, 1)) {
        mr_hazard_clear_ignores(hazard);
        return 0;
    }
    mr_options_check(L, 1, known);
    const char *tensor = mr_option_name(L, 1, "tensor"), *where = mr_option_name(L, 1, "where");
    const char *text = mr_option_name(L, 1, "kind");
    mr_hazard_kind kind = MR_HAZARD_READ_AFTER_WRITE;
    if (text && !mr_hazard_kind_find(text, &kind))
        return mr_misuse(L,
                         "hazard.ignore: no kind \"%s\"; the kinds are in docs/hazards.md, such as "
                         "\"read-after-write\"",
                         text);
    if (!tensor && !where && !text)
        return mr_misuse(L, "hazard.ignore: nothing to match by; give tensor=, kind= or where=");
    mr_raise(L, mr_hazard_ignore(hazard, tensor, text ? (int)kind : -1, where));
    return 0;
}

MR_FUNCTION(hazard_advice, "advice", "mr.hazard.advice([on: boolean]) -> reports: table[]",
            "What is not wrong and could be better: waits that add nothing, records that nobody "
            "waits for, a "
            "device synchronise where an event would do, asynchronous copies of pageable memory. "
            "The first call "
            "asks for it; it is given for what is done from then on, while the checker is on.") {
    mr_enter(L);
    mr_hazard *hazard = hazard_of(L);
    if (!lua_isnoneornil(L, 1) && !lua_isboolean(L, 1))
        return mr_bad_argument(L, 1, "true or false");
    mr_hazard_finish(hazard);
    push_reports(L, hazard, 0, true);
    mr_hazard_set_advice(hazard, lua_isnoneornil(L, 1) || lua_toboolean(L, 1));
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
    char file[256];
    if (!text || !mr_hazard_place_parse(text, &length, &line) || !line || length >= sizeof file)
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
    "Prints and returns the chain that orders two operations, or that there is none. Each is a "
    "side of a report, "
    "\"file.lua:12\" (\":12\": of any file) for the last operation of that line (if it has none, "
    "the last record, wait or synchronise), or the operation's seq. The last 4096 actions are "
    "remembered, also after the checker is switched off or a check has ended.") {
    mr_enter(L);
    mr_hazard *hazard = hazard_of(L);
    uint64_t first = check_operation(L, 1, hazard), second = check_operation(L, 2, hazard);
    mr_buffer text = {0};
    bool ordered = mr_hazard_why(hazard, first, second, &text);
    lua_pushstring(L, text.data ? text.data : "");
    mr_buffer_free(&text);
    lua_getglobal(L, "print");
    if (lua_isfunction(L, -1)) {
        size_t length; /* print ends the line itself */
        const char *whole = lua_tolstring(L, -2, &length);
        lua_pushlstring(L, whole, length && whole[length - 1] == '\n' ? length - 1 : length);
        lua_call(L, 1, 0);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &printed_text);
    } else {
        lua_pop(L, 1);
    }
    lua_pushboolean(L, ordered);
    return 2;
}

MR_FUNCTION(hazard_summary, "summary", "mr.hazard.summary() -> text: string, totals: table",
            "\"no hazards: every legal schedule ...\" or how many there were, and what was "
            "ignored; and the numbers, since the last clear(): operations, hazards, reports "
            "(pairs of places), follow_ups (accesses that the same cures order), unspecified (uses "
            "of pageable memory under asynchronous copies), ignored, dropped, forgotten, "
            "checked_apart (operations inside check()), cleared (hazards that clear() forgot).") {
    mr_enter(L);
    mr_hazard *hazard = hazard_of(L);
    mr_hazard_totals t = mr_hazard_get_totals(hazard, false);
    mr_buffer text = {0};
    mr_hazard_summary(hazard, false, &text);
    lua_pushstring(L, text.data ? text.data : "");
    mr_buffer_free(&text);
    lua_createtable(L, 0, 10);
    set_integer(L, "operations", t.operations);
    set_integer(L, "hazards", t.hazards);
    set_integer(L, "reports", t.reports);
    set_integer(L, "follow_ups", t.follow_ups);
    set_integer(L, "unspecified", t.unspecified);
    set_integer(L, "ignored", t.ignored);
    set_integer(L, "dropped", t.dropped);
    set_integer(L, "forgotten", t.forgotten);
    set_integer(L, "checked_apart", t.checked_apart);
    set_integer(L, "cleared", t.cleared);
    return 2;
}

/* --- for the host program ------------------------------------------------------------------------ */

mr_status mr_bind_check(lua_State *L, const char *text, bool json) {
    state *s = state_of(L);
    mr_hazard_mode mode = MR_HAZARD_WARN;
    bool advice = strcmp(text, "advice") == 0;
    if (!advice && !mr_hazard_mode_find(text, &mode))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "no check \"%s\"; there are warn, error, collect, advice, off", text);
    s->json = json;
    if (advice) mr_hazard_set_advice(s->hazard, true);
    return mr_hazard_set_mode(s->hazard, mode);
}

uint64_t mr_bind_check_end(lua_State *L, bool summary) {
    state *s = state_of(L);
    s->machine->hook_context = L;
    mr_hazard_check_abandon(s->hazard);
    mr_hazard_finish(s->hazard);
    mr_buffer text = {0};
    /* In error mode a report is an error's text, whatever the form asked for. */
    for (size_t i = 0; s->json && mr_hazard_get_mode(s->hazard) == MR_HAZARD_ERROR &&
                       i < mr_hazard_report_count(s->hazard);
         i++) {
        const mr_hazard_report *report = mr_hazard_report_at(s->hazard, i);
        if (!mr_hazard_kind_is_advice(report->kind)) mr_hazard_write_json(report, &text);
    }
    if (summary) {
        if (s->json) mr_hazard_summary_json(s->hazard, &text);
        else mr_hazard_summary(s->hazard, true, &text);
    }
    if (text.data) fwrite(text.data, 1, text.size, stderr);
    mr_buffer_free(&text);
    mr_error_destroy(mr_hazard_set_mode(s->hazard, MR_HAZARD_OFF));
    return mr_hazard_get_totals(s->hazard, true).hazards;
}

bool mr_bind_was_printed(lua_State *L, int index) {
    if (index) index = lua_absindex(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &printed_text);
    bool same = index && lua_isstring(L, -1) && lua_rawequal(L, index, -1);
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &printed_text);
    return same;
}

void mr_bind_check_prompt(lua_State *L, const char *file) {
    mr_hazard_set_prompt(hazard_of(L), file);
}

/* --- opening ------------------------------------------------------------------------------------ */

static int state_gc(lua_State *L) {
    state *s = lua_touserdata(L, 1);
    s->machine->hook_context = L;
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
                                  "nothing orders, says why, and what to add. "
                                  "docs/hazards.md explains each kind and reason.",
                                  functions, NULL};

static bool no_colour(void) {
    const char *text = getenv("NO_COLOR");
    return text && *text;
}

/* Made right after the machine, so that its finalizer comes after those of all tensors and streams. */
void mr_open_hazard(lua_State *L, mr_machine *machine) {
    state *s = lua_newuserdatauv(L, sizeof *s, 0);
    *s = (state){.machine = machine, .colour = isatty(STDERR_FILENO) && !no_colour()};
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, state_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    mr_hazard_hooks hooks = {.context = s,
                             .write = write_report,
                             .variable = variable,
                             .before = before,
                             .behind = mr_bind_behind,
                             .new_local = mr_bind_new_local};
    mr_raise(L, mr_hazard_create(machine, &hooks, &s->hazard));
    lua_rawsetp(L, LUA_REGISTRYINDEX, &state_box);
    lua_createtable(L, 0, 8);
    mr_table_open(L, machine, &mr_hazard_class);
    lua_setfield(L, -2, "hazard");
}
