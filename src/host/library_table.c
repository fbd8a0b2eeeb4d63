/* table.concat, insert, move and remove, which a script can keep busy for hours: see library.h. They ask for elements
 * as Lua's own functions do, so metamethods see the same. */
#include "host/library.h"

#include <lauxlib.h>
#include <lualib.h>

#include "host/interrupt.h"

#define STEPS 4096 /* elements until it is asked whether to stop */

/* The uses that a function has for elements. Each needs a metamethod of an object that stands for a table. */
enum { READ = 1, WRITE = 2, LENGTH = 4 };

/* In the table at the top. */
static bool has_method(lua_State *L, const char *name) {
    lua_pushstring(L, name);
    bool has = lua_rawget(L, -2) != LUA_TNIL;
    lua_pop(L, 1);
    return has;
}

static void check_table(lua_State *L, int arg, int use) {
    if (lua_istable(L, arg)) return;
    bool has_metatable = lua_getmetatable(L, arg);
    bool can = has_metatable && (!(use & READ) || has_method(L, "__index")) &&
               (!(use & WRITE) || has_method(L, "__newindex")) &&
               (!(use & LENGTH) || has_method(L, "__len"));
    if (has_metatable) lua_pop(L, 1);
    if (!can) luaL_checktype(L, arg, LUA_TTABLE);
}

static lua_Integer length_of(lua_State *L, int use) {
    check_table(L, 1, use | LENGTH);
    return luaL_len(L, 1);
}

static void count_step(lua_State *L, lua_Integer step) {
    if (step % STEPS == 0) mr_stop_check(L);
}

/* Moves an element of argument 1 to the table at index `target`. */
static void move_one(lua_State *L, lua_Integer from, int target, lua_Integer to) {
    lua_geti(L, 1, from);
    lua_seti(L, target, to);
    count_step(L, from);
}

/* move(list, first, last, to [, target]) */
static int table_move(lua_State *L) {
    lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3);
    lua_Integer to = luaL_checkinteger(L, 4);
    int target = lua_isnoneornil(L, 5) ? 1 : 5;
    check_table(L, 1, READ);
    check_table(L, target, WRITE);
    if (last >= first) {
        luaL_argcheck(L, first > 0 || last < LUA_MAXINTEGER + first, 3,
                      "too many elements to move");
        lua_Integer count = last - first + 1;
        luaL_argcheck(L, to <= LUA_MAXINTEGER - count + 1, 4, "destination wrap around");
        bool is_apart = target != 1 && !lua_compare(L, 1, target, LUA_OPEQ);
        if (to > last || to <= first || is_apart)
            for (lua_Integer i = 0; i < count; i++) move_one(L, first + i, target, to + i);
        else
            for (lua_Integer i = count - 1; i >= 0; i--) move_one(L, first + i, target, to + i);
    }
    lua_pushvalue(L, target);
    return 1;
}

/* insert(list, [position,] value) */
static int table_insert(lua_State *L) {
    lua_Integer size = length_of(L, READ | WRITE);
    lua_Integer end = (lua_Integer)((lua_Unsigned)size + 1), at = end;
    int count = lua_gettop(L);
    if (count != 2 && count != 3) return luaL_error(L, "wrong number of arguments to 'insert'");
    if (count == 3) {
        at = luaL_checkinteger(L, 2);
        luaL_argcheck(L, (lua_Unsigned)at - 1 < (lua_Unsigned)end, 2, "position out of bounds");
        for (lua_Integer i = end; i > at; i--) move_one(L, i - 1, 1, i);
    }
    lua_seti(L, 1, at);
    return 0;
}

/* remove(list [, position]) */
static int table_remove(lua_State *L) {
    lua_Integer size = length_of(L, READ | WRITE), at = luaL_optinteger(L, 2, size);
    if (at != size)
        luaL_argcheck(L, (lua_Unsigned)at - 1 <= (lua_Unsigned)size, 2, "position out of bounds");
    lua_geti(L, 1, at);
    for (; at < size; at++) move_one(L, at + 1, 1, at);
    lua_pushnil(L);
    lua_seti(L, 1, at);
    return 1;
}

static void add_element(lua_State *L, luaL_Buffer *out, lua_Integer i) {
    lua_geti(L, 1, i);
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid value (%s) at index %I in table for 'concat'", luaL_typename(L, -1),
                   (LUAI_UACINT)i);
    luaL_addvalue(out);
    count_step(L, i);
}

/* concat(list [, separator [, first [, last]]]) */
static int table_concat(lua_State *L) {
    luaL_Buffer out;
    size_t size;
    lua_Integer last = length_of(L, READ);
    const char *separator = luaL_optlstring(L, 2, "", &size);
    lua_Integer i = luaL_optinteger(L, 3, 1);
    last = luaL_optinteger(L, 4, last);
    luaL_buffinit(L, &out);
    for (; i < last; i++) {
        add_element(L, &out, i);
        luaL_addlstring(&out, separator, size);
    }
    if (i == last) add_element(L, &out, i);
    luaL_pushresult(&out);
    return 1;
}

void mr_tables_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"concat", table_concat},
                                         {"insert", table_insert},
                                         {"move", table_move},
                                         {"remove", table_remove},
                                         {NULL, NULL}};
    lua_getglobal(L, LUA_TABLIBNAME);
    luaL_setfuncs(L, functions, 0);
    lua_pop(L, 1);
}
