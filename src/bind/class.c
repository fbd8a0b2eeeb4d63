/* Classes: how a userdata finds its methods and properties. */
#include <string.h>

#include "bind/bind.h"
#include "bind/foreign.h"
#include "bind/nearest.h"

/* Upvalues of mr_class_lookup, which its registrars set in this order. */
enum { UP_MACHINE = 1, UP_METHODS, UP_GETTERS, UP_CLASS };

/* Raises for an unknown field, and names the one that was probably meant. */
static int no_such_field(lua_State *L, const mr_class *class, const char *key) {
    const char *advice = mr_foreign_advice(class->name, key);
    if (advice) return mr_misuse(L, "%s has no `%s`: %s", class->kind->text, key, advice);
    mr_nearest nearest;
    mr_nearest_begin(&nearest, key);
    for (int table = UP_METHODS; table <= UP_GETTERS; table++) {
        for (lua_pushnil(L); lua_next(L, lua_upvalueindex(table)); lua_pop(L, 1))
            if (lua_type(L, -2) == LUA_TSTRING) mr_nearest_offer(&nearest, lua_tostring(L, -2));
    }
    const char *meant = mr_nearest_found(&nearest);
    if (meant)
        return mr_misuse(L, "%s has no `%s`: did you mean `%s`?", class->kind->text, key, meant);
    return mr_misuse(L, "%s has no `%s`: mr.help(\"%s\") lists all names", class->kind->text, key,
                     class->name);
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
    return mr_misuse(L, "%s has no fields that can be assigned: use a table of your own",
                     class->kind->text);
}

/* Without a metamethod, Lua's error has only the type's name. This error also says what to write instead, in its text,
 * since it may be caught and printed. */
static int no_text(lua_State *L) {
    const mr_class *class = lua_touserdata(L, lua_upvalueindex(2));
    return mr_misuse(L, "attempt to concatenate %s: write tostring(x)%s", class->kind->text,
                     class->kind == &mr_kind_tensor ? ", or x:item() for the value of one element"
                                                    : "");
}

static int no_order(lua_State *L) {
    return mr_misuse(L,
                     "attempt to compare %s with %s: comparisons of tensors are methods: "
                     "x:gt(y), ge, lt, le, eq, ne",
                     mr_type_text(L, 1), mr_type_text(L, 2));
}

/* Sets a metamethod that raises, if the class has none. */
static void set_refusal(lua_State *L, int metatable, const mr_class *class, const char *event,
                        lua_CFunction refuse) {
    if (lua_getfield(L, metatable, event) == LUA_TNIL) {
        mr_push_module(L);
        lua_pushlightuserdata(L, (void *)class);
        lua_pushcclosure(L, refuse, 2);
        lua_setfield(L, metatable, event);
    }
    lua_pop(L, 1);
}

/* The number of parameters in a usage line, the object before ":" included; -1: any number. */
static int parameters_of(const char *usage) {
    const char *at = usage + strcspn(usage, "({ ");
    if (*at != '(') return *at == '{' ? 1 : -1; /* mr.spin{ms: number}; an operator */
    const char *colon = memchr(usage, ':', (size_t)(at - usage));
    int count = colon != NULL, depth = 0;
    bool is_empty = true;
    for (at++; *at && (depth || *at != ')'); at++) {
        switch (*at) { /* not strchr: all functions are asked at each start */
        case '(':
        case '{': depth++; break;
        case ')':
        case '}': depth--; break;
        case ',': count += !depth; break;
        case '.':
            if (!depth && strncmp(at, "...", 3) == 0) return -1;
            break;
        default: break;
        }
        is_empty &= *at == ' ';
    }
    return count + !is_empty;
}

void mr_no_arguments_behind(lua_State *L, int most, const mr_function *function) {
    for (int i = most + 1; i <= lua_gettop(L); i++)
        if (!lua_isnil(L, i))
            mr_misuse(L, "%s: too many arguments: expected %s", function->name, function->usage);
}

/* Wraps each function with a known number of parameters above zero. A function without parameters may be a callback,
 * which gets any arguments (setUp = mr.reset). Its upvalues: the module, the function, that number. */
static int call_counted(lua_State *L) {
    const mr_function *function = lua_touserdata(L, lua_upvalueindex(2));
    mr_no_arguments_behind(L, (int)lua_tointeger(L, lua_upvalueindex(3)), function);
    return function->call(L);
}

const mr_function *mr_counted_function(lua_State *L, int index) {
    if (lua_tocfunction(L, index) != call_counted) return NULL;
    lua_getupvalue(L, index, 2);
    const mr_function *function = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return function;
}

static void push_function(lua_State *L, const mr_function *function) {
    /* Lua itself chooses a metamethod's arguments */
    bool meta = strncmp(function->name, "__", 2) == 0;
    int most = meta ? -1 : parameters_of(function->usage);
    mr_push_module(L);
    if (most <= 0) {
        if (function->module) lua_pushlightuserdata(L, (void *)function); /* mr_call_lua asks */
        lua_pushcclosure(L, function->call, function->module ? 2 : 1);
        return;
    }
    lua_pushlightuserdata(L, (void *)function);
    lua_pushinteger(L, most);
    lua_pushcclosure(L, call_counted, 3);
}

static void set_function(lua_State *L, const mr_function *function) {
    push_function(L, function);
    lua_setfield(L, -2, function->name);
}

void mr_table_open(lua_State *L, const mr_class *class) {
    for (const mr_function *const *f = class->functions; *f; f++) set_function(L, *f);
}

/* In the table at the top. */
static void set_getters(lua_State *L, const mr_class *class) {
    for (const mr_property *p = class->properties; p && p->name; p++) {
        mr_push_module(L);
        lua_pushcclosure(L, p->get, 1);
        lua_setfield(L, -2, p->name);
    }
}

void mr_class_open(lua_State *L, const mr_class *class) {
    lua_newtable(L); /* metatable */
    int metatable = lua_gettop(L);
    lua_newtable(L); /* methods */
    for (const mr_function *const *f = class->functions; *f; f++) {
        bool meta = strncmp((*f)->name, "__", 2) == 0;
        if (meta) lua_pushvalue(L, metatable);
        set_function(L, *f);
        if (meta) lua_pop(L, 1);
    }
    lua_newtable(L); /* getters */
    set_getters(L, class);
    lua_pushvalue(L, -2);
    lua_setfield(L, metatable, "methods"); /* for help() and for files that add methods */
    lua_pushvalue(L, -1);
    lua_setfield(L, metatable, "getters");
    if (lua_getfield(L, metatable, "__index") == LUA_TNIL) {
        lua_pop(L, 1);
        mr_push_module(L);
        lua_insert(L, -3); /* machine, methods, getters */
        lua_pushlightuserdata(L, (void *)class);
        lua_pushcclosure(L, mr_class_lookup, 4);
        lua_setfield(L, metatable, "__index");
    } else {
        lua_pop(L, 3);
    }
    if (lua_getfield(L, metatable, "__newindex") == LUA_TNIL) {
        mr_push_module(L);
        lua_pushlightuserdata(L, (void *)class);
        lua_pushcclosure(L, no_assignment, 2);
        lua_setfield(L, metatable, "__newindex");
    }
    lua_settop(L, metatable);
    set_refusal(L, metatable, class, "__concat", no_text);
    if (class->kind == &mr_kind_tensor) {
        set_refusal(L, metatable, class, "__lt", no_order);
        set_refusal(L, metatable, class, "__le", no_order);
    }
    /* Scripts get this name in place of the metatable, so they cannot call __gc. */
    lua_pushfstring(L, "millrace.%s", class->name);
    lua_pushvalue(L, -1);
    lua_setfield(L, metatable, "__metatable");
    lua_setfield(L, metatable, "__name");
    lua_rawsetp(L, LUA_REGISTRYINDEX, class->kind);
}

void mr_class_open_index(lua_State *L, const mr_class *class, lua_CFunction index) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, class->kind);
    mr_push_module(L);
    lua_getfield(L, -2, "methods");
    lua_getfield(L, -3, "getters");
    lua_pushlightuserdata(L, (void *)class);
    lua_pushcclosure(L, index, 4);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void mr_class_extend(lua_State *L, const mr_class *part) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, part->kind);
    lua_getfield(L, -1, "methods");
    for (const mr_function *const *f = part->functions; *f; f++) {
        bool meta = strncmp((*f)->name, "__", 2) == 0;
        push_function(L, *f);
        lua_setfield(L, meta ? -3 : -2, (*f)->name);
    }
    lua_getfield(L, -2, "getters");
    set_getters(L, part);
    lua_pop(L, 3);
}
