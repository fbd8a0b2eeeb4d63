/* Everything about a tensor except its values: properties, sizes, its name, and the line that tostring
 * shows. All of this can be read after t:free(), too. */
#include <stdio.h>

#include "bind/open.h"
#include "bind/ops/shape.h"
#include "bind/nn/gradient.h"
#include "bind/tensor/tensor.h"
#include "bind/hazard/waits.h"
#include "model/backend.h"

MR_FUNCTION(tensor_name, "name", "t:name([name: string]) -> string",
            "Without an argument, returns the name that messages and reports use, or nil. With an "
            "argument, sets the name and returns t. If several views of a storage have names, "
            "messages use the last one that was set.") {
    mr_tensor *t = mr_check_facts(L, 1, NULL);
    if (lua_isnoneornil(L, 2)) {
        if (t->name) lua_pushstring(L, t->name->text);
        else lua_pushnil(L);
        return 1;
    }
    mr_raise(L, mr_tensor_set_name(t, mr_check_name(L, 2)));
    lua_settop(L, 1);
    return 1;
}

MR_FUNCTION(
    tensor_size, "size", "t:size([dim: integer]) -> integer or integer[]",
    "Returns the size of a dim (from 1; negative: from the end), or all sizes as a table.") {
    mr_tensor *t = mr_check_facts(L, 1, NULL);
    if (lua_isnoneornil(L, 2)) {
        mr_push_shape(L, t->ndim, t->shape);
        return 1;
    }
    int dim = mr_check_dim(L, "size", 2, t->ndim);
    if (t->ndim == 0) return mr_misuse(L, "size: a 0-dim tensor has no dims");
    lua_pushinteger(L, t->shape[dim]);
    return 1;
}

MR_FUNCTION(tensor_len, "__len", "#t -> integer", "Returns the size of the first dim.") {
    mr_tensor *t = mr_check_facts(L, 1, NULL);
    if (t->ndim == 0) return mr_misuse(L, "#: a 0-dim tensor has no length; its value is t:item()");
    lua_pushinteger(L, t->shape[0]);
    return 1;
}

static int get_data_ptr(lua_State *L) {
    const mr_tensor *t = mr_check_facts(L, 1, NULL);
    if (mr_storage_is_foreign(t->storage)) mr_check_tensor(L, 1); /* raises: for use as a pointer */
    uint64_t offset = (uint64_t)t->offset * mr_dtype_size((mr_dtype)t->dtype);
    mr_observers_learned(t->storage->machine);
    lua_pushinteger(L, (lua_Integer)(t->storage->address + offset));
    return 1;
}

static int get_storage_offset(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)mr_check_facts(L, 1, NULL)->offset);
    return 1;
}

static int get_storage_id(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)mr_check_facts(L, 1, NULL)->storage->id);
    return 1;
}

static int get_shape(lua_State *L) {
    const mr_tensor *t = mr_check_facts(L, 1, NULL);
    mr_push_shape(L, t->ndim, t->shape);
    return 1;
}

static int get_stride(lua_State *L) {
    const mr_tensor *t = mr_check_facts(L, 1, NULL);
    mr_push_shape(L, t->ndim, t->stride);
    return 1;
}

static int get_dtype(lua_State *L) {
    lua_pushstring(L, mr_dtype_text((mr_dtype)mr_check_facts(L, 1, NULL)->dtype));
    return 1;
}

static int get_device(lua_State *L) {
    const mr_tensor *t = mr_check_facts(L, 1, NULL);
    if (mr_tensor_on_host(t)) lua_pushliteral(L, "cpu");
    else mr_push_device(L, t->storage->device);
    return 1;
}

static int get_numel(lua_State *L) {
    lua_pushinteger(L, mr_check_facts(L, 1, NULL)->numel);
    return 1;
}

static int get_ndim(lua_State *L) {
    lua_pushinteger(L, mr_check_facts(L, 1, NULL)->ndim);
    return 1;
}

static int get_itemsize(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)mr_dtype_size((mr_dtype)mr_check_facts(L, 1, NULL)->dtype));
    return 1;
}

static int get_nbytes(lua_State *L) {
    const mr_tensor *t = mr_check_facts(L, 1, NULL);
    lua_pushinteger(L, t->numel * (lua_Integer)mr_dtype_size((mr_dtype)t->dtype));
    return 1;
}

static int get_pinned(lua_State *L) {
    lua_pushboolean(L, mr_check_facts(L, 1, NULL)->storage->kind == MR_MEMORY_PINNED);
    return 1;
}

static int get_contiguous(lua_State *L) {
    lua_pushboolean(L, mr_check_facts(L, 1, NULL)->contiguous);
    return 1;
}

/* How many pending operations touch a storage. */
typedef struct {
    const mr_storage *storage;
    int count;
} pending_count;

static void count_pending(void *context, const mr_pending *pending) {
    pending_count *pendings = context;
    const mr_command *command = pending->command;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        if (command->operands[i].tensor->storage != pendings->storage) continue;
        pendings->count++;
        return;
    }
}

/* Pushes ", 2 pending, last written by add_ at race.lua:7", as far as it is known. */
static void push_state(lua_State *L, const mr_tensor *t) {
    mr_machine *machine = t->storage->machine;
    const mr_simulator *simulator = machine->backend->simulator;
    pending_count pendings = {t->storage, 0};
    const char *writer = t->storage->writer;
    if (simulator) {
        mr_machine_pending(machine, count_pending, &pendings);
        mr_observers_learned(machine);
        mr_bind_waits_looks(L, "tostring", t->storage);
    }
    if (pendings.count) lua_pushfstring(L, ", %d pending", pendings.count);
    else lua_pushliteral(L, "");
    if (writer && t->storage->writer_where.file) {
        lua_pushfstring(L, ", last written by %s at ", writer);
        mr_push_site(L, t->storage->writer_where);
        lua_concat(L, 3);
    }
}

MR_FUNCTION(tensor_tostring, "__tostring", "tostring(t) -> string",
            "Returns one line with name, dtype, shape, device, the number of pending operations "
            "that use its memory, the operation that wrote it last, and whether it requires "
            "gradients. Does not read the values and waits for nothing. print(t) and mr.format(t) "
            "show the values.") {
    bool closed;
    const mr_tensor *t = mr_check_facts(L, 1, &closed);
    char signature[160], stream[96], text[512];
    const char *quote = t->name ? "`" : "", *space = t->name ? " " : "";
    int used = snprintf(text, sizeof text, "tensor %s%s%s%s%s", quote, t->name ? t->name->text : "",
                        quote, space, mr_tensor_signature(t, signature, sizeof signature));
    size_t room = sizeof text - (size_t)used;
    if (t->storage->kind == MR_MEMORY_DEVICE)
        used += snprintf(text + used, room, " device %d, %s", t->storage->device->index,
                         mr_stream_describe(t->storage->stream, stream, sizeof stream));
    else
        used += snprintf(text + used, room,
                         t->storage->kind == MR_MEMORY_PINNED ? " cpu, pinned" : " cpu");
    const char *gone = closed                           ? "closed"
                       : t->storage->freed              ? "freed"
                       : mr_storage_is_lost(t->storage) ? "lost in mr.reset()"
                                                        : NULL;
    if (gone) {
        lua_pushfstring(L, "%s (%s)", text, gone);
        return 1;
    }
    push_state(L, t);
    mr_push_gradient_text(L, 1);
    lua_pushfstring(L, "%s%s%s", text, lua_tostring(L, -1), lua_tostring(L, -2));
    return 1;
}

/* --- docs --------------------------------------------------------------------------------------- */

const mr_property mr_tensor_facts[] = {
    {"data_ptr", "integer", "The address of the first element.", get_data_ptr},
    {"storage_id", "integer", "A number for its memory: views of one tensor have the same.",
     get_storage_id},
    {"storage_offset", "integer", "Where the first element lies in its memory, in elements.",
     get_storage_offset},
    {"shape", "integer[]", "The sizes of its dims, as a new table each time.", get_shape},
    {"stride", "integer[]", "For each dim, the distance in elements from one index to the next.",
     get_stride},
    {"dtype", "string", "\"f32\" \"f64\" \"f16\" \"bf16\" \"i32\" \"i64\" \"u8\" or \"bool\".",
     get_dtype},
    {"device", "device or string", "The device of its memory, or \"cpu\" for host memory.",
     get_device},
    {"numel", "integer", "The number of elements.", get_numel},
    {"ndim", "integer", "The number of dims; 0 for a single value.", get_ndim},
    {"itemsize", "integer", "The bytes of one element.", get_itemsize},
    {"nbytes", "integer", "The bytes of all elements.", get_nbytes},
    {"pinned", "boolean", "Whether it is host memory that the device can access.", get_pinned},
    {"contiguous", "boolean", "Whether it is row-major without gaps.", get_contiguous},
    {NULL, NULL, NULL, NULL},
};

static const mr_function *const functions[] = {
    &tensor_name_function,
    &tensor_size_function,
    &tensor_len_function,
    &tensor_tostring_function,
    NULL,
};

const mr_class mr_tensor_facts_class = {
    "tensor",        "Properties of a tensor can be read at any time, also after it was freed.",
    functions,       NULL,
    &mr_kind_tensor,
};

void mr_open_tensor_facts(lua_State *L) {
    mr_class_extend(L, &mr_tensor_facts_class);
}
