/* Record and wait, for events and streams. */
#ifndef MR_BIND_MACHINE_EVENT_H
#define MR_BIND_MACHINE_EVENT_H

#include "bind/bind.h"

/* With the event at `event_arg`, and the options {external=} at `options`. */
void mr_event_record_with(lua_State *L, const mr_caller *caller, int event_arg, mr_stream *stream,
                          int options);
void mr_event_wait_with(lua_State *L, const mr_caller *caller, mr_stream *stream, int event_arg,
                        int options);

#endif
