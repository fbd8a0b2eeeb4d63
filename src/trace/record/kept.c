/* Entries, streams and runs of a tracer: see kept.h. */
#include "trace/record/kept.h"

#include <stdio.h>
#include <string.h>

#include "tensor/tensor.h"

static void drop_names(kept_entry *entry) {
    mr_name_release(entry->own_name);
    mr_name_release(entry->object);
    for (uint32_t i = 0; i < entry->access_count; i++) mr_name_release(entry->accesses[i].name);
    free(entry->accesses);
}

void mr_kept_open(mr_kept *kept, size_t most, uint64_t runs_told) {
    size_t capacity = KEPT_SEGMENT;
    while (most && capacity < most && capacity < SIZE_MAX / 2) capacity *= 2;
    *kept = (mr_kept){.most = most, .mask = most ? capacity - 1 : SIZE_MAX, .log_first = runs_told};
}

void mr_kept_free(mr_kept *kept) {
    for (size_t i = 0; i < kept_count(kept); i++) drop_names(kept_at(kept, i));
    for (size_t i = 0; i < kept->segments.count; i++) free(kept->segments.items[i]);
    mr_vec_free(&kept->segments);
    for (size_t i = 0; i < kept->earlier.count; i++) drop_names(&kept->earlier.items[i]);
    mr_vec_free(&kept->earlier);
    mr_vec_free(&kept->log);
    for (size_t i = 0; i < kept->streams.count; i++) free(kept->streams.items[i].name);
    mr_vec_free(&kept->streams);
    mr_vec_free(&kept->stream_of_id);
}

/* ---- entries */

static bool add_segment(mr_kept *kept) {
    kept_entry *segment = NULL;
    if (mr_vec_reserve_one(&kept->segments)) segment = malloc(KEPT_SEGMENT * sizeof *segment);
    if (segment) kept->segments.items[kept->segments.count++] = segment;
    else kept->out_of_memory = true;
    return segment != NULL;
}

kept_entry *mr_kept_add(mr_kept *kept, uint64_t seq) {
    if (kept->most && kept_count(kept) == kept->most) {
        drop_names(kept_at(kept, 0));
        kept->forgotten++;
    }
    size_t slot = (size_t)kept->added & kept->mask;
    if (slot / KEPT_SEGMENT == kept->segments.count && !add_segment(kept)) return NULL;
    kept->added++;
    size_t at = kept_count(kept) - 1;
    for (; at && kept_at(kept, at - 1)->seq > seq; at--)
        *kept_at(kept, at) = *kept_at(kept, at - 1);
    kept_entry *entry = kept_at(kept, at);
    *entry = (kept_entry){.seq = seq};
    return entry;
}

kept_entry *mr_kept_add_earlier(mr_kept *kept, uint64_t seq) {
    if (!mr_vec_reserve_one(&kept->earlier)) {
        kept->out_of_memory = true;
        return NULL;
    }
    kept_entry *items = kept->earlier.items;
    size_t at = kept->earlier.count++;
    for (; at && items[at - 1].seq > seq; at--) items[at] = items[at - 1];
    items[at] = (kept_entry){.seq = seq};
    return &items[at];
}

/* Numbers have few holes, so the place is known but for these. */
static kept_entry *find_in_ring(const mr_kept *kept, uint64_t seq) {
    if (kept->added == kept->forgotten) return NULL;
    size_t low = 0, high = kept_count(kept) - 1;
    uint64_t lowest = kept_at(kept, 0)->seq, highest = kept_at(kept, high)->seq;
    if (seq < lowest || seq > highest) return NULL;
    if (highest - seq < high) low = high - (size_t)(highest - seq);
    if (seq - lowest < high) high = (size_t)(seq - lowest);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (kept_at(kept, middle)->seq < seq) low = middle + 1;
        else high = middle;
    }
    kept_entry *entry = kept_at(kept, low);
    return entry->seq == seq ? entry : NULL;
}

static kept_entry *find_earlier(const mr_kept *kept, uint64_t seq) {
    size_t low = 0, high = kept->earlier.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (kept->earlier.items[middle].seq < seq) low = middle + 1;
        else high = middle;
    }
    if (low == kept->earlier.count || kept->earlier.items[low].seq != seq) return NULL;
    return &kept->earlier.items[low];
}

kept_entry *mr_kept_find(mr_kept *kept, uint64_t seq) {
    kept_entry *entry = find_in_ring(kept, seq);
    return entry ? entry : find_earlier(kept, seq);
}

/* ---- accesses */

static kept_access access_of(const mr_command *command, uint32_t i) {
    const mr_operand *operand = &command->operands[i];
    const mr_tensor *tensor = operand->tensor;
    const mr_storage *storage = tensor->storage;
    kept_access kept = {.access = {.memory = storage->id,
                                   .made = storage->made,
                                   .writes = (operand->access & MR_WRITE) != 0},
                        .name = mr_name_retain(tensor->name ? tensor->name : storage->name)};
    mr_trace_access *access = &kept.access;
    mr_tensor_extent(tensor, &access->first, &access->end);
    access->is_dense = access->end - access->first ==
                       (uint64_t)tensor->numel * mr_dtype_size((mr_dtype)tensor->dtype);
    access->by_host =
        command->kind == MR_COMMAND_COPY && !access->writes && storage->kind == MR_MEMORY_PAGEABLE;
    return kept;
}

void mr_kept_note_accesses(mr_kept *kept, kept_entry *entry, const mr_command *command) {
    if (!command->operand_count) return;
    entry->accesses = malloc(command->operand_count * sizeof *entry->accesses);
    if (!entry->accesses) {
        kept->out_of_memory = true;
        return;
    }
    for (uint32_t i = 0; i < command->operand_count; i++)
        if (command->operands[i].tensor)
            entry->accesses[entry->access_count++] = access_of(command, i);
}

/* ---- streams */

static char *name_of(const mr_stream *stream) {
    char text[80];
    if (stream->name) return strdup(stream->name->text);
    mr_stream_describe(stream, text, sizeof text);
    return strdup(strncmp(text, "the ", 4) == 0 ? text + 4 : text);
}

static bool meet(mr_kept *kept, const mr_stream *stream) {
    kept_stream met = {.stream = {.id = stream->id,
                                  .device = stream->device->index,
                                  .priority = stream->priority,
                                  .is_legacy_default = stream->kind == MR_STREAM_LEGACY,
                                  .is_blocking = stream->blocking},
                       .name = name_of(stream)};
    if (!met.name) return false;
    if (mr_vec_push(&kept->streams, met)) return true;
    free(met.name);
    return false;
}

uint32_t mr_kept_stream(mr_kept *kept, const mr_stream *stream) {
    if (!stream) return MR_TRACE_NONE;
    if (stream->id < kept->stream_of_id.count && kept->stream_of_id.items[stream->id])
        return kept->stream_of_id.items[stream->id] - 1;
    while (kept->stream_of_id.count <= stream->id)
        if (!mr_vec_push(&kept->stream_of_id, 0)) {
            kept->out_of_memory = true;
            return MR_TRACE_NONE;
        }
    if (!meet(kept, stream)) {
        kept->out_of_memory = true;
        return MR_TRACE_NONE;
    }
    kept->stream_of_id.items[stream->id] = (uint32_t)kept->streams.count;
    return (uint32_t)kept->streams.count - 1;
}

/* ---- runs */

void mr_kept_fold(kept_times *times, const mr_run *run) {
    if (!times->begun || run->begin < times->begin) {
        times->ready = run->ready;
        times->begin = run->begin;
        times->held_by = (uint8_t)run->held_by;
        times->holder = run->holder;
    }
    if (run->end > times->end) times->end = run->end;
    times->begun = true;
    times->engine = (uint8_t)run->engine;
    times->blocks = run->blocks;
    times->done |= run->last;
}

void mr_kept_settle(mr_kept *kept, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const kept_run *told = &kept->log.items[i];
        kept_entry *entry = mr_kept_find(kept, told->seq);
        if (entry) mr_kept_fold(&entry->times, &told->run);
    }
    kept->log.count -= count;
    kept->log_first += count;
    if (kept->log.count)
        memmove(kept->log.items, kept->log.items + count,
                kept->log.count * sizeof *kept->log.items);
}

void mr_kept_undo(mr_kept *kept, uint64_t runs_told) {
    if (runs_told < kept->log_first) {
        kept->log_first = runs_told;
        kept->log.count = 0;
    } else if (runs_told - kept->log_first < kept->log.count) {
        kept->log.count = (size_t)(runs_told - kept->log_first);
    }
}
