/* The prompt: reads an entry, runs it, shows its results, until the input ends. The session itself is in Lua:
 * lua/millrace/prompt/session.lua.
 *
 * An entry is a chunk called `mr:7`. For its locals to live on, its text becomes the body of a function:
 *
 *     local __mr_keep, ..., a, b<const> = ...; return function(...) TEXT
 *     ;__mr_keep("c", function() return c end, false) end
 *
 * `a` and `b` are the locals of earlier entries that occur in the text. After the chunk has run, their upvalues in the
 * new function are joined with those of the earlier functions (`debug.upvaluejoin`). So all of them have the same
 * variable, at the cost of an upvalue. The locals that the text declares (`src/script/entry.c`) are handed out at its
 * end, or before its `return`. If one of the variables is a `<close>` variable, the function runs in a coroutine that
 * waits at its end. Alternatives: a table as `_ENV` costs a call for each access and cannot share variables with
 * closures; `debug.getlocal` after the end of an entry comes too late.
 *
 * The checker reads entries as it reads files (`bind/source.c`), so a fix can name a line within an entry. The
 * variables of the session count as variables that a new entry sees (`bind/hazard/variable.c`).
 *
 * The text is given to Lua unchanged before it is wrapped. So messages and the question whether it is complete are
 * Lua's own. Large texts are not parsed after each line, but only where a count of brackets and blocks (`nesting.c`)
 * says that they may be complete. */
#ifndef MR_REPL_REPL_H
#define MR_REPL_REPL_H

#include <lua.h>
#include <stdbool.h>

#include "base/buffer.h"

typedef enum { MR_REPL_DONE, MR_REPL_FAILED, MR_REPL_STOPPED } mr_repl_end;

/* Functions that the prompt needs from the host program. */
typedef struct {
    const char *banner; /* whole lines */
    bool is_sandboxed;  /* no files */
    /* lua_pcall for code of the user; may be nested. Unless it is DONE, nothing is left on the stack, and the message
     * has been added; STOPPED: by Ctrl-C. */
    mr_repl_end (*call)(lua_State *L, int argument_count, int result_count, mr_buffer *out_message);
    bool (*interrupted)(void); /* whether Ctrl-C came since the last call */
    bool (*ended)(void);       /* whether the process was asked to end (SIGTERM, SIGHUP) */
    /* Pushes what lessons ask of the host (lua/millrace/learn), a table. NULL: there are none, as in a sandbox. */
    void (*push_lessons)(lua_State *L);
    const char *script; /* a file to be stepped through first; NULL: none */
    int ranks;          /* by which it is run; 0: as it is */
} mr_repl_host;

/* Returns at the end of the input (Ctrl-D), or when the process was asked to end; false: at once, since the script
 * cannot be read or is no Lua. Called protected; raises only when memory is out. */
bool mr_repl_run(lua_State *L, const mr_repl_host *host);

#endif
