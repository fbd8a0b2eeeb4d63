/* The abilities of the terminal: see terminal.h. line.c knows about colours, base/output.h about characters. */
#include "repl/terminal.h"

#include "base/output.h"
#include "repl/line.h"

int mr_repl_terminal(lua_State *L) {
    lua_pushboolean(L, mr_line_shows_colours());
    lua_pushboolean(L, !mr_output_is_ascii());
    return 2;
}
