/* What is held: finding a held report, and adding tensors and lines to a report. */
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

static bool has_fix(const mr_hazard_report *report, const mr_hazard_fix *fix) {
    for (int i = 0; i < report->fix_count; i++) {
        const mr_hazard_fix *f = &report->fix[i];
        if (f->place == fix->place && f->where.file == fix->where.file &&
            f->where.line == fix->where.line && strcmp(f->text, fix->text) == 0)
            return true;
    }
    return false;
}

bool mr_hazard_add_fixes(mr_hazard_report *report, const mr_hazard_report *draft) {
    bool is_new = false;
    if (!report->fix_count || report->fix_count + draft->fix_count > MR_HAZARD_FIXES) return false;
    for (int i = 0; i < draft->fix_count; i++) {
        if (has_fix(report, &draft->fix[i])) continue;
        report->fix[report->fix_count++] = draft->fix[i];
        is_new = true;
    }
    return is_new;
}
