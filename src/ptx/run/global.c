/* Global and constant memory: found through the caller (mr_ptx_memory.find). Each access keeps the range that it found
 * last, so that the usual one costs one comparison for all lanes. Easiest to break: other threads run other blocks, so
 * nothing here is changed that belongs to the launch, except bits of `unset`, atomically. */
#include <inttypes.h>
#include <stdio.h>

#include "ptx/run/ranges.h"
#include "ptx/run/space.h"

static void clear_bits(uint8_t *byte, uint8_t bits) {
    if (__atomic_load_n(byte, __ATOMIC_RELAXED) & bits) {
        __atomic_fetch_and(byte, (uint8_t)~bits, __ATOMIC_RELAXED);
    }
}

static void clear_unset(uint8_t *unset, uint64_t offset, uint64_t bytes) {
    uint64_t first = offset / 8, last = (offset + bytes - 1) / 8;
    uint8_t low = (uint8_t)(0xff << (offset & 7)),
            high = (uint8_t)(0xff >> (7 - ((offset + bytes - 1) & 7)));
    if (first == last) {
        clear_bits(&unset[first], low & high);
        return;
    }
    clear_bits(&unset[first], low);
    for (uint64_t i = first + 1; i < last; i++) __atomic_store_n(&unset[i], 0, __ATOMIC_RELAXED);
    clear_bits(&unset[last], high);
}

static ptx_known_range *allowed_range(ptx_warp *warp, const ptx_code *code,
                                      const ptx_memory_code *m, uint64_t address) {
    ptx_known_range *known = ptx_range_at(warp, address);
    bool is_allowed = known && ptx_range_holds(known, address, m->bytes) &&
                      ptx_range_may_be_used(warp, code, m, known);
    return is_allowed ? known : NULL;
}

/* The other lanes of the access that are outside, too. */
static void put_others(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                       uint32_t others, const ptx_reach *r, char *out, size_t size) {
    unsigned count = 0;
    for (; others; others &= others - 1)
        count += !allowed_range(warp, code, m, r->address[ptx_first_lane(others)]);
    out[0] = 0;
    if (count)
        snprintf(out, size, ", as do%s %u more thread%s of its warp", count == 1 ? "es" : "", count,
                 count == 1 ? "" : "s");
}

/* The first lane of `mask` is outside of all that it may access. */
static bool fail_outside(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                         uint32_t mask, const ptx_reach *r) {
    const mr_ptx_memory *memory = &warp->run->launch->memory;
    unsigned lane = ptx_first_lane(mask);
    uint64_t address = r->address[lane], wrong = address;
    char what[600] = "", others[64];
    const ptx_known_range *known = ptx_range_at(warp, address);
    if (known && !ptx_range_holds(known, address, m->bytes)) wrong = known->range.end;
    if (memory->describe)
        memory->describe(memory->context, wrong, ptx_meant_address(warp, code, wrong), what,
                         sizeof what);
    put_others(warp, code, m, mask & (mask - 1), r, others, sizeof others);
    if (address < 4096) {
        ptx_fault(warp, code, lane, MR_CODE_ILLEGAL_ADDRESS,
                  "%s %u bytes at address 0x%" PRIx64 ", through a null pointer%s",
                  ptx_access_verb(m), m->bytes, address, others);
    } else {
        ptx_fault(warp, code, lane, MR_CODE_ILLEGAL_ADDRESS, "%s %u bytes at 0x%" PRIx64 "%s%s%s",
                  ptx_access_verb(m), m->bytes, address, what[0] ? ", " : ", where no memory is",
                  what, others);
    }
    return false;
}

/* The checks where the range is known. */
static bool enter_range(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                        unsigned lane, ptx_known_range *known) {
    if (!(m->access & MR_PTX_WRITES)) return true;
    if (known->range.read_only) {
        ptx_fault(warp, code, lane, MR_CODE_ILLEGAL_ADDRESS, "writes to constant memory");
        return false;
    }
    if (!known->told) {
        known->told = known->may_write = true;
        const mr_ptx_memory *memory = &warp->run->launch->memory;
        if (memory->will_write) memory->will_write(memory->context, &known->range);
    }
    return true;
}

/* The bytes of one lane, in `known`. */
static void note_unset(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                       unsigned lane, ptx_known_range *known, uint64_t address) {
    uint64_t offset = address - known->range.first;
    if (warp->run->follows_unset && (m->access & MR_PTX_READS) &&
        ptx_any_unset(known->range.unset, offset, m->bytes)) {
        const mr_ptx_memory *memory = &warp->run->launch->memory;
        char what[512] = "";
        if (memory->describe) memory->describe(memory->context, address, 0, what, sizeof what);
        ptx_tell_unset(
            warp, code, m, lane,
            (mr_ptx_unset_read){.space = PTX_GLOBAL, .address = address, .bytes = m->bytes},
            "reads %u bytes at 0x%" PRIx64 "%s%s, which nothing has written", m->bytes, address,
            what[0] ? ", " : "", what);
    }
    if (m->access & MR_PTX_WRITES) clear_unset(known->range.unset, offset, m->bytes);
}

static bool global_apart(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                         uint32_t mask, ptx_reach *r) {
    ptx_known_range **last = &warp->run->last[m->index];
    ptx_known_range *entered = NULL;
    r->shape = PTX_APART;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned lane = ptx_first_lane(left);
        uint64_t address = r->address[lane];
        ptx_known_range *known = *last;
        if (!ptx_range_holds(known, address, m->bytes)) {
            known = allowed_range(warp, code, m, address);
            if (!known) return !warp->run->failure && fail_outside(warp, code, m, left, r);
            *last = known;
        }
        if (known != entered) {
            if (!enter_range(warp, code, m, lane, known)) return false;
            entered = known;
        }
        if (known->range.unset) note_unset(warp, code, m, lane, known, address);
        r->lane[lane] = known->range.host + (address - known->range.first);
    }
    return true;
}

/* A row or one place: one comparison for all lanes. False: look at each lane. */
static bool global_together(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                            uint32_t mask, uint64_t base, ptx_reach *r) {
    uint64_t stride = r->shape == PTX_ROW ? r->stride : 0;
    unsigned first = ptx_first_lane(mask), end = 32 - (unsigned)__builtin_clz(mask);
    uint64_t from = base + first * stride, bytes = (end - 1 - first) * stride + m->bytes;
    ptx_known_range **last = &warp->run->last[m->index];
    if (!ptx_range_holds(*last, from, bytes)) {
        ptx_known_range *known = ptx_range_at(warp, from);
        if (!known || !ptx_range_holds(known, from, bytes) ||
            !ptx_range_may_be_used(warp, code, m, known))
            return false;
        *last = known;
    }
    ptx_known_range *known = *last;
    if ((m->access & MR_PTX_WRITES) && (!known->told || known->range.read_only)) {
        if (known->range.read_only || !enter_range(warp, code, m, first, known)) return false;
    }
    if (known->range.unset) {
        uint64_t offset = from - known->range.first;
        bool whole = ptx_is_whole_row(mask, stride);
        if (!whole || ((m->access & MR_PTX_READS) && warp->run->follows_unset &&
                       ptx_any_unset(known->range.unset, offset, bytes))) {
            return false;
        }
        if (m->access & MR_PTX_WRITES) clear_unset(known->range.unset, offset, bytes);
    }
    r->base = known->range.host + (base - known->range.first);
    return true;
}

bool ptx_global_reach(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m, uint32_t mask,
                      uint64_t base, ptx_reach *r) {
    if (r->shape != PTX_APART && global_together(warp, code, m, mask, base, r)) return true;
    return !warp->run->failure && global_apart(warp, code, m, mask, r);
}
