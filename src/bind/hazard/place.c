/* Where a fix can be inserted: script/place.c finds the place in the script's text; the Lua stack shows the running
 * functions. */
#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "bind/source.h"
#include "script/place.h"

#include <string.h>

/* Whether the statement of the line `where` has not ended: a function of this coroutine is in it, at this level or
 * further out. `front`: a place in that function. */
static bool is_in_statement(lua_State *running, int level, const mr_script *s, mr_site where,
                            int front) {
    lua_Debug frame;
    mr_module *module = mr_bind_module(running);
    int wanted = s ? mr_script_function(s, front) : 0;
    for (; mr_bind_frame(running, &level, &frame); level++) {
        if (mr_bind_file(module, &frame) != where.file) continue;
        int function = mr_source_function(running, s, &frame);
        if (s ? function == wanted &&
                    mr_script_is_beside(s, where.line, function, frame.currentline)
              : frame.currentline == where.line)
            return true;
    }
    return false;
}

/* The same for all functions from this level on. What has called this coroutine has not ended, either. */
static bool has_called(lua_State *L, int level, const mr_script *s, mr_site where, int front) {
    if (is_in_statement(L, level, s, where, front)) return true;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *main = lua_tothread(L, -1);
    lua_pop(L, 1);
    return main != L && is_in_statement(main, 0, s, where, front);
}

/* Whether the first access belongs to a statement that has called the function at this level. */
static bool is_after_first(lua_State *L, int level, mr_site first) {
    mr_script *s = mr_source_read(L, first.file);
    int front = s ? mr_script_front(s, first.line) : 0;
    bool is_after = first.file && has_called(L, level + 1, s, first, front ? front : first.line);
    mr_script_free(s);
    return is_after;
}

/* The level of the innermost function that is at that line; -1: there is none. */
static int level_at(lua_State *L, mr_site where, lua_Debug *out_frame) {
    mr_module *module = mr_bind_module(L);
    for (int level = 0; mr_bind_frame(L, &level, out_frame); level++)
        if (out_frame->currentline == where.line && mr_bind_file(module, out_frame) == where.file)
            return level;
    return -1;
}

/* What the function at this level has called, by the name in its text; NULL: an operator, or unknown. */
static const char *name_of_called(lua_State *L, int level) {
    lua_Debug frame;
    if (level == 0 || !lua_getstack(L, level - 1, &frame)) return NULL;
    lua_getinfo(L, "n", &frame);
    return strcmp(frame.namewhat, "metamethod") == 0 ? NULL : frame.name;
}

/* Whether a function at the levels from `from` up to `level` took the place of the function that called it. */
static bool has_tail_call(lua_State *L, int from, int level) {
    lua_Debug frame;
    for (; from < level && lua_getstack(L, from, &frame); from++) {
        lua_getinfo(L, "t", &frame);
        if (frame.istailcall) return true;
    }
    return false;
}

/* The innermost function, from `level` on, whose current statement begins on a line of its own. A function that is
 * written and called on one line is skipped. */
static bool put_into_frame(lua_State *L, const mr_script_meeting *m, int level,
                           mr_script_spot *out_spot) {
    lua_Debug frame;
    mr_script_call deepest = {0}; /* of the calls on the last line */
    bool is_gone = false;
    mr_module *module = mr_bind_module(L);
    for (int inner = level; mr_bind_frame(L, &level, &frame); inner = level++) {
        const char *file = mr_bind_file(module, &frame);
        mr_script *s = mr_source_read(L, file);
        is_gone = is_gone || has_tail_call(L, inner, level);
        mr_script_call call = {.file = file,
                               .line = frame.currentline,
                               .function = mr_source_function(L, s, &frame),
                               .called = name_of_called(L, level),
                               .inner = inner < level ? &deepest : NULL,
                               .is_after = is_after_first(L, level, m->first),
                               .is_gone = is_gone};
        bool is_inside, found = mr_script_place_in_call(s, m, &call, out_spot, &is_inside);
        mr_script_free(s);
        if (is_inside) return found;
        bool is_same_line = deepest.file == file && deepest.line == call.line;
        if (!is_same_line) deepest = call;
    }
    return false;
}

bool mr_bind_before(lua_State *L, const mr_script_meeting *m, mr_script_spot *out_spot) {
    lua_Debug frame;
    mr_script_meeting meeting = *m;
    int level = m->is_running ? level_at(L, m->second, &frame) : -1;
    const char *called = level >= 0 ? name_of_called(L, level) : NULL;
    if (m->is_call) meeting.second_op = called ? called : "";
    mr_script *s = mr_source_read(L, m->second.file);
    bool found = mr_script_place_before(s, &meeting, out_spot);
    mr_script_free(s);
    bool is_within = found && out_spot->place == MR_SCRIPT_WITHIN;
    if (is_within || level < 0) return found;
    return put_into_frame(L, &meeting, level, out_spot);
}

bool mr_bind_behind(lua_State *L, mr_site where, bool is_over, mr_script_spot *out_spot) {
    mr_script *s = mr_source_read(L, where.file);
    bool found = mr_script_place_behind(s, where, out_spot) &&
                 (is_over || !has_called(L, 0, s, where, out_spot->front));
    mr_script_free(s);
    return found;
}

bool mr_bind_still_runs(lua_State *L, const mr_script_meeting *m) {
    lua_Debug frame;
    bool runs = false;
    mr_script *s = mr_source_read(L, m->first.file);
    for (int level = 0; !runs && mr_bind_frame(L, &level, &frame); level++)
        runs = mr_bind_file(mr_bind_module(L), &frame) == m->first.file &&
               mr_script_still_runs(s, m, frame.currentline, mr_source_function(L, s, &frame));
    mr_script_free(s);
    return runs;
}

bool mr_bind_loop_variable(lua_State *L, mr_site loop, mr_site use, const char *method,
                           const mr_script_spot *spot, char *out, size_t size) {
    if (loop.file != use.file || loop.file != spot->where.file) return false;
    mr_script *s = mr_source_read(L, loop.file);
    bool found =
        s && mr_script_loop_variable(s, loop.line, use.line, method, spot->front, out, size);
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
