/* The prompt: reads an entry, runs it, shows what it returns, until the input ends. The session itself is in Lua:
 * lua/millrace/prompt/session.lua. */
#ifndef MR_REPL_REPL_H
#define MR_REPL_REPL_H

#include <lua.h>
#include <stdbool.h>

#include "base/buffer.h"

typedef enum { MR_REPL_DONE, MR_REPL_FAILED, MR_REPL_STOPPED } mr_repl_end;

/* What the prompt needs from the host program. */
typedef struct {
    const char *banner;
    bool is_sandboxed; /* no files */
    /* lua_pcall for code of the user; may be nested. Unless it is DONE, nothing is left on the stack, and the message has
     * been added; STOPPED: by Ctrl-C. */
    mr_repl_end (*call)(lua_State *L, int argument_count, int result_count, mr_buffer *out_message);
    bool (*interrupted)(void); /* whether Ctrl-C came since the last call */
    bool (*ended)(void);       /* whether the process was asked to end (SIGTERM, SIGHUP) */
} mr_repl_host;

/* Returns at the end of the input (Ctrl-D), or when the process was asked to end. Called protected; raises only when memory is out. */
void mr_repl_run(lua_State *L, const mr_repl_host *host);

#endif
