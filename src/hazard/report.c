/* Reports: which pairs become one report, and the list of reports. A pair of places is reported once, with
 * a count. After a missing order was reported, other pairs that it leaves unordered are only counted,
 * since one fix orders them all. */
#include "hazard/explain.h"

#include "base/text.h"
#include "ops/kernel.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BLAMES 256

/* ---- ignoring */

static bool place_matches(const ignore_rule *rule, mr_site where) {
    if (!where.file) return false;
    if (!mr_hazard_file_ends(where.file, rule->file->text)) return false;
    return rule->line == 0 || rule->line == where.line;
}

static bool ignored(checker *c, const mr_hazard_report *draft, bool only_look) {
    for (size_t i = 0; i < c->ignores.count; i++) {
        ignore_rule *rule = &c->ignores.items[i];
        if (rule->kind >= 0 && rule->kind != (int)draft->kind) continue;
        if (rule->tensor && strcmp(rule->tensor->text, draft->tensor) != 0) continue;
        if (rule->file && !place_matches(rule, draft->first.where) &&
            !place_matches(rule, draft->second.where))
            continue;
        if (!only_look) rule->count++;
        return true;
    }
    return false;
}

/* "mr:7", of which the 7 is no line. */
static bool is_entry(const checker *c, const char *file) {
    size_t length = c->prompt ? strlen(c->prompt) : 0;
    if (!length || strncmp(file, c->prompt, length) != 0) return false;
    size_t digits = strspn(file + length, "0123456789");
    return digits && !file[length + digits];
}

mr_status mr_hazard_ignore(mr_hazard *c, const char *tensor, int kind, const char *where) {
    ignore_rule rule = {.kind = kind};
    size_t file_size = 0;
    if (where && is_entry(c, where)) file_size = strlen(where);
    else if (where && !mr_hazard_place_parse(where, &file_size, &rule.line))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "hazard.ignore: where=\"%s\": expected a line number from 1 to %d", where,
                       INT_MAX);
    if (tensor) rule.tensor = mr_name_new(tensor, strlen(tensor));
    if (where) rule.file = mr_name_new(where, file_size);
    if ((!tensor || rule.tensor) && (!where || rule.file) && mr_vec_push(&c->ignores, rule))
        return MR_OK;
    mr_name_release(rule.tensor);
    mr_name_release(rule.file);
    return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for another rule");
}

void mr_hazard_clear_ignores(mr_hazard *c) {
    for (size_t i = 0; i < c->ignores.count; i++) {
        mr_name_release(c->ignores.items[i].tensor);
        mr_name_release(c->ignores.items[i].file);
    }
    c->ignores.count = 0;
}

void mr_hazard_describe_ignores(const mr_hazard *c, mr_buffer *out) {
    for (size_t i = 0; i < c->ignores.count; i++) {
        const ignore_rule *rule = &c->ignores.items[i];
        mr_buffer_printf(out, "ignored %llu:", (unsigned long long)rule->count);
        if (rule->tensor) {
            mr_buffer_puts(out, " tensor=");
            mr_text_put_value(out, rule->tensor->text);
        }
        if (rule->kind >= 0)
            mr_buffer_printf(out, " kind=%s", mr_hazard_kind_text((mr_hazard_kind)rule->kind));
        if (rule->file) {
            char place[PLACE_SIZE];
            mr_hazard_place((mr_site){rule->file->text, rule->line}, place, sizeof place);
            mr_buffer_puts(out, " where=");
            mr_text_put_value(out, rule->line ? place : rule->file->text);
        }
        mr_buffer_puts(out, "\n");
    }
}

/* ---- pairs of streams */

/* True: it is one more pair of streams at these places. */
static bool add_streams(mr_hazard_report *r, uint32_t first, uint32_t second) {
    for (uint32_t i = 0; i < r->stream_pairs; i++)
        if (r->streams[i].first == first && r->streams[i].second == second) return false;
    if (r->stream_pairs == MR_HAZARD_STREAM_PAIRS) return false;
    r->streams[r->stream_pairs].first = first;
    r->streams[r->stream_pairs++].second = second;
    return r->stream_pairs > 1;
}

/* The first time at once; what comes after that is written when the run ends. */
static void amend(checker *c, mr_hazard_report *r, mr_hazard_news news) {
    if (c->mode != MR_HAZARD_WARN || r->waits || mr_hazard_held(c, r->number)) {
        r->amended = true;
    } else if (r->amended) {
        r->unwritten = news;
    } else {
        r->amended = true;
        if (c->hooks.write) c->hooks.write(c->hooks.context, r, news);
    }
}

void mr_hazard_write_rest(checker *c) {
    for (size_t i = 0; i < c->reports.count && c->mode == MR_HAZARD_WARN; i++) {
        mr_hazard_report *r = c->reports.items[i];
        if (r->waits) continue;
        if (r->unwritten && c->hooks.write) c->hooks.write(c->hooks.context, r, r->unwritten);
        r->unwritten = MR_HAZARD_NEWS_REPORT;
    }
}

/* One fix is for one pair of streams, and other memory may need one of its own: what `draft` of the same places
 * has and `r` has not becomes part of `r`. The first streams that `r` does not name are told. */
static void merge(checker *c, mr_hazard_report *r, const mr_hazard_report *draft) {
    bool data = r->kind <= MR_HAZARD_WRITE_AFTER_WRITE, other_streams = false;
    if (!mr_hazard_is_assumed(draft)) r->first.assumed = r->second.assumed = MR_CERTAIN;
    for (uint32_t i = 0; i < draft->stream_pairs; i++)
        if (add_streams(r, draft->streams[i].first, draft->streams[i].second)) other_streams = true;
    bool has_lines = (other_streams || !data) && mr_hazard_add_fixes(r, draft);
    if (has_lines && !data) mr_hazard_add_tensor(r, draft->tensor);
    bool is_told = r->also[0][0] || (strcmp(draft->first.stream, r->first.stream) == 0 &&
                                     strcmp(draft->second.stream, r->second.stream) == 0);
    if (other_streams && !is_told) {
        mr_text_copy(r->also[0], sizeof r->also[0], draft->first.stream);
        mr_text_copy(r->also[1], sizeof r->also[1], draft->second.stream);
    }
    if (other_streams && (!is_told || has_lines)) amend(c, r, MR_HAZARD_NEWS_STREAMS);
    else if (has_lines) amend(c, r, MR_HAZARD_NEWS_TENSORS);
}

static bool has_streams(const mr_hazard_report *r, const found_pair *pair) {
    for (uint32_t i = 0; i < r->stream_pairs; i++)
        if (r->streams[i].first == pair->first->id && r->streams[i].second == pair->second->id)
            return true;
    return r->stream_pairs == MR_HAZARD_STREAM_PAIRS;
}

/* Whether it has to be explained again: it may need lines that the report does not have. */
#define MOST_OTHERS 64
static bool may_add(const mr_hazard_report *r, const found_pair *pair) {
    if (mr_hazard_kind_is_advice(r->kind)) return false;
    if (!has_streams(r, pair)) return true;
    return r->kind == MR_HAZARD_USE_AFTER_FREE && r->count < MOST_OTHERS;
}

/* ---- the list */

typedef struct {
    mr_hazard_kind kind;
    mr_site first, second;
    uint64_t within_lines;
} place_pair;

static place_pair pair_of(const mr_hazard_report *r) {
    return (place_pair){r->kind, r->first.where, r->second.where, r->within_lines};
}

static uint32_t hash_places(const place_pair *pair) {
    uint64_t h = (uint64_t)pair->kind + 1 + pair->within_lines * 0x9e3779b97f4a7c15u;
    /* of the file's text, not its address: the same on every run */
    const mr_site sites[2] = {pair->first, pair->second};
    for (int i = 0; i < 2; i++) {
        for (const char *p = sites[i].file; p && *p; p++)
            h = (h ^ (unsigned char)*p) * 1099511628211u;
        h = (h ^ (uint64_t)sites[i].line) * 1099511628211u;
    }
    return (uint32_t)(h >> 32 ^ h);
}

static bool same_place(mr_site a, mr_site b) {
    return a.file == b.file && a.line == b.line;
}

/* Places are looked up among the reports from check_first on: a check has a list of its own. */
static uint32_t *place_slot(const checker *c, const place_pair *pair) {
    uint32_t i = hash_places(pair) & (c->place_capacity - 1);
    for (; c->places[i]; i = (i + 1) & (c->place_capacity - 1)) {
        const mr_hazard_report *r = c->reports.items[c->places[i] - 1];
        if (c->places[i] - 1 >= c->check_first && r->kind == pair->kind &&
            r->within_lines == pair->within_lines && same_place(r->first.where, pair->first) &&
            same_place(r->second.where, pair->second))
            break;
    }
    return &c->places[i];
}

static bool make_places(checker *c) {
    if (c->places) return true;
    c->place_capacity = 4096; /* the script's reports and a check's fill half of it */
    c->places = calloc(c->place_capacity, sizeof *c->places);
    return c->places != NULL;
}

static mr_hazard_report *report_of(checker *c, mr_hazard_kind kind, mr_site first, mr_site second) {
    if (!make_places(c)) return NULL;
    uint32_t index = *place_slot(c, &(place_pair){kind, first, second, 0});
    return index ? c->reports.items[index - 1] : NULL;
}

static void name_files(const checker *c, mr_hazard_side *side) {
    side->file = mr_hazard_shown(c, side->where).file;
    side->launched_file = mr_hazard_shown(c, side->launched).file;
}

mr_hazard_report *mr_hazard_report_add(checker *c, mr_hazard_report *draft, bool *out_new) {
    *out_new = false;
    name_files(c, &draft->first);
    name_files(c, &draft->second);
    if (ignored(c, draft, false)) {
        mr_claims_add(&c->totals.claims, MR_CLAIM_IGNORED);
        return NULL;
    }
    if (!make_places(c)) return NULL;
    if (!mr_hazard_kind_is_advice(draft->kind)) c->totals.hazards++;
    const place_pair pair = pair_of(draft);
    uint32_t *slot = place_slot(c, &pair);
    if (*slot) {
        mr_hazard_report *known = c->reports.items[*slot - 1];
        draft->count = ++known->count;
        draft->number = known->number;
        merge(c, known, draft);
        return known;
    }
    mr_hazard_report *report =
        c->reports.count - c->check_first < MR_HAZARD_MAX_REPORTS ? malloc(sizeof *report) : NULL;
    if (!report || !mr_vec_push(&c->reports, report)) {
        mr_claims_add(&c->totals.claims, MR_CLAIM_DROPPED);
        free(report);
        return NULL;
    }
    draft->count = 1;
    draft->number = ++c->numbered;
    if (!mr_hazard_kind_is_advice(draft->kind)) c->totals.reports++;
    *report = *draft;
    *slot = (uint32_t)c->reports.count;
    *out_new = true;
    return report;
}

size_t mr_hazard_report_count(const mr_hazard *c) {
    return c->reports.count;
}

const mr_hazard_report *mr_hazard_report_at(const mr_hazard *c, size_t i) {
    return i < c->reports.count ? c->reports.items[i] : NULL;
}

static void enter_places(checker *c) {
    size_t check_first = c->check_first;
    if (c->places) memset(c->places, 0, c->place_capacity * sizeof *c->places);
    c->check_first = 0;
    for (size_t i = 0; i < c->reports.count; i++) {
        const mr_hazard_report *r = c->reports.items[i];
        if (i == check_first) c->check_first = i; /* a check's own list */
        const place_pair pair = pair_of(r);
        *place_slot(c, &pair) = (uint32_t)i + 1;
    }
    c->check_first = check_first < c->reports.count ? check_first : c->reports.count;
}

/* Returns its index. */
static size_t unlist(checker *c, mr_hazard_report *report) {
    size_t at = c->reports.count;
    while (at-- && c->reports.items[at] != report) {}
    for (size_t i = at + 1; i < c->reports.count; i++)
        c->reports.items[i - 1] = c->reports.items[i];
    c->reports.count--;
    mr_hazard_close_pairs(c, report);
    for (size_t i = 0; i < sizeof c->recent / sizeof *c->recent; i++) {
        if (c->recent[i].report == at + 1) c->recent[i].report = 0;
        else if (c->recent[i].report > at + 1) c->recent[i].report--;
    }
    if (at < c->check_first) c->check_first--;
    enter_places(c);
    return at;
}

void mr_hazard_report_remove(checker *c, mr_hazard_report *report) {
    size_t at = unlist(c, report);
    for (size_t i = at; i < c->reports.count; i++) c->reports.items[i]->number--;
    c->numbered--;
    c->totals.reports--;
    c->totals.hazards -= report->count;
    c->totals.follow_ups += report->count;
    free(report);
}

/* Others keep their numbers: they may have been written. */
void mr_hazard_report_withdraw(checker *c, mr_hazard_report *report) {
    size_t check_first = c->check_first;
    bool is_outside = unlist(c, report) < check_first;
    mr_hazard_totals *totals = is_outside ? &c->totals_before_check : &c->totals;
    totals->reports--;
    totals->hazards -= report->count;
    totals->claims.count[MR_CLAIM_WITHDRAWN] += report->count;
    free(report);
}

void mr_hazard_drop_from(mr_hazard *c, size_t first) {
    c->held.count = 0;
    if (first < c->reports.count) mr_hazard_close_pairs_from(c, c->reports.items[first]->number);
    while (c->reports.count > first) free(mr_vec_pop(&c->reports));
    enter_places(c);
    c->blames.count = 0; /* what it blamed is no longer shown */
    memset(c->recent, 0, sizeof c->recent);
    c->recent_next = 0;
}

void mr_hazard_clear(mr_hazard *c) {
    if (c->apart.on) { /* what was found before is not forgotten */
        mr_hazard_drop_from(c, c->check_first);
        c->totals = (mr_hazard_totals){0};
        return;
    }
    mr_hazard_totals run = mr_hazard_get_totals(c, true);
    run.claims = c->totals.claims; /* what is pending now may still run */
    mr_claims_merge(&run.claims, &c->before_clear.claims);
    c->check_first = 0;
    mr_hazard_drop_from(c, 0);
    mr_hazard_advice_clear(c);
    c->before_clear = run;
    c->totals = (mr_hazard_totals){.claims.count[MR_CLAIM_CLEARED] = run.hazards};
}

/* What is so now, and may change. */
static void add_present(const checker *c, mr_claims *claims) {
    bool off = c->mode == MR_HAZARD_OFF;
    if (off && c->machine->next_seq > c->off_since) claims->count[MR_CLAIM_SWITCHED_OFF]++;
    if (off) return;
    claims->count[MR_CLAIM_NOT_RUN] += mr_hazard_functions_left(c, -1);
    claims->count[MR_CLAIM_UNFINISHED] += mr_hazard_kernels_left(c, -1);
}

mr_hazard_totals mr_hazard_get_totals(const mr_hazard *c, bool whole_run) {
    mr_hazard_totals t = c->totals;
    const mr_hazard_totals *before = &c->before_clear;
    add_present(c, &t.claims);
    if (!whole_run) return t;
    t.operations += before->operations;
    t.hazards += before->hazards;
    t.reports += before->reports;
    t.follow_ups += before->follow_ups;
    t.checked_apart += before->checked_apart;
    t.explored += before->explored;
    t.stressed += before->stressed;
    mr_claims_merge(&t.claims, &before->claims);
    t.claims.count[MR_CLAIM_CLEARED] = before->hazards;
    return t;
}

mr_claim mr_hazard_claim(const mr_hazard_totals *t) {
    return t->hazards || !t->operations ? MR_CLAIM_IS_NONE : mr_claims_judge(&t->claims);
}

/* ---- from pair to report */

static blame *blame_between(const checker *c, uint32_t first, uint32_t second) {
    for (size_t i = 0; i < c->blames.count; i++) {
        blame *b = &c->blames.items[i];
        if (b->first == first && b->second == second) return b;
    }
    return NULL;
}

static blame *blame_of(const checker *c, const found_pair *pair) {
    return blame_between(c, pair->first->id, pair->second->id);
}

static bool explains(const blame *b, uint64_t first_seq, uint64_t second_seq) {
    return b && b->seq >= first_seq && b->from <= second_seq;
}

bool mr_hazard_is_ordered_by_fix(const checker *c, const mr_hazard_report *draft) {
    const blame *b = blame_between(c, draft->streams[0].first, draft->streams[0].second);
    return c->mode != MR_HAZARD_ERROR && explains(b, draft->first.seq, draft->second.seq);
}

/* The last command of the first stream that a fix like that of `report` would order, at this place. */
static uint64_t reach_of(const checker *c, const found_pair *pair, const mr_hazard_report *report) {
    uint64_t seq = UINT64_MAX;
    if (!report->covered) return pair->second_seq;
    if (report->first.seq == pair->first_seq) return report->covered;
    if (report->covered == report->first.seq) return pair->first_seq;
    int most = 256; /* in a loop with as many events some follow-ups will be reported */
    for (const snapshot *s = c->snapshots; s && most; s = s->next, most--)
        if (s->actor == pair->first && s->seq > pair->first_seq && s->seq < seq) seq = s->seq;
    return seq == UINT64_MAX ? pair->first_seq : seq;
}

/* A pair counts as a follow-up only if the fix orders it, too. */
static void blame_pair(checker *c, const found_pair *pair, const mr_hazard_report *report) {
    blame *b = blame_of(c, pair);
    uint64_t seq = reach_of(c, pair, report);
    if (c->mode == MR_HAZARD_ERROR) return; /* refused: there is nothing that it could explain */
    if (mr_hazard_may_withdraw(c, pair)) return; /* likewise, if it is */
    /* Only a host function that runs late can make a pair whose second came before the fix. */
    if (b && c->functions.count && b->from < pair->second_seq) b->from = pair->second_seq;
    if (b) b->seq = b->seq > seq ? b->seq : seq;
    else if (c->blames.count < MOST_BLAMES) {
        blame fresh = {pair->first->id, pair->second->id, seq, pair->second_seq};
        if (!mr_vec_push(&c->blames, fresh)) return;
    } else {
        c->blames.count = 0; /* some follow-ups will be reported on their own */
    }
}

static void fill_side(const checker *c, mr_hazard_side *side, const actor *a, uint8_t access,
                      const char *op, mr_site where, uint64_t seq) {
    mr_text_copy(side->op, sizeof side->op, op);
    side->access = access & MR_ACCESSES;
    side->assumed = (uint8_t)mr_access_assumed(access);
    side->atomic = access & MR_ATOMIC;
    side->host = a == &c->host_actor;
    const log_line *line = mr_hazard_log_find(c, seq);
    side->where = where;
    if (line) side->launched = line->launched;
    side->seq = seq;
    mr_hazard_stream_text(c, a, side->stream, sizeof side->stream);
}

typedef struct {
    uint64_t first, last;
} byte_range;

/* What both touch lies between. */
static byte_range shared_range(const found_pair *pair) {
    const byte_view *a = pair->first_view, *b = pair->second_view ? pair->second_view : a;
    uint64_t bytes = pair->history->storage->bytes;
    if (!a) return (byte_range){0, bytes ? bytes - 1 : 0};
    return (byte_range){a->first > b->first ? a->first : b->first,
                        (a->end < b->end ? a->end : b->end) - 1};
}

static void fill_bytes(const found_pair *pair, mr_hazard_report *report) {
    const byte_view *a = pair->first_view, *b = pair->second_view ? pair->second_view : a;
    byte_range range = shared_range(pair);
    report->bytes_first = range.first;
    report->bytes_last = range.last;
    if (a)
        report->bytes_shared = pair->unset_bytes ? pair->unset_bytes : mr_hazard_view_shared(a, b);
}

void mr_hazard_tell_found(const checker *c, const found_pair *pair) {
    if (!c->watcher.found) return;
    byte_range range = shared_range(pair);
    mr_hazard_found found = {.kind = pair->kind,
                             .ahead = pair->only_look,
                             .assumed = (pair->first_access | pair->second_access) & MR_ASSUMED,
                             .first_seq = pair->first_seq,
                             .second_seq = pair->second_seq,
                             .first_where = pair->first_where,
                             .second_where = pair->second_where,
                             .storage = pair->history->storage->id,
                             .bytes_first = range.first,
                             .bytes_last = range.last};
    c->watcher.found(c->watcher.context, &found);
}

static void say_reused(const found_pair *pair, mr_hazard_report *report) {
    uint64_t reused = pair->history->reused;
    size_t length = strlen(report->why);
    if (pair->first_seq >= reused || pair->second_seq < reused) return;
    mr_text_format(
        report->why + length, sizeof report->why - length,
        " The first uses a result of an earlier call, whose memory mr.graph.auto gives to "
        "this call: let the call wait for the first, or clone() what it uses.");
}

/* The second launch has atomic operations which count as plain accesses here. */
static void say_block_scope(const found_pair *pair, mr_hazard_report *report) {
    uint8_t access = pair->second_access;
    bool updates = access & MR_READ && access & MR_WRITE && !(access & MR_ATOMIC);
    if (!pair->command || !mr_kernel_escapes_of(pair->command) || !updates ||
        !mr_kernel_has_block_atomics(pair->command))
        return;
    size_t used = strlen(report->why);
    mr_text_format(
        report->why + used, sizeof report->why - used,
        " `%s` has atomic operations of block scope (such as atomicAdd_block), which are "
        "atomic only inside one block: for other blocks and launches they are plain "
        "accesses.",
        pair->command->name);
}

static void draft_report(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    memset(report, 0, sizeof *report);
    report->kind = pair->advisory ? MR_HAZARD_UNSPECIFIED_SYNCHRONY : pair->kind;
    fill_side(c, &report->first, pair->first, pair->first_access, pair->first_op, pair->first_where,
              pair->first_seq);
    fill_side(c, &report->second, pair->second, pair->second_access, pair->second_op,
              pair->second_where, pair->second_seq);
    add_streams(report, pair->first->id, pair->second->id);
    mr_hazard_tensor_text(c, pair, report->tensor, sizeof report->tensor);
    mr_hazard_signature(pair, report->signature, sizeof report->signature);
    fill_bytes(pair, report);
    if (pair->advisory) {
        report->reason = MR_HAZARD_BECAUSE_ADVICE;
        snprintf(report->why, sizeof report->why,
                 "an asynchronous copy of pageable memory may return before it is done: CUDA does "
                 "not specify whether it waits (R23). Pin the memory, or synchronize.");
        return;
    }
    if (mr_hazard_is_of_one_launch(c, pair)) {
        mr_hazard_explain_one_launch(c, pair, report);
    } else {
        found_pair outside;
        mr_hazard_seen_outside(c, pair, &outside);
        mr_hazard_explain(c, &outside, report);
        mr_hazard_find_fix(c, &outside, report);
        say_reused(pair, report);
    }
    say_block_scope(pair, report);
    for (int i = 0; i < report->fix_count; i++) {
        mr_hazard_fix *fix = &report->fix[i];
        fix->typed = fix->where.file && is_entry(c, fix->where.file);
        fix->file = mr_hazard_shown(c, fix->where).file;
    }
}

static void remember(checker *c, const found_pair *pair) {
    unsigned i = c->recent_next++ % (sizeof c->recent / sizeof *c->recent);
    c->recent[i].report = c->reports.count;
    c->recent[i].first = pair->first->id;
    c->recent[i].second = pair->second->id;
    c->recent[i].first_seq = pair->first_seq;
}

/* The command that is being looked at races on one more tensor, and the report is not out yet. */
static void name_tensor(const checker *c, mr_hazard_report *held, const found_pair *pair) {
    char name[sizeof held->tensor];
    if (!held) return;
    mr_hazard_tensor_text(c, pair, name, sizeof name);
    mr_hazard_add_tensor(held, name);
}

/* Error mode: nothing is blamed, for the call is refused. Its other races are of its one report. */
static bool is_of_held(const checker *c, const found_pair *pair) {
    const mr_hazard_report *held = mr_hazard_held_for(c, pair);
    return held && (!held->covered || held->covered >= pair->first_seq);
}

/* The pair is one of those that `report` counts. True: the report waits for the launches to run. */
static bool count_pair(checker *c, const found_pair *pair, mr_hazard_report *report) {
    if (mr_hazard_open_pair(c, pair, report)) return true;
    bool is_certain = !((pair->first_access | pair->second_access) & MR_ASSUMED);
    if (is_certain) report->first.assumed = report->second.assumed = MR_CERTAIN;
    bool is_late = report->waits && !mr_hazard_held(c, report->number);
    report->waits = false;
    if (is_late) mr_hazard_hold(c, report, false);
    return false;
}

/* Counts it, where that is all: the places are known, or a fix that was proposed orders the pair. */
static bool is_known(checker *c, const found_pair *pair, mr_hazard_kind kind, bool data) {
    mr_hazard_report *known = report_of(c, kind, pair->first_where, pair->second_where);
    mr_hazard_report *held = known ? mr_hazard_held(c, known->number) : NULL;
    bool refuses = c->mode == MR_HAZARD_ERROR && !pair->advisory;
    bool has_line = data || (kind == MR_HAZARD_USE_AFTER_FREE && pair->second_where.file);
    bool is_covered =
        refuses ? data && is_of_held(c, pair)
                : has_line && explains(blame_of(c, pair), pair->first_seq, pair->second_seq);
    if (known && c->ignores.count == 0 && (!refuses || held) &&
        (is_covered || !may_add(known, pair))) {
        known->count++;
        count_pair(c, pair, known);
        if (!pair->advisory) c->totals.hazards++;
        add_streams(known, pair->first->id, pair->second->id);
        if (data) blame_pair(c, pair, known);
        if (data) name_tensor(c, held, pair);
        return true;
    }
    if (!is_covered) return false;
    c->totals.follow_ups++;
    name_tensor(c, mr_hazard_held_for(c, pair), pair);
    return true;
}

static mr_hazard_report *copy_of(const mr_hazard_report *draft) {
    mr_hazard_report *copy = malloc(sizeof *copy);
    if (copy) *copy = *draft;
    return copy;
}

/* Until the script goes on (collected.c). */
static void keep_collected(checker *c, const mr_hazard_report *draft) {
    bool fits = c->collected.count < MR_HAZARD_MAX_REPORTS;
    mr_hazard_report *kept = fits ? copy_of(draft) : NULL;
    if (kept && !mr_vec_push(&c->collected, kept)) free(kept);
}

void mr_hazard_pair_found(checker *c, const found_pair *pair) {
    if (c->watcher.only_tell) return;
    if (pair->advisory && pair->only_look) return;
    if (pair->advisory) mr_claims_add(&c->totals.claims, MR_CLAIM_UNSPECIFIED);
    if (pair->advisory && !c->advice) return;
    bool data = pair->kind <= MR_HAZARD_WRITE_AFTER_WRITE && !pair->advisory;
    bool refuses = c->mode == MR_HAZARD_ERROR && !pair->advisory;
    if (is_known(c, pair, pair->advisory ? MR_HAZARD_UNSPECIFIED_SYNCHRONY : pair->kind, data))
        return;
    mr_hazard_report draft;
    bool is_new;
    draft_report(c, pair, &draft);
    if (pair->kind == MR_HAZARD_USE_AFTER_FREE && !pair->second_where.file &&
        !pair->second_access) {
        keep_collected(c, &draft);
        return;
    }
    if (pair->only_look && ignored(c, &draft, true)) return; /* counted when it is carried out */
    mr_hazard_report *report = mr_hazard_report_add(c, &draft, &is_new);
    if (!report) return;
    bool waits = !pair->only_look && count_pair(c, pair, report);
    if (is_new) report->waits = waits;
    if (data) blame_pair(c, pair, &draft);
    if (is_new && data && !refuses) remember(c, pair);
    if (is_new && data && !waits && mr_hazard_take_over(c, report)) {
        blame *b = blame_of(c, pair); /* only of what is still proposed */
        if (b) b->seq = reach_of(c, pair, report), b->from = pair->second_seq;
    }
    mr_hazard_report *held = mr_hazard_held(c, report->number);
    if (held && data) mr_hazard_add_tensor(held, draft.tensor);
    if (held) return;
    if (is_new) mr_hazard_hold(c, report, false);
    else if (refuses && (report = copy_of(&draft)) != NULL) /* the one at hand, not the first one */
        mr_hazard_hold(c, report, true);
}

void mr_hazard_publish(checker *c, const mr_hazard_report *report) {
    bool advice = mr_hazard_kind_is_advice(report->kind);
    if (report->waits) return;
    if (c->hooks.write && (c->mode == MR_HAZARD_WARN || (c->mode == MR_HAZARD_ERROR && advice)))
        c->hooks.write(c->hooks.context, report, MR_HAZARD_NEWS_REPORT);
    if (c->mode != MR_HAZARD_ERROR || mr_hazard_kind_is_advice(report->kind) || c->refusal) return;
    mr_buffer text = {0};
    mr_hazard_write_text(report, false, &text);
    while (text.size && text.data[text.size - 1] == '\n') text.data[--text.size] = '\0';
    c->refusal = mr_fail(MR_CODE_HAZARD, "%s", text.data ? text.data : "hazard");
    mr_error *error = mr_error_details(c->refusal);
    if (error) {
        error->where = report->second.where;
        mr_text_copy(error->op, sizeof error->op, report->second.op);
        mr_text_copy(error->stream, sizeof error->stream, report->second.stream);
    }
    mr_buffer_free(&text);
}

/* ---- the wait that comes too late */

void mr_hazard_amend(checker *c, const actor *t, const mr_command *command) {
    const snapshot *s = mr_hazard_snapshot_of(command);
    if (!s) return;
    for (size_t i = 0; i < sizeof c->recent / sizeof *c->recent; i++) {
        if (!c->recent[i].report || c->recent[i].report > c->reports.count) continue;
        if (c->recent[i].second != command->stream->id || c->recent[i].first != s->actor->id)
            continue;
        if (s->seq < c->recent[i].first_seq) continue;
        mr_hazard_report *report = c->reports.items[c->recent[i].report - 1];
        if (s->actor != t && mr_hazard_knows(c, s->actor, t, report->second.seq)) {
            c->recent[i].report = 0; /* that is over: the wait is for something else */
            continue;
        }
        c->recent[i].report = 0;
        if (report->reason != MR_HAZARD_BECAUSE_NO_PATH &&
            report->reason != MR_HAZARD_BECAUSE_NONBLOCKING_STREAM)
            continue;
        char place[120];
        report->reason = MR_HAZARD_BECAUSE_WAITED_AFTER_USE;
        report->amended = true;
        mr_text_format(report->why, sizeof report->why,
                       "%s waits for %s at %s, but this wait was submitted after the use: a wait "
                       "delays only later work.",
                       report->second.stream, report->first.stream,
                       mr_hazard_place(mr_hazard_shown(c, command->where), place, sizeof place));
        if (c->mode == MR_HAZARD_WARN && c->hooks.write && !report->waits)
            c->hooks.write(c->hooks.context, report, MR_HAZARD_NEWS_REASON);
    }
}
