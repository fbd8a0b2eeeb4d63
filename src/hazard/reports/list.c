/* The list of reports. A pair of places is listed once, with a count; a check inside the script has a list of its own
 * behind the script's. The place of a graph's node is its line with the one that a fix goes by: a graph may be launched
 * on several lines. */
#include "hazard/explain.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    mr_hazard_kind kind;
    mr_site first, second;
    uint64_t within_lines;
    mr_site outer_first, outer_second; /* mr_hazard_outer_places */
    const found_pair *found; /* for which they are looked up, if they decide; NULL: done */
} place_pair;

static place_pair pair_of(const mr_hazard_report *r) {
    return (place_pair){.kind = r->kind,
                        .first = r->first.where,
                        .second = r->second.where,
                        .within_lines = r->within_lines,
                        .outer_first = r->outer_first,
                        .outer_second = r->outer_second};
}

static uint64_t hash_places(const place_pair *pair) {
    uint64_t h = (uint64_t)pair->kind + 1 + pair->within_lines * 0x9e3779b97f4a7c15u;
    /* of the file's text, not its address: the same on every run */
    const mr_site sites[2] = {pair->first, pair->second};
    for (int i = 0; i < 2; i++) {
        for (const char *p = sites[i].file; p && *p; p++)
            h = (h ^ (unsigned char)*p) * 1099511628211u;
        h = (h ^ (uint64_t)sites[i].line) * 1099511628211u;
    }
    return h >> 1;
}

static bool same_place(mr_site a, mr_site b) {
    return a.file == b.file && a.line == b.line;
}

static bool is_at(const checker *c, const mr_hazard_report *r, place_pair *pair) {
    if (r->within_lines != pair->within_lines || r->kind != pair->kind ||
        !same_place(r->first.where, pair->first) || !same_place(r->second.where, pair->second))
        return false;
    if (pair->found)
        mr_hazard_outer_places(c, pair->found, &pair->outer_first, &pair->outer_second);
    pair->found = NULL;
    return same_place(r->outer_first, pair->outer_first) &&
           same_place(r->outer_second, pair->outer_second);
}

/* Searches the reports from check.first on: a check has a list of its own. */
static mr_hazard_report *find(const checker *c, place_pair *pair) {
    uint32_t *i = mr_map_find(&c->reports.places, hash_places(pair));
    for (; i; i = mr_map_again(&c->reports.places, i)) {
        mr_hazard_report *r = c->reports.listed.items[*i];
        if (*i >= c->check.first && is_at(c, r, pair)) return r;
    }
    return NULL;
}

mr_hazard_report *mr_hazard_report_of(checker *c, mr_hazard_kind kind, const found_pair *pair) {
    return find(c, &(place_pair){.kind = kind,
                                 .first = pair->first_where,
                                 .second = pair->second_where,
                                 .found = pair});
}

static void name_files(const checker *c, mr_hazard_side *side) {
    side->file = mr_hazard_shown(c, side->where).file;
    side->launched_file = mr_hazard_shown(c, side->launched).file;
}

mr_hazard_report *mr_hazard_report_add(checker *c, mr_hazard_report *draft, bool *out_new) {
    *out_new = false;
    name_files(c, &draft->first);
    name_files(c, &draft->second);
    if (mr_hazard_ignored(c, draft, false)) {
        mr_claims_add(&c->totals.claims, MR_CLAIM_IGNORED);
        return NULL;
    }
    if (!mr_hazard_kind_is_advice(draft->kind)) c->totals.hazards++;
    place_pair pair = pair_of(draft);
    mr_hazard_report *known = find(c, &pair);
    if (known) {
        draft->count = ++known->count;
        draft->number = known->number;
        mr_hazard_merge(c, known, draft);
        return known;
    }
    bool is_listed = c->reports.listed.count - c->check.first < MR_HAZARD_MAX_REPORTS &&
                     mr_vec_reserve_one(&c->reports.listed);
    mr_hazard_report *report = is_listed ? malloc(sizeof *report) : NULL;
    uint32_t *place = report ? mr_map_insert(&c->reports.places, hash_places(&pair)) : NULL;
    if (!place) {
        mr_claims_add(&c->totals.claims, MR_CLAIM_DROPPED);
        free(report);
        return NULL;
    }
    draft->count = 1;
    draft->number = ++c->reports.numbered;
    if (!mr_hazard_kind_is_advice(draft->kind)) c->totals.reports++;
    *report = *draft;
    *place = (uint32_t)c->reports.listed.count;
    mr_vec_push(&c->reports.listed, report);
    *out_new = true;
    return report;
}

size_t mr_hazard_report_count(const mr_hazard *c) {
    return c->reports.listed.count;
}

const mr_hazard_report *mr_hazard_report_at(const mr_hazard *c, size_t i) {
    return i < c->reports.listed.count ? c->reports.listed.items[i] : NULL;
}

/* Cannot fail: the map has held more entries before. */
static void enter_places(checker *c) {
    mr_map_clear(&c->reports.places);
    for (size_t i = 0; i < c->reports.listed.count; i++) {
        const place_pair pair = pair_of(c->reports.listed.items[i]);
        *mr_map_insert(&c->reports.places, hash_places(&pair)) = (uint32_t)i;
    }
    if (c->check.first > c->reports.listed.count) c->check.first = c->reports.listed.count;
}

/* Returns its index. */
static size_t unlist(checker *c, mr_hazard_report *report) {
    size_t at = c->reports.listed.count;
    while (at-- && c->reports.listed.items[at] != report) {}
    for (size_t i = at + 1; i < c->reports.listed.count; i++)
        c->reports.listed.items[i - 1] = c->reports.listed.items[i];
    c->reports.listed.count--;
    mr_hazard_close_pairs(c, report);
    for (size_t i = 0; i < sizeof c->reports.recent / sizeof *c->reports.recent; i++) {
        if (c->reports.recent[i].report == at + 1) c->reports.recent[i].report = 0;
        else if (c->reports.recent[i].report > at + 1) c->reports.recent[i].report--;
    }
    if (at < c->check.first) c->check.first--;
    enter_places(c);
    return at;
}

void mr_hazard_report_remove(checker *c, mr_hazard_report *report) {
    size_t at = unlist(c, report);
    for (size_t i = at; i < c->reports.listed.count; i++) c->reports.listed.items[i]->number--;
    c->reports.numbered--;
    c->totals.reports--;
    c->totals.hazards -= report->count;
    c->totals.follow_ups += report->count;
    free(report);
}

/* Other reports keep their numbers, which may already be written. */
void mr_hazard_report_withdraw(checker *c, mr_hazard_report *report) {
    size_t check_first = c->check.first;
    bool is_outside = unlist(c, report) < check_first;
    mr_hazard_totals *totals = is_outside ? &c->check.totals_before : &c->totals;
    totals->reports--;
    totals->hazards -= report->count;
    totals->claims.count[MR_CLAIM_WITHDRAWN] += report->count - report->updated;
    totals->claims.count[MR_CLAIM_UPDATES] += report->updated;
    free(report);
}

void mr_hazard_drop_from(mr_hazard *c, size_t first) {
    c->reports.held.count = 0;
    if (first < c->reports.listed.count)
        mr_hazard_close_pairs_from(c, c->reports.listed.items[first]->number);
    while (c->reports.listed.count > first) free(mr_vec_pop(&c->reports.listed));
    enter_places(c);
    c->reports.blames.count = 0; /* its fix, which explained follow-ups, is no longer shown */
    memset(c->reports.recent, 0, sizeof c->reports.recent);
    c->reports.recent_next = 0;
}

void mr_hazard_reports_destroy(checker *c) {
    mr_vec_free(&c->reports.listed);
    mr_map_free(&c->reports.places);
    mr_vec_free(&c->reports.held);
    mr_vec_free(&c->reports.collected);
    mr_vec_free(&c->reports.blames);
    mr_vec_free(&c->reports.ignores);
}
