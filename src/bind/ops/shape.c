/* Shapes, dims and indices as scripts write them: counted from 1, negative ones from the end, spread
 * over arguments or in a table. Below bind/ everything counts from 0. */
#include <inttypes.h>
#include <math.h>

#include "base/number.h"
#include "bind/ops/shape.h"

bool mr_whole_number(lua_State *L, int index, lua_Integer *out_number) {
    int ok = 0;
    /* lua_tointegerx would also take strings. */
    if (lua_type(L, index) == LUA_TNUMBER) *out_number = lua_tointegerx(L, index, &ok);
    return ok;
}

/* "1.5", "nan", "a string": a message's text for a value given in place of a whole number. */
static const char *shown(lua_State *L, int index, char out[MR_NUMBER_TEXT]) {
    if (lua_type(L, index) != LUA_TNUMBER) return mr_type_text(L, index);
    return mr_number_text(lua_tonumber(L, index), out);
}

/* Reads `f(3, 4)` and `f({3, 4})` alike; `word` is "size" or "dim". */
static int check_whole_numbers(lua_State *L, const char *what, const char *word, int first,
                               int last, lua_Integer *out_numbers) {
    char number[MR_NUMBER_TEXT];
    bool table = last == first && lua_type(L, first) == LUA_TTABLE;
    lua_Integer count = table ? (lua_Integer)lua_rawlen(L, first) : last - first + 1;
    if (table && !mr_is_list(L, first))
        return mr_misuse(L,
                         "%s: expected a list of %ss such as {3, 4}, got a table with other keys",
                         what, word);
    if (count > MR_MAX_DIMS)
        return mr_misuse(L, "%s: %" PRId64 " %ss given: a tensor has at most %d dims", what,
                         (int64_t)count, word, MR_MAX_DIMS);
    for (int i = 0; i < (int)count; i++) {
        int index = first + i;
        if (table) {
            lua_rawgeti(L, first, i + 1);
            index = lua_gettop(L);
        }
        if (!mr_whole_number(L, index, &out_numbers[i]))
            return mr_misuse(L, "%s: %s %d is %s, expected a whole number", what, word, i + 1,
                             shown(L, index, number));
        if (table) lua_pop(L, 1);
    }
    return count < 0 ? 0 : (int)count;
}

int mr_check_shape(lua_State *L, const char *what, int first, int last, int64_t *out_shape) {
    lua_Integer sizes[MR_MAX_DIMS];
    int ndim = check_whole_numbers(L, what, "size", first, last, sizes);
    for (int i = 0; i < ndim; i++) out_shape[i] = sizes[i];
    return ndim;
}

/* A table with a list and names in it: {3, 4, dtype="f64"}. */
static bool is_mixed(lua_State *L, int index) {
    return lua_type(L, index) == LUA_TTABLE && lua_rawlen(L, index) > 0 && !mr_is_list(L, index);
}

void mr_check_no_name(lua_State *L, const char *what, const char *example, int index) {
    mr_dtype dtype;
    if (lua_type(L, index) != LUA_TSTRING) return;
    if (mr_dtype_find(lua_tostring(L, index), &dtype))
        mr_misuse(L, "%s: sizes and options are separate tables: mr.%s(%s, {dtype=\"f64\"})", what,
                  what, example);
    mr_misuse(L, "%s: sizes and options are separate tables: mr.%s(%s, {device=\"%.20s\"})", what,
              what, example, lua_tostring(L, index));
}

int mr_check_new_shape(lua_State *L, const char *what, int first, int last, int64_t *out_shape) {
    int64_t numel;
    if (last > first) mr_check_no_name(L, what, "{3, 4}", last);
    if (last >= first && is_mixed(L, last))
        return mr_misuse(
            L, "%s: sizes and options are separate tables: mr.%s({3, 4}, {dtype=\"f64\"})", what,
            what);
    int ndim = mr_check_shape(L, what, first, last, out_shape);
    for (int i = 0; i < ndim; i++)
        if (out_shape[i] < 0)
            return mr_misuse(L, "%s: size %d is %" PRId64 ", expected 0 or more", what, i + 1,
                             out_shape[i]);
    mr_raise(L, mr_shape_numel(ndim, out_shape, &numel));
    return ndim;
}

bool mr_is_list(lua_State *L, int index) {
    index = lua_absindex(L, index);
    lua_pushnil(L);
    while (lua_next(L, index)) {
        bool named = lua_type(L, -2) == LUA_TSTRING;
        lua_pop(L, 1);
        if (named) {
            lua_pop(L, 1);
            return false;
        }
    }
    return true;
}

static bool is_empty(lua_State *L, int index) {
    lua_pushnil(L);
    if (!lua_next(L, index)) return true;
    lua_pop(L, 2);
    return false;
}

int mr_split_options(lua_State *L, int list, int *out_options) {
    int last = lua_gettop(L);
    *out_options = 0;
    if (last < 1 || lua_type(L, last) != LUA_TTABLE) return last;
    if (!mr_is_list(L, last) || (last > list && is_empty(L, last))) *out_options = last--;
    return last;
}

static int resolve_dim(lua_State *L, const char *what, lua_Integer dim, int ndim) {
    int resolved;
    if (dim == 0) return mr_misuse(L, "%s: there is no dim 0: dims count from 1", what);
    mr_raise(L, mr_dim_resolve(ndim, dim > 0 ? dim - 1 : dim, what, &resolved));
    return resolved;
}

int mr_check_dim(lua_State *L, const char *what, int arg, int ndim) {
    return resolve_dim(L, what, mr_check_integer(L, arg), ndim);
}

int mr_check_dims(lua_State *L, const char *what, int first, int last, int ndim, int *out_dims) {
    lua_Integer dims[MR_MAX_DIMS];
    int count = check_whole_numbers(L, what, "dim", first, last, dims);
    for (int i = 0; i < count; i++) out_dims[i] = resolve_dim(L, what, dims[i], ndim);
    return count;
}

int64_t mr_check_index(lua_State *L, const mr_tensor *t, int dim, int index) {
    char name[160], shape[128], number[MR_NUMBER_TEXT];
    lua_Integer i = 0;
    if (!mr_whole_number(L, index, &i)) {
        mr_misuse(L, "%s: index %d is %s, expected a whole number",
                  mr_tensor_describe(t, name, sizeof name), dim + 1, shown(L, index, number));
        return 0;
    }
    int64_t size = t->shape[dim];
    if (i >= 1 && i <= size) return i - 1;
    if (i < 0 && i >= -size) return size + i;
    mr_misuse(L, "%s: index %" PRId64 " is outside dim %d of shape %s%s",
              mr_tensor_describe(t, name, sizeof name), (int64_t)i, dim + 1,
              mr_shape_text(t->ndim, t->shape, shape, sizeof shape),
              i == 0 ? ": elements count from 1" : "");
    return 0;
}

/* "{64, 2}" */
static int sizes_text(lua_State *L) {
    luaL_Buffer text;
    lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
    luaL_buffinit(L, &text);
    luaL_addchar(&text, '{');
    for (lua_Integer i = 1; i <= count; i++) {
        if (i > 1) luaL_addstring(&text, ", ");
        lua_rawgeti(L, 1, i);
        luaL_tolstring(L, -1, NULL);
        lua_remove(L, -2);
        luaL_addvalue(&text);
    }
    luaL_addchar(&text, '}');
    luaL_pushresult(&text);
    return 1;
}

/* Two lists with the same sizes are equal, as in PyTorch. */
static int same_sizes(lua_State *L) {
    lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
    bool is_same = count == (lua_Integer)lua_rawlen(L, 2);
    for (lua_Integer i = 1; is_same && i <= count; i++) {
        lua_rawgeti(L, 1, i);
        lua_rawgeti(L, 2, i);
        is_same = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    lua_pushboolean(L, is_same);
    return 1;
}

static const char sizes_metatable; /* its address is a registry key */

/* All lists of sizes share it. */
static void push_sizes_metatable(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &sizes_metatable) != LUA_TNIL) return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 3);
    lua_pushcfunction(L, same_sizes);
    lua_setfield(L, -2, "__eq");
    lua_pushcfunction(L, sizes_text);
    lua_setfield(L, -2, "__tostring");
    lua_pushliteral(L, "millrace.shape");
    lua_setfield(L, -2, "__metatable");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &sizes_metatable);
}

void mr_push_shape(lua_State *L, int ndim, const int64_t *shape) {
    lua_createtable(L, ndim, 0);
    for (int i = 0; i < ndim; i++) {
        lua_pushinteger(L, shape[i]);
        lua_rawseti(L, -2, i + 1);
    }
    push_sizes_metatable(L);
    lua_setmetatable(L, -2);
}

void mr_push_scalar(lua_State *L, mr_dtype dtype, mr_scalar value) {
    switch (mr_dtype_category(dtype)) {
    case 0: lua_pushboolean(L, value.f != 0); break;
    case 1: lua_pushinteger(L, value.i); break;
    default: lua_pushnumber(L, isnan(value.f) ? fabs(value.f) : value.f); break; /* no "-nan" */
    }
}
