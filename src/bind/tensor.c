/* The tensor userdata: who owns what, its life and its facts. Views, indexing and the moving of data
 * have files of their own.
 *
 * Easiest to break: a userdata owns one reference to the tensor and one handle to its storage. The
 * handle says that the script can still reach the memory; when the last one goes, device memory is
 * freed in stream order, although pending work may still name it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bind/tensor.h"
#include "model/backend.h"

/* --- state -------------------------------------------------------------------------------------- */

/* A closed box has dropped its handle and keeps its reference until it is collected: a finalizer may
 * close a tensor in the middle of a call that is using it. */
typedef struct {
    mr_tensor *tensor; /* first: mr_new_tensor hands out its address. NULL: not made yet */
    bool closed;
    mr_site where; /* it was closed */
} box;

#define COLLECT_AFTER_BYTES ((uint64_t)64 << 20)

/* --- check -------------------------------------------------------------------------------------- */

static int was_closed(lua_State *L, const box *b) {
    char name[160], where[160] = "";
    if (b->where.file) snprintf(where, sizeof where, " at %s:%d", b->where.file, b->where.line);
    return mr_misuse(L, "%s was closed%s: it was declared <close>, and its block has ended",
                     mr_tensor_describe(b->tensor, name, sizeof name), where);
}

/* The tensor, be it closed or freed: its shape is still known, which helps in finding the mistake. */
static mr_tensor *check_facts(lua_State *L, int arg) {
    box *b = mr_check(L, arg, &mr_tensor_class);
    if (!b->tensor) mr_bad_argument(L, arg, "a tensor");
    return b->tensor;
}

mr_tensor *mr_check_tensor(lua_State *L, int arg) {
    box *b = mr_check(L, arg, &mr_tensor_class);
    if (!b->tensor) mr_bad_argument(L, arg, "a tensor");
    if (b->closed) was_closed(L, b);
    mr_raise(L, mr_tensor_usable(b->tensor));
    return b->tensor;
}

mr_tensor *mr_test_tensor(lua_State *L, int arg) {
    box *b = mr_test(L, arg, &mr_tensor_class);
    return b ? b->tensor : NULL;
}

/* --- constructor -------------------------------------------------------------------------------- */

mr_tensor **mr_new_tensor(lua_State *L) {
    box *b = mr_new(L, &mr_tensor_class, sizeof *b);
    return &b->tensor;
}

static uint64_t live_bytes(const mr_machine *machine) {
    uint64_t live = machine->host_live_bytes;
    for (int i = 0; i < machine->device_count; i++) live += machine->devices[i]->memory.live;
    return live;
}

/* Lua sees a tensor of a gigabyte as a few dozen bytes and is in no hurry to collect it. So we watch
 * for it: the garbage goes when as much has been allocated since the last collection as was live after
 * it, which is what is live now without what came since. */
void mr_made_tensor(lua_State *L, mr_tensor *tensor) {
    mr_machine *machine = tensor->storage->machine;
    if (machine->bytes_since_collect < COLLECT_AFTER_BYTES) return;
    if (machine->bytes_since_collect < live_bytes(machine) / 2) return;
    machine->bytes_since_collect = 0;
    lua_gc(L, LUA_GCCOLLECT);
}

/* Leaves an empty box; a closed one has dropped its handle before. */
static void let_go(box *b) {
    mr_tensor *t = b->tensor;
    if (!t) return;
    b->tensor = NULL;
    if (!b->closed) mr_storage_drop_handle(t->storage);
    mr_tensor_release(t);
}

void mr_let_go(lua_State *L, int index) {
    let_go(lua_touserdata(L, index));
}

void mr_finish_new(lua_State *L, mr_status status) {
    if (!status) return;
    mr_let_go(L, -1);
    mr_raise(L, status);
}

/* --- methods: lifetime -------------------------------------------------------------------------- */

MR_FUNCTION(tensor_free, "free", "t:free([{stream: stream, sync: boolean=false}])",
            "Frees the memory now, under this tensor and all its views; any later use of them raises. "
            "In the order of the stream that it was made on, or of `stream` (cudaFreeAsync); with sync "
            "as cudaFree does it, which may wait (R27). Freeing twice is an error.") {
    static const char *const known[] = {"stream", "sync", NULL};
    mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_free_mode mode = MR_FREE_OWN_STREAM;
    mr_stream *stream = NULL;
    if (mr_options_check(L, 2, known)) {
        stream = mr_option_stream(L, 2, "stream");
        if (stream) mode = MR_FREE_ON_STREAM;
        if (mr_option_boolean(L, 2, "sync", false)) {
            if (stream) return mr_misuse(L, "free: give stream= or sync=true, not both");
            mode = MR_FREE_SYNC;
        }
    }
    mr_raise(L, mr_storage_free(t->storage, mode, stream));
    return 0;
}

MR_FUNCTION(tensor_record_stream, "record_stream", "t:record_stream(s: stream) -> tensor",
            "Says that work on `s` uses the memory: when it is freed, it is given out again only after "
            "the work that `s` has been given up to then (R33). Without it, a tensor that was used on "
            "another stream than its own may be overwritten under that work. Returns t.") {
    mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_stream *stream = mr_check_stream(L, 2);
    mr_raise(L, mr_storage_record_stream(t->storage, stream));
    lua_settop(L, 1);
    return 1;
}

MR_FUNCTION(tensor_gc, "__gc", "", "Drops the handle; the last one frees the memory.") {
    let_go(lua_touserdata(L, 1));
    return 0;
}

MR_FUNCTION(tensor_close, "__close", "local t <close> = ...",
            "The end of the block drops this handle; the last one frees the memory in stream order. "
            "Silent after t:free().") {
    box *b = mr_test(L, 1, &mr_tensor_class);
    if (!b || !b->tensor || b->closed) return 0;
    b->closed = true;
    b->where = mr_enter(L)->where;
    mr_storage_drop_handle(b->tensor->storage);
    return 0;
}

/* --- methods: facts ----------------------------------------------------------------------------- */

MR_FUNCTION(tensor_name, "name", "t:name([name: string]) -> string",
            "The name that messages and reports use, or nil; with an argument sets it and returns t. "
            "A storage goes by the name that was given last to a tensor on it.") {
    mr_tensor *t = check_facts(L, 1);
    if (lua_isnoneornil(L, 2)) {
        if (t->name)
            lua_pushstring(L, t->name);
        else
            lua_pushnil(L);
        return 1;
    }
    t->name = t->storage->name = mr_check_name(L, 2);
    lua_settop(L, 1);
    return 1;
}

MR_FUNCTION(tensor_size, "size", "t:size([dim: integer]) -> integer or integer[]",
            "The size of a dim (from 1; negative from the end), or all sizes as a table.") {
    mr_tensor *t = check_facts(L, 1);
    if (lua_isnoneornil(L, 2)) {
        mr_push_shape(L, t->ndim, t->shape);
        return 1;
    }
    int dim = mr_check_dim(L, "size", 2, t->ndim);
    if (t->ndim == 0) return mr_misuse(L, "size: a 0-dim tensor has no dims");
    lua_pushinteger(L, t->shape[dim]);
    return 1;
}

MR_FUNCTION(tensor_len, "__len", "#t -> integer", "The size of the first dim.") {
    mr_tensor *t = check_facts(L, 1);
    if (t->ndim == 0) return mr_misuse(L, "#: a 0-dim tensor has no length; its value is t:item()");
    lua_pushinteger(L, t->shape[0]);
    return 1;
}

static int get_data_ptr(lua_State *L) {
    const mr_tensor *t = check_facts(L, 1);
    uint64_t offset = (uint64_t)t->offset * mr_dtype_size((mr_dtype)t->dtype);
    lua_pushinteger(L, (lua_Integer)(t->storage->address + offset));
    return 1;
}

static int get_storage_id(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)check_facts(L, 1)->storage->id);
    return 1;
}

static int get_shape(lua_State *L) {
    const mr_tensor *t = check_facts(L, 1);
    mr_push_shape(L, t->ndim, t->shape);
    return 1;
}

static int get_stride(lua_State *L) {
    const mr_tensor *t = check_facts(L, 1);
    mr_push_shape(L, t->ndim, t->stride);
    return 1;
}

static int get_dtype(lua_State *L) {
    lua_pushstring(L, mr_dtype_text((mr_dtype)check_facts(L, 1)->dtype));
    return 1;
}

static int get_device(lua_State *L) {
    const mr_tensor *t = check_facts(L, 1);
    if (mr_tensor_on_host(t))
        lua_pushliteral(L, "cpu");
    else
        mr_push_device(L, t->storage->device);
    return 1;
}

static int get_numel(lua_State *L) {
    lua_pushinteger(L, check_facts(L, 1)->numel);
    return 1;
}

static int get_ndim(lua_State *L) {
    lua_pushinteger(L, check_facts(L, 1)->ndim);
    return 1;
}

static int get_itemsize(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)mr_dtype_size((mr_dtype)check_facts(L, 1)->dtype));
    return 1;
}

static int get_nbytes(lua_State *L) {
    const mr_tensor *t = check_facts(L, 1);
    lua_pushinteger(L, t->numel * (lua_Integer)mr_dtype_size((mr_dtype)t->dtype));
    return 1;
}

static int get_pinned(lua_State *L) {
    lua_pushboolean(L, check_facts(L, 1)->storage->kind == MR_MEMORY_PINNED);
    return 1;
}

static int get_contiguous(lua_State *L) {
    lua_pushboolean(L, check_facts(L, 1)->contiguous);
    return 1;
}

/* --- metamethods -------------------------------------------------------------------------------- */

MR_FUNCTION(tensor_index, "__index", "t[i] -> tensor",
            "A view, and no copy. t[i]: element or row i, from 1, or from the end when negative; of a 1-D "
            "tensor that is a 0-dim tensor, read by item(). t[{ {1, 3}, 2 }]: for each dim a number, which "
            "selects, or a range {first, last [, step]} with both ends in it, {i} for one that keeps its "
            "dim, {} for all; dims that are not mentioned stay whole.") {
    if (lua_type(L, 2) == LUA_TSTRING) return mr_class_lookup(L);
    return mr_tensor_get_index(L);
}

MR_FUNCTION(tensor_newindex, "__newindex", "t[i] = value",
            "Writes a number or boolean into every element that t[i] shows, or copies a tensor there, as "
            "fill_ and copy_ do it.") {
    return mr_tensor_set_index(L);
}

/* How many pending operations touch a storage. */
typedef struct {
    const mr_storage *storage;
    int count;
} pending_count;

static void count_pending(void *context, const mr_pending *pending) {
    pending_count *pendings = context;
    const mr_action *action = pending->action;
    for (uint32_t i = 0; i < action->operand_count; i++) {
        if (action->operands[i].tensor->storage != pendings->storage) continue;
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
    if (simulator) simulator->pending(machine, count_pending, &pendings);
    if (pendings.count) lua_pushfstring(L, ", %d pending", pendings.count);
    else lua_pushliteral(L, "");
    if (writer && t->storage->writer_where.file) {
        lua_pushfstring(L, ", last written by %s at ", writer);
        mr_push_site(L, t->storage->writer_where);
        lua_concat(L, 3);
    }
}

MR_FUNCTION(tensor_tostring, "__tostring", "tostring(t) -> string",
            "One line with name, dtype, shape and place, how many pending operations touch its memory, "
            "and which wrote it last; does not look at the values and waits for nothing. For the values: "
            "print(t), mr.format(t).") {
    const box *b = mr_check(L, 1, &mr_tensor_class);
    const mr_tensor *t = check_facts(L, 1);
    char signature[160], stream[96], text[512];
    const char *quote = t->name ? "`" : "", *space = t->name ? " " : "";
    int used = snprintf(text, sizeof text, "tensor %s%s%s%s%s", quote, t->name ? t->name : "", quote,
                        space, mr_tensor_signature(t, signature, sizeof signature));
    size_t room = sizeof text - (size_t)used;
    if (t->storage->kind == MR_MEMORY_DEVICE)
        used += snprintf(text + used, room, " device %d, %s", t->storage->device->index,
                         mr_stream_describe(t->storage->stream, stream, sizeof stream));
    else
        used += snprintf(text + used, room, t->storage->kind == MR_MEMORY_PINNED ? " cpu, pinned" : " cpu");
    bool gone = b->closed || t->storage->freed;
    if (gone) lua_pushstring(L, b->closed ? " (closed)" : " (freed)");
    else push_state(L, t);
    lua_pushfstring(L, "%s%s", text, lua_tostring(L, -1));
    return 1;
}

/* --- docs --------------------------------------------------------------------------------------- */

static const mr_function *const functions[] = {
    &tensor_free_function,     &tensor_record_stream_function, &tensor_name_function,
    &tensor_size_function,     &tensor_len_function,           &tensor_index_function,
    &tensor_newindex_function, &tensor_tostring_function,      &tensor_gc_function,
    &tensor_close_function,    NULL,
};

static const mr_property properties[] = {
    {"data_ptr", "integer", "The address of the first element.", get_data_ptr},
    {"storage_id", "integer", "Which memory it shows: views of one tensor have the same.",
     get_storage_id},
    {"shape", "integer[]", "The sizes of its dims, a new table each time.", get_shape},
    {"stride", "integer[]", "Elements from one index to the next, for each dim.", get_stride},
    {"dtype", "string", "\"f32\" \"f64\" \"i32\" \"i64\" \"u8\" or \"bool\".", get_dtype},
    {"device", "device or string", "The device that it lives on, or \"cpu\" for host memory.",
     get_device},
    {"numel", "integer", "How many elements it has.", get_numel},
    {"ndim", "integer", "How many dims; 0 for a single value.", get_ndim},
    {"itemsize", "integer", "Bytes of an element.", get_itemsize},
    {"nbytes", "integer", "Bytes of all elements.", get_nbytes},
    {"pinned", "boolean", "Host memory that the device can reach by itself.", get_pinned},
    {"contiguous", "boolean", "Row-major, without gaps.", get_contiguous},
    {NULL, NULL, NULL, NULL},
};

const mr_class mr_tensor_class = {
    "tensor",
    "A typed, strided view of device or host memory. Shapes, dims and elements count from 1. `==` "
    "compares identity; mr.equal compares values.",
    functions,
    properties,
};

const mr_property mr_no_properties[] = {{NULL, NULL, NULL, NULL}};

/* --- open --------------------------------------------------------------------------------------- */

void mr_tensor_push_methods(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &mr_tensor_class);
    lua_getfield(L, -1, "methods");
    lua_remove(L, -2);
}

void mr_tensor_extend(lua_State *L, mr_machine *machine, const mr_class *part) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &mr_tensor_class);
    lua_getfield(L, -1, "methods");
    for (const mr_function *const *f = part->functions; *f; f++) {
        bool meta = strncmp((*f)->name, "__", 2) == 0;
        lua_pushlightuserdata(L, machine);
        lua_pushcclosure(L, (*f)->call, 1);
        lua_setfield(L, meta ? -3 : -2, (*f)->name);
    }
    lua_pop(L, 1);
    /* Under the part's own key too: help looks there for the methods of each class. */
    lua_rawsetp(L, LUA_REGISTRYINDEX, part);
}

/* __index goes on to mr_class_lookup for strings, so it needs that one's upvalues. */
static void open_index(lua_State *L, mr_machine *machine) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &mr_tensor_class);
    lua_pushlightuserdata(L, machine);
    lua_getfield(L, -2, "methods");
    lua_getfield(L, -3, "getters");
    lua_pushlightuserdata(L, (void *)&mr_tensor_class);
    lua_pushcclosure(L, tensor_index, 4);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void mr_open_tensor(lua_State *L, mr_machine *machine) {
    mr_class_open(L, machine, &mr_tensor_class);
    open_index(L, machine);
    mr_open_tensor_view(L, machine);
    mr_open_tensor_move(L, machine);
    mr_open_literal(L, machine);
    mr_open_joining(L, machine);
    mr_open_compare(L, machine);
    mr_open_format(L, machine);
}
