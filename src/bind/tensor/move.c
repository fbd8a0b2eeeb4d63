/* Copies between memories, between dtypes, and to Lua values. The help text of each function says what waits. If one
 * side is on the host and non_blocking is not set, the host waits for the stream of the
 * copy, and for no other stream. */
#include <inttypes.h>

#include "bind/open.h"
#include "bind/tensor/placement.h"
#include "bind/ops/row.h"
#include "bind/record.h"
#include "bind/ops/shape.h"
#include "bind/tensor/tensor.h"
#include "model/backend.h"
#include "ops/ids.h"

static bool check_non_blocking(lua_State *L, int arg) {
    static const char *const known[] = {"non_blocking", NULL};
    mr_option_slots options = mr_check_options(L, arg, known);
    return mr_option_boolean(L, &options, "non_blocking", false);
}

MR_RECORDED_FUNCTION(
    tensor_copy, "copy_", "t:copy_(source: tensor [, {non_blocking: boolean=false}]) -> tensor",
    "Copies the values of `source` into t, with broadcasting and conversion to t's dtype, between "
    "any two memories. Runs on the current stream of the device. If one of the tensors is on the "
    "host, the host then waits for that stream, unless non_blocking is set. A copy between two "
    "devices runs on the current stream of the source's device. It first waits for the current "
    "stream of the other device, and that stream then waits for the copy. Returns t.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1), *source = mr_check_tensor(L, 2);
    mr_raise(L, mr_copy(&caller, t, source, NULL, check_non_blocking(L, 3)));
    lua_settop(L, 1);
    return 1;
}

/* --- to ----------------------------------------------------------------------------------------- */

typedef struct {
    mr_dtype dtype;
    mr_device *device; /* NULL: the host */
} target;

static target target_of(const mr_tensor *t) {
    return (target){(mr_dtype)t->dtype, mr_tensor_on_host(t) ? NULL : t->storage->device};
}

/* Pushes `t` itself (which is at index 1) when it is there already, else a copy. An asynchronous copy to the host needs
 * pinned memory; otherwise the host would wait anyway (R23). */
static int push_moved(lua_State *L, const mr_caller *caller, mr_tensor *t, target to,
                      bool non_blocking) {
    target from = target_of(t);
    if (to.dtype == from.dtype && to.device == from.device) {
        lua_pushvalue(L, 1);
        return 1;
    }
    mr_new_options options = {.dtype = to.dtype};
    options.placement.device = to.device;
    if (to.device) options.placement.kind = MR_MEMORY_DEVICE;
    else
        options.placement.kind =
            from.device && non_blocking ? MR_MEMORY_PINNED : MR_MEMORY_PAGEABLE;
    mr_tensor *moved = mr_push_empty(L, caller, &options, t->ndim, t->shape);
    /* Only on the virtual GPU: clearing takes the host three times as long as a real copy takes the device. */
    if (non_blocking && moved->storage->machine->backend->simulator)
        mr_storage_begin_zero(moved->storage);
    mr_finish_new(L, mr_copy(caller, moved, t, NULL, non_blocking));
    return 1;
}

static void check_target(lua_State *L, int arg, target *to) {
    if (mr_test(L, arg, &mr_kind_tensor)) {
        *to = target_of(mr_check_tensor(L, arg));
    } else if (lua_type(L, arg) == LUA_TSTRING) {
        mr_device *device;
        if (mr_read_device(L, arg, &device)) to->device = device;
        else if (!mr_dtype_find(lua_tostring(L, arg), &to->dtype))
            mr_misuse(L,
                      "to: \"%.40s\" is not a dtype or a device: expected a dtype, \"cpu\", "
                      "\"cuda\" or \"cuda:1\"",
                      lua_tostring(L, arg));
    } else if (lua_type(L, arg) == LUA_TNUMBER || mr_test(L, arg, &mr_kind_device)) {
        to->device = mr_check_device(L, arg);
    } else if (lua_isboolean(L, arg)) {
        mr_bad_argument_as(L, arg, "a table of options",
                           "true or false: options are a table, {non_blocking=true}");
    } else {
        mr_bad_argument(L, arg, "a device, an ordinal, \"cpu\", a dtype or a tensor");
    }
}

MR_RECORDED_FUNCTION(
    tensor_to, "to",
    "t:to(where: device|integer|string|tensor... [, {non_blocking: boolean=false}]) -> tensor",
    "Returns the tensor on a device (an object, an ordinal, \"cuda\", \"cuda:1\"), on the host "
    "(\"cpu\"), with a dtype (\"f64\"), or with the device and dtype of another tensor. Two of "
    "these can be given. Returns t itself if nothing changes, otherwise a copy, made as by copy_. "
    "With non_blocking, a copy to the host is in pinned memory, and its values are there after a "
    "wait for the stream.") {
    mr_caller caller = mr_enter_as(L, "to");
    mr_tensor *t = mr_check_tensor(L, 1);
    target to = target_of(t);
    int options, last = mr_split_options(L, 0, &options);
    if (last < 2)
        return mr_misuse(L, "to: an argument is missing: expected a device, \"cpu\" or a dtype");
    for (int arg = 2; arg <= last; arg++) check_target(L, arg, &to);
    return push_moved(L, &caller, t, to, options && check_non_blocking(L, options));
}

MR_RECORDED_FUNCTION(
    tensor_cpu, "cpu", "t:cpu([{non_blocking: boolean=false}]) -> tensor",
    "The same as t:to(\"cpu\"): returns the tensor in host memory. The host waits for the "
    "values, unless non_blocking is set.") {
    mr_caller caller = mr_enter_as(L, "cpu");
    mr_tensor *t = mr_check_tensor(L, 1);
    target to = {(mr_dtype)t->dtype, NULL};
    return push_moved(L, &caller, t, to, check_non_blocking(L, 2));
}

MR_RECORDED_FUNCTION(
    tensor_cuda, "cuda",
    "t:cuda([device: device|integer] [, {non_blocking: boolean=false}]) -> tensor",
    "Returns the tensor on this device (default: the current device); t itself if it is "
    "already there.") {
    mr_caller caller = mr_enter_as(L, "cuda");
    mr_tensor *t = mr_check_tensor(L, 1);
    target to = {(mr_dtype)t->dtype, caller.machine->current_device};
    int options, last = mr_split_options(L, 0, &options);
    if (last >= 2 && !lua_isnil(L, 2)) to.device = mr_check_device(L, 2);
    return push_moved(L, &caller, t, to, options && check_non_blocking(L, options));
}

MR_RECORDED_FUNCTION(
    tensor_pin_memory, "pin_memory", "t:pin_memory() -> tensor",
    "Returns a copy of a host tensor in pinned memory, which the device can access without "
    "the host; t itself if it is already pinned.") {
    mr_caller caller = mr_enter_as(L, "pin_memory");
    mr_tensor *t = mr_check_tensor(L, 1);
    char name[160];
    if (!mr_tensor_on_host(t))
        return mr_misuse(L, "pin_memory: %s is on device %d; only host tensors can be pinned",
                         mr_tensor_describe(t, name, sizeof name), t->storage->device->index);
    lua_settop(L, 1);
    if (t->storage->kind == MR_MEMORY_PINNED) return 1;
    mr_new_options options = {.dtype = (mr_dtype)t->dtype, .placement.kind = MR_MEMORY_PINNED};
    mr_tensor *pinned = mr_push_empty(L, &caller, &options, t->ndim, t->shape);
    mr_finish_new(L, mr_copy(&caller, pinned, t, NULL, false));
    return 1;
}

/* --- to Lua's values ---------------------------------------------------------------------------- */

MR_FUNCTION(tensor_item, "item", "t:item() -> number or boolean",
            "Returns the value of a tensor with one element as an integer, a float or a boolean, "
            "depending on its dtype. The value of a device tensor is copied in the current stream, "
            "and the host waits for that stream.") {
    mr_caller caller = mr_enter_as(L, "item");
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_scalar value;
    char name[160], shape[128];
    if (t->numel != 1)
        return mr_misuse(L, "item: %s has the shape %s, expected a single element",
                         mr_tensor_describe(t, name, sizeof name),
                         mr_shape_text(t->ndim, t->shape, shape, sizeof shape));
    mr_raise(L, mr_item(&caller, t, &value));
    mr_push_scalar(L, (mr_dtype)t->dtype, value);
    return 1;
}

mr_tensor *mr_push_on_host(lua_State *L, const mr_caller *caller, mr_tensor *t) {
    mr_tensor **slot = mr_new_tensor(L);
    mr_raise(L, mr_to_host(caller, t, slot));
    mr_made_tensor(L, *slot);
    return *slot;
}

/* Pushes the values from `data` on as a table nested `t->ndim - dim` deep. */
static void push_values(lua_State *L, const mr_machine *machine, const mr_tensor *t, int dim,
                        const char *data) {
    if (dim == t->ndim) {
        mr_push_scalar(L, (mr_dtype)t->dtype, mr_dtype_load((mr_dtype)t->dtype, data));
        return;
    }
    int64_t step = t->stride[dim] * (int64_t)mr_dtype_size((mr_dtype)t->dtype);
    int64_t size = t->shape[dim];
    lua_createtable(L, size < INT32_MAX ? (int)size : 0, 0);
    for (int64_t i = 0; i < size; i++) {
        mr_check_stop(L, machine, i, "making a table of a tensor");
        push_values(L, machine, t, dim + 1, data + i * step);
        lua_rawseti(L, -2, i + 1);
    }
}

MR_FUNCTION(tensor_totable, "totable", "t:totable() -> table",
            "Returns the values as nested tables of integers, floats or booleans; for a 0-dim "
            "tensor, the value itself. The values of a device tensor are copied in the current "
            "stream, and the host waits for that stream.") {
    mr_caller caller = mr_enter_as(L, "totable");
    const mr_tensor *t = mr_push_on_host(L, &caller, mr_check_tensor(L, 1));
    push_values(L, caller.machine, t, 0, mr_tensor_data(t));
    mr_let_go(L, -2);
    return 1;
}

/* --- questions about the values -------------------------------------------------------------------- */

/* The result of the row on one or two inputs, which is pushed as the value at `at`. */
static mr_tensor *push_asked(lua_State *L, const mr_caller *caller, mr_op_id id, mr_tensor *a,
                             mr_tensor *b, int at) {
    mr_call call = {.in = {{.tensor = a}, {.tensor = b}}, .in_count = b ? 2 : 1};
    mr_push_result(L, caller, &mr_ops[id], &call, 0);
    return mr_check_tensor(L, at);
}

MR_FUNCTION(
    tensor_has_nan, "has_nan", "t:has_nan() -> boolean",
    "Returns whether at least one element is NaN. For floats this asks the device in the "
    "current stream, and the host waits for that stream; integers and bools are never NaN.") {
    mr_caller caller = mr_enter_as(L, "has_nan");
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_scalar value = {0};
    lua_settop(L, 1);
    if (mr_dtype_category((mr_dtype)t->dtype) == 2) {
        mr_raise(L, mr_may_read(&caller, t));
        mr_tensor *where =
            push_asked(L, &caller, MR_OP_ne, t, t, 2); /* NaN alone differs from itself */
        mr_raise(L, mr_item(&caller, push_asked(L, &caller, MR_OP_any, where, NULL, 3), &value));
        mr_let_go(L, 2);
        mr_let_go(L, 3);
    }
    lua_pushboolean(L, value.i != 0);
    return 1;
}

/* --- docs --------------------------------------------------------------------------------------- */

static const mr_function *const functions[] = {
    &tensor_copy_function,    &tensor_to_function,         &tensor_cpu_function,
    &tensor_cuda_function,    &tensor_pin_memory_function, &tensor_item_function,
    &tensor_totable_function, &tensor_has_nan_function,    NULL,
};

const mr_class mr_tensor_move_class = {
    "tensor",
    "Copies run on the current stream of the device. After a copy between device and host, the "
    "host waits for that stream, unless non_blocking is set. Other copies do not wait.",
    functions,
    NULL,
    &mr_kind_tensor,
};

void mr_open_tensor_move(lua_State *L) {
    mr_class_extend(L, &mr_tensor_move_class);
}
