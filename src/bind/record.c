/* Decides whether autograd must see a call, and passes it on. Lua decides how much of it is recorded.
 *
 * Easiest to break: a call without tracked arguments must leave the stack unchanged. */
#include "bind/record.h"

#include "bind/tensor_box.h"

const char mr_record_key;

/* Tensors may also be in lists (mr.cat) and options (out=), one level deep in a table. */
static bool has_tracked(lua_State *L, int arg) {
    if (lua_type(L, arg) == LUA_TUSERDATA) return mr_is_tracked(L, arg);
    if (lua_type(L, arg) != LUA_TTABLE) return false;
    bool found = false;
    for (lua_pushnil(L); !found && lua_next(L, arg); lua_pop(L, 1))
        found = lua_type(L, -1) == LUA_TUSERDATA && mr_is_tracked(L, lua_gettop(L));
    if (found) lua_pop(L, 1); /* the key */
    return found;
}

static bool any_tracked(lua_State *L) {
    int count = lua_gettop(L);
    for (int arg = 1; arg <= count; arg++)
        if (has_tracked(L, arg)) return true;
    return false;
}

int mr_record_slow(lua_State *L, lua_CFunction run, const char *name) {
    luaL_checkstack(L, 6, name);
    if (!any_tracked(L)) return run(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &mr_record_key);
    lua_insert(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, lua_upvalueindex(2)); /* nil where the function has only one */
    lua_pushcclosure(L, run, 2);
    lua_insert(L, 2);
    lua_pushstring(L, name);
    lua_insert(L, 3);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}
