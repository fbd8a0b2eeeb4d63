/* What the tensor files of this folder share.
 *
 * The class "tensor" is too much for one file, so each file has a part of it: an mr_class of its own
 * with the same name, which the reference page shows as a section. `mr_tensor_class` is the part
 * that makes the metatable; mr_tensor_extend adds the others to it. */
#ifndef MR_BIND_TENSOR_H
#define MR_BIND_TENSOR_H

#include "bind/bind.h"

/* Parts of the class "tensor", and of the table "mr". */
extern const mr_class mr_tensor_facts_class; /* tensor_facts.c: name, size, tostring */
extern const mr_class mr_tensor_view_class;  /* tensor_view.c: view, narrow, chunk ... */
extern const mr_class mr_tensor_move_class;  /* tensor_move.c: copy_, to, item ... */
extern const mr_class mr_operators_class;    /* operators.c: x + y ... */
extern const mr_class mr_literal_class;      /* tensor_literal.c: mr.tensor */
extern const mr_class mr_creation_class;     /* creation.c: mr.zeros, mr.arange ... */
extern const mr_class mr_random_class;       /* random.c: mr.rand, mr.randperm ... */
extern const mr_class mr_joining_class;      /* joining.c: mr.cat, mr.stack */
extern const mr_class mr_linear_class, mr_linear_functions_class; /* linear.c: addmm */
extern const mr_class mr_compare_class; /* compare.c: mr.equal, mr.allclose */
extern const mr_class mr_format_class;  /* format.c: mr.print, mr.format */
extern const mr_class mr_forms_class;   /* cuda_forms.c: mr.memcpy, mr.op ... */
extern const mr_class mr_memory_class;  /* memory.c: the table mr.memory */

extern const mr_property mr_tensor_facts[]; /* tensor_facts.c: shape, dtype ... */
extern const mr_property mr_no_properties[];

/* Adds the methods of a part of "tensor", which must be open. */
void mr_tensor_extend(lua_State *L, mr_machine *machine, const mr_class *part);
/* Pushes the table in which a method is looked up by name. */
void mr_tensor_push_methods(lua_State *L);

void mr_open_tensor_facts(lua_State *L, mr_machine *machine);
void mr_open_tensor_view(lua_State *L, mr_machine *machine);
void mr_open_tensor_move(lua_State *L, mr_machine *machine);
void mr_open_operators(lua_State *L, mr_machine *machine);
void mr_open_literal(lua_State *L, mr_machine *machine);
void mr_open_random(lua_State *L, mr_machine *machine);
void mr_open_joining(lua_State *L, mr_machine *machine);
void mr_open_linear(lua_State *L, mr_machine *machine);
void mr_open_compare(lua_State *L, mr_machine *machine);
void mr_open_format(lua_State *L, mr_machine *machine);

/* The tensor, be it closed or freed: for facts, which help in finding the mistake. `out_closed` may be
 * NULL. */
mr_tensor *mr_check_facts(lua_State *L, int arg, bool *out_closed);

/* Drops the handle and the reference of the tensor at `index` at once, without waiting for the
 * collector: for temporaries, which no script has seen. */
void mr_let_go(lua_State *L, int index);
/* Raises if status is one, but first lets go of the new tensor at the top of the stack: what failed
 * leaves no memory behind. */
void mr_finish_new(lua_State *L, mr_status status);

/* --- shape.c: shapes, dims and indices as scripts write them, counting from 1 ------------------- */

/* Whether the value is a number with an integer value, NaN, fractions and strings not. */
bool mr_whole_number(lua_State *L, int index, lua_Integer *out_number);

/* Sizes as `f(3, 4)` or `f({3, 4})`: arguments `first` to `last`, at most MR_MAX_DIMS of them. Negative
 * ones pass: whoever takes them checks what they mean there. Returns how many. */
int mr_check_shape(lua_State *L, const char *what, int first, int last, int64_t *out_shape);
/* The same, where a size must be at least 0 and the product must fit. */
int mr_check_new_shape(lua_State *L, const char *what, int first, int last, int64_t *out_shape);
/* Whether the table at `index` lists things (or is empty), rather than naming options. */
bool mr_is_list(lua_State *L, int index);
/* The last argument that is not a table of options; *out_options: where those are, or 0. */
int mr_split_options(lua_State *L, int *out_options);

/* A dim as a script counts it, turned into one from 0 that is inside. */
int mr_check_dim(lua_State *L, const char *what, int arg, int ndim);
/* Dims as `f(2, 1)` or `f({2, 1})`, at most MR_MAX_DIMS; returns how many. */
int mr_check_dims(lua_State *L, const char *what, int first, int last, int ndim, int *out_dims);
/* An index into dim `dim` (from 0) of `t`, turned into one from 0 that is inside. */
int64_t mr_check_index(lua_State *L, const mr_tensor *t, int dim, int index);

void mr_push_shape(lua_State *L, int ndim, const int64_t *shape);
void mr_push_scalar(lua_State *L, mr_dtype dtype, mr_scalar value);

/* --- placement.c: where a new tensor goes ------------------------------------------------------- */

typedef struct {
    mr_placement placement;
    mr_dtype dtype;
    bool dtype_given;
    const char *name; /* interned, or NULL */
} mr_new_options;

/* The options {dtype=, device=, pinned=, name=, stream=} at `arg` (0: none). `like`: the tensor that
 * gives dtype and memory where they are not said, or NULL: `dtype` and the current device. */
void mr_check_new_options(lua_State *L, int arg, const mr_tensor *like, mr_dtype dtype,
                          mr_new_options *out_options);
mr_dtype mr_check_dtype(lua_State *L, const char *what, const char *text);
/* "cpu", a device by name (see mr_device_named), an ordinal or a device at `index`: *out_device NULL means the host. False:
 * the string is none of these. */
bool mr_read_device(lua_State *L, int index, mr_device **out_device);

/* Pushes an empty tensor of that kind. */
mr_tensor *mr_push_empty(lua_State *L, mr_machine *machine, const mr_new_options *options, int ndim,
                         const int64_t *shape);

/* --- creation.c --------------------------------------------------------------------------------- */

/* Sizes from argument `first` on, and options behind them; returns the number of dims. */
int mr_check_new(lua_State *L, const char *what, int first, mr_dtype dtype, mr_new_options *options,
                 int64_t *out_shape);
/* Pushes a new tensor, filled by a FILL or RANDOM row. */
mr_tensor *mr_push_generated(lua_State *L, mr_machine *machine, const char *row,
                             const mr_new_options *options, int ndim, const int64_t *shape,
                             const mr_params *params);

/* --- compare.c ---------------------------------------------------------------------------------- */

/* Raises, naming both, when one is on the host or on another device. */
void mr_check_same_place(lua_State *L, const char *what, const mr_tensor *a, const mr_tensor *b);

/* --- ops.c ------------------------------------------------------------------------------------- */

/* A row that must be there. */
const mr_op *mr_op_named(const char *name);
/* Runs a FILL or RANDOM row on `out`, on `stream` or (NULL) the current one. `in_place` says how it is
 * to be called in reports: "fill_", or "fill" where the tensor is new. */
mr_status mr_generate(mr_machine *machine, const mr_op *op, mr_tensor *out, bool in_place,
                      mr_stream *stream, const mr_params *params);
mr_status mr_fill_with(mr_machine *machine, mr_tensor *out, mr_scalar value);
/* The tensor, number or boolean at `arg`. */
mr_value mr_check_value(lua_State *L, int arg);
/* Runs `call`, whose out is a new tensor (`out_arg` 0) or the one at `out_arg`, and pushes that. */
int mr_push_result(lua_State *L, mr_machine *machine, const mr_op *op, const mr_call *call,
                   int out_arg);

/* The Lua function for a row of the family REDUCE (reduce.c). */
lua_CFunction mr_reduction_of(const mr_op *op);

/* --- tensor_index.c, tensor_move.c -------------------------------------------------------------- */

int mr_tensor_get_index(lua_State *L); /* __index for anything but a string */
int mr_tensor_set_index(lua_State *L); /* __newindex */
/* The tensor on the host, with its values now, in a userdata that is pushed. */
mr_tensor *mr_push_on_host(lua_State *L, mr_machine *machine, mr_tensor *t);

#endif
