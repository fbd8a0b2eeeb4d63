/* The reason why an operation of the virtual GPU is pending, in words. */
#ifndef MR_BIND_MACHINE_PENDING_H
#define MR_BIND_MACHINE_PENDING_H

#include "bind/bind.h"
#include "model/simulator.h"

enum { MR_PENDING_TEXT = 480 };

/* Why the oldest operation of a stream (NULL: of any) is pending, as a sentence; empty: there is none. */
void mr_pending_explain_stream(mr_machine *machine, const mr_stream *stream,
                               char out[MR_PENDING_TEXT]);

#endif
