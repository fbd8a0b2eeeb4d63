/* Calls into Lua from outside, and the messages for their failures. */
#ifndef MR_HOST_CALL_H
#define MR_HOST_CALL_H

#include <lua.h>

#include "base/buffer.h"
#include "base/status.h"
#include "host/complain.h"
#include "host/limits.h"

/* Limits that messages are to name; NULL (from the start): none. Kept by address. */
void mr_host_set_limits(const mr_limits *limits);

/* Like lua_pcall, with the surroundings of a script: Ctrl-C and limits stop it, and a failure is printed on standard
 * error, with a traceback of the script's frames. `prefix` stands in front of the message. On failure nothing is left
 * on the stack. Returns an exit status: 0, 1, 130, or 3 if the error is a hazard that the checker refused. */
int mr_host_call(lua_State *L, int argument_count, int result_count, const char *prefix);

/* The same, but the message is added to *out_message instead. It holds nothing if the call succeeded. May be called
 * while another one runs: the message is the inner one's, and the outer one goes on. */
int mr_host_try(lua_State *L, int argument_count, int result_count, mr_buffer *out_message);

/* Says the error value on top of the stack (of a chunk that did not load), and pops it. Returns 1. */
int mr_host_report(lua_State *L, const char *prefix);

#endif
