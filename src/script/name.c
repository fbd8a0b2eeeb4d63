/* Names: what a name refers to at a place, and where it is assigned. */
#include <limits.h>
#include <stdio.h>

#include "script/text.h"

/* ---- names */

static bool is_named(const mr_script *s, const declaration *d, const char *name) {
    return d->name < 0 ? strcmp(name, "self") == 0 : says(&s->words.items[d->name], name);
}

static int binding_at(const mr_script *s, const char *name, int at) {
    int in = s->words.items[at].block, found = 0;
    for (size_t i = 0; i < s->declarations.count; i++) {
        const declaration *d = &s->declarations.items[i];
        if (d->from < at && is_named(s, d, name) && mr_script_encloses(s, d->block, in))
            found = (int)i + 1;
    }
    return found;
}

int mr_script_binding(const mr_script *s, const char *name, int front) {
    return binding_at(s, name, mr_script_word_at(s, front));
}

bool mr_script_is_of_chunk(const mr_script *s, const char *name, int front) {
    int binding = mr_script_binding(s, name, front);
    return binding && s->declarations.items[binding - 1].block == 0;
}

/* The `=` of a statement that is an assignment; 0: it is not one. */
static int assignment(const mr_script *s, int statement) {
    const word *w = s->words.items;
    int open = 0;
    if (!w[statement].begins || w[statement].kind == KEYWORD) return 0;
    for (int i = statement; w[i].kind != END_OF_TEXT; i++) {
        if (i > statement && w[i].begins) return 0;
        if (w[i].kind != SYMBOL) continue;
        if (strchr("({[", *w[i].text)) open++;
        if (strchr(")}]", *w[i].text)) open--;
        if (!open && says(&w[i], "=")) return i;
    }
    return 0;
}

void mr_script_find_targets(mr_script *s) {
    const word *w = s->words.items;
    for (int i = 0; w[i].kind != END_OF_TEXT && !s->failed; i++) {
        int end = assignment(s, i), open = 0;
        for (int k = i; k < end; k++) {
            if (w[k].kind == SYMBOL && strchr("({[", *w[k].text)) open++;
            if (w[k].kind == SYMBOL && strchr(")}]", *w[k].text)) open--;
            bool is_target = says(&w[k + 1], ",") || k + 1 == end;
            if (open || !is_target || w[k].kind != NAME) continue;
            target t = {.name = k, .statement = i, .is_field = k > i && says(&w[k - 1], ".")};
            s->failed = s->failed || !mr_vec_push(&s->targets, t);
        }
    }
}

/* The index of the first target whose statement begins at word `at` or later. */
static size_t first_target(const mr_script *s, int at) {
    size_t low = 0, high = s->targets.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->targets.items[middle].statement < at) low = middle + 1;
        else high = middle;
    }
    return low;
}

int mr_script_assigns(const mr_script *s, const char *name, int binding, int first, int last) {
    const word *w = s->words.items;
    int count = 0;
    for (size_t i = first_target(s, mr_script_word_at(s, first)); i < s->targets.count; i++) {
        const target *t = &s->targets.items[i];
        if (w[t->statement].line > last) break;
        if (!says(&w[t->name], name)) continue;
        count += t->is_field ? binding == MR_SCRIPT_FIELD
                             : mr_script_binding(s, name, w[t->name].line) == binding;
    }
    return count;
}

bool mr_script_reaches(const mr_script *s, int from, int to) {
    return from <= to &&
           mr_script_encloses(s, mr_script_block_of(s, from), mr_script_block_of(s, to));
}

bool mr_script_uses(const mr_script *s, const char *name) {
    for (size_t i = 0; i < s->words.count; i++)
        if (s->words.items[i].kind == NAME && says(&s->words.items[i], name)) return true;
    return false;
}

/* Whether the word is a call of that name, or a string that names the operation. */
static bool calls(const word *w, const char *name) {
    if (w->kind == VALUE)
        return (*w->text == '"' || *w->text == '\'') && (size_t)w->length == strlen(name) + 2 &&
               memcmp(w->text + 1, name, strlen(name)) == 0;
    return w->kind == NAME && says(w, name) &&
           (w[1].kind == VALUE || says(&w[1], "(") || says(&w[1], "{"));
}

int mr_script_count(const mr_script *s, int front, const char *name) {
    int count = 0, at = mr_script_word_at(s, front), end = mr_script_group_end(s, at);
    for (int i = at; i < end; i++) count += calls(&s->words.items[i], name);
    return count;
}

/* The innermost function around the block that is stored for later rather than called immediately. */
static int kept_function(const mr_script *s, int in) {
    while (in > 0 && !(s->blocks.items[in].is_function && s->blocks.items[in].is_defined))
        in = s->blocks.items[in].outer;
    return in;
}

bool mr_script_is_one_run(const mr_script *s, int line, int other) {
    return kept_function(s, mr_script_block_of(s, line)) ==
           kept_function(s, mr_script_block_of(s, other));
}

bool mr_script_follows(const mr_script *s, int front, const char *first, const char *second) {
    int at = mr_script_word_at(s, front), end = mr_script_group_end(s, at);
    const word *w = s->words.items;
    for (int i = at; i < end; i++)
        for (int k = i + 1; calls(&w[i], first) && k < end; k++)
            if (calls(&w[k], second) &&
                kept_function(s, w[i].block) == kept_function(s, w[k].block) &&
                !mr_script_exclude(s, w[i].block, w[k].block, w[at].block))
                return true;
    return false;
}

static bool is_part_of(const mr_script *s, int at, int statement) {
    int in = s->words.items[at].block;
    if (s->words.items[at].statement == statement) return true;
    for (; in > 0; in = s->blocks.items[in].outer)
        if (s->blocks.items[in].statement == statement) return true;
    return false;
}

bool mr_script_is_later(const mr_script *s, int front, const char *name) {
    int at = mr_script_word_at(s, front), end = mr_script_group_end(s, at);
    const word *w = s->words.items;
    for (int k = at; k < end; k++)
        for (int i = at; calls(&w[k], name) && i < k; i++)
            if (w[i].begins && !is_part_of(s, k, i) &&
                !mr_script_exclude(s, w[i].block, w[k].block, w[at].block))
                return true;
    return mr_script_follows(s, front, name, name);
}

/* ---- which functions of the script a line may call */

/* `function a.b:name(`: the word is the last one of such a name. */
static bool is_name_of_function(const word *w, int at) {
    if (!says(&w[at + 1], "(")) return false;
    while (at > 1 && (says(&w[at - 1], ".") || says(&w[at - 1], ":"))) at -= 2;
    return at > 0 && says(&w[at - 1], "function");
}

/* The word is one of the names that a statement assigns to: the statement has only names before it. */
static bool is_assigned(const mr_script *s, int at) {
    const word *w = s->words.items;
    if (says(&w[at + 1], "=")) return !says(&w[w[at].statement], "for");
    if (!says(&w[at + 1], ",")) return false;
    for (int i = w[at].statement; i >= 0 && i < at; i++)
        if (w[i].kind != NAME && !says(&w[i], ",") && !says(&w[i], ".") && !says(&w[i], "local"))
            return false;
    return true;
}

/* The first word after the statement that contains the word. */
static int behind_statement(const mr_script *s, int at) {
    const word *w = s->words.items;
    int i = at + 1;
    while (i < s->blocks.items[w[at].block].closed && !(w[i].begins && w[i].block == w[at].block))
        i++;
    return i;
}

typedef struct {
    const mr_script *s;
    int line;      /* the target: a function that has it */
    bool *visited; /* by block */
} lead;

static bool leads_from(lead *l, int from, int end);

/* Functions that are written between these words lead to the target. */
static bool leads_by_bodies(lead *l, int from, int end, bool *out_any) {
    for (int b = 1; b < (int)l->s->blocks.count; b++) {
        const block *body = &l->s->blocks.items[b];
        if (!body->is_function || body->opened < from || body->opened >= end) continue;
        *out_any = true;
        if (l->s->words.items[body->opened].line <= l->line &&
            l->s->words.items[body->closed].line >= l->line)
            return true;
        if (l->visited[b]) continue;
        l->visited[b] = true;
        if (leads_from(l, body->opened + 1, body->closed)) return true;
    }
    return false;
}

/* A value that the script assigns to that name leads to the target. */
static bool leads_by_name(lead *l, int name, bool is_called) {
    const word *w = l->s->words.items;
    bool any = false, is_field = name && (says(&w[name - 1], ".") || says(&w[name - 1], ":"));
    char text[64];
    for (int i = 0; w[i].kind != END_OF_TEXT; i++) {
        bool is_same = w[i].kind == NAME && w[i].length == w[name].length &&
                       memcmp(w[i].text, w[name].text, (size_t)w[name].length) == 0;
        if (!is_same || (!is_name_of_function(w, i) && !is_assigned(l->s, i))) continue;
        if (leads_by_bodies(l, i + 1, behind_statement(l->s, i), &any)) return true;
    }
    if (any || !is_called || is_field) return false;
    snprintf(text, sizeof text, "%.*s", w[name].length, w[name].text);
    return mr_script_binding(l->s, text, w[name].line) !=
           0; /* the function that it holds is unknown */
}

static bool leads_from(lead *l, int from, int end) {
    const word *w = l->s->words.items;
    for (int i = from; i < end; i++) {
        if ((says(&w[i], "]") || says(&w[i], ")")) && says(&w[i + 1], "(")) return true;
        if (w[i].kind != NAME) continue;
        bool is_called = says(&w[i + 1], "(") || says(&w[i + 1], "{") || w[i + 1].kind == VALUE;
        if (leads_by_name(l, i, is_called)) return true;
    }
    return false;
}

/* The statements' end, or that of the head whose line this is, such as `for i = 1, f() do`. */
static int end_of_part(const mr_script *s, int at, int line) {
    const word *w = s->words.items;
    int end = mr_script_group_end(s, at);
    for (size_t i = 1; i < s->blocks.count; i++) {
        const block *b = &s->blocks.items[i];
        if (b->is_function || b->statement < at || b->opened >= end) continue;
        bool is_head = w[b->statement].line <= line && w[b->opened].line >= line;
        if (is_head && w[b->opened + 1].line > w[b->opened].line) end = b->opened;
    }
    return end;
}

bool mr_script_leads_to(const mr_script *s, int front, int last, int line) {
    int at = mr_script_word_at(s, front);
    lead l = {s, line, NULL};
    l.visited = calloc(s->blocks.count + 1, sizeof *l.visited);
    bool leads = !l.visited || leads_from(&l, at, end_of_part(s, at, last));
    free(l.visited);
    return leads;
}

bool mr_script_names_entry(const mr_script *s, int front, const char *table, long long index) {
    const word *w = s->words.items;
    const block *b = &s->blocks.items[w[mr_script_word_at(s, front)].block];
    char number[24];
    int length = snprintf(number, sizeof number, "%lld", index);
    for (int i = b->opened + 1; i + 2 < b->closed; i++)
        if (w[i].kind == NAME && says(&w[i], table) && says(&w[i + 1], "[") &&
            w[i + 2].length == length && memcmp(w[i + 2].text, number, (size_t)length) == 0 &&
            says(&w[i + 3], "]"))
            return true;
    return false;
}

bool mr_script_indexes(const mr_script *s, int front, const char *name) {
    const word *w = s->words.items;
    int at = mr_script_word_at(s, front), binding = mr_script_binding(s, name, front);
    const block *b = &s->blocks.items[w[at].block];
    for (int i = b->opened + 1; i < b->closed; i++)
        if (w[i].kind == NAME && says(&w[i], name) && i && says(&w[i - 1], "[") &&
            says(&w[i + 1], "]") && mr_script_binding(s, name, w[i].line) == binding)
            return true;
    return false;
}

/* ---- loop variables */

/* The word stands for the variable's whole value, not for an entry of it or for a function. A method of it counts only
 * as `method`. */
static bool is_value(const word *w, int at, const char *method) {
    static const char *const parts[] = {".", "[", "(", "{", "=", NULL};
    const word *next = &w[at + 1];
    if (at && (says(&w[at - 1], ".") || says(&w[at - 1], ":"))) return false;
    if (says(next, ":")) return says(&w[at + 2], method);
    return next->kind != VALUE && !says_any(next, parts);
}

static bool declares(const mr_script *s, int at) {
    for (size_t i = 0; i < s->declarations.count; i++)
        if (s->declarations.items[i].name == at) return true;
    return false;
}

/* The statements that begin on line `front` use the value of the variable that word `name` declares. */
static bool uses_value(const mr_script *s, int name, const char *text, int front,
                       const char *method) {
    const word *w = s->words.items;
    int at = mr_script_word_at(s, front), end = mr_script_group_end(s, at);
    for (int i = at; i < end; i++) {
        if (w[i].kind != NAME || !says(&w[i], text) || !is_value(w, i, method) || declares(s, i))
            continue;
        int binding = binding_at(s, text, i);
        if (binding && s->declarations.items[binding - 1].name == name) return true;
    }
    return false;
}

bool mr_script_loop_variable(const mr_script *s, int loop, int line, const char *method, int front,
                             char *out, size_t size) {
    const word *w = s->words.items;
    int at = mr_script_word_at(s, loop), found = 0;
    int use = mr_script_front(s, line);
    if (!use || w[at].line != loop || !says(&w[at], "for")) return false;
    for (at++; w[at].kind == NAME; at += 2) {
        char text[64];
        snprintf(text, sizeof text, "%.*s", w[at].length, w[at].text);
        int binding = mr_script_binding(s, text, front);
        if (binding && s->declarations.items[binding - 1].name == at &&
            uses_value(s, at, text, use, method) &&
            !mr_script_assigns(s, text, binding, 1, INT_MAX) && ++found == 1)
            snprintf(out, size, "%s", text);
        if (!says(&w[at + 1], ",")) break;
    }
    return found == 1 && says(&w[at + 1], "in");
}

/* ---- what a call returns */

bool mr_script_is_call(const mr_script *s, int line) {
    int at = mr_script_word_at(s, line);
    const word *w = &s->words.items[at];
    return w->line == line && w->begins && w->kind == NAME && !assignment(s, at);
}

/* `option = VALUE` among the words [at, end), unless the value is false or nil. */
static bool has_option(const word *w, int at, int end, const char *option) {
    static const char *const off[] = {"false", "nil", NULL};
    for (; at + 2 < end; at++)
        if (says(&w[at], option) && says(&w[at + 1], "=")) return !says_any(&w[at + 2], off);
    return false;
}

static bool ends_statement(const word *w) {
    static const char *const ends[] = {"end", "else", "elseif", "until", ";", NULL};
    return w->kind == END_OF_TEXT || w->begins || says_any(w, ends);
}

/* The call `a.b.name(...)` that begins at word `at`, and is the rest of its statement. */
static bool is_last_call(const mr_script *s, int at, const char *name, const char *option) {
    const word *w = s->words.items;
    while (w[at].kind == NAME && says(&w[at + 1], ".")) at += 2;
    if (!calls(&w[at], name) || w[at + 1].kind != SYMBOL) return false;
    int end = mr_script_behind_bracket(s, at + 1);
    return ends_statement(&w[end]) && has_option(w, at + 2, end, option);
}

/* Whether the variable that word `at` names, or with `is_local` declares, is in force at the place. */
static bool is_seen(const mr_script *s, int at, bool is_local, const char *name, int front) {
    int binding = mr_script_binding(s, name, front);
    if (!is_local) return binding == mr_script_binding(s, name, s->words.items[at].line);
    return binding && s->declarations.items[binding - 1].name == at;
}

/* The word that begins the call's statement. It is the statement of the line, or is in a function that the line's
 * statement hands to a call: mr.with(s, function() ... end). -1: neither. */
static int statement_of_call(const mr_script *s, int line, const char *name) {
    const word *w = s->words.items;
    int first = w[mr_script_word_at(s, line)].statement, call = mr_script_only_call(s, line, name);
    if (call < 0 || w[first].line != line || mr_script_has_several(s, line)) return -1;
    int at = w[call].statement;
    const block *b = &s->blocks.items[w[at].block];
    bool is_handed = b->is_function && !b->is_defined && b->outer == w[first].block;
    return at == first || is_handed ? at : -1;
}

bool mr_script_result(const mr_script *s, int line, const char *name, const char *option, int front,
                      char *out, size_t size) {
    const word *w = s->words.items;
    int at = statement_of_call(s, line, name);
    if (at < 0) return false;
    bool is_local = says(&w[at], "local");
    at += is_local;
    if (w[at].kind == NAME && says(&w[at + 1], "=")) {
        snprintf(out, size, "%.*s", w[at].length, w[at].text);
        return is_last_call(s, at + 2, name, option) && is_seen(s, at, is_local, out, front);
    }
    if (size) *out = '\0';
    return !is_local && is_last_call(s, at, name, option);
}

bool mr_script_is_direct(const mr_script *s, int front, int line) {
    const word *w = s->words.items;
    if (front != line) return false;
    for (int i = mr_script_word_at(s, line); w[i].kind != END_OF_TEXT && w[i].line == line; i++)
        if (says(&w[i], "function")) return false;
    return true;
}
