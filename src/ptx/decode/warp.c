/* Decodes barriers and operations of all lanes of a warp. */
#include "ptx/decode/decode.h"

static void decode_barrier(ptx_decoder *d) {
    const ptx_instruction *i = d->instruction;
    bool is_bar = i->opcode == PTX_OP_bar, sync = ptx_take(d, PTX_MOD_sync);
    bool arrive = ptx_take(d, PTX_MOD_arrive), red = ptx_take(d, PTX_MOD_red);
    bool aligned = ptx_take(d, PTX_MOD_aligned) || is_bar;
    ptx_take(d, PTX_MOD_cta);
    if (ptx_take(d, PTX_MOD_cluster)) {
        ptx_refuse(d, "barriers of clusters are not interpreted");
        return;
    }
    if (ptx_take(d, PTX_MOD_warp)) {
        if (!ptx_needs(d, 1, 0)) return;
        ptx_emit(d, ptx_run_warp_barrier, PTX_NO_PART, 0, 0, ptx_source(d, 0, 4));
        return;
    }
    if (sync + arrive + red != 1) {
        ptx_refuse(d, "it must have .sync, .arrive or .red");
        return;
    }
    ptx_modifier operation = !red                        ? PTX_MOD_NONE
                             : ptx_take(d, PTX_MOD_popc) ? PTX_MOD_popc
                             : ptx_take(d, PTX_MOD_and)  ? PTX_MOD_and
                             : ptx_take(d, PTX_MOD_or)   ? PTX_MOD_or
                                                         : PTX_MOD_NONE;
    unsigned before = red ? 1 : 0, behind = red ? 1 : 0;
    unsigned count = i->operand_count - before - behind;
    if (i->operand_count < before + behind + 1 || count > 2 || (arrive && count != 2) ||
        (red && operation == PTX_MOD_NONE)) {
        ptx_refuse(d, "its operands or its operation are not those of a barrier");
        return;
    }
    ptx_place_of number = ptx_source(d, before, 4);
    ptx_place_of threads = count == 2 ? ptx_source(d, before + 1, 4) : ptx_constant_of(d, 0, 4);
    ptx_place_of to = red ? ptx_result(d, 0, operation == PTX_MOD_popc ? 4 : 0) : PTX_NO_PART;
    ptx_place_of c = red ? ptx_source(d, i->operand_count - 1u, 0) : number;
    ptx_code *code = ptx_emit(d,
                              red      ? ptx_run_barrier_red
                              : arrive ? ptx_run_barrier_arrive
                                       : ptx_run_barrier,
                              to, number, threads, c);
    if (code) {
        code->bits = aligned;
        code->more = operation;
    }
}

static void decode_shfl(ptx_decoder *d) {
    const ptx_instruction *i = d->instruction;
    unsigned two = i->two_results;
    bool sync = ptx_take(d, PTX_MOD_sync);
    ptx_modifier mode = ptx_take(d, PTX_MOD_up)     ? PTX_MOD_up
                        : ptx_take(d, PTX_MOD_down) ? PTX_MOD_down
                        : ptx_take(d, PTX_MOD_bfly) ? PTX_MOD_bfly
                        : ptx_take(d, PTX_MOD_idx)  ? PTX_MOD_idx
                                                    : PTX_MOD_NONE;
    if (!sync || mode == PTX_MOD_NONE) {
        ptx_refuse(d, "it must have .sync and .up, .down, .bfly or .idx");
        return;
    }
    if (!ptx_needs(d, 5 + two, 1)) return;
    if (mr_ptx_types[ptx_type_at(d, 0)].bytes != 4) {
        ptx_refuse(d, "its type must be b32");
        return;
    }
    ptx_place_of a = ptx_source(d, 1 + two, 4), b = ptx_source(d, 2 + two, 4);
    ptx_place_of clamp = ptx_source(d, 3 + two, 4), members = ptx_source(d, 4 + two, 4);
    ptx_place_of p = two ? ptx_result(d, 1, 0) : PTX_NO_PART;
    ptx_code *code = ptx_emit(d, ptx_run_shuffle, ptx_result(d, 0, 4), a, b, members);
    if (code) {
        code->bits = mode;
        code->more = clamp | (uint64_t)p << 32;
    }
}

static void decode_vote(ptx_decoder *d) {
    bool sync = ptx_take(d, PTX_MOD_sync);
    ptx_modifier mode = ptx_take(d, PTX_MOD_ballot) ? PTX_MOD_ballot
                        : ptx_take(d, PTX_MOD_all)  ? PTX_MOD_all
                        : ptx_take(d, PTX_MOD_any)  ? PTX_MOD_any
                        : ptx_take(d, PTX_MOD_uni)  ? PTX_MOD_uni
                                                    : PTX_MOD_NONE;
    if (!sync || mode == PTX_MOD_NONE) {
        ptx_refuse(d, "it must have .sync and .all, .any, .uni or .ballot");
        return;
    }
    if (!ptx_needs(d, 3, 1)) return;
    ptx_place_of a = ptx_source(d, 1, 0), members = ptx_source(d, 2, 4);
    ptx_code *code =
        ptx_emit(d, ptx_run_vote, ptx_result(d, 0, mode == PTX_MOD_ballot ? 4 : 0), a, a, members);
    if (code) code->bits = mode;
}

static void decode_match(ptx_decoder *d) {
    unsigned two = d->instruction->two_results;
    bool sync = ptx_take(d, PTX_MOD_sync), all = ptx_take(d, PTX_MOD_all);
    bool any = ptx_take(d, PTX_MOD_any);
    if (!ptx_needs(d, 3 + two, 1)) return;
    unsigned bytes = mr_ptx_types[ptx_type_at(d, 0)].bytes;
    if (!sync || all == any || (bytes != 4 && bytes != 8)) {
        ptx_refuse(d, "it must have .sync, .all or .any, and a type of 32 or 64 bits");
        return;
    }
    ptx_place_of a = ptx_source(d, 1 + two, bytes), members = ptx_source(d, 2 + two, 4);
    ptx_place_of p = two ? ptx_result(d, 1, 0) : PTX_NO_PART;
    ptx_code *code = ptx_emit(d, ptx_run_match, ptx_result(d, 0, 4), a, p, members);
    if (code) code->bits = (uint64_t)(all ? PTX_MOD_all : PTX_MOD_any) | (uint64_t)bytes << 8;
}

static void decode_redux(ptx_decoder *d) {
    static const ptx_modifier operations[] = {PTX_MOD_add, PTX_MOD_min, PTX_MOD_max,
                                              PTX_MOD_and, PTX_MOD_or,  PTX_MOD_xor};
    ptx_type t = ptx_type_at(d, 0);
    bool sync = ptx_take(d, PTX_MOD_sync);
    if (!ptx_needs(d, 3, 1)) return;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (!ptx_take(d, operations[i])) continue;
        if (!sync || (t != PTX_u32 && t != PTX_s32 && t != PTX_b32)) break;
        ptx_place_of a = ptx_source(d, 1, 4), members = ptx_source(d, 2, 4);
        ptx_code *code = ptx_emit(d, ptx_run_redux, ptx_result(d, 0, 4), a, a, members);
        if (code) code->bits = (uint64_t)operations[i] | (uint64_t)t << 8;
        return;
    }
    ptx_refuse(d, "it must have .sync, an operation on integers, and the type u32, s32 or b32");
}

bool ptx_decode_warp(ptx_decoder *d) {
    switch ((ptx_opcode)d->instruction->opcode) {
    case PTX_OP_bar:
    case PTX_OP_barrier: decode_barrier(d); return true;
    case PTX_OP_shfl: decode_shfl(d); return true;
    case PTX_OP_vote: decode_vote(d); return true;
    case PTX_OP_match: decode_match(d); return true;
    case PTX_OP_redux: decode_redux(d); return true;
    case PTX_OP_activemask:
        if (ptx_needs(d, 1, 1)) ptx_emit(d, ptx_run_activemask, ptx_result(d, 0, 4), 0, 0, 0);
        return true;
    default: return false;
    }
}
