/* Where warps wait for memory: see waits.h.
 *
 * The GPU's compiler moves loads of a basic block up as far as their addresses allow. It does not move them over a
 * barrier, nor over a store or an atomic operation that may touch the same bytes. So in each block loads have a depth:
 * one more than that of the loads that their address is made of. Loads of one depth are under way together. A load of
 * an earlier block counts as done. */
#include "ptx/run/waits.h"

#include <stdlib.h>
#include <string.h>

enum { MEMORY, SHARED, CHAINS };

typedef struct {
    uint32_t block; /* + 1: of which the depths are */
    uint16_t depth[CHAINS];
} reached;

typedef struct {
    const ptx_function *f;
    reached *registers;
    uint32_t block;
    uint16_t deepest[CHAINS]; /* of the loads so far */
    uint16_t least[CHAINS];   /* of a load that comes now, less one */
} search;

static bool is_shared(const ptx_instruction *i) {
    return ptx_has(i, PTX_MOD_shared) || ptx_has(i, PTX_MOD_shared_cta);
}

/* Parameters and constants are in a cache that is as quick as registers. */
static int chain_of(const ptx_instruction *i) {
    switch (i->opcode) {
    case PTX_OP_ld:
    case PTX_OP_ldu:
        if (ptx_has(i, PTX_MOD_param) || ptx_has(i, PTX_MOD_const_)) return -1;
        return is_shared(i) ? SHARED : MEMORY;
    case PTX_OP_atom: return is_shared(i) ? SHARED : MEMORY;
    default: return -1;
    }
}

static bool has_result(const ptx_instruction *i) {
    switch (i->opcode) {
    case PTX_OP_st:
    case PTX_OP_red:
    case PTX_OP_bar:
    case PTX_OP_barrier:
    case PTX_OP_membar:
    case PTX_OP_fence:
    case PTX_OP_bra:
    case PTX_OP_brx:
    case PTX_OP_ret:
    case PTX_OP_exit: return false;
    default: return i->operand_count > 0;
    }
}

static void deepen(const search *s, const ptx_operand *o, uint16_t depth[CHAINS]) {
    if (o->kind == PTX_LIST)
        for (uint32_t k = 0; k < o->count; k++) deepen(s, &o->list[k], depth);
    if (o->kind != PTX_REGISTER) return;
    const reached *r = &s->registers[o->index];
    for (int c = 0; r->block == s->block + 1 && c < CHAINS; c++)
        if (r->depth[c] > depth[c]) depth[c] = r->depth[c];
}

static void set(search *s, const ptx_operand *o, const uint16_t depth[CHAINS]) {
    if (o->kind == PTX_LIST)
        for (uint32_t k = 0; k < o->count; k++) set(s, &o->list[k], depth);
    if (o->kind != PTX_REGISTER) return;
    reached *r = &s->registers[o->index];
    r->block = s->block + 1;
    memcpy(r->depth, depth, sizeof r->depth);
}

static void raise_to(uint16_t *least, uint16_t depth) {
    if (depth > *least) *least = depth;
}

/* Notes an instruction that later loads cannot be moved over. */
static void hold_back(search *s, const ptx_instruction *i, const uint16_t depth[CHAINS]) {
    switch (i->opcode) {
    case PTX_OP_st:
    case PTX_OP_red:
        raise_to(&s->least[is_shared(i) ? SHARED : MEMORY], depth[is_shared(i) ? SHARED : MEMORY]);
        break;
    case PTX_OP_bar:
    case PTX_OP_barrier:
    case PTX_OP_membar:
    case PTX_OP_fence:
    case PTX_OP_atom:
    case PTX_OP_call:
        for (int c = 0; c < CHAINS; c++) raise_to(&s->least[c], s->deepest[c]);
        break;
    default: break;
    }
}

static ptx_wait look_at(search *s, const ptx_instruction *i) {
    uint16_t depth[CHAINS] = {0};
    bool result = has_result(i);
    for (uint32_t k = result && !i->operands[0].is_address; k < i->operand_count; k++)
        deepen(s, &i->operands[k], depth);
    if (i->guard >= 0) {
        ptx_operand guard = {.kind = PTX_REGISTER, .index = (uint32_t)i->guard};
        deepen(s, &guard, depth);
    }
    int chain = chain_of(i);
    bool opens = false;
    if (chain >= 0) {
        raise_to(&depth[chain], s->least[chain]);
        depth[chain]++;
        opens = depth[chain] > s->deepest[chain];
        if (opens) s->deepest[chain] = depth[chain];
    }
    hold_back(s, i, depth);
    if (result) set(s, &i->operands[0], depth);
    if (result && i->two_results) set(s, &i->operands[1], depth);
    if (!opens) return PTX_NO_WAIT;
    return chain == MEMORY ? PTX_WAIT_MEMORY : PTX_WAIT_SHARED;
}

bool ptx_find_waits(const ptx_function *f, uint8_t *out) {
    search s = {.f = f, .registers = calloc(f->register_count + 1, sizeof *s.registers)};
    if (!s.registers) return false;
    memset(out, PTX_NO_WAIT, f->instruction_count);
    for (uint32_t b = 0; b < f->block_count; b++) {
        s.block = b;
        memset(s.deepest, 0, sizeof s.deepest);
        memset(s.least, 0, sizeof s.least);
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++)
            out[i] = (uint8_t)look_at(&s, &f->instructions[i]);
    }
    free(s.registers);
    return true;
}
