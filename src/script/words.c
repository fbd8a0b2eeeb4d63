/* The words of a text. */
#include "script/text.h"

static bool is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The end of the long string or comment whose bracket, such as `[==[`, is at `at`; NULL: there is no such bracket. */
static const char *long_bracket(const char *at) {
    if (*at != '[') return NULL; /* perhaps the end of the text */
    const char *p = at + 1;
    while (*p == '=') p++;
    if (*p != '[') return NULL;
    int level = (int)(p - at) - 1;
    for (p++; *p; p++) {
        if (*p != ']') continue;
        const char *q = p + 1;
        while (*q == '=') q++;
        if (*q == ']' && q - p - 1 == level) return q + 1;
    }
    return p;
}

static const char *string_end(const char *at) {
    char quote = *at++;
    while (*at && *at != '\n' && *at != quote) at += *at == '\\' && at[1] ? 2 : 1;
    return *at == quote ? at + 1 : at;
}

static const char *word_end(const char *at, word_kind *kind) {
    static const char *const pairs[] = {"::", "==", "~=", "<=", ">=", "//", "<<", ">>", NULL};
    const char *end;
    *kind = VALUE;
    if ((end = long_bracket(at)) != NULL) return end;
    if (*at == '"' || *at == '\'') return string_end(at);
    if ((*at >= '0' && *at <= '9') || (*at == '.' && at[1] >= '0' && at[1] <= '9')) {
        for (at++;
             is_word(*at) || *at == '.' || ((*at == '+' || *at == '-') && strchr("eEpP", at[-1]));)
            at++;
        return at;
    }
    *kind = NAME;
    if (is_word(*at)) {
        while (is_word(*at)) at++;
        return at;
    }
    *kind = strncmp(at, "...", 3) == 0 ? VALUE : SYMBOL;
    if (*kind == VALUE) return at + 3;
    if (strncmp(at, "..", 2) == 0) return at + 2;
    for (const char *const *p = pairs; *p; p++)
        if (strncmp(at, *p, 2) == 0) return at + 2;
    return at + 1;
}

static int count_lines(const char *from, const char *to) {
    int lines = 0;
    for (; from < to; from++) lines += *from == '\n';
    return lines;
}

void mr_script_split(mr_script *s) {
    static const char *const keywords[] = {
        "and",      "break",  "do",   "else", "elseif", "end",   "false", "for",
        "function", "goto",   "if",   "in",   "local",  "nil",   "not",   "or",
        "repeat",   "return", "then", "true", "until",  "while", NULL};
    const char *at = s->text;
    int line = 1, taken = 0; /* the last line that something ends on */
    if (s->is_file && *at == '#') at += strcspn(at, "\n");
    while (*at && !s->failed) {
        const char *end = at + 1;
        if (strncmp(at, "--", 2) == 0) {
            end = long_bracket(at + 2);
            if (!end) end = at + strcspn(at, "\n");
        } else if (!strchr(" \t\r\n\f\v", *at)) {
            word w = {.text = at, .line = line};
            end = word_end(at, &w.kind);
            w.is_first = taken < line;
            w.length = (int)(end - at);
            w.last_line = line + count_lines(at, end);
            if (w.kind == NAME && says_any(&w, keywords)) w.kind = KEYWORD;
            s->failed = !mr_vec_push(&s->words, w);
        }
        bool is_blank = strchr(" \t\r\n\f\v", *at) != NULL;
        line += count_lines(at, end);
        if (!is_blank) taken = line;
        at = end;
    }
    word last = {
        .kind = END_OF_TEXT, .text = at, .line = line + 1, .last_line = line + 1, .is_first = true};
    s->failed = s->failed || !mr_vec_push(&s->words, last);
}

int mr_script_behind_bracket(const mr_script *s, int open) {
    static const char *const opening[] = {"(", "[", "{", NULL}, *const closing[] = {")", "]", "}",
                                                                                    NULL};
    int depth = 0;
    for (int at = open;; at++) {
        const word *w = &s->words.items[at];
        if (w->kind == END_OF_TEXT) return at;
        depth += says_any(w, opening);
        depth -= says_any(w, closing);
        if (!depth) return at + 1;
    }
}
