/* Completion in readline, by the hooks. */
#ifndef MR_REPL_COMPLETE_H
#define MR_REPL_COMPLETE_H

#include "repl/line.h"

/* read_key: the next key, or 'n' where a signal comes instead. */
void mr_complete_open(const mr_line_hooks *hooks, int (*read_key)(void));

/* A command of readline, for TAB: as much of a name as is certain, else the list of what there is. Two spaces at the
 * beginning of a line. */
int mr_complete_or_indent(int count, int key);

#endif
