/* Output that could not be written: see output.h. */
#include "host/output.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/output.h"
#include "host/complain.h"
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

void mr_host_output_describe_stop(const char *at, const char *place, mr_buffer *out) {
    mr_output_state state = mr_output_check();
    was_said = true;
    if (state == MR_OUTPUT_BOUNDED)
        mr_buffer_printf(out,
                         "stopped%s%s: --sandbox allows a script to write %" PRIu64
                         " bytes (--output BYTES raises the limit)",
                         at, place, bound);
    else if (state == MR_OUTPUT_LOST)
        mr_buffer_printf(out, "stopped%s%s: %s", at, place, mr_output_problem());
}

static void say_stop(void) {
    mr_buffer text = {0};
    mr_host_output_describe_stop("", "", &text);
    if (text.data) mr_host_complain("%s", text.data);
    mr_buffer_free(&text);
}

int mr_host_output_end(int exit_status) {
    mr_output_state state = mr_output_check();
    if (state == MR_OUTPUT_WHOLE) return exit_status;
    if (!was_said && state == MR_OUTPUT_LOST) mr_host_complain("%s", mr_output_problem());
    else if (!was_said) say_stop();
    return exit_status == MR_EXIT_OK ? MR_EXIT_FAILED : exit_status;
}
