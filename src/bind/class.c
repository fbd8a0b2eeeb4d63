/* Classes: how a userdata finds its methods and properties, and how a value is recognised.
 *
 * Every userdata of ours begins with the address of its mr_class, so that a look at one word tells what it
 * is: this happens for each argument of each call, and comparing metatables takes ten times as long. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "bind/bind.h"
#include "bind/foreign.h"
#include "bind/nearest.h"

/* Upvalues of mr_class_lookup, which its registrars set in this order. */
enum { UP_MACHINE = 1, UP_METHODS, UP_GETTERS, UP_CLASS };

typedef struct {
    const mr_class *class;
    max_align_t object[];
} block;

static const char late; /* its address is the registry key */

/* While Lua closes it calls the finalizers of what there was, and of nothing that they make. In a finalizer
 * nobody can tell whether Lua closes; so what is made in any, or while the collector is stopped, is noted. */
static void note_late(lua_State *L) {
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

void *mr_new(lua_State *L, const mr_class *class, size_t size) {
    block *b = lua_newuserdatauv(L, sizeof *b + size, 0);
    memset(b->object, 0, size);
    b->class = class;
    lua_rawgetp(L, LUA_REGISTRYINDEX, class); /* where mr_class_open put the metatable */
    lua_setmetatable(L, -2);
    if (lua_gc(L, LUA_GCISRUNNING) != 1) note_late(L);
    return b->object;
}

/* Other libraries' userdata are asked too, and may be shorter (a light one has no length). What they hold is
 * theirs to choose, but none of them knows the address of a class. */
void *mr_test(lua_State *L, int arg, const mr_class *class) {
    block *b = lua_touserdata(L, arg);
    if (!b || lua_rawlen(L, arg) < sizeof *b || b->class != class) return NULL;
    return b->object;
}

static const char *article(const mr_class *class) {
    return strchr("aeiou", class->name[0]) ? "an" : "a";
}

void *mr_check(lua_State *L, int arg, const mr_class *class) {
    void *object = mr_test(L, arg, class);
    if (!object) {
        char expected[64]; /* not on the Lua stack, where it would look like an argument */
        snprintf(expected, sizeof expected, "%s %s", article(class), class->name);
        mr_bad_argument(L, arg, expected);
    }
    return object;
}

/* Raises for a field that is not there, naming the one that was probably meant. */
static int no_such_field(lua_State *L, const mr_class *class, const char *key) {
    const char *advice = mr_foreign_advice(class->name, key);
    if (advice)
        return mr_misuse(L, "%s %s has no `%s`: %s", article(class), class->name, key, advice);
    mr_nearest nearest;
    mr_nearest_begin(&nearest, key);
    for (int table = UP_METHODS; table <= UP_GETTERS; table++) {
        for (lua_pushnil(L); lua_next(L, lua_upvalueindex(table)); lua_pop(L, 1))
            if (lua_type(L, -2) == LUA_TSTRING) mr_nearest_offer(&nearest, lua_tostring(L, -2));
    }
    const char *meant = mr_nearest_found(&nearest);
    if (meant)
        return mr_misuse(L, "%s %s has no `%s`: did you mean `%s`?", article(class), class->name,
                         key, meant);
    return mr_misuse(L, "%s %s has no `%s`: mr.help(\"%s\") lists what it has", article(class),
                     class->name, key, class->name);
}

int mr_class_lookup(lua_State *L) {
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(UP_METHODS)) != LUA_TNIL) return 1;
    lua_pop(L, 1);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(UP_GETTERS)) != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        return 1;
    }
    const mr_class *class = lua_touserdata(L, lua_upvalueindex(UP_CLASS));
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : mr_type_text(L, 2);
    return no_such_field(L, class, key);
}

static int no_assignment(lua_State *L) {
    const mr_class *class = lua_touserdata(L, lua_upvalueindex(2));
    return mr_misuse(L,
                     "a %s has no fields to assign to: keep what you want to remember in a table "
                     "of your own",
                     class->name);
}

static void set_function(lua_State *L, mr_machine *machine, const mr_function *function) {
    lua_pushlightuserdata(L, machine);
    lua_pushcclosure(L, function->call, 1);
    lua_setfield(L, -2, function->name);
}

void mr_table_open(lua_State *L, mr_machine *machine, const mr_class *class) {
    for (const mr_function *const *f = class->functions; *f; f++) set_function(L, machine, *f);
}

void mr_class_open(lua_State *L, mr_machine *machine, const mr_class *class) {
    lua_newtable(L); /* metatable */
    int metatable = lua_gettop(L);
    lua_newtable(L); /* methods */
    for (const mr_function *const *f = class->functions; *f; f++) {
        bool meta = strncmp((*f)->name, "__", 2) == 0;
        if (meta) lua_pushvalue(L, metatable);
        set_function(L, machine, *f);
        if (meta) lua_pop(L, 1);
    }
    lua_newtable(L); /* getters */
    for (const mr_property *p = class->properties; p && p->name; p++) {
        lua_pushlightuserdata(L, machine);
        lua_pushcclosure(L, p->get, 1);
        lua_setfield(L, -2, p->name);
    }
    lua_pushvalue(L, -2);
    lua_setfield(L, metatable, "methods"); /* for help() and for files that add methods */
    lua_pushvalue(L, -1);
    lua_setfield(L, metatable, "getters");
    if (lua_getfield(L, metatable, "__index") == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushlightuserdata(L, machine);
        lua_insert(L, -3); /* machine, methods, getters */
        lua_pushlightuserdata(L, (void *)class);
        lua_pushcclosure(L, mr_class_lookup, 4);
        lua_setfield(L, metatable, "__index");
    } else {
        lua_pop(L, 3);
    }
    if (lua_getfield(L, metatable, "__newindex") == LUA_TNIL) {
        lua_pushlightuserdata(L, machine);
        lua_pushlightuserdata(L, (void *)class);
        lua_pushcclosure(L, no_assignment, 2);
        lua_setfield(L, metatable, "__newindex");
    }
    lua_settop(L, metatable);
    /* Scripts see the name where the metatable would be: nobody can reach __gc and call it. */
    lua_pushfstring(L, "millrace.%s", class->name);
    lua_pushvalue(L, -1);
    lua_setfield(L, metatable, "__metatable");
    lua_setfield(L, metatable, "__name");
    lua_rawsetp(L, LUA_REGISTRYINDEX, class);
}
