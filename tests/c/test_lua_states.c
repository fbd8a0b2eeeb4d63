/* Several Lua states in one process, each with its machine: one after the other, side by side, in threads, and in the
 * child of a fork. Built with SAN=thread this is the test that what they share is safe (see docs/design.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lualib.h>

#include "bind/bind.h"
#include "bind/hazard/hazard.h"
#include "virtual/virtual.h"

enum { THREADS = 4, ROUNDS = 3 };

static lua_State *open_state(void) {
    lua_State *L = luaL_newstate();
    if (!L) return NULL;
    luaL_openlibs(L);
    mr_machine_options options = {0};
    mr_status status = mr_bind_open(L, &mr_virtual_backend, &options);
    if (!status) status = mr_bind_check(L, "collect", false);
    if (status) {
        fprintf(stderr, "%s\n", status->message);
        mr_error_destroy(status);
        lua_close(L);
        return NULL;
    }
    lua_setglobal(L, "mr");
    return L;
}

/* 1 if it runs and returns true. `id` is its `...`. */
static int run(lua_State *L, const char *code, int id) {
    int ok = luaL_loadbuffer(L, code, strlen(code), "@states.lua") == LUA_OK;
    lua_pushinteger(L, id);
    ok = ok && lua_pcall(L, 1, 1, 0) == LUA_OK && lua_toboolean(L, -1);
    if (!ok && lua_isstring(L, -1)) fprintf(stderr, "%s\n", lua_tostring(L, -1));
    lua_settop(L, 0);
    return ok;
}

/* Uses all that the states could share: names of all kinds and of files, loops of the helpers,
 * and what is looked for once in a process. There are also a race to report with its fix, random
 * numbers, host functions, errors, and garbage. */
static const char program[] =
    "local id = ...\n"
    "assert(require 'millrace' == mr)\n"
    "mr.hazard.clear()\n"
    "local streams = {}\n"
    "for i = 1, 40 do\n"
    "  local s = mr.stream{name = ('s%d of %d'):format(i, id)}\n"
    "  local e = mr.event{name = ('e%d of %d'):format(i, id), timing = true}\n"
    "  local x = mr.zeros(16, {name = ('x%d of %d'):format(i, id)})\n"
    "  s:wait_stream(mr.current_stream())\n"
    "  mr.op{name = ('op%d of %d'):format(i, id), writes = {x}, stream = s}\n"
    "  e:record(s)\n"
    "  e:wait()\n"
    "  load(('mr.ones(%d):add_(1)'):format(i), ('@file%d of %d.lua'):format(i, id))()\n"
    "  assert(x:name() == ('x%d of %d'):format(i, id) and s.name == ('s%d of %d'):format(i, id))\n"
    "  streams[i % 8] = s\n"
    "end\n"
    "mr.manual_seed(3)\n"
    "local a = mr.rand(300, 300)\n"
    "local b = (a * 2 + 1) ^ 2 - a:exp()\n"
    "local p = mr.mm(a, a):relu():sum(1):softmax(1)\n"
    "assert(math.abs(p:sum():item() - 1) < 1e-3)\n"
    "local big = mr.arange(200000):to('f64')\n"
    "assert(big:sum():item() == 199999 * 100000)\n"
    "local ran = 0\n"
    "streams[1]:host_func(function() ran = ran + 1 end)\n"
    "mr.spin{ms = 1, stream = streams[1]}\n"
    "mr.synchronize()\n"
    "assert(ran == 1)\n"
    "local w = mr.zeros(8, {name = 'w of ' .. id})\n"
    "mr.with(streams[2], function() w:fill_(1) end)\n"
    "mr.with(streams[3], function() w:add_(1) end)\n"
    "mr.synchronize()\n"
    "local reports = mr.hazard.reports()\n"
    "assert(reports[#reports].tensor == 'w of ' .. id)\n"
    "assert(reports[#reports].first.where:find('states.lua', 1, true))\n"
    "assert(not pcall(mr.zeros, -1) and not pcall(w.add_, w, mr.zeros(3)))\n"
    "assert(not pcall(mr.stream, {name = ''}))\n"
    "w, a, b, p, big = nil\n"
    "collectgarbage()\n"
    "return true\n";

/* ---- threads */

typedef struct {
    pthread_t thread;
    int id, passed;
} worker;

static void *work(void *context) {
    worker *w = context;
    for (int round = 0; round < ROUNDS; round++) {
        lua_State *L = open_state();
        if (!L) break;
        w->passed += run(L, program, w->id * 100 + round) && run(L, program, w->id);
        lua_close(L);
    }
    return NULL;
}

static void a_state_in_each_of_four_threads(void **state) {
    (void)state;
    worker workers[THREADS] = {0};
    for (int i = 0; i < THREADS; i++) {
        workers[i].id = i + 1;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) assert_int_equal(workers[i].passed, ROUNDS);
}

/* A state is not bound to the thread that made it, as long as one uses it at a time. */
static void *go_on(void *context) {
    return run(context, program, 9) ? context : NULL;
}

static void a_state_that_moves_to_another_thread(void **state) {
    (void)state;
    lua_State *L = open_state();
    pthread_t thread;
    void *result = NULL;
    assert_non_null(L);
    assert_true(run(L, program, 8));
    assert_int_equal(pthread_create(&thread, NULL, go_on, L), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, L);
    assert_true(run(L, program, 10));
    lua_close(L);
}

/* ---- one thread */

static void one_state_after_the_other(void **state) {
    (void)state;
    for (int round = 0; round < 5; round++) {
        lua_State *L = open_state();
        assert_non_null(L);
        assert_true(run(L, program, round));
        lua_close(L);
    }
}

/* Closing one says nothing to the other, whichever was opened first. */
static void two_states_side_by_side(void **state) {
    (void)state;
    for (int order = 0; order < 2; order++) {
        lua_State *pair[2] = {open_state(), open_state()};
        assert_true(pair[0] && pair[1]);
        assert_true(mr_bind_machine(pair[0]) != mr_bind_machine(pair[1]));
        assert_true(run(pair[0], program, 1) && run(pair[1], program, 2));
        assert_true(run(pair[order], "kept = mr.ones(4, {name = 'kept'}) return true", 0));
        lua_close(pair[!order]);
        lua_State *later = open_state(); /* perhaps at the address of the one that is gone */
        assert_non_null(later);
        assert_true(run(pair[order], program, 3) && run(later, program, 4));
        assert_true(run(pair[order], "return kept:sum():item() == 4 and kept:name() == 'kept'", 0));
        lua_close(pair[order]);
        assert_true(run(later, program, 5));
        lua_close(later);
    }
}

static void the_same_module_again(void **state) {
    (void)state;
    lua_State *L = open_state();
    assert_non_null(L);
    const mr_machine *machine = mr_bind_machine(L);
    assert_true(mr_bind_push(L));
    lua_getglobal(L, "mr");
    assert_true(lua_rawequal(L, -1, -2));
    lua_settop(L, 0);
    assert_true(run(L,
                    "package.loaded.millrace = nil collectgarbage()\n"
                    "return require 'millrace' == mr",
                    0));
    assert_ptr_equal(mr_bind_machine(L), machine);
    lua_close(L);
}

static int refused; /* calls of a finalizer that ran after the machine was closed */

static int note(lua_State *L) {
    refused = (int)lua_tointeger(L, 1);
    return 0;
}

/* What Lua finalises after the machine, and what finalizers make while the state closes. */
static void finalizers_after_the_end(void **state) {
    (void)state;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    lua_register(L, "note", note);
    assert_true(run(L,
                    "early = setmetatable({}, {__gc = function()\n"
                    "  local refused = 0\n"
                    "  package.loaded.millrace = nil\n"
                    "  for _, late in ipairs{function() require('millrace').zeros(1) end,\n"
                    "      function() x:sum() end, function() s:close() end,\n"
                    "      function() mr.hazard.reports() end, function() mr.zeros(-1) end} do\n"
                    "    local ok, why = pcall(late)\n"
                    "    if not ok and why:find('the machine is closed', 1, true) then refused = "
                    "refused + 1 end\n"
                    "  end\n"
                    "  if require('millrace') ~= mr then refused = -1 end\n"
                    "  note(refused)\n"
                    "end})\n"
                    "return true",
                    0));
    mr_machine_options options = {0};
    assert_null(mr_bind_open(L, &mr_virtual_backend, &options));
    lua_setglobal(L, "mr");
    assert_true(
        run(L,
            "x, s = mr.ones(3, {name = 'x'}), mr.stream{name = 's'}\n"
            "late = setmetatable({}, {__gc = function() y = mr.ones(9, {name = 'y'}) end})\n"
            "s:host_func(function() end)\n"
            "return true",
            0));
    lua_close(L);
    assert_int_equal(refused, 5);
}

/* ---- fork */

static void a_child_goes_on_with_the_state(void **state) {
    (void)state;
    lua_State *L = open_state();
    assert_non_null(L);
    assert_true(run(L, program, 1)); /* the pool has its helpers, and the once-found are found */
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        int ok = run(L, program, 2);
        lua_close(L);
        L = open_state();
        ok = ok && L && run(L, program, 3);
        if (L) lua_close(L);
        _exit(!ok);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    assert_true(run(L, program, 4));
    lua_close(L);
}

int main(void) {
    setenv("MILLRACE_THREADS", "4", 1); /* more than one, on any machine */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_in_each_of_four_threads),
        cmocka_unit_test(a_state_that_moves_to_another_thread),
        cmocka_unit_test(one_state_after_the_other),
        cmocka_unit_test(two_states_side_by_side),
        cmocka_unit_test(the_same_module_again),
        cmocka_unit_test(finalizers_after_the_end),
        cmocka_unit_test(a_child_goes_on_with_the_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
