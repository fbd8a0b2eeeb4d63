/* The Lua bindings: what the files of this folder share. There is one file for each kind of userdata, each in the same
 * order: constructor, methods, metamethods, docs, open. Calls go one way, from the files that are opened last down to
 * module.c: scripts/layers.lua checks it. The lowest are module.c (the box of a state), object.c (userdata), names.c,
 * error.c, caller.c, args.c and class.c. Above them are tensor_box.c and objects.c (the userdata of each kind: state,
 * check). Then come shape.c, placement.c, row.c, the functions that scripts call, and open.c.
 *
 * A bound function is written once, with its usage line and text in front of its body:
 *
 *     MR_FUNCTION(stream_query, "query", "s:query() -> done: boolean",
 *                 "true when all work submitted so far is done; never waits (R10).") {
 *         ...
 *     }
 *
 * which defines the C function and a record that feeds help(), docs/api.md, the editor stub and the
 * test that every function is documented and called. Usage grammar: `name: type`, optional arguments
 * in [brackets], options as {name: type=default, ...}, results after `->`.
 *
 * A function that is written in Lua has the same beside its Lua body: bind/lua_body.h.
 *
 * Every function has the module (mr_push_module) as its first upvalue. A function that uses the machine
 * begins with mr_enter. A function may raise only while every C resource that it made has an owner: push
 * the (empty) userdata first, then make the object into it. */
#ifndef MR_BIND_BIND_H
#define MR_BIND_BIND_H

#include <lauxlib.h>
#include <lua.h>
#include <stddef.h>

#include "base/buffer.h"
#include "ops/call.h"

/* --- functions and classes ------------------------------------------------------------------ */

typedef struct mr_lua_module mr_lua_module; /* bind/lua_body.h */

typedef struct {
    const char *name; /* "query"; metamethods "__add" */
    const char *usage;
    const char *text;
    lua_CFunction call;
    /* the module that has the body, if that is written in Lua; otherwise NULL */
    const mr_lua_module *module;
    const char *path; /* the table in it, "lr_scheduler.Scheduler" */
} mr_function;

typedef struct {
    const char *name;
    const char *type; /* "integer", "stream", "integer[]" */
    const char *text;
    lua_CFunction get; /* with the object at index 1; pushes one value */
} mr_property;

/* A kind of userdata. Its address is the registry key of the metatable. */
typedef struct {
    const char *text; /* "an event": the kind's name in messages */
    int user_values;  /* Lua values that each of them can hold */
} mr_kind;

/* Every userdata begins with the address of its kind, so one comparison checks the kind. This is done for
 * each argument of each call; comparing metatables takes ten times as long. */
typedef struct {
    const mr_kind *kind;
    uint64_t object[]; /* with user values, Lua aligns a userdata to 8 bytes only */
} mr_userdata;

/* Raises if an argument after the first `most` is not nil. */
void mr_no_arguments_behind(lua_State *L, int most, const mr_function *function);
/* The function at `index`, if the number of its arguments is checked before it runs; else NULL. */
const mr_function *mr_counted_function(lua_State *L, int index);

/* The functions and properties of a kind of userdata, or of a table of functions (mr itself,
 * mr.memory). */
typedef struct {
    const char *name;                    /* "stream"; for tables their path: "mr", "mr.memory" */
    const char *text;                    /* one or two sentences for the reference page */
    const mr_function *const *functions; /* NULL-terminated */
    const mr_property *properties;       /* ends with a NULL name; NULL: none */
    const mr_kind *kind;                 /* NULL: it is a table */
} mr_class;

#define MR_FUNCTION(id, lua_name, usage_text, help_text)                                           \
    static int id(lua_State *L);                                                                   \
    static const mr_function id##_function = {lua_name, usage_text, help_text, id, NULL, NULL};    \
    static int id(lua_State *L)

/* The same for a function that a class lists in another file: declared as `extern const mr_function ID_function`. */
#define MR_SHARED_FUNCTION(id, lua_name, usage_text, help_text)                                    \
    static int id(lua_State *L);                                                                   \
    const mr_function id##_function = {lua_name, usage_text, help_text, id, NULL, NULL};           \
    static int id(lua_State *L)

/* Tensor methods and mr functions that come from the operation table are not in a class's
 * `functions`: they are registered and documented from mr_ops. */

/* Makes the metatable of a kind of userdata, with an __index that finds methods, then properties, and for any
 * other key raises with the nearest name. A class that defines "__index" itself gets its methods table and properties
 * by mr_class_lookup. */
void mr_class_open(lua_State *L, const mr_class *class);
/* Makes `index` the __index of a class that is open. It may go on to mr_class_lookup, whose upvalues it gets. */
void mr_class_open_index(lua_State *L, const mr_class *class, lua_CFunction index);
/* Adds the functions and properties of another class of the same kind, which must be open. */
void mr_class_extend(lua_State *L, const mr_class *part);
/* Pushes the table in which methods of that kind are looked up by name. */
void mr_push_methods(lua_State *L, const mr_kind *kind);
/* Makes or extends the table of functions at the top of the stack. */
void mr_table_open(lua_State *L, const mr_class *class);
/* The usual __index: with object at 1 and key at 2, upvalues: module, methods, getters, class. */
int mr_class_lookup(lua_State *L);

/* Upvalue 1 of every function that uses the machine. */
void mr_push_module(lua_State *L);

/* Loads the embedded Lua module `name` with these functions, and those that each module gets (embedded.c), and pushes
 * its result. The list ends with {NULL, NULL}; its functions get the module as upvalue 1. It is made once for each
 * state, and kept in the registry under the address `key`. */
void mr_push_embedded(lua_State *L, const void *key, const char *name, const luaL_Reg *tools);

/* The userdata that is in the registry under the address `key`; NULL: there is none. */
static inline void *mr_under_key(lua_State *L, const void *key) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    void *value = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return value;
}

/* New userdata of a kind with `size` zeroed bytes and its metatable. */
void *mr_new(lua_State *L, const mr_kind *kind, size_t size);
/* New userdata of `size` zeroed bytes that C needs during a call, or as long as the state; no script sees it. `drop` is
 * its finalizer, called with the userdata at index 1, so its contents are freed also if an error ends the
 * call. A Lua module of the program may hold it as a <close> variable: `drop` is then called twice. */
void *mr_push_owner(lua_State *L, size_t size, lua_CFunction drop);
/* The same with an empty buffer in it. A function that shows the contents of the machine copies them into
 * such a buffer first, and then makes Lua values from the copy. Making values runs the collector, which
 * may change the machine. */
mr_buffer *mr_push_buffer(lua_State *L);
/* Replaces the buffer at the top by its text, and frees it. Raises if the buffer has failed. */
void mr_buffer_to_text(lua_State *L);
/* Called when Lua closes, after the finalizers of all objects: finalises the objects that these finalizers made. __gc
 * is idempotent. */
void mr_finalise_late(lua_State *L);
/* The userdata at `arg`. Raises an argument error that names the given value. */
void *mr_check(lua_State *L, int arg, const mr_kind *kind);
/* NULL if it is something else. Userdata of other libraries are tested, too. They may be shorter (a light
 * one has no length), and may contain anything except the address of a kind. */
static inline void *mr_test(lua_State *L, int arg, const mr_kind *kind) {
    mr_userdata *b = lua_touserdata(L, arg);
    if (!b || lua_rawlen(L, arg) < sizeof *b || b->kind != kind) return NULL;
    return b->object;
}

/* --- machine, lines, errors ------------------------------------------------------------------ */

/* The caller: the machine, and the line of the script (frames of millrace's own Lua modules are skipped).
 * Hooks and host functions that run during the call use the stack of L. */
mr_caller mr_enter(lua_State *L);
/* The same; the operations of this call are shown under this name, which the script wrote. */
mr_caller mr_enter_as(lua_State *L, const char *name);
/* The machine only, for a function that makes no command and no object; hooks use the stack of L. Call this again after
 * a function of the script has run: it may have set a coroutine there that no longer exists. */
mr_machine *mr_set_context(lua_State *L);
/* The machine, for a function that also runs no hook. */
mr_machine *mr_machine_of(lua_State *L);

/* Raises if status is one; takes it. Misuse (invalid-argument) and interruption raise a string with
 * the script's line in front; all else an error object {code, op, stream, where, message}. */
void mr_raise(lua_State *L, mr_status status);
/* Raises misuse in printf style, at the caller's line. */
int mr_misuse(lua_State *L, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Argument error: "wait_event: argument 1: expected an event, got a stream"; `what` is free text. */
int mr_bad_argument(lua_State *L, int arg, const char *expected);
/* The same, with another description of the given value than that of mr_type_text. */
int mr_bad_argument_as(lua_State *L, int arg, const char *expected, const char *got);
/* For loops whose length the script decides: raises after Ctrl-C or a limit of the sandbox has stopped the
 * script. Checks only at every 1024th step; `doing` completes "interrupted while ...". */
void mr_check_stop(lua_State *L, const mr_machine *machine, int64_t step, const char *doing);
/* The running function's name, "fill_"; *out_method: it was called as object:name(...). */
const char *mr_called_name(lua_State *L, bool *out_method);
/* "a stream", "nil", "a table": the value's kind in messages; pushes nothing; static. */
const char *mr_type_text(lua_State *L, int arg);
void mr_push_error(lua_State *L,
                   mr_status status);           /* the value that mr_raise would raise; takes it */
void mr_push_site(lua_State *L, mr_site where); /* "race.lua:3", or nil */

/* --- arguments -------------------------------------------------------------------------------- */

lua_Integer mr_check_integer(lua_State *L,
                             int arg);            /* floats with an integer value pass; NaN not */
mr_scalar mr_check_scalar(lua_State *L, int arg); /* number or boolean */
bool mr_is_scalar(lua_State *L, int arg);
const char *mr_check_name(lua_State *L, int arg); /* Lua's string; no NUL inside, 1 to 200 bytes */

/* The contents of a script's table can disappear at any time: the table may be weak, and a finalizer may
 * empty it. So only the following functions read objects from tables (scripts/lint checks this). A table
 * is read once, and its objects are kept on the stack until the call ends. These values must not be
 * popped. A finalizer can still close or free them: the code below bind/ checks them again. */

/* Options, read from a table: a slot of the stack for each known name. */
typedef struct {
    const char *const *known; /* their names, NULL-terminated */
    int first;                /* the slot of known[0]; 0: no table was given */
} mr_option_slots;

/* The table at argument `arg` (nil or none: no options). Raises for keys that are not in `known`, naming the
 * nearest. Pushes the slots. The getters push nothing and name the option when the type is wrong; each asks
 * for one of the known names. */
mr_option_slots mr_check_options(lua_State *L, int arg, const char *const *known);
/* The same; the value at [i] is that of known[i - 1]. */
mr_option_slots mr_check_fields(lua_State *L, int arg, const char *const *known);
/* Pushes "there is no option `key` here: did you mean ...?", for a key that is none of `known`. */
void mr_push_no_option(lua_State *L, const char *key, const char *const *known);
/* The stack index of the option; 0: it is not given, or nil. */
int mr_option_at(lua_State *L, const mr_option_slots *options, const char *name);
/* The type of an entry of the table that is the last argument, before anything is checked. LUA_TNIL: there is no such
 * entry, or no table. */
int mr_last_option_type(lua_State *L, const char *name);
bool mr_option_boolean(lua_State *L, const mr_option_slots *options, const char *name,
                       bool otherwise);
lua_Integer mr_option_integer(lua_State *L, const mr_option_slots *options, const char *name,
                              lua_Integer otherwise);
lua_Number mr_option_number(lua_State *L, const mr_option_slots *options, const char *name,
                            lua_Number otherwise);
/* The string and the objects are borrowed until the call ends; NULL: not given. */
const char *mr_option_name(lua_State *L, const mr_option_slots *options, const char *name);
mr_stream *mr_option_stream(lua_State *L, const mr_option_slots *options, const char *name);
mr_tensor *mr_option_tensor(lua_State *L, const mr_option_slots *options, const char *name);
mr_device *mr_option_device(lua_State *L, const mr_option_slots *options,
                            const char *name); /* or ordinal */

/* The list of usable objects in the table at `index`, as an array in a value that is pushed and keeps them.
 * `what` stands in front of messages. */
mr_tensor **mr_check_tensors(lua_State *L, int index, const char *what, int *out_count);
mr_stream **mr_check_streams(lua_State *L, int index, const char *what, int *out_count);

/* --- objects ---------------------------------------------------------------------------------- */

extern const mr_kind mr_kind_device, mr_kind_stream, mr_kind_event, mr_kind_tensor, mr_kind_kernel,
    mr_kind_module;

/* Pushing the same device or stream twice gives the same userdata: `==` and table keys work. */
void mr_push_device(lua_State *L, mr_device *device);
/* Pushes the stream at `*at`, which is read after the last point at which a finalizer can run. A finalizer
 * may replace a device's current stream, and with it the only reference. */
void mr_push_stream(lua_State *L, mr_stream *const *at);

mr_device *mr_check_device(lua_State *L, int arg); /* a device, an ordinal or a name */
/* "cuda", "virtual" and "device" (the current one), with ":1" or " 1" after them: that device, which must
 * be there; NULL: the text is not a name of a device. */
mr_device *mr_device_named(lua_State *L, const char *text);
mr_stream *mr_check_stream(lua_State *L, int arg); /* open; a closed one raises */
mr_stream *mr_opt_stream(lua_State *L, int arg);   /* the current stream when none */
mr_event *mr_check_event(lua_State *L, int arg);

/* A tensor userdata owns one reference and one handle. mr_new_tensor pushes an empty one and returns
 * where the tensor goes, so that an error on the way leaks nothing:
 *     mr_tensor **slot = mr_new_tensor(L);
 *     mr_raise(L, mr_tensor_select(t, 0, i, slot));
 *     mr_made_tensor(L, *slot);  -- accounts for memory, may run the collector */
mr_tensor **mr_new_tensor(lua_State *L);
void mr_made_tensor(lua_State *L, mr_tensor *tensor);
mr_tensor *mr_check_tensor(lua_State *L, int arg); /* usable: freed and reset ones raise */
mr_tensor *mr_test_tensor(lua_State *L, int arg);  /* NULL if it is not one; freed ones pass */

/* --- threads ---------------------------------------------------------------------------------- */

/* For a program that stops Lua code from outside and so keeps account of the threads that run. Ranks (dist.c) take
 * turns, each with threads and a C stack of its own. */
typedef struct {
    void *words[2];
} mr_thread_place; /* what runs now */
typedef struct {
    void *words[2];
} mr_thread_node;
typedef struct {
    void (*copy)(mr_thread_place *out_place); /* for a new C stack, on which nothing runs yet */
    void (*swap)(mr_thread_place *place);     /* exchanges it with the running place */
    void (*enter)(mr_thread_node *node, lua_State *L);
    void (*leave)(mr_thread_node *node);
    void (*joined)(uint32_t rank); /* this process is that rank of several */
} mr_thread_hooks;
/* For the ranks of this state; they stay the caller's. */
void mr_bind_threads(lua_State *L, const mr_thread_hooks *hooks);
/* Called when the script has failed: tells ranks in other processes, if there are any. */
void mr_bind_rank_failed(lua_State *L, const char *error);

/* --- what the host program and the loadable module use ---------------------------------------- */

/* Opens a machine on `backend` and pushes the module table `mr` (also put in package.loaded.millrace,
 * with package.preload entries for it and for the embedded Lua modules). The machine closes with the state. A
 * state has one machine: to be called where mr_bind_push finds none. */
mr_status mr_bind_open(lua_State *L, const mr_backend *backend, const mr_machine_options *options);
/* Pushes the module table of this state, or nothing and returns false: none was opened. */
bool mr_bind_push(lua_State *L);
/* The machine behind the module in this state; NULL: none, or closed. */
mr_machine *mr_bind_machine(lua_State *L);

#endif
