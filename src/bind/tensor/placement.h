/* placement.c: the memory of a new tensor: options that all functions for new tensors take. */
#ifndef MR_BIND_TENSOR_PLACEMENT_H
#define MR_BIND_TENSOR_PLACEMENT_H

#include "bind/bind.h"

typedef struct {
    mr_placement placement;
    mr_dtype dtype;
    bool dtype_given;
    bool requires_grad;
    bool ipc;         /* in memory that processes can share */
    const char *name; /* Lua's string, or NULL */
} mr_new_options;

/* The options {dtype=, device=, pinned=, name=, stream=, requires_grad=, ipc=} at `arg` (0: none). `like`: the tensor
 * whose dtype and memory are the defaults; NULL: `dtype` and the current device are. */
void mr_check_new_options(lua_State *L, int arg, const mr_tensor *like, mr_dtype dtype,
                          mr_new_options *out_options);
/* Reads the options {device=, pinned=, stream=}; an absent option leaves *placement unchanged. */
void mr_check_placement(lua_State *L, const mr_option_slots *options, mr_placement *placement);
/* "cpu", a device by name (see mr_device_named), an ordinal or a device at `index`: *out_device NULL means the host.
 * False: the string is none of these. */
bool mr_read_device(lua_State *L, int index, mr_device **out_device);

/* Pushes an empty tensor of that kind. */
mr_tensor *mr_push_empty(lua_State *L, const mr_caller *caller, const mr_new_options *options,
                         int ndim, const int64_t *shape);

#endif
