/* Hints after the message of a script: see hint.h. */
#include "host/hint.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/output.h"
#include "host/call.h"
#include "host/complain.h"
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

static bool is_word(char c) {
    return c == '_' || isalnum((unsigned char)c);
}

static bool has_word(const char *text, const char *word) {
    size_t size = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !is_word(at[-1])) && !is_word(at[size])) return true;
    return false;
}

/* Whether the text has another `require` than of millrace's own modules. */
static bool loads_modules(const char *text) {
    for (const char *at = strstr(text, "require"); at; at = strstr(at + 1, "require")) {
        const char *name = at + strlen("require");
        name += strspn(name, " \t(\"'");
        if (strncmp(name, "millrace", 8) != 0) return true;
    }
    return false;
}

/* Arguments are in `arg` and in `...`; code of other files finds `arg`, too. */
static bool may_read_arguments(const char *text) {
    static const char *const ways[] = {"arg", "dofile", "loadfile", "_G", "_ENV"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (has_word(text, ways[i])) return true;
    return strstr(text, "...") || loads_modules(text);
}

void mr_host_hint_misplaced(const char *path, const char *option) {
    mr_buffer text = {0};
    read_text(path, &text);
    bool is_whole = text.data && !text.failed && text.size < LONGEST_TEXT;
    if (is_whole && *text.data != *LUA_SIGNATURE && !may_read_arguments(text.data))
        mr_host_complain("%s is behind %s, so it is an argument of the script, which reads none: "
                         "options of millrace stand before the script",
                         option, path);
    mr_buffer_free(&text);
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
