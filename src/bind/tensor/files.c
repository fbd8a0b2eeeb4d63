/* mr.save and mr.load: tensors in files (src/files has the formats).
 *
 * Easiest to break: a call that fails has done nothing. mr.load reads the whole file into host memory before it makes a
 * tensor on a device; mr.save copies all values to the host before it opens a file. */
#include <stdlib.h>
#include <string.h>

#include "bind/open.h"
#include "bind/outside.h"
#include "bind/tensor/placement.h"
#include "bind/tensor/tensor.h"
#include "files/files.h"

static void raise_as(lua_State *L, const char *what, mr_status status) {
    if (!status) return;
    mr_status named = mr_fail(status->code, "%s: %s", what, status->message);
    mr_error_destroy(status);
    mr_raise(L, named);
}

static const char *check_path(lua_State *L, const char *what, mr_path_use use) {
    raise_as(L, what, mr_tensor_file_check_path(mr_check_path(L, what, 1)));
    return mr_path_of(L, 1, use);
}

/* ------------------------------------------------------------------------- load */

/* The file, and its tensors in host memory. */
typedef struct {
    mr_tensor_file file;
    mr_tensor **tensors; /* each with one reference and one handle, or NULL */
    size_t count;
} loading;

static void drop_tensor(mr_tensor **t) {
    if (!*t) return;
    mr_storage_drop_handle((*t)->storage);
    mr_tensor_release(*t);
    *t = NULL;
}

static int drop_loading(lua_State *L) {
    loading *l = lua_touserdata(L, 1);
    for (size_t i = 0; i < l->count; i++) drop_tensor(&l->tensors[i]);
    free(l->tensors);
    mr_tensor_file_close(&l->file);
    *l = (loading){0};
    return 0;
}

/* Reads all tensors; `kind` is that of host memory. */
static mr_status read_tensors(const mr_caller *caller, loading *l, mr_memory_kind kind) {
    const mr_placement host = {.kind = kind};
    l->tensors = calloc(l->file.tensors.count + 1, sizeof *l->tensors);
    if (!l->tensors) return mr_no_memory("to read `%s`", l->file.path);
    l->count = l->file.tensors.count;
    for (size_t i = 0; i < l->count; i++) {
        const mr_file_tensor *t = &l->file.tensors.items[i];
        int64_t shape[MR_MAX_DIMS];
        for (int d = 0; d < t->ndim; d++)
            shape[d] = t->shape[t->first_dim_is_fastest ? t->ndim - 1 - d : d];
        MR_TRY(mr_create_empty(caller, &host, t->dtype, t->ndim, shape, &l->tensors[i]));
        if (t->bytes) MR_TRY(mr_tensor_file_read(&l->file, t, mr_tensor_data(l->tensors[i])));
    }
    return MR_OK;
}

/* Replaces the tensor at the top by the view of it whose dims are in the reverse order. */
static void reverse_dims(lua_State *L, const mr_caller *caller, mr_tensor *t) {
    int dims[MR_MAX_DIMS];
    for (int d = 0; d < t->ndim; d++) dims[d] = t->ndim - 1 - d;
    mr_tensor **view = mr_new_tensor(L);
    mr_raise(L, mr_tensor_permute(caller, t, dims, view));
    mr_let_go(L, -2); /* the view has a handle of its own */
    lua_remove(L, -2);
}

/* Pushes tensor `i`, where it was asked for. */
static void push_loaded(lua_State *L, const mr_caller *caller, loading *l, size_t i,
                        const mr_placement *placement) {
    mr_tensor **slot = mr_new_tensor(L), *host = l->tensors[i];
    if (placement->kind == MR_MEMORY_DEVICE) {
        mr_raise(L, mr_create_empty(caller, placement, (mr_dtype)host->dtype, host->ndim,
                                    host->shape, slot));
        mr_finish_new(L, mr_copy(caller, *slot, host, placement->stream, false));
        drop_tensor(&l->tensors[i]);
    } else {
        *slot = host;
        l->tensors[i] = NULL;
    }
    mr_made_tensor(L, *slot);
    if (l->file.tensors.items[i].first_dim_is_fastest) reverse_dims(L, caller, *slot);
}

static void push_notes(lua_State *L, const mr_tensor_file *file) {
    lua_createtable(L, 0, (int)file->notes.count);
    for (size_t i = 0; i < file->notes.count; i++) {
        lua_pushstring(L, file->notes.items[i].value);
        lua_setfield(L, -2, file->notes.items[i].key);
    }
}

MR_FUNCTION(
    files_load, "load",
    "mr.load(path: string [, {device: device|integer|string=\"cpu\", pinned: boolean=false, "
    "stream: stream}]) -> tensor or table, metadata: table",
    "Reads tensors from a file. A `.npy` file of NumPy (np.save) gives one tensor, and one in "
    "Fortran order a transposed view. A `.safetensors` file gives a table of tensors by name, "
    "and the texts of its `__metadata__` as a second table. The tensors are in host memory, or "
    "on `device`; then they are copied there in the current stream, and the host waits for the "
    "copies. The whole file is checked first: from a damaged file, nothing is loaded. Not "
    "available "
    "under --sandbox.") {
    static const char *const known[] = {"device", "pinned", "stream", NULL};
    mr_caller caller = mr_enter_as(L, "load");
    const char *path = check_path(L, "load", MR_PATH_READ);
    mr_option_slots options = mr_check_options(L, 2, known);
    mr_placement placement = {.kind = MR_MEMORY_PAGEABLE};
    mr_check_placement(L, &options, &placement);
    bool on_device = placement.kind == MR_MEMORY_DEVICE;
    loading *l = mr_push_owner(L, sizeof *l, drop_loading);
    raise_as(L, "load", mr_tensor_file_open(path, &l->file));
    raise_as(L, "load", read_tensors(&caller, l, on_device ? MR_MEMORY_PAGEABLE : placement.kind));
    if (l->file.is_single) {
        push_loaded(L, &caller, l, 0, &placement);
        return 1;
    }
    lua_createtable(L, 0, (int)l->count);
    for (size_t i = 0; i < l->count; i++) {
        push_loaded(L, &caller, l, i, &placement);
        lua_setfield(L, -2, l->file.tensors.items[i].name);
    }
    push_notes(L, &l->file);
    return 2;
}

/* ------------------------------------------------------------------------- save */

/* The tensors and notes to write, held by values of the stack. */
typedef struct {
    mr_named_tensor *tensors;
    mr_file_note *notes;
    int count, note_count;
} saving;

/* Adds the pairs of the script's table at `index` to two lists of our own, which are pushed: the keys, which must be
 * strings, and the values. Returns how many. */
static int push_pairs(lua_State *L, int index, const char *of_what) {
    int count = 0;
    index = lua_absindex(L, index);
    if (luaL_getmetafield(L, index, "help") != LUA_TNIL)
        mr_misuse(L,
                  "save: %s are a table of names: write m:state_dict() for those of a module or "
                  "an optimiser",
                  of_what);
    lua_newtable(L);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, index);) {
        size_t size;
        if (lua_type(L, -2) != LUA_TSTRING)
            mr_misuse(L, "save: %s are a table with names as its keys: found %s as a key", of_what,
                      mr_type_text(L, -2));
        const char *key = lua_tolstring(L, -2, &size);
        if (strlen(key) != size) mr_misuse(L, "save: the name \"%s\" contains a NUL", key);
        lua_rawseti(L, -3, ++count); /* the value */
        lua_pushvalue(L, -1);
        lua_rawseti(L, -4, count);
    }
    return count;
}

/* The string at [i] of the list of our own at `index`, which keeps it. */
static const char *text_at(lua_State *L, int index, int i) {
    lua_rawgeti(L, index, i);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text;
}

static void check_named(lua_State *L, int arg, saving *s) {
    s->count = push_pairs(L, arg, "the tensors");
    int values = lua_gettop(L), keys = values - 1;
    for (int i = 1; i <= s->count; i++) {
        lua_rawgeti(L, values, i);
        if (!mr_test_tensor(L, -1))
            mr_misuse(L, "save: `%s` is %s, expected a tensor", text_at(L, keys, i),
                      mr_type_text(L, -1));
        lua_pop(L, 1);
    }
    int count;
    mr_tensor **tensors = mr_check_tensors(L, values, "save", &count);
    s->tensors = lua_newuserdatauv(L, (size_t)count * sizeof *s->tensors + 1, 0);
    for (int i = 0; i < count; i++)
        s->tensors[i] = (mr_named_tensor){text_at(L, keys, i + 1), tensors[i]};
}

/* The single tensor of a .npy file. */
static void check_single(lua_State *L, int arg, saving *s) {
    s->count = 1;
    s->tensors = lua_newuserdatauv(L, sizeof *s->tensors, 0);
    s->tensors[0] = (mr_named_tensor){NULL, mr_check_tensor(L, arg)};
}

static void check_notes(lua_State *L, int index, saving *s) {
    if (lua_type(L, index) != LUA_TTABLE)
        mr_misuse(L, "option `metadata`: expected a table of strings, got %s",
                  mr_type_text(L, index));
    s->note_count = push_pairs(L, index, "metadata");
    int values = lua_gettop(L), keys = values - 1;
    s->notes = lua_newuserdatauv(L, (size_t)s->note_count * sizeof *s->notes + 1, 0);
    for (int i = 1; i <= s->note_count; i++) {
        const char *key = text_at(L, keys, i);
        if (lua_rawgeti(L, values, i) != LUA_TSTRING)
            mr_misuse(L, "option `metadata`: `%s` is %s, expected a string: tostring() makes one",
                      key, mr_type_text(L, -1));
        lua_pop(L, 1);
        const char *value = text_at(L, values, i);
        s->notes[i - 1] = (mr_file_note){(char *)key, (char *)value};
    }
}

static void check_value(lua_State *L, const char *path, saving *s) {
    bool single = mr_tensor_file_is_single(path), is_tensor = mr_test(L, 2, &mr_kind_tensor);
    if (single && lua_istable(L, 2))
        mr_misuse(L, "save: a .npy file holds one tensor; a table of them goes into a .safetensors "
                     "file");
    if (!single && is_tensor)
        mr_misuse(L, "save: a .safetensors file holds tensors by name: save {name = t}, or a .npy "
                     "file");
    if (!is_tensor && !lua_istable(L, 2)) mr_bad_argument(L, 2, "a tensor or a table of tensors");
    if (is_tensor) check_single(L, 2, s);
    else check_named(L, 2, s);
}

MR_FUNCTION(
    files_save, "save", "mr.save(path: string, value: tensor|table [, {metadata: table}])",
    "Writes tensors to a file. The ending of the path is the format. `.npy` holds one tensor, for "
    "NumPy (np.load). `.safetensors` holds a table of tensors by name, such as a state_dict, and "
    "the strings of `metadata`. The values of device tensors are copied to the host in the current "
    "stream, and the host waits for them. The file appears complete or not at all: if something "
    "fails, an old file remains as it was. Not available under --sandbox.") {
    static const char *const known[] = {"metadata", NULL};
    mr_caller caller = mr_enter_as(L, "save");
    const char *path = check_path(L, "save", MR_PATH_WRITE);
    mr_option_slots options = mr_check_options(L, 3, known);
    int metadata = mr_option_at(L, &options, "metadata");
    saving s = {0};
    check_value(L, path, &s);
    if (metadata && mr_tensor_file_is_single(path))
        return mr_misuse(L, "save: a .npy file has no metadata; a .safetensors file has");
    if (metadata) check_notes(L, metadata, &s);
    raise_as(
        L, "save",
        mr_tensor_file_can_save(path, s.tensors, (size_t)s.count, s.notes, (size_t)s.note_count));
    lua_newtable(L); /* keeps the values on the host until they are written */
    int hosts = lua_gettop(L);
    for (int i = 0; i < s.count; i++) {
        s.tensors[i].tensor = mr_push_on_host(L, &caller, (mr_tensor *)s.tensors[i].tensor);
        lua_rawseti(L, hosts, i + 1);
    }
    raise_as(L, "save",
             mr_tensor_file_save(path, s.tensors, (size_t)s.count, s.notes, (size_t)s.note_count));
    return 0;
}

static const mr_function *const functions[] = {&files_save_function, &files_load_function, NULL};

const mr_class mr_files_class = {
    "mr", "Tensors in files: NumPy's .npy and .safetensors.", functions, NULL, NULL,
};

void mr_open_files(lua_State *L) {
    mr_table_open(L, &mr_files_class);
}
