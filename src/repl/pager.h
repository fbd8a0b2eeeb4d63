/* Long texts at a terminal. */
#ifndef MR_REPL_PAGER_H
#define MR_REPL_PAGER_H

#include <stdbool.h>
#include <stddef.h>

/* Shows the text with the program that PAGER names, by default `less`, and waits for it. False: the text fits on the
 * screen, or there is no such program; nothing was shown. */
bool mr_pager_show(const char *text, size_t size);

int mr_pager_rows(void); /* of the terminal; 0: it does not say */

#endif
