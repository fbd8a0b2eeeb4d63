/* Patterns of Lua, matched in a way that can be stopped: string.find of a long string may take hours, and no hook of
 * Lua reaches a C function. The patterns mean what Lua's manual says, and errors have Lua's texts. */
#ifndef MR_HOST_PATTERN_H
#define MR_HOST_PATTERN_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define MR_PATTERN_MOST_CAPTURES 32

typedef struct {
    const char *begin;
    ptrdiff_t size; /* or MR_PATTERN_OPEN, MR_PATTERN_POSITION */
} mr_pattern_capture;

enum { MR_PATTERN_OPEN = -1, MR_PATTERN_POSITION = -2 };

/* One subject and one pattern, of strings that stay on the stack of L. */
typedef struct {
    lua_State *L;
    const char *subject, *subject_end;
    const char *pattern, *pattern_end; /* without a leading '^' */
    int depth;                         /* of calls that match() may still make */
    int steps;                         /* until it is asked whether to stop */
    int count;                         /* of captures */
    mr_pattern_capture captures[MR_PATTERN_MOST_CAPTURES];
} mr_pattern;

void mr_pattern_begin(mr_pattern *m, lua_State *L, const char *subject, size_t subject_size,
                      const char *pattern, size_t pattern_size);
/* The end of the match that begins at `at`; NULL: there is none. Raises for a malformed pattern, and when the script
 * is to stop. */
const char *mr_pattern_match(mr_pattern *m, const char *at);
/* Pushes that capture; number 0 of a pattern without any is the whole match, from `begin` to `end`. */
void mr_pattern_push(mr_pattern *m, int number, const char *begin, const char *end);
/* Pushes all of them; with `begin`, the whole match where there are none. Returns how many. */
int mr_pattern_push_all(mr_pattern *m, const char *begin, const char *end);
/* Whether the text has no character that means something in a pattern. */
bool mr_pattern_is_plain(const char *text, size_t size);

#endif
