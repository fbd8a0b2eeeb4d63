/* Which variable of the script holds an object: looked for on the stack, then among the globals, when a
 * report is written and at no other time. */
#include <stdio.h>
#include <string.h>

#include "bind/hazard.h"
#include "bind/internal.h"

typedef struct {
    lua_State *L;
    const mr_stream *stream;
    const mr_event *event;
    const mr_tensor *tensor;
    bool any_view; /* another view of the tensor's storage will do */
    char *out;
    size_t size;
} wanted;

static bool is_wanted(const wanted *w, int at) {
    if (lua_type(w->L, at) != LUA_TUSERDATA) return false;
    if (w->tensor) {
        const mr_tensor *t = mr_test_tensor(w->L, at);
        return t && (t == w->tensor || (w->any_view && t->storage == w->tensor->storage));
    }
    const mr_class *class = w->stream ? &mr_stream_class : &mr_event_class;
    const void *object = w->stream ? (const void *)w->stream : (const void *)w->event;
    void **box = mr_test(w->L, at, class);
    return box && *box == object;
}

static bool is_name(const char *name) {
    if (!name || !*name || (*name >= '0' && *name <= '9')) return false;
    for (; *name; name++)
        if (*name != '_' && !(*name >= '0' && *name <= '9') && !(*name >= 'a' && *name <= 'z') &&
            !(*name >= 'A' && *name <= 'Z'))
            return false;
    return true;
}

/* `streams[2]`, `self.copy`: one step into a table that a variable holds. */
static bool in_table(const wanted *w, const char *name) {
    lua_State *L = w->L;
    int seen = 0;
    bool found = false;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        if (++seen > 64) {
            lua_pop(L, 2);
            return found;
        }
        if (!found && is_wanted(w, -1)) {
            if (lua_isinteger(L, -2)) {
                snprintf(w->out, w->size, "%s[%d]", name, (int)lua_tointeger(L, -2));
                found = true;
            } else if (lua_type(L, -2) == LUA_TSTRING && is_name(lua_tostring(L, -2))) {
                snprintf(w->out, w->size, "%s.%s", name, lua_tostring(L, -2));
                found = true;
            }
        }
        lua_pop(L, 1);
    }
    return found;
}

/* The value at the top, held by `name`; pops it. */
static bool holds(const wanted *w, const char *name, bool tables) {
    bool found = false;
    if (!tables && is_wanted(w, -1)) {
        snprintf(w->out, w->size, "%s", name);
        found = true;
    } else if (tables && lua_type(w->L, -1) == LUA_TTABLE) {
        found = in_table(w, name);
    }
    lua_pop(w->L, 1);
    return found;
}

static bool in_frame(const wanted *w, lua_Debug *frame, bool tables) {
    const char *name;
    bool found = false;
    /* The last of two locals of one name is the one in scope, so later ones win. */
    for (int i = 1; (name = lua_getlocal(w->L, frame, i)) != NULL; i++)
        if (!is_name(name)) lua_pop(w->L, 1);
        else if (holds(w, name, tables)) found = true;
    if (found) return true;
    lua_getinfo(w->L, "f", frame);
    for (int i = 1; !found && (name = lua_getupvalue(w->L, -1, i)) != NULL; i++)
        if (!is_name(name) || strcmp(name, "_ENV") == 0) lua_pop(w->L, 1);
        else found = holds(w, name, tables);
    lua_pop(w->L, 1);
    return found;
}

/* Globals in the order of their names: the same answer on every run. */
static bool in_globals(const wanted *w, bool tables) {
    lua_State *L = w->L;
    char best[160] = "", place[160] = "";
    wanted inner = *w;
    inner.out = place;
    inner.size = sizeof place;
    lua_pushglobaltable(L);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        bool library = name && (strcmp(name, "mr") == 0 || strcmp(name, "package") == 0 ||
                                strcmp(name, "_G") == 0);
        if (!is_name(name) || library) {
            lua_pop(L, 1);
        } else if (holds(&inner, name, tables) && (!best[0] || strcmp(place, best) < 0)) {
            snprintf(best, sizeof best, "%s", place);
        }
    }
    lua_pop(L, 1);
    if (best[0]) snprintf(w->out, w->size, "%s", best);
    return best[0] != '\0';
}

static bool find_variable(const wanted *w, bool tables) {
    lua_Debug frame;
    for (int level = 0; level < 32 && lua_getstack(w->L, level, &frame); level++) {
        lua_getinfo(w->L, "S", &frame);
        bool script = *frame.what != 'C' && strncmp(frame.source, "=millrace.", 10) != 0;
        if (script && in_frame(w, &frame, tables)) return true;
    }
    return in_globals(w, tables);
}

bool mr_bind_variable(lua_State *L, const mr_stream *stream, const mr_event *event,
                      const mr_tensor *tensor, char *out, size_t size) {
    if (!L || !lua_checkstack(L, 12)) return false;
    wanted w = {L, stream, event, tensor, false, out, size};
    for (int pass = 0; pass < (tensor ? 2 : 1); pass++) {
        w.any_view = pass == 1;
        if (find_variable(&w, false) || find_variable(&w, true)) return true;
    }
    return false;
}
