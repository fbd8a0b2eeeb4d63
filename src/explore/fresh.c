/* Finds reads that no rule orders after the first write of their bytes. If such a read comes first, it gets the
 * contents of new memory. That is one value here and may be any value on a device, so it is a condition of the result.
 * The hazard checker reports such a read only as a race. */
#include "explore/state.h"
#include "ops/ids.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* One operand of an item, in memory that the program makes. */
typedef struct {
    uint32_t item, slot; /* slot: of the storage */
    uint64_t first, end; /* bytes */
    bool reads, writes;
    bool is_whole; /* it writes each of the bytes */
} use;

typedef struct {
    const branch *b;
    bool *is_made; /* by slot */
    MR_VEC(use) uses;
    bool failed;
} fresh;

static void add_use(fresh *f, uint32_t i, const mr_op *row, mr_program_operand o) {
    use u = {.item = i, .slot = o.storage, .reads = o.access & MR_READ};
    if (!f->is_made[o.storage]) return;
    mr_tensor_extent(o.view, &u.first, &u.end);
    bool is_dense = (uint64_t)o.view->numel * mr_dtype_size(o.view->dtype) == u.end - u.first;
    u.writes = o.access & MR_WRITE;
    u.is_whole = u.writes && is_dense && !(row && row->id == MR_OP_kernel);
    if (u.first < u.end && !mr_vec_push(&f->uses, u)) f->failed = true;
}

static void find_uses(fresh *f) {
    const mr_program *program = f->b->program;
    for (uint32_t i = 0; i < f->b->count && !f->failed; i++) {
        mr_program_item it = mr_program_item_at(program, i);
        for (uint32_t k = 0; k < it.operand_count; k++)
            add_use(f, i, it.row, mr_program_operand_at(program, i, k));
        for (uint32_t n = it.inner; n < it.inner + it.inner_count; n++) {
            mr_program_item inner = mr_program_inner_at(program, n);
            for (uint32_t k = 0; k < inner.operand_count; k++)
                add_use(f, i, inner.row, mr_program_inner_operand_at(program, n, k));
        }
    }
}

static bool find_made(fresh *f) {
    bool any = false;
    for (uint32_t i = 0; i < f->b->count; i++) {
        mr_command_id kind = mr_program_kind_at(f->b->program, i);
        if (!mr_kind_is(kind, MR_TRAIT_BEGINS)) continue;
        mr_program_item it = mr_program_item_at(f->b->program, i);
        if (it.failed || it.storage == MR_PROGRAM_NONE) continue;
        any = f->is_made[it.storage] = true;
    }
    return any;
}

static bool comes_after(const order *o, uint32_t item, uint32_t earlier) {
    bool has_nodes = o->first_node[item] < o->first_node[item + 1] &&
                     o->first_node[earlier] < o->first_node[earlier + 1];
    return !has_nodes || order_comes_after(o, item, earlier);
}

/* Whether use `read` can come before the first write. Then an earlier write of its bytes may run after it, and the
 * writes ordered before it do not cover all bytes that it reads. */
static bool may_come_first(const fresh *f, size_t read) {
    const use *r = &f->uses.items[read];
    bool races = false, grows = true;
    for (size_t i = 0; i < read && !races; i++) {
        const use *w = &f->uses.items[i];
        races = w->slot == r->slot && w->writes && w->item < r->item && w->first < r->end &&
                r->first < w->end && !comes_after(&f->b->order, r->item, w->item);
    }
    uint64_t written = r->first; /* all below is */
    while (races && grows && written < r->end) {
        grows = false;
        for (size_t i = 0; i < read; i++) {
            const use *w = &f->uses.items[i];
            if (w->slot != r->slot || !w->is_whole || w->first > written || w->end <= written ||
                w->item == r->item || !comes_after(&f->b->order, r->item, w->item))
                continue;
            written = w->end;
            grows = true;
        }
    }
    return races && written < r->end;
}

mr_status fresh_find(explorer *e, branch *b) {
    uint32_t from = b->before ? b->key.item : 0; /* its parent has the same items before that one */
    fresh f = {.b = b,
               .is_made = calloc(mr_program_storage_count(b->program) + 1, sizeof *f.is_made)};
    if (e->result->reads_fresh || !f.is_made || !find_made(&f)) {
        free(f.is_made);
        return f.is_made ? MR_OK : mr_no_memory("to explore a program");
    }
    find_uses(&f);
    order_forget(&b->order);
    for (uint32_t i = 0; i < b->count && !f.failed; i++)
        rules_place(b, i, mr_program_item_at(b->program, i).came_true);
    for (size_t i = 0; i < f.uses.count && !f.failed && !e->result->reads_fresh; i++)
        if (f.uses.items[i].reads && f.uses.items[i].item >= from)
            e->result->reads_fresh = may_come_first(&f, i);
    order_forget(&b->order);
    mr_vec_free(&f.uses);
    free(f.is_made);
    return f.failed ? mr_no_memory("to explore a program") : MR_OK;
}
