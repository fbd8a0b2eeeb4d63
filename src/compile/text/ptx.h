/* The text of PTX as a compiler wrote it: symbols of kernels, and which lines of which files it names. */
#ifndef MR_COMPILE_PTX_H
#define MR_COMPILE_PTX_H

#include "base/buffer.h"

/* Takes out the variables PREFIX0, PREFIX1, ... (each points to a kernel), and the declarations of kernels that
 * they made necessary. Sets entries[i] to the symbol that variable i points to; the caller owns it. */
void mr_ptx_take_entries(mr_buffer *ptx, const char *prefix, char **entries, int count);

/* Gives the user's file the name that the user knows, where the compiler wrote a path, and removes empty sections. */
void mr_ptx_name_file(mr_buffer *ptx, const char *file);

/* For PTX whose text has moved: `.loc` lines of `old_file` become lines of `new_file`, `lines` further down. */
void mr_ptx_move(mr_buffer *ptx, const char *old_file, const char *new_file, int lines);

/* Is there a kernel of this symbol? */
bool mr_ptx_has_entry(const char *ptx, const char *symbol);

#endif
