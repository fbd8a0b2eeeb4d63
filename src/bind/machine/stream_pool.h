/* The pool of streams of each device, priority and kind: mr.stream{pool=true}. */
#ifndef MR_BIND_MACHINE_STREAM_POOL_H
#define MR_BIND_MACHINE_STREAM_POOL_H

#include "bind/bind.h"

enum { MR_STREAM_POOL = 32 }; /* as many as PyTorch has */

/* Pushes the next stream of the pool, in turn. False: its place is still empty. Then the pool itself is pushed, and the
 * caller sets [*out_place] to a new stream. */
bool mr_stream_pool_push(lua_State *L, const mr_device *device, const mr_stream_options *options,
                         int *out_place);

#endif
