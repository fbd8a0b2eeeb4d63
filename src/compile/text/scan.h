/* Reads CUDA C++ without a compiler. Finds the files that it includes and its kernels, and says whether the PTX can
 * depend on the place of the text in the user's file. */
#ifndef MR_COMPILE_SCAN_H
#define MR_COMPILE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Appends the text with comments and the contents of literals as blanks, and with lines that end in a backslash joined.
 * The names in #include lines stay. */
void mr_scan_code(const char *text, size_t size, mr_buffer *out);

/* May the compiler's output contain a line number or a file's name, besides `.loc` and `.file`? `code` is from
 * mr_scan_code, or is an option. True also when in doubt. */
bool mr_scan_uses_place(const char *code);

typedef struct {
    const char *name; /* points into the code */
    size_t size;
    bool is_quoted; /* "name", not <name> */
} mr_include;

/* The next #include at or after *at, which then points after it. False: there is none. `out_unknown` is set if one
 * cannot be read (a macro), or if the code asks which files there are. */
bool mr_scan_include(const char **at, mr_include *out, bool *out_unknown);

/* Appends the kernels of the code as a list for a message: "saxpy, axpy<...>"; nothing: there is none. */
void mr_scan_kernels(const char *code, mr_buffer *out);

#endif
