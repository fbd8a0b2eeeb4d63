/* The loop of the prompt: see repl.h. Here lines become entries; lua/millrace/prompt/session.lua runs them. */
#include "repl/repl.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "bind/bind.h"
#include "bind/wrap.h"
#include "model/backend.h"
#include "repl/entry.h"
#include "repl/line.h"
#include "repl/nesting.h"
#include "repl/tools.h"

/* The entry under construction, as the user typed it, and the line that was read last. Owned by a userdata of the
 * state: an error of Lua's must not leak them. */
typedef struct {
    mr_buffer entry, line, message;
    mr_buffer rest;  /* of a pasted text, the entries that follow, each with a 0 byte after it */
    bool is_session; /* it was copied from one: each entry of it is remembered */
    size_t judged;   /* bytes of the entry, when Lua's parser saw it last */
    mr_nesting nesting;
} input;

typedef struct {
    lua_State *L;
    const mr_repl_host *host;
    /* The module "session", by its key in the registry: a script that stops reads entries, too, in other frames. */
    int session;
    input *in;
} prompt;

static int free_input(lua_State *L) {
    input *in = lua_touserdata(L, 1);
    mr_buffer_free(&in->entry);
    mr_buffer_free(&in->line);
    mr_buffer_free(&in->message);
    mr_buffer_free(&in->rest);
    return 0;
}

static input *new_input(lua_State *L) {
    return mr_push_owner(L, sizeof(input), free_input);
}

/* --- calls of the session ------------------------------------------------------------------------------ */

/* Calls session.NAME with the arguments on top of the stack, which it takes; what goes wrong is said. */
static bool call_session(prompt *p, const char *name, int argument_count, int result_count) {
    lua_State *L = p->L;
    mr_buffer *message = &p->in->message;
    message->size = 0;
    if (!lua_checkstack(L, LUA_MINSTACK)) return false;
    lua_rawgeti(L, LUA_REGISTRYINDEX, p->session);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    lua_insert(L, -1 - argument_count);
    mr_repl_end end = p->host->call(L, argument_count, result_count, message);
    if (end == MR_REPL_DONE) return true;
    fflush(stdout);
    if (!message->data) return false;
    mr_buffer text = {0};
    mr_buffer_puts(message, "\n");
    int width = mr_wrap_width(stderr);
    if (width) mr_wrap_lines(&text, message->data, message->size, width);
    const mr_buffer *shown = text.data && !text.failed ? &text : message;
    mr_output_write_message(stderr, shown->data, shown->size);
    mr_buffer_free(&text);
    return false;
}

/* The text stays on the stack. */
static const char *prompt_text(prompt *p) {
    if (call_session(p, "prompt", 0, 1)) return lua_tostring(p->L, -1);
    lua_pushliteral(p->L, "mr> ");
    return lua_tostring(p->L, -1);
}

/* False: it failed or was stopped, so the rest of the pasted text is not run. *out_leaves: the session ends with it. */
static bool submit(prompt *p, bool *out_leaves) {
    int top = lua_gettop(p->L);
    lua_pushlstring(p->L, p->in->entry.data, p->in->entry.size);
    bool is_run = call_session(p, "submit", 1, 2);
    bool done = is_run && lua_toboolean(p->L, -2);
    *out_leaves = is_run && lua_toboolean(p->L, -1);
    lua_settop(p->L, top);
    return done;
}

/* --- completion ------------------------------------------------------------------------------------------ */

/* Copies the list of texts at the top; NULL: it is empty, or there is no memory. */
static char **copy_texts(lua_State *L) {
    size_t count = lua_rawlen(L, -1);
    char **texts = count ? calloc(count + 1, sizeof *texts) : NULL;
    for (size_t i = 0; texts && i < count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        const char *text = lua_tostring(L, -1);
        texts[i] = strdup(text ? text : "");
        lua_pop(L, 1);
        if (!texts[i]) count = i; /* what there is */
    }
    return texts;
}

static char **complete(void *context, const char *text, int point, int *out_from) {
    prompt *p = context;
    lua_State *L = p->L;
    int top = lua_gettop(L);
    char **found = NULL;
    lua_pushlstring(L, text, (size_t)point);
    if (call_session(p, "complete", 1, 2) && lua_istable(L, -2)) {
        *out_from = (int)lua_tointeger(L, -1);
        lua_pop(L, 1);
        found = copy_texts(L);
    }
    lua_settop(L, top);
    return found;
}

static char *hint(void *context, const char *text, size_t size) {
    prompt *p = context;
    lua_State *L = p->L;
    int top = lua_gettop(L);
    char *found = NULL;
    lua_pushlstring(L, text, size);
    if (call_session(p, "hint", 1, 1) && lua_isstring(L, -1)) found = strdup(lua_tostring(L, -1));
    lua_settop(L, top);
    return found;
}

static char *above(void *context, char **out_message) {
    prompt *p = context;
    lua_State *L = p->L;
    int top = lua_gettop(L);
    char *line = NULL;
    if (call_session(p, "above", 0, 2)) {
        if (lua_isstring(L, -2)) line = strdup(lua_tostring(L, -2));
        if (lua_isstring(L, -1)) *out_message = strdup(lua_tostring(L, -1));
    }
    lua_settop(L, top);
    return line;
}

static void list(void *context) {
    call_session(context, "list", 0, 0);
}

/* --- the loop ------------------------------------------------------------------------------------------ */

#define SMALL (1 << 16)

static void add(prompt *p, mr_buffer *to, const char *data, size_t size) {
    mr_buffer_add(to, data, size);
    if (to->failed) luaL_error(p->L, "not enough memory");
}

/* The parser reads all of the entry each time: of a large one, only where it may end, or has doubled. */
static bool is_incomplete(prompt *p) {
    input *in = p->in;
    bool is_due = in->entry.size < SMALL || in->entry.size >= 2 * in->judged;
    mr_nesting_add(&in->nesting, in->line.data, in->line.size);
    if (!is_due && mr_nesting_is_open(&in->nesting)) return true;
    in->judged = in->entry.size;
    return mr_entry_judge(p->L, in->entry.data, in->entry.size) == MR_ENTRY_TOO_SHORT;
}

/* A pasted text may be several entries: all but the first wait. */
static void set_aside(prompt *p) {
    mr_buffer *entry = &p->in->entry, rest = {0};
    size_t first = mr_entry_first(p->L, entry->data, entry->size);
    if (first < entry->size) {
        mr_buffer_add(&rest, entry->data + first, entry->size - first);
        mr_buffer_add(&rest, "", 1);
        mr_buffer_add(&rest, p->in->rest.data, p->in->rest.size);
        mr_buffer_free(&p->in->rest);
        p->in->rest = rest;
        if (rest.failed) luaL_error(p->L, "not enough memory");
    }
    while (first && entry->data[first - 1] == '\n') first--;
    entry->size = first;
    entry->data[first] = '\0';
}

/* The next of the texts that wait. */
static void take_rest(prompt *p) {
    mr_buffer *rest = &p->in->rest;
    size_t size = strlen(rest->data), taken = size + 1;
    p->in->entry.size = 0;
    add(p, &p->in->entry, rest->data, size);
    memmove(rest->data, rest->data + taken, rest->size - taken);
    rest->size -= taken;
    if (p->in->is_session) mr_line_remember(p->in->entry.data);
    set_aside(p);
}

static void drop_rest(prompt *p) {
    if (!p->in->rest.size) return;
    fprintf(stderr, "the rest of the pasted text was not run\n");
    p->in->rest.size = 0;
}

/* For a text that was copied from a session: its entries wait, and the first one takes the place of the text. */
static void split_session(prompt *p) {
    input *in = p->in;
    in->is_session = !in->line.failed && mr_entry_is_session(p->L, in->line.data, in->line.size);
    if (!in->is_session) return;
    mr_entry_from_session(p->L, in->line.data, in->line.size, &in->rest);
    in->line.size = 0;
    add(p, &in->line, "", 0);
    in->line.data[0] = '\0';
    if (!in->rest.size) return;
    size_t size = strlen(in->rest.data);
    add(p, &in->line, in->rest.data, size);
    memmove(in->rest.data, in->rest.data + size + 1, in->rest.size - size - 1);
    in->rest.size -= size + 1;
}

/* The same for a further line that comes alone, as in a text that is pasted line by line. No Lua begins with "..>"; a
 * long string may. */
static void drop_more_prompt(input *in) {
    if (in->nesting.within != MR_NESTING_CODE) return;
    size_t mark = mr_entry_more_length(in->line.data, in->line.size);
    memmove(in->line.data, in->line.data + mark, in->line.size - mark + 1);
    in->line.size -= mark;
}

/* Reads lines until they make an entry, or cannot. MR_LINE_READ: it is there, whole or with an error that Lua
 * names. */
static mr_line_status read_entry(prompt *p) {
    input *in = p->in;
    if (in->rest.size) {
        take_rest(p);
        return MR_LINE_READ;
    }
    mr_line_status read = mr_line_read(prompt_text(p), &in->line);
    lua_pop(p->L, 1);
    in->entry.size = 0;
    in->nesting = (mr_nesting){0};
    if (read == MR_LINE_READ) split_session(p);
    while (read == MR_LINE_READ) {
        if (in->line.failed) luaL_error(p->L, "not enough memory");
        add(p, &in->entry, in->line.data, in->line.size);
        if (!is_incomplete(p)) break;
        read = mr_line_read("..> ", &in->line);
        if (read == MR_LINE_END) break; /* then it is an error */
        if (read == MR_LINE_READ && !in->line.failed) drop_more_prompt(in);
        add(p, &in->entry, "\n", 1);
    }
    if (read == MR_LINE_END && in->entry.size) read = MR_LINE_READ;
    if (read != MR_LINE_READ) return read;
    mr_line_remember(in->entry.data);
    set_aside(p);
    return read;
}

static bool may_continue(void *context, const char *text, size_t size) {
    const prompt *p = context;
    return mr_entry_judge(p->L, text, size) == MR_ENTRY_TOO_SHORT;
}

bool mr_repl_run(lua_State *L, const mr_repl_host *host) {
    mr_line_status read;
    int top = lua_gettop(L);
    mr_tools_push(L, host);
    mr_tools_require(L, top + 1, "session");
    prompt p = {
        .L = L, .host = host, .session = luaL_ref(L, LUA_REGISTRYINDEX), .in = new_input(L)};
    const mr_line_hooks hooks = {.context = &p,
                                 .interrupted = host->interrupted,
                                 .ended = host->ended,
                                 .is_incomplete = may_continue,
                                 .complete = complete,
                                 .hint = hint,
                                 .above = above,
                                 .polls = !mr_bind_machine(L)->backend->simulator,
                                 .list = list};
    mr_write_wrapped(stdout, host->banner, strlen(host->banner));
    mr_line_open(&hooks);
    call_session(&p, "open", 0, 0);
    bool is_stepped = true;
    if (host->script) {
        lua_pushstring(L, host->script);
        lua_pushinteger(L, host->ranks);
        if (call_session(&p, "step", 2, 1)) is_stepped = lua_toboolean(L, -1);
    }
    for (bool leaves = !is_stepped; !leaves && (read = read_entry(&p)) != MR_LINE_END;) {
        bool done = read == MR_LINE_READ && submit(&p, &leaves);
        if (!done) drop_rest(&p);
    }
    mr_line_close();
    call_session(&p, "close", 0, 0);
    luaL_unref(L, LUA_REGISTRYINDEX, p.session);
    lua_settop(L, top);
    return is_stepped;
}
