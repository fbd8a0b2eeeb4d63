/* The prompt: see repl.h. Each chunk is compiled separately, so a `local` ends with it. The chunk is
 * preceded by as many empty lines as were entered before, so each line of the session has its own
 * number. */
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
    size_t lines; /* entered so far in this session */
    size_t above; /* of them, before the chunk */
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

/* The pieces of a chunk as the compiler reads them. */
typedef struct {
    size_t above;        /* empty lines still to come */
    const char *text[2]; /* what follows them */
    size_t size[2];
    int next;
} pieces;

static const char *next_piece(lua_State *L, void *context, size_t *out_size) {
    static const char newlines[] =
        "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n";
    pieces *p = context;
    (void)L;
    if (p->above) {
        *out_size = p->above < sizeof newlines - 1 ? p->above : sizeof newlines - 1;
        p->above -= *out_size;
        return newlines;
    }
    while (p->next < 2 && !p->size[p->next]) p->next++;
    if (p->next == 2) return NULL;
    *out_size = p->size[p->next];
    return p->text[p->next++];
}

static int load(lua_State *L, const input *in, const char *before, bool *out_incomplete) {
    pieces p = {.above = in->above,
                .text = {before, in->chunk.data},
                .size = {strlen(before), in->chunk.size}};
    int status = lua_load(L, next_piece, &p, "=" MR_REPL_FILE, "t");
    if (is_incomplete(L, status)) *out_incomplete = true;
    return status;
}

/* Compiles the chunk, as an expression if it is one, else as statements. Pushes the function or a
 * message; *out_incomplete: a message, but more lines may yet make it either. */
static int compile(lua_State *L, const input *in, bool *out_incomplete) {
    *out_incomplete = false;
    int status = load(L, in, "return ", out_incomplete);
    if (status == LUA_OK) return status;
    lua_pop(L, 1);
    status = load(L, in, "", out_incomplete);
    if (status == LUA_OK) *out_incomplete = false;
    return status;
}

/* Reads lines until they make a chunk, or cannot. MR_LINE_READ: the function or the error message is on
 * the stack, *out_status tells which; else nothing is. */
static mr_line_status read_chunk(lua_State *L, input *in, int *out_status) {
    bool incomplete;
    mr_line_status read = mr_line_read(first_prompt, &in->line);
    in->chunk.size = 0;
    in->above = in->lines;
    while (read == MR_LINE_READ) {
        if (in->line.failed) luaL_error(L, "not enough memory");
        in->lines++;
        mr_line_remember(in->line.data);
        mr_buffer_add(&in->chunk, in->line.data, in->line.size);
        if (in->chunk.failed) luaL_error(L, "not enough memory");
        *out_status = compile(L, in, &incomplete);
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
        puts("help() shows the first steps; help(\"stream\") or help(mr.zeros) explains one thing");
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
    bool done = host->call(L, 0, LUA_MULTRET);
    int count = lua_gettop(L) - base;
    luaL_checkstack(L, 4, "too many results to show");
    if (!done || count == 0) return;
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
