/* Messages on standard error: see complain.h. */
#include "host/complain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/output.h"
#include "bind/wrap.h"

static char rank[24]; /* "rank 1: ", in front of messages */
static char last_text[1000];

void mr_host_set_rank(uint32_t number) {
    snprintf(rank, sizeof rank, "rank %u: ", number);
}

const char *mr_host_last_text(void) {
    return last_text;
}

void mr_host_say(const char *prefix, const char *text) {
    fflush(stdout);
    snprintf(last_text, sizeof last_text, "%.*s", (int)strcspn(text, "\n"), text);
    mr_buffer line = {0}, out = {0}; /* one piece: other processes may write there, too */
    mr_buffer_printf(&line, "%s%s", prefix, rank);
    mr_buffer_puts(&line, text);
    mr_buffer_puts(&line, "\n");
    size_t size = line.failed ? strlen(text) : line.size;
    const char *written = mr_wrap_for(stderr, line.failed ? text : line.data, &size, &out);
    mr_output_write_message(stderr, written, size);
    mr_buffer_free(&line);
    mr_buffer_free(&out);
}

void mr_host_complain(const char *format, ...) {
    va_list args;
    mr_buffer text = {0};
    va_start(args, format);
    mr_buffer_printfv(&text, format, args);
    va_end(args);
    mr_host_say("millrace: ", text.failed ? "not enough memory for an error message" : text.data);
    mr_buffer_free(&text);
}

int mr_host_complain_open(mr_status status) {
    bool is_usage = status->code == MR_CODE_INVALID_ARGUMENT ||
                    status->code == MR_CODE_INVALID_DEVICE || status->code == MR_CODE_NOT_SUPPORTED;
    mr_host_complain("%s", status->message);
    mr_error_destroy(status);
    return is_usage ? MR_EXIT_USAGE : MR_EXIT_FAILED;
}
