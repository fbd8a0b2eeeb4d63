/* See json.h. The grammar is that of RFC 8259. */
#include "files/json.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

static void skip_space(mr_json *j) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
        j->at++;
}

bool mr_json_take(mr_json *j, char c) {
    skip_space(j);
    if (j->at == j->end || *j->at != c) return false;
    j->at++;
    return true;
}

bool mr_json_next(mr_json *j, char close, size_t *count, bool *out_bad) {
    *out_bad = false;
    if (mr_json_take(j, close)) return false;
    *out_bad = (*count)++ > 0 && !mr_json_take(j, ',');
    return !*out_bad;
}

/* ------------------------------------------------------------------------- UTF-8 */

/* The number of bytes of the character at `at`; 0: it is not one. */
static size_t utf8_length(const unsigned char *at, const unsigned char *end) {
    static const struct {
        unsigned char first, last, low, high; /* of the first byte; of the second */
        size_t length;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (*at < forms[i].first || *at > forms[i].last) continue;
        if ((size_t)(end - at) < forms[i].length) return 0;
        if (forms[i].length > 1 && (at[1] < forms[i].low || at[1] > forms[i].high)) return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if (at[k] < 0x80 || at[k] > 0xbf) return 0;
        return forms[i].length;
    }
    return 0;
}

bool mr_is_utf8(const char *text) {
    const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
    while (at < end) {
        size_t length = utf8_length(at, end);
        if (!length) return false;
        at += length;
    }
    return true;
}

static char *put_utf8(char *out, uint32_t c) {
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 63));
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    }
    return out;
}

/* ------------------------------------------------------------------------- strings */

/* Four hexadecimal digits. */
static bool take_unit(mr_json *j, uint32_t *out) {
    if (j->end - j->at < 4) return false;
    *out = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *found = *j->at ? strchr(digits, *j->at) : NULL;
        if (!found) return false;
        *out = *out << 4 | (uint32_t)((found - digits) % 16);
    }
    return true;
}

/* After \u: a character, of two units if the first one is half of a pair. */
static bool take_unicode(mr_json *j, uint32_t *out) {
    uint32_t low;
    if (!take_unit(j, out) || *out == 0) return false;
    if (*out < 0xd800 || *out > 0xdfff) return true;
    if (*out > 0xdbff || j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u') return false;
    j->at += 2;
    if (!take_unit(j, &low) || low < 0xdc00 || low > 0xdfff) return false;
    *out = 0x10000 + ((*out & 0x3ff) << 10 | (low & 0x3ff));
    return true;
}

/* After a backslash; appends the character. */
static bool take_escape(mr_json *j, char **out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (j->at == j->end) return false;
    char c = *j->at++;
    if (c == 'u') {
        uint32_t unicode;
        if (!take_unicode(j, &unicode)) return false;
        *out = put_utf8(*out, unicode);
        return true;
    }
    const char *found = c ? strchr(from, c) : NULL;
    if (!found) return false;
    *(*out)++ = to[found - from];
    return true;
}

/* The characters up to the closing quote, to `out`: never more bytes than they have in the text. */
static bool take_characters(mr_json *j, char *out) {
    while (j->at < j->end && *j->at != '"') {
        size_t length = utf8_length((const unsigned char *)j->at, (const unsigned char *)j->end);
        if (!length || (unsigned char)*j->at < 0x20) return false;
        if (*j->at == '\\') {
            j->at++;
            if (!take_escape(j, &out)) return false;
            continue;
        }
        memcpy(out, j->at, length);
        out += length;
        j->at += length;
    }
    *out = '\0';
    return j->at++ < j->end;
}

/* An upper bound of the string's length: the distance to the next quote without a backslash. */
static size_t raw_length(const mr_json *j) {
    const char *at = j->at;
    while (at < j->end && *at != '"') at += *at == '\\' && j->end - at > 1 ? 2 : 1;
    return (size_t)(at - j->at);
}

bool mr_json_string(mr_json *j, char **out_text) {
    *out_text = NULL;
    if (!mr_json_take(j, '"')) return false;
    char *text = malloc(raw_length(j) + 1);
    if (!text) {
        j->out_of_memory = true;
        return false;
    }
    if (!take_characters(j, text)) {
        free(text);
        return false;
    }
    *out_text = text;
    return true;
}

/* ------------------------------------------------------------------------- other values */

static bool is_digit(const mr_json *j) {
    return j->at < j->end && *j->at >= '0' && *j->at <= '9';
}

static bool may_follow_a_number(const mr_json *j) {
    return j->at == j->end || !strchr("0123456789.eE+-", *j->at) || !*j->at;
}

bool mr_json_size(mr_json *j, int64_t *out_number) {
    int64_t value = 0;
    skip_space(j);
    const char *first = j->at;
    for (; is_digit(j); j->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *j->at - '0', &value))
            return false;
    *out_number = value;
    bool leads_with_zero = j->at - first > 1 && *first == '0';
    return j->at > first && !leads_with_zero && may_follow_a_number(j);
}

static bool skip_digits(mr_json *j) {
    const char *first = j->at;
    while (is_digit(j)) j->at++;
    return j->at > first;
}

static bool take_one_of(mr_json *j, const char *characters) {
    if (j->at == j->end || !*j->at || !strchr(characters, *j->at)) return false;
    j->at++;
    return true;
}

static bool skip_number(mr_json *j) {
    take_one_of(j, "-");
    const char *first = j->at;
    if (!skip_digits(j) || (*first == '0' && j->at - first > 1)) return false;
    if (take_one_of(j, ".") && !skip_digits(j)) return false;
    if (!take_one_of(j, "eE")) return true;
    take_one_of(j, "+-");
    return skip_digits(j);
}

static bool skip_word(mr_json *j) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i]);
        if ((size_t)(j->end - j->at) < size || memcmp(j->at, words[i], size) != 0) continue;
        j->at += size;
        return true;
    }
    return false;
}

static bool skip_string(mr_json *j) {
    char *text;
    bool found = mr_json_string(j, &text);
    free(text);
    return found;
}

static bool skip_nested(mr_json *j, int depth) {
    bool bad, is_object = mr_json_take(j, '{');
    if (!is_object && !mr_json_take(j, '[')) {
        if (j->at == j->end) return false;
        if (*j->at == '"') return skip_string(j);
        return skip_word(j) || skip_number(j);
    }
    if (depth == MOST_DEPTH) return false;
    for (size_t count = 0; mr_json_next(j, is_object ? '}' : ']', &count, &bad);)
        if ((is_object && !(skip_string(j) && mr_json_take(j, ':'))) || !skip_nested(j, depth + 1))
            return false;
    return !bad;
}

bool mr_json_skip(mr_json *j) {
    return skip_nested(j, 0);
}
