/* The box of a tensor: the userdata, for the files that make and take tensors. Its class is in tensor/. */
#ifndef MR_BIND_TENSOR_BOX_H
#define MR_BIND_TENSOR_BOX_H

#include "bind/bind.h"

/* The tensor, even if it is closed or freed: its facts help to find a mistake. `out_closed` may be NULL. */
mr_tensor *mr_check_facts(lua_State *L, int arg, bool *out_closed);

/* Drops the handle and the reference of the tensor at `index` at once, without waiting for the
 * collector: for temporaries, which no script has seen, and for __gc. Does nothing for an empty box or another
 * value. */
void mr_let_go(lua_State *L, int index);
/* The tensor at `from`, which no script has seen, becomes that of the userdata at `index`; the box at `from` is empty
 * then. Readers of the old values (autograd) see that they have changed. */
void mr_take_tensor(lua_State *L, int index, int from);
/* __close: drops the handle, and the tensor cannot be used any more. */
void mr_close_tensor(lua_State *L, int index);
/* Raises if status is an error, but first drops the new tensor at the top of the stack, so that a failure leaves no
 * memory behind. */
void mr_finish_new(lua_State *L, mr_status status);

/* --- gradients ---------------------------------------------------------------------------------- */

/* As mr_new_tensor, of a view of the tensor at `of`. An operation in place on the view changes that tensor, too, so
 * autograd must find it. */
mr_tensor **mr_new_view(lua_State *L, int of);
/* The tensor that the one at `index` is a view of, itself not a view; nil if it is not a view. */
void mr_push_base(lua_State *L, int index);
/* Pushes autograd's table for the tensor at `index`, or nil. */
void mr_push_gradient_state(lua_State *L, int index);
/* Pops it and keeps it; `tracked`: the tensor requires gradients. */
void mr_set_gradient_state(lua_State *L, int index, bool tracked);
/* Whether the tensor at `index` requires gradients. */
bool mr_requires_grad(lua_State *L, int index);
/* Whether the value at `index` is a tensor that requires gradients, or a view of one that does. */
bool mr_is_tracked(lua_State *L, int index);

#endif
