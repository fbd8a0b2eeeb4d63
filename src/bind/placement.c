/* Where a new tensor goes: the options that all functions which make one have in common. */
#include <stdio.h>
#include <string.h>

#include "bind/tensor.h"

mr_dtype mr_check_dtype(lua_State *L, const char *what, const char *text) {
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
static bool read_device_option(lua_State *L, int arg, mr_placement *placement) {
    mr_push_option(L, arg, "device");
    bool given = !lua_isnil(L, -1);
    if (given && lua_type(L, -1) == LUA_TSTRING) {
        mr_device *device;
        if (!mr_read_device(L, lua_gettop(L), &device))
            mr_misuse(L,
                      "option `device`: \"%.40s\" is not a place: expected \"cpu\", \"cuda\", "
                      "\"cuda:1\", "
                      "a device or its ordinal",
                      lua_tostring(L, -1));
        placement->device = device;
        placement->kind = device ? MR_MEMORY_DEVICE : MR_MEMORY_PAGEABLE;
    } else if (given) {
        placement->device = mr_option_device(L, arg, "device");
        placement->kind = MR_MEMORY_DEVICE;
    }
    lua_pop(L, 1);
    return given;
}

static void check_placement(lua_State *L, int arg, mr_placement *placement) {
    bool given = read_device_option(L, arg, placement);
    placement->stream = mr_option_stream(L, arg, "stream");
    if (mr_option_boolean(L, arg, "pinned", false)) {
        if (given && placement->device)
            mr_misuse(L,
                      "option `pinned`: pinned memory is host memory, and device= names a device");
        placement->kind = MR_MEMORY_PINNED;
        placement->device = NULL;
        given = true;
    }
    if (!placement->stream) return;
    mr_device *device = placement->stream->device;
    if (given && !placement->device)
        mr_misuse(L, "option `stream`: host memory belongs to no stream");
    if (given && placement->device != device)
        mr_misuse(L, "option `stream`: the stream is on device %d and device= says %d",
                  device->index, placement->device->index);
    placement->kind = MR_MEMORY_DEVICE;
    placement->device = device;
}

void mr_check_new_options(lua_State *L, int arg, const mr_tensor *like, mr_dtype dtype,
                          mr_new_options *out_options) {
    static const char *const known[] = {"dtype", "device", "pinned", "name", "stream", NULL};
    mr_new_options *o = out_options;
    *o = (mr_new_options){.dtype = like ? (mr_dtype)like->dtype : dtype};
    if (like && mr_tensor_on_host(like)) o->placement.kind = MR_MEMORY_PAGEABLE;
    else
        o->placement =
            (mr_placement){MR_MEMORY_DEVICE,
                           like ? like->storage->device : mr_machine_of(L)->current_device, NULL};
    if (!arg || !mr_options_check(L, arg, known)) return;
    if (mr_push_option(L, arg, "dtype") != LUA_TNIL) {
        if (lua_type(L, -1) != LUA_TSTRING)
            mr_misuse(L, "option `dtype`: expected a name such as \"f32\", got %s",
                      mr_type_text(L, -1));
        o->dtype = mr_check_dtype(L, "option dtype", lua_tostring(L, -1));
        o->dtype_given = true;
    }
    lua_pop(L, 1);
    o->name = mr_option_name(L, arg, "name");
    check_placement(L, arg, &o->placement);
}

mr_tensor *mr_push_empty(lua_State *L, mr_machine *machine, const mr_new_options *options, int ndim,
                         const int64_t *shape) {
    mr_tensor **slot = mr_new_tensor(L);
    mr_raise(L, mr_create_empty(machine, &options->placement, options->dtype, ndim, shape, slot));
    if (options->name) (*slot)->name = (*slot)->storage->name = options->name;
    mr_made_tensor(L, *slot);
    return *slot;
}
