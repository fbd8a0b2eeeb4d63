/* Topics of help: see topics.h. lua/millrace/topics.lua finds them in the pages that the binary has. */
#include "bind/module/topics.h"

#include <lauxlib.h>

#include "base/embedded.h"
#include "bind/bind.h"
#include "bind/wrap.h"
#include "hazard/hazard.h"

static const char topics_module; /* its address is a registry key */

/* embedded(name) -> text, or nil */
static int embedded(lua_State *L) {
    const mr_embedded *file = mr_embedded_find(luaL_checkstring(L, 1));
    if (file) lua_pushlstring(L, (const char *)file->data, file->size);
    else lua_pushnil(L);
    return 1;
}

/* names() -> names of all files in the binary */
static int embedded_names(lua_State *L) {
    lua_newtable(L);
    for (int i = 0; mr_embedded_files[i].name; i++) {
        lua_pushstring(L, mr_embedded_files[i].name);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Pushes what the module gives. */
static void push_topics(lua_State *L) {
    static const luaL_Reg tools[] = {
        {"embedded", embedded}, {"names", embedded_names}, {"wrap", mr_wrap_call}, {NULL, NULL}};
    mr_push_embedded(L, &topics_module, "millrace.topics", tools);
}

void mr_topics_push_known(lua_State *L) {
    push_topics(L);
    lua_getfield(L, -1, "known");
    lua_remove(L, -2);
    lua_call(L, 0, 1);
    mr_hazard_word word;
    for (int i = 0; mr_hazard_word_at(i, &word); i++) {
        lua_pushstring(L, word.word);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
}

void mr_topics_push_uses(lua_State *L) {
    push_topics(L);
    lua_getfield(L, -1, "uses");
    lua_remove(L, -2);
    lua_call(L, 0, 1);
}

bool mr_topics_push_page(lua_State *L, int topic, int width) {
    if (lua_type(L, topic) != LUA_TSTRING) return false;
    topic = lua_absindex(L, topic);
    push_topics(L);
    lua_getfield(L, -1, "page");
    lua_remove(L, -2);
    lua_pushvalue(L, topic);
    lua_pushinteger(L, width);
    lua_call(L, 2, 1);
    if (lua_isstring(L, -1)) return true;
    lua_pop(L, 1);
    return false;
}

void mr_topics_add_same_name(lua_State *L, int name) {
    if (lua_type(L, name) != LUA_TSTRING) return;
    name = lua_absindex(L, name);
    push_topics(L);
    lua_getfield(L, -1, "same_name");
    lua_remove(L, -2);
    lua_pushvalue(L, name);
    lua_call(L, 1, 1);
    if (lua_isstring(L, -1)) lua_concat(L, 2);
    else lua_pop(L, 1);
}
