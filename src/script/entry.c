/* Facts about an entry of the prompt; its main chunk continues in the next entries. */
#include <stdlib.h>

#include "script/text.h"

static const word *next_word(const mr_script *s, size_t at) {
    return at + 1 < s->words.count ? &s->words.items[at + 1] : &s->words.items[s->words.count - 1];
}

/* Finds the next declaration by a `local` statement of the main chunk. The variables of loops and functions are in
 * blocks of their own. */
bool mr_script_next_local(const mr_script *s, size_t *next, mr_script_local *out_local) {
    while (*next < s->declarations.count) {
        const declaration *d = &s->declarations.items[(*next)++];
        if (d->block != 0 || d->name < 0) continue;
        const word *name = &s->words.items[d->name];
        const word *open = next_word(s, (size_t)d->name),
                   *attribute = next_word(s, (size_t)d->name + 1);
        bool has_attribute = says(open, "<");
        *out_local = (mr_script_local){.name = name->text, .length = name->length};
        out_local->is_close = has_attribute && says(attribute, "close");
        out_local->is_const = out_local->is_close || (has_attribute && says(attribute, "const"));
        return true;
    }
    return false;
}

long mr_script_return_at(const mr_script *s) {
    for (size_t i = s->words.count; i-- > 0;) {
        const word *w = &s->words.items[i];
        if (w->begins && w->block == 0 && says(w, "return")) return (long)(w->text - s->text);
    }
    return -1;
}

bool mr_script_is_empty(const mr_script *s) {
    return s->words.count == 1; /* the end of the text */
}

long mr_script_quiet_at(const mr_script *s) {
    const word *last = s->words.count > 1 ? &s->words.items[s->words.count - 2] : NULL;
    return last && says(last, ";") ? (long)(last->text - s->text) : -1;
}

long mr_script_ends_at(const mr_script *s) {
    size_t count = s->words.count - 1; /* without the end of the text */
    if (mr_script_quiet_at(s) >= 0) count--;
    if (!count) return 0;
    const word *last = &s->words.items[count - 1];
    return (long)(last->text + last->length - s->text);
}

bool mr_script_next_value(const mr_script *s, size_t *next, long *out_from, long *out_to,
                          long long *out_entry) {
    for (; *next + 3 < s->words.count; ++*next) {
        const word *w = &s->words.items[*next];
        bool is_field = *next && (says(w - 1, ".") || says(w - 1, ":"));
        bool is_number = w[2].kind == VALUE && *w[2].text >= '0' && *w[2].text <= '9';
        if (is_field || w->kind != NAME || !says(w, "_") || !says(&w[1], "[") || !is_number ||
            !says(&w[3], "]"))
            continue;
        *out_from = (long)(w->text - s->text);
        *out_to = (long)(w[3].text - s->text) + 1;
        *out_entry = strtoll(w[2].text, NULL, 10);
        ++*next;
        return true;
    }
    return false;
}
