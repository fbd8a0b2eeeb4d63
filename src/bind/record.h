/* Calls that autograd records. A bound function that makes a tensor from others, or changes one, is written as
 *
 *     MR_RECORDED_FUNCTION(tensor_clone, "clone", "t:clone() -> tensor", "...") {
 *         ...
 *     }
 *
 * While no tensor of the state requires gradients it runs like any other function, at the cost of one comparison. If
 * one of its arguments requires gradients, lua/millrace/autograd/recording.lua gets the call: it calls the function
 * itself, and adds a node to the graph. */
#ifndef MR_BIND_RECORD_H
#define MR_BIND_RECORD_H

#include "bind/internal.h"

/* Registry key of the Lua function (run, name, ...) that carries out a call and records it. It is there once a tensor
 * requires gradients. */
extern const char mr_record_key;

int mr_record_slow(lua_State *L, lua_CFunction run, const char *name);

/* Carries out `run`, which is called like the running function: the same arguments, and upvalues 1 and 2. */
static inline int mr_record(lua_State *L, lua_CFunction run, const char *name) {
    const mr_module *module = mr_module_of(L);
    if (__builtin_expect(!module->tracked || module->gradients_off, 1)) return run(L);
    return mr_record_slow(L, run, name);
}

#define MR_RECORDED_FUNCTION(id, lua_name, usage_text, help_text)                                  \
    static int id##_run(lua_State *L);                                                             \
    MR_FUNCTION(id, lua_name, usage_text, help_text) {                                             \
        return mr_record(L, id##_run, lua_name);                                                   \
    }                                                                                              \
    static int id##_run(lua_State *L)

#endif
