/* The statements of a text, its blocks and what they declare.
 *
 * Lua has no separator between statements. But inside an expression, a word that can end it (a name, a literal, a
 * closing bracket) is never followed by a name or a word that begins a statement. So where one follows the other
 * outside of brackets, a new statement begins. No grammar is needed. */
#include "script/text.h"

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

/* Whether the bracket is of a call that runs its function argument later, or in turn with others: mr.graph.auto(fn),
 * coroutine.wrap(fn), mr.run(f, g), table.insert(t, fn). */
static bool is_of_keeper(const word *w, int at, int from) {
    static const char *const keepers[][2] = {{"graph", "auto"},
                                             {"coroutine", "wrap"},
                                             {"coroutine", "create"},
                                             {"mr", "run"},
                                             {"table", "insert"}};
    if (at < from + 3 || !says(&w[at - 2], ".")) return false;
    for (size_t i = 0; i < sizeof keepers / sizeof *keepers; i++)
        if (says(&w[at - 3], keepers[i][0]) && says(&w[at - 1], keepers[i][1])) return true;
    return false;
}

/* The word is directly in the brackets of an expression, or of a call that does not store its argument. */
static bool is_argument(const reader *r, int at) {
    const word *w = r->s->words.items;
    int open = 0;
    while (--at >= 0 && at >= r->statement) {
        if (w[at].kind != SYMBOL) continue;
        if (strchr(")}]", *w[at].text)) open++;
        if (strchr("({[", *w[at].text) && open-- == 0)
            return says(&w[at], "(") && !is_of_keeper(w, at, r->statement);
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

/* A local is visible after its statement. */
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

void mr_script_outline(mr_script *s) {
    reader r = {.s = s, .block = -1, .statement = -1};
    open_block(&r, -1, true, false);
    for (int at = 0; at < (int)s->words.count && !s->failed; at++) read_word(&r, &at);
    s->failed = s->failed || r.block != 0;
    if (!s->failed) s->blocks.items[0].closed = (int)s->words.count - 1;
}
