/* Arguments and option tables: each check names the function, the place and what came instead. */
#include <math.h>
#include <string.h>

#include "base/intern.h"
#include "bind/bind.h"
#include "bind/nearest.h"

lua_Integer mr_check_integer(lua_State *L, int arg) {
    int is_integer;
    lua_Integer value = lua_tointegerx(L, arg, &is_integer);
    if (is_integer && lua_type(L, arg) == LUA_TNUMBER) return value;
    if (lua_type(L, arg) != LUA_TNUMBER) return mr_bad_argument(L, arg, "an integer");
    return mr_misuse(L, "argument %d: expected an integer, got %s", arg,
                     lua_pushfstring(L, "%f", lua_tonumber(L, arg)));
}

bool mr_is_scalar(lua_State *L, int arg) {
    int type = lua_type(L, arg);
    return type == LUA_TNUMBER || type == LUA_TBOOLEAN;
}

mr_scalar mr_check_scalar(lua_State *L, int arg) {
    if (lua_isboolean(L, arg)) {
        int64_t truth = lua_toboolean(L, arg);
        return (mr_scalar){true, truth, (double)truth};
    }
    if (lua_type(L, arg) != LUA_TNUMBER) mr_bad_argument(L, arg, "a number");
    if (lua_isinteger(L, arg)) {
        lua_Integer i = lua_tointeger(L, arg);
        return (mr_scalar){true, i, (double)i};
    }
    return (mr_scalar){false, 0, lua_tonumber(L, arg)};
}

const char *mr_check_name(lua_State *L, int arg) {
    size_t size;
    if (lua_type(L, arg) != LUA_TSTRING) mr_bad_argument(L, arg, "a name (a string)");
    const char *text = lua_tolstring(L, arg, &size);
    if (size == 0 || size > MR_LONGEST_NAME)
        mr_misuse(L, "a name has 1 to %d bytes, this one has %d", MR_LONGEST_NAME, (int)size);
    if (strlen(text) != size) mr_misuse(L, "a name cannot hold a NUL byte");
    return mr_intern(text, size);
}

static bool is_known(const char *key, const char *const *known) {
    for (; *known; known++)
        if (strcmp(*known, key) == 0) return true;
    return false;
}

static int unknown_option(lua_State *L, const char *key, const char *const *known) {
    mr_nearest nearest;
    mr_nearest_begin(&nearest, key);
    for (const char *const *name = known; *name; name++) mr_nearest_offer(&nearest, *name);
    const char *meant = mr_nearest_found(&nearest);
    if (meant) return mr_misuse(L, "there is no option `%s` here: did you mean `%s`?", key, meant);
    luaL_Buffer list;
    luaL_buffinit(L, &list);
    for (const char *const *name = known; *name; name++) {
        if (name != known) luaL_addstring(&list, ", ");
        luaL_addstring(&list, *name);
    }
    luaL_pushresult(&list);
    return mr_misuse(L, "there is no option `%s` here: known are %s", key, lua_tostring(L, -1));
}

bool mr_options_check(lua_State *L, int arg, const char *const *known) {
    if (lua_isnoneornil(L, arg)) return false;
    if (!lua_istable(L, arg)) mr_bad_argument(L, arg, "a table of options");
    arg = lua_absindex(L, arg);
    for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            mr_misuse(L, "options are written {name=value}: found %s as a key",
                      lua_type(L, -2) == LUA_TNUMBER
                          ? lua_pushfstring(L, "[%f]", lua_tonumber(L, -2))
                          : mr_type_text(L, -2));
        const char *key = lua_tostring(L, -2);
        if (!is_known(key, known)) unknown_option(L, key, known);
    }
    return true;
}

int mr_push_option(lua_State *L, int arg, const char *name) {
    if (!lua_istable(L, arg)) {
        lua_pushnil(L);
        return LUA_TNIL;
    }
    /* Raw: what is borrowed from the table stays in it while the call lasts, since no Lua code runs. */
    arg = lua_absindex(L, arg);
    lua_pushstring(L, name);
    return lua_rawget(L, arg);
}

static int bad_option(lua_State *L, const char *name, const char *expected) {
    return mr_misuse(L, "option `%s`: expected %s, got %s", name, expected, mr_type_text(L, -1));
}

bool mr_option_boolean(lua_State *L, int arg, const char *name, bool otherwise) {
    int type = mr_push_option(L, arg, name);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN) bad_option(L, name, "true or false");
    bool value = type == LUA_TNIL ? otherwise : lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

lua_Integer mr_option_integer(lua_State *L, int arg, const char *name, lua_Integer otherwise) {
    int is_integer = 1;
    int type = mr_push_option(L, arg, name);
    lua_Integer value = type == LUA_TNIL ? otherwise : lua_tointegerx(L, -1, &is_integer);
    if (type != LUA_TNIL && (type != LUA_TNUMBER || !is_integer)) bad_option(L, name, "an integer");
    lua_pop(L, 1);
    return value;
}

lua_Number mr_option_number(lua_State *L, int arg, const char *name, lua_Number otherwise) {
    int type = mr_push_option(L, arg, name);
    if (type != LUA_TNIL && type != LUA_TNUMBER) bad_option(L, name, "a number");
    lua_Number value = type == LUA_TNIL ? otherwise : lua_tonumber(L, -1);
    lua_pop(L, 1);
    return value;
}

const char *mr_option_name(lua_State *L, int arg, const char *name) {
    const char *value = NULL;
    int type = mr_push_option(L, arg, name);
    if (type != LUA_TNIL && type != LUA_TSTRING) bad_option(L, name, "a string");
    if (type == LUA_TSTRING) value = mr_check_name(L, lua_gettop(L));
    lua_pop(L, 1);
    return value;
}

mr_stream *mr_option_stream(lua_State *L, int arg, const char *name) {
    mr_stream *stream = NULL;
    if (mr_push_option(L, arg, name) != LUA_TNIL) {
        if (!mr_test(L, -1, &mr_stream_class)) bad_option(L, name, "a stream");
        stream = mr_check_stream(L, lua_gettop(L));
    }
    lua_pop(L, 1);
    return stream;
}

mr_tensor *mr_option_tensor(lua_State *L, int arg, const char *name) {
    mr_tensor *tensor = NULL;
    if (mr_push_option(L, arg, name) != LUA_TNIL) {
        if (!mr_test(L, -1, &mr_tensor_class)) bad_option(L, name, "a tensor");
        tensor = mr_check_tensor(L, lua_gettop(L));
    }
    lua_pop(L, 1);
    return tensor;
}

mr_device *mr_option_device(lua_State *L, int arg, const char *name) {
    mr_device *device = NULL;
    int type = mr_push_option(L, arg, name);
    if (type != LUA_TNIL) {
        if (type != LUA_TNUMBER && !mr_test(L, -1, &mr_device_class))
            bad_option(L, name, "a device or its ordinal");
        device = mr_check_device(L, lua_gettop(L));
    }
    lua_pop(L, 1);
    return device;
}
