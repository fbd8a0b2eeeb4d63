/* The command line: what millrace is asked to do. */
#ifndef MR_HOST_OPTIONS_H
#define MR_HOST_OPTIONS_H

#include <stdbool.h>

#include "host/limits.h"
#include "model/machine.h"

typedef enum { MR_COMMAND_RUN, MR_COMMAND_DOCTOR, MR_COMMAND_VERSION, MR_COMMAND_HELP } mr_command;

typedef struct {
    mr_command command;
    mr_machine_options machine;
    mr_limits limits;
    bool sandbox;
    bool launch_blocking;
    bool interactive; /* -i */
    bool has_code;    /* -e */
    const char
        *check; /* --check, MILLRACE_CHECK: "warn", "error", ..., not yet checked; NULL: none */
    bool report, report_json; /* --report, and whether it is json */
    int options_end;          /* argv[1 .. options_end) are options; -e among them, in order */
    int script; /* index of the script ("-": standard input); argc when there is none */
} mr_options;

/* Reads argv and the environment (MILLRACE_DEVICE, MILLRACE_CHECK). Returns false after it has said on standard error
 * what is wrong. Texts in *out_options belong to argv and the environment; whether there is such a
 * device, model or chooser is for the machine to say. */
bool mr_options_parse(int argc, char **argv, mr_options *out_options);

/* The code of the -e option at argv[*index], with *index moved behind it; NULL when argv[*index] is
 * another option, which is skipped likewise. */
const char *mr_options_next_code(char **argv, int *index);

extern const char mr_options_help[];

#endif
