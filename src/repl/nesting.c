/* Brackets and blocks: see nesting.h. */
#include "repl/nesting.h"

#include <string.h>

static bool is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* By how much the word changes the depth. The `do` of a loop counts, and its head does not. */
static int step_of(const char *word, size_t length) {
    static const struct {
        const char *word;
        int step;
    } words[] = {{"function", 1}, {"do", 1}, {"if", 1}, {"repeat", 1}, {"end", -1}, {"until", -1}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length && memcmp(words[i].word, word, length) == 0)
            return words[i].step;
    return 0;
}

/* At `[==[`: its end, and *out_level = 2; NULL: there is none. */
static const char *opens_long(const char *at, const char *end, int *out_level) {
    const char *p = at + 1;
    while (p < end && *p == '=') p++;
    *out_level = (int)(p - at) - 1;
    return *at == '[' && p < end && *p == '[' ? p + 1 : NULL;
}

/* The end of the long string that is open, if it ends on this line; else the line's. */
static const char *skip_long(mr_nesting *n, const char *at, const char *end) {
    for (; at < end; at++) {
        if (*at != ']') continue;
        const char *p = at + 1;
        while (p < end && *p == '=') p++;
        if (p < end && *p == ']' && p - at - 1 == n->level) {
            n->within = MR_NESTING_CODE;
            return p + 1;
        }
    }
    return end;
}

/* The same of a string: it goes on only after a backslash. */
static const char *skip_string(mr_nesting *n, const char *at, const char *end) {
    n->within = MR_NESTING_CODE;
    for (; at < end && *at != n->quote; at++) {
        if (*at != '\\') continue;
        if (++at == end) {
            n->within = MR_NESTING_STRING;
            return end;
        }
    }
    return at < end ? at + 1 : end;
}

/* One word, symbol, string or comment. */
static const char *read_one(mr_nesting *n, const char *at, const char *end) {
    bool is_comment = end - at >= 2 && at[0] == '-' && at[1] == '-';
    const char *from = is_comment ? at + 2 : at, *inside;
    int level;
    if (from < end && (inside = opens_long(from, end, &level))) {
        n->within = MR_NESTING_LONG;
        n->level = level;
        return inside;
    }
    if (is_comment) return end;
    if (is_word(*at)) {
        while (at < end && is_word(*at)) at++;
        n->depth += step_of(from, (size_t)(at - from));
        return at;
    }
    if (*at == '"' || *at == '\'') {
        n->quote = *at;
        return skip_string(n, at + 1, end);
    }
    if (strchr("([{", *at) && *at) n->depth++;
    if (strchr(")]}", *at) && *at) n->depth--;
    return at + 1;
}

void mr_nesting_add(mr_nesting *n, const char *at, size_t size) {
    const char *end = at + size;
    if (n->within == MR_NESTING_STRING) at = skip_string(n, at, end);
    while (at < end)
        at = n->within == MR_NESTING_LONG ? skip_long(n, at, end) : read_one(n, at, end);
}

bool mr_nesting_is_open(const mr_nesting *n) {
    return n->depth > 0 || n->within != MR_NESTING_CODE;
}
