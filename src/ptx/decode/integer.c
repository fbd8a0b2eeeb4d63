/* Decodes integer arithmetic and operations on bits. */
#include "ptx/decode/decode.h"

/* Lanes of an operation by width, and by width and sign. */
#define BY_WIDTH(name)                                                                             \
    ((const ptx_lane[]){PTX_LANE_##name##_16, PTX_LANE_##name##_32, PTX_LANE_##name##_64})
#define BY_TYPE(name)                                                                              \
    ((const ptx_lane[]){PTX_LANE_##name##_u16, PTX_LANE_##name##_s16, PTX_LANE_##name##_u32,       \
                        PTX_LANE_##name##_s32, PTX_LANE_##name##_u64, PTX_LANE_##name##_s64})

static unsigned width_index(unsigned bytes) {
    return bytes == 2 ? 0 : bytes == 4 ? 1 : 2;
}
static unsigned type_index(ptx_type t) {
    return 2 * width_index(mr_ptx_types[t].bytes) + (mr_ptx_types[t].sort == PTX_SIGNED);
}

static bool is_integer(ptx_type t) {
    return t == PTX_u16 || t == PTX_s16 || t == PTX_u32 || t == PTX_s32 || t == PTX_u64 ||
           t == PTX_s64;
}
static bool is_bits(ptx_type t) {
    return t == PTX_b16 || t == PTX_b32 || t == PTX_b64;
}

static bool wants(ptx_decoder *d, bool good, const char *types) {
    if (!good) ptx_refuse(d, "its type must be %s", types);
    return good;
}

/* d, a, b (, c) all of the width of the type. */
static void emit_same(ptx_decoder *d, ptx_lane lane, unsigned sources) {
    unsigned bytes = mr_ptx_types[ptx_type_at(d, 0)].bytes;
    ptx_place_of a = ptx_source(d, 1, bytes);
    ptx_place_of b = sources > 1 ? ptx_source(d, 2, bytes) : a;
    ptx_place_of c = sources > 2 ? ptx_source(d, 3, bytes) : a;
    ptx_emit_lane(d, lane, ptx_result(d, 0, bytes), a, b, c);
}

static void decode_add(ptx_decoder *d, bool is_sub) {
    if (!ptx_needs(d, 3, 1)) return;
    ptx_type t = ptx_type_at(d, 0);
    if (ptx_take(d, PTX_MOD_sat)) {
        if (!wants(d, t == PTX_s32, "s32 with .sat")) return;
        emit_same(d, is_sub ? PTX_LANE_sub_sat_s32 : PTX_LANE_add_sat_s32, 2);
        return;
    }
    if (!is_sub && (t == PTX_u16x2 || t == PTX_s16x2)) {
        emit_same(d, PTX_LANE_add_16x2, 2);
        return;
    }
    if (!wants(d, is_integer(t), "u16, u32, u64, s16, s32 or s64")) return;
    unsigned w = width_index(mr_ptx_types[t].bytes);
    emit_same(d, is_sub ? BY_WIDTH(sub)[w] : BY_WIDTH(add)[w], 2);
}

/* add.cc, addc, sub.cc, subc, mad.cc, madc */
static void decode_carry(ptx_decoder *d, ptx_carry_op op, bool in) {
    bool out = ptx_take(d, PTX_MOD_cc), is_mad = op == PTX_C_MAD_LO;
    if (is_mad && ptx_take(d, PTX_MOD_hi)) op = PTX_C_MAD_HI;
    else if (is_mad && !ptx_take(d, PTX_MOD_lo)) ptx_refuse(d, "it must have .lo or .hi");
    if (!ptx_needs(d, is_mad ? 4 : 3, 1)) return;
    ptx_type t = ptx_type_at(d, 0);
    unsigned bytes = mr_ptx_types[t].bytes;
    if (!wants(d, is_integer(t) && bytes >= 4, "u32, s32, u64 or s64")) return;
    ptx_place_of a = ptx_source(d, 1, bytes), b = ptx_source(d, 2, bytes);
    ptx_place_of c = is_mad ? ptx_source(d, 3, bytes) : a;
    ptx_code *code = ptx_emit(d, ptx_run_carry, ptx_result(d, 0, bytes), a, b, c);
    if (code) code->bits = PTX_CARRY(op, bytes == 8, mr_ptx_types[t].sort == PTX_SIGNED, in, out);
}

static void decode_mul(ptx_decoder *d, bool is_mad) {
    ptx_type t = ptx_type_at(d, 0);
    bool wide = ptx_take(d, PTX_MOD_wide), hi = ptx_take(d, PTX_MOD_hi);
    bool lo = ptx_take(d, PTX_MOD_lo), sat = ptx_take(d, PTX_MOD_sat);
    if (!ptx_needs(d, is_mad ? 4 : 3, 1)) return;
    if (!wants(d, is_integer(t), "u16, u32, u64, s16, s32 or s64")) return;
    unsigned w = width_index(mr_ptx_types[t].bytes), k = type_index(t);
    if (sat) {
        if (!wants(d, is_mad && hi && t == PTX_s32, "s32 of mad.hi with .sat")) return;
        emit_same(d, PTX_LANE_mad_hi_sat_s32, 3);
    } else if (lo) {
        emit_same(d, is_mad ? BY_WIDTH(mad_lo)[w] : BY_WIDTH(mul_lo)[w], is_mad ? 3 : 2);
    } else if (hi) {
        emit_same(d, is_mad ? BY_TYPE(mad_hi)[k] : BY_TYPE(mul_hi)[k], is_mad ? 3 : 2);
    } else if (wide) {
        static const ptx_lane muls[] = {PTX_LANE_mul_wide_u16, PTX_LANE_mul_wide_s16,
                                        PTX_LANE_mul_wide_u32, PTX_LANE_mul_wide_s32};
        static const ptx_lane mads[] = {PTX_LANE_mad_wide_u16, PTX_LANE_mad_wide_s16,
                                        PTX_LANE_mad_wide_u32, PTX_LANE_mad_wide_s32};
        if (!wants(d, k < 4, "u16, s16, u32 or s32 with .wide")) return;
        unsigned bytes = mr_ptx_types[t].bytes;
        ptx_place_of a = ptx_source(d, 1, bytes), b = ptx_source(d, 2, bytes);
        ptx_place_of c = is_mad ? ptx_source(d, 3, 2 * bytes) : a;
        ptx_emit_lane(d, is_mad ? mads[k] : muls[k], ptx_result(d, 0, 2 * bytes), a, b, c);
    } else {
        ptx_refuse(d, "it must have .lo, .hi or .wide");
    }
}

static void decode_mul24(ptx_decoder *d, bool is_mad) {
    ptx_type t = ptx_type_at(d, 0);
    bool hi = ptx_take(d, PTX_MOD_hi), lo = ptx_take(d, PTX_MOD_lo), sat = ptx_take(d, PTX_MOD_sat);
    if (!ptx_needs(d, is_mad ? 4 : 3, 1) || !wants(d, t == PTX_u32 || t == PTX_s32, "u32 or s32")) {
        return;
    }
    if (hi == lo) ptx_refuse(d, "it must have .lo or .hi");
    static const ptx_lane muls[] = {PTX_LANE_mul24_lo_u32, PTX_LANE_mul24_lo_s32,
                                    PTX_LANE_mul24_hi_u32, PTX_LANE_mul24_hi_s32};
    static const ptx_lane mads[] = {PTX_LANE_mad24_lo_u32, PTX_LANE_mad24_lo_s32,
                                    PTX_LANE_mad24_hi_u32, PTX_LANE_mad24_hi_s32};
    unsigned k = 2 * hi + (t == PTX_s32);
    if (sat && !wants(d, is_mad && hi && t == PTX_s32, "s32 of mad24.hi with .sat")) return;
    emit_same(d, sat ? PTX_LANE_mad24_hi_sat_s32 : is_mad ? mads[k] : muls[k], is_mad ? 3 : 2);
}

static void decode_typed(ptx_decoder *d, const ptx_lane lanes[6], unsigned sources) {
    ptx_type t = ptx_type_at(d, 0);
    if (!ptx_needs(d, sources + 1, 1)) return;
    if (!wants(d, is_integer(t), "u16, u32, u64, s16, s32 or s64")) return;
    emit_same(d, lanes[type_index(t)], sources);
}

/* and, or, xor, not, which predicates have, too */
static void decode_logic(ptx_decoder *d, const ptx_lane lanes[3], ptx_run *predicate,
                         unsigned sources) {
    ptx_type t = ptx_type_at(d, 0);
    if (!ptx_needs(d, sources + 1, 1)) return;
    if (t == PTX_pred) {
        ptx_place_of a = ptx_source(d, 1, 0), b = sources > 1 ? ptx_source(d, 2, 0) : a;
        ptx_emit(d, predicate, ptx_result(d, 0, 0), a, b, a);
        return;
    }
    if (!wants(d, is_bits(t), "pred, b16, b32 or b64")) return;
    emit_same(d, lanes[width_index(mr_ptx_types[t].bytes)], sources);
}

static void decode_shift(ptx_decoder *d, bool is_left) {
    ptx_type t = ptx_type_at(d, 0);
    if (!ptx_needs(d, 3, 1)) return;
    if (!wants(d, is_bits(t) || (!is_left && is_integer(t)), "b16, b32, b64, and of shr u or s"))
        return;
    unsigned bytes = mr_ptx_types[t].bytes;
    ptx_lane lane = is_left ? BY_WIDTH(shl)[width_index(bytes)] : BY_TYPE(shr)[type_index(t)];
    ptx_place_of a = ptx_source(d, 1, bytes), b = ptx_source(d, 2, 4);
    ptx_emit_lane(d, lane, ptx_result(d, 0, bytes), a, b, a);
}

static void decode_funnel(ptx_decoder *d) {
    bool l = ptx_take(d, PTX_MOD_l), r = ptx_take(d, PTX_MOD_r);
    bool clamp = ptx_take(d, PTX_MOD_clamp), wrap = ptx_take(d, PTX_MOD_wrap);
    if (!ptx_needs(d, 4, 1) || !wants(d, ptx_type_at(d, 0) == PTX_b32, "b32")) return;
    if (l == r || clamp == wrap) ptx_refuse(d, "it must have .l or .r, and .clamp or .wrap");
    emit_same(d,
              l ? (clamp ? PTX_LANE_shf_l_clamp : PTX_LANE_shf_l_wrap)
                : (clamp ? PTX_LANE_shf_r_clamp : PTX_LANE_shf_r_wrap),
              3);
}

/* A value of 32 or 64 bits to one of `bytes` bytes, 0: the same width. */
static void decode_one(ptx_decoder *d, ptx_lane of_32, ptx_lane of_64, unsigned bytes) {
    ptx_type t = ptx_type_at(d, 0);
    if (!ptx_needs(d, 2, 1) || !wants(d, t == PTX_b32 || t == PTX_b64, "b32 or b64")) return;
    unsigned width = mr_ptx_types[t].bytes;
    ptx_place_of a = ptx_source(d, 1, width);
    ptx_emit_lane(d, width == 4 ? of_32 : of_64, ptx_result(d, 0, bytes ? bytes : width), a, a, a);
}

static void decode_bfind(ptx_decoder *d) {
    ptx_type t = ptx_type_at(d, 0);
    bool shift = ptx_take(d, PTX_MOD_shiftamt);
    if (!ptx_needs(d, 2, 1)) return;
    unsigned bytes = mr_ptx_types[t].bytes;
    if (!wants(d, is_integer(t) && bytes >= 4, "u32, u64, s32 or s64")) return;
    static const ptx_lane lanes[] = {PTX_LANE_bfind_u32, PTX_LANE_bfind_s32, PTX_LANE_bfind_u64,
                                     PTX_LANE_bfind_s64};
    ptx_place_of a = ptx_source(d, 1, bytes), to = ptx_result(d, 0, 4);
    ptx_place_of found = shift ? ptx_scratch(d, 4) : to;
    ptx_emit_lane(d, lanes[type_index(t) - 2], found, a, a, a);
    if (shift) {
        ptx_emit_lane(d, bytes == 4 ? PTX_LANE_shiftamt_32 : PTX_LANE_shiftamt_64, to, found, found,
                      found);
    }
}

static void decode_bfe(ptx_decoder *d) {
    ptx_type t = ptx_type_at(d, 0);
    unsigned bytes = mr_ptx_types[t].bytes;
    if (!ptx_needs(d, 4, 1) || !wants(d, is_integer(t) && bytes >= 4, "u32, u64, s32 or s64"))
        return;
    static const ptx_lane lanes[] = {PTX_LANE_bfe_u32, PTX_LANE_bfe_s32, PTX_LANE_bfe_u64,
                                     PTX_LANE_bfe_s64};
    ptx_place_of a = ptx_source(d, 1, bytes), b = ptx_source(d, 2, 4), c = ptx_source(d, 3, 4);
    ptx_emit_lane(d, lanes[type_index(t) - 2], ptx_result(d, 0, bytes), a, b, c);
}

static void decode_bfi(ptx_decoder *d) {
    ptx_type t = ptx_type_at(d, 0);
    unsigned bytes = mr_ptx_types[t].bytes;
    if (!ptx_needs(d, 5, 1) || !wants(d, t == PTX_b32 || t == PTX_b64, "b32 or b64")) return;
    ptx_place_of a = ptx_source(d, 1, bytes), b = ptx_source(d, 2, bytes);
    ptx_place_of c = ptx_source(d, 3, 4), e = ptx_source(d, 4, 4);
    ptx_code *code = ptx_emit_lane(d, bytes == 4 ? PTX_LANE_bfi_32 : PTX_LANE_bfi_64,
                                   ptx_result(d, 0, bytes), a, b, c);
    if (code) code->more = e;
}

static void decode_fields(ptx_decoder *d, bool is_mask) {
    bool clamp = ptx_take(d, PTX_MOD_clamp), wrap = ptx_take(d, PTX_MOD_wrap);
    ptx_type t = ptx_type_at(d, 0);
    if (!ptx_needs(d, 3, 1)) return;
    if (clamp == wrap) ptx_refuse(d, "it must have .clamp or .wrap");
    if (is_mask) {
        if (!wants(d, t == PTX_b32, "b32")) return;
        emit_same(d, clamp ? PTX_LANE_bmsk_clamp : PTX_LANE_bmsk_wrap, 2);
    } else {
        if (!wants(d, t == PTX_u32 || t == PTX_s32, "u32 or s32")) return;
        emit_same(d,
                  t == PTX_u32 ? (clamp ? PTX_LANE_szext_clamp_u32 : PTX_LANE_szext_wrap_u32)
                               : (clamp ? PTX_LANE_szext_clamp_s32 : PTX_LANE_szext_wrap_s32),
                  2);
    }
}

static void decode_lop3(ptx_decoder *d) {
    uint64_t table;
    if (!ptx_needs(d, 5, 1) || !wants(d, ptx_type_at(d, 0) == PTX_b32, "b32")) return;
    if (!ptx_is_constant(&d->instruction->operands[4], &table) || table > 255) {
        ptx_refuse(d, "its table must be a constant from 0 to 255");
        return;
    }
    ptx_place_of a = ptx_source(d, 1, 4), b = ptx_source(d, 2, 4), c = ptx_source(d, 3, 4);
    ptx_code *code = ptx_emit_lane(d, PTX_LANE_lop3_32, ptx_result(d, 0, 4), a, b, c);
    if (code) code->bits = table;
}

static void decode_prmt(ptx_decoder *d) {
    if (!ptx_needs(d, 4, 1) || !wants(d, ptx_type_at(d, 0) == PTX_b32, "b32")) return;
    ptx_lane lane = ptx_take(d, PTX_MOD_f4e)    ? PTX_LANE_prmt_f4e
                    : ptx_take(d, PTX_MOD_b4e)  ? PTX_LANE_prmt_b4e
                    : ptx_take(d, PTX_MOD_rc8)  ? PTX_LANE_prmt_rc8
                    : ptx_take(d, PTX_MOD_ecl)  ? PTX_LANE_prmt_ecl
                    : ptx_take(d, PTX_MOD_ecr)  ? PTX_LANE_prmt_ecr
                    : ptx_take(d, PTX_MOD_rc16) ? PTX_LANE_prmt_rc16
                                                : PTX_LANE_prmt_32;
    emit_same(d, lane, 3);
}

static void decode_dot(ptx_decoder *d, bool is_two) {
    static const ptx_lane fours[] = {PTX_LANE_dp4a_uu, PTX_LANE_dp4a_us, PTX_LANE_dp4a_su,
                                     PTX_LANE_dp4a_ss};
    static const ptx_lane twos[] = {PTX_LANE_dp2a_uu, PTX_LANE_dp2a_us, PTX_LANE_dp2a_su,
                                    PTX_LANE_dp2a_ss};
    if (!ptx_needs(d, 4, 2)) return;
    ptx_type ta = ptx_type_at(d, 0), tb = ptx_type_at(d, 1);
    if (!wants(d, (ta == PTX_u32 || ta == PTX_s32) && (tb == PTX_u32 || tb == PTX_s32),
               "u32 or s32")) {
        return;
    }
    bool hi = is_two && ptx_take(d, PTX_MOD_hi), lo = is_two && ptx_take(d, PTX_MOD_lo);
    if (is_two && hi == lo) ptx_refuse(d, "it must have .lo or .hi");
    unsigned k = 2 * (ta == PTX_s32) + (tb == PTX_s32);
    ptx_place_of a = ptx_source(d, 1, 4), b = ptx_source(d, 2, 4), c = ptx_source(d, 3, 4);
    ptx_code *code = ptx_emit_lane(d, is_two ? twos[k] : fours[k], ptx_result(d, 0, 4), a, b, c);
    if (code) code->bits = hi ? 2 : 0;
}

static void decode_fns(ptx_decoder *d) {
    if (!ptx_needs(d, 4, 1) || !wants(d, ptx_type_at(d, 0) == PTX_b32, "b32")) return;
    emit_same(d, PTX_LANE_fns_32, 3);
}

static void decode_signed_one(ptx_decoder *d, const ptx_lane lanes[3], bool bits) {
    ptx_type t = ptx_type_at(d, 0);
    if (!ptx_needs(d, 2, 1)) return;
    bool good = bits ? is_bits(t) : t == PTX_s16 || t == PTX_s32 || t == PTX_s64;
    if (!wants(d, good, bits ? "b16, b32 or b64" : "s16, s32 or s64")) return;
    emit_same(d, lanes[width_index(mr_ptx_types[t].bytes)], 1);
}

bool ptx_decode_integer(ptx_decoder *d) {
    const ptx_instruction *i = d->instruction;
    bool is_float = i->type_count && mr_ptx_types[i->types[0]].sort == PTX_FLOAT;
    bool cc = ptx_has(i, PTX_MOD_cc);
    switch ((ptx_opcode)i->opcode) {
    case PTX_OP_addc: decode_carry(d, PTX_C_ADD, true); return true;
    case PTX_OP_subc: decode_carry(d, PTX_C_SUB, true); return true;
    case PTX_OP_madc: decode_carry(d, PTX_C_MAD_LO, true); return true;
    case PTX_OP_and: decode_logic(d, BY_WIDTH(and), ptx_run_pred_and, 2); return true;
    case PTX_OP_or: decode_logic(d, BY_WIDTH(or), ptx_run_pred_or, 2); return true;
    case PTX_OP_xor: decode_logic(d, BY_WIDTH(xor), ptx_run_pred_xor, 2); return true;
    case PTX_OP_not: decode_logic(d, BY_WIDTH(not ), ptx_run_pred_not, 1); return true;
    case PTX_OP_cnot: decode_signed_one(d, BY_WIDTH(cnot), true); return true;
    case PTX_OP_shl: decode_shift(d, true); return true;
    case PTX_OP_shr: decode_shift(d, false); return true;
    case PTX_OP_shf: decode_funnel(d); return true;
    case PTX_OP_popc: decode_one(d, PTX_LANE_popc_32, PTX_LANE_popc_64, 4); return true;
    case PTX_OP_clz: decode_one(d, PTX_LANE_clz_32, PTX_LANE_clz_64, 4); return true;
    case PTX_OP_brev: decode_one(d, PTX_LANE_brev_32, PTX_LANE_brev_64, 0); return true;
    case PTX_OP_bfind: decode_bfind(d); return true;
    case PTX_OP_bfe: decode_bfe(d); return true;
    case PTX_OP_bfi: decode_bfi(d); return true;
    case PTX_OP_bmsk: decode_fields(d, true); return true;
    case PTX_OP_szext: decode_fields(d, false); return true;
    case PTX_OP_lop3: decode_lop3(d); return true;
    case PTX_OP_prmt: decode_prmt(d); return true;
    case PTX_OP_dp4a: decode_dot(d, false); return true;
    case PTX_OP_dp2a: decode_dot(d, true); return true;
    case PTX_OP_fns: decode_fns(d); return true;
    case PTX_OP_sad: decode_typed(d, BY_TYPE(sad), 3); return true;
    case PTX_OP_rem: decode_typed(d, BY_TYPE(rem), 2); return true;
    case PTX_OP_mul24: decode_mul24(d, false); return true;
    case PTX_OP_mad24: decode_mul24(d, true); return true;
    default: break;
    }
    if (is_float) return false;
    switch ((ptx_opcode)i->opcode) {
    case PTX_OP_add:
        if (cc) decode_carry(d, PTX_C_ADD, false);
        else decode_add(d, false);
        return true;
    case PTX_OP_sub:
        if (cc) decode_carry(d, PTX_C_SUB, false);
        else decode_add(d, true);
        return true;
    case PTX_OP_mul: decode_mul(d, false); return true;
    case PTX_OP_mad:
        if (cc) decode_carry(d, PTX_C_MAD_LO, false);
        else decode_mul(d, true);
        return true;
    case PTX_OP_div: decode_typed(d, BY_TYPE(div), 2); return true;
    case PTX_OP_min: decode_typed(d, BY_TYPE(min), 2); return true;
    case PTX_OP_max: decode_typed(d, BY_TYPE(max), 2); return true;
    case PTX_OP_abs: decode_signed_one(d, BY_WIDTH(abs), false); return true;
    case PTX_OP_neg: decode_signed_one(d, BY_WIDTH(neg), false); return true;
    default: return false;
    }
}
