/* Finds the caller: every bound function that uses the machine starts with these functions. */
#include "bind/internal.h"
#include "model/observer.h"

static mr_machine *machine_in(lua_State *L, const mr_module *module) {
    mr_machine *machine = module->machine;
    if (__builtin_expect(!machine, 0)) mr_misuse(L, "the machine is closed: the script has ended");
    return machine;
}

mr_machine *mr_machine_of(lua_State *L) {
    return machine_in(L, mr_module_of(L));
}

mr_machine *mr_set_context(lua_State *L) {
    mr_machine *machine = mr_machine_of(L);
    machine->hooks.context = L;
    return machine;
}

#ifdef MR_BIND_GCSTRESS_H
bool mr_bind_is_telling(lua_State *L) {
    const mr_module *module = mr_bind_module(L);
    return module && module->machine && module->machine->observing.telling;
}
#endif

mr_caller mr_enter_as(lua_State *L, const char *name) {
    mr_module *module = mr_module_of(L);
    mr_machine *machine = machine_in(L, module);
    machine->hooks.context = L;
    /* Lua says so inside a finalizer. The collector chose the moment, also for what is submitted now. */
    if (__builtin_expect(lua_gc(L, LUA_GCISRUNNING) < 0, 0)) mr_observers_finalized(machine);
    return (mr_caller){.machine = machine, .where = mr_bind_site(L, module), .name = name};
}

mr_caller mr_enter(lua_State *L) {
    return mr_enter_as(L, NULL);
}
