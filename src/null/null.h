/* The null backend: devices that do nothing. Streams and events can be opened, whatever is submitted is done at once
 * and has no effect, and every question about it is answered with "done". There is no memory: an allocation is not
 * supported.
 *
 * For those who need the model's objects and not what a device does with them: a teller of programs, and tests. Their
 * backends begin with this one and replace the slots that they are about. */
#ifndef MR_NULL_NULL_H
#define MR_NULL_NULL_H

#include "model/backend.h"

/* mr_machine_options.device: "null:2" for two devices; anything without a number: one. */
extern const mr_backend mr_null_backend;

#endif
