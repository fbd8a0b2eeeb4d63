/* Sorting by keys on the device: what family/sort.c and family/index.c share. */
#ifndef MR_CUDA_SORT_H
#define MR_CUDA_SORT_H

#include "cuda/kernels/order_args.h"
#include "cuda/launch/kernels.h"

/* Working memory in the order of a stream: lines of keys, each with a payload of 4 bytes or 8. keys[0] is filled in by
 * a kernel of the caller's; after each call that sorts, the order so far is in keys[at] and payload[at]. */
typedef struct {
    uint64_t lines, length;
    uint64_t pitch; /* from line to line, so that each begins aligned */
    uint32_t tiles; /* of a line */
    bool wide;      /* keys are u64, else u32 */
    int payload_size;
    void *keys[2];
    void *payload[2];
    /* The payload of the first pass; NULL: the positions in the line. Optional, set by the caller. */
    const void *first_payload;
    bool counted; /* the caller's kernel has left the counts of the first digits in `counts` */
    int at;
    uint32_t *counts, *totals; /* as in mr_cuda_radix */
    CUdeviceptr memory;
} cuda_sorting;

/* From the lines, the length, `wide` and the size of the payload, which are set. Fails (not-supported) where positions
 * do not fit 32 bits. */
mr_status mr_cuda_sorting_begin(const mr_command *command, CUstream stream, cuda_sorting *sorting);
void mr_cuda_sorting_end(const mr_command *command, CUstream stream, cuda_sorting *sorting);

/* Stable: each line by the bits of the keys from `first` to before `end`, at least one bit. */
mr_status mr_cuda_sort_by_keys(const mr_command *command, CUstream stream, cuda_sorting *sorting,
                               int first, int end);

/* `lists` of counts of `tiles` tiles each, one after the other in memory, become the sums before each tile. */
mr_status mr_cuda_scan_counts(const mr_command *command, CUstream stream, uint64_t lists,
                              uint32_t tiles, uint32_t *counts, uint32_t *totals);

/* Bits of the largest of `count` different numbers from 0. */
static inline int mr_cuda_bits(uint64_t count) {
    return count > 1 ? 64 - __builtin_clzll(count - 1) : 1;
}

/* Blocks of a kernel whose threads go on until all of `items` is done. */
static inline uint64_t mr_cuda_spread(const mr_command *command, uint64_t items) {
    enum { BLOCKS_A_SM = 16 };
    uint64_t most = (uint64_t)command->stream->device->properties.sm_count * BLOCKS_A_SM;
    uint64_t blocks = mr_cuda_blocks(items, MR_CUDA_THREADS);
    return blocks < 1 ? 1 : blocks < most ? blocks : most;
}

#endif
