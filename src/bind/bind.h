/* Lua: what the files of this folder share. One file per kind of userdata, each in the same order:
 * state, check, constructor, methods, metamethods, docs, open.
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
 * Every function has the machine as its first upvalue. One that reaches the machine begins with
 * mr_enter. A function may raise only while every C resource that it made has an owner: push the
 * (empty) userdata first, then make the object into it. */
#ifndef MR_BIND_BIND_H
#define MR_BIND_BIND_H

#include <lauxlib.h>
#include <lua.h>

#include "ops/call.h"

/* --- functions and classes ------------------------------------------------------------------ */

typedef struct {
    const char *name; /* "query"; metamethods "__add" */
    const char *usage;
    const char *text;
    lua_CFunction call;
} mr_function;

typedef struct {
    const char *name;
    const char *type; /* "integer", "stream", "integer[]" */
    const char *text;
    lua_CFunction get; /* with the object at index 1; pushes one value */
} mr_property;

/* A kind of userdata, or a table of functions (mr itself, mr.memory) when `properties` is NULL. */
typedef struct {
    const char *name;                    /* "stream"; for tables their path: "mr", "mr.memory" */
    const char *text;                    /* one or two sentences for the reference page */
    const mr_function *const *functions; /* NULL-terminated */
    const mr_property *properties;       /* ends with a NULL name */
} mr_class;

#define MR_FUNCTION(id, lua_name, usage_text, help_text)                                           \
    static int id(lua_State *L);                                                                   \
    static const mr_function id##_function = {lua_name, usage_text, help_text, id};                \
    static int id(lua_State *L)

/* All classes, in the order of the reference page; ends with NULL. */
extern const mr_class *const mr_classes[];
/* Tensor methods and mr functions that come from the operation table are not in a class's
 * `functions`: they are registered and documented from mr_ops. */

/* Makes the metatable of a userdata class (registry key: class->name behind "millrace."), with an
 * __index that finds methods, then properties, and for any other key raises with the nearest name. A
 * class that defines "__index" itself gets its methods table and properties by mr_class_lookup. */
void mr_class_open(lua_State *L, mr_machine *machine, const mr_class *class);
/* Makes or extends the table of functions at the top of the stack. */
void mr_table_open(lua_State *L, mr_machine *machine, const mr_class *class);
/* The usual __index: with object at 1 and key at 2, upvalues: machine, methods, getters, class. */
int mr_class_lookup(lua_State *L);

/* New userdata of a class with `size` zeroed bytes and its metatable. */
void *mr_new(lua_State *L, const mr_class *class, size_t size);
/* When Lua closes, after the finalizers of all objects: calls those of what they made. __gc is idempotent. */
void mr_finalise_late(lua_State *L);
/* The userdata at `arg`, or an argument error that says what came instead. */
void *mr_check(lua_State *L, int arg, const mr_class *class);
void *mr_test(lua_State *L, int arg, const mr_class *class); /* NULL if it is something else */

/* --- machine, lines, errors ------------------------------------------------------------------ */

/* The machine, with `where` set to the script line that called (frames of millrace's own Lua modules
 * are skipped) and the hooks' context to L. */
mr_machine *mr_enter(lua_State *L);
/* The same; the operations that follow in this call are told by this name, which the script wrote. */
mr_machine *mr_enter_as(lua_State *L, const char *name);
/* Without the line: for finalizers, and for what goes on after it has called a function of the script. */
mr_machine *mr_lend_stack(lua_State *L);
/* Without either: for functions that submit nothing. */
mr_machine *mr_machine_of(lua_State *L);

/* Raises if status is one; takes it. Misuse (invalid-argument) and interruption raise a string with
 * the script's line in front; all else an error object {code, op, stream, where, message}. */
void mr_raise(lua_State *L, mr_status status);
/* Raises misuse in printf style, at the caller's line. */
int mr_misuse(lua_State *L, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Argument error: "wait_event: argument 1: expected an event, got a stream"; `what` is free text. */
int mr_bad_argument(lua_State *L, int arg, const char *expected);
/* The running function's name, "fill_"; *out_method: it was called as object:name(...). */
const char *mr_called_name(lua_State *L, bool *out_method);
/* "a stream", "nil", "a table": how a message calls the value; pushes nothing, static or interned. */
const char *mr_type_text(lua_State *L, int arg);
void mr_push_error(lua_State *L,
                   mr_status status);           /* the value that mr_raise would raise; takes it */
void mr_push_site(lua_State *L, mr_site where); /* "race.lua:3", or nil */

/* --- arguments -------------------------------------------------------------------------------- */

lua_Integer mr_check_integer(lua_State *L,
                             int arg);            /* floats with an integer value pass; NaN not */
mr_scalar mr_check_scalar(lua_State *L, int arg); /* number or boolean */
bool mr_is_scalar(lua_State *L, int arg);
const char *mr_check_name(lua_State *L, int arg); /* interned; no NUL inside, at most 200 bytes */

/* Options: the table at `arg` (nil or none: no options). mr_options_check raises for keys that are not
 * in `known` (NULL-terminated), naming the nearest. The getters leave the stack as it was and name
 * the option when the type is wrong. */
bool mr_options_check(lua_State *L, int arg, const char *const *known);
int mr_push_option(lua_State *L, int arg,
                   const char *name); /* its type; nil without options; raw */
bool mr_option_boolean(lua_State *L, int arg, const char *name, bool otherwise);
lua_Integer mr_option_integer(lua_State *L, int arg, const char *name, lua_Integer otherwise);
lua_Number mr_option_number(lua_State *L, int arg, const char *name, lua_Number otherwise);
const char *mr_option_name(lua_State *L, int arg, const char *name);  /* interned, or NULL */
mr_stream *mr_option_stream(lua_State *L, int arg, const char *name); /* borrowed, or NULL */
mr_tensor *mr_option_tensor(lua_State *L, int arg, const char *name); /* borrowed, or NULL */
mr_device *mr_option_device(lua_State *L, int arg,
                            const char *name); /* device or ordinal, or NULL */

/* --- objects ---------------------------------------------------------------------------------- */

extern const mr_class mr_device_class, mr_stream_class, mr_event_class, mr_tensor_class;

/* Pushing the same device or stream twice gives the same userdata: `==` and table keys work. */
void mr_push_device(lua_State *L, mr_device *device);
void mr_push_stream(lua_State *L, mr_stream *stream);

mr_device *mr_check_device(lua_State *L, int arg); /* a device, an ordinal or a name */
/* "cuda", "virtual" and "device" (the current one), with ":1" or " 1" behind them that one, which must
 * be there; NULL: the text is no name of a device. */
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

/* --- opening: each adds to the `mr` table at the top of the stack ----------------------------- */

void mr_open_machine(lua_State *L, mr_machine *machine); /* mr.synchronize, mr.with, mr.clock ... */
void mr_open_device(lua_State *L, mr_machine *machine);
void mr_open_stream(lua_State *L, mr_machine *machine);
void mr_open_event(lua_State *L, mr_machine *machine);
void mr_open_tensor(lua_State *L, mr_machine *machine);   /* class, views, moving data, lifetime */
void mr_open_creation(lua_State *L, mr_machine *machine); /* mr.tensor, mr.zeros ... */
void mr_open_ops(lua_State *L, mr_machine *machine);      /* from the operation table */
void mr_open_cuda_forms(lua_State *L, mr_machine *machine); /* mr.memcpy, mr.op, mr.spin ... */
void mr_open_memory(lua_State *L, mr_machine *machine);
void mr_open_hazard(lua_State *L, mr_machine *machine);
void mr_open_simulator(lua_State *L, mr_machine *machine);
void mr_open_help(lua_State *L, mr_machine *machine);

/* --- what the host program and the loadable module use ---------------------------------------- */

/* Opens a machine on `backend` and pushes the module table `mr` (also put in package.loaded.millrace,
 * with package.preload entries for the embedded Lua modules). The machine closes with the state. */
mr_status mr_bind_open(lua_State *L, const mr_backend *backend, const mr_machine_options *options);
/* The machine behind the module in this state, or NULL. */
mr_machine *mr_bind_machine(lua_State *L);

#endif
