/* The command line. */
#ifndef MR_HOST_OPTIONS_H
#define MR_HOST_OPTIONS_H

#include <limits.h>
#include <stdbool.h>

#include "host/limits.h"
#include "model/machine.h"

typedef enum { MR_JOB_RUN, MR_JOB_DOCTOR, MR_JOB_VERSION, MR_JOB_HELP } mr_job;

typedef struct {
    mr_job job;
    mr_machine_options machine;
    mr_limits limits;
    bool sandbox;
    bool launch_blocking;
    bool interactive; /* -i */
    bool has_code;    /* -e */
    bool learn;       /* `learn` stands in the place of the script */
    /* --check, MILLRACE_CHECK: "warn", "error", ..., not yet checked; NULL: none */
    const char *check;
    const char *explore;      /* --explore: "" or "max:1000,grain:2"; NULL: not asked for */
    bool report, report_json; /* --report, and whether it is json */
    const char *trace;        /* --trace: the file; NULL: none */
    bool waits;               /* --waits */
    bool step;                /* --step: then there is a script file, and `interactive` */
    int ranks;                /* --ranks; 0: not asked for */
    char virtual_devices[16]; /* the device for --ranks, or for a launcher */
    char own_trace[PATH_MAX]; /* the path of `trace` for a launcher's rank */
    const char *joined_trace; /* for all its ranks; NULL: none */
    int options_end;          /* argv[1 .. options_end) are options; -e among them, in order */
    int script; /* index of the script ("-": standard input); argc when there is none */
} mr_options;

/* Reads argv and the environment (MILLRACE_DEVICE, MILLRACE_CHECK). On an error, prints a message on
 * standard error and returns false. Texts in *out_options belong to argv and the environment; the machine
 * checks whether such a device, model or chooser exists. */
bool mr_options_parse(int argc, char **argv, mr_options *out_options);

/* Returns the code of the -e option at argv[*index], or NULL if argv[*index] is another option. Moves
 * *index past the option. */
const char *mr_options_next_code(char **argv, int *index);
/* Among the arguments of the script, the first one that reads as an option of millrace with a long name, such as
 * --check or --report=json; NULL: none does. */
const char *mr_options_misplaced(int argc, char **argv, int script);

extern const char mr_options_help[];

#endif
