/* Each instruction of arithmetic, with special and random operands, against arithmetic written for this test: integers
 * of 128 bits, and floats of 113 bits that are rounded once, by integers. Nothing here uses the interpreter's
 * helpers. */
#include "ptx_fixture.h"

#include <math.h>

typedef unsigned __int128 u128;
typedef __int128 s128;
typedef __float128 f128;

enum { CASES = 4096 };

/* ---- bits */

static f128 f32_of(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, 4);
    return x;
}
static f128 f64_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}
static f128 f16_of(uint64_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    f128 x = exponent == 0    ? ldexp(fraction, -24)
             : exponent == 31 ? (fraction ? NAN : INFINITY)
                              : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -x : x;
}
static f128 bf16_of(uint64_t bits) {
    return f32_of((bits & 65535) << 16);
}

enum { RN, RZ, RM, RP, RNA };

/* The format's bits of a value that is exact, or whose last bit of 113 is one where it is not. */
static uint64_t pack(f128 x, int exponent_bits, int digits, int mode) {
    u128 bits;
    memcpy(&bits, &x, 16);
    uint64_t sign = (uint64_t)(bits >> 127), infinity = (((uint64_t)1 << exponent_bits) - 1)
                                                        << digits;
    uint64_t top = sign << (exponent_bits + digits);
    int exponent = (int)(bits >> 112 & 0x7fff) - 16383, bias = (1 << (exponent_bits - 1)) - 1;
    if (x != x)
        return exponent_bits == 11 ? infinity | (uint64_t)1 << 51
                                   : infinity | (((uint64_t)1 << digits) - 1);
    if (exponent == 16384) return top | infinity;
    if (x == 0) return top;
    u128 m = (bits & (((u128)1 << 112) - 1)) |
             (u128)1 << 112; /* no operand is subnormal with 113 bits */
    int shift = 112 - digits;
    if (exponent < 1 - bias) shift += 1 - bias - exponent;
    if (shift > 126) shift = 126;
    u128 kept = m >> shift, rest = m & (((u128)1 << shift) - 1), half = (u128)1 << (shift - 1);
    bool up = mode == RN    ? rest > half || (rest == half && (kept & 1))
              : mode == RNA ? rest >= half
              : mode == RP  ? rest && !sign
              : mode == RM  ? rest && sign
                            : false;
    kept += up;
    uint64_t r = (uint64_t)kept;
    if (exponent >= 1 - bias) r += (uint64_t)(exponent + bias - 1) << digits;
    if (r >= infinity) {
        bool stays = mode == RZ || (mode == RM && !sign) || (mode == RP && sign);
        r = stays ? infinity - 1 : infinity;
    }
    return top | r;
}

static f128 to_odd(f128 s, f128 error) {
    u128 bits;
    memcpy(&bits, &s, 16);
    if (error == 0 || error != error || (bits & 1) || s - s != 0) return s;
    bits += (error > 0) == (s > 0) ? 1 : -(u128)1;
    memcpy(&s, &bits, 16);
    return s;
}
static f128 add(f128 x, f128 y) {
    f128 s = x + y, t = s - x;
    return to_odd(s, (x - (s - t)) + (y - t));
}
/* The sign of a sum that is zero, which depends on the mode. */
static f128 sum(f128 x, f128 y, int mode) {
    f128 s = add(x, y);
    if (s != 0 ||
        (x == 0 && y == 0 && __builtin_signbit((double)x) == __builtin_signbit((double)y)))
        return s;
    return mode == RM ? -(f128)0.0 : (f128)0.0;
}
static f128 root(f128 x) {
    if (x < 0) return (f128)NAN;
    if (x == 0 || x - x != 0) return x;
    f128 y = sqrtl((long double)x);
    for (int i = 0; i < 3; i++) y = (y + x / y) / 2;
    double near = (double)y;
    return (f128)near * near == x ? (f128)near : y;
}

static int64_t sx(uint64_t x, int bits) {
    return (int64_t)(x << (64 - bits)) >> (64 - bits);
}
static uint64_t zx(uint64_t x, int bits) {
    return bits == 64 ? x : x & (((uint64_t)1 << bits) - 1);
}
static int64_t clamp_s(s128 x, int bits) {
    s128 most = ((s128)1 << (bits - 1)) - 1;
    return (int64_t)(x > most ? most : x < -most - 1 ? -most - 1 : x);
}
static uint64_t clamp_u(s128 x, int bits) {
    s128 most = ((s128)1 << bits) - 1;
    return (uint64_t)(x > most ? most : x < 0 ? 0 : x);
}

static f128 flush(f128 x, int mode) {
    (void)mode;
    f128 least = 0x1p-126;
    return x < least && x > -least ? (__builtin_signbit((double)x) ? -(f128)0.0 : (f128)0.0) : x;
}
static uint64_t flush_bits(uint64_t bits) {
    return bits & 0x7f800000 ? bits : bits & 0x80000000;
}
static uint64_t saturate_bits(uint64_t bits) {
    f128 x = f32_of(bits);
    return x > 0 ? (x < 1 ? bits : 0x3f800000) : 0;
}

/* ---- single operations */

static uint64_t brev(uint64_t x, int bits) {
    uint64_t r = 0;
    for (int i = 0; i < bits; i++) r |= (x >> i & 1) << (bits - 1 - i);
    return r;
}
static uint64_t count_ones(uint64_t x, int bits) {
    uint64_t n = 0;
    for (int i = 0; i < bits; i++) n += x >> i & 1;
    return n;
}
static uint64_t leading(uint64_t x, int bits) {
    uint64_t n = 0;
    for (int i = bits - 1; i >= 0 && !(x >> i & 1); i--) n++;
    return n;
}
static uint64_t bfind(uint64_t x, int bits, bool is_signed, bool shift) {
    if (is_signed && (x >> (bits - 1) & 1)) x = zx(~x, bits);
    for (int i = bits - 1; i >= 0; i--) {
        if (x >> i & 1) return (uint64_t)(shift ? bits - 1 - i : i);
    }
    return 0xffffffff;
}
static uint64_t shift(uint64_t x, uint32_t n, int bits, char kind) {
    for (uint32_t i = 0; i < n && i < 70; i++) {
        x = kind == 'l'   ? zx(x << 1, bits)
            : kind == 'u' ? x >> 1
                          : zx((uint64_t)(sx(x, bits) >> 1), bits);
    }
    return x;
}
static uint64_t bfe(uint64_t a, uint32_t b, uint32_t c, int bits, bool is_signed) {
    unsigned pos = b & 255, len = c & 255, msb = (unsigned)bits - 1;
    unsigned sign_at = pos + len - 1 < msb ? pos + len - 1 : msb;
    uint64_t sign = !is_signed || len == 0 ? 0 : a >> sign_at & 1, d = 0;
    for (unsigned i = 0; i <= msb; i++) {
        d |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sign) << i;
    }
    return d;
}
static uint64_t bfi(uint64_t a, uint64_t b, uint32_t c, uint32_t len, int bits) {
    unsigned pos = c & 255;
    for (unsigned i = 0; i < (len & 255) && pos + i < (unsigned)bits; i++) {
        b = (b & ~((uint64_t)1 << (pos + i))) | (a >> i & 1) << (pos + i);
    }
    return b;
}
static uint64_t prmt(uint32_t a, uint32_t b, uint32_t c) {
    uint8_t bytes[8];
    memcpy(bytes, &a, 4);
    memcpy(bytes + 4, &b, 4);
    uint64_t r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned s = c >> (4 * i) & 15;
        unsigned v = bytes[s & 7];
        r |= (uint64_t)(s & 8 ? (v & 128 ? 255u : 0u) : v) << (8 * i);
    }
    return r;
}
/* Tables of PTX's manual for the special modes: byte numbers of d.b3 d.b2 d.b1 d.b0. */
static uint64_t prmt_mode(uint32_t a, uint32_t b, uint32_t c, const uint16_t table[4]) {
    return prmt(a, b, table[c & 3]);
}
static const uint16_t f4e[] = {0x3210, 0x4321, 0x5432, 0x6543};
static const uint16_t b4e[] = {0x5670, 0x6701, 0x7012, 0x0123};
static const uint16_t rc8[] = {0x0000, 0x1111, 0x2222, 0x3333};
static const uint16_t ecl[] = {0x3210, 0x3211, 0x3222, 0x3333};
static const uint16_t ecr[] = {0x0000, 0x1110, 0x2210, 0x3210};
static const uint16_t rc16[] = {0x1010, 0x3232, 0x1010, 0x3232};

static uint64_t lop3(uint32_t a, uint32_t b, uint32_t c, unsigned table) {
    uint64_t r = 0;
    for (int i = 0; i < 32; i++) {
        unsigned k = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
        r |= (uint64_t)(table >> k & 1) << i;
    }
    return r;
}
static uint64_t dot(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb, int a_bits, int first) {
    int n = 32 / a_bits;
    for (int i = 0; i < n; i++) {
        uint64_t x = zx((uint64_t)a >> (a_bits * i), a_bits),
                 y = zx((uint64_t)b >> (8 * (first + i)), 8);
        c += (uint32_t)((sa ? sx(x, a_bits) : (int64_t)x) * (sb ? sx(y, 8) : (int64_t)y));
    }
    return c;
}
static uint64_t fns(uint32_t mask, uint32_t base, int32_t n) {
    base &= 31;
    if (n == 0) return mask >> base & 1 ? base : 0xffffffff;
    int at = (int)base, step = n > 0 ? 1 : -1;
    for (int64_t left = n > 0 ? n : -(int64_t)n; at >= 0 && at < 32; at += step) {
        if ((mask >> at & 1) && --left == 0) return (uint64_t)at;
    }
    return 0xffffffff;
}
static int64_t whole(f128 x, int mode) { /* of values below 2^62 */
    int64_t down = (int64_t)x;
    if (x < 0 && (f128)down != x) down--;
    f128 rest = x - (f128)down;
    switch (mode) {
    case RM: return down;
    case RP: return down + (rest > 0);
    case RZ: return x < 0 && rest > 0 ? down + 1 : down;
    default: return down + (rest > (f128)0.5 || (rest == (f128)0.5 && (down & 1)));
    }
}
/* As cvt: rounds, clamps; `nan` is what NaN becomes. */
static uint64_t to_integer(f128 x, int bits, bool is_signed, int mode, uint64_t nan) {
    if (x != x) return nan;
    if (x > (f128)0x1p62)
        return is_signed ? (x >= (f128)0x1p63 || bits < 64 ? (uint64_t)clamp_s((s128)1 << 100, bits)
                                                           : (uint64_t)(int64_t)x)
               : x >= (f128)0x1p64 || bits < 64 ? clamp_u((s128)1 << 100, bits)
                                                : (uint64_t)x;
    if (x < -(f128)0x1p62)
        return is_signed
                   ? (x < -(f128)0x1p63 || bits < 64 ? (uint64_t)clamp_s(-((s128)1 << 100), bits)
                                                     : (uint64_t)(int64_t)x)
                   : 0;
    s128 w = whole(x, mode);
    return is_signed ? (uint64_t)clamp_s(w, bits) : clamp_u(w, bits);
}
static f128 least(f128 a, f128 b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == 0 && b == 0) return __builtin_signbit((double)a) ? a : b;
    return a < b ? a : b;
}
static f128 most(f128 a, f128 b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == 0 && b == 0) return __builtin_signbit((double)a) ? b : a;
    return a > b ? a : b;
}
static bool isnan_any(f128 a, f128 b) {
    return a != a || b != b;
}
#define F32(x)    f32_of(x)
#define F64(x)    f64_of(x)
#define P32(x)    pack(x, 8, 23, RN)
#define P64(x)    pack(x, 11, 52, RN)
#define P16(x)    pack(x, 5, 10, RN)
#define PB16(x)   pack(x, 8, 7, RN)
#define Z32(x)    flush(F32(x), 0)
#define FL32(x)   flush_bits(x)
#define HALF2(op) ((op)(a & 65535, b & 65535, c & 65535) | (op)(a >> 16, b >> 16, c >> 16) << 16)

static uint64_t half_fma(uint64_t a, uint64_t b, uint64_t c) {
    return P16(sum(f16_of(a) * f16_of(b), f16_of(c), RN));
}
static uint64_t half_add(uint64_t a, uint64_t b, uint64_t c) {
    (void)c;
    return P16(sum(f16_of(a), f16_of(b), RN));
}
static uint64_t half_mul(uint64_t a, uint64_t b, uint64_t c) {
    (void)c;
    return P16(f16_of(a) * f16_of(b));
}
static uint64_t bhalf_fma(uint64_t a, uint64_t b, uint64_t c) {
    return PB16(sum(bf16_of(a) * bf16_of(b), bf16_of(c), RN));
}

/* set of each half of a pair, with `yes` where the comparison is true. */
#define EACH(yes, test)                                                                            \
    ((uint64_t)((test)(a & 65535, b & 65535) ? (yes) : 0) |                                        \
     (uint64_t)((test)(a >> 16, b >> 16) ? (yes) : 0) << 16)
static bool half_eq(uint64_t a, uint64_t b) {
    return f16_of(a) == f16_of(b);
}
static bool half_ltu(uint64_t a, uint64_t b) {
    return !(f16_of(a) >= f16_of(b));
}
static bool bhalf_gt(uint64_t a, uint64_t b) {
    return bf16_of(a) > bf16_of(b);
}
static bool bhalf_nan(uint64_t a, uint64_t b) {
    return isnan_any(bf16_of(a), bf16_of(b));
}

/* name for messages and text of the instruction, with $ for its operands; kinds of d, a, b, c; then the result from a,
 * b, c, which are zero-extended. Kinds: h, w, d have 16, 32, 64 bits. p is a predicate that is stored as 0 or 1. e, f,
 * g are floats of 16, 32, 64 bits (special operands). s is a shift count */
/* Several lists, since clang-format needs minutes and gigabytes for one of this length. */
// clang-format off
#define ROWS_PRODUCTS(X) \
    X("add.s16 $", "hhh", a + b) X("add.u32 $", "www", a + b) X("add.s64 $", "ddd", a + b) \
    X("sub.s16 $", "hhh", a - b) X("sub.u32 $", "www", a - b) X("sub.s64 $", "ddd", a - b) \
    X("add.sat.s32 $", "www", (uint64_t)clamp_s((s128)sx(a, 32) + sx(b, 32), 32)) \
    X("sub.sat.s32 $", "www", (uint64_t)clamp_s((s128)sx(a, 32) - sx(b, 32), 32)) \
    X("mul.lo.s16 $", "hhh", a * b) X("mul.lo.u32 $", "www", a * b) X("mul.lo.s64 $", "ddd", a * b) \
    X("mul.hi.u16 $", "hhh", a * b >> 16) X("mul.hi.s16 $", "hhh", (uint64_t)(sx(a, 16) * sx(b, 16)) >> 16) \
    X("mul.hi.u32 $", "www", (uint64_t)((u128)a * b >> 32)) X("mul.hi.s32 $", "www", (uint64_t)((s128)sx(a, 32) * sx(b, 32) >> 32)) \
    X("mul.hi.u64 $", "ddd", (uint64_t)((u128)a * b >> 64)) \
    X("mul.hi.s64 $", "ddd", (uint64_t)((s128)(int64_t)a * (int64_t)b >> 64)) \
    X("mul.wide.u16 $", "whh", a * b) X("mul.wide.s16 $", "whh", (uint64_t)(sx(a, 16) * sx(b, 16))) \
    X("mul.wide.u32 $", "dww", a * b) X("mul.wide.s32 $", "dww", (uint64_t)(sx(a, 32) * sx(b, 32))) \
    X("mad.lo.s16 $", "hhhh", a * b + c) X("mad.lo.u32 $", "wwww", a * b + c) X("mad.lo.s64 $", "dddd", a * b + c) \
    X("mad.hi.u32 $", "wwww", (a * b >> 32) + c) X("mad.hi.s32 $", "wwww", (uint64_t)(sx(a, 32) * sx(b, 32) >> 32) + c) \
    X("mad.hi.s16 $", "hhhh", ((uint64_t)(sx(a, 16) * sx(b, 16)) >> 16) + c) X("mad.hi.u16 $", "hhhh", (a * b >> 16) + c) \
    X("mad.hi.u64 $", "dddd", (uint64_t)((u128)a * b >> 64) + c) \
    X("mad.hi.s64 $", "dddd", (uint64_t)((s128)(int64_t)a * (int64_t)b >> 64) + c) \
    X("mad.hi.sat.s32 $", "wwww", (uint64_t)clamp_s((s128)(sx(a, 32) * sx(b, 32) >> 32) + sx(c, 32), 32)) \
    X("mad.wide.u32 $", "dwwd", a * b + c) X("mad.wide.s32 $", "dwwd", (uint64_t)(sx(a, 32) * sx(b, 32)) + c) \
    X("mad.wide.s16 $", "whhw", (uint64_t)(sx(a, 16) * sx(b, 16)) + c) X("mad.wide.u16 $", "whhw", a * b + c) \
    X("mul24.lo.s32 $", "www", (uint64_t)(sx(a, 24) * sx(b, 24))) X("mul24.hi.s32 $", "www", (uint64_t)(sx(a, 24) * sx(b, 24)) >> 16) \
    X("mul24.lo.u32 $", "www", zx(a, 24) * zx(b, 24)) X("mul24.hi.u32 $", "www", zx(a, 24) * zx(b, 24) >> 16) \
    X("mad24.lo.s32 $", "wwww", (uint64_t)(sx(a, 24) * sx(b, 24)) + c) \
    X("mad24.hi.sat.s32 $", "wwww", (uint64_t)clamp_s((s128)sx((uint64_t)(sx(a, 24) * sx(b, 24)) >> 16, 32) + sx(c, 32), 32)) \
    X("sad.u32 $", "wwww", c + (a > b ? a - b : b - a)) \
    X("sad.s32 $", "wwww", c + (uint64_t)(sx(a, 32) > sx(b, 32) ? sx(a, 32) - sx(b, 32) : sx(b, 32) - sx(a, 32))) \
    X("sad.s16 $", "hhhh", c + (uint64_t)(sx(a, 16) > sx(b, 16) ? sx(a, 16) - sx(b, 16) : sx(b, 16) - sx(a, 16))) \
    X("sad.u64 $", "dddd", c + (a > b ? a - b : b - a)) \
    X("sad.s64 $", "dddd", c + ((int64_t)a > (int64_t)b ? a - b : b - a))
#define ROWS_QUOTIENTS(X) \
    X("div.u16 $", "hhh", b ? a / b : 0xffff) X("div.u32 $", "www", b ? a / b : 0xffffffff) X("div.u64 $", "ddd", b ? a / b : UINT64_MAX) \
    X("div.s32 $", "www", b ? (uint64_t)(sx(a, 32) / sx(b, 32)) : 0xffffffff) \
    X("div.s16 $", "hhh", b ? (uint64_t)(sx(a, 16) / sx(b, 16)) : 0xffff) \
    X("div.s64 $", "ddd", b ? (uint64_t)((s128)(int64_t)a / (int64_t)b) : UINT64_MAX) \
    X("rem.u32 $", "www", b ? a % b : a) X("rem.s32 $", "www", b ? (uint64_t)(sx(a, 32) % sx(b, 32)) : a) \
    X("rem.u64 $", "ddd", b ? a % b : a) X("rem.s64 $", "ddd", b ? (uint64_t)((s128)(int64_t)a % (int64_t)b) : a) \
    X("rem.s16 $", "hhh", b ? (uint64_t)(sx(a, 16) % sx(b, 16)) : a) \
    X("min.u16 $", "hhh", a < b ? a : b) X("min.s32 $", "www", sx(a, 32) < sx(b, 32) ? a : b) X("max.s64 $", "ddd", (int64_t)a > (int64_t)b ? a : b) \
    X("max.u32 $", "www", a > b ? a : b) X("min.u64 $", "ddd", a < b ? a : b) X("max.s16 $", "hhh", sx(a, 16) > sx(b, 16) ? a : b) \
    X("abs.s16 $", "hh", sx(a, 16) < 0 ? 0 - a : a) X("abs.s32 $", "ww", sx(a, 32) < 0 ? 0 - a : a) X("abs.s64 $", "dd", (int64_t)a < 0 ? 0 - a : a) \
    X("neg.s16 $", "hh", 0 - a) X("neg.s32 $", "ww", 0 - a) X("neg.s64 $", "dd", 0 - a)
#define ROWS_BITS(X) \
    X("and.b16 $", "hhh", a & b) X("or.b32 $", "www", a | b) X("xor.b64 $", "ddd", a ^ b) \
    X("not.b16 $", "hh", ~a) X("not.b32 $", "ww", ~a) X("not.b64 $", "dd", ~a) \
    X("cnot.b16 $", "hh", a == 0) X("cnot.b32 $", "ww", a == 0) X("cnot.b64 $", "dd", a == 0) \
    X("shl.b16 $", "hhs", shift(a, (uint32_t)b, 16, 'l')) X("shl.b32 $", "wws", shift(a, (uint32_t)b, 32, 'l')) \
    X("shl.b64 $", "dds", shift(a, (uint32_t)b, 64, 'l')) \
    X("shr.u16 $", "hhs", shift(a, (uint32_t)b, 16, 'u')) X("shr.u32 $", "wws", shift(a, (uint32_t)b, 32, 'u')) \
    X("shr.u64 $", "dds", shift(a, (uint32_t)b, 64, 'u')) X("shr.s16 $", "hhs", shift(a, (uint32_t)b, 16, 's')) \
    X("shr.s32 $", "wws", shift(a, (uint32_t)b, 32, 's')) X("shr.s64 $", "dds", shift(a, (uint32_t)b, 64, 's')) \
    X("shr.b32 $", "wws", shift(a, (uint32_t)b, 32, 'u')) \
    X("shf.l.wrap.b32 $", "wwws", (b << 32 | a) << (c & 31) >> 32) X("shf.r.wrap.b32 $", "wwws", (b << 32 | a) >> (c & 31)) \
    X("shf.l.clamp.b32 $", "wwws", c >= 32 ? a : (b << 32 | a) << c >> 32) X("shf.r.clamp.b32 $", "wwws", c >= 32 ? b : (b << 32 | a) >> c) \
    X("popc.b32 $", "ww", count_ones(a, 32)) X("popc.b64 $", "wd", count_ones(a, 64)) \
    X("clz.b32 $", "ww", leading(a, 32)) X("clz.b64 $", "wd", leading(a, 64)) \
    X("brev.b32 $", "ww", brev(a, 32)) X("brev.b64 $", "dd", brev(a, 64))
#define ROWS_FIELDS(X) \
    X("bfind.u32 $", "ww", bfind(a, 32, false, false)) X("bfind.s32 $", "ww", bfind(a, 32, true, false)) \
    X("bfind.u64 $", "wd", bfind(a, 64, false, false)) X("bfind.shiftamt.s64 $", "wd", bfind(a, 64, true, true)) \
    X("bfind.shiftamt.u32 $", "ww", bfind(a, 32, false, true)) \
    X("bfe.u32 $", "wwss", bfe(a, (uint32_t)b, (uint32_t)c, 32, false)) X("bfe.s32 $", "wwss", bfe(a, (uint32_t)b, (uint32_t)c, 32, true)) \
    X("bfe.u64 $", "ddss", bfe(a, (uint32_t)b, (uint32_t)c, 64, false)) X("bfe.s64 $", "ddss", bfe(a, (uint32_t)b, (uint32_t)c, 64, true)) \
    X("bfi.b32 $, 7", "wwws", bfi(a, b, (uint32_t)c, 7, 32)) X("bfi.b64 $, 40", "ddds", bfi(a, b, (uint32_t)c, 40, 64)) \
    X("bmsk.clamp.b32 $", "wss", a > 31 ? 0 : zx((b > 31 ? UINT64_MAX : ((uint64_t)1 << b) - 1) << a, 32)) \
    X("bmsk.wrap.b32 $", "wss", (((uint64_t)1 << (b & 31)) - 1) << (a & 31)) \
    X("szext.clamp.u32 $", "wws", b > 31 ? a : zx(a, (int)b + 1) & ~((uint64_t)1 << b)) \
    X("szext.wrap.s32 $", "wws", (b & 31) == 0 ? 0 : (uint64_t)sx(a, (int)(b & 31)))
#define ROWS_BYTES(X) \
    X("prmt.b32 $", "wwww", prmt((uint32_t)a, (uint32_t)b, (uint32_t)c)) \
    X("prmt.b32.f4e $", "wwww", prmt_mode((uint32_t)a, (uint32_t)b, (uint32_t)c, f4e)) \
    X("prmt.b32.b4e $", "wwww", prmt_mode((uint32_t)a, (uint32_t)b, (uint32_t)c, b4e)) \
    X("prmt.b32.rc8 $", "wwww", prmt_mode((uint32_t)a, (uint32_t)b, (uint32_t)c, rc8)) \
    X("prmt.b32.ecl $", "wwww", prmt_mode((uint32_t)a, (uint32_t)b, (uint32_t)c, ecl)) \
    X("prmt.b32.ecr $", "wwww", prmt_mode((uint32_t)a, (uint32_t)b, (uint32_t)c, ecr)) \
    X("prmt.b32.rc16 $", "wwww", prmt_mode((uint32_t)a, (uint32_t)b, (uint32_t)c, rc16)) \
    X("lop3.b32 $, 0x96", "wwww", a ^ b ^ c) X("lop3.b32 $, 0xCA", "wwww", lop3((uint32_t)a, (uint32_t)b, (uint32_t)c, 0xca)) \
    X("dp4a.s32.u32 $", "wwww", dot((uint32_t)a, (uint32_t)b, (uint32_t)c, true, false, 8, 0)) \
    X("dp4a.u32.u32 $", "wwww", dot((uint32_t)a, (uint32_t)b, (uint32_t)c, false, false, 8, 0)) \
    X("dp4a.s32.s32 $", "wwww", dot((uint32_t)a, (uint32_t)b, (uint32_t)c, true, true, 8, 0)) \
    X("dp2a.lo.s32.s32 $", "wwww", dot((uint32_t)a, (uint32_t)b, (uint32_t)c, true, true, 16, 0)) \
    X("dp2a.hi.u32.s32 $", "wwww", dot((uint32_t)a, (uint32_t)b, (uint32_t)c, false, true, 16, 2)) \
    X("fns.b32 $", "wwss", fns((uint32_t)a, (uint32_t)b, (int32_t)c)) \
    X("slct.b32.s32 $", "wwww", sx(c, 32) >= 0 ? a : b) X("slct.u64.f32 $", "dddf", F32(c) >= 0 ? a : b) \
    /* compare */
#define ROWS_COMPARISONS(X) \
    X("setp.eq.s32 $", "pww", a == b) X("setp.ne.u64 $", "pdd", a != b) X("setp.lt.s32 $", "pww", sx(a, 32) < sx(b, 32)) \
    X("setp.lo.u32 $", "pww", a < b) X("setp.gt.s64 $", "pdd", (int64_t)a > (int64_t)b) X("setp.ge.u16 $", "phh", a >= b) \
    X("setp.le.s16 $", "phh", sx(a, 16) <= sx(b, 16)) X("setp.hs.u32 $", "pww", a >= b) X("setp.lt.u64 $", "pdd", a < b) \
    X("setp.eq.f32 $", "pff", F32(a) == F32(b)) X("setp.ne.f32 $", "pff", F32(a) != F32(b) && !isnan_any(F32(a), F32(b))) \
    X("setp.lt.f32 $", "pff", F32(a) < F32(b)) X("setp.ge.f32 $", "pff", F32(a) >= F32(b)) X("setp.leu.f32 $", "pff", !(F32(a) > F32(b))) \
    X("setp.gtu.f32 $", "pff", !(F32(a) <= F32(b))) X("setp.neu.f32 $", "pff", F32(a) != F32(b)) X("setp.equ.f64 $", "pgg", !(F64(a) < F64(b) || F64(a) > F64(b))) \
    X("setp.num.f32 $", "pff", !isnan_any(F32(a), F32(b))) X("setp.nan.f64 $", "pgg", isnan_any(F64(a), F64(b))) \
    X("setp.gt.f64 $", "pgg", F64(a) > F64(b)) X("setp.lt.ftz.f32 $", "pff", Z32(a) < Z32(b)) \
    X("setp.lt.f16 $", "pee", f16_of(a) < f16_of(b)) X("setp.geu.bf16 $", "phh", !(bf16_of(a) < bf16_of(b))) \
    X("set.lt.u32.f32 $", "wff", F32(a) < F32(b) ? 0xffffffff : 0) X("set.ge.f32.s32 $", "fww", sx(a, 32) >= sx(b, 32) ? 0x3f800000 : 0) \
    X("testp.subnormal.f32 $", "pf", (a & 0x7f800000) == 0 && (a & 0x7fffff)) X("testp.normal.f64 $", "pg", (a >> 52 & 0x7ff) != 0 && (a >> 52 & 0x7ff) != 0x7ff) \
    X("testp.finite.f32 $", "pf", (a & 0x7f800000) != 0x7f800000) X("testp.infinite.f64 $", "pg", (a & INT64_MAX) == (uint64_t)0x7ff << 52) \
    X("testp.notanumber.f32 $", "pf", (a & 0x7fffffff) > 0x7f800000) X("testp.number.f32 $", "pf", (a & 0x7fffffff) <= 0x7f800000) \
    /* f32, f64 */
#define ROWS_SINGLES(X) \
    X("add.f32 $", "fff", P32(sum(F32(a), F32(b), RN))) X("add.rz.f32 $", "fff", pack(sum(F32(a), F32(b), RZ), 8, 23, RZ)) \
    X("add.rm.f32 $", "fff", pack(sum(F32(a), F32(b), RM), 8, 23, RM)) X("add.rp.f32 $", "fff", pack(sum(F32(a), F32(b), RP), 8, 23, RP)) \
    X("add.ftz.f32 $", "fff", FL32(P32(sum(Z32(a), Z32(b), RN)))) X("add.sat.f32 $", "fff", saturate_bits(P32(sum(F32(a), F32(b), RN)))) \
    X("sub.f32 $", "fff", P32(sum(F32(a), -F32(b), RN))) X("sub.rp.ftz.f32 $", "fff", FL32(pack(sum(Z32(a), -Z32(b), RP), 8, 23, RP))) \
    X("mul.f32 $", "fff", P32(F32(a) * F32(b))) X("mul.rz.f32 $", "fff", pack(F32(a) * F32(b), 8, 23, RZ)) \
    X("mul.rm.f32 $", "fff", pack(F32(a) * F32(b), 8, 23, RM)) X("mul.ftz.f32 $", "fff", FL32(P32(Z32(a) * Z32(b)))) \
    X("fma.rn.f32 $", "ffff", P32(sum(F32(a) * F32(b), F32(c), RN))) X("fma.rz.f32 $", "ffff", pack(sum(F32(a) * F32(b), F32(c), RZ), 8, 23, RZ)) \
    X("fma.rm.f32 $", "ffff", pack(sum(F32(a) * F32(b), F32(c), RM), 8, 23, RM)) X("fma.rp.f32 $", "ffff", pack(sum(F32(a) * F32(b), F32(c), RP), 8, 23, RP)) \
    X("fma.rn.ftz.f32 $", "ffff", FL32(P32(sum(Z32(a) * Z32(b), Z32(c), RN)))) \
    X("fma.rn.sat.f32 $", "ffff", saturate_bits(P32(sum(F32(a) * F32(b), F32(c), RN)))) \
    X("div.rn.f32 $", "fff", P32(F32(a) / F32(b))) X("div.rz.f32 $", "fff", pack(F32(a) / F32(b), 8, 23, RZ)) \
    X("div.rp.f32 $", "fff", pack(F32(a) / F32(b), 8, 23, RP)) X("div.rn.ftz.f32 $", "fff", FL32(P32(Z32(a) / Z32(b)))) \
    X("rcp.rn.f32 $", "ff", P32((f128)1 / F32(a))) X("rcp.rm.f32 $", "ff", pack((f128)1 / F32(a), 8, 23, RM)) \
    X("sqrt.rn.f32 $", "ff", P32(root(F32(a)))) X("sqrt.rp.f32 $", "ff", pack(root(F32(a)), 8, 23, RP)) X("sqrt.rz.f32 $", "ff", pack(root(F32(a)), 8, 23, RZ))
#define ROWS_DOUBLES(X) \
    X("add.f64 $", "ggg", P64(sum(F64(a), F64(b), RN))) X("add.rm.f64 $", "ggg", pack(sum(F64(a), F64(b), RM), 11, 52, RM)) \
    X("mul.f64 $", "ggg", P64(F64(a) * F64(b))) X("mul.rp.f64 $", "ggg", pack(F64(a) * F64(b), 11, 52, RP)) \
    X("fma.rn.f64 $", "gggg", P64(sum(F64(a) * F64(b), F64(c), RN))) X("fma.rz.f64 $", "gggg", pack(sum(F64(a) * F64(b), F64(c), RZ), 11, 52, RZ)) \
    X("div.rn.f64 $", "ggg", P64(F64(a) / F64(b))) X("div.rm.f64 $", "ggg", pack(F64(a) / F64(b), 11, 52, RM)) \
    X("rcp.rn.f64 $", "gg", P64((f128)1 / F64(a))) X("sqrt.rn.f64 $", "gg", P64(root(F64(a)))) \
    X("neg.f32 $", "ff", a ^ 0x80000000) X("abs.f64 $", "gg", a & INT64_MAX) X("abs.ftz.f32 $", "ff", FL32(a) & 0x7fffffff) \
    X("min.f32 $", "fff", P32(least(F32(a), F32(b)))) X("max.f32 $", "fff", P32(most(F32(a), F32(b)))) X("max.ftz.f32 $", "fff", P32(most(Z32(a), Z32(b)))) \
    X("min.NaN.f32 $", "fff", isnan_any(F32(a), F32(b)) ? 0x7fffffff : P32(least(F32(a), F32(b)))) X("max.f64 $", "ggg", P64(most(F64(a), F64(b)))) \
    X("copysign.f32 $", "fff", (a & 0x80000000) | (b & 0x7fffffff)) X("copysign.f64 $", "ggg", (a & (uint64_t)1 << 63) | (b & INT64_MAX)) \
    /* f16, bf16 */
#define ROWS_HALVES(X) \
    X("add.f16 $", "eee", half_add(a, b, c)) X("mul.f16 $", "eee", half_mul(a, b, c)) X("fma.rn.f16 $", "eeee", half_fma(a, b, c)) \
    X("fma.rn.f16x2 $", "wwww", HALF2(half_fma)) X("add.f16x2 $", "www", HALF2(half_add)) X("fma.rn.bf16 $", "hhhh", bhalf_fma(a, b, c)) \
    X("fma.rn.bf16x2 $", "wwww", HALF2(bhalf_fma)) X("sub.f16 $", "eee", P16(sum(f16_of(a), -f16_of(b), RN))) \
    X("min.f16 $", "eee", P16(least(f16_of(a), f16_of(b)))) X("max.bf16 $", "hhh", PB16(most(bf16_of(a), bf16_of(b)))) \
    X("set.eq.f16.f16 $", "eee", half_eq(a, b) ? 0x3c00 : 0) X("set.ltu.u32.f16 $", "wee", half_ltu(a, b) ? UINT32_MAX : 0) \
    X("set.gt.bf16.bf16 $", "hhh", bhalf_gt(a, b) ? 0x3f80 : 0) X("set.nan.u16.bf16 $", "hhh", bhalf_nan(a, b) ? 0xffff : 0) \
    X("set.eq.f16x2.f16x2 $", "www", EACH(0x3c00, half_eq)) X("set.ltu.f16x2.f16x2 $", "www", EACH(0x3c00, half_ltu)) \
    X("set.gt.bf16x2.bf16x2 $", "www", EACH(0x3f80, bhalf_gt)) X("set.nan.bf16x2.bf16x2 $", "www", EACH(0x3f80, bhalf_nan)) \
    X("set.eq.u32.f16x2 $", "www", EACH(0xffff, half_eq)) X("set.gt.u32.bf16x2 $", "www", EACH(0xffff, bhalf_gt)) \
    X("{.reg .pred %q; setp.lt.s32 %q, %c, 0; set.eq.xor.f16x2.f16x2 %d, %a, %b, %q;}", "wwww", \
      EACH(0x3c00, half_eq) ^ (sx(c, 32) < 0 ? 0x3c003c00 : 0)) \
    X("set.lt.f16.f32 $", "eff", F32(a) < F32(b) ? 0x3c00 : 0) X("set.ge.u16.s32 $", "hww", sx(a, 32) >= sx(b, 32) ? 0xffff : 0) \
    /* cvt */
#define ROWS_CONVERSIONS(X) \
    X("cvt.s64.s32 $", "dw", (uint64_t)sx(a, 32)) X("cvt.u64.u32 $", "dw", a) X("cvt.u32.u64 $", "wd", a) X("cvt.u16.u32 $", "hw", a) \
    X("cvt.s32.s16 $", "wh", (uint64_t)sx(a, 16)) X("cvt.u32.u16 $", "wh", a) X("cvt.s64.s16 $", "dh", (uint64_t)sx(a, 16)) \
    X("cvt.s32.s8 $", "ww", (uint64_t)sx(a, 8)) X("cvt.u32.u8 $", "wh", zx(a, 8)) X("cvt.s16.s8 $", "hh", (uint64_t)sx(a, 8)) \
    X("cvt.u8.u32 $", "hw", zx(a, 8)) X("cvt.s8.s32 $", "ww", (uint64_t)sx(a, 8)) X("cvt.u16.u64 $", "hd", a) X("cvt.s8.s64 $", "dd", (uint64_t)sx(a, 8)) \
    X("cvt.sat.u8.s32 $", "hw", clamp_u(sx(a, 32), 8)) X("cvt.sat.s8.s32 $", "hw", (uint64_t)clamp_s(sx(a, 32), 8)) \
    X("cvt.sat.s32.u32 $", "ww", (uint64_t)clamp_s((s128)a, 32)) X("cvt.sat.u64.s64 $", "dd", clamp_u((s128)(int64_t)a, 64)) \
    X("cvt.sat.s16.s64 $", "hd", (uint64_t)clamp_s((s128)(int64_t)a, 16)) X("cvt.sat.u32.u64 $", "wd", clamp_u((s128)a, 32)) \
    X("cvt.rn.f32.s32 $", "fw", P32((f128)sx(a, 32))) X("cvt.rn.f32.u32 $", "fw", P32((f128)a)) X("cvt.rz.f32.s32 $", "fw", pack((f128)sx(a, 32), 8, 23, RZ)) \
    X("cvt.rp.f32.u32 $", "fw", pack((f128)a, 8, 23, RP)) X("cvt.rn.f32.s64 $", "fd", P32((f128)(int64_t)a)) X("cvt.rn.f32.u64 $", "fd", P32((f128)a)) \
    X("cvt.rm.f32.u64 $", "fd", pack((f128)a, 8, 23, RM)) X("cvt.rp.f32.s64 $", "fd", pack((f128)(int64_t)a, 8, 23, RP)) \
    X("cvt.rn.f64.s32 $", "gw", P64((f128)sx(a, 32))) X("cvt.rn.f64.u64 $", "gd", P64((f128)a)) X("cvt.rz.f64.u64 $", "gd", pack((f128)a, 11, 52, RZ)) \
    X("cvt.rp.f64.s64 $", "gd", pack((f128)(int64_t)a, 11, 52, RP)) X("cvt.rn.f32.u8 $", "fw", P32((f128)zx(a, 8))) X("cvt.rn.f32.s16 $", "fh", P32((f128)sx(a, 16)))
#define ROWS_ROUNDINGS(X) \
    X("cvt.rzi.s32.f32 $", "wf", to_integer(F32(a), 32, true, RZ, 0)) X("cvt.rni.s32.f32 $", "wf", to_integer(F32(a), 32, true, RN, 0)) \
    X("cvt.rmi.s32.f32 $", "wf", to_integer(F32(a), 32, true, RM, 0)) X("cvt.rpi.u32.f32 $", "wf", to_integer(F32(a), 32, false, RP, 0)) \
    X("cvt.rzi.u32.f32 $", "wf", to_integer(F32(a), 32, false, RZ, 0)) X("cvt.rzi.s64.f32 $", "df", to_integer(F32(a), 64, true, RZ, (uint64_t)1 << 63)) \
    X("cvt.rzi.u64.f64 $", "dg", to_integer(F64(a), 64, false, RZ, (uint64_t)1 << 63)) X("cvt.rni.s64.f64 $", "dg", to_integer(F64(a), 64, true, RN, (uint64_t)1 << 63)) \
    X("cvt.rzi.s32.f64 $", "wg", to_integer(F64(a), 32, true, RZ, 0x80000000)) X("cvt.rmi.u32.f64 $", "wg", to_integer(F64(a), 32, false, RM, 0x80000000)) \
    X("cvt.rzi.s16.f32 $", "hf", to_integer(F32(a), 16, true, RZ, 0)) X("cvt.rzi.u8.f32 $", "hf", to_integer(F32(a), 8, false, RZ, 0)) \
    X("cvt.rzi.ftz.s32.f32 $", "wf", to_integer(Z32(a), 32, true, RZ, 0)) X("cvt.rpi.ftz.s32.f32 $", "wf", to_integer(Z32(a), 32, true, RP, 0)) \
    X("cvt.f64.f32 $", "gf", P64(F32(a))) X("cvt.rn.f32.f64 $", "fg", P32(F64(a))) X("cvt.rz.f32.f64 $", "fg", pack(F64(a), 8, 23, RZ)) \
    X("cvt.rm.f32.f64 $", "fg", pack(F64(a), 8, 23, RM)) X("cvt.rn.ftz.f32.f64 $", "fg", FL32(P32(F64(a)))) X("cvt.sat.f32.f32 $", "ff", saturate_bits(a)) \
    X("cvt.rn.sat.f32.f64 $", "fg", saturate_bits(P32(F64(a)))) X("cvt.ftz.f64.f32 $", "gf", P64(Z32(a))) \
    X("cvt.f32.f16 $", "fe", P32(f16_of(a))) X("cvt.f64.f16 $", "ge", P64(f16_of(a))) X("cvt.f32.bf16 $", "fh", P32(bf16_of(a))) \
    X("cvt.rn.f16.f32 $", "ef", P16(F32(a))) X("cvt.rz.f16.f32 $", "ef", pack(F32(a), 5, 10, RZ)) X("cvt.rn.f16.f64 $", "eg", P16(F64(a))) \
    X("cvt.rn.bf16.f32 $", "hf", PB16(F32(a))) X("cvt.rz.bf16.f32 $", "hf", pack(F32(a), 8, 7, RZ)) X("cvt.rp.f16.f32 $", "ef", pack(F32(a), 5, 10, RP)) \
    X("cvt.rn.f16.s32 $", "ew", P16((f128)sx(a, 32))) X("cvt.rn.f16.u64 $", "ed", P16((f128)a)) X("cvt.rn.bf16.s64 $", "hd", PB16((f128)(int64_t)a)) \
    X("cvt.rzi.s32.f16 $", "we", to_integer(f16_of(a), 32, true, RZ, 0)) X("cvt.rni.u16.f16 $", "he", to_integer(f16_of(a), 16, false, RN, 0)) \
    X("cvt.rn.f16x2.f32 $", "wff", P16(F32(a)) << 16 | P16(F32(b))) X("cvt.rn.bf16x2.f32 $", "wff", PB16(F32(a)) << 16 | PB16(F32(b))) \
    X("cvt.rna.tf32.f32 $", "wf", F32(a) != F32(a) ? 0x7fffffff : pack(F32(a), 8, 10, RNA) << 13) \
    /* moves */
#define ROWS_MOVES(X) \
    X("mov.b32 $", "ww", a) X("mov.b64 $", "dd", a) X("mov.b16 $", "hh", a) \
    X("{.reg .b32 %lo, %hi; mov.b64 {%lo, %hi}, %a; mov.b64 %d, {%hi, %lo};}", "dd", a << 32 | a >> 32) \
    X("{.reg .b16 %lo, %hi; mov.b32 {%lo, %hi}, %a; mov.b32 %d, {%hi, %lo};}", "ww", (a << 16 | a >> 16)) \
    X("{.reg .b16 %x<4>; mov.b64 {%x0, %x1, %x2, %x3}, %a; mov.b64 %d, {%x3, %x2, %x1, %x0};}", "dd", \
      a << 48 | (a >> 16 & 0xffff) << 32 | (a >> 32 & 0xffff) << 16 | a >> 48) \
    X("{add.cc.u32 %d, %a, %b; addc.u32 %d, %a, 0;}", "www", a + ((a + b) >> 32)) \
    X("{sub.cc.u32 %d, %a, %b; subc.u32 %d, %a, 0;}", "www", a - (a < b)) \
    X("{sub.cc.u64 %d, %a, %b; subc.u64 %d, %a, 0;}", "ddd", a - (a < b)) \
    X("{sub.cc.u32 %d, %a, %b; addc.u32 %d, 0, 0;}", "www", a >= b) X("{sub.cc.u64 %d, %a, %b; addc.u64 %d, 0, 0;}", "ddd", a >= b) \
    X("{sub.cc.s32 %d, %a, %b; subc.cc.s32 %d, %b, %a; addc.s32 %d, %d, 0;}", "www", b - a - (a < b) + (b >= (u128)a + (a < b))) \
    X("{add.cc.u32 %d, %a, %b; subc.u32 %d, %a, %b;}", "www", a - b - !((a + b) >> 32)) \
    X("{sub.cc.u32 %d, %a, %b; madc.lo.u32 %d, %a, %b, 7;}", "www", a * b + 7 + (a >= b)) \
    X("{add.cc.u64 %d, %a, %b; addc.u64 %d, 0, 0;}", "ddd", (uint64_t)(((u128)a + b) >> 64)) \
    X("{mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0;}", "wwww", (uint64_t)(((u128)a * b + c) >> 32)) \
    X("{mad.lo.cc.u64 %d, %a, %b, %c; madc.hi.u64 %d, %a, %b, 0;}", "dddd", (uint64_t)(((u128)a * b + c) >> 64)) \
    X("{.reg .pred %q, %t; setp.lt.s32 %q, %c, 0; setp.lt.and.s32 %q|%t, %a, %b, %q; selp.b32 %d, 1, 0, %q; @%t add.s32 %d, %d, 2;}", "wwww", \
      sx(c, 32) < 0 ? (sx(a, 32) < sx(b, 32) ? 1 : 2) : 0)
#define ROWS(X) \
    ROWS_PRODUCTS(X) ROWS_QUOTIENTS(X) ROWS_BITS(X) ROWS_FIELDS(X) ROWS_BYTES(X) ROWS_COMPARISONS(X) \
    ROWS_SINGLES(X) ROWS_DOUBLES(X) ROWS_HALVES(X) ROWS_CONVERSIONS(X) ROWS_ROUNDINGS(X) ROWS_MOVES(X)

// clang-format on

typedef struct {
    const char *text, *kinds;
} row;
static const row rows[] = {
#define X(text, kinds, value) {text, kinds},
    ROWS(X)
#undef X
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

static uint64_t expected(int index, uint64_t a, uint64_t b, uint64_t c) {
    int at = 0;
    (void)at;
#define X(text, kinds, value)                                                                      \
    if (index == at++) return (uint64_t)(value);
    ROWS(X)
#undef X
    return 0;
}

/* ---- kernels */

static const char *type_of(char kind) {
    switch (kind) {
    case 'h':
    case 'e': return "b16";
    case 'w':
    case 'f':
    case 's': return "b32";
    case 'p': return "pred";
    default: return "b64";
    }
}
static int bits_of(char kind) {
    return kind == 'h' || kind == 'e' ? 16 : kind == 'd' || kind == 'g' ? 64 : 32;
}

static void write_kernel(mr_buffer *out, int index) {
    const row *r = &rows[index];
    mr_buffer_printf(
        out,
        ".visible .entry k%d(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c)\n{\n"
        ".reg .b32 %%i, %%z<3>; .reg .b64 %%at<9>;\n",
        index);
    const char *names = "dabc";
    size_t count = strlen(r->kinds);
    for (size_t k = 0; k < count; k++)
        mr_buffer_printf(out, ".reg .%s %%%c;\n", type_of(r->kinds[k]), names[k]);
    mr_buffer_puts(out, "mov.u32 %z0, %ctaid.x; mov.u32 %z1, %ntid.x; mov.u32 %z2, %tid.x; "
                        "mad.lo.s32 %i, %z0, %z1, %z2;\n"
                        "mul.wide.u32 %at0, %i, 8;\n");
    for (size_t k = 1; k < count; k++) {
        mr_buffer_printf(
            out,
            "ld.param.u64 %%at1, [%c]; add.s64 %%at1, %%at1, %%at0; ld.global.%s %%%c, [%%at1];\n",
            names[k], type_of(r->kinds[k]), names[k]);
    }
    const char *dollar = strchr(r->text, '$');
    mr_buffer_add(out, r->text, dollar ? (size_t)(dollar - r->text) : strlen(r->text));
    for (size_t k = 0; dollar && k < count; k++)
        mr_buffer_printf(out, "%s%%%c", k ? ", " : "", names[k]);
    if (dollar) mr_buffer_printf(out, "%s;", dollar + 1);
    mr_buffer_puts(out, "\nld.param.u64 %at1, [out]; add.s64 %at1, %at1, %at0;\n");
    if (r->kinds[0] == 'p')
        mr_buffer_puts(out, "selp.b32 %i, 1, 0, %d; st.global.b32 [%at1], %i;\n");
    else mr_buffer_printf(out, "st.global.%s [%%at1], %%d;\n", type_of(r->kinds[0]));
    mr_buffer_puts(out, "ret;\n}\n");
}

/* ---- operands */

static uint64_t seed = 88172645463325252u;
static uint64_t next_random(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1du;
}

static uint64_t operand_of(char kind) {
    static const uint64_t words[] = {0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     8,
                                     31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     127,
                                     128,
                                     255,
                                     256,
                                     0x7fff,
                                     0x8000,
                                     0xffff,
                                     0x10000,
                                     0x7fffffff,
                                     0x80000000,
                                     0x80000001,
                                     0xffffffff,
                                     0xfffffffe,
                                     (uint64_t)1 << 32,
                                     INT64_MAX,
                                     (uint64_t)1 << 63,
                                     UINT64_MAX,
                                     UINT64_MAX - 1,
                                     (uint64_t)1 << 53 | 1};
    static const uint32_t singles[] = {
        0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
        0xffc12345, 0x7f800001, 1,          0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff,
        0xff7fffff, 0x3f000000, 0x3fc00000, 0x40200000, 0x4b000000, 0x4b800001, 0x4f000000,
        0xcf000000, 0x4f800000, 0x5f000000, 0x5f800000, 0xdf000000, 0x33800000, 0x33000000,
        0x477fe000, 0x477ff000, 0x38800000, 0x387fffff, 0x3effffff, 0x43000000};
    static const uint64_t doubles[] = {0,
                                       (uint64_t)1 << 63,
                                       0x3ff0000000000000,
                                       0xbff0000000000000,
                                       0x7ff0000000000000,
                                       0xfff0000000000000,
                                       0x7ff8000000000000,
                                       1,
                                       0x000fffffffffffff,
                                       0x0010000000000000,
                                       0x7fefffffffffffff,
                                       0x3fe0000000000000,
                                       0x4004000000000000,
                                       0x41e0000000000000,
                                       0xc1e0000000200000,
                                       0x43e0000000000000,
                                       0x43f0000000000000,
                                       0x36a0000000000000,
                                       0x47efffffe0000000,
                                       0x47efffffefffffff,
                                       0x3810000000000000,
                                       0x380fffffffffffff};
    uint64_t r = next_random(), pick = next_random();
    switch (kind) {
    case 's': return pick % 4 ? r % 70 : r;
    case 'f':
        if (pick % 3 == 0) return singles[r % (sizeof singles / 4)];
        /* exponents near each other, so that sums cancel and products stay in range */
        return pick % 3 == 1 ? (r & 0x807fffff) | (uint64_t)(0x70 + (r >> 32) % 32) << 23 : r;
    case 'g':
        if (pick % 3 == 0) return doubles[r % (sizeof doubles / 8)];
        return pick % 3 == 1 ? (r & 0x800fffffffffffff) | (uint64_t)(0x3e0 + pick / 3 % 64) << 52
                             : r;
    case 'e':
        return pick % 4 == 0 ? (uint64_t[]){0,      0x8000, 0x3c00, 0x7c00, 0xfc00,
                                            0x7e00, 1,      0x3ff,  0x400,  0x7bff}[r % 10]
                             : r;
    default: return pick % 3 == 0 ? words[r % (sizeof words / 8)] : r >> pick % 64;
    }
}

static bool same(char kind, uint64_t got, uint64_t wanted) {
    int bits = bits_of(kind);
    got = zx(got, bits), wanted = zx(wanted, bits);
    if (got == wanted) return true;
    return kind == 'g' && F64(got) != F64(got) && F64(wanted) != F64(wanted);
}

static bool is_plain; /* the handlers for processors without AVX2 are tried */
/* The linker puts this in the place of the interpreter's own function. */
bool __real_ptx_has_v3(void);
bool __wrap_ptx_has_v3(void);
bool __wrap_ptx_has_v3(void) {
    return !is_plain && __real_ptx_has_v3();
}

static void compare_all(void) {
    mr_buffer text = {0};
    mr_buffer_puts(&text, ".version 8.6\n.target sm_90\n.address_size 64\n");
    for (int i = 0; i < ROW_COUNT; i++) write_kernel(&text, i);
    device d;
    load_ptx(&d, text.data);
    char *host[4];
    uint64_t at[4];
    for (int k = 0; k < 4; k++) at[k] = give(&d, "operand", 8 * CASES, 0, &host[k]);
    int wrong = 0;
    for (int i = 0; i < ROW_COUNT; i++) {
        const char *kinds = rows[i].kinds;
        uint64_t *values[4];
        for (int k = 0; k < 4; k++) values[k] = (uint64_t *)(void *)host[k];
        memset(values[0], 0, 8 * CASES);
        for (int n = 0; n < CASES; n++) {
            for (size_t k = 1; k < 4; k++) {
                values[k][n] = k < strlen(kinds) ? zx(operand_of(kinds[k]), bits_of(kinds[k])) : 0;
            }
        }
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        begin(&d, name, CASES / 128, 128);
        for (int k = 0; k < 4; k++) PASS(&d, uint64_t, at[k]);
        run(&d);
        int shown = 0;
        for (int n = 0; n < CASES; n++) {
            uint64_t want = expected(i, values[1][n], values[2][n], values[3][n]);
            if (same(kinds[0], values[0][n], want)) continue;
            wrong++;
            if (shown++ < 3) {
                printf("%s: a %llx b %llx c %llx: got %llx, wanted %llx\n", rows[i].text,
                       (unsigned long long)values[1][n], (unsigned long long)values[2][n],
                       (unsigned long long)values[3][n], (unsigned long long)values[0][n],
                       (unsigned long long)zx(want, bits_of(kinds[0])));
            }
        }
    }
    assert_int_equal(wrong, 0);
    unload(&d);
    mr_buffer_free(&text);
}

static void instructions_compute_what_ptx_says(void **state) {
    (void)state;
    is_plain = true;
    compare_all();
    is_plain = false;
}
static void vectors_of_this_processor_compute_the_same(void **state) {
    (void)state;
    if (ptx_has_v3()) compare_all();
}

/* ---- approximate functions */

typedef struct {
    const char *text;
    long double (*exact)(long double);
    double least, most;
    double relative, absolute; /* either is enough */
} approximate;

static long double one_over_root(long double x) {
    return 1 / sqrtl(x);
}
static long double one_over(long double x) {
    return 1 / x;
}
static const approximate approximates[] = {
    {"ex2.approx.f32", exp2l, -130, 127.99, 0x1p-22, 0x1p-140},
    {"lg2.approx.f32", log2l, 0x1p-140, 1e38, 0x1p-22, 0x1p-22},
    {"lg2.approx.f32", log2l, 0.5, 2, 0x1p-22, 0x1p-22},
    {"sin.approx.f32", sinl, -3.15, 3.15, 0x1p-22, 0x1p-20},
    {"cos.approx.f32", cosl, -3.15, 3.15, 0x1p-22, 0x1p-20},
    {"sin.approx.f32", sinl, -10000, 10000, 0x1p-22, 0x1p-20},
    {"rsqrt.approx.f32", one_over_root, 0x1p-140, 1e38, 0x1p-22, 0},
    {"sqrt.approx.f32", sqrtl, 0, 1e38, 0x1p-23, 0},
    {"rcp.approx.f32", one_over, 1e-37, 1e37, 0x1p-23, 0},
    {"tanh.approx.f32", tanhl, -12, 12, 0x1p-11, 0},
};

static void approximate_functions_keep_their_bounds(void **state) {
    (void)state;
    mr_buffer text = {0};
    enum { COUNT = sizeof approximates / sizeof *approximates };
    mr_buffer_puts(&text, ".version 8.6\n.target sm_90\n.address_size 64\n");
    for (int i = 0; i < COUNT; i++) {
        mr_buffer_printf(&text,
                         ".visible .entry k%d(.param .u64 out, .param .u64 in)\n{\n.reg .f32 "
                         "%%f<3>; .reg .b32 %%r<9>; .reg .b64 %%d<9>;\n"
                         "mov.u32 %%r1, %%ctaid.x; mov.u32 %%r2, %%tid.x; mad.lo.s32 %%r3, %%r1, "
                         "128, %%r2; mul.wide.u32 %%d1, %%r3, 4;\n"
                         "ld.param.u64 %%d2, [in]; add.s64 %%d2, %%d2, %%d1; ld.global.f32 %%f1, "
                         "[%%d2]; %s %%f2, %%f1;\n"
                         "ld.param.u64 %%d3, [out]; add.s64 %%d3, %%d3, %%d1; st.global.f32 "
                         "[%%d3], %%f2; ret;\n}\n",
                         i, approximates[i].text);
    }
    device d;
    load_ptx(&d, text.data);
    char *in, *out;
    uint64_t to = give(&d, "out", 4 * CASES, 0, &out), from = give(&d, "in", 4 * CASES, 0, &in);
    for (int i = 0; i < COUNT; i++) {
        const approximate *f = &approximates[i];
        for (int n = 0; n < CASES; n++) {
            double part = (double)(next_random() >> 11) * 0x1p-53;
            bool by_exponent = f->least > 0 && f->most / f->least > 1e6;
            double x = by_exponent ? f->least * pow(f->most / f->least, part)
                                   : f->least + (f->most - f->least) * part;
            ((float *)(void *)in)[n] = (float)x;
        }
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        begin(&d, name, CASES / 128, 128);
        PASS(&d, uint64_t, to);
        PASS(&d, uint64_t, from);
        run(&d);
        for (int n = 0; n < CASES; n++) {
            float x = ((float *)(void *)in)[n], got = ((float *)(void *)out)[n];
            long double want = f->exact(x), error = fabsl((long double)got - want);
            if (error > f->absolute && error > f->relative * fabsl(want)) {
                printf("%s(%a) = %a, not %La\n", f->text, (double)x, (double)got, want);
                fail();
            }
        }
    }
    unload(&d);
    mr_buffer_free(&text);
}

static void special_operands_of_approximate_functions(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t in, out;
    } cases[] = {
        {"ex2.approx.f32", 0xff800000, 0},
        {"ex2.approx.f32", 0x7f800000, 0x7f800000},
        {"ex2.approx.f32", 0x80000000, 0x3f800000},
        {"ex2.approx.f32", 0x7fc00000, 0x7fffffff},
        {"lg2.approx.f32", 0, 0xff800000},
        {"lg2.approx.f32", 0x80000000, 0xff800000},
        {"lg2.approx.f32", 0xbf800000, 0x7fffffff},
        {"lg2.approx.f32", 0x7f800000, 0x7f800000},
        {"lg2.approx.f32", 0x3f800000, 0},
        {"lg2.approx.ftz.f32", 1, 0xff800000},
        {"sin.approx.f32", 0x80000000, 0x80000000},
        {"sin.approx.f32", 0x7f800000, 0x7fffffff},
        {"cos.approx.f32", 0, 0x3f800000},
        {"cos.approx.f32", 0xff800000, 0x7fffffff},
        {"rsqrt.approx.f32", 0x80000000, 0xff800000},
        {"rsqrt.approx.f32", 0x7f800000, 0},
        {"rsqrt.approx.f32", 0xbf800000, 0x7fffffff},
        {"rcp.approx.f32", 0x80000000, 0xff800000},
        {"rcp.approx.ftz.f32", 1, 0x7f800000},
        {"rcp.approx.f32", 0xff800000, 0x80000000},
        {"tanh.approx.f32", 0x7f800000, 0x3f800000},
        {"tanh.approx.f32", 0xff800000, 0xbf800000},
        {"sqrt.approx.f32", 0x80000000, 0x80000000},
    };
    mr_buffer text = {0};
    mr_buffer_puts(
        &text, ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n"
               "{\n.reg .f32 %f<3>; .reg .b64 %d<3>; ld.param.u64 %d1, [out];\n");
    enum { COUNT = sizeof cases / sizeof *cases };
    for (int i = 0; i < COUNT; i++) {
        mr_buffer_printf(&text,
                         "mov.f32 %%f1, 0f%08X; %s %%f2, %%f1; st.global.f32 [%%d1+%d], %%f2;\n",
                         cases[i].in, cases[i].text, 4 * i);
    }
    mr_buffer_puts(&text, "ret;\n}\n");
    device d;
    load_ptx(&d, text.data);
    char *out;
    uint64_t to = give(&d, "out", 4 * COUNT, 0, &out);
    begin(&d, "k", 1, 1);
    PASS(&d, uint64_t, to);
    run(&d);
    for (int i = 0; i < COUNT; i++) {
        uint32_t got = ((uint32_t *)(void *)out)[i];
        if (got != cases[i].out)
            printf("%s of %08x: %08x, not %08x\n", cases[i].text, cases[i].in, got, cases[i].out);
        assert_int_equal(got, cases[i].out);
    }
    unload(&d);
    mr_buffer_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_compute_what_ptx_says),
        cmocka_unit_test(vectors_of_this_processor_compute_the_same),
        cmocka_unit_test(approximate_functions_keep_their_bounds),
        cmocka_unit_test(special_operands_of_approximate_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
