/* Output that could not be written: see output.h. */
#include "host/output.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/output.h"
#include "host/call.h"
#include "host/interrupt.h"

static uint64_t bound;
static bool was_said;

static void stop(void) {
    mr_stop_request(MR_STOP_OUTPUT);
}

void mr_host_output_open(uint64_t limit) {
    bound = limit;
    mr_output_open(limit, stop);
}

void mr_host_output_say_stop(const char *prefix, const char *at, const char *place) {
    mr_output_state state = mr_output_check();
    was_said = true;
    if (state == MR_OUTPUT_BOUNDED)
        fprintf(stderr,
                "%sstopped%s%s: --sandbox allows a script to write %" PRIu64
                " bytes (--output BYTES raises the limit)\n",
                prefix, at, place, bound);
    else if (state == MR_OUTPUT_LOST)
        fprintf(stderr, "%sstopped%s%s: %s\n", prefix, at, place, mr_output_problem());
}

int mr_host_output_end(int exit_status) {
    mr_output_state state = mr_output_check();
    if (state == MR_OUTPUT_WHOLE) return exit_status;
    if (!was_said && state == MR_OUTPUT_LOST) mr_host_complain("%s", mr_output_problem());
    else if (!was_said) mr_host_output_say_stop("millrace: ", "", "");
    return exit_status == MR_EXIT_OK ? MR_EXIT_FAILED : exit_status;
}
