/* The log: the last few thousand actions, in the order of the host's calls. Only explaining reads it. */
#include "hazard/state.h"

#include <string.h>

void mr_hazard_log_action(checker *c, const mr_action *action) {
    log_line *line = &c->log[c->logged++ % (MR_HAZARD_LOG + 1)];
    const mr_stream *stream = action->stream;
    line->seq = action->seq;
    line->kind = action->kind;
    line->stream = stream ? stream->id : 0;
    line->stream_name = stream ? stream->name : NULL;
    line->device = stream ? stream->device->index : -1;
    line->blocking = stream && (stream->blocking || stream->kind != MR_STREAM_USER);
    line->legacy = stream && stream->kind == MR_STREAM_LEGACY;
    line->per_thread = stream && stream->kind == MR_STREAM_PER_THREAD;
    line->op = action->name;
    line->where = action->where;
    line->event = 0;
    line->bound = 0;
    line->synchronous = action->kind == MR_ACTION_COPY && action->u.copy.synchronous;
    line->copy = (copy_effect){0};
    line->inside = action->kind == MR_ACTION_HOST_ACCESS && c->machine->host_function;
    if (line->inside) line->seq = c->machine->host_function->seq;
    switch (action->kind) {
    case MR_ACTION_COPY:
        line->copy = mr_hazard_copy_effect(action);
        for (int i = 0; i < 2 && line->copy.peer; i++)
            line->peer_device[i] = (int16_t)action->operands[i].tensor->storage->device->index;
        break;
    case MR_ACTION_DEVICE_SYNC: line->device = action->u.device->index; break;
    case MR_ACTION_RECORD:
    case MR_ACTION_WAIT:
    case MR_ACTION_EVENT_SYNC:
    case MR_ACTION_EVENT_QUERY: {
        const mr_event *event = action->u.event.event;
        const snapshot *s = event->observed;
        line->event = event->id;
        line->event_name = event->name;
        line->bound = action->u.event.record_seq;
        line->bound_stream = s && s->seq == line->bound ? s->actor->id : 0;
        break;
    }
    default: break;
    }
}

void mr_hazard_log_take_back(checker *c) {
    c->logged--;
}

const log_line *mr_hazard_log_back(const checker *c, uint64_t back) {
    uint64_t kept = c->logged < MR_HAZARD_LOG ? c->logged : MR_HAZARD_LOG;
    return back < kept ? &c->log[(c->logged - 1 - back) % (MR_HAZARD_LOG + 1)] : NULL;
}

const log_line *mr_hazard_log_find(const checker *c, uint64_t seq) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++)
        if (line->seq == seq) return line;
    return NULL;
}

uint64_t mr_hazard_find_operation(const mr_hazard *c, const char *file, int where) {
    const log_line *line;
    uint64_t other = 0;
    for (uint64_t back = 0; c->log && (line = mr_hazard_log_back(c, back)); back++) {
        if (line->where.line != where || !line->where.file) continue;
        if (file && strcmp(file, line->where.file) != 0) continue;
        bool work = line->kind == MR_ACTION_OP || line->kind == MR_ACTION_COPY ||
                    line->kind == MR_ACTION_HOST_FUNCTION || line->kind == MR_ACTION_HOST_ACCESS ||
                    line->kind == MR_ACTION_FREE;
        if (work) return line->seq;
        if (!other) other = line->seq;
    }
    return other;
}
