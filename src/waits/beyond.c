/* Orders by a wait that are not between accesses to tensors. These are two host functions, a host function and the
 * host's actions after the wait, the answer of a query, two atomic updates. They include a copy that may wait or not,
 * and later commands (R23). The checker does not follow the effects of these. So a wait whose removal changes such an
 * order is not called redundant.
 *
 * A first run with all waits notes each such order once, in its weakest form. For each stream it notes only the last
 * host function that comes before another one, since earlier functions come before that one. A run without some waits
 * checks exactly these orders. */
#include <stdlib.h>

#include "waits/parts.h"

/* Indices are stored plus one, so that 0 means no item. */
#define NONE 0

static bool comes_before(const wait_judge *j, uint32_t function, uint32_t stream) {
    size_t item = j->rounds->functions.items[function];
    mr_program_item it = mr_program_item_at(j->rounds->program, item);
    return mr_waits_judge_ordered(j, it.stream, it.seq, stream);
}

static uint32_t stream_of(const wait_judge *j, uint32_t function) {
    return mr_program_item_at(j->rounds->program, j->rounds->functions.items[function]).stream;
}

size_t mr_waits_end_of_code(const wait_judge *j) {
    return j->options->returned ? j->options->returned : j->rounds->items;
}

/* ---- host functions and the host */

/* Functions of a stream run in order. */
static void learn_what_ran(wait_judge *j, size_t i) {
    wait_beyond *b = &j->beyond;
    for (size_t lane = 0; lane < b->lanes && i <= mr_waits_end_of_code(j); lane++)
        for (uint32_t f = b->pending[lane]; f; f = b->pending[lane] = b->next[f - 1]) {
            if (j->rounds->functions.items[f - 1] >= i) break;
            if (!comes_before(j, f - 1, MR_PROGRAM_NONE)) break;
            b->known_from[f - 1] = i;
            if (!mr_vec_push(&b->by_known, f - 1)) mr_waits_judge_no_memory(j);
        }
}

static void check_what_ran(wait_judge *j, size_t i) {
    wait_beyond *b = &j->beyond;
    for (; b->known < b->by_known.count; b->known++) {
        uint32_t f = b->by_known.items[b->known];
        if (b->known_from[f] > i) return;
        if (comes_before(j, f, MR_PROGRAM_NONE)) continue;
        size_t second = b->known_from[f] < j->rounds->items ? b->known_from[f] : NO_ITEM;
        mr_waits_judge_add(j, (new_hazard){.lost = MR_LOST_FUNCTION,
                                           .first = j->rounds->functions.items[f],
                                           .second = second});
    }
}

/* ---- two host functions */

/* `function` is the next item. The set of items before a stream only grows. */
static void learn_pairs(wait_judge *j, uint32_t function) {
    wait_beyond *b = &j->beyond;
    uint32_t stream = stream_of(j, function), own = b->lane_of[stream];
    for (size_t lane = 0; lane < b->lanes; lane++) {
        uint32_t *known_to = &b->known_to[own * b->lanes + lane], last = NONE;
        while (lane != own && *known_to && *known_to - 1 < function &&
               comes_before(j, *known_to - 1, stream)) {
            last = *known_to;
            *known_to = b->next[last - 1];
        }
        if (last && !mr_vec_push(&b->pairs, ((function_pair){last - 1, function})))
            mr_waits_judge_no_memory(j);
    }
}

static void check_pairs(wait_judge *j, uint32_t function) {
    wait_beyond *b = &j->beyond;
    const size_t *items = j->rounds->functions.items;
    for (; b->pair < b->pairs.count && b->pairs.items[b->pair].second <= function; b->pair++) {
        const function_pair *p = &b->pairs.items[b->pair];
        if (!comes_before(j, (uint32_t)p->first, stream_of(j, (uint32_t)p->second)))
            mr_waits_judge_add(j, (new_hazard){.lost = MR_LOST_FUNCTIONS,
                                               .first = items[p->first],
                                               .second = items[p->second]});
    }
}

/* ---- queries */

/* A query of a stream asks for all its commands so far; of a default stream, also for those of blocking streams. */
static bool can_say_no(const wait_judge *j, const timed_record *q) {
    const mr_program *program = j->rounds->program;
    mr_program_item it = mr_program_item_at(program, q->record == NO_ITEM ? q->at : q->record);
    if (q->record != NO_ITEM) return !mr_waits_judge_ordered(j, it.stream, it.seq, MR_PROGRAM_NONE);
    mr_place_set places = mr_waits_host_waits_for(program, &it);
    for (uint32_t s = 0; s < mr_program_stream_count(program); s++)
        if (mr_waits_is_within(program, places, &it, s) &&
            !mr_waits_judge_ordered(j, s, it.seq - 1, MR_PROGRAM_NONE))
            return true;
    return false;
}

static void ask_query(wait_judge *j, size_t query) {
    const timed_record *q = &j->rounds->queries.items[query];
    bool may_say_no = can_say_no(j, q);
    if (may_say_no && j->learning) j->beyond.may_say_no[query] = true;
    else if (may_say_no && !j->beyond.may_say_no[query])
        mr_waits_judge_add(
            j, (new_hazard){.lost = MR_LOST_ANSWER, .first = q->record, .second = q->at});
}

/* ---- atomic updates, and copies that may wait */

static bool has(const judged_access *items, size_t count, judged_access access) {
    return count && bsearch(&access, items, count, sizeof access, mr_waits_compare_accesses);
}

static void add_lost(wait_judge *j, lost_order lost, judged_access access, uint64_t first_seq) {
    mr_waits_judge_add(j, (new_hazard){.lost = lost,
                                       .first = mr_waits_item_of(j->rounds, first_seq),
                                       .second = mr_waits_item_of(j->rounds, access.seq),
                                       .storage = access.storage});
}

void mr_waits_beyond_updated(wait_judge *j, judged_access access, uint64_t first_seq) {
    wait_beyond *b = &j->beyond;
    if (j->learning) {
        if (!mr_vec_push(&b->updates, access)) mr_waits_judge_no_memory(j);
    } else if (!has(b->updates.items, b->updates.count, access)) {
        add_lost(j, MR_LOST_UPDATES, access, first_seq);
    }
}

void mr_waits_beyond_copied(wait_judge *j, judged_access access, uint64_t first_seq) {
    wait_beyond *b = &j->beyond;
    if (j->learning) {
        if (!mr_vec_push(&b->copies, access)) mr_waits_judge_no_memory(j);
    } else if (!has(b->copies.items, b->copies.count, access)) {
        add_lost(j, MR_LOST_COPY, access, first_seq);
    }
}

/* ---- a run */

void mr_waits_beyond_next(wait_judge *j, size_t i) {
    wait_beyond *b = &j->beyond;
    const wait_rounds *rounds = j->rounds;
    if (j->learning) learn_what_ran(j, i);
    else check_what_ran(j, i);
    for (; b->function < rounds->functions.count && rounds->functions.items[b->function] <= i;
         b->function++) {
        if (j->learning) learn_pairs(j, (uint32_t)b->function);
        else check_pairs(j, (uint32_t)b->function);
    }
    for (; b->query < rounds->queries.count && rounds->queries.items[b->query].at <= i; b->query++)
        ask_query(j, b->query);
}

void mr_waits_beyond_rewind(wait_judge *j) {
    wait_beyond *b = &j->beyond;
    b->function = b->known = b->pair = b->query = 0;
}

static void sort(judged_access *items, size_t count) {
    if (count) qsort(items, count, sizeof *items, mr_waits_compare_accesses);
}

mr_status mr_waits_beyond_learnt(wait_judge *j) {
    sort(j->beyond.updates.items, j->beyond.updates.count);
    sort(j->beyond.copies.items, j->beyond.copies.count);
    mr_status status = j->status;
    j->status = MR_OK;
    return status;
}

/* ---- on what the program depends with all its waits */

uint64_t mr_waits_beyond_open_answers(const wait_judge *j) {
    uint64_t count = j->rounds->refusals;
    for (size_t i = 0; i < j->rounds->queries.count; i++) count += j->beyond.may_say_no[i];
    return count;
}

/* Counts functions during which the host did something: between their submission and the point at which the host knows
 * their end. The item right after the function may be the wait for it. */
uint64_t mr_waits_beyond_open_functions(const wait_judge *j) {
    uint64_t count = 0;
    for (size_t f = 0; f < j->rounds->functions.count; f++) {
        mr_program_item it = mr_program_item_at(j->rounds->program, j->rounds->functions.items[f]);
        if (it.kind != MR_COMMAND_HOST_FUNCTION) continue;
        size_t from = j->rounds->functions.items[f] + 2, known = j->beyond.known_from[f];
        count += (known == NO_ITEM ? mr_waits_end_of_code(j) : known) > from;
    }
    return count;
}

/* ---- life */

/* Lanes are the streams that have a host function. */
static void make_lanes(wait_judge *j) {
    wait_beyond *b = &j->beyond;
    size_t streams = mr_program_stream_count(j->rounds->program);
    size_t functions = j->rounds->functions.count;
    uint32_t *last = calloc(streams + 1, sizeof *last); /* by stream: its last function so far */
    b->lane_of = malloc((streams + 1) * sizeof *b->lane_of);
    b->pending = calloc(streams + 1, sizeof *b->pending);
    b->next = calloc(functions + 1, sizeof *b->next);
    bool ready = last && b->lane_of && b->pending && b->next;
    for (uint32_t f = 0; f < functions && ready; f++) {
        uint32_t stream = stream_of(j, f);
        if (last[stream]) {
            b->next[last[stream] - 1] = f + 1;
        } else {
            b->lane_of[stream] = (uint32_t)b->lanes;
            b->pending[b->lanes++] = f + 1;
        }
        last[stream] = f + 1;
    }
    free(last);
    if (ready) b->known_to = calloc(b->lanes * b->lanes + 1, sizeof *b->known_to);
    for (size_t i = 0; i < b->lanes * b->lanes && b->known_to; i++)
        b->known_to[i] = b->pending[i % b->lanes];
    if (!b->known_to) mr_waits_judge_no_memory(j);
}

mr_status mr_waits_beyond_open(wait_judge *j) {
    wait_beyond *b = &j->beyond;
    size_t functions = j->rounds->functions.count;
    b->may_say_no = calloc(j->rounds->queries.count + 1, sizeof *b->may_say_no);
    b->known_from = malloc((functions + 1) * sizeof *b->known_from);
    if (!b->may_say_no || !b->known_from) mr_waits_judge_no_memory(j);
    else make_lanes(j);
    for (size_t f = 0; f < functions && b->known_from; f++) b->known_from[f] = NO_ITEM;
    mr_status status = j->status;
    j->status = MR_OK;
    return status;
}

void mr_waits_beyond_close(wait_judge *j) {
    wait_beyond *b = &j->beyond;
    free(b->lane_of);
    free(b->next);
    free(b->known_to);
    free(b->pending);
    free(b->known_from);
    free(b->may_say_no);
    mr_vec_free(&b->by_known);
    mr_vec_free(&b->pairs);
    mr_vec_free(&b->updates);
    mr_vec_free(&b->copies);
    *b = (wait_beyond){0};
}
