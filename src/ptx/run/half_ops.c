/* Arithmetic and conversions of f16 and bf16, of one value or two in 32 bits: see half.h. */
#include "ptx/run/half.h"

#include "ptx/run/runs.h"
#include "ptx/run/warp.h"

typedef struct {
    ptx_half_op op;
    bool is_bf16, is_two, ftz, sat, relu, nan, xorsign, finite;
    ptx_rounding rounding;
    ptx_format format;
} half_code;

static half_code read_code(const ptx_code *code) {
    uint64_t bits = code->bits;
    half_code h = {.op = (ptx_half_op)(bits & 255),
                   .is_bf16 = bits >> 8 & 1,
                   .is_two = bits >> 9 & 1,
                   .rounding = (ptx_rounding)(bits >> 10 & 15),
                   .ftz = bits >> 14 & 1,
                   .sat = bits >> 15 & 1,
                   .relu = bits >> 16 & 1,
                   .nan = bits >> 17 & 1,
                   .xorsign = bits >> 18 & 1,
                   .finite = bits >> 19 & 1};
    h.format = h.is_bf16 ? PTX_FORMAT_BF16 : PTX_FORMAT_F16;
    return h;
}

static uint16_t flush_16(const half_code *h, uint16_t x) {
    uint16_t exponent = h->is_bf16 ? 0x7f80 : 0x7c00;
    return h->ftz && !(x & exponent) ? x & 0x8000 : x;
}

static double widen(const half_code *h, uint16_t x) {
    x = flush_16(h, x);
    return h->is_bf16 ? (double)mr_from_bits_f32(ptx_f32_of_bf16(x)) : (double)ptx_f32_of_f16(x);
}

/* The value as f16 or bf16, after .sat, .relu and .ftz. */
static uint16_t narrow(const half_code *h, double x) {
    if (h->sat) x = ptx_saturate_64(x);
    if (h->relu && x < 0.0) x = 0.0;
    uint16_t r = (uint16_t)ptx_narrow(x, h->format, h->rounding, h->finite);
    if (h->relu && (r & 0x8000)) r = 0;
    return flush_16(h, r);
}

static uint16_t extreme(const half_code *h, uint16_t x, uint16_t y) {
    double a = widen(h, x), b = widen(h, y);
    if (h->nan && (a != a || b != b)) return 0x7fff;
    if (h->xorsign) a = fabs(a), b = fabs(b);
    double r = h->op == PTX_H_MIN ? ptx_min_f64(a, b) : ptx_max_f64(a, b);
    uint16_t bits = narrow(h, r);
    return h->xorsign && r == r ? (bits & 0x7fff) | ((x ^ y) & 0x8000) : bits;
}

static uint16_t compute(const half_code *h, uint16_t x, uint16_t y, uint16_t z) {
    double a, b, c;
    switch (h->op) {
    case PTX_H_NEG: return flush_16(h, x) ^ 0x8000;
    case PTX_H_ABS: return flush_16(h, x) & 0x7fff;
    case PTX_H_MIN:
    case PTX_H_MAX: return extreme(h, x, y);
    default: break;
    }
    a = widen(h, x), b = widen(h, y), c = widen(h, z);
    switch (h->op) {
    case PTX_H_ADD: return narrow(h, a + b);
    case PTX_H_SUB: return narrow(h, a - b);
    case PTX_H_MUL: return narrow(h, a * b);
    case PTX_H_FMA: return narrow(h, ptx_add_to_odd(a * b, c));
    case PTX_H_EX2: return narrow(h, ptx_ex2((float)a));
    default: return narrow(h, ptx_tanh((float)a));
    }
}

static void lanes_16(ptx_warp *warp, const ptx_code *code, const half_code *h, uint32_t mask) {
    const ptx_u16 *a = PTX_AT(const ptx_u16, warp, code->a),
                  *b = PTX_AT(const ptx_u16, warp, code->b);
    const ptx_u16 *c = PTX_AT(const ptx_u16, warp, code->c);
    ptx_u16 *d = PTX_AT(ptx_u16, warp, code->d);
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (mask >> i & 1) d[i] = compute(h, a[i], b[i], c[i]);
    }
}

static void lanes_pairs(ptx_warp *warp, const ptx_code *code, const half_code *h, uint32_t mask) {
    const ptx_u32 *a = PTX_AT(const ptx_u32, warp, code->a),
                  *b = PTX_AT(const ptx_u32, warp, code->b);
    const ptx_u32 *c = PTX_AT(const ptx_u32, warp, code->c);
    ptx_u32 *d = PTX_AT(ptx_u32, warp, code->d);
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (!(mask >> i & 1)) continue;
        uint16_t low = compute(h, (uint16_t)a[i], (uint16_t)b[i], (uint16_t)c[i]);
        uint16_t high =
            compute(h, (uint16_t)(a[i] >> 16), (uint16_t)(b[i] >> 16), (uint16_t)(c[i] >> 16));
        d[i] = low | (uint32_t)high << 16;
    }
}

static void convert(ptx_warp *warp, const ptx_code *code, const half_code *h, uint32_t mask) {
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (!(mask >> i & 1)) continue;
        uint64_t bits = h->op == PTX_H_OF_F32 || h->op == PTX_H_TF32_OF_F32
                            ? PTX_AT(const ptx_u32, warp, code->a)[i]
                            : PTX_AT(const ptx_u64, warp, code->a)[i];
        double x;
        switch (h->op) {
        case PTX_H_OF_F64: x = mr_from_bits_f64(bits); break;
        case PTX_H_OF_U64: x = ptx_odd_of_u64(bits); break;
        case PTX_H_OF_S64:
            x = (int64_t)bits < 0 ? -ptx_odd_of_u64(0 - bits) : ptx_odd_of_u64(bits);
            break;
        default: x = (double)mr_from_bits_f32((uint32_t)bits); break;
        }
        if (h->op == PTX_H_TF32_OF_F32) {
            if (h->relu && !(x > 0.0) && x == x) x = 0.0;
            uint32_t r = ptx_narrow(x, PTX_FORMAT_TF32, h->rounding, h->finite);
            PTX_AT(ptx_u32, warp, code->d)[i] = x != x ? 0x7fffffff : r << 13;
        } else if (h->is_two) {
            double low = (double)PTX_AT(const ptx_f32, warp, code->b)[i];
            PTX_AT(ptx_u32, warp, code->d)[i] = narrow(h, low) | (uint32_t)narrow(h, x) << 16;
        } else {
            PTX_AT(ptx_u16, warp, code->d)[i] = narrow(h, x);
        }
    }
}

const ptx_code *ptx_run_half(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    half_code h = read_code(code);
    if (h.op >= PTX_H_OF_F32) convert(warp, code, &h, mask);
    else if (h.is_two) lanes_pairs(warp, code, &h, mask);
    else lanes_16(warp, code, &h, mask);
    return code + 1;
}
