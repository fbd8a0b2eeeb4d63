/* Pairs in which one access or both are nodes of a graph. Their lines are in the captured function, but the launch
 * orders them against commands outside (R42), so a fix belongs at the launch. Two nodes of one launch are ordered only
 * by the graph's edges, so a fix belongs in the function. For a function that becomes a graph by itself, its call takes
 * the place of the launch.
 *
 * Easiest to break: two launches at one line, in a loop, are two launches. */
#include "hazard/explain.h"

/* Whether the line is inside a launch. A launch begins with its waits and first operation; its last record has another
 * kind. */
static bool is_inside(const log_line *line) {
    return line->launched.file && line->launch != MR_LAUNCH_NONE;
}

/* The line before the one at *io_back; accesses made inside host functions are not lines of a launch's own. */
static const log_line *step_back(const checker *c, uint64_t *io_back) {
    const log_line *line;
    do line = mr_hazard_log_back(c, ++*io_back);
    while (line && line->inside);
    return line;
}

/* The oldest line of the launch to which `line`, at `back`, belongs. */
static const log_line *begin_of(const checker *c, uint64_t back) {
    const log_line *line = mr_hazard_log_back(c, back), *before;
    while (line->launch != MR_LAUNCH_FIRST && (before = step_back(c, &back)) && is_inside(before))
        line = before;
    while ((before = step_back(c, &back)) && is_inside(before) &&
           before->launch == MR_LAUNCH_REST && !mr_hazard_line_is(before, MR_TRAIT_LAUNCH))
        line = before; /* the waits and the record in front of the first operation */
    return line;
}

/* The line of the command itself: a host function's, not that of an access inside. */
static const log_line *find(const checker *c, uint64_t seq, uint64_t *out_back) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++)
        if (line->seq == seq && !line->inside) {
            *out_back = back;
            return line;
        }
    return NULL;
}

const log_line *mr_hazard_captured_line(const checker *c, uint64_t seq) {
    uint64_t back;
    return find(c, seq, &back);
}

/* The record after the launch to which `back` belongs; NULL: the launch is still submitting. */
static const log_line *end_of(const checker *c, uint64_t back) {
    while (back-- > 0) {
        const log_line *line = mr_hazard_log_back(c, back);
        if (line->inside) continue;
        if (!line->launched.file) return NULL;
        if (line->launch == MR_LAUNCH_NONE) return line;
    }
    return NULL;
}

static actor *actor_of(const checker *c, uint32_t stream, actor *otherwise) {
    for (actor *a = c->order.actors; a; a = a->next)
        if (a->id == stream) return a;
    return otherwise;
}

bool mr_hazard_is_before_launch(const found_pair *pair) {
    return pair->history->storage->graph &&
           (pair->kind == MR_HAZARD_UNINITIALISED_READ || pair->kind == MR_HAZARD_USE_BEFORE_ALLOC);
}

bool mr_hazard_is_of_one_launch(const checker *c, const found_pair *pair) {
    uint64_t first_back = 0, second_back = 0;
    const log_line *first = find(c, pair->first_seq, &first_back);
    const log_line *second = find(c, pair->second_seq, &second_back);
    if (!first || !second || !is_inside(first) || !is_inside(second)) return false;
    return begin_of(c, first_back) == begin_of(c, second_back);
}

static mr_site outer_place(const checker *c, uint64_t seq, bool is_in_capture) {
    const log_line *line =
        is_in_capture ? mr_hazard_captured_line(c, seq) : mr_hazard_log_find(c, seq);
    if (!line) return (mr_site){0};
    return is_in_capture ? line->outer.where : line->launched;
}

void mr_hazard_outer_places(const checker *c, const found_pair *pair, mr_site *out_first,
                            mr_site *out_second) {
    *out_first = *out_second = (mr_site){0};
    if (!c->log.has_nodes) return;
    bool is_in_capture = mr_hazard_is_of_one_launch(c, pair);
    *out_first = outer_place(c, pair->first_seq, is_in_capture);
    *out_second = outer_place(c, pair->second_seq, is_in_capture);
}

void mr_hazard_seen_outside(const checker *c, const found_pair *pair, found_pair *out) {
    uint64_t back = 0;
    const log_line *line = mr_hazard_log_find(c, pair->first_seq), *end;
    *out = *pair;
    if (line && is_inside(line)) {
        out->first_where = line->launched;
        end = find(c, pair->first_seq, &back) ? end_of(c, back) : NULL;
        if (end) out->first = actor_of(c, end->stream, out->first);
        if (end) out->first_seq = end->seq;
    }
    line = mr_hazard_log_find(c, pair->second_seq);
    if (!line || !is_inside(line)) return;
    out->second_where = line->launched;
    if (pair->submitted.file) out->submitted = line->launched;
    if (find(c, pair->second_seq, &back))
        out->second = actor_of(c, begin_of(c, back)->stream, out->second);
}

/* A wait in the function for work of before the call would be a reason against a graph. */
void mr_hazard_see_call(const checker *c, found_pair *pair) {
    const mr_captures *captures = c->machine->captures.all;
    const mr_function_call *call = captures ? captures->call : NULL;
    if (!call || !call->where.file || call->rank != c->machine->rank) return;
    if (!pair->first || !pair->second_where.file || pair->submitted.file) return;
    if (pair->first_seq >= call->first_seq) return;
    pair->second_where = call->where;
    pair->call = call;
}
