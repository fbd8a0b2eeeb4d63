/* shape.c: shapes, dims and indices as scripts write them, counting from 1. */
#ifndef MR_BIND_OPS_SHAPE_H
#define MR_BIND_OPS_SHAPE_H

#include "bind/bind.h"

/* Whether the value is a number with an integer value; NaN, fractions and strings are not. */
bool mr_whole_number(lua_State *L, int index, lua_Integer *out_number);

/* Sizes as `f(3, 4)` or `f({3, 4})`: arguments `first` to `last`, at most MR_MAX_DIMS of them. Negative
 * ones pass: the caller checks what they mean. Returns how many. */
int mr_check_shape(lua_State *L, const char *what, int first, int last, int64_t *out_shape);
/* Raises if the argument is a string: the name of a dtype or device, which is an option. `example`: the other arguments
 * of `what`. */
void mr_check_no_name(lua_State *L, const char *what, const char *example, int index);
/* As mr_check_shape, where a size must be at least 0 and the product must fit. */
int mr_check_new_shape(lua_State *L, const char *what, int first, int last, int64_t *out_shape);
/* Whether the table at `index` lists things (or is empty), rather than naming options. */
bool mr_is_list(lua_State *L, int index);
/* The last argument before a table of options; *out_options: the index of that table, or 0. An empty table counts as a
 * list up to argument `list`, where the function takes one (0: nowhere). */
int mr_split_options(lua_State *L, int list, int *out_options);

/* A dim as a script counts it, turned into one from 0 that is inside. */
int mr_check_dim(lua_State *L, const char *what, int arg, int ndim);
/* Dims as `f(2, 1)` or `f({2, 1})`, at most MR_MAX_DIMS; returns how many. */
int mr_check_dims(lua_State *L, const char *what, int first, int last, int ndim, int *out_dims);
/* An index into dim `dim` (from 0) of `t`, turned into one from 0 that is inside. */
int64_t mr_check_index(lua_State *L, const mr_tensor *t, int dim, int index);

void mr_push_shape(lua_State *L, int ndim, const int64_t *shape);
void mr_push_scalar(lua_State *L, mr_dtype dtype, mr_scalar value);

#endif
