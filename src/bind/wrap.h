/* Text for a terminal: lines that end between words. */
#ifndef MR_BIND_WRAP_H
#define MR_BIND_WRAP_H

#include <stdio.h>

/* Writes the text. On a terminal, a line that is wider than that goes on in the next one, indented by four blanks; a
 * word that is too long for a line is left to the terminal. */
void mr_write_wrapped(FILE *file, const char *text, size_t size);

#endif
