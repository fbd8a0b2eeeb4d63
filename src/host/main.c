/* millrace, the program: opens Lua, the libraries, a machine and the module `mr`, then runs what the
 * command line says.
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

#include "bind/bind.h"
#include "bind/hazard.h"
#include "host/call.h"
#include "host/coroutine.h"
#include "host/doctor.h"
#include "host/interrupt.h"
#include "host/module.h"
#include "host/options.h"
#include "host/sandbox.h"
#include "repl/repl.h"

#if MR_HAVE_CUDA
#define BACKENDS "cuda, virtual"
#else
#define BACKENDS "virtual"
#endif

static const char prefix[] = "millrace: ";

typedef struct {
    mr_options options;
    int argc;
    char **argv;
    int exit_status;
} mr_session;

/* --- leaving ------------------------------------------------------------------------------------- */

static bool leaving;
static const mr_options *checked; /* --check is on: its verdict is due at the end */

/* Closes the account of --check, once: says the summary, and turns the exit status of a script that did
 * well into that of a hazard. */
static int end_check(lua_State *L, int exit_status) {
    bool asked = checked && checked->check;
    if (!checked) return exit_status;
    checked = NULL;
    fflush(stdout);
    uint64_t hazards = mr_bind_check_end(L, asked);
    return exit_status == MR_EXIT_OK && asked && hazards ? MR_EXIT_HAZARD : exit_status;
}

static void close_state(lua_State *L) {
    if (leaving) return; /* a finalizer calls os.exit */
    leaving = true;
    mr_interrupt_uninstall();
    lua_close(L);
}

/* os.exit([code [, close]]): always closes the state. */
static int os_exit(lua_State *L) {
    int status = lua_isboolean(L, 1) ? (lua_toboolean(L, 1) ? EXIT_SUCCESS : EXIT_FAILURE)
                                     : (int)luaL_optinteger(L, 1, EXIT_SUCCESS);
    if (!leaving) status = end_check(L, status);
    mr_machine *machine = mr_bind_machine(L);
    /* In a host function the machine is at work below us: it cannot be closed under its own feet. */
    if (!machine || !machine->in_host_function) close_state(L);
    exit(status);
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
}

/* `mode` NULL: none. */
static mr_status open_check(lua_State *L, const mr_options *options, const char *mode) {
    if (!mode || strcmp(mode, "off") == 0) return MR_OK;
    mr_status status = mr_bind_check(L, mode, options->report_json);
    if (!status) checked = options;
    return status;
}

/* Opens the machine and sets the global `mr`; false after a complaint. */
static bool open_module(lua_State *L, mr_session *session) {
    mr_options *options = &session->options;
    const mr_backend *backend;
    mr_status status = mr_backend_select(&options->machine, &backend);
    if (!status) status = mr_bind_open(L, backend, &options->machine);
    if (!status) status = open_check(L, options, options->check);
    if (status) {
        session->exit_status = mr_host_complain_open(status);
        return false;
    }
    mr_machine *machine = mr_bind_machine(L);
    machine->interrupted = mr_stop_pending;
    machine->launch_blocking = options->launch_blocking;
    if (options->sandbox) {
        machine->memory_limit = options->limits.device_memory;
        mr_sandbox_close_module(L);
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

/* `path` NULL: standard input. The arguments behind the script are its `...`. */
static int run_file(lua_State *L, const mr_session *session, const char *path) {
    if (path && !check_script(path)) return MR_EXIT_FAILED;
    if (luaL_loadfilex(L, path, session->options.sandbox ? "t" : NULL) != LUA_OK)
        return mr_host_report(L, prefix);
    int count = session->argc - session->options.script - 1;
    if (count < 0) count = 0;
    luaL_checkstack(L, count + 3, "too many arguments to script");
    for (int i = 0; i < count; i++)
        lua_pushstring(L, session->argv[session->options.script + 1 + i]);
    return mr_host_call(L, count, 0, prefix);
}

static int run_code(lua_State *L, const mr_session *session) {
    int index = 1;
    while (index < session->options.options_end) {
        const char *code = mr_options_next_code(session->argv, &index);
        if (!code) continue;
        if (luaL_loadbufferx(L, code, strlen(code), "=(command line)", "t") != LUA_OK)
            return mr_host_report(L, prefix);
        int status = mr_host_call(L, 0, 0, prefix);
        if (status != MR_EXIT_OK) return status;
    }
    return MR_EXIT_OK;
}

static bool repl_call(lua_State *L, int argument_count, int result_count) {
    return mr_host_call(L, argument_count, result_count, "") == MR_EXIT_OK;
}

static bool repl_interrupted(void) {
    bool interrupted = mr_stop_reason() != MR_STOP_NONE;
    mr_stop_clear();
    return interrupted;
}

static void run_prompt(lua_State *L) {
    mr_machine *machine = mr_bind_machine(L);
    mr_device *device = machine->first_device;
    char banner[256];
    snprintf(banner, sizeof banner,
             "millrace " MR_VERSION ", " LUA_RELEASE ", %d x %s. help() explains, Ctrl-D leaves.",
             machine->device_count, device->properties.name);
    const mr_repl_host host = {.banner = banner,
                               .call = repl_call,
                               .printed = mr_bind_was_printed,
                               .interrupted = repl_interrupted};
    mr_bind_check_prompt(L, MR_REPL_FILE);
    mr_repl_run(L, &host);
}

/* Everything that may raise, called protected: what raises here is that memory is out. */
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

    bool has_script = options->script < session->argc;
    bool only_prompt = options->interactive || (!options->has_code && isatty(STDIN_FILENO));
    session->exit_status = run_code(L, session);
    if (session->exit_status == MR_EXIT_OK && has_script) {
        const char *path = session->argv[options->script];
        session->exit_status = run_file(L, session, strcmp(path, "-") == 0 ? NULL : path);
    } else if (session->exit_status == MR_EXIT_OK && !options->has_code && !only_prompt) {
        session->exit_status = run_file(L, session, NULL);
    }
    if (options->interactive || (!has_script && only_prompt)) {
        if (!options->check) mr_error_destroy(open_check(L, options, "warn"));
        run_prompt(L);
        session->exit_status = MR_EXIT_OK;
    }
    /* Refused by the checker: that is no failure of the script where --check was asked for. */
    bool refused = session->exit_status == MR_EXIT_HAZARD;
    int verdict = end_check(L, refused ? MR_EXIT_OK : session->exit_status);
    session->exit_status = refused && verdict == MR_EXIT_OK ? MR_EXIT_FAILED : verdict;
    return 0;
}

static int run_session(mr_session *session) {
    lua_State *L = luaL_newstate();
    if (!L) {
        mr_host_complain("not enough memory to start Lua");
        return MR_EXIT_FAILED;
    }
    mr_interrupt_install();
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, session);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) session->exit_status = mr_host_report(L, prefix);
    close_state(L);
    return session->exit_status;
}

int main(int argc, char **argv) {
    mr_session session = {.argc = argc, .argv = argv};
    if (argc < 1 || !mr_options_parse(argc, argv, &session.options)) return MR_EXIT_USAGE;
    switch (session.options.command) {
    case MR_COMMAND_HELP: fputs(mr_options_help, stdout); return MR_EXIT_OK;
    case MR_COMMAND_VERSION:
        puts("millrace " MR_VERSION " (" LUA_RELEASE ", " BACKENDS ")");
        return MR_EXIT_OK;
    case MR_COMMAND_DOCTOR: return mr_doctor(&session.options.machine);
    case MR_COMMAND_RUN: break;
    }
    return run_session(&session);
}
