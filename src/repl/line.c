/* Reading a line: see line.h. */
#include "repl/line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool (*was_interrupted)(void);

/* --- without readline -------------------------------------------------------------------------------- */

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
        was_interrupted();
        return MR_LINE_INTERRUPTED;
    }
    mr_buffer_add(out_line, "", 0); /* so that there is a text, also of an empty line */
    return c == EOF && out_line->size == 0 ? MR_LINE_END : MR_LINE_READ;
}

#if MR_HAVE_READLINE

#include <fcntl.h>
#include <poll.h>
#include <readline/history.h>
#include <readline/readline.h>
#include <signal.h>
#include <stdlib.h>

#define HISTORY_LINES 1000

static bool at_terminal;
static char *history_path; /* NULL: there is no history file */

/* --- history ----------------------------------------------------------------------------------------- */

static void open_history(void) {
    const char *home = getenv("HOME");
    mr_buffer path = {0};
    using_history();
    stifle_history(HISTORY_LINES);
    if (!home || !*home) return;
    mr_buffer_printf(&path, "%s/.millrace_history", home);
    if (path.failed) return;
    int file = open(path.data, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) {
        mr_buffer_free(&path);
        return;
    }
    close(file);
    history_path = path.data;
    read_history(history_path);
}

void mr_line_remember(const char *line) {
    if (!at_terminal || !*line) return;
    HIST_ENTRY *last = history_length > 0 ? history_get(history_base + history_length - 1) : NULL;
    if (last && strcmp(last->line, line) == 0) return;
    add_history(line);
    if (history_path) append_history(1, history_path);
}

/* --- readline ---------------------------------------------------------------------------------------- */

/* Readline's own signal handling would hide Ctrl-C from ours, and a handler may not jump out of it. So
 * its callback interface is used: we wait for input ourselves, and Ctrl-C ends the wait. */
static char *typed;
static bool is_complete;

static void on_line(char *line) {
    typed = line;
    is_complete = true;
    rl_callback_handler_remove();
}

#if RL_READLINE_VERSION >= 0x0802
/* Readline ends the line of Ctrl-D, and then each later line, too, since only its other interface clears the
 * mark. We end that line ourselves. */
static void leave_terminal(void) {
    rl_eof_found = 0;
    rl_deprep_terminal();
}
#endif

static void abandon_line(void) {
    rl_free_line_state();
    rl_callback_sigcleanup();
    rl_callback_handler_remove();
    putchar('\n');
    fflush(stdout);
}

static mr_line_status read_edited(const char *prompt, mr_buffer *out_line) {
    sigset_t interrupt, before;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    mr_line_status status = MR_LINE_READ;
    out_line->size = 0;
    typed = NULL;
    is_complete = false;
    /* SIGINT comes only within ppoll: not between the question and the wait. */
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    rl_callback_handler_install(prompt, on_line);
    while (!is_complete) {
        int ready = ppoll(&input, 1, NULL, &before);
        if (ready > 0) {
            rl_callback_read_char();
        } else if (was_interrupted()) {
            abandon_line();
            status = MR_LINE_INTERRUPTED;
            break;
        }
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (status == MR_LINE_INTERRUPTED) return status;
    if (!typed) { /* Ctrl-D */
        putchar('\n');
        return MR_LINE_END;
    }
    mr_buffer_puts(out_line, typed);
    free(typed);
    return MR_LINE_READ;
}

void mr_line_open(bool (*interrupted)(void)) {
    was_interrupted = interrupted;
    at_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!at_terminal) return;
    rl_readline_name = "millrace";
    rl_catch_signals = 0;
#if RL_READLINE_VERSION >= 0x0802
    rl_deprep_term_function = leave_terminal;
#endif
    rl_bind_key('\t', rl_insert); /* it would complete names of files */
    open_history();
}

void mr_line_close(void) {
    if (history_path) history_truncate_file(history_path, HISTORY_LINES);
    free(history_path);
    history_path = NULL;
}

mr_line_status mr_line_read(const char *prompt, mr_buffer *out_line) {
    return at_terminal ? read_edited(prompt, out_line) : read_plain(prompt, out_line);
}

#else

void mr_line_open(bool (*interrupted)(void)) {
    was_interrupted = interrupted;
}

void mr_line_close(void) {}

void mr_line_remember(const char *line) {
    (void)line;
}

mr_line_status mr_line_read(const char *prompt, mr_buffer *out_line) {
    return read_plain(prompt, out_line);
}

#endif
