/* Text for a terminal: lines that end between words. All of the program's own texts are wrapped here. A word that is
 * too long for a line is left to the terminal. Colours take no room. */
#ifndef MR_BIND_WRAP_H
#define MR_BIND_WRAP_H

#include <lua.h>
#include <stdio.h>

#include "base/buffer.h"

/* The columns of the terminal; 0: it is not a terminal, or does not say. */
int mr_wrap_width(FILE *file);

/* The width of a page's lines: that of the terminal, or what COLUMNS says. */
int mr_page_width(void);

/* Adds a paragraph, without an end of line after it: `first` blanks, and as many words as fit into `width` columns;
 * further lines begin with `rest` blanks. The blanks between two words stay as they are. */
void mr_wrap_words(mr_buffer *out, const char *text, size_t size, int width, int first, int rest);

/* Adds the text. A line that is too wide goes on in the next one. If it has columns (two blanks or more in front of
 * each), it goes on below its last column. Otherwise it is indented by its own indent, at least by four blanks. */
void mr_wrap_lines(mr_buffer *out, const char *text, size_t size, int width);

/* The text as it is written to the file: on a terminal with such lines, which are then in `out`. */
const char *mr_wrap_for(FILE *file, const char *text, size_t *io_size, mr_buffer *out);

/* Writes the text; on a terminal, with such lines. */
void mr_write_wrapped(FILE *file, const char *text, size_t size);

/* Functions for Lua: wrap(text, width [, first, rest]) -> the lines of a paragraph as one text;
 * wrap_lines(text, width) -> text. */
int mr_wrap_call(lua_State *L);
int mr_wrap_lines_call(lua_State *L);

#endif
