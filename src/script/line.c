/* Lines: where a new line can be inserted, and in which block it would be. */
#include "script/text.h"

int mr_script_word_at(const mr_script *s, int line) {
    int low = 0, high = (int)s->words.count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (s->words.items[middle].line >= line) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* A statement can be inserted in front of this word, the first of its line, and a run would reach it. */
static bool takes(const mr_script *s, int at) {
    const word *w = &s->words.items[at];
    bool closes = s->blocks.items[w->block].closed == at;
    return w->is_first && (w->begins || closes) && !w->is_missed;
}

static bool is_alone(const mr_script *s, int at) {
    const word *w = &s->words.items[at];
    return w->kind == END_OF_TEXT || w[1].line > w->line;
}

/* The line has `end` and then a statement, and it is unknown which of the two is meant. A function in the condition of
 * `until` belongs to that. */
static bool follows_an_end(const mr_script *s, int at) {
    const word *w = &s->words.items[at];
    int outer = says(w, "until") ? s->blocks.items[w->block].outer : -1;
    for (const word *next = w + 1; w->kind != END_OF_TEXT && next->line == w->line; next++)
        if (next->begins && next->kind != END_OF_TEXT && (outer < 0 || next->block == outer))
            return true;
    return false;
}

/* The `until` whose condition has the word, which is not in a function inside of it; -1: there is none. */
static int condition_at(const mr_script *s, int at) {
    const word *w = s->words.items;
    int in = w[at].block;
    bool closes = s->blocks.items[in].closed == at;
    if (closes && says(&w[at], "until")) return at;
    for (int i = at - 1; i >= 0 && !w[i + 1].begins; i--)
        if (says(&w[i], "until") && s->blocks.items[w[i].block].outer == in) return i;
    return -1;
}

int mr_script_front(const mr_script *s, int line) {
    int at = mr_script_word_at(s, line);
    if (s->words.items[at].line != line) return 0;
    if (s->blocks.items[s->words.items[at].block].closed == at) {
        if (is_alone(s, at)) return takes(s, at) ? line : 0; /* what a block's end does: <close> */
        if (follows_an_end(s, at)) return 0;
    }
    int until = condition_at(s, at);
    if (until >= 0) return takes(s, until) ? s->words.items[until].line : 0;
    for (int previous = -1; at >= 0 && at != previous;) {
        previous = at;
        at = s->words.items[at].statement;
        if (at < 0) return 0;
        /* Does anything else stand before it on its line? */
        int first = mr_script_word_at(s, s->words.items[at].line);
        if (first == at) return takes(s, at) ? s->words.items[at].line : 0;
        at = first;
    }
    return 0;
}

/* The block and its contents begin on the line. */
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

/* The line after `last`, unless a comment of several lines is between the two words. */
static int line_behind(const word *last, const word *next) {
    const char *comment = strstr(last->text + last->length, "--[");
    return comment && comment < next->text ? next->line : last->last_line + 1;
}

int mr_script_behind(const mr_script *s, int line) {
    int at = mr_script_word_at(s, line), last = (int)s->words.count - 1;
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

int mr_script_block_of(const mr_script *s, int front) {
    return s->words.items[mr_script_word_at(s, front)].block;
}

int mr_script_function_of(const mr_script *s, int in) {
    while (!s->blocks.items[in].is_function) in = s->blocks.items[in].outer;
    return in;
}

bool mr_script_encloses(const mr_script *s, int outer, int inner) {
    while (inner >= 0 && inner != outer) inner = s->blocks.items[inner].outer;
    return inner == outer;
}

/* The first line of a function, given by its block. */
static int line_of_function(const mr_script *s, int in) {
    if (in == 0) return 0;
    int at = s->blocks.items[in].opened; /* the list's end; Lua counts from the word `function` */
    while (at && !says(&s->words.items[at], "function")) at--;
    return s->words.items[at].line;
}

int mr_script_function(const mr_script *s, int front) {
    return line_of_function(s, mr_script_function_of(s, mr_script_block_of(s, front)));
}

bool mr_script_in_loop(const mr_script *s, int front) {
    for (int in = mr_script_block_of(s, front); in > 0 && !s->blocks.items[in].is_function;
         in = s->blocks.items[in].outer)
        if (s->blocks.items[in].is_loop) return true;
    return false;
}

bool mr_script_is_loop(const mr_script *s, int front) {
    static const char *const loops[] = {"for", "while", "repeat", NULL};
    return says_any(&s->words.items[mr_script_word_at(s, front)], loops);
}

/* Whether the loop runs code of that line at each turn. The head of a `for` runs once, but for its iterator. */
static bool is_of_turn(const mr_script *s, const block *b, int line, bool by_iterator) {
    const word *w = s->words.items;
    if (line < w[b->statement].line || line > w[b->closed].line) return false;
    if (by_iterator || !says(&w[b->statement], "for")) return true;
    return line > w[b->opened].line || has_body_on(s, b, line);
}

/* A line in front of the loop's last word runs at the end of each turn. After a label, it could keep a `goto` from
 * compiling: a goto must not enter the scope of a local, except at the end of its block. */
static int end_of_turn(const mr_script *s, const block *b) {
    const word *closed = &s->words.items[b->closed];
    return takes(s, b->closed) && !says(closed - 1, "::") ? closed->line : 0;
}

bool mr_script_repeats(const mr_script *s, int front, int line, bool by_iterator,
                       mr_script_turns *out) {
    int at = mr_script_word_at(s, front), end = mr_script_group_end(s, at), count = 0;
    for (size_t i = 1; i < s->blocks.count; i++) {
        const block *b = &s->blocks.items[i];
        if (!b->is_loop || b->statement < at || b->statement >= end) continue;
        if (!is_of_turn(s, b, line, by_iterator)) continue;
        const word *w = s->words.items;
        if (!count++)
            *out =
                (mr_script_turns){w[b->statement].line, w[b->closed].last_line, end_of_turn(s, b)};
    }
    if (count > 1) out->end = 0;
    return count > 0;
}

int mr_script_group_end(const mr_script *s, int at) {
    const word *w = s->words.items;
    int in = w[at].block, next = at + 1;
    if (at + 1 >= (int)s->words.count) return at;
    if (s->blocks.items[in].closed == at) in = s->blocks.items[in].outer; /* `until`, `end` */
    while (next + 1 < (int)s->words.count && s->blocks.items[in].closed != next &&
           !(w[next].block == in && w[next].begins && w[next].line > w[next - 1].last_line))
        next++;
    return next;
}

bool mr_script_is_within(const mr_script *s, int front, int line) {
    int end = mr_script_group_end(s, mr_script_word_at(s, front));
    return line >= front && end && s->words.items[end - 1].last_line >= line;
}

bool mr_script_is_beside(const mr_script *s, int line, int function, int other) {
    const word *w = s->words.items;
    int at = mr_script_word_at(s, line);
    if (w[at].line != line) return false;
    for (int statement = w[at].statement; statement >= 0;) {
        int in = mr_script_function_of(s, w[statement].block);
        if (line_of_function(s, in) == function)
            return mr_script_is_within(s, w[statement].line, other);
        statement = s->blocks.items[in].statement;
    }
    return false;
}

bool mr_script_loops(const mr_script *s, int front, int line) {
    int function = mr_script_function_of(s, mr_script_block_of(s, front));
    for (size_t i = 1; i < s->blocks.count; i++) {
        const block *b = &s->blocks.items[i];
        if (b->is_loop && has_body_on(s, b, line) && mr_script_function_of(s, b->outer) == function)
            return true;
    }
    return false;
}

/* Two branches of one `if`: a run enters at most one. A loop inside `limit` may enter both in turn. */
static bool are_branches(const mr_script *s, int a, int b, int limit) {
    const block *x = &s->blocks.items[a], *y = &s->blocks.items[b];
    if (a == b || x->outer != y->outer || x->statement != y->statement) return false;
    if (x->is_function || y->is_function || x->outer < 0) return false;
    if (!says(&s->words.items[x->statement], "if")) return false;
    for (int in = x->outer; in >= 0 && in != limit; in = s->blocks.items[in].outer)
        if (s->blocks.items[in].is_loop) return false;
    return true;
}

bool mr_script_exclude(const mr_script *s, int a, int b, int limit) {
    for (int x = a; x >= 0; x = s->blocks.items[x].outer)
        for (int y = b; y >= 0; y = s->blocks.items[y].outer)
            if (are_branches(s, x, y, limit)) return true;
    return false;
}

/* The word begins a statement that does something by itself, in that function. */
static bool begins_action(const mr_script *s, int at, int function) {
    static const char *const heads[] = {"do", "for", "if", "repeat", "while", NULL};
    const word *w = &s->words.items[at];
    return w->begins && !says_any(w, heads) && mr_script_function_of(s, w->block) == function;
}

bool mr_script_has_several(const mr_script *s, int front) {
    int at = mr_script_word_at(s, front), end = mr_script_group_end(s, at);
    int limit = s->words.items[at].block, function = mr_script_function_of(s, limit);
    for (int i = at; i < end; i++)
        for (int k = i + 1; begins_action(s, i, function) && k < end; k++)
            if (begins_action(s, k, function) &&
                !mr_script_exclude(s, s->words.items[i].block, s->words.items[k].block, limit))
                return true;
    return false;
}

/* ---- a wait that comes at once */

/* Skips a name with its fields and entries, as in `x.y[1]:z`, without a call. *out_last: the last name. */
static int behind_names(const mr_script *s, int at, int *out_last) {
    const word *w = s->words.items;
    if (w[at].kind != NAME) return -1;
    *out_last = at++;
    for (;;) {
        if (says(&w[at], ".") || says(&w[at], ":")) {
            if (w[at + 1].kind != NAME) return -1;
            *out_last = at + 1;
            at += 2;
        } else if (says(&w[at], "[")) {
            if ((w[at + 1].kind != NAME && w[at + 1].kind != VALUE) || !says(&w[at + 2], "]"))
                return -1;
            at += 3;
        } else return at;
    }
}

int mr_script_only_call(const mr_script *s, int line, const char *name) {
    int found = -1;
    for (int i = 0; i + 1 < (int)s->words.count; i++) {
        const word *w = &s->words.items[i];
        if (w->line != line || !says(w, name)) continue;
        if (found >= 0 || !says(&w[1], "(")) return -1;
        found = i;
    }
    return found;
}

/* The word after the call and its semicolons; -1: see mr_script_only_call. */
static int behind_call(const mr_script *s, int line, const char *name) {
    int call = mr_script_only_call(s, line, name);
    if (call < 0) return -1;
    int next = mr_script_behind_bracket(s, call + 1);
    while (next < (int)s->words.count && says(&s->words.items[next], ";")) next++;
    return next;
}

/* The attribute of a variable whose __close runs at the end of its block. */
static bool has_close(const mr_script *s) {
    for (size_t i = 0; i + 2 < s->words.count; i++)
        if (says(&s->words.items[i], "<") && says(&s->words.items[i + 1], "close") &&
            says(&s->words.items[i + 2], ">"))
            return true;
    return false;
}

bool mr_script_ends_with(const mr_script *s, int line, const char *name) {
    int next = has_close(s) ? -1 : behind_call(s, line, name);
    return next >= 0 && (next == (int)s->words.count || s->words.items[next].kind == END_OF_TEXT);
}

bool mr_script_waits_at_once(const mr_script *s, int line, const char *name, int wait_line) {
    int last = 0, next = behind_call(s, line, name);
    if (next < 0) return false;
    if (next + 4 >= (int)s->words.count || !s->words.items[next].begins) return false;
    int bracket = behind_names(s, next, &last);
    if (bracket < 0 || !says(&s->words.items[last], "synchronize") || bracket != last + 1)
        return false;
    /* To find a stream in a table may run code of the script (__index). */
    if (last != next + 2) return false;
    return says(&s->words.items[bracket], "(") && s->words.items[bracket].line == wait_line &&
           mr_script_behind_bracket(s, bracket) <= bracket + 3;
}
