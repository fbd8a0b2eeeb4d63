/* Two nodes of one launch that no edge orders: the reason, and a wait between the streams on which they were captured.
 *
 * Easiest to break: those streams are known only while the launch submits, because its graph holds them. */
#include "hazard/explain.h"

#include "base/text.h"

#include <string.h>

/* An actor for a capturing stream, which may never have done anything else. */
static actor captured_actor(const mr_stream *stream) {
    return (actor){.id = stream->id,
                   .kind = stream->kind,
                   .device = stream->device->index,
                   .name = stream->name,
                   .stream = (mr_stream *)stream};
}

/* Searches the captured lines. The launch's own commands are at another line and are ignored: both nodes may be parts
 * of one line. */
static bool find_spot(const checker *c, const found_pair *pair, mr_site from, mr_site to,
                      mr_script_spot *out_spot) {
    mr_script_meeting meeting = {.first = from,
                                 .second = to,
                                 .first_op = pair->first_op,
                                 .second_op = pair->second_op,
                                 .lowest = from.line < to.line ? from.line : to.line,
                                 .highest = from.line < to.line ? to.line : from.line,
                                 .is_running = !pair->submitted.file};
    *out_spot = (mr_script_spot){MR_SCRIPT_BEFORE, to, to.line, false, false, 0};
    if (!to.file) return false;
    return !c->hooks.before || c->hooks.before(c->hooks.context, &meeting, out_spot);
}

/* Whether it is the stream of mr.graph(fn): only the capture uses it, and afterwards no variable holds it. */
static bool is_of_function(const mr_stream *stream) {
    return stream->closed && stream->name && strcmp(stream->name->text, "capture") == 0;
}

/* How a fix calls a stream that no variable holds. */
static const char *stand_in(const actor *unnamed) {
    return is_of_function(unnamed->stream) ? "origin" : "other";
}

static void say_fix(const checker *c, const mr_script_spot *spot, const char *wait,
                    const actor *unnamed, mr_hazard_report *report) {
    char place[PLACE_SIZE], name[NAME_SIZE];
    mr_hazard_stream_text(c, unnamed, name, sizeof name);
    bool is_origin = is_of_function(unnamed->stream);
    mr_text_format(report->advice, sizeof report->advice, "%s %s add   %s, where `%s` is %s%s",
                   mr_hazard_place_text(spot->place),
                   mr_hazard_place(mr_hazard_shown(c, spot->where), place, sizeof place), wait,
                   stand_in(unnamed),
                   is_origin ? "mr.current_stream() at the beginning of the captured function"
                             : "stream ",
                   is_origin ? "" : name);
}

/* The function's own stream was current when the second node was captured. */
static bool name_current(const actor *second, char *out, size_t size) {
    if (!is_of_function(second->stream)) return false;
    mr_text_format(out, size, "mr.current_stream()");
    return true;
}

/* Proposes a line if variables lead to both streams; a sentence with that line if only to one. */
static void put_fix(const checker *c, const node_place *from, const node_place *to,
                    const found_pair *pair, mr_hazard_report *report) {
    actor on[] = {captured_actor(from->stream), captured_actor(to->stream)};
    const actor *first = &on[0], *second = &on[1];
    char a[NAME_SIZE], b[NAME_SIZE], wait[2 * NAME_SIZE + 16];
    mr_script_spot spot;
    if (!find_spot(c, pair, from->where, to->where, &spot)) return;
    bool has_a = mr_hazard_stream_code(c, NULL, first, &spot, a, sizeof a);
    bool has_b = mr_hazard_stream_code(c, NULL, second, &spot, b, sizeof b) ||
                 name_current(second, b, sizeof b);
    if (!has_a) strcpy(a, stand_in(first));
    if (!has_b) strcpy(b, stand_in(second));
    mr_text_format(wait, sizeof wait, "%s:wait_stream(%s)", b, a);
    if (has_a != has_b && spot.place != MR_SCRIPT_WITHIN)
        say_fix(c, &spot, wait, has_a ? second : first, report);
    if (!has_a || !has_b) return;
    mr_hazard_fix *fix = &report->fix[report->fix_count++];
    mr_text_format(fix->text, sizeof fix->text, "%s", wait);
    fix->place = spot.place;
    fix->where = spot.where;
    fix->in_loop = spot.in_loop;
    fix->has_namesake = spot.has_namesake;
}

/* A script does not know the lanes of a launch, so the text names the captured streams. */
static void name_stream(const checker *c, const mr_stream *stream, mr_hazard_side *side) {
    if (!stream) return;
    actor a = captured_actor(stream);
    mr_hazard_stream_text(c, &a, side->stream, sizeof side->stream);
    side->captured = true;
}

void mr_hazard_explain_one_launch(const checker *c, const found_pair *pair,
                                  mr_hazard_report *report) {
    const log_line *first = mr_hazard_captured_line(c, pair->first_seq);
    const log_line *second = mr_hazard_captured_line(c, pair->second_seq);
    report->reason = MR_HAZARD_BECAUSE_NO_PATH;
    mr_text_format(report->why, sizeof report->why,
                   "both are nodes of one graph, and no edge leads from `%s` to `%s`: in a launch "
                   "only edges order nodes (R42).",
                   pair->first_op, pair->second_op);
    mr_text_format(report->advice, sizeof report->advice,
                   "in what is captured, let the stream of `%s` wait for that of `%s`, between "
                   "the two",
                   pair->second_op, pair->first_op);
    name_stream(c, first->captured_on, &report->first);
    name_stream(c, second->captured_on, &report->second);
    /* A capture orders the nodes of one stream. So two with the same place in it are of one launch there, and the edge
     * is missing in the graph that was launched. */
    const node_place *from = &first->outer, *to = &second->outer;
    if (from->stream == to->stream) from = &first->inner, to = &second->inner;
    bool are_known = from->stream && to->stream && from->stream != to->stream;
    if (are_known) put_fix(c, from, to, pair, report);
}
