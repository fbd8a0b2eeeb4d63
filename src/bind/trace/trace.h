/* Traces of a Lua state. */
#ifndef MR_BIND_TRACE_TRACE_H
#define MR_BIND_TRACE_TRACE_H

#include "bind/bind.h"
#include "trace/trace.h"

extern const mr_kind mr_kind_trace;

/* Pushes an empty trace userdata; what is put there belongs to it. */
const mr_trace **mr_new_trace(lua_State *L);

/* For mr.explore: outcomes.c. */
int mr_trace_tool_keep_race(lua_State *L);
int mr_trace_tool_save_outcomes(lua_State *L);
/* tracer.c: keeps the running trace, and restores its state after an explored function. */
void mr_bind_tracer_keep(lua_State *L);
void mr_bind_tracer_put_back(lua_State *L);

/* Checks that a path has an ending of a trace format, that its folder is there, and that the needed converter is
 * installed: NULL, or the error. */
mr_status mr_bind_trace_can_save(const char *path);
size_t mr_bind_trace_stem(const char *path); /* its length without that ending */

/* For --trace, by the host program. Call this after mr_bind_open: it begins to trace. `joined`: where rank 0 saves what
 * all ranks have traced, if this process is one of several; or NULL. */
mr_status mr_bind_trace_begin(lua_State *L, const char *path, const char *joined);
/* Saves the trace, once; does nothing if none was begun. `wait`: waits for pending work first. Must be called before
 * the state is closed. *out_unchecked: it has several streams, and the checker, which marks races in it, was never
 * on. */
mr_status mr_bind_trace_end(lua_State *L, bool wait, bool *out_unchecked);

/* The text of a file that was run, for mr_trace_save; `context`: the state. */
const char *mr_bind_trace_source(void *context, const char *file, size_t *out_size);

#endif
