/* One line of input: read by GNU readline at a terminal, otherwise (or in a build without readline) by
 * stdio. */
#ifndef MR_REPL_LINE_H
#define MR_REPL_LINE_H

#include <stdbool.h>

#include "base/buffer.h"

typedef enum { MR_LINE_READ, MR_LINE_END, MR_LINE_INTERRUPTED } mr_line_status;

/* Reads the history file in the user's home. `interrupted` returns whether Ctrl-C came, and resets
 * that. */
void mr_line_open(bool (*interrupted)(void));
void mr_line_close(void);

/* Shows the prompt and replaces *out_line by the next line, without its end. Blocks. INTERRUPTED:
 * Ctrl-C came, and the typed text was discarded. */
mr_line_status mr_line_read(const char *prompt, mr_buffer *out_line);

/* Adds a line to the history, and writes it to the history file at once. */
void mr_line_remember(const char *line);

#endif
