/* Entries of the prompt: where Lua's parser says that a text is whole, no bracket may count as open; rows of entries;
 * what an entry declares. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lua.h>

#include "base/buffer.h"
#include "repl/entry.h"
#include "repl/nesting.h"
#include "script/script.h"

static lua_State *L;

static int open_state(void **state) {
    (void)state;
    L = luaL_newstate();
    return L ? 0 : -1;
}

static int close_state(void **state) {
    (void)state;
    lua_close(L);
    return 0;
}

/* ---- nesting against the parser */

/* Each beginning of the text that ends with a line, from each line that begins a statement on. */
static size_t check_prefixes(const char *text, size_t size) {
    size_t whole = 0, from = 0, at = 0;
    mr_nesting nesting = {0};
    while (at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        mr_nesting_add(&nesting, text + at, length);
        at += length;
        mr_entry_verdict verdict = mr_entry_judge(L, text + from, at - from);
        if (verdict == MR_ENTRY_WHOLE) {
            if (mr_nesting_is_open(&nesting))
                fail_msg("counted as open: %.*s", (int)(at - from), text + from);
            whole++;
            from = at + 1;
            nesting = (mr_nesting){0};
        } else if (verdict == MR_ENTRY_WRONG) {
            from = at + 1;
            nesting = (mr_nesting){0};
        }
        at++;
    }
    return whole;
}

static void read_file(const char *path, mr_buffer *out) {
    char piece[4096];
    size_t size;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    while ((size = fread(piece, 1, sizeof piece, file)) > 0) mr_buffer_add(out, piece, size);
    fclose(file);
    assert_false(out->failed);
}

static size_t check_folder(const char *folder) {
    size_t whole = 0;
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        char path[512];
        mr_buffer text = {0};
        const char *end = strrchr(entry->d_name, '.');
        if (!end || strcmp(end, ".lua") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        read_file(path, &text);
        if (text.size < 20000)
            whole +=
                check_prefixes(text.data, text.size); /* the parser reads each again and again */
        mr_buffer_free(&text);
    }
    closedir(directory);
    return whole;
}

static void test_nesting_of_the_scripts(void **state) {
    (void)state;
    size_t whole = check_folder("scripts/examples") + check_folder("tests/conformance") +
                   check_folder("tests/host") + check_folder("lua/millrace/prompt");
    assert_true(whole > 1000);
}

static bool is_open_after(const char *text) {
    mr_nesting nesting = {0};
    for (const char *at = text; at;) {
        const char *end = strchr(at, '\n');
        mr_nesting_add(&nesting, at, end ? (size_t)(end - at) : strlen(at));
        at = end ? end + 1 : NULL;
    }
    return mr_nesting_is_open(&nesting);
}

static void test_nesting_of_strings_and_comments(void **state) {
    static const char *const open[] = {
        "x = {",    "f(",        "if a then\nx = 1", "s = [[\n]=]", "--[==[ ]]\n]=]",
        "s = 'a\\", "repeat\nx", "function f()",     NULL};
    static const char *const closed[] = {"x = '{'",
                                         "-- {",
                                         "x = [[(\n{]]",
                                         "--[[ (\n]] x = 1",
                                         "s = 'a\\\n{'",
                                         "repeat until x",
                                         "x = \"\\\"{\"",
                                         "for i = 1, 2 do end",
                                         "s = [==[ ]]\n]==]",
                                         "a['function'] = end_of",
                                         NULL};
    (void)state;
    for (const char *const *text = open; *text; text++)
        if (!is_open_after(*text)) fail_msg("not open: %s", *text);
    for (const char *const *text = closed; *text; text++)
        if (is_open_after(*text)) fail_msg("open: %s", *text);
}

/* Random pieces: what is whole is never counted as open. */
static void test_nesting_of_random_pieces(void **state) {
    static const char *const pieces[] = {
        "(",         ")",       "{",      "}",  "[",   "]",       "[[",  "]]",
        "[=[",       "]=]",     "'",      "\"", "\\",  "\n",      "--",  " ",
        "x",         "=",       "1",      ",",  "do ", "end ",    "if ", "then ",
        "function ", "repeat ", "until ", "f",  ";",   "return ", "..",  "while "};
    uint32_t seed = 12345;
    size_t whole = 0;
    (void)state;
    for (int round = 0; round < 200000; round++) {
        char text[256] = "";
        int count = 1 + round % 12;
        for (int i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            strcat(text, pieces[(seed >> 16) % (sizeof pieces / sizeof *pieces)]);
        }
        bool is_command = text[strspn(text, " \t")] == '=';
        if (is_command || mr_entry_judge(L, text, strlen(text)) != MR_ENTRY_WHOLE) continue;
        if (is_open_after(text)) fail_msg("counted as open: %s", text);
        whole++;
    }
    assert_true(whole > 1000);
}

/* ---- verdicts and rows */

static mr_entry_verdict judge(const char *text) {
    return mr_entry_judge(L, text, strlen(text));
}

static void test_verdicts(void **state) {
    (void)state;
    assert_int_equal(judge("x = 1"), MR_ENTRY_WHOLE);
    assert_int_equal(judge("1 +"), MR_ENTRY_TOO_SHORT);
    assert_int_equal(judge("for i = 1, 2 do"), MR_ENTRY_TOO_SHORT);
    assert_int_equal(judge("x x"), MR_ENTRY_WRONG);
    assert_int_equal(judge("= f("), MR_ENTRY_TOO_SHORT);
    assert_int_equal(judge("= f()"), MR_ENTRY_WHOLE);
    assert_int_equal(judge(":q anything ("), MR_ENTRY_WHOLE);
    assert_int_equal(judge("  ?x"), MR_ENTRY_WHOLE);
    assert_int_equal(judge("::label::"), MR_ENTRY_WHOLE);
    assert_int_equal(judge(":q\nx = 1"), MR_ENTRY_WRONG);
    assert_int_equal(judge(""), MR_ENTRY_WHOLE);
    assert_int_equal(mr_entry_judge(L, "x = '\0'", 7), MR_ENTRY_WHOLE);
}

static size_t first_of(const char *text) {
    return mr_entry_first(L, text, strlen(text));
}

static void test_rows(void **state) {
    (void)state;
    assert_int_equal(first_of("x = 1"), 5);
    assert_int_equal(first_of("x = 1\ny = 2"), 11); /* one chunk */
    assert_int_equal(first_of("x = 1\nx"), 6);      /* two: the second is an expression */
    assert_int_equal(first_of("for i = 1, 2 do\nend\n1"), 20);
    assert_int_equal(first_of(":q\nx = 1"), 3);
    assert_int_equal(first_of("x\nfunction f(\nx x\nend"),
                     21); /* no row: all of it, for its error */
}

/* `expected`: the entries, with | between them; NULL: the text is not a session. */
static void check_session(const char *text, const char *expected) {
    mr_buffer typed = {0};
    assert_int_equal(mr_entry_is_session(L, text, strlen(text)), expected != NULL);
    if (!expected) return;
    mr_entry_from_session(L, text, strlen(text), &typed);
    assert_true(typed.size > 0 && !typed.data[typed.size - 1]);
    for (size_t i = 0; i + 1 < typed.size; i++)
        if (!typed.data[i]) typed.data[i] = '|';
    assert_string_equal(typed.data, expected);
    mr_buffer_free(&typed);
}

static void test_copied_sessions(void **state) {
    (void)state;
    check_session("x = 1", NULL);
    check_session("mr:x> 1", NULL);
    check_session("mr = 1", NULL);
    check_session("mr:", NULL);
    check_session("mr:7> x = 1", "x = 1");
    check_session("mr:7 [copy; 3 pending at 0.1 ms]> x", "x");
    check_session(
        "mr:1> 1 + 1\n2\nmr:2> for i = 1, 2 do\n  print(i)\nend\n1\n2\nmr:3> :q\nnothing\nmr:4>",
        "1 + 1|for i = 1, 2 do\n  print(i)\nend|:q");
    check_session("mr:1> f(\n..> 1)\nmr:2> 5\n5", "f(\n1)|5");
    check_session("mr> f(\n..>\n..>   1)\nan answer\nmr> 5\n5\nmr>", "f(\n\n  1)|5");
    check_session("    mr> do\n    ..> end\n    mr:2 [s]> x", "do\nend|x"); /* indented in a page */
    check_session("..>   g()\n..> end)", "  g()\nend)");
    check_session("mr>1", NULL);
    check_session("mr>= 1", NULL);
    check_session("mrs> 1", NULL);
    check_session("..x", NULL);
}

/* ---- what an entry declares */

static void check_locals(const char *text, const char *expected, long return_at, long quiet_at) {
    mr_scripts kept = {0};
    char found[256] = "";
    size_t next = 0;
    mr_script_local local;
    mr_script *script = mr_script_of(&kept, "mr:1", text);
    assert_non_null(script);
    while (mr_script_next_local(script, &next, &local)) {
        size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%.*s%s%s ", local.length, local.name,
                 local.is_const ? "!" : "", local.is_close ? "x" : "");
    }
    assert_string_equal(found, expected);
    assert_int_equal(mr_script_return_at(script), return_at);
    assert_int_equal(mr_script_quiet_at(script), quiet_at);
    if (quiet_at >= 0) assert_true(mr_script_ends_at(script) <= quiet_at);
    mr_script_free(script);
    mr_scripts_free(&kept);
}

static void test_declarations(void **state) {
    (void)state;
    check_locals("local a, b <const>, c <close> = 1, 2", "a b! c!x ", -1, -1);
    check_locals("local function f() local x end do local y end local z", "f z ", -1, -1);
    check_locals("for i = 1, 2 do end local a = function(p) return p end", "a ", -1, -1);
    check_locals("local a return a", "a ", 8, -1);
    check_locals("return function() return 1 end;", "", 0, 30);
    check_locals("x = 1 ; -- the end", "", -1, 6);
    check_locals("#x", "", -1, -1);
    check_locals("if a then local b elseif c then local d else local e end local f", "f ", -1, -1);
}

static void test_texts_are_read_anew(void **state) {
    mr_scripts kept = {0};
    int length = 0;
    (void)state;
    mr_script *first = mr_script_of(&kept, "mr:1", "a\nb"),
              *again = mr_script_of(&kept, "mr:1", "a\nb");
    mr_script *other = mr_script_of(&kept, "mr:1", "c");
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, other);
    assert_int_equal(mr_script_line_count(first), 2);
    assert_memory_equal(mr_script_line(first, 2, &length), "b", 1);
    assert_int_equal(length, 1);
    assert_null(mr_script_line(first, 3, &length));
    assert_null(mr_script_line(first, 0, &length));
    mr_script_free(first);
    mr_script_free(again);
    mr_script_free(other);
    mr_scripts_free(&kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesting_of_the_scripts),
        cmocka_unit_test(test_nesting_of_strings_and_comments),
        cmocka_unit_test(test_nesting_of_random_pieces),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_copied_sessions),
        cmocka_unit_test(test_texts_are_read_anew),
    };
    return cmocka_run_group_tests(tests, open_state, close_state);
}
