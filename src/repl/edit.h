/* Editing an entry at a terminal, with GNU readline: keys, several lines, pasted text, completion. */
#ifndef MR_REPL_EDIT_H
#define MR_REPL_EDIT_H

#include "repl/line.h"

void mr_edit_open(const mr_line_hooks *hooks);
mr_line_status mr_edit_read(const char *prompt, mr_buffer *out_line);
void mr_edit_prefill(const char *text);
/* False: it is the entry that was added last, or too long to be edited again. */
bool mr_edit_remember(const char *entry);

#endif
