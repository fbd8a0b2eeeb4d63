/* Internal to src/files: a reader of JSON for headers. It goes through a text once and makes no tree: the caller asks
 * for the kind of value that the format has at each place.
 *
 * Each function skips white space first and returns whether such a value was there. If not, the reader stays there, and
 * the text is invalid for this caller. The caller has to find duplicate keys. */
#ifndef MR_FILES_JSON_H
#define MR_FILES_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *begin, *at, *end;
    bool out_of_memory;
} mr_json;

/* One character of the grammar: { } [ ] : , */
bool mr_json_take(mr_json *j, char c);
/* A string, as UTF-8 in memory for free(). Not one with \u0000 in it, nor with bytes that are no UTF-8. */
bool mr_json_string(mr_json *j, char **out_text);
/* A whole number from 0 to INT64_MAX, without fraction and exponent. */
bool mr_json_size(mr_json *j, int64_t *out_number);
/* Any value, nested at most 64 deep. */
bool mr_json_skip(mr_json *j);
/* Call this before each item of an object or a list whose bracket was taken, with *count 0 at first. Takes the comma
 * and returns true if one more item follows; takes the `close` bracket and returns false. *out_bad: neither is
 * there. */
bool mr_json_next(mr_json *j, char close, size_t *count, bool *out_bad);

/* Whether the text up to its NUL is UTF-8. */
bool mr_is_utf8(const char *text);

#endif
