/* Makes userdata, also while Lua closes its state. */
#include <string.h>

#include "bind/bind.h"

const mr_kind mr_kind_device = {.text = "a device"};
const mr_kind mr_kind_stream = {.text = "a stream"};
const mr_kind mr_kind_event = {.text = "an event"};
const mr_kind mr_kind_tensor = {.text = "a tensor", .user_values = 1};
const mr_kind mr_kind_kernel = {.text = "a kernel"};
const mr_kind mr_kind_module = {.text = "a module"};

static const char late; /* its address is the registry key */

/* While Lua closes a state, it calls the finalizers of existing objects, but not of objects that these finalizers make.
 * A finalizer cannot know whether Lua closes, so all objects made in finalizers are noted. Before Lua 5.4.4 a finalizer
 * looks the same as a stopped collector. */
static bool may_be_late(lua_State *L) {
    int runs = lua_gc(L, LUA_GCISRUNNING);
    return LUA_VERSION_RELEASE_NUM >= 50404 ? runs < 0 : runs != 1;
}

static void note_late(lua_State *L) {
    if (!may_be_late(L)) return;
    luaL_checkstack(L, 5, "to make an object");
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &late) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "k");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &late);
    }
    lua_pushvalue(L, -2);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

void mr_finalise_late(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &late) == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (luaL_getmetafield(L, -2, "__gc") == LUA_TNIL) continue;
        lua_pushvalue(L, -3);
        if (lua_pcall(L, 1, 0, 0) != LUA_OK) lua_pop(L, 1); /* as Lua does it */
    }
    lua_pop(L, 1);
}

void *mr_new(lua_State *L, const mr_kind *kind, size_t size) {
    mr_userdata *b = lua_newuserdatauv(L, sizeof *b + size, kind->user_values);
    memset(b->object, 0, size);
    b->kind = kind;
    lua_rawgetp(L, LUA_REGISTRYINDEX, kind); /* where mr_class_open put the metatable */
    lua_setmetatable(L, -2);
    note_late(L);
    return b->object;
}

void *mr_push_owner(lua_State *L, size_t size, lua_CFunction drop) {
    void *object = lua_newuserdatauv(L, size, 0);
    memset(object, 0, size);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, (const void *)drop) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 2);
        lua_pushcfunction(L, drop);
        lua_setfield(L, -2, "__gc");
        lua_pushcfunction(L, drop);
        lua_setfield(L, -2, "__close");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, (const void *)drop);
    }
    lua_setmetatable(L, -2);
    note_late(L);
    return object;
}

static int drop_buffer(lua_State *L) {
    mr_buffer_free(lua_touserdata(L, 1));
    return 0;
}

mr_buffer *mr_push_buffer(lua_State *L) {
    return mr_push_owner(L, sizeof(mr_buffer), drop_buffer);
}

void mr_push_methods(lua_State *L, const mr_kind *kind) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, kind);
    lua_getfield(L, -1, "methods");
    lua_remove(L, -2);
}
