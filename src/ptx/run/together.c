/* Operations that the lanes of a warp do together: shuffles, votes, matches, reductions.
 *
 * An instruction with .sync waits for all lanes that its mask names and that live (paths.c brings them together). Lanes
 * that are named but do not take part, as they have exited, count as inactive. */
#include "ptx/run/fault.h"
#include "ptx/run/paths.h"
#include "ptx/run/runs.h"

/* False: the lanes wait for others, or the instruction failed. */
static bool gather(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    if (warp->run->checks) {
        const ptx_u32 *members = PTX_AT(const ptx_u32, warp, code->c);
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned lane = ptx_first_lane(left);
            if (members[lane] >> lane & 1) continue;
            ptx_fault(
                warp, code, lane, MR_CODE_LAUNCH_FAILURE,
                "is lane %u of its warp, and gives a mask (0x%x) that does not name this lane",
                lane, members[lane]);
            return false;
        }
    }
    if (warp->gathered || !(ptx_members(warp, code, mask) & ~mask)) return true;
    ptx_park(warp, code, PTX_PATH_AT_SYNC);
    return false;
}

static const ptx_code *later(ptx_warp *warp) {
    return warp->state == PTX_WARP_FAILED ? NULL : ptx_next_path(warp);
}

/* The lane whose value lane i gets; `*in_range`: it lies in the segment. */
static unsigned shuffle_source(ptx_modifier mode, unsigned i, uint32_t b, uint32_t c,
                               bool *in_range) {
    unsigned segment = c >> 8 & 31, clamp = c & 31;
    unsigned most = (i & segment) | (clamp & ~segment), least = i & segment;
    int j;
    b &= 31;
    switch (mode) {
    case PTX_MOD_up:
        j = (int)i - (int)b;
        *in_range = j >= (int)most;
        break;
    case PTX_MOD_down:
        j = (int)(i + b);
        *in_range = j <= (int)most;
        break;
    case PTX_MOD_bfly:
        j = (int)(i ^ b);
        *in_range = j <= (int)most;
        break;
    default:
        j = (int)(least | (b & ~segment));
        *in_range = j <= (int)most;
        break;
    }
    return *in_range ? (unsigned)j & 31 : i;
}

const ptx_code *ptx_run_shuffle(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    if (!gather(warp, code, mask)) return later(warp);
    const ptx_u32 *a = PTX_AT(const ptx_u32, warp, code->a),
                  *b = PTX_AT(const ptx_u32, warp, code->b);
    const ptx_u32 *c = PTX_AT(const ptx_u32, warp, (ptx_place_of)code->more);
    ptx_u32 *d = PTX_AT(ptx_u32, warp, code->d);
    ptx_place_of predicate = (ptx_place_of)(code->more >> 32);
    uint32_t from[PTX_LANES], good = 0;
    for (unsigned i = 0; i < PTX_LANES; i++) {
        bool in_range;
        unsigned j = shuffle_source((ptx_modifier)code->bits, i, b[i], c[i], &in_range);
        from[i] = a[j];
        good |= (uint32_t)in_range << i;
        if (warp->run->checks && (mask >> i & 1) && !(mask >> j & 1)) {
            return ptx_fault(warp, code, i, MR_CODE_LAUNCH_FAILURE,
                             "shuffles from lane %u, which does not take part, so the value is not "
                             "defined",
                             j);
        }
    }
    for (unsigned i = 0; i < PTX_LANES; i++) d[i] = mask >> i & 1 ? from[i] : d[i];
    if (predicate != PTX_NO_PART) ptx_set_predicate(warp, predicate, good, mask);
    return code + 1;
}

/* The lanes of `mask` that give the same mask of members as lane i: those with which it votes. */
static uint32_t companions(const ptx_warp *warp, const ptx_code *code, uint32_t mask, unsigned i) {
    return PTX_AT(const ptx_u32, warp, code->c)[i] & mask;
}

const ptx_code *ptx_run_vote(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    if (!gather(warp, code, mask)) return later(warp);
    uint32_t a = ptx_predicate(warp, code->a), value = 0;
    ptx_u32 *d = PTX_AT(ptx_u32, warp, code->d);
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (!(mask >> i & 1)) continue;
        uint32_t with = companions(warp, code, mask, i), on = a & with;
        bool is_one = false;
        switch ((ptx_modifier)code->bits) {
        case PTX_MOD_ballot: d[i] = on; continue;
        case PTX_MOD_all: is_one = on == with; break;
        case PTX_MOD_any: is_one = on != 0; break;
        default: is_one = on == 0 || on == with; break; /* uni */
        }
        value |= (uint32_t)is_one << i;
    }
    if (code->bits != PTX_MOD_ballot) ptx_set_predicate(warp, code->d, value, mask);
    return code + 1;
}

static uint64_t lane_bits(const ptx_warp *warp, ptx_place_of operand, unsigned bytes, unsigned i) {
    return bytes == 8 ? PTX_AT(const ptx_u64, warp, operand)[i]
                      : PTX_AT(const ptx_u32, warp, operand)[i];
}

const ptx_code *ptx_run_match(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    if (!gather(warp, code, mask)) return later(warp);
    unsigned bytes = (unsigned)(code->bits >> 8);
    bool all = (code->bits & 255) == PTX_MOD_all;
    uint32_t value[PTX_LANES] = {0}, whole = 0;
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (!(mask >> i & 1)) continue;
        uint32_t with = companions(warp, code, mask, i), same = 0;
        uint64_t mine = lane_bits(warp, code->a, bytes, i);
        for (unsigned k = 0; k < PTX_LANES; k++) {
            if ((with >> k & 1) && lane_bits(warp, code->a, bytes, k) == mine) same |= 1u << k;
        }
        value[i] = all && same != with ? 0 : same;
        whole |= (uint32_t)(same == with) << i;
    }
    ptx_u32 *d = PTX_AT(ptx_u32, warp, code->d);
    for (unsigned i = 0; i < PTX_LANES; i++) d[i] = mask >> i & 1 ? value[i] : d[i];
    if (code->b != PTX_NO_PART) ptx_set_predicate(warp, code->b, whole, mask);
    return code + 1;
}

static uint32_t combine(ptx_modifier operation, ptx_type type, uint32_t x, uint32_t y) {
    switch (operation) {
    case PTX_MOD_add: return x + y;
    case PTX_MOD_and: return x & y;
    case PTX_MOD_or: return x | y;
    case PTX_MOD_xor: return x ^ y;
    case PTX_MOD_min:
        if (type == PTX_s32) return (int32_t)x < (int32_t)y ? x : y;
        return x < y ? x : y;
    default:
        if (type == PTX_s32) return (int32_t)x > (int32_t)y ? x : y;
        return x > y ? x : y;
    }
}

const ptx_code *ptx_run_redux(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    if (!gather(warp, code, mask)) return later(warp);
    const ptx_u32 *a = PTX_AT(const ptx_u32, warp, code->a);
    uint32_t value[PTX_LANES] = {0};
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (!(mask >> i & 1)) continue;
        uint32_t with = companions(warp, code, mask, i), r = a[i];
        for (uint32_t left = with & ~(1u << i); left; left &= left - 1) {
            r = combine((ptx_modifier)(code->bits & 255), (ptx_type)(code->bits >> 8), r,
                        a[ptx_first_lane(left)]);
        }
        value[i] = r;
    }
    ptx_u32 *d = PTX_AT(ptx_u32, warp, code->d);
    for (unsigned i = 0; i < PTX_LANES; i++) d[i] = mask >> i & 1 ? value[i] : d[i];
    return code + 1;
}

const ptx_code *ptx_run_activemask(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    ptx_u32 *d = PTX_AT(ptx_u32, warp, code->d);
    for (unsigned i = 0; i < PTX_LANES; i++) d[i] = mask >> i & 1 ? mask : d[i];
    return code + 1;
}
