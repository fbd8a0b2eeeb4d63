/* The tensor userdata, for the files that make and take tensors: its box (tensor_box.c), and what one tensor file asks
 * of another. The class "tensor" is too much for one file, so each file has a part of it. This is an mr_class of its
 * own with the same name, which the reference page shows as a section. */
#ifndef MR_BIND_TENSOR_H
#define MR_BIND_TENSOR_H

#include "bind/bind.h"

extern const mr_property mr_tensor_facts[]; /* tensor/facts.c: shape, dtype ... */
/* The tensor, be it closed or freed: for facts, which help in finding the mistake. `out_closed` may be
 * NULL. */
mr_tensor *mr_check_facts(lua_State *L, int arg, bool *out_closed);

/* Drops the handle and the reference of the tensor at `index` at once, without waiting for the
 * collector: for temporaries, which no script has seen, and for __gc. An empty box, or something else: nothing. */
void mr_let_go(lua_State *L, int index);
/* The tensor at `from`, which no script has seen, becomes that of the userdata at `index`; the box at `from` is empty
 * then. Readers of the old values (autograd) see that they have changed. */
void mr_take_tensor(lua_State *L, int index, int from);
/* __close: drops the handle, and the tensor cannot be used any more. */
void mr_close_tensor(lua_State *L, int index);
/* Raises if status is one, but first lets go of the new tensor at the top of the stack: what failed
 * leaves no memory behind. */
void mr_finish_new(lua_State *L, mr_status status);

/* --- gradients (tensor_box.c) ------------------------------------------------------------------- */

/* As mr_new_tensor, of a view of the tensor at `of`. An operation in place on the view changes that tensor, too, so
 * autograd must find it. */
mr_tensor **mr_new_view(lua_State *L, int of);
/* The tensor that the one at `index` is a view of, itself not a view; nil if it is not a view. */
void mr_push_base(lua_State *L, int index);
/* Pushes autograd's table for the tensor at `index`, or nil. */
void mr_push_gradient_state(lua_State *L, int index);
/* Pops it and keeps it; `tracked`: the tensor requires gradients. */
void mr_set_gradient_state(lua_State *L, int index, bool tracked);
/* Makes the tensor at `index`, which nobody has used, a leaf that requires gradients (gradient.c). */
void mr_gradient_require(lua_State *L, int index);
/* Whether the tensor at `index` requires gradients. */
bool mr_requires_grad(lua_State *L, int index);
/* Whether the value at `index` is a tensor that requires gradients, or a view of one that does. */
bool mr_is_tracked(lua_State *L, int index);

/* --- tensor/compare.c --------------------------------------------------------------------------- */

/* Raises, naming both, when one is on the host or on another device. */
void mr_check_same_place(lua_State *L, const char *what, const mr_tensor *a, const mr_tensor *b);

/* --- tensor/index.c, tensor/move.c -------------------------------------------------------------- */

int mr_tensor_get_index(lua_State *L); /* __index for anything but a string */
int mr_tensor_set_index(lua_State *L); /* __newindex for anything but a string */
/* For a call of __index with an integer: whether ipairs asks for the row behind the last. It ends there, as it does for
 * a table. */
bool mr_tensor_ends_ipairs(lua_State *L);
/* Calls a function of lua/millrace/functional.lua with the arguments of the running one, and returns its results. */
int mr_functional_call(lua_State *L, const char *name);
/* t[index] and t[index] = value where the index at 2 is a tensor (functional.c). */
int mr_functional_get_index(lua_State *L);
int mr_functional_set_index(lua_State *L);
int mr_gradient_set_field(lua_State *L); /* and for a string (gradient.c) */
/* Pushes what tostring says of the gradients of the tensor at `index`: nothing, that it is a leaf that requires them,
 * or the operation that made it (gradient.c). */
void mr_push_gradient_text(lua_State *L, int index);
/* format(t): what mr.format returns, with rows that the terminal has room for (format.c). */
int mr_format_for_terminal(lua_State *L);
/* The tensor on the host, with its values now, in a userdata that is pushed. */
mr_tensor *mr_push_on_host(lua_State *L, const mr_caller *caller, mr_tensor *t);

#endif
