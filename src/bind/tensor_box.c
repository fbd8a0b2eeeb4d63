/* The box of a tensor: the userdata, and its ownership.
 *
 * Easiest to break: a userdata owns one reference to the tensor and one handle to its storage. The handle says that the
 * script can still reach the memory. When the last handle is dropped, device memory is freed in stream order, although
 * pending work may still use it. */
#include <stdio.h>

#include "bind/explore.h"
#include "bind/internal.h"
#include "bind/tensor_box.h"

/* --- state -------------------------------------------------------------------------------------- */

/* A closed box has dropped its handle and keeps its reference until it is collected. A finalizer may
 * close a tensor in the middle of a call that is using it. */
typedef struct {
    mr_tensor *tensor; /* first: mr_new_tensor hands out its address. NULL: not made yet */
    bool closed;
    bool tracked;  /* it requires gradients: its user value is a table of lua/millrace/autograd */
    mr_site where; /* it was closed */
} box;

/* --- check -------------------------------------------------------------------------------------- */

static int was_closed(lua_State *L, const box *b) {
    char name[160], where[160] = "";
    if (b->where.file) snprintf(where, sizeof where, " at %s:%d", b->where.file, b->where.line);
    return mr_misuse(L, "%s was closed%s: it was a <close> variable, and its block has ended",
                     mr_tensor_describe(b->tensor, name, sizeof name), where);
}

/* Only the debug library can cause this. */
static int finalised(lua_State *L) {
    return mr_misuse(L, "the tensor was already collected");
}

mr_tensor *mr_check_facts(lua_State *L, int arg, bool *out_closed) {
    box *b = mr_check(L, arg, &mr_kind_tensor);
    if (!b->tensor) finalised(L);
    if (out_closed) *out_closed = b->closed;
    return b->tensor;
}

mr_tensor *mr_check_tensor(lua_State *L, int arg) {
    box *b = mr_check(L, arg, &mr_kind_tensor);
    if (!b->tensor) finalised(L);
    if (b->closed) was_closed(L, b);
    mr_raise(L, mr_tensor_usable(b->tensor));
    return b->tensor;
}

mr_tensor *mr_test_tensor(lua_State *L, int arg) {
    box *b = mr_test(L, arg, &mr_kind_tensor);
    return b ? b->tensor : NULL;
}

/* --- constructor -------------------------------------------------------------------------------- */

mr_tensor **mr_new_tensor(lua_State *L) {
    box *b = mr_new(L, &mr_kind_tensor, sizeof *b);
    return &b->tensor;
}

mr_tensor **mr_new_view(lua_State *L, int of) {
    mr_tensor **slot = mr_new_tensor(L);
    mr_push_base(L, of);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushvalue(L, of);
    }
    lua_setiuservalue(L, -2, 1);
    return slot;
}

/* --- gradients ---------------------------------------------------------------------------------- */

/* The user value of a box. A view has the box of the tensor that it is a view of. Where gradients are tracked, the user
 * value is a table, and that box is its field `base`. */

void mr_push_base(lua_State *L, int index) {
    if (lua_getiuservalue(L, index, 1) != LUA_TTABLE) return;
    lua_getfield(L, -1, "base");
    lua_remove(L, -2);
}

void mr_push_gradient_state(lua_State *L, int index) {
    if (lua_getiuservalue(L, index, 1) == LUA_TTABLE) return;
    lua_pop(L, 1);
    lua_pushnil(L);
}

static void set_tracked(lua_State *L, box *b, bool tracked) {
    if (tracked == b->tracked) return;
    b->tracked = tracked;
    mr_bind_module(L)->tracked += tracked ? 1 : (uint64_t)-1;
}

void mr_set_gradient_state(lua_State *L, int index, bool tracked) {
    set_tracked(L, mr_check(L, index, &mr_kind_tensor), tracked);
    lua_setiuservalue(L, index, 1);
}

bool mr_requires_grad(lua_State *L, int index) {
    const box *b = mr_check(L, index, &mr_kind_tensor);
    return b->tracked;
}

bool mr_is_tracked(lua_State *L, int index) {
    const box *b = mr_test(L, index, &mr_kind_tensor);
    if (!b || b->tracked) return b != NULL;
    mr_push_base(L, index);
    b = mr_test(L, -1, &mr_kind_tensor);
    lua_pop(L, 1);
    return b && b->tracked;
}

/* --- memory ------------------------------------------------------------------------------------- */

static uint64_t live_bytes(const mr_machine *machine) {
    uint64_t live = machine->host_memory.live_bytes;
    for (int i = 0; i < machine->device_count; i++) live += machine->devices[i]->memory.live;
    return live;
}

/* For Lua a tensor of a gigabyte is a few dozen bytes, so it would be collected late. So memory of tensors is counted
 * here. Garbage is collected when the memory allocated since the last collection equals the memory that was live after
 * it. A collection takes as long as twenty calls, so memory that is small compared with the device's starts none. */
void mr_made_tensor(lua_State *L, mr_tensor *tensor) {
    mr_machine *machine = tensor->storage->machine;
    if (machine->host_memory.since_collect < machine->memory.collect_after) return;
    if (machine->host_memory.since_collect < live_bytes(machine) / 2) return;
    /* the collector is stopped, for example by mr.explore */
    if (!lua_gc(L, LUA_GCISRUNNING)) return;
    machine->host_memory.since_collect = 0;
    lua_gc(L, LUA_GCCOLLECT);
}

/* --- the end ------------------------------------------------------------------------------------ */

/* A closed box has dropped its handle before. */
static void release(mr_tensor *t, bool closed) {
    if (!closed) mr_storage_drop_handle(t->storage);
    mr_tensor_release(t);
}

/* Leaves an empty box. */
void mr_let_go(lua_State *L, int index) {
    box *b = mr_test(L, index, &mr_kind_tensor);
    if (!b || !b->tensor) return;
    mr_tensor *t = b->tensor;
    set_tracked(L, b, false);
    b->tensor = NULL;
    release(t, b->closed);
}

void mr_take_tensor(lua_State *L, int index, int from) {
    box *b = mr_check(L, index, &mr_kind_tensor), *giver = mr_check(L, from, &mr_kind_tensor);
    mr_tensor *before = b->tensor;
    b->tensor = giver->tensor;
    giver->tensor = NULL;
    mr_storage *now = b->tensor->storage;
    if (now->version <= before->storage->version) now->version = before->storage->version + 1;
    release(before, b->closed);
    b->closed = giver->closed;
}

void mr_finish_new(lua_State *L, mr_status status) {
    if (!status) return;
    mr_let_go(L, -1);
    mr_raise(L, status);
}

void mr_close_tensor(lua_State *L, int index) {
    box *b = mr_test(L, index, &mr_kind_tensor);
    if (!b || !b->tensor || b->closed) return;
    mr_caller caller = mr_enter(L);
    if (b->tensor->storage->handles == 1) mr_bind_explore_frees(L, b->tensor->storage);
    b->where = caller.where;
    mr_raise(L, mr_storage_close_handle(&caller, b->tensor->storage));
    b->closed = true;
}
