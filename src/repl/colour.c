/* Colours of Lua: see colour.h. The text is read from its beginning each time, as a quote may change all that
 * follows. */
#include "repl/colour.h"

#include <stdbool.h>
#include <string.h>

static bool is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_keyword(const char *word, size_t length) {
    static const char *const words[] = {"and",   "break", "do",       "else", "elseif", "end",
                                        "false", "for",   "function", "goto", "if",     "in",
                                        "local", "nil",   "not",      "or",   "repeat", "return",
                                        "then",  "true",  "until",    "while"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0) return true;
    return false;
}

static size_t word_end(const char *text, size_t size, size_t at) {
    while (at < size && is_word(text[at])) at++;
    return at;
}

/* The end of `[==[ ... ]==]` at `at`; `at`: there is none. */
static size_t long_end(const char *text, size_t size, size_t at) {
    size_t level = at + 1, end;
    while (level < size && text[level] == '=') level++;
    if (level >= size || text[at] != '[' || text[level] != '[') return at;
    level -= at + 1;
    for (end = at + level + 2; end < size; end++) {
        size_t close = end + 1;
        if (text[end] != ']') continue;
        while (close < size && text[close] == '=') close++;
        if (close < size && text[close] == ']' && close - end - 1 == level) return close + 1;
    }
    return size;
}

static size_t string_end(const char *text, size_t size, size_t at) {
    char quote = text[at++];
    for (; at < size && text[at] != quote && text[at] != '\n'; at++)
        if (text[at] == '\\' && at + 1 < size) at++;
    return at < size && text[at] == quote ? at + 1 : at;
}

static size_t number_end(const char *text, size_t size, size_t at) {
    for (; at < size && (is_word(text[at]) || text[at] == '.'); at++)
        if (strchr("eEpP", text[at]) && at + 1 < size && strchr("+-", text[at + 1])) at++;
    return at;
}

static size_t comment_end(const char *text, size_t size, size_t at) {
    size_t end = at + 2 < size ? long_end(text, size, at + 2) : at + 2;
    if (end > at + 2) return end;
    while (end < size && text[end] != '\n') end++;
    return end < size ? end : size;
}

/* mr.nn.Linear */
static size_t name_end(const char *text, size_t size, size_t at) {
    at = word_end(text, size, at);
    while (at + 1 < size && strchr(".:", text[at]) && is_word(text[at + 1]))
        at = word_end(text, size, at + 1);
    return at;
}

/* The end of what begins at `at`, and its colour. */
static size_t piece_end(const char *text, size_t size, size_t at, mr_colour *out) {
    char c = text[at], next = at + 1 < size ? text[at + 1] : '\0';
    char before = at ? text[at - 1] : '\0';
    *out = MR_COLOUR_STRING;
    if (c == '"' || c == '\'') return string_end(text, size, at);
    if (c == '[' && long_end(text, size, at) > at) return long_end(text, size, at);
    *out = MR_COLOUR_COMMENT;
    if (c == '-' && next == '-') return comment_end(text, size, at);
    *out = MR_COLOUR_NUMBER;
    if (is_digit(c) || (c == '.' && is_digit(next) && before != '.'))
        return number_end(text, size, at);
    *out = MR_COLOUR_PLAIN;
    if (!is_word(c)) return at + 1;
    size_t end = word_end(text, size, at);
    bool is_field = before == '.' || before == ':';
    if (is_keyword(text + at, end - at)) *out = MR_COLOUR_KEYWORD;
    if (is_field || end - at != 2 || memcmp(text + at, "mr", 2) != 0) return end;
    *out = MR_COLOUR_NAME;
    return name_end(text, size, at);
}

/* `:step`, `?` at the beginning; returns where the rest begins. */
static size_t command_end(const char *text, size_t size) {
    size_t at = 0;
    while (at < size && (text[at] == ' ' || text[at] == '\t')) at++;
    size_t mark = at;
    while (at < size && text[at] == '?') at++;
    if (at > mark) return at;
    if (at + 1 < size && text[at] == ':' && is_word(text[at + 1]))
        return word_end(text, size, at + 1);
    return 0;
}

void mr_colour_find(const char *text, size_t size, unsigned char *out_colours) {
    size_t at = command_end(text, size), end;
    memset(out_colours, MR_COLOUR_COMMAND, at);
    for (; at < size; at = end) {
        mr_colour colour;
        end = piece_end(text, size, at, &colour);
        memset(out_colours + at, colour, end - at);
    }
}

size_t mr_colour_partner(const char *text, size_t size, const unsigned char *colours, size_t at) {
    static const char brackets[] = "()[]{}";
    const char *kind = at < size && text[at] ? strchr(brackets, text[at]) : NULL;
    if (!kind || colours[at] != MR_COLOUR_PLAIN) return size;
    bool opens = (kind - brackets) % 2 == 0;
    size_t depth = 0;
    for (size_t i = at; i < size; i += opens ? 1 : (size_t)-1) { /* below 0 it is beyond the end */
        const char *one =
            text[i] && colours[i] == MR_COLOUR_PLAIN ? strchr(brackets, text[i]) : NULL;
        if (!one) continue;
        bool same_way = ((one - brackets) % 2 == 0) == opens;
        if (same_way) depth++;
        else if (--depth == 0) return (one - brackets) / 2 == (kind - brackets) / 2 ? i : size;
    }
    return size;
}

const char *mr_colour_code(mr_colour colour) {
    static const char *const codes[MR_COLOURS] = {
        [MR_COLOUR_PLAIN] = "",          [MR_COLOUR_KEYWORD] = "\033[35m",
        [MR_COLOUR_STRING] = "\033[32m", [MR_COLOUR_NUMBER] = "\033[36m",
        [MR_COLOUR_COMMENT] = "\033[2m", [MR_COLOUR_NAME] = "\033[1m",
        [MR_COLOUR_COMMAND] = "\033[1m", [MR_COLOUR_BRACKET] = "\033[1;4m",
        [MR_COLOUR_HINT] = "\033[2m",
    };
    return codes[colour];
}
