/* Finds the nodes of a branch that touch the same bytes, one of them writing. */
#include "explore/state.h"
#include "tensor/tensor.h"

/* Unless the branch is `clean`, different storages may have the same memory. */
static bool share_bytes(const mr_tensor *a, const mr_tensor *b, bool clean) {
    if (a->storage == b->storage) return mr_tensor_may_overlap(a, b);
    if (clean) return false;
    if (a->storage->device != b->storage->device || !a->storage->device) return false;
    uint64_t first_a, end_a, first_b, end_b;
    mr_tensor_extent(a, &first_a, &end_a);
    mr_tensor_extent(b, &first_b, &end_b);
    return branch_place(a->storage, first_a) < branch_place(b->storage, end_b) &&
           branch_place(b->storage, first_b) < branch_place(a->storage, end_a) && first_a < end_a &&
           first_b < end_b;
}

/* The operands of an item that one of its nodes touches: the host's or the device's. */
typedef struct {
    const mr_operand *operands;
    uint32_t count;
    bool everything; /* it may touch anything */
} touches;

static touches touches_of(const branch *b, const order_node *n, const mr_program_item *it) {
    touches t = {it->operands, it->operand_count, false};
    switch (it->kind) {
    case MR_COMMAND_COPY: /* the host reads a source that is staged, the device any other */
        if (!n->parts) t = (touches){it->operands + 1, 1, false};
        else if (order_copy_of(&b->order, n->item, true).reads_source) t.count = 1;
        break;
    case MR_COMMAND_FAULT: t.everything = true; break;
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_ELAPSED: t.count = 0; break;
    case MR_COMMAND_OP:
    case MR_COMMAND_HOST_FUNCTION: /* it has none: see function_conflicts */
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_FREE:
    case MR_COMMAND_STREAM_DROP:
    case MR_COMMAND_EVENT_CREATE:
    case MR_COMMAND_EVENT_CLOSE:
    case MR_COMMAND_HOST_ALLOC:
    case MR_COMMAND_HOST_FREE:
    case MR_COMMAND_FREE_WAIT:
    case MR_COMMAND_RECORD_STREAM:
    case MR_COMMAND_HOST_READ:
    case MR_COMMAND_HOST_WORK:
    case MR_COMMAND_DRAIN: MR_HOST_LIST(MR_COMMAND_CASE) MR_MACHINE_LIST(MR_COMMAND_CASE) break;
    }
    return t;
}

static bool any_shared(touches a, touches b, bool clean) {
    for (uint32_t i = 0; i < a.count; i++)
        for (uint32_t k = 0; k < b.count; k++) {
            if (!((a.operands[i].access | b.operands[k].access) & MR_WRITE)) continue;
            if (share_bytes(a.operands[i].tensor, b.operands[k].tensor, clean)) return true;
        }
    return false;
}

/* The items inside a host function tell what it touched. */
static bool function_conflicts(const branch *b, const mr_program_item *function, touches other) {
    for (uint32_t i = 0; i < function->inner_count; i++) {
        mr_program_item it = mr_player_inner_at(b->player, function->inner + i);
        if (any_shared((touches){it.operands, it.operand_count, false}, other, b->clean))
            return true;
    }
    return false;
}

/* The last member of a meeting does what all of them do. */
static bool meeting_conflicts(const mr_program_item *it, touches other, bool clean) {
    const mr_meeting *meeting = it->command->meeting;
    for (uint32_t k = 0; k < meeting->size; k++) {
        const mr_command *member = meeting->members[k].command;
        if (any_shared((touches){member->operands, member->operand_count, false}, other, clean))
            return true;
    }
    return false;
}

static bool meetings_conflict(const mr_meeting *a, const mr_program_item *b, bool clean) {
    for (uint32_t k = 0; k < a->size; k++) {
        const mr_command *member = a->members[k].command;
        if (meeting_conflicts(b, (touches){member->operands, member->operand_count, false}, clean))
            return true;
    }
    return false;
}

static const mr_meeting *meeting_of(const mr_program_item *it) {
    return it->command ? it->command->meeting : NULL;
}

static bool items_conflict(const branch *b, const order_node *m, const order_node *n) {
    const mr_program_item *x = &b->order.items[m->item], *y = &b->order.items[n->item];
    if (m->marker || n->marker) return false;
    touches a = touches_of(b, m, x), c = touches_of(b, n, y);
    if (a.everything || c.everything) return true;
    bool function_x = x->kind == MR_COMMAND_HOST_FUNCTION,
         function_y = y->kind == MR_COMMAND_HOST_FUNCTION;
    if (function_x && function_y) return true; /* both may use the same variables */
    if (function_x) return function_conflicts(b, x, c);
    if (function_y) return function_conflicts(b, y, a);
    if (meeting_of(x) && meeting_of(y)) return meetings_conflict(meeting_of(x), y, b->clean);
    if (meeting_of(x)) return meeting_conflicts(x, c, b->clean);
    if (meeting_of(y)) return meeting_conflicts(y, a, b->clean);
    return any_shared(a, c, b->clean);
}

bool branch_conflict(const branch *b, uint32_t early, uint32_t late) {
    return items_conflict(b, &b->order.nodes.items[early], &b->order.nodes.items[late]);
}

/* ---- operations that mix */

/* Whether `of` uses bytes of `t` with this access. */
static bool uses(touches of, const mr_tensor *t, unsigned access, bool clean) {
    for (uint32_t i = 0; i < of.count; i++)
        if (of.operands[i].access & access && share_bytes(of.operands[i].tensor, t, clean))
            return true;
    return false;
}

/* Whether `of` reads an element of `t` and writes it later. Then a write of another command in between is lost. */
static bool updates(touches of, const mr_tensor *t, bool clean) {
    return uses(of, t, MR_READ, clean) && uses(of, t, MR_WRITE, clean);
}

/* One access of one element is whole. */
static bool may_mix(touches a, touches b, bool clean) {
    uint32_t shared = 0;
    for (uint32_t i = 0; i < a.count; i++)
        for (uint32_t k = 0; k < b.count; k++) {
            const mr_tensor *x = a.operands[i].tensor, *y = b.operands[k].tensor;
            if (!((a.operands[i].access | b.operands[k].access) & MR_WRITE)) continue;
            if (!share_bytes(x, y, clean)) continue;
            /* Atomic updates that mix are a condition that the claims report. */
            if (a.operands[i].access & b.operands[k].access & MR_ATOMIC) continue;
            if ((x->numel > 1 && y->numel > 1) || ++shared > 1) return true;
            if (b.operands[k].access & MR_WRITE && updates(a, y, clean)) return true;
            if (a.operands[i].access & MR_WRITE && updates(b, x, clean)) return true;
        }
    return false;
}

bool branch_may_mix(const branch *b, uint32_t early, uint32_t late) {
    const order_node *m = &b->order.nodes.items[early], *n = &b->order.nodes.items[late];
    mr_program_item x = b->order.items[m->item], y = b->order.items[n->item];
    touches a = touches_of(b, m, &x), c = touches_of(b, n, &y);
    if (m->marker || n->marker || a.everything || c.everything) return false;
    bool function_x = x.kind == MR_COMMAND_HOST_FUNCTION,
         function_y = y.kind == MR_COMMAND_HOST_FUNCTION;
    if (function_x && function_y) return false; /* one host thread calls both */
    if (function_x || function_y || meeting_of(&x) || meeting_of(&y))
        return branch_conflict(b, early, late);
    return may_mix(a, c, b->clean);
}

bool branch_takes_part(const branch *b, uint32_t node, bool asked) {
    const order *o = &b->order;
    const order_node *n = &o->nodes.items[node];
    return n->parts || o->items[n->item].kind != MR_COMMAND_COPY ||
           b->classes[n->item] != ITEM_COPY || order_copy_of(o, n->item, asked).reads_source;
}
