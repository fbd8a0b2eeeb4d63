/* Stops a script whose output cannot be written: see base/output.h, which counts the output. */
#ifndef MR_HOST_OUTPUT_H
#define MR_HOST_OUTPUT_H

#include <stdint.h>

#include "base/buffer.h"

/* From now on a script that writes more than `limit` bytes (0: no bound), or whose output is lost, is stopped with
 * MR_STOP_OUTPUT. */
void mr_host_output_open(uint64_t limit);

/* Adds the message about a script that was stopped in this way: nothing if the reader of its output has gone. */
void mr_host_output_describe_stop(const char *at, const char *place, mr_buffer *out);

/* Call this last. If output was lost, changes exit status 0 to 1 and prints a message, unless it was
 * printed before or the reader of the output has gone. */
int mr_host_output_end(int exit_status);

#endif
