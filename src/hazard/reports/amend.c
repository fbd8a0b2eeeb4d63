/* Adds to a listed report: other pairs of streams at its places, and tensors that need lines of their own. */
#include "hazard/explain.h"

#include "base/text.h"

#include <string.h>

bool mr_hazard_add_streams(mr_hazard_report *r, uint32_t first, uint32_t second) {
    for (uint32_t i = 0; i < r->stream_pairs; i++)
        if (r->streams[i].first == first && r->streams[i].second == second) return false;
    if (r->stream_pairs == MR_HAZARD_STREAM_PAIRS) return false;
    r->streams[r->stream_pairs].first = first;
    r->streams[r->stream_pairs++].second = second;
    return r->stream_pairs > 1;
}

void mr_hazard_add_rank(mr_hazard_report *r, uint16_t rank) {
    if (rank) r->ranks |= (uint64_t)1 << (rank - 1);
}

/* Writes the first addition at once; later ones are written when the run ends. */
static void tell(checker *c, mr_hazard_report *r, mr_hazard_news news) {
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
    for (size_t i = 0; i < c->reports.listed.count && c->mode == MR_HAZARD_WARN; i++) {
        mr_hazard_report *r = c->reports.listed.items[i];
        if (r->waits) continue;
        if (r->unwritten && c->hooks.write) c->hooks.write(c->hooks.context, r, r->unwritten);
        r->unwritten = MR_HAZARD_NEWS_REPORT;
    }
}

void mr_hazard_merge(checker *c, mr_hazard_report *r, const mr_hazard_report *draft) {
    bool data = r->kind <= MR_HAZARD_WRITE_AFTER_WRITE, other_streams = false;
    if (!mr_hazard_is_assumed(draft)) r->first.assumed = r->second.assumed = MR_CERTAIN;
    for (uint32_t i = 0; i < draft->stream_pairs; i++)
        if (mr_hazard_add_streams(r, draft->streams[i].first, draft->streams[i].second))
            other_streams = true;
    bool has_lines = (other_streams || !data) && mr_hazard_add_fixes(r, draft);
    if (has_lines && !data) mr_hazard_add_tensor(r, draft->tensor);
    r->ranks |= draft->ranks;
    /* Streams of another rank may have the same name, and the text names the rank. */
    bool is_told = (r->also[0][0] && !has_lines) || draft->second.rank != r->second.rank ||
                   (strcmp(draft->first.stream, r->first.stream) == 0 &&
                    strcmp(draft->second.stream, r->second.stream) == 0);
    if (other_streams && !is_told) {
        mr_text_copy(r->also[0], sizeof r->also[0], draft->first.stream);
        mr_text_copy(r->also[1], sizeof r->also[1], draft->second.stream);
    }
    if (other_streams) tell(c, r, MR_HAZARD_NEWS_STREAMS);
    else if (has_lines) tell(c, r, MR_HAZARD_NEWS_TENSORS);
}

static bool has_streams(const mr_hazard_report *r, const found_pair *pair) {
    for (uint32_t i = 0; i < r->stream_pairs; i++)
        if (r->streams[i].first == pair->first->id && r->streams[i].second == pair->second->id)
            return true;
    return r->stream_pairs == MR_HAZARD_STREAM_PAIRS;
}

#define MOST_OTHERS 64
bool mr_hazard_may_add(const mr_hazard_report *r, const found_pair *pair) {
    if (mr_hazard_kind_is_advice(r->kind)) return false;
    if (!has_streams(r, pair)) return true;
    return r->kind == MR_HAZARD_USE_AFTER_FREE && r->count < MOST_OTHERS;
}
