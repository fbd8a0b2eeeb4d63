/* The waits that a program needs: mr.waits, and --waits for the host program. */
#ifndef MR_BIND_HAZARD_WAITS_H
#define MR_BIND_HAZARD_WAITS_H

#include "bind/bind.h"

/* Sets the backend that predicts costs if the machine is not simulated. Call this after mr_bind_open. */
void mr_bind_waits_predict(lua_State *L, const mr_backend *simulated);

/* For --waits: records all of the script's commands from now on. */
mr_status mr_bind_waits_begin(lua_State *L);
/* Called at the script's end: appends the verdicts to `out`. *out_hazards: whether the program has hazards with all its
 * waits. */
mr_status mr_bind_waits_end(lua_State *L, mr_buffer *out, bool *out_hazards);

/* mr.explore and mr.stress call one function many times. Its first call is judged, and what runs while this is on is
 * not. */
void mr_bind_waits_repeats(lua_State *L, bool on);

/* Call it before the script reads or changes the device's progress: "mr.machine.queues". `storage`: it concerns only
 * these bytes; NULL: all pending work. */
void mr_bind_waits_looks(lua_State *L, const char *what, const mr_storage *storage);

/* The function of an mr.waits is running. */
bool mr_bind_waits_running(lua_State *L);

#endif
