/* A script's text: its words, and from them its statements, its blocks and what they declare.
 *
 * Lua separates statements by nothing, but no expression has a word that ends one (a name, a literal, a closing
 * bracket) right before a name or a word that begins a statement. So wherever the one follows the other, outside
 * of brackets, a statement begins, and no grammar is needed. */
#include "bind/script_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"

#define LARGEST (1 << 20)

typedef enum { NAME, KEYWORD, VALUE, SYMBOL, END_OF_TEXT } word_kind;

typedef struct {
    word_kind kind;
    const char *text;
    int length;
    int line, last_line; /* a long string may span several */
    bool is_first;  /* nothing else is on its line in front of it, nor the end of a long comment */
    int block;      /* that it stands in; a word that closes a block stands in that one */
    int statement;  /* the word that begins the statement that it is part of */
    bool begins;    /* a statement */
    bool is_missed; /* the statement before it is a return, break or goto */
} word;

typedef struct {
    int outer;          /* block; -1: this is the main chunk */
    int statement;      /* of the outer block, that it is part of */
    int opened, closed; /* words */
    int brackets;       /* open ones outside of it */
    bool is_function, is_loop;
    bool is_defined; /* the function is kept rather than handed to a call */
} block;

typedef struct {
    int name;  /* word */
    int from;  /* in force behind this word */
    int block; /* and to the end of this block */
} declaration;

struct mr_script {
    int refs;
    char *path, *text;
    struct stat status;
    MR_VEC(word) words;
    MR_VEC(block) blocks;
    MR_VEC(declaration) declarations;
    bool failed;
};

/* ---- words */

static bool is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool says(const word *w, const char *text) {
    return w->kind != VALUE && (size_t)w->length == strlen(text) &&
           memcmp(w->text, text, (size_t)w->length) == 0;
}

static bool says_any(const word *w, const char *const *texts) {
    for (; *texts; texts++)
        if (says(w, *texts)) return true;
    return false;
}

/* Behind `[==[` or `--[==[`: its end; NULL if it is none. */
static const char *long_bracket(const char *at) {
    const char *p = at + 1;
    while (*p == '=') p++;
    if (*at != '[' || *p != '[') return NULL;
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

static void split(mr_script *s) {
    static const char *const keywords[] = {
        "and",      "break",  "do",   "else", "elseif", "end",   "false", "for",
        "function", "goto",   "if",   "in",   "local",  "nil",   "not",   "or",
        "repeat",   "return", "then", "true", "until",  "while", NULL};
    const char *at = s->text;
    int line = 1, taken = 0; /* the last line that something ends on */
    if (*at == '#') at += strcspn(at, "\n");
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

/* ---- statements and blocks */

typedef struct {
    mr_script *s;
    int block, statement, brackets;
} reader;

static bool ends_expression(const word *w) {
    static const char *const words[] = {"end", "nil", "true", "false", "break",
                                        ")",   "]",   "}",    NULL};
    return w->kind == NAME || w->kind == VALUE || says_any(w, words);
}

static bool begins_statement(const reader *r, int at) {
    static const char *const opens[] = {"do", "then", "else", "repeat", ";", "::", NULL};
    static const char *const begins[] = {"break", "do",     "for",    "function", "goto", "if",
                                         "local", "repeat", "return", "while",    "::",   NULL};
    const word *w = &r->s->words.items[at], *before = at ? w - 1 : NULL;
    const block *b = &r->s->blocks.items[r->block];
    if (r->brackets != b->brackets || says(w, ";")) return false;
    if (w->kind == END_OF_TEXT) return true;
    if (!before || b->opened == at - 1) return true;
    if (says(before, "for") || says(before, "local") || says(before, "goto")) return false;
    if (says(w, "function") && !ends_expression(before)) return says_any(before, opens);
    if (says(w, "do")) /* of a loop's head, unless that has had its own */
        return !says_any(&r->s->words.items[r->statement],
                         (const char *const[]){"for", "while", NULL}) ||
               r->s->words.items[r->statement].block != r->block ||
               says_any(before, (const char *const[]){"end", NULL});
    if (says_any(before, opens)) return true;
    return ends_expression(before) && (w->kind == NAME || says_any(w, begins));
}

static void open_block(reader *r, int at, bool is_function, bool is_loop) {
    block b = {.outer = r->block,
               .statement = r->statement,
               .opened = at,
               .brackets = r->brackets,
               .is_function = is_function,
               .is_loop = is_loop};
    r->s->failed = r->s->failed || !mr_vec_push(&r->s->blocks, b);
    r->block = (int)r->s->blocks.count - 1;
}

static void close_block(reader *r, int at) {
    block *b = &r->s->blocks.items[r->block];
    if (b->outer < 0) {
        r->s->failed = true;
        return;
    }
    b->closed = at;
    r->block = b->outer;
    r->statement = b->statement;
    r->brackets = b->brackets;
}

static void declare(reader *r, int name, int from) {
    declaration d = {name, from, r->block};
    r->s->failed = r->s->failed || !mr_vec_push(&r->s->declarations, d);
}

/* The word stands right in the brackets of a call, or of an expression. */
static bool is_argument(const reader *r, int at) {
    const word *w = r->s->words.items;
    int open = 0;
    while (--at >= 0 && at >= r->statement) {
        if (w[at].kind != SYMBOL) continue;
        if (strchr(")}]", *w[at].text)) open++;
        if (strchr("({[", *w[at].text) && open-- == 0) return says(&w[at], "(");
    }
    return false;
}

/* Parameters, in force in the body; returns the word that ends the list. */
static int open_function(reader *r, int at) {
    const word *w = r->s->words.items;
    int p = at + 1;
    bool is_method = false;
    for (; w[p].kind != END_OF_TEXT && !says(&w[p], "("); p++) is_method |= says(&w[p], ":");
    int first = p;
    while (w[p].kind != END_OF_TEXT && !says(&w[p], ")")) p++;
    open_block(r, p, true, false);
    r->s->blocks.items[r->block].is_defined = !is_argument(r, at);
    for (int i = first; i < p; i++)
        if (w[i].kind == NAME) declare(r, i, p);
    if (is_method) declare(r, -1, p);
    return p;
}

/* The names of `local a, b <const> =` and of `for k, v in`. */
static void declare_list(reader *r, int at, int from) {
    const word *w = r->s->words.items;
    for (int i = at + 1; w[i].kind == NAME; i += 2) {
        declare(r, i, from);
        if (says(&w[i + 1], "<")) i += 3;
        if (!says(&w[i + 1], ",")) return;
    }
}

static void enter_loop(reader *r, int at) {
    int head = r->statement;
    bool is_for = says(&r->s->words.items[head], "for");
    bool is_loop = is_for || says(&r->s->words.items[head], "while");
    open_block(r, at, false, is_loop);
    if (is_for) declare_list(r, head, at);
}

/* A local is in force behind its statement. */
static void end_statement(reader *r, int at) {
    int first = r->statement;
    const word *w = r->s->words.items;
    if (first < 0 || first >= at || w[first].block != r->block || !says(&w[first], "local")) return;
    if (!says(&w[first + 1], "function")) declare_list(r, first, at - 1);
}

static void read_word(reader *r, int *at) {
    static const char *const leaving[] = {"return", "break", "goto", NULL};
    mr_script *s = r->s;
    word *w = &s->words.items[*at];
    bool closes = says(w, "end") || says(w, "else") || says(w, "elseif") || says(w, "until");
    w->begins = !closes && begins_statement(r, *at);
    if (w->begins || closes) {
        const word *last = r->statement >= 0 ? &s->words.items[r->statement] : NULL;
        w->is_missed = last && last->block == r->block && says_any(last, leaving);
        end_statement(r, *at);
    }
    if (w->begins) r->statement = *at;
    w->block = r->block;
    w->statement = r->statement;
    if (w->kind == SYMBOL && strchr("({[", *w->text)) r->brackets++;
    if (w->kind == SYMBOL && strchr(")}]", *w->text)) r->brackets--;
    if (closes) {
        close_block(r, *at);
        w->statement = r->statement;
        if (says(w, "else")) open_block(r, *at, false, false);
    } else if (says(w, "function")) {
        bool is_local = *at && says(w - 1, "local");
        if (is_local) declare(r, *at + 1, *at);
        int end = open_function(r, *at);
        for (int i = *at + 1; i <= end; i++) {
            s->words.items[i].block = w->block;
            s->words.items[i].statement = w->statement;
        }
        *at = end;
    } else if (says(w, "do")) {
        enter_loop(r, *at);
    } else if (says(w, "then") || says(w, "repeat")) {
        open_block(r, *at, false, says(w, "repeat"));
    }
}

static void outline(mr_script *s) {
    reader r = {.s = s, .block = -1, .statement = -1};
    open_block(&r, -1, true, false);
    for (int at = 0; at < (int)s->words.count && !s->failed; at++) read_word(&r, &at);
    s->failed = s->failed || r.block != 0;
    if (!s->failed) s->blocks.items[0].closed = (int)s->words.count - 1;
}

/* ---- reading */

static char *read_text(const char *path, const struct stat *status) {
    size_t size = (size_t)status->st_size;
    FILE *file = fopen(path, "rb");
    char *text = file ? calloc(1, size + 2) : NULL;
    if (text && fread(text, 1, size, file) != size) text[0] = '\0';
    if (file) fclose(file);
    return text;
}

static mr_script *read_script(const char *path, const struct stat *status) {
    mr_script *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->refs = 1;
    s->status = *status;
    s->path = strdup(path);
    s->text = read_text(path, status);
    s->failed = !s->path || !s->text;
    if (!s->failed) split(s);
    if (!s->failed) outline(s);
    return s;
}

void mr_script_free(mr_script *s) {
    if (!s || --s->refs) return;
    mr_vec_free(&s->words);
    mr_vec_free(&s->blocks);
    mr_vec_free(&s->declarations);
    free(s->text);
    free(s->path);
    free(s);
}

static bool is_same_file(const mr_script *s, const char *path, const struct stat *status) {
    return strcmp(s->path, path) == 0 && s->status.st_ino == status->st_ino &&
           s->status.st_size == status->st_size &&
           s->status.st_mtim.tv_sec == status->st_mtim.tv_sec &&
           s->status.st_mtim.tv_nsec == status->st_mtim.tv_nsec;
}

/* A report asks dozens of times, and the next one mostly of the same file: the last few are kept, also those
 * that were not understood. */
mr_script *mr_script_read(const char *path) {
    static mr_script *kept[4];
    static unsigned next;
    const unsigned most = sizeof kept / sizeof *kept;
    struct stat status;
    mr_script *s = NULL;
    if (!path || stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > LARGEST)
        return NULL;
    for (unsigned i = 0; i < most && !s; i++)
        if (kept[i] && is_same_file(kept[i], path, &status)) s = kept[i];
    if (!s) {
        s = read_script(path, &status);
        if (!s || !s->path) {
            mr_script_free(s);
            return NULL;
        }
        mr_script_free(kept[next % most]);
        kept[next++ % most] = s;
    }
    if (s->failed) return NULL;
    s->refs++;
    return s;
}

/* ---- places */

/* The first word at or behind the beginning of the line. */
static int word_at(const mr_script *s, int line) {
    int low = 0, high = (int)s->words.count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (s->words.items[middle].line >= line) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* A statement can stand in front of this word, which is the first of its line, and would be reached. */
static bool takes(const mr_script *s, int at) {
    const word *w = &s->words.items[at];
    bool closes = s->blocks.items[w->block].closed == at;
    return w->is_first && (w->begins || closes) && !w->is_missed;
}

static bool is_alone(const mr_script *s, int at) {
    const word *w = &s->words.items[at];
    return w->kind == END_OF_TEXT || w[1].line > w->line;
}

/* `end` and then a statement on one line: which of the two is meant cannot be told. */
static bool follows_an_end(const mr_script *s, int at) {
    const word *w = &s->words.items[at];
    for (const word *next = w + 1; w->kind != END_OF_TEXT && next->line == w->line; next++)
        if (next->begins && next->kind != END_OF_TEXT) return true;
    return false;
}

int mr_script_front(const mr_script *s, int line) {
    int at = word_at(s, line);
    if (s->words.items[at].line != line) return 0;
    if (s->blocks.items[s->words.items[at].block].closed == at) {
        if (is_alone(s, at)) return takes(s, at) ? line : 0; /* what a block's end does: <close> */
        if (follows_an_end(s, at)) return 0;
    }
    for (int previous = -1; at >= 0 && at != previous;) {
        previous = at;
        at = s->words.items[at].statement;
        if (at < 0) return 0;
        /* What else stands before it on its line? */
        int first = word_at(s, s->words.items[at].line);
        if (first == at) return takes(s, at) ? s->words.items[at].line : 0;
        at = first;
    }
    return 0;
}

/* The block begins on the line, and so does what is in it. */
static bool has_body_on(const mr_script *s, const block *b, int line) {
    const word *opens = &s->words.items[b->opened];
    return opens->line == line && opens[1].line == line && b->closed > b->opened + 1;
}

bool mr_script_defines(const mr_script *s, int line) {
    for (size_t i = 1; i < s->blocks.count; i++) {
        const block *b = &s->blocks.items[i];
        if (!b->is_function || !b->is_defined) continue;
        if (has_body_on(s, b, line)) return true;
    }
    return false;
}

/* Right behind `last`, unless a comment that goes on stands between the two. */
static int line_behind(const word *last, const word *next) {
    const char *comment = strstr(last->text + last->length, "--[");
    return comment && comment < next->text ? next->line : last->last_line + 1;
}

int mr_script_behind(const mr_script *s, int line) {
    int at = word_at(s, line), last = (int)s->words.count - 1;
    const word *w = s->words.items;
    if (w[at].line != line || at == last || mr_script_defines(s, line)) return 0;
    int statement = w[at].statement;
    while (statement >= 0) {
        int in = w[statement].block;
        const block *b = &s->blocks.items[in];
        int next =
            at; /* the first word of a line behind it, in the same block, where a line may stand */
        while (next <= b->closed &&
               (w[next].line <= line || w[next].block != in || !takes(s, next)))
            next++;
        if (next <= b->closed) return line_behind(&w[next - 1], &w[next]);
        if (in == 0 || (b->is_function && b->is_defined)) return 0;
        statement = b->statement;
    }
    return 0;
}

static int block_of(const mr_script *s, int front) {
    return s->words.items[word_at(s, front)].block;
}

static int function_of(const mr_script *s, int in) {
    while (!s->blocks.items[in].is_function) in = s->blocks.items[in].outer;
    return in;
}

int mr_script_function(const mr_script *s, int front) {
    int in = function_of(s, block_of(s, front));
    if (in == 0) return 0;
    int at = s->blocks.items[in].opened; /* the list's end; Lua counts from the word `function` */
    while (at && !says(&s->words.items[at], "function")) at--;
    return s->words.items[at].line;
}

bool mr_script_in_loop(const mr_script *s, int front) {
    for (int in = block_of(s, front); in > 0 && !s->blocks.items[in].is_function;
         in = s->blocks.items[in].outer)
        if (s->blocks.items[in].is_loop) return true;
    return false;
}

bool mr_script_is_loop(const mr_script *s, int front) {
    static const char *const loops[] = {"for", "while", "repeat", NULL};
    return says_any(&s->words.items[word_at(s, front)], loops);
}

/* The word behind the statement that word `at` begins, and behind those that begin on a line that it ends on. */
static int group_end(const mr_script *s, int at) {
    const word *w = s->words.items;
    int in = w[at].block, next = at + 1;
    if (at + 1 >= (int)s->words.count) return at;
    while (next + 1 < (int)s->words.count && s->blocks.items[in].closed != next &&
           !(w[next].block == in && w[next].begins && w[next].line > w[next - 1].last_line))
        next++;
    return next;
}

bool mr_script_is_within(const mr_script *s, int front, int line) {
    int end = group_end(s, word_at(s, front));
    return line >= front && end && s->words.items[end - 1].last_line >= line;
}

bool mr_script_loops(const mr_script *s, int front, int line) {
    int function = function_of(s, block_of(s, front));
    for (size_t i = 1; i < s->blocks.count; i++) {
        const block *b = &s->blocks.items[i];
        if (b->is_loop && has_body_on(s, b, line) && function_of(s, b->outer) == function)
            return true;
    }
    return false;
}

bool mr_script_has_several(const mr_script *s, int front) {
    static const char *const heads[] = {"do", "for", "if", "repeat", "while", NULL};
    int count = 0, at = word_at(s, front), end = group_end(s, at);
    int function = function_of(s, s->words.items[at].block);
    for (int i = at; i < end; i++) {
        const word *w = &s->words.items[i];
        if (w->begins && !says_any(w, heads) && function_of(s, w->block) == function) count++;
    }
    return count > 1;
}

/* ---- names */

static bool encloses(const mr_script *s, int outer, int inner) {
    while (inner >= 0 && inner != outer) inner = s->blocks.items[inner].outer;
    return inner == outer;
}

static bool is_named(const mr_script *s, const declaration *d, const char *name) {
    return d->name < 0 ? strcmp(name, "self") == 0 : says(&s->words.items[d->name], name);
}

int mr_script_binding(const mr_script *s, const char *name, int front) {
    int at = word_at(s, front), in = s->words.items[at].block, found = 0;
    for (size_t i = 0; i < s->declarations.count; i++) {
        const declaration *d = &s->declarations.items[i];
        if (d->from < at && encloses(s, d->block, in) && is_named(s, d, name)) found = (int)i + 1;
    }
    return found;
}

bool mr_script_declares(const mr_script *s, const char *name, int line) {
    for (size_t i = 0; i < s->declarations.count; i++) {
        const declaration *d = &s->declarations.items[i];
        if (is_named(s, d, name) && s->words.items[d->name < 0 ? d->from : d->name].line == line)
            return true;
    }
    return false;
}

bool mr_script_reaches(const mr_script *s, int from, int to) {
    return from <= to && encloses(s, block_of(s, from), block_of(s, to));
}

bool mr_script_uses(const mr_script *s, const char *name) {
    for (size_t i = 0; i < s->words.count; i++)
        if (s->words.items[i].kind == NAME && says(&s->words.items[i], name)) return true;
    return false;
}

/* What is called by that name, or the text that gives an operation its name. */
static bool calls(const word *w, const char *name) {
    if (w->kind == VALUE)
        return (*w->text == '"' || *w->text == '\'') && (size_t)w->length == strlen(name) + 2 &&
               memcmp(w->text + 1, name, strlen(name)) == 0;
    return w->kind == NAME && says(w, name) &&
           (w[1].kind == VALUE || says(&w[1], "(") || says(&w[1], "{"));
}

int mr_script_count(const mr_script *s, int front, const char *name) {
    int count = 0, at = word_at(s, front), end = group_end(s, at);
    for (int i = at; i < end; i++) count += calls(&s->words.items[i], name);
    return count;
}

/* The innermost function around the block that is kept rather than called there and then. */
static int kept_function(const mr_script *s, int in) {
    while (in > 0 && !(s->blocks.items[in].is_function && s->blocks.items[in].is_defined))
        in = s->blocks.items[in].outer;
    return in;
}

bool mr_script_is_one_run(const mr_script *s, int line, int other) {
    return kept_function(s, block_of(s, line)) == kept_function(s, block_of(s, other));
}

bool mr_script_follows(const mr_script *s, int front, const char *first, const char *second) {
    int at = word_at(s, front), end = group_end(s, at);
    const word *w = s->words.items;
    for (int i = at; i < end; i++)
        for (int k = i + 1; calls(&w[i], first) && k < end; k++)
            if (calls(&w[k], second) &&
                kept_function(s, w[i].block) == kept_function(s, w[k].block))
                return true;
    return false;
}

bool mr_script_indexes(const mr_script *s, int front, const char *name) {
    const word *w = s->words.items;
    int at = word_at(s, front), binding = mr_script_binding(s, name, front);
    const block *b = &s->blocks.items[w[at].block];
    for (int i = b->opened + 1; i < b->closed; i++)
        if (w[i].kind == NAME && says(&w[i], name) && i && says(&w[i - 1], "[") &&
            says(&w[i + 1], "]") && mr_script_binding(s, name, w[i].line) == binding)
            return true;
    return false;
}
