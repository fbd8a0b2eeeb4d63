/* How often a query is answered no. A loop that polls until yes has infinitely many schedules, so the queries of one
 * line are answered no only a few times in a row.
 *
 * The tasks of mr.run ask in turns, and a round in which all get no changes nothing: they ask again, in the same order.
 * Such a round is left out. Each task asks once until one has gone on, and the last one gets yes. So each choice of the
 * next task is tried exactly once. If a task may yield for ever, in a loop that polls, the bound applies to its
 * queries, too. */
#include <string.h>

#include "explore/search.h"

/* Compares texts: each program has its own copies of file names. */
static bool same_line(mr_site a, mr_site b) {
    if (a.line != b.line || !a.file || !b.file) return a.line == b.line && a.file == b.file;
    return strcmp(a.file, b.file) == 0;
}

bool polls_may_say_no(search *s) {
    const mr_host_ask *ask = steer_ask_at(&s->b->queries, s->at.item);
    if (ask && (ask->last || ask->once)) return !ask->last;
    const mr_site where = s->o->items[s->at.item].where, shown = explore_shown(s->e, where);
    unsigned noes = 0;
    for (size_t i = s->polls.count; i-- > 0;) {
        const polled *p = &s->polls.items[i];
        if (!same_line(p->where, where)) continue;
        if (p->yes) break;
        noes++;
    }
    if (noes < s->e->options.polls) return true;
    explore_incomplete(s->e,
                       "the query at %s:%d was answered no at most %u times in a row; there are "
                       "schedules in which it is asked more often (polls = N, --explore=polls:N)",
                       shown.file ? shown.file : "?", shown.line, s->e->options.polls);
    return false;
}

bool polls_note(search *s, bool yes) {
    const mr_host_ask *ask = steer_ask_at(&s->b->queries, s->at.item);
    polled p = {s->o->items[s->at.item].where, yes};
    return (ask && ask->once) || mr_vec_push(&s->polls, p);
}
