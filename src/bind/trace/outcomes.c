/* Several outcomes of one program as timelines, for lua/millrace/explore.lua: the pair that they differ in is
 * marked, and a page shows them. */
#include "bind/outside.h"
#include "bind/trace/parts.h"
#include "trace/writers.h"

static uint32_t span_of(const mr_trace *trace, uint64_t seq) {
    for (uint32_t i = 0; i < mr_trace_count(trace); i++)
        if (mr_trace_spans(trace)[i].seq == seq) return i;
    return MR_TRACE_NONE;
}

/* keep_race(trace, number, number, kind, message, fix) -> the trace; of its hazards, only the one between these two
 * commands is marked */
int mr_trace_tool_keep_race(lua_State *L) {
    const mr_trace *trace = mr_check_trace(L, 1);
    mr_trace_hazard hazard = {.first = span_of(trace, (uint64_t)luaL_checkinteger(L, 2)),
                              .second = span_of(trace, (uint64_t)luaL_checkinteger(L, 3)),
                              .kind = luaL_checkstring(L, 4),
                              .message = luaL_checkstring(L, 5),
                              .fix = luaL_optstring(L, 6, NULL)};
    mr_raise(L, mr_trace_keep_hazard((mr_trace *)trace, &hazard)); /* made by our caller */
    lua_settop(L, 1);
    return 1;
}

/* The arguments from `arg` on: a label and a trace, and so on. */
static size_t check_outcomes(lua_State *L, int arg, mr_trace_outcome *list) {
    size_t count = (size_t)(lua_gettop(L) - arg + 1) / 2;
    luaL_argcheck(L, count > 0 && count <= MR_MOST_OUTCOMES, arg, "too many, or none");
    for (size_t i = 0; i < count; i++, arg += 2)
        list[i] = (mr_trace_outcome){mr_check_trace(L, arg + 1), luaL_checkstring(L, arg)};
    return count;
}

/* save_outcomes(path, label, trace, ...): a page */
int mr_trace_tool_save_outcomes(lua_State *L) {
    mr_trace_outcome list[MR_MOST_OUTCOMES];
    mr_set_context(L);
    size_t count = check_outcomes(L, 2, list);
    mr_check_path(L, "save", 1);
    mr_raise(L, mr_trace_save_outcomes(list, count, mr_path_of(L, 1, MR_PATH_WRITE_TIMES),
                                       mr_bind_trace_source, L));
    return 0;
}
