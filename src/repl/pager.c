/* Paging: see pager.h. */
#include "repl/pager.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"

#define NO_SUCH_PROGRAM 127 /* the shell's exit status in that case */

static size_t count_lines(const char *text, size_t size) {
    size_t lines = 0;
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    return lines;
}

int mr_pager_rows(void) {
    struct winsize window;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 ? window.ws_row : 0;
}

static bool fits_on_screen(const char *text, size_t size) {
    int rows = mr_pager_rows();
    return !rows || count_lines(text, size) < (size_t)rows;
}

/* Ctrl-C is the pager's, and a pager that is left before the end of the text has not failed. */
static int run(const char *command, const char *text, size_t size) {
    struct sigaction ignore, interrupt, pipe;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &interrupt);
    sigaction(SIGPIPE, &ignore, &pipe);
    fflush(stdout);
    FILE *pager = popen(command, "w");
    if (pager) fwrite(text, 1, size, pager);
    int status = pager ? pclose(pager) : -1;
    sigaction(SIGPIPE, &pipe, NULL);
    sigaction(SIGINT, &interrupt, NULL);
    return pager && WIFEXITED(status) ? WEXITSTATUS(status) : NO_SUCH_PROGRAM;
}

bool mr_pager_show(const char *text, size_t size) {
    const char *command = getenv("PAGER");
    if (!mr_output_has_codes(stdout) || fits_on_screen(text, size)) return false;
    return run(command && *command ? command : "less -R 2>/dev/null", text, size) !=
           NO_SUCH_PROGRAM;
}
