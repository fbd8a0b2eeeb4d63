/* Outcomes: how many schedules came to each value, and the simplest of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore/search.h"
#include "explore/tell.h"

#define MOST_OUTCOMES 10000
#define MOST_BYTES    ((size_t)16 << 20) /* of one value */
#define SHOWN         8                  /* whose values become text, */
#define COPIES        4 /* which takes so many copies: tensors, and bytes that are compared */

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

/* ---- the schedule */

static uint32_t count_switches(const branch *b, const plan *p) {
    uint32_t switches = 0, lane = 0;
    for (size_t i = 0; i < p->steps.count; i++) {
        uint32_t next = mr_program_stream_of(b->program, p->steps.items[i].command);
        switches += i && next != lane;
        lane = next;
    }
    return switches;
}

/* All texts, one behind the other, in memory that is kept. */
static bool write_texts(explorer *e, const branch *b, const plan *p, size_t *out_ends) {
    mr_buffer *all = &e->texts;
    all->size = 0;
    plan_write(p, all);
    out_ends[0] = all->size;
    tell_steps(e, b, p, all);
    out_ends[1] = all->size;
    tell_difference(e, b, p, all);
    out_ends[2] = all->size;
    return !all->failed;
}

mr_status outcome_keep_schedule(explorer *e, mr_explore_outcome *o, const branch *b,
                                const plan *p) {
    size_t ends[3], from = 0;
    char **const texts[] = {&o->schedule, &o->steps, &o->difference}, *copies[3] = {0};
    bool fine = write_texts(e, b, p, ends);
    for (int i = 0; i < 3 && fine; from = ends[i++]) {
        size_t size = ends[i] - from;
        fine = (copies[i] = malloc(size + 1)) != NULL;
        if (!fine) break;
        memcpy(copies[i], e->texts.data + from, size);
        copies[i][size] = '\0';
    }
    for (int i = 0; i < 3; i++) {
        if (fine && *texts[i]) e->outcome_bytes -= strlen(*texts[i]);
        if (fine) free(*texts[i]);
        if (fine) *texts[i] = copies[i];
        else free(copies[i]);
    }
    if (fine) e->outcome_bytes += ends[2];
    return fine ? MR_OK : mr_no_memory("for an outcome");
}

/* ---- counting */

static mr_status add_outcome(explorer *e, uint64_t hash, const mr_buffer *value, size_t text_size,
                             mr_explore_outcome **out_added) {
    mr_explore_outcome o = {.size = value->size, .text_size = text_size, .overtaken = UINT32_MAX};
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
    e->outcome_bytes += count < SHOWN ? COPIES * value->size : value->size;
    mr_vec_push(&e->result->outcomes, o);
    *out_added = &e->result->outcomes.items[count];
    return MR_OK;
}

/* Simpler: fewer pairs against the order of submission; if equal, fewer changes of stream; if equal, fewer steps. */
static bool is_simpler(const mr_explore_outcome *a, const mr_explore_outcome *b) {
    if (a->overtaken != b->overtaken) return a->overtaken < b->overtaken;
    if (a->switches != b->switches) return a->switches < b->switches;
    return a->length < b->length;
}

void outcome_forget_all(explorer *e) {
    mr_explore_result *result = e->result;
    for (size_t i = 0; i < result->outcomes.count; i++)
        mr_explore_outcome_free(&result->outcomes.items[i]);
    result->outcomes.count = 0;
    e->outcome_bytes = 0;
    mr_map_free(&e->places);
}

mr_status outcome_count(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                        const mr_buffer *value, size_t text_size) {
    outcome_met met;
    return outcome_meet(e, b, schedule, overtaken, value, text_size, &met);
}

mr_status outcome_meet(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                       const mr_buffer *value, size_t text_size, outcome_met *out_met) {
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
        result->schedules += e->again;
        o->count += e->again;
    }
    o->count += !e->again;
    *out_met = (outcome_met){.index = (size_t)(o - result->outcomes.items)};
    mr_explore_outcome is = {.overtaken = overtaken,
                             .switches = count_switches(b, schedule),
                             .length = (uint32_t)schedule->steps.count};
    out_met->is_simplest = is_simpler(&is, o);
    if (!out_met->is_simplest) return MR_OK;
    o->overtaken = overtaken;
    o->switches = is.switches;
    o->length = is.length;
    return outcome_keep_schedule(e, o, b, schedule);
}

/* ---- what a worker has counted (workers.h) */

bool outcome_has_room(const explorer *e, size_t more) {
    return e->result->outcomes.count + more <= MOST_OUTCOMES;
}

mr_status outcome_find_or_add(explorer *e, const char *value, size_t size, size_t text_size,
                              uint32_t *out_index) {
    mr_buffer bytes = {.data = (char *)value, .size = size};
    uint64_t hash = hash_of(&bytes);
    mr_explore_outcome *o = find(e, hash, &bytes);
    if (!o) MR_TRY(add_outcome(e, hash, &bytes, text_size, &o));
    *out_index = (uint32_t)(o - e->result->outcomes.items);
    return MR_OK;
}

mr_status outcome_add_part(explorer *e, const outcome_part *part) {
    mr_explore_outcome *o = &e->result->outcomes.items[part->index];
    const mr_explore_outcome is = {
        .overtaken = part->overtaken, .switches = part->switches, .length = part->length};
    char **const texts[] = {&o->schedule, &o->steps, &o->difference};
    o->count += part->count;
    if (!part->texts[0] || !is_simpler(&is, o)) return MR_OK;
    for (int i = 0; i < 3; i++) {
        char *copy = strdup(part->texts[i]);
        if (!copy) return mr_no_memory("for an outcome");
        if (*texts[i]) e->outcome_bytes -= strlen(*texts[i]);
        e->outcome_bytes += strlen(copy);
        free(*texts[i]);
        *texts[i] = copy;
    }
    o->overtaken = is.overtaken;
    o->switches = is.switches;
    o->length = is.length;
    return MR_OK;
}

/* ---- what was not tried */

#define MOST_UNTRIED 6 /* lines */

/* Writes the choice that the frame has not taken. */
static void write_choice(const search *s, const frame *f, mr_buffer *out) {
    switch (f->kind) {
    case DECIDE_PAIR: tell_pair(s->e, s->b, f->at.node, f->at.other, true, out); break;
    case DECIDE_QUERY: tell_no(s->e, s->b, f->at.item, out); break;
    case DECIDE_PLACE:
        tell_command(s->e, s->b, f->at.item, out);
        mr_buffer_puts(out, " gets other memory");
        break;
    case DECIDE_TURN: tell_turn(s->e, s->b, f->at.turn, 0, out); break;
    case DECIDE_OPEN:
        tell_command(s->e, s->b, f->at.item, out);
        mr_buffer_puts(out, " behaves in the other way that CUDA permits");
        break;
    }
    mr_buffer_puts(out, "\n");
}

static bool has_line(const mr_buffer *lines, const char *line) {
    return lines->data && strstr(lines->data, line) != NULL;
}

/* Searches end from the inside out; frames further out stand for larger parts of the tree. */
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
