/* Columns that characters take on a terminal. */
#ifndef MR_BASE_COLUMNS_H
#define MR_BASE_COLUMNS_H

#include <stddef.h>

/* The bytes of the character at `text`, at least 1 and at most `size` (at least 1). *out_columns: 2 for a wide one, 0
 * for one that combines with others or turns the direction of the line. A byte that is no UTF-8 is a character. */
size_t mr_columns_next(const char *text, size_t size, int *out_columns);

/* Columns of the whole text; a code of colours (ESC up to m) takes none. */
size_t mr_columns_of(const char *text, size_t size);

#endif
