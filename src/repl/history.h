/* The file of the entries that were typed: $XDG_STATE_HOME/millrace/history, by default
 * ~/.local/state/millrace/history. One line for each entry, in which `\n` stands for the end of a line and `\\` for a
 * backslash. */
#ifndef MR_REPL_HISTORY_H
#define MR_REPL_HISTORY_H

#include <stdbool.h>

/* Calls `add` for each entry of the file, the oldest first; the last 10000 are kept. Without a home there is no
 * file. */
void mr_history_open(bool (*add)(const char *entry));
void mr_history_add(const char *entry); /* written at once */
void mr_history_close(void);

#endif
