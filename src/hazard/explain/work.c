/* The work of an asynchronous collective as its call's own line holds it. Where the work is still alive, the checker
 * finds its variable by its value (names.c). A `local` of a loop's body is gone when the second access comes, and then
 * the text of the line tells. */
#include "hazard/explain.h"

#include "base/text.h"

#include <string.h>

#define ASYNC "async"

static bool find_result(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                        char *out, size_t size) {
    return c->hooks.result && pair->first_where.file &&
           c->hooks.result(c->hooks.context, pair->first_where, pair->first_op, ASYNC, spot, out,
                           size);
}

/* The stream that was current at the call, since the group's stream waits for that first; 0: not known. */
static uint32_t current_at_call(const checker *c, const found_pair *pair) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->seq >= pair->first_seq || line->stream != pair->first->id) continue;
        if (strcmp(line->op, MR_MEETING_ORDER) == 0) continue;
        bool is_of_call = line->kind == MR_COMMAND_WAIT &&
                          line->where.file == pair->first_where.file &&
                          line->where.line == pair->first_where.line;
        return is_of_call ? line->bound_stream : 0;
    }
    return 0;
}

bool mr_hazard_wait_of_work(const checker *c, const found_pair *pair, const char *work,
                            const mr_script_spot *spot, char *out, size_t size) {
    char waiting[NAME_SIZE];
    if (pair->second == &c->order.host_actor) mr_text_format(out, size, "%s:synchronize()", work);
    else if (current_at_call(c, pair) == pair->second->id)
        mr_text_format(out, size, "%s:wait()", work);
    else if (mr_hazard_stream_code(c, pair, pair->second, spot, waiting, sizeof waiting))
        mr_text_format(out, size, "%s:wait(%s)", work, waiting);
    else return false;
    return true;
}

bool mr_hazard_work_wait(const checker *c, const found_pair *pair, const mr_script_spot *behind,
                         char *out, size_t size) {
    char work[NAME_SIZE];
    return find_result(c, pair, behind, work, sizeof work) && work[0] &&
           mr_hazard_wait_of_work(c, pair, work, behind, out, size);
}

bool mr_hazard_work_is_lost(const checker *c, const found_pair *pair) {
    char work[NAME_SIZE];
    mr_script_spot behind = {
        MR_SCRIPT_AFTER, pair->first_where, pair->first_where.line + 1, false, false, 0};
    return find_result(c, pair, &behind, work, sizeof work) && !work[0];
}
