/* millrace, the program: opens Lua, the libraries, a machine and the module `mr`, then carries out the command line.
 *
 * Easiest to break: the order of leaving. The Lua state is closed before the process ends, whichever
 * way it ends, so that finalizers run and files are flushed; and only once. */
#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "bind/bind.h"
#include "bind/explore.h"
#include "bind/hazard/hazard.h"
#include "bind/outside.h"
#include "bind/source.h"
#include "bind/trace/trace.h"
#include "bind/hazard/waits.h"
#include "bind/wrap.h"
#include "collective/transport.h"
#include "graph/graph.h"
#include "host/call.h"
#include "host/coroutine.h"
#include "host/doctor.h"
#include "host/hint.h"
#include "host/interrupt.h"
#include "host/learn.h"
#include "host/library.h"
#include "host/module.h"
#include "host/options.h"
#include "host/output.h"
#include "host/sandbox.h"
#include "host/stack.h"
#include "host/unfinished.h"
#include "host/verify.h"
#include "host/threads.h"
#include "model/backend.h"
#include "repl/repl.h"

#if MR_HAVE_CUDA
#define BACKENDS "cuda, virtual"
#else
#define BACKENDS "virtual"
#endif

#define COMMAND_LINE "(command line)" /* the file name for lines of -e */

static const char prefix[] = "millrace: ";

typedef struct {
    mr_options options;
    int argc;
    char **argv;
} mr_session;

/* --- leaving ------------------------------------------------------------------------------------- */

static const mr_options *checked; /* --check is on: its verdict is due at the end */
static bool was_checked;          /* --check was given */
static int exit_status;           /* of the process, as it is now */
static bool refused;   /* by the checker: no failure of the script where --check was asked for */
static bool left_over; /* the result of MILLRACE_VERIFY_CLOSE */
static int explored = MR_EXIT_OK; /* the result of --explore, if the process itself succeeds */
static bool replay_differs;       /* the result of MILLRACE_VERIFY_REPLAY */
static bool waits_asked;          /* --waits: the verdicts are due at the end */

static void note_status(int called) { /* the result of mr_host_call */
    refused = called == MR_EXIT_HAZARD;
    exit_status = refused ? MR_EXIT_FAILED : called;
}

/* Closes the account of --check, once. Prints the summary. If the script succeeded, the exit status becomes that of
 * a hazard, or of a caught failure that still holds. */
static void give_verdict(lua_State *L) {
    bool asked = checked && checked->check;
    if (!checked) return;
    checked = NULL;
    fflush(stdout);
    mr_check_end end = mr_bind_check_end(L, asked);
    if (!asked || (exit_status != MR_EXIT_OK && !refused)) return;
    if (end == MR_CHECK_HAZARDS) exit_status = MR_EXIT_HAZARD;
    else if (end == MR_CHECK_LOST && exit_status == MR_EXIT_OK) exit_status = MR_EXIT_FAILED;
}

/* --waits: after a script that did well, which waits it needs. Not from inside a host function: those that are pending
 * have to run first. */
static void give_waits(lua_State *L) {
    bool asked = waits_asked, hazards = false;
    mr_buffer text = {0};
    waits_asked = false;
    mr_machine *machine = mr_bind_machine(L);
    if (!asked || !machine) return;
    if (machine->host_function.running || exit_status != MR_EXIT_OK) {
        mr_host_complain("--waits: no verdicts: the script %s, so not all of its work is known",
                         machine->host_function.running  ? "ended inside a host function"
                         : exit_status == MR_EXIT_FAILED ? "failed"
                                                         : "was ended before its end");
        return;
    }
    mr_status status = mr_bind_waits_end(L, &text, &hazards);
    if (text.data) mr_write_wrapped(stdout, text.data, text.size);
    mr_buffer_free(&text);
    if (status) mr_host_complain("%s", status->message);
    if (!status) exit_status = hazards ? MR_EXIT_HAZARD : MR_EXIT_OK;
    else exit_status = mr_code_is_interruption(status->code) ? MR_EXIT_INTERRUPTED : MR_EXIT_FAILED;
    mr_error_destroy(status);
}

/* Commands in a capture that the script has not ended are lost, and nothing else would say so. */
static void note_captures(lua_State *L) {
    mr_machine *machine = mr_bind_machine(L);
    if (exit_status != MR_EXIT_OK || !machine || machine->host_function.running) return;
    mr_status status = mr_capture_end_all(machine);
    if (status) mr_host_complain("%s", status->message);
    mr_error_destroy(status);
}

/* Called at the script's end. Under the checker, pending host functions run now, because a verdict must know their
 * accesses. Not after a failure, which has stopped the script. The verdict comes when the state is closed, after the
 * script's last finalizer. */
static void end_script(lua_State *L) {
    note_captures(L);
    bool did_well = exit_status == MR_EXIT_OK;
    give_waits(L);
    if (!checked) return;
    mr_bind_check_returned(L, give_verdict);
    if (!did_well) {
        if (!refused) mr_bind_check_stopped(L);
        return;
    }
    if (exit_status == MR_EXIT_INTERRUPTED) return;
    lua_pushcfunction(L, mr_bind_check_run_pending);
    int called = mr_host_call(L, 0, 0, prefix);
    if (called != MR_EXIT_OK) note_status(called); /* else it stays as --waits has set it */
}

/* With MILLRACE_VERIFY_CLOSE in the environment, which the tests set: whatever a script does, all objects are gone once
 * Lua and the machine are closed. */
static void note_left_over(const char *kind, size_t count) {
    left_over = true;
    mr_host_complain("%zu %s were not released at the end", count, kind);
}

/* --trace. The trace of a script that has ended normally includes work without a wait. */
static void save_trace(lua_State *L) {
    bool is_unchecked;
    bool waits = exit_status == MR_EXIT_OK && !mr_stop_reason();
    mr_status status = mr_bind_trace_end(L, waits, &is_unchecked);
    if (!status && is_unchecked && !was_checked)
        mr_host_complain("--trace: races are not marked; with --check they are");
    if (!status) return;
    mr_host_complain("--trace: %s", status->message);
    if (exit_status == MR_EXIT_OK) exit_status = MR_EXIT_FAILED;
    mr_error_destroy(status);
}

/* A kernel that failed, and that nothing has waited for. Asked when the program's record is closed: the script itself
 * has not waited. */
static void ask_machine(lua_State *L) {
    mr_machine *machine = mr_bind_machine(L);
    if (exit_status != MR_EXIT_OK || !machine || machine->host_function.running) return;
    lua_pushcfunction(L, mr_unfinished_ask);
    note_status(mr_host_call(L, 0, 0, prefix));
}

static bool closing;

static void close_state(lua_State *L) {
    closing = true;
    save_trace(L);
    replay_differs = mr_verify_end();
    ask_machine(L);
    mr_interrupt_uninstall();
    lua_close(L);
}

static int status_to_leave_with(void) {
    if (mr_interrupt_ended_by()) return MR_EXIT_BY_SIGNAL + mr_interrupt_ended_by();
    if (left_over || replay_differs) return left_over ? MR_EXIT_LEFT_OVER : MR_EXIT_REPLAY;
    return exit_status == MR_EXIT_OK ? explored : exit_status;
}

/* os.exit([code [, close]]): always closes the state. */
static int os_exit(lua_State *L) {
    refused = false;
    exit_status = lua_isboolean(L, 1) ? (lua_toboolean(L, 1) ? EXIT_SUCCESS : EXIT_FAILURE)
                                      : (int)luaL_optinteger(L, 1, EXIT_SUCCESS);
    mr_machine *machine = mr_bind_machine(L);
    if (!closing) end_script(L);
    /* In a finalizer the state is being closed already. In a host function the machine is at work below us: it
     * cannot be closed under its own feet. */
    if (closing || (machine && machine->host_function.running)) {
        save_trace(L);
        give_verdict(L);
    } else {
        close_state(L);
    }
    exit(mr_host_output_end(status_to_leave_with()));
}

/* --- opening --------------------------------------------------------------------------------------- */

/* A stream or tensor has a finalizer, so it survives the collection that finds it unused, and counts as
 * live then. With Lua's own pause of 200 the next collection would wait until as much again had been
 * allocated: garbage would grow with every round. */
static void tune_collector(lua_State *L) {
    lua_gc(L, LUA_GCINC, 150, 400, 0);
}

static void open_libraries(lua_State *L, const mr_options *options) {
    if (options->sandbox) {
        mr_sandbox_open(L);
    } else {
        luaL_openlibs(L);
        lua_getglobal(L, LUA_OSLIBNAME);
        lua_pushcfunction(L, os_exit);
        lua_setfield(L, -2, "exit");
        lua_pop(L, 1);
    }
    mr_coroutine_open(L);
    mr_strings_open(L);
    mr_tables_open(L);
    mr_host_output_open(options->sandbox ? options->limits.output : 0);
}

/* `mode` NULL: none. */
static mr_status open_check(lua_State *L, const mr_options *options, const char *mode) {
    if (!mode || strcmp(mode, "off") == 0) return MR_OK;
    mr_status status = mr_bind_check(L, mode, options->report_json);
    if (!status) checked = options;
    was_checked = checked != NULL;
    return status;
}

/* Where this process is one rank of several, on a device of its own. */
static void select_device(mr_machine *machine) {
    mr_started launch = mr_started_find();
    if (!launch.by || !machine->backend->simulator || machine->device_count != (int)launch.size)
        return;
    machine->first_device = machine->devices[launch.rank];
    mr_machine_set_device(machine, machine->first_device);
}

/* Opens the machine and sets the global `mr`; false after a complaint. */
static bool open_module(lua_State *L, mr_session *session) {
    mr_options *options = &session->options;
    const mr_backend *backend;
    if (options->sandbox) options->machine.memory_limit = options->limits.device_memory;
    mr_status status = mr_backend_select(&options->machine, &backend);
    if (!status) status = mr_bind_open(L, backend, &options->machine);
    if (!status) mr_bind_waits_predict(L, mr_backend_simulated());
    if (!status) status = open_check(L, options, options->check);
    if (!status && options->trace)
        status = mr_bind_trace_begin(L, options->trace, options->joined_trace);
    if (status) {
        note_status(mr_host_complain_open(status));
        return false;
    }
    mr_machine *machine = mr_bind_machine(L);
    mr_verify_begin(machine, &options->machine, mr_bind_hazard(L));
    mr_threads_open(L);
    select_device(machine);
    machine->hooks.interrupted = mr_stop_pending;
    machine->hooks.take_interrupt = mr_stop_take_interrupt;
    if (options->waits) {
        status = mr_bind_waits_begin(L);
        waits_asked = !status;
        if (status) {
            note_status(mr_host_complain_open(status));
            return false;
        }
    }
    if (getenv("MILLRACE_VERIFY_CLOSE")) machine->hooks.left_over = note_left_over;
    if (options->launch_blocking) mr_machine_set_launch_blocking(machine, true);
    if (options->sandbox) {
        machine->memory.limit = options->limits.device_memory;
        mr_sandbox_close_module(L);
    } else {
        mr_source_watch(L);
    }
    lua_setglobal(L, "mr");
    return true;
}

/* The global `arg`: the script at 0, its arguments from 1, the program and its options below. */
static void set_arguments(lua_State *L, const mr_session *session) {
    int script = session->options.script < session->argc ? session->options.script : 0;
    lua_createtable(L, session->argc - script, script + 1);
    for (int i = 0; i < session->argc; i++) {
        lua_pushstring(L, session->argv[i]);
        lua_rawseti(L, -2, i - script);
    }
    lua_setglobal(L, "arg");
}

/* Called before the script can fill the table of file names. */
static void keep_names(lua_State *L, const mr_session *session) {
    mr_source_keep_name(L, COMMAND_LINE);
    mr_source_keep_name(L, "stdin"); /* a script from standard input */
    if (session->options.script < session->argc)
        mr_source_keep_name(L, session->argv[session->options.script]);
    if (session->options.script < session->argc)
        mr_bind_check_script(L, session->argv[session->options.script]);
}

/* --- running --------------------------------------------------------------------------------------- */

/* False after a complaint: `path` cannot be read as a file. Asked before Lua opens it, which would tell
 * the reason less well, and of a directory only after it had opened it. */
static bool check_script(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || access(path, R_OK) != 0) {
        const char *reason = errno == ENOENT ? "no such file" : strerror(errno);
        mr_host_complain("cannot open %s: %s", path, reason);
        return false;
    }
    if (S_ISDIR(status.st_mode)) {
        mr_host_complain("cannot open %s: it is a directory, not a script", path);
        return false;
    }
    return true;
}

static const mr_explore_host explore_host = {.stop_after = mr_stop_after,
                                             .stop_place = mr_stop_place,
                                             .take_end = mr_stop_take_end,
                                             .end_again = mr_stop_end_again};

/* See mr_bind_explore_script. */
static int status_of_found(const char *found) {
    int by = mr_interrupt_ended_by();
    if (strcmp(found, "interrupted") == 0) return by ? MR_EXIT_BY_SIGNAL + by : MR_EXIT_INTERRUPTED;
    if (strcmp(found, "failed") == 0) return MR_EXIT_FAILED;
    if (strcmp(found, "found") == 0) return MR_EXIT_HAZARD;
    return MR_EXIT_OK;
}

/* --explore: the chunk and its arguments are on the stack. */
static int explore_chunk(lua_State *L, const char *bounds, int argument_count) {
    int chunk = lua_gettop(L) - argument_count;
    lua_pushcfunction(L, mr_bind_explore_script);
    lua_insert(L, chunk);
    lua_pushstring(L, bounds);
    lua_insert(L, chunk + 2);
    int status = mr_host_call(L, argument_count + 2, 1, prefix);
    if (status != MR_EXIT_OK) return status;
    status = status_of_found(lua_tostring(L, -1));
    lua_pop(L, 1);
    if (status != MR_EXIT_HAZARD) return status;
    explored = status;
    return MR_EXIT_OK;
}

/* `millrace learn`, with the arguments after the word. */
static int run_learn(lua_State *L, const mr_session *session) {
    int first = session->options.script + 1, count = session->argc - first;
    mr_learn_push(L);
    luaL_checkstack(L, count + 5, "too many arguments");
    for (int i = 0; i < count; i++) lua_pushstring(L, session->argv[first + i]);
    int status = mr_host_call(L, count, 1, prefix);
    return status == MR_EXIT_OK ? (int)lua_tointeger(L, -1) : status;
}

/* Pushes the arguments after the script, which are its `...`. Returns how many. */
static int push_arguments(lua_State *L, const mr_session *session) {
    int count = session->argc - session->options.script - 1;
    if (count < 0) count = 0;
    luaL_checkstack(L, count + 5, "too many arguments to script");
    for (int i = 0; i < count; i++)
        lua_pushstring(L, session->argv[session->options.script + 1 + i]);
    return count;
}

/* Pushes the chunk. `path` NULL: standard input. Another status than MR_EXIT_OK: it has complained. */
static int load_file(lua_State *L, const mr_session *session, const char *path) {
    if (path && !check_script(path)) return MR_EXIT_FAILED;
    if (path && !session->options.sandbox) mr_source_add_main(L, path);
    if (luaL_loadfilex(L, path, session->options.sandbox ? "t" : NULL) == LUA_OK) return MR_EXIT_OK;
    int status = mr_host_report(L, prefix);
    if (path) mr_host_hint(L, path, NULL);
    return status;
}

static int run_file(lua_State *L, const mr_session *session, const char *path) {
    int status = load_file(L, session, path);
    if (status != MR_EXIT_OK) return status;
    int count = push_arguments(L, session);
    if (session->options.explore) return explore_chunk(L, session->options.explore, count);
    status = mr_host_call(L, count, 0, prefix);
    if (status == MR_EXIT_FAILED && path) mr_host_hint(L, path, NULL);
    return status;
}

/* The code of an -e. */
static int load_code(lua_State *L, const char *code) {
    if (luaL_loadbufferx(L, code, strlen(code), "=" COMMAND_LINE, "t") == LUA_OK) return MR_EXIT_OK;
    int status = mr_host_report(L, prefix);
    mr_host_hint(L, COMMAND_LINE, code);
    return status;
}

static int run_code(lua_State *L, const mr_session *session) {
    int index = 1;
    while (index < session->options.options_end) {
        const char *code = mr_options_next_code(session->argv, &index);
        if (!code) continue;
        const char *bounds = session->options.explore;
        int status = load_code(L, code);
        if (status != MR_EXIT_OK) return status;
        status = bounds ? explore_chunk(L, bounds, 0) : mr_host_call(L, 0, 0, prefix);
        if (status == MR_EXIT_FAILED && !bounds) mr_host_hint(L, COMMAND_LINE, code);
        if (status != MR_EXIT_OK) return status;
    }
    return MR_EXIT_OK;
}

/* --- ranks ----------------------------------------------------------------------------------------- */

/* The list at the top gets a piece, with these fields; `path` or `name` is NULL. The loaded chunk on top of the list,
 * which has shown that it is well formed, is popped. */
static void add_piece(lua_State *L, const char *path, const char *name, const char *text) {
    lua_pop(L, 1);
    lua_createtable(L, 0, 2);
    lua_pushstring(L, path);
    lua_setfield(L, -2, "path");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, text);
    lua_setfield(L, -2, "text");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* The code that each rank runs: that of each -e, then the script. */
static int add_pieces(lua_State *L, const mr_session *session) {
    int index = 1, status = MR_EXIT_OK;
    while (index < session->options.options_end && status == MR_EXIT_OK) {
        const char *code = mr_options_next_code(session->argv, &index);
        if (!code) continue;
        status = load_code(L, code);
        if (status == MR_EXIT_OK) add_piece(L, NULL, "=" COMMAND_LINE, code);
    }
    if (status != MR_EXIT_OK || session->options.script >= session->argc) return status;
    const char *path = session->argv[session->options.script];
    status = load_file(L, session, path);
    if (status == MR_EXIT_OK) add_piece(L, path, NULL, NULL);
    return status;
}

/* --ranks */
static int run_ranks(lua_State *L, const mr_session *session) {
    const mr_options *options = &session->options;
    lua_getglobal(L, "require");
    lua_pushliteral(L, "millrace.spmd");
    lua_call(L, 1, 1);
    lua_newtable(L);
    int status = add_pieces(L, session);
    if (status != MR_EXIT_OK) return status;
    lua_pushinteger(L, options->ranks);
    lua_pushcfunction(L, mr_outside_tool_new_random);
    lua_call(L, 3, 1);
    int count = push_arguments(L, session);
    if (options->explore) return explore_chunk(L, options->explore, count);
    status = mr_host_call(L, count, 0, prefix);
    if (status == MR_EXIT_FAILED && options->script < session->argc)
        mr_host_hint(L, session->argv[options->script], NULL);
    return status;
}

static mr_repl_end repl_call(lua_State *L, int argument_count, int result_count,
                             mr_buffer *out_message) {
    switch (mr_host_try(L, argument_count, result_count, out_message)) {
    case MR_EXIT_OK: return MR_REPL_DONE;
    case MR_EXIT_INTERRUPTED: return MR_REPL_STOPPED;
    default: return MR_REPL_FAILED;
    }
}

static bool repl_interrupted(void) {
    bool interrupted = mr_stop_reason() != MR_STOP_NONE;
    mr_stop_clear();
    return interrupted;
}

static bool repl_ended(void) {
    return mr_interrupt_ended_by() != 0;
}

/* `script` NULL: none is to be stepped through. Returns the status to exit with. */
static int run_prompt(lua_State *L, const mr_options *options, const char *script) {
    mr_machine *machine = mr_bind_machine(L);
    mr_device *device = machine->first_device;
    char banner[512];
    snprintf(
        banner, sizeof banner,
        "millrace " MR_VERSION ", " LUA_RELEASE
        ", %d x %s. help() shows the first steps, Ctrl-D quits.\n%s",
        machine->device_count, device->properties.name,
        machine->backend->simulator
            ? "Its time stands still while you type: pending work goes on when you wait for it.\n"
            : "");
    const mr_repl_host host = {.banner = banner,
                               .is_sandboxed = options->sandbox,
                               .call = repl_call,
                               .interrupted = repl_interrupted,
                               .ended = repl_ended,
                               .push_lessons = options->sandbox ? NULL : mr_learn_push_tools,
                               .script = script,
                               .ranks = options->ranks};
    mr_bind_check_prompt(L);
    return mr_repl_run(L, &host) ? MR_EXIT_OK : MR_EXIT_FAILED;
}

/* `millrace script.lua --check` */
static void look_at_arguments(const mr_session *session) {
    const mr_options *options = &session->options;
    if (options->learn || options->script >= session->argc) return;
    const char *path = session->argv[options->script];
    const char *option = mr_options_misplaced(session->argc, session->argv, options->script);
    if (option && strcmp(path, "-") != 0) mr_host_hint_misplaced(path, option);
}

/* Everything that may raise, called protected: only a lack of memory raises here. */
static int run(lua_State *L) {
    mr_session *session = lua_touserdata(L, 1);
    const mr_options *options = &session->options;
    lua_settop(L, 0);
    if (options->sandbox) {
        mr_limits_install(L, &options->limits);
        mr_host_set_limits(&options->limits);
    }
    tune_collector(L);
    open_libraries(L, options);
    if (!open_module(L, session)) return 0;
    set_arguments(L, session);
    keep_names(L, session);
    look_at_arguments(session);

    bool has_script = options->script < session->argc;
    bool only_prompt = options->interactive || (!options->has_code && isatty(STDIN_FILENO));
    int status = MR_EXIT_OK;
    if (options->ranks && !options->step) status = run_ranks(L, session);
    else status = run_code(L, session);
    if (options->learn) {
        status = run_learn(L, session);
    } else if (options->ranks) {
        /* the script has run, or the prompt runs it */
    } else if (status == MR_EXIT_OK && has_script && !options->step) {
        const char *path = session->argv[options->script];
        status = run_file(L, session, strcmp(path, "-") == 0 ? NULL : path);
    } else if (status == MR_EXIT_OK && !options->has_code && !only_prompt) {
        status = run_file(L, session, NULL);
    }
    if (options->interactive || (!has_script && only_prompt)) {
        if (!options->check) mr_error_destroy(open_check(L, options, "warn"));
        status = run_prompt(L, options, options->step ? session->argv[options->script] : NULL);
    }
    note_status(status);
    if (status != MR_EXIT_OK) mr_bind_rank_failed(L, mr_host_last_text());
    end_script(L);
    return 0;
}

static int run_session(void *context) {
    mr_session *session = context;
    lua_State *L = luaL_newstate();
    if (!L) {
        mr_host_complain("not enough memory to start Lua");
        return MR_EXIT_FAILED;
    }
    mr_interrupt_install();
    mr_bind_explore_host = &explore_host;
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, session);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) note_status(mr_host_report(L, prefix));
    close_state(L);
    return status_to_leave_with();
}

int main(int argc, char **argv) {
    mr_session session = {.argc = argc, .argv = argv};
    if (argc < 1 || !mr_options_parse(argc, argv, &session.options)) return MR_EXIT_USAGE;
    switch (session.options.job) {
    case MR_JOB_HELP:
        mr_output_write(stdout, mr_options_help, strlen(mr_options_help));
        return mr_host_output_end(MR_EXIT_OK);
    case MR_JOB_VERSION:
        puts("millrace " MR_VERSION " (" LUA_RELEASE ", " BACKENDS ")");
        return mr_host_output_end(MR_EXIT_OK);
    case MR_JOB_DOCTOR: return mr_host_output_end(mr_doctor(&session.options.machine));
    case MR_JOB_RUN: break;
    }
    return mr_host_output_end(mr_stack_run(run_session, &session));
}
