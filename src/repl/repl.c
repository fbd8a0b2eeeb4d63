/* The prompt: see repl.h. Each chunk is compiled on its own, so a `local` ends with it. */
#include "repl/repl.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "repl/line.h"
#include "repl/show.h"

static const char first_prompt[] = "mr> ", next_prompt[] = "..> ";

/* The chunk under construction, as the user typed it, and the line that was read last. Owned by a
 * userdata of the state: an error of Lua's must not leak them. */
typedef struct {
    mr_buffer chunk, line;
} input;

static int free_input(lua_State *L) {
    input *in = lua_touserdata(L, 1);
    mr_buffer_free(&in->chunk);
    mr_buffer_free(&in->line);
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

/* --- reading a chunk ----------------------------------------------------------------------------------- */

/* Lua's message for a chunk that ends too early ends so. */
static bool is_incomplete(lua_State *L, int status) {
    static const char mark[] = "<eof>";
    size_t length;
    if (status != LUA_ERRSYNTAX) return false;
    const char *message = lua_tolstring(L, -1, &length);
    return length >= sizeof mark - 1 && strcmp(message + length - (sizeof mark - 1), mark) == 0;
}

static int load(lua_State *L, const char *text, size_t size, bool *out_incomplete) {
    int status = luaL_loadbufferx(L, text, size, "=stdin", "t");
    if (is_incomplete(L, status)) *out_incomplete = true;
    return status;
}

/* Compiles the chunk, as an expression if it is one, else as statements. Pushes the function or a
 * message; *out_incomplete: a message, but more lines may yet make it either. */
static int compile(lua_State *L, const mr_buffer *chunk, bool *out_incomplete) {
    size_t size;
    *out_incomplete = false;
    lua_pushliteral(L, "return ");
    lua_pushlstring(L, chunk->data, chunk->size);
    lua_concat(L, 2);
    const char *expression = lua_tolstring(L, -1, &size);
    int status = load(L, expression, size, out_incomplete);
    lua_remove(L, -2);
    if (status == LUA_OK) return status;
    lua_pop(L, 1);
    status = load(L, chunk->data, chunk->size, out_incomplete);
    if (status == LUA_OK) *out_incomplete = false;
    return status;
}

/* Reads lines until they make a chunk, or cannot. MR_LINE_READ: the function or the error message is on
 * the stack, *out_status tells which; else nothing is. */
static mr_line_status read_chunk(lua_State *L, input *in, int *out_status) {
    bool incomplete;
    mr_line_status read = mr_line_read(first_prompt, &in->line);
    in->chunk.size = 0;
    while (read == MR_LINE_READ) {
        if (in->line.failed) luaL_error(L, "not enough memory");
        mr_line_remember(in->line.data);
        mr_buffer_add(&in->chunk, in->line.data, in->line.size);
        if (in->chunk.failed) luaL_error(L, "not enough memory");
        *out_status = compile(L, &in->chunk, &incomplete);
        if (!incomplete) return MR_LINE_READ;
        read = mr_line_read(next_prompt, &in->line);
        if (read == MR_LINE_END) return MR_LINE_READ; /* then it is an error */
        lua_pop(L, 1);
        mr_buffer_puts(&in->chunk, "\n");
    }
    return read;
}

/* --- showing results ------------------------------------------------------------------------------------- */

/* Whether somebody typed `help` alone. */
static bool is_help(lua_State *L, int count) {
    lua_getglobal(L, "help");
    bool same = count == 1 && lua_isfunction(L, 1) && lua_rawequal(L, 1, -1);
    lua_pop(L, 1);
    return same;
}

/* A tensor says what it is, and is not waited for. */
static int echo(lua_State *L) {
    int count = lua_gettop(L);
    luaL_checkstack(L, LUA_MINSTACK, "too many results to show");
    if (is_help(L, count)) {
        puts("help() says where to begin, help(\"stream\") or help(mr.zeros) explains one thing");
        fflush(stdout);
        return 0;
    }
    for (int i = 1; i <= count; i++) {
        if (i > 1) fputc('\t', stdout);
        mr_show(L, i);
    }
    fputc('\n', stdout);
    fflush(stdout);
    return 0;
}

/* Runs the function on top of the stack and shows what it returns. */
static void run_chunk(lua_State *L, const mr_repl_host *host) {
    int base = lua_gettop(L) - 1;
    if (!host->call(L, 0, LUA_MULTRET)) return;
    int count = lua_gettop(L) - base;
    if (count == 0) return;
    luaL_checkstack(L, 4, "too many results to show");
    lua_pushcfunction(L, echo);
    lua_insert(L, base + 1);
    host->call(L, count, 0);
}

/* --- the loop -------------------------------------------------------------------------------------------- */

/* help(x) at the prompt is mr.help. */
static void set_help(lua_State *L) {
    if (lua_getglobal(L, "mr") == LUA_TTABLE) {
        lua_getfield(L, -1, "help");
        lua_setglobal(L, "help");
    }
    lua_pop(L, 1);
}

void mr_repl_run(lua_State *L, const mr_repl_host *host) {
    mr_line_status read;
    int status = LUA_OK;
    set_help(L);
    input *in = new_input(L);
    int base = lua_gettop(L);
    puts(host->banner);
    mr_line_open(host->interrupted);
    while ((read = read_chunk(L, in, &status)) != MR_LINE_END) {
        if (read == MR_LINE_READ && status == LUA_OK) {
            run_chunk(L, host);
        } else if (read == MR_LINE_READ) {
            fflush(stdout);
            fprintf(stderr, "%s\n", lua_tostring(L, -1));
        }
        lua_settop(L, base);
    }
    mr_line_close();
    lua_pop(L, 1);
}
