/* The files that were run: see source.h. The module has the list, with the bound of interned strings. */
#include "base/text.h"
#include "bind/internal.h"
#include "bind/source.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- entries of the prompt */

/* Their addresses are registry keys. `entries`: number = text of the entry. `loaded`: name of a file = the text that
 * became an entry, number = that name. */
static const char entries, loaded, locals;
/* Likewise: the name of the main script. */
static const char main_name;

int mr_source_entry(const char *file) {
    const char *digits = file + sizeof MR_SOURCE_ENTRY - 1;
    if (strncmp(file, MR_SOURCE_ENTRY, sizeof MR_SOURCE_ENTRY - 1) != 0) return 0;
    size_t length = strspn(digits, "0123456789");
    return length && length < 10 && !digits[length] ? atoi(digits) : 0;
}

static void push_table(lua_State *L, const void *key) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TTABLE) return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void mr_source_set_entry(lua_State *L, int number, const char *file) {
    push_table(L, &loaded);
    lua_pushstring(L, file);
    lua_rawseti(L, -2, number);
    if (file) {
        lua_pushvalue(L, -2);
        lua_setfield(L, -2, file);
    }
    lua_pop(L, 1);
    push_table(L, &entries);
    lua_insert(L, -2);
    lua_rawseti(L, -2, number);
    lua_pop(L, 1);
}

/* Forgets the text, so that the file is read again. */
static void forget_loaded(lua_State *L, const char *file) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &loaded) == LUA_TTABLE) {
        lua_pushnil(L);
        lua_setfield(L, -2, file);
    }
    lua_pop(L, 1);
}

/* Pushes the text of the entry of that name; false, and pushes something else: there is none. */
static bool push_entry(lua_State *L, const char *file) {
    int number = mr_source_entry(file);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, number ? &entries : &loaded) != LUA_TTABLE) return false;
    if (number) lua_rawgeti(L, -1, number);
    else mr_push_field(L, -1, file);
    return lua_type(L, -1) == LUA_TSTRING;
}

bool mr_source_is_entry(lua_State *L, const char *file) {
    int top = lua_gettop(L);
    bool known = push_entry(L, file);
    lua_settop(L, top);
    return known;
}

bool mr_source_is_stop(const char *file) {
    return strncmp(file, "stop-", 5) == 0 && file[5] && !file[5 + strspn(file + 5, "0123456789")];
}

void mr_source_set_locals(lua_State *L) {
    lua_rawsetp(L, LUA_REGISTRYINDEX, &locals);
}

bool mr_source_push_locals(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &locals) == LUA_TTABLE) return true;
    lua_pop(L, 1);
    return false;
}

static mr_script *read_entry(lua_State *L, mr_module *module, const char *file) {
    mr_script *script = NULL;
    int top = lua_gettop(L);
    if (push_entry(L, file)) script = mr_script_of(&module->scripts, file, lua_tostring(L, -1));
    lua_settop(L, top);
    return script;
}

/* The main chunk of an entry is a function around its text, for its variables; it ends one line after the text. */
int mr_source_function(lua_State *L, const mr_script *s, const lua_Debug *frame) {
    bool is_entry = s && frame->source[0] && mr_source_is_entry(L, frame->source + 1);
    return is_entry && frame->lastlinedefined > mr_script_line_count(s) ? 0 : frame->linedefined;
}

/* ---- files */

static void add_file(lua_State *L, const char *path) {
    mr_module *module = mr_bind_module(L);
    forget_loaded(L, path);
    if (module && module->machine) mr_intern(&module->sources, path, strlen(path), NULL);
}

mr_script *mr_source_read(lua_State *L, const char *file) {
    mr_module *module = mr_bind_module(L);
    if (file && mr_source_is_entry(L, file)) return read_entry(L, module, file);
    if (!file || !mr_is_interned(&module->sources, file)) return NULL;
    return mr_script_read(&module->scripts, file);
}

/* ---- the position of a text */

typedef struct {
    const char *text;
    size_t size;
    mr_site where;
    int places; /* found so far */
} search;

static void note(search *s, const char *file, int line) {
    s->places += line < 0 ? 2 : line != 0;
    if (line > 0) s->where = (mr_site){.file = file, .line = line};
}

/* In the text at the top, which it pops. */
static void search_entry(lua_State *L, mr_module *module, search *s, const char *name) {
    int line = mr_script_line_in(lua_tostring(L, -1), s->text, s->size);
    if (line) note(s, mr_intern(&module->machine->files, name, strlen(name), "mr"), line);
    lua_pop(L, 1);
}

/* If a file was loaded twice, the text of the second time counts. */
static void search_entries(lua_State *L, mr_module *module, search *s) {
    int top = lua_gettop(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &entries) == LUA_TTABLE) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &loaded);
        for (int i = 1; lua_rawgeti(L, top + 1, i) == LUA_TSTRING; i++) {
            char name[32];
            bool is_file = lua_rawgeti(L, top + 2, i) != LUA_TNIL;
            snprintf(name, sizeof name, MR_SOURCE_ENTRY "%d", i);
            lua_pop(L, 1);
            if (is_file) lua_pop(L, 1);
            else search_entry(L, module, s, name);
        }
        lua_settop(L, top + 2);
        lua_pushnil(L);
        while (lua_next(L, top + 2))
            if (lua_type(L, -2) == LUA_TSTRING) search_entry(L, module, s, lua_tostring(L, -2));
            else lua_pop(L, 1);
    }
    lua_settop(L, top);
}

static void search_files(lua_State *L, const mr_interned *files, search *s) {
    mr_map_each(&files->texts, at) {
        const char *path = files->texts.slots[at].value;
        if (!mr_source_is_entry(L, path))
            note(s, path, mr_script_line_in_file(path, s->text, s->size));
    }
}

bool mr_source_locate(lua_State *L, const char *text, size_t size, mr_site *out) {
    mr_module *module = mr_bind_module(L);
    search s = {.text = text, .size = size};
    if (!module || !module->machine) return false;
    search_entries(L, module, &s);
    search_files(L, &module->sources, &s);
    *out = s.where;
    return s.places == 1;
}

/* ---- functions that run files. The first upvalue is Lua's own function. */

static int all_results(lua_State *L, int status, lua_KContext base) {
    (void)status;
    return lua_gettop(L) - (int)base;
}

/* loadfile and dofile: the file is argument 1. */
static int run_file(lua_State *L) {
    if (lua_type(L, 1) == LUA_TSTRING) add_file(L, lua_tostring(L, 1));
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, all_results);
    return all_results(L, LUA_OK, 0);
}

/* A searcher of package.searchers: the file is its second result, if it found one. */
static int search_file(lua_State *L) {
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 2);
    if (lua_isfunction(L, 1) && lua_type(L, 2) == LUA_TSTRING) add_file(L, lua_tostring(L, 2));
    return 2;
}

static void watch_global(lua_State *L, const char *name) {
    if (lua_getglobal(L, name) == LUA_TFUNCTION) {
        lua_pushcclosure(L, run_file, 1);
        lua_setglobal(L, name);
    } else {
        lua_pop(L, 1);
    }
}

static void watch_searcher(lua_State *L) {
    int top = lua_gettop(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, LUA_LOADLIBNAME) == LUA_TTABLE &&
        lua_getfield(L, -1, "searchers") == LUA_TTABLE &&
        lua_rawgeti(L, -1, 2) == LUA_TFUNCTION) { /* the one for Lua files */
        lua_pushcclosure(L, search_file, 1);
        lua_rawseti(L, -2, 2);
    }
    lua_settop(L, top);
}

void mr_source_add_main(lua_State *L, const char *path) {
    add_file(L, path);
    lua_pushstring(L, path);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &main_name);
}

bool mr_source_is_main(lua_State *L, const char *file) {
    char name[MR_LONGEST_NAME + 1];
    bool is_main = lua_rawgetp(L, LUA_REGISTRYINDEX, &main_name) == LUA_TSTRING;
    if (is_main) {
        mr_text_copy_end(name, sizeof name, lua_tostring(L, -1)); /* as in a site */
        is_main = strcmp(name, file) == 0;
    }
    lua_pop(L, 1);
    return is_main;
}

void mr_source_watch(lua_State *L) {
    static const char watched; /* its address is a registry key */
    bool again = lua_rawgetp(L, LUA_REGISTRYINDEX, &watched) != LUA_TNIL;
    lua_pop(L, 1);
    if (again) return;
    lua_pushboolean(L, true);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &watched);
    watch_global(L, "loadfile");
    watch_global(L, "dofile");
    watch_searcher(L);
    /* Plain Lua keeps the script's path in arg[0]. The host sets `arg` later, and adds the script when it runs it. */
    int top = lua_gettop(L);
    if (lua_getglobal(L, "arg") == LUA_TTABLE && lua_rawgeti(L, -1, 0) == LUA_TSTRING)
        mr_source_add_main(L, lua_tostring(L, -1));
    lua_settop(L, top);
}
