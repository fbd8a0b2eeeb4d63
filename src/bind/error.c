/* Errors: how a status becomes a Lua error, and how a line of the script becomes a site. */
#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "base/text.h"
#include "bind/field.h"
#include "bind/internal.h"
#include "bind/open.h"
#include "bind/source.h"

/* --- lines ----------------------------------------------------------------------------------- */

/* The file's name as the user wrote it: "@race.lua" without the "@"; code from -e has "=name". A name that is too long
 * keeps its end, which distinguishes it from others. */
static const char *source_name(const lua_Debug *frame, char *kept, size_t size) {
    const char *source = frame->source;
    if (*source != '@' && *source != '=') return "[string]";
    source++;
    if (frame->srclen > 2 * size) source += frame->srclen - 2 * size; /* code may be a name, too */
    mr_text_copy_end(kept, size, source);
    return kept;
}

/* A frame of the script: millrace's own Lua modules ("=millrace.nn") do not count. Finding the line is the slowest part
 * in Lua. The first frame is enough for most calls; for others the line is found only on demand. */
bool mr_bind_frame(lua_State *L, int *level, lua_Debug *frame) {
    const char *wanted = "Sl";
    for (; lua_getstack(L, *level, frame); ++*level, wanted = "S") {
        lua_getinfo(L, wanted, frame);
        bool own = frame->source[0] == '=' && strncmp(frame->source, "=millrace.", 10) == 0;
        if (own || frame->what[0] == 'C') continue;
        if (!wanted[1]) lua_getinfo(L, "l", frame);
        if (frame->currentline >= 0) return true;
    }
    return false;
}

void mr_source_keep_name(lua_State *L, const char *name) {
    char kept[MR_LONGEST_NAME + 1];
    mr_module *module = mr_bind_module(L);
    mr_text_copy_end(kept, sizeof kept, name);
    mr_intern(&module->machine->files, kept, strlen(kept), NULL);
}

/* After the limit of interned names, a file gets the name of code without a name. */
static const char *file_of(mr_module *module, const lua_Debug *frame, size_t *out_size) {
    char kept[MR_LONGEST_NAME + 1];
    const char *name = source_name(frame, kept, sizeof kept);
    const char *file = mr_intern(&module->machine->files, name, strlen(name), "[string]");
    *out_size = strlen(file);
    return file;
}

const char *mr_bind_file(mr_module *module, const lua_Debug *frame) {
    size_t size;
    return file_of(module, frame, &size);
}

/* A chunk's source is usually the same pointer as in the last call. The text is compared, too, since another chunk may
 * get a collected chunk's address. */
mr_site mr_bind_site(lua_State *L, mr_module *module) {
    lua_Debug frame;
    int level = 1; /* the innermost */
    if (!mr_bind_frame(L, &level, &frame)) return (mr_site){NULL, 0};
    if (frame.source != module->source || frame.srclen != module->file_size + 1 ||
        memcmp(frame.source + 1, module->file, module->file_size) != 0) {
        module->source = frame.source;
        module->file = file_of(module, &frame, &module->file_size);
    }
    return (mr_site){module->file, frame.currentline};
}

void mr_push_site(lua_State *L, mr_site where) {
    if (where.file) lua_pushfstring(L, "%s:%d", where.file, where.line);
    else lua_pushnil(L);
}

void mr_buffer_to_text(lua_State *L) {
    mr_buffer *buffer = lua_touserdata(L, -1);
    if (buffer->failed) mr_raise(L, mr_no_memory("for an error message"));
    lua_pushlstring(L, buffer->data ? buffer->data : "", buffer->size);
    mr_buffer_free(buffer);
    lua_remove(L, -2);
}

/* For a message, where a name of a file must not break the line. */
static void push_printable(lua_State *L, const char *text) {
    mr_text_put(mr_push_buffer(L), text);
    mr_buffer_to_text(L);
}

/* --- values ---------------------------------------------------------------------------------- */

static const char error_metatable; /* its address is the registry key */

static int error_tostring(lua_State *L) {
    lua_getfield(L, 1, "where");
    lua_getfield(L, 1, "message");
    const char *where = lua_tostring(L, -2), *message = lua_tostring(L, -1);
    if (!message) message = "error";
    push_printable(L, where ? where : "");
    lua_pushfstring(L, "%s%s%s", lua_tostring(L, -1), where ? ": " : "", message);
    return 1;
}

void mr_open_error(lua_State *L) {
    lua_newtable(L);
    lua_pushcfunction(L, error_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushliteral(L, "millrace.error");
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__name");
    lua_setfield(L, -2, "__metatable");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &error_metatable);
}

static void set_known(lua_State *L, const char *key, const char *text) {
    if (text && *text) mr_set_text(L, key, text);
}

typedef struct {
    const mr_error *status;
    mr_site where;
} raised;

/* The value of the `raised` at argument 1. */
static int error_value(lua_State *L) {
    const raised *error = lua_touserdata(L, 1);
    const mr_error *status = error->status;
    mr_site where = error->where;
    if (status->code == MR_CODE_INVALID_ARGUMENT || status->code == MR_CODE_INTERRUPTED) {
        if (where.file) {
            push_printable(L, where.file);
            lua_pushfstring(L, "%s:%d: %s", lua_tostring(L, -1), where.line, status->message);
            lua_remove(L, -2);
        } else {
            lua_pushstring(L, status->message);
        }
        return 1;
    }
    lua_createtable(L, 0, 5);
    set_known(L, "code", mr_code_text(status->code));
    set_known(L, "op", status->op);
    set_known(L, "stream", status->stream);
    set_known(L, "message", status->message);
    mr_push_site(L, where);
    lua_setfield(L, -2, "where");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &error_metatable);
    lua_setmetatable(L, -2);
    return 1;
}

/* The line to blame: where the failing command was enqueued, else the call that raises. */
static mr_site error_site(lua_State *L, const mr_error *error) {
    if (error->where.file) return error->where;
    mr_module *module = mr_bind_module(L);
    return module && module->machine ? mr_bind_site(L, module) : (mr_site){NULL, 0};
}

/* Sets the failed operation, if no lower layer did: the function that the script called. */
static void name_operation(lua_State *L, mr_status status) {
    bool method;
    mr_error *details = mr_error_details(status);
    if (!details || details->op[0] || status->code == MR_CODE_INVALID_ARGUMENT ||
        status->code == MR_CODE_INTERRUPTED || !lua_checkstack(L, 2))
        return;
    const char *name = mr_called_name(L, &method);
    if (strcmp(name, "?") != 0) mr_text_copy(details->op, sizeof details->op, name);
}

/* This function owns the status, and making its value can run out of memory; then Lua's own error is the value. */
void mr_push_error(lua_State *L, mr_status status) {
    name_operation(L, status);
    const mr_module *module = mr_code_sticky(status->code) ? mr_bind_module(L) : NULL;
    if (module && module->name_fault) status = module->name_fault(L, status);
    raised error = {status, error_site(L, status)};
    if (lua_checkstack(L, 2)) {
        lua_pushcfunction(L, error_value);
        lua_pushlightuserdata(L, &error);
        lua_pcall(L, 1, 1, 0);
    }
    mr_error_destroy(status);
}

void mr_raise(lua_State *L, mr_status status) {
    if (!status) return;
    mr_push_error(L, status);
    lua_error(L);
}

void mr_check_stop(lua_State *L, const mr_machine *machine, int64_t step, const char *doing) {
    if (step % 1024 != 0 || !machine->hooks.interrupted ||
        !machine->hooks.interrupted(machine->hooks.context))
        return;
    mr_raise(L, mr_fail(MR_CODE_INTERRUPTED, "interrupted while %s", doing));
}

int mr_misuse(lua_State *L, const char *format, ...) {
    va_list args;
    va_start(args, format);
    mr_status status = mr_failv(MR_CODE_INVALID_ARGUMENT, format, args);
    va_end(args);
    mr_raise(L, status);
    return 0;
}

/* --- arguments ------------------------------------------------------------------------------- */

const char *mr_type_text(lua_State *L, int arg) {
    static const mr_kind *const ours[] = {&mr_kind_device, &mr_kind_stream, &mr_kind_event,
                                          &mr_kind_tensor, &mr_kind_kernel, &mr_kind_module};
    switch (lua_type(L, arg)) {
    case LUA_TNONE: return "nothing";
    case LUA_TNIL: return "nil";
    case LUA_TBOOLEAN: return lua_toboolean(L, arg) ? "true" : "false";
    case LUA_TNUMBER: return "a number";
    case LUA_TSTRING: return "a string";
    case LUA_TTABLE: return "a table";
    case LUA_TFUNCTION: return "a function";
    case LUA_TTHREAD: return "a coroutine";
    default: break;
    }
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (mr_test(L, arg, ours[i])) return ours[i]->text;
    return "a userdata";
}

static const char *name_of_frame(lua_State *L, lua_Debug *frame) {
    lua_getinfo(L, "nf", frame);
    const char *name = mr_registered_name(L, lua_gettop(L), NULL);
    lua_pop(L, 1);
    return name;
}

/* Whether lua/millrace/autograd.lua called the running function on behalf of another one of ours (record.h). *out_frame
 * is that one, which the script called. */
static bool calls_by_autograd(lua_State *L, lua_Debug *out_frame) {
    int level = 1;
    while (lua_getstack(L, level, out_frame)) {
        lua_getinfo(L, "S", out_frame);
        if (strncmp(out_frame->source, "=millrace.autograd", 18) != 0) return level > 1;
        level++;
    }
    return false;
}

/* The name that it was registered under; a script may call it by another (`local f = mr.zeros`) or by
 * none (pcall). Metamethods have only the name that Lua gives them. */
const char *mr_called_name(lua_State *L, bool *out_method) {
    lua_Debug frame = {0};
    *out_method = false;
    if (!lua_getstack(L, 0, &frame)) return "?";
    const char *name = name_of_frame(L, &frame);
    lua_Debug outer;
    if (!name && calls_by_autograd(L, &outer)) {
        frame = outer;
        name = name_of_frame(L, &frame);
    }
    *out_method = frame.namewhat && strcmp(frame.namewhat, "method") == 0;
    return name ? name : frame.name ? frame.name : "?";
}

/* A method that is called with a dot does not get its object: s.synchronize(). */
static bool is_called_with_a_dot(lua_State *L) {
    lua_Debug frame;
    const char *owner = "mr";
    if (!lua_getstack(L, 0, &frame)) return false;
    lua_getinfo(L, "nf", &frame);
    mr_registered_name(L, lua_gettop(L), &owner);
    lua_pop(L, 1);
    bool is_method = strcmp(owner, "mr") != 0 && strncmp(owner, "mr.", 3) != 0;
    return is_method && strcmp(frame.namewhat, "field") == 0;
}

/* The object before ":" does not count among the arguments. */
int mr_bad_argument(lua_State *L, int arg, const char *expected) {
    return mr_bad_argument_as(L, arg, expected, mr_type_text(L, arg));
}

int mr_bad_argument_as(lua_State *L, int arg, const char *expected, const char *got) {
    bool method;
    const char *name = mr_called_name(L, &method);
    if (method && --arg == 0)
        return mr_misuse(L, "%s: called on %s, expected %s: call it as object:%s(...)", name, got,
                         expected, name);
    bool lacks_object = (arg == 1 || lua_isnone(L, arg)) && is_called_with_a_dot(L);
    if (!method && lacks_object)
        return mr_misuse(L, "%s: argument %d: expected %s, got %s: write a colon, object:%s(...)",
                         name, arg, expected, got, name);
    return mr_misuse(L, "%s: argument %d: expected %s, got %s", name, arg, expected, got);
}
