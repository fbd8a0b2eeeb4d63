/* Hints behind the message of a script: see hint.h. */
#include "host/hint.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/output.h"
#include "host/call.h"
#include "repl/hint.h"

#define LONGEST_TEXT (1 << 20) /* of a script, in bytes */

static void read_text(const char *path, mr_buffer *out) {
    char part[4096];
    FILE *file = fopen(path, "r");
    if (!file) return;
    for (size_t got; out->size < LONGEST_TEXT && (got = fread(part, 1, sizeof part, file)) > 0;)
        mr_buffer_add(out, part, got);
    fclose(file);
}

typedef struct {
    const char *name, *text, *message;
} question;

static int push_hint(lua_State *L) {
    const question *q = lua_touserdata(L, 1);
    mr_hint_push(L, q->name, q->text, q->message);
    return 1;
}

void mr_host_hint(lua_State *L, const char *name, const char *code) {
    mr_buffer text = {0}, line = {0};
    if (!lua_checkstack(L, LUA_MINSTACK)) return;
    if (!code) read_text(name, &text);
    question q = {name, code ? code : text.data ? text.data : "", mr_host_last_text()};
    int top = lua_gettop(L);
    lua_pushcfunction(L, push_hint);
    lua_pushlightuserdata(L, &q);
    if (!text.failed && lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isstring(L, -1))
        mr_buffer_printf(&line, "hint: %s\n", lua_tostring(L, -1));
    if (line.data && !line.failed) mr_output_write_message(stderr, line.data, line.size);
    lua_settop(L, top);
    mr_buffer_free(&text);
    mr_buffer_free(&line);
}
