/* Numbers as text, with a decimal point in any locale that the script has set. os.setlocale changes the whole process.
 * But what the program writes (files, tensors, messages) and reads (device models, options, PTX) must not depend on it.
 *
 * `make lint` finds a float that is formatted or parsed in another way (scripts/numbers.lua). */
#ifndef MR_BASE_NUMBER_H
#define MR_BASE_NUMBER_H

#include <stdarg.h>
#include <stddef.h>

/* As snprintf and vsnprintf. */
int mr_number_format(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int mr_number_formatv(char *out, size_t size, const char *format, va_list args);

enum { MR_NUMBER_TEXT = 32 };
/* As Lua writes a float of 14 digits: "0.5", "inf", "-nan". Returns `out`. */
const char *mr_number_text(double value, char out[MR_NUMBER_TEXT]);

/* As strtod. */
double mr_number_parse(const char *text, char **out_end);

#endif
