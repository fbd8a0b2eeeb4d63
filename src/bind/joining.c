/* Tensors out of several others. Each part is copied into a view of the result, in the current stream. */
#include <inttypes.h>

#include "bind/tensor.h"

/* Pushes a list of our own with the tensors listed at argument 1: nobody else can take them out of it. */
static int push_parts(lua_State *L, const char *what) {
    if (lua_type(L, 1) != LUA_TTABLE) mr_bad_argument(L, 1, "a list of tensors");
    int count = (int)lua_rawlen(L, 1);
    if (count == 0) mr_misuse(L, "%s: the list of tensors is empty", what);
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            mr_misuse(
                L,
                "%s: the list of tensors has a field `%s`: the dim is written behind the list, "
                "%s({a, b}, dim)",
                what, lua_tostring(L, -2), what);
    lua_createtable(L, count, 0);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, 1, i);
        if (!mr_test(L, -1, &mr_tensor_class))
            mr_misuse(L, "%s: entry %d is %s, expected a tensor", what, i, mr_type_text(L, -1));
        mr_check_tensor(L, lua_gettop(L));
        lua_rawseti(L, -2, i);
    }
    return count;
}

static mr_tensor *part(lua_State *L, int list, int i) {
    lua_rawgeti(L, list, i);
    mr_tensor *t = mr_check_tensor(L, lua_gettop(L));
    lua_pop(L, 1);
    return t;
}

/* All parts must be in one place and agree in all dims but `free_dim` (-1: in all); returns the dtype
 * that can hold them all, and in *out_sum their sizes in that dim together. */
static mr_dtype check_parts(lua_State *L, const char *what, int list, int count, int free_dim,
                            int64_t *out_sum) {
    const mr_tensor *first = part(L, list, 1);
    mr_dtype dtype = (mr_dtype)first->dtype;
    char shape[128], expected[128];
    *out_sum = 0;
    for (int i = 1; i <= count; i++) {
        const mr_tensor *t = part(L, list, i);
        mr_check_same_place(L, what, first, t);
        bool same = t->ndim == first->ndim;
        for (int d = 0; same && d < t->ndim; d++)
            same = d == free_dim || t->shape[d] == first->shape[d];
        if (!same)
            mr_misuse(L, "%s: entry %d has the shape %s, which does not go with %s", what, i,
                      mr_shape_text(t->ndim, t->shape, shape, sizeof shape),
                      mr_shape_text(first->ndim, first->shape, expected, sizeof expected));
        dtype = mr_dtype_promote(dtype, (mr_dtype)t->dtype);
        if (free_dim >= 0 && __builtin_add_overflow(*out_sum, t->shape[free_dim], out_sum))
            mr_misuse(L, "%s: the result would be too long", what);
    }
    return dtype;
}

/* Copies `source` into the view that `status` says was made in the box at the top, which is dropped;
 * the result below it too when something fails. */
static void fill_part(lua_State *L, mr_machine *machine, mr_status status, mr_tensor *source) {
    mr_tensor **view = mr_test(L, -1, &mr_tensor_class);
    if (!status) status = mr_copy(machine, *view, source, NULL, true);
    mr_let_go(L, -1);
    lua_pop(L, 1);
    mr_finish_new(L, status);
}

MR_FUNCTION(
    joining_cat, "cat", "mr.cat(tensors: tensor[] [, dim: integer=1]) -> tensor",
    "The tensors one after the other along a dim; all other sizes must agree. The dtype is the one "
    "that they promote to.") {
    mr_machine *machine = mr_enter_as(L, "cat");
    int count = push_parts(L, "cat"), list = lua_gettop(L);
    const mr_tensor *first = part(L, list, 1);
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS], sum, start = 0;
    if (first->ndim == 0)
        return mr_misuse(L, "cat: 0-dim tensors have no dim to be joined along: use stack");
    int dim = list < 3 || lua_isnil(L, 2) ? 0 : mr_check_dim(L, "cat", 2, first->ndim);
    mr_check_new_options(L, 0, first, MR_F32, &options);
    options.dtype = check_parts(L, "cat", list, count, dim, &sum);
    for (int d = 0; d < first->ndim; d++) shape[d] = d == dim ? sum : first->shape[d];
    mr_tensor *result = mr_push_empty(L, machine, &options, first->ndim, shape);
    for (int i = 1; i <= count; i++) {
        mr_tensor *t = part(L, list, i);
        mr_tensor **view = mr_new_tensor(L);
        mr_status status = mr_tensor_narrow(result, dim, start, t->shape[dim], 1, view);
        fill_part(L, machine, status, t);
        start += t->shape[dim];
    }
    return 1;
}

MR_FUNCTION(
    joining_stack, "stack", "mr.stack(tensors: tensor[] [, dim: integer=1]) -> tensor",
    "The tensors, all of one shape, side by side along a new dim. The dtype is the one that they "
    "promote to.") {
    mr_machine *machine = mr_enter_as(L, "stack");
    int count = push_parts(L, "stack"), list = lua_gettop(L);
    const mr_tensor *first = part(L, list, 1);
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS], sum;
    if (first->ndim == MR_MAX_DIMS)
        return mr_misuse(L, "stack: the result would have more than %d dims", MR_MAX_DIMS);
    int dim = list < 3 || lua_isnil(L, 2) ? 0 : mr_check_dim(L, "stack", 2, first->ndim + 1);
    mr_check_new_options(L, 0, first, MR_F32, &options);
    options.dtype = check_parts(L, "stack", list, count, -1, &sum);
    for (int d = 0; d < dim; d++) shape[d] = first->shape[d];
    shape[dim] = count;
    for (int d = dim; d < first->ndim; d++) shape[d + 1] = first->shape[d];
    mr_tensor *result = mr_push_empty(L, machine, &options, first->ndim + 1, shape);
    for (int i = 1; i <= count; i++) {
        mr_tensor *t = part(L, list, i);
        mr_tensor **view = mr_new_tensor(L);
        fill_part(L, machine, mr_tensor_select(result, dim, i - 1, view), t);
    }
    return 1;
}

static const mr_function *const functions[] = {&joining_cat_function, &joining_stack_function,
                                               NULL};

const mr_class mr_joining_class = {"mr", "Joining tensors.", functions, NULL};

void mr_open_joining(lua_State *L, mr_machine *machine) {
    mr_table_open(L, machine, &mr_joining_class);
}
