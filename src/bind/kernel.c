/* The userdata of a kernel: its arguments are checked here against its signature. A launch is `k[{grid, block, shared,
 * stream}](...)`: the index gives a function that has the sizes as upvalues, so a launch makes one closure and nothing
 * that must be finalized. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/kernel.h"
#include "bind/nearest.h"
#include "bind/open.h"

const mr_kind mr_kind_kernel = {"a kernel"};

/* ---- parameters ------------------------------------------------------------------------------------------ */

#define DTYPE(d) (uint8_t)(1u << (d))

/* What tensors a pointer to a C type takes; 0: any, as nothing is known of it. */
static uint8_t dtypes_of(const char *base) {
    static const struct {
        const char *base;
        uint8_t dtypes;
    } known[] = {{"float", DTYPE(MR_F32)},
                 {"double", DTYPE(MR_F64)},
                 {"int", DTYPE(MR_I32)},
                 {"unsigned int", DTYPE(MR_I32)},
                 {"long long", DTYPE(MR_I64)},
                 {"unsigned long long", DTYPE(MR_I64)},
                 {"unsigned char", DTYPE(MR_U8) | DTYPE(MR_BOOL)},
                 {"char", DTYPE(MR_U8) | DTYPE(MR_BOOL)},
                 {"signed char", DTYPE(MR_U8) | DTYPE(MR_BOOL)},
                 {"bool", DTYPE(MR_BOOL) | DTYPE(MR_U8)}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].base, base) == 0) return known[i].dtypes;
    return 0;
}

static mr_argument_kind kind_of_ptx(const mr_ptx_param *p) {
    if (p->is_struct) return MR_ARGUMENT_STRUCT;
    if (ptx_types[p->type].sort == PTX_FLOAT && p->bytes >= 4) return MR_ARGUMENT_FLOAT;
    if (p->may_be_pointer) return MR_ARGUMENT_ANY;
    return p->bytes <= 8 ? MR_ARGUMENT_INTEGER : MR_ARGUMENT_STRUCT;
}

static void describe_param(const mr_ptx_kernel *ptx, uint32_t i, const mr_c_param *c,
                           mr_kernel_param *out) {
    const mr_ptx_param *p = &ptx->params[i];
    *out = (mr_kernel_param){.kind = kind_of_ptx(p)};
    if (!c) {
        snprintf(out->c.name, sizeof out->c.name, "%s", p->name);
        if (out->kind == MR_ARGUMENT_ANY && mr_ptx_kernel_access(ptx)[i].access)
            out->kind = MR_ARGUMENT_POINTER;
        return;
    }
    out->c = *c;
    if (c->pointers && out->kind == MR_ARGUMENT_ANY) {
        out->kind = MR_ARGUMENT_POINTER;
        out->dtypes = c->pointers == 1 ? dtypes_of(c->base) : DTYPE(MR_I64);
    } else if (out->kind == MR_ARGUMENT_ANY && strstr(c->base, "long long")) {
        out->kind = MR_ARGUMENT_INTEGER;
    }
    out->is_unsigned = strncmp(c->base, "unsigned", 8) == 0;
    out->is_bool = strcmp(c->base, "bool") == 0;
}

/* The name without namespace and template arguments: what stands behind __global__. */
static void plain_name(const char *name, char *out, size_t size) {
    size_t length = strcspn(name, "<(");
    size_t start = length;
    while (start && name[start - 1] != ':') start--;
    snprintf(out, size, "%.*s", (int)(length - start), name + start);
}

#define MOST_PARAMS 128

static mr_kernel_param *describe_params(const mr_ptx_kernel *ptx, const mr_kernel_source *source,
                                        const char *name) {
    mr_kernel_param *params = calloc(ptx->param_count + 1, sizeof *params);
    mr_c_param *c = calloc(MOST_PARAMS, sizeof *c);
    char plain[200];
    int found = -1;
    plain_name(name, plain, sizeof plain);
    if (c && source) found = mr_signature_find(source->text, source->size, plain, c, MOST_PARAMS);
    bool known = found == (int)ptx->param_count && found <= MOST_PARAMS;
    for (uint32_t i = 0; params && i < ptx->param_count; i++)
        describe_param(ptx, i, known ? &c[i] : NULL, &params[i]);
    free(c);
    return params;
}

/* ---- finding one ----------------------------------------------------------------------------------------- */

/* "_Z5scalePffi" is `scale`: the symbol of a function outside of namespaces begins with its length. */
static bool is_mangled_as(const char *symbol, const char *name) {
    char start[220];
    int length = snprintf(start, sizeof start, "_Z%zu%s", strlen(name), name);
    return length < (int)sizeof start && strncmp(symbol, start, (size_t)length) == 0;
}

static const mr_ptx_kernel *find_kernel(const mr_module_box *box, const char *name) {
    const mr_ptx_module *ptx = box->module->code->ptx;
    for (int i = 0; box->names && box->names[i]; i++)
        if (strcmp(box->names[i], name) == 0 && box->entries[i])
            return mr_ptx_kernel_find(ptx, box->entries[i]);
    const mr_ptx_kernel *exact = mr_ptx_kernel_find(ptx, name);
    for (uint32_t i = 0; !exact && i < mr_ptx_kernel_count(ptx); i++)
        if (is_mangled_as(mr_ptx_kernel_at(ptx, i)->name, name)) exact = mr_ptx_kernel_at(ptx, i);
    return exact;
}

static int no_such_kernel(lua_State *L, const mr_module_box *box, const char *name) {
    const mr_ptx_module *ptx = box->module->code->ptx;
    uint32_t count = mr_ptx_kernel_count(ptx);
    if (!count) return mr_misuse(L, "the module has no kernel: mark functions with __global__");
    if (!name)
        return mr_misuse(L,
                         "the source has %d kernels: say which one, as mr.kernel(source, \"%s\")",
                         (int)count, mr_ptx_kernel_at(ptx, 0)->name);
    mr_nearest nearest;
    mr_nearest_begin(&nearest, name);
    for (uint32_t i = 0; i < count; i++) mr_nearest_offer(&nearest, mr_ptx_kernel_at(ptx, i)->name);
    const char *meant = mr_nearest_found(&nearest);
    if (meant) return mr_misuse(L, "there is no kernel `%s`: did you mean `%s`?", name, meant);
    luaL_Buffer list;
    luaL_buffinit(L, &list);
    for (uint32_t i = 0; i < count && i < 10; i++) {
        if (i) luaL_addstring(&list, ", ");
        luaL_addstring(&list, mr_ptx_kernel_at(ptx, i)->name);
    }
    luaL_pushresult(&list);
    return mr_misuse(L, "there is no kernel `%s`: the module has %s", name, lua_tostring(L, -1));
}

void mr_push_kernel(lua_State *L, int at, const char *name) {
    const mr_module_box *module = mr_check(L, at, &mr_kind_module);
    const mr_ptx_kernel *ptx = name ? find_kernel(module, name)
                               : mr_ptx_kernel_count(module->module->code->ptx) == 1
                                   ? mr_ptx_kernel_at(module->module->code->ptx, 0)
                                   : NULL;
    if (!ptx) no_such_kernel(L, module, name);
    mr_kernel_box *box = mr_new(L, &mr_kind_kernel, sizeof *box);
    box->module = module->module;
    box->module->refs++;
    box->ptx = ptx;
    box->name = strdup(name ? name : ptx->name);
    if (box->name) box->params = describe_params(ptx, module->source, box->name);
    if (!box->name || !box->params)
        mr_raise(L, mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a kernel"));
}

static mr_kernel_box *check_kernel(lua_State *L, int arg) {
    mr_kernel_box *box = mr_check(L, arg, &mr_kind_kernel);
    if (!box->module) mr_bad_argument_as(L, arg, "a kernel", "a kernel that is gone");
    return box;
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

typedef struct {
    mr_kernel_box *kernel;
    mr_kernel_pointer *pointers;
    uint32_t pointer_count;
    char *params; /* the block */
    int first;    /* stack index of the first argument */
} arguments;

/* "saxpy: argument 3 (`float a`): expected a number, got a tensor". */
static int bad_kernel_argument(lua_State *L, const arguments *a, uint32_t i, const char *expected,
                               const char *got) {
    const mr_kernel_param *p = &a->kernel->params[i];
    return mr_misuse(L, "%s: argument %d (`%s%s%s`): expected %s, got %s", a->kernel->name,
                     (int)i + 1, p->c.type, p->c.type[0] ? " " : "", p->c.name, expected, got);
}

static void dtype_list(uint8_t dtypes, char *out, size_t size) {
    out[0] = '\0';
    for (int d = 0; d < MR_DTYPE_COUNT; d++)
        if (dtypes & DTYPE(d)) {
            size_t used = strlen(out);
            snprintf(out + used, size - used, "%s%s", used ? " or " : "",
                     mr_dtype_text((mr_dtype)d));
        }
}

static void check_pointed(lua_State *L, const arguments *a, uint32_t i, const mr_tensor *t) {
    const mr_kernel_param *p = &a->kernel->params[i];
    char wanted[80], expected[120];
    if (p->dtypes && !(p->dtypes & DTYPE(t->dtype))) {
        dtype_list(p->dtypes, wanted, sizeof wanted);
        snprintf(expected, sizeof expected, "a tensor of %s", wanted);
        char got[60];
        snprintf(got, sizeof got, "one of %s", mr_dtype_text((mr_dtype)t->dtype));
        bad_kernel_argument(L, a, i, expected, got);
    }
    if (!t->contiguous && !a->kernel->strided)
        bad_kernel_argument(L, a, i,
                            "a contiguous tensor (pass its contiguous(), or make the kernel with "
                            "{strided=true} and pass the strides, too)",
                            "one with gaps or another order");
}

static void set_pointer(lua_State *L, arguments *a, uint32_t i) {
    int at = a->first + (int)i;
    const mr_ptx_param *to = &a->kernel->ptx->params[i];
    if (lua_isnil(L, at)) return; /* NULL */
    if (!mr_test_tensor(L, at)) bad_kernel_argument(L, a, i, "a tensor", mr_type_text(L, at));
    mr_tensor *t = mr_check_tensor(L, at);
    check_pointed(L, a, i, t);
    a->pointers[a->pointer_count++] =
        (mr_kernel_pointer){i, to->offset, t, a->kernel->params[i].access};
}

static void set_float(lua_State *L, arguments *a, uint32_t i) {
    int at = a->first + (int)i;
    const mr_ptx_param *to = &a->kernel->ptx->params[i];
    if (lua_type(L, at) != LUA_TNUMBER)
        bad_kernel_argument(L, a, i, "a number", mr_type_text(L, at));
    double value = lua_tonumber(L, at);
    float single = (float)value;
    memcpy(a->params + to->offset, to->bytes == 8 ? (const void *)&value : &single, to->bytes);
}

/* Of so many bits: which integers it takes. Where the source is unknown, those of both signs. */
static void integer_range(const mr_kernel_param *p, uint32_t bytes, int64_t *out_least,
                          int64_t *out_most) {
    bool known = p->c.type[0] != '\0';
    if (p->is_bool) {
        *out_least = 0;
        *out_most = 1;
        return;
    }
    if (bytes == 8) {
        *out_least = INT64_MIN; /* the upper half of unsigned ones are Lua's negative integers */
        *out_most = INT64_MAX;
        return;
    }
    int bits = (int)bytes * 8;
    *out_least = known && p->is_unsigned ? 0 : -((int64_t)1 << (bits - 1));
    *out_most =
        known && !p->is_unsigned ? ((int64_t)1 << (bits - 1)) - 1 : ((int64_t)1 << bits) - 1;
}

static void set_integer(lua_State *L, arguments *a, uint32_t i) {
    int at = a->first + (int)i, exact = 1;
    const mr_ptx_param *to = &a->kernel->ptx->params[i];
    int64_t value, least, most;
    if (lua_isboolean(L, at)) {
        value = lua_toboolean(L, at);
    } else {
        if (lua_type(L, at) != LUA_TNUMBER)
            bad_kernel_argument(L, a, i, "an integer", mr_type_text(L, at));
        value = lua_tointegerx(L, at, &exact);
        if (!exact) {
            char got[48];
            snprintf(got, sizeof got, "%g", lua_tonumber(L, at));
            bad_kernel_argument(L, a, i, "an integer", got);
        }
    }
    integer_range(&a->kernel->params[i], to->bytes, &least, &most);
    if (value < least || value > most) {
        char expected[80], got[32];
        snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, least, most);
        snprintf(got, sizeof got, "%" PRId64, value);
        bad_kernel_argument(L, a, i, expected, got);
    }
    memcpy(a->params + to->offset, &value, to->bytes); /* little-endian, as GPUs are */
}

static void set_struct(lua_State *L, arguments *a, uint32_t i) {
    int at = a->first + (int)i;
    const mr_ptx_param *to = &a->kernel->ptx->params[i];
    size_t size;
    char expected[80], got[40];
    snprintf(expected, sizeof expected, "its %u bytes as a string (string.pack)", to->bytes);
    if (lua_type(L, at) != LUA_TSTRING) bad_kernel_argument(L, a, i, expected, mr_type_text(L, at));
    const char *bytes = lua_tolstring(L, at, &size);
    snprintf(got, sizeof got, "%zu", size);
    if (size != to->bytes) bad_kernel_argument(L, a, i, expected, got);
    memcpy(a->params + to->offset, bytes, size);
}

static void set_argument(lua_State *L, arguments *a, uint32_t i) {
    switch (a->kernel->params[i].kind) {
    case MR_ARGUMENT_POINTER: set_pointer(L, a, i); break;
    case MR_ARGUMENT_INTEGER: set_integer(L, a, i); break;
    case MR_ARGUMENT_FLOAT: set_float(L, a, i); break;
    case MR_ARGUMENT_STRUCT: set_struct(L, a, i); break;
    case MR_ARGUMENT_ANY:
        if (lua_type(L, a->first + (int)i) == LUA_TNUMBER) set_integer(L, a, i);
        else set_pointer(L, a, i);
        break;
    }
}

/* "expected 4 arguments (float * y, const float * x, float a, int n), got 3". */
static void check_count(lua_State *L, const mr_kernel_box *kernel, int given) {
    int wanted = (int)kernel->ptx->param_count;
    if (given == wanted) return;
    luaL_Buffer list;
    luaL_buffinit(L, &list);
    for (int i = 0; i < wanted; i++) {
        if (i) luaL_addstring(&list, ", ");
        luaL_addstring(&list, kernel->params[i].c.type);
        if (kernel->params[i].c.type[0]) luaL_addchar(&list, ' ');
        luaL_addstring(&list, kernel->params[i].c.name);
    }
    luaL_pushresult(&list);
    mr_misuse(L, "%s: expected %d argument%s (%s), got %d", kernel->name, wanted,
              wanted == 1 ? "" : "s", lua_tostring(L, -1), given);
}

/* ---- launches -------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t grid[3], block[3], shared;
} sizes;

#define MOST_ON_STACK 16

/* Arguments stand at `first` and above. */
static void launch(lua_State *L, mr_kernel_box *kernel, const sizes *size, mr_stream *stream,
                   int first) {
    mr_caller caller = mr_enter(L);
    uint32_t count = kernel->ptx->param_count, bytes = kernel->ptx->param_bytes;
    mr_kernel_pointer few[MOST_ON_STACK];
    uint64_t block[64];
    check_count(L, kernel, lua_gettop(L) - first + 1);
    arguments a = {.kernel = kernel, .pointers = few, .params = (char *)block, .first = first};
    if (count > MOST_ON_STACK || bytes > sizeof block) { /* Lua owns it */
        size_t list = count * sizeof *a.pointers;
        char *space = lua_newuserdatauv(L, list + bytes, 0);
        a.pointers = (mr_kernel_pointer *)(void *)space;
        a.params = space + list;
    }
    memset(a.params, 0, bytes);
    for (uint32_t i = 0; i < count; i++) set_argument(L, &a, i);
    mr_kernel_call call = {
        .module = kernel->module,
        .kernel = kernel->ptx,
        .name = kernel->name,
        .grid = {size->grid[0], size->grid[1], size->grid[2]},
        .block = {size->block[0], size->block[1], size->block[2]},
        .shared = size->shared,
        .stream = stream,
        .params = a.params,
        .pointers = a.pointers,
        .pointer_count = a.pointer_count,
    };
    mr_raise(L, mr_kernel_launch(&caller, &call));
}

/* A size in each of three dims: a number, or a list of one to three. */
static void read_size(lua_State *L, int at, const char *name, uint32_t out[3]) {
    out[0] = out[1] = out[2] = 1;
    int count = lua_istable(L, at) ? (int)lua_rawlen(L, at) : 1;
    if (count < 1 || count > 3 || (!lua_istable(L, at) && lua_type(L, at) != LUA_TNUMBER))
        mr_bad_option(L, at, name, "a number or a list of one to three");
    for (int d = 0; d < count; d++) {
        int exact;
        if (lua_istable(L, at)) lua_rawgeti(L, at, d + 1);
        else lua_pushvalue(L, at);
        lua_Integer value = lua_tointegerx(L, -1, &exact);
        if (!exact || lua_type(L, -1) != LUA_TNUMBER)
            mr_bad_option(L, lua_gettop(L), name, "integers");
        if (value < 0 || value > UINT32_MAX)
            mr_raise(L, mr_fail(MR_CODE_INVALID_CONFIGURATION,
                                "%s: %" PRId64 " is no size, expected 1 or more", name,
                                (int64_t)value));
        lua_pop(L, 1);
        out[d] = (uint32_t)value;
    }
}

/* The table at `arg`; the stream stays on the stack. */
static mr_stream *read_config(lua_State *L, int arg, sizes *out) {
    static const char *const known[] = {"grid", "block", "shared", "stream", NULL};
    mr_option_slots fields = mr_check_fields(L, arg, known);
    int grid = mr_option_at(L, &fields, "grid"), block = mr_option_at(L, &fields, "block");
    if (!grid || !block)
        mr_misuse(L, "a launch needs a grid and a block: k[{grid, block}](...) or "
                     "k:launch({grid=, block=}, ...)");
    read_size(L, grid, "grid", out->grid);
    read_size(L, block, "block", out->block);
    lua_Integer shared = mr_option_integer(L, &fields, "shared", 0);
    if (shared < 0 || shared > UINT32_MAX)
        mr_misuse(L, "option `shared`: %" PRId64 " is no number of bytes", (int64_t)shared);
    out->shared = (uint32_t)shared;
    return mr_option_stream(L, &fields, "stream");
}

/* Upvalues of the function that k[{...}] gives: the module, the kernel, the stream or nil, the sizes. */
enum { UP_KERNEL = 2, UP_STREAM, UP_SIZES };

static int call_configured(lua_State *L) {
    sizes size;
    memcpy(&size, lua_tostring(L, lua_upvalueindex(UP_SIZES)), sizeof size);
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
    lua_pushlstring(L, (const char *)&size, sizeof size);
    lua_pushcclosure(L, call_configured, 4);
    return 1;
}

MR_FUNCTION(kernel_index, "__index", "k[{grid, block, shared, stream}](...)",
            "Launches the kernel, as CUDA's <<<grid, block, shared, stream>>>. Grid and block are "
            "numbers or lists of up to three. `shared` is dynamic shared memory in bytes. Without "
            "`stream` it is the current one. The arguments are those of the kernel: tensors for "
            "pointers, numbers for scalars, strings (string.pack) for structs.") {
    return lua_istable(L, 2) ? push_configured(L) : mr_class_lookup(L);
}

MR_FUNCTION(
    kernel_launch, "launch",
    "k:launch({grid: integer|integer[], block: integer|integer[], shared: integer=0, stream: "
    "stream}, ...)",
    "Launches the kernel, like k[{...}](...).") {
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
    "The kernel of that name: as in the source, the symbol in the PTX, or one of `names`.") {
    mr_set_context(L);
    mr_check(L, 1, &mr_kind_module);
    mr_push_kernel(L, 1, mr_check_name(L, 2));
    return 1;
}

static uint8_t check_access(lua_State *L, const char *param, const char *text) {
    if (strcmp(text, "r") == 0) return MR_READ;
    if (strcmp(text, "w") == 0) return MR_WRITE;
    if (strcmp(text, "rw") == 0 || strcmp(text, "wr") == 0) return MR_READ | MR_WRITE;
    mr_misuse(L, "option `access`: %s is \"%s\", expected \"r\", \"w\" or \"rw\"", param, text);
    return 0;
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
        if (i == kernel->ptx->param_count)
            mr_misuse(L, "option `access`: %s has no parameter `%s`", kernel->name, name);
        kernel->params[i].access = check_access(L, name, lua_tostring(L, -1));
    }
}

MR_FUNCTION(kernel_new, "kernel",
            "mr.kernel(source: string|{ptx=}|{path=} [, name: string|{name: string, options: "
            "string[], access: table, strided: boolean=false}]) -> k: kernel",
            "Compiles CUDA C and gives the kernel of that name, which may be an instance of a "
            "template as \"block_sum<256>\"; without a name, the only kernel of the source. "
            "What each pointer's memory is used for is read from the code; `access` says it "
            "instead, as {y=\"rw\", x=\"r\"}. With `strided`, tensors need not be contiguous. "
            "Launch it with k[{grid, block}](...).") {
    static const char *const known[] = {"name", "options", "names", "access", "strided", NULL};
    mr_caller caller = mr_enter(L);
    mr_option_slots options = {known, 0};
    const char *name = NULL;
    if (lua_type(L, 2) == LUA_TSTRING) {
        name = mr_check_name(L, 2);
    } else {
        options = mr_check_options(L, 2, known);
        name = mr_option_name(L, &options, "name");
    }
    mr_push_kernel_module(L, &caller, name, &options);
    mr_push_kernel(L, lua_gettop(L), name);
    mr_kernel_box *kernel = check_kernel(L, -1);
    kernel->strided = mr_option_boolean(L, &options, "strided", false);
    read_access(L, kernel, &options);
    return 1;
}

/* ---- what can be asked of one ---------------------------------------------------------------------------- */

static const char *access_text(uint8_t access) {
    static const char *const texts[] = {"", "r", "w", "rw"};
    return texts[access & (MR_READ | MR_WRITE)];
}

MR_FUNCTION(
    kernel_access, "access", "k:access() -> access: table, unknown: table",
    "What the kernel does with the memory behind each pointer: {y=\"rw\", x=\"r\"}, \"\" if "
    "nothing. The second table has, for each parameter for which the code does not tell, "
    "the reason; the hazard checker then takes it as read and written.") {
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
    return 2;
}

MR_FUNCTION(kernel_gc, "__gc", "", "Drops the reference to the module.") {
    mr_kernel_box *box = mr_check(L, 1, &mr_kind_kernel);
    mr_set_context(L);
    mr_kernel_module_release(box->module);
    free(box->params);
    free(box->name);
    *box = (mr_kernel_box){0};
    return 0;
}

MR_FUNCTION(kernel_tostring, "__tostring", "",
            "\"kernel saxpy(float * y, const float * x, float a, int n)\"") {
    const mr_kernel_box *kernel = check_kernel(L, 1);
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    luaL_addstring(&text, "kernel ");
    luaL_addstring(&text, kernel->name);
    luaL_addchar(&text, '(');
    for (uint32_t i = 0; i < kernel->ptx->param_count; i++) {
        const mr_c_param *c = &kernel->params[i].c;
        if (i) luaL_addstring(&text, ", ");
        if (c->type[0]) luaL_addstring(&text, c->type);
        if (c->type[0]) luaL_addchar(&text, ' ');
        luaL_addstring(&text, c->name);
    }
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

static int get_num_regs(lua_State *L) {
    lua_pushinteger(L, check_kernel(L, 1)->ptx->registers);
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
        lua_pushstring(L, p->c.type[0] ? p->c.type : ptx_types[kernel->ptx->params[i].type].name);
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
    {"name", "string", "The name by which it was asked for.", get_name},
    {"symbol", "string", "Its symbol in the PTX.", get_symbol},
    {"params", "table[]", "Its parameters: name, type, kind and bytes of each.", get_params},
    {"num_regs", "integer",
     "Registers a thread: on the virtual GPU an estimate of what the driver's compiler would use.",
     get_num_regs},
    {"shared_bytes", "integer", "Static shared memory a block, in bytes.", get_shared_bytes},
    {"local_bytes", "integer", "Local memory a thread, in bytes.", get_local_bytes},
    {"max_threads", "integer", "Threads that a block may have.", get_max_threads},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const kernel_functions[] = {
    &kernel_index_function, &kernel_launch_function,   &kernel_access_function,
    &kernel_gc_function,    &kernel_tostring_function, NULL};

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
