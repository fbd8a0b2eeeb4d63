/* For tests, with MILLRACE_VERIFY_REPLAY in the environment (of this process only, not of those that it starts): whatever a script does on the virtual GPU is recorded from
 * the start, carried out again at its end on a fresh machine, and compared: bytes, times, answers and errors. The value
 * "say" also tells what was replayed, or why it was not. */
#ifndef MR_HOST_VERIFY_H
#define MR_HOST_VERIFY_H

#include <stdbool.h>

#include "model/machine.h"

void mr_verify_begin(mr_machine *machine, const mr_machine_options *options);
/* While the machine is still open. True: something differs, and was complained of. */
bool mr_verify_end(void);

#endif
