/* Outcomes: how many schedules came to each value, and the simplest of them, told as steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "explore/search.h"

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
    return (hash ^ hash >> 29) >> 1;
}

static mr_explore_outcome *find(const explorer *e, uint64_t hash, const mr_buffer *value) {
    for (size_t *i = mr_map_find(&e->places, hash); i; i = mr_map_again(&e->places, i)) {
        mr_explore_outcome *o = &e->result->outcomes.items[*i];
        if (o->size == value->size && (!o->size || !memcmp(o->value, value->data, o->size)))
            return o;
    }
    return NULL;
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
    case ITEM_ALLOC: /* what goes before it decides what memory it gets */
        return b->order.aliases && !b->clean;
    case ITEM_PLAIN:
    case ITEM_WORK:
    case ITEM_COPY:
    case ITEM_LOOK:
    case ITEM_REFUSED: break;
    }
    return false;
}

/* The free of the memory that an allocation found; NULL: nobody of the program had it before. */
static const mr_player_item *find_freed(const branch *b, uint32_t alloc) {
    const mr_player_item *items = b->order.items;
    if (b->clean || items[alloc].item.kind != MR_COMMAND_ALLOC || items[alloc].item.failed)
        return NULL;
    for (uint32_t k = alloc; k-- > 0;)
        if (items[k].item.kind == MR_COMMAND_FREE && !items[k].item.failed &&
            branch_share_memory(items[k].command->u.storage, items[alloc].command->u.storage))
            return &items[k];
    return NULL;
}

static const char *name_of(const branch *b, uint32_t storage) {
    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t k = 0; k < b->order.items[i].item.operand_count; k++) {
            mr_program_operand o = mr_program_operand_at(b->program, i, k);
            if (o.storage == storage && o.name) return o.name;
        }
    return NULL;
}

/* "reuses the memory of `x` (freed at a.lua:9)" */
static void write_reuse(const explorer *e, const branch *b, const mr_player_item *freed,
                        mr_buffer *out) {
    const char *name = name_of(b, freed->item.storage);
    mr_buffer_puts(out, "reuses the memory of ");
    if (name) {
        mr_buffer_puts(out, "`");
        mr_text_put(out, name);
        mr_buffer_puts(out, "`");
    } else {
        mr_buffer_puts(out, "the tensor of ");
        write_place(e, freed->command->u.storage->made, out);
    }
    mr_buffer_puts(out, freed->item.where.file ? " (freed at " : " (freed by the collector");
    write_place(e, freed->item.where, out);
    mr_buffer_puts(out, ")");
}

static void write_host_step(const explorer *e, const branch *b, uint32_t item, mr_buffer *out) {
    mr_player_item it = b->order.items[item];
    const mr_player_item *freed = find_freed(b, item);
    if (freed) write_reuse(e, b, freed, out);
    else mr_buffer_printf(out, "%-24s", it.item.name ? it.item.name : "?");
    mr_buffer_printf(out, " %-12s ", "host");
    write_place(e, it.item.where, out);
    mr_buffer_puts(out, "\n");
}

/* A run has streams of its own; a person is told one number for the same stream of all runs. */
static uint32_t number_of(const explorer *e, const mr_player_item *it) {
    if (!e->first || it->item.stream >= mr_program_stream_count(e->first)) return it->stream->id;
    return mr_program_stream_at(e->first, it->item.stream).id;
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
    write_place(e, it.item.where, out);
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
        return mr_no_memory("for an outcome");
    }
    free(o->schedule);
    free(o->steps);
    o->schedule = schedule.data;
    o->steps = steps.data;
    return MR_OK;
}

/* ---- counting */

static mr_status add_outcome(explorer *e, uint64_t hash, const mr_buffer *value, size_t text_size,
                             mr_explore_outcome **out_added) {
    mr_explore_outcome o = {.size = value->size, .text_size = text_size, .switches = UINT32_MAX};
    if (value->size > MOST_BYTES)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "the function returns %zu bytes; at most %zu can be an outcome: return a "
                       "sum, or a part of the tensor",
                       value->size, MOST_BYTES);
    size_t count = e->result->outcomes.count;
    o.value = mr_vec_reserve_one(&e->result->outcomes) ? malloc(value->size + 1) : NULL;
    size_t *index = o.value ? mr_map_insert(&e->places, hash) : NULL;
    if (!index) {
        free(o.value);
        return mr_no_memory("for an outcome");
    }
    if (value->size) memcpy(o.value, value->data, value->size);
    o.value[value->size] = 0;
    *index = count;
    mr_vec_push(&e->result->outcomes, o);
    *out_added = &e->result->outcomes.items[count];
    return MR_OK;
}

mr_status outcome_count(explorer *e, const branch *b, const plan *schedule, const mr_buffer *value,
                        size_t text_size) {
    mr_explore_result *result = e->result;
    uint64_t hash = hash_of(value);
    mr_explore_outcome *o = find(e, hash, value);
    if (!o) {
        if (result->outcomes.count == MOST_OUTCOMES) {
            explore_incomplete(e,
                               "it stopped after %d different outcomes: return less, such as a sum",
                               MOST_OUTCOMES);
            e->stop = true;
            return MR_OK;
        }
        MR_TRY(add_outcome(e, hash, value, text_size, &o));
    }
    o->count++;
    uint32_t switches = count_switches(b, schedule), length = (uint32_t)schedule->steps.count;
    if (switches > o->switches || (switches == o->switches && length >= o->length)) return MR_OK;
    o->switches = switches;
    o->length = length;
    return outcome_keep_schedule(e, o, b, schedule);
}

/* ---- what was not tried */

#define MOST_UNTRIED 6 /* lines */

static void write_command(const explorer *e, const branch *b, uint32_t item, mr_buffer *out) {
    mr_program_item it = mr_program_item_at(b->program, item);
    mr_buffer_printf(out, "`%.60s`", it.name ? it.name : mr_command_kinds[it.kind].name);
    if (!it.where.file) return;
    mr_buffer_puts(out, " (");
    write_place(e, it.where, out);
    mr_buffer_puts(out, ")");
}

/* The choice that the frame has left. */
static void write_choice(const search *s, const frame *f, mr_buffer *out) {
    const order_node *nodes = s->o->nodes.items;
    switch (f->kind) {
    case DECIDE_PAIR:
        write_command(s->e, s->b, nodes[f->at.node].item, out);
        mr_buffer_puts(out, " before ");
        write_command(s->e, s->b, nodes[f->at.other].item, out);
        break;
    case DECIDE_QUERY:
        write_command(s->e, s->b, f->at.item, out);
        mr_buffer_puts(out, " says no");
        break;
    case DECIDE_PLACE:
        write_command(s->e, s->b, f->at.item, out);
        mr_buffer_puts(out, " gets other memory");
        break;
    case DECIDE_OPEN:
        write_command(s->e, s->b, f->at.item, out);
        mr_buffer_puts(out, " behaves in the other way that CUDA permits");
        break;
    }
    mr_buffer_puts(out, "\n");
}

static bool has_line(const mr_buffer *lines, const char *line) {
    return lines->data && strstr(lines->data, line) != NULL;
}

/* The searches end from the inside out, and the frames that are left stand for the larger parts the further out they
 * are. */
void search_note_untried(const search *s) {
    mr_explore_result *r = s->e->result;
    for (size_t i = 0; i < s->frames.count; i++) {
        mr_buffer line = {0};
        if (s->frames.items[i].second) continue;
        r->untried_count++;
        write_choice(s, &s->frames.items[i], &line);
        if (line.data && s->e->untried_lines < MOST_UNTRIED && !has_line(&r->untried, line.data)) {
            mr_buffer_add(&r->untried, line.data, line.size);
            mr_buffer_puts(&r->untried, "");
            s->e->untried_lines++;
        }
        mr_buffer_free(&line);
    }
}
