/* Two nodes of one launch that no edge orders: the reason, and a wait between the streams on which they were captured.
 *
 * Easiest to break: those streams are known only as long as the launch submits, whose graph holds them. */
#include "hazard/explain.h"

#include "base/text.h"

#include <stdio.h>

/* A stream that captured and has perhaps never done anything else. */
static actor captured_actor(const mr_stream *stream) {
    return (actor){.id = stream->id,
                   .kind = stream->kind,
                   .device = stream->device->index,
                   .name = stream->name,
                   .stream = (mr_stream *)stream};
}

static bool put_fix(const checker *c, const actor *first, const actor *second,
                    const found_pair *pair, mr_hazard_report *report) {
    char a[NAME_SIZE], b[NAME_SIZE];
    mr_script_spot spot;
    if (!mr_hazard_before_second(c, pair, &spot)) return false;
    if (!mr_hazard_stream_code(c, first, &spot, a, sizeof a) ||
        !mr_hazard_stream_code(c, second, &spot, b, sizeof b))
        return false;
    mr_hazard_fix *fix = &report->fix[report->fix_count++];
    mr_text_format(fix->text, sizeof fix->text, "%s:wait_stream(%s)", b, a);
    fix->place = spot.place;
    fix->where = spot.where;
    return true;
}

void mr_hazard_explain_one_launch(const checker *c, const found_pair *pair,
                                  mr_hazard_report *report) {
    const mr_stream *from = mr_hazard_log_find(c, pair->first_seq)->captured_on;
    const mr_stream *to = mr_hazard_log_find(c, pair->second_seq)->captured_on;
    report->reason = MR_HAZARD_BECAUSE_NO_PATH;
    mr_text_format(report->why, sizeof report->why,
                   "both are nodes of one graph, and no edge leads from `%s` to `%s`: in a launch "
                   "only edges order nodes (R42).",
                   pair->first_op, pair->second_op);
    mr_text_format(report->advice, sizeof report->advice,
                   "in what is captured, let the stream of `%s` wait for that of `%s`, between "
                   "the two",
                   pair->second_op, pair->first_op);
    if (!from || !to) return;
    actor first = captured_actor(from), second = captured_actor(to);
    put_fix(c, &first, &second, pair, report);
}
