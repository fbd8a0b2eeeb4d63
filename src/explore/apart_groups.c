/* The groups of a program's races: see apart.h. */
#include <stdlib.h>

#include "explore/apart.h"
#include "tensor/tensor.h"

#define MOST_PAIRS 65536

/* Copies that the host waits for are over when it goes on, as in a search. False: one that it does not wait for may
 * write pageable memory, so what later copies wait for depends on the schedule. */
static bool finish_copy(branch *b, uint32_t i) {
    order *o = &b->order;
    bool asked;
    if (o->items[i].kind != MR_COMMAND_COPY || b->classes[i] != ITEM_COPY) return true;
    order_is_open(o, i, &asked);
    if (!order_copy_of(o, i, asked).until_done)
        return o->items[i].operands[0].tensor->storage->kind != MR_MEMORY_PAGEABLE;
    for (uint32_t n = o->first_node[i]; n < o->first_node[i + 1]; n++)
        order_add(o, order_done(o), n);
    return true;
}

/* A marker touches nothing. */
static bool takes_part(const branch *b, uint32_t node) {
    const order_node *n = &b->order.nodes.items[node];
    bool asked;
    if (n->marker) return false;
    order_is_open(&b->order, n->item, &asked);
    return branch_takes_part(b, node, asked);
}

/* Goes through the order by the rules alone. False: what it is depends on the schedule. */
static bool place_all(explorer *e, branch *b, bool *out_takes_part) {
    order *o = &b->order;
    order_forget(o);
    for (uint32_t i = 0; i < b->count && !e->stop; i++) {
        for (uint32_t n = o->first_node[i]; n < o->first_node[i + 1]; n++)
            out_takes_part[n] = takes_part(b, n);
        rules_place(b, i, true);
        if (!finish_copy(b, i)) return false;
        if (i % 64 == 0) budget_look_at_clock(e);
    }
    return !e->stop && !o->failed;
}

static bool add_races(apart *a, const branch *b, const bool *takes_part, uint64_t *races) {
    const order *o = &b->order;
    for (uint32_t n = 0; n < o->nodes.count; n++) {
        const uint64_t *row = b->conflicts + (size_t)n * o->words_in_set,
                       *before = o->words + order_before(o, n);
        for (uint32_t m = 0; m < n && takes_part[n]; m++) {
            if (!(row[m / 64] >> m % 64 & 1) || (before[m / 64] >> m % 64 & 1) || !takes_part[m])
                continue;
            races[(size_t)n * o->words_in_set + m / 64] |= (uint64_t)1 << m % 64;
            if (a->pairs.count == MOST_PAIRS || !mr_vec_push(&a->pairs, ((apart_pair){n, m, 0})))
                return false;
        }
    }
    return true;
}

/* A read of the host adds nothing: the host reads the same in all schedules. */
static mr_status pass_item(apart *a, const branch *b, uint32_t i) {
    mr_program_item it = mr_program_item_at(b->program, i);
    const order *o = &b->order;
    bool is_look = it.kind == MR_COMMAND_HOST_READ || it.kind == MR_COMMAND_HOST_ACCESS;
    MR_VEC(group_touch) touches = {0};
    for (uint32_t k = 0; k < it.operand_count; k++) {
        mr_program_operand operand = mr_program_operand_at(b->program, i, k);
        group_touch touch = {.memory = operand.storage,
                             .reads = (operand.access & MR_READ) != 0,
                             .writes = (operand.access & MR_WRITE) != 0};
        mr_tensor_extent(operand.view, &touch.first, &touch.end);
        if (is_look && touch.reads) a->looks |= groups_taint_of(&a->groups, &touch) != NO_GROUP;
        touch.reads &= !is_look;
        if (!mr_vec_push(&touches, touch)) {
            mr_vec_free(&touches);
            return mr_no_memory("for groups of races");
        }
    }
    mr_status status = groups_pass(&a->groups, o->first_node[i], o->first_node[i + 1],
                                   touches.items, touches.count);
    mr_vec_free(&touches);
    return status;
}

static mr_status make_groups(apart *a, const branch *b, const uint64_t *races) {
    const order *o = &b->order;
    race_graph graph = {(uint32_t)o->nodes.count, o->words_in_set, o->words, races};
    MR_TRY(groups_open(&a->groups, &graph, (uint32_t)mr_program_storage_count(b->program)));
    for (uint32_t i = 0; i < b->count; i++) MR_TRY(pass_item(a, b, i));
    a->count = groups_number(&a->groups);
    a->group = calloc(a->count + 1, sizeof *a->group);
    if (!a->group) return mr_no_memory("for groups of races");
    for (size_t i = 0; i < a->pairs.count; i++) {
        apart_pair *p = &a->pairs.items[i];
        p->group = a->groups.of[p->late];
        a->group[p->group].races++;
    }
    return MR_OK;
}

/* All storages that may share memory with another one are told apart by the proof of memory, so the rows hold of every
 * schedule. Their copies are those of a program in which nothing is pending. */
static void find_conflicts(branch *b) {
    bool was_clean = b->clean;
    order_forget(&b->order);
    b->clean = true;
    branch_find_conflicts(b, 0, b->count);
    b->clean = was_clean;
}

mr_status apart_find_groups(explorer *e, branch *b, apart *a) {
    size_t nodes = b->order.nodes.count;
    uint64_t *races = calloc(nodes * b->order.words_in_set + 1, sizeof *races);
    bool *part = calloc(nodes + 1, sizeof *part);
    mr_status status = races && part ? MR_OK : mr_no_memory("for groups of races");
    if (!status) find_conflicts(b);
    if (!status && place_all(e, b, part) && add_races(a, b, part, races))
        status = make_groups(a, b, races);
    order_forget(&b->order);
    free(races);
    free(part);
    return status;
}
