/* Outcomes: how many schedules came to each value, and the simplest of them, told as steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "explore/state.h"

#define MOST_OUTCOMES 10000
#define MOST_BYTES    ((size_t)16 << 20) /* of one value */

static uint64_t hash_of(const mr_buffer *value) {
    const unsigned char *bytes = (const unsigned char *)value->data;
    uint64_t hash = value->size;
    size_t size = value->size;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 0x9fb21c651e98df25u;
        hash ^= hash >> 32;
    }
    for (; size; size--, bytes++) hash = (hash ^ *bytes) * 1099511628211u;
    return hash ^ hash >> 29;
}

/* ---- the table */

void outcome_table_free(outcome_table *table) {
    free(table->places);
    *table = (outcome_table){0};
}

/* Its place, or an empty one; indices count from 1 there. */
static outcome_place *find_place(const outcome_table *table, const mr_explore_result *result,
                                 uint64_t hash, const mr_buffer *value) {
    for (size_t i = hash & (table->capacity - 1);; i = (i + 1) & (table->capacity - 1)) {
        outcome_place *p = &table->places[i];
        if (!p->index) return p;
        const mr_explore_outcome *o = &result->outcomes.items[p->index - 1];
        if (p->hash == hash && o->size == value->size &&
            (!o->size || !memcmp(o->value, value->data, o->size)))
            return p;
    }
}

static bool grow(outcome_table *table, size_t outcomes) {
    if (outcomes * 2 < table->capacity) return true;
    outcome_table larger = {.capacity = table->capacity ? table->capacity * 2 : 64};
    larger.places = calloc(larger.capacity, sizeof *larger.places);
    if (!larger.places) return false;
    for (size_t i = 0; i < table->capacity; i++) {
        if (!table->places[i].index) continue;
        size_t at = table->places[i].hash & (larger.capacity - 1);
        while (larger.places[at].index) at = (at + 1) & (larger.capacity - 1);
        larger.places[at] = table->places[i];
    }
    outcome_table_free(table);
    *table = larger;
    return true;
}

/* ---- the schedule, told */

static uint32_t lane_of(const branch *b, uint32_t item) {
    return b->order.nodes.items[b->order.first_node[item + 1] - 1].lane;
}

static uint32_t count_switches(const branch *b, const plan *p) {
    uint32_t switches = 0;
    for (size_t i = 1; i < p->steps.count; i++)
        switches +=
            lane_of(b, p->steps.items[i].command) != lane_of(b, p->steps.items[i - 1].command);
    return switches;
}

static void write_place(const explorer *e, mr_site where, mr_buffer *out) {
    where = explore_shown(e, where);
    if (where.file) mr_buffer_printf(out, "%s:%d", where.file, where.line);
}

/* What the host does that a person wants to see between the commands. */
static bool is_shown(const branch *b, uint32_t item) {
    mr_program_item it = mr_program_item_at(b->program, item);
    if (it.kind == MR_COMMAND_DRAIN || !it.where.file) return false;
    switch ((item_class)b->classes[item]) {
    case ITEM_HOST:
    case ITEM_WAIT:
    case ITEM_QUERY: return true;
    case ITEM_ALLOC: return b->order.aliases; /* what goes before it decides what memory it gets */
    default: return false;
    }
}

/* The free of the memory that an allocation found; NULL: nobody of the program had it before. */
static const mr_player_item *find_freed(const branch *b, uint32_t alloc) {
    const mr_player_item *items = b->order.items;
    if (items[alloc].kind != MR_COMMAND_ALLOC || items[alloc].failed) return NULL;
    for (uint32_t k = alloc; k-- > 0;)
        if (items[k].kind == MR_COMMAND_FREE && !items[k].failed &&
            branch_share_memory(items[k].command->u.storage, items[alloc].command->u.storage))
            return &items[k];
    return NULL;
}

static const char *name_of(const branch *b, uint32_t storage) {
    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t k = 0; k < b->order.items[i].operand_count; k++) {
            mr_program_operand o = mr_program_operand_at(b->program, i, k);
            if (o.storage == storage && o.name) return o.name;
        }
    return NULL;
}

/* "reuses the memory of `x` (freed at a.lua:9)" */
static void write_reuse(const explorer *e, const branch *b, const mr_player_item *freed,
                        mr_buffer *out) {
    const char *name = name_of(b, freed->storage_slot);
    mr_buffer_puts(out, "reuses the memory of ");
    if (name) {
        mr_buffer_puts(out, "`");
        mr_text_put(out, name);
        mr_buffer_puts(out, "`");
    } else {
        mr_buffer_puts(out, "the tensor of ");
        write_place(e, freed->command->u.storage->made, out);
    }
    mr_buffer_puts(out, freed->where.file ? " (freed at " : " (freed by the collector");
    write_place(e, freed->where, out);
    mr_buffer_puts(out, ")");
}

static void write_host_step(const explorer *e, const branch *b, uint32_t item, mr_buffer *out) {
    mr_player_item it = b->order.items[item];
    const mr_player_item *freed = find_freed(b, item);
    if (freed) write_reuse(e, b, freed, out);
    else mr_buffer_printf(out, "%-24s", it.name ? it.name : "?");
    mr_buffer_printf(out, " %-12s ", "host");
    write_place(e, it.where, out);
    mr_buffer_puts(out, "\n");
}

/* A run has streams of its own; a person is told one number for the same stream of all runs. */
static uint32_t number_of(const explorer *e, const mr_player_item *it) {
    if (!e->first || it->stream_slot >= mr_program_stream_count(e->first)) return it->stream->id;
    return mr_program_stream_at(e->first, it->stream_slot).id;
}

static void write_step(const explorer *e, const branch *b, const plan_step *step, mr_buffer *out) {
    char stream[80], name[120];
    uint32_t item = step->command;
    mr_player_item it = b->order.items[item];
    const order_node *n = &b->order.nodes.items[b->order.first_node[item + 1] - 1];
    snprintf(name, sizeof name, n->parts > 1 ? "%.100s, a part" : "%.100s",
             it.command->name ? it.command->name : "?");
    if (it.stream->name) snprintf(stream, sizeof stream, "%.60s", it.stream->name->text);
    else if (it.stream->kind == MR_STREAM_LEGACY) snprintf(stream, sizeof stream, "default");
    else snprintf(stream, sizeof stream, "stream #%u", number_of(e, &it));
    mr_buffer_printf(out, "%-24s %-12s ", name, stream);
    write_place(e, it.where, out);
    mr_buffer_puts(out, "\n");
}

static void write_steps(const explorer *e, const branch *b, const plan *p, mr_buffer *out) {
    size_t next = 0;
    for (uint32_t item = 0; item <= b->count; item++) {
        for (; next < p->steps.count && p->steps.items[next].at <= item; next++)
            write_step(e, b, &p->steps.items[next], out);
        if (item < b->count && is_shown(b, item)) write_host_step(e, b, item, out);
    }
}

mr_status outcome_keep_schedule(const explorer *e, mr_explore_outcome *o, const branch *b,
                                const plan *p) {
    mr_buffer schedule = {0}, steps = {0};
    plan_write(p, &schedule);
    write_steps(e, b, p, &steps);
    mr_buffer_puts(&steps, "");
    if (schedule.failed || steps.failed) {
        mr_buffer_free(&schedule);
        mr_buffer_free(&steps);
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for an outcome");
    }
    free(o->schedule);
    free(o->steps);
    o->schedule = schedule.data;
    o->steps = steps.data;
    return MR_OK;
}

/* ---- counting */

static mr_status add_outcome(explorer *e, const mr_buffer *value, size_t text_size,
                             size_t *out_index) {
    mr_explore_outcome o = {.size = value->size, .text_size = text_size, .switches = UINT32_MAX};
    if (value->size > MOST_BYTES)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "the function returns %zu bytes; at most %zu can be an outcome: return a "
                       "sum, or a part of the tensor",
                       value->size, MOST_BYTES);
    if (!mr_vec_push(&e->result->outcomes, o))
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for an outcome");
    size_t count = e->result->outcomes.count;
    mr_explore_outcome *added = &e->result->outcomes.items[count - 1];
    added->value = malloc(value->size + 1);
    if (!added->value) {
        e->result->outcomes.count--;
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for an outcome");
    }
    if (value->size) memcpy(added->value, value->data, value->size);
    added->value[value->size] = 0;
    *out_index = count;
    return MR_OK;
}

mr_status outcome_count(explorer *e, const branch *b, const plan *schedule, const mr_buffer *value,
                        size_t text_size) {
    mr_explore_result *result = e->result;
    if (!grow(&e->table, result->outcomes.count + 1))
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for an outcome");
    uint64_t hash = hash_of(value);
    outcome_place *place = find_place(&e->table, result, hash, value);
    if (!place->index) {
        if (result->outcomes.count == MOST_OUTCOMES) {
            explore_incomplete(e,
                               "it stopped after %d different outcomes: return less, such as a sum",
                               MOST_OUTCOMES);
            e->stop = true;
            return MR_OK;
        }
        MR_TRY(add_outcome(e, value, text_size, &place->index));
        place->hash = hash;
    }
    mr_explore_outcome *o = &result->outcomes.items[place->index - 1];
    o->count++;
    uint32_t switches = count_switches(b, schedule), length = (uint32_t)schedule->steps.count;
    if (switches > o->switches || (switches == o->switches && length >= o->length)) return MR_OK;
    o->switches = switches;
    o->length = length;
    return outcome_keep_schedule(e, o, b, schedule);
}
