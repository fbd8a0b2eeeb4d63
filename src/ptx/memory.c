/* Addresses of the lanes: see memory.h.
 *
 * Global memory is found through the caller (mr_ptx_memory.find); each access keeps the range that it found last, so that the
 * usual one costs one comparison for all lanes. Shared memory is one array of the block. Local memory is
 * laid out so that the lanes' copies of the same 16 bytes are neighbours, and an aligned access never crosses them.
 * The parameters of a kernel are the launch's array, which nothing may write. */
#include "ptx/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/fault.h"
#include "ptx/counts.h"
#include "ptx/watch.h"

static const char *verb(const ptx_memory_code *m) {
    return m->access == MR_PTX_READS    ? "reads"
           : m->access == MR_PTX_WRITES ? "writes"
                                        : "reads and writes";
}

/* ---- bytes that nothing has written */

static bool any_unset(const uint8_t *unset, uint64_t offset, uint64_t bytes) {
    uint64_t first = offset / 8, last = (offset + bytes - 1) / 8;
    uint8_t low = (uint8_t)(0xff << (offset & 7)),
            high = (uint8_t)(0xff >> (7 - ((offset + bytes - 1) & 7)));
    if (first == last) return unset[first] & low & high;
    if ((unset[first] & low) || (unset[last] & high)) return true;
    for (uint64_t i = first + 1; i < last; i++) {
        if (unset[i]) return true;
    }
    return false;
}

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

/* The same for shared memory, which only this thread touches: it counts what is left. */
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

/* ---- global memory */

static bool fail_outside(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                         unsigned lane, uint64_t address, uint64_t wrong) {
    const mr_ptx_memory *memory = &warp->run->launch->memory;
    char what[512] = "";
    if (memory->describe) memory->describe(memory->context, wrong, what, sizeof what);
    if (address < 4096) {
        ptx_fault(warp, code, lane, MR_CODE_ILLEGAL_ADDRESS,
                  "%s %u bytes at address 0x%" PRIx64 ", through a null pointer", verb(m), m->bytes,
                  address);
    } else {
        ptx_fault(warp, code, lane, MR_CODE_ILLEGAL_ADDRESS, "%s %u bytes at 0x%" PRIx64 "%s%s",
                  verb(m), m->bytes, address, what[0] ? ", " : ", where no memory is", what);
    }
    return false;
}

static ptx_known_range *add_range(ptx_run_state *run, const mr_ptx_range *range) {
    if (run->range_count == run->range_capacity) {
        uint32_t capacity = run->range_capacity ? 2 * run->range_capacity : 16;
        ptx_known_range **grown = realloc(run->ranges, capacity * sizeof *grown);
        if (!grown) return NULL;
        run->ranges = grown;
        run->range_capacity = capacity;
    }
    ptx_known_range *known = calloc(1, sizeof *known);
    if (!known) return NULL;
    known->range = *range;
    run->ranges[run->range_count++] = known;
    return known;
}

/* The range in which `address` lies; NULL: none, or memory is out (then run->failure is set). */
static ptx_known_range *find_range(ptx_warp *warp, uint64_t address) {
    ptx_run_state *run = warp->run;
    for (uint32_t i = 0; i < run->range_count; i++) {
        const mr_ptx_range *r = &run->ranges[i]->range;
        if (address >= r->first && address < r->end) return run->ranges[i];
    }
    const mr_ptx_memory *memory = &run->launch->memory;
    mr_ptx_range range;
    if (!memory->find || !memory->find(memory->context, address, &range)) return NULL;
    ptx_known_range *known = add_range(run, &range);
    if (!known) ptx_fault_memory(warp);
    return known;
}

static inline bool holds(const ptx_known_range *known, uint64_t address, uint64_t bytes) {
    return address >= known->range.first && address <= known->range.end &&
           bytes <= known->range.end - address;
}

/* What is checked where the range is known. */
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
        any_unset(known->range.unset, offset, m->bytes)) {
        const mr_ptx_memory *memory = &warp->run->launch->memory;
        char what[512] = "";
        if (memory->describe) memory->describe(memory->context, address, what, sizeof what);
        ptx_tell_unset(warp, code, m->index, lane,
                       "reads %u bytes at 0x%" PRIx64 "%s%s, which nothing has written", m->bytes,
                       address, what[0] ? ", in " : "", what);
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
        if (!holds(known, address, m->bytes)) {
            known = find_range(warp, address);
            if (!known) {
                if (warp->run->failure) return false;
                return fail_outside(warp, code, m, lane, address, address);
            }
            if (!holds(known, address, m->bytes)) {
                return fail_outside(warp, code, m, lane, address, known->range.end);
            }
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
    if (!holds(*last, from, bytes)) {
        ptx_known_range *known = find_range(warp, from);
        if (!known || !holds(known, from, bytes)) return false;
        *last = known;
    }
    ptx_known_range *known = *last;
    if ((m->access & MR_PTX_WRITES) && (!known->told || known->range.read_only)) {
        if (known->range.read_only || !enter_range(warp, code, m, first, known)) return false;
    }
    if (known->range.unset) {
        uint64_t offset = from - known->range.first;
        bool whole = (mask >> first) == (PTX_ALL >> (32 - (end - first))) || stride == 0;
        if (!whole || ((m->access & MR_PTX_READS) && warp->run->follows_unset &&
                       any_unset(known->range.unset, offset, bytes))) {
            return false;
        }
        if (m->access & MR_PTX_WRITES) clear_unset(known->range.unset, offset, bytes);
    }
    r->base = known->range.host + (base - known->range.first);
    return true;
}

/* ---- shared memory */

static bool fail_shared(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                        unsigned lane, uint64_t address) {
    ptx_fault(warp, code, lane, MR_CODE_ILLEGAL_ADDRESS,
              "%s %u bytes at offset %" PRId64 " of shared memory, of which the block has %u bytes",
              verb(m), m->bytes, (int64_t)address, warp->block->shared_bytes);
    return false;
}

/* The variable of shared memory at `offset`: "values[3]", or ""; for messages. */
/* The name in the source: C++ writes `s` of a function as "_ZZ1fPfE1s", with its length in front, at the end. */
static const char *plain_name(const char *symbol) {
    size_t length = strlen(symbol), digits;
    if (strncmp(symbol, "_ZZ", 3) != 0) return symbol;
    for (size_t known = 1; known + 2 < length; known++) {
        char number[24];
        digits = (size_t)snprintf(number, sizeof number, "%zu", known);
        const char *at = symbol + length - known - digits;
        if (digits + known < length && strncmp(at, number, digits) == 0 && at[-1] == 'E')
            return at + digits;
    }
    return symbol;
}

static void name_shared(const ptx_run_state *run, uint64_t offset, char *out, size_t size) {
    const mr_ptx_kernel *kernel = run->launch->kernel;
    const ptx_tree *tree = &run->module->tree;
    const ptx_shared_layout *layout = &run->module->layouts[kernel - run->module->kernels];
    out[0] = 0;
    for (int64_t f = -1; f < (int64_t)tree->function_count; f++) {
        const ptx_variable *variables = f < 0 ? tree->variables : tree->functions[f].variables;
        uint32_t count = f < 0 ? tree->variable_count : tree->functions[f].variable_count;
        const uint64_t *at = f < 0 ? layout->shared_of_module : layout->shared_of_function[f];
        for (uint32_t i = 0; at && i < count; i++) {
            const ptx_variable *v = &variables[i];
            if (v->space != PTX_SHARED || at[i] == UINT64_MAX || offset < at[i]) continue;
            if (v->bytes && offset >= at[i] + v->bytes) continue;
            uint32_t element = ptx_types[v->type].bytes;
            uint64_t byte = offset - at[i];
            if (element > 1) /* b8 is what compilers make of any array */
                snprintf(out, size,
                         ", in `%s` at byte %" PRIu64 " (element %" PRIu64 " of %u bytes)",
                         plain_name(v->name), byte, byte / element, element);
            else snprintf(out, size, ", in `%s` at byte %" PRIu64, plain_name(v->name), byte);
            return;
        }
    }
}

static bool shared_lane(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                        unsigned lane, uint64_t address) {
    ptx_block_run *block = warp->block;
    if (address > block->shared_bytes || m->bytes > block->shared_bytes - address) {
        return fail_shared(warp, code, m, lane, address);
    }
    if (!block->shared_unset_left) return true;
    if ((m->access & MR_PTX_READS) && any_unset(block->shared_unset, address, m->bytes)) {
        char what[256];
        name_shared(warp->run, address, what, sizeof what);
        ptx_tell_unset(warp, code, m->index, lane,
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
        bool whole = (mask >> first) == (PTX_ALL >> (32 - (end - first))) || stride == 0;
        if (!whole) return false;
        if ((m->access & MR_PTX_READS) && any_unset(block->shared_unset, from, bytes)) return false;
        if (m->access & MR_PTX_WRITES) set_shared(block, from, bytes);
    }
    r->base = block->shared + base;
    return true;
}

/* ---- local memory */

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
    uint64_t capacity = warp->local_capacity ? warp->local_capacity : 64;
    while (capacity < bytes) capacity *= 2;
    if (capacity > UINT32_MAX / 2) {
        ptx_fault_memory(warp);
        return false;
    }
    char *grown = realloc(warp->local, capacity * PTX_LANES);
    if (!grown) {
        ptx_fault_memory(warp);
        return false;
    }
    memset(grown + (size_t)warp->local_capacity * PTX_LANES, 0,
           (size_t)(capacity - warp->local_capacity) * PTX_LANES);
    warp->local = grown;
    if (warp->run->follows_unset) {
        uint32_t *set = realloc(warp->local_set, capacity * sizeof *set);
        if (!set) {
            ptx_fault_memory(warp);
            return false;
        }
        memset(set + warp->local_capacity, 0, (capacity - warp->local_capacity) * sizeof *set);
        warp->local_set = set;
    }
    warp->local_capacity = (uint32_t)capacity;
    return true;
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
                  "%s %u bytes at offset %" PRId64 " of its local memory, of which it has %u bytes",
                  verb(m), m->bytes, (int64_t)address, limit);
        return false;
    }
    if (!warp->local_set) return true;
    uint32_t bit = 1u << lane, all = bit;
    for (uint32_t i = 0; i < m->bytes; i++) {
        all &= warp->local_set[address + i];
        if (m->access & MR_PTX_WRITES) warp->local_set[address + i] |= bit;
    }
    if ((m->access & MR_PTX_READS) && !all && !m->may_be_unset) {
        ptx_tell_unset(warp, code, m->index, lane,
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

/* One address for all lanes, as of a variable: a row. */
static bool local_together(ptx_warp *warp, const ptx_memory_code *m, uint32_t mask, uint64_t base,
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
                      verb(m), m->bytes, (int64_t)address, size);
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
            memory->describe(memory->context, r->address[lane], what, sizeof what);
        }
        ptx_fault(warp, code, lane, MR_CODE_MISALIGNED_ADDRESS,
                  "%s %u bytes at address 0x%" PRIx64
                  " of %s memory, which is no multiple of %u%s%s",
                  verb(m), m->bytes, r->address[lane], space_names[r->space], m->align,
                  what[0] ? "; it is in " : "", what);
        return false;
    }
    return false;
}

static void tell(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m, uint32_t mask,
                 const ptx_reach *r) {
    const mr_ptx_launch *launch = warp->run->launch;
    ptx_counts *counts = warp->run->counts;
    if (counts) {
        ptx_counts_access(counts, warp->frame->routine, code, m, r->space, mask, r->address);
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
        .is_row = r->shape == PTX_ROW,
        .is_same = r->shape == PTX_SAME,
    };
    ptx_watch_access(launch->watch, &watched);
}

/* r->address holds addresses of `space`, `base` the first lane's; the shape is set. */
static bool reach_in(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m, uint32_t mask,
                     ptx_space space, ptx_reach *r) {
    unsigned first = ptx_first_lane(mask);
    uint64_t base = r->address[first] - (r->shape == PTX_ROW ? (uint64_t)first * r->stride : 0);
    r->space = space;
    if (warp->run->tells) tell(warp, code, m, mask, r);
    switch (space) {
    case PTX_SHARED:
        return (r->shape != PTX_APART && shared_together(warp, m, mask, base, r)) ||
               shared_apart(warp, code, m, mask, r);
    case PTX_LOCAL:
        return (r->shape == PTX_SAME && local_together(warp, m, mask, base, r)) ||
               local_apart(warp, code, m, mask, r);
    case PTX_PARAM: return param_apart(warp, code, m, mask, r);
    default:
        return (r->shape != PTX_APART && global_together(warp, code, m, mask, base, r)) ||
               (!warp->run->failure && global_apart(warp, code, m, mask, r));
    }
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
    if (!warp->run->tells && local_together(warp, m, mask, address, r)) return true;
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
