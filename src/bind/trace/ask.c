/* The answers of a trace: overlap, idle times, why an operation began when it did, the critical path, a comparison. */
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "base/text.h"
#include "bind/trace/parts.h"
#include "trace/analysis.h"
#include "trace/draw/lanes.h"

/* its address is a registry key: list -> what tostring gives for it */
static const char text_of_list;

void mr_open_trace_answers(lua_State *L) {
    mr_open_weak(L, &text_of_list);
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

MR_SHARED_FUNCTION(trace_overlap, "overlap",
                   "tr:overlap(a: stream|string, b: stream|string) -> ms: number",
                   "Returns for how long both streams ran kernels or copies at the same time. Each "
                   "is a stream or its name; with the same stream twice, how long it was busy.") {
    const mr_trace *trace = mr_check_trace(L, 1);
    uint32_t a = mr_check_trace_stream(L, 2, trace), b = mr_check_trace_stream(L, 3, trace);
    uint64_t time = 0;
    if (a != MR_TRACE_NONE && b != MR_TRACE_NONE) mr_raise(L, mr_trace_overlap(trace, a, b, &time));
    lua_pushnumber(L, mr_trace_ms(time));
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

MR_SHARED_FUNCTION(
    trace_idle, "idle", "tr:idle(s: stream|string) -> ms: number, gaps: table[]",
    "Returns how long the stream was idle before its last operation, and the gaps: each {start=, "
    "finish=, ms=, next=, cause=, holder=}. `next` is the span after the gap, `cause` the reason "
    "why that span waited, and `holder` the span that it waited for.") {
    const mr_trace *trace = mr_check_trace(L, 1);
    uint32_t stream = mr_check_trace_stream(L, 2, trace);
    lua_settop(L, 2);
    mr_push_spans(L, 1);
    mr_trace_gaps *gaps = mr_push_owner(L, sizeof *gaps, drop_gaps);
    uint64_t sum = 0;
    if (stream != MR_TRACE_NONE) mr_raise(L, mr_trace_idle(trace, stream, gaps));
    for (size_t i = 0; i < gaps->count; i++) sum += gaps->items[i].end - gaps->items[i].begin;
    lua_pushnumber(L, mr_trace_ms(sum));
    mr_buffer *text = mr_push_buffer(L);
    lua_createtable(L, (int)gaps->count, 0);
    for (size_t i = 0; i < gaps->count; i++) {
        const mr_trace_gap *gap = &gaps->items[i];
        const mr_span *next = &mr_trace_spans(trace)[gap->next];
        char site[200];
        lua_createtable(L, 0, 6);
        mr_set_ms(L, "start", gap->begin);
        mr_set_ms(L, "finish", gap->end);
        mr_set_ms(L, "ms", gap->end - gap->begin);
        push_holder(L, gap->next, 3);
        lua_setfield(L, -2, "next");
        mr_set_text(L, "cause", mr_cause_text(gap->cause));
        push_holder(L, gap->holder, 3);
        lua_setfield(L, -2, "holder");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
        mr_buffer_printf(text, "%s%10.3f ms  idle until %.3f ms: ", i ? "\n" : "",
                         mr_trace_ms(gap->end - gap->begin), mr_trace_ms(gap->end));
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
    mr_buffer_printf(text, "%10.3f ms  %8.3f  ", mr_trace_ms(link->begin),
                     mr_trace_ms(link->end - link->begin));
    if (link->is_host) mr_trace_put_host(text, mr_trace_rank_of(trace, span));
    else mr_text_put(text, mr_trace_stream_name(trace, span->stream));
    mr_buffer_puts(text, ": ");
    mr_text_put(text, span->name);
    mr_buffer_puts(text, link->is_host ? " called at " : " at ");
    mr_text_put(text, site_text(span->where, site, sizeof site));
    if (link->cause != MR_CAUSE_NONE && link->cause != MR_CAUSE_HOST)
        mr_buffer_printf(text, " (%s)", mr_cause_text(link->cause));
}

static bool is_plain_call(const mr_trace_link *link) {
    return link->is_host && link->cause == MR_CAUSE_HOST;
}

static int host_of(const mr_trace *trace, const mr_trace_link *link) {
    return mr_trace_rank_of(trace, &mr_trace_spans(trace)[link->span]);
}

/* Consecutive calls of one host are one line of the text. */
static void say_path(mr_buffer *text, const mr_trace *trace, const mr_trace_path *path) {
    for (size_t i = 0; i < path->count; i++) {
        const mr_trace_link *link = &path->items[i];
        size_t last = i;
        while (is_plain_call(link) && last + 1 < path->count &&
               is_plain_call(&path->items[last + 1]) &&
               host_of(trace, &path->items[last + 1]) == host_of(trace, link))
            last++;
        if (i) mr_buffer_puts(text, "\n");
        if (last == i) {
            say_link(text, trace, link);
            continue;
        }
        mr_buffer_printf(text, "%10.3f ms  %8.3f  ", mr_trace_ms(link->begin),
                         mr_trace_ms(path->items[last].end - link->begin));
        mr_trace_put_host(text, host_of(trace, link));
        mr_buffer_printf(text, ": %zu calls", last - i + 1);
        i = last;
    }
}

MR_SHARED_FUNCTION(
    trace_critical_path, "critical_path", "tr:critical_path() -> links: table[]",
    "Returns the critical path of the trace, from its beginning on: spans on the device and calls "
    "of the host. If one of them were shorter, the trace would be shorter. Each is {span=, host=, "
    "start=, finish=, ms=, cause=, name=, where=}; `host` is true for the time of a call, and "
    "`cause` is the reason why it did not begin earlier.") {
    const mr_trace *trace = mr_check_trace(L, 1);
    lua_settop(L, 1);
    mr_push_spans(L, 1);
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
        mr_set_ms(L, "start", link->begin);
        mr_set_ms(L, "finish", link->end);
        mr_set_ms(L, "ms", link->end - link->begin);
        mr_set_text(L, "cause", mr_cause_text(link->cause));
        mr_set_text(L, "name", span->name);
        mr_set_site(L, "where", span->where);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    give_text(L);
    return 1;
}

/* Sets it in the table at the top. */
static void push_need(lua_State *L, const mr_trace_why *why, int spans) {
    lua_createtable(L, 2, 0);
    push_holder(L, why->needed_first, spans);
    lua_rawseti(L, -2, 1);
    push_holder(L, why->needed_second, spans);
    lua_rawseti(L, -2, 2);
    lua_setfield(L, -2, "needed_by");
}

MR_SHARED_FUNCTION(
    trace_why, "why", "tr:why(a: table|integer|string, b: table|integer|string) -> why: table",
    "Says why two operations did not run at the same time: spans of tr.spans, their indices, or "
    "names of operations (the first of that name; as `b`, of `a`'s rank). Returns {overlapped=, "
    "ms=, share=, cause=, text=, where=, holder=, saves_ms=, needed_by=, exact=}: `text` is the "
    "answer in words, and `where` the line of the cause. `saves_ms` is how much earlier the later "
    "one could have begun without the cause. `exact` is true if a run without the cause would save "
    "exactly that. If the cause must stay, `needed_by` has two spans whose data need it, and there "
    "is no `saves_ms`. If the two overlapped, `share` is the overlapping part of the shorter one. "
    "There is a cause if `share` is less than 0.9.") {
    const mr_trace *trace = mr_check_trace(L, 1);
    uint32_t a = mr_check_span(L, 2, trace, MR_TRACE_NONE), b = mr_check_span(L, 3, trace, a);
    lua_settop(L, 3);
    mr_trace_why why;
    mr_raise(L, mr_trace_explain(trace, a, b, &why));
    mr_push_spans(L, 1);
    mr_buffer *text = mr_push_buffer(L);
    mr_text_put(text, why.text);
    lua_createtable(L, 0, 9);
    lua_pushboolean(L, why.overlapped);
    lua_setfield(L, -2, "overlapped");
    mr_set_ms(L, "ms", why.overlap);
    mr_set_text(L, "text", why.text);
    if (why.overlapped) mr_set_number(L, "share", why.share);
    if (why.cause != MR_CAUSE_NONE) {
        mr_set_text(L, "cause", mr_cause_text(why.cause));
        if (why.needed_first == MR_TRACE_NONE) mr_set_ms(L, "saves_ms", why.saved);
        else push_need(L, &why, 4);
        lua_pushboolean(L, why.exact);
        lua_setfield(L, -2, "exact");
    }
    if (why.holder != MR_TRACE_NONE) {
        mr_set_site(L, "where", mr_trace_spans(trace)[why.holder].where);
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
    else mr_number_format(out, size, "x %.2f", (double)after / (double)before);
    return out;
}

static bool has_moved(const mr_trace_row *row) {
    return row->where[0].line != row->where[1].line || row->where[0].file != row->where[1].file;
}

static void say_rows(mr_buffer *text, const mr_trace_rows *rows, uint64_t before, uint64_t after) {
    char site[200], change[32];
    mr_buffer_printf(text, "%12s %12s %8s  %s\n%12.3f %12.3f %8s  all\n", "before ms", "after ms",
                     "", "", mr_trace_ms(before), mr_trace_ms(after),
                     change_text(before, after, change, sizeof change));
    for (size_t i = 0; i < rows->count; i++) {
        const mr_trace_row *row = &rows->items[i];
        mr_buffer_printf(text, "%12.3f %12.3f %8s  ", mr_trace_ms(row->time[0]),
                         mr_trace_ms(row->time[1]),
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

MR_SHARED_FUNCTION(
    trace_compare, "compare", "tr:compare(later: trace) -> rows: table",
    "Compares with another trace of the same script: another device model, or a GPU instead of the "
    "virtual one, or an edited script. Returns a list with a row for each line and operation: "
    "{name=, where=, after_where=, before_count=, after_count=, before_ms=, after_ms=, "
    "before_start=, after_start=}. The rows are in the order of the script; the list has "
    "`before_ms` and `after_ms` for the whole traces. print shows it as a table; "
    "later:print{before=tr} shows the timelines.") {
    const mr_trace *before = mr_check_trace(L, 1), *after = mr_check_trace(L, 2);
    uint64_t whole[2] = {mr_trace_facts_of(before)->duration, mr_trace_facts_of(after)->duration};
    lua_settop(L, 2);
    mr_trace_rows *rows = mr_push_owner(L, sizeof *rows, drop_rows);
    mr_raise(L, mr_trace_compare(before, after, rows));
    mr_buffer *text = mr_push_buffer(L);
    say_rows(text, rows, whole[0], whole[1]);
    lua_createtable(L, (int)rows->count, 2);
    mr_set_ms(L, "before_ms", whole[0]);
    mr_set_ms(L, "after_ms", whole[1]);
    for (size_t i = 0; i < rows->count; i++) {
        const mr_trace_row *row = &rows->items[i];
        lua_createtable(L, 0, 8);
        mr_set_text(L, "name", row->name);
        mr_set_site(L, "where", row->where[0]);
        if (has_moved(row)) {
            mr_push_site(L, row->where[1]);
            lua_setfield(L, -2, "after_where");
        }
        lua_pushinteger(L, row->count[0]);
        lua_setfield(L, -2, "before_count");
        lua_pushinteger(L, row->count[1]);
        lua_setfield(L, -2, "after_count");
        mr_set_ms(L, "before_ms", row->time[0]);
        mr_set_ms(L, "after_ms", row->time[1]);
        if (row->count[0]) mr_set_ms(L, "before_start", row->begin[0]);
        if (row->count[1]) mr_set_ms(L, "after_start", row->begin[1]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    give_text(L);
    return 1;
}
