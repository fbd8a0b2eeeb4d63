/* Reading a line: see line.h. */
#include "repl/line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "repl/edit.h"
#include "repl/history.h"

static const mr_line_hooks *hooks;
static bool at_terminal;

/* Ctrl-C ends the read with EINTR, and the terminal has thrown away what was typed. */
static mr_line_status read_plain(const char *prompt, mr_buffer *out_line) {
    int c;
    out_line->size = 0;
    fputs(prompt, stdout);
    fflush(stdout);
    errno = 0;
    while ((c = getchar()) != EOF && c != '\n') {
        char byte = (char)c;
        mr_buffer_add(out_line, &byte, 1);
    }
    if (c == EOF && errno == EINTR && ferror(stdin)) {
        clearerr(stdin);
        putchar('\n');
        hooks->interrupted();
        return hooks->ended() ? MR_LINE_END : MR_LINE_INTERRUPTED;
    }
    mr_buffer_add(out_line, "", 0); /* so that there is a text, also of an empty line */
    return c == EOF && out_line->size == 0 ? MR_LINE_END : MR_LINE_READ;
}

void mr_line_open(const mr_line_hooks *wanted) {
    hooks = wanted;
    at_terminal = MR_HAVE_READLINE && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!at_terminal) return;
    mr_edit_open(hooks);
    mr_history_open(mr_edit_remember);
}

void mr_line_close(void) {
    mr_history_close();
}

mr_line_status mr_line_read(const char *prompt, mr_buffer *out_line) {
    if (hooks->ended()) return MR_LINE_END;
    return at_terminal ? mr_edit_read(prompt, out_line) : read_plain(prompt, out_line);
}

void mr_line_prefill(const char *text) {
    if (at_terminal) mr_edit_prefill(text);
}

void mr_line_remember(const char *entry) {
    if (!at_terminal || !*entry) return;
    if (mr_edit_remember(entry)) mr_history_add(entry);
}

bool mr_line_is_at_terminal(void) {
    return at_terminal;
}

bool mr_line_shows_colours(void) {
    return at_terminal && mr_output_has_colour(stdout);
}
