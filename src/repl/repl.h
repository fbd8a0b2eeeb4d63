/* The prompt: reads a chunk, runs it, shows what it returns, until the input ends. */
#ifndef MR_REPL_REPL_H
#define MR_REPL_REPL_H

#include <lua.h>
#include <stdbool.h>

/* What errors and reports call the input; its lines count through the session. */
#define MR_REPL_FILE "stdin"

/* What the prompt needs of the program around it. */
typedef struct {
    const char *banner;
    /* lua_pcall for a chunk of the user's, with everything around it: says a failure itself, leaves
     * nothing on the stack then, and returns false. */
    bool (*call)(lua_State *L, int argument_count, int result_count);
    /* Whether the chunk has printed its first result, which is at `index` (0: it has none), itself. */
    bool (*printed)(lua_State *L, int index);
    bool (*interrupted)(void); /* whether Ctrl-C came since the last question */
} mr_repl_host;

/* Returns at the end of the input (Ctrl-D). Called protected; raises only when memory is out. */
void mr_repl_run(lua_State *L, const mr_repl_host *host);

#endif
