/* The registers that share a place of the frame. PTX has a register for each value; a frame with all of them would not
 * stay in the cache. Registers of one width whose lives do not overlap share a slot: a linear scan over intervals, with
 * lives from a backward data flow over the blocks.
 *
 * Lanes may be at different places. That does no harm: each code writes only the lanes that execute it, so for each
 * lane a slot holds the value from its own code. An instruction with a guard does not end a life before it. */
#include "ptx/decode/decode.h"

#include <stdlib.h>
#include <string.h>

enum { NARROW, WORD, WIDE, PREDICATE, KINDS };
static const uint32_t kind_bytes[KINDS] = {2 * PTX_LANES, 4 * PTX_LANES, 8 * PTX_LANES, 4};

/* Beyond that each register has its own slot. */
#define MOST_BITS ((uint64_t)1 << 28)

typedef struct {
    const ptx_function *f;
    size_t words;           /* of a set of registers */
    uint64_t *in, *out;     /* by block */
    uint64_t *uses, *kills; /* by block: read before it is written; written whole */
    uint32_t *first, *last; /* by register: its interval; first > last: never used */
} lives;

static unsigned kind_of(const ptx_register *r) {
    switch (mr_ptx_types[r->type].bytes) {
    case 0: return PREDICATE;
    case 1:
    case 2: return NARROW;
    case 4: return WORD;
    default: return WIDE;
    }
}

/* ---- what an instruction reads and writes */

static bool has_result(const ptx_instruction *i) {
    switch ((ptx_opcode)i->opcode) {
    case PTX_OP_st:
    case PTX_OP_red:
    case PTX_OP_bra:
    case PTX_OP_brx:
    case PTX_OP_call:
    case PTX_OP_ret:
    case PTX_OP_exit:
    case PTX_OP_cp:
    case PTX_OP_membar:
    case PTX_OP_fence:
    case PTX_OP_prefetch:
    case PTX_OP_prefetchu:
    case PTX_OP_nanosleep:
    case PTX_OP_discard: return false;
    case PTX_OP_bar:
    case PTX_OP_barrier: return ptx_has(i, PTX_MOD_red);
    default: return true;
    }
}

static void visit_operand(const ptx_operand *o, ptx_visit *each, void *context) {
    if (o->kind == PTX_REGISTER) each(context, o->index);
    if (o->kind != PTX_LIST) return;
    for (unsigned i = 0; i < o->count; i++) visit_operand(&o->list[i], each, context);
}

static bool is_result(const ptx_instruction *i, unsigned k) {
    return has_result(i) && !i->operands[k].is_address && (k == 0 || (k == 1 && i->two_results));
}

void ptx_visit_results(const ptx_instruction *i, ptx_visit *each, void *context) {
    for (unsigned k = 0; k < i->operand_count; k++) {
        if (is_result(i, k)) visit_operand(&i->operands[k], each, context);
    }
}

static void visit_sources(const ptx_instruction *i, ptx_visit *each, void *context) {
    for (unsigned k = 0; k < i->operand_count; k++) {
        if (!is_result(i, k)) visit_operand(&i->operands[k], each, context);
    }
    if (i->guard >= 0) each(context, (uint32_t)i->guard);
}

/* ---- lives */

typedef struct {
    uint64_t *uses, *kills;
} local_sets;
static void note_use(void *context, uint32_t r) {
    local_sets *s = context;
    if (!(s->kills[r / 64] >> (r % 64) & 1)) s->uses[r / 64] |= (uint64_t)1 << (r % 64);
}
static void note_kill(void *context, uint32_t r) {
    local_sets *s = context;
    if (!(s->uses[r / 64] >> (r % 64) & 1)) s->kills[r / 64] |= (uint64_t)1 << (r % 64);
}

static void look_at_blocks(lives *l) {
    for (uint32_t b = 0; b < l->f->block_count; b++) {
        local_sets sets = {l->uses + b * l->words, l->kills + b * l->words};
        for (uint32_t i = l->f->blocks[b].first; i < l->f->blocks[b].end; i++) {
            const ptx_instruction *instruction = &l->f->instructions[i];
            visit_sources(instruction, note_use, &sets);
            if (instruction->guard < 0) ptx_visit_results(instruction, note_kill, &sets);
        }
    }
}

static void flow(lives *l) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = l->f->block_count; b-- > 0;) {
            const ptx_block *block = &l->f->blocks[b];
            uint64_t *in = l->in + b * l->words, *out = l->out + b * l->words;
            for (uint32_t s = 0; s < block->successor_count; s++) {
                uint32_t to = block->successors[s];
                if (to >= l->f->block_count) continue;
                const uint64_t *of_next = l->in + to * l->words;
                for (size_t w = 0; w < l->words; w++) out[w] |= of_next[w];
            }
            for (size_t w = 0; w < l->words; w++) {
                uint64_t now = l->uses[b * l->words + w] | (out[w] & ~l->kills[b * l->words + w]);
                if (now == in[w]) continue;
                in[w] = now;
                changed = true;
            }
        }
    }
}

typedef struct {
    lives *l;
    uint32_t at;
} position;
static void stretch(void *context, uint32_t r) {
    position *p = context;
    if (p->at < p->l->first[r]) p->l->first[r] = p->at;
    if (p->at > p->l->last[r]) p->l->last[r] = p->at;
}
static void stretch_set(lives *l, const uint64_t *set, uint32_t at) {
    position p = {l, at};
    for (size_t w = 0; w < l->words; w++) {
        for (uint64_t left = set[w]; left; left &= left - 1) {
            stretch(&p, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(left)));
        }
    }
}

/* Sources of instruction i live at 2i, results at 2i + 1: so a result may take the place of a source that ends
 * there. */
static void intervals(lives *l) {
    for (uint32_t r = 0; r < l->f->register_count; r++) l->first[r] = UINT32_MAX;
    for (uint32_t b = 0; b < l->f->block_count; b++) {
        const ptx_block *block = &l->f->blocks[b];
        if (block->first >= block->end) continue;
        if (l->in) {
            stretch_set(l, l->in + b * l->words, 2 * block->first);
            stretch_set(l, l->out + b * l->words, 2 * block->end - 1);
        }
        for (uint32_t i = block->first; i < block->end; i++) {
            position p = {l, 2 * i};
            visit_sources(&l->f->instructions[i], stretch, &p);
            p.at = 2 * i + 1;
            ptx_visit_results(&l->f->instructions[i], stretch, &p);
        }
    }
}

/* ---- the scan */

typedef struct {
    uint32_t first, r;
} start;
static int by_start(const void *a, const void *b) {
    const start *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->r < y->r ? -1 : x->r > y->r;
}

typedef struct {
    uint32_t last, slot;
} active;
typedef MR_VEC(active) heap; /* the earliest end at the top */

static bool heap_push(heap *h, active a) {
    if (!mr_vec_push(h, a)) return false;
    size_t i = h->count - 1;
    while (i > 0 && h->items[(i - 1) / 2].last > a.last) {
        h->items[i] = h->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->items[i] = a;
    return true;
}
static active heap_pop(heap *h) {
    active top = h->items[0], moved = h->items[--h->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->count) break;
        if (child + 1 < h->count && h->items[child + 1].last < h->items[child].last) child++;
        if (moved.last <= h->items[child].last) break;
        h->items[i] = h->items[child];
        i = child;
    }
    if (h->count) h->items[i] = moved;
    return top;
}

/* Numbers the slots of one kind; returns how many there are, or UINT32_MAX if memory is out. */
static uint32_t scan(const start *starts, uint32_t count, const uint32_t *last, uint32_t *number) {
    heap live = {0};
    MR_VEC(uint32_t) free_slots = {0};
    uint32_t slots = 0;
    bool good = true;
    for (uint32_t i = 0; i < count && good; i++) {
        while (live.count && live.items[0].last < starts[i].first) {
            active ended = heap_pop(&live);
            good = good && mr_vec_push(&free_slots, ended.slot);
        }
        uint32_t slot = free_slots.count ? mr_vec_pop(&free_slots) : slots++;
        number[starts[i].r] = slot;
        good = good && heap_push(&live, (active){last[starts[i].r], slot});
    }
    mr_vec_free(&live);
    mr_vec_free(&free_slots);
    return good ? slots : UINT32_MAX;
}

static mr_status assign(const lives *l, start *starts, ptx_slots *out) {
    const ptx_function *f = l->f;
    uint64_t at = 0;
    uint32_t words = 0;
    static const uint32_t words_of[KINDS] = {1, 1, 2, 0};
    /* Predicates first, as they are small; the rest is aligned to 64 bytes. */
    static const unsigned order[KINDS] = {PREDICATE, NARROW, WORD, WIDE};
    for (unsigned o = 0; o < KINDS; o++) {
        unsigned kind = order[o];
        uint32_t count = 0;
        for (uint32_t r = 0; r < f->register_count; r++) {
            if (kind_of(&f->registers[r]) != kind) continue;
            if (l->first[r] > l->last[r]) out->slot[r] = 0; /* never used */
            else starts[count++] = (start){l->first[r], r};
        }
        qsort(starts, count, sizeof *starts, by_start);
        uint32_t slots = scan(starts, count, l->last, out->slot);
        if (slots == UINT32_MAX) return mr_no_memory("to decode PTX");
        for (uint32_t i = 0; i < count; i++) {
            out->slot[starts[i].r] = (uint32_t)at + out->slot[starts[i].r] * kind_bytes[kind];
        }
        uint64_t extra = kind == PREDICATE ? PTX_SCRATCHES + 1 : PTX_SCRATCHES;
        out->scratch[kind] = (uint32_t)(at + (uint64_t)slots * kind_bytes[kind]);
        at += (slots + extra) * kind_bytes[kind];
        at = (at + 63) / 64 * 64;
        words += slots * words_of[kind];
        if (at > UINT32_MAX / 2) {
            return mr_fail(MR_CODE_NOT_SUPPORTED, "function `%s` has too many registers (%u)",
                           f->name, f->register_count);
        }
    }
    out->frame_bytes = (uint32_t)at;
    out->live_words = words;
    return MR_OK;
}

mr_status ptx_slots_assign(const ptx_function *f, ptx_slots *out) {
    lives l = {.f = f, .words = (f->register_count + 63) / 64};
    size_t set = l.words * f->block_count;
    bool is_small = (uint64_t)set * 64 <= MOST_BITS;
    size_t registers = f->register_count + 1;
    start *starts = malloc(registers * sizeof *starts);
    uint64_t *sets = is_small ? calloc(4 * set + 1, sizeof *sets) : NULL;
    l.first = calloc(registers, sizeof *l.first);
    l.last = calloc(registers, sizeof *l.last);
    out->slot = calloc(registers, sizeof *out->slot);
    mr_status status = MR_OK;
    if (!starts || (is_small && !sets) || !l.first || !l.last || !out->slot) {
        status = mr_no_memory("to decode PTX");
    } else {
        if (is_small) {
            l.in = sets, l.out = sets + set, l.uses = sets + 2 * set, l.kills = sets + 3 * set;
            look_at_blocks(&l);
            flow(&l);
        }
        intervals(&l);
        if (!is_small) {
            for (uint32_t r = 0; r < f->register_count; r++) {
                if (l.first[r] <= l.last[r]) l.first[r] = 0, l.last[r] = UINT32_MAX;
            }
        }
        status = assign(&l, starts, out);
    }
    free(starts);
    free(sets);
    free(l.first);
    free(l.last);
    return status;
}
