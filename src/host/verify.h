/* For tests, with MILLRACE_VERIFY_REPLAY in the environment (of this process only, not of those that it starts):
 * whatever a script does on the virtual GPU is recorded from the start, carried out again at its end on a fresh
 * machine, and compared: bytes, times, answers, errors, and what the hazard checker finds. The value "say" also tells
 * what was replayed and how much was compared, or why it was not replayed. */
#ifndef MR_HOST_VERIFY_H
#define MR_HOST_VERIFY_H

#include <stdbool.h>

#include "hazard/hazard.h"

/* `hazard`: the script's checker, which must outlive mr_verify_end. */
void mr_verify_begin(mr_machine *machine, const mr_machine_options *options, mr_hazard *hazard);
/* While the machine is still open. True: something differs, and was complained of. */
bool mr_verify_end(void);

#endif
