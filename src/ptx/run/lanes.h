/* The operations that compute each lane for itself: one row an operation and type. Each row becomes a handler, compiled
 * once for every x86 (lanes.c) and once with AVX2 and fused multiply-add (lanes_v3.c). decode picks by name from the
 * table of the machine that it runs on. In an expression a, b, c are the operands and n is `code->bits`. */
#ifndef MR_PTX_RUN_LANES_H
#define MR_PTX_RUN_LANES_H

#include "ptx/code.h"

// clang-format off

/* name, type of the result, type of a, value */
#define PTX_LANES_1(X) \
    X(mov_16, u16, u16, a) X(mov_32, u32, u32, a) X(mov_64, u64, u64, a) \
    X(not_16, u16, u16, ~a) X(not_32, u32, u32, ~a) X(not_64, u64, u64, ~a) \
    X(neg_16, u16, u16, 0u - a) X(neg_32, u32, u32, 0u - a) X(neg_64, u64, u64, 0u - a) \
    X(cnot_16, u16, u16, a == 0) X(cnot_32, u32, u32, a == 0) X(cnot_64, u64, u64, a == 0) \
    X(abs_16, u16, u16, (s16)a < 0 ? 0u - a : a) X(abs_32, u32, u32, (s32)a < 0 ? 0u - a : a) \
    X(abs_64, u64, u64, (s64)a < 0 ? 0u - a : a) \
    X(popc_32, u32, u32, ptx_popc_32(a)) \
    X(popc_64, u32, u64, ptx_popc_32((u32)a) + ptx_popc_32((u32)(a >> 32))) \
    X(clz_32, u32, u32, ptx_clz_32(a)) X(clz_64, u32, u64, ptx_clz_64(a)) \
    X(brev_32, u32, u32, ptx_brev_32(a)) X(brev_64, u64, u64, ptx_brev_64(a)) \
    X(bfind_u32, u32, u32, ptx_bfind_32(a)) X(bfind_u64, u32, u64, ptx_bfind_64(a)) \
    X(bfind_s32, u32, u32, ptx_bfind_32((s32)a < 0 ? ~a : a)) \
    X(bfind_s64, u32, u64, ptx_bfind_64((s64)a < 0 ? ~a : a)) \
    X(shiftamt_32, u32, u32, ptx_shiftamt_32(a)) X(shiftamt_64, u32, u32, ptx_shiftamt_64(a)) \
    /* to another width of register; within one, from the low 8, 16 or 32 bits */ \
    X(zx_16_32, u32, u16, a) X(zx_16_64, u64, u16, a) X(zx_32_64, u64, u32, a) \
    X(sx_16_32, s32, s16, a) X(sx_16_64, s64, s16, a) X(sx_32_64, s64, s32, a) \
    X(lo_32_16, u16, u32, (u16)a) X(lo_64_16, u16, u64, (u16)a) X(lo_64_32, u32, u64, (u32)a) \
    X(zx8_16, u16, u16, a & 255) X(zx8_32, u32, u32, a & 255) X(zx8_64, u64, u64, a & 255) \
    X(sx8_16, s16, u16, (s8)a) X(sx8_32, s32, u32, (s8)a) X(sx8_64, s64, u64, (s8)a) \
    X(zx16_32, u32, u32, a & 65535) X(zx16_64, u64, u64, a & 65535) X(zx32_64, u64, u64, (u32)a) \
    X(sx16_32, s32, u32, (s16)a) X(sx16_64, s64, u64, (s16)a) X(sx32_64, s64, u64, (s32)a) \
    X(hi_64_32, u32, u64, (u32)(a >> 32)) X(hi_32_16, u16, u32, (u16)(a >> 16)) \
    X(part_64_16, u16, u64, (u16)(a >> (n & 63))) X(part_64_8, u16, u64, a >> (n & 63) & 255) \
    X(part_32_8, u16, u32, a >> (n & 31) & 255) X(part_16_8, u16, u16, a >> (n & 15) & 255) \
    /* what cvt.sat leaves of a value of 64 bits */ \
    X(clamp_s_s8, s64, s64, a > INT8_MAX ? INT8_MAX : a < INT8_MIN ? INT8_MIN : a) \
    X(clamp_s_u8, s64, s64, a > UINT8_MAX ? UINT8_MAX : a < 0 ? 0 : a) \
    X(clamp_s_s16, s64, s64, a > INT16_MAX ? INT16_MAX : a < INT16_MIN ? INT16_MIN : a) \
    X(clamp_s_u16, s64, s64, a > UINT16_MAX ? UINT16_MAX : a < 0 ? 0 : a) \
    X(clamp_s_s32, s64, s64, a > INT32_MAX ? INT32_MAX : a < INT32_MIN ? INT32_MIN : a) \
    X(clamp_s_u32, s64, s64, a > UINT32_MAX ? UINT32_MAX : a < 0 ? 0 : a) \
    X(clamp_s_u64, s64, s64, a < 0 ? 0 : a) \
    X(clamp_u_s8, u64, u64, a > INT8_MAX ? INT8_MAX : a) \
    X(clamp_u_u8, u64, u64, a > UINT8_MAX ? UINT8_MAX : a) \
    X(clamp_u_s16, u64, u64, a > INT16_MAX ? INT16_MAX : a) \
    X(clamp_u_u16, u64, u64, a > UINT16_MAX ? UINT16_MAX : a) \
    X(clamp_u_s32, u64, u64, a > INT32_MAX ? INT32_MAX : a) \
    X(clamp_u_u32, u64, u64, a > UINT32_MAX ? UINT32_MAX : a) \
    X(clamp_u_s64, u64, u64, a > INT64_MAX ? INT64_MAX : a) \
    /* f32 */ \
    X(neg_f32, u32, u32, a ^ 0x80000000u) X(abs_f32, u32, u32, a & 0x7fffffffu) \
    X(flush_f32, f32, f32, ptx_flush(a)) X(sat_f32, f32, f32, ptx_saturate_32(a)) \
    X(rcp_f32, f32, f32, ptx_nan_32(1.0f / a)) \
    X(rcp_ftz_f32, f32, f32, ptx_flush(ptx_nan_32(1.0f / ptx_flush(a)))) \
    X(sqrt_f32, f32, f32, ptx_nan_32(sqrtf(a))) X(sqrt_ftz_f32, f32, f32, ptx_nan_32(sqrtf(ptx_flush(a)))) \
    X(rsqrt_f32, f32, f32, ptx_rsqrt(a)) X(rsqrt_ftz_f32, f32, f32, ptx_rsqrt(ptx_flush(a))) \
    X(ex2_f32, f32, f32, ptx_ex2(a)) X(ex2_ftz_f32, f32, f32, ptx_flush(ptx_ex2(ptx_flush(a)))) \
    X(lg2_f32, f32, f32, ptx_lg2(a)) X(lg2_ftz_f32, f32, f32, ptx_flush(ptx_lg2(ptx_flush(a)))) \
    X(sin_f32, f32, f32, ptx_sin(a)) X(sin_ftz_f32, f32, f32, ptx_flush(ptx_sin(ptx_flush(a)))) \
    X(cos_f32, f32, f32, ptx_cos(a)) X(cos_ftz_f32, f32, f32, ptx_flush(ptx_cos(ptx_flush(a)))) \
    X(tanh_f32, f32, f32, ptx_tanh(a)) \
    /* f64 */ \
    X(neg_f64, u64, u64, a ^ (u64)1 << 63) X(abs_f64, u64, u64, a & ~((u64)1 << 63)) \
    X(sat_f64, f64, f64, ptx_saturate_64(a)) \
    X(rcp_f64, f64, f64, 1.0 / a) X(sqrt_f64, f64, f64, sqrt(a)) X(rsqrt_f64, f64, f64, ptx_rsqrt_64(a)) \
    X(rcp_approx_f64, f64, f64, ptx_upper(1.0 / ptx_upper(a))) \
    X(rsqrt_approx_f64, f64, f64, ptx_upper(ptx_rsqrt_64(ptx_upper(a)))) \
    /* cvt */ \
    X(rni_f32, f32, f32, ptx_nan_32(rintf(a))) X(rzi_f32, f32, f32, ptx_nan_32(truncf(a))) \
    X(rmi_f32, f32, f32, ptx_nan_32(floorf(a))) X(rpi_f32, f32, f32, ptx_nan_32(ceilf(a))) \
    X(rni_f64, f64, f64, rint(a)) X(rzi_f64, f64, f64, trunc(a)) \
    X(rmi_f64, f64, f64, floor(a)) X(rpi_f64, f64, f64, ceil(a)) \
    X(f64_of_f32, f64, f32, a) X(f32_of_f64, f32, f64, ptx_nan_32((f32)a)) \
    X(f32_of_s32, f32, s32, (f32)a) X(f32_of_u32, f32, u32, (f32)a) \
    X(f32_of_s64, f32, s64, (f32)a) X(f32_of_u64, f32, u64, (f32)a) \
    X(f64_of_s32, f64, s32, a) X(f64_of_u32, f64, u32, a) \
    X(f64_of_s64, f64, s64, (f64)a) X(f64_of_u64, f64, u64, (f64)a) \
    X(s32_of_f32, s32, f32, ptx_s32_of_f32(a)) X(u32_of_f32, u32, f32, ptx_u32_of_f32(a)) \
    X(s64_of_f32, s64, f32, ptx_s64_of_f64(a)) X(u64_of_f32, u64, f32, ptx_u64_of_f64(a)) \
    X(s32_of_f64, s32, f64, ptx_s32_of_f64(a)) X(u32_of_f64, u32, f64, ptx_u32_of_f64(a)) \
    X(s64_of_f64, s64, f64, ptx_s64_of_f64(a)) X(u64_of_f64, u64, f64, ptx_u64_of_f64(a)) \
    X(f32_of_f16, f32, u16, ptx_f32_of_f16(a)) X(f32_of_bf16, u32, u16, ptx_f32_of_bf16(a)) \
    X(f64_bits_top, u64, f64, a != a ? n : mr_bits_f64(a))

/* name, types of the result, a, b, value */
#define PTX_LANES_2(X) \
    X(add_16, u16, u16, u16, a + b) X(add_32, u32, u32, u32, a + b) X(add_64, u64, u64, u64, a + b) \
    X(sub_16, u16, u16, u16, a - b) X(sub_32, u32, u32, u32, a - b) X(sub_64, u64, u64, u64, a - b) \
    X(add_16x2, u32, u32, u32, ((a + b) & 0xffff) | ((a & 0xffff0000u) + (b & 0xffff0000u))) \
    X(and_16, u16, u16, u16, a & b) X(and_32, u32, u32, u32, a & b) X(and_64, u64, u64, u64, a & b) \
    X(or_16, u16, u16, u16, a | b) X(or_32, u32, u32, u32, a | b) X(or_64, u64, u64, u64, a | b) \
    X(xor_16, u16, u16, u16, a ^ b) X(xor_32, u32, u32, u32, a ^ b) X(xor_64, u64, u64, u64, a ^ b) \
    X(add_sat_s32, s32, s32, s32, ptx_clamp_s32((s64)a + b)) \
    X(sub_sat_s32, s32, s32, s32, ptx_clamp_s32((s64)a - b)) \
    X(shl_16, u16, u16, u32, b > 15 ? 0 : a << (b & 15)) \
    X(shl_32, u32, u32, u32, ptx_shl_32(a, b)) X(shl_64, u64, u64, u32, ptx_shl_64(a, b)) \
    X(shr_u16, u16, u16, u32, b > 15 ? 0 : a >> (b & 15)) X(shr_s16, s16, s16, u32, a >> (b > 15 ? 15 : b)) \
    X(shr_u32, u32, u32, u32, ptx_shr_32(a, b)) X(shr_s32, s32, s32, u32, ptx_sar_32(a, b)) \
    X(shr_u64, u64, u64, u32, ptx_shr_64(a, b)) X(shr_s64, s64, s64, u32, ptx_sar_64(a, b)) \
    X(mul_lo_16, u16, u16, u16, (u32)a * b) X(mul_lo_32, u32, u32, u32, a * b) X(mul_lo_64, u64, u64, u64, a * b) \
    X(mul_hi_u16, u16, u16, u16, (u32)a * b >> 16) X(mul_hi_s16, s16, s16, s16, (s32)a * b >> 16) \
    X(mul_hi_u32, u32, u32, u32, (u64)a * b >> 32) X(mul_hi_s32, s32, s32, s32, (s64)a * b >> 32) \
    X(mul_hi_u64, u64, u64, u64, ptx_mul_hi_u64(a, b)) X(mul_hi_s64, s64, s64, s64, ptx_mul_hi_s64(a, b)) \
    X(mul_wide_u16, u32, u16, u16, (u32)a * b) X(mul_wide_s16, s32, s16, s16, (s32)a * b) \
    X(mul_wide_u32, u64, u32, u32, (u64)a * b) X(mul_wide_s32, s64, s32, s32, (s64)a * b) \
    X(mul24_lo_u32, u32, u32, u32, (u32)ptx_mul24_u(a, b)) X(mul24_hi_u32, u32, u32, u32, (u32)(ptx_mul24_u(a, b) >> 16)) \
    X(mul24_lo_s32, s32, s32, s32, (s32)ptx_mul24_s(a, b)) X(mul24_hi_s32, s32, s32, s32, (s32)(ptx_mul24_s(a, b) >> 16)) \
    X(div_u16, u16, u16, u16, (u16)ptx_div_u32(a, b)) X(div_s16, s16, s16, s16, (s16)ptx_div_s32(a, b)) \
    X(div_u32, u32, u32, u32, ptx_div_u32(a, b)) X(div_s32, s32, s32, s32, ptx_div_s32(a, b)) \
    X(div_u64, u64, u64, u64, ptx_div_u64(a, b)) X(div_s64, s64, s64, s64, ptx_div_s64(a, b)) \
    X(rem_u16, u16, u16, u16, (u16)ptx_rem_u32(a, b)) X(rem_s16, s16, s16, s16, (s16)ptx_rem_s32(a, b)) \
    X(rem_u32, u32, u32, u32, ptx_rem_u32(a, b)) X(rem_s32, s32, s32, s32, ptx_rem_s32(a, b)) \
    X(rem_u64, u64, u64, u64, ptx_rem_u64(a, b)) X(rem_s64, s64, s64, s64, ptx_rem_s64(a, b)) \
    X(min_u16, u16, u16, u16, a < b ? a : b) X(min_s16, s16, s16, s16, a < b ? a : b) \
    X(min_u32, u32, u32, u32, a < b ? a : b) X(min_s32, s32, s32, s32, a < b ? a : b) \
    X(min_u64, u64, u64, u64, a < b ? a : b) X(min_s64, s64, s64, s64, a < b ? a : b) \
    X(max_u16, u16, u16, u16, a > b ? a : b) X(max_s16, s16, s16, s16, a > b ? a : b) \
    X(max_u32, u32, u32, u32, a > b ? a : b) X(max_s32, s32, s32, s32, a > b ? a : b) \
    X(max_u64, u64, u64, u64, a > b ? a : b) X(max_s64, s64, s64, s64, a > b ? a : b) \
    X(bmsk_clamp, u32, u32, u32, ptx_bmsk(a, b)) X(bmsk_wrap, u32, u32, u32, ptx_bmsk(a & 31, b & 31)) \
    X(szext_clamp_u32, u32, u32, u32, ptx_szext_u(a, b)) X(szext_wrap_u32, u32, u32, u32, ptx_szext_u(a, b & 31)) \
    X(szext_clamp_s32, u32, u32, u32, ptx_szext_s(a, b)) X(szext_wrap_s32, u32, u32, u32, ptx_szext_s(a, b & 31)) \
    X(pack_16, u32, u16, u16, a | (u32)b << 16) X(pack_32, u64, u32, u32, a | (u64)b << 32) \
    X(insert_8, u64, u64, u16, a | (u64)(b & 255) << (n & 63)) X(insert_16, u64, u64, u16, a | (u64)b << (n & 63)) \
    X(add_f32, f32, f32, f32, ptx_nan_32(a + b)) X(sub_f32, f32, f32, f32, ptx_nan_32(a - b)) \
    X(mul_f32, f32, f32, f32, ptx_nan_32(a * b)) X(div_f32, f32, f32, f32, ptx_nan_32(a / b)) \
    X(add_ftz_f32, f32, f32, f32, ptx_flush(ptx_nan_32(ptx_flush(a) + ptx_flush(b)))) \
    X(sub_ftz_f32, f32, f32, f32, ptx_flush(ptx_nan_32(ptx_flush(a) - ptx_flush(b)))) \
    X(mul_ftz_f32, f32, f32, f32, ptx_flush(ptx_nan_32(ptx_flush(a) * ptx_flush(b)))) \
    X(div_ftz_f32, f32, f32, f32, ptx_flush(ptx_nan_32(ptx_flush(a) / ptx_flush(b)))) \
    X(min_f32, f32, f32, f32, ptx_min_f32(a, b)) X(max_f32, f32, f32, f32, ptx_max_f32(a, b)) \
    X(min_nan_f32, f32, f32, f32, ptx_nan_of(a, b, ptx_min_f32(a, b))) \
    X(max_nan_f32, f32, f32, f32, ptx_nan_of(a, b, ptx_max_f32(a, b))) \
    X(xorsign_f32, f32, f32, f32, ptx_xorsign(a, b, ptx_min_f32(fabsf(a), fabsf(b)))) \
    X(xorsign_max_f32, f32, f32, f32, ptx_xorsign(a, b, ptx_max_f32(fabsf(a), fabsf(b)))) \
    X(xorsign_nan_f32, f32, f32, f32, ptx_xorsign(a, b, ptx_nan_of(a, b, ptx_min_f32(fabsf(a), fabsf(b))))) \
    X(xorsign_nan_max_f32, f32, f32, f32, ptx_xorsign(a, b, ptx_nan_of(a, b, ptx_max_f32(fabsf(a), fabsf(b))))) \
    X(copysign_f32, f32, f32, f32, ptx_copysign_32(a, b)) X(copysign_f64, f64, f64, f64, ptx_copysign_64(a, b)) \
    X(add_f64, f64, f64, f64, a + b) X(sub_f64, f64, f64, f64, a - b) \
    X(mul_f64, f64, f64, f64, a * b) X(div_f64, f64, f64, f64, a / b) \
    X(min_f64, f64, f64, f64, ptx_min_f64(a, b)) X(max_f64, f64, f64, f64, ptx_max_f64(a, b))

/* name, types of the result, a, b, c, value */
#define PTX_LANES_3(X) \
    X(mad_lo_16, u16, u16, u16, u16, (u32)a * b + c) X(mad_lo_32, u32, u32, u32, u32, a * b + c) \
    X(mad_lo_64, u64, u64, u64, u64, a * b + c) \
    X(mad_hi_u16, u16, u16, u16, u16, ((u32)a * b >> 16) + c) X(mad_hi_s16, u16, s16, s16, u16, ((u32)((s32)a * b) >> 16) + c) \
    X(mad_hi_u32, u32, u32, u32, u32, (u32)((u64)a * b >> 32) + c) \
    X(mad_hi_s32, u32, s32, s32, u32, (u32)((u64)((s64)a * b) >> 32) + c) \
    X(mad_hi_u64, u64, u64, u64, u64, ptx_mul_hi_u64(a, b) + c) \
    X(mad_hi_s64, u64, s64, s64, u64, (u64)ptx_mul_hi_s64(a, b) + c) \
    X(mad_hi_sat_s32, s32, s32, s32, s32, ptx_clamp_s32(((s64)a * b >> 32) + c)) \
    X(mad_wide_u16, u32, u16, u16, u32, (u32)a * b + c) X(mad_wide_s16, u32, s16, s16, u32, (u32)((s32)a * b) + c) \
    X(mad_wide_u32, u64, u32, u32, u64, (u64)a * b + c) X(mad_wide_s32, u64, s32, s32, u64, (u64)((s64)a * b) + c) \
    X(mad24_lo_u32, u32, u32, u32, u32, (u32)ptx_mul24_u(a, b) + c) \
    X(mad24_hi_u32, u32, u32, u32, u32, (u32)(ptx_mul24_u(a, b) >> 16) + c) \
    X(mad24_lo_s32, u32, s32, s32, u32, (u32)ptx_mul24_s(a, b) + c) \
    X(mad24_hi_s32, u32, s32, s32, u32, (u32)(ptx_mul24_s(a, b) >> 16) + c) \
    X(mad24_hi_sat_s32, s32, s32, s32, s32, ptx_clamp_s32((s64)(s32)(ptx_mul24_s(a, b) >> 16) + c)) \
    X(sad_u16, u16, u16, u16, u16, c + (a < b ? b - a : a - b)) X(sad_s16, u16, s16, s16, u16, c + (u32)(a < b ? b - a : a - b)) \
    X(sad_u32, u32, u32, u32, u32, c + (a < b ? b - a : a - b)) \
    X(sad_s32, u32, s32, s32, u32, c + (a < b ? (u32)b - (u32)a : (u32)a - (u32)b)) \
    X(sad_u64, u64, u64, u64, u64, c + (a < b ? b - a : a - b)) \
    X(sad_s64, u64, s64, s64, u64, c + (a < b ? (u64)b - (u64)a : (u64)a - (u64)b)) \
    X(bfe_u32, u32, u32, u32, u32, ptx_bfe_u32(a, b, c)) X(bfe_s32, s32, s32, u32, u32, ptx_bfe_s32(a, b, c)) \
    X(bfe_u64, u64, u64, u32, u32, ptx_bfe_u64(a, b, c)) X(bfe_s64, s64, s64, u32, u32, ptx_bfe_s64(a, b, c)) \
    X(shf_l_clamp, u32, u32, u32, u32, ptx_shf_l(a, b, c > 32 ? 32 : c)) X(shf_l_wrap, u32, u32, u32, u32, ptx_shf_l(a, b, c & 31)) \
    X(shf_r_clamp, u32, u32, u32, u32, ptx_shf_r(a, b, c > 32 ? 32 : c)) X(shf_r_wrap, u32, u32, u32, u32, ptx_shf_r(a, b, c & 31)) \
    X(lop3_32, u32, u32, u32, u32, ptx_lop3(a, b, c, (u32)n)) \
    X(prmt_32, u32, u32, u32, u32, ptx_prmt(a, b, c)) X(prmt_f4e, u32, u32, u32, u32, ptx_prmt(a, b, ptx_prmt_f4e(c))) \
    X(prmt_b4e, u32, u32, u32, u32, ptx_prmt(a, b, ptx_prmt_b4e(c))) X(prmt_rc8, u32, u32, u32, u32, ptx_prmt(a, b, ptx_prmt_rc8(c))) \
    X(prmt_ecl, u32, u32, u32, u32, ptx_prmt(a, b, ptx_prmt_ecl(c))) X(prmt_ecr, u32, u32, u32, u32, ptx_prmt(a, b, ptx_prmt_ecr(c))) \
    X(prmt_rc16, u32, u32, u32, u32, ptx_prmt(a, b, ptx_prmt_rc16(c))) \
    X(fns_32, u32, u32, u32, s32, ptx_fns(a, b, c)) \
    X(dp4a_uu, u32, u32, u32, u32, ptx_dp4a(a, b, c, false, false)) X(dp4a_us, u32, u32, u32, u32, ptx_dp4a(a, b, c, false, true)) \
    X(dp4a_su, u32, u32, u32, u32, ptx_dp4a(a, b, c, true, false)) X(dp4a_ss, u32, u32, u32, u32, ptx_dp4a(a, b, c, true, true)) \
    X(dp2a_uu, u32, u32, u32, u32, ptx_dp2a(a, b, c, false, false, (unsigned)n & 2)) \
    X(dp2a_us, u32, u32, u32, u32, ptx_dp2a(a, b, c, false, true, (unsigned)n & 2)) \
    X(dp2a_su, u32, u32, u32, u32, ptx_dp2a(a, b, c, true, false, (unsigned)n & 2)) \
    X(dp2a_ss, u32, u32, u32, u32, ptx_dp2a(a, b, c, true, true, (unsigned)n & 2)) \
    X(slct_16_s32, u16, u16, u16, s32, c >= 0 ? a : b) X(slct_32_s32, u32, u32, u32, s32, c >= 0 ? a : b) \
    X(slct_64_s32, u64, u64, u64, s32, c >= 0 ? a : b) X(slct_16_f32, u16, u16, u16, f32, c >= 0 ? a : b) \
    X(slct_32_f32, u32, u32, u32, f32, c >= 0 ? a : b) X(slct_64_f32, u64, u64, u64, f32, c >= 0 ? a : b) \
    X(fma_f32, f32, f32, f32, f32, ptx_nan_32(fmaf(a, b, c))) X(fma_f64, f64, f64, f64, f64, fma(a, b, c)) \
    X(fma_ftz_f32, f32, f32, f32, f32, ptx_flush(ptx_nan_32(fmaf(ptx_flush(a), ptx_flush(b), ptx_flush(c)))))

/* Predicates. name, type of a and b, condition */
#define PTX_LANES_TEST(X) \
    X(eq_16, u16, a == b) X(eq_32, u32, a == b) X(eq_64, u64, a == b) \
    X(ne_16, u16, a != b) X(ne_32, u32, a != b) X(ne_64, u64, a != b) \
    X(lt_u16, u16, a < b) X(lt_s16, s16, a < b) X(lt_u32, u32, a < b) X(lt_s32, s32, a < b) \
    X(lt_u64, u64, a < b) X(lt_s64, s64, a < b) \
    X(le_u16, u16, a <= b) X(le_s16, s16, a <= b) X(le_u32, u32, a <= b) X(le_s32, s32, a <= b) \
    X(le_u64, u64, a <= b) X(le_s64, s64, a <= b) \
    X(eq_f32, f32, a == b) X(ne_f32, f32, (a < b) | (a > b)) X(lt_f32, f32, a < b) X(le_f32, f32, a <= b) \
    X(equ_f32, f32, !((a < b) | (a > b))) X(neu_f32, f32, a != b) X(ltu_f32, f32, !(a >= b)) X(leu_f32, f32, !(a > b)) \
    X(num_f32, f32, (a == a) & (b == b)) X(nan_f32, f32, (a != a) | (b != b)) \
    X(eq_f64, f64, a == b) X(ne_f64, f64, (a < b) | (a > b)) X(lt_f64, f64, a < b) X(le_f64, f64, a <= b) \
    X(equ_f64, f64, !((a < b) | (a > b))) X(neu_f64, f64, a != b) X(ltu_f64, f64, !(a >= b)) X(leu_f64, f64, !(a > b)) \
    X(num_f64, f64, (a == a) & (b == b)) X(nan_f64, f64, (a != a) | (b != b)) \
    /* testp: b is ignored */ \
    X(finite_f32, f32, fabsf(a) <= 0x1.fffffep127f) X(infinite_f32, f32, fabsf(a) == INFINITY) \
    X(normal_f32, f32, (fabsf(a) >= 0x1p-126f) & (fabsf(a) <= 0x1.fffffep127f)) \
    X(subnormal_f32, f32, (fabsf(a) < 0x1p-126f) & (a != 0)) \
    X(finite_f64, f64, fabs(a) <= 0x1.fffffffffffffp1023) X(infinite_f64, f64, fabs(a) == (f64)INFINITY) \
    X(normal_f64, f64, (fabs(a) >= 0x1p-1022) & (fabs(a) <= 0x1.fffffffffffffp1023)) \
    X(subnormal_f64, f64, (fabs(a) < 0x1p-1022) & (a != 0))

/* Handlers of another form: selp (c is a predicate), bfi (a fourth operand in `more`). */
#define PTX_LANES_SELECT(X) X(selp_16, u16) X(selp_32, u32) X(selp_64, u64)
#define PTX_LANES_4(X) X(bfi_32, u32, ptx_bfi_32(a, b, c, e)) X(bfi_64, u64, ptx_bfi_64(a, b, c, e))

/* Loads and stores of one part in its own width. name, type, type of the address */
#define PTX_LANES_LOAD(X) \
    X(load_global_4, u32, u64, global) X(load_global_8, u64, u64, global) \
    X(load_shared_4, u32, u32, shared) X(load_shared_8, u64, u32, shared) \
    X(load_shared_wide_4, u32, u64, shared) X(load_shared_wide_8, u64, u64, shared)
#define PTX_LANES_STORE(X) \
    X(store_global_4, u32, u64, global) X(store_global_8, u64, u64, global) \
    X(store_shared_4, u32, u32, shared) X(store_shared_8, u64, u32, shared) \
    X(store_shared_wide_4, u32, u64, shared) X(store_shared_wide_8, u64, u64, shared)
#define PTX_LANES_PARAM(X) X(load_param_4, u32) X(load_param_8, u64)

// clang-format on

typedef enum {
#define X(name, ...) PTX_LANE_##name,
    PTX_LANES_1(X) PTX_LANES_2(X) PTX_LANES_3(X) PTX_LANES_TEST(X) PTX_LANES_SELECT(X)
        PTX_LANES_4(X) PTX_LANES_LOAD(X) PTX_LANES_STORE(X) PTX_LANES_PARAM(X)
#undef X
            PTX_LANE_COUNT
} ptx_lane;

extern ptx_run *const ptx_lanes_plain[PTX_LANE_COUNT];
extern ptx_run *const ptx_lanes_v3[PTX_LANE_COUNT]; /* only where ptx_has_v3() */
bool ptx_has_v3(void);

#endif
