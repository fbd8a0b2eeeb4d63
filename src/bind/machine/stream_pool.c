/* Streams that are handed out again and again, as PyTorch does: see stream_pool.h. The pools are tables in the
 * registry, so that their streams live as long as the state. */
#include "bind/machine/stream_pool.h"

#include "bind/explore.h"

static const char key; /* its address is a registry key */

/* The table of the streams of that kind: [0] is how many were handed out so far. */
static void push_pool(lua_State *L, const mr_device *device, const mr_stream_options *options) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
    }
    lua_pushfstring(L, "%d %d %d", device->index, options->priority, options->nonblocking);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
    lua_replace(L, -3);
    lua_pop(L, 1);
}

static int next_place(lua_State *L, int pool) {
    lua_rawgeti(L, pool, 0);
    lua_Integer given = lua_tointeger(L, -1);
    lua_pop(L, 1);
    lua_pushinteger(L, given + 1);
    lua_rawseti(L, pool, 0);
    return (int)(given % MR_STREAM_POOL) + 1;
}

bool mr_stream_pool_push(lua_State *L, const mr_device *device, const mr_stream_options *options,
                         int *out_place) {
    mr_bind_explore_refuse(L, "mr.stream{pool=true}: each run would get other streams of the pool");
    push_pool(L, device, options);
    *out_place = next_place(L, lua_gettop(L));
    lua_rawgeti(L, -1, *out_place);
    mr_stream **box = mr_test(L, -1, &mr_kind_stream);
    mr_status gone = box && *box ? mr_stream_usable(*box) : MR_OK;
    bool is_there =
        /* a closed stream, or one from before a reset, is replaced by a new one */
        box && *box && !gone;
    mr_error_destroy(gone);
    if (!is_there) lua_pop(L, 1);
    return is_there;
}
