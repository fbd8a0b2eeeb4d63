/* Whether a text ends within brackets, blocks or a long string, found line by line: each line is looked at once. So an
 * entry of many lines need not be given to Lua's parser, which decides, after each of them. */
#ifndef MR_REPL_NESTING_H
#define MR_REPL_NESTING_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed at first. */
typedef struct {
    long depth; /* of brackets and blocks */
    enum { MR_NESTING_CODE, MR_NESTING_LONG, MR_NESTING_STRING } within;
    int level;  /* of a long string or comment: how many `=` */
    char quote; /* of a string that goes on in the next line */
} mr_nesting;

void mr_nesting_add(mr_nesting *nesting, const char *line, size_t size); /* without its end */
bool mr_nesting_is_open(const mr_nesting *nesting);

#endif
