/* Reports of memory that Lua's collector freed too early. A function that returns with work pending loses all its
 * tensors at once, and one wait after its last operation is the cure. So such reports are kept until the script goes
 * on. Then one report stands for all that its wait orders. */
#include "hazard/explain.h"

#include <stdlib.h>

/* Whether this place submitted work to the stream after the first access and before the free. Then a wait after that
 * place orders both. */
static bool came_by(const checker *c, const mr_hazard_report *kept, mr_site where) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->seq < kept->first.seq) break;
        if (line->seq < kept->second.seq && line->stream == kept->streams[0].first &&
            line->where.line == where.line && line->where.file == where.file)
            return true;
    }
    return false;
}

/* Whether CUDA orders the first access before that of `report`, whose stream has waited for the other. Asked only
 * within one flush, because each answer costs a search of the log. */
#define MOST_SEARCHES 32
static bool was_joined(const checker *c, const mr_hazard_report *kept,
                       const mr_hazard_report *report, int *searches) {
    const log_line *line;
    bool found = false;
    if (report->first.seq < kept->first.seq || !mr_hazard_held(c, report->number)) return false;
    if (++*searches > MOST_SEARCHES) return false;
    bool *before = mr_hazard_log_before(c, report->first.seq);
    for (uint64_t back = 0; before && (line = mr_hazard_log_back(c, back)); back++)
        if (line->seq == kept->first.seq && !line->inside) found = before[back];
    free(before);
    return found;
}

/* A report whose wait, after the place of its first access, orders this free, too. Error mode refuses a call for each
 * report, so there only reports of the same flush count. */
static mr_hazard_report *report_that_orders(const checker *c, const mr_hazard_report *kept,
                                            int *searches) {
    for (size_t i = c->reports.listed.count; i-- > c->check.first;) {
        mr_hazard_report *r = c->reports.listed.items[i];
        if (!r->joins || r->stream_pairs != 1 || r->streams[0].second != kept->streams[0].second ||
            (c->mode == MR_HAZARD_ERROR && !mr_hazard_held(c, r->number)))
            continue;
        bool is_same_place = r->first.where.line == kept->first.where.line &&
                             r->first.where.file == kept->first.where.file;
        if (r->streams[0].first != kept->streams[0].first) {
            if (was_joined(c, kept, r, searches)) return r;
        } else if (!is_same_place && came_by(c, kept, r->first.where)) {
            return r;
        }
    }
    return NULL;
}

static void flush(checker *c, mr_hazard_report *kept, int *searches) {
    bool is_new;
    mr_hazard_report *orders = report_that_orders(c, kept, searches);
    if (orders || mr_hazard_is_ordered_by_fix(c, kept)) {
        c->totals.follow_ups++;
        if (orders && mr_hazard_held(c, orders->number)) mr_hazard_add_tensor(orders, kept->tensor);
        free(kept);
        return;
    }
    mr_hazard_report *report = mr_hazard_report_add(c, kept, &is_new);
    bool shows = report && !is_new && c->mode == MR_HAZARD_ERROR;
    if (report && is_new) mr_hazard_hold(c, report, false);
    if (shows) mr_hazard_hold(c, kept, true);
    else free(kept);
}

/* Sorts the last access first: a wait after it covers the earlier ones. */
static int by_last_access(const void *a, const void *b) {
    const mr_hazard_report *x = *(mr_hazard_report *const *)a, *y = *(mr_hazard_report *const *)b;
    if (x->first.seq != y->first.seq) return x->first.seq > y->first.seq ? -1 : 1;
    return x->second.seq < y->second.seq ? -1 : x->second.seq > y->second.seq;
}

/* A tensor that the collector took while work on it was pending is a hazard of the program only if the program goes on.
 * At the end of the script everything is collected, and nothing can come after. */
void mr_hazard_flush_collected(checker *c) {
    int searches = 0;
    if (c->reports.collected.count)
        qsort(c->reports.collected.items, c->reports.collected.count,
              sizeof *c->reports.collected.items, by_last_access);
    for (size_t i = 0; i < c->reports.collected.count; i++)
        flush(c, c->reports.collected.items[i], &searches);
    c->reports.collected.count = 0;
    mr_hazard_publish_held(c);
}

void mr_hazard_drop_collected(checker *c) {
    for (size_t i = 0; i < c->reports.collected.count; i++) free(c->reports.collected.items[i]);
    c->reports.collected.count = 0;
}
