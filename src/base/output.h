/* The program's output to its standard streams. The amount can be limited, and output that cannot be written is always
 * reported. There is one counter for the whole process. */
#ifndef MR_BASE_OUTPUT_H
#define MR_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Limits the output from now on to `limit` bytes; 0 means no limit. `failed` is called whenever something
 * could not be written, because of the limit or for another reason; it may be NULL. */
void mr_output_open(uint64_t limit, void (*failed)(void));

/* To stdout or stderr. A text that would exceed the limit is not written at all. */
void mr_output_write(FILE *file, const char *text, size_t size);
void mr_output_flush(FILE *file);
/* The error with which a program ends. Bytes beyond the limit are left out, but the first bytes
 * are always written (MR_OUTPUT_MESSAGE), also when all output before has used the limit up. */
enum { MR_OUTPUT_MESSAGE = 4096 };
void mr_output_write_message(FILE *file, const char *text, size_t size);

/* Whether only ASCII should be written to a terminal: MILLRACE_ASCII (--ascii) is set, or the locale's variables do not
 * name UTF-8. */
bool mr_output_is_ascii(void);

/* Whether escape codes may be written: the file is a terminal, and TERM names one that knows them. */
bool mr_output_has_codes(FILE *file);
/* Whether colours may be written: the same, unless NO_COLOR is set. */
bool mr_output_has_colour(FILE *file);

typedef enum {
    MR_OUTPUT_WHOLE,
    MR_OUTPUT_BOUNDED, /* a text would have exceeded the limit */
    MR_OUTPUT_UNREAD,  /* the reader has closed the pipe */
    MR_OUTPUT_LOST,
} mr_output_state;

/* Flushes both streams, and returns whether all output so far was written, including output of Lua's io
 * library. */
mr_output_state mr_output_check(void);
/* The text for MR_OUTPUT_LOST: "cannot write to standard output: No space left on device". */
const char *mr_output_problem(void);

#endif
