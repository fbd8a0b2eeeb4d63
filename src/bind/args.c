/* Checks of arguments and of the contents of a script's tables. Each error names the function, the place
 * and the value that was given.
 *
 * A table of the script is read here once, without any allocation in between, so no collector and no Lua
 * code runs meanwhile. Its values stay on the stack, or are kept by a value on the stack, until the call
 * ends. Easiest to break: using a value of the script's table after it was popped, or reading the table a
 * second time. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "bind/foreign.h"
#include "bind/internal.h"
#include "bind/nearest.h"

void *mr_check(lua_State *L, int arg, const mr_kind *kind) {
    void *object = mr_test(L, arg, kind);
    if (!object) mr_bad_argument(L, arg, kind->text);
    return object;
}

lua_Integer mr_check_integer(lua_State *L, int arg) {
    int is_integer;
    lua_Integer value = lua_tointegerx(L, arg, &is_integer);
    if (is_integer && lua_type(L, arg) == LUA_TNUMBER) return value;
    if (lua_type(L, arg) != LUA_TNUMBER) return mr_bad_argument(L, arg, "an integer");
    char got[MR_NUMBER_TEXT];
    return mr_bad_argument_as(L, arg, "an integer", mr_number_text(lua_tonumber(L, arg), got));
}

bool mr_is_scalar(lua_State *L, int arg) {
    int type = lua_type(L, arg);
    return type == LUA_TNUMBER || type == LUA_TBOOLEAN;
}

mr_scalar mr_check_scalar(lua_State *L, int arg) {
    if (lua_isboolean(L, arg)) {
        int64_t truth = lua_toboolean(L, arg);
        return (mr_scalar){true, true, truth, (double)truth};
    }
    if (lua_type(L, arg) != LUA_TNUMBER) mr_bad_argument(L, arg, "a number");
    if (lua_isinteger(L, arg)) {
        lua_Integer i = lua_tointeger(L, arg);
        return (mr_scalar){true, false, i, (double)i};
    }
    return (mr_scalar){.f = lua_tonumber(L, arg)};
}

const char *mr_check_name(lua_State *L, int arg) {
    size_t size;
    if (lua_type(L, arg) != LUA_TSTRING) mr_bad_argument(L, arg, "a name (a string)");
    const char *text = lua_tolstring(L, arg, &size);
    if (size == 0 || size > MR_LONGEST_NAME)
        mr_misuse(L, "a name must have 1 to %d bytes, this one has %d", MR_LONGEST_NAME, (int)size);
    if (strlen(text) != size) mr_misuse(L, "a name cannot contain a NUL byte");
    return text;
}

/* --- options ------------------------------------------------------------------------------------ */

/* The place of a key among the known names; -1: it is not one of them. */
static int known_at(const char *const *known, const char *key, size_t size) {
    for (int i = 0; known[i]; i++)
        if (strcmp(known[i], key) == 0 && strlen(key) == size) return i;
    return -1;
}

/* "expected one of grid, block" */
static void push_list(lua_State *L, const char *const *names) {
    luaL_Buffer list;
    luaL_buffinit(L, &list);
    luaL_addstring(&list, names[1] ? "expected one of " : "expected ");
    for (const char *const *name = names; *name; name++) {
        if (name != names) luaL_addstring(&list, ", ");
        luaL_addstring(&list, *name);
    }
    luaL_pushresult(&list);
}

void mr_push_no_option(lua_State *L, const char *key, const char *const *known) {
    const char *here = NULL, *advice = mr_foreign_option(key, known, &here);
    lua_pushfstring(L, "there is no option `%s` here: ", key);
    mr_nearest nearest;
    mr_nearest_begin(&nearest, key);
    for (const char *const *name = known; *name; name++) mr_nearest_offer(&nearest, *name);
    const char *meant = mr_nearest_found(&nearest);
    if (advice && *advice) lua_pushstring(L, advice);
    else if (advice) lua_pushfstring(L, "write `%s`", here);
    else if (meant) lua_pushfstring(L, "did you mean `%s`?", meant);
    else if (!*known) lua_pushliteral(L, "expected none");
    else push_list(L, known);
    lua_concat(L, 2);
}

/* The key below the top of the stack, as the index of an option; raises if it is not an option. */
static int option_of_key(lua_State *L, const char *const *known, int count, bool positional) {
    size_t size;
    if (positional && lua_isinteger(L, -2)) {
        lua_Integer at = lua_tointeger(L, -2);
        if (at >= 1 && at <= count) return (int)at - 1;
        mr_misuse(L, "found a value at [%lld]: at most %d values are expected here", (long long)at,
                  count);
    }
    char number[MR_NUMBER_TEXT];
    if (lua_type(L, -2) == LUA_TNUMBER)
        mr_misuse(L, "options have the form {name=value}: found [%s] as a key",
                  mr_number_text(lua_tonumber(L, -2), number));
    if (lua_type(L, -2) != LUA_TSTRING)
        mr_misuse(L, "options have the form {name=value}: found %s as a key", mr_type_text(L, -2));
    const char *key = lua_tolstring(L, -2, &size);
    int at = known_at(known, key, size);
    if (at >= 0) return at;
    mr_push_no_option(L, key, known);
    return mr_misuse(L, "%s", lua_tostring(L, -1));
}

static bool is_place(const char *text) {
    static const char *const words[] = {"cpu", "cuda", "virtual", "device"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(text, words[i], strlen(words[i]))) return true;
    return false;
}

/* The option that the text probably means. */
static const char *option_of_text(const char *text, const char *const *known) {
    mr_dtype dtype;
    if (mr_dtype_find(text, &dtype)) return "dtype";
    return !is_place(text) && known_at(known, "name", 4) >= 0 ? "name" : "device";
}

/* Raises for a value in the place of the options table: it is probably one of the options. */
static int no_table(lua_State *L, int arg, const char *const *known) {
    char got[80];
    const char *text = lua_type(L, arg) == LUA_TSTRING ? lua_tostring(L, arg) : NULL;
    const char *name = NULL;
    if (text) name = option_of_text(text, known);
    else if (lua_isboolean(L, arg)) name = "non_blocking";
    if (!name || known_at(known, name, strlen(name)) < 0)
        return mr_bad_argument(L, arg, "a table of options");
    if (text) snprintf(got, sizeof got, "a string: write {%s=\"%.20s\"}", name, text);
    else snprintf(got, sizeof got, "%s: write {non_blocking=true}", mr_type_text(L, arg));
    return mr_bad_argument_as(L, arg, "a table of options", got);
}

static mr_option_slots check_table(lua_State *L, int arg, const char *const *known,
                                   bool positional) {
    mr_option_slots options = {known, 0};
    int count = 0;
    if (lua_isnoneornil(L, arg)) return options;
    if (!lua_istable(L, arg)) no_table(L, arg, known);
    while (known[count]) count++;
    luaL_checkstack(L, count + LUA_MINSTACK, "too many options");
    options.first = lua_gettop(L) + 1;
    lua_settop(L, options.first - 1 + count);
    for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1))
        lua_copy(L, -1, options.first + option_of_key(L, known, count, positional));
    return options;
}

mr_option_slots mr_check_options(lua_State *L, int arg, const char *const *known) {
    return check_table(L, arg, known, false);
}

mr_option_slots mr_check_fields(lua_State *L, int arg, const char *const *known) {
    return check_table(L, arg, known, true);
}

int mr_option_at(lua_State *L, const mr_option_slots *options, const char *name) {
    if (!options->first) return 0;
    int i = 0;
    while (options->known[i] != name && strcmp(options->known[i], name) != 0)
        i++; /* a getter asks only for known names */
    return lua_isnil(L, options->first + i) ? 0 : options->first + i;
}

int mr_bad_option(lua_State *L, int at, const char *name, const char *expected) {
    return mr_misuse(L, "option `%s`: expected %s, got %s", name, expected, mr_type_text(L, at));
}

bool mr_option_boolean(lua_State *L, const mr_option_slots *options, const char *name,
                       bool otherwise) {
    int at = mr_option_at(L, options, name);
    if (!at) return otherwise;
    if (!lua_isboolean(L, at)) mr_bad_option(L, at, name, "true or false");
    return lua_toboolean(L, at);
}

lua_Integer mr_option_integer(lua_State *L, const mr_option_slots *options, const char *name,
                              lua_Integer otherwise) {
    int is_integer, at = mr_option_at(L, options, name);
    if (!at) return otherwise;
    lua_Integer value = lua_tointegerx(L, at, &is_integer);
    if (lua_type(L, at) != LUA_TNUMBER || !is_integer) mr_bad_option(L, at, name, "an integer");
    return value;
}

lua_Number mr_option_number(lua_State *L, const mr_option_slots *options, const char *name,
                            lua_Number otherwise) {
    int at = mr_option_at(L, options, name);
    if (!at) return otherwise;
    if (lua_type(L, at) != LUA_TNUMBER) mr_bad_option(L, at, name, "a number");
    return lua_tonumber(L, at);
}

const char *mr_option_name(lua_State *L, const mr_option_slots *options, const char *name) {
    int at = mr_option_at(L, options, name);
    if (!at) return NULL;
    if (lua_type(L, at) != LUA_TSTRING) mr_bad_option(L, at, name, "a string");
    return mr_check_name(L, at);
}

int mr_last_option_type(lua_State *L, const char *name) {
    if (lua_gettop(L) == 0 || !lua_istable(L, -1)) return LUA_TNIL;
    lua_pushstring(L, name);
    int type = lua_rawget(L, -2);
    lua_pop(L, 1);
    return type;
}

/* --- lists of objects --------------------------------------------------------------------------- */

/* Entry `i` of the list, which is pushed: an open object of the class. */
static void *push_entry(lua_State *L, int list, lua_Integer i, const char *what,
                        const mr_kind *kind, mr_check_object *check) {
    lua_rawgeti(L, list, i);
    if (!mr_test(L, -1, kind))
        mr_misuse(L, "%s: entry %d is %s, expected %s", what, (int)i, mr_type_text(L, -1),
                  kind->text);
    return check(L, lua_gettop(L));
}

/* The value that is pushed keeps the objects: its user value is a list of our own. They are checked before it is made,
 * since a table with holes can have any length, and again afterwards, since a finalizer may have changed the list. */
void **mr_check_list(lua_State *L, int index, const char *what, const mr_kind *kind,
                     mr_check_object *check, int *out_count) {
    index = lua_absindex(L, index);
    luaL_checkstack(L, LUA_MINSTACK, "too many lists");
    lua_Integer count = (lua_Integer)lua_rawlen(L, index);
    if (count > INT_MAX) mr_misuse(L, "%s: the list is too long", what);
    for (lua_Integer i = 1; i <= count; i++) {
        push_entry(L, index, i, what, kind, check);
        lua_pop(L, 1);
    }
    void **objects = lua_newuserdatauv(L, (size_t)count * sizeof *objects + 1, 1);
    lua_createtable(L, (int)count, 0);
    for (lua_Integer i = 1; i <= count; i++) {
        objects[i - 1] = push_entry(L, index, i, what, kind, check);
        lua_rawseti(L, -2, i);
    }
    lua_setiuservalue(L, -2, 1);
    *out_count = (int)count;
    return objects;
}
