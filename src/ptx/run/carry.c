/* Addition, subtraction and multiply-add with the carry of the lane: .cc writes it, addc, subc and madc read it.
 *
 * Easiest to break: devices compute a - b as a + ~b + 1 and keep the carry of that sum, so after sub.cc the carry is 1
 * if nothing was borrowed. The text of the ISA speaks of a borrow instead. The two differ only where addc or madc
 * follows sub.cc, or subc follows add.cc. But NVIDIA's own division of 128-bit integers does the former to see whether
 * a subtraction went below zero. */
#include "ptx/run/runs.h"
#include "ptx/run/warp.h"

static uint64_t addend_of(ptx_carry_op op, bool is_64, bool is_signed, uint64_t a, uint64_t b) {
    if (is_64) {
        unsigned __int128 product = is_signed
                                        ? (unsigned __int128)((__int128)(int64_t)a * (int64_t)b)
                                        : (unsigned __int128)a * b;
        return (uint64_t)(op == PTX_C_MAD_HI ? product >> 64 : product);
    }
    uint64_t product = is_signed ? (uint64_t)((int64_t)(int32_t)a * (int32_t)b)
                                 : (uint32_t)a * (uint64_t)(uint32_t)b;
    return (uint32_t)(op == PTX_C_MAD_HI ? product >> 32 : product);
}

/* x + y + carry in `bits` bits; *carry becomes that of the sum. */
static uint64_t add(uint64_t x, uint64_t y, unsigned bits, bool *carry) {
    unsigned __int128 sum = (unsigned __int128)x + y + *carry;
    *carry = (bool)(sum >> bits & 1);
    return (uint64_t)sum;
}

const ptx_code *ptx_run_carry(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    ptx_carry_op op = (ptx_carry_op)(code->bits & 255);
    bool is_64 = code->bits >> 8 & 1, is_signed = code->bits >> 9 & 1;
    bool in = code->bits >> 10 & 1, out = code->bits >> 11 & 1;
    const char *a = PTX_AT(const char, warp, code->a), *b = PTX_AT(const char, warp, code->b);
    const char *c = PTX_AT(const char, warp, code->c);
    char *d = PTX_AT(char, warp, code->d);
    uint32_t carries = warp->carry;
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (!(mask >> i & 1)) continue;
        uint64_t x, y, z, r;
        if (is_64) {
            x = ((const ptx_u64 *)(const void *)a)[i], y = ((const ptx_u64 *)(const void *)b)[i];
            z = ((const ptx_u64 *)(const void *)c)[i];
        } else {
            x = ((const ptx_u32 *)(const void *)a)[i], y = ((const ptx_u32 *)(const void *)b)[i];
            z = ((const ptx_u32 *)(const void *)c)[i];
        }
        unsigned bits = is_64 ? 64 : 32;
        bool carry = in ? carries >> i & 1 : op == PTX_C_SUB;
        if (op == PTX_C_ADD) r = add(x, y, bits, &carry);
        else if (op == PTX_C_SUB) r = add(x, is_64 ? ~y : (uint32_t)~y, bits, &carry);
        else r = add(addend_of(op, is_64, is_signed, x, y), z, bits, &carry);
        if (is_64) ((ptx_u64 *)(void *)d)[i] = r;
        else ((ptx_u32 *)(void *)d)[i] = (uint32_t)r;
        if (out) carries = (carries & ~(1u << i)) | (uint32_t)carry << i;
    }
    warp->carry = carries;
    return code + 1;
}
