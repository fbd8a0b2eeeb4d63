/* Tensors made from several others. Each part is copied into a view of the result, in the current
 * stream. */
#include <inttypes.h>

#include "bind/open.h"
#include "bind/tensor/placement.h"
#include "bind/record.h"
#include "bind/ops/row.h"
#include "bind/ops/shape.h"
#include "bind/tensor/tensor.h"

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

/* As in PyTorch, an empty vector can be joined with any tensor: a loop may begin with one and add to it by cat. */
static bool is_nothing(const mr_tensor *t) {
    return t->ndim == 1 && t->shape[0] == 0;
}

/* The part that decides the shape of the others. */
static const mr_tensor *model_of(mr_tensor *const *parts, int count) {
    for (int i = 0; i < count; i++)
        if (!is_nothing(parts[i])) return parts[i];
    return parts[0];
}

/* All parts must be in one place and agree in all dims but `free_dim` (-1: in all). Returns the dtype
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

/* The options may come in the place of the dim. *out_given: there is a dim. */
static mr_option_slots check_more(lua_State *L, const mr_function *function, bool *out_given) {
    static const char *const known[] = {"out", NULL};
    int at = lua_istable(L, 2) ? 2 : 3;
    *out_given = at == 3 && !lua_isnoneornil(L, 2);
    mr_no_arguments_behind(L, at, function);
    return mr_check_options(L, at, known);
}

/* Where the result goes. */
typedef struct {
    const char *name;
    mr_tensor **parts;
    int count;
    mr_dtype dtype; /* to which theirs promote */
    int ndim;
    int64_t shape[MR_MAX_DIMS];
} joined;

static void check_out(lua_State *L, const joined *j, const mr_tensor *out) {
    char name[160], own[192], wanted[192];
    mr_check_same_place(L, j->name, j->parts[0], out);
    bool fits = out->ndim == j->ndim;
    for (int d = 0; fits && d < j->ndim; d++) fits = out->shape[d] == j->shape[d];
    mr_tensor_describe(out, name, sizeof name);
    if (!fits)
        mr_misuse(L, "%s: the result is %s, but %s is %s", j->name,
                  mr_shape_text(j->ndim, j->shape, wanted, sizeof wanted), name,
                  mr_shape_text(out->ndim, out->shape, own, sizeof own));
    if (mr_dtype_category(j->dtype) > mr_dtype_category((mr_dtype)out->dtype))
        mr_misuse(L, "%s: the result is %s and cannot be written to %s, which is %s", j->name,
                  mr_dtype_text(j->dtype), name, mr_dtype_text((mr_dtype)out->dtype));
    for (int i = 0; i < j->count; i++)
        if (mr_tensor_may_overlap(out, j->parts[i]))
            mr_misuse(L, "%s: %s shares memory with entry %d: use another tensor as out", j->name,
                      name, i + 1);
}

/* Pushes `out`, or a new tensor. */
static mr_tensor *push_joined(lua_State *L, const mr_caller *caller, const joined *j,
                              const mr_option_slots *more, mr_new_options *options) {
    int at = mr_option_at(L, more, "out");
    options->dtype = j->dtype;
    if (!at) return mr_push_empty(L, caller, options, j->ndim, j->shape);
    mr_tensor *out = mr_check_tensor(L, at);
    check_out(L, j, out);
    lua_pushvalue(L, at);
    return out;
}

/* Copies `source` into the view in the box at the top, if `status` is MR_OK, and drops that box. After an error it also
 * drops a new result below it. */
static void fill_part(lua_State *L, const mr_caller *caller, const mr_option_slots *more,
                      mr_status status, mr_tensor *source) {
    mr_tensor **view = mr_test(L, -1, &mr_kind_tensor);
    if (!status) status = mr_copy(caller, *view, source, NULL, true);
    mr_let_go(L, -1);
    lua_pop(L, 1);
    if (mr_option_at(L, more, "out")) mr_raise(L, status);
    mr_finish_new(L, status);
}

MR_RECORDED_FUNCTION(
    joining_cat, "cat", "mr.cat(tensors: tensor[] [, dim: integer=1] [, {out: tensor}]) -> tensor",
    "Concatenates the tensors along a dim. All other sizes must be equal, but a vector without "
    "elements joins with anything. The dtype of the result is the one to which their dtypes "
    "promote. With `out`, writes there and returns it.") {
    mr_caller caller = mr_enter_as(L, "cat");
    bool dim_given;
    mr_option_slots more = check_more(L, &joining_cat_function, &dim_given);
    joined j = {.name = "cat"};
    j.parts = check_parts(L, "cat", &j.count);
    const mr_tensor *first = model_of(j.parts, j.count);
    mr_new_options options;
    int64_t sum, start = 0;
    j.ndim = first->ndim;
    if (j.ndim == 0) return mr_misuse(L, "cat: 0-dim tensors cannot be concatenated: use stack");
    int dim = dim_given ? mr_check_dim(L, "cat", 2, first->ndim) : 0;
    mr_check_new_options(L, 0, first, MR_F32, &options);
    j.dtype = check_sizes(L, "cat", j.parts, j.count, first, dim, &sum);
    for (int d = 0; d < j.ndim; d++) j.shape[d] = d == dim ? sum : first->shape[d];
    mr_tensor *result = push_joined(L, &caller, &j, &more, &options);
    for (int i = 0; i < j.count; i++) {
        mr_check_stop(L, caller.machine, i + 1, "joining tensors");
        if (is_nothing(j.parts[i])) continue;
        int64_t length = j.parts[i]->shape[dim];
        mr_tensor **view = mr_new_tensor(L);
        mr_status status = mr_tensor_narrow(&caller, result, dim, start, length, 1, view);
        fill_part(L, &caller, &more, status, j.parts[i]);
        start += length;
    }
    return 1;
}

MR_RECORDED_FUNCTION(
    joining_stack, "stack",
    "mr.stack(tensors: tensor[] [, dim: integer=1] [, {out: tensor}]) -> tensor",
    "Joins tensors of the same shape along a new dim. The dtype of the result is the one "
    "to which their dtypes promote. With `out`, writes there and returns it.") {
    mr_caller caller = mr_enter_as(L, "stack");
    bool dim_given;
    mr_option_slots more = check_more(L, &joining_stack_function, &dim_given);
    joined j = {.name = "stack"};
    j.parts = check_parts(L, "stack", &j.count);
    const mr_tensor *first = j.parts[0];
    mr_new_options options;
    int64_t sum;
    j.ndim = first->ndim + 1;
    if (first->ndim == MR_MAX_DIMS)
        return mr_misuse(L, "stack: the result would have more than %d dims", MR_MAX_DIMS);
    int dim = dim_given ? mr_check_dim(L, "stack", 2, j.ndim) : 0;
    mr_check_new_options(L, 0, first, MR_F32, &options);
    j.dtype = check_sizes(L, "stack", j.parts, j.count, first, -1, &sum);
    for (int d = 0; d < dim; d++) j.shape[d] = first->shape[d];
    j.shape[dim] = j.count;
    for (int d = dim; d < first->ndim; d++) j.shape[d + 1] = first->shape[d];
    mr_tensor *result = push_joined(L, &caller, &j, &more, &options);
    for (int i = 0; i < j.count; i++) {
        mr_check_stop(L, caller.machine, i + 1, "joining tensors");
        mr_tensor **view = mr_new_tensor(L);
        mr_status status = mr_tensor_select(&caller, result, dim, i, view);
        fill_part(L, &caller, &more, status, j.parts[i]);
    }
    return 1;
}

static const mr_function *const functions[] = {&joining_cat_function, &joining_stack_function,
                                               NULL};

const mr_class mr_joining_class = {"mr", "Joining tensors.", functions, NULL, NULL};

void mr_open_joining(lua_State *L) {
    mr_table_open(L, &mr_joining_class);
}
