/* The null backend: devices that do nothing. Streams and events can be opened, submitted commands are done at once
 * without effect, and every query says "done". There is no memory: an allocation is not supported.
 *
 * For code that needs the model's objects without a device: a teller of programs, and tests. Their backends start from
 * this one and replace some slots. */
#ifndef MR_NULL_NULL_H
#define MR_NULL_NULL_H

#include "model/backend.h"

/* mr_machine_options.device: "null:2" for two devices; anything without a number: one. */
extern const mr_backend mr_null_backend;

#endif
