/* What holds up a pending operation of the virtual GPU, in words. */
#ifndef MR_BIND_PENDING_H
#define MR_BIND_PENDING_H

#include "bind/bind.h"
#include "model/simulator.h"

enum { MR_PENDING_TEXT = 480 };

/* "waits for event `done`, recorded on stream `p` at race.lua:4 (#7)"; empty: nothing holds it up. */
void mr_pending_explain(const mr_pending *pending, char out[MR_PENDING_TEXT]);
/* The same as a sentence about the oldest operation of a stream; NULL: of any. */
void mr_pending_explain_stream(mr_machine *machine, const mr_stream *stream,
                               char out[MR_PENDING_TEXT]);

#endif
