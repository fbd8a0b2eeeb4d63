/* Arithmetic with a rounding other than to nearest, and with .sat. The processor's mode is changed around the loop;
 * volatile variables keep the compiler from computing outside of it. */
#include <fenv.h>

#include "ptx/run/half.h"
#include "ptx/run/runs.h"
#include "ptx/run/warp.h"

static float compute_32(ptx_rounded_op op, volatile float a, volatile float b, volatile float c) {
    volatile float r;
    switch (op) {
    case PTX_R_ADD: r = a + b; break;
    case PTX_R_SUB: r = a - b; break;
    case PTX_R_MUL: r = a * b; break;
    case PTX_R_DIV: r = a / b; break;
    case PTX_R_RCP: r = 1.0f / a; break;
    case PTX_R_SQRT: r = sqrtf(a); break;
    default: r = fmaf(a, b, c); break;
    }
    return r;
}

static double compute_64(ptx_rounded_op op, volatile double a, volatile double b,
                         volatile double c) {
    volatile double r;
    switch (op) {
    case PTX_R_ADD: r = a + b; break;
    case PTX_R_SUB: r = a - b; break;
    case PTX_R_MUL: r = a * b; break;
    case PTX_R_DIV: r = a / b; break;
    case PTX_R_RCP: r = 1.0 / a; break;
    case PTX_R_SQRT: r = sqrt(a); break;
    default: r = fma(a, b, c); break;
    }
    return r;
}

/* An integer as a float in the mode that is set. The upper part of an unsigned one is made odd if it loses a bit, so
 * that the conversion sees that it is not exact. */
static double convert_64(ptx_rounded_op op, uint64_t bits) {
    volatile int64_t a = (int64_t)bits, half = (int64_t)(bits >> 1 | (bits & 1));
    volatile double r;
    if (op == PTX_R_F64_OF_S64 || a >= 0) r = (double)a;
    else r = (double)half * 2.0;
    return r;
}
static float convert_32(ptx_rounded_op op, uint64_t bits) {
    volatile int64_t a = (int64_t)bits, half = (int64_t)(bits >> 1 | (bits & 1));
    volatile double wide = mr_from_bits_f64(bits);
    volatile float r;
    if (op == PTX_R_F32_OF_F64) r = (float)wide;
    else if (op == PTX_R_F32_OF_S64 || a >= 0) r = (float)a;
    else r = (float)half * 2.0f;
    return r;
}

static int mode_of(ptx_rounding rounding) {
    switch (rounding) {
    case PTX_ZERO: return FE_TOWARDZERO;
    case PTX_DOWN: return FE_DOWNWARD;
    case PTX_UP: return FE_UPWARD;
    default: return FE_TONEAREST;
    }
}

static void lanes_32(ptx_warp *warp, const ptx_code *code, uint32_t mask, ptx_rounded_op op,
                     bool ftz, bool sat) {
    const ptx_f32 *a = PTX_AT(const ptx_f32, warp, code->a),
                  *b = PTX_AT(const ptx_f32, warp, code->b);
    const ptx_f32 *c = PTX_AT(const ptx_f32, warp, code->c);
    ptx_f32 *d = PTX_AT(ptx_f32, warp, code->d);
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (!(mask >> i & 1)) continue;
        float r = ftz ? compute_32(op, ptx_flush(a[i]), ptx_flush(b[i]), ptx_flush(c[i]))
                      : compute_32(op, a[i], b[i], c[i]);
        r = ptx_nan_32(r);
        if (ftz) r = ptx_flush(r);
        d[i] = sat ? ptx_saturate_32(r) : r;
    }
}

static void lanes_64(ptx_warp *warp, const ptx_code *code, uint32_t mask, ptx_rounded_op op) {
    const ptx_f64 *a = PTX_AT(const ptx_f64, warp, code->a),
                  *b = PTX_AT(const ptx_f64, warp, code->b);
    const ptx_f64 *c = PTX_AT(const ptx_f64, warp, code->c);
    ptx_f64 *d = PTX_AT(ptx_f64, warp, code->d);
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (mask >> i & 1) d[i] = compute_64(op, a[i], b[i], c[i]);
    }
}

static void lanes_converted(ptx_warp *warp, const ptx_code *code, uint32_t mask, ptx_rounded_op op,
                            bool to_64) {
    const ptx_u64 *a = PTX_AT(const ptx_u64, warp, code->a);
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (!(mask >> i & 1)) continue;
        if (to_64) PTX_AT(ptx_f64, warp, code->d)[i] = convert_64(op, a[i]);
        else PTX_AT(ptx_f32, warp, code->d)[i] = ptx_nan_32(convert_32(op, a[i]));
    }
}

const ptx_code *ptx_run_rounded(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    ptx_rounded_op op = (ptx_rounded_op)(code->bits & 255);
    bool is_64 = code->bits >> 16 & 1, ftz = code->bits >> 17 & 1, sat = code->bits >> 18 & 1;
    int before = fegetround();
    fesetround(mode_of((ptx_rounding)(code->bits >> 8 & 255)));
    if (op >= PTX_R_F32_OF_F64) lanes_converted(warp, code, mask, op, is_64);
    else if (is_64) lanes_64(warp, code, mask, op);
    else lanes_32(warp, code, mask, op, ftz, sat);
    fesetround(before);
    return code + 1;
}
