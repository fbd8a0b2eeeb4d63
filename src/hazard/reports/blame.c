/* Pairs that an already proposed fix orders: they are counted as follow-ups, not reported. */
#include "hazard/explain.h"

#define MOST_BLAMES 256

static blame *blame_between(const checker *c, uint32_t first, uint32_t second) {
    for (size_t i = 0; i < c->reports.blames.count; i++) {
        blame *b = &c->reports.blames.items[i];
        if (b->first == first && b->second == second) return b;
    }
    return NULL;
}

blame *mr_hazard_blame_of(const checker *c, const found_pair *pair) {
    return blame_between(c, pair->first->id, pair->second->id);
}

bool mr_hazard_blame_explains(const blame *b, uint64_t first_seq, uint64_t second_seq) {
    return b && b->seq >= first_seq && b->from <= second_seq;
}

bool mr_hazard_is_ordered_by_fix(const checker *c, const mr_hazard_report *draft) {
    const blame *b = blame_between(c, draft->streams[0].first, draft->streams[0].second);
    return c->mode != MR_HAZARD_ERROR &&
           mr_hazard_blame_explains(b, draft->first.seq, draft->second.seq);
}

uint64_t mr_hazard_fix_reach(const checker *c, const found_pair *pair,
                             const mr_hazard_report *report) {
    uint64_t seq = UINT64_MAX;
    if (!report->covered) return pair->second_seq;
    if (report->first.seq == pair->first_seq) return report->covered;
    if (report->covered == report->first.seq) return pair->first_seq;
    int most = 256; /* with more events than that in a loop, some follow-ups are reported */
    for (const snapshot *s = c->order.snapshots; s && most; s = s->next, most--)
        if (s->actor == pair->first && s->seq > pair->first_seq && s->seq < seq) seq = s->seq;
    return seq == UINT64_MAX ? pair->first_seq : seq;
}

void mr_hazard_blame_pair(checker *c, const found_pair *pair, const mr_hazard_report *report) {
    blame *b = mr_hazard_blame_of(c, pair);
    uint64_t seq = mr_hazard_fix_reach(c, pair, report);
    if (c->mode == MR_HAZARD_ERROR) return; /* the command is refused, so there are no follow-ups */
    if (mr_hazard_may_withdraw(c, pair)) return; /* likewise, if it is */
    /* Only a host function that runs late can be in a pair whose second command was submitted before the fix's
     * place. */
    if (b && mr_hazard_functions_pending(c) && b->from < pair->second_seq)
        b->from = pair->second_seq;
    if (b) b->seq = b->seq > seq ? b->seq : seq;
    else if (c->reports.blames.count < MOST_BLAMES) {
        blame fresh = {pair->first->id, pair->second->id, seq, pair->second_seq};
        if (!mr_vec_push(&c->reports.blames, fresh)) return;
    } else {
        c->reports.blames.count = 0; /* some follow-ups will be reported on their own */
    }
}
