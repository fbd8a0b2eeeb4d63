/* Code outside of millrace, for tests: a C module of Lua that makes and takes capsules of DLPack. It knows Lua's C API and
 * the layout of DLPack, which it declares by itself, and nothing of millrace.
 *
 *   make{values, shape=, strides=, offset=, code=, bits=, lanes=, type=, id=, flags=, major=, name=, deleter=, data=}
 *                   -> capsule, id: of doubles or bytes of its own memory
 *   take(capsule)   -> a tensor that was taken: t:facts(), t:get(i), t:set(i, value), t:give_back(), t:give_back_elsewhere()
 *   deletions(id)   -> how often the deleter of a capsule of make has run
 *   value(id, i)    -> element i of its memory
 *   keep(t)         never gives it back, until the process ends
 *   userdata(name)  -> a userdata that is no capsule, but has that metatable and no room for a pointer
 *   handle(number)  -> light userdata
 *
 * With the driver of CUDA, or that of the tests, in the context that is current:
 *   driver(path), stream([blocking]) -> handle, close_stream(handle), alloc(bytes) -> address, free(address),
 *   fill(address, byte, bytes, handle), done(handle), forget_context() */
#include <dlfcn.h>
#include <lauxlib.h>
#include <lua.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *);
    uint64_t flags;
    DLTensor tensor;
} DLManagedTensorVersioned;

static const char old_name[] = "dltensor", new_name[] = "dltensor_versioned";

/* ---- what is lent */

enum { MOST = 4096, ELEMENTS = 64, DIMS = 12 };
typedef struct {
    union {
        DLManagedTensor old;
        DLManagedTensorVersioned versioned;
    };
    int id;
    double values[ELEMENTS];
    int64_t shape[DIMS], strides[DIMS];
} lent;

static int deletions[MOST], count;
static lent *all[MOST]; /* the memory stays, so that tests may look at it */

static void delete_old(DLManagedTensor *self) {
    deletions[((lent *)self->context)->id]++;
}

static void delete_versioned(DLManagedTensorVersioned *self) {
    deletions[((lent *)self->context)->id]++;
}

static lua_Integer field(lua_State *L, const char *name, lua_Integer otherwise) {
    lua_getfield(L, 1, name);
    lua_Integer value = luaL_optinteger(L, -1, otherwise);
    lua_pop(L, 1);
    return value;
}

static int list(lua_State *L, const char *name, int64_t *out) {
    if (lua_getfield(L, 1, name) != LUA_TTABLE) return -1;
    int n = (int)lua_rawlen(L, -1);
    luaL_argcheck(L, n <= DIMS, 1, "too many dims");
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, -1, i + 1);
        out[i] = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    return n;
}

/* The finalizer that the contract asks for, of whoever is the first to make the metatable. */
static int capsule_gc(lua_State *L) {
    void **at = luaL_testudata(L, 1, new_name);
    DLManagedTensorVersioned *versioned = at ? *at : NULL;
    DLManagedTensor *old = NULL;
    if (!at && (at = luaL_testudata(L, 1, old_name))) old = *at;
    if (at) *at = NULL;
    if (versioned && versioned->deleter) versioned->deleter(versioned);
    if (old && old->deleter) old->deleter(old);
    return 0;
}

static void set_metatable(lua_State *L, const char *name) {
    if (luaL_newmetatable(L, name)) {
        lua_pushcfunction(L, capsule_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
}

static int make(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, count < MOST, 1, "too many");
    lent *l = calloc(1, sizeof *l);
    l->id = count;
    int n = (int)lua_rawlen(L, 1);
    for (int i = 0; i < n && i < ELEMENTS; i++) {
        lua_rawgeti(L, 1, i + 1);
        l->values[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    DLTensor t = {.data = l->values,
                  .device_type = (int32_t)field(L, "type", 1),
                  .device_id = (int32_t)field(L, "id", 0),
                  .code = (uint8_t)field(L, "code", 2),
                  .bits = (uint8_t)field(L, "bits", 64),
                  .lanes = (uint16_t)field(L, "lanes", 1),
                  .byte_offset = (uint64_t)field(L, "offset", 0)};
    l->shape[0] = n;
    int ndim = list(L, "shape", l->shape);
    t.ndim = (int32_t)field(L, "ndim", ndim < 0 ? 1 : ndim);
    t.shape = l->shape;
    if (list(L, "strides", l->strides) >= 0) t.strides = l->strides;
    if (lua_getfield(L, 1, "data") != LUA_TNIL) t.data = (void *)(uintptr_t)lua_tointeger(L, -1);
    if (field(L, "no_shape", 0)) t.shape = NULL;
    lua_getfield(L, 1, "name");
    const char *name = luaL_optstring(L, -1, new_name);
    int is_old = strcmp(name, old_name) == 0, deletes = (int)field(L, "deleter", 1);
    if (is_old) l->old = (DLManagedTensor){t, l, deletes ? delete_old : NULL};
    else
        l->versioned = (DLManagedTensorVersioned){.major = (uint32_t)field(L, "major", 1),
                                                  .context = l,
                                                  .deleter = deletes ? delete_versioned : NULL,
                                                  .flags = (uint64_t)field(L, "flags", 0),
                                                  .tensor = t};
    all[count++] = l;
    void **at = lua_newuserdatauv(L, sizeof *at, 0);
    *at = is_old ? (void *)&l->old : (void *)&l->versioned;
    set_metatable(L, name);
    lua_pushinteger(L, l->id);
    return 2;
}

static lent *lent_at(lua_State *L) {
    lua_Integer id = luaL_checkinteger(L, 1);
    luaL_argcheck(L, id >= 0 && id < count, 1, "no such capsule");
    return all[id];
}

static int get_deletions(lua_State *L) {
    lua_pushinteger(L, deletions[lent_at(L)->id]);
    return 1;
}

static int get_value(lua_State *L) {
    lua_pushnumber(L, lent_at(L)->values[luaL_checkinteger(L, 2) - 1]);
    return 1;
}

/* ---- what was taken */

typedef struct {
    DLManagedTensorVersioned *versioned;
    DLManagedTensor *old;
} taken;

static taken kept[16];
static int kept_count;

static int take(lua_State *L) {
    void **at = luaL_testudata(L, 1, new_name);
    int is_old = !at;
    if (is_old) at = luaL_checkudata(L, 1, old_name);
    luaL_argcheck(L, *at, 1, "the capsule is empty");
    taken *t = lua_newuserdatauv(L, sizeof *t, 0);
    *t = (taken){.versioned = is_old ? NULL : *at, .old = is_old ? *at : NULL};
    *at = NULL;
    luaL_setmetatable(L, "capsules.taken");
    return 1;
}

static taken *check(lua_State *L) {
    taken *t = luaL_checkudata(L, 1, "capsules.taken");
    luaL_argcheck(L, t->versioned || t->old, 1, "it was given back");
    return t;
}

static const DLTensor *tensor_of(const taken *t) {
    return t->versioned ? &t->versioned->tensor : &t->old->tensor;
}

static void push_list(lua_State *L, const int64_t *values, int n, const char *name) {
    if (!values) return;
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushinteger(L, values[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, name);
}

static int facts(lua_State *L) {
    taken *t = check(L);
    const DLTensor *d = tensor_of(t);
    const struct {
        const char *name;
        lua_Integer value;
    } numbers[] = {{"type", d->device_type},
                   {"id", d->device_id},
                   {"code", d->code},
                   {"bits", d->bits},
                   {"lanes", d->lanes},
                   {"offset", (lua_Integer)d->byte_offset},
                   {"ndim", d->ndim},
                   {"data", (lua_Integer)(uintptr_t)d->data},
                   {"major", t->versioned ? t->versioned->major : 0},
                   {"flags", t->versioned ? (lua_Integer)t->versioned->flags : -1}};
    lua_newtable(L);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushinteger(L, numbers[i].value);
        lua_setfield(L, -2, numbers[i].name);
    }
    push_list(L, d->shape, d->ndim, "shape");
    push_list(L, d->strides, d->ndim, "strides");
    return 1;
}

/* Host memory with elements of f32 or f64: element `i` in the order of memory, from 0. */
static int get(lua_State *L) {
    const DLTensor *d = tensor_of(check(L));
    lua_Integer i = luaL_checkinteger(L, 2);
    if (d->bits == 64) lua_pushnumber(L, ((const double *)d->data)[i]);
    else lua_pushnumber(L, ((const float *)d->data)[i]);
    return 1;
}

static int set(lua_State *L) {
    const DLTensor *d = tensor_of(check(L));
    lua_Integer i = luaL_checkinteger(L, 2);
    if (d->bits == 64) ((double *)d->data)[i] = luaL_checknumber(L, 3);
    else ((float *)d->data)[i] = (float)luaL_checknumber(L, 3);
    return 0;
}

static void call_deleter(taken t) {
    if (t.versioned && t.versioned->deleter) t.versioned->deleter(t.versioned);
    if (t.old && t.old->deleter) t.old->deleter(t.old);
}

static int give_back(lua_State *L) {
    taken *t = check(L), was = *t;
    *t = (taken){NULL, NULL};
    call_deleter(was);
    return 0;
}

static void *elsewhere(void *context) {
    call_deleter(*(taken *)context);
    return NULL;
}

static int give_back_elsewhere(lua_State *L) {
    taken *t = check(L), was = *t;
    pthread_t thread;
    *t = (taken){NULL, NULL};
    if (pthread_create(&thread, NULL, elsewhere, &was)) return luaL_error(L, "no thread");
    pthread_join(thread, NULL);
    return 0;
}

/* At the end of the process, after Lua's, their values are looked at and they are given back. */
static void at_exit(void) {
    for (int i = 0; i < kept_count; i++) {
        const DLTensor *d = tensor_of(&kept[i]);
        volatile float *first = d->data;
        first[0] = first[0] + 1;
        call_deleter(kept[i]);
    }
}

static int keep(lua_State *L) {
    taken *t = check(L);
    if (!kept_count) atexit(at_exit);
    luaL_argcheck(L, kept_count < 16, 1, "too many");
    kept[kept_count++] = *t;
    *t = (taken){NULL, NULL};
    return 0;
}

static int userdata(lua_State *L) {
    lua_newuserdatauv(L, 1, 0);
    luaL_setmetatable(L, luaL_checkstring(L, 1));
    return 1;
}

static int handle(lua_State *L) {
    lua_pushlightuserdata(L, (void *)(uintptr_t)luaL_checkinteger(L, 1));
    return 1;
}

/* ---- the driver */

static struct {
    int (*stream_create)(void **stream, unsigned flags, int priority);
    int (*stream_destroy)(void *stream);
    int (*stream_query)(void *stream);
    int (*mem_alloc)(uint64_t *address, size_t bytes);
    int (*mem_free)(uint64_t address);
    int (*memset_async)(uint64_t address, unsigned char byte, size_t bytes, void *stream);
    int (*set_current)(void *context);
} cu;

static int driver(lua_State *L) {
    const struct {
        const char *name;
        void *at;
    } functions[] = {{"cuStreamCreateWithPriority", &cu.stream_create},
                     {"cuStreamDestroy_v2", &cu.stream_destroy},
                     {"cuStreamQuery", &cu.stream_query},
                     {"cuMemAlloc_v2", &cu.mem_alloc},
                     {"cuMemFree_v2", &cu.mem_free},
                     {"cuMemsetD8Async", &cu.memset_async},
                     {"cuCtxSetCurrent", &cu.set_current}};
    void *library = dlopen(luaL_checkstring(L, 1), RTLD_NOW);
    if (!library) return luaL_error(L, "%s", dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (!found) return luaL_error(L, "there is no %s", functions[i].name);
        memcpy(functions[i].at, &found, sizeof found);
    }
    return 0;
}

static void succeed(lua_State *L, const char *what, int result) {
    if (result) luaL_error(L, "%s: the driver says %d", what, result);
}

static void *handle_at(lua_State *L, int index) {
    return (void *)(uintptr_t)luaL_checkinteger(L, index);
}

static int stream(lua_State *L) {
    void *made;
    succeed(L, "stream", cu.stream_create(&made, lua_toboolean(L, 1) ? 0 : 1, 0));
    lua_pushinteger(L, (lua_Integer)(uintptr_t)made);
    return 1;
}

static int close_stream(lua_State *L) {
    succeed(L, "close_stream", cu.stream_destroy(handle_at(L, 1)));
    return 0;
}

static int done(lua_State *L) {
    int result = cu.stream_query(handle_at(L, 1));
    if (result != 600) succeed(L, "done", result); /* 600: it is not */
    lua_pushboolean(L, result == 0);
    return 1;
}

static int alloc(lua_State *L) {
    uint64_t address;
    succeed(L, "alloc", cu.mem_alloc(&address, (size_t)luaL_checkinteger(L, 1)));
    lua_pushinteger(L, (lua_Integer)address);
    return 1;
}

static int free_memory(lua_State *L) {
    succeed(L, "free", cu.mem_free((uint64_t)luaL_checkinteger(L, 1)));
    return 0;
}

static int fill(lua_State *L) {
    succeed(L, "fill",
            cu.memset_async((uint64_t)luaL_checkinteger(L, 1),
                            (unsigned char)luaL_checkinteger(L, 2), (size_t)luaL_checkinteger(L, 3),
                            handle_at(L, 4)));
    return 0;
}

/* As a library does that changes the current context and leaves it so. */
static int forget_context(lua_State *L) {
    succeed(L, "forget_context", cu.set_current(NULL));
    return 0;
}

static const luaL_Reg methods[] = {{"facts", facts},
                                   {"get", get},
                                   {"set", set},
                                   {"give_back", give_back},
                                   {"give_back_elsewhere", give_back_elsewhere},
                                   {NULL, NULL}};

static const luaL_Reg functions[] = {{"make", make},
                                     {"take", take},
                                     {"deletions", get_deletions},
                                     {"value", get_value},
                                     {"keep", keep},
                                     {"userdata", userdata},
                                     {"handle", handle},
                                     {"driver", driver},
                                     {"stream", stream},
                                     {"close_stream", close_stream},
                                     {"done", done},
                                     {"alloc", alloc},
                                     {"free", free_memory},
                                     {"fill", fill},
                                     {"forget_context", forget_context},
                                     {NULL, NULL}};

int luaopen_capsules(lua_State *L);
int luaopen_capsules(lua_State *L) {
    luaL_newmetatable(L, "capsules.taken");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
