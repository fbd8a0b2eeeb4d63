/* mr.module: CUDA C, PTX or a file becomes a module of kernels. The box owns a reference to the loaded module. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/kernel.h"
#include "bind/open.h"
#include "bind/registry.h"
#include "bind/source.h"
#include "compile/compile.h"

const mr_kind mr_kind_module = {"a module"};

/* ---- where the text comes from -------------------------------------------------------------------------- */

typedef struct {
    const char *text; /* on the stack */
    size_t size;
    bool is_ptx;
    const char *file; /* where the text starts, for the compiler's messages */
    int line;
} source;

static bool in_sandbox(const mr_machine *machine) {
    return machine->memory_limit != 0;
}

/* Pushes the contents of a file. */
static void read_file(lua_State *L, const mr_machine *machine, const char *path, source *out) {
    if (in_sandbox(machine))
        mr_misuse(L, "module: files are not read in the sandbox: pass the source as a string");
    FILE *file = fopen(path, "rb");
    if (!file) mr_misuse(L, "module: cannot open %s", path);
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    for (size_t got = 1; got;) {
        got = fread(luaL_prepbuffer(&buffer), 1, LUAL_BUFFERSIZE, file);
        luaL_addsize(&buffer, got);
    }
    bool failed = ferror(file);
    fclose(file);
    luaL_pushresult(&buffer);
    if (failed) mr_misuse(L, "module: cannot read %s", path);
    out->text = lua_tolstring(L, -1, &out->size);
    out->file = path;
    out->line = 1;
    size_t length = strlen(path);
    out->is_ptx = length > 4 && strcmp(path + length - 4, ".ptx") == 0;
}

static source check_source(lua_State *L, const mr_caller *caller) {
    static const char *const known[] = {"ptx", "path", NULL};
    source s = {.file = caller->where.file, .line = caller->where.line};
    if (lua_type(L, 1) == LUA_TSTRING) {
        s.text = lua_tolstring(L, 1, &s.size);
        mr_source_locate(L, caller->where.file, s.text, s.size, &s.line);
        return s;
    }
    if (!lua_istable(L, 1)) mr_bad_argument(L, 1, "CUDA C source, {ptx=text} or {path=file}");
    mr_option_slots options = mr_check_options(L, 1, known);
    int ptx = mr_option_at(L, &options, "ptx"), path = mr_option_at(L, &options, "path");
    if (!ptx == !path) mr_misuse(L, "module: expected CUDA C source, {ptx=text} or {path=file}");
    if (lua_type(L, ptx ? ptx : path) != LUA_TSTRING)
        mr_bad_option(L, ptx ? ptx : path, ptx ? "ptx" : "path", "a string");
    if (path) {
        read_file(L, caller->machine, lua_tostring(L, path), &s);
        return s;
    }
    s.text = lua_tolstring(L, ptx, &s.size);
    s.is_ptx = true;
    return s;
}

/* ---- lists of strings among the options ------------------------------------------------------------------ */

#define MOST_STRINGS 64

typedef struct {
    const char *items[MOST_STRINGS]; /* kept on the stack */
    int count;
} string_list;

static void add_string(lua_State *L, string_list *list, const char *name, int at) {
    if (lua_type(L, at) != LUA_TSTRING) mr_bad_option(L, at, name, "strings");
    if (list->count == MOST_STRINGS)
        mr_misuse(L, "option `%s`: more than %d strings", name, MOST_STRINGS);
    list->items[list->count++] = lua_tostring(L, at);
}

static void read_strings(lua_State *L, const mr_option_slots *options, const char *name,
                         string_list *list) {
    int at = mr_option_at(L, options, name);
    if (!at) return;
    if (lua_type(L, at) == LUA_TSTRING) {
        add_string(L, list, name, at);
        return;
    }
    if (!lua_istable(L, at)) mr_bad_option(L, at, name, "a string or a list of strings");
    lua_Integer count = (lua_Integer)lua_rawlen(L, at);
    luaL_checkstack(L, MOST_STRINGS + LUA_MINSTACK, "too many strings");
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, at, i); /* a string; it stays on the stack */
        add_string(L, list, name, -1);
    }
}

/* ---- compiling ------------------------------------------------------------------------------------------- */

static int drop_compiled(lua_State *L) {
    mr_compiled *compiled = lua_touserdata(L, 1);
    mr_compiled_free(compiled);
    *compiled = (mr_compiled){0};
    return 0;
}

static void compile(lua_State *L, const mr_caller *caller, const source *s,
                    const string_list *options, const string_list *names, mr_compiled *out) {
    const mr_device *device = caller->machine->current_device;
    mr_compile_source what = {
        .text = s->text,
        .size = s->size,
        .file = s->file,
        .line = s->line,
        .options = options->items,
        .option_count = options->count,
        .compute_major = device->properties.compute_major,
        .compute_minor = device->properties.compute_minor,
        .names = names->items,
        .name_count = names->count,
        .in_process_only = in_sandbox(caller->machine),
        .interrupted = caller->machine->interrupted,
        .context = caller->machine->hook_context,
    };
    mr_raise(L, mr_compile(&what, out));
}

static char **copy_strings(char *const *items, int count) {
    char **copy = calloc((size_t)count + 1, sizeof *copy);
    for (int i = 0; copy && i < count; i++) copy[i] = strdup(items[i]);
    return copy;
}

static void free_strings(char **items) {
    for (char **s = items; s && *s; s++) free(*s);
    free(items);
}

static mr_kernel_source *keep_source(const char *text, size_t size) {
    mr_kernel_source *kept = malloc(sizeof *kept + size);
    if (!kept) return NULL;
    kept->refs = 1;
    kept->size = size;
    memcpy(kept->text, text, size);
    return kept;
}

static void load(lua_State *L, const mr_caller *caller, mr_module_box *box, char *ptx, size_t size,
                 const char *name) {
    mr_kernel_code *code;
    if (!ptx) mr_raise(L, mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a module of kernels"));
    mr_raise(L, mr_kernel_code_load(ptx, size, name, &code));
    mr_status status = mr_kernel_module_create(caller, code, &box->module);
    mr_kernel_code_release(code);
    mr_raise(L, status);
}

static char *copy_text(const char *text, size_t size) {
    char *copy = malloc(size + 1);
    if (copy) memcpy(copy, text, size);
    if (copy) copy[size] = '\0';
    return copy;
}

static void compile_and_load(lua_State *L, const mr_caller *caller, const source *s,
                             const string_list *options, const string_list *names,
                             mr_module_box *box) {
    mr_compiled *compiled = mr_push_owner(L, sizeof *compiled, drop_compiled);
    compile(L, caller, s, options, names, compiled);
    box->source = keep_source(s->text, s->size);
    box->names = copy_strings((char *const *)names->items, names->count);
    box->entries = copy_strings(compiled->entries, compiled->entry_count);
    if (!box->source || !box->names || !box->entries)
        mr_raise(L, mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a module of kernels"));
    char *ptx = compiled->ptx;
    compiled->ptx = NULL; /* the code owns it now */
    load(L, caller, box, ptx, compiled->size, s->file ? s->file : "the kernel");
}

void mr_push_kernel_module(lua_State *L, const mr_caller *caller, const char *name,
                           const mr_option_slots *options) {
    string_list flags = {.count = 0}, names = {.count = 0};
    source s = check_source(L, caller);
    read_strings(L, options, "options", &flags);
    read_strings(L, options, "names", &names);
    if (name && names.count < MOST_STRINGS) names.items[names.count++] = name;
    mr_module_box *box = mr_new(L, &mr_kind_module, sizeof *box);
    int at = lua_gettop(L);
    if (s.is_ptx) load(L, caller, box, copy_text(s.text, s.size), s.size, s.file ? s.file : "PTX");
    else compile_and_load(L, caller, &s, &flags, &names, box);
    mr_registry_add(L, box->module);
    lua_pushvalue(L, at);
}

/* ---- what scripts call ----------------------------------------------------------------------------------- */

static mr_module_box *check_box(lua_State *L, int arg) {
    mr_module_box *box = mr_check(L, arg, &mr_kind_module);
    if (!box->module) mr_bad_argument_as(L, arg, "a module", "a module that is gone");
    return box;
}

MR_FUNCTION(
    module_new, "module",
    "mr.module(source: string|{ptx=}|{path=} [, {options: string[], names: string[]}]) -> m: "
    "module",
    "Compiles CUDA C (or loads PTX, or reads a .cu or .ptx file) and loads its kernels. "
    "`options` are those of nvcc, as \"-DN=4\" or \"--use_fast_math\". `names` lists "
    "instances of templates, as \"block_sum<256>\". A compiler's error is raised as the "
    "compiler wrote it, with the lines of your file.") {
    static const char *const known[] = {"options", "names", NULL};
    mr_caller caller = mr_enter(L);
    mr_option_slots options = mr_check_options(L, 2, known);
    mr_push_kernel_module(L, &caller, NULL, &options);
    return 1;
}

/* The type of a variable's elements: what the script says, what the C text says, what the PTX says. */
static mr_dtype variable_dtype(lua_State *L, const mr_module_box *box, const char *name,
                               const ptx_variable *v) {
    static const struct {
        const char *base;
        mr_dtype dtype;
    } known[] = {{"float", MR_F32},        {"double", MR_F64},    {"int", MR_I32},
                 {"unsigned int", MR_I32}, {"long long", MR_I64}, {"unsigned long long", MR_I64},
                 {"bool", MR_BOOL}};
    mr_dtype dtype = MR_U8;
    char base[64] = "";
    if (!lua_isnoneornil(L, 3)) {
        const char *text = mr_check_name(L, 3);
        if (!mr_dtype_find(text, &dtype)) mr_misuse(L, "global: there is no dtype \"%s\"", text);
        return dtype;
    }
    if (box->source)
        mr_signature_variable(box->source->text, box->source->size, name, base, sizeof base);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].base, base) == 0) return known[i].dtype;
    switch (v->type) {
    case PTX_f32: return MR_F32;
    case PTX_f64: return MR_F64;
    case PTX_u32:
    case PTX_s32:
    case PTX_b32: return MR_I32;
    case PTX_u64:
    case PTX_s64:
    case PTX_b64: return MR_I64;
    default: return MR_U8;
    }
}

MR_FUNCTION(module_global, "global", "m:global(name: string [, dtype: string]) -> tensor",
            "The __device__ or __constant__ variable of that name, on the current device, as a "
            "tensor: of no dims if it is one value. `dtype` says how to read it where the source "
            "does not. Writing to a __constant__ variable between launches is allowed, as with "
            "cudaMemcpyToSymbol.") {
    mr_caller caller = mr_enter(L);
    mr_module_box *box = check_box(L, 1);
    const char *name = mr_check_name(L, 2);
    mr_tensor *bytes;
    const ptx_variable *v;
    mr_raise(L, mr_kernel_variable(&caller, box->module, caller.machine->current_device, name,
                                   &bytes, &v));
    mr_dtype dtype = variable_dtype(L, box, name, v);
    int64_t size = (int64_t)mr_dtype_size(dtype), count = (int64_t)v->bytes / size, stride = 1;
    if (count * size != (int64_t)v->bytes)
        return mr_misuse(L, "global: %s has %d bytes, which are no %s elements", name,
                         (int)v->bytes, mr_dtype_text(dtype));
    mr_tensor **slot = mr_new_tensor(L);
    mr_raise(L, mr_tensor_view(&caller, bytes, dtype, v->count > 1 || count > 1 ? 1 : 0, &count,
                               &stride, 0, slot));
    return 1;
}

MR_FUNCTION(module_gc, "__gc", "", "Drops the module; kernels of it keep it.") {
    mr_module_box *box = mr_check(L, 1, &mr_kind_module);
    mr_set_context(L);
    mr_kernel_module_release(box->module);
    if (box->source && !--box->source->refs) free(box->source);
    free_strings(box->names);
    free_strings(box->entries);
    *box = (mr_module_box){0};
    return 0;
}

MR_FUNCTION(module_tostring, "__tostring", "", "\"module with 2 kernels\"") {
    const mr_module_box *box = check_box(L, 1);
    unsigned count = mr_ptx_kernel_count(box->module->code->ptx);
    lua_pushfstring(L, "module with %d kernel%s", (int)count, count == 1 ? "" : "s");
    return 1;
}

static int get_kernels(lua_State *L) {
    const mr_module_box *box = check_box(L, 1);
    unsigned count = mr_ptx_kernel_count(box->module->code->ptx);
    lua_createtable(L, (int)count, 0);
    for (unsigned i = 0; i < count; i++) {
        lua_pushstring(L, mr_ptx_kernel_at(box->module->code->ptx, i)->name);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int get_ptx(lua_State *L) {
    const mr_module_box *box = check_box(L, 1);
    lua_pushlstring(L, box->module->code->text, box->module->code->size);
    return 1;
}

static const mr_property module_properties[] = {
    {"kernels", "string[]", "The symbols of its kernels.", get_kernels},
    {"ptx", "string", "Its PTX.", get_ptx},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const module_functions[] = {&module_global_function, &module_gc_function,
                                                      &module_tostring_function, NULL};

const mr_class mr_module_class = {"module",
                                  "Kernels that were compiled together, and their variables.",
                                  module_functions, module_properties, &mr_kind_module};

static const mr_function *const table_functions[] = {&module_new_function, NULL};
const mr_class mr_modules_class = {"mr", "Modules of kernels.", table_functions, NULL, NULL};

void mr_open_kernel_module(lua_State *L) {
    mr_class_open(L, &mr_module_class);
    mr_table_open(L, &mr_modules_class);
}
