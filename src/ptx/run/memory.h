/* Where the lanes of a load, store or atomic operation find their bytes on the host. All errors of addresses are found
 * here, and accesses are reported to the watch and the profile. */
#ifndef MR_PTX_RUN_MEMORY_H
#define MR_PTX_RUN_MEMORY_H

#include "ptx/run/warp.h"

typedef enum {
    PTX_SAME, /* all lanes at `base` */
    PTX_ROW, /* lane i at base + i * stride; base may lie outside of memory if lane 0 is inactive */
    PTX_APART, /* lane i at lane[i], if it is active */
} ptx_shape;

struct ptx_reach {
    ptx_shape shape;
    ptx_space space; /* of the first lane, never PTX_GENERIC */
    uint32_t stride;
    char *base;
    uint64_t address[PTX_LANES]; /* in the space; of inactive lanes anything */
    char *lane[PTX_LANES];
};

/* Finds what `memory` accesses with the address in operand `address`. False: it failed (ptx_fault was called). */
bool ptx_reach_lanes(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *memory,
                     ptx_place_of address, uint32_t mask, ptx_reach *out);
static inline char *ptx_lane_at(const ptx_reach *reach, unsigned lane) {
    return reach->shape == PTX_APART ? reach->lane[lane]
           : reach->shape == PTX_ROW ? reach->base + (size_t)lane * reach->stride
                                     : reach->base;
}

/* For printf and its like: `bytes` bytes at a generic address of one lane; NULL: it failed. They are read. */
char *ptx_reach_bytes(ptx_warp *warp, const ptx_code *code, unsigned lane, uint64_t address,
                      uint32_t bytes);

/* Local memory of at least `bytes` a lane; false: beyond the limit, or memory is out (ptx_fault was called). */
bool ptx_local_grow(ptx_warp *warp, const ptx_code *code, uint32_t mask, uint64_t bytes);
void ptx_local_give_back(ptx_warp *warp); /* at the end of the run */
static inline char *ptx_local_at(const ptx_warp *warp, uint32_t offset, unsigned lane) {
    return warp->local + (size_t)(offset / 16) * (16 * PTX_LANES) + lane * 16 + offset % 16;
}
/* A frame begins: nothing is written in [first, first + bytes). */
void ptx_local_forget(ptx_warp *warp, uint32_t first, uint32_t bytes, uint32_t mask);

#endif
