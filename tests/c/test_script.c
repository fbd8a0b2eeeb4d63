/* A script's text: wherever it says that a line can stand, Lua takes one; names, loops and functions by hand. */
#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lua.h>

#include "script/script.h"

static char path[64];
static mr_scripts read_last;

static mr_script *read_text(const char *text, size_t size) {
    snprintf(path, sizeof path, "/tmp/script_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, size) == (ssize_t)size);
    close(fd);
    mr_script *s = mr_script_read(&read_last, path);
    unlink(path);
    return s;
}

static mr_script *script_of(const char *text) {
    mr_script *s = read_text(text, strlen(text));
    assert_non_null(s);
    return s;
}

static const char *line_at(const char *text, int line) {
    while (--line > 0 && text) {
        text = strchr(text, '\n');
        if (text) text++;
    }
    return text;
}

static int lines_of(const char *text) {
    int lines = 1;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

/* With a statement in front of the line, which nothing that follows can become part of. */
static bool loads_with(lua_State *L, const char *text, int front) {
    const char *at = line_at(text, front), *added = "do end;\n";
    if (!at) at = text + strlen(text);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addlstring(&b, text, (size_t)(at - text));
    if (at > text && at[-1] != '\n') luaL_addchar(&b, '\n');
    luaL_addstring(&b, added);
    luaL_addstring(&b, at);
    luaL_pushresult(&b);
    size_t size;
    const char *whole = lua_tolstring(L, -1, &size);
    bool loads = luaL_loadbuffer(L, whole, size, "=script") == LUA_OK;
    lua_settop(L, 0);
    return loads;
}

static int check_places(lua_State *L, const char *name, const char *text, const mr_script *s) {
    int places = 0, last = lines_of(text) + 1;
    /* Many lines share a place. Each place is tried once. */
    bool *loads = calloc((size_t)last + 1, sizeof *loads);
    for (int line = 1; line < last; line++) {
        int front = mr_script_front(s, line), behind = mr_script_behind(s, line);
        if (front && !loads[front] && !(loads[front] = loads_with(L, text, front)))
            fail_msg("%s: in front of %d (%d)", name, front, line);
        if (behind && !loads[behind] && !(loads[behind] = loads_with(L, text, behind)))
            fail_msg("%s: behind %d (%d)", name, line, behind);
        assert_true(front <= line && (!behind || (behind > line && behind <= last)));
        mr_script_function(s, line);
        mr_script_in_loop(s, line);
        mr_script_binding(s, "mr", line);
        char held[8];
        mr_script_result(s, line, "all_reduce", "async", line, held, sizeof held);
        mr_script_is_direct(s, front, line);
        mr_script_loop_variable(s, line, line, "add", line, held, sizeof held);
        places += (front != 0) + (behind != 0);
    }
    free(loads);
    return places;
}

static char *read_file(const char *name) {
    FILE *f = fopen(name, "rb");
    if (!f) return NULL;
    char *text = calloc(1, 1 << 20);
    size_t size = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    text[size] = '\0';
    return text;
}

static void lua_takes_a_line_at_every_place(void **unused) {
    (void)unused;
    static const char *const folders[] = {"tests/hazard", "tests/lua", "scripts/examples",
                                          "lua/millrace", "tests"};
    /* The time grows with the square of a text. */
    size_t most = getenv("MILLRACE_LONG") ? 30000 : 12000;
    int scripts = 0, places = 0, lines = 0;
    lua_State *L = luaL_newstate();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        DIR *folder = opendir(folders[i]);
        const struct dirent *entry;
        while (folder && (entry = readdir(folder)) != NULL) {
            char name[512];
            size_t length = strlen(entry->d_name);
            if (length < 5 || strcmp(entry->d_name + length - 4, ".lua") != 0) continue;
            snprintf(name, sizeof name, "%s/%s", folders[i], entry->d_name);
            char *text = read_file(name);
            bool is_lua = luaL_loadstring(L, text) == LUA_OK;
            lua_settop(L, 0);
            mr_script *s = is_lua ? mr_script_read(&read_last, name) : NULL;
            if (is_lua && !s) fail_msg("%s: not understood", name);
            if (s && strlen(text) < most) {
                places += check_places(L, name, text, s);
                lines += lines_of(text);
                scripts++;
            }
            mr_script_free(s);
            free(text);
        }
        if (folder) closedir(folder);
    }
    lua_close(L);
    assert_true(scripts > 100);
    assert_true(places > lines); /* of two a line; it is no merit to say no everywhere */
}

static void statements_and_comments(void **unused) {
    (void)unused;
    const char *text = "local a = 1 --[[ one\n"
                       "two ]] local b = [[\n"
                       "three\n"
                       "]]\n"
                       "while a < 2 do a = a + 1 end do\n"
                       "  b = {\n"
                       "    f = function() return\n"
                       "      a end; 1,\n"
                       "  }\n"
                       "end\n"
                       "repeat local c = a\n"
                       "until c == a\n"
                       "goto done\n"
                       "::done:: a = b\n"
                       "return function()\n"
                       "  a = 1\n"
                       "end\n";
    mr_script *s = script_of(text);
    static const int fronts[] = {1, 0, 0, 0, 5, 6, 6, 6, 6, 10, 11, 12, 13, 0, 15, 16, 17};
    for (int line = 1; line <= 17; line++)
        if (mr_script_front(s, line) != fronts[line - 1])
            fail_msg("line %d: %d", line, mr_script_front(s, line));
    assert_int_equal(mr_script_behind(s, 6), 10);
    assert_int_equal(mr_script_behind(s, 15), 0);
    assert_int_equal(mr_script_behind(s, 16), 17);
    assert_int_equal(mr_script_function(s, 16), 15);
    assert_int_equal(mr_script_function(s, 15), 0);
    mr_script_free(s);
}

/* A record behind the line would come before the later calls of the function. */
static void some_calls_keep_their_function(void **unused) {
    (void)unused;
    const char *text = "s:run(function() x:add_(1) end)\n"
                       "local f = mr.graph.auto(function() x:add_(1) end)\n"
                       "local g = graph.auto(name, function() x:add_(1) end) s:run(f)\n"
                       "local h = coroutine.wrap(function() x:add_(1) end)\n"
                       "local i = auto(function() x:add_(1) end)\n"
                       "auto(function() x:add_(1) end)\n"
                       "graph.auto = (function() x:add_(1) end)\n"
                       "s:run(f)\n";
    mr_script *s = script_of(text);
    static const int behind[] = {2, 0, 0, 0, 6, 7, 8};
    for (int line = 1; line <= 7; line++)
        if (mr_script_behind(s, line) != behind[line - 1])
            fail_msg("line %d: %d", line, mr_script_behind(s, line));
    mr_script_free(s);
}

static bool is_held(mr_script *s, int line, const char *method, const char *name) {
    char held[16] = "";
    bool found = mr_script_loop_variable(s, 1, line, method, line, held, sizeof held);
    return found ? name && strcmp(held, name) == 0 : !name;
}

static void a_statement_uses_one_variable_of_a_loop(void **unused) {
    (void)unused;
    const char *text = "for x, y in batches(rows) do\n"
                       "  mr.with(s, function() a:add_(x:sum()) end)\n"
                       "  a:add_(x + y)\n"
                       "  net(y, x.first, x[1], x(1), x:grow(), x.y, {x = 1})\n"
                       "  f(function(x) return x + y end)\n"
                       "  do local y = 1 f(x, y) end\n"
                       "  a:add_(\n"
                       "    x)\n"
                       "  f()\n"
                       "end\n"
                       "f(x)\n"
                       "for i = 1, x do f(i) end\n";
    mr_script *s = script_of(text);
    assert_true(is_held(s, 2, "sum", "x"));
    assert_true(is_held(s, 2, "add_", NULL)); /* another method of it may return another tensor */
    assert_true(is_held(s, 3, "add", NULL));
    assert_true(is_held(s, 4, "linear", "y"));
    assert_true(is_held(s, 5, "add", "y"));
    assert_true(is_held(s, 6, "f", "x"));
    assert_true(is_held(s, 7, "add_", "x"));
    assert_true(is_held(s, 8, "add_", "x"));
    assert_true(is_held(s, 9, "f", NULL));
    assert_true(is_held(s, 11, "f", NULL)); /* out of scope */
    char held[16];
    assert_false(mr_script_loop_variable(s, 12, 12, "f", 12, held, sizeof held));
    assert_false(mr_script_loop_variable(s, 3, 3, "add", 3, held, sizeof held));
    mr_script_free(s);
    s = script_of("for x in rows do\n"
                  "  f(x)\n"
                  "  x = g()\n"
                  "end\n");
    assert_true(is_held(s, 2, "f", NULL)); /* the text assigns to it */
    mr_script_free(s);
}

static void names_are_in_force(void **unused) {
    (void)unused;
    const char *text = "local s = 1\n"
                       "do\n"
                       "  local s = 2\n"
                       "  print(s)\n"
                       "end\n"
                       "print(s)\n"
                       "for i, t in pairs({}) do\n"
                       "  print(i, t)\n"
                       "end\n"
                       "local function f(s)\n"
                       "  return function() print(s) end\n"
                       "end\n"
                       "function M:go()\n"
                       "  print(self)\n"
                       "end\n"
                       "print(f)\n";
    mr_script *s = script_of(text);
    int outer = mr_script_binding(s, "s", 2);
    assert_true(outer && outer == mr_script_binding(s, "s", 6));
    assert_true(mr_script_binding(s, "s", 4) && mr_script_binding(s, "s", 4) != outer);
    assert_int_equal(mr_script_binding(s, "s", 1), 0);
    assert_int_equal(mr_script_binding(s, "s", 3), outer);
    assert_true(mr_script_binding(s, "s", 11) && mr_script_binding(s, "s", 11) != outer);
    assert_true(mr_script_binding(s, "t", 8) && !mr_script_binding(s, "t", 10));
    assert_true(mr_script_binding(s, "self", 14) && !mr_script_binding(s, "self", 16));
    assert_true(mr_script_binding(s, "f", 16) && mr_script_binding(s, "f", 11));
    assert_true(mr_script_in_loop(s, 8) && !mr_script_in_loop(s, 11));
    assert_true(mr_script_reaches(s, 2, 4) && !mr_script_reaches(s, 4, 6));
    mr_script_free(s);
}

static void assignments_are_counted(void **unused) {
    (void)unused;
    const char *text = "local a, last = f{last = 1}\n"
                       "local self = {last = a}\n"
                       "for i = 1, 3 do\n"
                       "  if last ~= a and last == i then g(last) end\n"
                       "  last = a\n"
                       "  a.b, self.last, last = 1, 2, function() last = 3 end\n"
                       "  local last = 4\n"
                       "  last = 5; (h or k).last = last\n"
                       "end\n"
                       "t[last], t[1] = last, last\n"
                       "function m() last = 6 end\n"
                       "last = 7\n";
    mr_script *s = script_of(text);
    int outer = mr_script_binding(s, "last", 3), inner = mr_script_binding(s, "last", 8);
    assert_true(outer && inner && outer != inner);
    assert_int_equal(mr_script_assigns(s, "last", outer, 1, INT_MAX), 5);
    assert_int_equal(mr_script_assigns(s, "last", outer, 1, 4), 0);
    assert_int_equal(mr_script_assigns(s, "last", outer, 5, 5), 1);
    assert_int_equal(mr_script_assigns(s, "last", outer, 7, 10), 0);
    assert_int_equal(mr_script_assigns(s, "last", inner, 1, INT_MAX), 1);
    assert_int_equal(mr_script_assigns(s, "last", MR_SCRIPT_FIELD, 1, INT_MAX), 2);
    assert_int_equal(mr_script_assigns(s, "a", mr_script_binding(s, "a", 3), 1, INT_MAX), 0);
    mr_script_free(s);
}

/* Torn and shuffled text: no answer is wrong there, but one there has to be. */
static void torn_text_harms_nothing(void **unused) {
    (void)unused;
    uint64_t seed = 88172645463325252u;
    char *text = read_file("tests/hazard_pair.lua");
    assert_non_null(text);
    size_t size = strlen(text);
    char *torn = malloc(size);
    for (int n = 0; n < 3000; n++) {
        size_t count = 0, most = 200 + seed % 2000;
        while (count < most) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            size_t from = (size_t)(seed >> 20) % size, piece = 1 + (size_t)(seed >> 50) % 40;
            if (from + piece > size || count + piece > size) break;
            memcpy(torn + count, text + from, piece);
            count += piece;
        }
        mr_script *s = read_text(torn, count);
        for (int line = 0; s && line < 60; line++) {
            mr_script_front(s, line);
            mr_script_behind(s, line);
            mr_script_function(s, line);
            mr_script_is_within(s, line, line + 3);
            mr_script_binding(s, "lines", line);
            mr_script_count(s, line, "lines");
            mr_script_follows(s, line, "lines", "lines");
            mr_script_indexes(s, line, "i");
            mr_script_loops(s, line, line + 1);
            mr_script_has_several(s, line);
            mr_script_is_one_run(s, line, line + 3);
        }
        mr_script_free(s);
    }
    free(torn);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lua_takes_a_line_at_every_place),
                                       cmocka_unit_test(statements_and_comments),
                                       cmocka_unit_test(some_calls_keep_their_function),
                                       cmocka_unit_test(a_statement_uses_one_variable_of_a_loop),
                                       cmocka_unit_test(names_are_in_force),
                                       cmocka_unit_test(assignments_are_counted),
                                       cmocka_unit_test(torn_text_harms_nothing)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mr_scripts_free(&read_last);
    return failed;
}
