/* Decodes floating-point arithmetic. The usual forms have a lane operation of their own; other roundings, and .sat, go
 * to ptx_run_rounded; f16 and bf16 to ptx_run_half. */
#include "ptx/decode/decode.h"
#include "ptx/run/half.h"

static bool is_half(ptx_type t) {
    return t == PTX_f16 || t == PTX_bf16 || t == PTX_f16x2 || t == PTX_bf16x2;
}

static void emit_same(ptx_decoder *d, ptx_lane lane, unsigned sources) {
    unsigned bytes = mr_ptx_types[ptx_type_at(d, 0)].bytes;
    ptx_place_of a = ptx_source(d, 1, bytes);
    ptx_place_of b = sources > 1 ? ptx_source(d, 2, bytes) : a;
    ptx_place_of c = sources > 2 ? ptx_source(d, 3, bytes) : a;
    ptx_emit_lane(d, lane, ptx_result(d, 0, bytes), a, b, c);
}

static ptx_rounding take_rounding(ptx_decoder *d) {
    if (ptx_take(d, PTX_MOD_rz)) return PTX_ZERO;
    if (ptx_take(d, PTX_MOD_rm)) return PTX_DOWN;
    if (ptx_take(d, PTX_MOD_rp)) return PTX_UP;
    ptx_take(d, PTX_MOD_rn);
    return PTX_NEAREST;
}

static void emit_half(ptx_decoder *d, ptx_half_op op, unsigned sources) {
    ptx_type t = ptx_type_at(d, 0);
    bool ftz = ptx_take(d, PTX_MOD_ftz), sat = ptx_take(d, PTX_MOD_sat);
    bool relu = ptx_take(d, PTX_MOD_relu), nan = ptx_take(d, PTX_MOD_nan);
    bool xorsign = false;
    ptx_take(d, PTX_MOD_rn);
    if (op == PTX_H_MIN || op == PTX_H_MAX) {
        xorsign = ptx_take(d, PTX_MOD_xorsign);
        if (xorsign) ptx_take(d, PTX_MOD_abs);
    }
    if (op == PTX_H_EX2 || op == PTX_H_TANH) ptx_take(d, PTX_MOD_approx);
    if (!ptx_needs(d, sources + 1, 1)) return;
    unsigned bytes = mr_ptx_types[t].bytes;
    ptx_place_of a = ptx_source(d, 1, bytes);
    ptx_place_of b = sources > 1 ? ptx_source(d, 2, bytes) : a;
    ptx_place_of c = sources > 2 ? ptx_source(d, 3, bytes) : a;
    ptx_code *code = ptx_emit(d, ptx_run_half, ptx_result(d, 0, bytes), a, b, c);
    if (!code) return;
    code->bits = PTX_HALF(op, t == PTX_bf16 || t == PTX_bf16x2, bytes == 4, PTX_NEAREST, ftz, sat,
                          relu, nan, xorsign, false);
}

typedef struct {
    ptx_rounded_op rounded;
    ptx_half_op half; /* -1: there is none */
    ptx_lane f32, ftz, f64;
    unsigned sources;
} arithmetic;

static void decode_arithmetic(ptx_decoder *d, const arithmetic *row) {
    ptx_type t = ptx_type_at(d, 0);
    if (is_half(t) && (int)row->half >= 0) {
        emit_half(d, row->half, row->sources);
        return;
    }
    if (!ptx_needs(d, row->sources + 1, 1)) return;
    if (t != PTX_f32 && t != PTX_f64) {
        ptx_refuse(d, "its type must be f32 or f64");
        return;
    }
    ptx_rounding rounding = take_rounding(d);
    bool ftz = t == PTX_f32 && ptx_take(d, PTX_MOD_ftz),
         sat = t == PTX_f32 && ptx_take(d, PTX_MOD_sat);
    if (rounding == PTX_NEAREST && !sat) {
        emit_same(d, t == PTX_f64 ? row->f64 : ftz ? row->ftz : row->f32, row->sources);
        return;
    }
    unsigned bytes = mr_ptx_types[t].bytes;
    ptx_place_of a = ptx_source(d, 1, bytes);
    ptx_place_of b = row->sources > 1 ? ptx_source(d, 2, bytes) : a;
    ptx_place_of c = row->sources > 2 ? ptx_source(d, 3, bytes) : a;
    ptx_code *code = ptx_emit(d, ptx_run_rounded, ptx_result(d, 0, bytes), a, b, c);
    if (code) code->bits = PTX_ROUNDED(row->rounded, rounding, t == PTX_f64, ftz, sat);
}

static void decode_div(ptx_decoder *d) {
    static const arithmetic row = {
        PTX_R_DIV, (ptx_half_op)-1, PTX_LANE_div_f32, PTX_LANE_div_ftz_f32, PTX_LANE_div_f64, 2};
    /* Their error may be larger than that of the exact quotient. */
    ptx_take(d, PTX_MOD_approx);
    ptx_take(d, PTX_MOD_full);
    decode_arithmetic(d, &row);
}

static void decode_root(ptx_decoder *d, bool is_sqrt) {
    static const arithmetic sqrt_row = {PTX_R_SQRT,        (ptx_half_op)-1,
                                        PTX_LANE_sqrt_f32, PTX_LANE_sqrt_ftz_f32,
                                        PTX_LANE_sqrt_f64, 1};
    static const arithmetic rcp_row = {
        PTX_R_RCP, (ptx_half_op)-1, PTX_LANE_rcp_f32, PTX_LANE_rcp_ftz_f32, PTX_LANE_rcp_f64, 1};
    if (ptx_take(d, PTX_MOD_approx) && ptx_type_at(d, 0) == PTX_f64) {
        ptx_take(d, PTX_MOD_ftz);
        if (is_sqrt) ptx_refuse(d, "sqrt.approx has no f64");
        else if (ptx_needs(d, 2, 1)) emit_same(d, PTX_LANE_rcp_approx_f64, 1);
        return;
    }
    decode_arithmetic(d, is_sqrt ? &sqrt_row : &rcp_row);
}

static void decode_approximate(ptx_decoder *d, ptx_lane lane, ptx_lane ftz_lane, ptx_half_op half) {
    ptx_type t = ptx_type_at(d, 0);
    if (is_half(t) && (int)half >= 0) {
        emit_half(d, half, 1);
        return;
    }
    ptx_take(d, PTX_MOD_approx);
    bool ftz = ptx_take(d, PTX_MOD_ftz);
    if (!ptx_needs(d, 2, 1)) return;
    if (t == PTX_f64 && d->instruction->opcode == PTX_OP_rsqrt) {
        emit_same(d, ftz ? PTX_LANE_rsqrt_approx_f64 : PTX_LANE_rsqrt_f64, 1);
    } else if (t == PTX_f32) {
        emit_same(d, ftz ? ftz_lane : lane, 1);
    } else {
        ptx_refuse(d, "its type must be f32");
    }
}

static void decode_sign(ptx_decoder *d, bool is_neg) {
    ptx_type t = ptx_type_at(d, 0);
    if (is_half(t)) {
        emit_half(d, is_neg ? PTX_H_NEG : PTX_H_ABS, 1);
        return;
    }
    if (!ptx_needs(d, 2, 1)) return;
    unsigned bytes = mr_ptx_types[t].bytes;
    if (t != PTX_f32 && t != PTX_f64) {
        ptx_refuse(d, "its type must be f32 or f64");
        return;
    }
    ptx_place_of a = ptx_source(d, 1, bytes), to = ptx_result(d, 0, bytes);
    if (ptx_take(d, PTX_MOD_ftz)) {
        ptx_place_of flushed = ptx_scratch(d, bytes);
        ptx_emit_lane(d, PTX_LANE_flush_f32, flushed, a, a, a);
        a = flushed;
    }
    ptx_emit_lane(d,
                  t == PTX_f32 ? (is_neg ? PTX_LANE_neg_f32 : PTX_LANE_abs_f32)
                               : (is_neg ? PTX_LANE_neg_f64 : PTX_LANE_abs_f64),
                  to, a, a, a);
}

static void decode_extreme(ptx_decoder *d, bool is_max) {
    ptx_type t = ptx_type_at(d, 0);
    if (is_half(t)) {
        emit_half(d, is_max ? PTX_H_MAX : PTX_H_MIN, 2);
        return;
    }
    bool ftz = ptx_take(d, PTX_MOD_ftz), nan = ptx_take(d, PTX_MOD_nan);
    bool xorsign = ptx_take(d, PTX_MOD_xorsign);
    if (xorsign) ptx_take(d, PTX_MOD_abs);
    if (!ptx_needs(d, 3, 1)) return;
    if (t == PTX_f64) {
        if (ftz || nan || xorsign) ptx_refuse(d, "f64 has no such modifiers");
        emit_same(d, is_max ? PTX_LANE_max_f64 : PTX_LANE_min_f64, 2);
        return;
    }
    if (t != PTX_f32) {
        ptx_refuse(d, "its type must be f32 or f64");
        return;
    }
    static const ptx_lane lanes[2][4] = {
        {PTX_LANE_min_f32, PTX_LANE_min_nan_f32, PTX_LANE_xorsign_f32, PTX_LANE_xorsign_nan_f32},
        {PTX_LANE_max_f32, PTX_LANE_max_nan_f32, PTX_LANE_xorsign_max_f32,
         PTX_LANE_xorsign_nan_max_f32}};
    ptx_place_of a = ptx_source(d, 1, 4), b = ptx_source(d, 2, 4);
    if (ftz) {
        ptx_place_of fa = ptx_scratch(d, 4), fb = ptx_scratch(d, 4);
        ptx_emit_lane(d, PTX_LANE_flush_f32, fa, a, a, a);
        ptx_emit_lane(d, PTX_LANE_flush_f32, fb, b, b, b);
        a = fa, b = fb;
    }
    ptx_emit_lane(d, lanes[is_max][2 * xorsign + nan], ptx_result(d, 0, 4), a, b, a);
}

static void decode_copysign(ptx_decoder *d) {
    ptx_type t = ptx_type_at(d, 0);
    if (!ptx_needs(d, 3, 1)) return;
    if (t != PTX_f32 && t != PTX_f64) ptx_refuse(d, "its type must be f32 or f64");
    emit_same(d, t == PTX_f32 ? PTX_LANE_copysign_f32 : PTX_LANE_copysign_f64, 2);
}

bool ptx_decode_float(ptx_decoder *d) {
    static const arithmetic add = {
        PTX_R_ADD, PTX_H_ADD, PTX_LANE_add_f32, PTX_LANE_add_ftz_f32, PTX_LANE_add_f64, 2};
    static const arithmetic sub = {
        PTX_R_SUB, PTX_H_SUB, PTX_LANE_sub_f32, PTX_LANE_sub_ftz_f32, PTX_LANE_sub_f64, 2};
    static const arithmetic mul = {
        PTX_R_MUL, PTX_H_MUL, PTX_LANE_mul_f32, PTX_LANE_mul_ftz_f32, PTX_LANE_mul_f64, 2};
    static const arithmetic fma = {
        PTX_R_FMA, PTX_H_FMA, PTX_LANE_fma_f32, PTX_LANE_fma_ftz_f32, PTX_LANE_fma_f64, 3};
    const ptx_instruction *i = d->instruction;
    bool is_float = i->type_count && mr_ptx_types[i->types[0]].sort == PTX_FLOAT;
    if (!is_float) return false;
    switch ((ptx_opcode)i->opcode) {
    case PTX_OP_add: decode_arithmetic(d, &add); return true;
    case PTX_OP_sub: decode_arithmetic(d, &sub); return true;
    case PTX_OP_mul: decode_arithmetic(d, &mul); return true;
    case PTX_OP_fma:
    case PTX_OP_mad: decode_arithmetic(d, &fma); return true;
    case PTX_OP_div: decode_div(d); return true;
    case PTX_OP_rcp: decode_root(d, false); return true;
    case PTX_OP_sqrt: decode_root(d, true); return true;
    case PTX_OP_rsqrt:
        decode_approximate(d, PTX_LANE_rsqrt_f32, PTX_LANE_rsqrt_ftz_f32, (ptx_half_op)-1);
        return true;
    case PTX_OP_sin:
        decode_approximate(d, PTX_LANE_sin_f32, PTX_LANE_sin_ftz_f32, (ptx_half_op)-1);
        return true;
    case PTX_OP_cos:
        decode_approximate(d, PTX_LANE_cos_f32, PTX_LANE_cos_ftz_f32, (ptx_half_op)-1);
        return true;
    case PTX_OP_ex2:
        decode_approximate(d, PTX_LANE_ex2_f32, PTX_LANE_ex2_ftz_f32, PTX_H_EX2);
        return true;
    case PTX_OP_lg2:
        decode_approximate(d, PTX_LANE_lg2_f32, PTX_LANE_lg2_ftz_f32, (ptx_half_op)-1);
        return true;
    case PTX_OP_tanh:
        decode_approximate(d, PTX_LANE_tanh_f32, PTX_LANE_tanh_f32, PTX_H_TANH);
        return true;
    case PTX_OP_neg: decode_sign(d, true); return true;
    case PTX_OP_abs: decode_sign(d, false); return true;
    case PTX_OP_min: decode_extreme(d, false); return true;
    case PTX_OP_max: decode_extreme(d, true); return true;
    case PTX_OP_copysign: decode_copysign(d); return true;
    default: return false;
    }
}
