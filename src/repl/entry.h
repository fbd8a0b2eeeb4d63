/* Whether a text is an entry of the prompt, or the beginning of one. */
#ifndef MR_REPL_ENTRY_H
#define MR_REPL_ENTRY_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* TOO_SHORT: more lines may yet make it one. */
typedef enum { MR_ENTRY_WHOLE, MR_ENTRY_TOO_SHORT, MR_ENTRY_WRONG } mr_entry_verdict;

/* As an expression or as statements: Lua's parser says so. A command (":queues", "?x") is a line of its own. A row of
 * whole entries is WHOLE, too. Raises only when memory is out. */
mr_entry_verdict mr_entry_judge(lua_State *L, const char *text, size_t size);

/* Whether a text was copied from a session or a page: it begins with a prompt ("mr:7> ", "mr> ", "..> "), or has one
 * and is no Lua. */
bool mr_entry_is_session(lua_State *L, const char *text, size_t size);
/* Adds what was typed in a session to *out, without prompts and answers: entries, each with a 0 byte after it. Raises
 * when memory is out. */
void mr_entry_from_session(lua_State *L, const char *text, size_t size, mr_buffer *out);

/* Returns the length of the prompt of a further line ("..> ") at the beginning of the line; 0: there is none. */
size_t mr_entry_more_length(const char *line, size_t size);

/* The number of bytes of the first entry of a text of several lines, with the end of its last line. It is the whole
 * text if that is one entry, or no row of entries. */
size_t mr_entry_first(lua_State *L, const char *text, size_t size);

#endif
