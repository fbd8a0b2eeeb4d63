/* The log: the last few thousand commands, in the order of the host's calls. Only explaining reads it. */
#include "hazard/state.h"

#include <stdlib.h>
#include <string.h>

static void log_event(log_line *line, const mr_command *command) {
    const mr_event *event = command->u.event.event;
    const snapshot *s = mr_hazard_snapshot_of(command);
    line->event = event->id;
    mr_name_keep(&line->event_name, event->name);
    line->bound = s ? s->seq : command->u.event.record_seq;
    line->bound_stream = s ? s->actor->id : 0;
}

mr_order_facts mr_hazard_line_facts(const log_line *line) {
    mr_order_facts facts = mr_order_facts_of_kind(line->kind, line->lane);
    if (line->walls) facts |= MR_FACT_WALL;
    if (line->meeting) facts |= MR_FACT_MEETS;
    if (line->copy.until_done) facts |= MR_FACT_FOR_ITSELF;
    return line->copy.reads_source ? facts | MR_FACT_FOR_EARLIER : facts;
}

/* What a free's memory waits for, beside the place of the free itself. */
static void log_guards(checker *c, log_line *line, const mr_storage *storage) {
    const mr_stream *owner = storage->stream && storage->stream->closed ? storage->stream : NULL;
    size_t count = storage->used_by.count + (owner != NULL);
    if (!count) return;
    line->guards = calloc(count, sizeof *line->guards);
    if (!line->guards) {
        c->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < storage->used_by.count; i++)
        line->guards[line->guard_count++] =
            (log_guard){storage->used_by.items[i]->id, MR_PLACE_USERS};
    if (owner) line->guards[line->guard_count++] = (log_guard){owner->id, MR_PLACE_OWNER};
}

static node_place node_place_of(const mr_command *node) {
    if (node->placed) return (node_place){node->placed, node->launched};
    return (node_place){node->stream, node->where};
}

/* A node without a `node` of its own is in no other graph. */
static void log_node(log_line *line, const mr_command *node) {
    line->outer = line->inner = (node_place){0};
    line->captured_on = node ? node->stream : NULL;
    if (!node) return;
    line->outer = node_place_of(node);
    if (node->node) line->inner = node_place_of(node->node);
}

/* One more than is kept, for a newest line that may be taken back. */
#define MOST_LINES  ((uint64_t)MR_HAZARD_LOG + 1)
#define FIRST_LINES 64

static bool make_lines(checker *c, uint64_t wanted) {
    if (wanted > MOST_LINES) wanted = MOST_LINES;
    log_line *lines = realloc(c->log.lines, wanted * sizeof *lines);
    if (!lines) return false;
    memset(lines + c->log.made, 0, (wanted - c->log.made) * sizeof *lines);
    c->log.lines = lines;
    c->log.made = wanted;
    return true;
}

/* Without memory it takes the place of the line before. */
static log_line *next_line(checker *c) {
    bool is_made = c->log.count < c->log.made || c->log.made == MOST_LINES;
    if (!is_made && !make_lines(c, 2 * c->log.made)) {
        c->out_of_memory = true;
        c->log.count--;
    }
    return &c->log.lines[c->log.count++ % MOST_LINES];
}

void mr_hazard_log_command(checker *c, const mr_command *command) {
    log_line *line = next_line(c);
    const mr_stream *stream = mr_command_frees_at_once(command) ? NULL : command->stream;
    line->seq = command->seq;
    line->kind = command->kind;
    line->stream = stream ? stream->id : 0;
    mr_name_keep(&line->stream_name, stream ? stream->name : NULL);
    line->device = stream ? stream->device->index : -1;
    line->lane = stream ? mr_order_facts_of_stream(stream->kind, stream->blocking) : 0;
    line->legacy = stream && stream->kind == MR_STREAM_LEGACY;
    line->per_thread = stream && stream->kind == MR_STREAM_PER_THREAD;
    line->op = command->name;
    mr_name_keep(&line->op_name, command->own_name);
    line->where = command->where;
    line->inside = command->kind == MR_COMMAND_HOST_ACCESS && c->machine->host_function.command;
    const mr_command *by = line->inside ? c->machine->host_function.command : command;
    line->launched = by->launched;
    line->launch = by->launch;
    log_node(line, by->node);
    if (by->node || by->launched.file) c->log.has_nodes = true;
    line->event = 0;
    line->bound = 0;
    line->synchronous = command->kind == MR_COMMAND_COPY && command->u.copy.synchronous;
    line->copy = (mr_order_copy_rules){0};
    line->walls = 0;
    line->meeting = command->meeting ? command->seq - command->member : 0;
    line->sources = command->meeting ? command->meeting->members[command->member].from : 0;
    line->member = command->member;
    line->host = c->hosts.number;
    line->world = c->hosts.worlds;
    if (line->inside) line->seq = by->seq;
    free(line->guards);
    line->guards = NULL;
    line->guard_count = 0;
    if (command->kind == MR_COMMAND_FREE) log_guards(c, line, command->u.storage);
    switch (mr_command_kinds[command->kind].part) {
    case MR_PART_COPY:
        line->copy = mr_order_copy_guaranteed(command);
        line->walls = mr_order_walls(command);
        break;
    case MR_PART_DEVICE: line->device = command->u.device->index; break;
    case MR_PART_EVENT: log_event(line, command); break;
    case MR_PART_NONE:
    case MR_PART_OP:
    case MR_PART_MEMORY:
    case MR_PART_HOST:
    case MR_PART_FAULT:
    case MR_PART_ACCOUNT: break;
    }
}

void mr_hazard_log_stream_gone(checker *c, const mr_stream *stream) {
    for (uint64_t i = 0; c->log.has_nodes && i < c->log.made; i++) {
        log_line *line = &c->log.lines[i];
        if (line->captured_on == stream) line->captured_on = NULL;
        if (line->outer.stream == stream) line->outer.stream = NULL;
        if (line->inner.stream == stream) line->inner.stream = NULL;
    }
}

void mr_hazard_log_take_back(checker *c) {
    c->log.count--;
}

bool mr_hazard_log_open(checker *c) {
    c->log.count = 0;
    return c->log.lines || make_lines(c, FIRST_LINES);
}

void mr_hazard_log_free(checker *c) {
    for (uint64_t i = 0; i < c->log.made; i++) {
        mr_name_release(c->log.lines[i].op_name);
        mr_name_release(c->log.lines[i].stream_name);
        mr_name_release(c->log.lines[i].event_name);
        free(c->log.lines[i].guards);
    }
    free(c->log.lines);
    c->log.lines = NULL;
    c->log.made = 0;
    c->log.has_nodes = false;
}

uint64_t mr_hazard_log_kept(const checker *c) {
    return c->log.count < MR_HAZARD_LOG ? c->log.count : MR_HAZARD_LOG;
}

const log_line *mr_hazard_log_back(const checker *c, uint64_t back) {
    return back < mr_hazard_log_kept(c) ? &c->log.lines[(c->log.count - 1 - back) % MOST_LINES]
                                        : NULL;
}

const log_line *mr_hazard_log_find(const checker *c, uint64_t seq) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++)
        if (line->seq == seq) return line;
    return NULL;
}

uint16_t mr_hazard_log_rank(const checker *c, uint64_t seq, uint16_t otherwise) {
    const log_line *line = mr_hazard_log_find(c, seq);
    return line ? line->host : otherwise;
}

/* Ignores lines before a reset: a replay runs the same lines again. `is_whole`: by the whole name of the file,
 * otherwise by its end. */
static uint64_t find_operation(const checker *c, const char *file, int where, bool is_whole) {
    const log_line *line;
    uint64_t other = 0;
    for (uint64_t back = 0; c->log.lines && (line = mr_hazard_log_back(c, back)); back++) {
        if (line->kind == MR_COMMAND_RESET) break;
        if ((where && line->where.line != where) || !line->where.file) continue;
        if (file && is_whole && strcmp(file, line->where.file) != 0) continue;
        if (file && !mr_hazard_file_ends(line->where.file, file)) continue;
        bool work = mr_hazard_line_is(line, MR_TRAIT_LAUNCH | MR_TRAIT_TOUCH) ||
                    line->kind == MR_COMMAND_FREE;
        if (work) return line->seq;
        if (!other) other = line->seq;
    }
    return other;
}

uint64_t mr_hazard_find_operation(const mr_hazard *c, const char *file, int where) {
    uint64_t seq = find_operation(c, file, where, true);
    return seq || !file ? seq : find_operation(c, file, where, false);
}
