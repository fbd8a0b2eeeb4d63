/* What needs no search. Where the hazard checker finds no pair that nothing orders, and nothing else depends on the
 * order, one schedule stands for all. And where no value depends on which memory an allocation gets, no search need
 * try another one.
 *
 * Easiest to break: a proof says something of every schedule. Whatever is not known to be independent of the order
 * forbids it, and is left to the search. */
#include "explore/state.h"
#include "hazard/hazard.h"
#include "ops/op.h"
#include "tensor/tensor.h"

#define NONE UINT32_MAX

/* ---- what the checker says of the program, without carrying it out */

typedef struct {
    bool pair;     /* of accesses that nothing orders, or of atomic updates */
    bool lifetime; /* one of the two is the allocation or the free of the memory */
    mr_claims claims;
} verdict;

static void found(void *context, const mr_hazard_found *f) {
    verdict *v = context;
    v->pair = true;
    v->lifetime |= f->kind == MR_HAZARD_USE_AFTER_FREE || f->kind == MR_HAZARD_USE_BEFORE_ALLOC;
}

static void updated(void *context, const mr_hazard_found *f) {
    (void)f;
    ((verdict *)context)->pair = true;
}

static mr_status tell(mr_teller *teller, mr_hazard *hazard, verdict *out) {
    mr_telling telling = {.spread = 1, .until = SIZE_MAX};
    mr_hazard_watcher watcher = {
        .context = out, .only_tell = true, .found = found, .updated = updated};
    mr_teller_rewind(teller, 1);
    mr_hazard_watch(hazard, &watcher);
    MR_TRY(mr_hazard_set_mode(hazard, MR_HAZARD_COLLECT));
    mr_status status = mr_teller_tell(teller, &telling);
    out->claims = mr_hazard_get_totals(hazard, true).claims;
    mr_error_destroy(mr_hazard_set_mode(hazard, MR_HAZARD_OFF));
    return status;
}

static mr_status judge(const mr_program *program, verdict *out) {
    mr_teller *teller;
    mr_hazard *hazard = NULL;
    mr_hazard_hooks hooks = {0};
    *out = (verdict){0};
    MR_TRY(mr_teller_open(program, &teller));
    mr_status status = mr_hazard_create(mr_teller_machine(teller), &hooks, &hazard);
    if (!status) status = tell(teller, hazard, out);
    mr_hazard_destroy(hazard);
    mr_teller_close(teller);
    return status;
}

/* What the checker could not follow, and what the search follows by itself. Conditions that hold of every search, too,
 * are told with its result. */
static bool is_followed(const mr_claims *claims) {
    for (int i = 0; i < MR_CLAIM_COUNT; i++) {
        switch ((mr_claim_id)i) {
        case MR_CLAIM_HOST_READS:   /* they read the same under each schedule */
        case MR_CLAIM_SWITCHED_OFF: /* for what was before the program, which has been waited for */
        case MR_CLAIM_LEARNED:
        case MR_CLAIM_DECLARED:
        case MR_CLAIM_THREADS:
        case MR_CLAIM_NOT_LOOKED: break;
        case MR_CLAIM_FAILED:
        case MR_CLAIM_STOPPED:
        case MR_CLAIM_INTERRUPTED:
        case MR_CLAIM_RESET:
        case MR_CLAIM_NOT_RUN:
        case MR_CLAIM_UNFINISHED:
        case MR_CLAIM_POINTERS:
        case MR_CLAIM_STRAYED:
        case MR_CLAIM_DRAWN:
        case MR_CLAIM_FORGOTTEN:
        case MR_CLAIM_DROPPED:
        case MR_CLAIM_IGNORED:
        case MR_CLAIM_CLEARED:
        case MR_CLAIM_QUERIES:
        case MR_CLAIM_HOST_FUNCTIONS:
        case MR_CLAIM_UNSPECIFIED:
        case MR_CLAIM_UPDATES:
        case MR_CLAIM_WITHDRAWN:
        case MR_CLAIM_COLLECTED:
        case MR_CLAIM_ADDRESSES:
        case MR_CLAIM_RANKS:
        case MR_CLAIM_COUNT:
            if (claims->count[i]) return false;
            break;
        }
    }
    return true;
}

/* Addresses and touched bytes of all accesses are known. */
static bool knows_accesses(const mr_claims *claims) {
    return !claims->count[MR_CLAIM_POINTERS] && !claims->count[MR_CLAIM_STRAYED] &&
           !claims->count[MR_CLAIM_ADDRESSES] && !claims->count[MR_CLAIM_FORGOTTEN] &&
           !claims->count[MR_CLAIM_NOT_RUN] && !claims->count[MR_CLAIM_FAILED];
}

/* ---- memory that is written as a whole before anything else touches it */

/* A kernel of the script's own may write less than its argument. */
static bool writes_all(const mr_player_item *it, const mr_operand *o) {
    uint64_t first, end;
    if (o->access != MR_WRITE ||
        (it->item.kind != MR_COMMAND_OP && it->item.kind != MR_COMMAND_COPY))
        return false;
    if (it->item.kind == MR_COMMAND_OP && it->command->u.op.row->id == MR_OP_kernel) return false;
    mr_tensor_extent(o->tensor, &first, &end);
    return !first && end == o->tensor->storage->bytes &&
           (uint64_t)o->tensor->numel * mr_dtype_size(o->tensor->dtype) == end &&
           o->tensor->contiguous;
}

static uint32_t last_node(const order *o, uint32_t item) {
    return o->first_node[item + 1] - 1;
}

/* By the rules alone. The host's own part of a copy reads host memory only. */
static bool comes_after(const order *o, uint32_t item, uint32_t writer) {
    for (uint32_t n = o->first_node[item]; n < o->first_node[item + 1]; n++) {
        if (o->items[item].item.kind == MR_COMMAND_COPY && !o->nodes.items[n].parts) continue;
        if (!order_has(o, order_before(o, n), last_node(o, writer))) return false;
    }
    return true;
}

/* By storage: the item that writes it first, as a whole. */
typedef struct {
    uint32_t *writer; /* NONE: nothing has touched it yet */
    bool by_order;    /* all others must come after it by the rules; else the checker has said so */
} first_writes;

static bool see_item(const branch *b, first_writes *w, uint32_t i) {
    const order *o = &b->order;
    const mr_player_item *it = &o->items[i];
    if (it->command && it->command->meeting) return false;
    for (uint32_t k = 0; k < it->item.operand_count; k++) {
        const mr_storage *storage = it->operands[k].tensor->storage;
        if (storage->kind != MR_MEMORY_DEVICE) continue;
        uint32_t slot = mr_program_operand_at(b->program, i, k).storage, writer = w->writer[slot];
        if (writer == i || writer == NONE - 1) continue;
        if (writer != NONE) {
            if (w->by_order && !comes_after(o, i, writer)) return false;
            continue;
        }
        /* Another operand of the same command may read what this one is to write. */
        if (!writes_all(it, &it->operands[k])) return false;
        for (uint32_t other = 0; other < it->item.operand_count; other++)
            if (it->operands[other].tensor->storage == storage &&
                it->operands[other].access != MR_WRITE)
                return false;
        w->writer[slot] = i;
    }
    return true;
}

/* Memory of before the program has its bytes. */
static bool is_written_first(const branch *b, first_writes *w) {
    const order *o = &b->order;
    for (uint32_t slot = 0; slot < o->storages; slot++) w->writer[slot] = NONE - 1;
    for (uint32_t i = 0; i < b->count; i++)
        if (o->items[i].item.kind == MR_COMMAND_ALLOC && !o->items[i].item.failed)
            w->writer[o->items[i].item.storage] = NONE;
    for (uint32_t i = 0; i < b->count; i++)
        if (!see_item(b, w, i)) return false;
    for (size_t i = 0; i < b->parts.count; i++)
        if (b->parts.items[i].slot != NONE && w->writer[b->parts.items[i].slot] == NONE)
            return false;
    return true;
}

static mr_status find_first_writes(const branch *b, bool by_order, bool *out_all) {
    first_writes w = {malloc((b->order.storages + 1) * sizeof *w.writer), by_order};
    if (!w.writer) return mr_no_memory("to explore a program");
    *out_all = is_written_first(b, &w);
    free(w.writer);
    return MR_OK;
}

/* ---- the two proofs */

/* What an item may depend on beside the bytes of its operands, the answers and the allocations. */
typedef enum {
    BESIDE_NOTHING,
    BESIDE_POOLS,    /* how much memory the pools have, or whether a free is over */
    BESIDE_ANYTHING, /* it does what nobody knows before */
} beside;

static beside what_beside(mr_command_id kind) {
    switch (kind) {
    case MR_COMMAND_FREE_WAIT:
    case MR_COMMAND_TRIM:
    case MR_COMMAND_MEMORY_LOOK: return BESIDE_POOLS;
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT: return BESIDE_ANYTHING;
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE)
    case MR_COMMAND_STREAM_DROP:
    case MR_COMMAND_EVENT_CREATE:
    case MR_COMMAND_EVENT_CLOSE:
    case MR_COMMAND_HOST_ALLOC:
    case MR_COMMAND_HOST_FREE:
    case MR_COMMAND_RECORD_STREAM:
    case MR_COMMAND_HOST_READ:
    case MR_COMMAND_HOST_WORK:
    case MR_COMMAND_ELAPSED:
    case MR_COMMAND_DRAIN:
    case MR_COMMAND_ENABLE_PEER:
    case MR_COMMAND_HOST_TIME:
    case MR_COMMAND_DEVICE_TIME:
    case MR_COMMAND_LAUNCH_BLOCKING:
    case MR_COMMAND_CHOOSER:
    case MR_COMMAND_MODEL:
    case MR_COMMAND_SETTING:
    case MR_COMMAND_STEP:
    case MR_COMMAND_BACK:
    case MR_COMMAND_PASS:
    case MR_COMMAND_HISTORY:
    case MR_COMMAND_LOOK: break;
    }
    return BESIDE_NOTHING;
}

mr_status proof_of_memory(const branch *b, bool *out_clean) {
    verdict v;
    *out_clean = false;
    for (uint32_t i = 0; i < b->count; i++) {
        const mr_player_item *it = &b->order.items[i];
        if (what_beside(it->item.kind) == BESIDE_POOLS) return MR_OK;
        if (it->item.kind == MR_COMMAND_ALLOC && it->item.failed) return MR_OK;
    }
    bool all = false;
    MR_TRY(find_first_writes(b, true, &all));
    if (!all) return MR_OK;
    MR_TRY(judge(b->program, &v));
    *out_clean = !v.lifetime && knows_accesses(&v.claims);
    return MR_OK;
}

/* What depends on the order although no two accesses race. */
static bool depends_on_order(const explorer *e, const branch *b, uint32_t i) {
    const mr_player_item *it = &b->order.items[i];
    bool asked;
    if (it->item.failed || it->item.has_error || what_beside(it->item.kind) != BESIDE_NOTHING)
        return true;
    if (it->command && it->command->meeting) return true;
    if (e->options.unspecified && order_is_open(&b->order, i, &asked)) return true;
    switch ((item_class)b->classes[i]) {
    case ITEM_QUERY:
    case ITEM_REFUSED: return true;
    case ITEM_LOOK: return it->item.kind != MR_COMMAND_HOST_READ;
    case ITEM_PLAIN:
    case ITEM_WORK:
    case ITEM_HOST:
    case ITEM_WAIT:
    case ITEM_ALLOC:
    case ITEM_COPY: break;
    }
    return false;
}

mr_status proof_of_one(explorer *e, const branch *b, bool *out_proved) {
    verdict v;
    bool all = true;
    *out_proved = false;
    if (e->options.full || e->options.samples || e->options.pair[0].where.file) return MR_OK;
    for (uint32_t i = 0; i < b->count; i++)
        if (depends_on_order(e, b, i)) return MR_OK;
    MR_TRY(judge(b->program, &v));
    if (v.pair || !is_followed(&v.claims)) return MR_OK;
    if (b->order.aliases) MR_TRY(find_first_writes(b, false, &all));
    *out_proved = all;
    return MR_OK;
}
