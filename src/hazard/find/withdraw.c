/* Withdrawing: the virtual GPU knows which bytes a launch has touched once it has run. A report of assumed accesses
 * waits for that. It is withdrawn if no pair touched a common byte. A pair that did makes it certain; otherwise it
 * stays.
 *
 * A report counts pairs, and only open pairs can turn out to be absent. So a pair that cannot be followed keeps its
 * report: its first side stands for several launches, or memory ran out.
 *
 * Easiest to break: a report that may be withdrawn must not hide another one. It has no follow-ups, and takes no other
 * pair's place. */
#include "hazard/explain.h"

#include <stdlib.h>
#include <string.h>

#define MOST_TOUCHED ((size_t)1 << 20) /* ranges that are kept, of all launches */
#define MOST_SETS    1024

/* ---- what launches have touched */

static void forget_first(checker *c) {
    touched_set *sets = c->withdrawing.touched.items;
    c->withdrawing.ranges -= sets[0].count;
    free(sets[0].ranges);
    memmove(sets, sets + 1, --c->withdrawing.touched.count * sizeof *sets);
}

static const touched_set *touched_of(const checker *c, uint64_t seq, uint64_t storage) {
    for (size_t i = c->withdrawing.touched.count; i-- > 0;) {
        const touched_set *set = &c->withdrawing.touched.items[i];
        if (set->seq == seq && (set->storage == storage || !set->storage)) return set;
    }
    return NULL;
}

/* `storage` 0: of any. */
static void keep(checker *c, uint64_t seq, uint64_t storage, const mr_kernel_touched *touched) {
    touched_set set = {.seq = seq, .storage = storage};
    size_t count = touched && touched->is_known ? touched->count : 0;
    set.ranges = count ? malloc(count * sizeof *set.ranges) : NULL;
    set.is_known = touched && touched->is_known && (set.ranges || !count);
    if (set.ranges) {
        memcpy(set.ranges, touched->ranges, count * sizeof *set.ranges);
        set.count = count;
    }
    if (!mr_vec_push(&c->withdrawing.touched, set)) {
        free(set.ranges);
        return;
    }
    c->withdrawing.ranges += set.count;
    while (c->withdrawing.touched.count > MOST_SETS ||
           (c->withdrawing.ranges > MOST_TOUCHED && c->withdrawing.touched.count > 1))
        forget_first(c);
}

/* ---- whether two sides touched a byte in common */

#define MR_PLAIN(access) ((access) & (MR_READ | MR_WRITE))

/* Atomic updates are a conflict for plain accesses only. */
static bool conflict(uint8_t a, uint8_t b) {
    if ((a & MR_ATOMIC && MR_PLAIN(b)) || (b & MR_ATOMIC && MR_PLAIN(a))) return true;
    return ((a | b) & MR_WRITE) && MR_PLAIN(a) && MR_PLAIN(b);
}

/* UPDATED: both only by atomic operations, which are no hazard, but their order may decide a value. */
typedef enum { ABSENT, UPDATED, OF_OTHER_KIND, MET } meeting;

static meeting worse(meeting a, meeting b) {
    return a > b ? a : b;
}

/* Both touch a byte in these ways. */
static meeting meet(uint8_t a, uint8_t b, const open_pair *pair) {
    if (!conflict(a, b)) return a & b & MR_ATOMIC ? UPDATED : ABSENT;
    return conflict(a & pair->first.access, b & pair->second.access) ? MET : OF_OTHER_KIND;
}

static meeting sets_meet(const touched_set *a, const touched_set *b, const open_pair *pair) {
    meeting found = ABSENT;
    for (size_t i = 0, k = 0; i < a->count && k < b->count && found != MET;) {
        const mr_touched_range *x = &a->ranges[i], *y = &b->ranges[k];
        if (x->first < y->end && y->first < x->end)
            found = worse(found, meet(x->access, y->access, pair));
        if (x->end < y->end) i++;
        else k++;
    }
    return found;
}

/* The view's access also stands for the accesses that it replaced, which are not stronger. */
static meeting view_meets(const touched_set *set, const open_side *side, const open_pair *pair) {
    meeting found = ABSENT;
    bool is_first = side == &pair->first;
    for (size_t i = 0; i < set->count && found != MET; i++) {
        const mr_touched_range *range = &set->ranges[i];
        byte_view view = {
            .first = range->first, .end = range->end, .run = range->end - range->first};
        uint8_t a = is_first ? side->access : range->access;
        uint8_t b = is_first ? range->access : side->access;
        if (meet(a, b, pair) > found && mr_hazard_view_overlap(&view, &side->view))
            found = meet(a, b, pair);
    }
    return found;
}

/* ---- settling */

static void write_waiting(checker *c, mr_hazard_report *report) {
    if (!report->waits || (c->check.on && c->mode == MR_HAZARD_COLLECT)) return; /* later */
    report->waits = false;
    if (c->mode == MR_HAZARD_WARN) mr_hazard_publish(c, report);
}

static void make_certain(checker *c, mr_hazard_report *report) {
    report->first.assumed = report->second.assumed = MR_CERTAIN;
    mr_hazard_close_pairs(c, report);
    write_waiting(c, report);
}

/* False: not known yet. */
static bool judge(const checker *c, const open_pair *pair, meeting *out_meeting, bool *out_known) {
    const touched_set *sets[2] = {0};
    const open_side *sides[2] = {&pair->first, &pair->second};
    *out_known = true;
    for (int i = 0; i < 2; i++) {
        if (!sides[i]->seq) continue;
        sets[i] = touched_of(c, sides[i]->seq, pair->storage);
        if (sets[i] && !sets[i]->is_known) *out_known = false;
    }
    if (!*out_known) return true;
    if ((sides[0]->seq && !sets[0]) || (sides[1]->seq && !sets[1])) return false;
    if (sets[0] && sets[1]) *out_meeting = sets_meet(sets[0], sets[1], pair);
    else if (sets[0]) *out_meeting = view_meets(sets[0], &pair->second, pair);
    else *out_meeting = view_meets(sets[1], &pair->first, pair);
    return true;
}

/* True: the pair was closed, and others may be. */
static bool settle_one(checker *c, size_t i) {
    open_pair *pair = &c->withdrawing.open.items[i];
    mr_hazard_report *report = pair->report;
    meeting found = ABSENT;
    bool is_known;
    if (!judge(c, pair, &found, &is_known)) return false;
    if (is_known && found == MET) {
        make_certain(c, report);
        return true;
    }
    memmove(pair, pair + 1, (--c->withdrawing.open.count - i) * sizeof *pair);
    if (!is_known || found > UPDATED) {
        write_waiting(c, report); /* it stays assumed */
        return true;
    }
    report->updated += found == UPDATED;
    if (++report->absent == report->count) mr_hazard_report_withdraw(c, report);
    return true;
}

/* Judges the pairs that have not been judged yet and those of the launch `seq`; 0: all. */
static void settle(checker *c, uint64_t seq) {
    for (size_t i = 0; i < c->withdrawing.open.count;) {
        open_pair *pair = &c->withdrawing.open.items[i];
        size_t before = c->withdrawing.open.count;
        bool is_due = pair->is_new || !seq || pair->first.seq == seq || pair->second.seq == seq;
        pair->is_new = false;
        if (!is_due || !settle_one(c, i)) i++;
        else if (before - c->withdrawing.open.count > 1) i = 0; /* others before it are gone, too */
    }
}

void mr_hazard_settle(checker *c) {
    uint64_t seq = c->withdrawing.has_missed ? 0 : UINT64_MAX;
    c->withdrawing.may_settle = c->withdrawing.has_missed = false;
    settle(c, seq);
}

/* Postponed while reports are held. */
static void settle_launch(checker *c, uint64_t seq) {
    if (!c->reports.held.count) settle(c, seq);
    else c->withdrawing.may_settle = c->withdrawing.has_missed = true;
}

void mr_hazard_touched(mr_observer *observer, const mr_command *command,
                       const mr_kernel_touched *touched) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    keep(c, command->seq, touched->storage->id, touched);
    settle_launch(c, command->seq);
}

void mr_hazard_touched_unknown(checker *c, uint64_t seq) {
    keep(c, seq, 0, NULL);
    settle_launch(c, seq);
}

void mr_hazard_write_waiting(mr_hazard *c) {
    for (size_t i = 0; i < c->reports.listed.count; i++)
        write_waiting(c, c->reports.listed.items[i]);
}

void mr_hazard_withdraw_forget(checker *c) {
    while (c->withdrawing.touched.count) forget_first(c);
    c->withdrawing.open.count = 0;
}

void mr_hazard_withdraw_destroy(checker *c) {
    mr_hazard_withdraw_forget(c);
    mr_vec_free(&c->withdrawing.touched);
    mr_vec_free(&c->withdrawing.open);
}
