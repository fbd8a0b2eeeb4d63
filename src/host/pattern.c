/* The matcher: see pattern.h. It backtracks by recursion, as deep as Lua's own.
 *
 * Easiest to break: the ends. A pattern has a 0 byte after it, as all strings of Lua do, so one character may be read
 * there; a subject has one, too, and may hold others. */
#include "host/pattern.h"

#include <ctype.h>
#include <lauxlib.h>
#include <string.h>

#include "host/interrupt.h"

#define ESCAPE     '%'
#define MOST_DEPTH 200
#define STEPS      10000 /* of about 10 ns each */

static const char *match(mr_pattern *m, const char *s, const char *p);

static inline void count_step(mr_pattern *m) {
    if (--m->steps > 0) return;
    m->steps = STEPS;
    mr_stop_check(m->L);
}

/* ---- one item: a character, '.', a class, a set */

/* After the item that begins at p. */
static const char *item_end(const mr_pattern *m, const char *p) {
    if (*p == ESCAPE) {
        if (p + 1 == m->pattern_end) luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 2;
    }
    if (*p != '[') return p + 1;
    p += p[1] == '^' ? 2 : 1;
    do { /* a ']' that comes first is a character of the set */
        if (p == m->pattern_end) luaL_error(m->L, "malformed pattern (missing ']')");
        p += *p == ESCAPE && p + 1 < m->pattern_end ? 2 : 1;
    } while (*p != ']');
    return p + 1;
}

static bool is_in_class(int c, int class) {
    bool is_in;
    switch (tolower(class)) {
    case 'a': is_in = isalpha(c) != 0; break;
    case 'c': is_in = iscntrl(c) != 0; break;
    case 'd': is_in = isdigit(c) != 0; break;
    case 'g': is_in = isgraph(c) != 0; break;
    case 'l': is_in = islower(c) != 0; break;
    case 'p': is_in = ispunct(c) != 0; break;
    case 's': is_in = isspace(c) != 0; break;
    case 'u': is_in = isupper(c) != 0; break;
    case 'w': is_in = isalnum(c) != 0; break;
    case 'x': is_in = isxdigit(c) != 0; break;
    case 'z': is_in = c == 0; break; /* of older versions */
    default: return class == c;
    }
    return isupper(class) ? !is_in : is_in;
}

/* p stands at '[', `last` at its ']'. */
static bool is_in_set(int c, const char *p, const char *last) {
    bool found = p[1] != '^';
    for (p += found ? 1 : 2; p < last; p++) {
        if (*p == ESCAPE) {
            if (is_in_class(c, (unsigned char)*++p)) return found;
        } else if (p[1] == '-' && p + 2 < last) {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2]) return found;
            p += 2;
        } else if ((unsigned char)*p == c) {
            return found;
        }
    }
    return !found;
}

static inline bool takes(mr_pattern *m, const char *s, const char *p, const char *end) {
    count_step(m);
    if (s >= m->subject_end) return false;
    int c = (unsigned char)*s;
    switch (*p) {
    case '.': return true;
    case ESCAPE: return is_in_class(c, (unsigned char)p[1]);
    case '[': return is_in_set(c, p, end - 1);
    default: return (unsigned char)*p == c;
    }
}

/* ---- captures */

static const char *begin_capture(mr_pattern *m, const char *s, const char *p, ptrdiff_t size) {
    if (m->count == MR_PATTERN_MOST_CAPTURES) luaL_error(m->L, "too many captures");
    m->captures[m->count++] = (mr_pattern_capture){s, size};
    const char *end = match(m, s, p);
    if (!end) m->count--;
    return end;
}

static const char *end_capture(mr_pattern *m, const char *s, const char *p) {
    int last = m->count - 1;
    while (last >= 0 && m->captures[last].size != MR_PATTERN_OPEN) last--;
    if (last < 0) luaL_error(m->L, "invalid pattern capture");
    mr_pattern_capture *capture = &m->captures[last];
    capture->size = s - capture->begin;
    const char *end = match(m, s, p);
    if (!end) capture->size = MR_PATTERN_OPEN;
    return end;
}

/* Matches the text of `%1` again; NULL: the subject differs. */
static const char *match_again(mr_pattern *m, const char *s, char digit) {
    int number = digit - '1';
    if (number < 0 || number >= m->count || m->captures[number].size == MR_PATTERN_OPEN)
        luaL_error(m->L, "invalid capture index %%%d", number + 1);
    const mr_pattern_capture *capture = &m->captures[number];
    if (capture->size < 0 || m->subject_end - s < capture->size)
        return NULL; /* a position matches nothing */
    count_step(m);
    return memcmp(capture->begin, s, (size_t)capture->size) == 0 ? s + capture->size : NULL;
}

/* ---- what stands for several characters */

/* p stands after `%b`. */
static const char *match_balance(mr_pattern *m, const char *s, const char *p) {
    if (p >= m->pattern_end - 1) luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
    if (s >= m->subject_end || *s != *p) return NULL;
    int open = 1;
    while (++s < m->subject_end) {
        count_step(m);
        if (*s == p[1]) {
            if (--open == 0) return s + 1;
        } else if (*s == p[0]) {
            open++;
        }
    }
    return NULL;
}

/* p stands after `%f`; whether the set begins here. */
static bool is_frontier(const mr_pattern *m, const char *s, const char *p, const char **out_end) {
    if (*p != '[') luaL_error(m->L, "missing '[' after '%cf' in pattern", '%');
    const char *end = *out_end = item_end(m, p);
    int before = s == m->subject ? 0 : (unsigned char)s[-1];
    return !is_in_set(before, p, end - 1) && is_in_set((unsigned char)*s, p, end - 1);
}

/* As many of the item from p to `end` as possible, then fewer. */
static const char *match_most(mr_pattern *m, const char *s, const char *p, const char *end) {
    const char *at = s, *found;
    while (takes(m, at, p, end)) at++;
    while (!(found = match(m, at, end + 1)) && at > s) at--;
    return found;
}

/* As few as possible, then more. */
static const char *match_fewest(mr_pattern *m, const char *s, const char *p, const char *end) {
    const char *found;
    while (!(found = match(m, s, end + 1)) && takes(m, s, p, end)) s++;
    return found;
}

/* ---- the pattern */

/* An item with what may follow it, '*' and so on. True: the match goes on at *io_s and *io_p; false: *io_s is how it
 * ended. */
static bool match_item(mr_pattern *m, const char **io_s, const char **io_p) {
    const char *s = *io_s, *p = *io_p, *end = item_end(m, p), *found;
    switch (*end) {
    case '*': *io_s = match_most(m, s, p, end); return false;
    case '+': *io_s = takes(m, s, p, end) ? match_most(m, s + 1, p, end) : NULL; return false;
    case '-': *io_s = match_fewest(m, s, p, end); return false;
    case '?':
        if (takes(m, s, p, end) && (found = match(m, s + 1, end + 1)) != NULL) {
            *io_s = found;
            return false;
        }
        *io_p = end + 1;
        return true;
    default:
        *io_s = takes(m, s, p, end) ? s + 1 : NULL;
        *io_p = end;
        return *io_s != NULL;
    }
}

/* The same for what begins with an escape. */
static bool match_escape(mr_pattern *m, const char **io_s, const char **io_p) {
    const char *p = *io_p, *end;
    switch (p[1]) {
    case 'b':
        *io_s = match_balance(m, *io_s, p + 2);
        *io_p = p + 4;
        return *io_s != NULL;
    case 'f':
        if (!is_frontier(m, *io_s, p + 2, &end)) *io_s = NULL;
        *io_p = end;
        return *io_s != NULL;
    default:
        if (!isdigit((unsigned char)p[1])) return match_item(m, io_s, io_p);
        *io_s = match_again(m, *io_s, p[1]);
        *io_p = p + 2;
        return *io_s != NULL;
    }
}

static const char *match_all(mr_pattern *m, const char *s, const char *p) {
    while (p != m->pattern_end) {
        bool goes_on;
        switch (*p) {
        case '(':
            if (p[1] == ')') return begin_capture(m, s, p + 2, MR_PATTERN_POSITION);
            return begin_capture(m, s, p + 1, MR_PATTERN_OPEN);
        case ')': return end_capture(m, s, p + 1);
        case '$':
            if (p + 1 == m->pattern_end) return s == m->subject_end ? s : NULL;
            goes_on = match_item(m, &s, &p);
            break;
        case ESCAPE: goes_on = match_escape(m, &s, &p); break;
        default: goes_on = match_item(m, &s, &p); break;
        }
        if (!goes_on) return s;
    }
    return s;
}

static const char *match(mr_pattern *m, const char *s, const char *p) {
    if (m->depth-- == 0) luaL_error(m->L, "pattern too complex");
    const char *end = match_all(m, s, p);
    m->depth++;
    return end;
}

/* ---- for string.find and the others */

void mr_pattern_begin(mr_pattern *m, lua_State *L, const char *subject, size_t subject_size,
                      const char *pattern, size_t pattern_size) {
    m->L = L;
    m->subject = subject;
    m->subject_end = subject + subject_size;
    m->pattern = pattern;
    m->pattern_end = pattern + pattern_size;
    m->steps = STEPS;
    m->count = 0;
}

const char *mr_pattern_match(mr_pattern *m, const char *at) {
    m->depth = MOST_DEPTH;
    m->count = 0;
    return match(m, at, m->pattern);
}

void mr_pattern_push(mr_pattern *m, int number, const char *begin, const char *end) {
    if (number >= m->count) {
        if (number != 0) luaL_error(m->L, "invalid capture index %%%d", number + 1);
        lua_pushlstring(m->L, begin, (size_t)(end - begin));
        return;
    }
    const mr_pattern_capture *capture = &m->captures[number];
    if (capture->size == MR_PATTERN_OPEN) luaL_error(m->L, "unfinished capture");
    if (capture->size == MR_PATTERN_POSITION)
        lua_pushinteger(m->L, capture->begin - m->subject + 1);
    else lua_pushlstring(m->L, capture->begin, (size_t)capture->size);
}

int mr_pattern_push_all(mr_pattern *m, const char *begin, const char *end) {
    int count = m->count == 0 && begin ? 1 : m->count;
    luaL_checkstack(m->L, count, "too many captures");
    for (int i = 0; i < count; i++) mr_pattern_push(m, i, begin, end);
    return count;
}

bool mr_pattern_is_plain(const char *text, size_t size) {
    static const char special[] = "^$*+?.([%-";
    for (size_t i = 0; i < size; i++)
        if (text[i] && strchr(special, text[i])) return false;
    return true;
}
