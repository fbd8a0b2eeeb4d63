/* The functions of networks: which row they are for stands in their second upvalue. */
#ifndef MR_BIND_OPS_NETWORK_H
#define MR_BIND_OPS_NETWORK_H

#include "bind/bind.h"

int mr_call_convolution(lua_State *L);
int mr_call_pooling(lua_State *L);
int mr_call_losses(lua_State *L);

/* The option as two numbers, rows first: given as one number, a list {rows, columns}, or not at all. `what` is the
 * operation's name, for messages. */
void mr_option_pair(lua_State *L, const char *what, const mr_option_slots *options,
                    const char *name, int32_t otherwise, int32_t *out_pair);
/* The same of the value at `index`; `name` is for messages, too. */
void mr_check_pair(lua_State *L, const char *what, const char *name, int index, int32_t *out_pair);
/* The shape at `arg`, such as {64, 3, 32, 32}, into call->dims. */
void mr_check_shape_argument(lua_State *L, const char *what, int arg, mr_call *call);

/* Pushes a view of t with a dim of size 1 added before dim `dim` (from 0), or dropped there. */
mr_tensor *mr_push_unsqueezed(lua_State *L, const mr_caller *caller, mr_tensor *t, int dim);
/* The tensor in the box at `at`, without the first dim, takes its place. */
void mr_drop_batch(lua_State *L, const mr_caller *caller, int at);

#endif
