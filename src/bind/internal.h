/* Between the files that make up the module itself. */
#ifndef MR_BIND_INTERNAL_H
#define MR_BIND_INTERNAL_H

#include "bind/bind.h"
#include "script/script.h"

/* The part of millrace that a Lua state owns. It is one userdata, in the registry and as upvalue 1 of each of our
 * functions, so it lives as long as any of its users. */
typedef struct {
    mr_machine *machine;            /* NULL: closed with the Lua state */
    const mr_class *const *classes; /* all, in the order of the reference page; ends with NULL */
    const char *source; /* the chunk of the last call, and its name in sites (error.c) */
    const char *file;
    size_t file_size;
    mr_scripts scripts;                 /* that reports have looked into */
    mr_interned sources;                /* the files that were run (source.c) */
    uint64_t tracked;                   /* tensors that require gradients (tensor_box.c) */
    const mr_thread_hooks *threads;     /* of the program around us; NULL: none (dist.c) */
    struct mr_collectives *collectives; /* once mr.nccl is used (nccl.c) */
    const struct mr_spawner *spawner;   /* while it runs ranks (dist.c); else NULL */
    /* With ranks: the thread of a parked rank; NULL: the rank runs, or has ended. */
    lua_State *(*parked_rank)(const struct mr_spawner *spawner, uint32_t rank);
    uint64_t noes;              /* queries that said no since a step or a yes (polls.c) */
    bool allow_tf32, kept_tf32; /* mr.allow_tf32; as it was before mr.explore calls its function */
    bool gradients_off;         /* inside mr.no_grad, and during a backward pass */
    /* Takes a failure of the device, and returns one that names the script's variables (fault.c). */
    mr_status (*name_fault)(lua_State *L, mr_status status);
} mr_module;

static inline mr_module *mr_module_of(lua_State *L) { /* of the running function of ours */
    return lua_touserdata(L, lua_upvalueindex(1));
}
mr_module *mr_bind_module(lua_State *L); /* of the state; NULL: none was opened */
void mr_keep_module(lua_State *L); /* pops a new one, which is that of the state from now on */

/* For observers, which ask Lua in the middle of a command: these two never run the collector, whose finalizers may
 * submit (quiet.c). The first pushes table[name], or nil; it walks through the table, and so makes no string. The
 * second calls function(argument) protected, on the stack of any thread. False: it failed, or there is no memory. */
void mr_push_field(lua_State *L, int table, const char *name);
bool mr_try_quietly(lua_State *L, lua_CFunction function, void *argument);

/* The script line that is running; {NULL, 0} if there is none. */
mr_site mr_bind_site(lua_State *L, mr_module *module);
/* The frame of the script at *level, or the next one out of it; false: there is none. */
bool mr_bind_frame(lua_State *L, int *level, lua_Debug *frame);
const char *mr_bind_file(mr_module *module,
                         const lua_Debug *frame); /* its file, as sites have it */

/* names.c. Pushes the table "mr" or "mr.memory"; false and nothing if it is not there. */
bool mr_push_table(lua_State *L, const char *owner);
/* The name under which the function at `arg` was registered ("zeros", "wait_event"), or NULL.
 * *out_owner, if that is not NULL: where ("mr", "stream"). */
const char *mr_registered_name(lua_State *L, int arg, const char **out_owner);

/* objects.c: also closed ones. */
mr_stream *mr_stream_at(lua_State *L, int arg);
mr_event *mr_event_at(lua_State *L, int arg);

/* args.c, for objects.c: readers of the script's tables. Raises for the option at `at` of the stack. */
int mr_bad_option(lua_State *L, int at, const char *name, const char *expected);
/* The array of the objects that are listed in the table at `index`, in a value that is pushed; `check` raises for those
 * that cannot be used. */
typedef void *mr_check_object(lua_State *L, int index);
void **mr_check_list(lua_State *L, int index, const char *what, const mr_kind *kind,
                     mr_check_object *check, int *out_count);

#endif
