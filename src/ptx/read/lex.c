/* Splits PTX text into tokens. The text needs no NUL at its end and may hold any bytes: each read is checked against
 * the end.
 *
 * A word has no dots. `ld.global.f32` is the word `ld` and two dot tokens, so that the parser looks each part up
 * once. */
#include "ptx/read/lex.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 1, DIGIT = 2, HEX = 4, SPACE = 8 };

/* FIRST holds for a letter or another character that may begin a word. */
static const uint8_t classes[256] = {
    ['\t'] = SPACE,
    ['\n'] = SPACE,
    ['\v'] = SPACE,
    ['\f'] = SPACE,
    ['\r'] = SPACE,
    [' '] = SPACE,
    ['0' ... '9'] = DIGIT | HEX,
    ['a' ... 'f'] = FIRST | HEX,
    ['g' ... 'z'] = FIRST,
    ['A' ... 'F'] = FIRST | HEX,
    ['G' ... 'Z'] = FIRST,
    ['_'] = FIRST,
    ['$'] = FIRST,
};

static bool is(const ptx_lexer *l, const char *at, int class) {
    return at < l->end && (classes[(unsigned char)*at] & class);
}

static char peek(const ptx_lexer *l, size_t ahead) {
    return (size_t)(l->end - l->at) > ahead ? l->at[ahead] : '\0';
}

/* False: a comment has no end. */
static bool skip_blanks(ptx_lexer *l) {
    for (;;) {
        for (; is(l, l->at, SPACE); l->at++) l->line += *l->at == '\n';
        if (peek(l, 0) != '/') return true;
        if (peek(l, 1) == '/') {
            const char *end = memchr(l->at, '\n', (size_t)(l->end - l->at));
            l->at = end ? end : l->end;
        } else if (peek(l, 1) == '*') {
            for (l->at += 2; peek(l, 0) != '*' || peek(l, 1) != '/'; l->at++) {
                if (l->at >= l->end) return false;
                l->line += *l->at == '\n';
            }
            l->at += 2;
        } else {
            return true;
        }
    }
}

/* The rest of a malformed number belongs to its token. */
static void bad_number(ptx_lexer *l, ptx_token *t, const char *problem) {
    while (is(l, l->at, FIRST | DIGIT)) l->at++;
    t->kind = PTX_TOKEN_BAD;
    t->problem = problem;
}

static void bad(ptx_token *t, const char *problem) {
    t->kind = PTX_TOKEN_BAD;
    t->problem = problem;
}

static void lex_word(ptx_lexer *l) {
    while (is(l, l->at, FIRST | DIGIT)) l->at++;
}

/* A word after a dot may begin with a digit and hold `::`. */
static void lex_dot_word(ptx_lexer *l) {
    for (;;) {
        lex_word(l);
        if (peek(l, 0) != ':' || peek(l, 1) != ':' || !is(l, l->at + 2, FIRST | DIGIT)) return;
        l->at += 2;
    }
}

static void lex_string(ptx_lexer *l, ptx_token *t) {
    t->kind = PTX_TOKEN_STRING;
    t->text = ++l->at;
    for (; peek(l, 0) != '"'; l->at++) {
        if (l->at >= l->end || *l->at == '\n') {
            bad(t, "the string has no closing quote");
            return;
        }
        if (*l->at == '\\' && peek(l, 1) != '\n' && l->end - l->at > 1) l->at++;
    }
    t->size = (uint32_t)(l->at - t->text);
    l->at++;
}

static unsigned digit_value(char c) {
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a') + 10;
}

/* Digits of `base` from l->at on. */
static void lex_integer(ptx_lexer *l, ptx_token *t, unsigned base) {
    const char *first = l->at;
    t->kind = PTX_TOKEN_INTEGER;
    for (; is(l, l->at, HEX) && digit_value(*l->at) < base; l->at++) {
        unsigned digit = digit_value(*l->at);
        if (t->bits > (UINT64_MAX - digit) / base) {
            bad_number(l, t, "the number needs more than 64 bits");
            return;
        }
        t->bits = t->bits * base + digit;
    }
    t->is_unsigned = t->bits > INT64_MAX;
    if (peek(l, 0) == 'U') t->is_unsigned = true, l->at++;
    if (l->at == first || is(l, l->at, FIRST | DIGIT)) bad_number(l, t, "this is not a number");
}

/* 0f3F800000, 0d3FF0000000000000: exactly as many digits as the type has. */
static void lex_bits(ptx_lexer *l, ptx_token *t, int digits) {
    t->single = digits == 8;
    int count = 0;
    for (; is(l, l->at, HEX); l->at++, count++) t->bits = t->bits << 4 | digit_value(*l->at);
    t->kind = PTX_TOKEN_REAL;
    if (count != digits || is(l, l->at, FIRST))
        bad(t,
            digits == 8 ? "`0f` needs 8 hexadecimal digits" : "`0d` needs 16 hexadecimal digits");
}

static void lex_decimal(ptx_lexer *l, ptx_token *t) {
    const char *first = l->at;
    while (is(l, l->at, DIGIT)) l->at++;
    if (peek(l, 0) == '.') l->at++;
    while (is(l, l->at, DIGIT)) l->at++;
    if (peek(l, 0) == 'e' || peek(l, 0) == 'E') {
        l->at++;
        if (peek(l, 0) == '+' || peek(l, 0) == '-') l->at++;
        while (is(l, l->at, DIGIT)) l->at++;
    }
    char copy[64];
    size_t size = (size_t)(l->at - first);
    if (size >= sizeof copy || is(l, l->at, FIRST)) {
        bad_number(l, t, "this is not a number");
        return;
    }
    memcpy(copy, first, size);
    copy[size] = '\0';
    double value = mr_number_parse(copy, NULL);
    t->kind = PTX_TOKEN_REAL;
    memcpy(&t->bits, &value, sizeof value);
}

static bool is_decimal_real(const ptx_lexer *l) {
    const char *at = l->at;
    while (is(l, at, DIGIT)) at++;
    return at < l->end && (*at == '.' || ((*at | 32) == 'e' && *l->at != '0'));
}

static void lex_number(ptx_lexer *l, ptx_token *t) {
    char second = peek(l, 0) == '0' ? (char)(peek(l, 1) | 32) : '\0';
    if (second == 'x' || second == 'b' || second == 'f' || second == 'd') l->at += 2;
    if (second == 'x') lex_integer(l, t, 16);
    else if (second == 'b') lex_integer(l, t, 2);
    else if (second == 'f') lex_bits(l, t, 8);
    else if (second == 'd') lex_bits(l, t, 16);
    else if (is_decimal_real(l)) lex_decimal(l, t);
    else lex_integer(l, t, peek(l, 0) == '0' ? 8 : 10);
}

static void lex_mark(ptx_lexer *l, ptx_token *t) {
    char a = peek(l, 0), b = peek(l, 1);
    t->kind = PTX_TOKEN_MARK;
    t->mark = (unsigned char)a;
    l->at++;
    bool doubled = a == b && strchr("=<>&|", a);
    if (a && b && (doubled || (b == '=' && strchr("!<>", a)))) {
        t->mark = PTX_MARK2(a, b);
        l->at++;
    }
}

void ptx_lex(ptx_lexer *l, ptx_token *t) {
    const char *before = l->at;
    uint32_t line = l->line;
    bool closed = skip_blanks(l);
    *t = (ptx_token){.kind = PTX_TOKEN_END, .line = l->line, .text = l->at};
    if (!closed) {
        t->line = line;
        t->text = before;
        bad(t, "a comment has no end");
        return;
    }
    if (l->at == l->end) return;
    if (is(l, l->at, FIRST) || (*l->at == '%' && is(l, l->at + 1, FIRST))) {
        t->kind = PTX_TOKEN_WORD;
        l->at++;
        lex_word(l);
    } else if (is(l, l->at, DIGIT)) {
        lex_number(l, t);
    } else if (*l->at == '.' && is(l, l->at + 1, FIRST | DIGIT)) {
        t->kind = PTX_TOKEN_DOT;
        t->text = ++l->at;
        lex_dot_word(l);
    } else if (*l->at == '"') {
        lex_string(l, t);
        return;
    } else {
        lex_mark(l, t);
    }
    t->size = (uint32_t)(l->at - t->text);
}
