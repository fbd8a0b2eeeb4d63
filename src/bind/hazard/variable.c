/* Finds expressions that lead to an object at a line of the script: the table `leads` below has all that is
 * searched, the nearest first. This is done only when a report is written. A line that is added to the script may
 * use only variables that are visible at its place. The declaration that is visible there must belong to the current
 * variable. The text must not assign to it between that place and the line that runs. A variable that keeps its value
 * comes first: it is the object's own name, not one that refers to several objects in turn. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "bind/source.h"
#include "bind/ranks/task.h"
#include "bind/tensor_box.h"
#include "model/meeting.h"

/* How the object is reached from a variable. */
typedef enum { BY_ITSELF, BY_TABLE, BY_TABLES, STEPS } step;

typedef struct {
    lua_State *L;       /* whose stack is looked at */
    lua_State *running; /* that runs: L, or a coroutine above it */
    mr_hazard_object object;
    mr_site front;     /* no file: any variable will do */
    mr_script *script; /* of that file, or NULL */
    char *out;
    size_t size;
    bool only_constant; /* variables that the text assigns to once */
    mr_site *out_held;  /* where the frame is whose variable was found; or NULL */
} wanted;

static bool is_event(lua_State *L, int at, const mr_event *event) {
    void **box = mr_test(L, at, &mr_kind_event);
    return box && *box == event;
}

/* Whether it is an object of lua/millrace/dist.lua of that kind. */
static bool is_of_dist(lua_State *L, int at, const char *kind) {
    if (lua_type(L, at) != LUA_TTABLE || !lua_getmetatable(L, at)) return false;
    mr_push_field(L, -1, "__name");
    bool is_one = lua_type(L, -1) == LUA_TSTRING && strcmp(lua_tostring(L, -1), kind) == 0;
    lua_pop(L, 2);
    return is_one;
}

static bool is_work(lua_State *L, int at, const mr_event *event) {
    at = lua_absindex(L, at);
    if (!is_of_dist(L, at, "work")) return false;
    mr_push_field(L, at, "event");
    bool is_one = is_event(L, -1, event);
    lua_pop(L, 1);
    return is_one;
}

static bool is_wanted(const wanted *w, int at) {
    const mr_hazard_object *o = &w->object;
    if (o->work) return is_work(w->L, at, o->work);
    if (lua_type(w->L, at) != LUA_TUSERDATA) return false;
    if (o->tensor || o->storage) {
        const mr_tensor *t = mr_test_tensor(w->L, at);
        return t && (o->tensor ? t == o->tensor : t->storage == o->storage);
    }
    if (o->event) return is_event(w->L, at, o->event);
    void **box = mr_test(w->L, at, &mr_kind_stream);
    return box && *box == o->stream;
}

static bool is_name(const char *name) {
    if (!name || !*name || (*name >= '0' && *name <= '9')) return false;
    for (; *name; name++)
        if (*name != '_' && !(*name >= '0' && *name <= '9') && !(*name >= 'a' && *name <= 'z') &&
            !(*name >= 'A' && *name <= 'Z'))
            return false;
    return true;
}

/* ---- what the place sees */

/* If two locals have one name, the last is in scope. */
static bool is_shadowed(lua_State *L, const lua_Debug *frame, int local, const char *name) {
    const char *other;
    for (int i = local + 1; (other = lua_getlocal(L, frame, i)) != NULL; i++) {
        lua_pop(L, 1);
        if (strcmp(other, name) == 0) return true;
    }
    return false;
}

static bool is_of_file(const wanted *w, const lua_Debug *frame) {
    return !w->front.file || mr_bind_file(mr_bind_module(w->L), frame) == w->front.file;
}

/* The frame's line is in its body: not so where a function is written and called on one line. */
static bool has_own_lines(const wanted *w, const lua_Debug *frame) {
    return !w->script || mr_script_function(w->script, frame->currentline) ==
                             mr_source_function(w->L, w->script, frame);
}

static bool sees(const wanted *w, const lua_Debug *frame, const char *name, int line) {
    if (!w->front.file) return true;
    if (!w->script) return frame->currentline == w->front.line;
    int there = mr_script_binding(w->script, name, w->front.line);
    return there && there == mr_script_binding(w->script, name, line);
}

static bool sees_global(const wanted *w, const char *name) {
    return !w->script || !mr_script_binding(w->script, name, w->front.line);
}

/* ---- variables that change */

static int line_on(const wanted *w, lua_State *L) {
    lua_Debug frame;
    int function = mr_script_function(w->script, w->front.line);
    for (int level = 0; mr_bind_frame(L, &level, &frame); level++)
        if (mr_bind_file(mr_bind_module(L), &frame) == w->front.file &&
            mr_source_function(L, w->script, &frame) == function)
            return frame.currentline;
    return 0;
}

/* The current line in the running function that contains `front`; 0: it is not running. */
static int line_that_runs(const wanted *w) {
    int line = line_on(w, w->running);
    return line || w->L == w->running ? line : line_on(w, w->L);
}

/* Whether the variable keeps its value; `first`: how many statements may give it that value. */
static bool keeps_value(const wanted *w, const mr_script *script, const char *name, int binding,
                        int first) {
    int all = script ? mr_script_assigns(script, name, binding, 1, INT_MAX) : 0;
    if (w->only_constant && all > first) return false;
    if (!all || !w->front.file) return true;
    int here = line_that_runs(w), front = w->front.line;
    if (!here) return all <= first;
    return front <= here ? !mr_script_assigns(script, name, binding, front, here)
                         : !mr_script_assigns(script, name, binding, here, front - 1);
}

/* For a local or an upvalue of the frame. */
static bool local_keeps_value(const wanted *w, const lua_Debug *frame, const char *name, int line) {
    mr_script *read = NULL;
    const mr_script *script = w->script;
    if (!script) script = read = mr_source_read(w->L, mr_bind_file(mr_bind_module(w->L), frame));
    int binding = script ? mr_script_binding(script, name, line) : 0;
    bool keeps = !binding || keeps_value(w, script, name, binding, 0);
    mr_script_free(read);
    return keeps;
}

/* ---- steps */

/* Whether the value at the top, which it pops, is this one. The place must see the variable, and use it as an index. */
static bool pop_index(const wanted *w, const lua_Debug *frame, const char *name,
                      lua_Integer value) {
    lua_State *L = w->running;
    bool same = is_name(name) && lua_isinteger(L, -1) && lua_tointeger(L, -1) == value;
    lua_pop(L, 1);
    return same && sees(w, frame, name, frame->currentline) &&
           mr_script_indexes(w->script, w->front.line, name);
}

/* The one local integer with this value that is an index at the new line's place, in a loop or a function. Its value
 * differs next time. None if the script also writes the entry with a number, which may be meant. */
static bool index_name(const wanted *w, const char *table, lua_Integer value, char *out,
                       size_t size) {
    lua_State *L = w->running;
    lua_Debug frame;
    const char *name;
    int count = 0, function = w->script ? mr_script_function(w->script, w->front.line) : 0;
    if (!w->script || !(function || mr_script_in_loop(w->script, w->front.line))) return false;
    for (int level = 0; mr_bind_frame(L, &level, &frame); level++) {
        if (!is_of_file(w, &frame) || mr_source_function(L, w->script, &frame) != function)
            continue;
        for (int i = 1; (name = lua_getlocal(L, &frame, i)) != NULL; i++)
            if (pop_index(w, &frame, name, value) && !is_shadowed(L, &frame, i, name)) {
                snprintf(out, size, "%s", name);
                count++;
            }
        lua_getinfo(L, "f", &frame);
        for (int i = 1; (name = lua_getupvalue(L, -1, i)) != NULL; i++)
            if (pop_index(w, &frame, name, value)) {
                snprintf(out, size, "%s", name);
                count++;
            }
        lua_pop(L, 1);
        break;
    }
    return count == 1 && !mr_script_names_entry(w->script, w->front.line, table, value);
}

/* `streams[2]`, `self.copy`: the entry of the table `name` whose key is below the top. False: a line cannot use it. */
static bool name_entry(const wanted *w, const char *name, char *out, size_t size) {
    lua_State *L = w->L;
    const char *last = strrchr(name, '.');
    char index[40];
    int length = 0;
    if (lua_isinteger(L, -2)) {
        lua_Integer value = lua_tointeger(L, -2);
        if (!index_name(w, last ? last + 1 : name, value, index, sizeof index))
            snprintf(index, sizeof index, "%d", (int)value);
        length = snprintf(out, size, "%s[%s]", name, index);
    } else if (lua_type(L, -2) == LUA_TSTRING && is_name(lua_tostring(L, -2)) &&
               keeps_value(w, w->script, lua_tostring(L, -2), MR_SCRIPT_FIELD, 1)) {
        length = snprintf(out, size, "%s.%s", name, lua_tostring(L, -2));
    }
    return length > 0 && (size_t)length < size;
}

/* Searches the table at the top, whose name is `name`, or with `is_deep` the tables in it. */
static bool in_table(const wanted *w, const char *name, bool is_deep) {
    lua_State *L = w->L;
    char entry[96];
    int seen = 0;
    bool found = false;
    /* Their fields are not for scripts, and the call that needs one may be the one that sets it. */
    if (is_of_dist(L, -1, "group") || is_of_dist(L, -1, "work")) return false;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        bool is_tried = !found && (is_deep ? lua_istable(L, -1) : is_wanted(w, -1));
        if (is_tried && !is_deep) found = name_entry(w, name, w->out, w->size);
        else if (is_tried && name_entry(w, name, entry, sizeof entry))
            found = in_table(w, entry, false);
        lua_pop(L, 1);
        if (++seen == 64) {
            lua_pop(L, 1);
            break;
        }
    }
    return found;
}

/* `w.grad` of the tensor at the top. */
static bool is_gradient(const wanted *w, const char *name) {
    lua_State *L = w->L;
    if (!(w->object.tensor || w->object.storage) || !mr_test_tensor(L, -1)) return false;
    mr_push_gradient_state(L, lua_gettop(L));
    if (lua_istable(L, -1)) {
        mr_push_field(L, -1, "grad");
        lua_remove(L, -2);
    }
    bool found = is_wanted(w, -1);
    lua_pop(L, 1);
    if (found) snprintf(w->out, w->size, "%s.grad", name);
    return found;
}

/* The value at the top, held by `name`; pops it. */
static bool holds(const wanted *w, const char *name, step by) {
    bool found = false;
    if (by == BY_ITSELF && is_wanted(w, -1)) {
        snprintf(w->out, w->size, "%s", name);
        found = true;
    } else if (by != BY_ITSELF && lua_istable(w->L, -1)) {
        found = in_table(w, name, by == BY_TABLES);
    } else if (by == BY_TABLE) {
        found = is_gradient(w, name);
    }
    lua_pop(w->L, 1);
    return found;
}

static bool in_frame(const wanted *w, lua_Debug *frame, step by) {
    const char *name;
    bool found = false, own = has_own_lines(w, frame);
    int line = own ? frame->currentline : frame->linedefined;
    for (int i = 1; own && !found && (name = lua_getlocal(w->L, frame, i)) != NULL; i++) {
        if (is_name(name) && !is_shadowed(w->L, frame, i, name) && sees(w, frame, name, line))
            found = holds(w, name, by) && local_keeps_value(w, frame, name, line);
        else lua_pop(w->L, 1);
    }
    if (found) return true;
    lua_getinfo(w->L, "f", frame);
    for (int i = 1; !found && (name = lua_getupvalue(w->L, -1, i)) != NULL; i++)
        if (is_name(name) && strcmp(name, "_ENV") != 0 && sees(w, frame, name, line))
            found = holds(w, name, by) && local_keeps_value(w, frame, name, line);
        else lua_pop(w->L, 1);
    lua_pop(w->L, 1);
    return found;
}

/* `_` and `__` belong to the prompt: they have other values next time. */
static bool is_of_library(const char *name) {
    static const char *const names[] = {"mr", "package", "_G", "_", "__", NULL};
    const char *const *at = names;
    while (*at && strcmp(*at, name) != 0) at++;
    return *at != NULL;
}

/* `_7`, which the prompt gives to the value of entry 7. */
static bool is_of_entry(const char *name) {
    return name[0] == '_' && name[1] >= '0' && name[1] <= '9';
}

/* The user knows a name of his own better than an entry's. */
static bool is_better(const char *name, const char *than) {
    if (is_of_entry(name) != is_of_entry(than)) return is_of_entry(than);
    return strcmp(name, than) < 0;
}

/* The binding, at the place, of a local that the place's own entry has left to the prompt. It is the entry's last one
 * of that name, and the function at the top holds it. 0: another one is in scope there, or none. */
static int own_binding(const wanted *w, const char *name) {
    lua_Debug holder;
    if (!w->script || !lua_isfunction(w->L, -1) ||
        !mr_script_is_of_chunk(w->script, name, w->front.line))
        return 0;
    lua_pushvalue(w->L, -1);
    lua_getinfo(w->L, ">S", &holder);
    int there = mr_script_binding(w->script, name, w->front.line);
    return is_of_file(w, &holder) && there == mr_script_binding(w->script, name, INT_MAX) ? there
                                                                                          : 0;
}

/* In the table at the top, in the order of the names: the same answer on every run. For a local of the prompt the table
 * holds a function whose first upvalue it is. */
static bool in_named(const wanted *w, bool are_locals, step by) {
    lua_State *L = w->L;
    char best[160] = "", place[160] = "";
    wanted inner = *w;
    inner.out = place;
    inner.size = sizeof place;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        bool may_be = is_name(name) && !is_of_library(name);
        int own = may_be && are_locals ? own_binding(w, name) : 0;
        if (are_locals && lua_getupvalue(L, -1, 1)) lua_remove(L, -2);
        if (!may_be || !(own || sees_global(w, name))) {
            lua_pop(L, 1);
        } else if (holds(&inner, name, by) && keeps_value(w, w->script, name, own, own ? 0 : 1) &&
                   (!best[0] || is_better(place, best))) {
            snprintf(best, sizeof best, "%s", place);
        }
    }
    lua_pop(L, 1);
    if (best[0]) snprintf(w->out, w->size, "%s", best);
    return best[0] != '\0';
}

/* A line of a file does not see the locals of the prompt. */
static bool in_prompt(const wanted *w, step by) {
    const char *file = w->front.file;
    if (file && !mr_source_is_entry(w->L, file) && !mr_source_is_stop(file)) return false;
    return mr_source_push_locals(w->L) && in_named(w, true, by);
}

static bool in_globals(const wanted *w, step by) {
    lua_pushglobaltable(w->L);
    return in_named(w, false, by);
}

/* ---- locals of a file whose chunk has ended */

/* The name of the upvalue of the function at the top (popped) that holds it, if that name is in scope at the place. */
static bool in_function(const wanted *w, step by) {
    lua_State *L = w->L;
    lua_Debug function;
    const char *name;
    bool found = false;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &function);
    bool is_here = *function.what == 'L' && is_of_file(w, &function);
    for (int i = 1; is_here && !found && (name = lua_getupvalue(L, -1, i)) != NULL; i++)
        if (is_name(name) && mr_script_is_of_chunk(w->script, name, w->front.line) &&
            sees(w, &function, name, function.linedefined))
            found =
                holds(w, name, by) && local_keeps_value(w, &function, name, function.linedefined);
        else lua_pop(L, 1);
    lua_pop(L, 1);
    return found;
}

/* Searches the functions in the table at the top (popped). `best`: the buffer of `inner`, with the best name so far. */
static void in_functions(const wanted *inner, step by, char *best, size_t size) {
    lua_State *L = inner->L;
    int seen = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        bool is_function = lua_isfunction(L, -1) && !lua_iscfunction(L, -1);
        if (++seen > 1024) {
            lua_pop(L, 2);
            break;
        }
        if (!is_function) lua_pop(L, 1);
        else if (in_function(inner, by) && (!best[0] || is_better(inner->out, best)))
            snprintf(best, size, "%s", inner->out);
    }
    lua_pop(L, 1);
}

/* A module's local that the function at the place does not use itself, but other functions of the module do. Only
 * modules loaded by `require` are searched, since a chunk that runs twice has two variables of each name. */
static bool in_modules(const wanted *w, step by) {
    lua_State *L = w->L;
    char best[160] = "", place[160] = "";
    wanted inner = *w;
    inner.out = place;
    inner.size = sizeof place;
    if (!w->front.file || !w->script || !lua_checkstack(L, 16)) return false;
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pushglobaltable(L);
        bool is_globals = lua_rawequal(L, -1, -2);
        lua_pop(L, 1);
        if (lua_istable(L, -1) && !is_globals) in_functions(&inner, by, best, sizeof best);
        else lua_pop(L, 1);
    }
    lua_pop(L, 1);
    if (best[0]) snprintf(w->out, w->size, "%s", best);
    return best[0] != '\0';
}

/* ---- all of it */

static bool in_frames(const wanted *w, step by) {
    lua_Debug frame;
    int most = 32;
    for (int level = 0; most-- && mr_bind_frame(w->L, &level, &frame); level++) {
        if (!is_of_file(w, &frame) || !in_frame(w, &frame, by)) continue;
        if (w->out_held)
            *w->out_held = (mr_site){mr_bind_file(mr_bind_module(w->L), &frame), frame.currentline};
        return true;
    }
    return false;
}

typedef struct {
    const wanted *wanted;
    step by;
    bool found;
} below;

static int look_below(lua_State *L) {
    below *b = lua_touserdata(L, 1);
    b->found = in_frames(b->wanted, b->by);
    return 0;
}

/* Searches the stack of another thread. An out-of-memory error must not leave the C stack on which it is raised. */
static bool in_thread(const wanted *w, lua_State *other, step by) {
    bool is_alive = other && other != w->L && lua_status(other) <= LUA_YIELD;
    if (!is_alive) return false;
    wanted inner = *w;
    inner.L = other;
    below b = {&inner, by, false};
    return mr_try_quietly(other, look_below, &b) && b.found;
}

static bool pop_thread(const wanted *w, step by) {
    lua_State *other = lua_tothread(w->L, -1);
    lua_pop(w->L, 1);
    return in_thread(w, other, by);
}

/* The script's main stack, if a coroutine runs. Coroutines between the two cannot be found. */
static bool in_script(const wanted *w, step by) {
    lua_rawgeti(w->L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    return pop_thread(w, by);
}

static bool in_tasks(const wanted *w, step by) {
    lua_State *L = w->L;
    bool found = false;
    if (!mr_bind_push_tasks(L)) return false;
    for (lua_Integer i = 1, n = mr_bind_task_count(L); i <= n && !found; i++) {
        lua_rawgeti(L, -1, i);
        found = pop_thread(w, by);
    }
    lua_pop(L, 1);
    return found;
}

/* A collective is submitted by the rank that comes last, and holds tensors of all. */
static bool in_ranks(const wanted *w, step by) {
    const mr_module *module = mr_bind_module(w->L);
    bool found = false;
    for (uint32_t rank = 0; module && module->spawner && rank < MR_MEETING_MOST && !found; rank++)
        found = in_thread(w, module->parked_rank(module->spawner, rank), by);
    return found;
}

/* The searches for an object at a line: first the variable itself, then one step into a table or to a tensor's
 * gradient, then two steps into tables. */
static bool (*const leads[])(const wanted *w, step by) = {
    in_frames,  /* locals in scope, arguments and upvalues of running functions */
    in_script,  /* the same below a coroutine */
    in_tasks,   /* the same of the other tasks of mr.run */
    in_ranks,   /* and of the other ranks of mr.dist.spawn */
    in_prompt,  /* locals of entries that have ended */
    in_globals, /* of the script */
    in_modules, /* locals of a file whose chunk has ended, which its functions hold */
};

static bool find(wanted *w) {
    for (int by = 0; by < STEPS; by++)
        for (int constant = 1; constant >= 0; constant--)
            for (size_t i = 0; i < sizeof leads / sizeof *leads; i++) {
                w->only_constant = constant;
                if (leads[i](w, (step)by)) return true;
            }
    return false;
}

static bool find_object(wanted *w) {
    bool found = find(w);
    if (!found && w->object.tensor) { /* another view of the same memory, then */
        w->object = (mr_hazard_object){.storage = w->object.tensor->storage};
        found = find(w);
    }
    return found;
}

bool mr_bind_variable(lua_State *L, const mr_hazard_object *object, mr_site front, char *out,
                      size_t size) {
    if (!L || !lua_checkstack(L, 24)) return false;
    wanted w = {.L = L, .running = L, .object = *object, .front = front, .out = out, .size = size};
    if (front.file) w.script = mr_source_read(L, front.file);
    bool found = find_object(&w);
    mr_script_free(w.script);
    return found;
}

bool mr_bind_holder(lua_State *L, const mr_hazard_object *object, char *out, size_t size,
                    mr_site *out_held) {
    wanted w = {.L = L, .running = L, .object = *object, .out = out, .size = size};
    mr_site held = {0}, made = object->stream ? object->stream->where : (mr_site){0};
    w.out_held = &held;
    *out_held = (mr_site){0};
    if (!L || !lua_checkstack(L, 24)) return false;
    bool found = find_object(&w) && held.file;
    mr_script *script = !found && made.file ? mr_source_read(L, made.file) : NULL;
    if (found) *out_held = held;
    else if (script && mr_script_is_call(script, made.line) &&
             mr_script_count(script, made.line, "stream"))
        *out_held = made;
    mr_script_free(script);
    return found;
}

/* Without the text only the main chunk is known to have the line. */
bool mr_bind_is_running(lua_State *L, mr_site front) {
    lua_Debug frame;
    bool found = false;
    mr_script *script = mr_source_read(L, front.file);
    int function = script ? mr_script_function(script, front.line) : 0;
    for (int level = 0; !found && mr_bind_frame(L, &level, &frame); level++)
        found = mr_bind_file(mr_bind_module(L), &frame) == front.file &&
                mr_source_function(L, script, &frame) == function;
    mr_script_free(script);
    return found;
}
