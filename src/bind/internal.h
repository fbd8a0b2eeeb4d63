/* Between the files that make up the module itself. */
#ifndef MR_BIND_INTERNAL_H
#define MR_BIND_INTERNAL_H

#include "bind/bind.h"

mr_site
mr_bind_site(lua_State *L); /* the script line that is running; {NULL, 0} if there is none */
/* The frame of the script at *level, or the next one out of it; false: there is none. */
bool mr_bind_frame(lua_State *L, int *level, lua_Debug *frame);
const char *mr_bind_file(const lua_Debug *frame); /* its file, as sites have it: interned */
void mr_open_error(lua_State *L);

/* help.c: the name under which the function at `arg` was registered ("zeros", "wait_event"), or NULL.
 * *out_owner, if that is not NULL: where ("mr", "stream"). */
const char *mr_registered_name(lua_State *L, int arg, const char **out_owner);

/* Between machine.c, which has scopes, and stream.c. Argument 1 is the stream or device. */
int mr_push_scope(lua_State *L); /* a scope that has begun; for a <close> variable */
int mr_call_with(lua_State *L);  /* mr.with(where, fn, ...) */

/* Tables of functions; bind.h declares the classes of objects. */
extern const mr_class mr_machine_class, mr_streams_class, mr_events_class, mr_creation_class,
    mr_forms_class, mr_memory_class, mr_hazard_class, mr_simulator_class, mr_help_class;

#endif
