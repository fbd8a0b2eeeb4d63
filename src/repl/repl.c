/* The loop of the prompt: see repl.h. Here lines become entries; lua/millrace/prompt/session.lua runs them. */
#include "repl/repl.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "repl/entry.h"
#include "repl/line.h"
#include "repl/tools.h"

/* The entry under construction, as the user typed it, and the line that was read last. Owned by a userdata of the
 * state: an error of Lua's must not leak them. */
typedef struct {
    mr_buffer entry, line, message;
} input;

typedef struct {
    lua_State *L;
    const mr_repl_host *host;
    int session; /* index of the module "session" */
    input *in;
} prompt;

static int free_input(lua_State *L) {
    input *in = lua_touserdata(L, 1);
    mr_buffer_free(&in->entry);
    mr_buffer_free(&in->line);
    mr_buffer_free(&in->message);
    return 0;
}

static input *new_input(lua_State *L) {
    input *in = lua_newuserdatauv(L, sizeof *in, 0);
    *in = (input){0};
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, free_input);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    return in;
}

/* --- calls of the session ------------------------------------------------------------------------------ */

/* Calls session.NAME with the arguments on top of the stack, which it takes; what goes wrong is said. */
static bool call_session(prompt *p, const char *name, int argument_count, int result_count) {
    lua_State *L = p->L;
    mr_buffer *message = &p->in->message;
    message->size = 0;
    lua_getfield(L, p->session, name);
    lua_insert(L, -1 - argument_count);
    mr_repl_end end = p->host->call(L, argument_count, result_count, message);
    if (end == MR_REPL_DONE) return true;
    fflush(stdout);
    if (message->data) fprintf(stderr, "%s\n", message->data);
    return false;
}

/* The text stays on the stack. */
static const char *prompt_text(prompt *p) {
    if (call_session(p, "prompt", 0, 1)) return lua_tostring(p->L, -1);
    lua_pushliteral(p->L, "mr> ");
    return lua_tostring(p->L, -1);
}

static void submit(prompt *p) {
    lua_pushlstring(p->L, p->in->entry.data, p->in->entry.size);
    call_session(p, "submit", 1, 0);
}

/* --- the loop ------------------------------------------------------------------------------------------ */

static void add(prompt *p, mr_buffer *to, const char *data, size_t size) {
    mr_buffer_add(to, data, size);
    if (to->failed) luaL_error(p->L, "not enough memory");
}

/* Reads lines until they make an entry, or cannot. MR_LINE_READ: it is there, whole or with an error that Lua names. */
static mr_line_status read_entry(prompt *p) {
    input *in = p->in;
    mr_line_status read = mr_line_read(prompt_text(p), &in->line);
    lua_pop(p->L, 1);
    in->entry.size = 0;
    while (read == MR_LINE_READ) {
        if (in->line.failed) luaL_error(p->L, "not enough memory");
        add(p, &in->entry, in->line.data, in->line.size);
        if (!mr_entry_is_incomplete(p->L, in->entry.data, in->entry.size)) break;
        read = mr_line_read("..> ", &in->line);
        if (read == MR_LINE_END) break; /* then it is an error */
        add(p, &in->entry, "\n", 1);
    }
    if (read == MR_LINE_END && in->entry.size) read = MR_LINE_READ;
    if (read == MR_LINE_READ) mr_line_remember(in->entry.data);
    return read;
}

void mr_repl_run(lua_State *L, const mr_repl_host *host) {
    mr_line_status read;
    int top = lua_gettop(L);
    mr_tools_push(L, host);
    mr_tools_require(L, top + 1, "session");
    prompt p = {.L = L, .host = host, .session = top + 2, .in = new_input(L)};
    call_session(&p, "open", 0, 0);
    puts(host->banner);
    mr_line_open(host->interrupted);
    while ((read = read_entry(&p)) != MR_LINE_END)
        if (read == MR_LINE_READ) submit(&p);
    mr_line_close();
    call_session(&p, "close", 0, 0);
    lua_settop(L, top);
}
