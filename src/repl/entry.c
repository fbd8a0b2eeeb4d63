/* Is it an entry? See entry.h. */
#include "repl/entry.h"

#include <lauxlib.h>
#include <string.h>

/* Lua's message for a text that ends too early ends so. */
static bool is_too_short(lua_State *L, int status) {
    static const char mark[] = "<eof>";
    size_t length;
    if (status != LUA_ERRSYNTAX) return false;
    const char *message = lua_tolstring(L, -1, &length);
    return length >= sizeof mark - 1 && strcmp(message + length - (sizeof mark - 1), mark) == 0;
}

/* The pieces of a text as the compiler reads them. */
typedef struct {
    const char *text[2];
    size_t size[2];
    int next;
} pieces;

static const char *next_piece(lua_State *L, void *context, size_t *out_size) {
    pieces *p = context;
    (void)L;
    while (p->next < 2 && !p->size[p->next]) p->next++;
    if (p->next == 2) return NULL;
    *out_size = p->size[p->next];
    return p->text[p->next++];
}

typedef enum { WHOLE, TOO_SHORT, WRONG } verdict;

static verdict try_with(lua_State *L, const char *before, const char *text, size_t size) {
    pieces p = {.text = {before, text}, .size = {strlen(before), size}};
    int status = lua_load(L, next_piece, &p, "=mr", "t");
    verdict found = status == LUA_OK ? WHOLE : is_too_short(L, status) ? TOO_SHORT : WRONG;
    lua_pop(L, 1);
    return found;
}

bool mr_entry_is_incomplete(lua_State *L, const char *text, size_t size) {
    size_t blank = strspn(text, " \t");
    if (blank < size && strchr(":?", text[blank]) && strncmp(text + blank, "::", 2) != 0)
        return false;
    bool is_value = blank < size && text[blank] == '='; /* `= x`, as in older versions of Lua */
    if (is_value) return try_with(L, "return ", text + blank + 1, size - blank - 1) == TOO_SHORT;
    verdict as_value = try_with(L, "return ", text, size);
    if (as_value == WHOLE) return false;
    verdict as_statement = try_with(L, "", text, size);
    return as_statement == TOO_SHORT || (as_statement == WRONG && as_value == TOO_SHORT);
}
