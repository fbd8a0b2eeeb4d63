/* Tensors to and from other code of this process: capsules of DLPack (tensor/dlpack.h).
 *
 * Easiest to break: a capsule is taken only after the last step that can fail. Until then it is unchanged, and the
 * script can try again. */
#include "bind/explore.h"
#include "bind/internal.h"
#include "bind/open.h"
#include "bind/tensor/placement.h"
#include "bind/tensor_box.h"
#include "tensor/dlpack.h"

/* --- capsules ----------------------------------------------------------------------------------- */

/* The place of the pointer; NULL: it is not a capsule of that name. The userdata may come from other code. */
static void **capsule_at(lua_State *L, int index, const char *name) {
    void **at = luaL_testudata(L, index, name);
    return at && lua_rawlen(L, index) >= sizeof *at ? at : NULL;
}

static mr_dl_capsule capsule_of(lua_State *L, int index, void ***out_at) {
    void **versioned = capsule_at(L, index, MR_DL_VERSIONED_NAME);
    void **managed = versioned ? NULL : capsule_at(L, index, MR_DL_MANAGED_NAME);
    *out_at = versioned ? versioned : managed;
    return (mr_dl_capsule){.versioned = versioned ? *versioned : NULL,
                           .managed = managed ? *managed : NULL};
}

static int capsule_gc(lua_State *L) {
    void **at;
    mr_dl_capsule capsule = capsule_of(L, 1, &at);
    if (!at) return 0;
    *at = NULL;
    mr_dlpack_drop(capsule);
    if (mr_module_of(L)->machine) mr_loans_collect(mr_set_context(L));
    return 0;
}

/* Other code may have made it, with a finalizer that does the same. */
static void open_capsule(lua_State *L, const char *name) {
    if (luaL_newmetatable(L, name)) {
        mr_push_module(L);
        lua_pushcclosure(L, capsule_gc, 1);
        lua_setfield(L, -2, "__gc");
        lua_pushstring(L, name);
        lua_setfield(L, -2, "__metatable");
    }
    lua_pop(L, 1);
}

/* Pushes an empty one, and returns the place of its pointer. */
static void **push_capsule(lua_State *L, bool versioned) {
    void **at = lua_newuserdatauv(L, sizeof *at, 0);
    *at = NULL;
    luaL_setmetatable(L, versioned ? MR_DL_VERSIONED_NAME : MR_DL_MANAGED_NAME);
    return at;
}

/* --- t:dlpack ----------------------------------------------------------------------------------- */

/* Orders the consumer's stream after the work submitted so far, and notes it as a user of the memory (R33). Without a
 * stream, the consumer uses host memory directly, so the call counts as a read by the host, unless the memory is still
 * blank. */
static void hand_over(lua_State *L, const mr_caller *caller, mr_tensor *t, mr_stream *consumer) {
    bool on_host = mr_tensor_on_host(t);
    mr_device *device = on_host ? caller->machine->current_device : t->storage->device;
    if (consumer && t->storage->kind != MR_MEMORY_PAGEABLE) {
        if (consumer != device->current)
            mr_raise(L, mr_stream_join(caller, consumer, device->current, "dlpack"));
        mr_raise(L, mr_storage_record_stream_at(t->storage, consumer, caller->where));
    } else if (on_host && (!t->storage->blank || t->storage->version)) {
        mr_raise(L, mr_host_access(caller, "dlpack", t, MR_READ));
    }
}

MR_FUNCTION(
    tensor_dlpack, "dlpack",
    "t:dlpack([opts: {stream: stream, versioned: boolean=true}]) -> capsule: userdata",
    "Returns a capsule of DLPack: with it, a C module or another library uses the same memory. The "
    "memory stays until the consumer releases it, also after t:free(). `stream`: the stream on "
    "which the consumer works. It waits for the earlier work of the current stream, and the memory "
    "is not reused before the work of `stream` is done. Without `stream` nothing waits, and for "
    "host "
    "memory the call counts as a read by the host. `versioned=false` makes a capsule of DLPack "
    "before 1.0. A capsule can be taken once. The consumer's work is not checked, and the "
    "verdict says so. Device memory of the virtual GPU cannot be shared. "
    "help(\"interop\") explains more.") {
    static const char *const known[] = {"stream", "versioned", NULL};
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_option_slots options = mr_check_options(L, 2, known);
    mr_stream *stream = mr_option_stream(L, &options, "stream");
    bool versioned = mr_option_boolean(L, &options, "versioned", true);
    mr_bind_explore_refuse(L, "t:dlpack(): " MR_OUTSIDE_NOT_EXPLORED);
    mr_loans_collect(caller.machine);
    if (mr_is_tracked(L, 1))
        return mr_misuse(L, "dlpack: the tensor requires gradients, which other code would not "
                            "see: write t:detach():dlpack()");
    void **at = push_capsule(L, versioned);
    mr_dl_capsule capsule;
    hand_over(L, &caller, t, stream);
    mr_raise(L, mr_dlpack_export(&caller, t, versioned, &capsule));
    *at = versioned ? (void *)capsule.versioned : (void *)capsule.managed;
    return 1;
}

/* --- mr.from_dlpack ----------------------------------------------------------------------------- */

static int no_capsule(lua_State *L, void **at) {
    if (at) return mr_misuse(L, "from_dlpack: the capsule is empty: its tensor was taken before");
    return mr_bad_argument(L, 1, "a capsule of DLPack (of t:dlpack(), or of a C module)");
}

/* A copy of the tensor at the top, which takes its place. */
static mr_tensor *copy_top(lua_State *L, const mr_caller *caller, mr_tensor *t) {
    mr_new_options options;
    mr_check_new_options(L, 0, t, (mr_dtype)t->dtype, &options);
    mr_tensor *copy = mr_push_empty(L, caller, &options, t->ndim, t->shape);
    mr_finish_new(L, mr_copy(caller, copy, t, NULL, false));
    mr_let_go(L, -2);
    lua_remove(L, -2);
    return copy;
}

MR_FUNCTION(
    mr_from_dlpack, "from_dlpack",
    "mr.from_dlpack(capsule: userdata [, opts: {copy: boolean=false, stream: stream, name: "
    "string}]) -> t: tensor",
    "Returns a tensor over the memory of a capsule of DLPack, from t:dlpack() or a C module. "
    "Nothing is copied, and nothing waits: the producer has made the current stream wait, or "
    "`stream`. The memory is used in the order of this stream. The capsule is empty after the "
    "call. Its deleter is called once, when no tensor here and no pending operation uses the "
    "memory any more. `copy=true` copies "
    "instead, which read-only memory needs. A capsule of t:dlpack() gives a view of the same "
    "tensor. On the virtual GPU the memory must be the host's.") {
    static const char *const known[] = {"copy", "stream", "name", NULL};
    void **at;
    mr_caller caller = mr_enter(L);
    mr_option_slots options = mr_check_options(L, 2, known);
    bool copies = mr_option_boolean(L, &options, "copy", false);
    mr_stream *stream = mr_option_stream(L, &options, "stream");
    const char *name = mr_option_name(L, &options, "name");
    mr_bind_explore_refuse(L, "mr.from_dlpack(): " MR_OUTSIDE_NOT_EXPLORED);
    mr_loans_collect(caller.machine);
    mr_tensor **slot = mr_new_tensor(L);
    /* After all that can run finalizers. */
    mr_dl_capsule capsule = capsule_of(L, 1, &at);
    if (!capsule.versioned && !capsule.managed) return no_capsule(L, at);
    mr_raise(L, mr_dlpack_import(&caller, capsule, stream, !copies, slot));
    *at = NULL;
    mr_tensor *t = copies ? copy_top(L, &caller, *slot) : *slot;
    if (name) mr_raise(L, mr_tensor_set_name(t, name));
    return 1;
}

/* --- docs, open --------------------------------------------------------------------------------- */

static const mr_function *const methods[] = {&tensor_dlpack_function, NULL};

const mr_class mr_dlpack_class = {"tensor", "Tensors of this and of other code, without a copy.",
                                  methods, NULL, &mr_kind_tensor};

static const mr_function *const functions[] = {&mr_from_dlpack_function, NULL};

const mr_class mr_dlpack_functions_class = {"mr", "Tensors of other code.", functions, NULL, NULL};

void mr_open_dlpack(lua_State *L) {
    open_capsule(L, MR_DL_VERSIONED_NAME);
    open_capsule(L, MR_DL_MANAGED_NAME);
    mr_class_extend(L, &mr_dlpack_class);
    mr_table_open(L, &mr_dlpack_functions_class);
}
