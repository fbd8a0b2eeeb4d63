/* An access may run again before the event of its last run is waited for. This file finds the line where a variable for
 * that event is declared, so that both accesses see it. Each entry of a table of buffers may need an event of its own.
 *
 *     local done = {}                                     <- in front of the loop
 *     for i = 1, n do
 *       if done[k] then copy:wait_event(done[k]) end      <- in front of the second access, one round later
 *       ... buffer[k] ...
 *       ... buffer[k] ...
 *       done[k] = compute:record_event()                  <- behind the first
 *     end
 *
 * Easiest to break: a variable that is declared in front of an inner loop, or in a function that is called again, is a
 * new one each time. Then the event of the time before is lost. So the declaration goes as far out as the tensor's own,
 * and no further: what is about one tensor is about one variable. */
#include "script/place.h"

#include <stdio.h>
#include <string.h>

#include "script/text.h"

/* `root[index]`: the index is words [first, last). */
typedef struct {
    int first, last;
    /* of a local that stands for the entry: written elsewhere than where it is used */
    bool is_alias;
} entry_index;

/* ---- the entry of a table that both accesses use */

static const declaration *declaration_of(const mr_script *s, const char *name, int front) {
    int number = mr_script_binding(s, name, front);
    return number ? &s->declarations.items[number - 1] : NULL;
}

static bool is_parameter(const mr_script *s, const declaration *d) {
    const block *b = &s->blocks.items[d->block];
    return b->is_function && d->from == b->opened;
}

static void copy_word(const word *w, char *out, size_t size) {
    snprintf(out, size, "%.*s", w->length, w->text);
}

/* `buffer[2]`, `self.x`, `x`: the name that it begins with. */
static void root_of(const char *tensor, char *root, size_t size) {
    snprintf(root, size, "%.*s", (int)strcspn(tensor, "[."), tensor);
}

/* The word is a name, a number or a sign of arithmetic. An expression of such words has no call, so it has the same
 * value when it is written twice. */
static bool is_simple(const word *w) {
    static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "(", ")", ".", NULL};
    if (w->kind == NAME) return !says_any(w + 1, (const char *const[]){"(", "{", ":", "=", NULL});
    if (w->kind == VALUE) return *w->text >= '0' && *w->text <= '9';
    return w->kind == SYMBOL && says_any(w, signs);
}

/* Reads the index after the `[` at word `open`; the index is on one line. */
static bool read_index(const mr_script *s, int open, entry_index *out) {
    const word *w = s->words.items;
    int at = open + 1;
    while (is_simple(&w[at]) && w[at].line == w[open].line) at++;
    *out = (entry_index){open + 1, at, false};
    return at > open + 1 && says(&w[at], "]") && w[at].line == w[open].line;
}

/* The declaration is `local name = root[index]` and no more, so the name is an alias of that entry. */
static bool is_alias(const mr_script *s, const declaration *d, char *root, size_t size,
                     entry_index *out) {
    const word *w = s->words.items;
    int name = d ? d->name : -1;
    if (name < 1 || !says(&w[name - 1], "local") || !says(&w[name + 1], "=")) return false;
    if (w[name + 2].kind != NAME || !says(&w[name + 3], "[")) return false;
    if (!read_index(s, name + 3, out) || d->from != out->last) return false;
    out->is_alias = true;
    copy_word(&w[name + 2], root, size);
    return true;
}

/* Whether a statement among the words [at, end), other than a declaration, assigns to the name. */
static bool is_assigned(const mr_script *s, const char *name, int at, int end) {
    const word *w = s->words.items;
    for (; at < end; at++) {
        if (!w[at].begins || w[at].kind != NAME) continue;
        for (int i = at; i < end && says_any(&w[i + 1], (const char *const[]){",", "=", NULL});
             i += 2)
            if (says(&w[i], name)) return true;
    }
    return false;
}

/* Whether the index has the same value where it is written as at the two places. Its names must refer to the same
 * variables there. The statements of the two accesses must not assign to them. If the index is written elsewhere, no
 * statement of the loop may assign to them. */
static bool is_constant(const mr_script *s, entry_index index, const mr_script_meeting *m,
                        const mr_script_spot *record, const mr_script_spot *wait, int loop) {
    const word *w = s->words.items;
    const block *body = &s->blocks.items[loop];
    int first = w[mr_script_word_at(s, m->first.line)].statement;
    int second = w[mr_script_word_at(s, m->second.line)].statement;
    char name[64];
    for (int i = index.first; i < index.last; i++) {
        if (w[i].kind != NAME || says(&w[i - 1], ".")) continue;
        copy_word(&w[i], name, sizeof name);
        int binding = mr_script_binding(s, name, w[i].line);
        if (mr_script_binding(s, name, record->front) != binding ||
            mr_script_binding(s, name, wait->front) != binding)
            return false;
        if (is_assigned(s, name, first, mr_script_group_end(s, first)) ||
            is_assigned(s, name, second, mr_script_group_end(s, second)) ||
            (index.is_alias && is_assigned(s, name, body->opened, body->closed)))
            return false;
    }
    return true;
}

static bool is_same(const mr_script *s, entry_index a, entry_index b) {
    const word *w = s->words.items;
    if (a.last - a.first != b.last - b.first) return false;
    for (int i = 0; i < a.last - a.first; i++)
        if (w[a.first + i].length != w[b.first + i].length ||
            memcmp(w[a.first + i].text, w[b.first + i].text, (size_t)w[a.first + i].length) != 0)
            return false;
    return true;
}

#define MOST_INDICES 8

/* The entries of `root` that the statement of `line` uses. */
static int find_indices(const mr_script *s, const char *root, int line, entry_index *out) {
    const word *w = s->words.items;
    int at = w[mr_script_word_at(s, line)].statement, count = 0;
    int binding = mr_script_binding(s, root, line);
    for (int i = at, end = mr_script_group_end(s, at); i < end && count < MOST_INDICES; i++) {
        char name[64], other[64];
        if (w[i].kind != NAME || (i && says(&w[i - 1], "."))) continue;
        copy_word(&w[i], name, sizeof name);
        bool is_entry = strcmp(name, root) == 0 && says(&w[i + 1], "[");
        if (is_entry && read_index(s, i + 1, &out[count])) count++;
        const declaration *d = is_entry ? NULL : declaration_of(s, name, line);
        if (d && is_alias(s, d, other, sizeof other, &out[count]) && strcmp(other, root) == 0 &&
            mr_script_binding(s, root, w[d->name].line) == binding)
            count++;
    }
    return count;
}

/* Whether the expression names the first access's stream in each round. `s[k]` was found with the current k, which had
 * another value when the first access ran. `s[2]` is perhaps one of several streams that take turns. So an entry counts
 * only if the first access's own statement has it. A plain name always counts. */
static bool is_lasting(const mr_script *s, const char *expression, int line) {
    const char *open = strchr(expression, '[');
    char root[64];
    entry_index found[MOST_INDICES];
    if (!open) return true;
    root_of(expression, root, sizeof root);
    for (int i = find_indices(s, root, line, found); i-- > 0;) {
        const word *w = &s->words.items[found[i].first];
        if (found[i].last == found[i].first + 1 && !found[i].is_alias &&
            strncmp(w->text, open + 1, (size_t)w->length) == 0 && open[1 + w->length] == ']')
            return true;
    }
    return false;
}

static bool has_name(const mr_script *s, entry_index index) {
    for (int i = index.first; i < index.last; i++)
        if (s->words.items[i].kind == NAME) return true;
    return false;
}

/* The one index that the statements of both lines have for `root`. With several, it is unknown which of them the pair
 * is about. The first may not name `root` at all (`loss:backward()`). Then the second's index counts, if the first was
 * seen to use the same entry, and no statement of the loop may assign to its names. */
static bool common_index(const mr_script *s, const char *root, const mr_script_meeting *m,
                         entry_index *out) {
    entry_index found[2 * MOST_INDICES];
    int seconds = find_indices(s, root, m->second.line, found);
    int all = seconds + find_indices(s, root, m->first.line, found + seconds);
    if (seconds == 0 || (all == seconds && !m->is_of_round)) return false;
    *out = found[0];
    out->is_alias |= all == seconds;
    for (int i = 1; i < all; i++) {
        if (!is_same(s, found[i], *out)) return false;
        out->is_alias |= found[i].is_alias;
    }
    return true;
}

/* ---- where it is declared */

static bool is_declared_outside(const mr_script *s, const declaration *d, int in) {
    const block *b = &s->blocks.items[in];
    return !d || (mr_script_encloses(s, d->block, b->outer) && d->from < b->statement);
}

/* The block of the outermost loop around both places that begins after the declaration of the tensor. 0: none. */
static int loop_around(const mr_script *s, int from, int to, const declaration *d) {
    int found = 0;
    for (int in = from; in > 0; in = s->blocks.items[in].outer) {
        const block *b = &s->blocks.items[in];
        if (b->is_function && b->is_defined) break;
        if (b->is_loop && mr_script_encloses(s, in, to) && is_declared_outside(s, d, in))
            found = in;
    }
    for (int in = to; found && in != found; in = s->blocks.items[in].outer)
        if (s->blocks.items[in].is_function && s->blocks.items[in].is_defined) return 0;
    return found;
}

/* The first word of the statement of block `in` that contains the place. */
static int statement_in(const mr_script *s, int in, int place, int front) {
    int statement = mr_script_word_at(s, front);
    for (; place != in; place = s->blocks.items[place].outer)
        statement = s->blocks.items[place].statement;
    return statement;
}

/* In front of the loop around both; else of the first of the statements that hold them, in the block around both. */
static int declared_at(const mr_script *s, int from_front, int to_front, const declaration *d,
                       int *out_loop) {
    int from = mr_script_block_of(s, from_front), to = mr_script_block_of(s, to_front);
    *out_loop = loop_around(s, from, to, d);
    if (*out_loop) return s->blocks.items[*out_loop].statement;
    int around = from;
    while (!mr_script_encloses(s, around, to)) around = s->blocks.items[around].outer;
    int a = statement_in(s, around, from, from_front), b = statement_in(s, around, to, to_front);
    int at = a < b ? a : b;
    return !d || (mr_script_encloses(s, d->block, around) && d->from < at) ? at : -1;
}

/* The statement runs once for each time that the tensor's variable is declared. */
static bool is_run_once(const mr_script *s, int at, const declaration *d) {
    int function = mr_script_function_of(s, s->words.items[at].block);
    if (function == 0) return !mr_script_in_loop(s, s->words.items[at].line) || d;
    return d && !is_parameter(s, d) && mr_script_function_of(s, d->block) == function;
}

static const char *free_name(const mr_script *s,
                             bool (*is_taken)(const void *context, const char *name),
                             const void *context) {
    static const char *const names[] = {"done",  "ready", "passed", "done2", "done3",
                                        "done4", "done5", "done6",  NULL};
    const char *const *name = names;
    while (*name && (mr_script_uses(s, *name) || is_taken(context, *name))) name++;
    return *name;
}

bool mr_script_ahead(const mr_script *s, const mr_script_spot *record, const mr_script_spot *wait,
                     const mr_script_meeting *m, const char *tensor, const char *stream,
                     bool (*is_taken)(const void *context, const char *name), const void *context,
                     mr_script_variable *out) {
    char root[64];
    entry_index index = {0, 0, false};
    if (!s || record->where.file != wait->where.file || wait->place == MR_SCRIPT_WITHIN)
        return false;
    root_of(tensor, root, sizeof root);
    bool is_entry = strchr(tensor, '[') != NULL, is_other_line = m->first.line != m->second.line;
    const declaration *d = declaration_of(s, root, wait->front);
    if (is_alias(s, d, root, sizeof root, &index)) {
        is_entry = true;
        d = declaration_of(s, root, s->words.items[d->name].line);
    }
    int loop, at = declared_at(s, record->front, wait->front, d, &loop);
    if (at < 0 || !is_other_line || !is_lasting(s, stream, m->first.line) || !is_run_once(s, at, d))
        return false;
    int line = s->words.items[at].line;
    const char *name = free_name(s, is_taken, context);
    if (!name || mr_script_front(s, line) != line) return false;
    bool is_indexed = is_entry && loop && common_index(s, root, m, &index) && has_name(s, index);
    if (is_indexed && !is_constant(s, index, m, record, wait, loop)) return false;
    mr_script_spot made = {MR_SCRIPT_BEFORE, {wait->where.file, line}, line, false, false, 0};
    *out = (mr_script_variable){.made = made};
    snprintf(out->name, sizeof out->name, "%s", name);
    if (!is_indexed) return true;
    const word *first = &s->words.items[index.first], *last = &s->words.items[index.last - 1];
    int length = (int)(last->text + last->length - first->text);
    snprintf(out->index, sizeof out->index, "%.*s", length, first->text);
    return length < (int)sizeof out->index;
}

bool mr_script_is_set_later(const mr_script *s, const mr_script_spot *spot,
                            const char *expression) {
    char table[64];
    if (!s || !strchr(expression, '[')) return false;
    root_of(expression, table, sizeof table);
    int in_force = mr_script_binding(s, table, spot->front);
    for (int at = mr_script_word_at(s, spot->front); at < (int)s->words.count; at++) {
        const word *w = &s->words.items[at];
        entry_index index;
        if (w->begins && says(w, table) && says(w + 1, "[") && read_index(s, at + 1, &index) &&
            says(&s->words.items[index.last + 1], "=") &&
            mr_script_binding(s, table, w->line) == in_force)
            return true;
    }
    return false;
}
