/* Indexing: t[i], t[{...}] and their assignment. A whole index becomes one view in one step. */
#include <inttypes.h>
#include <string.h>

#include "bind/open.h"
#include "bind/ops/row.h"
#include "bind/ops/shape.h"
#include "bind/tensor/tensor.h"

typedef struct {
    int ndim;
    int64_t shape[MR_MAX_DIMS], stride[MR_MAX_DIMS], offset;
} view;

static void keep(view *v, const mr_tensor *t, int dim) {
    v->shape[v->ndim] = t->shape[dim];
    v->stride[v->ndim++] = t->stride[dim];
}

/* One end of a range, as its position from 0. An end that is outside counts as the nearest one of `low` and `high`, as
 * in PyTorch and string.sub; with `exact` it is an error. */
static int64_t range_end(lua_State *L, const mr_tensor *t, int dim, int range, int entry,
                         int64_t low, int64_t high, bool exact) {
    char name[160];
    lua_Integer i;
    lua_rawgeti(L, range, entry);
    if (!mr_whole_number(L, -1, &i))
        mr_misuse(L, "%s: range for dim %d: entry %d is %s, expected a whole number",
                  mr_tensor_describe(t, name, sizeof name), dim + 1, entry, mr_type_text(L, -1));
    lua_pop(L, 1);
    int64_t at = i < 0 ? t->shape[dim] + i : i - 1;
    if (i != 0 && !exact) return at < low ? low : at > high ? high : at;
    if (i == 0 || at < low || at > high)
        mr_misuse(L,
                  "%s: %" PRId64 " in the range for dim %d is outside its %" PRId64 " elements%s",
                  mr_tensor_describe(t, name, sizeof name), (int64_t)i, dim + 1, t->shape[dim],
                  i == 0 ? ": elements count from 1" : "");
    return at;
}

static lua_Integer range_step(lua_State *L, const mr_tensor *t, int dim, int range) {
    char name[160];
    lua_Integer step;
    lua_rawgeti(L, range, 3);
    if (!mr_whole_number(L, -1, &step) || step < 1)
        mr_misuse(L,
                  "%s: the step of the range for dim %d is %s, expected a whole number of at least "
                  "1; x:flip(%d) reverses the dim",
                  mr_tensor_describe(t, name, sizeof name), dim + 1,
                  lua_isinteger(L, -1) ? lua_tostring(L, -1) : mr_type_text(L, -1), dim + 1);
    lua_pop(L, 1);
    return step;
}

/* {} all, {i} one that keeps its dim, {first, last [, step]}. `last` before `first` gives an empty range, as in
 * string.sub and numeric loops. */
static void add_range(lua_State *L, view *v, const mr_tensor *t, int dim, int range) {
    char name[160];
    int entries = (int)lua_rawlen(L, range);
    lua_Integer step = 1;
    if (entries == 0 && mr_is_list(L, range)) {
        keep(v, t, dim);
        return;
    }
    if (entries < 1 || entries > 3 || !mr_is_list(L, range))
        mr_misuse(L,
                  "%s: the range for dim %d is not {}, {i}, {first, last} or {first, last, step}",
                  mr_tensor_describe(t, name, sizeof name), dim + 1);
    int64_t size = t->shape[dim];
    if (entries == 3) /* read before the ends, since its sign decides their meaning */
        step = range_step(L, t, dim, range);
    bool one = entries == 1;
    int64_t first = range_end(L, t, dim, range, 1, 0, one ? size - 1 : size, one);
    int64_t last = one ? first : range_end(L, t, dim, range, 2, first - 1, size - 1, false);
    if (step > size)
        step = size ? size : 1; /* one element anyway; and the stride cannot overflow */
    v->shape[v->ndim] = (last - first + step) / step;
    v->stride[v->ndim++] = t->stride[dim] * step;
    v->offset += v->shape[v->ndim - 1] ? first * t->stride[dim] : 0;
}

/* The table of t[{...}] at `index`. */
static int add_entries(lua_State *L, view *v, const mr_tensor *t, int index) {
    char name[160];
    int entries = (int)lua_rawlen(L, index);
    if (!mr_is_list(L, index))
        mr_misuse(L,
                  "%s: expected an index such as t[{1, {2, 3}}]: a number or a range for each dim",
                  mr_tensor_describe(t, name, sizeof name));
    if (entries > t->ndim)
        mr_misuse(L, "%s: %d indices for a tensor of %d dims",
                  mr_tensor_describe(t, name, sizeof name), entries, t->ndim);
    for (int dim = 0; dim < entries; dim++) {
        lua_rawgeti(L, index, dim + 1);
        int entry = lua_gettop(L);
        if (lua_type(L, entry) == LUA_TTABLE) add_range(L, v, t, dim, entry);
        else if (lua_type(L, entry) == LUA_TNUMBER)
            v->offset += mr_check_index(L, t, dim, entry) * t->stride[dim];
        else
            mr_misuse(L,
                      "%s: the index for dim %d is %s, expected a number or a range such as {1, "
                      "3}%s",
                      mr_tensor_describe(t, name, sizeof name), dim + 1, mr_type_text(L, entry),
                      mr_test(L, entry, &mr_kind_tensor)
                          ? "; x:index_select(dim, index) selects by a tensor"
                          : "");
        lua_pop(L, 1);
    }
    return entries;
}

/* Pushes the view of `t` that the key at `index` describes. */
static mr_tensor *push_view(lua_State *L, const mr_caller *caller, mr_tensor *t, int index) {
    view v = {.offset = t->offset};
    char name[160];
    int used = 1;
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        if (t->ndim == 0)
            mr_misuse(L, "%s: a 0-dim tensor cannot be indexed: t:item() reads its value",
                      mr_tensor_describe(t, name, sizeof name));
        v.offset += mr_check_index(L, t, 0, index) * t->stride[0];
        break;
    case LUA_TTABLE: used = add_entries(L, &v, t, index); break;
    default:
        mr_misuse(L,
                  "%s: %s cannot be an index: expected a number, a table of numbers and ranges, or "
                  "a tensor of integers or bools",
                  mr_tensor_describe(t, name, sizeof name), mr_type_text(L, index));
    }
    for (int dim = used; dim < t->ndim; dim++) keep(&v, t, dim);
    mr_tensor **slot = mr_new_view(L, 1);
    mr_raise(L, mr_tensor_view(caller, t, (mr_dtype)t->dtype, v.ndim, v.shape, v.stride, v.offset,
                               slot));
    return *slot;
}

/* --- ipairs --------------------------------------------------------------------------------------- */

/* its address is the registry key of the function that ipairs returns */
static const char ipairs_step;

void mr_open_tensor_index(lua_State *L) {
    if (lua_getglobal(L, "ipairs") == LUA_TFUNCTION) {
        lua_newtable(L);
        lua_call(L, 1, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &ipairs_step);
    } else {
        lua_pop(L, 1);
    }
}

bool mr_tensor_ends_ipairs(lua_State *L) {
    lua_Debug caller;
    const mr_tensor *t = mr_test_tensor(L, 1);
    if (!t || t->ndim == 0 || lua_tointeger(L, 2) != t->shape[0] + 1) return false;
    if (!lua_getstack(L, 1, &caller)) return false;
    lua_getinfo(L, "f", &caller);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &ipairs_step);
    bool is_ipairs = lua_iscfunction(L, -1) && lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is_ipairs;
}

/* --- the metamethods ------------------------------------------------------------------------------ */

int mr_tensor_get_index(lua_State *L) {
    mr_caller caller = mr_enter(L);
    push_view(L, &caller, mr_check_tensor(L, 1), 2);
    return 1;
}

/* Copies to the view at the top. As in PyTorch, dims of size 1 in front of those of the view do not count. */
static void copy_to_view(lua_State *L, const mr_caller *caller, mr_tensor *to, mr_tensor *from) {
    int extra = 0;
    while (from->ndim - extra > to->ndim && from->shape[extra] == 1) extra++;
    if (extra) {
        mr_tensor **slot = mr_new_tensor(L);
        mr_raise(L, mr_tensor_view(caller, from, (mr_dtype)from->dtype, from->ndim - extra,
                                   from->shape + extra, from->stride + extra, from->offset, slot));
        from = *slot;
    }
    mr_raise(L, mr_copy(caller, to, from, NULL, false));
}

int mr_tensor_set_index(lua_State *L) {
    mr_caller caller = mr_enter_as(L, "t[i]=");
    mr_tensor *t = mr_check_tensor(L, 1);
    char name[160];
    if (mr_is_scalar(L, 3)) {
        mr_scalar value = mr_check_scalar(L, 3);
        mr_raise(L, mr_fill_with(&caller, push_view(L, &caller, t, 2), value));
    } else if (mr_test(L, 3, &mr_kind_tensor)) {
        mr_tensor *source = mr_check_tensor(L, 3);
        copy_to_view(L, &caller, push_view(L, &caller, t, 2), source);
    } else {
        return mr_misuse(L, "%s: cannot assign %s: expected a number, a boolean or a tensor",
                         mr_tensor_describe(t, name, sizeof name), mr_type_text(L, 3));
    }
    return 0;
}
