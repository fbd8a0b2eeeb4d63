/* Hints for a script that has failed: see hint.h. lua/millrace/prompt/script_hints.lua finds them. */
#include "repl/hint.h"

#include "repl/tools.h"

void mr_hint_push(lua_State *L, const char *name, const char *text, const char *message) {
    static const mr_repl_host nobody; /* no module that is needed here asks a host */
    int top = lua_gettop(L);
    mr_tools_push(L, &nobody);
    mr_tools_require(L, top + 1, "script_hints");
    lua_getfield(L, -1, "of");
    lua_pushstring(L, name);
    lua_pushstring(L, text);
    lua_pushstring(L, message);
    lua_call(L, 3, 1);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}
