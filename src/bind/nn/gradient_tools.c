/* Functions that lua/millrace/autograd.lua needs beyond the tensor's own. They read autograd's data of a tensor, the
 * version of its values, and its stream. They also make views that only a backward pass needs.
 *
 * They are called for each recorded operation and for each node of a backward pass. */
#include "bind/nn/gradient.h"

#include <string.h>

#include "bind/explore.h"
#include "bind/record.h"
#include "bind/tensor_box.h"

/* --- what autograd keeps ------------------------------------------------------------------------ */

/* state(x) -> the table of a tensor; or nil, as it has none or is not a tensor, and the tensor that it is a view of or
 * nil */
static int state(lua_State *L) {
    lua_settop(L, 1);
    if (!mr_test(L, 1, &mr_kind_tensor)) return 0;
    mr_push_gradient_state(L, 1);
    if (!lua_isnil(L, -1)) return 1;
    mr_push_base(L, 1);
    return 2;
}

/* set_state(t, table or nil, tracked) */
static int set_state(lua_State *L) {
    bool tracked = lua_toboolean(L, 3);
    lua_settop(L, 2);
    mr_set_gradient_state(L, 1, tracked);
    return 0;
}

/* base(t) -> the tensor that t is a view of, or nil */
static int base(lua_State *L) {
    mr_check(L, 1, &mr_kind_tensor);
    mr_push_base(L, 1);
    return 1;
}

/* set_off(boolean) -> the old value */
static int set_off(lua_State *L) {
    mr_module *module = mr_module_of(L);
    bool before = module->gradients_off;
    module->gradients_off = lua_toboolean(L, 1);
    lua_pushboolean(L, before);
    return 1;
}

/* --- values ------------------------------------------------------------------------------------- */

static bool is_usable(const mr_tensor *t, bool closed) {
    if (closed) return false;
    mr_status status = mr_tensor_usable(t);
    if (!status) return true;
    mr_error_destroy(status);
    return false;
}

/* version(t) -> a number that grows with each write to the memory of t; -1: t is no longer usable */
static int version(lua_State *L) {
    bool closed;
    const mr_tensor *t = mr_check_facts(L, 1, &closed);
    lua_pushinteger(L, is_usable(t, closed) ? (lua_Integer)t->storage->version : -1);
    return 1;
}

/* writer(t) -> the operation that last wrote to the memory of t, and its line or nil */
static int writer(lua_State *L) {
    const mr_storage *storage = mr_check_facts(L, 1, NULL)->storage;
    lua_pushstring(L, storage->writer ? storage->writer : "an operation");
    mr_push_site(L, storage->writer_where);
    return 2;
}

/* check(t): raises if it cannot be used */
static int check(lua_State *L) {
    mr_check_tensor(L, 1);
    return 0;
}

/* describe(t) -> "`x`" or "tensor #7 ..." */
static int describe(lua_State *L) {
    char text[160];
    lua_pushstring(L, mr_tensor_describe(mr_check_facts(L, 1, NULL), text, sizeof text));
    return 1;
}

/* number(t) -> its number, and that of the newest tensor: tensors are numbered in the order in which they were made */
static int number(lua_State *L) {
    const mr_tensor *t = mr_check_facts(L, 1, NULL);
    lua_pushinteger(L, (lua_Integer)t->id);
    lua_pushinteger(L, (lua_Integer)t->storage->machine->counts.next_tensor);
    return 2;
}

static int is_tensor(lua_State *L) {
    lua_pushboolean(L, mr_test(L, 1, &mr_kind_tensor) != NULL);
    return 1;
}

static int is_float(lua_State *L) {
    const mr_tensor *t = mr_check_facts(L, 1, NULL);
    lua_pushboolean(L, mr_dtype_category((mr_dtype)t->dtype) == 2);
    return 1;
}

/* same_form(a, b) -> whether both have one shape and one dtype */
static int same_form(lua_State *L) {
    const mr_tensor *a = mr_check_facts(L, 1, NULL), *b = mr_check_facts(L, 2, NULL);
    lua_pushboolean(L, a->dtype == b->dtype && mr_same_shape(a, b));
    return 1;
}

/* repeats(t) -> whether several elements of t share one place in memory because it was expanded */
static int repeats(lua_State *L) {
    const mr_tensor *t = mr_check_facts(L, 1, NULL);
    bool repeats = false;
    for (int d = 0; d < t->ndim; d++) repeats = repeats || (t->stride[d] == 0 && t->shape[d] > 1);
    lua_pushboolean(L, repeats);
    return 1;
}

/* shares(a, b) -> whether they are in one memory */
static int shares(lua_State *L) {
    lua_pushboolean(L, mr_check_facts(L, 1, NULL)->storage == mr_check_facts(L, 2, NULL)->storage);
    return 1;
}

/* drop(t): frees a tensor that no script has seen, as its collection would */
static int drop(lua_State *L) {
    mr_set_context(L);
    mr_let_go(L, 1);
    return 0;
}

/* take(t, other): t gets the contents of `other`, a temporary that no script has seen */
static int take_tensor(lua_State *L) {
    mr_set_context(L);
    mr_check_tensor(L, 1);
    mr_check_tensor(L, 2);
    mr_take_tensor(L, 1, 2);
    return 0;
}

/* Where a view lies in a contiguous tensor: what region() packs and part() reads. */
typedef struct {
    int64_t offset;
    int ndim;
    int64_t shape[MR_MAX_DIMS], stride[MR_MAX_DIMS];
} packed_region;

/* region(view, of) -> a string that says where `view` lies in `of`, which is contiguous. Dims that repeat one element
 * have size 1. */
static int region(lua_State *L) {
    const mr_tensor *view = mr_check_facts(L, 1, NULL), *of = mr_check_facts(L, 2, NULL);
    packed_region r = {0};
    r.offset = view->offset - of->offset;
    r.ndim = view->ndim;
    for (int d = 0; d < view->ndim; d++) {
        bool repeats = view->stride[d] == 0 && view->shape[d] > 1;
        r.shape[d] = repeats ? 1 : view->shape[d];
        r.stride[d] = view->stride[d];
    }
    lua_pushlstring(L, (const char *)&r, sizeof r);
    return 1;
}

/* part(t, region) -> the view of t, a contiguous tensor of the shape of `of` */
static int part(lua_State *L) {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    packed_region r;
    size_t size;
    const char *packed = luaL_checklstring(L, 2, &size);
    luaL_argcheck(L, size == sizeof r, 2, "a region");
    memcpy(&r, packed, sizeof r);
    mr_raise(L, mr_tensor_view(&caller, t, (mr_dtype)t->dtype, r.ndim, r.shape, r.stride,
                               t->offset + r.offset, mr_new_tensor(L)));
    return 1;
}

/* alias(t) -> a new tensor that is the same view of the same memory, unknown to autograd */
static int alias(lua_State *L) {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_raise(L, mr_tensor_view(&caller, t, (mr_dtype)t->dtype, t->ndim, t->shape, t->stride,
                               t->offset, mr_new_tensor(L)));
    return 1;
}

/* --- streams and lines -------------------------------------------------------------------------- */

/* stream_of(t) -> the current stream of its device; nil: it is on the host */
static int stream_of(lua_State *L) {
    const mr_tensor *t = mr_check_facts(L, 1, NULL);
    if (t->storage->kind == MR_MEMORY_DEVICE) mr_push_stream(L, &t->storage->device->current);
    else lua_pushnil(L);
    return 1;
}

static void use_on(lua_State *L, mr_storage *storage, mr_stream *stream) {
    if (storage->kind == MR_MEMORY_DEVICE && storage->stream != stream)
        mr_raise(L, mr_storage_record_stream(storage, stream));
}

/* used_on(t, stream): record_stream, also for tensors on the host, where nothing is to be done */
static int used_on(lua_State *L) {
    mr_storage *storage = mr_check_tensor(L, 1)->storage;
    use_on(L, storage, mr_check_stream(L, 2));
    return 0;
}

/* take(t, version, stream or nil) -> whether t still has the values of that version; if so, notes that the stream will
 * read it */
static int take(lua_State *L) {
    bool closed;
    const mr_tensor *t = mr_check_facts(L, 1, &closed);
    bool same = t->storage->version == (uint64_t)lua_tointeger(L, 2) && is_usable(t, closed);
    if (same && !lua_isnil(L, 3)) use_on(L, t->storage, mr_check_stream(L, 3));
    lua_pushboolean(L, same);
    return 1;
}

/* line() -> the script's file, as an address that lasts, and line */
static int line(lua_State *L) {
    mr_caller caller = mr_enter(L);
    lua_pushlightuserdata(L, (void *)caller.where.file);
    lua_pushinteger(L, caller.where.line);
    return 2;
}

/* place(file, line) -> "race.lua:3", from the results of line() */
static int place(lua_State *L) {
    mr_push_site(L, (mr_site){lua_touserdata(L, 1), (int)lua_tointeger(L, 2)});
    return 1;
}

/* load(text) -> the text of a derivative as a function */
static int load(lua_State *L) {
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    if (luaL_loadbufferx(L, text, size, "=millrace.derivatives", "t") != LUA_OK)
        return lua_error(L);
    return 1;
}

static int misuse(lua_State *L) {
    return mr_misuse(L, "%s", luaL_checkstring(L, 1));
}

/* adds_to(gradient): tells mr.explore that this call adds to a gradient of an earlier call, so its result differs */
static int adds_to(lua_State *L) {
    mr_tensor *t = mr_check_tensor(L, 1);
    if (t->storage->id > mr_bind_machine(L)->memory.stay_until_end) return 0;
    mr_bind_explore_differs(
        L, "backward(), which adds to the gradient that an earlier call has left: begin it "
           "with zero_grad() or t.grad = nil");
    return 0;
}

const luaL_Reg mr_gradient_tools[] = {{"adds_to", adds_to},
                                      {"state", state},
                                      {"set_state", set_state},
                                      {"base", base},
                                      {"set_off", set_off},
                                      {"version", version},
                                      {"writer", writer},
                                      {"check", check},
                                      {"describe", describe},
                                      {"is_float", is_float},
                                      {"same_form", same_form},
                                      {"shares", shares},
                                      {"drop", drop},
                                      {"region", region},
                                      {"part", part},
                                      {"alias", alias},
                                      {"stream_of", stream_of},
                                      {"used_on", used_on},
                                      {"take", take},
                                      {"load", load},
                                      {"is_tensor", is_tensor},
                                      {"line", line},
                                      {"place", place},
                                      {"misuse", misuse},
                                      {"number", number},
                                      {"repeats", repeats},
                                      {"take_tensor", take_tensor},
                                      {NULL, NULL}};
