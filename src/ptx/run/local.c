/* Local memory of a warp: the lanes' copies of the same 16 bytes are neighbours, and an aligned access never crosses
 * them. Each lane sees addresses from 0 on; its frames have taken the first ones. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/run/space.h"

/* a byte of each lane, and the lanes that have written it */
static uint64_t row_bytes(const ptx_warp *warp) {
    return PTX_LANES + (warp->run->follows_unset ? sizeof *warp->local_set : 0);
}

/* Counts `more` bytes of a lane against the limit of the call. */
static bool may_take(ptx_warp *warp, const ptx_code *code, uint32_t mask, uint64_t bytes,
                     uint64_t more) {
    const ptx_run_state *run = warp->run;
    uint64_t limit = run->launch->device.local_limit, wanted = more * row_bytes(warp);
    uint64_t taken = run->local_taken ? *run->local_taken : 0;
    if (limit && (taken > limit || wanted > limit - taken)) {
        ptx_fault(warp, code, ptx_first_lane(mask), MR_CODE_OUT_OF_MEMORY,
                  "needs %" PRIu64
                  " bytes of local memory, as each of the block's %u threads does: "
                  "%" PRIu64 " bytes are left for all of them; use smaller arrays or blocks",
                  bytes, run->threads, limit);
        return false;
    }
    if (run->local_taken) *run->local_taken = taken + wanted;
    return true;
}

static bool set_capacity(ptx_warp *warp, uint32_t capacity) {
    uint32_t before = warp->local_capacity;
    char *grown = realloc(warp->local, (size_t)capacity * PTX_LANES);
    if (!grown) {
        ptx_fault_memory(warp);
        return false;
    }
    memset(grown + (size_t)before * PTX_LANES, 0, (size_t)(capacity - before) * PTX_LANES);
    warp->local = grown;
    if (warp->run->follows_unset) {
        uint32_t *set = realloc(warp->local_set, capacity * sizeof *set);
        if (!set) {
            ptx_fault_memory(warp);
            return false;
        }
        memset(set + before, 0, (capacity - before) * sizeof *set);
        warp->local_set = set;
    }
    warp->local_capacity = capacity;
    return true;
}

void ptx_local_give_back(ptx_warp *warp) {
    if (warp->run->local_taken) *warp->run->local_taken -= warp->local_capacity * row_bytes(warp);
    free(warp->local);
    free(warp->local_set);
}

bool ptx_local_grow(ptx_warp *warp, const ptx_code *code, uint32_t mask, uint64_t bytes) {
    if (bytes <= warp->local_capacity) return true;
    uint64_t limit = warp->run->launch->device.stack_bytes;
    if (limit == 0) limit = 64 * 1024;
    if (bytes > limit && warp->frame && warp->frame->depth > 0) {
        ptx_fault(warp, code, ptx_first_lane(mask), MR_CODE_LAUNCH_FAILURE,
                  "has no stack left: its calls are %u deep and need more than %" PRIu64 " bytes; "
                  "a recursion that does not end?",
                  warp->frame->depth, limit);
        return false;
    }
    /* The size that the kernel needs from its start is known; only calls make it grow. */
    uint64_t capacity = (bytes + 63) / 64 * 64;
    if (warp->local_capacity && capacity < 2 * (uint64_t)warp->local_capacity)
        capacity = 2 * (uint64_t)warp->local_capacity;
    if (capacity > limit && bytes <= limit) capacity = limit;
    if (capacity > UINT32_MAX / 2) {
        ptx_fault_memory(warp);
        return false;
    }
    return may_take(warp, code, mask, bytes, capacity - warp->local_capacity) &&
           set_capacity(warp, (uint32_t)capacity);
}

void ptx_local_forget(ptx_warp *warp, uint32_t first, uint32_t bytes, uint32_t mask) {
    if (!warp->local_set) return;
    if (mask == PTX_ALL) {
        memset(warp->local_set + first, 0, bytes * sizeof *warp->local_set);
        return;
    }
    for (uint32_t i = 0; i < bytes; i++) warp->local_set[first + i] &= ~mask;
}

/* How many bytes of local memory the lanes of the path that runs have. */
static uint32_t local_bytes(const ptx_warp *warp) {
    return warp->frame->local_base + warp->frame->routine->local_bytes;
}

static bool local_lane(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                       unsigned lane, uint64_t address) {
    uint32_t limit = local_bytes(warp);
    if (address > limit || m->bytes > limit - address) {
        ptx_fault(warp, code, lane, MR_CODE_ILLEGAL_ADDRESS,
                  "%s %u bytes at offset %" PRId64 " of its local memory, which has %u bytes",
                  ptx_access_verb(m), m->bytes, (int64_t)address, limit);
        return false;
    }
    if (!warp->local_set) return true;
    uint32_t bit = 1u << lane, all = bit;
    for (uint32_t i = 0; i < m->bytes; i++) {
        all &= warp->local_set[address + i];
        if (m->access & MR_PTX_WRITES) warp->local_set[address + i] |= bit;
    }
    if ((m->access & MR_PTX_READS) && !all && !m->may_be_unset) {
        ptx_tell_unset(
            warp, code, m, lane,
            (mr_ptx_unset_read){.space = PTX_LOCAL, .address = address, .bytes = m->bytes},
            "reads %u bytes of a local variable that it has not written", m->bytes);
    }
    return true;
}

static bool local_apart(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                        uint32_t mask, ptx_reach *r) {
    r->shape = PTX_APART;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned lane = ptx_first_lane(left);
        if (!local_lane(warp, code, m, lane, r->address[lane])) return false;
        r->lane[lane] = ptx_local_at(warp, (uint32_t)r->address[lane], lane);
    }
    return true;
}

bool ptx_local_together(ptx_warp *warp, const ptx_memory_code *m, uint32_t mask, uint64_t base,
                        ptx_reach *r) {
    uint32_t limit = local_bytes(warp);
    if (base > limit || m->bytes > limit - base) return false;
    if (warp->local_set) {
        uint32_t *set = warp->local_set + base;
        if ((m->access & MR_PTX_READS) && !m->may_be_unset) {
            uint32_t all = mask;
            for (uint32_t i = 0; i < m->bytes; i++) all &= set[i];
            if (all != mask) return false;
        }
        if (m->access & MR_PTX_WRITES) {
            for (uint32_t i = 0; i < m->bytes; i++) set[i] |= mask;
        }
    }
    r->shape = PTX_ROW;
    r->stride = 16;
    r->base = ptx_local_at(warp, (uint32_t)base, 0);
    return true;
}

bool ptx_local_reach(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m, uint32_t mask,
                     uint64_t base, ptx_reach *r) {
    return (r->shape == PTX_SAME && ptx_local_together(warp, m, mask, base, r)) ||
           local_apart(warp, code, m, mask, r);
}
