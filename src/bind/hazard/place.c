/* Where a fix can be inserted: script/place.c finds the place in the script's text; the Lua stack shows the running
 * functions. */
#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "bind/source.h"
#include "script/place.h"

/* The innermost function whose current statement begins on a line of its own. A function that is written and called
 * on one line is skipped. */
static bool put_into_frame(lua_State *L, const mr_script_meeting *m, mr_script_spot *out_spot) {
    lua_Debug frame;
    const char *called = NULL;
    mr_module *module = mr_bind_module(L);
    for (int level = 0; mr_bind_frame(L, &level, &frame); level++) {
        const char *file = mr_bind_file(module, &frame);
        mr_script *s = mr_source_read(L, file);
        mr_script_call call = {file, frame.currentline, mr_source_function(L, s, &frame), called};
        bool is_inside, found = mr_script_place_in_call(s, m, &call, out_spot, &is_inside);
        mr_script_free(s);
        if (is_inside) return found;
        lua_getinfo(L, "nt", &frame);
        called = frame.name;
        if (frame.istailcall) return false; /* the line that called it is gone */
    }
    return false;
}

static bool runs_now(lua_State *L, mr_site where) {
    lua_Debug frame;
    int level = 0;
    return mr_bind_frame(L, &level, &frame) &&
           mr_bind_file(mr_bind_module(L), &frame) == where.file && frame.currentline == where.line;
}

bool mr_bind_before(lua_State *L, const mr_script_meeting *m, mr_script_spot *out_spot) {
    mr_script *s = mr_source_read(L, m->second.file);
    bool found = mr_script_place_before(s, m, out_spot);
    mr_script_free(s);
    bool is_within = found && out_spot->place == MR_SCRIPT_WITHIN;
    if (is_within || !m->is_running || !runs_now(L, m->second)) return found;
    return put_into_frame(L, m, out_spot);
}

/* True if the line has called this coroutine. Code after such a line runs after all actions of the coroutine's current
 * turn. */
static bool has_called(lua_State *L, mr_site where) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *main = lua_tothread(L, -1);
    lua_pop(L, 1);
    return main != L && runs_now(main, where);
}

bool mr_bind_behind(lua_State *L, mr_site where, mr_script_spot *out_spot) {
    if (has_called(L, where)) return false;
    mr_script *s = mr_source_read(L, where.file);
    bool found = mr_script_place_behind(s, where, out_spot);
    mr_script_free(s);
    return found;
}

bool mr_bind_comes_before(lua_State *L, const mr_script_spot *spot, mr_site where) {
    if (spot->where.file != where.file) return false;
    mr_script *s = mr_source_read(L, where.file);
    bool before = mr_script_comes_before(s, spot, where);
    mr_script_free(s);
    return before;
}

bool mr_bind_waits_at_once(lua_State *L, mr_site function, mr_site wait) {
    if (!function.file || (wait.file && function.file != wait.file)) return false;
    if (!wait.file && !mr_source_is_main(L, function.file)) return false;
    mr_script *s = mr_source_read(L, function.file);
    bool at_once =
        s && (wait.file ? mr_script_waits_at_once(s, function.line, "host_func", wait.line)
                        : mr_script_ends_with(s, function.line, "host_func"));
    mr_script_free(s);
    return at_once;
}

bool mr_bind_new_local(lua_State *L, const mr_script_spot *from, const mr_script_spot *to,
                       bool (*is_taken)(const void *context, const char *name), const void *context,
                       char *name, size_t size) {
    mr_script *s = mr_source_read(L, from->where.file);
    bool found = mr_script_new_local(s, from, to, is_taken, context, name, size);
    mr_script_free(s);
    return found;
}

bool mr_bind_ahead(lua_State *L, const mr_script_spot *record, const mr_script_spot *wait,
                   const mr_script_meeting *meeting, const char *tensor, const char *stream,
                   bool (*is_taken)(const void *context, const char *name), const void *context,
                   mr_script_variable *out) {
    mr_script *s = mr_source_read(L, record->where.file);
    bool found = mr_script_ahead(s, record, wait, meeting, tensor, stream, is_taken, context, out);
    mr_script_free(s);
    return found;
}

bool mr_bind_is_set_later(lua_State *L, const mr_script_spot *spot, const char *expression) {
    mr_script *s = mr_source_read(L, spot->where.file);
    bool later = mr_script_is_set_later(s, spot, expression);
    mr_script_free(s);
    return later;
}

bool mr_bind_result(lua_State *L, mr_site call, const char *name, const char *option,
                    const mr_script_spot *spot, char *out, size_t size) {
    if (spot->where.file != call.file) return false;
    mr_script *s = mr_source_read(L, call.file);
    bool found = s && mr_script_result(s, call.line, name, option, spot->front, out, size);
    mr_script_free(s);
    return found;
}

bool mr_bind_is_direct(lua_State *L, const mr_script_spot *spot, mr_site where) {
    if (spot->where.file != where.file) return false;
    mr_script *s = mr_source_read(L, where.file);
    bool direct = s && mr_script_is_direct(s, spot->front, where.line);
    mr_script_free(s);
    return direct;
}
