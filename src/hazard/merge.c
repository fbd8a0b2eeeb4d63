/* Collects what belongs to one report: the other tensors on which its command races in the same way, and
 * the lines that other memory or other streams need at the same places. A report is held back until the
 * whole command was checked, and for a host function until the function has run. So it is written once. */
#include "hazard/explain.h"

#include <stdlib.h>
#include <string.h>

/* ---- holding */

static void let_go(checker *c, const held_report *held) {
    mr_hazard_publish(c, held->report);
    if (held->own) free(held->report);
}

void mr_hazard_hold(checker *c, mr_hazard_report *report, bool own) {
    held_report held = {report, own};
    if (!mr_vec_push(&c->held, held)) let_go(c, &held);
}

void mr_hazard_publish_held(checker *c) {
    for (size_t i = 0; i < c->held.count; i++) let_go(c, &c->held.items[i]);
    c->held.count = 0;
}

mr_hazard_report *mr_hazard_held(const checker *c, uint64_t number) {
    for (size_t i = 0; i < c->held.count; i++)
        if (c->held.items[i].report->number == number) return c->held.items[i].report;
    return NULL;
}

mr_hazard_report *mr_hazard_held_for(const checker *c, const found_pair *pair) {
    for (size_t i = 0; i < c->held.count; i++) {
        mr_hazard_report *r = c->held.items[i].report;
        if (r->kind > MR_HAZARD_WRITE_AFTER_WRITE) continue;
        for (uint32_t k = 0; k < r->stream_pairs; k++)
            if (r->streams[k].first == pair->first->id && r->streams[k].second == pair->second->id)
                return r;
    }
    return NULL;
}

/* ---- taking over */

/* The fix of `report` orders what the other one is about, too. What is only assumed stands for nothing certain. */
static bool orders(const mr_hazard_report *report, const mr_hazard_report *other) {
    uint64_t reach = report->covered ? report->covered : report->second.seq;
    bool hides = mr_hazard_is_assumed(report) && !mr_hazard_is_assumed(other);
    return other != report && !hides && other->kind <= MR_HAZARD_WRITE_AFTER_WRITE &&
           other->stream_pairs == 1 && other->streams[0].first == report->streams[0].first &&
           other->streams[0].second == report->streams[0].second && other->first.seq <= reach &&
           report->second.seq <= other->second.seq;
}

static void add_tensors(mr_hazard_report *report, const mr_hazard_report *other) {
    const char *name = other->more;
    mr_hazard_add_tensor(report, other->tensor);
    for (uint32_t i = 0; i < other->more_count; i++, name += strlen(name) + 1)
        mr_hazard_add_tensor(report, name);
}

bool mr_hazard_take_over(checker *c, mr_hazard_report *report) {
    size_t kept = 0, count = c->held.count;
    for (size_t i = 0; i < count; i++) {
        held_report held = c->held.items[i];
        if (held.own || !orders(report, held.report)) {
            c->held.items[kept++] = held;
            continue;
        }
        add_tensors(report, held.report);
        mr_hazard_report_remove(c, held.report);
    }
    c->held.count = kept;
    return kept < count;
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
