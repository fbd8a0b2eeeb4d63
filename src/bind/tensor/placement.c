/* The options that all functions that make a tensor have in common: dtype, device and so on. */
#include <stdio.h>
#include <string.h>

#include "bind/tensor/placement.h"
#include "bind/nn/gradient.h"
#include "tensor/ipc.h"

static mr_dtype check_dtype(lua_State *L, const char *what, const char *text) {
    mr_dtype dtype;
    if (mr_dtype_find(text, &dtype)) return dtype;
    char known[128] = "";
    for (int i = 0; i < MR_DTYPE_COUNT; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                 mr_dtype_text((mr_dtype)i));
    }
    mr_misuse(L, "%s: there is no dtype \"%.40s\": known are %s", what, text, known);
    return MR_F32;
}

bool mr_read_device(lua_State *L, int index, mr_device **out_device) {
    *out_device = NULL;
    if (lua_type(L, index) != LUA_TSTRING) {
        *out_device = mr_check_device(L, index);
        return true;
    }
    const char *text = lua_tostring(L, index);
    if (strcmp(text, "cpu") == 0) return true;
    *out_device = mr_device_named(L, text);
    return *out_device != NULL;
}

/* True: device= was given. */
static bool read_device_option(lua_State *L, const mr_option_slots *options,
                               mr_placement *placement) {
    int at = mr_option_at(L, options, "device");
    if (at && lua_type(L, at) == LUA_TSTRING) {
        mr_device *device;
        if (!mr_read_device(L, at, &device))
            mr_misuse(L,
                      "option `device`: there is no device \"%.40s\": expected \"cpu\", \"cuda\", "
                      "\"cuda:1\", a device or its ordinal",
                      lua_tostring(L, at));
        placement->device = device;
        placement->kind = device ? MR_MEMORY_DEVICE : MR_MEMORY_PAGEABLE;
    } else if (at) {
        placement->device = mr_option_device(L, options, "device");
        placement->kind = MR_MEMORY_DEVICE;
    }
    return at != 0;
}

void mr_check_placement(lua_State *L, const mr_option_slots *options, mr_placement *placement) {
    bool given = read_device_option(L, options, placement);
    placement->stream = mr_option_stream(L, options, "stream");
    if (mr_option_boolean(L, options, "pinned", false)) {
        if (given && placement->device)
            mr_misuse(
                L,
                "option `pinned`: pinned memory is host memory, but option `device` is a device");
        placement->kind = MR_MEMORY_PINNED;
        placement->device = NULL;
        given = true;
    }
    if (!placement->stream) return;
    mr_device *device = placement->stream->device;
    if (given && !placement->device)
        mr_misuse(L, "option `stream`: a tensor in host memory has no stream");
    if (given && placement->device != device)
        mr_misuse(L,
                  "option `stream`: the stream is on device %d, but option `device` is device %d",
                  device->index, placement->device->index);
    placement->kind = MR_MEMORY_DEVICE;
    placement->device = device;
}

void mr_check_new_options(lua_State *L, int arg, const mr_tensor *like, mr_dtype dtype,
                          mr_new_options *out_options) {
    static const char *const known[] = {"dtype",  "device",        "pinned", "name",
                                        "stream", "requires_grad", "ipc",    NULL};
    mr_new_options *o = out_options;
    *o = (mr_new_options){.dtype = like ? (mr_dtype)like->dtype : dtype};
    if (like && mr_tensor_on_host(like)) o->placement.kind = MR_MEMORY_PAGEABLE;
    else
        o->placement =
            (mr_placement){MR_MEMORY_DEVICE,
                           like ? like->storage->device : mr_machine_of(L)->current_device, NULL};
    if (!arg) return;
    mr_option_slots options = mr_check_options(L, arg, known);
    int given = mr_option_at(L, &options, "dtype");
    if (given) {
        if (lua_type(L, given) != LUA_TSTRING)
            mr_misuse(L, "option `dtype`: expected a name such as \"f32\", got %s",
                      mr_type_text(L, given));
        o->dtype = check_dtype(L, "option dtype", lua_tostring(L, given));
        o->dtype_given = true;
    }
    o->name = mr_option_name(L, &options, "name");
    o->requires_grad = mr_option_boolean(L, &options, "requires_grad", false);
    if (o->requires_grad && mr_dtype_category(o->dtype) != 2)
        mr_misuse(L,
                  "option `requires_grad`: only tensors of floats can require gradients, but the "
                  "dtype is %s",
                  mr_dtype_text(o->dtype));
    mr_check_placement(L, &options, &o->placement);
    o->ipc = mr_option_boolean(L, &options, "ipc", false);
    if (o->ipc && o->placement.kind != MR_MEMORY_DEVICE)
        mr_misuse(L, "option `ipc`: processes share memory of a device, but this is host memory");
}

mr_tensor *mr_push_empty(lua_State *L, const mr_caller *caller, const mr_new_options *options,
                         int ndim, const int64_t *shape) {
    mr_tensor **slot = mr_new_tensor(L);
    const mr_placement *at = &options->placement;
    if (options->ipc)
        mr_raise(L,
                 mr_tensor_create_shareable(caller, at->stream ? at->stream : at->device->current,
                                            options->dtype, ndim, shape, slot));
    else mr_raise(L, mr_create_empty(caller, at, options->dtype, ndim, shape, slot));
    if (options->name) mr_raise(L, mr_tensor_set_name(*slot, options->name));
    mr_made_tensor(L, *slot);
    if (options->requires_grad) mr_gradient_require(L, -1);
    return *slot;
}
