/* The kinds of an entry's parts, for its colours. */
#ifndef MR_REPL_COLOUR_H
#define MR_REPL_COLOUR_H

#include <stddef.h>

typedef enum {
    MR_COLOUR_PLAIN,
    MR_COLOUR_KEYWORD,
    MR_COLOUR_STRING,
    MR_COLOUR_NUMBER,
    MR_COLOUR_COMMENT,
    MR_COLOUR_NAME,    /* of millrace's: mr.zeros */
    MR_COLOUR_COMMAND, /* :step, ?x */
    MR_COLOUR_BRACKET, /* one of a pair that the cursor is at */
    MR_COLOUR_HINT,
    MR_COLOURS
} mr_colour;

/* out_colours[size]: the colour of each byte. */
void mr_colour_find(const char *text, size_t size, unsigned char *out_colours);

/* The other one of the pair of the bracket at `at`; `size`: it is not a bracket, or stands alone. */
size_t mr_colour_partner(const char *text, size_t size, const unsigned char *colours, size_t at);

/* The code that begins a colour. Readable on light and on dark terminals. */
const char *mr_colour_code(mr_colour colour);

#endif
