/* The userdata of a trace as an argument, and its spans as tables and as arguments of its methods. */
#include <string.h>

#include "base/text.h"
#include "bind/outside.h"
#include "bind/trace/parts.h"

const mr_kind mr_kind_trace = {.text = "a trace"};

const mr_trace **mr_new_trace(lua_State *L) {
    return mr_new(L, &mr_kind_trace, sizeof(const mr_trace *));
}

const mr_trace *mr_check_trace(lua_State *L, int arg) {
    mr_note_times(L);
    const mr_trace *trace = *(const mr_trace **)mr_check(L, arg, &mr_kind_trace);
    if (!trace) mr_misuse(L, "the trace was already collected");
    return trace;
}

void mr_open_weak(lua_State *L, const void *key) {
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

static const char span_lists; /* its address is a registry key: trace -> list of its spans */

void mr_open_spans(lua_State *L) {
    mr_open_weak(L, &span_lists);
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

/* True for an action of the host itself, also if a stream is concerned. */
static bool is_host(const mr_span *span) {
    return span->called && !mr_kind_is(span->kind, MR_TRAIT_SUBMITTED);
}

static void push_span(lua_State *L, const mr_trace *trace, uint32_t i) {
    const mr_span *span = &mr_trace_spans(trace)[i];
    lua_createtable(L, 0, 20);
    mr_set_span(L, "index", i);
    mr_set_text(L, "name", span->name);
    mr_set_text(L, "kind", mr_command_kinds[span->kind].name);
    mr_set_text(L, "stream", mr_trace_stream_name(trace, span->stream));
    if (mr_trace_rank_of(trace, span) >= 0)
        mr_set_integer(L, "rank", (uint64_t)mr_trace_rank_of(trace, span));
    mr_set_text(L, "event", span->object);
    mr_set_site(L, "where", span->where);
    lua_pushinteger(L, (lua_Integer)span->seq);
    lua_setfield(L, -2, "seq");
    if (is_host(span)) mr_set_text(L, "engine", "host");
    else if (span->engine != MR_ENGINE_NONE) mr_set_text(L, "engine", mr_engine_text(span->engine));
    if (span->ran) {
        mr_set_ms(L, "ready", span->ready);
        mr_set_ms(L, "start", span->begin);
        mr_set_ms(L, "finish", span->end);
    } else if (is_host(span)) {
        mr_set_ms(L, "start", span->call);
        mr_set_ms(L, "finish", span->returned);
    }
    if (span->called) {
        mr_set_ms(L, "called", span->call);
        mr_set_ms(L, "returned", span->returned);
    }
    if (span->host_waited) mr_set_ms(L, "waited", span->waited);
    if (span->bytes) {
        lua_pushinteger(L, (lua_Integer)span->bytes);
        lua_setfield(L, -2, "bytes");
    }
    if (span->blocks) {
        lua_pushinteger(L, (lua_Integer)span->blocks);
        lua_setfield(L, -2, "blocks");
    }
    if (span->held_by != MR_CAUSE_NONE) mr_set_text(L, "held_by", mr_cause_text(span->held_by));
    mr_set_span(L, "holder", span->holder);
    mr_set_span(L, "record", span->record);
    set_span_class(L);
}

void mr_push_spans(lua_State *L, int index) {
    const mr_trace *trace = mr_check_trace(L, index);
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

uint32_t mr_check_trace_stream(lua_State *L, int arg, const mr_trace *trace) {
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

/* The first operation of that name, other than `other`; of `other`'s rank, if that has one. */
static uint32_t span_by_name(const mr_trace *trace, const char *name, uint32_t other) {
    const mr_span *spans = mr_trace_spans(trace);
    uint32_t found = MR_TRACE_NONE;
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        if (i == other || !is_work(&spans[i]) || strcmp(spans[i].name, name) != 0) continue;
        if (found == MR_TRACE_NONE) found = (uint32_t)i;
        bool is_of_rank = other == MR_TRACE_NONE || mr_trace_rank_of(trace, &spans[i]) ==
                                                        mr_trace_rank_of(trace, &spans[other]);
        if (is_of_rank) return (uint32_t)i;
    }
    return found;
}

uint32_t mr_check_span(lua_State *L, int arg, const mr_trace *trace, uint32_t other) {
    size_t count = mr_trace_count(trace);
    if (lua_type(L, arg) == LUA_TSTRING) {
        const char *name = lua_tostring(L, arg);
        uint32_t found = span_by_name(trace, name, other);
        if (found == MR_TRACE_NONE && other != MR_TRACE_NONE)
            found = span_by_name(trace, name, MR_TRACE_NONE); /* it is the only one */
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
