/* The checker of a Lua state, for the host program. */
#ifndef MR_BIND_HAZARD_H
#define MR_BIND_HAZARD_H

#include "bind/bind.h"

/* For `--check=` (and MILLRACE_CHECK) and `--report=`: `mode` is "off", "warn", "error", "collect" or
 * "advice" (warn, and advice too); unknown: invalid-argument. To be called after mr_bind_open. */
mr_status mr_bind_check(lua_State *L, const char *mode, bool json);

/* At the end of the script, before the state is closed (what is collected then is no hazard): advice
 * that only the end can give, and the summary on standard error when `summary`. Switches the checker off.
 * Returns how many hazards there were, not counting advice: the exit code is 3 if there were any. */
uint64_t mr_bind_check_end(lua_State *L, bool summary);

/* Writes the script's own expression for one of the three (the others NULL): "x", "streams[2]"; another view
 * of the tensor's storage will do. False if no variable in reach holds it. */
bool mr_bind_variable(lua_State *L, const mr_stream *stream, const mr_event *event,
                      const mr_tensor *tensor, char *out, size_t size);

/* Whether `local e = ...` behind the line `first` can be used in front of the line `second`, as far as the
 * script's text shows; `name` is then one that the script does not use yet. */
bool mr_bind_event_fits(mr_site first, mr_site second, char *name, size_t size);

#endif
