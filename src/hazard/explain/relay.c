/* Streams without a variable in the script, such as the stream of a group of ranks, and streams that a fix can name
 * instead. */
#include "hazard/explain.h"

#include <string.h>

/* The record and the wait of wait_stream, in the call of the second. */
static bool is_of_call(const log_line *line, const found_pair *pair) {
    return line->kind == MR_COMMAND_WAIT && line->bound && line->stream == pair->second->id &&
           line->where.file == pair->second_where.file &&
           line->where.line == pair->second_where.line;
}

const log_line *mr_hazard_wait_of_call(const checker *c, const found_pair *pair) {
    const log_line *line;
    if (!pair->command || !pair->command->meeting) return NULL;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->seq >= pair->second_seq) continue;
        if (line->seq <= pair->first_seq) return NULL;
        if (line->stream != pair->second->id || strcmp(line->op, MR_MEETING_ORDER) == 0) continue;
        return is_of_call(line, pair) ? line : NULL;
    }
    return NULL;
}

const actor *mr_hazard_find_actor(const checker *c, uint32_t id) {
    const actor *a = c->order.actors;
    while (a && a->id != id) a = a->next;
    return a;
}

const actor *mr_hazard_behind_first(const checker *c, const found_pair *pair, uint64_t *io_before,
                                    mr_site *out_where, uint64_t *out_covered) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->seq <= pair->first_seq) return NULL;
        if (line->seq >= *io_before || line->kind != MR_COMMAND_WAIT) continue;
        if (line->bound_stream != pair->first->id || line->bound < pair->first_seq) continue;
        const actor *waited = mr_hazard_find_actor(c, line->stream);
        if (!waited || waited == pair->second || line->seq >= pair->second_seq) continue;
        *io_before = line->seq;
        *out_where = line->where;
        *out_covered = line->bound;
        return waited;
    }
    return NULL;
}
