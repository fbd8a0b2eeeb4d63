/* Completion: see complete.h. */
#include "repl/complete.h"

#if MR_HAVE_READLINE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "repl/frame.h"
#include "repl/lines.h"

#define MOST_UNASKED 100 /* as in readline */

static const mr_line_hooks *hooks;
static int (*read_key)(void);
static size_t found_count; /* of the completion that was asked for last */

static bool is_blank_before_cursor(void) {
    int at = mr_lines_start(rl_point);
    at += (int)strspn(rl_line_buffer + at, " \t");
    return at >= rl_point;
}

/* Readline wants what can stand in its place for text[start, end): of each candidate, which begins at `from`, the part
 * from there on. */
static bool fit(char **candidate, int from, int start) {
    size_t length = strlen(*candidate);
    size_t before = from > start ? (size_t)(from - start) : 0,
           cut = start > from ? (size_t)(start - from) : 0;
    if (cut > length) return false;
    char *whole = malloc(before + length - cut + 1);
    if (!whole) return false;
    memcpy(whole, rl_line_buffer + start, before);
    strcpy(whole + before, *candidate + cut);
    free(*candidate);
    *candidate = whole;
    return true;
}

static size_t common_length(char **candidates, size_t count) {
    size_t length = strlen(candidates[0]);
    for (size_t i = 1; i < count; i++) {
        size_t same = 0;
        while (same < length && candidates[i][same] == candidates[0][same]) same++;
        length = same;
    }
    while (length && ((unsigned char)candidates[0][length] & 0xC0) == 0x80)
        length--; /* no half of a character */
    return length;
}

/* Readline's list begins with what they have in common. */
static char **complete(const char *text, int start, int end) {
    int from = start;
    size_t count = 0;
    bool fits = true;
    (void)text;
    rl_attempted_completion_over = 1;
    rl_completion_append_character = '\0';
    char **found = hooks->complete(hooks->context, rl_line_buffer, end, &from);
    if (!found) return NULL;
    for (; found[count]; count++) fits = fit(&found[count], from, start) && fits;
    found_count = count;
    char **matches = calloc(count + 2, sizeof *matches);
    fits = fits && matches && count;
    if (fits) matches[0] = strndup(found[0], common_length(found, count));
    for (size_t i = 0; i < count; i++) {
        if (fits && count > 1) matches[i + 1] = found[i];
        else free(found[i]);
    }
    free(found);
    if (fits) return matches;
    free(matches);
    return NULL;
}

/* A long list is shown only if the user says so. */
static bool is_list_wanted(void) {
    if (found_count < MOST_UNASKED) return true;
    fprintf(rl_outstream, "Display all %zu possibilities? (y or n)", found_count);
    fflush(rl_outstream);
    int key = read_key();
    fputs("\n", rl_outstream);
    fflush(rl_outstream);
    return key == 'y' || key == 'Y' || key == ' ';
}

static void list_matches(void) {
    bool is_ours = rl_redisplay_function != rl_redisplay;
    if (is_ours) mr_frame_leave();
    else rl_crlf();
    fflush(rl_outstream);
    if (is_list_wanted()) hooks->list(hooks->context);
    if (is_ours) (*rl_redisplay_function)();
    else rl_forced_update_display();
}

static void list_instead(char **matches, int count, int longest) {
    (void)matches, (void)count, (void)longest;
    list_matches();
}

int mr_complete_or_indent(int count, int key) {
    if (is_blank_before_cursor()) {
        rl_insert_text("  ");
        return 0;
    }
    int end = rl_end;
    found_count = 0;
    rl_complete(count, key);
    if (rl_end == end && found_count) list_matches();
    return 0;
}

void mr_complete_open(const mr_line_hooks *wanted, int (*wanted_key)(void)) {
    hooks = wanted;
    read_key = wanted_key;
    rl_attempted_completion_function = complete;
    rl_completion_display_matches_hook = list_instead;
    rl_completer_word_break_characters = " \t\n\"'`@$><=;|&{}()[],:.+-*/%^#~!?";
    rl_completer_quote_characters = rl_basic_quote_characters = ""; /* it would close strings */
}

#endif
