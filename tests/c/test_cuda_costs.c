/* The bytes that rows of the operation table claim to move (mr_cost), compared with the accesses of their kernels.
 * The fake driver runs their PTX and counts. The calls are written in Lua (support/costs.lua), one for each row and
 * size. */
#include "cuda_fixture.h"

#if MR_HAVE_CUDA

#include <lauxlib.h>
#include <lualib.h>

#include "bind/bind.h"
#include "ops/ids.h"
#include "ops/optimise.h"
#include "ops/table.h"

/* Sums up the costs of the operations that were submitted. */
typedef struct {
    mr_observer observer;
    double bytes;
} adder;

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)host_waited;
    if (command->kind != MR_COMMAND_OP) return;
    adder *a = (adder *)observer;
    mr_cost cost;
    command->u.op.row->cost(command, &cost);
    a->bytes += cost.bytes;
}

static adder sum = {.observer = {.did = did}};

/* measure(f): calls f and returns the bytes that the rows state, and those that kernels accessed. */
static int measure(lua_State *L) {
    mr_machine *own = lua_touserdata(L, lua_upvalueindex(1));
    mr_caller self = {.machine = own};
    OK(mr_device_synchronize(&self, own->devices[0]));
    sum.bytes = 0;
    fake->global_bytes = 0;
    fake->count_bytes = true;
    lua_settop(L, 1);
    lua_call(L, 0, 0);
    OK(mr_device_synchronize(&self, own->devices[0]));
    fake->count_bytes = false;
    lua_pushnumber(L, sum.bytes);
    lua_pushnumber(L, (lua_Number)fake->global_bytes);
    return 2;
}

/* gather_grads(x, y): x gets the values of y. */
static int gather_grads(lua_State *L) {
    mr_caller self = {.machine = lua_touserdata(L, lua_upvalueindex(1))};
    mr_tensor *tensors[] = {mr_check_tensor(L, 1), mr_check_tensor(L, 2)};
    mr_step step = {.parameters = 1};
    OK(mr_optimise(&self, &mr_ops[MR_OP_gather_grads], &step, tensors));
    return 0;
}

static void test_bytes(void **state) {
    (void)state;
    find_driver();
    setenv("FAKE_CUDA_KERNELS", "1", 1);
    memset(fake, 0, sizeof *fake);
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    mr_machine_options options = {0};
    OK(mr_bind_open(L, &mr_cuda_backend, &options));
    lua_setglobal(L, "mr");
    mr_machine *own = mr_bind_machine(L);
    OK(mr_observer_add(own, &sum.observer));
    lua_pushlightuserdata(L, own);
    lua_pushcclosure(L, measure, 1);
    if (luaL_loadfile(L, "tests/c/support/costs.lua") != LUA_OK)
        fail_msg("%s", lua_tostring(L, -1));
    lua_insert(L, -2);
    lua_pushlightuserdata(L, own);
    lua_pushcclosure(L, gather_grads, 1);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK) fail_msg("%s", lua_tostring(L, -1));
    mr_observer_remove(own, &sum.observer);
    lua_close(L);
}

CUDA_TEST_MAIN(cmocka_unit_test(test_bytes))

#else
CUDA_TEST_MAIN()
#endif
