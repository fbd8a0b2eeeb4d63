/* Proofs that replace a search. If the hazard checker finds no unordered pair, and nothing else depends on the order,
 * one schedule stands for all. If no value depends on which memory an allocation gets, the search need not try other
 * memory. Easiest to break: a proof speaks of every schedule. Anything that may depend on the order forbids the proof,
 * and is left to the search. */
#include "explore/state.h"
#include "hazard/hazard.h"
#include "ops/ids.h"
#include "ops/op.h"
#include "tensor/tensor.h"

#define NONE UINT32_MAX

/* ---- what the checker says of the program, without carrying it out */

static void found(void *context, const mr_hazard_found *f) {
    program_verdict *v = context;
    v->pair = true;
    v->lifetime |= f->kind == MR_HAZARD_USE_AFTER_FREE || f->kind == MR_HAZARD_USE_BEFORE_ALLOC;
}

static void updated(void *context, const mr_hazard_found *f) {
    (void)f;
    ((program_verdict *)context)->pair = true;
}

static mr_status tell(mr_teller *teller, mr_hazard *hazard, program_verdict *out) {
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

/* Fills in b->verdict, once. */
static mr_status judge(branch *b) {
    mr_teller *teller;
    mr_hazard *hazard = NULL;
    mr_hazard_hooks hooks = {0};
    if (b->verdict.is_known) return MR_OK;
    b->verdict = (program_verdict){0};
    MR_TRY(mr_teller_open(b->program, &teller));
    mr_status status = mr_hazard_create(mr_teller_machine(teller), &hooks, &hazard);
    if (!status) status = tell(teller, hazard, &b->verdict);
    b->verdict.is_known = !status;
    mr_hazard_destroy(hazard);
    mr_teller_close(teller);
    return status;
}

/* Whether the search follows everything that the checker could not. Conditions that any search has, too, are reported
 * with its result. */
static bool is_followed(const mr_claims *claims) {
    for (int i = 0; i < MR_CLAIM_COUNT; i++) {
        switch ((mr_claim_id)i) {
        case MR_CLAIM_HOST_READS: /* such reads get the same value under each schedule */
        /* the checker was off only for work before the program, and the host waited for it */
        case MR_CLAIM_SWITCHED_OFF:
        case MR_CLAIM_UNSPECIFIED: /* such copies wait under each schedule */
        case MR_CLAIM_LEARNED:
        case MR_CLAIM_COLLECTED: /* at the same lines under each schedule */
        case MR_CLAIM_FINALIZED:
        case MR_CLAIM_DECLARED:
        case MR_CLAIM_THREADS:
        case MR_CLAIM_RANKS: /* turns.c */
        case MR_CLAIM_RANK_ORDER:
        case MR_CLAIM_ROOM:
        case MR_CLAIM_TOGETHER:
        case MR_CLAIM_ONE_STREAM:
        case MR_CLAIM_SHORT: /* room.c */
        case MR_CLAIM_NOT_LOOKED: break;
        case MR_CLAIM_FAILED:
        case MR_CLAIM_STOPPED:
        case MR_CLAIM_INTERRUPTED:
        case MR_CLAIM_RESET:
        case MR_CLAIM_NOT_RUN:
        case MR_CLAIM_UNFINISHED:
        case MR_CLAIM_POINTERS:
        case MR_CLAIM_STRAYED:
        case MR_CLAIM_OUTSIDE:
        case MR_CLAIM_DRAWN:
        case MR_CLAIM_FORGOTTEN:
        case MR_CLAIM_DROPPED:
        case MR_CLAIM_IGNORED:
        case MR_CLAIM_CLEARED:
        case MR_CLAIM_QUERIES:
        case MR_CLAIM_HOST_FUNCTIONS:
        case MR_CLAIM_UPDATES:
        case MR_CLAIM_WITHDRAWN:
        case MR_CLAIM_ADDRESSES:
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
           !claims->count[MR_CLAIM_OUTSIDE] && !claims->count[MR_CLAIM_ADDRESSES] &&
           !claims->count[MR_CLAIM_FORGOTTEN] && !claims->count[MR_CLAIM_NOT_RUN] &&
           !claims->count[MR_CLAIM_FAILED];
}

/* ---- memory that is written as a whole before anything else touches it */

/* A kernel of the script's own may write less than its argument. */
static bool writes_all(const branch *b, const mr_program_item *it, const mr_program_operand *o) {
    uint64_t first, end;
    if (o->access != MR_WRITE || !mr_kind_is(it->kind, MR_TRAIT_WORK)) return false;
    if (it->kind == MR_COMMAND_OP && it->row->id == MR_OP_kernel) return false;
    mr_tensor_extent(o->view, &first, &end);
    return !first && end == mr_program_storage_at(b->program, o->storage).bytes &&
           (uint64_t)o->view->numel * mr_dtype_size(o->view->dtype) == end && o->view->contiguous;
}

/* By storage: the item that writes it first, as a whole. */
typedef struct {
    uint32_t *writer; /* NONE: nothing has touched it yet; OF_BEFORE: it has its bytes */
    bool by_order;    /* all others must come after it by the rules; else the checker has said so */
} first_writes;

#define OF_BEFORE (NONE - 1)

/* Another operand of the same command reads what this one is to write. */
static bool is_read_beside(const branch *b, uint32_t i, const mr_program_item *it, uint32_t slot) {
    for (uint32_t k = 0; k < it->operand_count; k++) {
        mr_program_operand o = mr_program_operand_at(b->program, i, k);
        if (o.storage == slot && o.access != MR_WRITE) return true;
    }
    return false;
}

static bool see_item(const branch *b, first_writes *w, uint32_t i) {
    mr_program_item it = mr_program_item_at(b->program, i);
    if (it.meets) return false;
    for (uint32_t k = 0; k < it.operand_count; k++) {
        mr_program_operand o = mr_program_operand_at(b->program, i, k);
        uint32_t writer = w->writer[o.storage];
        if (writer == i || writer == OF_BEFORE) continue;
        if (writer != NONE) {
            if (w->by_order && !order_comes_after(&b->order, i, writer)) return false;
            continue;
        }
        if (!writes_all(b, &it, &o) || is_read_beside(b, i, &it, o.storage)) return false;
        w->writer[o.storage] = i;
    }
    return true;
}

/* Memory from before the program, and host memory, are already written. */
static bool is_written_first(const branch *b, first_writes *w) {
    size_t storages = mr_program_storage_count(b->program);
    for (size_t slot = 0; slot < storages; slot++) w->writer[slot] = OF_BEFORE;
    for (uint32_t i = 0; i < b->count; i++) {
        if (mr_program_kind_at(b->program, i) != MR_COMMAND_ALLOC) continue;
        mr_program_item it = mr_program_item_at(b->program, i);
        if (!it.failed) w->writer[it.storage] = NONE;
    }
    for (uint32_t i = 0; i < b->count; i++)
        if (!see_item(b, w, i)) return false;
    for (size_t i = 0; i < b->parts.count; i++)
        if (b->parts.items[i].slot != NONE && w->writer[b->parts.items[i].slot] == NONE)
            return false;
    return true;
}

static mr_status find_first_writes(const branch *b, bool by_order, bool *out_all) {
    first_writes w = {malloc((mr_program_storage_count(b->program) + 1) * sizeof *w.writer),
                      by_order};
    if (!w.writer) return mr_no_memory("to explore a program");
    *out_all = is_written_first(b, &w);
    free(w.writer);
    return MR_OK;
}

mr_status proof_of_first_writes(const branch *b, bool *out_all) {
    return find_first_writes(b, false, out_all);
}

/* ---- the two proofs */

/* What an item may depend on besides the bytes of its operands, the answers and the allocations. */
typedef enum {
    BESIDE_NOTHING,
    BESIDE_POOLS,    /* how much memory the pools have, or whether a free is over */
    BESIDE_PROGRESS, /* how far the device is */
    BESIDE_OPEN,     /* what CUDA leaves open besides the order */
    BESIDE_ANYTHING, /* its effect is unknown, or the exploration refuses it */
} beside;

static beside what_beside(mr_command_id kind) {
    switch (kind) {
    case MR_COMMAND_FREE_WAIT:
    case MR_COMMAND_TRIM:
    case MR_COMMAND_MEMORY_LOOK: return BESIDE_POOLS;
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_ELAPSED:
    case MR_COMMAND_DEVICE_TIME: return BESIDE_PROGRESS;
    case MR_COMMAND_COPY:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: return BESIDE_OPEN;
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_LAUNCH_BLOCKING:
    case MR_COMMAND_CHOOSER:
    case MR_COMMAND_MODEL:
    case MR_COMMAND_SETTING:
    case MR_COMMAND_STEP:
    case MR_COMMAND_BACK:
    case MR_COMMAND_PASS:
    case MR_COMMAND_HISTORY:
    case MR_COMMAND_RESET: return BESIDE_ANYTHING;
    case MR_COMMAND_OP:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_ACCESS:
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_STREAM_DROP:
    case MR_COMMAND_EVENT_CREATE:
    case MR_COMMAND_EVENT_CLOSE:
    case MR_COMMAND_HOST_ALLOC:
    case MR_COMMAND_HOST_FREE:
    case MR_COMMAND_RECORD_STREAM:
    case MR_COMMAND_HOST_READ:
    case MR_COMMAND_HOST_WORK:
    case MR_COMMAND_DRAIN:
    case MR_COMMAND_ENABLE_PEER:
    case MR_COMMAND_HOST_TIME:
    case MR_COMMAND_LOOK: break;
    }
    return BESIDE_NOTHING;
}

mr_status proof_of_memory(branch *b, bool *out_clean) {
    *out_clean = false;
    for (uint32_t i = 0; i < b->count; i++) {
        mr_program_item it = mr_program_item_at(b->program, i);
        if (what_beside(it.kind) == BESIDE_POOLS) return MR_OK;
        if (it.kind == MR_COMMAND_ALLOC && it.failed) return MR_OK;
    }
    bool all = false;
    MR_TRY(find_first_writes(b, true, &all));
    if (!all) return MR_OK;
    MR_TRY(judge(b));
    *out_clean = !b->verdict.lifetime && knows_accesses(&b->verdict.claims);
    return MR_OK;
}

/* Whether item i depends on the order although no two accesses race. */
static bool depends_on_order(const explorer *e, const branch *b, uint32_t i) {
    if (!mr_program_is_plain(b->program, i)) return true;
    switch (what_beside(mr_program_kind_at(b->program, i))) {
    case BESIDE_NOTHING: return false;
    case BESIDE_OPEN: return e->options.unspecified;
    case BESIDE_POOLS:
    case BESIDE_PROGRESS:
    case BESIDE_ANYTHING: break;
    }
    return true;
}

bool proof_of_items(const explorer *e, const branch *b) {
    for (uint32_t i = 0; i < b->count; i++)
        if (depends_on_order(e, b, i)) return false;
    return true;
}

mr_status proof_of_accesses(branch *b, bool *out_known) {
    *out_known = false;
    MR_TRY(judge(b));
    *out_known = knows_accesses(&b->verdict.claims);
    return MR_OK;
}

/* The checker's verdict on the run itself, if it followed all of it; otherwise its verdict on the program. Hazards of a
 * check inside the function are not in the totals. The program does not separate its ranks: a wait of one rank would
 * wrongly order the work of the others. */
static mr_status find_verdict(const explorer *e, branch *b, program_verdict *out) {
    const mr_explore_subject *subject = e->subject;
    const mr_hazard_totals *totals = subject->verdict ? subject->verdict(subject->context) : NULL;
    if (!totals || totals->hazards || totals->follow_ups || totals->checked_apart ||
        !is_followed(&totals->claims)) {
        MR_TRY(judge(b));
        *out = b->verdict;
        out->pair |= turns_are_open(b);
        return MR_OK;
    }
    *out = (program_verdict){.claims = totals->claims};
    return MR_OK;
}

bool proof_of_ranks(const explorer *e) {
    const mr_explore_subject *subject = e->subject;
    const mr_hazard_totals *totals = subject->verdict ? subject->verdict(subject->context) : NULL;
    return totals && !totals->hazards && !totals->follow_ups && !totals->checked_apart &&
           is_followed(&totals->claims);
}

mr_status proof_of_one(const explorer *e, branch *b, bool *out_proved) {
    program_verdict v;
    bool all = true, frees = false;
    *out_proved = false;
    if (e->options.full || e->options.samples || e->options.pair[0].where.file) return MR_OK;
    if (!proof_of_items(e, b)) return MR_OK;
    for (uint32_t i = 0; i < b->count; i++)
        frees |= mr_program_kind_at(b->program, i) == MR_COMMAND_FREE;
    MR_TRY(find_verdict(e, b, &v));
    if (v.pair || !is_followed(&v.claims)) return MR_OK;
    if (frees) MR_TRY(find_first_writes(b, false, &all));
    *out_proved = all;
    return MR_OK;
}

/* ---- the rest of a run */

/* Whether all later work is in one stream, and the host touches memory only while no work is pending. */
bool proof_of_rest(const explorer *e, const branch *b, uint32_t last) {
    uint32_t lane = NONE;
    bool pending = false, frees = false;
    for (uint32_t i = 0; i < b->count; i++) {
        mr_program_item it = mr_program_item_at(b->program, i);
        bool works = mr_kind_is(it.kind, MR_TRAIT_WORK);
        frees |= it.kind == MR_COMMAND_FREE;
        if (it.kind == MR_COMMAND_HOST_FUNCTION) return false;
        if (i <= last) continue;
        if (depends_on_order(e, b, i) || (it.kind == MR_COMMAND_ALLOC && frees)) return false;
        if (it.kind == MR_COMMAND_HOST_ACCESS && pending) return false;
        if (!works) continue;
        if (lane != NONE && lane != it.stream) return false;
        lane = it.stream;
        pending = !it.is_read_back;
    }
    return true;
}

bool proof_reads_more(const branch *b, uint32_t last) {
    for (uint32_t i = last + 1; i < b->count; i++) {
        mr_program_item it = mr_program_item_at(b->program, i);
        if (mr_kind_is(it.kind, MR_TRAIT_TOUCH | MR_TRAIT_WORK)) return true;
    }
    return false;
}
