/* Fields of the table at the top of the stack. */
#ifndef MR_BIND_FIELD_H
#define MR_BIND_FIELD_H

#include "bind/bind.h"

/* NULL: the table has no such field. */
static inline void mr_set_text(lua_State *L, const char *key, const char *text) {
    lua_pushstring(L, text);
    lua_setfield(L, -2, key);
}

static inline void mr_set_integer(lua_State *L, const char *key, uint64_t value) {
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

static inline void mr_set_number(lua_State *L, const char *key, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

static inline void mr_set_boolean(lua_State *L, const char *key, bool value) {
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

static inline void mr_set_site(lua_State *L, const char *key, mr_site where) {
    mr_push_site(L, where);
    lua_setfield(L, -2, key);
}

#endif
