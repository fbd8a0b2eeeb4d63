/* The groups of a program's races: see apart.h. */
#include <stdlib.h>
#include <string.h>

#include "explore/apart.h"
#include "ops/ids.h"
#include "ops/op.h"
#include "tensor/tensor.h"

#define MOST_PAIRS 65536
#define NO_ITEM    UINT32_MAX
#define NO_SLOT    UINT32_MAX

/* Marks the copies that the host waits for as complete, as a search does. False: a copy without a wait may write
 * pageable memory, so the schedule decides what later copies wait for. */
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

/* Builds the order by the rules alone. False: this order depends on the schedule. */
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

/* No allocation comes between the free and the end of the use, so the memory cannot have a new owner in between. */
static bool is_over_before_allocs(const branch *b, uint32_t use, uint32_t freed) {
    for (uint32_t i = freed + 1; i < b->count; i++)
        if (mr_program_kind_at(b->program, i) == MR_COMMAND_ALLOC &&
            (i < use || !order_comes_after(&b->order, i, use)))
            return false;
    return true;
}

/* Memory that is read while it is free may have a new owner, and the reads find the new owner's data. So they
 * race with the free. False: it is written then, used before it is allocated, or freed by the host. */
static bool add_late_read(const branch *b, uint32_t use, uint8_t access, const uint32_t *life,
                          uint64_t *races) {
    const order *o = &b->order;
    uint32_t alloc = life[0], freed = life[1];
    if (o->first_node[use] == o->first_node[use + 1])
        return true; /* of the host, which has waited */
    if (alloc != NO_ITEM && !order_comes_after(o, use, alloc)) return false;
    if (freed == NO_ITEM || order_comes_after(o, freed, use)) return true;
    if (is_over_before_allocs(b, use, freed)) return true;
    if (access & MR_WRITE || o->items[freed].kind != MR_COMMAND_FREE) return false;
    uint32_t at = o->first_node[freed];
    for (uint32_t n = o->first_node[use]; n < o->first_node[use + 1]; n++) {
        uint32_t late = n > at ? n : at, early = n > at ? at : n;
        races[(size_t)late * o->words_in_set + early / 64] |= (uint64_t)1 << early % 64;
    }
    return true;
}

static bool add_late_reads(const branch *b, uint64_t *races) {
    size_t storages = mr_program_storage_count(b->program);
    uint32_t(*lives)[2] = malloc((storages + 1) * sizeof *lives);
    bool fine = lives != NULL;
    for (size_t slot = 0; slot < storages && fine; slot++)
        lives[slot][0] = lives[slot][1] = NO_ITEM;
    for (uint32_t i = 0; i < b->count && fine; i++) {
        mr_program_item it = mr_program_item_at(b->program, i);
        if (it.kind == MR_COMMAND_ALLOC) lives[it.storage][0] = i;
        if (mr_kind_is(it.kind, MR_TRAIT_ENDS) && it.storage != MR_PROGRAM_NONE)
            lives[it.storage][1] = i;
        fine = it.kind != MR_COMMAND_ALLOC || !it.failed;
    }
    for (uint32_t i = 0; i < b->count && fine; i++) {
        uint32_t count = mr_program_item_at(b->program, i).operand_count;
        for (uint32_t k = 0; k < count && fine; k++) {
            mr_program_operand used = mr_program_operand_at(b->program, i, k);
            fine = add_late_read(b, i, used.access, lives[used.storage], races);
        }
    }
    free(lives);
    return fine;
}

/* The item can fail by an index out of range, or it is the user's own kernel, which may do anything. */
static bool may_go_wrong(const mr_program_item *it, const branch *b, uint32_t i) {
    if (!it->row) return false;
    if (it->row->id == MR_OP_kernel) return true;
    for (uint32_t k = 0; k < it->operand_count && it->row->family->may_fail; k++)
        if (mr_dtype_category((mr_dtype)mr_program_operand_at(b->program, i, k).view->dtype) <
            mr_dtype_category(MR_F32))
            return true;
    return false;
}

static bool depends(const apart *a, const branch *b, uint32_t i, const group_touch *touches,
                    size_t count) {
    const order *o = &b->order;
    for (uint32_t n = o->first_node[i]; n < o->first_node[i + 1]; n++)
        if (a->groups.of[n] != NO_GROUP) return true;
    for (size_t k = 0; k < count; k++)
        if (touches[k].reads && groups_taint_of(&a->groups, &touches[k]) != NO_GROUP) return true;
    return false;
}

/* A read of the host is no touch: the host reads the same value in all schedules. */
static mr_status pass_item(apart *a, const branch *b, uint32_t i) {
    mr_program_item it = mr_program_item_at(b->program, i);
    const order *o = &b->order;
    bool is_look = mr_kind_is(it.kind, MR_TRAIT_TOUCH);
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
    if (may_go_wrong(&it, b, i)) a->may_go_wrong |= depends(a, b, i, touches.items, touches.count);
    mr_status status = groups_pass(&a->groups, o->first_node[i], o->first_node[i + 1],
                                   touches.items, touches.count);
    mr_vec_free(&touches);
    return status;
}

/* The groups have their numbers. */
static void find_groups_that_are_read(apart *a, const branch *b) {
    for (uint32_t i = 0; i < b->count && a->looks; i++) {
        mr_program_item it = mr_program_item_at(b->program, i);
        for (uint32_t k = 0; k < it.operand_count && mr_kind_is(it.kind, MR_TRAIT_TOUCH); k++) {
            mr_program_operand operand = mr_program_operand_at(b->program, i, k);
            group_touch touch = {.memory = operand.storage};
            mr_tensor_extent(operand.view, &touch.first, &touch.end);
            uint32_t group =
                operand.access & MR_READ ? groups_taint_of(&a->groups, &touch) : NO_GROUP;
            if (group != NO_GROUP) a->group[group].looks = true;
        }
    }
}

static bool depends_value(const apart *a, const branch *b) {
    for (size_t i = 0; i < b->parts.count; i++) {
        group_touch all = {.memory = b->parts.items[i].slot, .end = UINT64_MAX};
        if (all.memory != NO_SLOT && groups_taint_of(&a->groups, &all) != NO_GROUP) return true;
    }
    return false;
}

static mr_status make_groups(apart *a, const branch *b, const uint64_t *races) {
    const order *o = &b->order;
    race_graph graph = {(uint32_t)o->nodes.count, o->words_in_set, o->words, races};
    MR_TRY(groups_open(&a->groups, &graph, (uint32_t)mr_program_storage_count(b->program)));
    for (uint32_t i = 0; i < b->count; i++) MR_TRY(pass_item(a, b, i));
    a->returns = depends_value(a, b);
    a->count = groups_number(&a->groups);
    a->group = calloc(a->count + 1, sizeof *a->group);
    if (!a->group) return mr_no_memory("for groups of races");
    for (size_t i = 0; i < a->pairs.count; i++) {
        apart_pair *p = &a->pairs.items[i];
        p->group = a->groups.of[p->late];
        a->group[p->group].races++;
    }
    find_groups_that_are_read(a, b);
    return MR_OK;
}

/* Different storages count as different memory: the proof of memory has told them apart, or add_late_reads does. Their
 * copies are those of a program in which nothing is pending. */
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
    if (!status && place_all(e, b, part) && add_races(a, b, part, races) &&
        (!a->shares || add_late_reads(b, races)))
        status = make_groups(a, b, races);
    order_forget(&b->order);
    /* During a search, rows are valid only for the current addresses of tensors. */
    if (a->shares) memset(b->known, 0, nodes * sizeof *b->known);
    free(races);
    free(part);
    return status;
}
