/* Tensors made from several others. Each part is copied into a view of the result, in the current
 * stream. */
#include <inttypes.h>

#include "bind/open.h"
#include "bind/placement.h"
#include "bind/record.h"
#include "bind/shape.h"
#include "bind/tensor.h"

/* The tensors listed at argument 1, in an array that is pushed. */
static mr_tensor **check_parts(lua_State *L, const char *what, int *out_count) {
    if (lua_type(L, 1) != LUA_TTABLE) mr_bad_argument(L, 1, "a list of tensors");
    if (lua_rawlen(L, 1) == 0) mr_misuse(L, "%s: the list of tensors is empty", what);
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            mr_misuse(L,
                      "%s: the list of tensors has a field `%s`: the dim is a second argument, "
                      "%s({a, b}, dim)",
                      what, lua_tostring(L, -2), what);
    mr_tensor **parts = mr_check_tensors(L, 1, what, out_count);
    if (*out_count == 0) mr_misuse(L, "%s: the list of tensors is empty", what);
    return parts;
}

/* As in PyTorch, an empty vector joins with anything: cat may begin with one and add to it in a loop. */
static bool is_nothing(const mr_tensor *t) {
    return t->ndim == 1 && t->shape[0] == 0;
}

/* The part whose shape the others must have. */
static const mr_tensor *model_of(mr_tensor *const *parts, int count) {
    for (int i = 0; i < count; i++)
        if (!is_nothing(parts[i])) return parts[i];
    return parts[0];
}

/* All parts must be in one place and agree in all dims but `free_dim` (-1: in all); returns the dtype
 * that can hold them all, and in *out_sum their sizes in that dim together. With a free dim, empty vectors pass. */
static mr_dtype check_sizes(lua_State *L, const char *what, mr_tensor **parts, int count,
                            const mr_tensor *first, int free_dim, int64_t *out_sum) {
    mr_dtype dtype = (mr_dtype)first->dtype;
    char shape[128], expected[128];
    *out_sum = 0;
    for (int i = 0; i < count; i++) {
        const mr_tensor *t = parts[i];
        mr_check_same_place(L, what, first, t);
        dtype = mr_dtype_promote(dtype, (mr_dtype)t->dtype);
        if (free_dim >= 0 && is_nothing(t)) continue;
        bool same = t->ndim == first->ndim;
        for (int d = 0; same && d < t->ndim; d++)
            same = d == free_dim || t->shape[d] == first->shape[d];
        if (!same)
            mr_misuse(L, "%s: entry %d has the shape %s, which does not match %s", what, i + 1,
                      mr_shape_text(t->ndim, t->shape, shape, sizeof shape),
                      mr_shape_text(first->ndim, first->shape, expected, sizeof expected));
        if (free_dim >= 0 && __builtin_add_overflow(*out_sum, t->shape[free_dim], out_sum))
            mr_misuse(L, "%s: the result would have too many elements", what);
    }
    return dtype;
}

/* Copies `source` into the view that `status` says was made in the box at the top, which is dropped;
 * the result below it too when something fails. */
static void fill_part(lua_State *L, const mr_caller *caller, mr_status status, mr_tensor *source) {
    mr_tensor **view = mr_test(L, -1, &mr_kind_tensor);
    if (!status) status = mr_copy(caller, *view, source, NULL, true);
    mr_let_go(L, -1);
    lua_pop(L, 1);
    mr_finish_new(L, status);
}

MR_RECORDED_FUNCTION(
    joining_cat, "cat", "mr.cat(tensors: tensor[] [, dim: integer=1]) -> tensor",
    "Concatenates the tensors along a dim. All other sizes must be equal, but a vector without "
    "elements joins with anything. The dtype of the result is the one to which their dtypes "
    "promote.") {
    mr_caller caller = mr_enter_as(L, "cat");
    bool dim_given = !lua_isnoneornil(L, 2);
    int count;
    mr_tensor **parts = check_parts(L, "cat", &count);
    const mr_tensor *first = model_of(parts, count);
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS], sum, start = 0;
    if (first->ndim == 0)
        return mr_misuse(L, "cat: 0-dim tensors cannot be concatenated: use stack");
    int dim = dim_given ? mr_check_dim(L, "cat", 2, first->ndim) : 0;
    mr_check_new_options(L, 0, first, MR_F32, &options);
    options.dtype = check_sizes(L, "cat", parts, count, first, dim, &sum);
    for (int d = 0; d < first->ndim; d++) shape[d] = d == dim ? sum : first->shape[d];
    mr_tensor *result = mr_push_empty(L, &caller, &options, first->ndim, shape);
    for (int i = 0; i < count; i++) {
        mr_check_stop(L, caller.machine, i + 1, "joining tensors");
        if (is_nothing(parts[i])) continue;
        int64_t length = parts[i]->shape[dim];
        mr_tensor **view = mr_new_tensor(L);
        mr_status status = mr_tensor_narrow(&caller, result, dim, start, length, 1, view);
        fill_part(L, &caller, status, parts[i]);
        start += length;
    }
    return 1;
}

MR_RECORDED_FUNCTION(
    joining_stack, "stack", "mr.stack(tensors: tensor[] [, dim: integer=1]) -> tensor",
    "Joins tensors of the same shape along a new dim. The dtype of the result is the one "
    "to which their dtypes promote.") {
    mr_caller caller = mr_enter_as(L, "stack");
    bool dim_given = !lua_isnoneornil(L, 2);
    int count;
    mr_tensor **parts = check_parts(L, "stack", &count);
    const mr_tensor *first = parts[0];
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS], sum;
    if (first->ndim == MR_MAX_DIMS)
        return mr_misuse(L, "stack: the result would have more than %d dims", MR_MAX_DIMS);
    int dim = dim_given ? mr_check_dim(L, "stack", 2, first->ndim + 1) : 0;
    mr_check_new_options(L, 0, first, MR_F32, &options);
    options.dtype = check_sizes(L, "stack", parts, count, first, -1, &sum);
    for (int d = 0; d < dim; d++) shape[d] = first->shape[d];
    shape[dim] = count;
    for (int d = dim; d < first->ndim; d++) shape[d + 1] = first->shape[d];
    mr_tensor *result = mr_push_empty(L, &caller, &options, first->ndim + 1, shape);
    for (int i = 0; i < count; i++) {
        mr_check_stop(L, caller.machine, i + 1, "joining tensors");
        mr_tensor **view = mr_new_tensor(L);
        fill_part(L, &caller, mr_tensor_select(&caller, result, dim, i, view), parts[i]);
    }
    return 1;
}

static const mr_function *const functions[] = {&joining_cat_function, &joining_stack_function,
                                               NULL};

const mr_class mr_joining_class = {"mr", "Joining tensors.", functions, NULL, NULL};

void mr_open_joining(lua_State *L) {
    mr_table_open(L, &mr_joining_class);
}
