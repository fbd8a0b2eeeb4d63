/* Exit statuses, and messages on standard error. */
#ifndef MR_HOST_COMPLAIN_H
#define MR_HOST_COMPLAIN_H

#include <stdint.h>

#include "base/status.h"

enum {
    MR_EXIT_OK = 0,
    MR_EXIT_FAILED = 1,
    MR_EXIT_USAGE = 2,
    MR_EXIT_HAZARD = 3,
    MR_EXIT_LEFT_OVER = 70,                     /* MILLRACE_VERIFY_CLOSE found a fault of our own */
    MR_EXIT_REPLAY = 71,                        /* MILLRACE_VERIFY_REPLAY did */
    MR_EXIT_BY_SIGNAL = 128,                    /* + its number */
    MR_EXIT_INTERRUPTED = MR_EXIT_BY_SIGNAL + 2 /* SIGINT */
};

/* "millrace: " + message + newline on standard error, after pending text for standard output. */
void mr_host_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with another prefix. The text may come from the script, and be of any length. */
void mr_host_say(const char *prefix, const char *text);

/* Says why no machine could be opened; takes the status. Returns the exit status: 2 if the command line asked for
 * something that does not exist, else 1. */
int mr_host_complain_open(mr_status status);

/* This process is one rank of several: messages begin with its number. */
void mr_host_set_rank(uint32_t number);
/* The first line of the message that was said last, as far as there is room for it. */
const char *mr_host_last_text(void);

#endif
