/* Decodes comparisons and selections: setp, set, testp, selp, slct. */
#include "ptx/decode/decode.h"

typedef struct {
    ptx_lane lane;
    bool swapped; /* a > b is b < a */
} test;

static bool find_integer_test(ptx_modifier m, ptx_type t, test *out) {
    static const ptx_lane eq[] = {PTX_LANE_eq_16, PTX_LANE_eq_32, PTX_LANE_eq_64};
    static const ptx_lane ne[] = {PTX_LANE_ne_16, PTX_LANE_ne_32, PTX_LANE_ne_64};
    static const ptx_lane lt[] = {PTX_LANE_lt_u16, PTX_LANE_lt_s16, PTX_LANE_lt_u32,
                                  PTX_LANE_lt_s32, PTX_LANE_lt_u64, PTX_LANE_lt_s64};
    static const ptx_lane le[] = {PTX_LANE_le_u16, PTX_LANE_le_s16, PTX_LANE_le_u32,
                                  PTX_LANE_le_s32, PTX_LANE_le_u64, PTX_LANE_le_s64};
    unsigned bytes = mr_ptx_types[t].bytes, w = bytes == 2 ? 0 : bytes == 4 ? 1 : 2;
    bool is_signed = mr_ptx_types[t].sort == PTX_SIGNED;
    if (bytes != 2 && bytes != 4 && bytes != 8) return false;
    /* lo, ls, hi, hs compare unsigned whatever the type. */
    switch (m) {
    case PTX_MOD_eq: *out = (test){eq[w], false}; return true;
    case PTX_MOD_ne: *out = (test){ne[w], false}; return true;
    case PTX_MOD_lt: *out = (test){lt[2 * w + is_signed], false}; return true;
    case PTX_MOD_le: *out = (test){le[2 * w + is_signed], false}; return true;
    case PTX_MOD_gt: *out = (test){lt[2 * w + is_signed], true}; return true;
    case PTX_MOD_ge: *out = (test){le[2 * w + is_signed], true}; return true;
    case PTX_MOD_lo: *out = (test){lt[2 * w], false}; return true;
    case PTX_MOD_ls: *out = (test){le[2 * w], false}; return true;
    case PTX_MOD_hi: *out = (test){lt[2 * w], true}; return true;
    case PTX_MOD_hs: *out = (test){le[2 * w], true}; return true;
    default: return false;
    }
}

static bool find_float_test(ptx_modifier m, bool is_64, test *out) {
#define BOTH(name) is_64 ? PTX_LANE_##name##_f64 : PTX_LANE_##name##_f32
    switch (m) {
    case PTX_MOD_eq: *out = (test){BOTH(eq), false}; return true;
    case PTX_MOD_ne: *out = (test){BOTH(ne), false}; return true;
    case PTX_MOD_lt: *out = (test){BOTH(lt), false}; return true;
    case PTX_MOD_le: *out = (test){BOTH(le), false}; return true;
    case PTX_MOD_gt: *out = (test){BOTH(lt), true}; return true;
    case PTX_MOD_ge: *out = (test){BOTH(le), true}; return true;
    case PTX_MOD_equ: *out = (test){BOTH(equ), false}; return true;
    case PTX_MOD_neu: *out = (test){BOTH(neu), false}; return true;
    case PTX_MOD_ltu: *out = (test){BOTH(ltu), false}; return true;
    case PTX_MOD_leu: *out = (test){BOTH(leu), false}; return true;
    case PTX_MOD_gtu: *out = (test){BOTH(ltu), true}; return true;
    case PTX_MOD_geu: *out = (test){BOTH(leu), true}; return true;
    case PTX_MOD_num: *out = (test){BOTH(num), false}; return true;
    case PTX_MOD_unordered: *out = (test){BOTH(nan), false}; return true;
    default: return false;
    }
#undef BOTH
}

static ptx_place_of flushed(ptx_decoder *d, ptx_place_of a) {
    ptx_place_of to = ptx_scratch(d, 4);
    ptx_emit_lane(d, PTX_LANE_flush_f32, to, a, a, a);
    return to;
}

/* One half of a pair of f16 or bf16, or a value of them, as f32. */
static ptx_place_of half_as_f32(ptx_decoder *d, ptx_place_of a, ptx_type t, bool is_two,
                                bool upper) {
    ptx_place_of part = a, to = ptx_scratch(d, 4);
    if (is_two) {
        part = ptx_scratch(d, 2);
        ptx_emit_lane(d, upper ? PTX_LANE_hi_32_16 : PTX_LANE_lo_32_16, part, a, a, a);
    }
    bool is_bf16 = t == PTX_bf16 || t == PTX_bf16x2;
    ptx_emit_lane(d, is_bf16 ? PTX_LANE_f32_of_bf16 : PTX_LANE_f32_of_f16, to, part, part, part);
    return to;
}

static bool is_half(ptx_type t) {
    return t == PTX_f16 || t == PTX_bf16 || t == PTX_f16x2 || t == PTX_bf16x2;
}

typedef struct {
    ptx_type type;
    ptx_modifier test, combine; /* PTX_MOD_NONE: no third operand */
    bool ftz;
    unsigned first; /* the operand a */
} comparison;

static bool read_comparison(ptx_decoder *d, ptx_type t, unsigned first, comparison *out) {
    const ptx_instruction *i = d->instruction;
    *out = (comparison){.type = t, .first = first};
    if (i->modifier_count == 0) return false;
    out->test = (ptx_modifier)i->modifiers[0];
    d->taken |= 1;
    out->ftz = ptx_take(d, PTX_MOD_ftz);
    for (unsigned k = 1; k < i->modifier_count; k++) {
        ptx_modifier m = (ptx_modifier)i->modifiers[k];
        if (m != PTX_MOD_and && m != PTX_MOD_or && m != PTX_MOD_xor) continue;
        out->combine = m;
        d->taken |= 1u << k;
    }
    return true;
}

/* The comparison of a and b, without the third operand, in a scratch predicate or at `to`. */
static bool emit_test(ptx_decoder *d, const comparison *c, bool upper, ptx_place_of to) {
    ptx_type t = c->type;
    bool is_float = mr_ptx_types[t].sort == PTX_FLOAT, half = is_half(t);
    test found = {0};
    if (!(is_float ? find_float_test(c->test, t == PTX_f64, &found)
                   : find_integer_test(c->test, t, &found))) {
        ptx_refuse(d, "it has no such comparison of this type");
        return false;
    }
    unsigned bytes = mr_ptx_types[t].bytes;
    ptx_place_of a = ptx_source(d, c->first, bytes), b = ptx_source(d, c->first + 1, bytes);
    if (half) {
        a = half_as_f32(d, a, t, bytes == 4, upper);
        b = half_as_f32(d, b, t, bytes == 4, upper);
    } else if (c->ftz && t == PTX_f32) {
        a = flushed(d, a), b = flushed(d, b);
    }
    ptx_emit_lane(d, found.lane, to, found.swapped ? b : a, found.swapped ? a : b, a);
    return true;
}

static ptx_run *combining(ptx_modifier m) {
    return m == PTX_MOD_and  ? ptx_run_pred_and
           : m == PTX_MOD_or ? ptx_run_pred_or
                             : ptx_run_pred_xor;
}

static void decode_setp(ptx_decoder *d) {
    bool two = d->instruction->two_results;
    comparison c;
    if (!read_comparison(d, ptx_type_at(d, 0), two ? 2 : 1, &c)) {
        ptx_refuse(d, "it has no comparison");
        return;
    }
    bool more = c.combine != PTX_MOD_NONE;
    if (!ptx_needs(d, (two ? 4u : 3u) + more, 1)) return;
    bool pair = is_half(c.type) && mr_ptx_types[c.type].bytes == 4;
    ptx_place_of p = ptx_result(d, 0, 0), q = two ? ptx_result(d, 1, 0) : p;
    if (!two && !more) {
        emit_test(d, &c, false, p);
        return;
    }
    /* p = test op c; q = (not test) op c, or of a pair the test of the upper half */
    ptx_place_of t = ptx_scratch(d, 0), u = ptx_scratch(d, 0);
    if (!emit_test(d, &c, false, t)) return;
    if (two && pair) emit_test(d, &c, true, u);
    else if (two) ptx_emit(d, ptx_run_pred_not, u, t, t, t);
    ptx_run *last = more ? combining(c.combine) : ptx_run_pred_mov;
    ptx_place_of third = more ? ptx_source(d, two ? 4 : 3, 0) : t;
    if (two) ptx_emit(d, last, u, u, third, u);
    ptx_emit(d, last, p, t, third, t);
    if (two) ptx_emit(d, ptx_run_pred_mov, q, u, u, u);
}

/* The value that `set` writes where the comparison is true; for each half of a pair. 0: it has no result of this
 * type. */
static uint32_t value_of_true(ptx_type to, bool of_pair) {
    switch (to) {
    case PTX_u32:
    case PTX_s32: return of_pair ? 0xffff : PTX_ALL;
    case PTX_f32: return of_pair ? 0 : 0x3f800000;
    case PTX_u16:
    case PTX_s16: return of_pair ? 0 : 0xffff;
    case PTX_f16: return of_pair ? 0 : 0x3c00;
    case PTX_bf16: return of_pair ? 0 : 0x3f80;
    case PTX_f16x2: return of_pair ? 0x3c00 : 0;
    case PTX_bf16x2: return of_pair ? 0x3f80 : 0;
    default: return 0;
    }
}

/* The comparison of one half, with the third operand, as `yes` or 0 of `bytes`. */
static bool emit_set(ptx_decoder *d, const comparison *c, bool upper, uint32_t yes, unsigned bytes,
                     ptx_place_of to) {
    ptx_place_of t = ptx_scratch(d, 0);
    if (!emit_test(d, c, upper, t)) return false;
    if (c->combine != PTX_MOD_NONE) {
        ptx_place_of third = ptx_source(d, 3, 0);
        ptx_emit(d, combining(c->combine), t, t, third, t);
    }
    ptx_emit_lane(d, bytes == 2 ? PTX_LANE_selp_16 : PTX_LANE_selp_32, to,
                  ptx_constant_of(d, yes, bytes), ptx_constant_of(d, 0, bytes), t);
    return true;
}

static void decode_set(ptx_decoder *d) {
    ptx_type to = ptx_type_at(d, 0);
    comparison c;
    if (!read_comparison(d, ptx_type_at(d, 1), 1, &c)) {
        ptx_refuse(d, "it has no comparison");
        return;
    }
    if (!ptx_needs(d, 3u + (c.combine != PTX_MOD_NONE), 2)) return;
    bool is_pair = is_half(c.type) && mr_ptx_types[c.type].bytes == 4;
    uint32_t yes = value_of_true(to, is_pair);
    unsigned bytes = mr_ptx_types[to].bytes;
    if (!yes) {
        ptx_refuse(d, is_pair ? "its first type must be f16x2, bf16x2, u32 or s32"
                              : "its first type must be u16, s16, u32, s32, f16, bf16 or f32");
        return;
    }
    if (!is_pair) {
        emit_set(d, &c, false, yes, bytes, ptx_result(d, 0, bytes));
        return;
    }
    ptx_place_of low = ptx_scratch(d, 4), high = ptx_scratch(d, 4);
    if (!emit_set(d, &c, false, yes, 4, low) || !emit_set(d, &c, true, yes << 16, 4, high)) return;
    ptx_emit_lane(d, PTX_LANE_or_32, ptx_result(d, 0, 4), low, high, low);
}

static void decode_testp(ptx_decoder *d) {
    static const struct {
        ptx_modifier modifier;
        ptx_lane f32, f64;
    } rows[] = {
        {PTX_MOD_finite, PTX_LANE_finite_f32, PTX_LANE_finite_f64},
        {PTX_MOD_infinite, PTX_LANE_infinite_f32, PTX_LANE_infinite_f64},
        {PTX_MOD_number, PTX_LANE_num_f32, PTX_LANE_num_f64},
        {PTX_MOD_notanumber, PTX_LANE_nan_f32, PTX_LANE_nan_f64},
        {PTX_MOD_normal, PTX_LANE_normal_f32, PTX_LANE_normal_f64},
        {PTX_MOD_subnormal, PTX_LANE_subnormal_f32, PTX_LANE_subnormal_f64},
    };
    ptx_type t = ptx_type_at(d, 0);
    if (!ptx_needs(d, 2, 1)) return;
    if (t != PTX_f32 && t != PTX_f64) {
        ptx_refuse(d, "its type must be f32 or f64");
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!ptx_take(d, rows[i].modifier)) continue;
        ptx_place_of a = ptx_source(d, 1, mr_ptx_types[t].bytes);
        ptx_emit_lane(d, t == PTX_f32 ? rows[i].f32 : rows[i].f64, ptx_result(d, 0, 0), a, a, a);
        return;
    }
    ptx_refuse(d, "it does not say what it tests");
}

static unsigned width_index(unsigned bytes) {
    return bytes == 2 ? 0 : bytes == 4 ? 1 : 2;
}

static void decode_selp(ptx_decoder *d) {
    static const ptx_lane lanes[] = {PTX_LANE_selp_16, PTX_LANE_selp_32, PTX_LANE_selp_64};
    if (!ptx_needs(d, 4, 1)) return;
    unsigned bytes = mr_ptx_types[ptx_type_at(d, 0)].bytes;
    if (bytes != 2 && bytes != 4 && bytes != 8) {
        ptx_refuse(d, "its type must have 16, 32 or 64 bits");
        return;
    }
    ptx_place_of a = ptx_source(d, 1, bytes), b = ptx_source(d, 2, bytes), c = ptx_source(d, 3, 0);
    ptx_emit_lane(d, lanes[width_index(bytes)], ptx_result(d, 0, bytes), a, b, c);
}

static void decode_slct(ptx_decoder *d) {
    static const ptx_lane lanes[2][3] = {
        {PTX_LANE_slct_16_s32, PTX_LANE_slct_32_s32, PTX_LANE_slct_64_s32},
        {PTX_LANE_slct_16_f32, PTX_LANE_slct_32_f32, PTX_LANE_slct_64_f32}};
    bool ftz = ptx_take(d, PTX_MOD_ftz);
    if (!ptx_needs(d, 4, 2)) return;
    unsigned bytes = mr_ptx_types[ptx_type_at(d, 0)].bytes;
    ptx_type by = ptx_type_at(d, 1);
    if ((bytes != 2 && bytes != 4 && bytes != 8) || (by != PTX_s32 && by != PTX_f32)) {
        ptx_refuse(d, "its second type must be s32 or f32");
        return;
    }
    ptx_place_of a = ptx_source(d, 1, bytes), b = ptx_source(d, 2, bytes), c = ptx_source(d, 3, 4);
    if (ftz && by == PTX_f32) c = flushed(d, c);
    ptx_emit_lane(d, lanes[by == PTX_f32][width_index(bytes)], ptx_result(d, 0, bytes), a, b, c);
}

bool ptx_decode_compare(ptx_decoder *d) {
    switch ((ptx_opcode)d->instruction->opcode) {
    case PTX_OP_setp: decode_setp(d); return true;
    case PTX_OP_set: decode_set(d); return true;
    case PTX_OP_testp: decode_testp(d); return true;
    case PTX_OP_selp: decode_selp(d); return true;
    case PTX_OP_slct: decode_slct(d); return true;
    default: return false;
    }
}
