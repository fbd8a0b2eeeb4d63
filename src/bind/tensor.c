/* The tensor userdata: who owns what, and its life. Facts, views, indexing and the moving of data have
 * files of their own.
 *
 * Easiest to break: a userdata owns one reference to the tensor and one handle to its storage. The
 * handle says that the script can still reach the memory; when the last one goes, device memory is
 * freed in stream order, although pending work may still name it. */
#include <stdio.h>
#include <string.h>

#include "bind/tensor.h"

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

mr_tensor *mr_check_facts(lua_State *L, int arg, bool *out_closed) {
    box *b = mr_check(L, arg, &mr_tensor_class);
    if (!b->tensor) mr_bad_argument(L, arg, "a tensor");
    if (out_closed) *out_closed = b->closed;
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
    let_go(mr_test(L, index, &mr_tensor_class));
}

void mr_finish_new(lua_State *L, mr_status status) {
    if (!status) return;
    mr_let_go(L, -1);
    mr_raise(L, status);
}

/* --- methods: lifetime -------------------------------------------------------------------------- */

MR_FUNCTION(
    tensor_free, "free", "t:free([{stream: stream, sync: boolean=false}])",
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

MR_FUNCTION(
    tensor_record_stream, "record_stream", "t:record_stream(s: stream) -> tensor",
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
    box *b = mr_test(L, 1, &mr_tensor_class);
    mr_lend_stack(L);
    if (b) let_go(b);
    return 0;
}

MR_FUNCTION(
    tensor_close, "__close", "local t <close> = ...",
    "The end of the block drops this handle; the last one frees the memory in stream order. "
    "Silent after t:free().") {
    box *b = mr_test(L, 1, &mr_tensor_class);
    if (!b || !b->tensor || b->closed) return 0;
    b->where = mr_enter(L)->where;
    mr_raise(L, mr_storage_close_handle(b->tensor->storage));
    b->closed = true;
    return 0;
}

/* --- metamethods -------------------------------------------------------------------------------- */

MR_FUNCTION(
    tensor_index, "__index", "t[i] -> tensor",
    "A view, and no copy. t[i]: element or row i, from 1, or from the end when negative; of a 1-D "
    "tensor that is a 0-dim tensor, read by item(). t[{ {1, 3}, 2 }]: for each dim a number, which "
    "selects, or a range {first, last [, step]} with both ends in it, {i} for one that keeps its "
    "dim, {} for all; dims that are not mentioned stay whole.") {
    if (lua_type(L, 2) == LUA_TSTRING) return mr_class_lookup(L);
    return mr_tensor_get_index(L);
}

MR_FUNCTION(
    tensor_newindex, "__newindex", "t[i] = value",
    "Writes a number or boolean into every element that t[i] shows, or copies a tensor there, as "
    "fill_ and copy_ do it.") {
    return mr_tensor_set_index(L);
}

/* --- docs --------------------------------------------------------------------------------------- */

static const mr_function *const functions[] = {
    &tensor_free_function,
    &tensor_record_stream_function,
    &tensor_index_function,
    &tensor_newindex_function,
    &tensor_gc_function,
    &tensor_close_function,
    NULL,
};

const mr_class mr_tensor_class = {
    "tensor",
    "A typed, strided view of device or host memory. Shapes, dims and elements count from 1. `==` "
    "compares identity; mr.equal compares values.",
    functions,
    mr_tensor_facts,
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
    mr_open_tensor_facts(L, machine);
    mr_open_tensor_view(L, machine);
    mr_open_tensor_move(L, machine);
    mr_open_literal(L, machine);
    mr_open_joining(L, machine);
    mr_open_compare(L, machine);
    mr_open_format(L, machine);
}
