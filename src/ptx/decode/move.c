/* Decodes mov with its packing and unpacking, cvta, isspacep, and reads of clocks. */
#include "ptx/decode/decode.h"

static unsigned width_index(unsigned bytes) {
    return bytes == 2 ? 0 : bytes == 4 ? 1 : 2;
}

static const ptx_lane moves[] = {PTX_LANE_mov_16, PTX_LANE_mov_32, PTX_LANE_mov_64};

static ptx_code *with_bits(ptx_code *code, uint64_t bits) {
    if (code) code->bits = bits;
    return code;
}

/* mov.b64 {a, b}, c and the like */
static void unpack(ptx_decoder *d, unsigned bytes) {
    const ptx_operand *list = &d->instruction->operands[0];
    unsigned part = bytes / (list->count ? list->count : 1);
    if ((list->count != 2 && list->count != 4) || part < 1 || part > 4) {
        ptx_reject(d, "it unpacks %u bits into %u parts", 8 * bytes, list->count);
        return;
    }
    ptx_place_of a = ptx_source(d, 1, bytes);
    for (unsigned i = 0; i < list->count; i++) {
        if (list->list[i].kind == PTX_SINK) continue;
        /* Parts of 8 bits lie in registers of 16. */
        ptx_place_of to = ptx_result_of(d, &list->list[i], part < 2 ? 2 : part);
        if (part == 4) {
            ptx_emit_lane(d, i ? PTX_LANE_hi_64_32 : PTX_LANE_lo_64_32, to, a, a, a);
        } else if (part == 2) {
            if (bytes == 4)
                ptx_emit_lane(d, i ? PTX_LANE_hi_32_16 : PTX_LANE_lo_32_16, to, a, a, a);
            else with_bits(ptx_emit_lane(d, PTX_LANE_part_64_16, to, a, a, a), 16 * i);
        } else {
            ptx_lane lane = bytes == 2   ? PTX_LANE_part_16_8
                            : bytes == 4 ? PTX_LANE_part_32_8
                                         : PTX_LANE_part_64_8;
            with_bits(ptx_emit_lane(d, lane, to, a, a, a), 8 * i);
        }
    }
}

static void pack(ptx_decoder *d, unsigned bytes) {
    const ptx_operand *list = &d->instruction->operands[1];
    unsigned part = bytes / (list->count ? list->count : 1);
    if ((list->count != 2 && list->count != 4) || part < 1 || part > 4) {
        ptx_reject(d, "it packs %u parts into %u bits", list->count, 8 * bytes);
        return;
    }
    ptx_place_of to = ptx_result(d, 0, bytes);
    if (list->count == 2 && part >= 2) {
        ptx_place_of a = ptx_source_of(d, &list->list[0], part);
        ptx_place_of b = ptx_source_of(d, &list->list[1], part);
        ptx_emit_lane(d, part == 4 ? PTX_LANE_pack_32 : PTX_LANE_pack_16, to, a, b, a);
        return;
    }
    ptx_place_of sum = ptx_scratch(d, 8);
    ptx_place_of zero = ptx_constant_of(d, 0, 8);
    ptx_emit_lane(d, PTX_LANE_mov_64, sum, zero, zero, zero);
    for (unsigned i = 0; i < list->count; i++) {
        ptx_place_of b = ptx_source_of(d, &list->list[i], 2);
        ptx_lane lane = part == 2 ? PTX_LANE_insert_16 : PTX_LANE_insert_8;
        with_bits(ptx_emit_lane(d, lane, sum, sum, b, sum), 8 * part * i);
    }
    ptx_lane last = bytes == 2   ? PTX_LANE_lo_64_16
                    : bytes == 4 ? PTX_LANE_lo_64_32
                                 : PTX_LANE_mov_64;
    ptx_emit_lane(d, last, to, sum, sum, sum);
}

static void decode_mov(ptx_decoder *d) {
    if (!ptx_needs(d, 2, 1)) return;
    const ptx_operand *o = d->instruction->operands;
    ptx_type t = ptx_type_at(d, 0);
    unsigned bytes = mr_ptx_types[t].bytes;
    if (t == PTX_pred) {
        ptx_place_of a = o[1].kind == PTX_SPECIAL ? ptx_constant_of(d, 0, 0) : ptx_source(d, 1, 0);
        ptx_emit(d, ptx_run_pred_mov, ptx_result(d, 0, 0), a, a, a);
        return;
    }
    if (bytes != 2 && bytes != 4 && bytes != 8) {
        ptx_refuse(d, "moves of %u bits are not interpreted", 8 * bytes);
        return;
    }
    if (o[0].kind == PTX_LIST) {
        unpack(d, bytes);
        return;
    }
    if (o[1].kind == PTX_LIST) {
        pack(d, bytes);
        return;
    }
    if (o[1].kind == PTX_SPECIAL && ptx_special_is_clock((ptx_special)o[1].index)) {
        bool is_64 = o[1].index == PTX_SREG_clock64 || o[1].index == PTX_SREG_globaltimer;
        if (is_64 != (bytes == 8)) ptx_reject(d, "the special register has another width");
        ptx_code *code = ptx_emit(d, ptx_run_clock, ptx_result(d, 0, bytes), o[1].index, 0, 0);
        if (code) code->more = bytes;
        return;
    }
    ptx_place_of a = ptx_source(d, 1, bytes);
    ptx_emit_lane(d, moves[width_index(bytes)], ptx_result(d, 0, bytes), a, a, a);
}

static bool take_window(ptx_decoder *d, unsigned *out_top) {
    if (ptx_take(d, PTX_MOD_shared) || ptx_take(d, PTX_MOD_shared_cta)) *out_top = PTX_TOP_SHARED;
    else if (ptx_take(d, PTX_MOD_local)) *out_top = PTX_TOP_LOCAL;
    else if (ptx_take(d, PTX_MOD_param) || ptx_take(d, PTX_MOD_param_entry))
        *out_top = PTX_TOP_PARAM;
    else if (ptx_take(d, PTX_MOD_global) || ptx_take(d, PTX_MOD_const_)) *out_top = PTX_TOP_GLOBAL;
    else return false;
    return true;
}

/* A parameter of a device function lies in local memory, where cvta.param and isspacep.param must look for it. */
static void decode_cvta(ptx_decoder *d) {
    unsigned top;
    if (!ptx_needs(d, 2, 1)) return;
    ptx_type t = ptx_type_at(d, 0);
    bool to = ptx_take(d, PTX_MOD_to);
    if (!take_window(d, &top) || (t != PTX_u64)) {
        ptx_refuse(d, "its space must be global, shared, local, const or param, and its type u64");
        return;
    }
    if (top == PTX_TOP_PARAM && !d->function->is_entry) top = PTX_TOP_LOCAL;
    ptx_place_of a = ptx_source(d, 1, 8), result = ptx_result(d, 0, 8);
    if (top == PTX_TOP_GLOBAL) {
        ptx_emit_lane(d, PTX_LANE_mov_64, result, a, a, a);
        return;
    }
    ptx_place_of window = ptx_constant_of(d, to ? 0 - PTX_WINDOW(top) : PTX_WINDOW(top), 8);
    ptx_emit_lane(d, PTX_LANE_add_64, result, a, window, a);
}

static void decode_isspacep(ptx_decoder *d) {
    unsigned top;
    bool is_const = ptx_has(d->instruction, PTX_MOD_const_);
    if (!ptx_needs(d, 2, 0)) return;
    if (!take_window(d, &top)) {
        ptx_refuse(d, "its space must be global, shared, local, const or param");
        return;
    }
    ptx_place_of a = ptx_source(d, 1, 8), to = ptx_result(d, 0, 0);
    ptx_code *code = ptx_emit(d, ptx_run_isspacep, to, a, a, a);
    /* No generic address is told to be in constant memory: those of its variables look like global ones. */
    if (code) code->bits = is_const ? PTX_TOP_FUNCTION : top;
}

bool ptx_decode_move(ptx_decoder *d) {
    switch ((ptx_opcode)d->instruction->opcode) {
    case PTX_OP_mov: decode_mov(d); return true;
    case PTX_OP_cvta: decode_cvta(d); return true;
    case PTX_OP_isspacep: decode_isspacep(d); return true;
    default: return false;
    }
}
