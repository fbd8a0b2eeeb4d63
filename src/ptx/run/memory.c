/* Addresses of the lanes: see memory.h. Here their shape is found, generic addresses are taken apart into spaces, and
 * accesses are told to the watch and the profile. The spaces find the bytes: global.c, shared.c, local.c.
 * The parameters of a kernel are the launch's array, which nothing may write. */
#include "ptx/run/memory.h"

#include <inttypes.h>

#include "ptx/run/counts.h"
#include "ptx/run/space.h"
#include "ptx/watch/watch.h"

/* ---- parameters of the kernel */

static bool param_apart(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                        uint32_t mask, ptx_reach *r) {
    const mr_ptx_launch *launch = warp->run->launch;
    uint32_t size = launch->kernel->param_bytes;
    r->shape = PTX_APART;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned lane = ptx_first_lane(left);
        uint64_t address = r->address[lane];
        if (address > size || m->bytes > size - address) {
            ptx_fault(warp, code, lane, MR_CODE_ILLEGAL_ADDRESS,
                      "%s %u bytes at offset %" PRId64 " of the kernel's parameters, which have %u "
                      "bytes",
                      ptx_access_verb(m), m->bytes, (int64_t)address, size);
            return false;
        }
        if (m->access & MR_PTX_WRITES) {
            ptx_fault(warp, code, lane, MR_CODE_ILLEGAL_ADDRESS,
                      "writes to a parameter of the kernel");
            return false;
        }
        r->lane[lane] = warp->run->params + address;
    }
    return true;
}

/* ---- all spaces */

static const char *const space_names[] = {[PTX_GLOBAL] = "global",
                                          [PTX_SHARED] = "shared",
                                          [PTX_LOCAL] = "local",
                                          [PTX_CONST] = "constant",
                                          [PTX_PARAM] = "parameter"};

static bool fail_aligned(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                         uint32_t mask, const ptx_reach *r) {
    for (; mask; mask &= mask - 1) {
        unsigned lane = ptx_first_lane(mask);
        if (r->address[lane] % m->align == 0) continue;
        char what[512] = "";
        const mr_ptx_memory *memory = &warp->run->launch->memory;
        bool global = r->space == PTX_GLOBAL || r->space == PTX_CONST;
        if (global && memory->describe) {
            memory->describe(memory->context, r->address[lane], 0, what, sizeof what);
        }
        ptx_fault(warp, code, lane, MR_CODE_MISALIGNED_ADDRESS,
                  "%s %u bytes at address 0x%" PRIx64
                  " of %s memory, which is no multiple of %u%s%s",
                  ptx_access_verb(m), m->bytes, r->address[lane], space_names[r->space], m->align,
                  what[0] ? "; it is " : "", what);
        return false;
    }
    return false;
}

static void tell(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m, uint32_t mask,
                 ptx_shape shape, const ptx_reach *r) {
    const mr_ptx_launch *launch = warp->run->launch;
    if (warp->run->is_counted && !warp->repeat.is_idle) {
        ptx_counts_access(warp->run->counts, warp->frame->routine, code, m, r->space, mask,
                          r->address);
    }
    if (!launch->watch || (r->space != PTX_GLOBAL && r->space != PTX_SHARED)) return;
    ptx_watched watched = {
        .block = warp->block->linear,
        .warp = warp->number,
        .mask = mask,
        .space = r->space,
        .address = r->address,
        .bytes = m->bytes,
        .access = m->access,
        .atomic = m->atomic,
        .order = m->order,
        .value = warp->run->values,
        .scope = m->scope,
        .instruction = code->source,
        .is_row = shape == PTX_ROW,
        .is_same = shape == PTX_SAME,
    };
    ptx_watch_access(launch->watch, &watched);
}

static bool reach_space(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                        uint32_t mask, ptx_reach *r) {
    unsigned first = ptx_first_lane(mask);
    uint64_t base = r->address[first] - (r->shape == PTX_ROW ? (uint64_t)first * r->stride : 0);
    switch (r->space) {
    case PTX_SHARED: return ptx_shared_reach(warp, code, m, mask, base, r);
    case PTX_LOCAL: return ptx_local_reach(warp, code, m, mask, base, r);
    case PTX_PARAM: return param_apart(warp, code, m, mask, r);
    default: return ptx_global_reach(warp, code, m, mask, base, r);
    }
}

/* r->address holds addresses of `space`; the shape is set. Only accesses that reach memory are reported: a failed
 * access does not happen, and would be a race outside all storages. */
static bool reach_in(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m, uint32_t mask,
                     ptx_space space, ptx_reach *r) {
    ptx_shape shape = r->shape; /* of the addresses, which the search may take apart */
    r->space = space;
    if (!reach_space(warp, code, m, mask, r)) return false;
    if (warp->run->tells) tell(warp, code, m, mask, shape, r);
    return true;
}

static ptx_space space_of_top(uint64_t address) {
    switch (address >> PTX_WINDOW_SHIFT) {
    case PTX_TOP_SHARED: return PTX_SHARED;
    case PTX_TOP_LOCAL: return PTX_LOCAL;
    case PTX_TOP_PARAM: return PTX_PARAM;
    default: return PTX_GLOBAL;
    }
}

static const uint64_t windows[] = {[PTX_GENERIC] = 0,
                                   [PTX_GLOBAL] = 0,
                                   [PTX_SHARED] = PTX_WINDOW(PTX_TOP_SHARED),
                                   [PTX_LOCAL] = PTX_WINDOW(PTX_TOP_LOCAL),
                                   [PTX_CONST] = 0,
                                   [PTX_PARAM] = PTX_WINDOW(PTX_TOP_PARAM)};

static bool reach_generic(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                          uint32_t mask, ptx_reach *r) {
    uint32_t left = mask;
    ptx_reach part;
    while (left) {
        ptx_space space = space_of_top(r->address[ptx_first_lane(left)]);
        uint32_t here = 0;
        for (uint32_t rest = left; rest; rest &= rest - 1) {
            unsigned lane = ptx_first_lane(rest);
            if (space_of_top(r->address[lane]) == space) here |= 1u << lane;
        }
        if (here == mask) {
            for (unsigned i = 0; i < PTX_LANES; i++) r->address[i] -= windows[space];
            return reach_in(warp, code, m, mask, space, r);
        }
        part.shape = PTX_APART;
        for (unsigned i = 0; i < PTX_LANES; i++) part.address[i] = r->address[i] - windows[space];
        if (!reach_in(warp, code, m, here, space, &part)) return false;
        for (uint32_t rest = here; rest; rest &= rest - 1) {
            unsigned lane = ptx_first_lane(rest);
            r->lane[lane] = part.lane[lane];
        }
        r->space = part.space;
        left &= ~here;
    }
    r->shape = PTX_APART;
    return true;
}

/* Fills in the addresses and says what shape they have. */
static void gather(ptx_warp *warp, const ptx_memory_code *m, ptx_place_of address, uint32_t mask,
                   ptx_reach *r) {
    uint64_t offset = (uint64_t)m->offset, same = 0, row = 0;
    uint64_t *to = r->address;
    if (m->wide_address) {
        const ptx_u64 *from = PTX_AT(const ptx_u64, warp, address);
        for (unsigned i = 0; i < PTX_LANES; i++) to[i] = from[i] + offset;
    } else {
        const ptx_u32 *from = PTX_AT(const ptx_u32, warp, address);
        for (unsigned i = 0; i < PTX_LANES; i++) to[i] = (uint32_t)(from[i] + (uint32_t)offset);
    }
    if (mask == PTX_ALL) {
        uint64_t base = to[0];
        for (unsigned i = 0; i < PTX_LANES; i++) {
            same |= to[i] ^ base;
            row |= to[i] ^ (base + (uint64_t)i * m->bytes);
        }
    } else {
        unsigned first = ptx_first_lane(mask);
        uint64_t at = to[first], base = at - (uint64_t)first * m->bytes;
        for (unsigned i = 0; i < PTX_LANES; i++) {
            uint64_t on = 0 - (uint64_t)(mask >> i & 1);
            same |= (to[i] ^ at) & on;
            row |= (to[i] ^ (base + (uint64_t)i * m->bytes)) & on;
        }
    }
    r->stride = m->bytes;
    r->shape = row == 0 ? PTX_ROW : same == 0 ? PTX_SAME : PTX_APART;
    if (same == 0) r->shape = PTX_SAME;
}

/* A variable of the frame, or a parameter of the kernel. */
static bool reach_fixed(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                        uint32_t mask, ptx_reach *r) {
    if (m->space == PTX_PARAM) {
        r->shape = PTX_SAME;
        r->base = warp->run->params + m->offset;
        return true;
    }
    uint64_t address = warp->frame->local_base + (uint64_t)m->offset;
    r->space = PTX_LOCAL;
    if (!warp->run->tells && ptx_local_together(warp, m, mask, address, r)) return true;
    for (unsigned i = 0; i < PTX_LANES; i++) r->address[i] = address;
    r->shape = PTX_SAME;
    return reach_in(warp, code, m, mask, PTX_LOCAL, r);
}

static bool aligned(const ptx_memory_code *m, uint32_t mask, const ptx_reach *r) {
    uint64_t low = m->align - 1u;
    if (r->shape != PTX_APART) return !(r->address[ptx_first_lane(mask)] & low);
    uint64_t any = 0;
    for (unsigned i = 0; i < PTX_LANES; i++) any |= mask >> i & 1 ? r->address[i] : 0;
    return !(any & low);
}

bool ptx_reach_lanes(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                     ptx_place_of address, uint32_t mask, ptx_reach *out) {
    if (m->fixed) return reach_fixed(warp, code, m, mask, out);
    gather(warp, m, address, mask, out);
    if (!aligned(m, mask, out)) {
        out->space = m->space == PTX_GENERIC ? space_of_top(out->address[ptx_first_lane(mask)])
                                             : (ptx_space)m->space;
        return fail_aligned(warp, code, m, mask, out);
    }
    if (m->space == PTX_GENERIC) return reach_generic(warp, code, m, mask, out);
    return reach_in(warp, code, m, mask, (ptx_space)m->space, out);
}

char *ptx_reach_bytes(ptx_warp *warp, const ptx_code *code, unsigned lane, uint64_t address,
                      uint32_t bytes) {
    ptx_memory_code m = {.space = PTX_GENERIC,
                         .access = MR_PTX_READS,
                         .count = 1,
                         .bytes = (uint8_t)bytes,
                         .align = 1,
                         .wide_address = true,
                         .index = warp->run->module->access_count};
    ptx_reach r;
    r.shape = PTX_SAME;
    for (unsigned i = 0; i < PTX_LANES; i++) r.address[i] = address;
    if (!reach_generic(warp, code, &m, 1u << lane, &r)) return NULL;
    return ptx_lane_at(&r, lane);
}
