/* One line of input: by GNU readline at a terminal, else (or in a build without it) by stdio. */
#ifndef MR_REPL_LINE_H
#define MR_REPL_LINE_H

#include <stdbool.h>

#include "base/buffer.h"

typedef enum { MR_LINE_READ, MR_LINE_END, MR_LINE_INTERRUPTED } mr_line_status;

/* Reads the history, of the user's home; `interrupted` tells whether Ctrl-C came, and forgets it. */
void mr_line_open(bool (*interrupted)(void));
void mr_line_close(void);

/* Shows the prompt and replaces *out_line by the next line, without its end. Blocks. INTERRUPTED:
 * Ctrl-C came and what was typed is gone. */
mr_line_status mr_line_read(const char *prompt, mr_buffer *out_line);

/* Adds a line to the history, at once in its file too. */
void mr_line_remember(const char *line);

#endif
