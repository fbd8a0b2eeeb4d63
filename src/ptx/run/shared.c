/* Shared memory: one array of the block that runs. Only the thread that runs the block touches it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ptx/shared_name.h"
#include "ptx/run/space.h"

/* Marks bytes as written, and counts the unwritten rest. */
static void set_shared(ptx_block_run *block, uint64_t offset, uint64_t bytes) {
    for (uint64_t i = offset; i < offset + bytes;) {
        uint8_t *byte = &block->shared_unset[i / 8];
        unsigned first = i % 8, count = 8 - first;
        if (count > offset + bytes - i) count = (unsigned)(offset + bytes - i);
        uint8_t bits = (uint8_t)(((1u << count) - 1) << first);
        block->shared_unset_left -= (uint32_t)__builtin_popcount(*byte & bits);
        *byte &= (uint8_t)~bits;
        i += count;
    }
}

/* ---- messages */

static void name_shared(const ptx_run_state *run, uint64_t offset, char *out, size_t size) {
    uint64_t byte;
    const ptx_variable *v = ptx_shared_variable_at(run->launch->kernel, offset, &byte);
    out[0] = 0;
    if (!v) return;
    uint32_t element = mr_ptx_types[v->type].bytes;
    if (element > 1) /* b8 is what compilers make of any array */
        snprintf(out, size, ", in `%s` at byte %" PRIu64 " (element %" PRIu64 " of %u bytes)",
                 ptx_plain_name(v->name), byte, byte / element, element);
    else snprintf(out, size, ", in `%s` at byte %" PRIu64, ptx_plain_name(v->name), byte);
}

/* For an access after the end of memory whose size the launch sets: proposes the size. Far after the end, the index is
 * wrong. */
static void advise_size(const ptx_run_state *run, uint64_t address, uint32_t bytes, char *out,
                        size_t size) {
    const mr_ptx_launch *launch = run->launch;
    uint64_t byte, most = launch->device.max_shared ? launch->device.max_shared : UINT32_MAX;
    out[0] = 0;
    if (address < run->block.shared_bytes - launch->dynamic_shared || address > most) return;
    const ptx_variable *v = ptx_shared_variable_at(launch->kernel, address, &byte);
    if (!v || v->bytes) return;
    snprintf(out, size,
             ": `%s` is extern __shared__, and the launch gave it %u bytes; k[{grid, block, "
             "BYTES}](...) says how many it has, and this access needs %" PRIu64,
             ptx_plain_name(v->name), launch->dynamic_shared, byte + bytes);
}

/* ---- accesses */

static bool fail_shared(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                        unsigned lane, uint64_t address) {
    char advice[400];
    advise_size(warp->run, address, m->bytes, advice, sizeof advice);
    ptx_fault(warp, code, lane, MR_CODE_ILLEGAL_ADDRESS,
              "%s %u bytes at offset %" PRId64 " of shared memory; the block has %u bytes of it%s",
              ptx_access_verb(m), m->bytes, (int64_t)address, warp->block->shared_bytes, advice);
    return false;
}

static bool shared_lane(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                        unsigned lane, uint64_t address) {
    ptx_block_run *block = warp->block;
    if (address > block->shared_bytes || m->bytes > block->shared_bytes - address) {
        return fail_shared(warp, code, m, lane, address);
    }
    if (!block->shared_unset_left) return true;
    if ((m->access & MR_PTX_READS) && ptx_any_unset(block->shared_unset, address, m->bytes)) {
        char what[256];
        name_shared(warp->run, address, what, sizeof what);
        ptx_tell_unset(
            warp, code, m, lane,
            (mr_ptx_unset_read){.space = PTX_SHARED, .address = address, .bytes = m->bytes},
            "reads %u bytes at offset %" PRIu64 " of shared memory%s, which no thread "
            "of the block has written",
            m->bytes, address, what);
    }
    if (m->access & MR_PTX_WRITES) set_shared(block, address, m->bytes);
    return true;
}

static bool shared_apart(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                         uint32_t mask, ptx_reach *r) {
    r->shape = PTX_APART;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned lane = ptx_first_lane(left);
        if (!shared_lane(warp, code, m, lane, r->address[lane])) return false;
        r->lane[lane] = warp->block->shared + r->address[lane];
    }
    return true;
}

static bool shared_together(ptx_warp *warp, const ptx_memory_code *m, uint32_t mask, uint64_t base,
                            ptx_reach *r) {
    ptx_block_run *block = warp->block;
    uint64_t stride = r->shape == PTX_ROW ? r->stride : 0;
    unsigned first = ptx_first_lane(mask), end = 32 - (unsigned)__builtin_clz(mask);
    uint64_t from = base + first * stride, bytes = (end - 1 - first) * stride + m->bytes;
    if (from > block->shared_bytes || bytes > block->shared_bytes - from) return false;
    if (block->shared_unset_left) {
        bool whole = ptx_is_whole_row(mask, stride);
        if (!whole) return false;
        if ((m->access & MR_PTX_READS) && ptx_any_unset(block->shared_unset, from, bytes))
            return false;
        if (m->access & MR_PTX_WRITES) set_shared(block, from, bytes);
    }
    r->base = block->shared + base;
    return true;
}

bool ptx_shared_reach(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m, uint32_t mask,
                      uint64_t base, ptx_reach *r) {
    return (r->shape != PTX_APART && shared_together(warp, m, mask, base, r)) ||
           shared_apart(warp, code, m, mask, r);
}
