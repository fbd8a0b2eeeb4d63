/* Collects the parts of one report. These are the other tensors on which its command races in the same way, and the
 * lines that other memory or other streams need at the same places. A report is held back until the whole command was
 * checked, and for a host function until the function has run. So it is written once. */
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
    if (!mr_vec_push(&c->reports.held, held)) let_go(c, &held);
}

void mr_hazard_publish_held(checker *c) {
    for (size_t i = 0; i < c->reports.held.count; i++) let_go(c, &c->reports.held.items[i]);
    c->reports.held.count = 0;
}

/* ---- taking over */

/* Whether the fix of `report` also orders the pair of the other one. An assumed report cannot stand for a certain
 * one. */
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
    size_t kept = 0, count = c->reports.held.count;
    for (size_t i = 0; i < count; i++) {
        held_report held = c->reports.held.items[i];
        if (held.own || !orders(report, held.report)) {
            c->reports.held.items[kept++] = held;
            continue;
        }
        add_tensors(report, held.report);
        mr_hazard_report_remove(c, held.report);
    }
    c->reports.held.count = kept;
    return kept < count;
}
