/* Tools of the prompt's Lua modules: see tools.h. */
#include "repl/tools.h"

#include <dirent.h>
#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/columns.h"
#include "base/embedded.h"
#include "base/output.h"
#include "bind/bind.h"
#include "bind/foreign.h"
#include "bind/hazard/hazard.h"
#include "bind/module/help.h"
#include "bind/nearest.h"
#include "bind/outside.h"
#include "bind/source.h"
#include "bind/tensor/tensor.h"
#include "bind/module/topics.h"
#include "bind/wrap.h"
#include "model/backend.h"
#include "model/simulator.h"
#include "repl/frame.h"
#include "repl/line.h"
#include "repl/pager.h"
#include "repl/shown.h"
#include "repl/terminal.h"
#include "repl/timeline.h"
#include "script/script.h"

static const mr_repl_host *host_of(lua_State *L) {
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* --- modules ------------------------------------------------------------------------------------------- */

/* require(name) -> what lua/millrace/prompt/NAME.lua returned; nil: there is no such file */
static int require(lua_State *L) {
    char file[128];
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    lua_getfield(L, lua_upvalueindex(1), "modules"); /* 2 */
    if (lua_getfield(L, 2, name) != LUA_TNIL) return 1;
    snprintf(file, sizeof file, "lua/millrace/prompt/%s.lua", name);
    const mr_embedded *module = mr_embedded_find(file);
    if (!module) return 1;
    lua_pushfstring(L, "=millrace.prompt.%s", name);
    if (luaL_loadbufferx(L, (const char *)module->data, module->size, lua_tostring(L, -1), "t") !=
        LUA_OK)
        return lua_error(L);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_call(L, 2, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
    return 1;
}

void mr_tools_require(lua_State *L, int tools, const char *name) {
    lua_getfield(L, tools, "require");
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
}

/* --- running ------------------------------------------------------------------------------------------- */

/* load(text, name) -> function, or nil and a message; "@x.lua": it is the text of that file. Text only: the virtual
 * machine trusts bytecode. */
static int load(lua_State *L) {
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size), *name = luaL_checkstring(L, 2);
    lua_pushfstring(L, "%s%s", name[0] == '@' ? "" : "=", name);
    if (luaL_loadbufferx(L, text, size, lua_tostring(L, -1), "t") == LUA_OK) return 1;
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

/* call(f, ...) -> true and the results, or false, a message, and whether it was stopped. Code of the user's runs only
 * in here: Ctrl-C and limits stop it. */
static int call(lua_State *L) {
    luaL_checkany(L, 1);
    mr_buffer *message = mr_push_buffer(L);
    lua_insert(L, 1);
    mr_repl_end end = host_of(L)->call(L, lua_gettop(L) - 2, LUA_MULTRET, message);
    if (end == MR_REPL_DONE) {
        lua_pushboolean(L, true);
        lua_replace(L, 1);
        return lua_gettop(L);
    }
    lua_settop(L, 1);
    mr_buffer_to_text(L);
    lua_pushboolean(L, false);
    lua_insert(L, 1);
    lua_pushboolean(L, end == MR_REPL_STOPPED);
    return 3;
}

/* --- texts --------------------------------------------------------------------------------------------- */

static void push_locals(lua_State *L, const mr_script *script, bool *out_close) {
    size_t next = 0;
    mr_script_local local;
    lua_newtable(L);
    for (int i = 1; mr_script_next_local(script, &next, &local); i++) {
        *out_close |= local.is_close;
        lua_createtable(L, 0, 2);
        lua_pushlstring(L, local.name, (size_t)local.length);
        lua_setfield(L, -2, "name");
        lua_pushboolean(L, local.is_const);
        lua_setfield(L, -2, "is_const");
        lua_rawseti(L, -2, i);
    }
}

static void push_values(lua_State *L, const mr_script *script) {
    size_t next = 0;
    long from, to;
    long long entry;
    lua_newtable(L);
    for (int i = 1; mr_script_next_value(script, &next, &from, &to, &entry); i++) {
        lua_createtable(L, 0, 3);
        lua_pushinteger(L, from);
        lua_setfield(L, -2, "from");
        lua_pushinteger(L, to);
        lua_setfield(L, -2, "to");
        lua_pushinteger(L, entry);
        lua_setfield(L, -2, "entry");
        lua_rawseti(L, -2, i);
    }
}

static void set_boolean(lua_State *L, const char *key, bool value) {
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

static void set_place(lua_State *L, const char *key, long place) {
    if (place < 0) return;
    lua_pushinteger(L, place);
    lua_setfield(L, -2, key);
}

/* The userdata that keeps a script while Lua values are made of it. */
static int drop_scripts(lua_State *L) {
    mr_scripts_free(lua_touserdata(L, 1));
    return 0;
}

/* outline(text) -> what the main chunk declares: {locals = {{name =, is_const =}, ...}, has_close =, return_at =,
 * quiet_at =, ends_at =, values = {{from =, to =, entry =}, ...}, is_empty =}; nil: it cannot be read. Three fields
 * count the bytes in front of something, and may be nil. return_at: `return`; quiet_at: a `;` at the end; ends_at: that
 * `;`, or a comment at the end */
static int outline(lua_State *L) {
    size_t size;
    bool has_close = false;
    const char *text = luaL_checklstring(L, 1, &size);
    mr_scripts *scripts = mr_push_owner(L, sizeof *scripts, drop_scripts);
    mr_script *script = strlen(text) == size ? mr_script_of(scripts, MR_SOURCE_ENTRY, text) : NULL;
    if (!script) return 0;
    mr_script_free(script); /* `scripts` keeps it */
    lua_createtable(L, 0, 6);
    push_locals(L, script, &has_close);
    lua_setfield(L, -2, "locals");
    push_values(L, script);
    lua_setfield(L, -2, "values");
    set_boolean(L, "has_close", has_close);
    set_boolean(L, "is_empty", mr_script_is_empty(script));
    set_place(L, "return_at", mr_script_return_at(script));
    set_place(L, "quiet_at", mr_script_quiet_at(script));
    set_place(L, "ends_at", mr_script_ends_at(script));
    return 1;
}

/* set_entry(number, text [, file]): reports read the lines of that entry there */
static int set_entry(lua_State *L) {
    int number = (int)luaL_checkinteger(L, 1);
    const char *file = luaL_optstring(L, 3, NULL);
    luaL_checkstring(L, 2);
    lua_pushvalue(L, 2);
    mr_source_set_entry(L, number, file);
    return 0;
}

/* set_locals(table): see mr_source_set_locals */
static int set_locals(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    mr_source_set_locals(L);
    return 0;
}

/* --- output -------------------------------------------------------------------------------------------- */

/* write(text): a terminal shows whole words */
static int write_out(lua_State *L) {
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    mr_write_wrapped(stdout, text, size);
    mr_output_flush(stdout);
    return 0;
}

/* prefill(text): the beginning of the next entry, at a terminal */
static int prefill(lua_State *L) {
    mr_line_prefill(luaL_checkstring(L, 1));
    return 0;
}

/* set_shown("colours" or "hints" or "live", boolean): switches a part of the display while an entry is typed */
static int set_shown(lua_State *L) {
    static const char *const names[] = {"colours", "hints", "live", NULL};
    mr_line_set_shown((mr_line_part)luaL_checkoption(L, 1, NULL, names), lua_toboolean(L, 2));
    return 0;
}

/* read(prompt) -> text: an entry; false: Ctrl-C came; nil: the input has ended */
static int read_entry(lua_State *L) {
    const char *prompt = luaL_checkstring(L, 1);
    mr_buffer *line = mr_push_buffer(L);
    switch (mr_line_read(prompt, line)) {
    case MR_LINE_READ: mr_buffer_to_text(L); return 1;
    case MR_LINE_INTERRUPTED: lua_pushboolean(L, false); return 1;
    case MR_LINE_END: break;
    }
    lua_pushnil(L);
    return 1;
}

/* make_room(): clears the typed text from the screen before other output; it is drawn again later */
static int make_room(lua_State *L) {
    (void)L;
    mr_frame_erase();
    return 0;
}

/* is_terminal() -> whether a person reads and types at a terminal */
static int is_terminal(lua_State *L) {
    lua_pushboolean(L, mr_line_is_at_terminal());
    return 1;
}

/* width() -> columns of the terminal, or what COLUMNS says */
static int width(lua_State *L) {
    lua_pushinteger(L, mr_page_width());
    return 1;
}

/* complain(text): a line on standard error; nothing for an empty text */
static int complain(lua_State *L) {
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    if (!size) return 0;
    mr_output_flush(stdout);
    mr_write_wrapped(stderr, text, size);
    mr_output_write(stderr, "\n", 1);
    return 0;
}

/* --- files --------------------------------------------------------------------------------------------- */

static int close_folder(lua_State *L) {
    DIR **folder = lua_touserdata(L, 1);
    if (*folder) closedir(*folder);
    *folder = NULL;
    return 0;
}

/* list_files(folder) -> names, those of folders with a slash; none under --sandbox, or if it cannot be read */
static int list_files(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    lua_newtable(L);
    if (host_of(L)->is_sandboxed) return 1;
    DIR **folder = mr_push_owner(L, sizeof(DIR *), close_folder);
    *folder = opendir(path);
    const struct dirent *entry;
    for (int i = 1; *folder && (entry = readdir(*folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        lua_pushfstring(L, "%s%s", entry->d_name, entry->d_type == DT_DIR ? "/" : "");
        lua_rawseti(L, -3, i++);
    }
    lua_settop(L, 2);
    return 1;
}

/* read_file(path) -> text; nil and why: it cannot be read, or this is a sandbox */
static int read_file(lua_State *L) {
    const mr_repl_host *host = host_of(L);
    const char *path = luaL_checkstring(L, 1);
    struct stat status;
    if (host->is_sandboxed) {
        lua_pushnil(L);
        lua_pushliteral(L, "there are no files in a sandbox");
        return 2;
    }
    bool is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    FILE *file = is_folder ? NULL : fopen(path, "rb");
    char piece[4096];
    size_t size;
    if (!file) {
        lua_pushnil(L);
        lua_pushstring(L, is_folder         ? "it is a directory"
                          : errno == ENOENT ? "no such file"
                                            : strerror(errno));
        return 2;
    }
    mr_buffer *text = mr_push_buffer(L);
    while ((size = fread(piece, 1, sizeof piece, file)) > 0) mr_buffer_add(text, piece, size);
    fclose(file);
    mr_buffer_to_text(L);
    return 1;
}

/* getenv(name) -> text, or nil */
static int get_environment(lua_State *L) {
    lua_pushstring(L, getenv(luaL_checkstring(L, 1)));
    return 1;
}

/* --- what is known of a value -------------------------------------------------------------------------- */

/* usage(f) -> the usage line of a function of millrace; nil: it is not one */
static int usage(lua_State *L) {
    luaL_checkany(L, 1);
    mr_help_push_usage(L, 1);
    return 1;
}

/* topics() -> what help knows besides names of functions */
static int topics(lua_State *L) {
    mr_topics_push_known(L);
    return 1;
}

/* set_pager(f): help calls f(text) with its pages */
static int set_pager(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    mr_help_set_pager(L);
    return 0;
}

/* page(text): through $PAGER, if it is longer than the terminal */
static int page(lua_State *L) {
    bool may_page = mr_line_is_at_terminal() && !host_of(L)->is_sandboxed;
    int columns = mr_wrap_width(stdout);
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    lua_settop(L, 1);
    if (columns) {
        mr_wrap_lines(mr_push_buffer(L), text, size, columns);
        mr_buffer_to_text(L);
        text = lua_tolstring(L, 2, &size);
    }
    if (may_page && mr_pager_show(text, size)) return 0;
    mr_output_write(stdout, text, size);
    mr_output_flush(stdout);
    return 0;
}

/* rows() -> of the terminal; nil: there is none */
static int rows(lua_State *L) {
    int count = mr_line_is_at_terminal() ? mr_pager_rows() : 0;
    if (count) lua_pushinteger(L, count);
    else lua_pushnil(L);
    return 1;
}

/* columns(text) -> how many it takes */
static int columns_of(lua_State *L) {
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    lua_pushinteger(L, (lua_Integer)mr_columns_of(text, size));
    return 1;
}

/* uses() -> name = how often the examples have it */
static int uses(lua_State *L) {
    mr_topics_push_uses(L);
    return 1;
}

/* with_prefix(table, prefix) -> a table of the raw fields whose names begin so. There may be many that do not. */
static int with_prefix(lua_State *L) {
    size_t size, length;
    luaL_checktype(L, 1, LUA_TTABLE);
    const char *prefix = luaL_checklstring(L, 2, &size);
    lua_settop(L, 2);
    lua_newtable(L); /* 3 */
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        const char *name = lua_type(L, 4) == LUA_TSTRING ? lua_tolstring(L, 4, &length) : NULL;
        if (!name || length < size || memcmp(name, prefix, size) != 0) continue;
        lua_pushvalue(L, 4);
        lua_pushvalue(L, 5);
        lua_rawset(L, 3);
    }
    return 1;
}

/* advice(owner, name) -> the replacement for a name of PyTorch or CUDA; nil: it is not one */
static int advice(lua_State *L) {
    const char *owner = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 2);
    lua_pushstring(L, mr_foreign_advice(owner, name));
    return 1;
}

/* nearest(name, names) -> the one that was probably meant, or nil */
static int nearest(lua_State *L) {
    mr_nearest search;
    mr_nearest_begin(&search, luaL_checkstring(L, 1));
    luaL_checktype(L, 2, LUA_TTABLE);
    for (lua_Integer i = 1; lua_rawgeti(L, 2, i) == LUA_TSTRING; i++, lua_pop(L, 1))
        mr_nearest_offer(&search, lua_tostring(L, -1));
    lua_pushstring(L, mr_nearest_found(&search));
    return 1;
}

/* owner(table) -> "mr", "mr.hazard"; nil: it is not a table of functions of millrace */
static int owner(lua_State *L) {
    luaL_checkany(L, 1);
    lua_pushstring(L, mr_help_owner(L, 1));
    return 1;
}

/* class_of("stream") -> the metatable of its objects; nil: there are none of that name */
static int class_of(lua_State *L) {
    mr_help_push_class(L, luaL_checkstring(L, 1));
    return 1;
}

/* is_class(value) -> whether it is such a metatable */
static int is_class(lua_State *L) {
    static const char before[] = "millrace.";
    const char *name = NULL;
    lua_settop(L, 1);
    lua_pushliteral(L, "__name");
    if (lua_istable(L, 1) && lua_rawget(L, 1) == LUA_TSTRING) name = lua_tostring(L, 2);
    bool is_ours = name && strncmp(name, before, sizeof before - 1) == 0;
    if (is_ours) mr_help_push_class(L, name + sizeof before - 1);
    lua_pushboolean(L, is_ours && lua_rawequal(L, 1, -1));
    return 1;
}

/* getmetatable(value): without asking __metatable */
static int metatable_of(lua_State *L) {
    luaL_checkany(L, 1);
    if (!lua_getmetatable(L, 1)) lua_pushnil(L);
    return 1;
}

/* style(name, text, in_prompt) -> the text with the codes of that style, where they are shown: "bold", "dim". In a
 * prompt they are marked for the editor, which has to know how wide it is. */
static int style(lua_State *L) {
    static const char *const names[] = {"bold", "dim", NULL};
    static const char *const codes[] = {"\033[1m", "\033[2m"}, off[] = "\033[0m";
    const char *code = codes[luaL_checkoption(L, 1, NULL, names)];
    bool marked = lua_toboolean(L, 3);
    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    if (!mr_line_shows_colours()) return 1;
    lua_pushfstring(L, marked ? "\001%s\002%s\001%s\002" : "%s%s%s", code, lua_tostring(L, 2), off);
    return 1;
}

/* --- the machine --------------------------------------------------------------------------------------- */

/* A free is not an operation of the script: the collector may make it at any time. */
static void count_one(void *context, const mr_pending *pending) {
    size_t *count = context;
    *count += pending->command->kind != MR_COMMAND_FREE;
}

/* state() -> is_default, pending, ms, reports, epoch. is_default: operations go to the default stream of device 0.
 * pending: their number, without frees; 0 on a GPU, which does not tell. ms: the host's clock. reports: those of the
 * hazard checker. epoch: another number after each mr.reset(). */
static int state(lua_State *L) {
    mr_machine *machine = mr_bind_machine(L);
    const mr_device *device = machine->current_device;
    size_t pending = 0;
    if (machine->backend->simulator) mr_machine_pending(machine, count_one, &pending);
    mr_hazard_totals totals = mr_hazard_get_totals(mr_bind_hazard(L), false);
    lua_pushboolean(L, device == machine->first_device && device->current == device->legacy);
    lua_pushinteger(L, (lua_Integer)pending);
    lua_pushnumber(L, (lua_Number)mr_machine_time(machine) * 1e-6);
    lua_pushinteger(L, (lua_Integer)totals.reports);
    lua_pushinteger(L, (lua_Integer)machine->epoch);
    return 5;
}

/* is_busy(stream) -> whether something is pending in it, on hardware; nil and why not: the device has failed. No
 * observer is told, so the checker takes it for no query. */
static int is_busy(lua_State *L) {
    mr_machine *machine = mr_bind_machine(L);
    mr_stream *stream = mr_check_stream(L, 1);
    bool is_done = true;
    machine->hooks.context = L;
    mr_status status = mr_stream_usable(stream);
    bool is_there = !status && !machine->lost;
    mr_error_destroy(status); /* it is of before a reset */
    status = is_there ? machine->backend->stream_query(stream, &is_done) : MR_OK;
    if (!status) {
        lua_pushboolean(L, !is_done);
        return 1;
    }
    lua_pushnil(L);
    lua_pushstring(L, status->message);
    mr_error_destroy(status);
    return 2;
}

/* clock() -> the host's clock in ms */
static int host_clock(lua_State *L) {
    lua_pushnumber(L, (lua_Number)mr_machine_time(mr_bind_machine(L)) * 1e-6);
    return 1;
}

/* --- the table ----------------------------------------------------------------------------------------- */

static const luaL_Reg with_host[] = {{"call", call},
                                     {"page", page},
                                     {"list_files", list_files},
                                     {"read_file", read_file},
                                     {NULL, NULL}};
static const luaL_Reg with_table[] = {{"require", require}, {NULL, NULL}};
static const luaL_Reg plain[] = {{"load", load},
                                 {"new_random", mr_outside_tool_new_random},

                                 {"outline", outline},
                                 {"set_entry", set_entry},
                                 {"set_locals", set_locals},
                                 {"write", write_out},
                                 {"getenv", get_environment},
                                 {"prefill", prefill},
                                 {"set_shown", set_shown},
                                 {"make_room", make_room},
                                 {"read", read_entry},
                                 {"is_terminal", is_terminal},
                                 {"width", width},
                                 {"rows", rows},
                                 {"columns", columns_of},
                                 {"wrap", mr_wrap_call},
                                 {"wrap_lines", mr_wrap_lines_call},
                                 {"uses", uses},
                                 {"usage", usage},
                                 {"style", style},
                                 {"clock", host_clock},
                                 {"advice", advice},
                                 {"with_prefix", with_prefix},
                                 {"nearest", nearest},
                                 {"topics", topics},
                                 {"set_pager", set_pager},
                                 {"owner", owner},
                                 {"getmetatable", metatable_of},
                                 {"class_of", class_of},
                                 {"is_class", is_class},
                                 {"complain", complain},
                                 {"state", state},
                                 {"is_busy", is_busy},
                                 {"terminal", mr_repl_terminal},
                                 {NULL, NULL}};
static const char *const from_debug[] = {"getupvalue", "setupvalue", "upvaluejoin", "getinfo",
                                         "getlocal",   "sethook",    NULL};

void mr_tools_push(lua_State *L, const mr_repl_host *host) {
    lua_newtable(L);
    luaL_setfuncs(L, plain, 0);
    lua_pushlightuserdata(L, (void *)host);
    luaL_setfuncs(L, with_host, 1);
    lua_pushvalue(L, -1);
    luaL_setfuncs(L, with_table, 1);
    lua_newtable(L);
    lua_setfield(L, -2, "modules");
    if (mr_bind_push(L)) {
        lua_setfield(L, -2, "mr");
        mr_push_module(L);
        lua_pushcclosure(L, mr_format_for_terminal, 1);
        lua_setfield(L, -2, "format");
    }
    mr_repl_timeline_push(L);
    lua_setfield(L, -2, "timeline");
    if (host->push_lessons) {
        host->push_lessons(L);
        lua_setfield(L, -2, "lessons");
    }
    luaopen_debug(L);
    for (const char *const *name = from_debug; *name; name++) {
        lua_getfield(L, -1, *name);
        lua_setfield(L, -3, *name);
    }
    lua_pop(L, 1);
}
