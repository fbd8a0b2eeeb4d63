/* The userdata of a kernel, and launches. A launch is `k[{grid, block, shared, stream}](...)`: indexing returns a
 * function with the sizes as upvalues, so a launch makes one closure and no object with a finalizer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/kernel/kernel.h"
#include "bind/nearest.h"
#include "bind/open.h"
#include "bind/ops/row.h"

/* ---- finding one ----------------------------------------------------------------------------------------- */

static const mr_ptx_kernel *find_kernel(const mr_kernel_unit *unit, const char *name) {
    const mr_ptx_module *ptx = unit->module->code->ptx;
    char own[MR_LONGEST_NAME + 1];
    for (int i = 0; unit->names && unit->names[i]; i++)
        if (strcmp(unit->names[i], name) == 0 && unit->entries[i])
            return mr_ptx_kernel_find(ptx, unit->entries[i]);
    const mr_ptx_kernel *exact = mr_ptx_kernel_find(ptx, name);
    for (uint32_t i = 0; !exact && i < mr_ptx_kernel_count(ptx); i++) {
        const mr_ptx_kernel *k = mr_ptx_kernel_at(ptx, i);
        if (strcmp(mr_kernel_source_name(unit, k->name, own, sizeof own), name) == 0) exact = k;
    }
    return exact;
}

#define MOST_LISTED 10

/* Pushes "saxpy, scale, block_sum<256>". */
static const char *push_kernel_names(lua_State *L, const mr_kernel_unit *unit) {
    const mr_ptx_module *ptx = unit->module->code->ptx;
    uint32_t count = mr_ptx_kernel_count(ptx);
    char name[MR_LONGEST_NAME + 1];
    luaL_Buffer list;
    luaL_buffinit(L, &list);
    for (uint32_t i = 0; i < count && i < MOST_LISTED; i++) {
        if (i) luaL_addstring(&list, ", ");
        luaL_addstring(
            &list, mr_kernel_source_name(unit, mr_ptx_kernel_at(ptx, i)->name, name, sizeof name));
    }
    if (count > MOST_LISTED) luaL_addstring(&list, ", ...");
    luaL_pushresult(&list);
    return lua_tostring(L, -1);
}

/* An instance of a template is in a module only if it was asked for when the module was compiled. */
static void check_instance(lua_State *L, const mr_kernel_unit *unit, const char *name) {
    const char *open = strchr(name, '<');
    size_t length = open ? (size_t)(open - name) : strlen(name);
    const mr_ptx_module *ptx = unit->module->code->ptx;
    char own[MR_LONGEST_NAME + 1];
    if (!unit->text) return; /* PTX */
    if (open)
        mr_misuse(
            L,
            "there is no kernel `%s`: the module has %s; an instance of a template is compiled "
            "only if it is asked for: mr.module(source, {names = {\"%s\"}})",
            name, push_kernel_names(L, unit), name);
    for (uint32_t i = 0; i < mr_ptx_kernel_count(ptx); i++) {
        mr_kernel_source_name(unit, mr_ptx_kernel_at(ptx, i)->name, own, sizeof own);
        if (strncmp(own, name, length) == 0 && own[length] == '<')
            mr_misuse(L, "`%s` is a template: the module has its instance `%s`", name, own);
    }
}

static int no_such_kernel(lua_State *L, const mr_kernel_unit *unit, const char *name) {
    const mr_ptx_module *ptx = unit->module->code->ptx;
    uint32_t count = mr_ptx_kernel_count(ptx);
    char own[MR_LONGEST_NAME + 1];
    if (name) check_instance(L, unit, name);
    if (!count)
        return mr_misuse(L, "the module has no kernel: mark functions with __global__; a template "
                            "is in it only by a name such as \"block_sum<256>\"");
    if (!name)
        return mr_misuse(L,
                         "the source has %d kernels (%s): say which one: mr.kernel(source, name)",
                         (int)count, push_kernel_names(L, unit));
    mr_nearest nearest;
    mr_nearest_begin(&nearest, name);
    for (uint32_t i = 0; i < count; i++)
        mr_nearest_offer(
            &nearest, mr_kernel_source_name(unit, mr_ptx_kernel_at(ptx, i)->name, own, sizeof own));
    const char *meant = mr_nearest_found(&nearest);
    if (meant) return mr_misuse(L, "there is no kernel `%s`: did you mean `%s`?", name, meant);
    return mr_misuse(L, "there is no kernel `%s`: the module has %s", name,
                     push_kernel_names(L, unit));
}

static const mr_ptx_kernel *only_kernel(const mr_kernel_unit *unit) {
    const mr_ptx_module *ptx = unit->module->code->ptx;
    return mr_ptx_kernel_count(ptx) == 1 ? mr_ptx_kernel_at(ptx, 0) : NULL;
}

/* Pushes the kernel `name` of the module at stack index `at`. `name` NULL: its only kernel. */
static void push_kernel(lua_State *L, int at, const char *name) {
    mr_kernel_unit *unit = mr_check_kernel_unit(L, at);
    char own[MR_LONGEST_NAME + 1];
    const mr_ptx_kernel *ptx = name ? find_kernel(unit, name) : only_kernel(unit);
    if (!ptx) no_such_kernel(L, unit, name);
    if (ptx->problem) mr_raise(L, mr_fail(MR_CODE_NOT_SUPPORTED, "%s", ptx->problem));
    mr_kernel_box *box = mr_new(L, &mr_kind_kernel, sizeof *box);
    box->unit = unit;
    unit->refs++;
    box->ptx = ptx;
    if (!name) name = mr_kernel_source_name(unit, ptx->name, own, sizeof own);
    box->counted_name = mr_name_new(name, strlen(name));
    box->name = mr_name_text(box->counted_name);
    if (box->name) box->params = mr_kernel_params_describe(ptx, unit, box->name);
    if (!box->name || !box->params) mr_raise(L, mr_no_memory("for a kernel"));
}

static mr_kernel_box *check_kernel(lua_State *L, int arg) {
    mr_kernel_box *box = mr_check(L, arg, &mr_kind_kernel);
    if (!box->unit || !box->params) mr_bad_argument_as(L, arg, "a kernel", "a kernel that is gone");
    return box;
}

/* ---- launches -------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t grid[3], block[3]; /* as the script gave them */
    uint32_t shared;
    bool cooperative;
} sizes;

/* As an upvalue the sizes are a string. Lua stores each short string once, so repeated sizes take no new memory. Each
 * is 32 bits, which is enough for every valid launch. */
typedef struct {
    int32_t grid[3], block[3];
    uint32_t shared, cooperative;
} short_sizes;

static void push_sizes(lua_State *L, const sizes *size) {
    short_sizes small = {.shared = size->shared, .cooperative = size->cooperative};
    bool fits = true;
    for (int d = 0; d < 3; d++) {
        small.grid[d] = (int32_t)size->grid[d];
        small.block[d] = (int32_t)size->block[d];
        fits = fits && small.grid[d] == size->grid[d] && small.block[d] == size->block[d];
    }
    if (fits) lua_pushlstring(L, (const char *)&small, sizeof small);
    else lua_pushlstring(L, (const char *)size, sizeof *size);
}

static sizes sizes_at(lua_State *L, int at) {
    size_t bytes;
    const char *from = lua_tolstring(L, at, &bytes);
    short_sizes small;
    sizes size;
    if (bytes == sizeof size) {
        memcpy(&size, from, sizeof size);
        return size;
    }
    memcpy(&small, from, sizeof small);
    return (sizes){.grid = {small.grid[0], small.grid[1], small.grid[2]},
                   .block = {small.block[0], small.block[1], small.block[2]},
                   .shared = small.shared,
                   .cooperative = small.cooperative != 0};
}

#define MOST_ON_STACK 16

/* Arguments stand at `first` and above. */
static void launch(lua_State *L, mr_kernel_box *kernel, const sizes *size, mr_stream *stream,
                   int first) {
    mr_caller caller = mr_enter(L);
    uint32_t count = kernel->ptx->param_count, bytes = kernel->ptx->param_bytes;
    mr_kernel_pointer few[MOST_ON_STACK];
    uint64_t block[64];
    mr_kernel_check_count(L, kernel, first);
    mr_kernel_passed a = {
        .kernel = kernel, .pointers = few, .params = (char *)block, .first = first};
    if (count > MOST_ON_STACK || bytes > sizeof block) { /* Lua owns it */
        size_t list = count * sizeof *a.pointers;
        char *space = lua_newuserdatauv(L, list + bytes, 0);
        a.pointers = (mr_kernel_pointer *)(void *)space;
        a.params = space + list;
    }
    memset(a.params, 0, bytes);
    mr_kernel_check_arguments(L, &a);
    mr_kernel_call call = {
        .module = kernel->unit->module,
        .kernel = kernel->ptx,
        .name = kernel->counted_name,
        .grid = {size->grid[0], size->grid[1], size->grid[2]},
        .block = {size->block[0], size->block[1], size->block[2]},
        .shared = size->shared,
        .cooperative = size->cooperative,
        .stream = stream,
        .params = a.params,
        .pointers = a.pointers,
        .pointer_count = a.pointer_count,
    };
    mr_raise(L, mr_kernel_launch(&caller, &call));
}

/* A size in each of three dims: a number, or a list of one to three. */
static void read_size(lua_State *L, int at, const char *name, int64_t out[3]) {
    out[0] = out[1] = out[2] = 1;
    if (lua_isinteger(L, at)) {
        out[0] = lua_tointeger(L, at);
        return;
    }
    int count = lua_istable(L, at) ? (int)lua_rawlen(L, at) : 1;
    if (count < 1 || count > 3 || (!lua_istable(L, at) && lua_type(L, at) != LUA_TNUMBER))
        mr_bad_option(L, at, name, "a number or a list of one to three");
    for (int d = 0; d < count; d++) {
        int exact;
        if (lua_istable(L, at)) lua_rawgeti(L, at, d + 1);
        else lua_pushvalue(L, at);
        lua_Integer value = lua_tointegerx(L, -1, &exact);
        if (lua_type(L, -1) == LUA_TNUMBER && !exact)
            mr_misuse(L, "option `%s`: %.14g is no integer", name, lua_tonumber(L, -1));
        if (lua_type(L, -1) != LUA_TNUMBER) mr_bad_option(L, lua_gettop(L), name, "integers");
        lua_pop(L, 1);
        out[d] = value;
    }
}

/* The table at `arg`; the stream stays on the stack. */
static mr_stream *read_config(lua_State *L, int arg, sizes *out) {
    static const char *const known[] = {"grid", "block", "shared", "stream", "cooperative", NULL};
    mr_option_slots fields = mr_check_fields(L, arg, known);
    int grid = mr_option_at(L, &fields, "grid"), block = mr_option_at(L, &fields, "block");
    if (!grid || !block)
        mr_misuse(L, "a launch needs a grid and a block: k[{grid, block}](...) or "
                     "k:launch({grid=, block=}, ...)");
    read_size(L, grid, "grid", out->grid);
    read_size(L, block, "block", out->block);
    int third = mr_option_at(L, &fields, "shared");
    if (third && mr_test(L, third, &mr_kind_stream))
        mr_misuse(L,
                  "option `shared`: expected a number of bytes, got a stream, which is the fourth: "
                  "k[{grid, block, 0, stream}](...), or k[{grid, block, stream = stream}](...)");
    lua_Integer shared = mr_option_integer(L, &fields, "shared", 0);
    if (shared < 0 || shared > UINT32_MAX)
        mr_misuse(L, "option `shared`: %" PRId64 " is no number of bytes", (int64_t)shared);
    out->shared = (uint32_t)shared;
    out->cooperative = mr_option_boolean(L, &fields, "cooperative", false);
    return mr_option_stream(L, &fields, "stream");
}

/* Upvalues of the function that k[{...}] gives: the module, the kernel, the stream or nil, the sizes. */
enum { UP_KERNEL = 2, UP_STREAM, UP_SIZES };

static int call_configured(lua_State *L) {
    sizes size = sizes_at(L, lua_upvalueindex(UP_SIZES));
    mr_kernel_box *kernel = check_kernel(L, lua_upvalueindex(UP_KERNEL));
    mr_stream *stream = lua_isnil(L, lua_upvalueindex(UP_STREAM))
                            ? NULL
                            : mr_check_stream(L, lua_upvalueindex(UP_STREAM));
    launch(L, kernel, &size, stream, 1);
    return 0;
}

static int push_configured(lua_State *L) {
    sizes size;
    check_kernel(L, 1);
    mr_stream *stream = read_config(L, 2, &size);
    mr_push_module(L);
    lua_pushvalue(L, 1);
    if (stream) mr_push_stream(L, &stream);
    else lua_pushnil(L);
    push_sizes(L, &size);
    lua_pushcclosure(L, call_configured, 4);
    return 1;
}

MR_FUNCTION(
    kernel_index, "__index", "k[{grid, block, shared, stream}](...)",
    "Launches the kernel, as CUDA's `<<<grid, block, shared, stream>>>`. Grid and block are "
    "numbers or lists of up to three. `shared` is dynamic shared memory in bytes. Without "
    "`stream` it runs on the current stream of the device of its first tensor. The "
    "arguments are those of the kernel, and are checked against its declaration: tensors "
    "for pointers (nil for NULL), numbers for scalars, strings (string.pack) for structs. "
    "k[{grid, block, cooperative = true}] launches all blocks at once, for grid.sync().") {
    if (lua_istable(L, 2)) return push_configured(L);
    if (lua_type(L, 2) == LUA_TNUMBER)
        return mr_misuse(L, "a launch needs a grid and a block: k[{grid, block}](...)");
    return mr_class_lookup(L);
}

MR_FUNCTION(kernel_call, "__call", "", "Says how a kernel is launched.") {
    return mr_misuse(L, "a launch needs a grid and a block: %s[{grid, block}](...)",
                     check_kernel(L, 1)->name);
}

MR_FUNCTION(
    kernel_launch, "launch",
    "k:launch({grid: integer|integer[], block: integer|integer[], shared: integer=0, stream: "
    "stream, cooperative: boolean=false}, ...)",
    "Launches the kernel, as k[{grid, block, shared, stream}](...) does. `cooperative`: all "
    "blocks run at once, and may wait for each other in grid.sync().") {
    sizes size;
    mr_kernel_box *kernel = check_kernel(L, 1);
    int last = lua_gettop(L);
    mr_stream *stream = read_config(L, 2, &size);
    lua_pushnil(L); /* the fields stay below, so the arguments follow them once more */
    int first = lua_gettop(L) + 1;
    luaL_checkstack(L, last + LUA_MINSTACK, "too many arguments");
    for (int i = 3; i <= last; i++) lua_pushvalue(L, i);
    launch(L, kernel, &size, stream, first);
    return 0;
}

/* ---- mr.kernel ------------------------------------------------------------------------------------------- */

MR_FUNCTION(
    module_get, "get", "m:get(name: string) -> k: kernel",
    "Returns the kernel of that name: as in the source, its symbol in the PTX, or one of the "
    "`names` of mr.module.") {
    mr_set_context(L);
    mr_check(L, 1, &mr_kind_module);
    push_kernel(L, 1, mr_check_name(L, 2));
    return 1;
}

static uint8_t check_access(lua_State *L, const char *param, const char *text) {
    if (strcmp(text, "r") == 0) return MR_READ;
    if (strcmp(text, "w") == 0) return MR_WRITE;
    if (strcmp(text, "rw") == 0 || strcmp(text, "wr") == 0) return MR_READ | MR_WRITE;
    mr_misuse(L, "option `access`: %s is \"%s\", expected \"r\", \"w\" or \"rw\"", param, text);
    return 0;
}

static void no_such_param(lua_State *L, const mr_kernel_box *kernel, const char *name) {
    luaL_Buffer list;
    luaL_buffinit(L, &list);
    mr_kernel_add_params(&list, kernel);
    luaL_pushresult(&list);
    mr_misuse(L, "option `access`: %s(%s) has no parameter `%s`", kernel->name, lua_tostring(L, -1),
              name);
}

static void read_access(lua_State *L, mr_kernel_box *kernel, const mr_option_slots *options) {
    int at = mr_option_at(L, options, "access");
    if (!at) return;
    if (!lua_istable(L, at)) mr_bad_option(L, at, "access", "a table, as {y=\"rw\", x=\"r\"}");
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
            mr_misuse(L, "option `access`: expected names of parameters, as {y=\"rw\", x=\"r\"}");
        const char *name = lua_tostring(L, -2);
        uint32_t i = 0;
        while (i < kernel->ptx->param_count && strcmp(kernel->params[i].c.name, name) != 0) i++;
        if (i == kernel->ptx->param_count) no_such_param(L, kernel, name);
        kernel->params[i].access = check_access(L, name, lua_tostring(L, -1));
    }
}

MR_FUNCTION(kernel_new, "kernel",
            "mr.kernel(source: string|{ptx=}|{path=} [, name: string|{name: string, options: "
            "string[], access: table, strided: boolean=false}]) -> k: kernel",
            "Compiles CUDA C++ and returns the kernel of that name, which may be an instance of a "
            "template, such as `block_sum<256>`; without a name, the only kernel of the source. "
            "Sources, options and errors are those of mr.module. millrace reads from its code "
            "which memory it accesses through each pointer; `access` declares this instead, as "
            "{y=\"rw\", x=\"r\"}. With `strided`, tensors need not be contiguous. Launch it with "
            "k[{grid, block}](...).") {
    static const char *const known[] = {"name", "options", "access", "strided", NULL};
    mr_caller caller = mr_enter(L);
    mr_option_slots options = {known, 0};
    const char *name = NULL;
    if (lua_type(L, 2) == LUA_TSTRING) {
        name = mr_check_name(L, 2);
    } else {
        options = mr_check_options(L, 2, known);
        name = mr_option_name(L, &options, "name");
    }
    mr_push_kernel_module(L, &caller, mr_option_at(L, &options, "options"), 0, name);
    push_kernel(L, lua_gettop(L), name);
    mr_kernel_box *kernel = check_kernel(L, -1);
    kernel->strided = mr_option_boolean(L, &options, "strided", false);
    read_access(L, kernel, &options);
    return 1;
}

/* ---- properties of a kernel ---------------------------------------------------------------------------- */

static const char *access_text(uint8_t access) {
    static const char *const texts[] = {"none", "r", "w", "rw"};
    return texts[access & (MR_READ | MR_WRITE)];
}

MR_FUNCTION(kernel_access, "access", "k:access() -> access: table, unknown: table",
            "Returns the accesses of the kernel through each pointer: {y=\"rw\", x=\"r\"}, "
            "\"none\" if it makes none. If the code does not determine the accesses of a "
            "parameter, the second table has the reason; the hazard checker then assumes reads "
            "and writes. `unknown[1]` says it if the kernel also uses other pointers.") {
    const mr_kernel_box *kernel = check_kernel(L, 1);
    const mr_ptx_param_access *inferred = mr_ptx_kernel_access(kernel->ptx);
    lua_settop(L, 1);
    lua_newtable(L);
    lua_newtable(L);
    for (uint32_t i = 0; i < kernel->ptx->param_count; i++) {
        const mr_kernel_param *p = &kernel->params[i];
        if (p->kind != MR_ARGUMENT_POINTER && !inferred[i].access) continue;
        lua_pushstring(L, access_text(p->access ? p->access : inferred[i].access));
        lua_setfield(L, 2, p->c.name);
        if (p->access || inferred[i].known) continue;
        lua_pushstring(L, inferred[i].reason ? inferred[i].reason : "the code does not tell");
        lua_setfield(L, 3, p->c.name);
    }
    if (mr_ptx_kernel_follows_memory(kernel->ptx)) {
        lua_pushliteral(L, "it also uses pointers that lie in memory, or that are made from "
                           "numbers: any memory may be read and written");
        lua_rawseti(L, 3, 1);
    }
    return 2;
}

MR_FUNCTION(kernel_gc, "__gc", "", "Drops the reference to the module.") {
    mr_kernel_box *box = mr_check(L, 1, &mr_kind_kernel);
    mr_set_context(L);
    mr_kernel_unit_release(box->unit);
    free(box->params);
    mr_name_release(box->counted_name);
    *box = (mr_kernel_box){0};
    return 0;
}

MR_FUNCTION(kernel_tostring, "__tostring", "",
            "\"kernel saxpy(float* y, const float* x, float a, int n)\"") {
    const mr_kernel_box *kernel = check_kernel(L, 1);
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    luaL_addstring(&text, "kernel ");
    luaL_addstring(&text, kernel->name);
    luaL_addchar(&text, '(');
    mr_kernel_add_params(&text, kernel);
    luaL_addchar(&text, ')');
    luaL_pushresult(&text);
    return 1;
}

static int get_name(lua_State *L) {
    lua_pushstring(L, check_kernel(L, 1)->name);
    return 1;
}

static int get_symbol(lua_State *L) {
    lua_pushstring(L, check_kernel(L, 1)->ptx->name);
    return 1;
}

static int get_module(lua_State *L) {
    mr_set_context(L);
    mr_push_module_of(L, check_kernel(L, 1)->unit);
    return 1;
}

static int get_num_regs(lua_State *L) {
    const mr_kernel_box *kernel = check_kernel(L, 1);
    int registers;
    mr_raise(L, mr_kernel_registers(mr_set_context(L), kernel->unit->module->code, kernel->ptx,
                                    &registers));
    lua_pushinteger(L, registers);
    return 1;
}

static int get_shared_bytes(lua_State *L) {
    lua_pushinteger(L, check_kernel(L, 1)->ptx->shared_bytes);
    return 1;
}

static int get_local_bytes(lua_State *L) {
    lua_pushinteger(L, check_kernel(L, 1)->ptx->local_bytes);
    return 1;
}

static int get_max_threads(lua_State *L) {
    lua_pushinteger(L, check_kernel(L, 1)->ptx->max_threads);
    return 1;
}

static const char *kind_text(mr_argument_kind kind) {
    static const char *const texts[] = {[MR_ARGUMENT_POINTER] = "pointer",
                                        [MR_ARGUMENT_INTEGER] = "integer",
                                        [MR_ARGUMENT_FLOAT] = "number",
                                        [MR_ARGUMENT_ANY] = "pointer or integer",
                                        [MR_ARGUMENT_STRUCT] = "struct"};
    return texts[kind];
}

static int get_params(lua_State *L) {
    const mr_kernel_box *kernel = check_kernel(L, 1);
    lua_createtable(L, (int)kernel->ptx->param_count, 0);
    for (uint32_t i = 0; i < kernel->ptx->param_count; i++) {
        const mr_kernel_param *p = &kernel->params[i];
        lua_createtable(L, 0, 4);
        lua_pushstring(L, p->c.name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L,
                       p->c.type[0] ? p->c.type : mr_ptx_types[kernel->ptx->params[i].type].name);
        lua_setfield(L, -2, "type");
        lua_pushstring(L, kind_text(p->kind));
        lua_setfield(L, -2, "kind");
        lua_pushinteger(L, kernel->ptx->params[i].bytes);
        lua_setfield(L, -2, "bytes");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static const mr_property kernel_properties[] = {
    {"name", "string", "The name that the script asked for.", get_name},
    {"symbol", "string", "Its symbol in the PTX.", get_symbol},
    {"module", "module", "The module that it is in, for its variables: k.module:global(name).",
     get_module},
    {"params", "table[]", "Its parameters: name, type, kind and bytes of each.", get_params},
    {"num_regs", "integer",
     "Registers of a thread: on a GPU those that the driver's compiler uses, on the virtual GPU an "
     "estimate from the PTX.",
     get_num_regs},
    {"shared_bytes", "integer", "Static shared memory of a block, in bytes.", get_shared_bytes},
    {"local_bytes", "integer", "Local memory of a thread, in bytes, without recursion.",
     get_local_bytes},
    {"max_threads", "integer", "Threads that a block may have.", get_max_threads},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const kernel_functions[] = {&kernel_index_function,
                                                      &kernel_launch_function,
                                                      &kernel_access_function,
                                                      &kernel_call_function,
                                                      &kernel_tostring_function,
                                                      &kernel_gc_function,
                                                      NULL};

const mr_class mr_kernel_class = {"kernel", "A compiled kernel of your own.", kernel_functions,
                                  kernel_properties, &mr_kind_kernel};

static const mr_function *const table_functions[] = {&kernel_new_function, NULL};
const mr_class mr_kernels_class = {"mr", "Kernels of your own.", table_functions, NULL, NULL};

static const mr_function *const module_functions[] = {&module_get_function, NULL};
const mr_class mr_module_kernels_class = {"module", "The kernels of a module.", module_functions,
                                          NULL, &mr_kind_module};

void mr_open_kernel(lua_State *L) {
    mr_class_extend(L, &mr_module_kernels_class);
    mr_class_open(L, &mr_kernel_class);
    mr_class_open_index(L, &mr_kernel_class, kernel_index);
    mr_table_open(L, &mr_kernels_class);
}
