/* Delays at random: while it is on, a short wait of the device follows some of the commands, in their stream or in
 * another one that has been met. They change no value and add no order. So they show which orders a backend takes when
 * its streams are early or late. Works with any backend. */
#ifndef MR_EXPLORE_STRESS_H
#define MR_EXPLORE_STRESS_H

#include "base/status.h"
#include "model/machine.h"

typedef struct mr_stress mr_stress;

/* The same seed gives the same delays to the same commands. `longest_ns`: each is at most so long. */
mr_status mr_stress_begin(mr_machine *machine, uint64_t seed, uint64_t longest_ns,
                          mr_stress **out_stress);
void mr_stress_end(mr_stress *stress); /* accepts NULL; before the machine is closed */

#endif
