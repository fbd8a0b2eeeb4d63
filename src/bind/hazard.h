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

#endif
