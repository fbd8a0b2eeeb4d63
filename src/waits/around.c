/* What comes before a wait and after it, for sentences. Both sets are upper bounds: they follow each way on which work
 * can be waited for (R1, R3, R5, R11, R27, R60, R61), and some on which it is not. So what is said of all of a set is
 * true, and what is said of a pair needs a proof of its own. Not followed: an allocation that waits for the memory
 * (R30), and mr.launch_blocking. */
#include <stdlib.h>

#include "tensor/tensor.h"
#include "waits/parts.h"

#define LOOK 512 /* commands that are compared, after a wait */

/* Work, or an allocation: no other stream may use the memory before that. */
static bool can_be_waited_for(const mr_program_item *it) {
    return it->came_true && (mr_kind_is(it->kind, MR_TRAIT_LAUNCH) || it->kind == MR_COMMAND_ALLOC);
}

static bool is_in_stream(const mr_program_item *it) {
    return it->came_true && it->stream != MR_PROGRAM_NONE &&
           mr_kind_is(it->kind, MR_TRAIT_SUBMITTED);
}

/* The default stream and a blocking stream of its device wait for each other (R3). */
static bool are_in_barrier(const mr_program *program, uint32_t a, uint32_t b) {
    return mr_waits_gathers(program, a, b) || mr_waits_gathers(program, b, a);
}

static bool touches_host_memory(const mr_program *program, size_t i, uint32_t operands) {
    for (uint32_t k = 0; k < operands; k++) {
        uint32_t storage = mr_program_operand_at(program, i, k).storage;
        if (mr_program_storage_at(program, storage).kind != MR_MEMORY_DEVICE) return true;
    }
    return false;
}

/* A copy between devices, or a member of a meeting: it may order all streams. */
static bool is_for_all(const mr_program *program, size_t i, const mr_program_item *it) {
    if (it->meets) return true;
    if (it->kind != MR_COMMAND_COPY || it->operand_count < 2) return false;
    mr_program_storage to =
        mr_program_storage_at(program, mr_program_operand_at(program, i, 0).storage);
    mr_program_storage from =
        mr_program_storage_at(program, mr_program_operand_at(program, i, 1).storage);
    return to.device != from.device;
}

/* The record that a wait, a query or the like is bound to. */
static size_t record_of(const wait_judge *j, const mr_program_item *it) {
    bool is_bound = mr_kind_is(it->kind, MR_TRAIT_BOUND) && it->bound;
    return is_bound ? mr_waits_item_of(j->rounds, it->bound) : NO_ITEM;
}

/* ---- before */

static void widen(size_t *limit, size_t to) {
    if (*limit < to) *limit = to;
}

/* `limit`: by stream, the items before that one are waited for. Item i is one of them. */
static void widen_by(const wait_judge *j, const mr_program_item *it, size_t i, size_t *limit) {
    const mr_program *program = j->rounds->program;
    bool for_all = is_for_all(program, i, it);
    for (size_t s = 0; s < mr_program_stream_count(program); s++)
        if (for_all || are_in_barrier(program, it->stream, (uint32_t)s)) widen(&limit[s], i);
    size_t record = record_of(j, it);
    if (it->kind == MR_COMMAND_WAIT && record != NO_ITEM)
        widen(&limit[mr_program_item_at(program, record).stream], record + 1);
}

/* What the round waits for. A wait in a default stream brings the blocking streams into that one. The record is an item
 * that is waited for, since it may be behind other streams. */
static void begin_before(const wait_judge *j, const wait_round *r, size_t *limit) {
    const mr_program *program = j->rounds->program;
    mr_program_item it = mr_program_item_at(program, r->at);
    mr_place_set places = mr_waits_host_waits_for(program, &it);
    for (uint32_t s = 0; s < mr_program_stream_count(program); s++)
        if (r->stream == MR_PROGRAM_NONE ? mr_waits_is_within(program, places, &it, s)
                                         : mr_waits_gathers(program, r->stream, s))
            limit[s] = r->at;
    if (r->record != NO_ITEM)
        widen(&limit[mr_program_item_at(program, r->record).stream], r->record + 1);
}

size_t mr_waits_before(const wait_judge *j, const wait_round *r, bool own, size_t *out,
                       size_t most) {
    const mr_program *program = j->rounds->program;
    size_t streams = mr_program_stream_count(program), count = 0;
    size_t *limit = calloc(streams + 1, sizeof *limit);
    if (limit) begin_before(j, r, limit);
    for (size_t i = r->at; i-- > 0 && count < most;) { /* without memory: all of them */
        mr_program_item it = mr_program_item_at(program, i);
        if (!is_in_stream(&it) || (limit && i >= limit[it.stream])) continue;
        if (limit) widen_by(j, &it, i, limit);
        if (can_be_waited_for(&it) && (it.stream == r->stream) == own) out[count++] = i;
    }
    free(limit);
    return count;
}

/* ---- after */

/* Who is held up, while the items behind a round are read. */
typedef struct {
    const wait_judge *j;
    size_t *since; /* by stream: from that item on; NO_ITEM: it is not */
    size_t streams;
    size_t time; /* the next time that the script reads */
    bool host;
} held_up;

static void hold(held_up *h, size_t stream, size_t i) {
    if (h->since[stream] == NO_ITEM) h->since[stream] = i;
}

static bool is_held(const held_up *h, uint32_t stream) {
    return stream != MR_PROGRAM_NONE && h->since[stream] != NO_ITEM;
}

static bool is_record_held(const held_up *h, size_t record) {
    if (record == NO_ITEM) return false;
    uint32_t stream = mr_program_item_at(h->j->rounds->program, record).stream;
    return is_held(h, stream) && h->since[stream] < record;
}

/* elapsed_time gives a time only once both records are complete. */
static bool is_time_held(held_up *h, size_t i) {
    const wait_rounds *rounds = h->j->rounds;
    while (h->time < rounds->times.count && rounds->times.items[h->time].at < i) h->time++;
    for (size_t k = h->time; k < rounds->times.count && rounds->times.items[k].at == i; k++)
        if (is_record_held(h, rounds->times.items[k].record)) return true;
    return false;
}

static bool host_waits(held_up *h, size_t i, const mr_program_item *it) {
    const mr_program *program = h->j->rounds->program;
    if (is_in_stream(it))
        return it->kind == MR_COMMAND_COPY && is_held(h, it->stream) &&
               touches_host_memory(program, i, it->operand_count);
    mr_place_set places = mr_waits_host_waits_for(program, it);
    if (mr_place_in(places, MR_PLACE_RECORD) &&
        (it->kind == MR_COMMAND_ELAPSED ? is_time_held(h, i)
                                        : is_record_held(h, record_of(h->j, it))))
        return true;
    for (uint32_t s = 0; s < h->streams && places; s++)
        if (is_held(h, s) && mr_waits_is_within(program, places, it, s)) return true;
    return false;
}

/* Whether item i is held up; notes who is from then on. */
static bool reaches(held_up *h, size_t i, const mr_program_item *it) {
    const mr_program *program = h->j->rounds->program;
    if (!it->came_true) return false;
    if (!is_in_stream(it)) {
        h->host = h->host || host_waits(h, i, it);
        return h->host;
    }
    if (h->host || (it->kind == MR_COMMAND_WAIT && is_record_held(h, record_of(h->j, it))))
        hold(h, it->stream, i);
    if (!is_held(h, it->stream)) return false;
    bool for_all = is_for_all(program, i, it);
    for (size_t s = 0; s < h->streams; s++)
        if (for_all || are_in_barrier(program, it->stream, (uint32_t)s)) hold(h, s, i);
    h->host = h->host || host_waits(h, i, it);
    return true;
}

static bool open_held_up(const wait_judge *j, const wait_round *r, held_up *out) {
    size_t streams = mr_program_stream_count(j->rounds->program);
    *out = (held_up){.j = j, .streams = streams, .host = r->stream == MR_PROGRAM_NONE};
    out->since = malloc((streams + 1) * sizeof *out->since);
    for (uint32_t s = 0; s < streams && out->since; s++) {
        bool is_behind = r->stream != MR_PROGRAM_NONE &&
                         (s == r->stream || are_in_barrier(j->rounds->program, r->stream, s));
        out->since[s] = is_behind ? r->at : NO_ITEM;
    }
    return out->since != NULL;
}

/* A free by the collector has no place in the program. */
static bool is_use(const mr_program_item *it) {
    if (it->kind == MR_COMMAND_FREE) return it->where.file != NULL;
    return it->came_true && mr_kind_is(it->kind, MR_TRAIT_LAUNCH | MR_TRAIT_TOUCH);
}

size_t mr_waits_after(const wait_judge *j, const wait_round *r, size_t *out, size_t most) {
    size_t count = 0;
    held_up h;
    bool ready = open_held_up(j, r, &h);
    for (size_t i = r->at + 1; i < j->rounds->items && count < most; i++) {
        mr_program_item it = mr_program_item_at(j->rounds->program, i);
        bool is_held_up = ready ? reaches(&h, i, &it) : it.came_true; /* without memory: all */
        if (is_held_up && is_use(&it)) out[count++] = i;
    }
    free(h.since);
    return count;
}

/* ---- measurements */

static bool hides_wait(const mr_program_item *it) {
    return mr_command_kinds[it->kind].after != MR_AFTER_NOTHING ||
           mr_kind_is(it->kind, MR_TRAIT_LAUNCH | MR_TRAIT_TOUCH);
}

/* mr.clock() shows how long the host waited, up to its next wait; elapsed_time when a record was complete. */
bool mr_waits_is_measured(const wait_judge *j, const wait_round *r) {
    const wait_rounds *rounds = j->rounds;
    held_up h;
    bool ready = open_held_up(j, r, &h), is_near = r->stream == MR_PROGRAM_NONE;
    bool is_measured = !ready;
    for (size_t i = r->at + 1; ready && i < rounds->items && !is_measured; i++) {
        mr_program_item it = mr_program_item_at(rounds->program, i);
        reaches(&h, i, &it);
        is_near = is_near && !hides_wait(&it);
        is_measured = (is_near && it.kind == MR_COMMAND_HOST_TIME) || is_time_held(&h, i);
    }
    free(h.since);
    return is_measured;
}

/* ---- data in common */

/* The accesses of an item, one after the other, with those inside a host function. */
typedef struct {
    const mr_program *program;
    size_t item;
    mr_program_item it;    /* of the item, then of what it did inside */
    uint32_t inside, next; /* how many of these have come; the next operand */
} access_list;

static access_list accesses_of(const mr_program *program, size_t item) {
    return (access_list){program, item, mr_program_item_at(program, item), 0, 0};
}

static bool next_access(access_list *l, mr_program_operand *out) {
    mr_program_item whole = mr_program_item_at(l->program, l->item);
    while (l->next >= l->it.operand_count) {
        if (l->inside >= whole.inner_count) return false;
        l->it = mr_program_inner_at(l->program, whole.inner + l->inside++);
        l->next = 0;
    }
    *out = l->inside ? mr_program_inner_operand_at(l->program, whole.inner + l->inside - 1, l->next)
                     : mr_program_operand_at(l->program, l->item, l->next);
    l->next++;
    return true;
}

static bool meet(const mr_program_operand *x, const mr_program_operand *y) {
    uint64_t begin[2], end[2];
    if (x->storage != y->storage || !((x->access | y->access) & MR_WRITE)) return false;
    mr_tensor_extent(x->view, &begin[0], &end[0]);
    mr_tensor_extent(y->view, &begin[1], &end[1]);
    return begin[0] < end[1] && begin[1] < end[0];
}

static bool touches(const mr_program *program, size_t item, uint32_t storage) {
    mr_program_operand x;
    for (access_list a = accesses_of(program, item); next_access(&a, &x);)
        if (x.storage == storage) return true;
    return false;
}

/* `first` may be an allocation, `second` a free. */
static bool conflict(const mr_program *program, size_t first, size_t second) {
    mr_program_item made = mr_program_item_at(program, first);
    mr_program_item it = mr_program_item_at(program, second);
    mr_program_operand x, y;
    if (made.kind == MR_COMMAND_ALLOC) return touches(program, second, made.storage);
    for (access_list a = accesses_of(program, first); next_access(&a, &x);) {
        if (it.kind == MR_COMMAND_FREE && x.storage == it.storage) return true;
        for (access_list b = accesses_of(program, second); next_access(&b, &y);)
            if (meet(&x, &y)) return true;
    }
    return false;
}

wait_pair mr_waits_pair(const wait_judge *j, const wait_round *r) {
    size_t earlier[LOOK / 4], later[LOOK];
    size_t firsts = mr_waits_before(j, r, false, earlier, LOOK / 4);
    size_t seconds = mr_waits_after(j, r, later, LOOK);
    wait_pair found = {.is_complete = firsts < LOOK / 4 && seconds < LOOK};
    for (size_t k = 0; k < seconds; k++)
        for (size_t i = 0; i < firsts; i++) {
            mr_program_item made = mr_program_item_at(j->rounds->program, earlier[i]);
            uint32_t a = made.stream;
            uint32_t b = mr_program_item_at(j->rounds->program, later[k]).stream;
            bool is_known = found.is_found || made.kind == MR_COMMAND_ALLOC;
            if ((a == b && is_known) || !conflict(j->rounds->program, earlier[i], later[k]))
                continue;
            found.first = earlier[i];
            found.second = later[k];
            found.is_found = true;
            found.same_stream = a == b;
            if (a != b) return found;
        }
    return found;
}
