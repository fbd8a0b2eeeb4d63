/* See signature.h. The text is cut into words and single characters; comments, strings and preprocessor lines are left
 * out. Easiest to break: it must not run past the end of a text that stops anywhere. */
#include "compile/text/signature.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- words */

typedef struct {
    const char *at, *end;
    bool line_start;
} scanner;

typedef struct {
    const char *text;
    size_t size; /* 0: the end */
} word;

static bool is_word_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static void skip_line(scanner *s) {
    while (s->at < s->end && *s->at != '\n') {
        bool continues = *s->at == '\\' && s->end - s->at > 1;
        s->at += continues ? 2 : 1;
    }
}

static void skip_block_comment(scanner *s) {
    s->at += 2;
    while (s->end - s->at >= 2 && !(s->at[0] == '*' && s->at[1] == '/')) s->at++;
    s->at = s->end - s->at >= 2 ? s->at + 2 : s->end;
}

static void skip_quoted(scanner *s) {
    char quote = *s->at++;
    while (s->at < s->end && *s->at != quote && *s->at != '\n') {
        if (*s->at == '\\' && s->end - s->at > 1) s->at++;
        s->at++;
    }
    if (s->at < s->end) s->at++;
}

static void skip_space(scanner *s) {
    while (s->at < s->end) {
        char c = *s->at, next = s->end - s->at > 1 ? s->at[1] : '\0';
        if (c == '\n') s->line_start = true;
        if (isspace((unsigned char)c)) s->at++;
        else if (c == '/' && next == '/') skip_line(s);
        else if (c == '/' && next == '*') skip_block_comment(s);
        else if (c == '#' && s->line_start) skip_line(s);
        else if (c == '"' || c == '\'') skip_quoted(s);
        else return;
    }
}

static word next_word(scanner *s) {
    skip_space(s);
    s->line_start = false;
    word w = {s->at, 0};
    if (s->at == s->end) return w;
    if (is_word_char(*s->at))
        while (s->at < s->end && is_word_char(*s->at)) s->at++;
    else s->at++;
    w.size = (size_t)(s->at - w.text);
    return w;
}

static bool is(word w, const char *text) {
    return w.size == strlen(text) && memcmp(w.text, text, w.size) == 0;
}

/* After an opening parenthesis that has been read. */
static void skip_parentheses(scanner *s) {
    int depth = 1;
    for (word w; depth && (w = next_word(s)).size;) depth += is(w, "(") ? 1 : is(w, ")") ? -1 : 0;
}

/* ---- one parameter */

typedef struct {
    word words[32];
    int count;
} param_words;

static bool is_ignored(word w) {
    static const char *const ignored[] = {"const",      "volatile", "__restrict__",
                                          "__restrict", "restrict", "__grid_constant__",
                                          "struct",     "typename", "register"};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (is(w, ignored[i])) return true;
    return false;
}

static void append(char *out, size_t size, word w) {
    size_t used = strlen(out);
    bool apart = used && is_word_char(out[used - 1]) && is_word_char(*w.text);
    snprintf(out + used, size - used, "%s%.*s", apart ? " " : "", (int)w.size, w.text);
}

/* The spellings of one type in C, each as its words in any order. */
static void normalise(char *base, size_t size) {
    static const struct {
        const char *from, *to;
    } names[] = {
        {"unsigned", "unsigned int"},
        {"uint", "unsigned int"},
        {"uint32_t", "unsigned int"},
        {"signed", "int"},
        {"signed int", "int"},
        {"int32_t", "int"},
        {"long", "long long"},
        {"long int", "long long"},
        {"long long int", "long long"},
        {"signed long long", "long long"},
        {"int64_t", "long long"},
        {"ptrdiff_t", "long long"},
        {"unsigned long", "unsigned long long"},
        {"unsigned long int", "unsigned long long"},
        {"unsigned long long int", "unsigned long long"},
        {"uint64_t", "unsigned long long"},
        {"size_t", "unsigned long long"},
        {"ulonglong", "unsigned long long"},
        {"uint8_t", "unsigned char"},
        {"uchar", "unsigned char"},
        {"int8_t", "signed char"},
        {"uint16_t", "unsigned short"},
        {"ushort", "unsigned short"},
        {"unsigned short int", "unsigned short"},
        {"int16_t", "short"},
        {"short int", "short"},
    };
    const char *plain = strncmp(base, "std::", 5) == 0 ? base + 5 : base;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(plain, names[i].from) == 0) {
            snprintf(base, size, "%s", names[i].to);
            return;
        }
}

/* Without a default value. */
static int declared_words(const param_words *p) {
    for (int i = 0; i < p->count; i++)
        if (is(p->words[i], "=")) return i;
    return p->count;
}

static bool read_param(const param_words *p, mr_c_param *out) {
    static const word star = {"*", 1};
    *out = (mr_c_param){{0}, {0}, {0}, 0, false};
    int last = declared_words(p) - 1, brackets = 0;
    while (last >= 0 && (is(p->words[last], "]") || brackets)) { /* float x[]: a pointer */
        brackets += is(p->words[last], "]") ? 1 : is(p->words[last], "[") ? -1 : 0;
        if (!brackets) out->pointers++;
        last--;
    }
    if (last < 1 || !is_word_char(*p->words[last].text)) return false;
    int arrays = out->pointers;
    append(out->name, sizeof out->name, p->words[last]);
    for (int i = 0; i < last; i++) {
        word w = p->words[i];
        append(out->type, sizeof out->type, w);
        if (is(w, "*")) out->pointers++;
        else if (is(w, "const")) out->is_const |= out->pointers == 0;
        else if (!is_ignored(w)) append(out->base, sizeof out->base, w);
    }
    for (int i = 0; i < arrays; i++) append(out->type, sizeof out->type, star);
    normalise(out->base, sizeof out->base);
    return out->base[0] != '\0';
}

/* ---- the list */

#define MOST_COMPARED 32 /* parameters of functions of one name */

/* After its opening parenthesis. */
static int read_list(scanner *s, mr_c_param *out, int most) {
    param_words p = {.count = 0};
    int depth = 0, count = 0;
    for (;;) {
        word w = next_word(s);
        if (!w.size || p.count == (int)(sizeof p.words / sizeof *p.words)) return -1;
        bool ends = depth == 0 && (is(w, ",") || is(w, ")"));
        if (!ends) {
            depth += is(w, "(") || is(w, "<") ? 1 : is(w, ")") || is(w, ">") ? -1 : 0;
            p.words[p.count++] = w;
            continue;
        }
        bool nothing =
            count == 0 && is(w, ")") && (p.count == 0 || (p.count == 1 && is(p.words[0], "void")));
        if (nothing) return 0;
        mr_c_param param;
        if (!read_param(&p, &param)) return -1;
        if (count < most) out[count] = param;
        count++;
        p.count = 0;
        if (is(w, ")")) return count;
    }
}

/* __launch_bounds__, __cluster_dims__, __attribute__, ...: what stands in front of parentheses and is not a name. */
static bool is_attribute(word w) {
    return w.size > 4 && memcmp(w.text, "__", 2) == 0 && memcmp(w.text + w.size - 2, "__", 2) == 0;
}

/* After `__global__`: qualifiers and the result, up to the parenthesis after the name. */
static bool read_name(scanner *s, word *out_name) {
    word before = {NULL, 0};
    for (word w; (w = next_word(s)).size; before = w) {
        if (is(w, ";") || is(w, "{")) return false;
        if (!is(w, "(")) continue;
        if (before.size && !is_attribute(before)) {
            *out_name = before;
            return true;
        }
        skip_parentheses(s);
    }
    return false;
}

/* The next `__global__` function of that name; the scanner is then after its opening parenthesis. */
static bool find_function(scanner *s, const char *name) {
    for (word w; (w = next_word(s)).size;) {
        word found;
        if (is(w, "__global__") && read_name(s, &found) && is(found, name)) return true;
    }
    return false;
}

/* Another function of that name takes the same: it is a declaration of it, or its template. */
static bool agrees(scanner *s, const mr_c_param *params, int count) {
    mr_c_param other[MOST_COMPARED];
    if (count > MOST_COMPARED || read_list(s, other, MOST_COMPARED) != count) return false;
    for (int i = 0; i < count; i++)
        if (strcmp(other[i].base, params[i].base) != 0 || other[i].pointers != params[i].pointers)
            return false;
    return true;
}

int mr_signature_find(const char *text, size_t size, const char *name, mr_c_param *out, int most) {
    scanner s = {text, text + size, true};
    if (!find_function(&s, name)) return -1;
    int count = read_list(&s, out, most);
    while (count >= 0 && find_function(&s, name))
        if (count > most || !agrees(&s, out, count)) return -1;
    return count;
}

/* ---- variables */

static bool is_qualifier(word w) {
    return is(w, "__device__") || is(w, "__constant__") || is(w, "static") ||
           is(w, "__managed__") || is(w, "__shared__") || is(w, "extern");
}

/* After a qualifier: words up to the name, which stands in front of [ or = or ; or {. */
static bool read_variable(scanner *s, const char *name, char *out, size_t out_size) {
    word before = {NULL, 0};
    out[0] = '\0';
    for (word w; (w = next_word(s)).size; before = w) {
        if (is(w, "(")) return false; /* a function */
        bool ends = is(w, "[") || is(w, "=") || is(w, ";") || is(w, "{");
        if (ends) return before.size && is(before, name) && out[0];
        if (before.size && !is_ignored(before) && !is_qualifier(before))
            append(out, out_size, before);
    }
    return false;
}

bool mr_signature_variable(const char *text, size_t size, const char *name, char *out,
                           size_t out_size) {
    scanner s = {text, text + size, true};
    for (word w; (w = next_word(&s)).size;) {
        if (!is(w, "__device__") && !is(w, "__constant__")) continue;
        scanner ahead = s;
        if (!read_variable(&ahead, name, out, out_size)) continue;
        normalise(out, out_size);
        return true;
    }
    return false;
}
