/* The checker of a Lua state, for the host program. */
#ifndef MR_BIND_HAZARD_HAZARD_H
#define MR_BIND_HAZARD_HAZARD_H

#include "bind/bind.h"
#include "hazard/hazard.h"

/* The checker itself, for code that compares verdicts. It lives until the state is closed. */
mr_hazard *mr_bind_hazard(lua_State *L);

/* For `--check=` (and MILLRACE_CHECK) and `--report=`: `mode` is "off", "warn", "error", "collect" or
 * "advice" (warn, and advice too); unknown: invalid-argument. Call this after mr_bind_open. */
mr_status mr_bind_check(lua_State *L, const char *mode, bool json);
bool mr_bind_is_check(const char *mode); /* one of these */

/* A Lua function without arguments that runs pending host functions, so that the checker knows their accesses. Raises
 * their errors. */
int mr_bind_check_run_pending(lua_State *L);

/* A function of Lua, inside of work that stands apart: (fn) -> reports, totals. As mr.hazard.check, and `fn` may call
 * that one. All devices are done when `fn` begins and when it has returned. */
int mr_bind_check_judge(lua_State *L);

/* Called at the script's end: from now on, frees by the collector are no hazards. Commands of the script's `<close>`
 * variables and finalizers still count, so the verdict waits for them. `at_close` is called when all finalizers of the
 * script's objects have run. The state closes the checker and the machine next. */
void mr_bind_check_returned(lua_State *L, void (*at_close)(lua_State *L));

/* Called when the script ended with an error: code that it did not reach is not judged. */
void mr_bind_check_stopped(lua_State *L);

/* The checker's verdict on a run that ended without an error. */
typedef enum {
    MR_CHECK_WELL,
    MR_CHECK_HAZARDS, /* not counting advice */
    /* no hazard, but a failure has lost the device, and the script did not reset it */
    MR_CHECK_LOST,
} mr_check_end;

/* The verdict: advice that only the end can give, and the summary on standard error when `summary`. Switches the
 * checker off. */
mr_check_end mr_bind_check_end(lua_State *L, bool summary);

/* From now on, entries of the prompt (bind/source.h) count as typed: a report's fix for them is for the next time. */
void mr_bind_check_prompt(lua_State *L);
/* The file that is run, which stays: sentences leave its folder out. */
void mr_bind_check_script(lua_State *L, const char *path);

/* For the checker's hooks, whose contracts are in hazard/hazard.h: names (variable.c) and places (place.c). */
bool mr_bind_variable(lua_State *L, const mr_hazard_object *object, mr_site front, char *out,
                      size_t size);
bool mr_bind_holder(lua_State *L, const mr_hazard_object *object, char *out, size_t size,
                    mr_site *out_held);
bool mr_bind_is_running(lua_State *L, mr_site front);
bool mr_bind_before(lua_State *L, const mr_script_meeting *meeting, mr_script_spot *out_spot);
bool mr_bind_behind(lua_State *L, mr_site where, bool is_over, mr_script_spot *out_spot);
bool mr_bind_still_runs(lua_State *L, const mr_script_meeting *m); /* hooks.still_runs */
/* hooks.comes_before */
bool mr_bind_comes_before(lua_State *L, const mr_script_spot *spot, mr_site where);
bool mr_bind_waits_at_once(lua_State *L, mr_site function, mr_site wait); /* hooks.waits_at_once */
bool mr_bind_new_local(lua_State *L, const mr_script_spot *from, const mr_script_spot *to,
                       bool (*is_taken)(const void *context, const char *name), const void *context,
                       char *name, size_t size);
bool mr_bind_ahead(lua_State *L, const mr_script_spot *record, const mr_script_spot *wait,
                   const mr_script_meeting *meeting, const char *tensor, const char *stream,
                   bool (*is_taken)(const void *context, const char *name), const void *context,
                   mr_script_variable *out);
bool mr_bind_is_set_later(lua_State *L, const mr_script_spot *spot, const char *expression);
bool mr_bind_is_direct(lua_State *L, const mr_script_spot *spot, mr_site where);
bool mr_bind_result(lua_State *L, mr_site call, const char *name, const char *option,
                    const mr_script_spot *spot, char *out, size_t size);
/* hooks.loop_variable */
bool mr_bind_loop_variable(lua_State *L, mr_site loop, mr_site use, const char *method,
                           const mr_script_spot *spot, char *out, size_t size);

#endif
