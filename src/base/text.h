/* Texts from a script (names, file names) in the form in which they are shown. They are cut between characters, and
 * written so that they neither break a line nor command a terminal.
 *
 * They are meant to be UTF-8, and need not be: what is not UTF-8 is shown as such. */
#ifndef MR_BASE_TEXT_H
#define MR_BASE_TEXT_H

#include "base/buffer.h"

#include <stdint.h>

/* For people: printable characters unchanged, control characters as \n or \x1b, bytes that are not UTF-8 as \xff. */
void mr_text_put(mr_buffer *out, const char *text);
int mr_text_width(const char *text); /* of that, in characters */

/* As the value of key=value: as it is or, where that would not end at the next blank, in double quotes
 * with the escapes above and \" and \\. */
void mr_text_put_value(mr_buffer *out, const char *text);

/* A string of JSON with its quotes. Each byte that is no UTF-8 becomes U+FFFD. */
void mr_text_put_json(mr_buffer *out, const char *text);

/* Copies as many whole characters as fit. A text that was cut has "..." at its end, or in front (mr_text_copy_end).
 * `size` is at least 8. */
void mr_text_copy(char *out, size_t size, const char *text);
void mr_text_copy_end(char *out, size_t size, const char *text);
/* Like snprintf; a text that was cut ends as with mr_text_copy. */
void mr_text_format(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void mr_text_formatv(char *out, size_t size, const char *format, va_list args);

#endif
