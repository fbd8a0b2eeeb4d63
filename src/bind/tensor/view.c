/* Views: tensors that use the memory of another tensor with a different shape. Nothing is copied or
 * submitted, except by reshape and flatten if a view cannot have the new shape. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include <string.h>

#include "bind/open.h"
#include "bind/tensor/placement.h"
#include "bind/record.h"
#include "bind/ops/row.h"
#include "bind/ops/shape.h"
#include "bind/tensor_box.h"

/* Pushes a contiguous copy of `t`, in the same kind of memory. */
static mr_tensor *push_copy(lua_State *L, const mr_caller *caller, mr_tensor *t) {
    mr_new_options options;
    mr_check_new_options(L, 0, t, (mr_dtype)t->dtype, &options);
    mr_tensor *copy = mr_push_empty(L, caller, &options, t->ndim, t->shape);
    mr_finish_new(L, mr_copy(caller, copy, t, NULL, false));
    return copy;
}

/* True if only a copy can have the shape; raises any other error. */
static bool not_viewable(lua_State *L, mr_status status) {
    if (!status) return false;
    if (status->code != MR_CODE_NOT_SUPPORTED) mr_raise(L, status);
    mr_error_destroy(status);
    return true;
}

/* Renames an error: both functions call one whose messages begin with the other's name. */
static mr_status as_view(mr_status status) {
    static const char other[] = "reshape: ";
    if (!status || strncmp(status->message, other, sizeof other - 1) != 0) return status;
    mr_status renamed = mr_fail(status->code, "view: %s", status->message + sizeof other - 1);
    mr_error_destroy(status);
    return renamed;
}

static int reshape(lua_State *L, const char *what, bool may_copy) {
    mr_caller caller = mr_enter_as(L, what);
    mr_tensor *t = mr_check_tensor(L, 1);
    int64_t shape[MR_MAX_DIMS];
    int ndim = mr_check_shape(L, what, 2, lua_gettop(L), shape);
    mr_tensor **slot = mr_new_view(L, 1);
    mr_status status = mr_tensor_reshape(&caller, t, ndim, shape, slot);
    if (!may_copy) mr_raise(L, as_view(status));
    if (!may_copy || !not_viewable(L, status)) return 1;
    mr_tensor *copy = push_copy(L, &caller, t);
    mr_raise(L, mr_tensor_reshape(&caller, copy, ndim, shape, slot));
    lua_pop(L, 1);
    return 1;
}

MR_RECORDED_FUNCTION(
    tensor_view, "view", "t:view(sizes: integer...) -> tensor",
    "Returns a view with the same elements in another shape. One size may be -1; it is "
    "computed from the others. If the strides do not allow a view, it is an error; reshape "
    "copies in that case.") {
    return reshape(L, "view", false);
}

MR_RECORDED_FUNCTION(
    tensor_reshape, "reshape", "t:reshape(sizes: integer...) -> tensor",
    "Returns the same elements in another shape. One size may be -1; it is computed from "
    "the others. The result is a view if the strides allow it, otherwise a copy.") {
    return reshape(L, "reshape", true);
}

MR_RECORDED_FUNCTION(
    tensor_flatten, "flatten", "t:flatten([first: integer=1, last: integer=-1]) -> tensor",
    "Joins the dims from `first` to `last` into one. The result is a view if the strides "
    "allow it, otherwise a copy.") {
    mr_caller caller = mr_enter_as(L, "flatten");
    mr_tensor *t = mr_check_tensor(L, 1);
    int first = 0, last = t->ndim ? t->ndim - 1 : 0;
    if (!lua_isnoneornil(L, 2)) first = mr_check_dim(L, "flatten", 2, t->ndim);
    if (!lua_isnoneornil(L, 3)) last = mr_check_dim(L, "flatten", 3, t->ndim);
    if (first > last)
        return mr_misuse(L, "flatten: first dim %d comes after last dim %d", first + 1, last + 1);
    mr_tensor **slot = mr_new_view(L, 1);
    if (!not_viewable(L, mr_tensor_flatten(&caller, t, first, last, slot))) return 1;
    mr_tensor *copy = push_copy(L, &caller, t);
    mr_raise(L, mr_tensor_flatten(&caller, copy, first, last, slot));
    lua_pop(L, 1);
    return 1;
}

MR_RECORDED_FUNCTION(tensor_transpose, "transpose",
                     "t:transpose(dim1: integer, dim2: integer) -> tensor",
                     "Returns a view with two dims exchanged.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    int a = mr_check_dim(L, "transpose", 2, t->ndim), b = mr_check_dim(L, "transpose", 3, t->ndim);
    mr_raise(L, mr_tensor_transpose(&caller, t, a, b, mr_new_view(L, 1)));
    return 1;
}

MR_RECORDED_FUNCTION(
    tensor_t, "t", "t:t() -> tensor",
    "Returns the transposed matrix, as a view. A tensor with fewer than 2 dims is returned "
    "unchanged.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    char shape[128];
    if (t->ndim > 2)
        return mr_misuse(L, "t: the shape is %s, expected at most 2 dims: use transpose or permute",
                         mr_shape_text(t->ndim, t->shape, shape, sizeof shape));
    int last = t->ndim == 2 ? 1 : 0;
    mr_raise(L, mr_tensor_transpose(&caller, t, 0, last, mr_new_view(L, 1)));
    return 1;
}

MR_RECORDED_FUNCTION(
    tensor_permute, "permute", "t:permute(dims: integer...) -> tensor",
    "Returns a view with the dims in another order. Each dim must be given once.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    int dims[MR_MAX_DIMS];
    int count = mr_check_dims(L, "permute", 2, lua_gettop(L), t->ndim, dims);
    if (count != t->ndim)
        return mr_misuse(L, "permute: %d dims given for a tensor of %d", count, t->ndim);
    mr_raise(L, mr_tensor_permute(&caller, t, dims, mr_new_view(L, 1)));
    return 1;
}

/* A position in a dim for narrow: one past the last is allowed, where nothing begins. */
static int64_t check_start(lua_State *L, const mr_tensor *t, int dim, int arg) {
    lua_Integer start = mr_check_integer(L, arg);
    int64_t size = t->shape[dim];
    int64_t from_0 = start < 0 ? size + start : start - 1;
    if (start == 0 || from_0 < 0 || from_0 > size)
        mr_misuse(L,
                  "narrow: start %" PRId64 " is outside dim %d, which has %" PRId64 " elements%s",
                  (int64_t)start, dim + 1, size, start == 0 ? ": elements count from 1" : "");
    return from_0;
}

MR_RECORDED_FUNCTION(
    tensor_narrow, "narrow", "t:narrow(dim: integer, start: integer, length: integer) -> tensor",
    "Returns a view of `length` elements of a dim, starting at element `start` (from 1; "
    "negative: from the end).") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    if (t->ndim == 0) return mr_misuse(L, "narrow: a 0-dim tensor has no dims");
    int dim = mr_check_dim(L, "narrow", 2, t->ndim);
    int64_t start = check_start(L, t, dim, 3);
    lua_Integer length = mr_check_integer(L, 4);
    if (length < 0 || length > t->shape[dim] - start)
        return mr_misuse(L,
                         "narrow: %" PRId64 " elements from element %" PRId64
                         " on do not lie in dim %d, which has %" PRId64,
                         (int64_t)length, start + 1, dim + 1, t->shape[dim]);
    mr_raise(L, mr_tensor_narrow(&caller, t, dim, start, length, 1, mr_new_view(L, 1)));
    return 1;
}

MR_RECORDED_FUNCTION(tensor_select, "select", "t:select(dim: integer, index: integer) -> tensor",
                     "Returns a view of one index of a dim, without that dim.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    if (t->ndim == 0) return mr_misuse(L, "select: a 0-dim tensor has no dims");
    int dim = mr_check_dim(L, "select", 2, t->ndim);
    mr_check_integer(L, 3);
    int64_t index = mr_check_index(L, t, dim, 3);
    mr_raise(L, mr_tensor_select(&caller, t, dim, index, mr_new_view(L, 1)));
    return 1;
}

MR_RECORDED_FUNCTION(
    tensor_squeeze, "squeeze", "t:squeeze([dim: integer]) -> tensor",
    "Returns a view without this dim if its size is 1; without an argument, a view without "
    "all dims of size 1.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    int dim = lua_isnoneornil(L, 2) ? INT_MIN : mr_check_dim(L, "squeeze", 2, t->ndim);
    mr_raise(L, mr_tensor_squeeze(&caller, t, dim, mr_new_view(L, 1)));
    return 1;
}

MR_RECORDED_FUNCTION(
    tensor_unsqueeze, "unsqueeze", "t:unsqueeze(dim: integer) -> tensor",
    "Returns a view with a new dim of size 1 at this position: 1 is first, -1 is last.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    int dim = mr_check_dim(L, "unsqueeze", 2, t->ndim + 1);
    mr_raise(L, mr_tensor_unsqueeze(&caller, t, dim, mr_new_view(L, 1)));
    return 1;
}

MR_RECORDED_FUNCTION(
    tensor_expand, "expand", "t:expand(sizes: integer...) -> tensor",
    "Returns a view in which dims of size 1, and new dims in front, repeat their elements. "
    "A size of -1 keeps the size. Several elements of the view share one place in memory, "
    "so the view cannot be written.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    int64_t shape[MR_MAX_DIMS];
    int ndim = mr_check_shape(L, "expand", 2, lua_gettop(L), shape);
    mr_raise(L, mr_tensor_expand(&caller, t, ndim, shape, mr_new_view(L, 1)));
    return 1;
}

/* --- parts -------------------------------------------------------------------------------------- */

/* The dim argument of chunk and split. */
static int check_part_dim(lua_State *L, const char *what, const mr_tensor *t) {
    if (t->ndim == 0) mr_misuse(L, "%s: a 0-dim tensor cannot be split", what);
    return lua_isnoneornil(L, 3) ? 0 : mr_check_dim(L, what, 3, t->ndim);
}

/* Makes a view of `length` elements entry `at` of the list at the top. */
static void add_part(lua_State *L, const mr_caller *caller, mr_tensor *t, int dim, int64_t at,
                     int64_t start, int64_t length) {
    mr_check_stop(L, caller->machine, at, "making the parts of a tensor");
    mr_raise(L, mr_tensor_narrow(caller, t, dim, start, length, 1, mr_new_view(L, 1)));
    lua_rawseti(L, -2, at);
}

static int equal_parts(lua_State *L, const mr_caller *caller, mr_tensor *t, int dim,
                       int64_t length) {
    int64_t size = t->shape[dim], count = 0;
    lua_newtable(L);
    for (int64_t start = 0; start < size; start += length)
        add_part(L, caller, t, dim, ++count, start, length < size - start ? length : size - start);
    if (size == 0) add_part(L, caller, t, dim, 1, 0, 0);
    return 1;
}

MR_RECORDED_FUNCTION(
    tensor_chunk, "chunk", "t:chunk(count: integer [, dim: integer=1]) -> tensor[]",
    "Returns a list of at most `count` views of equal size along a dim. The last one may "
    "be smaller.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    lua_Integer count = mr_check_integer(L, 2);
    int dim = check_part_dim(L, "chunk", t);
    if (count < 1)
        return mr_misuse(L, "chunk: count is %" PRId64 ", expected at least 1", (int64_t)count);
    int64_t size = t->shape[dim];
    int64_t length = size / count + (size % count != 0);
    return equal_parts(L, &caller, t, dim, length ? length : 1);
}

/* t:split({2, 3, 1}): the sizes must add up before the first view is made. */
static int listed_parts(lua_State *L, const mr_caller *caller, mr_tensor *t, int dim) {
    int64_t sum = 0, size = t->shape[dim];
    lua_Integer count = (lua_Integer)lua_rawlen(L, 2), length;
    for (lua_Integer i = 1; i <= count; i++) {
        mr_check_stop(L, caller->machine, i, "adding up the sizes of the parts");
        lua_rawgeti(L, 2, i);
        if (!mr_whole_number(L, -1, &length) || length < 0)
            return mr_misuse(L, "split: size %d is not a whole number of at least 0", (int)i);
        if (length > size - sum) sum = size + 1;
        else sum += length;
        if (sum > size) break;
        lua_pop(L, 1);
    }
    if (sum != size)
        return mr_misuse(L, "split: the sum of the sizes is not the %" PRId64 " elements of dim %d",
                         size, dim + 1);
    lua_newtable(L);
    sum = 0;
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, 2, i);
        length = lua_tointeger(L, -1);
        if (length < 0 ||
            length > size - sum) /* by a finalizer: making a view runs the collector */
            return mr_misuse(L, "split: the sizes changed while they were read");
        lua_pop(L, 1);
        add_part(L, caller, t, dim, i, sum, length);
        sum += length;
    }
    return 1;
}

MR_RECORDED_FUNCTION(tensor_split, "split",
                     "t:split(size: integer or integer[] [, dim: integer=1]) -> tensor[]",
                     "Returns a list of views along a dim. They have this size (the last one may "
                     "be smaller), or the listed sizes, whose sum must be the size of the dim.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    if (lua_type(L, 2) == LUA_TTABLE)
        return listed_parts(L, &caller, t, check_part_dim(L, "split", t));
    lua_Integer length = mr_check_integer(L, 2);
    int dim = check_part_dim(L, "split", t);
    if (length < 1)
        return mr_misuse(L, "split: size is %" PRId64 ", expected at least 1", (int64_t)length);
    return equal_parts(L, &caller, t, dim, length);
}

/* --- copies ------------------------------------------------------------------------------------- */

MR_RECORDED_FUNCTION(
    tensor_clone, "clone", "t:clone() -> tensor",
    "Returns a contiguous copy on the same device, made in its current stream. A copy of a "
    "host tensor is in pageable memory.") {
    mr_caller caller = mr_enter_as(L, "clone");
    push_copy(L, &caller, mr_check_tensor(L, 1));
    return 1;
}

MR_RECORDED_FUNCTION(tensor_contiguous, "contiguous", "t:contiguous() -> tensor",
                     "Returns t itself if it is contiguous, otherwise a contiguous copy.") {
    mr_caller caller = mr_enter_as(L, "contiguous");
    mr_no_arguments_behind(L, 1, &tensor_contiguous_function); /* call_boolean calls it, too */
    mr_tensor *t = mr_check_tensor(L, 1);
    lua_settop(L, 1);
    if (!t->contiguous) push_copy(L, &caller, t);
    return 1;
}

/* --- docs --------------------------------------------------------------------------------------- */

static const mr_function *const functions[] = {
    &tensor_view_function,       &tensor_reshape_function,
    &tensor_flatten_function,    &tensor_t_function,
    &tensor_transpose_function,  &tensor_permute_function,
    &tensor_narrow_function,     &tensor_select_function,
    &tensor_squeeze_function,    &tensor_unsqueeze_function,
    &tensor_expand_function,     &tensor_chunk_function,
    &tensor_split_function,      &tensor_clone_function,
    &tensor_contiguous_function, NULL,
};

const mr_class mr_tensor_view_class = {
    "tensor",        "Views of a tensor share its memory: a write to one is visible in the other.",
    functions,       NULL,
    &mr_kind_tensor,
};

/* Methods that PyTorch also has as functions. */
static const mr_function *const plain[] = {&tensor_reshape_function,
                                           &tensor_flatten_function,
                                           &tensor_t_function,
                                           &tensor_transpose_function,
                                           &tensor_permute_function,
                                           &tensor_narrow_function,
                                           &tensor_select_function,
                                           &tensor_squeeze_function,
                                           &tensor_unsqueeze_function,
                                           &tensor_chunk_function,
                                           &tensor_split_function,
                                           &tensor_clone_function,
                                           NULL};

const mr_class mr_tensor_view_functions_class = {"mr", "Views of a tensor.", plain, NULL, NULL};

/* `t.contiguous` is a boolean property, and `t:contiguous()` a method. Lua has one key for both. So the key holds the
 * boolean, and booleans get a __call that accepts only a tensor. */
static int call_boolean(lua_State *L) {
    if (!mr_test(L, 2, &mr_kind_tensor)) return luaL_error(L, "attempt to call a boolean value");
    lua_remove(L, 1);
    return tensor_contiguous(L);
}

static void make_contiguous_both(lua_State *L) {
    mr_push_methods(L, &mr_kind_tensor);
    lua_pushnil(L);
    lua_setfield(L, -2, "contiguous");
    lua_pop(L, 1);
    lua_pushboolean(L, true);
    if (!lua_getmetatable(L, -1)) {
        lua_createtable(L, 0, 2);
        lua_pushboolean(L, false); /* what getmetatable(true) shows: scripts cannot reach it */
        lua_setfield(L, -2, "__metatable");
    }
    mr_push_module(L);
    lua_pushcclosure(L, call_boolean, 1);
    lua_setfield(L, -2, "__call");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

void mr_open_tensor_view(lua_State *L) {
    mr_class_extend(L, &mr_tensor_view_class);
    mr_table_open(L, &mr_tensor_view_functions_class);
    make_contiguous_both(L);
}
