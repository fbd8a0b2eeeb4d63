/* string.find, match, gmatch, gsub and rep, which a script can keep busy for hours: see library.h. */
#include "host/library.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdint.h>
#include <string.h>

#include "host/interrupt.h"
#include "host/pattern.h"

/* ---- patterns */

/* The byte at which argument `arg` says to begin, from 0 on; more than the size: after the end. */
static size_t begin_of(lua_State *L, int arg, size_t size) {
    lua_Integer from = luaL_optinteger(L, arg, 1);
    if (from > 0) return (size_t)from - 1;
    if (from == 0 || from < -(lua_Integer)size) return 0;
    return size + (size_t)from;
}

static int find_plain(lua_State *L, const char *s, size_t size, const char *text, size_t text_size,
                      size_t from) {
    const char *found = text_size ? memmem(s + from, size - from, text, text_size) : s + from;
    if (!found) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - s + 1);
    lua_pushinteger(L, found - s + (lua_Integer)text_size);
    return 2;
}

static int find_or_match(lua_State *L, bool is_find) {
    mr_pattern m;
    size_t size, pattern_size;
    const char *s = luaL_checklstring(L, 1, &size), *p = luaL_checklstring(L, 2, &pattern_size);
    size_t from = begin_of(L, 3, size);
    if (from > size) {
        lua_pushnil(L);
        return 1;
    }
    if (is_find && (lua_toboolean(L, 4) || mr_pattern_is_plain(p, pattern_size)))
        return find_plain(L, s, size, p, pattern_size, from);
    bool is_anchored = *p == '^';
    mr_pattern_begin(&m, L, s, size, p + is_anchored, pattern_size - is_anchored);
    const char *at = s + from, *end = NULL;
    while (!(end = mr_pattern_match(&m, at)) && !is_anchored && at < m.subject_end) at++;
    if (!end) {
        lua_pushnil(L);
        return 1;
    }
    if (!is_find) return mr_pattern_push_all(&m, at, end);
    lua_pushinteger(L, at - s + 1);
    lua_pushinteger(L, end - s);
    return 2 + mr_pattern_push_all(&m, NULL, NULL);
}

static int string_find(lua_State *L) {
    return find_or_match(L, true);
}

static int string_match(lua_State *L) {
    return find_or_match(L, false);
}

/* Upvalues: the subject, the pattern, where to go on, and where the last match ended (-1: there was none), both in
 * bytes from 0 on. */
static int next_match(lua_State *L) {
    mr_pattern m;
    size_t size, pattern_size;
    const char *s = lua_tolstring(L, lua_upvalueindex(1), &size);
    const char *p = lua_tolstring(L, lua_upvalueindex(2), &pattern_size);
    lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
    mr_pattern_begin(&m, L, s, size, p, pattern_size);
    for (size_t at = (size_t)lua_tointeger(L, lua_upvalueindex(3)); at <= size; at++) {
        const char *end = mr_pattern_match(&m, s + at);
        if (!end || end - s == last) continue;
        lua_pushinteger(L, end - s);
        lua_copy(L, -1, lua_upvalueindex(3));
        lua_replace(L, lua_upvalueindex(4));
        return mr_pattern_push_all(&m, s + at, end);
    }
    return 0;
}

static int string_gmatch(lua_State *L) {
    size_t size;
    luaL_checklstring(L, 1, &size);
    luaL_checkstring(L, 2);
    size_t from = begin_of(L, 3, size);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)(from > size ? size + 1 : from));
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, next_match, 4);
    return 1;
}

/* ---- gsub: arguments 1 to 3 are the string, the pattern and what replaces it */

/* Adds the replacement string, in which `%1` is a capture. */
static void add_text(mr_pattern *m, luaL_Buffer *out, const char *begin, const char *end) {
    size_t size;
    lua_State *L = m->L;
    const char *text = lua_tolstring(L, 3, &size), *text_end = text + size, *escape;
    for (; (escape = memchr(text, '%', (size_t)(text_end - text))) != NULL; text = escape + 2) {
        char c = escape[1];
        luaL_addlstring(out, text, (size_t)(escape - text));
        if (c == '%') {
            luaL_addchar(out, c);
        } else if (c == '0') {
            luaL_addlstring(out, begin, (size_t)(end - begin));
        } else if (c >= '1' && c <= '9') {
            mr_pattern_push(m, c - '1', begin, end);
            luaL_tolstring(L, -1, NULL);
            lua_remove(L, -2);
            luaL_addvalue(out);
        } else {
            luaL_error(L, "invalid use of '%%' in replacement string");
        }
    }
    luaL_addlstring(out, text, (size_t)(text_end - text));
}

/* Whether the match was replaced by something else. */
static bool add_replacement(mr_pattern *m, luaL_Buffer *out, const char *begin, const char *end,
                            int type) {
    lua_State *L = m->L;
    if (type == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, mr_pattern_push_all(m, begin, end), 1);
    } else if (type == LUA_TTABLE) {
        mr_pattern_push(m, 0, begin, end);
        lua_gettable(L, 3);
    } else {
        add_text(m, out, begin, end);
        return true;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(out, begin, (size_t)(end - begin));
        return false;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    luaL_addvalue(out);
    return true;
}

static int string_gsub(lua_State *L) {
    mr_pattern m;
    luaL_Buffer out;
    size_t size, pattern_size;
    const char *s = luaL_checklstring(L, 1, &size), *p = luaL_checklstring(L, 2, &pattern_size);
    int type = lua_type(L, 3);
    luaL_argexpected(L,
                     type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION ||
                         type == LUA_TTABLE,
                     3, "string/function/table");
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)size + 1), count = 0;
    bool is_anchored = *p == '^', is_changed = false;
    mr_pattern_begin(&m, L, s, size, p + is_anchored, pattern_size - is_anchored);
    luaL_buffinit(L, &out);
    for (const char *last = NULL; count < most;) {
        const char *end = mr_pattern_match(&m, s);
        if (end && end != last) {
            count++;
            is_changed |= add_replacement(&m, &out, s, end, type);
            s = last = end;
        } else if (s < m.subject_end) {
            luaL_addchar(&out, *s++);
        } else {
            break;
        }
        if (is_anchored) break;
    }
    if (is_changed) {
        luaL_addlstring(&out, s, (size_t)(m.subject_end - s));
        luaL_pushresult(&out);
    } else {
        lua_pushvalue(L, 1);
    }
    lua_pushinteger(L, count);
    return 2;
}

/* ---- rep */

#define PART ((size_t)1 << 20) /* bytes that are copied before it is asked whether to stop */

/* Copies what stands at the beginning, `size` bytes that repeat, until `total` are there. */
static void repeat(lua_State *L, char *text, size_t size, size_t total) {
    size_t done = size;
    while (done < total) {
        size_t most = done < PART ? done : PART / size * size; /* whole copies */
        if (most < size) most = size;
        size_t left = total - done;
        memcpy(text + done, text, left < most ? left : most);
        done += left < most ? left : most;
        if (most >= PART / 2) mr_stop_check(L);
    }
}

/* rep(s, n [, separator]) */
static int string_rep(lua_State *L) {
    luaL_Buffer out;
    size_t size, separator_size;
    const char *s = luaL_checklstring(L, 1, &size);
    lua_Integer n = luaL_checkinteger(L, 2);
    const char *separator = luaL_optlstring(L, 3, "", &separator_size);
    size_t one = size + separator_size;
    if (n <= 0 || !one) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (one < size || one > (size_t)PTRDIFF_MAX / (size_t)n)
        return luaL_error(L, "resulting string too large");
    size_t total = (size_t)n * one - separator_size;
    char *text = luaL_buffinitsize(L, &out, total);
    memcpy(text, s, size);
    if (n > 1) {
        memcpy(text + size, separator, separator_size);
        repeat(L, text, one, total);
    }
    luaL_pushresultsize(&out, total);
    return 1;
}

/* ---- opening */

void mr_strings_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"find", string_find},     {"match", string_match},
                                         {"gmatch", string_gmatch}, {"gsub", string_gsub},
                                         {"rep", string_rep},       {NULL, NULL}};
    lua_getglobal(L, LUA_STRLIBNAME);
    luaL_setfuncs(L, functions, 0);
    lua_pop(L, 1);
}
