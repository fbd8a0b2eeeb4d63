/* Atomic operations: atom and red. On all memory they are the processor's, as other threads run other blocks. */
#include "ptx/run/fault.h"
#include "ptx/run/half.h"
#include "ptx/run/memory.h"
#include "ptx/run/runs.h"
#include "ptx/run/warp.h"
#include "ptx/watch/watch.h"

/* Computes `value` from `old` and the operands b and c, and tries again until no other thread came in between. */
#define X(name, T, value)                                                                          \
    static uint64_t name(void *at, uint64_t b_bits, uint64_t c_bits) {                             \
        T *p = at;                                                                                 \
        T b = (T)b_bits, c = (T)c_bits, old = __atomic_load_n(p, __ATOMIC_RELAXED), new;           \
        (void)b, (void)c;                                                                          \
        do {                                                                                       \
            new = (T)(value);                                                                      \
        } while (!__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST,               \
                                              __ATOMIC_SEQ_CST));                                  \
        return old;                                                                                \
    }

#define WIDTH(bits, T, S)                                                                          \
    X(and_##bits, T, old &b)                                                                       \
    X(or_##bits, T, old | b)                                                                       \
    X(xor_##bits, T, old ^ b)                                                                      \
    X(add_##bits, T, old + b)                                                                      \
    X(min_u##bits, T, old < b ? old : b)                                                           \
    X(max_u##bits, T, old > b ? old : b)                                                           \
    X(min_s##bits, T, (S)old < (S)b ? old : b)                                                     \
    X(max_s##bits, T, (S)old > (S)b ? old : b)
#define EXCHANGE(bits, T)                                                                          \
    X(exch_##bits, T, b)                                                                           \
    static uint64_t cas_##bits(void *at, uint64_t b_bits, uint64_t c_bits) {                       \
        T old = (T)b_bits;                                                                         \
        __atomic_compare_exchange_n((T *)at, &old, (T)c_bits, false, __ATOMIC_SEQ_CST,             \
                                    __ATOMIC_SEQ_CST);                                             \
        return old;                                                                                \
    }
WIDTH(32, ptx_u32, int32_t)
WIDTH(64, ptx_u64, int64_t)
EXCHANGE(16, ptx_u16)
EXCHANGE(32, ptx_u32)
EXCHANGE(64, ptx_u64)
X(inc_32, ptx_u32, old >= b ? 0 : old + 1)
X(dec_32, ptx_u32, old == 0 || old > b ? b : old - 1)

static uint32_t add_f32_bits(uint32_t a, uint32_t b) {
    return mr_bits_f32(ptx_nan_32(mr_from_bits_f32(a) + mr_from_bits_f32(b)));
}
static uint64_t add_f64_bits(uint64_t a, uint64_t b) {
    return mr_bits_f64(mr_from_bits_f64(a) + mr_from_bits_f64(b));
}
static uint32_t add_f16_bits(uint32_t a, uint32_t b) {
    double sum = (double)ptx_f32_of_f16((uint16_t)a) + (double)ptx_f32_of_f16((uint16_t)b);
    return ptx_narrow(sum, PTX_FORMAT_F16, PTX_NEAREST, false);
}
static uint32_t add_bf16_bits(uint32_t a, uint32_t b) {
    double sum = (double)mr_from_bits_f32(ptx_f32_of_bf16((uint16_t)a)) +
                 (double)mr_from_bits_f32(ptx_f32_of_bf16((uint16_t)b));
    return ptx_narrow(sum, PTX_FORMAT_BF16, PTX_NEAREST, false);
}
X(add_f32, ptx_u32, add_f32_bits(old, b))
X(add_f64, ptx_u64, add_f64_bits(old, b))
X(add_f16, ptx_u16, add_f16_bits(old, b))
X(add_bf16, ptx_u16, add_bf16_bits(old, b))
X(add_f16x2, ptx_u32, add_f16_bits(old & 65535, b & 65535) | add_f16_bits(old >> 16, b >> 16) << 16)
X(add_bf16x2, ptx_u32,
  add_bf16_bits(old & 65535, b & 65535) | add_bf16_bits(old >> 16, b >> 16) << 16)
#undef X

static const struct {
    ptx_modifier operation;
    ptx_type type;
    ptx_atom *atom;
} rows[] = {
#define ROW(operation, type, name) {PTX_MOD_##operation, PTX_##type, name},
#define BITS(op)                   ROW(op, b32, op##_32) ROW(op, b64, op##_64)
    BITS(and) BITS(or) BITS(xor) BITS(exch) BITS(cas) ROW(cas, b16, cas_16) ROW(exch, b16, exch_16)
        ROW(add, u32, add_32) ROW(add, s32, add_32) ROW(add, u64, add_64) ROW(add, s64, add_64)
            ROW(add, f32, add_f32) ROW(add, f64, add_f64) ROW(add, f16, add_f16)
                ROW(add, bf16, add_bf16) ROW(add, f16x2, add_f16x2) ROW(add, bf16x2, add_bf16x2)
                    ROW(inc, u32, inc_32) ROW(dec, u32, dec_32) ROW(min, u32, min_u32)
                        ROW(min, s32, min_s32) ROW(min, u64, min_u64) ROW(min, s64, min_s64)
                            ROW(max, u32, max_u32) ROW(max, s32, max_s32) ROW(max, u64, max_u64)
                                ROW(max, s64, max_s64)
#undef BITS
#undef ROW
};

ptx_atom *ptx_find_atom(ptx_modifier operation, ptx_type type) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].operation == operation && rows[i].type == type) return rows[i].atom;
    }
    /* Some compilers give and, or, xor, exch and cas another type of the same width. */
    bool is_bitwise = operation == PTX_MOD_and || operation == PTX_MOD_or ||
                      operation == PTX_MOD_xor || operation == PTX_MOD_exch ||
                      operation == PTX_MOD_cas;
    if (!is_bitwise) return NULL;
    ptx_type plain = mr_ptx_types[type].bytes == 2   ? PTX_b16
                     : mr_ptx_types[type].bytes == 4 ? PTX_b32
                                                     : PTX_b64;
    return plain == type || mr_ptx_types[type].bytes > 8 ? NULL : ptx_find_atom(operation, plain);
}

static uint64_t lane_value(const ptx_warp *warp, ptx_place_of operand, unsigned bytes, unsigned i) {
    return bytes == 2   ? PTX_AT(const ptx_u16, warp, operand)[i]
           : bytes == 4 ? PTX_AT(const ptx_u32, warp, operand)[i]
                        : PTX_AT(const ptx_u64, warp, operand)[i];
}

static uint64_t read_again(const void *at, unsigned bytes) {
    return bytes == 2   ? __atomic_load_n((const ptx_u16 *)at, __ATOMIC_RELAXED)
           : bytes == 4 ? __atomic_load_n((const ptx_u32 *)at, __ATOMIC_RELAXED)
                        : __atomic_load_n((const ptx_u64 *)at, __ATOMIC_RELAXED);
}

static void operate(ptx_warp *warp, const ptx_code *code, uint32_t mask, const ptx_reach *reach) {
    const ptx_memory_code *m = code->memory;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = ptx_first_lane(left);
        uint64_t old = m->atom(ptx_lane_at(reach, i), lane_value(warp, code->b, m->bytes, i),
                               lane_value(warp, code->c, m->bytes, i));
        warp->run->changes += read_again(ptx_lane_at(reach, i), m->bytes) != old;
        if (code->d == PTX_NO_PART) continue;
        if (m->bytes == 2) PTX_AT(ptx_u16, warp, code->d)[i] = (uint16_t)old;
        else if (m->bytes == 4) PTX_AT(ptx_u32, warp, code->d)[i] = (uint32_t)old;
        else PTX_AT(ptx_u64, warp, code->d)[i] = old;
    }
}

const ptx_code *ptx_run_atomic(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    const ptx_memory_code *m = code->memory;
    ptx_reach reach;
    /* The watch is told and the access carried out without another strong access in between. */
    mr_ptx_watch *watch = warp->run->launch->watch;
    if (watch) ptx_watch_hold(watch);
    bool found = ptx_reach_lanes(warp, code, m, code->a, mask, &reach);
    if (found) operate(warp, code, mask, &reach);
    if (watch) ptx_watch_let_go(watch);
    return found ? code + 1 : NULL;
}
