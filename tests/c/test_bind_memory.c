/* Lua runs out of memory at each allocation of a call in turn. The call raises, and nothing that C made for it is left
 * behind. The sanitizer's search for leaks tells that at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "bind/bind.h"
#include "virtual/virtual.h"

/* Allocations that still succeed; < 0: no bound. */
static long left;

static void *allocate(void *context, void *block, size_t old_size, size_t size) {
    (void)context;
    if (size == 0) {
        free(block);
        return NULL;
    }
    bool grows = !block || size > old_size;
    if (grows && left == 0) return NULL;
    if (grows && left > 0) left--;
    return realloc(block, size);
}

static lua_State *open_state(void) {
    mr_machine_options options = {0};
    left = -1;
    lua_State *L = lua_newstate(allocate, NULL);
    assert_non_null(L);
    luaL_openlibs(L);
    assert_null(mr_bind_open(L, &mr_virtual_backend, &options));
    lua_setglobal(L, "mr");
    return L;
}

/* Runs the text with each number of allocations from none on, until they are enough; where there are thousands, which
 * are those of loops, with each thirteenth number. Garbage is collected in between: Lua needs memory to call a
 * finalizer, and gives the object up if there is none. */
static void run_with_little(lua_State *L, const char *text) {
    enum { RUNS = 32 };
    bool done = false;
    int runs = 0;
    for (long most = 0; !done && most < 50000; most += most < 2000 ? 1 : 13) {
        if (runs++ % RUNS == 0) lua_gc(L, LUA_GCCOLLECT);
        assert_int_equal(luaL_loadstring(L, text), LUA_OK);
        left = most;
        lua_pcall(L, 0, 0, 0);
        done = left > 0;
        left = -1;
        lua_settop(L, 0);
    }
    assert_true(done);
}

static void test_errors(void **state) {
    static const char *const wrong[] = {"mr.zeros('x')",
                                        "mr.zeros(2, {strem = 1})",
                                        "mr.zeros(2, {dtype = 7})",
                                        "mr.nonesuch()",
                                        "mr.stream():wait_event(7)",
                                        "mr.ones(2):view(3)",
                                        "mr.ones(2):nonesuch()",
                                        "mr.cat{mr.ones(2), 3}",
                                        "mr.barrier{mr.stream(), 1}",
                                        "mr.set_device(99)",
                                        "mr.tensor{{1, 2}, {3}}",
                                        "local x = mr.ones(2) x:free() x:add_(1)",
                                        "mr.op{reads = {1}}",
                                        "mr.help('nonesuch')",
                                        "mr.empty(1 << 50)",
                                        "mr.machine.chooser('x')",
                                        "mr.machine.fault('x')",
                                        NULL};
    lua_State *L = open_state();
    (void)state;
    for (const char *const *text = wrong; *text; text++) run_with_little(L, *text);
    lua_close(L);
}

static void test_walks_and_texts(void **state) {
    static const char race[] = "mr.hazard.mode('collect') x = mr.zeros(4)\n"
                               "for i = 1, 3 do mr.stream():run(x.fill_, x, i) end\n"
                               "for i = 1, 3 do mr.spin{ms = 1, stream = mr.stream()} end";
    static const char *const looks[] = {"mr.hazard.reports()",
                                        "mr.hazard.summary()",
                                        "mr.hazard.advice()",
                                        "local print = print _G.print = nil "
                                        "local ok, err = pcall(mr.hazard.why, 1, 2) "
                                        "_G.print = print if not ok then error(err) end",
                                        "mr.hazard.check(function() x:add_(1) end)",
                                        "mr.machine.queues()",
                                        "mr.memory.stats()",
                                        "mr.format(mr.ones(3))",
                                        "mr.ones(3):totable()",
                                        "return tostring(x) .. tostring(mr.stream())",
                                        "mr.docs()",
                                        NULL};
    /* The checker lets the collector run once, before the host next waits or asks. */
    static const char asks[] = "mr.default_stream():query()";
    lua_State *L = open_state();
    (void)state;
    assert_int_equal(luaL_dostring(L, race), LUA_OK);
    assert_int_equal(luaL_dostring(L, asks), LUA_OK);
    for (const char *const *text = looks; *text; text++) run_with_little(L, *text);
    lua_close(L);
}

static void test_traces(void **state) {
    static const char *const traces[] = {
        "pcall(mr.trace.stop) mr.trace.start{max = 5} mr.ones(2):add_(1) mr.trace.stop()",
        "return mr.timeline(function(x) return mr.ones(2):add_(x):item() end, 2)",
        "mr.timeline(error, 'wrong')",
        "return #tr.spans, tr.streams, tr.hazards, tr.facts, tostring(tr), tostring(tr.spans[1])",
        "return tostring(tr:critical_path()), tostring(select(2, tr:idle('s')))",
        "return tr:overlap('s', 'default stream'), tostring(tr:compare(tr))",
        "return tostring(tr:why('spin', 'tail'))",
        "tr:why('nonesuch', 1)",
        "tr:overlap('nonesuch', 's')",
        "mr.sync_debug('error') pcall(mr.item, mr.ones(1)) mr.sync_debug('off')",
        NULL};
    static const char make[] =
        "mr.hazard.mode('collect') local s = mr.stream{name = 's'}\n"
        "tr = mr.timeline(function() mr.spin{ms = 1, stream = s} mr.op{name = 'tail', stream = s}\n"
        "mr.ones(2):add_(1) end)";
    lua_State *L = open_state();
    (void)state;
    assert_int_equal(luaL_dostring(L, make), LUA_OK);
    for (const char *const *text = traces; *text; text++) run_with_little(L, *text);
    lua_close(L);
}

static void test_what_makes_objects(void **state) {
    static const char *const makes[] = {
        "mr.cat{mr.ones(2), mr.ones(2)}",
        "mr.stack{mr.ones(2), mr.ones(2)}",
        "mr.barrier{mr.stream(), mr.stream()}",
        "mr.tensor{{1, 2}, {3, 4}}",
        "mr.op{reads = {mr.ones(2)}, writes = mr.ones(2), ms = 0.01, name = 'n'}",
        "mr.stream():host_func(function() end)",
        "mr.stream():record_event():synchronize()",
        "mr.with(mr.stream(), function() return mr.ones(3):sum(1, {keepdim = true}) end)",
        "mr.ones(4, 4):split({1, 3})",
        "mr.ones(2, {name = 'x', stream = mr.stream()}):to('cpu')",
        NULL};
    lua_State *L = open_state();
    (void)state;
    for (const char *const *text = makes; *text; text++) run_with_little(L, *text);
    assert_int_equal(luaL_dostring(L, "mr.synchronize() collectgarbage() collectgarbage()"),
                     LUA_OK);
    lua_close(L);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_walks_and_texts),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_what_makes_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
