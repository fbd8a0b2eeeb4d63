/* How often a query is told no.
 *
 * A program that asks until it is told yes has endlessly many schedules: at one line, no is said a few times in a row.
 *
 * The tasks of mr.run ask in turns, and a round in which all are told no changes nothing: they ask again, in the same
 * order. So it is left out. Each asks once until one of them has gone on, and the last one that asks is told yes. So
 * each choice of the task that goes on next is tried once, and none is missing. If some task may yield for ever, which
 * is a loop that asks, the bound holds for its queries, too. */
#include <string.h>

#include "explore/search.h"

/* Each program has the names of files for itself. */
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
