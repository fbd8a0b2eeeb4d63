/* Functions that the Lua module of mr.explore needs beside the search: values of outcomes, delays, captures, Lua's
 * collector. */
#include <dlfcn.h>
#include <string.h>

#include "bind/explore.h"
#include "bind/explore_guard.h"
#include "bind/explore/parts.h"
#include "bind/field.h"
#include "bind/graph/graph.h"
#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "bind/tensor_box.h"
#include "bind/wrap.h"
#include "explore/stress.h"
#include "graph/graph.h"
#include "model/device.h"
#include "model/event.h"
#include "program/program.h"
#include "tensor/tensor.h"

int mr_explore_tool_is_tensor(lua_State *L) {
    lua_pushboolean(L, mr_test(L, 1, &mr_kind_tensor) != NULL);
    return 1;
}

/* is_unwritten(tensor) -> whether nothing has written some of its bytes, as far as the checker, which is on, knows */
int mr_explore_tool_is_unwritten(lua_State *L) {
    mr_set_context(L);
    lua_pushboolean(L, mr_hazard_is_unwritten(mr_bind_hazard(L), mr_check_tensor(L, 1)));
    return 1;
}

/* kind(value) -> "a stream": how messages call it */
int mr_explore_tool_kind(lua_State *L) {
    lua_pushstring(L, mr_type_text(L, 1));
    return 1;
}

static int push_tensor_facts(lua_State *L, bool with_writes) {
    bool closed;
    const mr_tensor *t = mr_check_facts(L, 1, &closed);
    const struct {
        const void *storage, *name;
        uint64_t generation, freed, closed, tracked, writes;
    } facts = {t->storage,
               t->name,
               t->storage->generation,
               t->storage->freed,
               closed,
               mr_requires_grad(L, 1),
               with_writes ? t->storage->version : 0};
    lua_pushlstring(L, (const char *)&facts, sizeof facts);
    return 1;
}

static int push_graph_facts(lua_State *L, const mr_executable *graph) {
    const uint64_t facts[] = {mr_executable_changes(graph), mr_executable_holds_memory(graph)};
    lua_pushlstring(L, (const char *)facts, sizeof facts);
    return 1;
}

/* facts(object [, with_writes]) -> the properties that a host can change at once, as bytes to compare. User values are
 * not among them. `with_writes`: the number of writes to the memory of a tensor is. */
int mr_explore_tool_facts(lua_State *L) {
    mr_executable *const *graph = mr_test(L, 1, &mr_kind_graph);
    if (mr_test(L, 1, &mr_kind_tensor)) return push_tensor_facts(L, lua_toboolean(L, 2));
    if (mr_test(L, 1, &mr_kind_event)) {
        lua_pushstring(L, mr_event_at(L, 1)->record_seq ? "recorded" : "");
        return 1;
    }
    if (graph && *graph) return push_graph_facts(L, *graph);
    lua_pushliteral(L, "");
    return 1;
}

/* settings() -> those of the machine that a function can change, as bytes to be compared; without peer access, which is
 * put back */
int mr_explore_tool_settings(lua_State *L) {
    const mr_module *module = mr_module_of(L);
    const mr_machine *machine = module->machine;
    luaL_Buffer bytes;
    luaL_buffinit(L, &bytes);
    luaL_addchar(&bytes, module->allow_tf32);
    luaL_addchar(&bytes, machine->launch_blocking);
    luaL_pushresult(&bytes);
    return 1;
}

/* is_own(fn): a C function of the program or the library itself, which keeps nothing */
int mr_explore_tool_is_own(lua_State *L) {
    lua_CFunction function = lua_tocfunction(L, 1), own = mr_explore_tool_is_own;
    void *place = NULL, *own_place = NULL;
    const mr_function *counted = mr_counted_function(L, 1);
    if (counted ? counted->module != NULL : lua_getupvalue(L, 1, 2) != NULL) return 0;
    if (lua_getupvalue(L, 1, 1) && lua_touserdata(L, -1) != mr_module_of(L)) return 0;
    Dl_info info, own_info;
    memcpy(&place, &function, sizeof place);
    memcpy(&own_place, &own, sizeof own_place);
    lua_pushboolean(L, place && dladdr(place, &info) && dladdr(own_place, &own_info) &&
                           info.dli_fbase == own_info.dli_fbase);
    return 1;
}

/* rank() -> the rank of mr.dist.spawn that runs, from 0, or nil */
int mr_explore_tool_rank(lua_State *L) {
    uint16_t rank = mr_machine_of(L)->rank;
    if (rank) lua_pushinteger(L, rank - 1);
    else lua_pushnil(L);
    return 1;
}

/* fill(t, bytes): a contiguous tensor of the host */
int mr_explore_tool_fill(lua_State *L) {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    size_t size;
    const char *bytes = luaL_checklstring(L, 2, &size);
    if (size != (size_t)t->numel * mr_dtype_size(t->dtype)) return mr_misuse(L, "fill: size");
    mr_raise(L, mr_host_access(&caller, "outcome", t, MR_WRITE));
    if (size) memcpy(mr_tensor_data(t), bytes, size);
    return 0;
}

/* set_globals(chunk, table): what its global variables are from now on */
int mr_explore_tool_set_globals(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 2);
    const char *name = lua_setupvalue(L, 1, 1);
    lua_pushboolean(L, name && strcmp(name, "_ENV") == 0);
    return 1;
}

static int drop_stress(lua_State *L) {
    mr_stress **stress = lua_touserdata(L, 1);
    mr_stress_end(*stress);
    *stress = NULL;
    return 0;
}

/* delay(seed, ms) -> delays, which end when it is closed */
int mr_explore_tool_delay(lua_State *L) {
    mr_machine *machine = mr_set_context(L);
    uint64_t seed = (uint64_t)luaL_checkinteger(L, 1);
    double longest = luaL_checknumber(L, 2) * 1e6;
    mr_stress **stress = mr_push_owner(L, sizeof(mr_stress *), drop_stress);
    mr_raise(L, mr_stress_begin(machine, seed, (uint64_t)longest, stress));
    return 1;
}

/* attempt(fn) -> true, what fn returns; or false: Ctrl-C ended it, and is forgotten */
int mr_explore_tool_attempt(lua_State *L) {
    mr_machine *machine = mr_set_context(L);
    lua_settop(L, 1);
    int status = lua_pcall(L, 0, LUA_MULTRET, 0);
    mr_set_context(L);
    if (status != LUA_OK) {
        if (!mr_explore_is_stopped(machine) || !mr_explore_takes_interrupt(machine))
            return lua_error(L);
        lua_settop(L, 0);
    }
    lua_pushboolean(L, status == LUA_OK);
    lua_insert(L, 1);
    return lua_gettop(L);
}

/* end_captures() -> text: what the function left open, which no run may leave to the next; or nothing */
int mr_explore_tool_end_captures(lua_State *L) {
    mr_status status = mr_capture_end_all(mr_set_context(L));
    if (!status) return 0;
    mr_push_error(L, status);
    luaL_tolstring(L, -1, NULL);
    return 1;
}

/* drain(): waits for all devices; raises their error */
int mr_explore_tool_drain(lua_State *L) {
    mr_raise(L, mr_machine_drain(mr_set_context(L)));
    return 0;
}

/* drained(): waits for all devices and returns their error; an interruption is raised. If the machine was lost before,
 * the function already got the error: nil, true. */
int mr_explore_tool_drained(lua_State *L) {
    mr_machine *machine = mr_set_context(L);
    bool is_known = machine->lost != NULL;
    mr_status status = mr_machine_drain(machine);
    if (!status) return 0;
    if (is_known && mr_code_sticky(status->code)) {
        mr_error_destroy(status);
        lua_pushnil(L);
        lua_pushboolean(L, true);
        return 2;
    }
    if (mr_code_is_interruption(status->code)) mr_raise(L, status);
    mr_push_error(L, status);
    return 1;
}

/* is_loss(code): of an error by which the device is lost */
int mr_explore_tool_is_loss(lua_State *L) {
    mr_code code;
    const char *text = lua_tostring(L, 1);
    lua_pushboolean(L, text && mr_code_find(text, &code) && mr_code_sticky(code));
    return 1;
}

/* bytes(t): of a tensor of the host */
int mr_explore_tool_bytes(lua_State *L) {
    mr_set_context(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_buffer *out = mr_push_buffer(L);
    mr_program_read(t, out);
    mr_buffer_to_text(L);
    return 1;
}

/* misuse(text): raises at the script's line. */
int mr_explore_tool_misuse(lua_State *L) {
    return mr_misuse(L, "%s", luaL_checkstring(L, 1));
}

/* next_number() -> what the next command is counted by */
int mr_explore_tool_next_number(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)mr_set_context(L)->counts.next_seq);
    return 1;
}

/* uncollected(f, ...): as pcall(f, ...), and Lua's collector takes nothing meanwhile */
int mr_explore_tool_uncollected(lua_State *L) {
    bool runs = mr_explore_stop_collector(L);
    int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    mr_set_context(L);
    mr_explore_start_collector(L, runs);
    lua_pushboolean(L, status == LUA_OK);
    lua_insert(L, 1);
    return lua_gettop(L);
}

/* shown(file, line) -> the place as sentences name it */
int mr_explore_tool_shown(lua_State *L) {
    mr_site where = {luaL_checkstring(L, 1), (int)luaL_checkinteger(L, 2)};
    mr_push_site(L, mr_hazard_shown(mr_bind_hazard(L), where));
    return 1;
}

/* write(text): on a terminal in lines that end between words */
int mr_explore_tool_write(lua_State *L) {
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    mr_write_wrapped(stdout, text, size);
    return 0;
}

/* A number as this Lua's io.write writes it: "3" for 3.0, or "3.0" in newer versions. */
static void push_written(lua_State *L, int at, bool is_short) {
    size_t size;
    lua_pushvalue(L, at);
    if (lua_isinteger(L, at) || !is_short) return;
    const char *text = lua_tolstring(L, -1, &size);
    bool adds_zero = size > 2 && text[size - 1] == '0' && strspn(text, "-0123456789") == size - 2;
    if (!adds_zero) return;
    lua_pushlstring(L, text, size - 2);
    lua_replace(L, -2);
}

/* write_values(sink, is_short, file, ...) -> file. Gives each text to `sink`, as file:write(...) writes it. */
int mr_explore_tool_write_values(lua_State *L) {
    bool is_short = lua_toboolean(L, 2);
    int last = lua_gettop(L);
    luaL_checkstack(L, 3, NULL);
    for (int at = 4; at <= last; at++) {
        if (!lua_isstring(L, at))
            return mr_misuse(L, "bad argument #%d to 'write' (string expected, got %s)", at - 3,
                             luaL_typename(L, at));
        lua_pushvalue(L, 1);
        if (lua_type(L, at) == LUA_TNUMBER) push_written(L, at, is_short);
        else lua_pushvalue(L, at);
        lua_call(L, 1, 0);
    }
    lua_settop(L, 3);
    return 1;
}

/* refuse(what): ends the exploration with the script's line, also if the script catches the error */
int mr_explore_tool_refuse(lua_State *L) {
    mr_bind_explore_refuse(L, luaL_checkstring(L, 1));
    return mr_misuse(L, "not permitted inside mr.explore: %s", lua_tostring(L, 1));
}
