/* Calls into Lua from outside of it, and what is said when they fail. */
#ifndef MR_HOST_CALL_H
#define MR_HOST_CALL_H

#include <lua.h>

#include "base/buffer.h"
#include "base/status.h"
#include "host/limits.h"

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

/* "millrace: " + message + newline on standard error, after what is pending on standard output. */
void mr_host_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says why no machine could be opened; takes the status. Returns the exit status: 2 when the command
 * line asked for what is not there, else 1. */
int mr_host_complain_open(mr_status status);

/* Limits that messages are to name; NULL (from the start): none. Kept by address. */
void mr_host_set_limits(const mr_limits *limits);

/* Like lua_pcall, with what surrounds a script: Ctrl-C and limits stop it, and a failure is said on
 * standard error, with a traceback of the script's frames. `prefix` stands in front of the message.
 * On failure nothing is left on the stack. Returns an exit status: 0, 1, 130, or 3 when what it failed
 * with is a hazard that the checker refused. */
int mr_host_call(lua_State *L, int argument_count, int result_count, const char *prefix);

/* The same, but the message is added to *out_message instead. It holds nothing if the call succeeded. May be called
 * while another one runs: the message is the inner one's, and the outer one goes on. */
int mr_host_try(lua_State *L, int argument_count, int result_count, mr_buffer *out_message);

/* Says the error value on top of the stack (of a chunk that did not load), and pops it. Returns 1. */
int mr_host_report(lua_State *L, const char *prefix);

/* This process is one rank of several: messages begin with its number. */
void mr_host_set_rank(uint32_t number);
/* The first line of the message that was said last, as far as there is room for it. */
const char *mr_host_last_text(void);

#endif
