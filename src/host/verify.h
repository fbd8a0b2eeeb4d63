/* For tests, with MILLRACE_VERIFY_REPLAY in the environment of this process (processes that it starts do not see it).
 * All that a script does on the virtual GPU is recorded from the start and carried out again at its end on a fresh
 * machine. Then bytes, times, answers, errors and the findings of the hazard checker are compared. The value "say" also
 * tells what was replayed and how much was compared, or why it was not replayed. */
#ifndef MR_HOST_VERIFY_H
#define MR_HOST_VERIFY_H

#include <stdbool.h>

#include "hazard/hazard.h"

/* `hazard`: the script's checker, which must outlive mr_verify_end. */
void mr_verify_begin(mr_machine *machine, const mr_machine_options *options, mr_hazard *hazard);
/* While the machine is still open. True: something differs, and was complained of. */
bool mr_verify_end(void);

#endif
