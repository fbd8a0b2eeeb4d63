/* Reads the command line: see options.h. The table `options` has a row for each option; `apply` carries one out. */
#include "host/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "bind/explore.h"
#include "bind/hazard/hazard.h"
#include "bind/nearest.h"
#include "bind/trace/trace.h"
#include "collective/transport.h"
#include "host/call.h"
#include "host/learn.h"

#define MOST_RANKS 64 /* collective/comm.h */

const char mr_options_help[] =
    "usage: millrace [options] [script [arguments]]\n"
    "       millrace learn [NUMBER | FOLDER | --list | --check FILE | --grade FOLDER |\n"
    "                       --slides DIR]\n"
    "       millrace doctor\n"
    "\n"
    "Runs a Lua script with GPU streams, events and tensors: the global `mr`. Without a script it\n"
    "starts a prompt, where help() explains, TAB completes names, Ctrl-C stops an entry and "
    "Ctrl-D\n"
    "leaves. `-` as the script, or `millrace < file`, reads the script from standard input.\n"
    "\n"
    "  -e CODE               run CODE first; may be repeated\n"
    "  -i                    start the prompt after the script or -e\n"
    "  --device DEVICE       auto, cuda, cuda:I for GPU number I, virtual, or virtual:N for\n"
    "                        N devices. auto (default): a GPU if a usable one exists, otherwise\n"
    "                        virtual; --model or --chooser also selects virtual\n"
    "  --model NAME          the device model of the virtual GPU, a name or a file (default: "
    "h200)\n"
    "  --chooser NAME        how a virtual device chooses its next step: timed (default),\n"
    "                        adversarial, random:SEED, manual\n"
    "  --check[=MODE]        report hazards on standard error: warn (default); error stops at the\n"
    "                        first one; advice also reports possible improvements; collect keeps\n"
    "                        the reports for mr.hazard.reports(); off\n"
    "  --report=FORM         the form of the reports: text (default), or json (one object a\n"
    "                        line); implies --check\n"
    "  --explore[=BOUNDS]    run the script under every order that makes a difference, on the "
    "virtual\n"
    "                        GPU; its outcome is what it prints and returns. BOUNDS is a list "
    "such\n"
    "                        as max:1000,grain:2 of the options of mr.explore: max, time "
    "(seconds,\n"
    "                        default: 10), memory (MB, default: 1024), grain, preempt, polls,\n"
    "                        seeds, seed, workers; with json in the list, it prints one object of "
    "JSON\n"
    "  --waits               at the end, show which waits of the script are needed, and what they\n"
    "                        cost (mr.waits)\n"
    "  --step                run the script step by step at the prompt, with the chooser manual: "
    "it\n"
    "                        stops at its first line, and before it waits for the device\n"
    "  --ranks N             run the script, or the code of -e, N times, as ranks that meet at\n"
    "                        their collectives (mr.dist), each on a device of its own; without\n"
    "                        --device on N virtual ones\n"
    "  --launch-blocking     wait after every operation, like CUDA_LAUNCH_BLOCKING\n"
    "  --trace FILE          save a timeline of the whole script: .html (a page), .json "
    "(Perfetto),\n"
    "                        .svg, .png, .dot, .csv, .spans.json. Also when the script fails or "
    "is\n"
    "                        stopped; under mpirun t.rank0.html, t.rank1.html, and t.html of all.\n"
    "                        Races are marked in it if --check is given, too\n"
    "  --ascii               draw with ASCII characters only (MILLRACE_ASCII=1 does the same)\n"
    "  --sandbox             run a script that you do not trust: no files, no processes, no "
    "bytecode,\n"
    "                        and these limits:\n"
    "    --memory MB           memory of Lua (default: 256)\n"
    "    --device-memory MB    memory of tensors, on devices and on the host (default: 1024)\n"
    "    --instructions N      instructions of Lua, 0 for no limit (default: 1000000000)\n"
    "    --time SECONDS        wall time, 0 for no limit (default: 60)\n"
    "    --output BYTES        total output to standard output and standard error, 0 for no\n"
    "                          limit (default: 67108864); the error that ends a script has at\n"
    "                          least 4096 bytes\n"
    "                        The whole process may use the sum of both memory limits, plus 64 MB,\n"
    "                        plus 8 MB for each processor. It is ended soon after it uses more.\n"
    "                        A compiler of kernels is a process of its own, with at most 1280 MB.\n"
    "  --version             print the version\n"
    "  --help                print this\n"
    "\n"
    "  learn                 lessons about streams: predict, run, understand, repair.\n"
    "                        docs/teaching.md explains the options\n"
    "  doctor                show the GPUs and libraries of this machine, and what is missing\n"
    "\n"
    "MILLRACE_DEVICE sets --device, MILLRACE_CHECK sets --check. Exit status:\n"
    "  0    success\n"
    "  1    the script failed\n"
    "  2    wrong usage\n"
    "  3    --check or --waits found a hazard, --explore a hazard or several outcomes\n"
    "  130  interrupted\n"
    "  129  ended by SIGHUP, after the trace and the verdict; 143: by SIGTERM\n"
    "\n"
    "  millrace -e 'print(mr.ones(3):sum():item())'\n"
    "  millrace --device virtual:4 race.lua\n"
    "  millrace --check race.lua\n"
    "  millrace --chooser adversarial race.lua\n"
    "  millrace --trace race.html race.lua\n"
    "  millrace --sandbox --time 5 stranger.lua\n";

typedef enum {
    OPTION_CODE,
    OPTION_INTERACTIVE,
    OPTION_DEVICE,
    OPTION_MODEL,
    OPTION_CHOOSER,
    OPTION_CHECK,
    OPTION_REPORT,
    OPTION_EXPLORE,
    OPTION_WAITS,
    OPTION_RANKS,
    OPTION_LAUNCH_BLOCKING,
    OPTION_TRACE,
    OPTION_ASCII,
    OPTION_SANDBOX,
    OPTION_MEMORY,
    OPTION_DEVICE_MEMORY,
    OPTION_INSTRUCTIONS,
    OPTION_TIME,
    OPTION_OUTPUT,
    OPTION_STEP,
    OPTION_VERSION,
    OPTION_HELP,
} option_id;

typedef struct {
    const char *name;
    option_id id;
    bool has_value;
    bool is_limit;         /* the option is an error without --sandbox */
    const char *otherwise; /* the value if none is given; then a value needs "=" */
} option_row;

static const option_row options[] = {
    {"-e", OPTION_CODE, true, false, NULL},
    {"-i", OPTION_INTERACTIVE, false, false, NULL},
    {"--device", OPTION_DEVICE, true, false, NULL},
    {"--model", OPTION_MODEL, true, false, NULL},
    {"--chooser", OPTION_CHOOSER, true, false, NULL},
    {"--check", OPTION_CHECK, true, false, "warn"},
    {"--report", OPTION_REPORT, true, false, NULL},
    {"--explore", OPTION_EXPLORE, true, false, ""},
    {"--waits", OPTION_WAITS, false, false, NULL},
    {"--step", OPTION_STEP, false, false, NULL},
    {"--ranks", OPTION_RANKS, true, false, NULL},
    {"--launch-blocking", OPTION_LAUNCH_BLOCKING, false, false, NULL},
    {"--trace", OPTION_TRACE, true, false, NULL},
    {"--ascii", OPTION_ASCII, false, false, NULL},
    {"--sandbox", OPTION_SANDBOX, false, false, NULL},
    {"--memory", OPTION_MEMORY, true, true, NULL},
    {"--device-memory", OPTION_DEVICE_MEMORY, true, true, NULL},
    {"--instructions", OPTION_INSTRUCTIONS, true, true, NULL},
    {"--time", OPTION_TIME, true, true, NULL},
    {"--output", OPTION_OUTPUT, true, true, NULL},
    {"--version", OPTION_VERSION, false, false, NULL},
    {"--help", OPTION_HELP, false, false, NULL},
    {"-h", OPTION_HELP, false, false, NULL},
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

/* --- reading one option ---------------------------------------------------------------------------- */

/* One option, as the words of argv give it. */
typedef struct {
    const option_row *option; /* NULL: unknown */
    const char *value;        /* NULL: the option takes no value, or the value is missing */
    bool joined;              /* --name=value */
    int words;                /* how many words of argv it uses */
} reading;

static const option_row *find_option(const char *name, size_t length) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

static reading read_option(char **argv, int index) {
    const char *word = argv[index];
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    reading read = {.words = 1, .joined = equals != NULL};
    read.option = find_option(word, equals ? (size_t)(equals - word) : strlen(word));
    if (equals) {
        read.value = equals + 1;
    } else if (read.option && read.option->otherwise) {
        read.value = read.option->otherwise;
    } else if (read.option && read.option->has_value && argv[index + 1]) {
        read.value = argv[index + 1];
        read.words = 2;
    }
    return read;
}

const char *mr_options_next_code(char **argv, int *index) {
    reading read = read_option(argv, *index);
    *index += read.words;
    return read.option && read.option->id == OPTION_CODE ? read.value : NULL;
}

const char *mr_options_misplaced(int argc, char **argv, int script) {
    for (int i = script + 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], "--", 2) == 0 && find_option(argv[i], strcspn(argv[i], "=")))
            return argv[i];
    return NULL;
}

static bool complain_unknown(const char *word, const char *next) {
    mr_nearest nearest;
    size_t length = strcspn(word, "=");
    if (length == 6 && strncmp(word, "--seed", 6) == 0) {
        const char *seed = word[length] ? word + length + 1 : next ? next : "";
        bool is_number = *seed && !seed[strspn(seed, "0123456789")];
        mr_host_complain("unknown option --seed; did you mean --chooser random:%s?",
                         is_number ? seed : "SEED");
        return false;
    }
    char name[64];
    if (length >= sizeof name) length = sizeof name - 1;
    memcpy(name, word, length);
    name[length] = '\0';
    mr_nearest_begin(&nearest, name);
    for (size_t i = 0; i < OPTION_COUNT; i++) mr_nearest_offer(&nearest, options[i].name);
    const char *found =
        length > 2 ? mr_nearest_found(&nearest) : NULL; /* every single letter is similar to -e */
    if (found) mr_host_complain("unknown option %s; did you mean %s?", name, found);
    else mr_host_complain("unknown option %s; millrace --help lists them", name);
    return false;
}

static const mr_explore_bound *find_bound(const char *name, size_t size) {
    const mr_explore_bound *b = mr_explore_bounds;
    while (b->name && (strlen(b->name) != size || strncmp(b->name, name, size) != 0)) b++;
    return b->name ? b : NULL;
}

/* `--check warn`: the value of an option that needs none stands after "=". `word` comes after the option. */
static bool is_value_of(const option_row *option, const char *word) {
    if (option->id == OPTION_EXPLORE) {
        size_t size = strcspn(word, ":,");
        return (word[size] == ':' && find_bound(word, size)) || strcmp(word, "json") == 0;
    }
    return option->id == OPTION_CHECK && mr_bind_is_check(word);
}

/* The word after the options is the script, or one of the commands that are no option. */
static bool check_first_word(const option_row *last, const char *word) {
    static const char *const commands[] = {"learn", "doctor"};
    mr_nearest nearest;
    if (access(word, F_OK) == 0 || strcmp(word, "-") == 0) return true;
    if (last && is_value_of(last, word)) {
        mr_host_complain("cannot open %s: no such file; as a value of %s it is written %s=%s", word,
                         last->name, last->name, word);
        return false;
    }
    mr_nearest_begin(&nearest, word);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(word, commands[i]) == 0) return true;
        mr_nearest_offer(&nearest, commands[i]);
    }
    const char *found = mr_nearest_found(&nearest);
    if (!found) return true;
    mr_host_complain("cannot open %s: no such file; did you mean millrace %s?", word, found);
    return false;
}

/* --- values ---------------------------------------------------------------------------------------- */

/* Reads a number that is not below `least`. False: it has complained. */
static bool read_number(const char *name, const char *text, double least, double *out_number) {
    char *end;
    *out_number = mr_number_parse(text, &end);
    if (end != text && *end == '\0' && isfinite(*out_number) && *out_number >= least &&
        *out_number <= 1e15)
        return true;
    mr_host_complain("%s: expected a number of at least %g, got '%s'", name, least, text);
    return false;
}

static bool read_megabytes(const char *name, const char *text, uint64_t *out_bytes) {
    double number;
    if (!read_number(name, text, 1, &number)) return false;
    if (number > 1e9) number = 1e9;
    *out_bytes = (uint64_t)(number * 1048576.0);
    return true;
}

static bool read_report(const char *text, bool *out_json) {
    *out_json = strcmp(text, "json") == 0;
    if (*out_json || strcmp(text, "text") == 0) return true;
    mr_host_complain("--report: expected text or json, got '%s'", text);
    return false;
}

/* Checks the path before the script runs. */
static bool check_trace(const char *path) {
    mr_status status = mr_bind_trace_can_save(path);
    if (!status) return true;
    mr_host_complain("--trace: %s", status->message);
    mr_error_destroy(status);
    return false;
}

/* Only a number that mr.explore would take: it begins after the script has been read. */
static bool check_bound(const mr_explore_bound *b, double number, const char *text, int size) {
    bool fits = isfinite(number) && fabs(number) < 9e15 && (!b->whole || number == floor(number));
    if (!b->any) fits = fits && (b->whole ? number >= b->least : number > b->least);
    if (fits) return true;
    if (b->any)
        mr_host_complain("--explore: %s: expected a whole number, got '%.*s'", b->name, size, text);
    else
        mr_host_complain("--explore: %s: expected a %s %g, got '%.*s'", b->name,
                         b->whole ? "whole number of at least" : "number above", b->least, size,
                         text);
    return false;
}

static void complain_of_bound(const char *text, size_t size) {
    mr_buffer all = {0};
    for (const mr_explore_bound *b = mr_explore_bounds; b->name; b++)
        mr_buffer_printf(&all, "%s%s", b == mr_explore_bounds ? "" : ", ", b->name);
    mr_host_complain("--explore: there is no option '%.*s': expected one of %s, as in "
                     "max:1000,grain:2",
                     (int)size, text, all.data ? all.data : "");
    mr_buffer_free(&all);
}

/* "max:1000,grain:2,json" */
static bool read_explore(mr_options *out, const char *text) {
    const char *whole = out->explore = text;
    while (*text) {
        size_t name = strcspn(text, ":,");
        if (name == 4 && text[name] != ':' && strncmp(text, "json", 4) == 0) {
            text += text[4] ? 5 : 4;
            continue;
        }
        const mr_explore_bound *b = find_bound(text, name);
        const char *digits = text + name + 1;
        char *end = NULL;
        double number = b && text[name] == ':' ? mr_number_parse(digits, &end) : 0;
        if (!b) {
            complain_of_bound(text, name);
            return false;
        }
        if (!end || end == digits || (*end && *end != ',')) {
            mr_host_complain("--explore: %s: expected a number, as in max:1000,grain:2, got '%s'",
                             b->name, whole);
            return false;
        }
        if (!check_bound(b, number, digits, (int)(end - digits))) return false;
        text = *end ? end + 1 : end;
    }
    return true;
}

static bool read_ranks(const char *text, int *out_ranks) {
    char *end;
    long ranks = strtol(text, &end, 10);
    if (end == text || *end || ranks < 1 || ranks > MOST_RANKS) {
        mr_host_complain("--ranks: expected a number from 1 to %d, got '%s'", MOST_RANKS, text);
        return false;
    }
    *out_ranks = (int)ranks;
    return true;
}

/* All ranks are in this process. */
static bool check_ranks(const mr_options *out, int argc, char **argv) {
    const char *why = NULL;
    bool is_file = out->script < argc && strcmp(argv[out->script], "-") != 0;
    if (out->sandbox) why = "and --sandbox cannot be used together";
    else if (!is_file && (!out->has_code || out->script < argc))
        why = "needs a script file, or code behind -e";
    else if (out->step && out->has_code) why = "and --step go through a script file, without -e";
    if (why) mr_host_complain("--ranks %s", why);
    return !why;
}

/* Without a script, a terminal would get the prompt, where nothing is explored. */
static bool check_explore(const mr_options *out, int argc) {
    if (out->script < argc || out->has_code || !(out->interactive || isatty(STDIN_FILENO)))
        return true;
    mr_host_complain(
        "--explore needs a script, as in millrace --explore script.lua, or code behind "
        "-e; at the prompt, mr.explore(fn) explores a function");
    return false;
}

/* The prompt reads the file, and takes the steps of a virtual device. */
static bool check_step(mr_options *out, int argc, char **argv) {
    const char *why = NULL;
    if (out->script >= argc || strcmp(argv[out->script], "-") == 0) why = "needs a script file";
    else if (out->sandbox) why = "and --sandbox cannot be used together";
    else if (out->explore || out->waits)
        why = "runs the script once, not with --explore or --waits";
    if (why) mr_host_complain("--step %s", why);
    if (!out->machine.chooser) out->machine.chooser = "manual";
    out->interactive = true;
    return !why;
}

static bool apply(mr_options *out, const option_row *option, const char *value) {
    double number;
    switch (option->id) {
    case OPTION_CODE: out->has_code = true; return true;
    case OPTION_INTERACTIVE: out->interactive = true; return true;
    case OPTION_DEVICE: out->machine.device = value; return true;
    case OPTION_MODEL: out->machine.model = value; return true;
    case OPTION_CHOOSER: out->machine.chooser = value; return true;
    case OPTION_CHECK: out->check = value; return true;
    case OPTION_REPORT: out->report = true; return read_report(value, &out->report_json);
    case OPTION_EXPLORE: return read_explore(out, value);
    case OPTION_WAITS: out->waits = true; return true;
    case OPTION_STEP: out->step = true; return true;
    case OPTION_RANKS: return read_ranks(value, &out->ranks);
    case OPTION_LAUNCH_BLOCKING: out->launch_blocking = true; return true;
    case OPTION_TRACE: out->trace = value; return check_trace(value);
    case OPTION_ASCII: setenv("MILLRACE_ASCII", "1", 1); return true;
    case OPTION_SANDBOX: out->sandbox = true; return true;
    case OPTION_MEMORY: return read_megabytes(option->name, value, &out->limits.memory);
    case OPTION_DEVICE_MEMORY:
        return read_megabytes(option->name, value, &out->limits.device_memory);
    case OPTION_INSTRUCTIONS:
        if (!read_number(option->name, value, 0, &number)) return false;
        out->limits.instructions = (uint64_t)number;
        return true;
    case OPTION_TIME:
        if (!read_number(option->name, value, 0, &out->limits.seconds)) return false;
        if (out->limits.seconds > 1e6) out->limits.seconds = 1e6;
        return true;
    case OPTION_OUTPUT:
        if (!read_number(option->name, value, 0, &number)) return false;
        out->limits.output = (uint64_t)number;
        return true;
    case OPTION_VERSION: out->job = MR_JOB_VERSION; return true;
    case OPTION_HELP: out->job = MR_JOB_HELP; return true;
    }
    return false;
}

/* --- all of them ----------------------------------------------------------------------------------- */

static bool parse_options(int argc, char **argv, mr_options *out) {
    const char *limit = NULL;
    const option_row *last =
        NULL; /* in front of the script, if its value could only stand after "=" */
    int i = 1;
    while (i < argc && argv[i][0] == '-' && strcmp(argv[i], "-") != 0) {
        if (strcmp(argv[i], "--") == 0) {
            last = NULL;
            i++;
            break;
        }
        reading read = read_option(argv, i);
        if (!read.option) return complain_unknown(argv[i], argv[i + 1]);
        if (read.option->has_value && !read.value) {
            mr_host_complain("%s needs a value", read.option->name);
            return false;
        }
        if (!read.option->has_value && read.joined) {
            mr_host_complain("%s takes no value, got '%s'", read.option->name, read.value);
            return false;
        }
        if (!apply(out, read.option, read.value)) return false;
        if (read.option->is_limit) limit = read.option->name;
        last = read.option->otherwise && !read.joined ? read.option : NULL;
        i += read.words;
    }
    out->options_end = out->script = i;
    if (i < argc && !check_first_word(last, argv[i])) return false;
    if (limit && !out->sandbox) {
        mr_host_complain("%s limits a script under --sandbox: add --sandbox", limit);
        return false;
    }
    return true;
}

/* Lessons are full of races, which no checker has to report. */
static bool apply_learn(mr_options *out) {
    if (out->options_end > 1) {
        mr_host_complain("learn takes no options in front of it; to run a script that is called "
                         "learn, write ./learn");
        return false;
    }
    out->learn = true;
    out->machine.device = MR_LEARN_DEVICE;
    out->check = NULL;
    return true;
}

/* How many GPUs this process may use, as far as the environment says: a launcher may show each rank its own only. */
static uint32_t visible_devices(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    uint32_t count = 1;
    if (!visible || !*visible) return UINT32_MAX;
    for (; *visible; visible++) count += *visible == ',';
    return count;
}

/* Processes of one program have one command line: each rank saves a timeline of its own, and rank 0 one of all. Clocks
 * of real devices in several processes have no common axis. */
static bool own_trace(const mr_started *launch, mr_options *out) {
    const char *path = out->trace;
    size_t stem = mr_bind_trace_stem(path);
    int size = snprintf(out->own_trace, sizeof out->own_trace, "%.*s.rank%u%s", (int)stem, path,
                        launch->rank, path + stem);
    if (size < 0 || (size_t)size >= sizeof out->own_trace) {
        mr_host_complain("--trace: the name is too long for `.rank%u` in it", launch->rank);
        return false;
    }
    if (out->machine.device && strncmp(out->machine.device, "virtual", 7) == 0)
        out->joined_trace = path;
    if (launch->rank == 0)
        mr_host_complain("--trace: each of the %u ranks saves a timeline of its own, as %s%s%s",
                         launch->size, out->own_trace, out->joined_trace ? "; of all: " : "",
                         out->joined_trace ? out->joined_trace : "");
    out->trace = out->own_trace;
    return true;
}

bool mr_options_parse(int argc, char **argv, mr_options *out) {
    *out = (mr_options){.job = MR_JOB_RUN, .limits = mr_limits_default};
    if (!parse_options(argc, argv, out)) return false;
    if (out->explore && out->waits) {
        mr_host_complain("--waits judges one run of the script, and --explore runs it under every "
                         "schedule: use one of them at a time");
        return false;
    }
    if (!out->machine.device) out->machine.device = getenv("MILLRACE_DEVICE");
    /* Only the virtual GPU can be steered. */
    bool any = !out->machine.device || strcmp(out->machine.device, "auto") == 0;
    if (out->ranks && !check_ranks(out, argc, argv)) return false;
    if (out->explore && !check_explore(out, argc)) return false;
    if (out->step && !check_step(out, argc, argv)) return false;
    if ((out->explore || out->step) && any) out->machine.device = "virtual";
    mr_started launch = mr_started_find();
    if (out->ranks && launch.by) {
        mr_host_complain("--ranks: %s has started this process as rank %u of %u already: leave "
                         "--ranks out, or start millrace without %s",
                         launch.by, launch.rank, launch.size, launch.by);
        return false;
    }
    int ranks = out->ranks ? out->ranks : (int)launch.size;
    bool any_count = any || strcmp(out->machine.device, "virtual") == 0;
    if (ranks && any_count && !out->sandbox) {
        snprintf(out->virtual_devices, sizeof out->virtual_devices, "virtual:%d", ranks);
        out->machine.device = out->virtual_devices;
    } else if (launch.by && !any && strcmp(out->machine.device, "cuda") == 0) {
        snprintf(out->virtual_devices, sizeof out->virtual_devices, "cuda:%d",
                 (int)(launch.local_rank % visible_devices()));
        out->machine.device = out->virtual_devices;
    }
    if (launch.by && out->trace && !own_trace(&launch, out)) return false;
    if (!out->check) out->check = getenv("MILLRACE_CHECK");
    if (out->check && !*out->check) out->check = NULL;
    if (!out->check && out->report) out->check = "warn"; /* --report implies --check */
    if (out->script < argc && strcmp(argv[out->script], "learn") == 0 && !apply_learn(out))
        return false;
    if (out->script < argc && strcmp(argv[out->script], "doctor") == 0) {
        if (out->script + 1 < argc) {
            mr_host_complain("doctor takes no arguments, got '%s'; to run a script that is called "
                             "doctor, write ./doctor",
                             argv[out->script + 1]);
            return false;
        }
        out->job = MR_JOB_DOCTOR;
    }
    return true;
}
