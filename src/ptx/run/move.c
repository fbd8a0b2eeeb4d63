/* Moves that are not a plain copy of a vector, and predicates. */
#include "ptx/run/runs.h"
#include "ptx/run/warp.h"

const ptx_code *ptx_run_local_address(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    uint64_t address = code->bits + warp->frame->local_base;
    if (code->more == 8) {
        ptx_u64 *d = PTX_AT(ptx_u64, warp, code->d);
        for (unsigned i = 0; i < PTX_LANES; i++) d[i] = mask >> i & 1 ? address : d[i];
    } else {
        ptx_u32 *d = PTX_AT(ptx_u32, warp, code->d);
        for (unsigned i = 0; i < PTX_LANES; i++) d[i] = mask >> i & 1 ? (uint32_t)address : d[i];
    }
    return code + 1;
}

const ptx_code *ptx_run_isspacep(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    const ptx_u64 *a = PTX_AT(const ptx_u64, warp, code->a);
    uint32_t found = 0;
    for (unsigned i = 0; i < PTX_LANES; i++) {
        uint64_t top = a[i] >> PTX_WINDOW_SHIFT;
        bool is_global = top != PTX_TOP_SHARED && top != PTX_TOP_LOCAL && top != PTX_TOP_PARAM;
        bool is_there = code->bits == PTX_TOP_GLOBAL ? is_global : top == code->bits;
        found |= (uint32_t)is_there << i;
    }
    ptx_set_predicate(warp, code->d, found, mask);
    return code + 1;
}

/* A cycle is an instruction of a warp, so that a program gives the same values in each run. */
const ptx_code *ptx_run_clock(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    const mr_ptx_device *device = &warp->run->launch->device;
    uint64_t cycles = warp->run->clock + (uint64_t)(warp->slice - warp->budget);
    uint64_t ns = device->start_ns;
    ns += device->clock_hz ? (uint64_t)((double)cycles * 1e9 / (double)device->clock_hz) : cycles;
    uint64_t value = 0;
    switch ((ptx_special)code->a) {
    case PTX_SREG_clock_hi: value = cycles >> 32; break;
    case PTX_SREG_globaltimer:
    case PTX_SREG_globaltimer_lo: value = ns; break;
    case PTX_SREG_globaltimer_hi: value = ns >> 32; break;
    default: value = cycles; break;
    }
    if (code->more == 8) {
        ptx_u64 *d = PTX_AT(ptx_u64, warp, code->d);
        for (unsigned i = 0; i < PTX_LANES; i++) d[i] = mask >> i & 1 ? value : d[i];
    } else {
        ptx_u32 *d = PTX_AT(ptx_u32, warp, code->d);
        for (unsigned i = 0; i < PTX_LANES; i++) d[i] = mask >> i & 1 ? (uint32_t)value : d[i];
    }
    return code + 1;
}

#define X(name, value)                                                                             \
    const ptx_code *ptx_run_pred_##name(ptx_warp *warp, const ptx_code *code, uint32_t mask) {     \
        uint32_t a = ptx_predicate(warp, code->a), b = ptx_predicate(warp, code->b);               \
        (void)b;                                                                                   \
        ptx_set_predicate(warp, code->d, value, mask);                                             \
        return code + 1;                                                                           \
    }
X(mov, a)
X(not, ~a)
X(and, a &b)
X(or, a | b)
X(xor, a ^ b)
#undef X
