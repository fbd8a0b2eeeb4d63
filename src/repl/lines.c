/* Several lines: see lines.h. */
#include "repl/lines.h"

#if MR_HAVE_READLINE

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <readline/readline.h>

#include "repl/nesting.h"

int mr_lines_start(int at) {
    while (at > 0 && rl_line_buffer[at - 1] != '\n') at--;
    return at;
}

static int line_end(int at) {
    while (at < rl_end && rl_line_buffer[at] != '\n') at++;
    return at;
}

/* Bytes count as columns. */
int mr_lines_up(int count, int key) {
    int start = mr_lines_start(rl_point);
    if (start == 0) return rl_get_previous_history(count, key);
    int before = mr_lines_start(start - 1), column = rl_point - start;
    rl_point = before + column < start - 1 ? before + column : start - 1;
    return 0;
}

int mr_lines_down(int count, int key) {
    int end = line_end(rl_point);
    if (end == rl_end) return rl_get_next_history(count, key);
    int column = rl_point - mr_lines_start(rl_point), last = line_end(end + 1);
    rl_point = end + 1 + column < last ? end + 1 + column : last;
    return 0;
}

int mr_lines_home(int count, int key) {
    (void)count, (void)key;
    rl_point = mr_lines_start(rl_point);
    return 0;
}

int mr_lines_end(int count, int key) {
    (void)count, (void)key;
    rl_point = line_end(rl_point);
    return 0;
}

static int indent_of(int start) {
    int at = start;
    while (at < rl_end && rl_line_buffer[at] == ' ') at++;
    return at - start;
}

static bool is_one_of(const char *word, size_t length, const char *const *words) {
    while (*words && (strlen(*words) != length || memcmp(*words, word, length) != 0)) words++;
    return *words != NULL;
}

static size_t word_length(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyz");
}

/* The line up to the cursor opens a block or a bracket. */
static bool opens_block(int start) {
    static const char *const words[] = {"do", "then", "else", "repeat", NULL};
    int end = rl_point, from;
    while (end > start && rl_line_buffer[end - 1] == ' ') end--;
    if (end == start) return false;
    for (from = end; from > start && word_length(rl_line_buffer + from - 1); from--) {}
    if (strchr("({[", rl_line_buffer[end - 1])) return true;
    if (is_one_of(rl_line_buffer + from, (size_t)(end - from), words)) return true;
    if (rl_line_buffer[end - 1] != ')') return false;
    mr_nesting nesting = {0}; /* `function f(a)` leaves the block open */
    mr_nesting_add(&nesting, rl_line_buffer + start, (size_t)(end - start));
    return mr_nesting_is_open(&nesting);
}

/* In a long string the text is the user's to the last space. */
static bool is_in_string(void) {
    mr_nesting nesting = {0};
    for (int at = 0; at <= rl_point; at = line_end(at) + 1) {
        int end = line_end(at) < rl_point ? line_end(at) : rl_point;
        mr_nesting_add(&nesting, rl_line_buffer + at, (size_t)(end - at));
        if (end == rl_point) break;
    }
    return nesting.within != MR_NESTING_CODE;
}

#define STEP 2

static int indented = -1; /* where the line begins that was indented last */

/* Moves `end` back under the block that it ends, unless the user has moved it. */
static void outdent(int start) {
    static const char *const words[] = {"end", "else", "elseif", "until", NULL};
    int indent = indent_of(start);
    const char *text = rl_line_buffer + start + indent;
    bool closes = is_one_of(text, word_length(text), words) || (*text && strchr(")}]", *text));
    if (start != indented || indent < STEP || !closes) return;
    int before = indent_of(mr_lines_start(start - 1));
    if (indent != before && !(start && indent == before + STEP)) return;
    rl_delete_text(start, start + STEP);
    rl_point -= STEP;
}

int mr_lines_new(int count, int key) {
    (void)count, (void)key;
    int start = mr_lines_start(rl_point);
    bool is_text = is_in_string();
    if (!is_text && start && rl_point >= start + STEP) outdent(start);
    int indent = is_text ? 0 : indent_of(start) + (opens_block(start) ? STEP : 0);
    rl_insert_text("\n");
    indented = mr_lines_start(rl_point);
    while (indent-- > 0) rl_insert_text(" ");
    return 0;
}

void mr_lines_finish(void) {
    int start = mr_lines_start(rl_end);
    if (!start || is_in_string()) return;
    outdent(start);
}

#endif
