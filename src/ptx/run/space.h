/* The interface of memory.c to each space: accesses whose addresses and shape are known. A space finds the bytes on the
 * host, checks the bounds, and follows which bytes are written. Private to memory.c and the files of the spaces. */
#ifndef MR_PTX_RUN_SPACE_H
#define MR_PTX_RUN_SPACE_H

#include "ptx/run/fault.h"
#include "ptx/run/memory.h"

/* All of these: `r->address` holds addresses of the space, and the shape is set. `base` is the address of lane 0 if the
 * lanes are a row, or the address of all lanes. They fill in where the bytes are. False: it failed (ptx_fault was
 * called). */
typedef bool ptx_space_reach(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                             uint32_t mask, uint64_t base, ptx_reach *r);
ptx_space_reach ptx_global_reach; /* constant memory, too */
ptx_space_reach ptx_shared_reach, ptx_local_reach;
/* One address for all lanes, as of a variable of the frame. False: look at each lane. */
bool ptx_local_together(ptx_warp *warp, const ptx_memory_code *m, uint32_t mask, uint64_t base,
                        ptx_reach *r);

static inline const char *ptx_access_verb(const ptx_memory_code *m) {
    return m->access == MR_PTX_READS    ? "reads"
           : m->access == MR_PTX_WRITES ? "writes"
                                        : "reads and writes";
}

/* The bytes of a row. The mask may leave out some inside. */
static inline bool ptx_is_whole_row(uint32_t mask, uint64_t stride) {
    unsigned first = ptx_first_lane(mask), end = 32 - (unsigned)__builtin_clz(mask);
    return stride == 0 || (mask >> first) == (PTX_ALL >> (32 - (end - first)));
}

/* Whether one of the bits [offset, offset + bytes) is 1: a byte that nothing has written. */
static inline bool ptx_any_unset(const uint8_t *unset, uint64_t offset, uint64_t bytes) {
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

#endif
