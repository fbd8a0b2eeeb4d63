/* The prompt: reads a chunk, runs it, shows what it returns, until the input ends. */
#ifndef MR_REPL_REPL_H
#define MR_REPL_REPL_H

#include <lua.h>
#include <stdbool.h>

/* The file name of the input in errors and reports; line numbers continue through the session. */
#define MR_REPL_FILE "stdin"

/* What the prompt needs from the host program. */
typedef struct {
    const char *banner;
    /* lua_pcall for a chunk of the user. On failure, prints the error, leaves nothing on the stack, and
     * returns false. */
    bool (*call)(lua_State *L, int argument_count, int result_count);
    bool (*interrupted)(void); /* whether Ctrl-C came since the last call */
} mr_repl_host;

/* Returns at the end of the input (Ctrl-D). Called protected; raises only when memory is out. */
void mr_repl_run(lua_State *L, const mr_repl_host *host);

#endif
