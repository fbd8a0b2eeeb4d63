/* mr.module: CUDA C, PTX or a file becomes a module of kernels. The result is a unit (kernel.h), which the module's box
 * and the boxes of its kernels hold. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "bind/kernel/kernel.h"
#include "bind/open.h"
#include "bind/registry.h"
#include "bind/source.h"
#include "compile/compile.h"

/* ---- the source of the text -------------------------------------------------------------------------- */

typedef struct {
    const char *text; /* on the stack */
    size_t size;
    bool is_ptx;
    mr_site where; /* its first line, for messages and reports */
    /* the script whose folder is searched for included files; NULL: that of `where` */
    const char *beside;
} source;

/* A stand-in for the file name if the text is not literally in a script: the script built or read it. */
#define NO_FILE "<kernel text>"

static bool in_sandbox(const mr_machine *machine) {
    return machine->memory.limit != 0;
}

static bool ends_in(const char *text, size_t size, const char *end) {
    size_t length = strlen(end);
    return size > length && memcmp(text + size - length, end, length) == 0;
}

#define MOST_BYTES ((size_t)64 << 20) /* of a file */

static int close_file(lua_State *L) {
    FILE **file = lua_touserdata(L, 1);
    if (*file) fclose(*file);
    *file = NULL;
    return 0;
}

/* Pushes the contents of a file. */
static void read_file(lua_State *L, const mr_machine *machine, const char *path, source *out) {
    if (in_sandbox(machine)) mr_misuse(L, "--sandbox reads no files: pass the source as a string");
    FILE **file = mr_push_owner(L, sizeof(FILE *), close_file);
    *file = fopen(path, "rb");
    if (!*file) mr_misuse(L, "cannot open %s: %s", path, strerror(errno));
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    for (size_t got = 1, size = 0; got; size += got) {
        got = fread(luaL_prepbuffer(&buffer), 1, LUAL_BUFFERSIZE, *file);
        luaL_addsize(&buffer, got);
        if (size > MOST_BYTES) mr_misuse(L, "%s is larger than 64 MiB", path);
    }
    if (ferror(*file)) mr_misuse(L, "cannot read %s: %s", path, strerror(errno));
    luaL_pushresult(&buffer);
    fclose(*file);
    *file = NULL;
    out->text = lua_tolstring(L, -1, &out->size);
    out->where = (mr_site){.file = path, .line = 1};
    out->beside = NULL;
    out->is_ptx = ends_in(path, strlen(path), ".ptx");
}

/* Raises for a file's name, or PTX, in place of CUDA C: a compiler's errors would hide the mistake. */
static void check_is_source(lua_State *L, const char *text, size_t size) {
    static const char version[] = ".version";
    if (size < 1000 && !memchr(text, '\n', size) &&
        (ends_in(text, size, ".cu") || ends_in(text, size, ".ptx")))
        mr_misuse(L, "\"%s\" is the name of a file: write {path=\"%s\"}", text, text);
    const char *at = text;
    while (*at == '\n' || *at == ' ' || *at == '\t' || strncmp(at, "//", 2) == 0)
        at += *at == '/' ? strcspn(at, "\n") : 1;
    if (strncmp(at, version, sizeof version - 1) == 0)
        mr_misuse(L, "the text is PTX: write {ptx=text}");
}

static source check_source(lua_State *L, const mr_caller *caller) {
    static const char *const known[] = {"ptx", "path", NULL};
    source s = {.where = {.file = NO_FILE, .line = 1}, .beside = caller->where.file};
    if (lua_type(L, 1) == LUA_TSTRING) {
        s.text = lua_tolstring(L, 1, &s.size);
        check_is_source(L, s.text, s.size);
        mr_site where;
        if (mr_source_locate(L, s.text, s.size, &where)) s.where = where;
        return s;
    }
    if (!lua_istable(L, 1)) mr_bad_argument(L, 1, "CUDA C source, {ptx=text} or {path=file}");
    mr_option_slots options = mr_check_options(L, 1, known);
    int ptx = mr_option_at(L, &options, "ptx"), path = mr_option_at(L, &options, "path");
    if (!ptx == !path) mr_misuse(L, "expected CUDA C source, {ptx=text} or {path=file}");
    if (lua_type(L, ptx ? ptx : path) != LUA_TSTRING)
        mr_bad_option(L, ptx ? ptx : path, ptx ? "ptx" : "path", "a string");
    if (path) {
        read_file(L, caller->machine, lua_tostring(L, path), &s);
        return s;
    }
    s.text = lua_tolstring(L, ptx, &s.size);
    s.is_ptx = true;
    s.where.file = "the text";
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

/* The option at stack index `at`; 0: it is not given. */
static void read_strings(lua_State *L, int at, const char *name, string_list *list) {
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

/* Whether a line has a place, "race.lua:3:5: error: ...": then the error is about the source, not about an option or a
 * name. */
static bool has_place(const char *message) {
    for (const char *at = strstr(message, "error: "); at; at = strstr(at + 1, "error: ")) {
        while (at > message && at[-1] != ':' && at[-1] != '\n') at--; /* "fatal error" */
        if (at > message + 1 && at[-1] == ':' && at[-2] >= '0' && at[-2] <= '9') return true;
        at = strstr(at, "error: ");
    }
    return false;
}

static void compile(lua_State *L, const mr_caller *caller, const source *s,
                    const string_list *options, const string_list *names, mr_compiled *out) {
    const mr_device_properties *own = &caller->machine->current_device->properties;
    int target = own->compute_major * 10 + own->compute_minor;
    if (target > PTX_NEWEST_TARGET) target = PTX_NEWEST_TARGET; /* newer GPUs run it, too */
    mr_compile_source what = {
        .text = s->text,
        .size = s->size,
        .file = s->where.file,
        .line = s->where.line,
        .beside = s->beside,
        .options = options->items,
        .option_count = options->count,
        .compute_major = target / 10,
        .compute_minor = target % 10,
        .names = names->items,
        .name_count = names->count,
        .is_confined = in_sandbox(caller->machine),
        .interrupted = caller->machine->hooks.interrupted,
        .context = caller->machine->hooks.context,
    };
    mr_status status = mr_compile(&what, out);
    if (status && status->code == MR_CODE_INVALID_ARGUMENT && has_place(status->message)) {
        mr_status told =
            mr_fail(status->code, "the kernel source has errors:\n%s", status->message);
        mr_error_destroy(status);
        status = told;
    }
    mr_raise(L, status);
}

static void free_strings(char **items) {
    for (char **s = items; s && *s; s++) free(*s);
    free(items);
}

static char **copy_strings(char *const *items, int count) {
    char **copy = calloc((size_t)count + 1, sizeof *copy);
    for (int i = 0; copy && i < count; i++) {
        copy[i] = strdup(items[i]);
        if (copy[i]) continue;
        free_strings(copy);
        return NULL;
    }
    return copy;
}

static char *copy_text(const char *text, size_t size) {
    char *copy = malloc(size + 1);
    if (copy) memcpy(copy, text, size);
    if (copy) copy[size] = '\0';
    return copy;
}

/* Takes over `ptx`. */
static void load(lua_State *L, const mr_caller *caller, mr_kernel_unit *unit, char *ptx,
                 size_t size, const char *name) {
    mr_kernel_code *code;
    if (!ptx) mr_raise(L, mr_no_memory("for a module of kernels"));
    mr_raise(L, mr_kernel_code_load(ptx, size, name, &code));
    mr_status status = mr_kernel_module_create(caller, code, &unit->module);
    mr_kernel_code_release(code);
    mr_raise(L, status);
}

static void compile_and_load(lua_State *L, const mr_caller *caller, const source *s,
                             const string_list *options, const string_list *names,
                             mr_kernel_unit *unit) {
    mr_compiled *compiled = mr_push_owner(L, sizeof *compiled, drop_compiled);
    compile(L, caller, s, options, names, compiled);
    unit->text = copy_text(s->text, s->size);
    unit->size = s->size;
    unit->names = copy_strings((char *const *)names->items, names->count);
    unit->entries = copy_strings(compiled->entries, compiled->entry_count);
    if (!unit->text || !unit->names || !unit->entries)
        mr_raise(L, mr_no_memory("for a module of kernels"));
    char *ptx = compiled->ptx;
    compiled->ptx = NULL; /* the code owns it now */
    load(L, caller, unit, ptx, compiled->size, s->where.file);
}

void mr_kernel_unit_release(mr_kernel_unit *unit) {
    if (!unit || --unit->refs) return;
    mr_kernel_module_release(unit->module);
    free(unit->text);
    free_strings(unit->names);
    free_strings(unit->entries);
    free(unit);
}

void mr_push_kernel_module(lua_State *L, const mr_caller *caller, int options, int names,
                           const char *name) {
    string_list flags = {.count = 0}, wanted = {.count = 0};
    source s = check_source(L, caller);
    read_strings(L, options, "options", &flags);
    read_strings(L, names, "names", &wanted);
    if (name) wanted.items[wanted.count++] = name; /* then `names` is empty */
    mr_module_box *box = mr_new(L, &mr_kind_module, sizeof *box);
    int at = lua_gettop(L);
    mr_kernel_unit *unit = box->unit = calloc(1, sizeof *unit);
    if (!unit) mr_raise(L, mr_no_memory("for a module of kernels"));
    unit->refs = 1;
    if (s.is_ptx) load(L, caller, unit, copy_text(s.text, s.size), s.size, s.where.file);
    else compile_and_load(L, caller, &s, &flags, &wanted, unit);
    lua_pushvalue(L, at);
    mr_registry_add(L, unit);
}

void mr_push_module_of(lua_State *L, mr_kernel_unit *unit) {
    if (mr_registry_push(L, unit)) return;
    mr_module_box *box = mr_new(L, &mr_kind_module, sizeof *box);
    box->unit = unit;
    unit->refs++;
    mr_registry_add(L, unit);
}

/* ---- names ------------------------------------------------------------------------------------------------ */

/* "_Z5scalePffi" is `scale`, and "_ZL5table" the static variable `table`: the symbol of an object outside namespaces
 * contains the length of its name, and the name. Returns the length, or 0. */
static size_t plain_symbol(const char *symbol, const char **out_name) {
    char *after;
    if (strncmp(symbol, "_Z", 2) != 0) return 0;
    const char *digits = symbol + (symbol[2] == 'L' ? 3 : 2);
    if (*digits < '1' || *digits > '9') return 0;
    unsigned long length = strtoul(digits, &after, 10);
    *out_name = after;
    return length <= strlen(after) ? length : 0;
}

const char *mr_kernel_source_name(const mr_kernel_unit *unit, const char *symbol, char *out,
                                  size_t size) {
    const char *name = symbol;
    for (int i = 0; unit->names && unit->names[i]; i++)
        if (unit->entries[i] && strcmp(unit->entries[i], symbol) == 0) name = unit->names[i];
    size_t length = name == symbol ? plain_symbol(symbol, &name) : 0;
    if (length && name[length] != 'I') snprintf(out, size, "%.*s", (int)length, name);
    else mr_text_copy(out, size, length ? symbol : name); /* 'I': an instance of a template */
    return out;
}

/* ---- what scripts call ----------------------------------------------------------------------------------- */

mr_kernel_unit *mr_check_kernel_unit(lua_State *L, int arg) {
    const mr_module_box *box = mr_check(L, arg, &mr_kind_module);
    if (!box->unit || !box->unit->module)
        mr_bad_argument_as(L, arg, "a module", "a module that is gone");
    return box->unit;
}

MR_FUNCTION(
    module_new, "module",
    "mr.module(source: string|{ptx=}|{path=} [, {options: string[], names: string[]}]) -> m: "
    "module",
    "Compiles CUDA C++, loads the kernels that are in it, and returns the module. In place of a "
    "source: {ptx=text}, or {path=file} of a .cu or .ptx file. `options` are those of nvcc, as "
    "\"-DN=4\" or \"--use_fast_math\". `names` lists instances of templates to compile, such as "
    "`block_sum<256>`. Errors of the compiler are raised in its own words, with the lines of your "
    "file. NVRTC or clang compiles; MILLRACE_COMPILER chooses. The PTX is kept on disk.") {
    static const char *const known[] = {"options", "names", NULL};
    mr_caller caller = mr_enter(L);
    mr_option_slots options = mr_check_options(L, 2, known);
    mr_push_kernel_module(L, &caller, mr_option_at(L, &options, "options"),
                          mr_option_at(L, &options, "names"), NULL);
    return 1;
}

MR_FUNCTION(module_gc, "__gc", "", "Drops the module; kernels of it keep it.") {
    mr_module_box *box = mr_check(L, 1, &mr_kind_module);
    mr_set_context(L);
    mr_kernel_unit_release(box->unit);
    *box = (mr_module_box){0};
    return 0;
}

MR_FUNCTION(module_tostring, "__tostring", "", "\"module with 2 kernels\"") {
    unsigned count = mr_ptx_kernel_count(mr_check_kernel_unit(L, 1)->module->code->ptx);
    lua_pushfstring(L, "module with %d kernel%s", (int)count, count == 1 ? "" : "s");
    return 1;
}

static int get_kernels(lua_State *L) {
    const mr_kernel_unit *unit = mr_check_kernel_unit(L, 1);
    const mr_ptx_module *ptx = unit->module->code->ptx;
    unsigned count = mr_ptx_kernel_count(ptx);
    char name[MR_LONGEST_NAME + 1];
    lua_createtable(L, (int)count, 0);
    for (unsigned i = 0; i < count; i++) {
        lua_pushstring(
            L, mr_kernel_source_name(unit, mr_ptx_kernel_at(ptx, i)->name, name, sizeof name));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int get_ptx(lua_State *L) {
    const mr_kernel_code *code = mr_check_kernel_unit(L, 1)->module->code;
    lua_pushlstring(L, code->text, code->size);
    return 1;
}

static const mr_property module_properties[] = {
    {"kernels", "string[]", "The names of its kernels, for m:get(name).", get_kernels},
    {"ptx", "string", "Its PTX.", get_ptx},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const module_functions[] = {&module_gc_function,
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
