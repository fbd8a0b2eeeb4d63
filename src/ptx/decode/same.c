/* Registers that only repeat another value: a parameter of the kernel, a special register, a constant, the address of a
 * variable. Compilers load each of them into a register first. Where that is the register's only value, its uses read
 * the vector itself, and the instruction that filled it makes no code. So in short kernels a third of the codes goes.
 *
 * The vectors in question do not change while a block runs. A copy of another register is not dropped, even if each has
 * only one instruction that writes it: in a loop the copy may be of an earlier round. */
#include "ptx/decode/decode.h"

#include <stdlib.h>

static void count_write(void *context, uint32_t r) {
    uint8_t *writes = context;
    if (writes[r] < 2) writes[r]++;
}

/* May the instruction only give another vector a name? */
static bool is_candidate(const ptx_decoder *d, const ptx_instruction *i, const uint8_t *writes) {
    if (i->guard >= 0 || i->operand_count != 2 || i->operands[0].kind != PTX_REGISTER ||
        writes[i->operands[0].index] != 1) {
        return false;
    }
    switch ((ptx_opcode)i->opcode) {
    case PTX_OP_mov:
    case PTX_OP_cvta: return true;
    case PTX_OP_ld: return d->function->is_entry && i->operands[1].kind == PTX_PARAMETER;
    default: return false;
    }
}

/* The vector that the code copies as a whole; false: it does something else, or the vector may change. */
static bool copied(ptx_decoder *d, const ptx_code *code, ptx_place_of *out) {
    static const ptx_lane moves[] = {PTX_LANE_mov_16, PTX_LANE_mov_32, PTX_LANE_mov_64};
    if (code->run == d->lanes[PTX_LANE_load_param_4] ||
        code->run == d->lanes[PTX_LANE_load_param_8]) {
        const ptx_memory_code *m = code->memory;
        *out = ptx_param_vector(d, (uint32_t)m->offset, m->bytes);
        return true;
    }
    *out = code->a;
    for (size_t k = 0; k < sizeof moves / sizeof *moves; k++) {
        if (code->run == d->lanes[moves[k]]) return (code->a & 3) != PTX_AREA_FRAME;
    }
    return false;
}

/* One pass over the instructions, in their order; a register that is the same as one found later waits for the next. */
static bool look(ptx_decoder *d, const uint8_t *writes,
                 void (*decode)(ptx_decoder *d, uint32_t index)) {
    const ptx_function *f = d->function;
    bool any = false;
    for (uint32_t i = 0; i < f->instruction_count && !d->failure; i++) {
        ptx_place_of place;
        if (d->is_dropped[i] || !is_candidate(d, &f->instructions[i], writes)) continue;
        decode(d, i);
        if (!d->failure && d->codes.count == 1 && copied(d, &d->codes.items[0], &place) &&
            !d->failure) {
            d->slot[f->instructions[i].operands[0].index] = place;
            d->is_dropped[i] = 1;
            any = true;
        }
        d->codes.count = 0;
    }
    return any;
}

mr_status ptx_find_same(ptx_decoder *d, void (*decode)(ptx_decoder *d, uint32_t index)) {
    const ptx_function *f = d->function;
    uint8_t *writes = calloc(f->register_count + 1, 1);
    if (!writes) return mr_no_memory("to decode PTX");
    for (uint32_t i = 0; i < f->instruction_count; i++) {
        ptx_visit_results(&f->instructions[i], count_write, writes);
    }
    if (look(d, writes, decode)) look(d, writes, decode);
    free(writes);
    return d->failure;
}
