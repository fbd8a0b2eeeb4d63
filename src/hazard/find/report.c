/* Counts an unordered pair, or reports it and holds the report until its whole command is checked. After a missing
 * order was reported, other pairs that it leaves unordered are only counted, since one fix orders them all. */
#include "hazard/explain.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static void remember(checker *c, const found_pair *pair) {
    unsigned i = c->reports.recent_next++ % (sizeof c->reports.recent / sizeof *c->reports.recent);
    c->reports.recent[i] = (recent_pair){.report = c->reports.listed.count,
                                         .first = pair->first->id,
                                         .second = pair->second->id,
                                         .first_seq = pair->first_seq};
}

/* Adds a tensor to a held report: the command in progress races on that one, too. */
static void name_tensor(const checker *c, mr_hazard_report *held, const found_pair *pair) {
    char name[sizeof held->tensor];
    if (!held) return;
    mr_hazard_tensor_text(c, pair, name, sizeof name);
    mr_hazard_add_tensor(held, name);
}

/* Error mode remembers no fix, because the call is refused. Its other races belong to its one report. */
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

/* Counts the pair without a report if its places already have one, or a proposed fix orders it. */
static bool is_known(checker *c, const found_pair *pair, mr_hazard_kind kind, bool data) {
    mr_hazard_report *known = mr_hazard_report_of(c, kind, pair);
    mr_hazard_report *held = known ? mr_hazard_held(c, known->number) : NULL;
    bool refuses = c->mode == MR_HAZARD_ERROR && !pair->advisory;
    bool has_line = data || (kind == MR_HAZARD_USE_AFTER_FREE && pair->second_where.file);
    bool is_covered = refuses
                          ? data && is_of_held(c, pair)
                          : has_line && mr_hazard_blame_explains(mr_hazard_blame_of(c, pair),
                                                                 pair->first_seq, pair->second_seq);
    if (known && c->reports.ignores.count == 0 && (!refuses || held) &&
        (is_covered || !mr_hazard_may_add(known, pair))) {
        known->count++;
        count_pair(c, pair, known);
        if (!pair->advisory) c->totals.hazards++;
        mr_hazard_add_streams(known, pair->first->id, pair->second->id);
        mr_hazard_add_rank(known, c->hosts.number);
        if (data) mr_hazard_blame_pair(c, pair, known);
        if (data) name_tensor(c, held, pair);
        return true;
    }
    if (!is_covered) return false;
    c->totals.follow_ups++;
    name_tensor(c, mr_hazard_held_for(c, pair), pair);
    return true;
}

static mr_hazard_report *copy_of_report(const mr_hazard_report *draft) {
    mr_hazard_report *copy = malloc(sizeof *copy);
    if (copy) *copy = *draft;
    return copy;
}

/* Keeps the report until the script goes on (collected.c). */
static void keep_collected(checker *c, const mr_hazard_report *draft) {
    bool fits = c->reports.collected.count < MR_HAZARD_MAX_REPORTS;
    mr_hazard_report *kept = fits ? copy_of_report(draft) : NULL;
    if (kept && !mr_vec_push(&c->reports.collected, kept)) free(kept);
}

static void found(checker *c, const found_pair *pair) {
    if (pair->advisory && pair->only_look) return;
    if (pair->advisory && !c->advice.on) return;
    /* The fix is a wait of one stream for another one, which orders other pairs, too. */
    bool data = !pair->advisory && (pair->kind <= MR_HAZARD_WRITE_AFTER_WRITE ||
                                    pair->kind == MR_HAZARD_USE_BEFORE_ALLOC);
    bool refuses = c->mode == MR_HAZARD_ERROR && !pair->advisory;
    if (is_known(c, pair, pair->advisory ? MR_HAZARD_UNSPECIFIED_SYNCHRONY : pair->kind, data))
        return;
    bool is_behind = pair->second_seq > c->order.ends_together;
    if (pair->first_seq < c->order.ends_together && is_behind && !pair->only_look)
        mr_claims_add(&c->totals.claims, MR_CLAIM_TOGETHER);
    mr_hazard_report draft;
    bool is_new;
    mr_hazard_draft(c, pair, &draft);
    if (pair->kind == MR_HAZARD_USE_AFTER_FREE && !pair->second_where.file &&
        !pair->second_access) {
        keep_collected(c, &draft);
        return;
    }
    if (pair->only_look && mr_hazard_ignored(c, &draft, true))
        return; /* counted when it is carried out */
    mr_hazard_report *report = mr_hazard_report_add(c, &draft, &is_new);
    if (!report) return;
    bool waits = !pair->only_look && count_pair(c, pair, report);
    if (is_new) report->waits = waits;
    if (data) mr_hazard_blame_pair(c, pair, &draft);
    if (is_new && data && !refuses) remember(c, pair);
    if (is_new && data && !waits && mr_hazard_take_over(c, report)) {
        blame *b = mr_hazard_blame_of(c, pair); /* only fixes that are still proposed count */
        if (b) b->seq = mr_hazard_fix_reach(c, pair, report), b->from = pair->second_seq;
    }
    mr_hazard_report *held = mr_hazard_held(c, report->number);
    if (held && data) mr_hazard_add_tensor(held, draft.tensor);
    if (held) return;
    if (is_new) mr_hazard_hold(c, report, false);
    else if (refuses &&
             (report = copy_of_report(&draft)) != NULL) /* the one at hand, not the first one */
        mr_hazard_hold(c, report, true);
}

typedef struct {
    checker *c;
    const found_pair *pair;
} finding;

static void found_by_host(void *asked) {
    const finding *f = asked;
    found(f->c, f->pair);
}

/* Names and places are looked up for the host that called the second. */
void mr_hazard_pair_found(checker *c, const found_pair *pair) {
    finding f = {c, pair};
    if (c->watcher.only_tell) return;
    if (!c->hosts.number || !c->hooks.as_host) found(c, pair);
    else if (!c->hooks.as_host(c->hooks.context, c->hosts.number, found_by_host, &f))
        c->out_of_memory = true;
}

void mr_hazard_publish(checker *c, const mr_hazard_report *report) {
    bool advice = mr_hazard_kind_is_advice(report->kind);
    if (report->waits) return;
    if (c->hooks.write && (c->mode == MR_HAZARD_WARN || (c->mode == MR_HAZARD_ERROR && advice)))
        c->hooks.write(c->hooks.context, report, MR_HAZARD_NEWS_REPORT);
    if (c->mode != MR_HAZARD_ERROR || mr_hazard_kind_is_advice(report->kind) || c->reports.refusal)
        return;
    mr_buffer text = {0};
    mr_hazard_write_text(report, false, &text);
    while (text.size && text.data[text.size - 1] == '\n') text.data[--text.size] = '\0';
    c->reports.refusal = mr_fail(MR_CODE_HAZARD, "%s", text.data ? text.data : "hazard");
    mr_error *error = mr_error_details(c->reports.refusal);
    if (error) {
        error->where = report->second.where;
        mr_text_copy(error->op, sizeof error->op, report->second.op);
        mr_text_copy(error->stream, sizeof error->stream, report->second.stream);
    }
    mr_buffer_free(&text);
}

/* ---- the wait that comes too late */

static void amend_why(checker *c, mr_hazard_report *report) {
    report->amended = true;
    if (c->mode == MR_HAZARD_WARN && c->hooks.write && !report->waits)
        c->hooks.write(c->hooks.context, report, MR_HAZARD_NEWS_REASON);
}

/* Whether the line has made such a wait before. In a loop, it is then meant for later work. */
static bool has_waited(const checker *c, const mr_command *command) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++)
        if (line->seq < command->seq && line->kind == command->kind &&
            line->where.file == command->where.file && line->where.line == command->where.line)
            return true;
    return false;
}

/* The reader's wait comes too late, after the read. The fix of the report would then order the read before the write
 * for good, with the old value. */
static void amend_reader(checker *c, const mr_command *command, mr_hazard_report *report) {
    char place[120];
    if (report->kind != MR_HAZARD_WRITE_AFTER_READ || has_waited(c, command)) return;
    mr_text_format(
        report->why, sizeof report->why,
        "%s waits for %s at %s, after `%s` was submitted: a wait delays only later work. "
        "The fix keeps the order of submission; if `%s` is to read what `%s` writes, "
        "submit it after that wait instead.",
        report->first.stream, report->second.stream,
        mr_hazard_place(mr_hazard_shown(c, command->where), place, sizeof place), report->first.op,
        report->first.op, report->second.op);
    amend_why(c, report);
}

static bool is_unexplained(const mr_hazard_report *report) {
    return report->reason == MR_HAZARD_BECAUSE_NO_PATH ||
           report->reason == MR_HAZARD_BECAUSE_NONBLOCKING_STREAM;
}

static void amend_one(checker *c, const actor *t, const mr_command *command, const snapshot *s,
                      recent_pair *recent) {
    mr_hazard_report *report = c->reports.listed.items[recent->report - 1];
    uint32_t waits = command->stream->id, done = s->actor->id;
    bool is_late = recent->second == waits && recent->first == done && s->seq >= recent->first_seq;
    bool is_back = recent->first == waits && recent->second == done && s->seq >= report->second.seq;
    if (!is_late && !is_back) return;
    recent->report = 0;
    if (is_late && s->actor != t && mr_hazard_knows(c, s->actor, t, report->second.seq))
        return; /* that is already ordered: the wait is for something else */
    if (!is_unexplained(report)) return;
    if (is_back) {
        amend_reader(c, command, report);
        return;
    }
    char place[120];
    report->reason = MR_HAZARD_BECAUSE_WAITED_AFTER_USE;
    mr_text_format(report->why, sizeof report->why,
                   "%s waits for %s at %s, but this wait was submitted after the use: a wait "
                   "delays only later work.",
                   report->second.stream, report->first.stream,
                   mr_hazard_place(mr_hazard_shown(c, command->where), place, sizeof place));
    amend_why(c, report);
}

void mr_hazard_amend(checker *c, const actor *t, const mr_command *command) {
    const snapshot *s = mr_hazard_snapshot_of(command);
    for (size_t i = 0; s && i < sizeof c->reports.recent / sizeof *c->reports.recent; i++) {
        recent_pair *recent = &c->reports.recent[i];
        if (recent->report && recent->report <= c->reports.listed.count)
            amend_one(c, t, command, s, recent);
    }
}
