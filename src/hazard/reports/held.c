/* Held reports: finds one, and adds tensors and lines to it. */
#include "hazard/explain.h"

#include <string.h>

mr_hazard_report *mr_hazard_held(const checker *c, uint64_t number) {
    for (size_t i = 0; i < c->reports.held.count; i++)
        if (c->reports.held.items[i].report->number == number)
            return c->reports.held.items[i].report;
    return NULL;
}

mr_hazard_report *mr_hazard_held_for(const checker *c, const found_pair *pair) {
    for (size_t i = 0; i < c->reports.held.count; i++) {
        mr_hazard_report *r = c->reports.held.items[i].report;
        if (r->kind > MR_HAZARD_WRITE_AFTER_WRITE) continue;
        for (uint32_t k = 0; k < r->stream_pairs; k++)
            if (r->streams[k].first == pair->first->id && r->streams[k].second == pair->second->id)
                return r;
    }
    return NULL;
}

/* ---- adding */

void mr_hazard_add_tensor(mr_hazard_report *report, const char *name) {
    const char *known = report->more;
    size_t size = strlen(name) + 1;
    if (strcmp(report->tensor, name) == 0 || report->more_size + size > MR_HAZARD_MORE) return;
    for (uint32_t i = 0; i < report->more_count; i++, known += strlen(known) + 1)
        if (strcmp(known, name) == 0) return;
    memcpy(report->more + report->more_size, name, size);
    report->more_size += (uint32_t)size;
    report->more_count++;
}

static bool is_same_place(const mr_hazard_fix *a, const mr_hazard_fix *b) {
    return a->place == b->place && a->where.file == b->where.file && a->where.line == b->where.line;
}

/* The length of the code without its comment, which may name a stream. */
static size_t code_size(const char *text) {
    const char *comment = strstr(text, " -- ");
    return comment ? (size_t)(comment - text) : strlen(text);
}

static bool has_fix(const mr_hazard_report *report, const mr_hazard_fix *fix) {
    size_t size = code_size(fix->text);
    for (int i = 0; i < report->fix_count; i++) {
        const mr_hazard_fix *f = &report->fix[i];
        if (is_same_place(f, fix) && code_size(f->text) == size &&
            strncmp(f->text, fix->text, size) == 0)
            return true;
    }
    return false;
}

#define LOCAL "local "

/* The local that a fix makes; its length. */
static size_t made_local(const mr_hazard_fix *fix, const char **out_name) {
    if (strncmp(fix->text, LOCAL, sizeof LOCAL - 1) != 0) return 0;
    *out_name = fix->text + sizeof LOCAL - 1;
    return strcspn(*out_name, " ");
}

static bool is_name(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether the texts are the same except for the names of a local. */
static bool is_same_text(const char *a, const char *b, const char *name_a, size_t size_a,
                         const char *name_b, size_t size_b) {
    for (char before = ' '; *a; before = *a++, b++) {
        bool is_local = !is_name(before) && strncmp(a, name_a, size_a) == 0 && !is_name(a[size_a]);
        if (is_local && strncmp(b, name_b, size_b) == 0 && !is_name(b[size_b])) {
            a += size_a - 1;
            b += size_b - 1;
        } else if (*a != *b) {
            return false;
        }
    }
    return !*b;
}

/* Whether the report has the draft's lines, with another name for the new local. Streams with the same expression, as
 * in two ranks, need no other lines. */
static bool has_renamed(const mr_hazard_report *report, const mr_hazard_report *draft) {
    const char *name, *drafted;
    size_t size_drafted = draft->fix_count ? made_local(&draft->fix[0], &drafted) : 0;
    for (int at = 0; size_drafted && at + draft->fix_count <= report->fix_count; at++) {
        size_t size = made_local(&report->fix[at], &name);
        int same = 0;
        while (size && same < draft->fix_count) {
            const mr_hazard_fix *a = &report->fix[at + same], *b = &draft->fix[same];
            if (!is_same_place(a, b) ||
                !is_same_text(a->text, b->text, name, size, drafted, size_drafted))
                break;
            same++;
        }
        if (same == draft->fix_count) return true;
    }
    return false;
}

bool mr_hazard_add_fixes(mr_hazard_report *report, const mr_hazard_report *draft) {
    bool is_new = false;
    if (!report->fix_count || has_renamed(report, draft)) return false;
    report->needs_several = report->needs_several || !draft->fix_count;
    if (report->fix_count + draft->fix_count > MR_HAZARD_FIXES) {
        report->needs_several = true;
        return false;
    }
    for (int i = 0; i < draft->fix_count; i++) {
        if (has_fix(report, &draft->fix[i])) continue;
        report->fix[report->fix_count++] = draft->fix[i];
        is_new = report->needs_several = true;
    }
    return is_new;
}
