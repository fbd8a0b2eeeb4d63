/* What the output may contain: see terminal.h. line.c knows about colours; a locale that is not UTF-8 asks for ASCII. */
#include "repl/terminal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "repl/line.h"

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* In the order in which the C library looks; the program has not asked it to. */
static bool is_unicode(void) {
    const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = setting(names[i]);
        if (value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8") ||
                   strstr(value, "utf-8");
    }
    return false;
}

int mr_repl_terminal(lua_State *L) {
    lua_pushboolean(L, mr_line_shows_colours());
    lua_pushboolean(L, is_unicode());
    return 2;
}
