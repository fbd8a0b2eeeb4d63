/* Protected calls, messages and tracebacks: see call.h. */
#include "host/call.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "base/embedded.h"
#include "host/interrupt.h"
#include "host/output.h"

static const mr_limits *limits;

void mr_host_set_limits(const mr_limits *named) {
    limits = named;
}

/* --- the message ----------------------------------------------------------------------------------- */

static int tostring(lua_State *L) {
    luaL_tolstring(L, 1, NULL);
    return 1;
}

/* Whether the error value at index 1 is one of ours with that code; runs no code of the script. */
static bool has_code(lua_State *L, const char *wanted) {
    if (!lua_istable(L, 1)) return false;
    lua_pushliteral(L, "code");
    lua_rawget(L, 1);
    const char *code = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    bool found = strcmp(code, wanted) == 0;
    lua_pop(L, 1);
    return found;
}

/* Pushes the error value at index 1 as text. The value is the script's: its __tostring may fail. */
static void push_text(lua_State *L) {
    if (lua_type(L, 1) == LUA_TSTRING || lua_type(L, 1) == LUA_TNUMBER) {
        lua_pushvalue(L, 1);
        lua_tostring(L, -1);
    } else if (luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushcfunction(L, tostring);
        lua_pushvalue(L, 1);
        if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
            lua_pop(L, 1);
            lua_pushfstring(L, "(error object is a %s value whose __tostring fails)",
                            luaL_typename(L, 1));
        }
    } else {
        lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    }
    if (limits && has_code(L, "out-of-memory")) {
        lua_pushfstring(L, " (--sandbox allows %I MB of tensors; --device-memory MB raises it)",
                        (lua_Integer)(limits->device_memory >> 20));
        lua_concat(L, 2);
    }
}

/* Whether a line of a traceback is of a Lua module inside the program: "\tmillrace.NAME:LINE: ..." (a
 * user's file may be called millrace.lua). */
static bool is_embedded_frame(const char *line, size_t length) {
    static const char start[] = "\tmillrace.", folder[] = "lua/millrace/";
    const size_t start_length = sizeof start - 1;
    char file[128];
    if (length < start_length || memcmp(line, start, start_length) != 0) return false;
    const char *name = line + start_length;
    const char *colon = memchr(name, ':', length - start_length);
    if (!colon) return false;
    snprintf(file, sizeof file, "%s%.*s", folder, (int)(colon - name), name);
    for (char *c = file + sizeof folder - 1; *c; c++)
        if (*c == '.') *c = '/'; /* the name of a module as `require` has it */
    size_t used = strlen(file);
    snprintf(file + used, sizeof file - used, ".lua");
    return mr_embedded_find(file) != NULL;
}

static bool is_line(const char *line, size_t length, const char *text) {
    return length == strlen(text) && memcmp(line, text, length) == 0;
}

static size_t length_of_line(const char *line, const char *end) {
    const char *stop = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;
    return stop ? (size_t)(stop - line) : (size_t)(end - line);
}

/* Whether there are only nameless C functions from `line` on: the frames of the program itself. */
static bool is_bottom(const char *line, const char *end) {
    for (size_t length; line < end; line += length + 1) {
        length = length_of_line(line, end);
        if (!is_line(line, length, "\t[C]: in ?")) return false;
    }
    return true;
}

static const char in_c[] = "\t[C]: in ";

/* Frames of our own are those of embedded modules, and the C functions that they call, as the one that raises an error
 * for them. Nameless frames between them and their caller count, too, and the C functions below all others. */
static bool is_own_frame(const char *line, const char *end, bool behind_own) {
    size_t length = length_of_line(line, end);
    const char *next = line + length + 1;
    if (is_embedded_frame(line, length)) return true;
    bool is_c = length >= sizeof in_c - 1 && memcmp(line, in_c, sizeof in_c - 1) == 0;
    if (is_c && next < end && is_embedded_frame(next, length_of_line(next, end))) return true;
    if (is_line(line, length, "\t[C]: in ?")) return behind_own || is_bottom(next, end);
    return behind_own && is_line(line, length, "\t(...tail calls...)");
}

/* The caller of an entry of the prompt: a C function that the session calls for it. */
static bool begins_session(const char *line, const char *end) {
    static const char session[] = "\tmillrace.prompt.session:";
    size_t length = (size_t)(end - line);
    if (length < sizeof in_c || strncmp(line, in_c, sizeof in_c - 1) != 0) return false;
    const char *next = memchr(line, '\n', length);
    return next && strncmp(next + 1, session, sizeof session - 1) == 0;
}

/* Replaces the traceback on top of the stack by one without our own frames. */
static void drop_own_frames(lua_State *L, size_t message_length) {
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    const char *end = text + length;
    luaL_Buffer kept;
    const char *header = text + message_length + 1; /* "stack traceback:" */
    bool is_own = false, has_frame = false;
    luaL_buffinit(L, &kept);
    luaL_addlstring(&kept, text, message_length);
    for (const char *line = header + length_of_line(header, end) + 1; line < end;) {
        size_t size = length_of_line(line, end);
        if (begins_session(line, end)) break;
        is_own = is_own_frame(line, end, is_own);
        if (!is_own && !has_frame) {
            luaL_addchar(&kept, '\n');
            luaL_addlstring(&kept, header, length_of_line(header, end));
            has_frame = true;
        }
        if (!is_own) {
            luaL_addchar(&kept, '\n');
            luaL_addlstring(&kept, line, size);
        }
        line += size + 1;
    }
    luaL_pushresult(&kept);
    lua_remove(L, -2);
}

static bool failed_by_hazard; /* of the last message */

/* The message handler. While a stop is on no code of the script may run, and the text is not used. */
static int describe(lua_State *L) {
    if (mr_stop_reason()) {
        mr_stop_note_place(L);
        return 1;
    }
    size_t length;
    failed_by_hazard = has_code(L, "hazard");
    push_text(L);
    const char *text = lua_tolstring(L, -1, &length);
    luaL_traceback(L, L, text, 1);
    /* luaL_traceback takes a C string: what follows a NUL in the text is not in its result. */
    drop_own_frames(L, strlen(text));
    return 1;
}

/* --- saying it ------------------------------------------------------------------------------------- */

/* Lua may be out of memory, so none is allocated. */
static int describe_stop(mr_stop reason, mr_buffer *out) {
    const char *place = mr_stop_place();
    const char *at = *place ? " at " : "";
    switch (reason) {
    case MR_STOP_INSTRUCTIONS:
        mr_buffer_printf(out,
                         "stopped%s%s: --sandbox allows a script %" PRIu64
                         " instructions (--instructions N raises the limit)",
                         at, place, limits->instructions);
        return MR_EXIT_FAILED;
    case MR_STOP_TIME:
        mr_buffer_printf(
            out, "stopped%s%s: --sandbox allows a script %g s (--time SECONDS raises the limit)",
            at, place, limits->seconds);
        return MR_EXIT_FAILED;
    case MR_STOP_MEMORY:
        mr_buffer_printf(
            out,
            "stopped%s%s: the script needs more memory than --sandbox allows (--memory MB and "
            "--device-memory MB raise the limits)",
            at, place);
        return MR_EXIT_FAILED;
    case MR_STOP_OUTPUT: mr_host_output_describe_stop(at, place, out); return MR_EXIT_FAILED;
    case MR_STOP_ENDED:
        mr_buffer_printf(out, "ended by %s%s%s", mr_interrupt_signal_text(mr_interrupt_ended_by()),
                         at, place);
        return MR_EXIT_BY_SIGNAL + mr_interrupt_ended_by();
    case MR_STOP_INTERRUPT:
    case MR_STOP_LATE:
    case MR_STOP_NONE: break;
    }
    mr_buffer_printf(out, "interrupted%s%s", at, place);
    return MR_EXIT_INTERRUPTED;
}

/* Adds the error value on top of the stack (a text, from `describe` or the compiler), and pops it. */
static void describe_error(lua_State *L, mr_buffer *out) {
    const char *text = lua_tostring(L, -1);
    if (!text) text = "(error object is not a string)";
    mr_buffer_puts(out, text);
    /* Lua's own words, which may have come through a coroutine and a traceback. */
    if (limits && strstr(text, "not enough memory"))
        mr_buffer_printf(out,
                         "\nmillrace: --sandbox allows a script %" PRIu64
                         " MB of memory for Lua (--memory MB raises the limit)",
                         limits->memory >> 20);
    lua_pop(L, 1);
}

int mr_host_report(lua_State *L, const char *prefix) {
    mr_buffer text = {0};
    describe_error(L, &text);
    mr_host_say(prefix, text.failed ? "not enough memory for an error message" : text.data);
    mr_buffer_free(&text);
    return MR_EXIT_FAILED;
}

int mr_host_try(lua_State *L, int argument_count, int result_count, mr_buffer *out_message) {
    mr_running node;
    int base = lua_gettop(L) - argument_count;
    lua_pushcfunction(L, describe);
    lua_insert(L, base);
    mr_limits_begin();
    bool entered =
        mr_running_enter(&node, L); /* false: the C stack is nearly used up, so Lua will say so */
    int status = lua_pcall(L, argument_count, result_count, base);
    if (entered) mr_running_leave(&node);
    mr_limits_end();
    lua_remove(L, base);

    int exit_status = MR_EXIT_OK;
    if (status != LUA_OK && mr_stop_reason()) {
        lua_pop(L, 1);
        exit_status = describe_stop(mr_stop_reason(), out_message);
    } else if (status != LUA_OK) {
        bool by_hazard = status == LUA_ERRRUN && failed_by_hazard;
        describe_error(L, out_message);
        exit_status = by_hazard ? MR_EXIT_HAZARD : MR_EXIT_FAILED;
    }
    mr_stop_clear();
    return exit_status;
}

int mr_host_call(lua_State *L, int argument_count, int result_count, const char *prefix) {
    mr_buffer message = {0};
    int exit_status = mr_host_try(L, argument_count, result_count, &message);
    if (message.failed) mr_host_say(prefix, "not enough memory for an error message");
    else if (message.data) mr_host_say(prefix, message.data);
    mr_buffer_free(&message);
    return exit_status;
}
