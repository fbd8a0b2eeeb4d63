/* The virtual GPU: a backend (model/backend.h) made of a discrete-event simulation that computes real
 * values on the CPU. Everything else in this folder is private to it. */
#ifndef MR_VIRTUAL_VIRTUAL_H
#define MR_VIRTUAL_VIRTUAL_H

#include "model/backend.h"

extern const mr_backend mr_virtual_backend;

#endif
