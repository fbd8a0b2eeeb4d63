/* `millrace learn`: see learn.h. The course, the grader and the dialogue are Lua. This file has what Lua lacks: child
 * processes with limits, and waiting for a line and for a file at the same time.
 *
 * Easiest to break: a solution is text of a stranger. It runs only in a child, under --sandbox. */
#include "host/learn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lauxlib.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/embedded.h"
#include "base/output.h"
#include "base/replace.h"
#include "bind/bind.h"
#include "bind/source.h"
#include "compile/child.h"
#include "host/interrupt.h"

#define LOOK_MS     150  /* between two looks at the watched file */
#define SLACK_MS    5000 /* of a child after its own limit */
#define MOST_OUTPUT ((size_t)1 << 20)

/* --- children --------------------------------------------------------------------------------------- */

static bool is_interrupted(void *context) {
    (void)context;
    return mr_stop_reason() != MR_STOP_NONE;
}

static int drop_buffer(lua_State *L) {
    mr_buffer_free(lua_touserdata(L, 1));
    return 0;
}

/* run(code, seconds, instructions) -> the output of the code, whether it was too late. Runs in a child under --sandbox,
 * with limits that are small: an exercise is small. The count of instructions ends a loop, and is the same on a slow
 * machine. */
static int run(lua_State *L) {
    char seconds[24], instructions[24];
    int most = (int)luaL_checkinteger(L, 2);
    snprintf(seconds, sizeof seconds, "%d", most);
    snprintf(instructions, sizeof instructions, "%" PRId64, (int64_t)luaL_checkinteger(L, 3));
    const char *const arguments[] = {"/proc/self/exe",
                                     "--sandbox",
                                     "--device",
                                     MR_LEARN_DEVICE,
                                     "--check=off",
                                     "--memory",
                                     "64",
                                     "--device-memory",
                                     "64",
                                     "--instructions",
                                     instructions,
                                     "--time",
                                     seconds,
                                     "--output",
                                     "65536",
                                     "-e",
                                     luaL_checkstring(L, 1),
                                     NULL};
    mr_child_end end;
    mr_child child = {.arguments = arguments,
                      .time_limit_ms = most * 1000 + SLACK_MS,
                      .most_output = MOST_OUTPUT,
                      .interrupted = is_interrupted};
    mr_buffer *output = mr_push_owner(L, sizeof *output, drop_buffer);
    mr_status status = mr_child_run(&child, &end);
    *output = end.output;
    if (status) {
        lua_pushstring(L, status->message);
        mr_error_destroy(status);
        return lua_error(L);
    }
    lua_pushlstring(L, output->data ? output->data : "", output->size);
    lua_pushboolean(L, end.is_late || end.signal != 0);
    return 2;
}

/* --- files -------------------------------------------------------------------------------------------- */

static int close_folder(lua_State *L) {
    DIR **folder = lua_touserdata(L, 1);
    if (*folder) closedir(*folder);
    *folder = NULL;
    return 0;
}

/* list(folder) -> the names in it, sorted; nil: it cannot be read as a folder */
static int list(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    DIR **folder = mr_push_owner(L, sizeof(DIR *), close_folder);
    *folder = opendir(path);
    if (!*folder) return 0;
    lua_newtable(L);
    const struct dirent *entry;
    for (int i = 1; (entry = readdir(*folder));) {
        if (entry->d_name[0] == '.') continue;
        lua_pushstring(L, entry->d_name);
        lua_rawseti(L, -2, i++);
    }
    return 1;
}

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "is a folder, not a file";
    if (S_ISFIFO(mode)) return "is a pipe, not a file";
    if (S_ISSOCK(mode)) return "is a socket, not a file";
    if (S_ISLNK(mode)) return "is a link, which is not followed";
    return "is a device, not a file";
}

/* Why `path` cannot be opened. */
static const char *why_closed(const char *path) {
    int error = errno;
    struct stat facts;
    if (lstat(path, &facts) != 0) return "is not there";
    if (error == ELOOP || S_ISSOCK(facts.st_mode)) return kind_of(facts.st_mode);
    if (error == ENOENT) return "is a link to a file that is not there";
    return error == EACCES ? "may not be read" : "cannot be read";
}

static int refuse(lua_State *L, int file, const char *why) {
    if (file >= 0) close(file);
    lua_pushnil(L);
    lua_pushstring(L, why);
    return 2;
}

/* The size, at most `most`; -1: an error. */
static ssize_t read_whole(int file, char *bytes, size_t most) {
    size_t size = 0;
    while (size < most) {
        ssize_t more = read(file, bytes + size, most - size);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return -1;
        if (more == 0) break;
        size += (size_t)more;
    }
    return (ssize_t)size;
}

/* read(path, most [, follows]) -> the text of a regular file; or nil and why not, as the end of a sentence. Opening a
 * pipe does not wait for its writer. Without `follows` a link does not count as a file. */
static int read_regular(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    size_t most = (size_t)luaL_checkinteger(L, 2);
    struct stat facts = {0};
    int mode = O_RDONLY | O_NONBLOCK | O_CLOEXEC | (lua_toboolean(L, 3) ? 0 : O_NOFOLLOW);
    int file = open(path, mode);
    if (file < 0 || fstat(file, &facts) != 0) return refuse(L, file, why_closed(path));
    if (!S_ISREG(facts.st_mode)) return refuse(L, file, kind_of(facts.st_mode));
    if (facts.st_size < 0 || (size_t)facts.st_size > most) {
        lua_pushnil(L);
        lua_pushfstring(L, "is too long: it has more than %d bytes", (int)most);
        close(file);
        return 2;
    }
    luaL_Buffer text;
    size_t there = (size_t)facts.st_size;
    ssize_t size = read_whole(file, luaL_buffinitsize(L, &text, there + 1), there);
    if (size < 0) return refuse(L, file, "cannot be read");
    close(file);
    luaL_pushresultsize(&text, (size_t)size);
    return 1;
}

/* make_folders(path) -> whether the folder is there now, with those above it */
static int make_folders(lua_State *L) {
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    for (const char *c = luaL_checkstring(L, 1);; c++) {
        if ((*c == '/' || !*c) && c != lua_tostring(L, 1)) {
            luaL_addchar(&text, '\0');
            mkdir(luaL_buffaddr(&text), 0777);
            luaL_buffsub(&text, 1);
        }
        if (!*c) break;
        luaL_addchar(&text, *c);
    }
    struct stat status;
    lua_pushboolean(L, stat(lua_tostring(L, 1), &status) == 0 && S_ISDIR(status.st_mode));
    return 1;
}

/* absolute(path) -> the path without links; nil: there is no such file */
static int absolute(lua_State *L) {
    char *path = realpath(luaL_checkstring(L, 1), NULL);
    lua_pushstring(L, path);
    free(path);
    return 1;
}

/* append(path, text) -> whether it was written. In one call, so that two sessions at a time lose nothing. */
static int append(lua_State *L) {
    size_t size;
    const char *path = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &size);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    bool is_written = file >= 0 && write(file, text, size) == (ssize_t)size;
    if (file >= 0) is_written = close(file) == 0 && is_written;
    lua_pushboolean(L, is_written);
    return 1;
}

typedef struct {
    const char *data;
    size_t size;
} piece;

static mr_status write_piece(void *context, FILE *file) {
    const piece *text = context;
    fwrite(text->data, 1, text->size, file);
    return MR_OK;
}

/* replace(path, text) -> nil, or what failed. The file appears as a whole or not at all. */
static int replace(lua_State *L) {
    piece text;
    const char *path = luaL_checkstring(L, 1);
    text.data = luaL_checklstring(L, 2, &text.size);
    mr_status status = mr_replace_file(path, write_piece, &text);
    if (!status) return 0;
    lua_pushstring(L, status->message);
    mr_error_destroy(status);
    return 1;
}

/* embedded() -> a list of {name =, text =}: the lessons in the binary, in order */
static int embedded(lua_State *L) {
    static const char folder[] = "lua/millrace/lessons/";
    lua_newtable(L);
    int count = 0;
    for (const mr_embedded *file = mr_embedded_files; file->name; file++) {
        if (strncmp(file->name, folder, sizeof folder - 1) != 0) continue;
        lua_createtable(L, 0, 2);
        lua_pushstring(L, file->name + sizeof folder - 1);
        lua_setfield(L, -2, "name");
        lua_pushlstring(L, (const char *)file->data, file->size);
        lua_setfield(L, -2, "text");
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

/* --- waiting ------------------------------------------------------------------------------------------ */

typedef struct {
    bool is_there;
    struct timespec time;
    off_t size;
    ino_t number; /* an editor may save by putting another file in this place */
} look;

static look look_at(const char *path) {
    struct stat status;
    look seen = {0};
    if (path && stat(path, &status) == 0)
        seen = (look){true, status.st_mtim, status.st_size, status.st_ino};
    return seen;
}

static bool differs(const look *a, const look *b) {
    return a->is_there != b->is_there || a->size != b->size || a->number != b->number ||
           a->time.tv_sec != b->time.tv_sec || a->time.tv_nsec != b->time.tv_nsec;
}

static mr_buffer input; /* the input read after the last line */
static bool input_ended;

/* Pushes the next whole line of the input; at the end also one without an end of line. */
static bool push_line(lua_State *L) {
    const char *end = input.size ? memchr(input.data, '\n', input.size) : NULL;
    if (!end && !(input_ended && input.size)) return false;
    size_t length = end ? (size_t)(end - input.data) : input.size, used = length + (end ? 1 : 0);
    lua_pushlstring(L, input.data, length);
    memmove(input.data, input.data + used, input.size - used);
    input.size -= used;
    return true;
}

static void read_more(void) {
    char bytes[4096];
    ssize_t size = read(STDIN_FILENO, bytes, sizeof bytes);
    if (size > 0) mr_buffer_add(&input, bytes, (size_t)size);
    else if (size == 0 || (errno != EINTR && errno != EAGAIN)) input_ended = true;
}

static look watched; /* as the file was when it was last told about */

/* watch(path): from now on `wait` reports when the file differs from its present state */
static int watch(lua_State *L) {
    watched = look_at(luaL_checkstring(L, 1));
    return 0;
}

/* wait([path]) -> "line" and a line of standard input, "saved" if the watched file differs from before, or
 * "end". A file counts as saved when it has stayed the same between two looks: its writer may write it in parts. */
static int wait_for(lua_State *L) {
    const char *path = luaL_optstring(L, 1, NULL);
    look last = look_at(path);
    mr_output_flush(stdout);
    while (mr_stop_reason() == MR_STOP_NONE) {
        lua_pushliteral(L, "line");
        if (push_line(L)) return 2;
        lua_pop(L, 1);
        if (input_ended) break;
        struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&ready, 1, path ? LOOK_MS : -1) > 0) read_more();
        look now = look_at(path);
        if (path && now.is_there && !differs(&now, &last) && differs(&now, &watched)) {
            watched = now;
            lua_pushliteral(L, "saved");
            return 1;
        }
        last = now;
    }
    lua_pushliteral(L, "end");
    return 1;
}

/* remember(name, text): reports read the text of the chunk of that name as they read a file, for the names in a fix.
 * The one before is forgotten. */
static int remember(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    mr_source_set_entry(L, 1, name);
    return 0;
}

/* --- the terminal --------------------------------------------------------------------------------------- */

/* is_terminal() -> whether a person reads and types at a terminal */
static int is_terminal(lua_State *L) {
    lua_pushboolean(L, isatty(STDIN_FILENO) && isatty(STDOUT_FILENO));
    return 1;
}

/* bold(text) -> the text with the codes for bold, where they are shown */
static int bold(lua_State *L) {
    luaL_checkstring(L, 1);
    if (mr_output_has_colour(stdout)) lua_pushfstring(L, "\033[1m%s\033[0m", lua_tostring(L, 1));
    return 1;
}

static const luaL_Reg tools[] = {{"run", run},           {"list", list},
                                 {"read", read_regular}, {"make_folders", make_folders},
                                 {"absolute", absolute}, {"append", append},
                                 {"replace", replace},   {"embedded", embedded},
                                 {"remember", remember}, {"watch", watch},
                                 {"wait", wait_for},     {"is_terminal", is_terminal},
                                 {"bold", bold},         {NULL, NULL}};

void mr_learn_push_tools(lua_State *L) {
    luaL_newlib(L, tools);
}

/* Upvalue: the function of the Lua module, which takes the tools first. Frees unused input. */
static int learn(lua_State *L) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    mr_learn_push_tools(L);
    lua_insert(L, 2);
    lua_call(L, lua_gettop(L) - 1, 1);
    mr_buffer_free(&input);
    return 1;
}

void mr_learn_push(lua_State *L) {
    lua_getglobal(L, "require");
    lua_pushliteral(L, "millrace.learn");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "main");
    lua_remove(L, -2);
    lua_pushcclosure(L, learn, 1);
}
