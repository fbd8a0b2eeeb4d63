/* The userdata of a trace: its spans as tables, what it tells, printing and saving it. Traces are made in tracer.c. */
#include "bind/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/output.h"
#include "base/text.h"
#include "bind/help.h"
#include "bind/open.h"
#include "bind/source.h"
#include "trace/analysis.h"
#include "trace/writers.h"

/* --- state, check, constructor -------------------------------------------------------------------- */

const mr_kind mr_kind_trace = {.text = "a trace"};

static const char span_lists, text_of_list; /* their addresses are registry keys */

static const mr_trace *trace_at(lua_State *L, int arg) {
    const mr_trace *trace = *(const mr_trace **)mr_check(L, arg, &mr_kind_trace);
    if (!trace) mr_misuse(L, "the trace was already collected");
    return trace;
}

const mr_trace **mr_new_trace(lua_State *L) {
    return mr_new(L, &mr_kind_trace, sizeof(const mr_trace *));
}

/* --- values --------------------------------------------------------------------------------------- */

static lua_Number ms(uint64_t ns) {
    return (lua_Number)ns * 1e-6;
}

static void set_ms(lua_State *L, const char *key, uint64_t ns) {
    lua_pushnumber(L, ms(ns));
    lua_setfield(L, -2, key);
}

static void set_text(lua_State *L, const char *key, const char *text) {
    lua_pushstring(L, text); /* NULL pushes nil */
    lua_setfield(L, -2, key);
}

static void set_index(lua_State *L, const char *key, uint32_t index) {
    if (index == MR_TRACE_NONE) return;
    lua_pushinteger(L, (lua_Integer)index + 1);
    lua_setfield(L, -2, key);
}

static void set_where(lua_State *L, mr_site where) {
    mr_push_site(L, where);
    lua_setfield(L, -2, "where");
}

static const char *stream_name(const mr_trace *trace, uint32_t stream) {
    return stream == MR_TRACE_NONE ? "host" : mr_trace_stream_at(trace, stream)->name;
}

static int span_text(lua_State *L) {
    lua_getfield(L, 1, "name");
    lua_getfield(L, 1, "stream");
    lua_getfield(L, 1, "where");
    lua_getfield(L, 1, "start");
    lua_getfield(L, 1, "finish");
    mr_buffer *text = mr_push_buffer(L);
    mr_text_put(text, luaL_optstring(L, 2, "?"));
    mr_buffer_puts(text, " on ");
    mr_text_put(text, luaL_optstring(L, 3, "?"));
    if (!lua_isnil(L, 4)) {
        mr_buffer_puts(text, " at ");
        mr_text_put(text, luaL_checkstring(L, 4));
    }
    if (lua_isnumber(L, 5))
        mr_buffer_printf(text, ", %.3f to %.3f ms", lua_tonumber(L, 5), luaL_optnumber(L, 6, 0));
    mr_buffer_to_text(L);
    return 1;
}

/* The metatable of all spans. */
static void set_span_class(lua_State *L) {
    if (luaL_newmetatable(L, "millrace.span")) {
        mr_push_module(L);
        lua_pushcclosure(L, span_text, 1);
        lua_setfield(L, -2, "__tostring");
    }
    lua_setmetatable(L, -2);
}

/* What the host does by itself, also if a stream is concerned. */
static bool is_host(const mr_span *span) {
    return span->called && !(mr_command_kinds[span->kind].traits & MR_TRAIT_SUBMITTED);
}

static void push_span(lua_State *L, const mr_trace *trace, uint32_t i) {
    const mr_span *span = &mr_trace_spans(trace)[i];
    lua_createtable(L, 0, 20);
    set_index(L, "index", i);
    set_text(L, "name", span->name);
    set_text(L, "kind", mr_command_kinds[span->kind].name);
    set_text(L, "stream", stream_name(trace, span->stream));
    set_text(L, "event", span->object);
    set_where(L, span->where);
    lua_pushinteger(L, (lua_Integer)span->seq);
    lua_setfield(L, -2, "seq");
    if (is_host(span)) set_text(L, "engine", "host");
    else if (span->engine != MR_ENGINE_NONE) set_text(L, "engine", mr_engine_text(span->engine));
    if (span->ran) {
        set_ms(L, "ready", span->ready);
        set_ms(L, "start", span->begin);
        set_ms(L, "finish", span->end);
    } else if (is_host(span)) {
        set_ms(L, "start", span->call);
        set_ms(L, "finish", span->returned);
    }
    if (span->called) {
        set_ms(L, "called", span->call);
        set_ms(L, "returned", span->returned);
    }
    if (span->host_waited) set_ms(L, "waited", span->waited);
    if (span->bytes) {
        lua_pushinteger(L, (lua_Integer)span->bytes);
        lua_setfield(L, -2, "bytes");
    }
    if (span->blocks) {
        lua_pushinteger(L, (lua_Integer)span->blocks);
        lua_setfield(L, -2, "blocks");
    }
    if (span->held_by != MR_CAUSE_NONE) set_text(L, "held_by", mr_cause_text(span->held_by));
    set_index(L, "holder", span->holder);
    set_index(L, "record", span->record);
    set_span_class(L);
}

/* Pushes the list of spans of the trace at `index`, which is made once. */
static void push_spans(lua_State *L, int index) {
    const mr_trace *trace = trace_at(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &span_lists);
    lua_pushvalue(L, index);
    if (lua_rawget(L, -2) == LUA_TTABLE) {
        lua_remove(L, -2);
        return;
    }
    lua_pop(L, 1);
    size_t count = mr_trace_count(trace);
    mr_machine *machine = mr_set_context(L);
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        mr_check_stop(L, machine, (int64_t)i, "making the spans of a trace");
        push_span(L, trace, (uint32_t)i);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_pushvalue(L, index);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
    lua_remove(L, -2);
}

/* Makes tostring of the table at the top give the text of the buffer under it, and removes that. */
static int list_text(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &text_of_list);
    lua_pushvalue(L, 1);
    lua_rawget(L, -2);
    return 1;
}

static void give_text(lua_State *L) {
    lua_insert(L, -2);
    mr_buffer_to_text(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &text_of_list); /* list, text, texts */
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    lua_rawset(L, -3);
    lua_pop(L, 2);
    if (luaL_newmetatable(L, "millrace.trace.list")) {
        lua_pushcfunction(L, list_text);
        lua_setfield(L, -2, "__tostring");
    }
    lua_setmetatable(L, -2);
}

/* --- arguments ------------------------------------------------------------------------------------ */

static uint32_t stream_by_name(lua_State *L, const mr_trace *trace, const char *name) {
    mr_buffer *known = mr_push_buffer(L);
    for (uint32_t i = 0; i < mr_trace_stream_count(trace); i++) {
        const mr_trace_stream *stream = mr_trace_stream_at(trace, i);
        if (strcmp(stream->name, name) == 0) {
            lua_pop(L, 1);
            return i;
        }
        if (i) mr_buffer_puts(known, ", ");
        mr_text_put(known, stream->name);
    }
    mr_buffer_to_text(L);
    mr_misuse(L, "the trace has no stream \"%s\"; it has %s", name, lua_tostring(L, -1));
    return MR_TRACE_NONE;
}

/* A stream, or its name in the trace. NONE: it did nothing in the trace. */
static uint32_t check_stream(lua_State *L, int arg, const mr_trace *trace) {
    if (lua_type(L, arg) == LUA_TSTRING) return stream_by_name(L, trace, lua_tostring(L, arg));
    mr_stream **box = mr_test(L, arg, &mr_kind_stream);
    if (!box || !*box) mr_bad_argument(L, arg, "a stream, or the name of one in the trace");
    for (uint32_t i = 0; i < mr_trace_stream_count(trace); i++)
        if (mr_trace_stream_at(trace, i)->id == (*box)->id) return i;
    return MR_TRACE_NONE;
}

static bool is_work(const mr_span *span) {
    return span->ran && span->engine != MR_ENGINE_NONE;
}

/* The first operation of that name, from span `from` on. */
static uint32_t span_by_name(const mr_trace *trace, const char *name, size_t from) {
    const mr_span *spans = mr_trace_spans(trace);
    for (size_t i = from; i < mr_trace_count(trace); i++)
        if (is_work(&spans[i]) && strcmp(spans[i].name, name) == 0) return (uint32_t)i;
    return MR_TRACE_NONE;
}

/* A span, its index, or the name of an operation. `other`: not this one, where a name leaves the choice. */
static uint32_t check_span(lua_State *L, int arg, const mr_trace *trace, uint32_t other) {
    size_t count = mr_trace_count(trace);
    if (lua_type(L, arg) == LUA_TSTRING) {
        const char *name = lua_tostring(L, arg);
        uint32_t found = span_by_name(trace, name, 0);
        if (found != MR_TRACE_NONE && found == other) {
            uint32_t next = span_by_name(trace, name, found + 1);
            if (next != MR_TRACE_NONE) found = next;
        }
        if (found == MR_TRACE_NONE)
            mr_misuse(L,
                      "the trace has no operation \"%s\" that ran on a device; tr.spans lists all",
                      name);
        return found;
    }
    bool is_table = lua_istable(L, arg);
    if (is_table) lua_getfield(L, arg, "index");
    else lua_pushvalue(L, arg);
    int is_integer;
    lua_Integer index = lua_tointegerx(L, -1, &is_integer);
    lua_pop(L, 1);
    if (!is_integer)
        mr_bad_argument(L, arg, "a span of tr.spans, its index, or an operation's name");
    if (index < 1 || (uint64_t)index > count)
        mr_misuse(L, "the trace has no span %lld; it has %d", (long long)index, (int)count);
    return (uint32_t)(index - 1);
}

/* --- showing -------------------------------------------------------------------------------------- */

static bool is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && *value;
}

static mr_trace_terminal terminal_of(lua_State *L, const mr_option_slots *options) {
    bool at_terminal = isatty(STDOUT_FILENO);
    mr_trace_terminal terminal = {
        .width = (int)mr_option_integer(L, options, "width", mr_help_width()),
        .ascii = mr_option_boolean(L, options, "ascii", at_terminal && mr_output_is_ascii()),
        .color = mr_option_boolean(L, options, "color", at_terminal && !is_set("NO_COLOR"))};
    if (terminal.width < 60) terminal.width = 60;
    if (terminal.width > 1000) terminal.width = 1000;
    return terminal;
}

static const mr_trace *option_trace(lua_State *L, const mr_option_slots *options) {
    int at = mr_option_at(L, options, "before");
    return at ? trace_at(L, at) : NULL;
}

/* What a writer writes to a file, as a text. */
static mr_status text_of(const mr_trace *trace, const mr_trace *before,
                         const mr_trace_terminal *terminal, char **out_text, size_t *out_size) {
    FILE *file = open_memstream(out_text, out_size);
    if (!file) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to print a trace");
    mr_status status = before ? mr_trace_print_both(before, trace, terminal, file)
                              : mr_trace_print(trace, terminal, file);
    bool failed = ferror(file) != 0;
    if ((fclose(file) != 0 || failed) && !status)
        status = mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to print a trace");
    return status;
}

MR_FUNCTION(
    trace_print, "print",
    "tr:print([options: {width: integer, ascii: boolean, color: boolean, before: trace}])",
    "Prints the timeline: a lane for the host and for each stream, a bar for each operation, "
    "and what waited for what. `width` is in columns, at least 60; the terminal decides "
    "where no option is given. `before`: another trace, which is printed above it on the same "
    "axis.") {
    static const char *const known[] = {"width", "ascii", "color", "before", NULL};
    mr_set_context(L);
    const mr_trace *trace = trace_at(L, 1);
    mr_option_slots options = mr_check_options(L, 2, known);
    mr_trace_terminal terminal = terminal_of(L, &options);
    char *text = NULL;
    size_t size = 0;
    mr_status status = text_of(trace, option_trace(L, &options), &terminal, &text, &size);
    if (!status) mr_output_write(stdout, text, size);
    free(text);
    mr_output_flush(stdout);
    mr_raise(L, status);
    return 0;
}

const char *mr_bind_trace_source(void *context, const char *file, size_t *out_size) {
    mr_script *script = mr_source_read(context, file);
    if (!script) return NULL;
    const char *text = mr_script_text(script);
    *out_size = strlen(text);
    mr_script_free(script); /* the module keeps those that were read last */
    return text;
}

MR_FUNCTION(trace_save, "save", "tr:save(path: string [, options: {before: trace}])",
            "Writes the trace to a file. The ending of its name says how: .html (a page to look "
            "at), .json (for "
            "Chrome and Perfetto), .svg, .dot (the order as a graph), .csv and .spans.json (the "
            "spans). `before`: another trace to compare with (.html, .svg). The file appears "
            "complete or not at all.") {
    static const char *const known[] = {"before", NULL};
    mr_set_context(L);
    const mr_trace *trace = trace_at(L, 1);
    const char *path = luaL_checkstring(L, 2);
    mr_option_slots options = mr_check_options(L, 3, known);
    mr_raise(L, mr_trace_save(trace, option_trace(L, &options), path, mr_bind_trace_source, L));
    return 0;
}

/* --- what it tells -------------------------------------------------------------------------------- */

MR_FUNCTION(trace_overlap, "overlap",
            "tr:overlap(a: stream|string, b: stream|string) -> ms: number",
            "Returns for how long both streams carried out kernels or copies at the same time. A "
            "stream or its name; with the same one twice, how long it was busy.") {
    const mr_trace *trace = trace_at(L, 1);
    uint32_t a = check_stream(L, 2, trace), b = check_stream(L, 3, trace);
    uint64_t time = 0;
    if (a != MR_TRACE_NONE && b != MR_TRACE_NONE) mr_raise(L, mr_trace_overlap(trace, a, b, &time));
    lua_pushnumber(L, ms(time));
    return 1;
}

static int drop_gaps(lua_State *L) {
    mr_trace_gaps *gaps = lua_touserdata(L, 1);
    mr_vec_free(gaps);
    return 0;
}

static const char *site_text(mr_site where, char *out, size_t size) {
    if (where.file) mr_text_format(out, size, "%s:%d", where.file, where.line);
    else mr_text_format(out, size, "-");
    return out;
}

static void push_holder(lua_State *L, uint32_t holder, int spans) {
    if (holder == MR_TRACE_NONE) lua_pushnil(L);
    else lua_rawgeti(L, spans, (lua_Integer)holder + 1);
}

MR_FUNCTION(trace_idle, "idle", "tr:idle(s: stream|string) -> ms: number, gaps: table[]",
            "Returns how long the stream carried out nothing before its last operation, and the "
            "gaps: each {start=, finish=, ms=, next=, cause=, holder=}. `next` is the span that "
            "ended it, `cause` what that waited for, `holder` the span that it was.") {
    const mr_trace *trace = trace_at(L, 1);
    uint32_t stream = check_stream(L, 2, trace);
    lua_settop(L, 2);
    push_spans(L, 1);
    mr_trace_gaps *gaps = mr_push_owner(L, sizeof *gaps, drop_gaps);
    uint64_t sum = 0;
    if (stream != MR_TRACE_NONE) mr_raise(L, mr_trace_idle(trace, stream, gaps));
    for (size_t i = 0; i < gaps->count; i++) sum += gaps->items[i].end - gaps->items[i].begin;
    lua_pushnumber(L, ms(sum));
    mr_buffer *text = mr_push_buffer(L);
    lua_createtable(L, (int)gaps->count, 0);
    for (size_t i = 0; i < gaps->count; i++) {
        const mr_trace_gap *gap = &gaps->items[i];
        const mr_span *next = &mr_trace_spans(trace)[gap->next];
        char site[200];
        lua_createtable(L, 0, 6);
        set_ms(L, "start", gap->begin);
        set_ms(L, "finish", gap->end);
        set_ms(L, "ms", gap->end - gap->begin);
        push_holder(L, gap->next, 3);
        lua_setfield(L, -2, "next");
        set_text(L, "cause", mr_cause_text(gap->cause));
        push_holder(L, gap->holder, 3);
        lua_setfield(L, -2, "holder");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
        mr_buffer_printf(text, "%s%10.3f ms  idle until %.3f ms: ", i ? "\n" : "",
                         ms(gap->end - gap->begin), ms(gap->end));
        mr_text_put(text, next->name);
        mr_buffer_printf(text, " at ");
        mr_text_put(text, site_text(next->where, site, sizeof site));
        mr_buffer_printf(text, " was held by: %s", mr_cause_text(gap->cause));
        if (gap->holder == MR_TRACE_NONE) continue;
        mr_buffer_printf(text, ", ");
        mr_text_put(text, mr_trace_spans(trace)[gap->holder].name);
        mr_buffer_printf(text, " at ");
        mr_text_put(text, site_text(mr_trace_spans(trace)[gap->holder].where, site, sizeof site));
    }
    give_text(L);
    return 2;
}

static int drop_path(lua_State *L) {
    mr_trace_path *path = lua_touserdata(L, 1);
    mr_vec_free(path);
    return 0;
}

static void say_link(mr_buffer *text, const mr_trace *trace, const mr_trace_link *link) {
    const mr_span *span = &mr_trace_spans(trace)[link->span];
    char site[200];
    mr_buffer_printf(text, "%10.3f ms  %8.3f  ", ms(link->begin), ms(link->end - link->begin));
    mr_text_put(text, link->is_host ? "host" : stream_name(trace, span->stream));
    mr_buffer_puts(text, ": ");
    mr_text_put(text, span->name);
    mr_buffer_puts(text, link->is_host ? " called at " : " at ");
    mr_text_put(text, site_text(span->where, site, sizeof site));
    if (link->cause != MR_CAUSE_NONE && link->cause != MR_CAUSE_HOST)
        mr_buffer_printf(text, " (%s)", mr_cause_text(link->cause));
}

/* Calls in a row are one line of the text. */
static void say_path(mr_buffer *text, const mr_trace *trace, const mr_trace_path *path) {
    for (size_t i = 0; i < path->count; i++) {
        const mr_trace_link *link = &path->items[i];
        size_t last = i;
        while (link->is_host && link->cause == MR_CAUSE_HOST && last + 1 < path->count &&
               path->items[last + 1].is_host && path->items[last + 1].cause == MR_CAUSE_HOST)
            last++;
        if (i) mr_buffer_puts(text, "\n");
        if (last == i) {
            say_link(text, trace, link);
            continue;
        }
        mr_buffer_printf(text, "%10.3f ms  %8.3f  host: %zu calls", ms(link->begin),
                         ms(path->items[last].end - link->begin), last - i + 1);
        i = last;
    }
}

MR_FUNCTION(trace_critical_path, "critical_path", "tr:critical_path() -> links: table[]",
            "Returns what decided the end of the trace, the first first: spans on the device and "
            "calls of the host, of which none could have been shorter without the whole being "
            "shorter. Each is {span=, host=, start=, finish=, ms=, cause=, name=, where=}; `host` "
            "is true for the time of a call, and `cause` says why it began no sooner.") {
    const mr_trace *trace = trace_at(L, 1);
    lua_settop(L, 1);
    push_spans(L, 1);
    mr_trace_path *path = mr_push_owner(L, sizeof *path, drop_path);
    mr_raise(L, mr_trace_critical_path(trace, path));
    mr_buffer *text = mr_push_buffer(L);
    say_path(text, trace, path);
    lua_createtable(L, (int)path->count, 0);
    for (size_t i = 0; i < path->count; i++) {
        const mr_trace_link *link = &path->items[i];
        const mr_span *span = &mr_trace_spans(trace)[link->span];
        lua_createtable(L, 0, 8);
        push_holder(L, link->span, 2);
        lua_setfield(L, -2, "span");
        lua_pushboolean(L, link->is_host);
        lua_setfield(L, -2, "host");
        set_ms(L, "start", link->begin);
        set_ms(L, "finish", link->end);
        set_ms(L, "ms", link->end - link->begin);
        set_text(L, "cause", mr_cause_text(link->cause));
        set_text(L, "name", span->name);
        set_where(L, span->where);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    give_text(L);
    return 1;
}

MR_FUNCTION(
    trace_why, "why", "tr:why(a: table|integer|string, b: table|integer|string) -> why: table",
    "Says why two operations did not run at the same time: spans of tr.spans, their indices, "
    "or names of operations (the first of that name). Returns {overlapped=, ms=, cause=, text=, "
    "where=, holder=, "
    "saves_ms=}: `text` is the answer in words, `where` the line that is the cause, "
    "`saves_ms` how much earlier the later one could have begun without that.") {
    const mr_trace *trace = trace_at(L, 1);
    uint32_t a = check_span(L, 2, trace, MR_TRACE_NONE), b = check_span(L, 3, trace, a);
    lua_settop(L, 3);
    mr_trace_why why;
    mr_raise(L, mr_trace_explain(trace, a, b, &why));
    push_spans(L, 1);
    mr_buffer *text = mr_push_buffer(L);
    mr_text_put(text, why.text);
    lua_createtable(L, 0, 7);
    lua_pushboolean(L, why.overlapped);
    lua_setfield(L, -2, "overlapped");
    set_ms(L, "ms", why.overlap);
    set_text(L, "text", why.text);
    if (!why.overlapped) {
        set_text(L, "cause", mr_cause_text(why.cause));
        set_ms(L, "saves_ms", why.saved);
    }
    if (why.holder != MR_TRACE_NONE) {
        set_where(L, mr_trace_spans(trace)[why.holder].where);
        push_holder(L, why.holder, 4);
        lua_setfield(L, -2, "holder");
    }
    give_text(L);
    return 1;
}

static int drop_rows(lua_State *L) {
    mr_trace_rows *rows = lua_touserdata(L, 1);
    mr_vec_free(rows);
    return 0;
}

static const char *change_text(uint64_t before, uint64_t after, char *out, size_t size) {
    if (!before || !after) snprintf(out, size, "%s", after ? "new" : "gone");
    else snprintf(out, size, "x %.2f", (double)after / (double)before);
    return out;
}

static bool has_moved(const mr_trace_row *row) {
    return row->where[0].line != row->where[1].line || row->where[0].file != row->where[1].file;
}

static void say_rows(mr_buffer *text, const mr_trace_rows *rows, uint64_t before, uint64_t after) {
    char site[200], change[32];
    mr_buffer_printf(text, "%12s %12s %8s  %s\n%12.3f %12.3f %8s  all\n", "before ms", "after ms",
                     "", "", ms(before), ms(after),
                     change_text(before, after, change, sizeof change));
    for (size_t i = 0; i < rows->count; i++) {
        const mr_trace_row *row = &rows->items[i];
        mr_buffer_printf(text, "%12.3f %12.3f %8s  ", ms(row->time[0]), ms(row->time[1]),
                         change_text(row->time[0], row->time[1], change, sizeof change));
        mr_text_put(text, row->name);
        mr_buffer_puts(text, " at ");
        mr_text_put(text, site_text(row->where[0], site, sizeof site));
        if (has_moved(row)) mr_buffer_printf(text, ", later line %d", row->where[1].line);
        if (row->count[0] != row->count[1])
            mr_buffer_printf(text, " (%u before, %u after)", row->count[0], row->count[1]);
        else if (row->count[0] > 1) mr_buffer_printf(text, " (%u times)", row->count[0]);
        if (i + 1 < rows->count) mr_buffer_puts(text, "\n");
    }
}

MR_FUNCTION(
    trace_compare, "compare", "tr:compare(later: trace) -> rows: table",
    "Compares with another trace of the same script: another device model, or a GPU beside the "
    "virtual one, or an edited script. Returns a list with a row for each line and operation, "
    "{name=, where=, after_where=, "
    "before_count=, after_count=, before_ms=, after_ms=, before_start=, after_start=}, in "
    "the order of the script, and in it `before_ms` and `after_ms` of the whole. print shows it "
    "as a table; later:print{before=tr} shows the timelines.") {
    const mr_trace *before = trace_at(L, 1), *after = trace_at(L, 2);
    uint64_t whole[2] = {mr_trace_facts_of(before)->duration, mr_trace_facts_of(after)->duration};
    lua_settop(L, 2);
    mr_trace_rows *rows = mr_push_owner(L, sizeof *rows, drop_rows);
    mr_raise(L, mr_trace_compare(before, after, rows));
    mr_buffer *text = mr_push_buffer(L);
    say_rows(text, rows, whole[0], whole[1]);
    lua_createtable(L, (int)rows->count, 2);
    set_ms(L, "before_ms", whole[0]);
    set_ms(L, "after_ms", whole[1]);
    for (size_t i = 0; i < rows->count; i++) {
        const mr_trace_row *row = &rows->items[i];
        lua_createtable(L, 0, 8);
        set_text(L, "name", row->name);
        set_where(L, row->where[0]);
        if (has_moved(row)) {
            mr_push_site(L, row->where[1]);
            lua_setfield(L, -2, "after_where");
        }
        lua_pushinteger(L, row->count[0]);
        lua_setfield(L, -2, "before_count");
        lua_pushinteger(L, row->count[1]);
        lua_setfield(L, -2, "after_count");
        set_ms(L, "before_ms", row->time[0]);
        set_ms(L, "after_ms", row->time[1]);
        if (row->count[0]) set_ms(L, "before_start", row->begin[0]);
        if (row->count[1]) set_ms(L, "after_start", row->begin[1]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    give_text(L);
    return 1;
}

MR_FUNCTION(trace_len, "__len", "#tr -> count: integer", "The number of spans.") {
    lua_pushinteger(L, (lua_Integer)mr_trace_count(trace_at(L, 1)));
    return 1;
}

MR_FUNCTION(trace_tostring, "__tostring", "", "\"trace of 12 spans on 2 streams, 3.214 ms\".") {
    const mr_trace *trace = trace_at(L, 1);
    char text[120];
    int count = (int)mr_trace_count(trace), streams = (int)mr_trace_stream_count(trace);
    snprintf(text, sizeof text, "trace of %d span%s on %d stream%s, %.3f ms", count,
             count == 1 ? "" : "s", streams, streams == 1 ? "" : "s",
             ms(mr_trace_facts_of(trace)->duration));
    lua_pushstring(L, text);
    return 1;
}

MR_FUNCTION(trace_gc, "__gc", "", "Drops the trace.") {
    const mr_trace **box = mr_check(L, 1, &mr_kind_trace);
    mr_trace_release(*box);
    *box = NULL;
    return 0;
}

/* --- properties ----------------------------------------------------------------------------------- */

static int get_spans(lua_State *L) {
    lua_settop(L, 1);
    push_spans(L, 1);
    return 1;
}

static int get_ms(lua_State *L) {
    lua_pushnumber(L, ms(mr_trace_facts_of(trace_at(L, 1))->duration));
    return 1;
}

static int get_streams(lua_State *L) {
    const mr_trace *trace = trace_at(L, 1);
    size_t count = mr_trace_stream_count(trace);
    lua_createtable(L, (int)count, 0);
    for (uint32_t i = 0; i < count; i++) {
        const mr_trace_stream *stream = mr_trace_stream_at(trace, i);
        lua_createtable(L, 0, 4);
        set_text(L, "name", stream->name);
        lua_pushinteger(L, stream->id);
        lua_setfield(L, -2, "id");
        lua_pushinteger(L, stream->device);
        lua_setfield(L, -2, "device");
        lua_pushinteger(L, stream->priority);
        lua_setfield(L, -2, "priority");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int get_hazards(lua_State *L) {
    const mr_trace *trace = trace_at(L, 1);
    size_t count = mr_trace_hazard_count(trace);
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        const mr_trace_hazard *hazard = mr_trace_hazard_at(trace, i);
        lua_createtable(L, 0, 5);
        set_index(L, "first", hazard->first);
        set_index(L, "second", hazard->second);
        set_text(L, "kind", hazard->kind);
        set_text(L, "message", hazard->message);
        set_text(L, "fix", hazard->fix);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int get_facts(lua_State *L) {
    const mr_trace_facts *facts = mr_trace_facts_of(trace_at(L, 1));
    lua_createtable(L, 0, 9);
    set_text(L, "backend", facts->backend);
    set_text(L, "device", facts->device);
    set_text(L, "model", facts->model);
    set_text(L, "chooser", facts->chooser);
    set_text(L, "how", facts->how);
    set_text(L, "script", facts->script);
    set_ms(L, "began", facts->began);
    lua_pushinteger(L, (lua_Integer)facts->forgotten);
    lua_setfield(L, -2, "forgotten");
    lua_pushinteger(L, facts->device_count);
    lua_setfield(L, -2, "device_count");
    return 1;
}

static const mr_property trace_properties[] = {
    {"spans", "table[]",
     "One table for each command, in the order of submission: name, kind (\"op\", \"copy\", "
     "\"record\", ...), "
     "stream (its name, or \"host\"), engine (\"sm\", \"copy-in\", ..., \"host\" for what the host "
     "does by itself), start and finish "
     "(on the device; nil: it has not run), where, seq, and where they are known ready, called, "
     "returned, "
     "waited (the host's clock and how long the host stood in the call), bytes, blocks, event, "
     "record (index of the record that it waits for), held_by (what it waited for last) and holder "
     "(index). Times are milliseconds since the trace began.",
     get_spans},
    {"ms", "number", "How long it took: the latest time of any span.", get_ms},
    {"streams", "table[]", "The streams: name, id, device, priority.", get_streams},
    {"hazards", "table[]",
     "Hazards that the checker reported: kind, message, fix, first and second (indices of spans).",
     get_hazards},
    {"facts", "table",
     "Where it is from: backend, device, model, chooser, how (how times were found), script, "
     "began (the host's clock at 0), forgotten (spans that are no longer there), device_count.",
     get_facts},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const trace_functions[] = {&trace_print_function,
                                                     &trace_save_function,
                                                     &trace_overlap_function,
                                                     &trace_idle_function,
                                                     &trace_critical_path_function,
                                                     &trace_why_function,
                                                     &trace_compare_function,
                                                     &trace_len_function,
                                                     &trace_tostring_function,
                                                     &trace_gc_function,
                                                     NULL};

const mr_class mr_trace_class = {
    "trace",
    "What a script asked for and when the devices carried it out. Does not change after it was "
    "made. Made by mr.timeline and mr.trace.stop.",
    trace_functions, trace_properties, &mr_kind_trace};

static void open_weak(lua_State *L, const void *key) {
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void mr_open_trace(lua_State *L) {
    open_weak(L, &span_lists);
    open_weak(L, &text_of_list);
    mr_class_open(L, &mr_trace_class);
}
