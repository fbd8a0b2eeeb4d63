/* `millrace doctor`: lists what was found on this machine. */
#ifndef MR_HOST_DOCTOR_H
#define MR_HOST_DOCTOR_H

#include "model/machine.h"

/* Prints one line a finding. Returns 0, also when things are missing; 2 when there
 * is no machine such as `options` ask for. */
int mr_doctor(mr_machine_options *options);

#endif
