/* Decodes functions: blocks, joins, guards; see decode.h. Each kind of instruction has a file of
 * its own. */
#include "ptx/decode/decode.h"

#include <stdlib.h>
#include <string.h>

/* The longest frame of registers that a function may have. */
#define MOST_FRAME_BYTES (8u << 20)

/* ---- guards */

/* Instructions at which lanes wait are not executed by some lanes of a path: they get a branch around them. */
static bool must_be_whole(const ptx_instruction *i) {
    switch ((ptx_opcode)i->opcode) {
    case PTX_OP_call:
    case PTX_OP_bar:
    case PTX_OP_barrier:
    case PTX_OP_shfl:
    case PTX_OP_vote:
    case PTX_OP_match:
    case PTX_OP_redux: return true;
    default: return false;
    }
}

static void unguarded(ptx_decoder *d) {
    d->guard = ptx_constant_of(d, 1, 0);
    d->guard_flip = 0;
}

static void set_guard(ptx_decoder *d, const ptx_instruction *i) {
    unguarded(d);
    if (i->guard < 0) return;
    d->guard = d->slot[i->guard];
    d->guard_flip = i->guard_negated ? PTX_ALL : 0;
    if (mr_ptx_types[d->function->registers[i->guard].type].bytes != 0 ||
        d->function->registers[i->guard].type != PTX_pred) {
        ptx_reject(d, "its guard must be a predicate");
    }
}

/* If a code before the last one writes the predicate that guards them all, they are guarded by a copy of it. */
static void protect_guard(ptx_decoder *d, size_t first) {
    size_t count = d->codes.count - first;
    if (d->instruction->guard < 0 || count < 2) return;
    bool is_written = false;
    for (size_t k = first; k + 1 < d->codes.count; k++) {
        is_written |= d->codes.items[k].d == d->guard;
    }
    if (!is_written) return;
    ptx_place_of copy = d->scratch[3] + PTX_SCRATCHES * 4; /* one more than the others may use */
    ptx_place_of guard = d->guard;
    unguarded(d);
    if (!ptx_emit(d, ptx_run_pred_mov, copy, guard, guard, guard)) return;
    ptx_code moved = d->codes.items[d->codes.count - 1];
    memmove(&d->codes.items[first + 1], &d->codes.items[first], count * sizeof moved);
    d->codes.items[first] = moved;
    for (size_t k = first + 1; k < d->codes.count; k++) d->codes.items[k].guard = copy;
}

/* ---- instructions */

static void decode_kind(ptx_decoder *d) {
    if (ptx_decode_integer(d) || ptx_decode_float(d) || ptx_decode_compare(d) ||
        ptx_decode_convert(d) || ptx_decode_move(d) || ptx_decode_memory(d) ||
        ptx_decode_control(d) || ptx_decode_warp(d)) {
        return;
    }
    ptx_refuse(d, "this instruction is not interpreted");
}

static void check_modifiers(ptx_decoder *d) {
    const ptx_instruction *i = d->instruction;
    for (unsigned k = 0; k < i->modifier_count && !d->failure; k++) {
        if (d->taken >> k & 1) continue;
        ptx_refuse(d, "the modifier .%s has no meaning here, or is not interpreted",
                   ptx_modifier_names[i->modifiers[k]]);
    }
}

static void decode_instruction(ptx_decoder *d, uint32_t index) {
    const ptx_instruction *i = &d->function->instructions[index];
    d->instruction = i;
    d->index = index;
    d->taken = 0;
    memset(d->used, 0, sizeof d->used);
    set_guard(d, i);
    bool whole = i->guard >= 0 && must_be_whole(i);
    size_t branch = d->codes.count;
    if (whole) {
        d->guard_flip = ~d->guard_flip;
        ptx_emit(d, ptx_run_branch, 0, 0, 0, 0);
        unguarded(d);
    }
    size_t first = d->codes.count;
    decode_kind(d);
    if (d->failure) return;
    check_modifiers(d);
    if (!whole) {
        protect_guard(d, first);
        return;
    }
    uint32_t join = (uint32_t)d->codes.count;
    ptx_emit(d, ptx_run_join, 0, 0, 0, 0);
    ptx_fix fixes[] = {{(uint32_t)branch, PTX_FIX_TARGET, join, true},
                       {(uint32_t)branch, PTX_FIX_JOIN, join, true}};
    for (unsigned k = 0; k < 2; k++) {
        if (!mr_vec_push(&d->fixes, fixes[k]) && !d->failure) {
            d->failure = mr_no_memory("to decode PTX");
        }
    }
}

/* ---- functions */

static bool is_branch(const ptx_instruction *i) {
    return i->opcode == PTX_OP_bra || i->opcode == PTX_OP_brx;
}

/* By block: lanes that part at the end of another block meet there. */
static void find_joins(const ptx_function *f, uint8_t *is_join) {
    for (uint32_t b = 0; b < f->block_count; b++) {
        const ptx_block *block = &f->blocks[b];
        bool parts = block->end > block->first && is_branch(&f->instructions[block->end - 1]);
        if (parts && block->post_dominator < f->block_count) is_join[block->post_dominator] = 1;
    }
}

static void decode_blocks(ptx_decoder *d, uint32_t *first_code, const uint8_t *is_join) {
    const ptx_function *f = d->function;
    for (uint32_t b = 0; b < f->block_count && !d->failure; b++) {
        const ptx_block *block = &f->blocks[b];
        for (uint32_t i = block->first; i < block->end && !d->failure; i++) {
            first_code[i] = (uint32_t)d->codes.count;
            if (i == block->first && is_join[b]) {
                d->instruction = &f->instructions[i];
                unguarded(d);
                ptx_emit(d, ptx_run_join, 0, 0, 0, 0);
            }
            if (!d->is_dropped[i]) decode_instruction(d, i);
            if (i + 1 == block->end && is_branch(&f->instructions[i]) &&
                block->post_dominator < f->block_count) {
                ptx_fix_later(d, PTX_FIX_JOIN, f->blocks[block->post_dominator].first);
            }
        }
    }
    first_code[f->instruction_count] = (uint32_t)d->codes.count;
    unguarded(d);
    d->instruction = f->instruction_count ? &f->instructions[f->instruction_count - 1] : NULL;
    ptx_emit(d, ptx_run_end, 0, 0, 0, 0);
}

static const ptx_code **table_of(ptx_decoder *d, uint32_t list, const uint32_t *first_code,
                                 const ptx_code *codes) {
    const ptx_targets *targets = &d->function->targets[list];
    const ptx_code **table =
        mr_region_alloc(&d->module->region, (targets->count + 1) * sizeof *table);
    for (uint32_t i = 0; table && i < targets->count; i++) {
        table[i] = codes + first_code[targets->items[i]];
    }
    return table;
}

static mr_status keep_codes(ptx_decoder *d, const uint32_t *first_code) {
    ptx_code *codes = mr_region_alloc(&d->module->region, d->codes.count * sizeof *codes);
    if (!codes) return mr_no_memory("to decode PTX");
    memcpy(codes, d->codes.items, d->codes.count * sizeof *codes);
    for (size_t i = 0; i < d->fixes.count; i++) {
        const ptx_fix *fix = &d->fixes.items[i];
        ptx_code *code = &codes[fix->code];
        if (fix->kind == PTX_FIX_TABLE) {
            code->targets = table_of(d, fix->instruction, first_code, codes);
            if (!code->targets) return mr_no_memory("to decode PTX");
            continue;
        }
        const ptx_code *to =
            codes + (fix->is_code ? fix->instruction : first_code[fix->instruction]);
        if (fix->kind == PTX_FIX_TARGET) code->target = to;
        else code->join = to;
    }
    d->routine->codes = codes;
    d->routine->code_count = (uint32_t)d->codes.count;
    d->routine->first_index = d->module->code_count;
    d->module->code_count += (uint32_t)d->codes.count;
    return MR_OK;
}

static mr_status decode_with(ptx_decoder *d, uint32_t *first_code, uint8_t *is_join) {
    MR_TRY(ptx_find_same(d, decode_instruction));
    find_joins(d->function, is_join);
    decode_blocks(d, first_code, is_join);
    return d->failure ? d->failure : keep_codes(d, first_code);
}

mr_status ptx_decode(mr_ptx_module *module, ptx_constants *constants, ptx_run *const *lanes,
                     uint32_t function) {
    ptx_slots slots = {0};
    const ptx_function *f = &module->tree.functions[function];
    MR_TRY(ptx_slots_assign(f, &slots));
    ptx_decoder d = {.module = module,
                     .constants = constants,
                     .function = f,
                     .routine = &module->routines[function],
                     .lanes = lanes,
                     .slot = slots.slot};
    memcpy(d.scratch, slots.scratch, sizeof d.scratch);
    d.routine->frame_bytes = slots.frame_bytes;
    d.routine->registers = slots.live_words;
    uint32_t *first_code = calloc(f->instruction_count + 1, sizeof *first_code);
    uint8_t *is_join = calloc(f->block_count + 1, 1);
    d.is_dropped = calloc(f->instruction_count + 1, 1);
    mr_status status;
    if (!first_code || !is_join || !d.is_dropped) {
        status = mr_no_memory("to decode PTX");
    } else if (slots.frame_bytes > MOST_FRAME_BYTES) {
        status = mr_fail(MR_CODE_NOT_SUPPORTED,
                         "function `%s` needs %u MiB for the registers of a warp; at most %u MiB "
                         "are covered",
                         f->name, slots.frame_bytes >> 20, MOST_FRAME_BYTES >> 20);
    } else {
        status = decode_with(&d, first_code, is_join);
    }
    free(first_code);
    free(is_join);
    free(d.is_dropped);
    free(slots.slot);
    mr_vec_free(&d.codes);
    mr_vec_free(&d.fixes);
    return status;
}
