/* One piece of input: edited with GNU readline at a terminal, otherwise (or in a build without readline) a line of
 * standard input. */
#ifndef MR_REPL_LINE_H
#define MR_REPL_LINE_H

#include <stdbool.h>

#include "base/buffer.h"

typedef enum { MR_LINE_READ, MR_LINE_END, MR_LINE_INTERRUPTED } mr_line_status;

/* Functions that the editor calls. */
typedef struct {
    void *context;
    bool (*interrupted)(void); /* whether Ctrl-C came, and resets that */
    bool (*ended)(void);       /* whether the process is to end */
    /* More lines may make it an entry: then Enter begins another one. */
    bool (*is_incomplete)(void *context, const char *text, size_t size);
    /* Completions of text[*out_from ... point): an array that ends with NULL. The caller frees each element and the
     * array. NULL: none. */
    char **(*complete)(void *context, const char *text, int point, int *out_from);
    /* Returns the hint to show after the text, with the cursor at its end, or NULL. The caller frees it. */
    char *(*hint)(void *context, const char *text, size_t size);
    /* Returns the line above the prompt; NULL, or to be freed by the caller. Called at the beginning, and where `polls`
     * is set again while nothing is typed. *out_message: a message to print above it, likewise. */
    char *(*above)(void *context, char **out_message);
    bool polls;
    /* Shows what `complete` found last, if it was more than one. */
    void (*list)(void *context);
} mr_line_hooks;

/* Reads the history. `hooks` is kept by address. */
void mr_line_open(const mr_line_hooks *hooks);
void mr_line_close(void);

/* Shows the prompt and replaces *out_line by what was typed, without its last end of line; an editor that can show
 * several lines gives a whole entry. Blocks. END: of the input, or the process
 * is to end. INTERRUPTED: Ctrl-C came, and the typed text was discarded. */
mr_line_status mr_line_read(const char *prompt, mr_buffer *out_line);

/* The next read begins with this text, at a terminal. */
void mr_line_prefill(const char *text);

/* Adds an entry to the history, and writes it to the history file at once. */
void mr_line_remember(const char *entry);

/* Standard input and output are a terminal, whose input is edited. */
bool mr_line_is_at_terminal(void);
bool mr_line_shows_colours(void); /* the same, unless NO_COLOR or TERM say otherwise */

#endif
