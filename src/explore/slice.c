/* Slices: the part of a program that a schedule of one group carries out. See apart.h.
 *
 * A group changes the bytes that it taints, and no others. So a schedule of it needs the operations that read or write
 * those, the ones that write what these read, and so on. All other operations are left out of the player. Items that
 * are no operations are kept, because they may order others, and the host may wait for them. So all that the host reads
 * is kept, too, and is still compared with what was recorded.
 *
 * Easiest to break: a command may write less than it says. So what lies below a write is needed, too. */
#include <stdlib.h>
#include <string.h>

#include "explore/apart.h"
#include "tensor/tensor.h"

#define NO_RANGE UINT32_MAX
#define NO_SLOT  UINT32_MAX

typedef struct {
    uint64_t first, end;
    uint32_t next; /* of the same storage */
} range;

/* Bytes that what has been kept needs, by storage. */
typedef struct {
    uint32_t *heads; /* by storage; NO_RANGE: none */
    MR_VEC(range) all;
} needed;

static bool is_needed(const needed *d, uint32_t storage, uint64_t first, uint64_t end) {
    for (uint32_t i = d->heads[storage]; i != NO_RANGE; i = d->all.items[i].next)
        if (d->all.items[i].first < end && first < d->all.items[i].end) return true;
    return false;
}

static bool need(needed *d, uint32_t storage, uint64_t first, uint64_t end) {
    for (uint32_t i = d->heads[storage]; i != NO_RANGE; i = d->all.items[i].next)
        if (d->all.items[i].first <= first && end <= d->all.items[i].end) return true;
    if (!mr_vec_push(&d->all, ((range){first, end, d->heads[storage]}))) return false;
    d->heads[storage] = (uint32_t)d->all.count - 1;
    return true;
}

static bool need_tainted(needed *d, const apart *a) {
    for (uint32_t m = 0; m < a->groups.memories; m++)
        for (uint32_t i = a->groups.taints[m]; i != NO_GROUP; i = a->groups.all.items[i].next) {
            const group_taint *t = &a->groups.all.items[i];
            if (t->group == a->now && !need(d, m, t->first, t->end)) return false;
        }
    return true;
}

static bool is_tainted(const apart *a, uint32_t storage, uint64_t first, uint64_t end) {
    for (uint32_t i = a->groups.taints[storage]; i != NO_GROUP; i = a->groups.all.items[i].next) {
        const group_taint *t = &a->groups.all.items[i];
        if (t->group == a->now && t->first < end && first < t->end) return true;
    }
    return false;
}

/* It writes what is needed, or reads what the group changes: then it may fail. */
static bool is_kept(const needed *d, const apart *a, const branch *b, uint32_t i,
                    uint32_t operands) {
    if (mr_program_kind_at(b->program, i) != MR_COMMAND_OP) return true;
    for (uint32_t k = 0; k < operands; k++) {
        mr_program_operand o = mr_program_operand_at(b->program, i, k);
        uint64_t first, end;
        mr_tensor_extent(o.view, &first, &end);
        if ((o.access & MR_WRITE) && is_needed(d, o.storage, first, end)) return true;
        if (is_tainted(a, o.storage, first, end)) return true;
    }
    return false;
}

static bool need_operands(needed *d, const branch *b, uint32_t i, uint32_t operands) {
    for (uint32_t k = 0; k < operands; k++) {
        mr_program_operand o = mr_program_operand_at(b->program, i, k);
        uint64_t first, end;
        mr_tensor_extent(o.view, &first, &end);
        if (!need(d, o.storage, first, end)) return false;
    }
    return true;
}

mr_status slice_find(apart *a, const branch *b) {
    size_t storages = mr_program_storage_count(b->program);
    needed d = {.heads = malloc((storages + 1) * sizeof *d.heads)};
    bool fine = d.heads && a->left_out;
    for (size_t m = 0; m < storages && fine; m++) d.heads[m] = NO_RANGE;
    fine = fine && need_tainted(&d, a);
    for (uint32_t i = b->count; i-- > 0 && fine;) {
        uint32_t operands = mr_program_item_at(b->program, i).operand_count;
        a->left_out[i] = !is_kept(&d, a, b, i, operands);
        fine = a->left_out[i] || need_operands(&d, b, i, operands);
    }
    free(d.heads);
    mr_vec_free(&d.all);
    return fine ? MR_OK : mr_no_memory("for groups of races");
}

/* ---- whose bytes they are */

static void own_bytes(uint16_t *owner, uint64_t first, uint64_t end, const group_taint *t) {
    uint64_t from = first > t->first ? first : t->first, to = end < t->end ? end : t->end;
    for (uint64_t byte = from; byte < to; byte++) owner[byte - first] = (uint16_t)(t->group + 1);
}

/* Elements of a part lie one behind the other in the value, in row-major order. */
static void own_elements(uint16_t *owner, const mr_tensor *view, const group_taint *t) {
    size_t size = mr_dtype_size(view->dtype);
    int64_t at[MR_MAX_DIMS] = {0}, element = view->offset;
    for (int64_t n = 0; n < view->numel; n++, owner += size) {
        own_bytes(owner, (uint64_t)element * size, (uint64_t)(element + 1) * size, t);
        for (int d = view->ndim - 1; d >= 0; d--) {
            element += view->stride[d];
            if (++at[d] < view->shape[d]) break;
            element -= view->stride[d] * view->shape[d];
            at[d] = 0;
        }
    }
}

static void own_part(apart *a, const value_part *part, size_t from) {
    uint64_t first, end;
    mr_tensor_extent(&part->view, &first, &end);
    for (uint32_t i = a->groups.taints[part->slot]; i != NO_GROUP;
         i = a->groups.all.items[i].next) {
        const group_taint *t = &a->groups.all.items[i];
        if (part->view.contiguous) own_bytes(a->owner + from, first, end, t);
        else own_elements(a->owner + from, &part->view, t);
    }
}

mr_status slice_find_owners(apart *a, const branch *b) {
    size_t from = b->variants.items[0].text.size;
    a->owner = calloc(a->base.size + 1, sizeof *a->owner);
    if (!a->owner) return mr_no_memory("for an outcome");
    for (size_t i = 0; i < b->parts.count; i++) {
        const value_part *part = &b->parts.items[i];
        size_t size = part->slot == NO_SLOT
                          ? part->size
                          : (size_t)part->view.numel * mr_dtype_size(part->view.dtype);
        a->failed |= size > a->base.size - from;
        if (a->failed) return MR_OK;
        if (part->slot != NO_SLOT) own_part(a, part, from);
        from += size;
    }
    a->failed |= from != a->base.size;
    return MR_OK;
}

void slice_complete(apart *a, mr_buffer *value, size_t text_size) {
    a->failed |= value->size != a->base.size;
    for (size_t i = text_size; i < value->size && !a->failed; i++)
        if (a->owner[i] != a->now + 1) value->data[i] = a->base.data[i];
}
