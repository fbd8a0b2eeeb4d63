/* Loops that ask for ever. */
#ifndef MR_BIND_MACHINE_POLLS_H
#define MR_BIND_MACHINE_POLLS_H

#include "bind/bind.h"

/* A query has answered. Under the chooser `manual` the device does nothing while the host asks, so a loop that asks
 * until the answer is yes never ends. After many answers of no without a step in between, a note on standard error
 * says so once. */
void mr_polls_note(lua_State *L, const mr_caller *caller, bool done);
void mr_polls_stepped(lua_State *L); /* the device has moved */

#endif
