/* Decodes cvt: between all types, in steps over scratch registers. An integer is first brought to the width of the
 * result's register, extended by the sign of its own type. A float is rounded to an integer before it becomes one. */
#include "ptx/decode/decode.h"
#include "ptx/run/half.h"

static ptx_place_of step(ptx_decoder *d, ptx_lane lane, ptx_place_of a, ptx_place_of to) {
    ptx_emit_lane(d, lane, to, a, a, a);
    return to;
}

static unsigned width_index(unsigned bytes) {
    return bytes == 2 ? 0 : bytes == 4 ? 1 : 2;
}

/* Within a register of `width` bytes: extends what lies in its low `bytes`. */
static ptx_place_of extended(ptx_decoder *d, ptx_place_of a, unsigned bytes, bool is_signed,
                             unsigned width) {
    static const ptx_lane lanes[2][3][3] = {{{PTX_LANE_zx8_16, PTX_LANE_zx8_32, PTX_LANE_zx8_64},
                                             {0, PTX_LANE_zx16_32, PTX_LANE_zx16_64},
                                             {0, 0, PTX_LANE_zx32_64}},
                                            {{PTX_LANE_sx8_16, PTX_LANE_sx8_32, PTX_LANE_sx8_64},
                                             {0, PTX_LANE_sx16_32, PTX_LANE_sx16_64},
                                             {0, 0, PTX_LANE_sx32_64}}};
    if (bytes >= width) return a;
    unsigned row = bytes == 1 ? 0 : bytes == 2 ? 1 : 2;
    return step(d, lanes[is_signed][row][width_index(width)], a, ptx_scratch(d, width));
}

/* A register of another width, extended or cut. */
static ptx_place_of resized(ptx_decoder *d, ptx_place_of a, unsigned from, unsigned to,
                            bool is_signed) {
    static const ptx_lane lanes[2][3][3] = {{{0, PTX_LANE_zx_16_32, PTX_LANE_zx_16_64},
                                             {PTX_LANE_lo_32_16, 0, PTX_LANE_zx_32_64},
                                             {PTX_LANE_lo_64_16, PTX_LANE_lo_64_32, 0}},
                                            {{0, PTX_LANE_sx_16_32, PTX_LANE_sx_16_64},
                                             {PTX_LANE_lo_32_16, 0, PTX_LANE_sx_32_64},
                                             {PTX_LANE_lo_64_16, PTX_LANE_lo_64_32, 0}}};
    if (from == to) return a;
    return step(d, lanes[is_signed][width_index(from)][width_index(to)], a, ptx_scratch(d, to));
}

/* The last step writes to the result: a move, if no step was needed. */
static void finish(ptx_decoder *d, ptx_place_of a, ptx_place_of to, unsigned width) {
    static const ptx_lane moves[] = {PTX_LANE_mov_16, PTX_LANE_mov_32, PTX_LANE_mov_64};
    ptx_code *last = d->codes.count ? &d->codes.items[d->codes.count - 1] : NULL;
    bool is_scratch = (a & 3) == PTX_AREA_FRAME && a >= d->scratch[width_index(width)] &&
                      a < d->scratch[width_index(width)] + PTX_SCRATCHES * width * PTX_LANES;
    if (last && last->source == d->instruction && last->d == a && is_scratch) last->d = to;
    else ptx_emit_lane(d, moves[width_index(width)], to, a, a, a);
}

static ptx_lane clamp_lane(bool from_signed, ptx_type to) {
    switch (to) {
    case PTX_s8: return from_signed ? PTX_LANE_clamp_s_s8 : PTX_LANE_clamp_u_s8;
    case PTX_u8: return from_signed ? PTX_LANE_clamp_s_u8 : PTX_LANE_clamp_u_u8;
    case PTX_s16: return from_signed ? PTX_LANE_clamp_s_s16 : PTX_LANE_clamp_u_s16;
    case PTX_u16: return from_signed ? PTX_LANE_clamp_s_u16 : PTX_LANE_clamp_u_u16;
    case PTX_s32: return from_signed ? PTX_LANE_clamp_s_s32 : PTX_LANE_clamp_u_s32;
    case PTX_u32: return from_signed ? PTX_LANE_clamp_s_u32 : PTX_LANE_clamp_u_u32;
    case PTX_u64: return from_signed ? PTX_LANE_clamp_s_u64 : PTX_LANE_mov_64;
    default: return from_signed ? PTX_LANE_mov_64 : PTX_LANE_clamp_u_s64;
    }
}

typedef struct {
    ptx_type to, from;
    unsigned to_width, from_width; /* of the registers */
    ptx_place_of result, a;
    bool ftz, sat, relu, finite;
    ptx_rounding rounding;
    int whole; /* of .rni and its kind: a ptx_rounding; -1: none */
} conversion;

static ptx_place_of clamped(ptx_decoder *d, const conversion *c, ptx_place_of a, unsigned *width,
                            bool from_signed) {
    a = resized(d, a, *width, 8, from_signed);
    *width = 8;
    return step(d, clamp_lane(from_signed, c->to), a, ptx_scratch(d, 8));
}

static void integer_to_integer(ptx_decoder *d, const conversion *c) {
    const ptx_type_info *to = &mr_ptx_types[c->to], *from = &mr_ptx_types[c->from];
    bool from_signed = from->sort == PTX_SIGNED, to_signed = to->sort == PTX_SIGNED;
    unsigned width = c->from_width;
    ptx_place_of a = extended(d, c->a, from->bytes, from_signed, width);
    if (c->sat) a = clamped(d, c, a, &width, from_signed);
    a = resized(d, a, width, c->to_width, from_signed);
    /* A result narrower than the source was cut: then it is extended as the result's type says. */
    if (to->bytes < c->to_width &&
        (to->bytes < from->bytes || to_signed != from_signed || c->sat)) {
        a = extended(d, a, to->bytes, to_signed, c->to_width);
    }
    finish(d, a, c->result, c->to_width);
}

static ptx_place_of whole_number(ptx_decoder *d, ptx_place_of a, int rounding, bool is_64) {
    static const ptx_lane lanes[2][4] = {
        {PTX_LANE_rni_f32, PTX_LANE_rzi_f32, PTX_LANE_rmi_f32, PTX_LANE_rpi_f32},
        {PTX_LANE_rni_f64, PTX_LANE_rzi_f64, PTX_LANE_rmi_f64, PTX_LANE_rpi_f64}};
    return step(d, lanes[is_64][rounding], a, ptx_scratch(d, is_64 ? 8 : 4));
}

/* f16 and bf16 become f32, which holds them exactly. */
static ptx_place_of widened(ptx_decoder *d, const conversion *c, bool *is_64) {
    ptx_place_of a = c->a;
    *is_64 = c->from == PTX_f64;
    if (c->from == PTX_f16) a = step(d, PTX_LANE_f32_of_f16, a, ptx_scratch(d, 4));
    if (c->from == PTX_bf16) a = step(d, PTX_LANE_f32_of_bf16, a, ptx_scratch(d, 4));
    if (c->from == PTX_f32 && c->ftz) a = step(d, PTX_LANE_flush_f32, a, ptx_scratch(d, 4));
    return a;
}

static void float_to_integer(ptx_decoder *d, const conversion *c) {
    bool is_64;
    ptx_place_of a = widened(d, c, &is_64);
    const ptx_type_info *to = &mr_ptx_types[c->to];
    bool to_signed = to->sort == PTX_SIGNED;
    if (c->whole != PTX_ZERO) a = whole_number(d, a, c->whole, is_64);
    static const ptx_lane lanes[2][2][2] = {
        {{PTX_LANE_u32_of_f32, PTX_LANE_s32_of_f32}, {PTX_LANE_u64_of_f32, PTX_LANE_s64_of_f32}},
        {{PTX_LANE_u32_of_f64, PTX_LANE_s32_of_f64}, {PTX_LANE_u64_of_f64, PTX_LANE_s64_of_f64}}};
    unsigned width = to->bytes == 8 ? 8 : 4;
    a = step(d, lanes[is_64][width == 8][to_signed || to->bytes < 4], a, ptx_scratch(d, width));
    if (to->bytes < 4) {
        a = resized(d, a, 4, 8, true);
        a = step(d, clamp_lane(true, c->to), a, ptx_scratch(d, 8));
        width = 8;
    }
    a = resized(d, a, width, c->to_width, to_signed);
    finish(d, a, c->result, c->to_width);
}

static ptx_code *rounded(ptx_decoder *d, const conversion *c, ptx_rounded_op op, ptx_place_of a,
                         ptx_place_of to, bool is_64) {
    ptx_code *code = ptx_emit(d, ptx_run_rounded, to, a, a, a);
    if (code) code->bits = PTX_ROUNDED(op, c->rounding, is_64, false, false);
    return code;
}

static void to_half(ptx_decoder *d, const conversion *c, ptx_half_op op, ptx_place_of a,
                    ptx_place_of b, bool is_two) {
    bool is_bf16 = c->to == PTX_bf16 || c->to == PTX_bf16x2;
    ptx_code *code = ptx_emit(d, ptx_run_half, c->result, a, b, a);
    if (!code) return;
    code->bits = PTX_HALF(op, is_bf16, is_two, c->rounding, c->ftz, c->sat, c->relu, false, false,
                          c->finite);
}

static void integer_to_float(ptx_decoder *d, const conversion *c) {
    const ptx_type_info *from = &mr_ptx_types[c->from];
    bool is_signed = from->sort == PTX_SIGNED, to_64 = c->to == PTX_f64;
    ptx_place_of a = extended(d, c->a, from->bytes, is_signed, c->from_width);
    bool is_half = c->to == PTX_f16 || c->to == PTX_bf16;
    bool exact = to_64 && from->bytes <= 4;
    if (is_half || (c->rounding != PTX_NEAREST && !exact)) {
        a = resized(d, a, c->from_width, 8, is_signed);
        if (is_half) {
            to_half(d, c, is_signed ? PTX_H_OF_S64 : PTX_H_OF_U64, a, a, false);
            return;
        }
        ptx_rounded_op op = to_64 ? (is_signed ? PTX_R_F64_OF_S64 : PTX_R_F64_OF_U64)
                                  : (is_signed ? PTX_R_F32_OF_S64 : PTX_R_F32_OF_U64);
        rounded(d, c, op, a, c->result, to_64);
    } else {
        static const ptx_lane lanes[2][2][2] = {{{PTX_LANE_f32_of_u32, PTX_LANE_f32_of_s32},
                                                 {PTX_LANE_f32_of_u64, PTX_LANE_f32_of_s64}},
                                                {{PTX_LANE_f64_of_u32, PTX_LANE_f64_of_s32},
                                                 {PTX_LANE_f64_of_u64, PTX_LANE_f64_of_s64}}};
        unsigned width = c->from_width < 4 ? 4 : c->from_width;
        a = resized(d, a, c->from_width, width, is_signed);
        if (width == 8 && from->bytes <= 4) a = resized(d, a, 8, 4, is_signed), width = 4;
        ptx_emit_lane(d, lanes[to_64][width == 8][is_signed], c->result, a, a, a);
    }
    if (c->sat) {
        ptx_emit_lane(d, to_64 ? PTX_LANE_sat_f64 : PTX_LANE_sat_f32, c->result, c->result,
                      c->result, c->result);
    }
}

static void float_to_float(ptx_decoder *d, const conversion *c) {
    if (c->to == PTX_tf32) {
        ptx_code *code = ptx_emit(d, ptx_run_half, c->result, c->a, c->a, c->a);
        if (code) {
            code->bits =
                PTX_HALF(PTX_H_TF32_OF_F32, 0, 0, c->rounding, 0, 0, c->relu, 0, 0, c->finite);
        }
        return;
    }
    if (c->from != c->to && (c->to == PTX_f16 || c->to == PTX_bf16)) {
        if (c->from == PTX_f64) {
            to_half(d, c, PTX_H_OF_F64, c->a, c->a, false);
            return;
        }
        bool is_64;
        ptx_place_of a = widened(d, c, &is_64);
        to_half(d, c, PTX_H_OF_F32, a, a, false);
        return;
    }
    bool is_64;
    ptx_place_of a = widened(d, c, &is_64);
    if (c->whole >= 0) a = whole_number(d, a, c->whole, is_64);
    if (c->to == PTX_f16 || c->to == PTX_bf16) { /* a whole number of the same type */
        to_half(d, c, PTX_H_OF_F32, a, a, false);
        return;
    }
    bool to_64 = c->to == PTX_f64;
    if (to_64 && !is_64) {
        a = step(d, PTX_LANE_f64_of_f32, a, ptx_scratch(d, 8));
    } else if (!to_64 && is_64) {
        ptx_place_of to = ptx_scratch(d, 4);
        if (c->rounding == PTX_NEAREST) a = step(d, PTX_LANE_f32_of_f64, a, to);
        else if (rounded(d, c, PTX_R_F32_OF_F64, a, to, false)) a = to;
        if (c->ftz) a = step(d, PTX_LANE_flush_f32, a, ptx_scratch(d, 4));
    }
    if (c->sat)
        a = step(d, to_64 ? PTX_LANE_sat_f64 : PTX_LANE_sat_f32, a, ptx_scratch(d, to_64 ? 8 : 4));
    finish(d, a, c->result, to_64 ? 8 : 4);
}

/* d = the upper half from a, the lower one from b */
static void decode_pair(ptx_decoder *d, conversion *c) {
    if (!ptx_needs(d, 3, 2)) return;
    if (c->from != PTX_f32) {
        ptx_refuse(d, "only two f32 become a pair of f16 or bf16");
        return;
    }
    c->result = ptx_result(d, 0, 4);
    ptx_place_of a = ptx_source(d, 1, 4), b = ptx_source(d, 2, 4);
    to_half(d, c, PTX_H_OF_F32, a, b, true);
}

static bool is_plain_float(ptx_type t) {
    return t == PTX_f16 || t == PTX_bf16 || t == PTX_f32 || t == PTX_f64;
}
static bool is_integer(ptx_type t) {
    return mr_ptx_types[t].sort != PTX_FLOAT && mr_ptx_types[t].sort != PTX_BITS &&
           t != PTX_u16x2 && t != PTX_s16x2;
}

static void read_modifiers(ptx_decoder *d, conversion *c) {
    c->ftz = ptx_take(d, PTX_MOD_ftz);
    c->sat = ptx_take(d, PTX_MOD_sat);
    c->relu = ptx_take(d, PTX_MOD_relu);
    c->finite = ptx_take(d, PTX_MOD_satfinite);
    c->whole = ptx_take(d, PTX_MOD_rni)   ? PTX_NEAREST
               : ptx_take(d, PTX_MOD_rzi) ? PTX_ZERO
               : ptx_take(d, PTX_MOD_rmi) ? PTX_DOWN
               : ptx_take(d, PTX_MOD_rpi) ? PTX_UP
                                          : -1;
    ptx_take(d, PTX_MOD_rn);
    c->rounding = ptx_take(d, PTX_MOD_rz)    ? PTX_ZERO
                  : ptx_take(d, PTX_MOD_rm)  ? PTX_DOWN
                  : ptx_take(d, PTX_MOD_rp)  ? PTX_UP
                  : ptx_take(d, PTX_MOD_rna) ? PTX_AWAY
                                             : PTX_NEAREST;
}

static void decode_cvt(ptx_decoder *d) {
    conversion c = {.to = ptx_type_at(d, 0), .from = ptx_type_at(d, 1)};
    read_modifiers(d, &c);
    if (c.to == PTX_f16x2 || c.to == PTX_bf16x2) {
        decode_pair(d, &c);
        return;
    }
    if (!ptx_needs(d, 2, 2)) return;
    bool from_float = is_plain_float(c.from), to_float = is_plain_float(c.to) || c.to == PTX_tf32;
    if ((!from_float && !is_integer(c.from)) || (!to_float && !is_integer(c.to)) ||
        (c.to == PTX_tf32 && c.from != PTX_f32)) {
        ptx_refuse(d, "there is no conversion between these types");
        return;
    }
    const ptx_operand *o = d->instruction->operands;
    unsigned from_bytes = mr_ptx_types[c.from].bytes, to_bytes = mr_ptx_types[c.to].bytes;
    /* A register may be wider than an integer type; of a float it has exactly its width. */
    c.from_width = from_bytes, c.to_width = to_bytes;
    c.a = from_float ? ptx_source_of(d, &o[1], from_bytes)
                     : ptx_wide_source(d, &o[1], from_bytes, &c.from_width);
    c.result = to_float ? ptx_result_of(d, &o[0], to_bytes)
                        : ptx_wide_result(d, &o[0], to_bytes, &c.to_width);
    if (d->failure) return;
    if (from_float && to_float) float_to_float(d, &c);
    else if (from_float && c.whole < 0)
        ptx_refuse(d, "it must say how it rounds: .rzi, .rni, .rmi or .rpi");
    else if (from_float) float_to_integer(d, &c);
    else if (to_float) integer_to_float(d, &c);
    else integer_to_integer(d, &c);
}

bool ptx_decode_convert(ptx_decoder *d) {
    if (d->instruction->opcode != PTX_OP_cvt) return false;
    decode_cvt(d);
    return true;
}
