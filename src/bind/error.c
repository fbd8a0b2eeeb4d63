/* Errors: how a status becomes a Lua error, and how a line of the script becomes a site. */
#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "base/text.h"
#include "bind/bind.h"
#include "bind/internal.h"

/* --- lines ----------------------------------------------------------------------------------- */

/* The file's name as the user wrote it: "@race.lua" without the "@"; code from -e has "=name". Of one that is
 * too long the end is kept, which tells it from others. */
static const char *source_name(const lua_Debug *frame, char *kept, size_t size) {
    const char *source = frame->source;
    if (*source != '@' && *source != '=') return "[string]";
    source++;
    if (frame->srclen > 2 * size) source += frame->srclen - 2 * size; /* code may be a name, too */
    mr_text_copy_end(kept, size, source);
    return kept;
}

/* A frame of the script: millrace's own Lua modules ("=millrace.nn") do not count. */
bool mr_bind_frame(lua_State *L, int *level, lua_Debug *frame) {
    for (; lua_getstack(L, *level, frame); ++*level) {
        lua_getinfo(L, "Sl", frame);
        bool own = frame->source[0] == '=' && strncmp(frame->source, "=millrace.", 10) == 0;
        if (frame->currentline >= 0 && !own) return true;
    }
    return false;
}

const char *mr_bind_file(const lua_Debug *frame) {
    char kept[MR_LONGEST_NAME + 1];
    const char *name = source_name(frame, kept, sizeof kept);
    return mr_intern(name, strlen(name));
}

/* A chunk's source is mostly the pointer of the last call; the text is compared too, since a collected chunk's
 * address may come again for another. */
mr_site mr_bind_site(lua_State *L) {
    static const char *last_source, *last_name;
    static size_t last_size;
    lua_Debug frame;
    int level = 1; /* the innermost */
    if (!mr_bind_frame(L, &level, &frame)) return (mr_site){NULL, 0};
    if (frame.source != last_source || frame.srclen != last_size + 1 ||
        memcmp(frame.source + 1, last_name, last_size) != 0) {
        char kept[MR_LONGEST_NAME + 1];
        const char *name = source_name(&frame, kept, sizeof kept);
        last_source = frame.source;
        last_size = strlen(name);
        last_name = mr_intern(name, last_size);
    }
    return (mr_site){last_name, frame.currentline};
}

void mr_push_site(lua_State *L, mr_site where) {
    if (where.file) lua_pushfstring(L, "%s:%d", where.file, where.line);
    else lua_pushnil(L);
}

/* For a message, where a name of a file must not break the line. */
static void push_printable(lua_State *L, const char *text) {
    mr_buffer shown = {0};
    mr_text_put(&shown, text);
    lua_pushstring(L, shown.data ? shown.data : "");
    mr_buffer_free(&shown);
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

static void set_text(lua_State *L, const char *key, const char *text) {
    if (!text || !*text) return;
    lua_pushstring(L, text);
    lua_setfield(L, -2, key);
}

/* The line to blame: where the failing action was enqueued, else the call that raises. */
static mr_site error_site(lua_State *L, const mr_error *error) {
    return error->where.file ? error->where : mr_bind_site(L);
}

void mr_push_error(lua_State *L, mr_status status) {
    mr_site where = error_site(L, status);
    if (status->code == MR_CODE_INVALID_ARGUMENT || status->code == MR_CODE_INTERRUPTED) {
        if (where.file) {
            push_printable(L, where.file);
            lua_pushfstring(L, "%s:%d: %s", lua_tostring(L, -1), where.line, status->message);
            lua_remove(L, -2);
        } else {
            lua_pushstring(L, status->message);
        }
        mr_error_destroy(status);
        return;
    }
    lua_createtable(L, 0, 5);
    set_text(L, "code", mr_code_text(status->code));
    set_text(L, "op", status->op);
    set_text(L, "stream", status->stream);
    set_text(L, "message", status->message);
    mr_push_site(L, where);
    lua_setfield(L, -2, "where");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &error_metatable);
    lua_setmetatable(L, -2);
    mr_error_destroy(status);
}

void mr_raise(lua_State *L, mr_status status) {
    if (!status) return;
    mr_push_error(L, status);
    lua_error(L);
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
    for (const mr_class *const *class = mr_classes; *class; class ++) {
        if (!(*class)->properties || !mr_test(L, arg, *class)) continue;
        if (*class == &mr_event_class) return "an event";
        char text[64];
        int size = snprintf(text, sizeof text, "a %s", (*class)->name);
        return mr_intern(text, (size_t)size);
    }
    return "a userdata";
}

/* The name that it was registered under; a script may call it by another (`local f = mr.zeros`) or by
 * none (pcall). Metamethods have only the name that Lua gives them. */
const char *mr_called_name(lua_State *L, bool *out_method) {
    lua_Debug frame = {0};
    *out_method = false;
    if (!lua_getstack(L, 0, &frame)) return "?";
    lua_getinfo(L, "nf", &frame);
    *out_method = frame.namewhat && strcmp(frame.namewhat, "method") == 0;
    const char *name = mr_registered_name(L, lua_gettop(L), NULL);
    lua_pop(L, 1);
    return name ? name : frame.name ? frame.name : "?";
}

/* The object before ":" does not count among the arguments. */
int mr_bad_argument(lua_State *L, int arg, const char *expected) {
    const char *got = mr_type_text(L, arg);
    bool method;
    const char *name = mr_called_name(L, &method);
    if (method && --arg == 0)
        return mr_misuse(L, "%s: called on %s, expected %s: call it as object:%s(...)", name, got,
                         expected, name);
    return mr_misuse(L, "%s: argument %d: expected %s, got %s", name, arg, expected, got);
}
