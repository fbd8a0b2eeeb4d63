/* The checker of a Lua state, for the host program. */
#ifndef MR_BIND_HAZARD_H
#define MR_BIND_HAZARD_H

#include "bind/bind.h"
#include "hazard/hazard.h"

/* For `--check=` (and MILLRACE_CHECK) and `--report=`: `mode` is "off", "warn", "error", "collect" or
 * "advice" (warn, and advice too); unknown: invalid-argument. To be called after mr_bind_open. */
mr_status mr_bind_check(lua_State *L, const char *mode, bool json);

/* At the end of the script, before the state is closed (what is collected then is no hazard): advice
 * that only the end can give, and the summary on standard error when `summary`. Switches the checker off.
 * Returns how many hazards there were, not counting advice: the exit code is 3 if there were any. */
uint64_t mr_bind_check_end(lua_State *L, bool summary);

/* The lines of `file` are typed at a prompt, from now on: what a report proposes for them is for the next
 * time. The text is kept by address. */
void mr_bind_check_prompt(lua_State *L, const char *file);

/* Whether the value at `index` (0: none) is the text that mr.hazard.why has printed since the last question. */
bool mr_bind_was_printed(lua_State *L, int index);

/* For the checker's hooks, whose contracts are in hazard/hazard.h: names (variable.c) and places (place.c). */
bool mr_bind_variable(lua_State *L, const mr_hazard_object *object, mr_site front, char *out,
                      size_t size);
bool mr_bind_before(lua_State *L, const mr_hazard_meeting *meeting, mr_hazard_spot *out_spot);
bool mr_bind_behind(mr_site where, mr_hazard_spot *out_spot);
bool mr_bind_new_local(const mr_hazard_spot *from, const mr_hazard_spot *to,
                       bool (*is_taken)(const void *context, const char *name), const void *context,
                       char *name, size_t size);

#endif
